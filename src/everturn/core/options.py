"""Turn options: model, tools, rules, budget and timeouts, fixed when a turn starts."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from everturn.core.parts import Usage
from everturn.core.rate_limits import Priority
from everturn.core.rules.policy import Rule

Approval = Literal["auto", "ask", "always", "deny"]
"""Who decides about a call: nobody, a person unless a rule or a grant allows it, a person every time; deny refuses it."""
ToolHistory = Literal["full", "results", "digest", "none"]
LatePolicy = Literal["inject", "keep", "discard"]
StepLimitPolicy = Literal["answer", "ask"]
"""What happens at the step limit: the model is asked for a closing answer, or a person whether the turn may continue."""
Review = Literal["never", "on_error", "always"]
"""When a person reviews a result before the model reads it."""
PermissionMode = Literal["", "plan", "ask", "auto_edit"]
"""What a turn may do without asking: plan only reads, auto_edit also edits files; "" is ask, as rules say."""
PERMISSION_MODES: Final[tuple[PermissionMode, ...]] = ("plan", "ask", "auto_edit")
REVIEWS: Final[tuple[Review, ...]] = ("never", "on_error", "always")  # the strictest last


def smallest_limit(*limits: float) -> float:
    """The smallest of some limits, of which 0 is none."""
    return min((limit for limit in limits if limit), default=limits[0])


class Budget(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Limits of a turn; 0 is no limit. `seconds` count from the start, waiting included."""

    steps: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0  # in US dollars
    seconds: float = 0.0

    def narrowed(self, other: Budget) -> Budget:
        """A budget that is within both: of each two limits the smaller one."""
        if other == NO_BUDGET:
            return self
        limits: dict[str, Any] = {
            name: smallest_limit(getattr(self, name), getattr(other, name)) for name in Budget.__struct_fields__
        }
        return Budget(**limits)


NO_BUDGET: Final = Budget()


class Spent(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
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


class TurnPermissions(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """What a turn may do: its rules in addition to the runtime's, its tools, and its permission mode."""

    rules: tuple[Rule, ...] = ()
    tools: tuple[str, ...] | None = None
    mode: PermissionMode = ""


class Lineage(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
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


class ClientTool(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
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


WORKFLOW_MODEL: Final = "everturn-workflow"
"""The name of the built-in model of a workflow's turn; its sub-agent runs have the app's default model."""


class Prompt(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """The system prompt by layers, in the order in which they are sent. `header` never changes, for the provider's cache.

    The instructions of the turn's agent (`TurnOptions.system`) stand before `session`, the date before `privacy`.
    """

    header: str = ""
    model: str = ""  # of the model, for an agent that has no instructions
    agent: str = ""
    workspace: str = ""
    shared: str = ""  # of the tenant, written through the API
    custom: str = ""
    user: str = ""  # of the user who sends, for all their sessions
    session: str = ""  # of the session
    privacy: str = ""
    timezone: str = ""  # with one, the prompt names the day; "": no date is sent


NO_PROMPT: Final = Prompt()


class TurnOptions(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
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
    agent: str = ""  # the name of the agent that has the turn, if it has a name
    needs_agent: bool = False  # only a process that knows the agent can drive the turn: it brings code
    timezone: str = ""  # with one, the system prompt names the day
    metadata: dict[str, object] | None = None  # of the caller, for dependencies and tools
    by: str = ""  # the user who started it, if users are known
    folder: str = ""  # the folder that it works in, as its caller names it: grants may be for one folder
    trace: str = ""  # the caller's span, as a W3C `traceparent`; the turn's span becomes its child in any process
    priority: Priority = "interactive"  # whether a person waits for it; background turns wait longer for rate limits
    context: str = "auto"  # how a long conversation is fitted into the context window: auto, off, or last_turns(n)
    mode: PermissionMode = ""  # what it may do without asking
    at_step_limit: StepLimitPolicy = "answer"  # at `max_steps`: the model's closing answer, or ask a person to go on
    compact: str | None = None  # the turn only compacts its branch, with this focus; None: it answers
    prompt: Prompt | None = None  # the layers of the system prompt, resolved when the turn starts; None: there are none

    def until(self, started: float) -> float:
        """When the time budget of a turn that started then is used up; 0: never."""
        end = started + self.budget.seconds if self.budget.seconds else 0.0
        return smallest_limit(end, self.lineage.until if self.lineage else 0.0)

    def due(self, started: float, is_out_of_time: bool) -> float:
        """The next deadline (timeout or time budget) of a turn that started then; 0: none.

        `is_out_of_time`: the log already records that its time budget is used up.
        """
        end = started + self.timeout if self.timeout else 0.0
        return smallest_limit(end, 0.0 if is_out_of_time else self.until(started))
