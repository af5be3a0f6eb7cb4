"""docs_src/ → the code blocks of README.md and docs/, so that the pages show tested code and read well on a code host.

A block that follows the comment `<!-- example: docs_src/first.py -->` has the text of that file; with
`docs_src/start.sh:run`, the lines between `[start:run]` and `[end:run]` in it.
`python scripts/doc_examples.py` writes the blocks; with `--check` it only says which pages are out of date.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LANGUAGES = {".py": "python", ".sh": "sh", ".mjs": "javascript", ".js": "javascript", ".toml": "toml", ".json": "json"}
BLOCK = re.compile(
    r"^(?P<indent> *)<!-- example: (?P<name>[^ ]+) -->\n(?P=indent)(?P<fence>`{3,})[^\n]*\n(?P<text>.*?)^(?P=indent)(?P=fence)\n",
    re.MULTILINE | re.DOTALL,
)
MARKER = re.compile(r"--8<-- \[(start|end):(\w+)\]")


def pages() -> Iterator[Path]:
    """Every page that may show an example."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


def example(name: str) -> str:
    """The lines of an example, or of one section of it, without the markers of sections."""
    path, _, section = name.partition(":")
    lines, inside = list[str](), not section
    found = inside
    for line in (ROOT / path).read_text(encoding="utf-8").splitlines():
        if marker := MARKER.search(line):
            if marker[2] == section:
                inside = marker[1] == "start"
                found = True
        elif inside:
            lines.append(line)
    if not found:
        raise SystemExit(f"{path} has no section '{section}': write `# --8<-- [start:{section}]` into it")
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


def write_block(match: re.Match[str]) -> str:
    """A block with the text that its file has now."""
    indent, name = match["indent"], match["name"]
    text = example(name)
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * max(longest + 1, 3)
    language = LANGUAGES.get(Path(name.partition(":")[0]).suffix, "text")
    body = textwrap.indent(text, indent)
    return f"{indent}<!-- example: {name} -->\n{indent}{fence}{language}\n{body}{indent}{fence}\n"


def render(page: str) -> str:
    """A page with every example as its file is now."""
    if len(BLOCK.findall(page)) != page.count("<!-- example: "):
        raise SystemExit("a comment `<!-- example: … -->` has no code block directly below it")
    return BLOCK.sub(write_block, page)


def main() -> int:
    """Write the pages, or check them."""
    old = {page: text for page in pages() if (text := render(page.read_text("utf-8"))) != page.read_text("utf-8")}
    if "--check" not in sys.argv:
        for page, text in old.items():
            page.write_text(text, encoding="utf-8")
        return 0
    for page in old:
        print(f"{page.relative_to(ROOT)}: an example changed; run python scripts/doc_examples.py", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
