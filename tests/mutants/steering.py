"""Seeded bugs in messages that join a turn that is under way; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

JOINS = "tests/turn/test_steering.py::"
ENDS = "tests/turn/test_steering_ends.py::"
STATE = "tests/core/test_state.py::"
REFUSED = f"{STATE}test_nothing_a_person_says_joins_an_open_step_an_open_call_or_a_turn_at_its_limit"
LIMIT = f"{ENDS}test_a_turn_at_its_limit_takes_no_more_and_the_message_is_the_next_ones"
JOINED = f"{JOINS}test_what_is_said_while_a_model_answers_is_answered_in_the_same_turn"

STEERING_MUTANTS = [
    Mutant(
        "what a person says joins while a call is open",
        "core/state.py",
        "return not is_blank and all(call.is_finished for call in step.calls)",
        "return not is_blank",
        REFUSED,
    ),
    Mutant(
        "what a person says joins a step that streams",
        "core/state.py",
        "if step.is_open or step.broke_off or step.closing or step.number",
        "if step.broke_off or step.closing or step.number",
        REFUSED,
    ),
    Mutant(
        "an answer that was opened stays empty when somebody speaks",
        "core/state.py",
        "return not is_blank and",
        "return",
        f"{STATE}test_what_a_person_says_meanwhile_joins_between_two_steps_and_asks_for_another",
    ),
    Mutant(
        "a turn without a step left takes a message",
        "core/state.py",
        "step.closing or step.number >= self.max_steps:\n            return False",
        "step.closing:\n            return False",
        f"{LIMIT}[memory-max_steps]",
    ),
    Mutant(
        "a turn whose budget is used up takes a message",
        "turn/steering.py",
        "if await budget.find_reached_limit(run) is not None:",
        "if False:",
        f"{LIMIT}[memory-budget]",
    ),
    Mutant(
        "a message that joined is still in the inbox",
        "stores/memory_session.py",
        "        TurnStarted,\n        MessageAdded,\n        GateResolved,",
        "        TurnStarted,\n        GateResolved,",
        f"{JOINED}[memory]",
    ),
    Mutant(
        "a message that joined is still in the inbox of a database",
        "stores/sql/projections.py",
        "MessageAdded: _note_append,",
        "MessageAdded: _note_message,",
        f"{JOINED}[sqlite]",
    ),
    Mutant(
        "a message that was taken back joins",
        "driver/commands.py",
        "        self._steers.get(command.joins, {}).pop(command.key, None)\n        return True",
        "        return True",
        f"{ENDS}test_it_can_be_taken_back_until_it_has_joined[memory]",
    ),
    Mutant(
        "the last word joins first",
        "turn/steering.py",
        "for key in checked if key in run.steering_messages)",
        "for key in reversed(checked) if key in run.steering_messages)",
        f"{JOINS}test_several_join_together_in_the_order_in_which_they_were_sent[memory]",
    ),
    Mutant(
        "what was under way makes two of one message",
        "core/commands.py",
        'turn="", message="", joins="", options=options, base=base, compared=compared)',
        'turn="", message="", options=options, base=base, compared=compared)',
        f"{JOINS}test_sent_again_with_its_key_it_is_the_same_message_whatever_runs_by_then[memory]",
    ),
    Mutant(
        "a message that joined is not answered",
        "turn/steering.py",
        "message=message, request=refused is None, command",
        "message=message, request=False, command",
        f"{JOINED}[memory]",
    ),
    Mutant(
        "who waits for a message that did not join is told of another",
        "chat/turn.py",
        "if self._otherwise and self.message not in state.messages:",
        "if False:",
        f"{ENDS}test_a_cancel_ends_the_turn_and_not_what_was_to_join_it[memory-False]",
    ),
    Mutant(
        "nobody hears that a turn will never begin",
        "turn/steering.py",
        "run.setup.bus.close(send.turn)",
        "pass",
        f"{JOINS}test_who_waits_for_the_turn_that_it_would_have_begun_is_shown_the_one_that_it_joined[memory]",
    ),
    Mutant(
        "a sub-agent run is steered",
        "chat/steering.py",
        "    if options.lineage is not None:\n",
        "    if False:\n",
        f"{ENDS}test_a_sub_turn_is_not_steered_but_the_turn_above_it_is[memory]",
    ),
]
