"""Router: finds the route of a method and a path. The path is split before it is decoded, so `%2f` separates nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everturn.errors import ConfigError
from everturn.server.decode import decode_path_id
from everturn.server.route import Route


class _Node:
    """A node in the tree of path segments."""

    def __init__(self) -> None:
        self.named: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.methods: dict[str, Route] = {}

    def child(self, part: str) -> _Node:
        if not part.startswith("{"):
            return self.named.setdefault(part, _Node())
        self.any = self.any or _Node()
        return self.any


class RouteTable:
    """All routes, in a tree of path segments."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = list(routes)
        self._root = _Node()
        names: set[str] = set()
        for route in self.routes:
            node = self._root
            for part in route.path[1:].split("/"):
                node = node.child(part)
            if route.method in node.methods or route.name in names:
                raise ConfigError(f"there are two routes {route.method} {route.path}, or two called {route.name!r}")
            names.add(route.name)
            node.methods[route.method] = route

    def find(self, method: str, raw_path: str) -> tuple[Route | None, dict[str, str | None], list[str]]:
        """The route and its ids (None for one that cannot be decoded); or no route, and the methods that the path allows."""
        allowed: set[str] = set()
        for ids, methods in _walk(self._root, raw_path[1:].split("/"), []):
            if method in methods:
                route = methods[method]
                names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
                return route, dict(zip(names, ids, strict=True)), []
            allowed.update(methods)
        return None, {}, sorted(allowed)


def _walk(
    node: _Node, segments: list[str], ids: list[str | None]
) -> Iterator[tuple[list[str | None], dict[str, Route]]]:
    if not segments:
        if node.methods:
            yield ids, node.methods
        return
    head, rest = segments[0], segments[1:]
    if head in node.named:
        yield from _walk(node.named[head], rest, ids)
    if node.any is not None and head:
        yield from _walk(node.any, rest, [*ids, decode_path_id(head)])
