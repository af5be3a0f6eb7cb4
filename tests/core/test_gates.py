"""Gates: an answer counts once, for the bytes that were shown, while its turn still waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.core.events import (
    CallClaimed,
    CallFinished,
    Event,
    GateOpened,
    GateResolved,
    TurnFinishing,
    TurnSuspended,
)
from everturn.core.gate_rows import MAX_LEASE, GateRow, apply_to_gates, check_answer, check_claim, gate_deadline
from everturn.core.gates import CallClaim, Gate, GateResolution
from everturn.core.parts import Output
from everturn.errors import (
    AnsweredOtherwise,
    AnswerUnfit,
    ClaimedOtherwise,
    EverturnError,
    GateClosed,
    GateExpired,
    HashMismatch,
    NotClaimed,
    UnknownGate,
)

ALLOW, DENY = GateResolution(True, by="ada"), GateResolution(False, "not today", by="ada")
NOON = 1_000.0


def opened(name: str = "g", turn: str = "t", expires: float = 0.0) -> GateOpened:
    return GateOpened(turn=turn, at=NOON, gate=Gate(name, turn, "c", "mail", '{"to":"Ada"}', "hash", expires))


def answered(resolution: GateResolution, name: str = "g") -> GateResolved:
    return GateResolved(turn="t", gate=name, call="c", resolution=resolution)


def rows_of(*events: Event) -> dict[str, GateRow]:
    rows: dict[str, GateRow] = {}
    for event in events:
        apply_to_gates(rows, event)
    return rows


def answer(row: GateRow | None, resolution: GateResolution = ALLOW, hash: str = "hash", now: float = NOON) -> bool:
    return check_answer(row, "g", hash, resolution, now)


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
    rows = rows_of(opened(expires=NOON + 1), answered(ALLOW), TurnFinishing(turn="t", outcome="completed"))

    assert answer(rows["g"], now=NOON + 2) is False


REFUSED: dict[str, tuple[GateRow | None, str, float, type[EverturnError], str]] = {
    "unknown": (None, "hash", NOON, UnknownGate, "there is no gate 'g'"),
    "for something else": (rows_of(opened())["g"], "other", NOON, HashMismatch, "was opened for hash"),
    "answered otherwise": (rows_of(opened(), answered(DENY))["g"], "hash", NOON, GateClosed, "answered in another way"),
    "expired": (rows_of(opened(expires=NOON + 1))["g"], "hash", NOON + 1, GateClosed, "has expired"),
    "over": (
        rows_of(opened(), TurnFinishing(turn="t", outcome="error"))["g"],
        "hash",
        NOON,
        GateClosed,
        "turn is over",
    ),
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
    rows = rows_of(opened(expires=NOON), answered(DENY), TurnFinishing(turn="t", outcome="completed"))

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

    assert (rows["g"].resolution, rows["g"].is_open) == (ALLOW, False)
    assert (rows["h"].resolution, rows["h"].is_open) == (None, True)


def test_a_turn_that_ends_closes_its_own_gates_and_no_others():
    rows = rows_of(opened("g", "t"), opened("h", "t2"), TurnFinishing(turn="t", outcome="cancelled"))

    assert [row.is_open for row in rows.values()] == [False, True]
    assert rows["g"].resolution is None


def test_other_events_leave_the_rows_alone():
    assert rows_of(opened(), TurnSuspended(turn="t", step=1)) == rows_of(opened())


# Clients --------------------------------------------------------------------------------------------------------------

DONE = GateResolution(True, result='{"n":1}', claim="tab")
FORM = '{"type":"object","required":["n"]}'


def offered(expires: float = 0.0, once: bool = True, form: str = "") -> GateOpened:
    gate = Gate("g", "t", "c", "mail", "{}", "hash", expires, kind="client", once=once, form=form)
    return GateOpened(turn="t", at=NOON, gate=gate)


def claimed(by: str = "tab", until: float = NOON + 60) -> CallClaimed:
    return CallClaimed(turn="t", gate="g", claim=CallClaim(by, until))


def claim(
    row: GateRow | None, by: str = "tab", lease: float = 60.0, now: float = NOON, hash: str = "hash"
) -> CallClaim:
    return check_claim(row, "g", hash, by, lease, now)


def row_of(*events: Event) -> GateRow:
    return rows_of(*events)["g"]


def test_a_call_that_nobody_has_is_given_for_as_long_as_was_asked():
    assert claim(row_of(offered())) == CallClaim("tab", NOON + 60)
    assert claim(row_of(offered(expires=NOON + 30))) == CallClaim("tab", NOON + 30)
    assert claim(row_of(offered()), lease=MAX_LEASE).until == NOON + MAX_LEASE


def test_whoever_has_it_is_given_more_time_and_others_none():
    for once in (True, False):
        row = row_of(offered(once=once), claimed())

        assert claim(row, now=NOON + 59) == CallClaim("tab", NOON + 119)
        with pytest.raises(ClaimedOtherwise, match="by another client"):
            claim(row, "other", now=NOON + 59)


def test_when_the_time_is_over_only_what_can_be_repeated_is_given_again():
    row, once = row_of(offered(once=False), claimed()), row_of(offered(), claimed())

    for by in ("tab", "other"):
        assert claim(row, by, now=NOON + 60) == CallClaim(by, NOON + 120)
        with pytest.raises(ClaimedOtherwise):
            claim(once, by, now=NOON + 60)


NOT_GIVEN: dict[str, tuple[GateRow | None, dict[str, object], type[EverturnError]]] = {
    "unknown": (None, {}, UnknownGate),
    "for something else": (row_of(offered()), {"hash": "other"}, HashMismatch),
    "answered": (row_of(offered(), claimed(), answered(DONE)), {}, AnsweredOtherwise),
    "over": (row_of(offered(), TurnFinishing(turn="t", outcome="cancelled")), {}, GateClosed),
    "settled": (row_of(offered(), CallFinished(turn="t", call="c", state="failed", output=Output(""))), {}, GateClosed),
    "expired": (row_of(offered(expires=NOON)), {}, GateExpired),
    "for a person": (row_of(opened()), {}, AnswerUnfit),
    "by nobody": (row_of(offered()), {"by": ""}, AnswerUnfit),
    "for no time": (row_of(offered()), {"lease": 0.0}, AnswerUnfit),
    "for less": (row_of(offered()), {"lease": -1.0}, AnswerUnfit),
    "for no number": (row_of(offered()), {"lease": float("nan")}, AnswerUnfit),
    "for too long": (row_of(offered()), {"lease": MAX_LEASE + 1}, AnswerUnfit),
}


@pytest.mark.parametrize(("row", "arguments", "error"), NOT_GIVEN.values(), ids=NOT_GIVEN)
def test_every_claim_that_is_refused_says_why_and_changes_nothing(
    row: GateRow | None, arguments: dict[str, object], error: type[EverturnError]
):
    before = None if row is None else replace(row)

    with pytest.raises(error, match=r"gate '?g'?"):
        claim(row, **arguments)  # type: ignore[arg-type]

    assert row == before


def test_a_client_answers_what_it_has_and_while_it_has_it():
    row = row_of(offered(), claimed())

    assert answer(row, DONE, now=NOON + 59) is True
    for wrong, now in ((replace(DONE, claim="other"), NOON), (replace(DONE, claim=""), NOON), (DONE, NOON + 60)):
        with pytest.raises(NotClaimed):
            answer(row, wrong, now=now)
    with pytest.raises(NotClaimed, match="no client has claimed it"):
        answer(row_of(offered()), DONE)


def test_what_a_client_answers_fits_what_was_asked_for():
    row = row_of(offered(form=FORM), claimed())

    assert answer(row, DONE) is True
    assert answer(row, replace(DONE, result="it broke", failed=True)) is True
    for result in ("{}", "no json", "[1]", None):
        with pytest.raises(AnswerUnfit):
            answer(row, replace(DONE, result=result))
    with pytest.raises(AnswerUnfit):
        answer(row, replace(DONE, arguments="{}"))


def test_anybody_may_say_no_to_what_a_client_was_to_do():
    assert answer(row_of(offered()), DENY) is True
    assert answer(row_of(offered(), claimed()), DENY, now=NOON + 1e6) is True


@given(st.sampled_from([0.0, 5.0, 50.0]), st.sampled_from([None, 10.0, 100.0]), st.booleans())
def test_something_is_due_when_a_gate_expires_or_a_client_has_left_what_no_other_may_begin(
    expires: float, until: float | None, once: bool
):
    gate = offered(expires, once).gate
    found = gate_deadline(gate, None if until is None else CallClaim("tab", until))

    times = [time for time in (expires, until if once else None) if time]
    assert found == (min(times) if times else 0.0)
    assert GateRow(gate, NOON, claim=None if until is None else CallClaim("tab", until)).due == found
