"""HTTP client: sessions and turns of an Everturn server, with the events and errors of `Chat` and `Turn`.

    async with Server("http://127.0.0.1:8000", token) as server:
        turn = await server.begin("What is the time?")
        async for shown in turn:
            ...

A broken stream resumes at its cursor, and a failed request is retried with the same idempotency key. Several URLs are
the nodes of one cluster; if one does not answer, the client tries the next.

- `server`: `Server`: agents, tools, gates, schedules, webhooks, memory and prompts of a user
- `session`: `RemoteSession`, with the methods of `Chat`
- `turn`: `RemoteTurn`, with the methods of `Turn`
- `administration`: `RemoteAdministration`: settings, users, keys, audit log, usage and quarantine
- `rule_settings`: `RemoteRuleSettings`, the permission rules of administrators
- `sharing`: `RemoteSharing`, the shares of a session
- `event_stream`: event streams (SSE) that reconnect and resume
- `http`: requests with retries and failover, and the errors of a server
- `bodies`: request bodies for messages and gate answers
"""

from everturn.client.http import deliver_to_hook
from everturn.client.server import Server
from everturn.client.session import RemoteSession
from everturn.client.turn import RemoteTurn

__all__ = ["RemoteSession", "RemoteTurn", "Server", "deliver_to_hook"]
