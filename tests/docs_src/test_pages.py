"""What the pages list is what the code has: machines, hooks, errors, names, links."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import everturn
from everturn import errors
from everturn.core.calls import CALL_TRANSITIONS, FINAL_CALL_STATES
from everturn.core.hooks import HOOKS
from everturn.core.phases import TRANSITIONS, Phase

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGE_WIDTH = 87  # characters of code that a page shows without scrolling


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_picture_of_the_phases_has_every_way_between_them() -> None:
    ways = {(a, b) for a, row in TRANSITIONS.items() for b in row.values() if a is not b}
    working = {Phase.PREPARING, Phase.STREAMING, Phase.TOOL_CALL, Phase.WAITING}
    # When this fails, draw the picture in docs/concepts/turns.md anew.
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
    # When this fails, draw the picture in docs/concepts/tool-calls.md anew.
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
    error_names = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    }
    rows = [line for line in read("docs/reference/errors.md").splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == error_names - {"EverturnError"}


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
    assert [re.split(r"\W", name)[0] for name in project["dependencies"]] == [
        "aiohttp",
        "yarl",
        "msgspec",
        "pydantic",
        "cronsim",
    ]
    assert "it depends on aiohttp, yarl, msgspec, cronsim and pydantic" in " ".join(
        read("docs/get-started/quickstart.md").split()
    )


def test_the_configuration_in_the_testing_guide_is_the_one_these_tests_run_with() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", read("docs/guides/testing.md"), re.DOTALL)
    shown = tomllib.loads(block)["tool"]["pytest"]["ini_options"]
    assert shown.items() <= tomllib.loads(read("pyproject.toml"))["tool"]["pytest"]["ini_options"].items()


CLASSES = {
    name: kind
    for module in (
        "",
        ".testing",
        ".models",
        ".tools",
        ".stores",
        ".plugins",
        ".replay",
        ".cluster",
        ".client",
        ".engine",
    )
    for name, kind in vars(importlib.import_module(f"everturn{module}")).items()
    if isinstance(kind, type)
} | {name: getattr(everturn, name) for name in everturn.__all__ if isinstance(getattr(everturn, name), type)}


def missing_methods(page: str) -> list[str]:
    """The calls `Class.method(…)` in the sentences of a page whose class has no such method."""
    outside = re.sub(r"^( *)(`{3,}).*?^\1\2$", "", page, flags=re.MULTILINE | re.DOTALL)
    calls = [
        call for code in re.findall(r"`([^`\n]+)`", outside) for call in re.findall(r"\b([A-Z]\w+)\.([a-z]\w*)\(", code)
    ]
    return [f"{name}.{method}" for name, method in calls if name in CLASSES and not hasattr(CLASSES[name], method)]


def test_a_method_that_a_page_names_exists() -> None:
    pages = [page for page in DOCS.rglob("*.md") if "decisions" not in page.parts]
    found = {page.name: missing for page in pages if (missing := missing_methods(page.read_text(encoding="utf-8")))}
    assert found == {}
    assert missing_methods("`Recording.make(store, session)` takes one, `Recording.read(path)` reads it") == [
        "Recording.make"
    ]


def test_every_page_is_in_the_menu_once() -> None:
    menu = read("zensical.toml")
    for page in DOCS.rglob("*.md"):
        assert menu.count(f'"{page.relative_to(DOCS).as_posix()}"') == 1, page


@pytest.mark.parametrize("page", sorted((DOCS / "internals").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_theory_has_its_parts_and_names_code_and_tests_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^## (.+)$", text, re.MULTILINE)
    parts = ["The problem", "Rejected designs", "The design", "Invariants", "In the code", "Tests"]
    assert [heading for heading in found if heading in parts] == parts
    files = re.findall(r"`((?:src|tests|tools)/[\w./-]+)`", text)
    assert len(files) > 5
    assert [name for name in files if not (ROOT / name).exists()] == []
    # A name that a row of the table says its file has.
    for file, row in re.findall(r"^\| `(src/[\w./-]+)` \| (.+) \|$", text, re.MULTILINE):
        code = (ROOT / file).read_text(encoding="utf-8")
        names = [name.rpartition(".")[2] for name in re.findall(r"`([A-Z][\w.]*)`", row)]
        assert [name for name in names if name not in code] == [], file


def test_every_decision_is_in_the_list_once_and_in_order() -> None:
    files = sorted(path.name for path in (DOCS / "decisions").glob("0*.md"))
    assert re.findall(r"\]\((0\d+-[\w-]+\.md)\)", read("docs/decisions/index.md")) == files
    for name in files:
        text = read(f"docs/decisions/{name}")
        title = text.partition("\n")[0].removeprefix(f"# {name[:4]}. ")
        assert f"| [{name[:4]}]({name}) | {title} |" in read("docs/decisions/index.md"), f"{name}: another title"
        assert [line for line in text.splitlines() if line.startswith("## ")] == [
            "## Context",
            "## Choice",
            "## What we gave up",
        ]


def test_links_between_the_files_at_the_root_lead_somewhere() -> None:
    for page in ROOT.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (ROOT / link).exists(), f"{page.name}: {link}"


def description_on_pypi(text: str) -> str:
    """README.md as hatch-fancy-pypi-readme writes it into the metadata of a wheel; scripts/wheel looks at a real one."""
    hook = tomllib.loads(read("pyproject.toml"))["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    assert hook["fragments"] == [{"path": "README.md"}]
    for substitution in hook["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    return text


def test_the_description_on_pypi_has_no_link_that_needs_the_repository() -> None:
    text = description_on_pypi(read("README.md"))
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", text) == []
    assert "<!--" not in text
    assert "Tutorial (`docs/get-started/tutorial.md`)" in text
    assert "`CHANGELOG.md` lists the changes" in text


def test_a_link_to_another_host_stays_in_the_description() -> None:
    line = "[docs](https://example.org/a) and [below](#documentation)![a picture](docs/assets/page.png), [Turns](docs/turns.md#a)"
    assert (
        description_on_pypi(line)
        == "[docs](https://example.org/a) and [below](#documentation), Turns (`docs/turns.md`)"
    )


def test_no_line_of_an_example_is_wider_than_a_page() -> None:
    shown = [
        path for path in (ROOT / "docs_src").rglob("*.*") if path.suffix in (".py", ".txt", ".sh", ".mjs", ".toml")
    ]
    for path in (*shown, *(ROOT / "benchmarks" / "programs").glob("**/review.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if len(line) > PAGE_WIDTH] == [], path.name


def test_a_word_stands_in_the_glossary_once() -> None:
    words = re.findall(r"^\| ([a-z][\w -]*) \|", read("docs/glossary.md"), re.MULTILINE)
    assert len([word for word in words if word != "word"]) == len({*words} - {"word"})


def test_words_of_other_frameworks_lead_to_a_word_of_the_glossary() -> None:
    index, _, terms = read("docs/glossary.md").partition("\n## Conversation\n")
    known = set(re.findall(r"^\| ([\w -]+?) \|", terms, re.MULTILINE))
    rows = re.findall(r"^\| (.+?) \| (.+?) \| \[.+\) \|$", index, re.MULTILINE)
    searched = [word.lower() for word, _ in rows]
    assert len(rows) > 60
    assert searched == sorted(set(searched))
    named = {word for _, words in rows for word in re.split(r", ", words) if "`" not in word}
    assert named <= known | {"step of a durable tool"}
    for word in (
        "checkpoint", "hitl", "thread", "run", "interrupt", "middleware", "fencing token", "human-in-the-loop", "structured output",
        "guardrail", "handoff", "sub-agent", "context window", "durable execution", "webhook", "tracing", "rate limit", "langgraph",
        "temporal", "evals",
    ):  # fmt: skip
        assert any(re.search(rf"\b{word}\b", row) for row in searched), word
