"""Seeded bugs in durable tools: steps, timers, external results and scheduled messages; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STEPS = "tests/turn/test_tool_steps.py::"
CRASH = "tests/turn/test_tool_steps_crash.py::test_stopped_at_any_event_the_effect_before_the_wait_happens_once"

TASKS = "tests/mcp/test_tasks.py::"
KILLED = f"{TASKS}test_after_kill_9_the_result_is_fetched_by_the_recorded_id_and_the_tool_is_not_called_again"

DURABLE_MUTANTS = [
    Mutant(
        "the value of the wait that was started last is returned, whichever is awaited",
        "calls/tool_steps.py",
        "return _ExternalResult(token, lambda: self._external_value(wait, timeout, hook), deliver)",
        'return _ExternalResult(token, lambda: self._external_value(f"{self._id}.wait.{self._waits}", timeout, hook), deliver)',
        f"{STEPS}test_without_a_function_the_tool_gets_the_token_and_gives_it_away_itself",
    ),
    Mutant(
        "a step that was started and has no result is run again",
        "calls/tool_steps.py",
        "if self._is_started(name) and self._records_starts:",
        "if False:",
        f"{CRASH}[sleeper-{{'idempotent': True, 'resumable': True}}-before]",
    ),
    Mutant(
        "a step is not recorded before its function is called",
        "calls/tool_steps.py",
        "self._records_starts = spec.resumable or spec.at_most_once",
        "self._records_starts = False",
        f"{CRASH}[sleeper-{{'idempotent': True, 'resumable': True}}-before]",
    ),
    Mutant(
        "a recorded value is not returned to a resumed tool",
        "calls/tool_steps.py",
        "if (finished := steps.get(name)) is not None and not finished.failed:",
        "if (finished := steps.get(name)) is not None and finished.failed:",
        f"{CRASH}[sleeper-{{'resumable': True}}-after]",
    ),
    Mutant(
        "a tool that did not declare it may wait",
        "calls/tool_steps.py",
        "if not self._wait.can_resume:",
        "if False:",
        f"{STEPS}test_in_any_other_tool_they_are_refused_at_once_with_the_ways_to_fix_it[step]",
    ),
    Mutant(
        "a timer makes no session due",
        "core/waits.py",
        "waits.setdefault((started.turn, started.call), {})[started.wait] = started.until",
        "pass",
        f"{STEPS}test_a_step_before_a_sleep_is_run_once_and_its_value_is_known_after_it[{{'resumable': True}}]",
    ),
    Mutant(
        "a callback token is not checked",
        "calls/callbacks.py",
        "if hmac.compare_digest(token.encode(), _sign(key, tenant, session, turn, wait, hook).encode()):",
        "if True:",
        f"{STEPS}test_wrong_tokens_are_unknown",
    ),
    Mutant(
        "a scheduled message starts at once",
        "driver/commands.py",
        "if command.not_before > self._now():",
        "if False:",
        f"{STEPS}test_a_scheduled_message_starts_its_turn_at_its_time_also_after_a_restart",
    ),
    Mutant(
        "the request for an MCP task is not a recorded step",
        "mcp/task_tool.py",
        'value = await self._context.step(f"{STEP} {number}", self._request)',
        "value = await self._request()",
        f"{KILLED}[stdio-suspended]",
    ),
    Mutant(
        "a call that polls an MCP task has an unknown outcome after a crash",
        "calls/pipeline.py",
        "(is_at_most_once and not (tool.spec.effects_in_steps and call.tool_steps))",
        "is_at_most_once",
        f"{KILLED}[stdio-polling]",
    ),
    Mutant(
        "a flood of status notifications resumes a call without limit",
        "mcp/task_tool.py",
        "if seconds and self._wakes < MOST_WAKES:",
        "if seconds:",
        f"{TASKS}test_a_flood_of_false_notifications_resumes_a_call_a_limited_number_of_times",
    ),
    Mutant(
        "a connection that is closed answers the open question of a server with an error",
        "mcp/session.py",
        "context.cancel_requested.set()",
        "pass",
        f"{TASKS}test_a_question_of_a_task_is_answered_after_a_restart[stdio-orderly]",
    ),
    Mutant(
        "a call does not wait after a restart for an MCP server that is down",
        "mcp/servers.py",
        "await link.connection.wait_until_decided()",
        "await link.connection.first_attempt_done.wait()",
        f"{TASKS}test_after_a_restart_a_server_that_is_down_is_waited_for",
    ),
]
