"""The model: a program that finds a bug by experiment. It knows the words of the task and the results of its calls.

It runs the tests, reads the first failing one, looks for what that test uses, and reads those files. Then it changes one token
of a line at a time, near what the test uses first, and runs the failing test after each change. A change that helps stays if all
tests pass; then it commits. `next_step` is a function of the conversation: after a crash it goes on where the conversation ends.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from tools.real_job.mutation import Mutation, mutations

Call = tuple[str, dict[str, Any]]
Program = Generator[Call, str, str]
PYTEST = re.compile(r"^FAILED ([^\s:]+)::(\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)
UNITTEST = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)$", re.MULTILINE)
PASSED = re.compile(r"^[1-9]\d* passed|^OK\b|\b[1-9]\d* passed", re.MULTILINE)
PLACE = re.compile(r'^([\w./-]+\.py):(\d+): |^  File "/work/([\w./-]+\.py)", line (\d+)', re.MULTILINE)
HEAD = re.compile(r"^\[lines .*\]\n")
UNKNOWN = "Whether it took effect is not known"
COMMON = {"assert", "assertEqual", "assertRaises", "assertTrue", "len", "list", "str", "int", "range", "raises", "dict"}
DONE = "The tests pass again"


def next_step(task: str, results: Sequence[str]) -> Call | str:
    """The next call, or the last words, after some results."""
    program = fix(task)
    step: Call | str = next(program)
    try:
        for result in results:
            step = program.send(result)
    except StopIteration as end:
        return str(end.value)
    return step


def fix(task: str) -> Program:
    """Find the bug, fix it, and commit."""
    found = re.search(r"`([^`]+)`", task)
    command = found[1] if found else "python3 -m pytest"
    yield from _todos(0)
    yield "list_directory", {"path": "."}
    printed = yield from _run(f"{command} -q")
    failures = find_failures(printed)
    if not failures:
        return f"No test fails:\n\n```\n{printed[-500:]}\n```"
    file, test, selector = failures[0]
    places = [(path or other, int(line or number)) for path, line, other, number in PLACE.findall(printed)]
    found_test = yield "search_files", {"text": f"def {test}(", "glob": "*.py"}
    first = re.search(rf"{re.escape(file)}:(\d+):", found_test)
    body = yield "read_file", {"path": file, "offset": int(first[1]) if first else 1, "limit": 40}
    yield from _todos(1)
    definitions, order = dict[str, list[tuple[str, int]]](), list[str]()
    for used in _names(_function(body, test)):
        listed = yield "search_files", {"text": rf"^\s*(?:def|class) {used}\b", "regex": True, "glob": "*.py"}
        where = [(path, int(line)) for path, line in re.findall(r"^(\S+?\.py):(\d+):", listed, re.MULTILINE)]
        if where := [(path, line) for path, line in where if not _is_test(path)]:
            definitions[used] = where
            order.append(used)
        if len(order) >= 6:
            break
    sources: dict[str, str] = {}
    wanted = [path for path, _ in places if not _is_test(path)]
    wanted += [path for used in order for path, _ in definitions[used]]
    for path in list(dict.fromkeys(wanted))[:4]:
        sources[path] = yield from _read(path)
    yield from _todos(2)
    starts = [place for place in places if place[0] in sources]
    starts += [place for used in order for place in definitions[used]]
    report = yield from _try_all(sources, starts, f"{command} -q {selector}", f"{command} -q")
    if not report:
        return "I tried every change that I could think of, and the test still fails."
    yield "run_shell", {"command": "git diff --stat"}
    yield from _todos(3)
    committed = yield from _run(f'git commit -a -m "Fix {test}"')
    yield from _todos(4)
    return f"{DONE}. {report} Commit: {committed.strip().splitlines()[0]}"


def _read(path: str) -> Program:
    """The text of a file, page by page."""
    page = yield "read_file", {"path": path, "limit": 5000}
    text = HEAD.sub("", page)
    while more := re.search(r"go on with offset=(\d+)", page.partition("\n")[0]):
        page = yield "read_file", {"path": path, "offset": int(more[1]), "limit": 5000}
        text = text.rstrip("\n") + "\n" + HEAD.sub("", page)
    return text


def find_failures(printed: str) -> list[tuple[str, str, str]]:
    """The failing tests in the output of pytest or unittest: file, name, and what selects it on the command line."""
    found = [(file, name.rpartition("::")[2], f"{file}::{name}") for file, name in PYTEST.findall(printed)]
    for name, dotted in UNITTEST.findall(printed):
        selector = dotted if dotted.endswith(f".{name}") else f"{dotted}.{name}"
        found.append((f"{'/'.join(selector.split('.')[:-2])}.py", name, selector))
    return found


def _try_all(sources: dict[str, str], starts: Sequence[tuple[str, int]], single_test: str, all_tests: str) -> Program:
    """Try one change after another; what was changed."""
    for path, mutation in _candidates(sources, starts):
        lines = sources[path].splitlines(keepends=True)
        old = lines[mutation.line - 1]
        new = mutation.apply(old)
        yield from _replace(path, lines, mutation.line, new)
        printed = yield from _run(single_test)
        if PASSED.search(printed) and not find_failures(printed):
            printed = yield from _run(all_tests)
            if PASSED.search(printed) and not find_failures(printed):
                return f"`{path}:{mutation.line}` had `{mutation.old}` instead of `{mutation.new}`."
        changed = [*lines]
        changed[mutation.line - 1] = new
        yield from _replace(path, changed, mutation.line, old)
    return ""


def _candidates(sources: dict[str, str], starts: Sequence[tuple[str, int]]) -> Iterator[tuple[str, Mutation]]:
    """Changes, the most likely first: in the functions that the test uses, in those that these use, and then anywhere."""
    seen: set[tuple[str, Mutation]] = set()
    queue = [place for place in dict.fromkeys(starts) if place[0] in sources]
    visited: set[tuple[str, int]] = set()
    while queue:
        path, line = queue.pop(0)
        begin, end = _block(sources[path], line)
        if (path, begin) in visited:
            continue
        visited.add((path, begin))
        for mutation in mutations(sources[path]):
            if begin <= mutation.line <= end and (path, mutation) not in seen:
                seen.add((path, mutation))
                yield path, mutation
        text = "\n".join(sources[path].splitlines()[begin - 1 : end])
        for other, source in sources.items():
            for number, row in enumerate(source.splitlines(), 1):
                defined = re.match(r"\s*def (\w+)", row)
                if defined and re.search(rf"\b{defined[1]}\b", text):
                    queue.append((other, number))
    for path, source in sources.items():
        for mutation in mutations(source):
            if (path, mutation) not in seen:
                yield path, mutation


def _block(source: str, line: int) -> tuple[int, int]:
    """The function or class around a line: its first and last line."""
    rows = source.splitlines()
    begin = line
    while begin > 1 and not re.match(r"\s*(?:def|class) ", rows[begin - 1]):
        begin -= 1
    indent = len(rows[begin - 1]) - len(rows[begin - 1].lstrip())
    end = begin
    for number in range(begin + 1, len(rows) + 1):
        row = rows[number - 1]
        if row.strip() and len(row) - len(row.lstrip()) <= indent and not row.lstrip().startswith((")", "]", "}")):
            break
        end = number
    return begin, end


def _replace(path: str, lines: list[str], number: int, new: str) -> Program:
    """Replace a line, with as many lines above it as make the place unique."""
    text, first = "".join(lines), number - 1
    while first and text.count("".join(lines[first:number])) > 1:
        first -= 1
    old_text = "".join(lines[first:number])
    new_text = "".join([*lines[first : number - 1], new])
    result = yield "edit_file", {"path": path, "old_text": old_text, "new_text": new_text}
    if UNKNOWN in result:
        read = yield from _read(path)
        if read.splitlines()[number - 1] != new.rstrip("\n"):
            result = yield "edit_file", {"path": path, "old_text": old_text, "new_text": new_text}
    return result


def _run(command: str) -> Program:
    """Run a command; again if the process died while it ran."""
    result = yield "run_shell", {"command": command}
    if UNKNOWN in result:
        result = yield "run_shell", {"command": command}
    return result


def _function(text: str, name: str) -> str:
    """The function of that name in a text."""
    begin = text.find(f"def {name}(")
    rest = text[max(begin, 0) :]
    end = re.search(r"\n\s*(?:@|def |class )", rest[1:])
    return rest[: end.start() + 1] if end else rest


def _names(text: str) -> list[str]:
    """What a test calls or refers to, the most specific first."""
    names = re.findall(r"([A-Za-z_]\w*)\(", text) + re.findall(r"\b([A-Za-z_]\w{3,})\b", text)
    known = dict.fromkeys(name for name in names if name not in COMMON and not name.startswith("test"))
    return list(known)[:8]


def _is_test(path: str) -> bool:
    return any(part.startswith("test") for part in PurePosixPath(path).parts)


STEPS = ("Run the tests", "Find what the failing test uses", "Find the change that makes it pass", "Commit")


def _todos(done: int) -> Program:
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(STEPS)
    result = yield "write_todos", {"todos": [{"content": t, "status": s} for t, s in zip(STEPS, states, strict=False)]}
    return result
