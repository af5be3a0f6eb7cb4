from pathlib import Path

import pytest

from everturn import Agent, tool
from everturn.replay import Recording, cassette, replay

HERE = Path(__file__).parent


@tool(read_only=True)
async def menu(day: str) -> str:
    """Say what there is for lunch."""
    return {"friday": "soup, fish"}.get(day, "nothing")


agent = Agent("openai:gpt-5.2", tools=[menu])


# Runs your tools; the model answers from the file. Without the file, it is asked.
async def test_the_menu_is_asked_for() -> None:
    async with cassette(HERE / "replay_menu.jsonl", agent=agent) as chat:
        result = await chat.run("What is for lunch on Friday?")
        assert "fish" in result.output


# Replays every recording, without tools and model.
@pytest.mark.parametrize("file", sorted(HERE.glob("replay_*.jsonl")), ids=str)
async def test_it_goes_as_it_went(file: Path) -> None:
    assert await replay(Recording.read(file)) == []
