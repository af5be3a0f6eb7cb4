"""Gates: an answer counts once, for the bytes that were shown, while its turn still waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.core.asking import Gate, Verdict
from everturn.core.events import Event, GateAnswered, GateOpened, TurnEnding, TurnParked
from everturn.core.gates import GateRow, apply_to_gates, check_answer
from everturn.errors import EverturnError, GateClosed, HashMismatch, UnknownGate

ALLOW, DENY = Verdict(True, by="ada"), Verdict(False, "not today", by="ada")
NOON = 1_000.0


def opened(name: str = "g", turn: str = "t", expires: float = 0.0) -> GateOpened:
    return GateOpened(turn=turn, at=NOON, gate=Gate(name, turn, "c", "mail", '{"to":"Ada"}', "hash", expires))


def answered(verdict: Verdict, name: str = "g") -> GateAnswered:
    return GateAnswered(turn="t", gate=name, call="c", verdict=verdict)


def rows_of(*events: Event) -> dict[str, GateRow]:
    rows: dict[str, GateRow] = {}
    for event in events:
        apply_to_gates(rows, event)
    return rows


def answer(row: GateRow | None, verdict: Verdict = ALLOW, hash: str = "hash", now: float = NOON) -> bool:
    return check_answer(row, "g", hash, verdict, now)


def test_the_first_answer_to_what_was_shown_is_news():
    assert answer(rows_of(opened())["g"]) is True


def test_the_same_answer_again_is_taken_for_what_it_is():
    assert answer(rows_of(opened(), answered(ALLOW))["g"]) is False


def test_the_same_answer_from_somebody_else_is_the_same_answer():
    row = rows_of(opened(), answered(ALLOW))["g"]

    assert answer(row, replace(ALLOW, by="bob")) is False
    with pytest.raises(GateClosed):
        answer(row, replace(ALLOW, arguments='{"to":"Bob"}'))


def test_the_same_answer_again_is_no_news_even_when_its_turn_is_over_or_the_gate_has_expired():
    rows = rows_of(opened(expires=NOON + 1), answered(ALLOW), TurnEnding(turn="t", outcome="completed"))

    assert answer(rows["g"], now=NOON + 2) is False


REFUSED: dict[str, tuple[GateRow | None, str, float, type[EverturnError], str]] = {
    "unknown": (None, "hash", NOON, UnknownGate, "there is no gate 'g'"),
    "for something else": (rows_of(opened())["g"], "other", NOON, HashMismatch, "was opened for hash"),
    "answered otherwise": (rows_of(opened(), answered(DENY))["g"], "hash", NOON, GateClosed, "answered otherwise"),
    "expired": (rows_of(opened(expires=NOON + 1))["g"], "hash", NOON + 1, GateClosed, "has expired"),
    "over": (rows_of(opened(), TurnEnding(turn="t", outcome="error"))["g"], "hash", NOON, GateClosed, "turn is over"),
}


@pytest.mark.parametrize(("row", "hash", "now", "error", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_every_refusal_says_what_is_wrong(
    row: GateRow | None, hash: str, now: float, error: type[EverturnError], text: str
):
    with pytest.raises(error, match=text):
        answer(row, hash=hash, now=now)


def test_no_two_refusals_read_the_same():
    texts: set[str] = set()
    for row, hash, now, error, _ in REFUSED.values():
        with pytest.raises(error) as caught:
            answer(row, hash=hash, now=now)
        texts.add(str(caught.value))

    assert len(texts) == len(REFUSED)


def test_an_answer_for_other_bytes_is_refused_before_anything_else_is_said_about_the_gate():
    rows = rows_of(opened(expires=NOON), answered(DENY), TurnEnding(turn="t", outcome="completed"))

    with pytest.raises(HashMismatch):
        answer(rows["g"], hash="other", now=NOON + 1)


def test_checking_changes_nothing():
    row = rows_of(opened())["g"]

    answer(row)

    assert row == rows_of(opened())["g"]


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_a_gate_is_open_until_the_moment_it_expires(expires: float, now: float):
    row = rows_of(opened(expires=expires))["g"]

    if expires == 0 or now < expires:
        assert answer(row, now=now)
    else:
        with pytest.raises(GateClosed, match="expired"):
            answer(row, now=now)


# The rows -----------------------------------------------------------------------------------------------------------


def test_a_row_keeps_what_was_asked_and_since_when():
    assert rows_of(opened()) == {"g": GateRow(opened().gate, NOON)}


def test_an_answer_closes_its_own_gate_and_no_other():
    rows = rows_of(opened("g"), opened("h"), answered(ALLOW, "g"))

    assert (rows["g"].verdict, rows["g"].is_open) == (ALLOW, False)
    assert (rows["h"].verdict, rows["h"].is_open) == (None, True)


def test_a_turn_that_ends_closes_its_own_gates_and_no_others():
    rows = rows_of(opened("g", "t"), opened("h", "t2"), TurnEnding(turn="t", outcome="cancelled"))

    assert [row.is_open for row in rows.values()] == [False, True]
    assert rows["g"].verdict is None


def test_other_events_leave_the_rows_alone():
    assert rows_of(opened(), TurnParked(turn="t", step=1)) == rows_of(opened())
