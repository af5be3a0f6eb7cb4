from everturn.plugins import StepContext

GO_ON = "Your answer was cut off. Go on exactly where it stopped."


class ContinueOnLength:
    """Asks the model to continue an answer that was cut off, a few times per turn."""

    name = "continue_on_length"

    def __init__(self, times: int = 3) -> None:
        self._times = times

    async def on_after_request(self, ctx: StepContext) -> None:
        # With calls the turn continues: the model reads why they did not run.
        if ctx.finish != "length" or ctx.calls:
            return
        # Counted in the messages, so that every process gets the same number.
        continuations = sum(message.by == self.name for message in ctx.messages)
        if continuations < self._times:
            await ctx.append_and_request(GO_ON, role="notice")
