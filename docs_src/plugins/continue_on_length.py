from everturn.core.hooks import StepContext


class ContinueOnLength:
    """Asks the model to go on when its answer was cut off at the length limit, a few times per turn."""

    name = "continue_on_length"

    def __init__(self, times: int = 3) -> None:
        self._times = times

    async def on_after_request(self, ctx: StepContext) -> None:
        # With calls the turn goes on anyway: they were not run, and the model is told why.
        if ctx.finish != "length" or ctx.calls:
            return
        # Counted in the turn's messages and not in a field: another process that takes the turn over counts the same.
        asked = sum(message.by == self.name for message in ctx.messages)
        if asked < self._times:
            await ctx.append_and_request("Your answer was cut off. Go on exactly where it stopped.", role="notice")
