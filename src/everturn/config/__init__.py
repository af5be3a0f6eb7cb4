"""Configuration: reads files and the environment, validates them, and builds the runtime and the server from them.

Every value has a source position, so that all problems are reported at once, each with its line.

    load            all of the reading in one call, and the listing of a configuration
    layers          which files and variables are read, merged into one tree
    toml_positions  the position of each key in a TOML text
    schema          the tables and their keys
    server_options  the options of the server
    decode          decodes the tree into a `Config`
    check           validation beyond types
    secrets         secrets by reference
    errors          problems with their positions
    build           builds the runtime and the server context from a `Config`
    models          the models of `[models]`
    tools           the tools of `[tools]` and `[mcp]`
    demo_tools      tools for the offline demo
    worker          the runtime of a cluster's worker
    reload          reloads a file that changes while a server runs
    retention_job   runs the store's maintenance job daily
    discovery       finds the models that this machine could use
"""
