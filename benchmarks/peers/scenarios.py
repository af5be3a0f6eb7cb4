"""What is asked of every peer: a name → a model of the provider, tools, history, and what must have been seen in the end.

Only the standard library: this is read in every peer's environment.
"""

from typing import NamedTuple

CHARACTERS = 20  # in each chunk of text the provider sends


class Scenario(NamedTuple):
    """One turn. `text` and `pieces` count chunks: of all text, and of each call with the one that opens it."""

    model: str
    text: int
    calls: int = 0
    pieces: int = 0
    tool: str = ""
    history: int = 0

    @property
    def chunks(self) -> int:
        return self.text + self.calls * self.pieces

    @property
    def characters(self) -> int:
        return self.text * CHARACTERS


def one_call(history: int) -> Scenario:
    return Scenario("tool1", text=50, calls=1, pieces=11, tool="lookup", history=history)


def long_arguments(pieces: int) -> Scenario:
    return Scenario(f"longargs-n{pieces}", text=50, calls=1, pieces=pieces + 1, tool="write_file")


def paced(chunks: int, pause: int) -> Scenario:
    return Scenario(f"plain-n{chunks}-p{pause}", text=chunks)


SCENARIOS = {
    "A": Scenario("plain", text=500),
    "B": one_call(history=0),
    "C": Scenario("agent", text=100, calls=15, pieces=11, tool="lookup"),  # five steps of three parallel calls
    "D": one_call(history=200),
    "E": long_arguments(5_000),  # 200 KB
    # the same at other sizes: does one more cost the same?
    "A10": Scenario("plain-n10", text=10),
    "A5k": Scenario("plain-n5000", text=5_000),
    "D20": one_call(history=20),
    "D2000": one_call(history=2_000),
    "E1k": long_arguments(1_000),
    "E10k": long_arguments(10_000),
    # as in life: each chunk arrives alone, so each is a wake-up
    "P10": paced(10, pause=50),
    "P60": paced(60, pause=50),
    "O": paced(30, pause=1_000),
}


def history(messages: int) -> list[dict[str, str]]:
    """Alternating messages of about 300 characters each, the person's first."""
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"message {n}: " + "lorem ipsum dolor sit amet, " * 10}
        for n in range(messages)
    ]
