"""Campaign with two cells: a tenant is moved between them while its turns stream.

- `campaign`: two databases, two sets of processes, a router, and readers
- `mail_tool`: a tool whose effects are recorded
"""
