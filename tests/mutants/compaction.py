"""Seeded bugs in compaction; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TURN, VIEW = "tests/turn/test_compaction.py::", "tests/core/test_compaction_view.py::"
SIZE, CRASH = "tests/core/test_context_size.py::", "tests/turn/test_compaction_crash.py::"

PREVIEW, FILES = "tests/turn/test_request_preview.py::", "tests/snapshots/test_snapshots.py::"
CUT, COST = "tests/turn/test_continuation.py::", "tests/turn/test_compaction_cost.py::"
LIMITS = "tests/turn/test_compaction_limits.py::"

COMPACTION_MUTANTS = [
    Mutant(
        "a request for a summary is taken for one of a step",
        "plugins/file_snapshots.py",
        "        if run.state.compaction is not None:",
        "        if False:",
        "tests/snapshots/test_snapshots.py::test_a_summary_of_the_conversation_is_no_step_of_a_turn",
    ),
    Mutant(
        "a preview can write",
        "turn/request_preview.py",
        "    run.is_closed = True\n",
        "",
        f"{PREVIEW}test_a_preview_writes_nothing_and_calls_no_plugin",
    ),
    Mutant(
        "a preview calls every plugin",
        "turn/request_preview.py",
        'if getattr(plugin, "has_pure_requests", False)]',
        "if plugin]",
        f"{PREVIEW}test_a_preview_writes_nothing_and_calls_no_plugin",
    ),
    Mutant(
        "the size of another model is not said to be an estimate",
        "turn/request_preview.py",
        "used, is_estimated = branch.used, size.model != run.model.name",
        "used, is_estimated = branch.used, False",
        f"{PREVIEW}test_another_model_has_its_own_window_and_an_estimate",
    ),
    Mutant(
        "the tool that a compaction brings is not counted",
        "turn/request_preview.py",
        "        if not size.model and compactions == 1:\n",
        "        if False:\n",
        f"{PREVIEW}test_the_report_is_right_after_a_compaction_and_after_its_undo",
    ),
    Mutant(
        "a report on a branch before any count leaves the instructions out",
        "turn/request_preview.py",
        "used, is_estimated = int(sum(estimates.values()) * branch.weight), True",
        "used, is_estimated = branch.used, True",
        f"{PREVIEW}test_a_session_without_messages_has_instructions_and_tools",
    ),
    Mutant(
        "parts do not add up",
        "core/context/context_report.py",
        'sizes["other"] = sizes.get("other", 0) + used - scaled',
        'sizes["other"] = 0',
        f"{PREVIEW}test_parts_add_up_and_keep_their_order_of_size",
    ),
    Mutant(
        "a cut answer is continued without end",
        "turn/continuation.py",
        "if state.continuations >= MAX_CONTINUATIONS:",
        "if False:",
        f"{CUT}test_after_two_continuations_the_turn_ends_with_a_warning",
    ),
    Mutant(
        "a limit that the caller set is not kept",
        "turn/continuation.py",
        "has_calls or _is_limit_set(body):",
        "has_calls:",
        f"{CUT}test_a_limit_that_the_caller_set_is_kept",
    ),
    Mutant(
        "a process that renders a continued text again renders it otherwise",
        "turn/request.py",
        "if parts and is_continued(message.parts[parts - 1]):",
        "if False:",
        f"{CUT}test_a_cut_answer_is_continued_and_is_one_text_everywhere",
    ),
    Mutant(
        "a blank line splits a text that was cut",
        "core/parts.py",
        "type(part) is StepPart and texts[-1] and not part.continues:",
        "type(part) is StepPart and texts[-1]:",
        f"{CUT}test_a_cut_answer_is_continued_and_is_one_text_everywhere",
    ),
    Mutant(
        "an example in a fence that was cut is run",
        "models/prompted/__init__.py",
        'before = "" if offer.is_constrained else continued_text(request) or ""',
        'before = ""',
        f"{CUT}test_an_example_in_a_code_fence_that_was_cut_is_no_call",
    ),
    Mutant(
        "a line that occurs twice is taken for a repetition",
        "core/continuation.py",
        " or text.find(text[-MIN_ECHO:]) < len(text) - MIN_ECHO",
        "",
        f"{CUT}test_what_may_be_meant_is_not_taken_for_a_repetition",
    ),
    Mutant(
        "a plugin is asked for steps for ever",
        "core/decide.py",
        "(step.request and not step.loops)",
        "step.request",
        f"{CUT}test_the_same_text_three_times_in_a_turn_is_a_loop",
    ),
    Mutant(
        "results are cleared a few at a time, and each time breaks the cache",
        "core/context/context_size.py",
        "return max(int(self.limit * 0.1), 1)",
        "return 1",
        f"{COST}test_compactions_break_the_cache_once_each_and_cost_less_than_none",
    ),
    Mutant(
        "a request that was refused is compacted again and again",
        "turn/compaction.py",
        "step is None or step.has_recovered or modality_of",
        "step is None or modality_of",
        f"{LIMITS}test_a_request_that_is_refused_again_after_its_compaction_fails_the_turn",
    ),
    Mutant(
        "a compaction that cannot help is paid for",
        "turn/compaction.py",
        "return is_enough and branch.used - cut.tokens * branch.weight < limits.window",
        "return True",
        f"{TURN}test_where_the_floor_is_above_the_limit_there_are_at_most_two_summary_requests",
    ),
    Mutant(
        "the marks of the replaced part are lost",
        "turn/compaction.py",
        "        untrusted=untrusted,\n        private=private,\n",
        "",
        f"{TURN}test_untrusted_and_private_marks_survive_a_summary",
    ),
    Mutant(
        "usage before a compaction counts after it",
        "core/context/context_size.py",
        "        if (compaction := compaction_of(message)) is not None:\n            return _after_compaction(path, index, compaction, new)\n",
        "",
        f"{SIZE}test_usage_before_a_compaction_is_not_used_after_it",
    ),
    Mutant(
        "the last step may be cut away",
        "core/context/compaction_plan.py",
        "while first and (first == len(segments) or size + segments[first - 1].tokens <= limits.tail):",
        "while first and size + segments[first - 1].tokens <= limits.tail:",
        f"{VIEW}test_a_cut_is_always_between_two_steps_and_the_last_one_stays",
    ),
    Mutant(
        "a summary can close its own notice",
        "core/context/compaction.py",
        '.decode().replace("</", "<\\\\/")',
        ".decode()",
        f"{VIEW}test_a_summary_cannot_close_its_own_notice",
    ),
    Mutant(
        "a compaction that was started is not repeated after a crash",
        "core/decide.py",
        "    if state.compaction is not None:\n        return Compact(state.compaction)\n",
        "",
        f"{CRASH}test_until_the_summary_is_written_the_old_view_holds",
    ),
    Mutant(
        "an imported summary replaces messages",
        "core/context/compaction.py",
        "        and not message.imported\n",
        "",
        f"{VIEW}test_a_summary_that_was_imported_is_no_compaction",
    ),
    Mutant(
        "questions that were answered push the person's rules out of a summary",
        "core/context/compaction_plan.py",
        "key=lambda item: (_is_question(item[1].text), -item[0])",
        "key=lambda item: -item[0]",
        f"{VIEW}test_a_question_that_was_answered_goes_before_a_statement_that_still_holds",
    ),
    Mutant(
        "the first message is forgotten",
        "core/context/compaction_plan.py",
        "if known and (first := _first_quote(known[0][1], size // 3)) is not None:",
        "if known and (first := _first_quote(known[0][1], 0)) is not None:",
        f"{VIEW}test_the_first_message_stays_whole_or_as_an_excerpt_however_often_it_is_compacted",
    ),
    Mutant(
        "attached context counts as trusted",
        "core/state.py",
        "            self.has_untrusted = _has_untrusted_text(event.input)\n",
        "",
        "tests/turn/test_attached_context.py::test_text_of_third_parties_in_it_counts_before_something_is_sent_outside",
    ),
    Mutant(
        "attached context is quoted as the person's words",
        "core/context/compaction_plan.py",
        'texts.append(f"[{part.kind} {part.title or part.source}]")',
        "texts.append(part.text)",
        "tests/turn/test_attached_context.py::test_a_compaction_quotes_the_person_and_names_the_context_only",
    ),
]
