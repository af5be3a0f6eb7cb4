"""Server-sent event streams: each node reads a session's log and live deltas once and fans them out to all its subscribers.

A client connects with a cursor, catches up from the log, and then receives what all subscribers of the session receive.
A slow client is disconnected and resumes with its cursor; it never delays the others.

- `open`: opens the streams: of a session, a turn, a tenant's inbox, or a turn in another protocol
- `hub`: the broadcasts of a node, and how a client joins one with a cursor
- `session_broadcast`: reads one session's log and live deltas once for all subscribers
- `subscribers`: the subscribers of a broadcast; those at the same position share encoded bytes
- `sse`: the position of a subscriber, and the bytes of its events
- `response`: the ASGI response of one stream, with a bounded outbox
- `registry`: all open streams: limits per tenant, keep-alive, revoked credentials
- `inbox`: the feed of a tenant's gates and changed sessions
"""
