"""What is decided for a turn when it begins: its model, its tools, its rules, and how much it may use."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.parts import Usage
from everturn.core.policy import Rule

HistoryPolicy = Literal["full", "results", "digest", "none"]
LatePolicy = Literal["inject", "hold", "discard"]
ResultPolicy = Literal["auto", "on_error", "ask"]


class Budget(Struct, frozen=True, gc=False, omit_defaults=True):
    """How much may be used; 0 is no limit. `seconds` count from the start, waiting included."""

    steps: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0  # in US dollars
    seconds: float = 0.0


class Spent(Struct, frozen=True, gc=False, omit_defaults=True):
    """What turns have used."""

    steps: int = 0
    calls: int = 0
    usage: Usage = Usage()

    def __add__(self, other: Spent) -> Spent:
        """Sum."""
        return Spent(self.steps + other.steps, self.calls + other.calls, self.usage + other.usage)


class Authority(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a turn may do: the rules beside the runtime's, and the tools it has."""

    rules: tuple[Rule, ...] = ()
    tools: tuple[str, ...] | None = None


class Lineage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a sub-turn comes from, and what it may do and use because of that."""

    session: str  # of the turn at the top, as are the next two
    turn: str
    depth: int = 1
    left: Budget = Budget()  # of the budget at the top, for all that comes of it
    until: float = 0.0  # when its time is over
    within: tuple[Authority, ...] = ()  # of the turns above: it may do at most what each of them may
    trail: tuple[str, ...] = ()  # marks of the calls above, for the loop guard
    untrusted: bool = False  # it was given what strangers wrote
    private: bool = False  # or what is private
    by: tuple[str, str, str] = ("", "", "")  # the session, turn and call that asked for it
    is_detached: bool = False  # it goes on when that turn has ended


class ClientTool(Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool that a face brings with it: its client does what is asked, and answers with what came of it."""

    name: str
    description: str
    schema: dict[str, object]
    result: dict[str, object] | None = None  # the JSON Schema of what it answers; None: a text
    effects: Literal["read", "write", "once"] = "once"
    execute: Literal["auto", "ask_once", "ask", "deny"] = "auto"
    timeout: float = 0.0  # seconds until somebody must have answered; 0: as long as any gate of the turn
    lease: float = 60.0  # seconds that a client may have it before it says so again


class TurnOptions(Struct, frozen=True, gc=False, omit_defaults=True):
    """What was decided for a turn when it began, and holds until it ends."""

    model: str = ""
    max_steps: int = 10
    history: HistoryPolicy = "full"
    late: LatePolicy = "inject"
    system: str = ""
    params: dict[str, object] | None = None
    timeout: float = 0.0  # seconds from its start after which a turn is ended, waiting included; 0: never
    gate_timeout: float = 0.0  # seconds a person has to answer; 0: as long as the turn waits
    tools: tuple[str, ...] | None = None  # patterns of names, or `@group`; None: whatever is on
    rules: tuple[Rule, ...] = ()  # of the agent and the session, beside those of the runtime
    result: ResultPolicy = "auto"  # who reads results first; a tool may be stricter
    by_hand: tuple[str, ...] = ()  # patterns of tools whose calls a person runs
    budget: Budget = Budget()
    above: Lineage | None = None  # for a sub-turn
    clients: tuple[ClientTool, ...] = ()  # tools of the face that asks for this turn
    agent: str = ""  # the name under which all this is configured, where it is
    by: str = ""  # the user who asked for it, where users are known

    def until(self, started: float) -> float:
        """When the budget of time of a turn that began then is used up; 0: never."""
        ends = (started + self.budget.seconds if self.budget.seconds else 0.0, self.above.until if self.above else 0.0)
        return min((end for end in ends if end), default=0.0)

    def due(self, started: float, is_out_of_time: bool) -> float:
        """When a turn that began then is to be looked at although nothing comes; 0: never.

        `is_out_of_time`: its budget of time is used up, and that was noticed.
        """
        ends = (started + self.timeout if self.timeout else 0.0, 0.0 if is_out_of_time else self.until(started))
        return min((end for end in ends if end), default=0.0)
