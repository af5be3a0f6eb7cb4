"""Schema migrations: the SQL of each step of the schema, for both databases, in scripts/.

The scripts are generated: `tools/migrations` in the repository has the steps, and the tables that result. A released
script is never edited.
"""
