"""Base classes of the file tools: they validate the arguments and check the path against the protected paths before a
gate opens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import Preview, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, ToolError
from everturn.tools.files.file_system import FileSystem
from everturn.tools.files.paths import normalize_path, parent_path, quote_path
from everturn.tools.files.protected import ProtectedPaths


class PathArguments(Struct, forbid_unknown_fields=True, kw_only=True):
    """The arguments that every file tool has."""

    path: str


A = TypeVar("A", bound=PathArguments)


class FileToolScope(Struct, frozen=True):
    """Where the tools work: the file system of a call, the protected paths, and whether hidden files are searched."""

    open: Callable[[ToolContext], FileSystem]
    protected: ProtectedPaths
    hidden: bool = False


class FileTool(Generic[A]):
    """A tool that reads files."""

    writes = False

    def __init__(
        self,
        spec: ToolSpec,
        kind: type[A],
        scope: FileToolScope,
        do: Callable[[FileToolScope, A, ToolContext], Awaitable[Output]],
    ) -> None:
        self._spec, self._kind, self._place, self._do = spec, kind, scope, do

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject:
        """Check arguments, and return them normalized: the path without empty parts, defaults filled in."""
        return cast(JsonObject, msgspec.to_builtins(self._read(arguments)))

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Run the tool."""
        return self._do(self._place, self._read(arguments), context)

    def _read(self, arguments: JsonObject) -> A:
        try:
            read = msgspec.convert(arguments, self._kind, strict=False)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            names = ", ".join(cast("dict[str, Any]", self._spec.schema["properties"]))
            raise BadArguments(
                f"the arguments of {self._spec.name} are wrong: {error}. Its parameters are: {names}"
            ) from None
        read.path = normalize_path(read.path)
        self._place.protected.check(read.path, writing=self.writes)
        return read


class WriteFileTool(FileTool[A]):
    """A tool that writes files, and can preview the change."""

    writes = True

    def __init__(
        self,
        spec: ToolSpec,
        kind: type[A],
        scope: FileToolScope,
        do: Callable[[FileToolScope, A, ToolContext], Awaitable[Output]],
        show: Callable[[FileToolScope, A, ToolContext], Awaitable[Preview]],
    ) -> None:
        super().__init__(spec, kind, scope, do)
        self._show = show

    async def preview(self, arguments: JsonObject, context: ToolContext) -> Preview | None:
        """The change as a diff, and the hash of the content that the diff was made from."""
        return await self._show(self._place, self._read(arguments), context)


def arguments_schema(kind: type[PathArguments]) -> JsonObject:
    """The JSON Schema of the arguments, without titles."""
    _, components = msgspec.json.schema_components([kind])
    schema = components[kind.__name__]
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


async def missing_path_error(system: FileSystem, path: str, protected: ProtectedPaths) -> ToolError:
    """The error for a path that does not exist, with similar names in its directory."""
    directory, name = parent_path(path), path.rpartition("/")[2]
    try:
        names = [entry.name for entry in await system.list(directory)]
    except ToolError:
        return ToolError(
            f"there is no {quote_path(path)}, nor a directory {quote_path(directory)}; list_directory shows what there is"
        )
    near = get_close_matches(name, names[:1000], n=3, cutoff=0.6)
    message = f"there is no {quote_path(path)}"
    if near:
        return ToolError(f"{message}; in {quote_path(directory)} there is {', '.join(map(quote_path, near))}")
    return ToolError(f"{message}; list_directory shows what there is in {quote_path(directory)}")
