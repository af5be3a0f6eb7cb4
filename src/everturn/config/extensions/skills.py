"""Skills as folders: SKILL.md with a name and a description, and the files beside it.

The hash of a skill covers its SKILL.md and every file beside it, so that trust in a skill ends when any of them changes.
`allowed-tools` gives nothing: the rules of the folder hold for whatever a skill asks the model to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from everturn.config.extensions.extension import (
    NAME,
    Extension,
    ExtensionProblem,
    Scope,
    hash_bytes,
    one_line,
    visible_text,
)
from everturn.config.extensions.file_scan import (
    MAX_TEXT,
    check_no_link,
    find_links,
    hash_file,
    read_text,
    walk_files,
)
from everturn.config.extensions.frontmatter import parse_document, text_field
from everturn.errors import ConfigError

SKILL_FILE: Final = "SKILL.md"
MAX_SKILLS: Final = 200
MAX_FILES: Final = 200  # files beside a SKILL.md
MAX_FILE: Final = 1_000_000  # bytes of a file beside it; a larger one cannot be loaded
NO_DESCRIPTION: Final = "it has no description; without one, the model cannot know when to use it"


def find_skills(top: Path, root: Path, scope: Scope) -> Iterator[Extension | ExtensionProblem]:
    """Find the skills below a folder such as `.claude/skills`. `root` is where paths begin: that of the project, or `/`."""
    try:
        if scope == "project":
            check_no_link(root, top)
    except ConfigError as error:
        yield ExtensionProblem(_relative(top, root), str(error))
        return
    yield from (
        ExtensionProblem(_relative(link, root), "it is a link; put the files there instead") for link in find_links(top)
    )
    count = 0
    try:
        for path in _skill_files(top):
            count += 1
            if count > MAX_SKILLS:
                yield ExtensionProblem(_relative(top, root), f"more than {MAX_SKILLS} skills; the rest is ignored")
                return
            yield read_skill(path, root, scope)
    except ConfigError as error:
        yield ExtensionProblem(_relative(top, root), str(error))


def _skill_files(top: Path) -> Iterator[Path]:
    """Yield the SKILL.md files below a folder; one inside the folder of another skill is a file of that one."""
    taken: list[Path] = []
    for path in walk_files(top):
        if path.name == SKILL_FILE and path.parent != top and not any(path.is_relative_to(other) for other in taken):
            taken.append(path.parent)
            yield path


def read_skill(path: Path, root: Path, scope: Scope) -> Extension | ExtensionProblem:
    """Read a SKILL.md and list the files beside it."""
    place, folder = _relative(path.parent, root), path.parent
    try:
        text = read_text(path)
        document = parse_document(text)
        description = one_line(text_field(document.fields, "description"))
        name = _skill_name(text_field(document.fields, "name"), folder.name)
        if not description:
            return ExtensionProblem(place, NO_DESCRIPTION)
        if not document.body.strip():
            return ExtensionProblem(place, "it has no text below the frontmatter")
        files, digest = _hash_folder(folder, text)
    except ConfigError as error:
        return ExtensionProblem(place, str(error))
    return Extension(
        "skill",
        name,
        place,
        digest,
        description,
        visible_text(document.body).strip(),
        scope,
        document.fields,
        files,
        str(folder),
    )


def _skill_name(name: str, folder: str) -> str:
    """Return the name of a skill: its own if it is one, else that of its folder."""
    for candidate in (name, folder):
        if NAME.fullmatch(candidate):
            return candidate
    raise ConfigError(f"{(name or folder)[:40]!r} is not a name for a skill; a-z, 0-9 and '-', at most 64")


def _hash_folder(folder: Path, text: str) -> tuple[tuple[str, ...], str]:
    """Return the files beside a SKILL.md that can be loaded, and the hash of all of them."""
    files: list[str] = []
    lines = [f"{SKILL_FILE} {hash_bytes(text.encode())}"]
    for path in walk_files(folder):
        relative = path.relative_to(folder).as_posix()
        if relative == SKILL_FILE:
            continue
        if len(files) >= MAX_FILES:
            raise ConfigError(f"it has more than {MAX_FILES} files")
        size = path.lstat().st_size
        if size > MAX_FILE or not relative.isprintable():
            lines.append(f"{relative!r} {size} bytes")
            continue
        lines.append(f"{relative!r} {hash_file(path, MAX_FILE)}")
        files.append(relative)
    return tuple(files), hash_bytes("\n".join(lines).encode(errors="replace"))


def load_skill_file(skill: Extension, file: str) -> str:
    """Read a file beside a SKILL.md. Only a listed file is read, so that no path leads out of the folder.

    Raises:
        ConfigError: the skill has no such file, or it is not a text.
    """
    if file not in skill.files:
        known = ", ".join(skill.files[:40]) or "none"
        raise ConfigError(f"skill {skill.name!r} has no file {file[:80]!r}; its files: {known}")
    folder = Path(skill.folder)
    check_no_link(folder, folder / file)
    return visible_text(read_text(folder / file, MAX_TEXT))


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if root != Path("/") else str(path)
