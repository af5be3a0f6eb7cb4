"""Seeded bugs in what people allow, read and limit; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SPOOFING = "tests/trust/test_spoofing.py::"
RESULTS = "tests/trust/test_results.py::"
LOOPS = "tests/trust/test_loops.py::"
BUDGETS = "tests/trust/test_budgets.py::"
RULES = "tests/trust/test_rules.py::"
GRANTS = "tests/trust/test_grants.py::"
ALTERED = f"{SPOOFING}test_an_answer_with_anything_altered_is_refused_and_causes_nothing"

TRUST_MUTANTS = [
    Mutant(
        "an answer may grant more than the gate offers",
        "core/gate_rows.py",
        "(not v.allowed or v.grant not in gate.offers)",
        "not v.allowed",
        ALTERED,
    ),
    Mutant(
        "whatever is said to a gate is an answer",
        "core/gate_rows.py",
        "    check_answer_fits_gate(row.gate, resolution)\n",
        "",
        ALTERED,
    ),
    Mutant(
        "a gate has no end",
        "core/gate_rows.py",
        "if row.gate.expires and now >= row.gate.expires:",
        "if row.gate.expires and now < 0:",
        f"{SPOOFING}test_every_refusal_has_an_error_of_its_own",
    ),
    Mutant(
        "what is started need not be what was allowed",
        "core/calls.py",
        "(decision.tool, decision.hash) != (event.tool, event.hash)",
        "False",
        "tests/trust/test_fold.py::test_what_starts_is_what_was_allowed",
    ),
    Mutant(
        "a tool that changed after the person was asked is run",
        "calls/admit.py",
        "    _check_identity(call, spec, identity)\n",
        "",
        f"{SPOOFING}test_a_tool_that_changed_after_it_was_shown_is_not_run",
    ),
    Mutant(
        "a tool that changed after it was offered is run",
        "calls/admit.py",
        "if call.identity and call.identity != identity:",
        "if False:",
        "tests/trust/test_fold.py::test_a_tool_that_changed_after_it_was_offered_is_not_run",
    ),
    Mutant(
        "the hash says nothing of who asks",
        "calls/gates.py",
        "hash_values(ctx.run.ledger.tenant, ctx.session, ctx.turn, call.id, kind, tool, identity, arguments, output)",
        "hash_values(kind, tool, identity, arguments, output)",
        "tests/trust/test_fold.py::test_no_two_gates_have_the_same_hash",
    ),
    Mutant(
        "an edit is not judged",
        "calls/admit.py",
        '    if decision.action == "deny":\n',
        '    if decision.action == "deny" and resolution is None:\n',
        f"{SPOOFING}test_an_edit_is_judged_like_any_call",
    ),
    Mutant(
        "a grant is for a tool of that name, whatever it is by now",
        "running/permissions.py",
        "tool is not None and self.identity(tool.spec) == grant.identity",
        "True",
        "tests/trust/test_grants.py::test_a_grant_is_for_the_tool_it_was_given_for",
    ),
    Mutant(
        "the turns above a sub-agent run are not asked",
        "running/permissions.py",
        "        return strictest_decision(decision, *above)",
        "        return decision",
        "tests/trust/test_authority.py::test_whatever_ran_below_the_turns_above_would_have_been_allowed_by_their_own_rules",
    ),
    Mutant(
        "a result is sent while it is read",
        "running/permissions.py",
        'return policy == "always" or (policy == "on_error" and not worked)',
        'return policy == "on_error" and not worked',
        f"{RESULTS}test_no_byte_of_a_result_is_sent_before_a_person_has_read_it_and_then_what_is_left_of_it",
    ),
    Mutant(
        "on_error asks for every result",
        "running/permissions.py",
        '(policy == "on_error" and not worked)',
        'policy == "on_error"',
        f"{RESULTS}test_on_error_asks_for_errors_only",
    ),
    Mutant(
        "what nobody has read of a result can be read by the model",
        "calls/review.py",
        'replace(gate.output, blob="")',
        "gate.output",
        f"{RESULTS}test_what_a_person_was_not_shown_of_a_result_is_not_read_by_the_model_either",
    ),
    Mutant(
        "a withheld result is sent all the same",
        "calls/review.py",
        "    if not resolution.allowed:\n",
        "    if False:\n",
        f"{RESULTS}test_a_withheld_result_is_the_reason_and_nothing_else",
    ),
    Mutant(
        "a late result that nobody read is told to the model",
        "turn/finalize.py",
        "    if not outcome.needs_review:\n",
        "    if True:\n",
        f"{RESULTS}test_a_late_result_that_nobody_read_never_leaves",
    ),
    Mutant(
        "a loop is found one round too late",
        "core/loop_detection.py",
        "LOOP_REPETITIONS: Final = 3  ",
        "LOOP_REPETITIONS: Final = 4 ",
        f"{LOOPS}test_somebody_is_asked_at_the_call_that_completes_the_third_round",
    ),
    Mutant(
        "a call is known by how it was written",
        "calls/admit.py",
        "text if is_as_written else encode_canonical(validated)",
        "call.arguments",
        f"{LOOPS}test_what_is_repaired_to_the_same_call_is_the_same_call",
    ),
    Mutant(
        "what is repeatable leaves a mark",
        "calls/loop_guard.py",
        "if not _is_repeatable(call, named):",
        "if True:",
        f"{LOOPS}test_what_is_meant_to_be_repeated_is_never_flagged_and_leaves_no_mark",
    ),
    Mutant(
        "a sub-agent run knows nothing of the calls above",
        "calls/admit.py",
        "above.recent_calls if above is not None else ()",
        "()",
        f"{LOOPS}test_what_a_turn_began_its_sub_turn_completes",
    ),
    Mutant(
        "calls that are about to start are not counted",
        "running/budget.py",
        "spent.calls + more - 1",
        "spent.calls",
        f"{BUDGETS}test_as_many_calls_start_as_may_and_the_others_are_settled",
    ),
    Mutant(
        "what sub-agent runs use is nobody's",
        "core/state.py",
        "            self.child_spend = self.child_spend + event.spent\n",
        "            pass\n",
        "tests/trust/test_shared_budgets.py::test_one_sub_turn_after_the_other_may_use_all_that_is_left",
    ),
    Mutant(
        "a grant that is over settles what is asked beside",
        "driver/commands.py",
        "not 0 < grant.expires <= self._now()",
        "True",
        f"{GRANTS}test_a_grant_that_is_over_settles_nothing_that_is_asked_beside",
    ),
    Mutant(
        "a grant settles everything",
        "driver/wider_answers.py",
        '    return setup.permissions.decide_cases(tool.spec, cases, options, grants).action == "allow"',
        "    return True",
        f"{GRANTS}test_always_settles_what_it_covers_and_nothing_else",
    ),
    Mutant(
        "to deny one is to deny all",
        "driver/commands.py",
        "is_wider = resolution.others if grant is None else",
        "is_wider = True if grant is None else",
        f"{GRANTS}test_a_denial_is_one_of_its_own_call_and_of_the_others_when_it_says_so",
    ),
]
