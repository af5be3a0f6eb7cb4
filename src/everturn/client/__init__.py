"""A server from afar: what `Chat` and `Turn` are in one process, over HTTP, with the same events.

    async with Server("http://127.0.0.1:8000", token) as server:
        turn = await server.begin("What is the time?")
        async for shown in turn:
            ...

What breaks off goes on by itself: a stream where it was, a request with the same key. Several addresses are several nodes
of one cluster; when one does not answer, the next is asked.
"""

from everturn.client.server import RemoteSession, RemoteTurn, Server

__all__ = ["RemoteSession", "RemoteTurn", "Server"]
