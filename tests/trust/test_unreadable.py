"""What could not be read again is refused before anything is kept: a session must not be lost to one odd value."""

from __future__ import annotations

from datetime import datetime
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.commands import AnyCommand, Cancel, LateResult, ResolveGate, Revoke
from everturn.core.gates import GateResolution
from everturn.core.options import Budget, TurnOptions
from everturn.core.parts import Output, TextPart
from everturn.errors import ConfigError
from everturn.testing.contracts.samples import (
    answer_gate,
    call_requested_events,
    call_started_events,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from tests.helpers.stores import SQL, opened_sql
from tests.trust.open_gates import Asked

ODD: list[Any] = [
    {"until": nan},
    {"until": inf},
    {"until": -1},
    {"until": 1e300},
    {"until": None},
    {"until": True},
    {"until": "tomorrow"},
    {"until": datetime(2030, 1, 1)},  # noqa: DTZ001 - as people write it
    {"by": None},
    {"by": 5},
    {"everywhere": "yes"},
    {"everywhere": 1},
    {"others": None},
    {"allow": "once", "arguments": {"to": object()}},
    {"allow": "once", "arguments": {("to",): "a"}},
]


@pytest.mark.parametrize("reply", ODD, ids=range(len(ODD)))
async def test_an_answer_with_an_odd_value_is_refused_in_words_and_the_right_one_is_taken(
    reply: dict[str, Any], tmp_path: Path
) -> None:
    async with opened_sql("sqlite", tmp_path) as store:
        it = Asked(store)
        async with it.asking() as chat:
            answer: dict[str, Any] = {"allow": "always", **reply}
            with pytest.raises(ConfigError, match=f"{list(reply)[-1]}"):
                await chat.answer(it.gate, **answer)
            assert await store.inbox("s1") == []

            await chat.answer(it.gate, allow="always", until=it.clock.now() + 3600, by="a\ud800da")
            assert (await it.turn).phase == "completed"
            assert [grant.by for grant in await chat.grants()] == ["a?da"]
            with pytest.raises(ConfigError, match="by"):
                await chat.revoke((await chat.grants())[0], by=None)  # type: ignore[arg-type]


def odd_commands() -> list[AnyCommand]:
    message = send_message("k2", turn="t2")
    options: list[Any] = [
        TurnOptions(max_steps=True),
        TurnOptions(system=5),  # type: ignore[arg-type]
        TurnOptions(system="\ud800"),
        TurnOptions(timeout=inf),
        TurnOptions(budget=Budget(steps=2.5)),  # type: ignore[arg-type]
        TurnOptions(budget=Budget(cost=nan)),
        TurnOptions(params={"x": object()}),
        TurnOptions(params={"x": nan}),
    ]
    odd: list[AnyCommand] = [replace(message, options=option) for option in options]
    odd.append(replace(message, parts=(TextPart("\udfff"),)))
    for resolution in (
        GateResolution(True, until=inf),
        GateResolution(True, by=None),  # type: ignore[arg-type]
        GateResolution(True, everywhere="yes"),  # type: ignore[arg-type]
    ):
        odd.append(replace(answer_gate(), resolution=resolution))
    odd.append(Cancel(key="c", session="s", turn="t", hard="yes"))  # type: ignore[arg-type]
    odd.append(Revoke(key="r", session="s", grant="g", by=5))  # type: ignore[arg-type]
    return odd


@pytest.mark.parametrize("kind", SQL)
async def test_a_command_that_could_not_be_read_again_is_refused_on_arrival_and_nothing_is_kept(
    kind: str, tmp_path: Path
) -> None:
    async with opened_sql(kind, tmp_path) as store:
        await store.admit(send_message())
        await store.append("s", 0, [*turn_started_events(), *gate_opened_events()])

        for command in odd_commands():
            with pytest.raises(ConfigError, match=r"change when it is stored|decoded after encoding"):
                await store.admit(command)
            with pytest.raises(ConfigError, match=r"change when it is stored|decoded after encoding"):
                await store.admit(replace(command, session="new"))

        assert await store.inbox("s") == []
        assert [info.id for info in await store.sessions()] == ["s"]
        assert (await store.admit(answer_gate())).is_new
        assert isinstance((await store.inbox("s"))[0], ResolveGate)


@pytest.mark.parametrize("kind", SQL)
async def test_a_late_result_is_taken_as_far_as_it_can_be_written(kind: str, tmp_path: Path) -> None:
    async with opened_sql(kind, tmp_path) as store:
        await store.admit(send_message())
        await store.append(
            "s", 0, [*turn_started_events(), *call_requested_events(), *call_started_events(), turn_ended_events()[0]]
        )
        late = LateResult(key="l", session="s", turn="t", call="t.call", output=Output("x", metadata={"at": (1, nan)}))

        assert (await store.admit(late)).is_new

        [stored_result] = await store.inbox("s")
        assert isinstance(stored_result, LateResult)
        assert stored_result.output.metadata == {"at": [1, None]}
