"""Seeded bugs in inbound hooks; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SIGNATURES = "tests/inbound_hooks/test_signatures.py::"
HOOKS = "tests/inbound_hooks/test_hooks.py::"

INBOUND_HOOK_MUTANTS = [
    Mutant(
        "any signature is accepted",
        "inbound_hooks/signatures.py",
        "if not any(fits):",
        "if not fits:",
        f"{HOOKS}test_forged_unsigned_expired_and_unknown_are_refused_alike_and_leave_nothing",
    ),
    Mutant(
        "a timestamp may be of any time",
        "inbound_hooks/signatures.py",
        "if abs(now - int(text)) > TOLERANCE:",
        "if False:",
        f"{HOOKS}test_a_replay_is_no_second_turn_and_later_it_is_refused",
    ),
    Mutant(
        "a timestamp of the future is accepted",
        "inbound_hooks/signatures.py",
        "if abs(now - int(text)) > TOLERANCE:",
        "if now - int(text) > TOLERANCE:",
        f"{HOOKS}test_forged_unsigned_expired_and_unknown_are_refused_alike_and_leave_nothing",
    ),
    Mutant(
        "the payload is trusted",
        "inbound_hooks/inbound_hooks.py",
        'source=f"hook:{name}", untrusted=True)',
        'source=f"hook:{name}", untrusted=False)',
        f"{HOOKS}test_a_delivery_starts_a_turn_and_its_payload_is_untrusted",
    ),
    Mutant(
        "a delivery that comes again is another turn",
        "inbound_hooks/inbound_hooks.py",
        "                key=key,\n",
        "                key=None,\n",
        f"{HOOKS}test_the_same_delivery_fifty_times_at_once_is_one_turn",
    ),
    Mutant(
        "a hook answers gates of another tenant",
        "inbound_hooks/inbound_hooks.py",
        "if (await store.info(button.session)).tenant != hook.tenant:",
        "if not (await store.info(button.session)).tenant:",
        f"{HOOKS}test_a_button_answers_a_gate_in_the_name_of_a_known_approver",
    ),
    Mutant(
        "a button answers whatever the gate shows now",
        "inbound_hooks/inbound_hooks.py",
        "if not hmac.compare_digest(gate.hash.encode(), button.hash.encode()):",
        "if not button.hash:",
        f"{HOOKS}test_a_button_answers_a_gate_in_the_name_of_a_known_approver",
    ),
    Mutant(
        "a hook finishes waits of another tenant",
        "calls/callbacks.py",
        "if tenant not in (None, owner):",
        "if False:",
        f"{HOOKS}test_the_same_hook_name_in_another_tenant_does_not_finish_it",
    ),
    Mutant(
        "the token of one hook works in the delivery of another",
        "calls/callbacks.py",
        'signed = ["hook", hook] if hook else ["callback"]',
        'signed = ["hook"] if hook else ["callback"]',
        f"{HOOKS}test_a_signed_delivery_finishes_an_external_wait_and_the_result_is_untrusted",
    ),
    Mutant(
        "a value that a hook delivered is trusted",
        "calls/execute.py",
        "if tool_turn is not None and tool_turn.steps.is_untrusted:",
        "if False:",
        f"{HOOKS}test_a_signed_delivery_finishes_an_external_wait_and_the_result_is_untrusted",
    ),
]
