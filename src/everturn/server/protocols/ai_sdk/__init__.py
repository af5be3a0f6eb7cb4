"""AI SDK protocol: the routes that `useChat` calls, and the schema of their requests.

- `routes`: chat, resume, stop and approvals
- `schema`: the fields of a request that are read
"""
