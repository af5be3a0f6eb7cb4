import logging
from collections.abc import Callable

from everturn.core.hooks import CallContext, Cleanup, TurnContext


class Timing:
    """Logs how long each call took, and how long a process held the turn."""

    name = "timing"

    def __init__(self, clock: Callable[[], float], log: logging.Logger) -> None:
        self._clock, self._log = clock, log
        self._began: dict[str, float] = {}  # call -> when, if this process saw it

    def on_turn_start(self, ctx: TurnContext) -> Cleanup:
        began = self._clock()

        def let_go() -> None:
            """The turn is over or suspended; the next hold is timed anew."""
            self._log.info("held %s for %.1f s", ctx.turn, self._clock() - began)
            # What is left was refused before it ran, and has no end.
            mine = [call for call in self._began if call.startswith(f"{ctx.turn}-")]
            for call in mine:
                del self._began[call]

        return let_go

    def on_call_start(self, ctx: CallContext) -> None:
        self._began[ctx.call.id] = self._clock()

    def on_call_end(self, ctx: CallContext) -> None:
        began = self._began.pop(ctx.call.id, None)
        if began is not None:  # one that waited may have begun in another process
            took = self._clock() - began
            self._log.info("%s %s after %.1f s", ctx.tool.name, ctx.state, took)
