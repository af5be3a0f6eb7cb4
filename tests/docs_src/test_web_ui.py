"""The page on the page says what the page has: its policy, its keys, its size, and a picture that is there."""

import re
from pathlib import Path

from everturn.server.routes.web_ui import BUILD_VARIABLE, POLICY

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "guides" / "web-ui.md").read_text(encoding="utf-8")
MOST = 120 * 1024  # bytes of a picture in the docs


def source(*path: str) -> str:
    return ROOT.joinpath("web", "src", *path).read_text(encoding="utf-8")


def test_the_policy_that_is_shown_is_the_one_that_is_sent() -> None:
    shown = (ROOT / "docs_src" / "guides" / "page_policy.txt").read_text(encoding="utf-8")
    assert shown.split(";\n") == f"{POLICY}\n".split("; ")


def test_every_key_that_the_settings_list_is_in_the_table() -> None:
    (table,) = re.findall(r"^## Keyboard shortcuts\n\n(.*?)\n\n", GUIDE, re.DOTALL | re.MULTILINE)
    documented = set(re.findall(r"`([^`]+)`", table))
    (listed,) = re.findall(r"const all: .*?= \[(.*?)\n  \];", source("pages", "settings.tsx"), re.DOTALL)
    keys = set(re.findall(r'"([^"]+)"', listed))
    assert len(keys) > 8
    assert keys <= documented


def test_the_words_on_the_buttons_are_those_that_the_guide_uses() -> None:
    words = (ROOT / "src" / "everturn" / "locales" / "en.json").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| answer \|.*?\n\n", GUIDE, re.DOTALL | re.MULTILINE)
    answers = re.findall(r"^\| ([A-Z][^|]*?) \|", table, re.MULTILINE)
    assert len(answers) == 5
    assert all(f'"{answer}"' in words for answer in answers), answers


def test_the_size_and_the_variables_are_those_of_the_scripts() -> None:
    sizes = dict(
        re.findall(r"^(MOST\w*): Final = (\d+) \* 1024", (ROOT / "scripts" / "web_size.py").read_text("utf-8"), re.M)
    )
    assert f"at most {sizes['MOST']} KB, and {sizes['MOST_TALKING']} KB before" in GUIDE
    assert f"{BUILD_VARIABLE}=/" in GUIDE
    assert 'process.env["EVERTURN_URL"] ?? "http://127.0.0.1:8000"' in (ROOT / "web" / "vite.config.ts").read_text(
        "utf-8"
    )


def test_pictures_are_small() -> None:
    pictures = sorted((ROOT / "docs" / "assets").glob("*.png"))
    assert pictures
    assert all(path.stat().st_size <= MOST for path in pictures)
