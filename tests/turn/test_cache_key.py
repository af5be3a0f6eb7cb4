"""The key of a conversation in a provider's prompt cache: one for a session and an agent, and nothing of what is said."""

from __future__ import annotations

from everturn import Agent, App
from everturn.testing import ScriptedModel, say


async def test_the_key_is_that_of_the_session_and_the_agent_and_not_of_what_is_said() -> None:
    models = {name: ScriptedModel(*[say("ok")] * 3) for name in ("writer", "reader")}
    keys: dict[tuple[str, str], list[str]] = {}
    async with App(agents=[Agent(model, name=name) for name, model in models.items()]) as app:
        for agent, model in models.items():
            for session in ("one", "two"):
                chat = app.chat(f"{session}-{agent}", agent=agent)
                for text in ("first words", "second words"):
                    await chat.run(text)
                    keys.setdefault((session, agent), []).append(model.requests[-1].cache_key)
    assert all(first == second for first, second in keys.values())
    assert len({first for first, _ in keys.values()}) == 4
    assert all(len(first) == 32 and set(first) <= set("0123456789abcdef") for first, _ in keys.values())
