"""Access for administrators: people, usage, the audit log and sessions that need help.

- `accounts`: `access.accounts`: users, API keys, tenants, usage, the audit log
- `users`: `access.users`: removal, budgets, invitations, usage by user, audit searches
- `quarantine`: `access.quarantine`: quarantined sessions
- `admin`: `access.admin`: rules, grants of the tenant, MCP servers, the model
- `cache_usage`: requests that missed the prompt cache, summed
"""
