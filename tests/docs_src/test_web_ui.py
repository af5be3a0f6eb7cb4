"""The page on the page says what the page has: its policy, its keys, its size, and a picture that is there."""

import json
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


COMPARISON = (ROOT / "docs" / "guides" / "comparison.md").read_text(encoding="utf-8")
# The text that each name in the table "Where each feature is" stands for: group and key of locales/en.json.
NAMED = {
    "Administration": "web.sidebar admin",
    "Agents": "web.admin agents",
    "Allow once": "web.gates once",
    "Allow … to repeat?": "web.gates loop",
    "Always …": "web.gates always",
    "API keys": "web.admin apiKeys",
    "Archive": "web.sessionRows archive",
    "Bad answer": "web.rating down",
    "Branches": "web.conversationHeader branches",
    "Collapse the code": "web.code fold",
    "Compare models": "web.modelPicker compare",
    "Compare with version 1/3": "web.messageActions compare",
    "Connection lost. Reconnecting …": "web.connection lost",
    "Copy the code": "web.code copy",
    "Deny …": "web.gates deny",
    "Dictate": "web.audio dictate",
    "Download": "web.code save",
    "Edit …": "web.gates edit",
    "Export": "web.conversationHeader exported",
    "Export as JSON": "web.conversationHeader json",
    "Export as Markdown": "web.conversationHeader markdown",
    "Find in conversation": "web.conversationHeader find",
    "Good answer": "web.rating up",
    "Import a conversation…": "web.sidebar bring",
    "Inbox": "web.sidebar inbox",
    "Invitations": "web.admin invitations",
    "Labels…": "web.sessionRows set_labels",
    "Log in with your provider": "web.login provider",
    "MCP servers": "web.sidebar mcp",
    "Memory": "web.sidebar memory",
    "new or changed": "web.mcp changedMark",
    "Parameters of this conversation": "web.parameters title",
    "Permissions": "web.sidebar permissions",
    "Pin": "web.sessionRows pin",
    "Preview": "web.code preview",
    "Prompts and instructions": "web.sidebar prompts",
    "Read aloud": "web.audio read",
    "Read-only link": "web.shareDialog link_title",
    "Rename": "web.sessionRows rename",
    "Revert to before this step…": "web.fileChanges before",
    "Review and trust…": "web.mcp look",
    "Rules": "web.admin rules",
    "Search": "web.sidebar search",
    "Search models": "web.modelPicker search",
    "Send when it is done": "web.composer queue",
    "Share": "web.conversationHeader share",
    "Steer": "web.composer steer",
    "Stop": "web.composer stop",
    "The model would read exactly this": "web.review title",
    "Thought": "web.reasoning thought",
    "Trust it as shown": "web.mcpTrust yes",
    "Usage": "web.sidebar usage",
    "Users": "web.admin users",
    "What was wrong?": "web.rating whatWrong",
    "What would happen?": "web.explainForm title",
    "Wrap": "web.code wrap",
    "1 file changed": "web.fileChanges title",
}


def test_the_names_in_the_table_of_features_are_those_on_the_screen() -> None:
    texts = json.loads((ROOT / "src" / "everturn" / "locales" / "en.json").read_text(encoding="utf-8"))
    (table,) = re.findall(
        r"^### Where each feature is\n.*?\n\n(\| feature .*?)\n\n", COMPARISON, re.DOTALL | re.MULTILINE
    )
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert len(rows) > 35
    assert {len(row) for row in rows} == {3}
    names = {name for row in rows for name in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", row[2])}
    assert names == set(NAMED)
    wrong = [name for name, key in NAMED.items() if not is_shown(name, texts[key.split()[0]][key.split()[1]])]
    # When this fails, the screen says something else: correct the table and NAMED.
    assert not wrong


def is_shown(name: str, text: str) -> bool:
    """Whether a text of the UI is this name: a placeholder stands for a number or `…`, a plural for its first form."""
    text = re.sub(r"\{\w+, plural, \w+ \{(.*?)\}.*\}$", r"\1", text)
    literals = [re.escape(part) for part in re.split(r"\{\w+\}", text)]
    return re.fullmatch(r"(?:…|\d+)".join(literals), name) is not None
