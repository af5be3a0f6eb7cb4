"""What develops and tests Everturn, and is not in the wheel. It is imported from a checkout, with its root on the path.

- `chaos`: fault injection campaigns on a whole installation
- `servers`: real servers (PostgreSQL, NATS, Restate, Temporal) that a test owns
- `migrations`: the steps of the database schema, from which SQL scripts are generated
- `long_conversation`: a campaign with a real small model through the terminal
- `page_picture`: the picture of the web UI in the docs
- `environment`: the environment of programs that import this package
"""
