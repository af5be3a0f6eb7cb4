"""Script library of the provider: finds the script and the step that answer a request, and caches rendered answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from everturn.testing.provider.answers import Answer
from everturn.testing.provider.builtin import builtin, without_family
from everturn.testing.provider.faults import Format, Refused
from everturn.testing.provider.progress import call_ids, steps_taken
from everturn.testing.provider.render.answer import ending_of, make_call_ids, render
from everturn.testing.provider.render.media_models import builtin_media
from everturn.testing.provider.render.writers import Options, options_of, prepare_items, writer_for
from everturn.testing.provider.script import Call, HostedTool, Item, Script
from everturn.testing.provider.server_tools import place_server_tools
from everturn.testing.provider.strict.converse_body import as_messages
from everturn.testing.provider.strict.media import check_chat_model

MAX_RENDERED = 512
_Key: TypeAlias = "tuple[str, int, Format, Options, tuple[str, ...]]"


class ScriptLibrary:
    """The scripts of a provider and the answers made from them."""

    def __init__(self) -> None:
        self._scripts: dict[str, Script] = {}
        self._request_counts: dict[str, int] = {}
        self._rendered: dict[_Key, Answer] = {}

    def add(self, name: str, script: Script) -> None:
        """Add a script; it replaces any other of that name."""
        self._scripts[name] = script
        self._request_counts.pop(name, None)
        self._rendered.clear()

    def find(self, format: Format, model: str) -> tuple[str, Script]:
        """The script of a model, and the name under which it is registered.

        Raises:
            Refused: there is none.
        """
        for name in (model, without_family(model)):
            if name is not None and (script := self._known(name)) is not None:
                return name, script
        if format == "messages":
            raise Refused(f"model: {model}", status=404)
        if format == "converse":
            text = "Could not resolve the foundation model from the provided model identifier."
            raise Refused(text, status=404)
        if format == "gemini":
            raise Refused(
                f"models/{model} is not found for API version v1beta, or is not supported for generateContent. Call "
                "ListModels to see the list of available models and their supported methods.",
                status=404,
            )
        if format == "ollama":
            raise Refused(f"model '{model}' not found", status=404)
        text = f"The model `{model}` does not exist or you do not have access to it."
        raise Refused(text, None, "model_not_found", status=404)

    def answer(self, name: str, script: Script, format: Format, model: str, body: dict[str, Any]) -> Answer:
        """The answer to a request."""
        given, body = body, as_messages(body) if format == "converse" else body
        taken = steps_taken(format, body)
        at = min(self._count(name) if script.is_sequence else taken, len(script.steps) - 1)
        step = script.steps[at]
        is_made_up = callable(step)
        items = _made_up(step, given) if callable(step) else step
        if any(isinstance(item, HostedTool) for item in items):
            items, is_made_up = place_server_tools(format, model, items, body), True
        check_chat_model(format, model, items)
        options = options_of(format, body, is_first=taken == 0)
        names = [item.name for item in items if isinstance(item, Call) and not item.id]
        ids = make_call_ids(format, model, names, call_ids(format, body)) if names else ()
        key: _Key = (model, at, format, options, ids)
        answer = None if is_made_up else self._rendered.get(key)
        if answer is None:
            items = prepare_items(format, items, options)
            writer = writer_for(format, model, ending_of(items), options, seed=f"{at}{ids}")
            answer = render(items, writer, format, model, script.pace, ids)
            if not is_made_up:
                self._keep(key, answer)
        return answer

    def items(self, name: str, script: Script, body: dict[str, Any]) -> Sequence[Item]:
        """The items of a model that answers a request at once, without steps."""
        step = script.steps[min(self._count(name), len(script.steps) - 1) if script.is_sequence else 0]
        return _made_up(step, body) if callable(step) else step

    def _known(self, name: str) -> Script | None:
        return self._scripts.get(name) or builtin(name) or builtin_media(name)

    def _count(self, name: str) -> int:
        at = self._request_counts.get(name, 0)
        self._request_counts[name] = at + 1
        return at

    def _keep(self, key: _Key, answer: Answer) -> None:
        if len(self._rendered) >= MAX_RENDERED:
            self._rendered.clear()
        self._rendered[key] = answer


def _made_up(step: Callable[[dict[str, Any]], Sequence[Item]], body: dict[str, Any]) -> Sequence[Item]:
    """The items that a function returns for a request; if it fails, the client gets the error, as there is no other
    reader.
    """
    try:
        return step(body)
    except Exception as error:
        raise Refused(f"The script of this model failed: {error!r}", status=500) from error
