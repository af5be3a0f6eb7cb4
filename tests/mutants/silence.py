"""Seeded bugs in what a log may hold, and in what nobody was told; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STATE = "tests/core/test_state.py::"
BLOCKED = "tests/turn/test_blocked_input.py::"
LOOPS = "tests/trust/test_loops.py::"
OFFER = "tests/plugins/test_empty_offer.py::"
EMBEDDING = "tests/docs_src/test_embedding.py::"
PARAMS = "tests/models/test_requests.py::"
FOREIGN = "tests/turn/test_foreign_logs.py::"

SILENCE_MUTANTS = [
    Mutant(
        "a call waits for a gate that was never opened",
        "core/state.py",
        "if not (owns_gates and owns_calls and owns_run and owns_waits):",
        "if not (owns_calls and owns_run and owns_waits):",
        f"{STATE}test_a_call_cannot_wait_for_a_gate_a_call_or_a_sub_turn_that_is_not_there",
    ),
    Mutant(
        "a call waits for a call of another",
        "core/state.py",
        "name in self.calls and self.calls[name].parent == call.id",
        "name in self.calls",
        f"{STATE}test_a_call_cannot_wait_for_a_gate_or_a_call_of_another",
    ),
    Mutant(
        "a plugin asks while its step streams",
        "core/state.py",
        "elif self.step is None or self.step.is_open:",
        "elif self.step is None:",
        f"{STATE}test_a_plugin_cannot_ask_before_the_step_has_finished",
    ),
    Mutant(
        "a person is asked about a call that was not allowed",
        "core/calls.py",
        "if self.decision is not None and not self.decision.allowed:",
        "if self.decision is not None and self.decision.allowed is None:",
        f"{STATE}test_nobody_is_asked_about_a_call_that_was_not_allowed",
    ),
    Mutant(
        "a call that waits for an erased sub-agent run ends its turn",
        "running/subagent_index.py",
        "except UnknownSession:  # it was never started, or is erased",
        "except KeyError:  # it was never started, or is erased",
        f"{FOREIGN}test_a_call_that_waits_for_a_sub_turn_which_is_gone_goes_on",
    ),
    Mutant(
        "a blocked message goes to the model with the next turn",
        "running/active_turn.py",
        "if message.turn not in blocked] if blocked else path",
        "] if blocked else path",
        f"{BLOCKED}test_no_later_turn_shows_it_to_a_model",
    ),
    Mutant(
        "a message counts as blocked though a model has read it",
        "core/state.py",
        "self.phase is Phase.ERROR and is_unsent and problem",
        "self.phase is Phase.ERROR and problem",
        f"{STATE}test_a_turn_is_blocked_only_if_a_hook_ended_it_before_the_model_was_asked",
    ),
    Mutant(
        "a message counts as blocked whatever its turn failed of",
        "core/state.py",
        'problem is not None and problem.kind == "hook"',
        "problem is not None",
        f"{STATE}test_a_turn_is_blocked_only_if_a_hook_ended_it_before_the_model_was_asked",
    ),
    Mutant(
        "what a plugin raised is lost",
        "chat/turn.py",
        "turn_error.__cause__ = error if error is None or error.__cause__ is None else error.__cause__",
        "turn_error.__cause__ = None",
        f"{BLOCKED}test_the_error_keeps_what_the_plugin_raised",
    ),
    Mutant(
        "a model goes round after a person said no",
        "running/budget.py",
        'is_asked = call.gate is not None and call.gate.kind == "loop"',
        "is_asked = False",
        f"{LOOPS}test_a_denied_loop_ends_the_turn_however_the_model_insists",
    ),
    Mutant(
        "a model goes round after a rule said no",
        "running/budget.py",
        "return is_asked or (",
        "return is_asked and (",
        f"{LOOPS}test_a_denied_loop_ends_the_turn_however_the_model_insists",
    ),
    Mutant(
        "a parameter that is overwritten is dropped in silence",
        "models/formats/params.py",
        "    refuse_reserved(merged, reserved)\n",
        "",
        f"{PARAMS}test_a_parameter_that_a_request_would_overwrite_is_refused",
    ),
    Mutant(
        "a sub-agent without tools is offered an empty list",
        "plugins/tool_calling.py",
        "    if not names:\n        selection",
        "    if names is None:\n        selection",
        f"{OFFER}test_a_sub_agent_that_is_left_with_none_of_its_tools_fails_and_says_what_to_do",
    ),
    Mutant(
        "a turn whose groups are off is offered nothing in silence",
        "plugins/tool_calling.py",
        "if warning and warning not in self._warned:",
        "if warning is None:",
        f"{OFFER}test_a_turn_whose_groups_are_all_off_is_told_of_once",
    ),
    Mutant(
        "a script that awaits a gate is told nothing",
        "chat/turn.py",
        "                warning.process(shown)",
        "                pass",
        "tests/turn/test_unanswered.py::test_after_a_while_the_reason_and_the_ways_out_are_logged_once",
    ),
    Mutant(
        "a client is sent the system prompt",
        "access/context/role_redaction.py",
        "return replace(event, options=options)",
        "return event",
        f"{EMBEDDING}test_a_service_of_ones_own_keeps_what_it_promises",
    ),
]
