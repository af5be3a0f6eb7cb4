"""Seeded bugs in what a turn leaves out because nobody asked for it; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LEFT_OUT = "tests/turn/test_unneeded_work.py::"

UNNEEDED_MUTANTS = [
    Mutant(
        "a context is made for every tool",
        "calls/execute.py",
        'if getattr(start.tool, "takes_context", True):',
        "if True:",
        f"{LEFT_OUT}test_no_context_is_made_for_a_tool_that_takes_none",
    ),
    Mutant(
        "a tool without a context runs for ever",
        "calls/execute.py",
        "timer = ctx.run.setup.clock.call_later(tool.spec.timeout, timeout.expire)",
        "timer = ctx.run.setup.clock.call_later(1e6, timeout.expire)",
        f"{LEFT_OUT}test_a_tool_without_a_context_is_stopped_at_its_timeout",
    ),
    Mutant(
        "a subclass that uses its context gets none",
        "tools/function.py",
        "self._context is not None or cast(Any, type(self)).run is not cast(Any, FunctionTool).run",
        "self._context is not None",
        f"{LEFT_OUT}test_a_subclass_that_runs_otherwise_gets_a_context",
    ),
    Mutant(
        "arguments are validated twice",
        "tools/function.py",
        "checked = self._validated.pop(id(arguments), (arguments, None))[1] or self._checked(arguments)",
        "checked = self._checked(arguments)",
        f"{LEFT_OUT}test_arguments_are_validated_once_for_the_rules_and_the_run",
    ),
    Mutant(
        "arguments with a duplicate key count as what was used",
        "core/canonical_json.py",
        'return first.count(":") == colons == second.count(":") and',
        "return",
        f"{LEFT_OUT}test_the_quick_comparison_of_arguments_decides_as_the_exact_one",
    ),
    Mutant(
        "an escaped colon makes up for a dropped key",
        "core/canonical_json.py",
        ' and "\\\\u003" not in first and "\\\\u003" not in second',
        "",
        f"{LEFT_OUT}test_the_quick_comparison_of_arguments_decides_as_the_exact_one",
    ),
    Mutant(
        "a signal before the driver subscribes is lost",
        "bus/memory.py",
        "        if self.signalled.is_set():\n            self.signalled.clear()\n            callback()\n",
        "",
        f"{LEFT_OUT}test_a_signal_before_the_driver_subscribes_is_not_lost",
    ),
    Mutant(
        "who waits for a result is shown deltas",
        "chat/turn.py",
        "TurnReader(self.id, after, is_log_only=True)",
        "TurnReader(self.id, after)",
        f"{LEFT_OUT}test_who_waits_for_the_result_reads_events_and_no_deltas",
    ),
    Mutant(
        "of chunks that arrived together only the first is read",
        "transport/live.py",
        "data += content.read_nowait()",
        "content.read_nowait()",
        "tests/transport/test_live.py::test_http_chunks_that_arrived_together_are_read_together_and_nothing_is_lost",
    ),
]
