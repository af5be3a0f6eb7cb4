import asyncio

from everturn import Chat, tool
from everturn.events import StepPart
from everturn.testing import ScriptedModel, call, calls, say

done: list[str] = []


@tool(read_only=True)
async def find_order(number: int) -> str:
    """Find an order."""
    done.append("find_order")
    return "a lamp, delivered on Monday"


@tool
async def refund(number: int) -> str:
    """Refund an order."""
    done.append("refund")
    return "refunded"


async def main() -> None:
    find = calls(call("find_order", number=7))
    hasty = ScriptedModel(find, calls(call("refund", number=7)), say("Refunded."))
    careful = ScriptedModel(find, say("Shall I refund it?"), name="careful")
    helpful = ScriptedModel(find, say("It is on its way."), name="helpful")
    async with Chat(hasty, tools=[find_order, refund]) as chat:
        await (await chat.send("Order 7 is broken"))
        _, answer = await chat.messages()
        steps = [part.step for part in answer.parts if isinstance(part, StepPart)]
        print("steps:", *steps)

        # Another model goes on after the first step of the answer.
        other = await (await chat.rerun(answer, after_step=1, model=careful))
        print("rerun:", other.text)

        # The next message follows the first step.
        await chat.fork(answer, step=1)
        told = await (await chat.send("Send another one", model=helpful))
        print("fork: ", told.text)
        print("run:  ", *done)


if __name__ == "__main__":
    asyncio.run(main())
