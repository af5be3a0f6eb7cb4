"""What the pages list is what the code has: machines, hooks, errors, names, links."""

import re
import tomllib
from pathlib import Path

import everturn
from everturn import errors
from everturn.core.calls import CALL_TRANSITIONS, FINAL_CALL_STATES
from everturn.core.hooks import HOOKS
from everturn.core.state import TRANSITIONS, Phase

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGE_WIDTH = 87  # characters of code that a page shows without scrolling


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_picture_of_the_phases_has_every_way_between_them() -> None:
    ways = {(a, b) for a, row in TRANSITIONS.items() for b in row.values() if a is not b}
    working = {Phase.PREPARING, Phase.STREAMING, Phase.TOOL_CALL, Phase.WAITING}
    # When this fails, draw the picture in docs/concepts/turn.md anew.
    assert ways == {
        (Phase.IDLE, Phase.PREPARING),
        (Phase.PREPARING, Phase.STREAMING),
        (Phase.STREAMING, Phase.TOOL_CALL),
        (Phase.STREAMING, Phase.WAITING),
        (Phase.TOOL_CALL, Phase.STREAMING),
        (Phase.TOOL_CALL, Phase.WAITING),
        (Phase.WAITING, Phase.TOOL_CALL),
        *((phase, Phase.FINALIZING) for phase in working),
        *((Phase.FINALIZING, phase) for phase in Phase if phase.is_terminal),
    }


def test_the_picture_of_a_call_has_every_way_between_its_states() -> None:
    ways: set[tuple[str, str]] = set()
    for state, row in CALL_TRANSITIONS.items():
        for to in row.values():
            ways |= {(state, end) for end in ([to] if isinstance(to, str) else to) if end != state}
    # When this fails, draw the picture in docs/concepts/calls.md anew.
    assert ways == {
        ("pending", "asking"),
        ("pending", "running"),
        ("asking", "pending"),
        ("running", "waiting"),
        ("waiting", "running"),
        ("running", "reviewing"),
        *(
            (state, end)
            for state in ("pending", "asking", "running", "waiting", "reviewing")
            for end in FINAL_CALL_STATES
        ),
    }


def test_the_guide_has_a_row_for_every_hook_and_for_nothing_else() -> None:
    rows = re.findall(r"^\| `(on_\w+)`", read("docs/guides/plugins.md"), re.MULTILINE)
    assert sorted(rows) == sorted(HOOKS)


def test_the_reference_has_every_error_and_nothing_else() -> None:
    there = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    rows = [line for line in read("docs/reference/errors.md").splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == there - {"EverturnError"}


def test_the_reference_has_every_public_name() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"^::: [\w.]+\.(\w+)$", pages, re.MULTILINE)) | set(re.findall(r"`(\w+)`", pages))
    assert set(everturn.__all__) <= listed


def test_the_reference_has_what_the_public_methods_return() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"^::: [\w.]+\.(\w+)$", pages, re.MULTILINE))
    assert listed >= {
        "EventStream",
        "MessageTree",
        "TurnState",
        "CallRecord",
        "ToolPart",
        "StepPart",
        "NoticePart",
        "Usage",
        "MemoryStore",
    }


def test_what_pip_brings_is_what_the_first_page_says() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert [re.split(r"\W", name)[0] for name in project["dependencies"]] == ["aiohttp", "yarl", "msgspec", "pydantic"]
    assert "`pip` brings aiohttp, yarl, msgspec and pydantic, and what those need" in " ".join(
        read("docs/start.md").split()
    )


def test_the_configuration_in_the_testing_guide_is_the_one_these_tests_run_with() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", read("docs/guides/testing.md"), re.DOTALL)
    shown = tomllib.loads(block)["tool"]["pytest"]["ini_options"]
    assert shown.items() <= tomllib.loads(read("pyproject.toml"))["tool"]["pytest"]["ini_options"].items()


def test_every_page_is_in_the_menu() -> None:
    menu = read("zensical.toml")
    for page in DOCS.rglob("*.md"):
        assert f'"{page.relative_to(DOCS).as_posix()}"' in menu


def test_every_decision_is_in_the_list_once_and_in_order() -> None:
    files = sorted(path.name for path in (DOCS / "decisions").glob("0*.md"))
    assert re.findall(r"\]\((0\d+-[\w-]+\.md)\)", read("docs/decisions/index.md")) == files
    for name in files:
        text = read(f"docs/decisions/{name}")
        assert text.startswith(f"# {name[:4]}. ")
        assert [line for line in text.splitlines() if line.startswith("## ")] == [
            "## Context",
            "## Choice",
            "## What we gave up",
        ]


def test_links_between_the_files_at_the_root_lead_somewhere() -> None:
    for page in ROOT.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (ROOT / link).exists(), f"{page.name}: {link}"


def test_no_line_of_an_example_is_wider_than_a_page() -> None:
    for path in (ROOT / "docs_src").rglob("*.*"):
        if path.suffix in (".py", ".txt", ".sh", ".mjs", ".toml"):
            lines = path.read_text(encoding="utf-8").splitlines()
            assert [line for line in lines if len(line) > PAGE_WIDTH] == [], path.name


def test_a_word_stands_in_the_glossary_once() -> None:
    words = re.findall(r"^\| ([a-z][\w -]*) \|", read("GLOSSARY.md"), re.MULTILINE)
    assert len([word for word in words if word != "word"]) == len({*words} - {"word"})
