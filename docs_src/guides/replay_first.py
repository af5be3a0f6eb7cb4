import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat, tool
from everturn.cli import main as everturn
from everturn.events import TurnSuspended
from everturn.replay import Recording, record, replay
from everturn.testing import ScriptedModel, call, calls, say


@tool(idempotent=True, approval="always")
async def mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


# --8<-- [start:record]
async def talk(file: Path) -> None:
    mail_call = calls(call("mail", to="ada@example.org", text="Lunch?"))
    async with Chat(ScriptedModel(mail_call, say("Ada knows.")), tools=[mail]) as chat:
        turn = await chat.send("Ask Ada to lunch")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                [gate] = await chat.gates()
                await turn.answer(gate, allow="once")
        await record(chat, file)
        # --8<-- [end:record]


def main() -> None:
    with TemporaryDirectory() as folder:
        lunch = Path(folder) / "lunch.jsonl"
        asyncio.run(talk(lunch))
        everturn(["replay", str(lunch)])
        print("--")
        edited = lunch.read_bytes().replace(b"sent to ada", b"sent to eve")
        for line in asyncio.run(replay(Recording.load(edited))):
            print(line)


if __name__ == "__main__":
    main()
