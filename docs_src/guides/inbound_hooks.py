import asyncio
import json
from datetime import UTC, datetime

from standardwebhooks import Webhook  # pip install standardwebhooks

from everturn import Agent, App
from everturn.inbound_hooks import InboundHook
from everturn.testing import ScriptedModel, say

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # from the environment


async def main() -> None:
    model = ScriptedModel(say("It looks like a bug."), say("Still a bug."))
    triage = Agent(model, name="triage", instructions="You triage issues.")
    async with App(agents=[triage]) as app:  # store="postgresql://…" in production
        app.inbound_hooks.add(
            InboundHook(
                name="issues",
                scheme="standard",
                secrets=(SECRET,),
                agent="triage",
                text="Triage issue {{issue.number}}.",
                session="{{issue.number}}",  # one conversation per issue
                when={"action": ("opened", "edited")},
            )
        )
        for delivery, action in (("d1", "opened"), ("d1", "opened"), ("d2", "edited")):
            payload = {"action": action, "issue": {"number": 7}}
            headers, body = signed(delivery, payload)
            receipt = await app.inbound_hooks.receive("issues", headers, body)
            result = await app.turn(f"{receipt.session}/{receipt.turn}")
            print(delivery, "new" if receipt.is_new else "known", result.text)


def signed(id: str, payload: object) -> tuple[dict[str, str], bytes]:
    """What the other system sends."""
    body, now = json.dumps(payload), datetime.now(UTC)
    signature = Webhook(SECRET).sign(id, now, body)
    headers = {
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
        "content-type": "application/json",
    }
    return headers, body.encode()


if __name__ == "__main__":
    asyncio.run(main())
