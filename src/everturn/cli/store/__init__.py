"""Store access for the command line: one process owns a local store and serves it to the other processes of the same
user.

A second terminal, `everturn run` or a browser attach to that server; when its process exits, another one takes over.

- `connection`: owner or client of a store: the theory of store sharing, taking the store, taking over
- `server`: the address file beside the store, and the proof that a listener is its server
- `handover`: attach to the process that has a store, or take the store over for `everturn serve`
- `local_server`: the server that `everturn chat` talks to, from the configuration and the command line
- `backends`: sessions in a store or at a server, behind one interface, for `everturn sessions`, `export` and `import`
"""
