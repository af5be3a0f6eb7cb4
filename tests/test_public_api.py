"""What `import everturn` promises. A change here is a change for everybody: say so in CHANGELOG.md."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from inline_snapshot import snapshot

from everturn import Chat, Turn, tool
from everturn.chat.replies import GateReply
from everturn.plugins import Plugin
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


def names(module: str) -> list[str]:
    return list(import_module(module).__all__)


def test_the_names_of_the_package():
    assert names("everturn") == snapshot(
        [
            "Agent",
            "Always",
            "App",
            "Budget",
            "Chat",
            "ContextPart",
            "EventStream",
            "EverturnError",
            "FilePart",
            "Gate",
            "GateResolution",
            "McpServers",
            "Message",
            "ModelError",
            "NoOutput",
            "Output",
            "OutputRetry",
            "PendingGate",
            "Progress",
            "Prompt",
            "Question",
            "Rule",
            "Run",
            "RunContext",
            "RunResult",
            "StillWaiting",
            "TextPart",
            "ToolClient",
            "ToolContext",
            "ToolError",
            "ToolGroup",
            "Turn",
            "TurnError",
            "TurnInfo",
            "TurnOptions",
            "TurnSettings",
            "TurnStatus",
            "files",
            "get_model",
            "handoff",
            "input_guardrail",
            "last_turns",
            "manual",
            "output_guardrail",
            "tool",
        ]
    )


def test_the_names_of_events():
    assert names("everturn.events") == snapshot(
        [
            "AgentSelected",
            "AgentSwitched",
            "AnswerRated",
            "AnswerStarted",
            "CallClaim",
            "CallClaimed",
            "CallDelta",
            "CallFinished",
            "CallNotified",
            "CallProgress",
            "CallRecord",
            "CallResumed",
            "CallStarted",
            "CallSuspended",
            "Citation",
            "ClearedPart",
            "CommandDropped",
            "CompactionFailed",
            "CompactionFinished",
            "CompactionStarted",
            "ContextReport",
            "ContextUsage",
            "Cursor",
            "Delta",
            "Entry",
            "Event",
            "FileChange",
            "FileUploadChanged",
            "FilesChanged",
            "FilesPart",
            "FilesReverted",
            "GateOpened",
            "GateResolved",
            "Grant",
            "GrantRevoked",
            "HookFinished",
            "InputRefused",
            "InstructionsSet",
            "LateResultReceived",
            "LeafSelected",
            "LimitReached",
            "LogEvent",
            "MessageAdded",
            "MessageDeleted",
            "MessageTree",
            "MessagesImported",
            "NestedCallRequested",
            "NoticePart",
            "OutputRejected",
            "Part",
            "PermissionDecided",
            "Phase",
            "Problem",
            "ProviderToolPart",
            "ReasoningDelta",
            "ReasoningPart",
            "RequestRetried",
            "RevertStarted",
            "SessionUpdated",
            "StepFinished",
            "StepInterrupted",
            "StepPart",
            "StepRestarted",
            "StepStarted",
            "SubagentStarted",
            "SummaryPart",
            "TextDelta",
            "TitleSet",
            "ToolPart",
            "ToolStepFinished",
            "ToolStepStarted",
            "TurnCancelled",
            "TurnCompleted",
            "TurnEvent",
            "TurnFailed",
            "TurnFinishing",
            "TurnItem",
            "TurnStarted",
            "TurnState",
            "TurnStats",
            "TurnSuspended",
            "Usage",
            "WaitFinished",
            "WaitStarted",
        ]
    )


def test_the_names_of_tools():
    assert names("everturn.tools") == snapshot(
        [
            "BlobStorage",
            "ClientTool",
            "EgressPolicy",
            "ExternalResult",
            "FileStorage",
            "Preview",
            "Skill",
            "SubagentRequest",
            "SubagentResult",
            "SubagentTool",
            "Tool",
            "ToolRegistry",
            "ToolSource",
            "ToolSpec",
            "client_tool",
            "code_tools",
            "fetch_url",
            "memory",
            "provider_tool",
            "recall",
            "rename_tool",
            "run_javascript",
            "run_python",
            "run_shell",
            "todos",
            "virtual_files",
        ]
    )


def test_the_names_of_models():
    assert names("everturn.models") == snapshot(
        [
            "CallChunk",
            "Chunk",
            "CitationChunk",
            "FallbackModel",
            "FileChunk",
            "FinishChunk",
            "LimiterOptions",
            "Model",
            "ModelDeployment",
            "ModelFacts",
            "ModelRequest",
            "OpaqueChunk",
            "Price",
            "Profile",
            "PromptedModel",
            "ProviderToolChunk",
            "RateLimit",
            "ReasoningChunk",
            "RequestCall",
            "RequestMessage",
            "RequestPart",
            "RequestResult",
            "RetryChunk",
            "RetryModel",
            "RetryPolicy",
            "TextChunk",
            "TextEndChunk",
            "UsageChunk",
            "WaitChunk",
        ]
    )


def test_the_names_of_plugins():
    assert names("everturn.plugins") == snapshot(
        [
            "SUSPEND",
            "AppendContext",
            "CallContext",
            "Cleanup",
            "CompactContext",
            "Document",
            "FileSnapshots",
            "GateContext",
            "InputContext",
            "OutputBuffer",
            "OutputContext",
            "OverflowContext",
            "PartialAnswer",
            "Plugin",
            "RequestContext",
            "Retrieval",
            "Retriever",
            "RevertContext",
            "StartContext",
            "StepContext",
            "Suspend",
            "TurnContext",
            "retriever_tool",
        ]
    )


def test_the_names_of_stores_engines_and_buses():
    assert names("everturn.stores") == snapshot(
        [
            "Accounts",
            "BlobStore",
            "CommandInbox",
            "EventLog",
            "KeyProvider",
            "Receipt",
            "SessionClaim",
            "SessionDirectory",
            "SessionInfo",
            "SqlStore",
            "Store",
            "TurnStore",
            "create_backup",
            "export_session",
            "get_store",
            "import_session",
            "open_keyring",
            "restore_backup",
            "verify_backup",
        ]
    )
    assert names("everturn.engine") == snapshot(["Engine"])
    assert names("everturn.bus") == snapshot(["Bus", "LiveTail", "SignalListener"])


def test_the_names_of_telemetry_and_of_the_test_kit():
    assert names("everturn.telemetry") == snapshot(
        ["Instrumentation", "Telemetry", "TelemetryOptions", "instrument", "open_telemetry", "uninstrument"]
    )
    assert names("everturn.testing") == snapshot(
        [
            "CountingIds",
            "Crash",
            "FakeClock",
            "InlineEngine",
            "MemoryBus",
            "MemoryStore",
            "MortalStore",
            "ScriptedFailure",
            "ScriptedHang",
            "ScriptedModel",
            "call",
            "calls",
            "say",
            "think",
        ]
    )


MODULES = ("", ".events", ".tools", ".models", ".plugins", ".stores", ".engine", ".bus", ".telemetry", ".testing")


def test_every_name_is_there_and_is_exported_once():
    exported = [(name, f"everturn{module}") for module in MODULES for name in names(f"everturn{module}")]
    assert all(hasattr(import_module(module), name) for name, module in exported)
    counts = Counter(name for name, _ in exported)
    assert {name for name, count in counts.items() if count > 1} == set()
    assert len(names("everturn")) <= 45


def test_the_page_of_the_public_api_lists_them():
    page = (Path(__file__).parent.parent / "docs/reference/public-api.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `([\w.]+)`\n(.*?)(?=^## |<!--)", page, re.MULTILINE | re.DOTALL))
    listed = {module: re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) for module, text in sections.items()}
    assert listed == {f"everturn{module}": names(f"everturn{module}") for module in MODULES}


def test_chat():
    assert [f"Chat{inspect.signature(Chat)}", *signatures(Chat)] == snapshot(
        [
            "Chat(model: 'Model | str | AgentDefinition[Any]', *, tools: 'Iterable[ToolItem] | ToolRegistry' = (), plugins: 'Iterable[object]' = (), system: 'str' = '', session: 'str | None' = None, store: 'TurnStore | str | None' = None, options: 'TurnOptions | None' = None, settings: 'TurnSettings | None' = None, rules: 'Iterable[Rule] | str | Path' = (), app: 'BaseApp | None' = None, tenant: 'str' = 'local') -> 'None'",
            "async send(self, message: 'MessageInput', *, after: 'str | Message | None' = None, key: 'str | None' = None, agent: 'AgentDefinition[Any] | str | None' = None, model: 'Model | str | None' = None, compare_with: 'ComparedModels' = (), params: 'Mapping[str, Any] | None' = None, tool_history: 'ToolHistory | None' = None, context: 'str | None' = None, late: 'LatePolicy | None' = None, max_steps: 'int | None' = None, tools: 'Iterable[str] | None' = None, clients: 'Iterable[ClientTool] | None' = None, alone: 'bool' = False, beside: 'str | Turn | None' = None, steer: 'bool | str | Turn' = False, metadata: 'Mapping[str, Any] | None' = None, deps: 'Any' = None, by: 'str | None' = None, at: 'datetime | float | None' = None, priority: 'Priority | None' = None, at_step_limit: 'StepLimitPolicy | None' = None) -> 'Turn'",
            "async run(self, message: 'MessageInput', *, metadata: 'Mapping[str, Any] | None' = None, deps: 'Any' = None, wait: 'float | None' = None, **how: 'Unpack[ChatSendArguments]') -> 'RunResult[Any]'",
            "stream(self, message: 'MessageInput', *, metadata: 'Mapping[str, Any] | None' = None, deps: 'Any' = None, **how: 'Unpack[ChatSendArguments]') -> 'Run[Any]'",
            "turn(self, turn: 'str') -> 'Turn'",
            "async rerun(self, message: 'str | Message', *, model: 'Model | str | None' = None, params: 'Mapping[str, Any] | None' = None, tools: 'Iterable[str] | None' = None, after_step: 'int' = 0, key: 'str | None' = None) -> 'Turn'",
            "async compact(self, *, focus: 'str' = '', key: 'str | None' = None) -> 'Turn'",
            "async context(self, *, at: 'str | Message | None' = None, model: 'Model | str | None' = None) -> 'ContextReport'",
            "async edit(self, message: 'str | Message', text: 'MessageInput', *, model: 'Model | str | None' = None, params: 'Mapping[str, Any] | None' = None, tools: 'Iterable[str] | None' = None, key: 'str | None' = None) -> 'Turn'",
            "async insert(self, after: 'str | Message', text: 'MessageInput', *, model: 'Model | str | None' = None) -> 'Turn'",
            "async fork(self, message: 'str | Message | None', *, step: 'int' = 0, key: 'str | None' = None) -> 'str | None'",
            "async agent(self) -> 'str'",
            "async switch(self, agent: 'AgentDefinition[Any] | str', *, by: 'str' = 'person', key: 'str | None' = None) -> 'None'",
            "async update(self, *, title: 'str | None' = None, pinned: 'bool | None' = None, archived: 'bool | None' = None, labels: 'Iterable[str] | None' = None, by: 'str' = 'person', key: 'str | None' = None) -> 'None'",
            "async rate(self, message: 'str | Message', rating: 'Rating', *, reason: 'str' = '', by: 'str' = 'person', key: 'str | None' = None) -> 'None'",
            "async delete(self, message: 'str | Message') -> 'None'",
            "async tree(self) -> 'MessageTree'",
            "async messages(self, leaf: 'str | Message | None' = None) -> 'list[Message]'",
            "async attach(self, file: 'bytes | Path | str', media_type: 'str' = '', name: 'str' = '') -> 'FilePart'",
            "async read(self, file: 'FilePart') -> 'bytes'",
            "async import_messages(self, messages: 'object', *, format: 'MessageFormat | None' = None, after: 'str | Message | None' = None, key: 'str | None' = None, by: 'str' = '') -> 'ImportedMessages'",
            "async export_messages(self, *, format: 'MessageFormat', leaf: 'str | Message | None' = None) -> 'list[dict[str, Any]]'",
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
            "async result(self, wait: 'float | None' = None) -> 'RunResult[Any]'",
            "async children(self, event: 'SubagentStarted') -> 'Turn'",
            "async state(self) -> 'TurnState'",
            "async cancel(self, *, hard: 'bool' = False, key: 'str | None' = None) -> 'None'",
            "async answer(self, gate: 'Gate', **reply: 'Unpack[GateReply]') -> 'bool'",
        ]
    )


def test_tool():
    assert f"tool{inspect.signature(tool)}" == snapshot(
        "tool(function: 'Callable[..., Any] | None' = None, /, *, name: 'str | None' = None, description: 'str' = '', **choices: 'Unpack[ToolOptions]') -> 'Any'"
    )


def test_what_a_tool_may_choose_and_what_may_be_said_to_a_gate():
    assert (choices_of(ToolOptions), choices_of(GateReply)) == snapshot(
        (
            [
                "read_only: bool",
                "idempotent: bool",
                "resumable: bool",
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
                "within: GrantLimit",
                "until: float",
                "others: bool",
                "stop: bool",
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
            "on_input(self, ctx: 'InputContext', message: 'Message') -> 'MaybeAwaitable'",
            "on_turn_start(self, ctx: 'StartContext') -> 'Awaitable[Cleanup | None] | Cleanup | None'",
            "on_system_prompt(self, ctx: 'RequestContext') -> 'MaybeAwaitable'",
            "on_params(self, ctx: 'RequestContext') -> 'MaybeAwaitable'",
            "on_before_request(self, ctx: 'RequestContext') -> 'MaybeAwaitable'",
            "on_stream_chunk(self, ctx: 'TurnContext', chunk: 'Chunk', message: 'PartialAnswer') -> 'MaybeAwaitable'",
            "on_output(self, ctx: 'OutputContext', text: 'str') -> 'Awaitable[str | None] | str | None'",
            "on_overflow(self, ctx: 'OverflowContext', error: 'ModelError') -> 'MaybeAwaitable'",
            "on_compact(self, ctx: 'CompactContext') -> 'MaybeAwaitable'",
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
