"""Operations that are said at once: which of them can be, what is said then, and what becomes of the others."""

from typing import Any

import pytest

from everturn.stores.sql.database import Operation, Query, Row, Statement
from everturn.stores.sql.single_statement import PredictedOperation, merge_operations

FENCE = Statement(
    "fence",
    "",
    "UPDATE sessions s SET a = p.a FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS p(id, a, n) "
    "WHERE s.id = p.id RETURNING p.n",
    returns=True,
    is_predictable=True,
)
ADD = Statement("add", "", "INSERT INTO events (a, b) SELECT * FROM unnest($1::text[], $2::bigint[])")
CHANGE = Statement("change", "", "UPDATE events e SET b = p.b FROM unnest($1::text[]) AS p(b)")
READ = Statement("read", "", "SELECT p.n FROM unnest($1::text[]) WITH ORDINALITY AS p(a, n)", returns=True)


def appending(name: str, *more: Query) -> Operation[str]:
    if not (yield Query(FENCE, (name, 1))):
        return f"{name} was refused"
    yield Query(ADD, [(name, 2), (name, 3)], many=True)
    for query in more:
        assert (yield query) is not None
    return name


def predicted_append(name: str, *more: Query) -> PredictedOperation:
    return PredictedOperation(lambda _: appending(name, *more), False)


def answered(operation: Operation[Any], *answers: list[Row]) -> tuple[list[str], Any]:
    """Run an operation with these answers: what it asked, and its result."""
    names = list[str]()
    try:
        query = next(operation)
        for answer in answers:
            names.append(query.statement.name)
            query = operation.send(answer)
    except StopIteration as end:
        return names, end.value
    raise AssertionError(f"it asks more: {query}")


def test_what_a_group_says_is_one_statement_with_the_rows_of_all():
    batch = merge_operations([predicted_append("a"), predicted_append("b")])

    assert batch.parameters == [("a", "b"), (1, 1), ("a", "a", "b", "b"), (2, 3, 2, 3), 2]
    assert "q0 AS (UPDATE sessions" in batch.text
    assert "unnest($3::text[], $4::bigint[])" in batch.text
    assert batch.text.endswith("SELECT 1 / CASE WHEN (SELECT count(*) FROM q0) = $5::bigint THEN 1 ELSE 0 END")


def test_in_whatever_order_a_group_says_things_it_is_the_same_statement():
    other = Statement("aside", "", "INSERT INTO asides SELECT * FROM unnest($1::text[]) AS p(a)")

    def early(_: bool) -> Operation[None]:
        yield Query(FENCE, ("b", 1))
        yield Query(other, ("b",))
        yield Query(ADD, [("b", 2)], many=True)

    late, first = predicted_append("a", Query(other, ("a",))), PredictedOperation(early, False)
    assert merge_operations([late, first]).text == merge_operations([first, late]).text


def test_one_that_reads_or_says_two_things_to_a_table_is_not_said_at_once():
    assert predicted_append("a").is_whole
    assert predicted_append("a").result == "a"
    assert not predicted_append("a", Query(READ, ("a",))).is_whole
    assert not predicted_append("a", Query(CHANGE, ("a",))).is_whole


def test_in_step_it_asks_the_same_and_goes_on_with_the_answers():
    assert answered(predicted_append("a").operation(), [()], []) == (["fence", "add"], "a")
    assert answered(predicted_append("a", Query(READ, ("a",))).operation(), [()], [], [(1,)]) == (
        ["fence", "add", "read"],
        "a",
    )


def test_one_that_is_refused_is_made_anew_and_finds_out_why():
    assert answered(predicted_append("a").operation(), [], []) == (["fence", "fence"], "a was refused")


def test_one_that_fails_fails_when_it_is_run():
    def failing(_: bool) -> Operation[None]:
        yield Query(ADD, [("a", 1)], many=True)
        raise KeyError("a")

    predicted = PredictedOperation(failing, False)
    assert not predicted.is_whole
    with pytest.raises(KeyError):
        answered(predicted.operation(), [])
