"""Seeded bugs in guardrails; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TURN = "tests/turn/test_guardrails.py::"
HELD = "tests/protocols/test_held_back.py::test_not_one_byte_is_seen_before_it_has_passed"
LEFT_OUT = f"{TURN}test_a_refused_message_is_in_the_log_and_in_no_request_title_or_search"
STEERED = f"{TURN}test_a_refused_steering_message_joins_no_request_and_the_turn_goes_on[memory]"

GUARDRAIL_MUTANTS = [
    Mutant(
        "a refused message is in the requests of later turns",
        "core/history.py",
        "return [message for message in messages if not message.refused and message.id not in refused]",
        "return messages",
        f"{TURN}test_a_message_that_passed_before_may_be_refused_when_it_is_answered_anew",
    ),
    Mutant(
        "a refused steering message is in the next request",
        "turn/request.py",
        "        if message.refused:\n            continue\n",
        "",
        STEERED,
    ),
    Mutant(
        "a database finds a refused message",
        "stores/sql/append.py",
        "        yield from forget_messages(session, refused)",
        "        pass",
        f"{LEFT_OUT}[sqlite]",
    ),
    Mutant(
        "a refused message is the title of its session",
        "driver/commands.py",
        "if started.untitled and not is_checked else",
        "if started.untitled else",
        f"{LEFT_OUT}[memory]",
    ),
    Mutant(
        "a refused step lets its plugins go on",
        "core/decide.py",
        "    if state.refusal is not None:  # its text is the answer, and no plugin may ask for another\n"
        '        return Finalize("completed")\n',
        "",
        f"{TURN}test_no_plugin_asks_for_another_step_after_a_refusal",
    ),
    Mutant(
        "what is held back is published at once",
        "turn/output_check.py",
        "                case _ if self._is_holding:\n                    self._held.feed((chunk,))\n",
        "                case _ if self._is_holding:\n                    self._held.feed((chunk,))\n"
        "                    released.append(chunk)\n",
        f"{HELD}[ag-ui-step]",
    ),
    Mutant(
        "a sentence is published before it has passed",
        "turn/output_check.py",
        "                    self._pending += text\n",
        "                    self._pending += text\n                    released.append(chunk)\n",
        f"{HELD}[ag-ui-sentence]",
    ),
    Mutant(
        "what has not passed is committed when a stream breaks off",
        "turn/output_check.py",
        "return () if self._late else self._assembly.parts()",
        "return self._assembly.parts()",
        f"{TURN}test_what_has_not_passed_when_a_stream_breaks_off_is_not_committed[cancel-none]",
    ),
    Mutant(
        "a changed part keeps the signature of what it was",
        "turn/output_check.py",
        "opaque = None if is_changed else part.opaque",
        "opaque = part.opaque",
        f"{TURN}test_a_changed_part_loses_the_signature_of_its_provider[True-step]",
    ),
]
