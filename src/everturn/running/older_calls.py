"""Older calls: the calls of a branch above its last summary, which turns do not read.

A call is found through the index that the summaries wrote (`core.projections.call_index`). Without one, the messages above the
summary are read once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from typing import Final

from everturn.core.history import without_refused
from everturn.core.messages import Message
from everturn.core.parts import ToolPart
from everturn.core.projections.call_index import CallIndexPage, IndexedCall, load_page, make_page
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, UnknownMessage

MAX_CACHED_PAGES: Final = 256

# A page never changes, and its name is its hash.
_PAGES: OrderedDict[str, CallIndexPage] = OrderedDict()


async def read_page(store: Store, name: str) -> CallIndexPage | None:
    """A page of the call index; None if it is missing or cannot be read."""
    if (page := _PAGES.get(name)) is not None:
        _PAGES.move_to_end(name)
        return page
    try:
        page = load_page(await store.blob(name))
    except (UnknownMessage, ConfigError):
        return None
    if page is not None:
        _PAGES[name] = page
        if len(_PAGES) > MAX_CACHED_PAGES:
            _PAGES.popitem(last=False)
    return page


class OlderCalls:
    """The calls above the messages that a turn has read: those of the branch that ends at `leaf`."""

    def __init__(self, store: Store, session: str, leaf: str, index: str) -> None:
        self._store, self._session, self._leaf, self._index = store, session, leaf, index
        self._messages: list[Message] | None = None

    async def read_messages(self) -> list[Message]:
        """All messages above, oldest first: what this class is there to avoid."""
        if self._messages is None:
            self._messages = without_refused(await self._store.path(self._session, self._leaf))
        return self._messages

    async def pages(self) -> AsyncIterator[CallIndexPage]:
        """The pages of the index, newest first; one of all messages, if a page is missing."""
        listed = set[str]()
        name: str | None = self._index or None  # None: the index ends before the branch does
        while name:
            page = await read_page(self._store, name)
            if page is None:
                name = None
                break
            listed.update(call.call for call in page.calls)
            yield page
            name = page.earlier
        if name is None:
            whole = make_page(await self.read_messages())
            calls = tuple(call for call in whole.calls if call.call not in listed)
            yield CallIndexPage(calls=calls, reported=whole.reported)

    async def calls(self) -> AsyncIterator[IndexedCall]:
        """Every call, newest first: for lists, which read no more of it than they show."""
        async for page in self.pages():
            for call in reversed(page.calls):
                yield call

    async def reported(self) -> frozenset[str]:
        """The calls whose late result the model was told of."""
        async for page in self.pages():
            return frozenset(page.reported)
        return frozenset()

    async def find(self, call: str) -> ToolPart | None:
        """A call and its result, as it is in the log now; None: it is not on this branch."""
        return (await self.find_all((call,))).get(call)

    async def find_all(self, wanted: Iterable[str]) -> dict[str, ToolPart]:
        """Those of the calls that are on this branch, oldest first."""
        missing, found = set(wanted), list[IndexedCall]()
        if missing:
            async for call in self.calls():
                if call.call in missing:
                    missing.discard(call.call)
                    found.append(call)
                    if not missing:
                        break
        return await self.load(reversed(found))

    async def load(self, calls: Iterable[IndexedCall]) -> dict[str, ToolPart]:
        """The calls with their results, as they are in the log now; each message is read once."""
        parts: dict[str, ToolPart] = {}
        messages: dict[str, tuple[Message, ...]] = {}
        for call in calls:
            if call.message not in messages:
                try:
                    messages[call.message] = tuple(await self._store.path(self._session, call.message, 1))
                except UnknownMessage:
                    messages[call.message] = ()
            for message in messages[call.message]:
                parts.update((p.call, p) for p in message.parts if type(p) is ToolPart and p.call == call.call)
        return parts
