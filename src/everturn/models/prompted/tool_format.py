"""Tool formats: how a model without native tool calls is told of tools, and how it writes calls. There are three:

json    {"tool_calls": [{"name": …, "arguments": {…}}]}
xml     <tool_code>{"name": …, "arguments": {…}}</tool_code>
blocks  delimited bodies, for code that does not belong into a JSON string
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from msgspec import Struct

from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.requests import RequestCall, RequestResult, ToolSpec
from everturn.models.formats.tool_schemas import required_properties, tool_schema
from everturn.models.prompted.response import AnswerParser


class OfferedTools(Struct, frozen=True):
    """The tools a model may call now. `choice` is "auto", "required", or the name of the tool to call."""

    tools: Sequence[ToolSpec]
    choice: str = "auto"
    schema: JsonObject | None = None  # of the final answer
    is_single: bool = False  # no parallel calls
    is_constrained: bool = False  # the server uses constrained decoding
    by_grammar: bool = False  # the server accepts grammars, and not only schemas

    @property
    def callable(self) -> Sequence[ToolSpec]:
        """The tools that the choice allows."""
        chosen = [tool for tool in self.tools if tool.name == self.choice]
        return chosen or self.tools

    @property
    def max_calls(self) -> int:
        """The maximum number of calls of an answer."""
        return 1 if self.is_single else MAX_CALLS

    def forbids(self, name: str, before: int) -> str:
        """Return why a call of this name, after this many others, is not allowed now; "" if it is."""
        if before >= self.max_calls:
            return "it is one more than may be made at once"
        if self.choice in ("auto", "required") or _alike(name) == _alike(self.choice):
            return ""
        return f"only {self.choice} may be called now"

    @property
    def must_call(self) -> bool:
        """Whether the answer must be a call."""
        return self.choice != "auto"


def _alike(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


MAX_CALLS = 16  # in one answer; without a limit a small model may never stop


class ToolFormat(Protocol):
    """How calls are requested, written and parsed."""

    name: str
    constrains_answers: bool
    """Whether its constraint also enforces the output schema; otherwise the schema is in the prompt."""

    def rules(self, offer: OfferedTools) -> str:
        """Return the instructions for writing a call, with an example."""
        ...

    def write(self, calls: Sequence[RequestCall]) -> str:
        """Return calls as the model would have written them."""
        ...

    def write_answer(self, words: str, calls: Sequence[RequestCall], offer: OfferedTools) -> str:
        """Return an answer, text and calls, as the model would have written it."""
        ...

    def answer(self, offer: OfferedTools) -> AnswerParser:
        """Return a parser for one answer."""
        ...

    def constrain(self, offer: OfferedTools) -> dict[str, Any]:
        """Return the parameters for constrained decoding."""
        ...


def join_text_and_calls(words: str, calls: str) -> str:
    """Return an answer with calls on lines of their own."""
    return "\n\n".join(filter(None, (words, calls)))


RESULT_KEY = "tool_call_result"


def write_result(id: str, result: RequestResult, texts: Sequence[JsonObject] = ()) -> str:
    """Return a result as the model gets it in every tool format: JSON, so that no result can imitate another.

    `texts` are its text files: they are inside for the same reason.
    """
    field = "result" if not result.is_error else "rejected" if result.state == "denied" else "error"
    body: JsonObject = {"tool_call_id": id, "name": result.name, field: result.text}
    return encode_canonical({RESULT_KEY: {**body, "files": list(texts)} if texts else body})


class PastedResult(Struct, frozen=True):
    """A result that a person pasted: its text, whether the call succeeded, and its tool, if known."""

    text: str
    worked: bool
    name: str = ""


def read_result(text: str) -> PastedResult | None:
    """Parse such a message; None if it is something else."""
    decoded: object = (parse_object(text) or {}).get(RESULT_KEY)
    if not isinstance(decoded, dict):
        return None
    fields = cast("JsonObject", decoded)
    for field in ("result", "error", "rejected"):
        if field in fields:
            value = fields[field]
            result_text, name = value if isinstance(value, str) else encode_canonical(value), fields.get("name")
            return PastedResult(result_text, field == "result", name if isinstance(name, str) else "")
    return None


def example_arguments(tool: ToolSpec) -> JsonObject:
    """Return arguments that roughly match a tool, for an example call."""
    schema = tool_schema(tool.schema)
    properties: JsonObject = schema["properties"]
    names = [name for name in required_properties(schema) if name in properties] or list(properties)[:1]
    return {name: _example(properties[name]) for name in names}


def _example(schema: object) -> Any:
    if not isinstance(schema, dict):
        return "…"
    fields = cast("JsonObject", schema)
    for key in ("const", "default"):
        if fields.get(key) is not None:
            return fields[key]
    for key in ("examples", "enum"):
        if fields.get(key):
            return fields[key][0]
    kind = fields.get("type")
    samples: JsonObject = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}
    return samples.get(kind, "…") if isinstance(kind, str) else "…"
