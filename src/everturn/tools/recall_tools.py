"""Recall tools: search and read earlier messages, also those that a compaction has left out of requests.

`recall` reads the present branch. `recall_sessions`, an option of the group, reads the other sessions of the same user; a
person is asked before, unless a rule or a grant allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import Meta, Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.memory.recall import ConversationRecall, RecalledMessage, messages_around, search_recalled
from everturn.core.options import Approval
from everturn.core.parts import Output
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, ConfigError, ToolError
from everturn.tools.groups import ToolGroup

MAX_HITS = 10
MAX_AROUND = 10  # messages on either side
MAX_MESSAGE_LENGTH = 8_000  # characters of one message that is read
MAX_RECALL_LENGTH = 40_000  # characters of a result
_RULES: Final = (
    "Messages that are no longer in front of you, because the conversation was compacted, are not lost: recall(query=…) "
    "finds them by their words, and recall(message=…, around=2) reads one with its neighbours. Ids of messages are in "
    "summaries (person_said) and in what recall finds. Recall before you say that you do not know, or ask again."
)
_RULES_SESSIONS: Final = (
    " recall_sessions does the same in other conversations of this person; the person may be asked for leave first."
)
_MESSAGE: Final = "the id of a message, as recall found it or as a summary names it: read it instead of searching"


class Recall(Struct, forbid_unknown_fields=True, kw_only=True):
    """The arguments of `recall`."""

    query: Annotated[str, Meta(max_length=1_000, description="words to find; the beginning of a word is enough")] = ""
    message: Annotated[str, Meta(max_length=200, description=_MESSAGE)] = ""
    around: Annotated[
        int, Meta(ge=0, le=MAX_AROUND, description="with message: how many messages before and after it to read")
    ] = 0


class RecallSessions(Recall, forbid_unknown_fields=True, kw_only=True):
    """The arguments of `recall_sessions`."""

    session: Annotated[
        str, Meta(max_length=200, description="with message: the session that it is in, as recall_sessions found it")
    ] = ""


def recall(*, sessions: bool = False, approval: Approval = "ask", name: str = "recall") -> ToolGroup:
    """Tools that search and read earlier messages of the conversation.

    With `sessions`, a second tool, `recall_sessions`, does so in the other sessions of the same user; `approval` is about
    that one. Neither sees sessions of another user or tenant.
    """
    about = "Search or read earlier messages of this conversation, also those that were compacted away."
    tools: list[Tool] = [_RecallTool("recall", about, Recall, "auto")]
    if sessions:
        about = "Search or read messages in other conversations of this person."
        tools.append(_RecallTool("recall_sessions", about, RecallSessions, approval))
    return ToolGroup(name, tools, _RULES + (_RULES_SESSIONS if sessions else ""))


class _RecallTool:
    """A tool that reads earlier messages."""

    def __init__(self, name: str, about: str, kind: type[Recall], approval: Approval) -> None:
        _, components = msgspec.json.schema_components([kind])
        schema = components[kind.__name__]
        schema.pop("title", None)
        schema.pop("description", None)
        more: dict[str, Any] = {
            "read_only": True,
            "repeatable": True,
            "limit": 2 * MAX_RECALL_LENGTH,
            "origin": "recall",
        }
        self._spec, self._kind = ToolSpec(name, about, schema, approval=approval, **more), kind

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject:
        """Check that there is a query or a message."""
        return cast(JsonObject, msgspec.to_builtins(self._read(arguments)))

    async def run(self, arguments: JsonObject, context: ToolContext) -> Output:
        """Search, or read."""
        read = self._read(arguments)
        if context.recall is None:
            raise ConfigError("earlier messages are not available in this context")
        found = await self._messages(read, context.recall)
        return _output(found, read)

    async def _messages(self, read: Recall, source: ConversationRecall) -> Sequence[RecalledMessage]:
        if isinstance(read, RecallSessions):
            if not read.message:
                return await source.search_sessions(read.query, MAX_HITS)
            branch = await source.session_branch(read.session, read.message)
        else:
            branch = await source.branch()
            if not read.message:
                return search_recalled(branch, read.query, MAX_HITS)
        found = messages_around(branch, read.message, read.around)
        if not found:
            raise ToolError(f"there is no message {read.message[:80]!r} in this conversation; find its id with a query")
        return found

    def _read(self, arguments: JsonObject) -> Recall:
        try:
            present = {key: value for key, value in arguments.items() if value is not None}  # some models fill in null
            read = msgspec.convert(present, self._kind, strict=False)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            names = ", ".join(cast("dict[str, Any]", self._spec.schema["properties"]))
            raise BadArguments(
                f"the arguments of {self._spec.name} are wrong: {error}. Its parameters are: {names}"
            ) from None
        if bool(read.query.strip()) == bool(read.message):
            raise BadArguments(
                f"{self._spec.name} needs either `query`, the words to find, or `message`, the id to read"
            )
        if isinstance(read, RecallSessions) and bool(read.session) != bool(read.message):
            raise BadArguments("recall_sessions reads a `message` of a `session`: give both, as a search returned them")
        return read


def _output(found: Sequence[RecalledMessage], read: Recall) -> Output:
    """The messages as JSON, so that nothing in one can pose as another, with the marks of all of them."""
    rows: list[dict[str, object]] = []
    left = MAX_RECALL_LENGTH
    most = MAX_MESSAGE_LENGTH if read.message else left
    for message in found:
        text = message.text[: min(most, left)]
        left -= len(text)
        row: dict[str, object] = {"session": message.session} if message.session else {}
        row |= {"message": message.message, "role": message.role, "text": text}
        if len(text) < len(message.text):
            row["left_out"] = len(message.text) - len(text)
        rows.append(row)
    content: dict[str, object] = {"messages": rows}
    if not rows:
        content["note"] = "nothing was found; try other words, or fewer"
    return Output(
        msgspec.json.encode(content).decode(),
        title=read.query or read.message,
        untrusted=any(message.untrusted for message in found),
        sensitive=any(message.sensitive for message in found),
    )
