"""A process that receives one delivery on a store and waits for its turn: `STORE`, and a fault plan in the environment."""

from __future__ import annotations

import asyncio
import sys
import time

from everturn.app import App
from everturn.inbound_hooks.hook import InboundHook
from everturn.inbound_hooks.signatures import sign_delivery
from everturn.models.scripted import ScriptedModel
from everturn.testing import say
from tools.chaos.plan import install_from_environment

SECRET = "g" * 32
HOOK = InboundHook(name="github", scheme="github", secrets=(SECRET,), text="Look at {{n}}.", session="{{n}}")


async def main(store: str) -> None:
    install_from_environment()
    async with App(ScriptedModel(*[say("Done.")] * 5), store=store) as app:
        app.inbound_hooks.add(HOOK)
        body = b'{"n": 1}'
        headers = {"content-type": "application/json", **sign_delivery("github", SECRET, "d", int(time.time()), body)}
        receipt = await app.inbound_hooks.receive("github", headers, body)
        await app.turn(f"{receipt.session}/{receipt.turn}")
        print(receipt.turn, receipt.is_new, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
