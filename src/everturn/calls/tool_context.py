"""Tool context: implements what a running tool can ask of its turn: questions, nested calls, sub-agent runs, files.

Each request has an entry in the log, so that a resumed tool gets the recorded answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from everturn.calls.contributors import find_contributors
from everturn.calls.documents import list_documents
from everturn.calls.lookup import find_tool
from everturn.calls.memory_files import TurnMemory
from everturn.calls.recall import TurnRecall
from everturn.calls.results import list_missing_results, read_result_range
from everturn.calls.session_files import SessionBlobs, SessionFiles
from everturn.calls.subagents import CallSubagents
from everturn.calls.suspend import ToolWait
from everturn.calls.tool_steps import ToolSteps
from everturn.core.calls import CallRecord
from everturn.core.canonical_json import JsonObject, encode_canonical, hash_values, parse_object, replace_surrogates
from everturn.core.events import NestedCallRequested
from everturn.core.gate_rows import MAX_LEASE
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, Gate, GateResolution
from everturn.core.parts import Output
from everturn.core.ports import Question, Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.state import TurnState
from everturn.errors import ToolChanged, ToolError
from everturn.running.hook_contexts import StepHookContext, open_gate

MAX_QUESTIONS = 32  # in one call
MAX_NESTED_CALLS = 1_000
MAX_TOOL_TEXT_LENGTH = 1_000_000  # characters of a result that a tool gets
MAX_CALL_DEPTH = 8  # levels of nested calls
MAX_QUESTION_LENGTH = 100_000  # characters of a question, and of its schema
MAX_SAVED_STATE = 1_000_000
MAX_TIMEOUT = 10 * 365 * 86_400.0  # seconds
CHANGED_ON_RESUME = (
    "{name} was resumed and does not {what} as it did before; what it did the first time is not repeated. "
    "Nothing more was done."
)


class TurnForTool:
    """The turn as the tool of one call sees it, whichever drive has the turn now."""

    def __init__(
        self,
        ctx: StepHookContext,
        call: CallRecord,
        tool: Tool,
        tools: Mapping[str, Tool],
        arguments: JsonObject | None = None,
    ) -> None:
        self._first, self._id, self._tools, self._arguments = ctx.run, call.id, tools, arguments
        self._step, self._spec, self._began = ctx.step, tool.spec, call.started.at if call.started is not None else 0.0
        kept = call.suspended.saved_state if call.suspended is not None else ""
        self.wait = ToolWait(ctx.run, tool.spec.resumable or not tool.spec.at_most_once, kept)
        self.steps = ToolSteps(call.id, tool.spec, self.wait)
        self.subagents = CallSubagents(call, self.wait)
        self._message = call.message
        self._blobs = SessionBlobs(ctx.run.setup.store)
        self._base_version = approved_base_version(call, tool.spec)
        self._question_count = self._made = 0

    @property
    def _call(self) -> CallRecord:
        return self.wait.run.state.calls[self._id]

    def context(self) -> ToolContext:
        """The `ToolContext` for the tool."""
        run, call = self._first, self._id
        return ToolContext(
            session=run.session,
            turn=run.turn,
            call=call,
            key=call,
            progress=lambda text: run.progress(call, text),
            run_subagent=self.subagents.run_subagent,
            read=lambda name, at, length: read_result_range(run, name, at, length),
            list_results=lambda start: list_missing_results(run, start),
            ask=self.ask,
            run_tool=self.run_tool,
            step=self.steps.step,
            sleep=self.steps.sleep,
            external=self.steps.external,
            message=self._message,
            is_cancelled=self.wait.is_cancelled,
            tools=self._offered,
            may=self._may,
            saved_state=self.wait.saved_state,
            save_state=self._save_state,
            base_version=self._base_version,
            began=self._began,
            files=SessionFiles(self._step, call, self._blobs, self.wait),
            blobs=self._blobs,
            memory=TurnMemory(call, self.wait),
            recall=TurnRecall(run),
            documents=lambda: list_documents(run),
            tenant=run.ledger.tenant,
            by=run.state.options.by,
            contributors=lambda: find_contributors(run.setup.store, run.session, run.state, call),
            deps=None if run.dependencies is None else run.dependencies.value,
            metadata=run.state.options.metadata or {},
        )

    def _save_state(self, state: str) -> None:
        if not isinstance(state, str) or len(state) > MAX_SAVED_STATE:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(
                f"saved state must be a string of at most {MAX_SAVED_STATE:,} characters; store more in a blob"
            )
        self.wait.saved_state = replace_surrogates(state)

    def _offered(self) -> Mapping[str, ToolSpec]:
        run = self._first
        specs = run.setup.permissions.offered_tools(self._tools, run.state.options)
        return {spec.name: spec for spec in specs if spec.name != self._spec.name}

    def _may(self, name: str, arguments: JsonObject) -> bool:
        """Whether no rule denies a call: for a tool that lists many items and must leave out forbidden ones.

        "" is this tool itself. An unknown tool is decided by its name, with the subjects of this tool.
        """
        permits, options = self._first.setup.permissions, self._first.state.options
        if not (permits.policy.rules or options.rules or options.lineage is not None):
            return True
        tool = self._tools.get(name)
        spec = tool.spec if tool is not None else replace(self._spec, name=name or self._spec.name, approval="auto")
        try:
            return permits.decide_cases(spec, permits.cases(spec, arguments, options), options).action != "deny"
        except ToolError:
            return False

    # People and clients ------------------------------------------------------------------------------------------------

    async def ask(self, question: Question) -> GateResolution:
        """Ask a question, once, and wait for the answer."""
        check_question(question)
        self._question_count += 1
        if self._question_count > MAX_QUESTIONS:
            raise ToolError(f"a call may ask {MAX_QUESTIONS} questions, and this exceeds it")
        waiting, run = self.wait, self.wait.run
        gate = self._gate(question, f"{self._id}.ask.{replace_surrogates(question.name) or self._question_count}")
        name = gate.id
        if name not in run.state.gates:
            events = await open_gate(run, gate)
            if waiting.can_resume and len(events) == 1:  # no plugin has answered it
                events.append(waiting.suspended_event(self._id, name))
            await waiting.write(lambda: [] if name in waiting.run.state.gates else events)
        if waiting.run.state.gate_details[name].hash != gate.hash:
            raise ToolChanged(CHANGED_ON_RESUME.format(name=self._spec.name, what="ask"))
        await waiting.wait_until("gates", name, lambda state: state.gates.get(name) is not None, lambda _: True)
        resolution = waiting.run.state.gates[name]
        assert resolution is not None
        return resolution

    def _gate(self, question: Question, name: str) -> Gate:
        run, call, spec = self._first, self._call, self._spec
        started = call.started
        assert started is not None
        identity = run.setup.permissions.identity(spec)
        # A client gets the targets of references, and no private values: its tool does not get those either.
        arguments = started.arguments if self._arguments is None else encode_canonical(self._arguments)
        text, form = replace_surrogates(question.text), encode_schema(question.schema) if question.schema else ""
        shown = arguments if question.kind == "client" else text
        timeout = question.timeout or run.state.options.gate_timeout
        return Gate(
            id=name,
            turn=run.turn,
            call=call.id,
            tool=spec.name,
            arguments=shown,
            hash=hash_values(
                run.ledger.tenant, run.session, run.turn, call.id, question.kind, identity, shown, text, form
            ),
            expires=run.now() + timeout if timeout else 0.0,
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
        """Make a nested call: it passes rules and gates, runs and is logged like a call of the model."""
        self._made += 1
        if self._made > MAX_NESTED_CALLS:
            raise ToolError(f"a call may make {MAX_NESTED_CALLS} calls of its own, and this exceeds it")
        waiting, text = self.wait, encode_canonical(arguments)
        call_id, spec = f"{self._id}.{self._made}", find_tool(name, self._tools).spec
        known = waiting.run.state.calls.get(call_id)
        if known is None:
            self._check_depth()
            run = waiting.run
            event = NestedCallRequested(
                turn=run.turn,
                at=run.now(),
                call=call_id,
                parent=self._id,
                name=spec.name,
                arguments=text,
                identity=run.setup.permissions.identity(spec),
            )
            await waiting.write(lambda: [] if call_id in waiting.run.state.calls else [event])
        elif (known.name, known.arguments) != (spec.name, text):
            raise ToolChanged(CHANGED_ON_RESUME.format(name=self._spec.name, what="call the same tools"))

        def has_come(state: TurnState) -> bool:
            return call_id in state.calls and state.calls[call_id].is_finished

        def waits(state: TurnState) -> bool:
            return call_id in state.calls and state.calls[call_id].state in ("asking", "reviewing", "waiting")

        await waiting.wait_until("calls", call_id, has_come, waits)
        return await self._result(waiting.run.state.calls[call_id])

    def _check_depth(self) -> None:
        calls, call_id, depth = self.wait.run.state.calls, self._id, 1
        while (parent := calls[call_id].parent) and depth <= MAX_CALL_DEPTH:
            call_id, depth = parent, depth + 1
        if depth > MAX_CALL_DEPTH:
            raise ToolError(f"calls within calls go {MAX_CALL_DEPTH} deep, and this exceeds it")

    async def _result(self, call: CallRecord) -> Output:
        output = call.output
        assert output is not None
        if call.state != "completed":
            raise ToolError(output.text)
        if output.blob:  # its text is an excerpt
            whole = (await self._first.setup.store.blob(output.blob)).decode()[:MAX_TOOL_TEXT_LENGTH]
            return replace(output, text=whole, blob="")
        return output


def check_question(question: Question) -> None:
    """Validate a question of a tool.

    Raises:
        ToolError: the question is invalid; the error says how to write one.
    """
    if not isinstance(question, Question):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ToolError(f"ctx.ask needs a Question(text, …), not a {type(question).__name__}")
    if question.kind not in GATE_KINDS_OF_RUNNING_TOOL:
        raise ToolError(f"kind={question.kind!r}: must be 'form' or 'client'")
    if not isinstance(question.text, str) or len(question.text) > MAX_QUESTION_LENGTH:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ToolError(f"a question must be a string of at most {MAX_QUESTION_LENGTH:,} characters")
    if not isinstance(question.schema, dict) or len(encode_schema(question.schema)) > MAX_QUESTION_LENGTH:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ToolError(f"the schema of a question must be an object of at most {MAX_QUESTION_LENGTH:,} characters")
    for name, most in (("timeout", MAX_TIMEOUT), ("lease", MAX_LEASE)):
        value = getattr(question, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise ToolError(f"{name}={value!r}: seconds, at most {most:g}")


def encode_schema(schema: JsonObject) -> str:
    """A schema as JSON, with its keys in their own order, which is the order of the form's fields."""
    try:
        return msgspec.json.encode(schema).decode()
    except Exception as error:
        raise ToolError(f"the schema of a question must be plain JSON: {error}") from None


def approved_base_version(call: CallRecord, spec: ToolSpec) -> str:
    """The base version of the preview that a person approved; "" if there was none."""
    gate, resolution = call.gate, call.resolution
    return gate.base_version if gate is not None and resolution is not None and resolution.allowed else ""


def has_edited_target(call: CallRecord, spec: ToolSpec) -> bool:
    """Whether a person saw a preview and then edited the arguments to act on something else, which it did not show.

    An edited command does not count: the person wrote it, and the files in the preview must still be unchanged.
    """
    gate, resolution = call.gate, call.resolution
    if gate is None or resolution is None or not gate.base_version or not resolution.arguments:
        return False
    shown, edited = parse_object(gate.arguments) or {}, parse_object(resolution.arguments) or {}
    return any(shown.get(name) != edited.get(name) for name, kind in spec.subjects.items() if kind != "command")
