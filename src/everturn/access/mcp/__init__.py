"""Access to MCP servers: their settings, logins, prompts and resources.

- `settings`: `access.mcp_settings`: servers that an administrator adds, and the trust in their tools
- `logins`: `access.mcp_logins`: logins to MCP servers, of people and of the installation
- `offers`: `access.mcp_offers`: prompts and resources that a person attaches to a message
- `views`: the state of the servers on this node
"""
