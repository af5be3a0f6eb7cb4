"""What `import everturn` promises. A change here is a change for everybody: say so in CHANGELOG.md."""

import inspect
from collections.abc import Iterator

from inline_snapshot import snapshot

import everturn
from everturn import Chat, Plugin, Turn, tool
from everturn.chat.replies import GateReply
from everturn.tools.tool_options import ToolOptions


def signatures(cls: type) -> Iterator[str]:
    """Every public method of a class as it is called."""
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield name
        elif callable(member):
            kind = "async " if inspect.iscoroutinefunction(member) else ""
            yield f"{kind}{name}{inspect.signature(member)}"


def choices_of(options: type) -> list[str]:
    """The keywords that stand behind an `Unpack`."""
    return [f"{name}: {hint.__forward_arg__}" for name, hint in options.__annotations__.items()]


def test_the_names():
    assert everturn.__all__ == snapshot(
        [
            "SUSPEND",
            "Agent",
            "AnswerStarted",
            "Budget",
            "CallClaimed",
            "CallDelta",
            "CallFinished",
            "CallProgress",
            "CallResumed",
            "CallStarted",
            "CallSuspended",
            "Chat",
            "ClientTool",
            "Cursor",
            "EgressPolicy",
            "EventStream",
            "EverturnError",
            "FallbackModel",
            "FileChange",
            "FilePart",
            "FileSnapshots",
            "FilesChanged",
            "FilesPart",
            "FilesReverted",
            "Gate",
            "GateOpened",
            "GateResolution",
            "GateResolved",
            "Grant",
            "LateResultReceived",
            "LimitReached",
            "McpServers",
            "Message",
            "MessageAdded",
            "MissingInput",
            "ModelError",
            "NestedCallRequested",
            "OutcomeUnknown",
            "Output",
            "PermissionDecided",
            "Phase",
            "Plugin",
            "Preview",
            "Price",
            "Progress",
            "Prompt",
            "PromptedModel",
            "Question",
            "ReasoningDelta",
            "RetryPolicy",
            "Rule",
            "Runtime",
            "Skill",
            "StepFinished",
            "StepInterrupted",
            "StepRestarted",
            "StepStarted",
            "SubagentRequest",
            "SubagentResult",
            "SubagentStarted",
            "TextDelta",
            "TextPart",
            "ToolClient",
            "ToolContext",
            "ToolError",
            "ToolGroup",
            "ToolRegistry",
            "ToolSource",
            "Turn",
            "TurnCancelled",
            "TurnCompleted",
            "TurnError",
            "TurnFailed",
            "TurnFinishing",
            "TurnOptions",
            "TurnResult",
            "TurnSettings",
            "TurnStarted",
            "TurnStatus",
            "TurnSuspended",
            "client_tool",
            "code_tools",
            "fetch_url",
            "files",
            "get_model",
            "manual",
            "rename_tool",
            "run_javascript",
            "run_python",
            "run_shell",
            "tool",
            "virtual_files",
        ]
    )


def test_every_name_is_there():
    assert all(hasattr(everturn, name) for name in everturn.__all__)
    assert sorted(set(everturn.__all__)) == sorted(everturn.__all__)


def test_chat():
    assert [f"Chat{inspect.signature(Chat)}", *signatures(Chat)] == snapshot(
        [
            "Chat(model: 'Model | str', *, tools: 'Iterable[Tool | ToolGroup | ToolSource] | ToolRegistry' = (), plugins: 'Iterable[object]' = (), system: 'str' = '', session: 'str | None' = None, store: 'TurnStore | str | None' = None, options: 'TurnOptions | None' = None, settings: 'TurnSettings | None' = None, rules: 'Iterable[Rule] | str | Path' = (), runtime: 'Runtime | None' = None, tenant: 'str' = 'local') -> 'None'",
            "async send(self, message: 'MessageInput', *, after: 'str | Message | None' = None, key: 'str | None' = None, model: 'Model | str | None' = None, params: 'Mapping[str, Any] | None' = None, tool_history: 'ToolHistory | None' = None, late: 'LatePolicy | None' = None, max_steps: 'int | None' = None, tools: 'Iterable[str] | None' = None, clients: 'Iterable[ClientTool] | None' = None, alone: 'bool' = False, beside: 'str | Turn | None' = None, steer: 'bool | str | Turn' = False) -> 'Turn'",
            "turn(self, turn: 'str') -> 'Turn'",
            "async rerun(self, message: 'str | Message', *, model: 'Model | str | None' = None, params: 'Mapping[str, Any] | None' = None, key: 'str | None' = None) -> 'Turn'",
            "async edit(self, message: 'str | Message', text: 'MessageInput', *, model: 'Model | str | None' = None, key: 'str | None' = None) -> 'Turn'",
            "async insert(self, after: 'str | Message', text: 'MessageInput', *, model: 'Model | str | None' = None) -> 'Turn'",
            "async fork(self, message: 'str | Message | None') -> 'None'",
            "async switch(self, message: 'str | Message | None') -> 'None'",
            "async delete(self, message: 'str | Message') -> 'None'",
            "async tree(self) -> 'MessageTree'",
            "async messages(self, leaf: 'str | Message | None' = None) -> 'list[Message]'",
            "async attach(self, file: 'bytes | Path | str', media_type: 'str' = '', name: 'str' = '') -> 'FilePart'",
            "async read(self, file: 'FilePart') -> 'bytes'",
            "async gates(self) -> 'list[Gate]'",
            "async answer(self, gate: 'Gate', **reply: 'Unpack[GateReply]') -> 'bool'",
            "async claim(self, gate: 'Gate', by: 'str', lease: 'float' = 60.0) -> 'CallClaim'",
            "async revert(self, files: 'FilesPart', *, to: \"Literal['before', 'after']\" = 'before', by: 'str' = 'person') -> 'FilesReverted'",
            "async unrevert(self, undo: 'FilesReverted', *, by: 'str' = 'person') -> 'FilesReverted'",
            "async grants(self) -> 'list[Grant]'",
            "async revoke(self, grant: 'Grant', *, by: 'str' = 'person') -> 'None'",
            "subscribe(self, listener: 'StatusListener') -> 'Callable[[], None]'",
            "async aclose(self) -> 'None'",
        ]
    )


def test_turn():
    assert list(signatures(Turn)) == snapshot(
        [
            "events(self, after: 'Cursor | str | None' = None) -> 'EventStream'",
            "async children(self, begun: 'SubagentStarted') -> 'Turn'",
            "async state(self) -> 'TurnState'",
            "async cancel(self, *, hard: 'bool' = False, key: 'str | None' = None) -> 'None'",
            "async answer(self, gate: 'Gate', **reply: 'Unpack[GateReply]') -> 'None'",
        ]
    )


def test_tool():
    assert f"tool{inspect.signature(tool)}" == snapshot(
        "tool(function: 'Callable[..., Any] | None' = None, /, *, name: 'str | None' = None, **choices: 'Unpack[ToolOptions]') -> 'Any'"
    )


def test_what_a_tool_may_choose_and_what_may_be_said_to_a_gate():
    assert (choices_of(ToolOptions), choices_of(GateReply)) == snapshot(
        (
            [
                "read_only: bool",
                "idempotent: bool",
                "approval: Approval",
                "timeout: float",
                "review: Review",
                "subjects: Mapping[str, SubjectKind]",
                "repeatable: bool",
                "egress: bool",
                "untrusted: bool",
                "private: tuple[str, ...] | list[str]",
                "limit: int",
                "before: CallHook | None",
                "after: CallHook | None",
                "to_model: Callable[[Any], object] | None",
            ],
            [
                "allow: Literal['once', 'always'] | Rule | None",
                "deny: str | bool | None",
                "arguments: JsonObject | None",
                "result: str | None",
                "text: str | None",
                "everywhere: bool",
                "until: float",
                "others: bool",
                "by: str",
                "failed: bool",
                "claim: str",
            ],
        )
    )


def test_plugin():
    assert list(signatures(Plugin)) == snapshot(
        [
            "name",
            "on_turn_start(self, ctx: 'TurnContext') -> 'Awaitable[Cleanup | None] | Cleanup | None'",
            "on_system_prompt(self, ctx: 'RequestContext') -> 'MaybeAwaitable'",
            "on_params(self, ctx: 'RequestContext') -> 'MaybeAwaitable'",
            "on_before_request(self, ctx: 'RequestContext') -> 'MaybeAwaitable'",
            "on_stream_chunk(self, ctx: 'TurnContext', chunk: 'Chunk', message: 'PartialAnswer') -> 'MaybeAwaitable'",
            "on_after_request(self, ctx: 'StepContext') -> 'Awaitable[Suspend | None] | Suspend | None'",
            "on_message_append(self, ctx: 'AppendContext') -> 'MaybeAwaitable'",
            "on_call_start(self, ctx: 'CallContext') -> 'MaybeAwaitable'",
            "on_call_end(self, ctx: 'CallContext') -> 'MaybeAwaitable'",
            "on_gate(self, ctx: 'GateContext') -> 'MaybeAwaitable'",
            "on_revert(self, ctx: 'RevertContext') -> 'MaybeAwaitable'",
            "on_turn_end(self, ctx: 'TurnContext') -> 'MaybeAwaitable'",
            "on_error(self, ctx: 'TurnContext', error: 'Problem') -> 'MaybeAwaitable'",
        ]
    )
