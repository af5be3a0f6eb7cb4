from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw  # the sqlite3 of many Pythons cannot load extensions
import sqlite_vec  # pyright: ignore[reportMissingTypeStubs]

from everturn.plugins import Document

TEXTS = "+source text, +content text"  # stored beside the vectors
FIND = "SELECT content, source, 1 - distance FROM shelf WHERE vector MATCH ? AND k = ?"
Embed = Callable[[str], list[float]]


class VectorShelf:
    """Documents in SQLite, found by sqlite-vec."""

    def __init__(self, path: str, embed: Embed, size: int) -> None:
        self._embed, self._lock = embed, asyncio.Lock()
        self._db: Any = apsw.Connection(path)
        self._db.enable_load_extension(True)
        self._db.load_extension(sqlite_vec.loadable_path())
        columns = f"vector float[{size}] distance_metric=cosine, {TEXTS}"
        self._db.execute(f"CREATE VIRTUAL TABLE shelf USING vec0({columns})")

    def add(self, texts: Mapping[str, str]) -> None:
        rows = [(self._vector(text), source, text) for source, text in texts.items()]
        insert = "INSERT INTO shelf (vector, source, content) VALUES (?, ?, ?)"
        self._db.executemany(insert, rows)

    def _vector(self, text: str) -> bytes:
        return sqlite_vec.serialize_float32(self._embed(text))

    async def retrieve(self, query: str, *, limit: int) -> Sequence[Document]:
        async with self._lock:
            return await asyncio.to_thread(self._find, query, limit)

    def _find(self, query: str, limit: int) -> list[Document]:
        found = self._db.execute(FIND, (self._vector(query), limit))
        return [Document(text, source, score) for text, source, score in found]
