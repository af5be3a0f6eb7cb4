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
    agents          the agents of `[agents]`
    models          the models of `[models]`
    audio           the models of `[audio]`
    tools           the tools of `[tools]` and `[mcp]`
    hooks           the inbound hooks of `[hooks.NAME]`
    schedules       the schedules of `[[schedules]]`
    webhooks        the webhooks of `[[webhooks.endpoints]]`
    plugins         the plugins of `plugins`
    modules         imports modules and files that a configuration names
    demo_tools      tools for the offline demo
    worker          the runtime of a cluster's worker
    reload          reloads a file that changes while a server runs
    stored_settings  settings of administrators, as a layer beneath the files
    settings_reload  applies stored settings while a server runs
    secret_box      encryption of the secrets in settings
    mcp_logins      opens the store of the logins of people to MCP servers
    retention_job   runs the store's maintenance job daily
    discovery       finds the models that this machine could use
    tool_probe      asks a model of a local server to call a tool: without native tool calls it is prompted
    available_models  lists the models that can be used, with prices; guesses the vendor of a name
    key_store       API keys of vendors, in the keyring or a private file
    toml_edit       sets one value in a TOML text
    folder          the assistant in a folder: `everturn` without a command
"""
