"""What all access shares: the node that serves a request, the scope of its caller, and the checks of roles and tenants.

- `server_context`: `ServerContext`: the runtime, accounts and agents of a node
- `scope`: what the resources share: tenant check, redaction, idempotency keys, audit records
- `roles`: `@needs`, the role check
- `role_redaction`: what is hidden from roles below approver
- `subagent_visibility`: who may read the session of a sub-agent
- `agents`: the configured agents and limits of tenants
- `quotas`: rate limits and budgets of tenants
- `audio_service`: transcribes recordings and speaks texts, within limits
- `presence_board`: who looks at conversations and approvals, on all nodes, by messages on the bus
- `settings_backend`: the port by which settings are checked, encrypted and applied
- `setting_writer`: checks, audits, stores and applies a change of a setting
"""
