"""Path policy of the shell sandbox: decides which paths are hidden or read-only, quickly for the many that are
neither.
"""

from __future__ import annotations

import unicodedata

from everturn.core.rules.globs import ANY_RUN, TextMatcher, compile_path_glob, fold_text, fold_tokens, parse_glob
from everturn.sandbox.hidden_paths import PathPolicy, Protection
from everturn.tools.files.protected import ProtectedPaths


def make_path_policy(protect: ProtectedPaths) -> PathPolicy:
    """Make the function that classifies a path. A name that no pattern ends in is checked only once."""
    may_fit = _names((*protect.secrets, *protect.write_protected))

    def path_policy(path: str) -> tuple[Protection, int]:
        if not may_fit(path.rpartition("/")[2]):
            return "", 0
        if pattern := protect.matching_pattern(path, writing=False):
            return "hidden", _pins(pattern)
        pattern = protect.matching_pattern(path, writing=True)
        return ("fixed", _pins(pattern)) if pattern else ("", 0)

    return path_policy


def _pins(pattern: str) -> int:
    """How many parent folders of a match must keep their names for the pattern to match; -1: all."""
    first, *rest = pattern.removesuffix("/**").strip("/").split("/")
    return len(rest) - 1 if first == "**" and rest and "**" not in rest else -1


def _names(patterns: tuple[str, ...]) -> TextMatcher:
    exact: set[str] = set()
    starts: list[str] = []
    ends: list[str] = []
    others: list[TextMatcher] = []
    for pattern in patterns:
        tokens = fold_tokens(parse_glob(pattern.removesuffix("/**").strip("/").rpartition("/")[2]))
        match tokens:
            case [str(name)]:
                exact.add(name)
            case [str(start), int(run)] if run == ANY_RUN:
                starts.append(start)
            case [int(run), str(end)] if run == ANY_RUN:
                ends.append(end)
            case _:
                others.append(compile_path_glob(tokens))
    begins, stops = tuple(starts), tuple(ends)

    def fits(name: str) -> bool:
        visible = name if name.isascii() else "".join(char for char in name if unicodedata.category(char) != "Cf")
        folded = fold_text(visible)
        return (
            folded in exact
            or folded.startswith(begins)
            or folded.endswith(stops)
            or any(is_fit(folded) for is_fit in others)
        )

    return fits
