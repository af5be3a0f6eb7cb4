"""Seeded bugs: each is one change to the source, and the name of a test that must notice it.

A checker is trusted only after it has caught something. `python tests/mutants/run.py` plants every bug in a copy of the
source, runs the test that is named beside it, and prints how many were caught.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A bug: in `file`, `old` (which stands there exactly once) becomes `new`; `test` fails then."""

    name: str
    file: str
    old: str
    new: str
    test: str


CRASH = "tests/turn/test_crash.py::test_stopped_after_any_event_it_ends_as_if_it_had_not_been"
BEFORE = "tests/turn/test_crash.py::test_stopped_before_any_event_nothing_is_lost_or_done_twice"
TOLD = "tests/turn/test_crash.py::test_a_story_told_twice_leaves_the_same_log"
HOOKS = "tests/turn/test_hooks.py::"

MUTANTS = [
    Mutant(
        "calls are not settled on cancel",
        "turn/finalize.py",
        "for call in run.state.open_calls:\n        text",
        "for call in list[Call]():\n        text",
        f"{TOLD}[cancel while a tool runs]",
    ),
    Mutant(
        "clean-ups run first in, first out",
        "turn/run.py",
        "self.cleanups.pop()",
        "self.cleanups.pop(0)",
        f"{HOOKS}test_every_hook_is_called_in_its_order",
    ),
    Mutant(
        "one failed clean-up keeps the others from running",
        "turn/run.py",
        'reports.append(report(plugin, "clean-up", error))',
        'return [*reports, report(plugin, "clean-up", error)]',
        f"{HOOKS}test_failed_clean_ups_are_raised_with_the_turns_own_error",
    ),
    Mutant(
        "a tool starts before its start is written down",
        "turn/tools.py",
        """        if events:
            await ctx.record(*events)
        for start in starts:
            ctx.spawn(start.call.id, _run(ctx, start, limits))
""",
        """        for start in starts:
            ctx.spawn(start.call.id, _run(ctx, start, limits))
        if events:
            await ctx.record(*events)
""",
        f"{TOLD}[parallel calls]",
    ),
    Mutant(
        "the start of a call is not written down",
        "turn/tools.py",
        "    events.append(_started(ctx, call, tool, arguments))\n",
        "",
        f"{TOLD}[parallel calls]",
    ),
    Mutant(
        "a once tool is run again after a crash",
        "turn/tools.py",
        'if started.effects == "once" or tool is None:',
        "if tool is None:",
        f"{BEFORE}[parallel calls]",
    ),
    Mutant(
        "deferred appends are not sorted",
        "core/state.py",
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
        "turn/contexts.py",
        'name = f"{self.turn}.{self.plugin}.{self.step}.{self._appended}"',
        'name = self._run.setup.ids.new("msg")',
        f"{CRASH}[plugins append]",
    ),
    Mutant(
        "the placeholder is shown to the model",
        "core/history.py",
        "                if said:\n",
        "                if said or not message.parts:\n",
        f"{TOLD}[plain]",
    ),
    Mutant(
        "the history is read with the turn's own messages in it",
        "turn/prepare.py",
        "run.setup.store.path(run.session, run.state.parent)",
        "run.setup.store.path(run.session, run.state.tip)",
        f"{HOOKS}test_append_and_request_asks_again_with_the_message_in_place",
    ),
    Mutant(
        "a denied call runs all the same",
        "turn/tools.py",
        "if not verdict.allowed:",
        "if verdict.by == 'nobody':",
        f"{TOLD}[denied]",
    ),
    Mutant(
        "a plugin that waits counts as done",
        "turn/loop.py",
        "if task.result() is not PENDING]",
        "if task.result() is not None or True]",
        f"{HOOKS}test_only_plugins_that_are_not_done_are_called_again",
    ),
    Mutant(
        "a waiting plugin is not called again",
        "turn/loop.py",
        "heard.get(name, -1) < run.arrived:",
        "name not in heard:",
        f"{HOOKS}test_a_pending_plugin_is_called_again_while_another_still_works",
    ),
    Mutant(
        "one that ends while another's end is written is overlooked",
        "turn/loop.py",
        "            await run.news.after(strokes)\n            strokes = run.news.strokes",
        "            await run.news.after(run.news.strokes)\n            strokes = run.news.strokes",
        f"{TOLD}[plugins append]",
    ),
    Mutant(
        "an error under a cancel is an error",
        "turn/loop.py",
        "if (asked := run.cancel_request) is not None:  #",
        "if error is None and (asked := run.cancel_request) is not None:  #",
        f"{HOOKS}test_an_error_raised_because_of_a_cancel_is_that_cancellation[on_before_request]",
    ),
    Mutant(
        "partial text is lost on cancel",
        "turn/loop.py",
        "return [broken, ending]",
        "return [ending]",
        f"{HOOKS}test_a_failure_on_a_chunk_ends_the_turn_and_keeps_what_was_said",
    ),
    Mutant(
        "a prevented message is sent in later turns",
        "core/history.py",
        "        if not message.hidden:\n",
        "        if message:\n",
        f"{HOOKS}test_prevent_default_keeps_a_message_out_of_the_conversation",
    ),
    Mutant(
        "provider ids name the calls",
        "turn/stream.py",
        'call = f"{self._turn}-{self._step}-{len(self._slots)}"',
        "call = chunk.id",
        f"{TOLD}[parallel calls]",
    ),
    Mutant(
        "the model is not asked again once its calls are settled",
        "core/state.py",
        "    wants_more = bool(step.calls) or step.request\n",
        "    wants_more = step.request\n",
        f"{HOOKS}test_every_hook_is_called_in_its_order",
    ),
    Mutant(
        "the turn ends though a plugin asked for more",
        "core/state.py",
        "                    self.step.request |= request\n",
        "                    self.step.request = False\n",
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
        "turn/contexts.py",
        "return replace(ctx.message, id=message.id, parent=message.parent, turn=message.turn)",
        "return ctx.message",
        f"{HOOKS}test_a_hook_may_change_an_answer_before_it_joins_but_not_who_it_is",
    ),
    Mutant(
        "request fields are not filtered",
        "core/requests.py",
        "for name in fields if name in given}",
        "for name in REQUEST_MESSAGE_FIELDS if name in given}",
        f"{HOOKS}test_request_messages_keep_only_the_fields_they_may",
    ),
]
