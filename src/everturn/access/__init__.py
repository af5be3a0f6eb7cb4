"""Access control: authenticates callers, and decides what each may see and do.

This is the one layer between the HTTP server and the stored data. `auth` turns a credential into a
`Principal`; `Access(server_context, principal)` offers everything that this principal may do, by resource
(`access.sessions.list()`, `access.gates.resolve(...)`), and checks every id from outside against its tenant. Each
method declares its role with `@needs`.

Packages:

- `auth`: turns credentials into a `Principal`
- `conversations`: sessions, their logs, files, shares, traces and prompts
- `mcp`: MCP servers, their logins, prompts and resources
- `rules`: permission rules, their explanation and their dry run
- `administration`: users, usage, the audit log, quarantined sessions
- `context`: what they share: the node, the scope of a caller, roles, quotas, redaction

Modules:

- `access`: `Access`, which holds the resources, and the inbox
- `gates`: `access.gates`: gates, claims, and grants of a session
- `memory`: `access.memory`: the caller's memory files
- `schedules`: `access.schedules`: messages that start turns at planned times
- `push`: `access.push`: the browsers that receive a push message for an approval
- `webhooks`: `access.webhooks`: URLs to which events are sent
- `hooks`: `access.hooks`: the list of inbound hooks
- `settings`: `access.settings`: models and their keys, and agents, changed at run time
"""

from everturn.access.access import Access
from everturn.access.context.role_redaction import redact_for_client
from everturn.access.context.roles import needs, role_of

__all__ = ["Access", "needs", "redact_for_client", "role_of"]
