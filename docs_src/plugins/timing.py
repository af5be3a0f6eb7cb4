import logging
from collections.abc import Callable

from everturn.plugins import CallContext, Cleanup, TurnContext


class Timing:
    """Logs the duration of each call, and how long this process drove the turn."""

    name = "timing"

    def __init__(self, clock: Callable[[], float], log: logging.Logger) -> None:
        self._clock, self._log = clock, log
        self._began: dict[str, float] = {}  # call -> start time in this process

    def on_turn_start(self, ctx: TurnContext) -> Cleanup:
        began = self._clock()

        def let_go() -> None:
            """The turn has ended or is suspended; the next drive starts at 0."""
            self._log.info("held %s for %.1f s", ctx.turn, self._clock() - began)
            # The remaining calls were refused before they ran.
            mine = [call for call in self._began if call.startswith(f"{ctx.turn}-")]
            for call in mine:
                del self._began[call]

        return let_go

    def on_call_start(self, ctx: CallContext) -> None:
        self._began[ctx.call.id] = self._clock()

    def on_call_end(self, ctx: CallContext) -> None:
        began = self._began.pop(ctx.call.id, None)
        if began is not None:  # a call that waited may have started in another process
            took = self._clock() - began
            self._log.info("%s %s after %.1f s", ctx.tool.name, ctx.state, took)
