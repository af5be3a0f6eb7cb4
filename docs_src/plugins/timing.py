import logging
from collections.abc import Callable

from everturn.core.hooks import CallContext, Cleanup, TurnContext


class Timing:
    """Logs how long each call took, and how long a process held the turn."""

    name = "timing"

    def __init__(self, clock: Callable[[], float], log: logging.Logger) -> None:
        self._clock, self._log = clock, log
        self._began: dict[str, float] = {}  # call -> when; only what this process has seen

    def on_turn_start(self, ctx: TurnContext) -> Cleanup:
        began = self._clock()

        def let_go() -> None:
            """The turn is over, or parked: whoever takes it next is timed anew."""
            self._log.info("held %s for %.1f s", ctx.turn, self._clock() - began)
            for call in [call for call in self._began if call.startswith(f"{ctx.turn}-")]:
                del self._began[call]  # refused before they ran, so they never came to an end

        return let_go

    def on_call_start(self, ctx: CallContext) -> None:
        self._began[ctx.call.id] = self._clock()

    def on_call_end(self, ctx: CallContext) -> None:
        began = self._began.pop(ctx.call.id, None)
        if began is not None:  # a call that waited for a person may have begun in another process
            self._log.info("%s %s after %.1f s", ctx.tool.name, ctx.state, self._clock() - began)
