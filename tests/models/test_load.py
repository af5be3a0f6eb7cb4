"""The first request of a process imports nothing: what it needs is loaded when the App is made, or when it starts."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from everturn.testing.provider import Provider, Say

FIRST_TURN = """
import asyncio, sys
from everturn import Chat, get_model, tool
from everturn.models import FallbackModel
from everturn.models.vendors import VENDORS
from msgspec.structs import replace

@tool(read_only=True)
async def look(at: str) -> str:
    "Look."
    return at

def make():
    # With the prices of a vendor, which are looked up when the usage arrives.
    vendor = replace(VENDORS["openai"], format="chat", base_url=sys.argv[1])
    model = get_model("gpt-4o", base_url=sys.argv[1], key="k", profile=vendor)
    return Chat(FallbackModel(model, model), tools=[look])

def loaded():
    return {name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names}

async def main():
    async with made or make() as chat:
        before = loaded()
        result = await (await chat.send("hi"))
        assert result.text == "Hello." and result.usage.cost, result
        print(*sorted(loaded() - before))

made = make() if sys.argv[2] == "made first" else None
if made:
    assert {"aiohttp", "genai_prices"} <= set(sys.modules), "at once, for there is no loop yet that would wait"
asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["made first", "made in the loop"])
async def test_a_first_turn_imports_no_library(when: str) -> None:
    async with Provider() as provider:
        provider.script("gpt-4o", [[Say("Hello.")]])
        asking = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FIRST_TURN, f"{provider.url}/v1", when, stdout=subprocess.PIPE
        )
        out, _ = await asking.communicate()

    assert asking.returncode == 0
    assert out.decode().split() == []


def test_a_name_and_a_model_that_is_not_used_cost_nothing() -> None:
    statement = "import sys; from everturn import get_model; get_model('m', base_url='http://127.0.0.1:9/v1'); "
    run = [sys.executable, "-c", statement + "print({'aiohttp', 'genai_prices'} & set(sys.modules))"]
    assert subprocess.run(run, capture_output=True, check=True, text=True).stdout == "set()\n"
