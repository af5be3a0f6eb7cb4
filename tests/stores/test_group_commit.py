"""Operations that go in step: what is asked once, who is told what, and who drops out."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.errors import Stale
from everturn.stores.sql import blobs, retention, search
from everturn.stores.sql.database import Operation, Query, Row, Statement
from everturn.stores.sql.group_commit import OperationRun, StatementBatch, TornGroup, is_write, lockstep, single_row_sql
from everturn.stores.sql.statements import admission, append, claims, gates, log, sessions
from everturn.stores.sql.statements.admission import ADD_COMMAND


def statement(name: str, returns: bool = True) -> Statement:
    # The parameters are used in no other way than by unnest, as in every statement; `name` makes them different.
    text = f"SELECT p.n, '{name}', p.a, p.b FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS p(a, b, n)"
    return Statement(name, "", text if returns else f"INSERT INTO {name} {text}", returns)


READ, LOOK = statement("read"), statement("look")
ADD, MOVE = statement("add", returns=False), statement("move", returns=False)


def run(runs: Sequence[OperationRun]) -> list[StatementBatch]:
    """Be the database: every row of parameters comes back as it was, with its number."""
    steps, batches = lockstep(runs), list[StatementBatch]()
    try:
        batch = next(steps)
        while True:
            batches.append(batch)
            is_one = "VALUES" in batch.text
            rows = [tuple(batch.parameters)] if is_one else list(zip(*batch.parameters, strict=True))
            batch = steps.send(
                [(number, *row) for number, row in enumerate(rows, 1)] if "INSERT" not in batch.text else []
            )
    except StopIteration:
        return batches


def reading(name: str, *numbers: int) -> Operation[list[Row]]:
    rows = list[Row]()
    for number in numbers:
        rows += yield Query(READ, (name, number))
    return rows


def test_what_many_ask_at_once_is_asked_once_and_everybody_is_told_their_own():
    runs = [OperationRun(reading(name, 1, 2, 3)) for name in "abc"]

    batches = run(runs)

    assert [list(batch.parameters) for batch in batches] == [[("a", "b", "c"), (n, n, n)] for n in (1, 2, 3)]
    assert [run.result for run in runs] == [[(name, 1), (name, 2), (name, 3)] for name in "abc"]


def writing(name: str, *tables: Statement) -> Operation[str]:
    yield Query(READ, (name, 0))
    for table in tables:
        yield Query(table, [(name, 1), (name, 2)], many=True)
    return name


def test_one_that_skips_a_table_waits_for_the_others_so_that_each_statement_is_said_once():
    first, second, third = (statement(name, returns=False) for name in ("z", "y", "x"))
    run([OperationRun(writing("learnt", first, second, third))])

    runs = [
        OperationRun(writing("a", first, third)),
        OperationRun(writing("b", second, third)),
        OperationRun(writing("c", first, second, third)),
    ]
    batches = run(runs)

    assert [batch.text for batch in batches] == [READ.postgres, first.postgres, second.postgres, third.postgres]
    assert batches[-1].parameters[0] == ("a", "a", "b", "b", "c", "c")


def refused(error: Exception, writes: bool) -> Operation[None]:
    yield Query(READ, ("x", 0))
    if writes:
        yield Query(ADD, ("x", 1))
    raise error


def test_one_that_is_refused_before_it_wrote_drops_out_and_the_others_go_on():
    error = Stale("no")
    runs = [
        OperationRun(reading("a", 1, 2)),
        OperationRun(refused(error, writes=False)),
        OperationRun(reading("c", 1, 2)),
    ]

    run(runs)

    assert [run.error for run in runs] == [None, error, None]
    assert [run.result for run in runs] == [[("a", 1), ("a", 2)], None, [("c", 1), ("c", 2)]]


def test_one_that_fails_after_it_wrote_tears_its_group():
    error = Stale("no")

    with pytest.raises(TornGroup) as torn:
        run([OperationRun(reading("a", 1, 2)), OperationRun(refused(error, writes=True))])

    assert torn.value.__cause__ is error


def test_one_that_has_nothing_to_ask_or_fails_at_once_is_told_too():
    def nothing() -> Operation[int]:
        return 7
        yield

    def fails() -> Operation[int]:
        raise Stale("no")
        yield

    runs = [OperationRun(nothing()), OperationRun(fails())]
    assert run(runs) == []
    assert runs[0].result == 7
    assert isinstance(runs[1].error, Stale)


def test_nothing_is_said_for_no_rows_and_a_statement_without_parameters_is_said_for_each():
    bare = Statement("bare", "", "SELECT 1, 'x'", returns=True)

    def asking() -> Operation[list[Row]]:
        yield Query(ADD, [], many=True)
        return (yield Query(bare))

    runs = [OperationRun(asking()), OperationRun(asking())]
    steps = lockstep(runs)
    batch = next(steps)
    count = 0
    try:
        while True:
            assert batch == StatementBatch("SELECT 1, 'x'", ())
            count += 1
            batch = steps.send([(1, f"x{count}")])
    except StopIteration:
        pass
    assert [run.result for run in runs] == [[("x1",)], [("x2",)]]
    assert not any(run.has_written for run in runs)


@given(
    st.lists(st.lists(st.tuples(st.sampled_from([READ, LOOK, ADD, MOVE]), st.integers(1, 9)), max_size=6), max_size=8)
)
def test_in_whatever_order_operations_ask_each_sees_what_it_would_see_alone(plans: list[list[tuple[Statement, int]]]):
    def following(name: str, plan: list[tuple[Statement, int]]) -> Operation[list[Any]]:
        seen = list[Any]()
        for planned, number in plan:
            seen.append((yield Query(planned, (name, number))))
        return seen

    runs = [OperationRun(following(str(at), plan)) for at, plan in enumerate(plans)]
    run(runs)

    for at, (operation, plan) in enumerate(zip(runs, plans, strict=True)):
        assert operation.result == [[(str(at), number)] if planned.returns else [] for planned, number in plan]
        assert operation.has_written == any(not planned.returns for planned, _ in plan)


def test_a_lock_is_no_write():
    def says(text: str) -> bool:
        return is_write(Statement(text, "", text))

    assert says("WITH made AS (INSERT INTO sessions …) SELECT …")
    assert says("UPDATE sessions SET …")
    assert says("DELETE FROM blobs")
    assert not says("SELECT … FOR UPDATE OF s SKIP LOCKED")
    assert not says("SELECT … FOR NO KEY UPDATE")
    assert not says("SELECT updated, inserted FROM sessions")


def test_for_one_row_a_statement_is_said_with_values():
    assert single_row_sql(ADD_COMMAND) == (
        "INSERT INTO inbox (session, key, turn, kind, body)\n"
        "    SELECT * FROM (VALUES ($1::text, $2::text, $3::text, $4::text, $5::bytea)) AS p"
    )
    assert single_row_sql(Statement("any", "", "SELECT 1 FROM sessions WHERE id = ANY($1::text[])")) is None


def test_names_of_statements_are_their_own():
    every = [
        value
        for module in (admission, append, claims, gates, log, sessions, blobs, retention, search)
        for value in vars(module).values()
        if isinstance(value, Statement) and value.postgres
    ]
    assert len({declared.name for declared in every}) == len({declared.postgres for declared in every})
