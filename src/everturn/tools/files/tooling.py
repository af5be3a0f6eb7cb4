"""A struct of arguments and a function → a tool on files: arguments checked, paths read and held against what is
protected before anybody is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from everturn.core.canonical import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import Preview, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, ToolError
from everturn.tools.files.paths import parent_of, read_name, shown
from everturn.tools.files.protected import Protected
from everturn.tools.files.system import FileSystem


class PathArguments(Struct, forbid_unknown_fields=True, kw_only=True):
    """What every one of these tools is given at least."""

    path: str


A = TypeVar("A", bound=PathArguments)


class Place(Struct, frozen=True):
    """Where tools work: the file system of a call, what is protected there, and whether hidden files are searched."""

    open: Callable[[ToolContext], FileSystem]
    protected: Protected
    hidden: bool = False


class FileTool(Generic[A]):
    """A tool that reads."""

    writes = False

    def __init__(
        self,
        spec: ToolSpec,
        kind: type[A],
        place: Place,
        do: Callable[[Place, A, ToolContext], Awaitable[Output]],
    ) -> None:
        self._spec, self._kind, self._place, self._do = spec, kind, place, do

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject:
        """Check arguments, and say what is meant by them: the path without what means nothing, defaults filled in."""
        return cast(JsonObject, msgspec.to_builtins(self._read(arguments)))

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Do it."""
        return self._do(self._place, self._read(arguments), context)

    def _read(self, arguments: JsonObject) -> A:
        try:
            read = msgspec.convert(arguments, self._kind, strict=False)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            names = ", ".join(cast("dict[str, Any]", self._spec.schema["properties"]))
            raise BadArguments(
                f"the arguments of {self._spec.name} are wrong: {error}. Its parameters are: {names}"
            ) from None
        read.path = read_name(read.path)
        self._place.protected.check(read.path, writing=self.writes)
        return read


class WritingTool(FileTool[A]):
    """A tool that writes, and can show beforehand what it would."""

    writes = True

    def __init__(
        self,
        spec: ToolSpec,
        kind: type[A],
        place: Place,
        do: Callable[[Place, A, ToolContext], Awaitable[Output]],
        show: Callable[[Place, A, ToolContext], Awaitable[Preview]],
    ) -> None:
        super().__init__(spec, kind, place, do)
        self._show = show

    async def preview(self, arguments: JsonObject, context: ToolContext) -> Preview | None:
        """What would change, as a diff, and from which content that was made."""
        return await self._show(self._place, self._read(arguments), context)


def schema_of(kind: type[PathArguments]) -> JsonObject:
    """The schema of arguments, without titles."""
    _, found = msgspec.json.schema_components([kind])
    schema = found[kind.__name__]
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


async def missing(system: FileSystem, path: str, protected: Protected) -> ToolError:
    """Say that something is not there, and what is that it may have been meant for."""
    directory, name = parent_of(path), path.rpartition("/")[2]
    try:
        names = [entry.name for entry in await system.list(directory)]
    except ToolError:
        return ToolError(
            f"there is no {shown(path)}, nor a directory {shown(directory)}; list_directory shows what there is"
        )
    near = get_close_matches(name, names[:1000], n=3, cutoff=0.6)
    said = f"there is no {shown(path)}"
    if near:
        return ToolError(f"{said}; in {shown(directory)} there is {', '.join(map(shown, near))}")
    return ToolError(f"{said}; list_directory shows what there is in {shown(directory)}")
