"""Turn options: model, tools, rules, budget and timeouts, fixed when a turn starts."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.parts import Usage
from everturn.core.rules.policy import Rule

Approval = Literal["auto", "ask", "always", "deny"]
"""Who decides about a call: nobody, a person unless a rule or a grant allows it, a person every time; deny refuses it."""
ToolHistory = Literal["full", "results", "digest", "none"]
LatePolicy = Literal["inject", "keep", "discard"]
Review = Literal["never", "on_error", "always"]
"""When a person reviews a result before the model reads it."""


class Budget(Struct, frozen=True, gc=False, omit_defaults=True):
    """Limits of a turn; 0 is no limit. `seconds` count from the start, waiting included."""

    steps: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0  # in US dollars
    seconds: float = 0.0


class Spent(Struct, frozen=True, gc=False, omit_defaults=True):
    """Steps, calls and tokens that turns have used."""

    steps: int = 0
    calls: int = 0
    usage: Usage = Usage()

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.usage.input + self.usage.output

    def __add__(self, other: Spent) -> Spent:
        """Sum."""
        return Spent(self.steps + other.steps, self.calls + other.calls, self.usage + other.usage)


class TurnPermissions(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a turn may do: its rules in addition to the runtime's, and its tools."""

    rules: tuple[Rule, ...] = ()
    tools: tuple[str, ...] | None = None


class Lineage(Struct, frozen=True, gc=False, omit_defaults=True):
    """The ancestry of a sub-agent run, and the limits it inherits from its ancestors."""

    session: str  # of the top-level turn, like the next two
    turn: str
    depth: int = 1
    left: Budget = Budget()  # the rest of the top-level budget, for all its sub-agent runs
    until: float = 0.0  # when its time budget ends
    ancestors: tuple[TurnPermissions, ...] = ()  # of the parent turns: the run may do at most what each of them may
    recent_calls: tuple[str, ...] = ()  # fingerprints of recent calls of the parents, for loop detection
    untrusted: bool = False  # its input contains untrusted text
    private: bool = False  # its input contains private values
    by: tuple[str, str, str] = ("", "", "")  # the session, turn and call that started it
    is_detached: bool = False  # it continues after that turn has ended


class ClientTool(Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool that a client provides: the client runs the calls and answers with the results."""

    name: str
    description: str
    schema: dict[str, object]
    output_schema: dict[str, object] | None = None  # the JSON Schema of its result; None: a text
    read_only: bool = False
    idempotent: bool = False
    approval: Approval = "auto"
    timeout: float = 0.0  # seconds in which a client must answer; 0: the gate timeout of the turn
    lease: float = 60.0  # seconds for which a client claims a call before it renews the claim


class TurnOptions(Struct, frozen=True, gc=False, omit_defaults=True):
    """The options of a turn, fixed from its start to its end."""

    model: str = ""
    max_steps: int = 10
    tool_history: ToolHistory = "full"
    late: LatePolicy = "inject"
    system: str = ""
    params: dict[str, object] | None = None
    timeout: float = 0.0  # seconds from its start after which a turn is ended, waiting included; 0: never
    gate_timeout: float = 0.0  # seconds a person has to answer; 0: as long as the turn waits
    tools: tuple[str, ...] | None = None  # patterns of names, or `@group`; None: all enabled tools
    rules: tuple[Rule, ...] = ()  # of the agent and the session, in addition to the runtime's
    review: Review = "never"  # whether a person reviews results first; a tool may be stricter
    manual: tuple[str, ...] = ()  # patterns of tools whose calls a person runs by hand
    budget: Budget = Budget()
    lineage: Lineage | None = None  # for a sub-agent run
    clients: tuple[ClientTool, ...] = ()  # tools of the client that starts this turn
    agent: str = ""  # the name of the configured agent, if any
    by: str = ""  # the user who started it, if users are known

    def until(self, started: float) -> float:
        """When the time budget of a turn that started then is used up; 0: never."""
        ends = (
            started + self.budget.seconds if self.budget.seconds else 0.0,
            self.lineage.until if self.lineage else 0.0,
        )
        return min((end for end in ends if end), default=0.0)

    def due(self, started: float, is_out_of_time: bool) -> float:
        """The next deadline (timeout or time budget) of a turn that started then; 0: none.

        `is_out_of_time`: the log already records that its time budget is used up.
        """
        ends = (started + self.timeout if self.timeout else 0.0, 0.0 if is_out_of_time else self.until(started))
        return min((end for end in ends if end), default=0.0)
