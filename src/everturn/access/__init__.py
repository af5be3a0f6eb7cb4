"""Access control: authenticates callers, and decides what each may see and do.

This is the one layer between the HTTP server and the stored data. `authentication` turns a credential into a
`Principal`; `Access(server_context, principal)` offers everything that this principal may do, by resource
(`access.sessions.list()`, `access.gates.resolve(...)`), and checks every id from outside against its tenant. Each
method declares its role with `@needs`.

Authentication:

- `authentication`: API keys, login links, cookies and OpenID Connect tokens
- `auth_options`: the configuration of OpenID Connect
- `token_file`: the local operator's token, in a file
- `csrf`: CSRF tokens
- `passwords`: logins with passwords, and accepted invitations
- `oidc`: verifies tokens of an OpenID Connect provider
- `oidc_claims`: maps token claims to a user and a role
- `oidc_login`: the browser login with a provider

Access, by resource:

- `access`: `Access`, which holds the resources, and the inbox
- `sessions`: `access.sessions`: sessions, messages and turns, search, export and import
- `sharing`: `access.sharing`: who may see a conversation, links, and administrators who open one
- `log`: `access.log`: the event log, and queued messages
- `traces`: `access.traces`: what turns did and when, and the requests that they sent
- `gates`: `access.gates`: gates, claims, and grants of a session
- `files`: `access.files`: uploads, blobs, and reverting files
- `memory`: `access.memory`: the caller's memory files
- `schedules`: `access.schedules`: messages that start turns at planned times
- `presence`: `access.presence`: who looks at conversations and approvals now
- `presence_board`: the same, on all nodes, by messages on the bus
- `push`: `access.push`: browsers that are told of approvals
- `webhooks`: `access.webhooks`: URLs that are told of events
- `settings`: `access.settings`: models and their keys, and agents, changed at run time
- `rule_settings`: `access.rule_settings`: permission rules of administrators, and their dry run
- `settings_backend`: the port by which settings are checked, encrypted and applied
- `hooks`: `access.hooks`: the list of inbound hooks
- `accounts`: `access.accounts`: users, API keys, tenants, usage, the audit log
- `cache_usage`: requests that missed the prompt cache, summed
- `users`: `access.users`: removal, budgets, invitations, usage by user, audit searches
- `quarantine`: `access.quarantine`: quarantined sessions
- `admin`: `access.admin`: rules, grants of the tenant, MCP servers, the model
- `mcp_logins`: `access.mcp_logins`: logins to MCP servers, of people and of the installation
- `scope`: what the resources share: tenant check, redaction, idempotency keys, audit records
- `roles`: `@needs`, the role check
- `server_context`: `ServerContext`: the runtime, accounts and agents of a node

Helpers:

- `agents`: the configured agents and limits of tenants
- `turn_options`: what a client may choose for a turn
- `quotas`: rate limits and budgets of tenants
- `role_redaction`: what is hidden from roles below approver
- `subagent_visibility`: who may read the session of a sub-agent
- `explain`: explains how the rules decide on a call
- `explain_view`: rules and explanations, as the caller may see them
- `past_calls`: the last tool calls of a tenant
- `rule_dry_run`: what a draft of rules would have decided about past calls
- `session_archive`: checks of exported and imported sessions
- `titles`: titles of sessions that have not started
- `session_parameters`: the parameters of a session in its turns
- `upload_handles`: signed handles of uploaded files
"""

from everturn.access.access import Access
from everturn.access.roles import needs, role_of

__all__ = ["Access", "needs", "role_of"]
