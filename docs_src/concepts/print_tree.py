import asyncio

from everturn import Chat
from everturn.events import MessageTree
from everturn.testing import ScriptedModel, say


def draw(tree: MessageTree, parent: str | None = None, depth: int = 0) -> None:
    selected = {message.id for message in tree.path(tree.leaf)}
    for id in tree.children.get(parent, []):  # oldest first; None has the roots
        if id in tree.deleted:
            continue
        message = tree.messages[id]
        mark = "*" if id in selected else " "
        print(f"{mark} {'   ' * depth}{message.role}: {message.text}")
        draw(tree, id, depth + 1)


async def main() -> None:
    async with Chat(ScriptedModel(say("A1"), say("A2"))) as chat:
        await (await chat.send("one"))
        await (await chat.send("two"))
        _, a1, two, _ = await chat.messages()
        await (await chat.edit(two, "Two!"))  # a message, or its id
        await (await chat.insert(a1, "oops"))
        (oops, _) = (await chat.messages())[2:]
        await chat.delete(oops)
        await chat.fork(two)

        tree = await chat.tree()
        draw(tree)
        versions = [tree.messages[id].text for id in tree.versions(two.id)]
        print("versions of two:", versions)


if __name__ == "__main__":
    asyncio.run(main())
