"""Every example in the docs is on a page, is run, and prints what the page says it prints."""

import asyncio
import importlib.util
import inspect
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from everturn.tools.code import javascript

ROOT = Path(__file__).parent.parent.parent


def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("doc_examples", ROOT / "scripts" / "doc_examples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


doc_examples = load_script()
EXAMPLES = sorted((ROOT / "docs_src").rglob("*.py"))
SERVED = ("client_", "protocols_")  # are run against a server, by test_server.py
PRINTING = [path for path in EXAMPLES if path.with_suffix(".txt").exists() and not path.name.startswith(SERVED)]
OTHERS = sorted(path for kind in ("sh", "mjs", "toml", "txt") for path in (ROOT / "docs_src").rglob(f"*.{kind}"))


def reaches() -> str:
    """Why there is nothing here to reach out with; "": there is."""
    return javascript.why_javascript_unavailable() or ("" if shutil.which("git") else "there is no git")


def has_pydantic_evals() -> str:
    """Why its example is not run here; tests/evals/bridges runs it, where `scripts/eval-bridges` installed it."""
    return "" if importlib.util.find_spec("pydantic_evals") else "pydantic-evals is not installed"


NEEDS = {
    "docs_src/guides/reach_first.py": reaches,
    "docs_src/guides/eval_bridges_pydantic.py": has_pydantic_evals,
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", PRINTING, ids=name_of)
def test_an_example_prints_what_its_page_says(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name_of(path) in NEEDS and (why := NEEDS[name_of(path)]()):
        pytest.skip(why)
    main = runpy.run_path(str(path), run_name="example")["main"]
    if inspect.iscoroutinefunction(main):
        asyncio.run(main())
    else:
        main()
    assert capsys.readouterr().out == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_every_example_and_its_output_are_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    shown = set(re.findall(r"<!-- example: (docs_src/[^: ]+)", pages))
    assert shown == {name_of(path) for path in (*EXAMPLES, *OTHERS)}


def test_no_page_has_an_example_of_its_own() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(r"^ *``` ?\{? ?\.?py[^\n]*\n", text, re.MULTILINE):
            assert text[: block.start()].endswith(" -->\n"), f"{page.name}: {text[block.start() : block.end() + 80]}"


def test_the_pages_show_the_examples_as_they_are() -> None:
    for page in doc_examples.pages():
        assert doc_examples.render(page.read_text("utf-8")) == page.read_text("utf-8"), page.name


def test_an_example_that_changed_is_found() -> None:
    page = (ROOT / "docs" / "guides" / "tools.md").read_text(encoding="utf-8")
    assert doc_examples.render(page.replace("async def", "def", 1)) == page
    with pytest.raises(SystemExit, match="no code block directly below"):
        doc_examples.render("<!-- example: docs_src/first.py -->\ntext\n")
    with pytest.raises(SystemExit, match="no section 'nothing'"):
        doc_examples.render("<!-- example: docs_src/first.py:nothing -->\n```\n```\n")


def test_every_example_is_run() -> None:
    tests = "".join(test.read_text(encoding="utf-8") for test in Path(__file__).parent.glob("test_*.py"))
    for path in EXAMPLES:
        module = name_of(path).removesuffix(".py").replace("/", ".")
        assert path in PRINTING or f"from {module} import" in tests, f"nothing runs {name_of(path)}"
