"""Routes of our own HTTP API, the login and the web UI, grouped by the role of their callers.

Most routes are one line each: method, path, the method of `Access` they call, and the types of body and response.

- `public`: health checks, login, logout, OpenID Connect and the start page
- `api`: sessions, messages, turns, gates, files and event streams, for members and viewers
- `admin`: rules, grants, MCP servers and the model, for operators
- `accounts`: users, API keys, tenants and the audit log, for owners
- `users`: removal, budgets, invitations, usage by user, audit searches and quarantined sessions, for owners
- `passwords`: logins with passwords, and accepted invitations
- `sharing`: who may see a conversation
- `traces`: what turns did and when
- `schedules`: messages that start turns at planned times
- `settings`: models, keys and agents that administrators change, for owners
- `audio`: transcription of recordings, and speech
- `presence`: who looks at a conversation or an approval now
- `push`: browsers that are told of approvals
- `webhooks`: URLs that are told of events, for owners
- `hooks`: signed deliveries to inbound hooks, and their list
- `callbacks`: results that external systems deliver to waiting calls
- `web_ui`: the built web UI and its assets
- `js_sandbox`: the sandboxed frame in which the web UI runs code
"""
