import asyncio

from everturn import Chat, Message
from everturn.testing import ScriptedModel, say


async def show(chat: Chat, action: str) -> list[Message]:
    branch = await chat.messages()
    print(f"{action:<7}", " → ".join(message.text for message in branch))
    return branch


async def main() -> None:
    # In each branch, the first answer of the script is A1, the second A2.
    async with Chat(ScriptedModel(say("A1"), say("A2"))) as chat:
        await (await chat.send("one"))
        await (await chat.send("two"))
        one, a1, two, a2 = await show(chat, "send")

        await (await chat.rerun(a2.id))
        await show(chat, "rerun")  # another version of A2
        print("        versions of A2:", len((await chat.tree()).versions(a2.id)))

        await (await chat.edit(one.id, "One!"))
        await show(chat, "edit")  # another version of "one", with an answer

        await (await chat.insert(a1.id, "in between"))
        await show(chat, "insert")  # follows A1, like "two"

        await chat.fork(a2.id)
        await show(chat, "back")  # back to the first branch

        await chat.fork(a1.id)
        await (await chat.send("other"))
        await show(chat, "fork")  # the next message starts a branch there

        await chat.fork(a2.id)
        await chat.delete(two.id)
        await show(chat, "delete")  # "two" and everything under it is hidden


if __name__ == "__main__":
    asyncio.run(main())
