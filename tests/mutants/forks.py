"""Seeded bugs in forks inside an answer; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FORKS = "tests/turn/test_forks.py::"

FORK_MUTANTS = [
    Mutant(
        "the copy of a fork and the start of its turn are two appends",
        "driver/commands.py",
        "await self._ledger.commit([MessagesImported(at=started.at, messages=(copy,)), started])",
        "await self._ledger.commit([MessagesImported(at=started.at, messages=(copy,))])\n"
        "            await self._ledger.commit([started])",
        f"{FORKS}test_the_copy_and_the_turn_are_one_append",
    ),
    Mutant(
        "the copy of a fork has the step after the one that was named, too",
        "core/forks.py",
        "if number == step), None)",
        "if number > step), None)",
        f"{FORKS}test_the_model_continues_after_a_step_with_the_request_that_it_had_there[memory-1]",
    ),
    Mutant(
        "a fork counts the tokens of the copied steps again",
        "core/forks.py",
        "replace(part, usage=Usage())",
        "part",
        f"{FORKS}test_the_model_continues_after_a_step_with_the_request_that_it_had_there[memory-1]",
    ),
    Mutant(
        "an answer is forked in a step whose calls have no results",
        "core/forks.py",
        " or any(call.output is None for call in calls)",
        "",
        f"{FORKS}test_a_turn_that_waits_can_be_forked_before_what_it_waits_for",
    ),
    Mutant(
        "the answer that a fork continues is shortened as earlier answers are",
        "core/context/compaction.py",
        "names.append(names[-1] if message.fork is not None and names else message.turn)",
        "names.append(message.turn)",
        f"{FORKS}test_of_the_last_turns_a_fork_keeps_what_it_continues[last_turns(1)]",
    ),
]
