"""What is protected → a judge of paths that is quick for the many that are not."""

from __future__ import annotations

import unicodedata

from everturn.core.globs import RUN, Fits, fold, fold_tokens, path_glob, tokens_of
from everturn.sandbox.keeping import Judge, Kind
from everturn.tools.files.protected import Protected


def judging(protect: Protected) -> Judge:
    """Say of a path how it is kept. A name that no pattern ends in is not looked at twice."""
    may_fit = _names((*protect.secrets, *protect.starters))

    def judge(path: str) -> tuple[Kind, int]:
        if not may_fit(path.rpartition("/")[2]):
            return "", 0
        if pattern := protect.keeps(path, writing=False):
            return "hidden", _pins(pattern)
        pattern = protect.keeps(path, writing=True)
        return ("fixed", _pins(pattern)) if pattern else ("", 0)

    return judge


def _pins(pattern: str) -> int:
    """How many folders above what fits a pattern must keep their names, or it would not fit any more; -1: all."""
    first, *rest = pattern.removesuffix("/**").strip("/").split("/")
    return len(rest) - 1 if first == "**" and rest and "**" not in rest else -1


def _names(patterns: tuple[str, ...]) -> Fits:
    exact: set[str] = set()
    starts: list[str] = []
    ends: list[str] = []
    others: list[Fits] = []
    for pattern in patterns:
        tokens = fold_tokens(tokens_of(pattern.removesuffix("/**").strip("/").rpartition("/")[2]))
        match tokens:
            case [str(name)]:
                exact.add(name)
            case [str(start), int(run)] if run == RUN:
                starts.append(start)
            case [int(run), str(end)] if run == RUN:
                ends.append(end)
            case _:
                others.append(path_glob(tokens))
    begins, stops = tuple(starts), tuple(ends)

    def fits(name: str) -> bool:
        seen = name if name.isascii() else "".join(char for char in name if unicodedata.category(char) != "Cf")
        folded = fold(seen)
        return (
            folded in exact
            or folded.startswith(begins)
            or folded.endswith(stops)
            or any(is_fit(folded) for is_fit in others)
        )

    return fits
