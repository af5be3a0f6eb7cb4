"""Seeded bugs in the retries of model requests, as a turn writes them; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

EVENTS = "tests/turn/test_retry_events.py::"
WAITS = f"{EVENTS}test_the_watchdog_lets_a_stream_wait_as_long_as_it_said_and_then_for_a_first_chunk"
NAMED = f"{EVENTS}test_an_answer_names_the_model_that_wrote_it"

RETRY_MUTANTS = [
    Mutant(
        "a request is retried in silence",
        "models/retry.py",
        "yield (RetryChunk(tried + 1, attempts, pause, kind, reason),)",
        "pass",
        f"{EVENTS}test_every_retry_is_an_event_before_its_wait",
    ),
    Mutant(
        "a retry is told after its wait",
        "models/retry.py",
        "            yield (RetryChunk(tried + 1, attempts, pause, kind, reason),)\n            waited += pause\n            await asyncio.sleep(pause)\n",
        "            waited += pause\n            await asyncio.sleep(pause)\n            yield (RetryChunk(tried + 1, attempts, pause, kind, reason),)\n",
        f"{EVENTS}test_a_retry_is_written_while_the_model_still_waits",
    ),
    Mutant(
        "a stream that waits for a retry is taken for a silent one",
        "turn/stream.py",
        "self._last = self._now() + seconds",
        "self._last = self._now()",
        f"{WAITS}[1009.0-True]",
    ),
    Mutant(
        "the wait before a retry counts as time of the step",
        "turn/stream.py",
        "self._end += seconds",
        "pass",
        f"{WAITS}[1009.0-True]",
    ),
    Mutant(
        "the deltas after a retry stand where no reader looks for them",
        "turn/stream.py",
        "self.seq = await run.commit([retried])",
        "await run.commit([retried])",
        f"{EVENTS}test_text_after_a_retry_is_shown_as_it_arrives",
    ),
    Mutant(
        "readers miss that a request was retried",
        "core/deltas.py",
        "frozenset((StepStarted, StepRestarted, RequestRetried))",
        "frozenset((StepStarted, StepRestarted))",
        f"{EVENTS}test_text_after_a_retry_is_shown_as_it_arrives",
    ),
    Mutant(
        "a fallback writes under the first model's name",
        "turn/stream.py",
        "self.model = retried.model or self.model",
        "pass",
        NAMED,
    ),
    Mutant(
        "a retry counts as an answer that has begun",
        "models/retry.py",
        "not in (UsageChunk, RetryChunk, WaitChunk)",
        "is not UsageChunk",
        "tests/config/test_build.py::test_a_model_has_its_own_retries_and_fallbacks",
    ),
    Mutant(
        "a session that only retries its requests makes progress",
        "stores/memory.py",
        "not in (StepRestarted, RequestRetried, FileUploadChanged)",
        "is not StepRestarted",
        "tests/contracts/test_memory.py::TestMemoryStore::test_a_step_that_only_begins_again_is_no_move",
    ),
]
