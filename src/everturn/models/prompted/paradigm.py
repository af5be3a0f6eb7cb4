"""A paradigm: how a model without tool calls is told of tools, and how it writes calls. Three of them are siblings here:

json.py      {"tool_calls": [{"name": …, "arguments": {…}}]}
xml.py       <tool_code>{"name": …, "arguments": {…}}</tool_code>
blocks.py    delimited bodies, for code that nobody wants to see in a JSON string
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from msgspec import Struct

from everturn.core.canonical import JsonObject, canonical, parse_object
from everturn.core.requests import RequestCall, RequestResult, ToolSpec
from everturn.models.formats.schemas import required_of, tool_schema
from everturn.models.prompted.answer import Answer


class Offer(Struct, frozen=True):
    """What a model may call now. `choice` is "auto", "required", or the name of the tool that must be called."""

    tools: Sequence[ToolSpec]
    choice: str = "auto"
    schema: JsonObject | None = None  # that the answer in the end must fit
    is_single: bool = False  # one call at a time, and no more
    is_bound: bool = False  # the server lets nothing through that breaks the form
    by_grammar: bool = False  # it reads grammars, too, and not only schemas

    @property
    def callable(self) -> Sequence[ToolSpec]:
        """The tools the choice leaves."""
        chosen = [tool for tool in self.tools if tool.name == self.choice]
        return chosen or self.tools

    @property
    def most(self) -> int:
        """How many calls an answer may make."""
        return 1 if self.is_single else MOST_CALLS

    def forbids(self, name: str, before: int) -> str:
        """Why a call of this name, with this many before it, may not be made now; "" if it may."""
        if before >= self.most:
            return "it is one more than may be made at once"
        if self.choice in ("auto", "required") or _alike(name) == _alike(self.choice):
            return ""
        return f"only {self.choice} may be called now"

    @property
    def must_call(self) -> bool:
        """Whether an answer in words is not what is asked for."""
        return self.choice != "auto"


def _alike(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


MOST_CALLS = 16  # in one answer; without an end a small model would not find one


class Paradigm(Protocol):
    """How calls are asked for, written and read."""

    name: str
    binds_answers: bool
    """Whether what binds it also binds the answer in words to a schema; where it does not, the model is told."""

    def rules(self, offer: Offer) -> str:
        """How to write a call, with an example of one."""
        ...

    def write(self, calls: Sequence[RequestCall]) -> str:
        """Calls as the model would have written them."""
        ...

    def tell(self, words: str, calls: Sequence[RequestCall], offer: Offer) -> str:
        """An answer, words and calls, as the model would have written it."""
        ...

    def answer(self, offer: Offer) -> Answer:
        """A reader for one answer."""
        ...

    def bind(self, offer: Offer) -> dict[str, Any]:
        """The parameters with which a server lets nothing through that breaks the form."""
        ...


def words_then_calls(words: str, calls: str) -> str:
    """An answer with calls on lines of their own."""
    return "\n\n".join(filter(None, (words, calls)))


RESULT = "tool_call_result"


def write_result(id: str, result: RequestResult, texts: Sequence[JsonObject] = ()) -> str:
    """What a call came to, as a model is told in every paradigm. JSON, so that no result can pretend to be another.

    `texts` are files it brought that are text: they stand in there for the same reason.
    """
    how = "result" if not result.is_error else "rejected" if result.state == "denied" else "error"
    told: JsonObject = {"tool_call_id": id, "name": result.name, how: result.text}
    return canonical({RESULT: {**told, "files": list(texts)} if texts else told})


class Pasted(Struct, frozen=True):
    """What a result says that a person pasted, whether it worked, and of which tool it is, if that is said."""

    text: str
    worked: bool
    name: str = ""


def read_result(text: str) -> Pasted | None:
    """Read such a message; None if it is something else."""
    found: object = (parse_object(text) or {}).get(RESULT)
    if not isinstance(found, dict):
        return None
    fields = cast("JsonObject", found)
    for how in ("result", "error", "rejected"):
        if how in fields:
            value = fields[how]
            told, name = value if isinstance(value, str) else canonical(value), fields.get("name")
            return Pasted(told, how == "result", name if isinstance(name, str) else "")
    return None


def example_arguments(tool: ToolSpec) -> JsonObject:
    """Arguments that fit a tool, more or less, to show what a call looks like."""
    schema = tool_schema(tool.schema)
    properties: JsonObject = schema["properties"]
    wanted = [name for name in required_of(schema) if name in properties] or list(properties)[:1]
    return {name: _example(properties[name]) for name in wanted}


def _example(schema: object) -> Any:
    if not isinstance(schema, dict):
        return "…"
    given = cast("JsonObject", schema)
    for key in ("const", "default"):
        if given.get(key) is not None:
            return given[key]
    for key in ("examples", "enum"):
        if given.get(key):
            return given[key][0]
    kind = given.get("type")
    samples: JsonObject = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}
    return samples.get(kind, "…") if isinstance(kind, str) else "…"
