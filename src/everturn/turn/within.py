"""What a running tool may ask of the turn it runs in: people, clients, other tools, other turns, files. Each thing it asks
for has a place in the log, so that a tool that is begun again finds what it was told.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from everturn.core.asking import WITHIN, Gate, Verdict
from everturn.core.calls import Call
from everturn.core.canonical import JsonObject, canonical, clean, digest, parse_object
from everturn.core.events import CallMade
from everturn.core.gates import LONGEST_LEASE
from everturn.core.parts import Output
from everturn.core.ports import Question, Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.state import TurnState
from everturn.errors import ToolChanged, ToolError
from everturn.turn.aside import Waiting
from everturn.turn.below import Below
from everturn.turn.contexts import OneStep, open_gate
from everturn.turn.filing import SessionBlobs, SessionFiles
from everturn.turn.finding import find
from everturn.turn.results import read_range

MOST_QUESTIONS = 32  # of one call
MOST_CALLS = 1_000
MOST_TEXT = 1_000_000  # characters of a result that a tool is given
DEEPEST = 8  # calls within calls
MOST_QUESTION = 100_000  # characters of a question, and of its schema
MOST_KEPT = 1_000_000
MOST_PATIENCE = 10 * 365 * 86_400.0  # seconds
OTHERWISE = (
    "{name} was begun again and does not {what} as it did before; what it did the first time is not repeated. "
    "Nothing more was done."
)


class Within:
    """The turn, as the tool of one call sees it; whoever drives that turn now."""

    def __init__(
        self, ctx: OneStep, call: Call, tool: Tool, tools: Mapping[str, Tool], arguments: JsonObject | None = None
    ) -> None:
        self._first, self._id, self._tools, self._given = ctx.run, call.id, tools, arguments
        self._step, self._spec, self._began = ctx.step, tool.spec, call.started.at if call.started is not None else 0.0
        kept = call.paused.kept if call.paused is not None else ""
        self.waiting = Waiting(ctx.run, tool.spec.resumes or tool.spec.effects != "once", kept)
        self.below = Below(call, self.waiting)
        self._blobs = SessionBlobs(ctx.run.setup.store)
        self._basis = basis_of(call, tool.spec)
        self._asked = self._made = 0

    @property
    def _call(self) -> Call:
        return self.waiting.run.state.calls[self._id]

    def context(self) -> ToolContext:
        """What the tool is given."""
        run, call = self._first, self._id
        return ToolContext(
            run.session,
            run.turn,
            call,
            call,
            lambda text: run.progress(call, text),
            self.below.sub_turn,
            lambda name, at, length: read_range(run, name, at, length),
            self.ask,
            self.run_tool,
            self._offered,
            self._may,
            self.waiting.kept,
            self._keep,
            self._basis,
            self._began,
            SessionFiles(self._step, call, self._blobs, self.waiting),
            self._blobs,
            run.ledger.tenant,
            run.state.options.by,
        )

    def _keep(self, state: str) -> None:
        if not isinstance(state, str) or len(state) > MOST_KEPT:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(f"what a tool keeps is a text of at most {MOST_KEPT:,} characters; put more into a blob")
        self.waiting.kept = clean(state)

    def _offered(self) -> Mapping[str, ToolSpec]:
        run = self._first
        specs = run.setup.permits.offered(self._tools, run.state.options)
        return {spec.name: spec for spec in specs if spec.name != self._spec.name}

    def _may(self, name: str, arguments: JsonObject) -> bool:
        """Whether no rule denies a call: for a tool that goes through many things, some of which it must leave out.

        "" is this very tool, whatever it is called. A tool that is not here is judged by its name and by what these
        arguments are to this one.
        """
        permits, options = self._first.setup.permits, self._first.state.options
        if not (permits.policy.rules or options.rules or options.above is not None):
            return True
        there = self._tools.get(name)
        spec = there.spec if there is not None else replace(self._spec, name=name or self._spec.name, execute="auto")
        try:
            return permits.judge(spec, permits.cases(spec, arguments, options), options).action != "deny"
        except ToolError:
            return False

    # People and clients ------------------------------------------------------------------------------------------------

    async def ask(self, question: Question) -> Verdict:
        """Put a question, once, and wait for the answer."""
        check_question(question)
        self._asked += 1
        if self._asked > MOST_QUESTIONS:
            raise ToolError(f"a call may ask {MOST_QUESTIONS} questions; this would be one more")
        waiting, run = self.waiting, self.waiting.run
        gate = self._gate(question, f"{self._id}.ask.{clean(question.name) or self._asked}")
        name = gate.id
        if name not in run.state.gates:
            opened = await open_gate(run, gate)
            if waiting.can_resume and len(opened) == 1:  # no plugin has answered it
                opened.append(waiting.paused(self._id, name))
            await waiting.write(lambda: [] if name in waiting.run.state.gates else opened)
        if waiting.run.state.asked[name].hash != gate.hash:
            raise ToolChanged(OTHERWISE.format(name=self._spec.name, what="ask"))
        await waiting.until("gates", name, lambda state: state.gates.get(name) is not None, lambda _: True)
        verdict = waiting.run.state.gates[name]
        assert verdict is not None
        return verdict

    def _gate(self, question: Question, name: str) -> Gate:
        run, call, spec = self._first, self._call, self._spec
        started = call.started
        assert started is not None
        identity = run.setup.permits.identity(spec)
        # A client is given what references lead to, and no private values: its tool is not given those either.
        given = started.arguments if self._given is None else canonical(self._given)
        text, form = clean(question.text), as_text(question.schema) if question.schema else ""
        shown = given if question.kind == "client" else text
        patience = question.timeout or run.state.options.gate_timeout
        return Gate(
            id=name,
            turn=run.turn,
            call=call.id,
            tool=spec.name,
            arguments=shown,
            hash=digest(run.ledger.tenant, run.session, run.turn, call.id, question.kind, identity, shown, text, form),
            expires=run.now() + patience if patience else 0.0,
            kind=question.kind,
            session=run.session,
            identity=identity,
            why=text,
            form=form,
            once=question.kind == "client" and question.once,
            lease=question.lease if question.kind == "client" else 0.0,
        )

    # Other tools ----------------------------------------------------------------------------------------------------

    async def run_tool(self, name: str, arguments: JsonObject) -> Output:
        """Make a call: it is judged, asked about, run and written down like one that a model makes."""
        self._made += 1
        if self._made > MOST_CALLS:
            raise ToolError(f"a call may make {MOST_CALLS} calls of its own; this would be one more")
        waiting, text = self.waiting, canonical(arguments)
        made, wanted = f"{self._id}.{self._made}", find(name, self._tools).spec
        known = waiting.run.state.calls.get(made)
        if known is None:
            self._check_depth()
            run = waiting.run
            event = CallMade(
                turn=run.turn,
                at=run.now(),
                call=made,
                parent=self._id,
                name=wanted.name,
                arguments=text,
                identity=run.setup.permits.identity(wanted),
            )
            await waiting.write(lambda: [] if made in waiting.run.state.calls else [event])
        elif (known.name, known.arguments) != (wanted.name, text):
            raise ToolChanged(OTHERWISE.format(name=self._spec.name, what="call the same tools"))

        def has_come(state: TurnState) -> bool:
            return made in state.calls and state.calls[made].is_settled

        def waits(state: TurnState) -> bool:
            return made in state.calls and state.calls[made].state in ("asking", "reviewing", "waiting")

        await waiting.until("calls", made, has_come, waits)
        return await self._result(waiting.run.state.calls[made])

    def _check_depth(self) -> None:
        calls, at, depth = self.waiting.run.state.calls, self._id, 1
        while (above := calls[at].parent) and depth <= DEEPEST:
            at, depth = above, depth + 1
        if depth > DEEPEST:
            raise ToolError(f"calls within calls go {DEEPEST} deep; this would be one more")

    async def _result(self, call: Call) -> Output:
        output = call.output
        assert output is not None
        if call.state != "completed":
            raise ToolError(output.text)
        if output.blob:  # what a model is shown of it is an excerpt
            whole = (await self._first.setup.store.blob(output.blob)).decode()[:MOST_TEXT]
            return replace(output, text=whole, blob="")
        return output


def check_question(question: Question) -> None:
    """Refuse what nobody could answer, or what could never be read again.

    Raises:
        ToolError: and it says what a question is.
    """
    if not isinstance(question, Question):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ToolError(f"a tool asks a Question(text, …), not a {type(question).__name__}")
    if question.kind not in WITHIN:
        raise ToolError(f"kind={question.kind!r}: a tool asks a form, or a client")
    if not isinstance(question.text, str) or len(question.text) > MOST_QUESTION:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ToolError(f"a question is a text of at most {MOST_QUESTION:,} characters")
    if not isinstance(question.schema, dict) or len(as_text(question.schema)) > MOST_QUESTION:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ToolError(f"the schema of a question is an object of at most {MOST_QUESTION:,} characters")
    for name, most in (("timeout", MOST_PATIENCE), ("lease", LONGEST_LEASE)):
        value = getattr(question, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise ToolError(f"{name}={value!r}: seconds, at most {most:g}")


def as_text(schema: JsonObject) -> str:
    """A schema as it is shown: in its own order, which is that of the fields of a form."""
    try:
        return msgspec.json.encode(schema).decode()
    except Exception as error:
        raise ToolError(f"the schema of a question has to be plain JSON: {error}") from None


def basis_of(call: Call, spec: ToolSpec) -> str:
    """On what the preview stands that a person was shown; nothing where they were shown none."""
    gate, verdict = call.gate, call.verdict
    return gate.basis if gate is not None and verdict is not None and verdict.allowed else ""


def is_moved(call: Call, spec: ToolSpec) -> bool:
    """Whether a person was shown what a call would do, and then said that it is to be done to something else.

    Not where they wrote another command: it is theirs, and the files they were shown must still be the same.
    """
    gate, verdict = call.gate, call.verdict
    if gate is None or verdict is None or not gate.basis or not verdict.arguments:
        return False
    shown, edited = parse_object(gate.arguments) or {}, parse_object(verdict.arguments) or {}
    return any(shown.get(name) != edited.get(name) for name, kind in spec.subjects.items() if kind != "command")
