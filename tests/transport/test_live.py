"""The HTTP transport: its client library is imported off the event loop."""

import asyncio
import subprocess
import sys

from everturn.testing.provider import Provider, Say
from everturn.transport import HttpRequest
from everturn.transport.live import HttpTransport

ASKING = """
import asyncio, sys, threading
from importlib.abc import MetaPathFinder

from everturn.models.registry import get_model
from everturn import Chat

class Watch(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "aiohttp":
            print(threading.current_thread() is threading.main_thread())

async def main():
    sys.meta_path.insert(0, Watch())
    turns = await asyncio.gather(*[Chat(get_model("m", base_url=sys.argv[1])).send("hi") for _ in range(3)])
    print(*[(await turn).text for turn in turns])

asyncio.run(main())
"""


async def test_the_client_library_is_imported_in_a_thread_and_not_on_the_event_loop() -> None:
    async with Provider() as provider:
        provider.script("m", [[Say("Hello.")]])
        asking = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ASKING, f"{provider.url}/v1", stdout=subprocess.PIPE
        )
        out, _ = await asking.communicate()

    assert out.decode().split("\n") == ["False", "Hello. Hello. Hello.", ""]


async def test_http_chunks_that_arrived_together_are_read_together_and_nothing_is_lost() -> None:
    pieces = [f"data: {n}\n\n".encode() for n in range(50)]
    burst = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + burst)
        await writer.drain()
        await burst_read.wait()  # until the first burst was read
        writer.write(burst + b"0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    burst_read = asyncio.Event()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        post = HttpRequest(f"http://127.0.0.1:{port}/", {}, b"")
        reads: list[bytes] = []
        async with HttpTransport().post(post) as response:
            async for data in response.read():
                reads.append(data)
                if b"".join(reads) == b"".join(pieces):
                    burst_read.set()

    assert b"".join(reads) == b"".join(pieces) * 2
    assert len(reads) < len(pieces)  # one by one they cost more than parsing them
