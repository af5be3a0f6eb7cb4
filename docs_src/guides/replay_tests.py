from pathlib import Path

import pytest

from everturn import tool
from everturn.replay import Recording, cassette, replay

HERE = Path(__file__).parent


@tool(read_only=True)
async def menu(day: str) -> str:
    """Say what there is for lunch."""
    return {"friday": "soup, fish"}.get(day, "nothing")


# Runs your tools; the model answers from the file. Without the file, it is asked.
async def test_the_menu_is_asked_for() -> None:
    file = HERE / "replay_menu.jsonl"
    async with cassette(file, model="openai:gpt-5.2", tools=[menu]) as chat:
        result = await (await chat.send("What is for lunch on Friday?"))
        assert "fish" in result.text


# Replays every recording, without tools and model.
@pytest.mark.parametrize("file", sorted(HERE.glob("replay_*.jsonl")), ids=str)
async def test_it_goes_as_it_went(file: Path) -> None:
    assert await replay(Recording.read(file)) == []
