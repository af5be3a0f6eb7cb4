"""Any model → one that calls tools, also where it has never heard of them: `Prompted(model, "json")`.

    request → asking → the model → answer → chunks

It tells the model of the tools in the system prompt and reads calls out of its text as they come. What the turn sees is
what it sees of any model: the same parts, gates and history. So one conversation may be carried on natively, in one
paradigm and then in another.

    source.py    text in pieces, for parsers that read as if it were all there
    answer.py    where in a text a call begins, and where it only looks like one
    objects.py   a call that is a JSON object
    paradigm.py  what a paradigm is; json.py, xml.py and blocks.py are the three there are
    asking.py    a request without tools in it
    grammar.py   grammars for servers that hold a model to one
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, TextChunk
from everturn.core.modality import Modality, modality_of
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.models.formats.think import Thinking
from everturn.models.prices import NO_FACTS, Facts
from everturn.models.prompted.answer import Answer
from everturn.models.prompted.asking import ask
from everturn.models.prompted.blocks import Blocks
from everturn.models.prompted.json import Json
from everturn.models.prompted.paradigm import Offer, Paradigm
from everturn.models.prompted.xml import Xml

PARADIGMS: Final[Mapping[str, Paradigm]] = {paradigm.name: paradigm for paradigm in (Json(), Xml(), Blocks())}
NATIVE = "native"
Binds = Literal["", "schema", "grammar"]
"""What a server can hold a model to: nothing, a JSON schema for all of an answer, or also a grammar."""
_OWN_CALLS = 1_000_000  # slots of calls that a model makes natively all the same: apart from those read in its text


class Prompted:
    """A model that is told of tools in words, and whose calls are read in its text.

    `paradigm` is `json`, `xml`, `blocks`, or `native` to leave everything as it is; a turn can choose another one with
    `params={"paradigm": …}`. Where the server can hold the model to the form (`binds`) it does, unless a turn says
    `params={"bind": False}`.
    """

    def __init__(self, model: Model, paradigm: str = "json", binds: Binds = "", *, name: str = "") -> None:
        if paradigm not in PARADIGMS and paradigm != NATIVE:
            raise ConfigError(_no_such(paradigm))
        # One of its own, or a turn that waits for the bare model would find this one by its name.
        self._name = name or f"{model.name}@{paradigm}"
        self._model, self._paradigm = model, paradigm
        self._binds: Binds = binds

    @property
    def name(self) -> str:
        """The badge: the model's own, and the paradigm."""
        return self._name

    @property
    def modality(self) -> Modality:
        """What the model is for."""
        return modality_of(self._model)

    def __repr__(self) -> str:
        """The model's own words for itself."""
        return f"<Prompted {self._paradigm} {self._model!r}>"

    async def facts(self) -> Facts:
        """What the model costs and how much it can read, where that is known."""
        facts = getattr(self._model, "facts", None)
        return NO_FACTS if facts is None else await facts()

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask, in the paradigm of this turn."""
        params = dict(request.params)
        name = params.pop("paradigm", None) or self._paradigm
        may_bind = params.pop("bind", True)
        if name == NATIVE:
            return self._model.stream(
                request if len(params) == len(request.params) else replace(request, params=params)
            )
        if not isinstance(name, str) or name not in PARADIGMS:
            return _refuse(_no_such(name))
        if not request.tools and not any(message.role == "tool" for message in request.messages):
            return self._model.stream(replace(request, params=params))  # no tools, and none heard of
        paradigm = PARADIGMS[name]
        offer, params = _offer(request, params, self._bound(paradigm) if may_bind else "")
        if offer.is_bound:
            params |= paradigm.bind(offer)
        asked = ask(request, paradigm, offer, params)
        # Where nothing may be called, nothing is read as a call.
        return self._read(asked, paradigm.answer(offer)) if offer.tools else self._model.stream(asked)

    def _bound(self, paradigm: Paradigm) -> Binds:
        """What this paradigm can be bound by here: a schema says enough for the one whose answer is all JSON."""
        return self._binds if paradigm.binds_answers or self._binds == "grammar" else ""

    async def _read(self, request: ModelRequest, answer: Answer) -> AsyncIterator[Sequence[Chunk]]:
        reader = _Reader(answer)
        batches = self._model.stream(request)
        try:
            async for batch in batches:
                yield reader.feed(batch)
        except ModelError:
            yield reader.end()  # what was held back had come all the same
            raise
        finally:
            if (aclose := getattr(batches, "aclose", None)) is not None:
                await aclose()
        yield reader.end()


class _Reader:
    """Chunks of a model → chunks with the calls that stood in its text."""

    def __init__(self, answer: Answer) -> None:
        self._answer, self._thinking = answer, Thinking()
        self._is_over = False

    def feed(self, batch: Sequence[Chunk]) -> list[Chunk]:
        out: list[Chunk] = []
        for chunk in batch:
            match chunk:
                case TextChunk():
                    self._text(chunk, out)
                case CallChunk() | OpaqueChunk():
                    out.append(replace(chunk, slot=chunk.slot + _OWN_CALLS))
                case FinishChunk():
                    out += self.end()
                    is_over = chunk.reason == "stop" or (chunk.reason == "length" and self._answer.is_dropped)
                    is_called = self._answer.calls and is_over
                    out.append(replace(chunk, reason="tool_calls") if is_called else chunk)
                case _:
                    out.append(chunk)
        return out

    def _text(self, chunk: TextChunk, out: list[Chunk]) -> None:
        if self._thinking.is_over:
            self._answer.feed(chunk.text, out)
            return
        seen: list[Chunk] = []
        self._thinking.feed(chunk.text, seen)
        self._pass(seen, out)

    def _pass(self, seen: Sequence[Chunk], out: list[Chunk]) -> None:
        for chunk in seen:
            if isinstance(chunk, TextChunk):
                self._answer.feed(chunk.text, out)
            else:
                out.append(chunk)

    def end(self) -> list[Chunk]:
        """There is no more text."""
        out: list[Chunk] = []
        if not self._is_over:
            self._is_over = True
            seen: list[Chunk] = []
            self._thinking.end(seen)
            self._pass(seen, out)
            self._answer.end(out)
        return out


def _offer(request: ModelRequest, params: dict[str, Any], binds: Binds) -> tuple[Offer, dict[str, Any]]:
    """What may be called, and the parameters that are left for the model."""
    choice = params.pop("tool_choice", "auto")
    is_single = params.pop("parallel_tool_calls", True) is False
    tools = [] if choice == "none" else request.tools
    schema = params.pop("output_schema", None) if tools else None
    if not isinstance(choice, str) or (choice != "required" and choice not in {tool.name for tool in tools}):
        choice = "auto"
    return Offer(tools, choice, schema, is_single, bool(tools and binds), binds == "grammar"), params


async def _refuse(why: str) -> AsyncIterator[Sequence[Chunk]]:
    raise ModelError(why, kind="request")
    yield ()  # so that it raises when it is read, as every stream does


def _no_such(paradigm: object) -> str:
    return f"there is no paradigm called {paradigm!r}; there are: {NATIVE}, {', '.join(PARADIGMS)}"


__all__ = ["NATIVE", "PARADIGMS", "Binds", "Offer", "Paradigm", "Prompted"]
