"""The rig's model, in a thread of its own, behind real HTTP. `doing` says what it does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from everturn.testing.provider import Item, Provider, RecordedRequest, ScriptedUsage
from tests.helpers.scripted_server.replies import Asked, choose

NAMES: Final = ("rig-model", "rig-other")


def read(body: dict[str, Any], default: float) -> Asked:
    """A request of Chat Completions → what it comes to."""
    messages: list[dict[str, Any]] = body["messages"]
    last = max((at for at, message in enumerate(messages) if _is_said(message)), default=0)
    after = messages[last + 1 :]
    request = Asked(
        text=_task(_text(messages[last])) if _is_summary(messages[0]) else _text(messages[last]),
        step=sum(bool(message.get("tool_calls")) for message in after),
        results=[_text(message) for message in after if message["role"] == "tool"],
        tools=frozenset(tool["function"]["name"] for tool in body.get("tools") or ()),
    )
    request.pace = request.number("pace", -1) / 1000 if "pace" in request.text else default
    return request


def _is_said(message: dict[str, Any]) -> bool:
    """Whether a person said it: what the runtime has to tell is also brought to a model as from a user."""
    return message["role"] == "user" and not _text(message).lstrip().startswith("<notice ")


def _is_summary(system: dict[str, Any]) -> bool:
    return system["role"] == "system" and _text(system).startswith("You write the summary")


def _task(prompt: str) -> str:
    """What is asked for in a request for a summary, without the conversation above it."""
    return prompt.rpartition("# Task")[2]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class ModelServer:
    """A provider in a thread of its own, with the rig's two models."""

    def __init__(self, pace: float = 0.0) -> None:
        self.pace = pace
        self._times: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rig-model", daemon=True)

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        self._provider = Provider()
        for name in NAMES:
            self._provider.script(name, [self._step])
        self._run(self._provider.__aenter__())

    def stop(self) -> None:
        """Listen no more."""
        self._run(self._provider.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def _run(self, deed: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(deed, self._loop).result(10)

    @property
    def url(self) -> str:
        """The base of its API."""
        return f"{self._provider.url}/v1"

    @property
    def seen(self) -> list[RecordedRequest]:
        """The last requests."""
        return self._provider.seen

    def bodies(self, word: str) -> Iterator[dict[str, Any]]:
        """The requests in which a word stands, oldest first."""
        return (request.body for request in self.seen if word in json.dumps(request.body, ensure_ascii=False))

    def _step(self, body: dict[str, Any]) -> Sequence[Item]:
        key = json.dumps(body["messages"])
        self._times[key] = times = self._times.get(key, 0) + 1
        request = read(body, self.pace)
        request.asked = times
        length = len(key) // 4
        items = choose(request)
        if any(isinstance(item, ScriptedUsage) for item in items):
            return items
        return [*items, ScriptedUsage(input=length, output=40, cached=length // 2)]
