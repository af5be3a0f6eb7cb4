"""The HTTP transport: its client library is imported off the event loop."""

import asyncio
import subprocess
import sys

from everturn.testing.provider import Provider, Say

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
