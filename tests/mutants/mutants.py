"""Seeded bugs: each is one change to the source, and the name of a test that must notice it.

A checker is trusted only after it has caught something. `python tests/mutants/run.py` plants each bug in a process of
its own, runs the test that is named beside it there, and prints how many were caught.
"""

from __future__ import annotations

from tests.mutants.agents import AGENT_MUTANTS
from tests.mutants.bounds import BOUND_MUTANTS
from tests.mutants.cluster import CLUSTER_MUTANTS
from tests.mutants.compaction import COMPACTION_MUTANTS
from tests.mutants.denials import DENIAL_MUTANTS
from tests.mutants.durable import DURABLE_MUTANTS
from tests.mutants.explained import EXPLAINED_MUTANTS
from tests.mutants.faces import FACES_MUTANTS
from tests.mutants.forks import FORK_MUTANTS
from tests.mutants.guardrails import GUARDRAIL_MUTANTS
from tests.mutants.inbound_hooks import INBOUND_HOOK_MUTANTS
from tests.mutants.long_logs import LONG_LOG_MUTANTS
from tests.mutants.long_turns import LONG_TURN_MUTANTS
from tests.mutants.media import MEDIA_MUTANTS
from tests.mutants.memory import MEMORY_MUTANTS
from tests.mutants.models import MODEL_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.operations import OPERATION_MUTANTS
from tests.mutants.page import PAGE_MUTANTS
from tests.mutants.postgres import POSTGRES_MUTANTS
from tests.mutants.prompted import PARADIGM_MUTANTS
from tests.mutants.reach import REACH_MUTANTS
from tests.mutants.retries import RETRY_MUTANTS
from tests.mutants.sandboxed import SANDBOXED_MUTANTS
from tests.mutants.screens import SCREEN_MUTANTS
from tests.mutants.served import SERVED_MUTANTS
from tests.mutants.shared_store import SHARED_STORE_MUTANTS
from tests.mutants.shell_gate import SHELL_GATE_MUTANTS
from tests.mutants.silence import SILENCE_MUTANTS
from tests.mutants.size import SIZE_MUTANTS
from tests.mutants.steering import STEERING_MUTANTS
from tests.mutants.structured_output import STRUCTURED_OUTPUT_MUTANTS
from tests.mutants.tool_search import TOOL_SEARCH_MUTANTS
from tests.mutants.trust import TRUST_MUTANTS
from tests.mutants.unneeded import UNNEEDED_MUTANTS

CRASH = "tests/turn/test_crash.py::test_stopped_after_any_event_it_ends_as_if_it_had_not_been"
BEFORE = "tests/turn/test_crash.py::test_stopped_before_any_event_nothing_is_lost_or_done_twice"
TOLD = "tests/turn/test_crash.py::test_a_story_told_twice_leaves_the_same_log"
HOOKS = "tests/turn/test_hooks.py::"
STORE = "tests/contracts/test_memory.py::TestMemoryStore::"
ENGINE = "tests/contracts/test_memory.py::TestInlineEngine::"
CANCEL = "tests/turn/test_cancel.py::"
TOOLS = "tests/turn/test_tools.py::"
OLD_ANSWER = "tests/turn/test_tool_tasks.py::test_a_tool_that_is_denied_or_another_by_now_does_not_run_on_an_old_answer"

MUTANTS = [
    *MODEL_MUTANTS,
    *STRUCTURED_OUTPUT_MUTANTS,
    *PARADIGM_MUTANTS,
    *MEDIA_MUTANTS,
    *TRUST_MUTANTS,
    *REACH_MUTANTS,
    *SANDBOXED_MUTANTS,
    *SERVED_MUTANTS,
    *SHARED_STORE_MUTANTS,
    *SHELL_GATE_MUTANTS,
    *AGENT_MUTANTS,
    *FORK_MUTANTS,
    *COMPACTION_MUTANTS,
    *MEMORY_MUTANTS,
    *TOOL_SEARCH_MUTANTS,
    *LONG_LOG_MUTANTS,
    *OPERATION_MUTANTS,
    *LONG_TURN_MUTANTS,
    *DENIAL_MUTANTS,
    *RETRY_MUTANTS,
    *UNNEEDED_MUTANTS,
    *STEERING_MUTANTS,
    *GUARDRAIL_MUTANTS,
    *DURABLE_MUTANTS,
    *INBOUND_HOOK_MUTANTS,
    *SILENCE_MUTANTS,
    *PAGE_MUTANTS,
    *SCREEN_MUTANTS,
    *FACES_MUTANTS,
    *CLUSTER_MUTANTS,
    *POSTGRES_MUTANTS,
    *SIZE_MUTANTS,
    *BOUND_MUTANTS,
    *EXPLAINED_MUTANTS,
    Mutant(
        "calls are not settled on cancel",
        "turn/finalize.py",
        "for call in run.state.open_calls:\n        text",
        "for call in list[CallRecord]():\n        text",
        f"{TOLD}[cancel while a tool runs]",
    ),
    Mutant(
        "clean-ups run first in, first out",
        "running/active_turn.py",
        "self.cleanups.pop()",
        "self.cleanups.pop(0)",
        f"{HOOKS}test_every_hook_is_called_in_its_order",
    ),
    Mutant(
        "one failed clean-up keeps the others from running",
        "running/active_turn.py",
        'reports.append(report_failure(plugin, "clean-up", error, kind="clean-up"))',
        'return [*reports, report_failure(plugin, "clean-up", error, kind="clean-up")]',
        f"{HOOKS}test_failed_clean_ups_are_raised_with_the_turns_own_error",
    ),
    Mutant(
        "a tool starts before its start is written down",
        "calls/pipeline.py",
        "        if plan.events:\n            await ctx.run.commit(lambda plan=plan: _unless_limited(ctx, plan))\n            _wake_tools(ctx, plan.events)\n        for start in plan.starts:\n            ctx.spawn(start.call.id, run_call(ctx, start, limits, tools))\n",
        "        for start in plan.starts:\n            ctx.spawn(start.call.id, run_call(ctx, start, limits, tools))\n        if plan.events:\n            await ctx.run.commit(lambda plan=plan: _unless_limited(ctx, plan))\n            _wake_tools(ctx, plan.events)\n",
        f"{TOLD}[parallel calls]",
    ),
    Mutant(
        "the start of a call is not written down",
        "calls/admit.py",
        "return AdmissionResult(resolved.start(decision, gate), StartCall(call, tool, actual))",
        "return AdmissionResult([], StartCall(call, tool, actual))",
        f"{TOLD}[parallel calls]",
    ),
    Mutant(
        "a once tool is run again after a crash",
        "calls/pipeline.py",
        "is_at_most_once = tool is None or call.started.at_most_once or tool.spec.at_most_once",
        "is_at_most_once = tool is None",
        f"{BEFORE}[parallel calls]",
    ),
    Mutant(
        "deferred appends are not sorted",
        "core/decide.py",
        "ordered = sorted(step.deferred, key=lambda item: (-item[1].priority, rank.get(item[0], len(rank))))",
        "ordered = step.deferred",
        f"{HOOKS}test_deferred_appends_come_high_priority_first_then_in_registration_order",
    ),
    Mutant(
        "deferred appends are lost with the process",
        "turn/loop.py",
        "plugin=ctx.plugin, deferred=tuple(ctx.deferred)",
        "plugin=ctx.plugin",
        f"{HOOKS}test_deferred_appends_come_high_priority_first_then_in_registration_order",
    ),
    Mutant(
        "an append gets a fresh id every time",
        "running/hook_contexts.py",
        'name = f"{self.turn}.{self.plugin}.{self.step}.{self._appended}"',
        'name = self._run.setup.ids.new("msg")',
        f"{CRASH}[plugins append]",
    ),
    Mutant(
        "the placeholder is shown to the model",
        "core/history.py",
        "                if parts:\n",
        "                if parts or not message.parts:\n",
        f"{TOLD}[an answer without a word]",
    ),
    Mutant(
        "the history is read with the turn's own messages in it",
        "running/active_turn.py",
        "path = await read_branch(store, self.session, self.state.parent, find_needed)",
        "path = await read_branch(store, self.session, self.state.tip, find_needed)",
        f"{HOOKS}test_append_and_request_asks_again_with_the_message_in_place",
    ),
    Mutant(
        "a denied call runs all the same",
        "calls/admit.py",
        "if not resolution.allowed:",
        "if resolution.by == 'nobody':",
        f"{HOOKS}test_a_gate_hook_may_answer_and_cannot_widen",
    ),
    Mutant(
        "a plugin that waits counts as done",
        "turn/loop.py",
        "if task.result() is not SUSPEND]",
        "if task.result() is not None or True]",
        f"{HOOKS}test_only_plugins_that_are_not_done_are_called_again",
    ),
    Mutant(
        "a waiting plugin is not called again",
        "turn/loop.py",
        "arrivals.get(name, -1) < run.arrivals:",
        "name not in arrivals:",
        f"{HOOKS}test_a_pending_plugin_is_called_again_while_another_still_works",
    ),
    Mutant(
        "one that ends while another's end is written is overlooked",
        "turn/loop.py",
        "            await run.hook_notifier.wait_beyond(seen)\n",
        "            await run.hook_notifier.wait_beyond(run.hook_notifier.count)\n",
        f"{TOLD}[plugins append]",
    ),
    Mutant(
        "an error under a cancel is an error",
        "turn/loop.py",
        "if (cancel := run.cancel_request) is not None:  #",
        "if error is None and (cancel := run.cancel_request) is not None:  #",
        f"{HOOKS}test_an_error_raised_because_of_a_cancel_is_that_cancellation[on_before_request]",
    ),
    Mutant(
        "partial text is lost on cancel",
        "turn/loop.py",
        "if parts or problem is not None:",
        "if False:",
        f"{HOOKS}test_a_failure_on_a_chunk_ends_the_turn_and_keeps_what_was_said",
    ),
    Mutant(
        "a prevented message is sent in later turns",
        "core/history.py",
        "        if message.hidden or message.refused:\n",
        "        if message.refused:\n",
        f"{HOOKS}test_prevent_default_keeps_a_message_out_of_the_conversation",
    ),
    Mutant(
        "provider ids name the calls",
        "turn/stream.py",
        'OpenPart(CallChunk, f"{self._turn}-{self._step}-{len(self._slots)}")',
        "OpenPart(CallChunk, chunk.id)",
        f"{TOLD}[parallel calls]",
    ),
    Mutant(
        "the model is not asked again once its calls are settled",
        "core/decide.py",
        '        bool(step.calls)\n        or step.finish == "paused"\n',
        '        step.finish == "paused"\n',
        f"{HOOKS}test_every_hook_is_called_in_its_order",
    ),
    Mutant(
        "the turn ends though a plugin asked for more",
        "core/state.py",
        "            self.step.request |= event.request\n",
        "            self.step.request = False\n",
        f"{HOOKS}test_append_and_request_asks_again_with_the_message_in_place",
    ),
    Mutant(
        "on_turn_end is called after an error",
        "turn/finalize.py",
        'if ending.outcome == "error":',
        'if ending.outcome == "nothing":',
        f"{HOOKS}test_a_failure_there_ends_the_turn_and_clean_ups_still_run[on_params]",
    ),
    Mutant(
        "a hook may forge the identity of a message",
        "running/hook_contexts.py",
        "return replace(ctx.message, id=message.id, parent=message.parent, turn=message.turn)",
        "return ctx.message",
        f"{HOOKS}test_a_hook_may_change_an_answer_before_it_joins_but_not_who_it_is",
    ),
    Mutant(
        "request fields are not filtered",
        "core/requests.py",
        "for name in fields if name in attributes}",
        "for name in REQUEST_MESSAGE_FIELDS if name in attributes}",
        f"{HOOKS}test_request_messages_keep_only_the_fields_they_may",
    ),
    Mutant(
        "a driver that was overtaken goes on writing",
        "stores/memory.py",
        "if len(row.log) != after or epoch",
        "if len(row.log) < after or epoch",
        f"{STORE}test_of_two_drivers_that_append_at_once_one_is_refused",
    ),
    Mutant(
        "an append that fails leaves a trace",
        "stores/memory.py",
        "            row.rewind(after)\n",
        "",
        f"{STORE}test_an_append_that_fails_writes_nothing",
    ),
    Mutant(
        "a command that comes again is another one",
        "stores/memory.py",
        "if (earlier := session.admitted.get(command.key)) is not None:",
        "if (earlier := session.inbox.get(command.key)) is not None:",
        f"{STORE}test_a_command_that_was_acted_on_is_still_the_same_one_when_it_comes_again",
    ),
    Mutant(
        "a session of another tenant answers",
        "stores/memory.py",
        "elif session.tenant != command.tenant:",
        "elif not session.tenant:",
        f"{STORE}test_a_session_of_another_tenant_looks_like_none_at_all",
    ),
    Mutant(
        "an answer counts for other bytes than were shown",
        "core/gate_rows.py",
        "if row.gate.hash != hash:",
        "if not hash:",
        f"{STORE}test_an_answer_counts_for_the_bytes_that_were_shown",
    ),
    Mutant(
        "the last of two answers wins",
        "core/gate_rows.py",
        '        raise AnsweredOtherwise(f"gate {gate} has already been answered in another way")\n',
        "        return True\n",
        f"{STORE}test_the_first_answer_wins_and_the_same_again_changes_nothing",
    ),
    Mutant(
        "a wake during a drive is lost",
        "engine/inline.py",
        "            self._again.add(session)\n",
        "            pass\n",
        f"{ENGINE}test_a_wake_during_a_drive_drives_once_more_however_many_there_were",
    ),
    Mutant(
        "a cancel ends the tool as well",
        "turn/finalize.py",
        "if ending.hard:",
        "if ending:",
        f"{CANCEL}test_a_late_result_is_attached_and_told_once_without_rewriting_what_was_sent",
    ),
    Mutant(
        "a late result rewrites what was sent",
        "core/history.py",
        "text = note + part.output.text",
        "text = note + (part.late or part.output).text",
        f"{CANCEL}test_what_was_sent_before_a_late_result_came_is_sent_again_unchanged",
    ),
    Mutant(
        "a late result is told again and again",
        "turn/prepare.py",
        "if LATE_NOTICE_PREFIX + call not in reported",
        "if LATE_NOTICE_PREFIX not in reported",
        f"{CANCEL}test_a_late_result_is_attached_and_told_once_without_rewriting_what_was_sent",
    ),
    Mutant(
        "a cancel interrupts an append",
        "running/ledger.py",
        "async with self._lock:",
        "if True:",
        f"{CANCEL}test_a_cancel_never_interrupts_an_append",
    ),
    Mutant(
        "a call of an answer that was cut off runs",
        "calls/admit.py",
        "if ctx.finish in UNRUN_FINISH_REASONS:",
        "if ctx.finish == 'never':",
        f"{TOOLS}test_a_call_after_which_the_output_was_cut_never_runs",
    ),
    Mutant(
        "a call runs though its arguments cannot be written down",
        "calls/admit.py",
        "    text = encode_canonical(arguments)\n"
        '    actual = await resolve_references(ctx.run, spec, arguments) if "$" in text else arguments\n'
        "    validated = tool.validate(actual) or actual",
        "    text, actual = str(arguments), arguments\n    validated: JsonObject = {}",
        f"{TOOLS}test_arguments_that_cannot_be_written_down_are_not_run",
    ),
    Mutant(
        "the cap on parallel calls is ignored",
        "calls/pipeline.py",
        "elif len(busy) + len(plan.starts) < limits.parallel:",
        "elif len(busy) <= limits.parallel:",
        f"{TOOLS}test_calls_of_a_step_run_at_once_and_never_more_than_the_cap",
    ),
    Mutant(
        "a person's edit is ignored",
        "calls/admit.py",
        'parse_arguments(resolution.arguments or gate.arguments, "stop")',
        'parse_arguments(gate.arguments, "stop")',
        "tests/test_chat.py::test_a_person_may_edit_what_runs_and_the_model_is_told",
    ),
    Mutant(
        "the date in the prompt is today's, not the turn's",
        "turn/request.py",
        "system_prompt(state.options, state.started)",
        "system_prompt(state.options, run.now())",
        "tests/turn/test_request.py::test_a_request_built_again_on_another_day_is_the_same_to_the_byte",
    ),
    Mutant(
        "a restarted step is shown on top of the old one",
        "core/deltas.py",
        "frozenset((StepStarted, StepRestarted, RequestRetried))",
        "frozenset((StepStarted,))",
        "tests/core/test_deltas.py::test_every_reader_sees_every_character_exactly_once",
    ),
    Mutant(
        "the cursor stands still while the rest is shown",
        "core/deltas.py",
        "            self._step.note(delta)\n            yield delta",
        "            yield delta",
        "tests/core/test_deltas.py::test_a_reader_that_leaves_in_the_middle_of_the_rest_goes_on_there",
    ),
    Mutant(
        "text of a step whose beginning was not read yet is dropped",
        "running/follow.py",
        "                    if frame.seq <= max(reader.seq, unread):\n                        continue\n",
        "                    continue\n",
        "tests/turn/test_follow.py::test_text_that_comes_before_the_beginning_of_its_step_was_read_is_shown",
    ),
    Mutant(
        "the end of a turn is read before its beginning",
        "running/follow.py",
        """    if any(isinstance(command, Send) and turn in command.turns for command in await store.inbox(session)):
        return False
    return turn not in await store.open_turns(session)
""",
        """    if turn in await store.open_turns(session):
        return False
    return not any(isinstance(command, Send) and turn in command.turns for command in await store.inbox(session))
""",
        "tests/turn/test_follow.py::test_a_reader_of_a_store_far_away_sees_the_end_whenever_it_comes",
    ),
    Mutant(
        "two turns write on one branch",
        "driver/commands.py",
        "        if self._is_busy(parent, command.at_leaf):\n            return False\n",
        "",
        "tests/turn/test_driver.py::test_a_message_sent_while_a_turn_runs_waits_for_it_on_the_same_branch",
    ),
    Mutant(
        "a second branch pulls the selection to itself",
        "core/tree.py",
        "        if self.leaf == message.parent:\n",
        "        if message:\n",
        "tests/core/test_tree.py::test_a_branch_nobody_looks_at_grows_without_taking_the_selection",
    ),
    Mutant(
        "steps go on beyond the limit",
        "core/decide.py",
        "step.number >= state.max_steps",
        "step.number > state.max_steps",
        "tests/turn/test_request.py::test_the_closing_request_has_no_tools_and_says_so",
    ),
    Mutant(
        "a result is forgotten before it is in the log",
        "calls/pipeline.py",
        "        events: list[Event] = []\n        is_last",
        "        ctx.forget(done)\n        events: list[Event] = []\n        is_last",
        "tests/turn/test_tool_tasks.py::test_a_failed_append_loses_no_result_and_runs_no_tool_again",
    ),
    Mutant(
        "anything that is not None allows",
        "chat/replies.py",
        'is_allowed = isinstance(allow, Rule) or allow in ("once", "always")',
        "is_allowed = allow is not None",
        "tests/test_chat.py::test_whatever_is_not_exactly_once_allows_nothing",
    ),
    Mutant(
        "an old answer runs a tool that is denied by now",
        "calls/admit.py",
        'if decision.action == "deny":',
        'if decision.action == "deny" and resolution is None:',
        f"{OLD_ANSWER}[read_file-deny]",
    ),
    Mutant(
        "an old answer runs another tool that is written like the one that was asked about",
        "calls/admit.py",
        "if call.gate is not None and call.gate.identity != identity:",
        "if call.gate is None:",
        f"{OLD_ANSWER}[ReadFile-auto]",
    ),
    Mutant(
        "a message that waits is not looked at again",
        "driver/commands.py",
        "            if len(waiting) == len(self.pending) and not self.inbox_changed:\n",
        "            if True:\n",
        "tests/turn/test_tool_tasks.py"
        "::test_a_message_that_waits_is_sent_when_the_selection_moves_away_from_the_busy_branch",
    ),
    Mutant(
        "a campaign does not notice that an acknowledged input is lost",
        "/tools/chaos/checks.py",
        "elif not starts and not (line.key in dropped and line.turn in cancelled):",
        "elif not starts and not line.key:",
        "tests/testing/test_chaos_checks.py::test_a_bug_is_caught_by_the_checker_made_for_it",
    ),
]
