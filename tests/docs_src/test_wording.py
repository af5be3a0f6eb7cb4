"""The words: pages are found by the terms people search for, and texts do not use phrases that readers stumbled over."""

import json
import re
from pathlib import Path
from typing import cast

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGE_WIDTH = 87  # characters of code that a page shows without scrolling
EXAMPLE_SUFFIXES = (".py", ".txt", ".sh", ".mjs", ".toml")
PAGES = sorted(path for path in DOCS.rglob("*.md") if "decisions" not in path.parts)
TERMS = (
    "human-in-the-loop", "structured output", "guardrail", "handoff", "sub-agent", "context window", "compaction",
    "durable execution", "webhook", "tracing", "rate limit", "dependencies", "pydantic ai", "langgraph", "temporal", "checkpoint",
)  # fmt: skip
# Three reviews listed them, each with a better one; those about houses are in tests/test_names.py. A text of the UI, the docs or an error that brings one back is found here.
PHRASES = (
    "It opens once", "This page goes on by itself", "What shall we do?", "Conversations to read", "Stay with the demo",
    "see how calls and questions look", "It holds as soon as", "asks to run", "no rule says anything of this call",
    "With exactly these arguments", "This is what it would do", "Redact all that reads the same", "wherever it stands\"",
    "the same calls, over and over", "is for you to do", "What came of it?", "Hand in the result", "Its time is over",
    "Answering this takes the role of", "Not asked any more", "Result to be read", "Hints are not complete",
    "Write what comes next, or steer", "One question waits for an answer", "Waiting for something from outside",
    "it stands at its call", "It had its time", "came round again and again", "The turn has had its", "keeps what it was to itself",
    "were summed up", "Another answer", "Go on from here", "Go on here", "The files are what they were",
    "You are looking at another branch", "Allowed from then on", "In no group", "wherever a rule stands",
    "What no rule fits is asked about", "Days are those of UTC", "What has no known price", "As the browser asks",
    "Tools of this browser", "Tell me when an answer of mine", "does not offer it at all", "Nothing fits.", "could not be drawn",
    "who is to answer?", "It says how to change it", "Take this file away", "Nothing of it is on unless", "how to mend it",
    "what is to be said?", "this is no TOML", "is no number of seconds", "this makes sense", "a secret stands here",
    "has trouble of its own", "without luck", "take a model that reads more", "What shall be done?", "Sessions beside it",
    "Files: what was changed, and back", "Let files be what they were", "Send into the turn that runs",
    "Between the box and the conversation", "Enter takes it", "goes on with an earlier session", "the server is not heard",
    "acts, once for each call", "a repeat changes nothing more", "Always would store", "takes the role of an owner",
    "What waits for somebody", "will stand here", "a turn below this one", "by somebody you did not ask",
    "the model may not write more at once", "keeps house", "as people call it", "we are killed", "come over from a loop",
    "or it is not one", "Whoever allows such a call has not done it", "a log has what came of that", "Keep what was begun", "Reach out, and have it again",
    "on the machine of the server", "I am logged in", "Your login has ended", "with a link of somebody else", "its result is read by a person first",
    "asks every time", "Take it back", "The files are what they were", "You can see it, and not answer it", "Rules look at:",
    "fit, and do not decide", "Mend that", "calls itself “", "is called alike", "send them again, whole", "unless said", "is for several",
    "drives what is in this store", "its arguments are read as it was said", "The turn has had its steps", "What has no name", "Mend it, or",
    "cannot be lost, poisoned", "needs no service beside it", "What is there, and what is not", "an approval is a row", "not in a bill",
    "for a hole you found", "Come over from a loop", "Let a tool run a turn", "All of it, and again", "Call tools in words", "Held to the form",
    "what a repeat would do to the world", "Is it one?", "Whatever has not come so far", "it *stirs* the one above",
    "and no tools that cannot be stopped", "What to wake somebody for", "Answers that are data",
    "Read what lookup brought", "Redact a text wherever", "What it is given leaves the house", "A limit of this turn is reached", "1 to 1 [1]:",
    "-h say this", "names no model", "is no number of seconds", "0 sessions to drive", "Let files be what", "What is it about?", "leaves the house",
    "no rule says anything", "put aside", "Keep house", "unless you say", "what it is given leaves", "ith exactly these arguments:", "was written anew",
    "waits to read what came of it", "says what came of it", "lways would store", "files are what they were", "it ran with:",
    # Of the same kind, in errors and log lines.
    "say one of them", "nobody answers at", "nobody can log in so", "is no function",
    "is no regular", "is no plain file", "is no exported", "are welcome", "was not asked for",
    "could not be handed in", "cannot be gone on with", "is looked at again", "are looked at again", "the turn does not mind",
    "left as it was:", "left as they were:", "said nothing for", "somebody else drives", "nobody to ask; it", "nobody said where",
    "is not one to log in to", "be told again in", "is told again", "the last words were", "lock themselves out",
    "; look at it again", "first, or name another; make", "none has ended in", "kept apart by queries", "inside the walls",
    "knows no {", "nobody knows what became", "is it an everturn server", "in our words", "no more may be", "to be had with",
    "something that no model sends", "is the base URL that of", "which is of no turn",
)  # fmt: skip
# Words of the lists that are good English elsewhere, but not as the whole text of a button, a heading or a state.
LABELS = {
    "Look again", "cannot be repeated", "changes something", "only reads", "It ran with", "Put aside", "Going on", "goes away", "comes back", "Leave them",
    "Keep it", "Nothing here.", "It gets", "Gets", "at rest", "joins", "Looking", "Around", "Leave", "hand in", "starters", "what asks", "what waits",
    "Another answer", "Another answer with…", "Take it back…", "to be read", "away", "calls itself", "Its time is over", "It had its time",
}  # fmt: skip
# What was removed from the guides and from the comments of examples since then.
PATTERNS = (
    r"told again, whole", r"whoever your login", r"[Tt]ell whoever", r"twice is once", r"costs nothing: make one", r"# yours here\b",
    r"chat\.runtime\b", r"unless you say \|", r"\bin our own words", r"never your\s+memory", r"held back, for they",
    r"\bseals? of the thought", r"what a model thought", r"[Aa] tenant is the wall", r"no (?:last\s+)?word and no exception", r"[Rr]oles are a line",
    r"[Ss]ay what may run", r"\[(?:Operate|Deploy|Serve|Configure|Keep) it\]", r"answers? silence only", r"[Pp]aths are words", r"[Rr]ules are no sandbox",
    r"somebody who looks", r"is yours to say", r"tries doors",
    r"by hand if you must prove", r"forget what they said", r"who is no longer named", r"\bdo no harm\b", r"does no harm", r"in whatever file",
    r"the world, which outlives", r"[Aa] toy: counts", r"Says again what it is told", r"wants us to slow down", r"in words it can",
    r"does not take back what it sealed", r"sends us to \{", r"names no model",
)  # fmt: skip
# A sentence that begins with one of these has no subject that a reader can look up. FastAPI's and Pydantic AI's pages have
# 0 to 3 such words in 1,000; see decision 0184.
VAGUE = re.compile(r"\b(?:what|whoever|somebody|nobody|anybody|whatever)\b", re.IGNORECASE)
MOST_VAGUE = 8  # in 1,000 words of a page that was rewritten
REWRITTEN = (
    *(f"guides/{name}" for name in (
        "permissions", "providers", "prompted-tool-calling", "web-ui", "media", "sandboxes", "elicitation", "tool-results", "tool-groups", "limits",
        "testing", "fastapi", "full-example", "use-chat", "rag", "prompts", "guardrails", "observability", "bridges", "long-conversations",
        "agents", "human-in-the-loop", "tools", "client-tools", "custom-models", "python-client", "typescript-client", "crash-testing",
        "browser-tools", "memory", "schedules",
    )),
    *(f"terminal/{name}" for name in ("doctor", "terminal", "run", "first-run")),
    *(f"concepts/{name}" for name in ("turns", "event-log", "tool-calls", "branches", "streaming")),
    *(f"internals/{name}" for name in ("suspension", "staging", "broadcast", "group-commit", "claims")),
    "get-started/tutorial",
    "index",
    *(f"deploy/{name}" for name in ("cluster", "configuration", "operations", "authentication", "data", "engines", "kubernetes", "upgrade", "alerts")),
)  # fmt: skip


def headings(text: str) -> list[str]:
    outside = re.sub(r"^( *)(`{3,}).*?^\1\2$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#{1,4} (.+)$", outside, re.MULTILINE)


def anchor(heading: str) -> str:
    words = re.sub(r"[^\w\s-]", "", re.sub(r"[`*]", "", heading)).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


@pytest.mark.parametrize("term", TERMS)
def test_a_search_term_is_in_a_heading(term: str) -> None:
    found = [path for path in PAGES if any(term in heading.lower() for heading in headings(path.read_text("utf-8")))]
    assert found, f"no page has '{term}' in its title or a heading"


def texts() -> list[Path]:
    """What people read: pages, and the texts of both UIs, the command line and the server."""
    code = [*(ROOT / "src" / "everturn").rglob("*.py"), *(ROOT / "src" / "everturn").rglob("*.json")]
    page = [*(ROOT / "web" / "src").rglob("*.ts"), *(ROOT / "web" / "src").rglob("*.tsx")]
    examples = [path for path in (ROOT / "docs_src").rglob("*.*") if path.suffix in EXAMPLE_SUFFIXES]
    return [ROOT / "README.md", *PAGES, *code, *page, *examples]


def phrases_in(text: str) -> list[str]:
    """The phrases and patterns that a text has; it may be wrapped, in a page or in a literal."""
    flat = re.sub(r"\s+", " ", re.sub(r"[\"'`]\s*\n\s*f?[\"'`]", "", text))
    found = [phrase for phrase in PHRASES if phrase in flat]
    return found + [pattern for pattern in PATTERNS if re.search(pattern, flat)]


def test_nothing_says_what_readers_stumbled_over() -> None:
    found = list[str]()
    for path in texts():
        found += [f"{path.relative_to(ROOT)}: {phrase}" for phrase in phrases_in(path.read_text(encoding="utf-8"))]
    assert found == []


def strings_of(catalogue: object) -> list[str]:
    if isinstance(catalogue, dict):
        return [text for value in cast("dict[str, object]", catalogue).values() for text in strings_of(value)]
    return [catalogue] if isinstance(catalogue, str) else []


def test_no_button_or_state_of_a_screen_is_one_of_the_labels_of_the_lists() -> None:
    catalogue = json.loads((ROOT / "src" / "everturn" / "locales" / "en.json").read_text(encoding="utf-8"))
    found = strings_of(catalogue)
    assert len(found) > 1000
    assert {text for text in found if text.lower() in {label.lower() for label in LABELS}} == set()


@pytest.mark.parametrize(
    "text",
    [
        "    raise StoreBusy('process 7 drives what '\n        'is in this store')",
        "discard nothing: it is told again,\nwhole",
        'PERSON = "whoever your login has recognised"',
        "hand it over with `chat.runtime.add_model(model)`",
    ],
)
def test_a_phrase_that_comes_back_is_found_also_where_it_is_wrapped(text: str) -> None:
    assert phrases_in(text)


def prose(page: str) -> str:
    """The sentences of a page: without code, tables, headings and the targets of links."""
    outside = re.sub(r"^( *)(`{3,}).*?^\1\2$", "", page, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in outside.splitlines() if not line.startswith(("|", "#", "<!--"))]
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines))


def vague_per_thousand(page: str) -> float:
    text = prose(page)
    return 1000 * len(VAGUE.findall(text)) / max(len(re.findall(r"[A-Za-z'’]+", text)), 1)


@pytest.mark.parametrize("name", REWRITTEN)
def test_sentences_of_a_page_name_their_subject(name: str) -> None:
    assert vague_per_thousand((DOCS / f"{name}.md").read_text(encoding="utf-8")) <= MOST_VAGUE


def test_sentences_without_a_subject_are_counted() -> None:
    old = "A credential tells who is asking. What nobody knows is taken ten times. Whoever is new is let in. What is missing is said."
    assert vague_per_thousand(old) > 10 * MOST_VAGUE
    assert vague_per_thousand("```\nwhat nobody knows\n```\n| what | whoever |\n\nThe server checks the key.") == 0


def test_commands_and_settings_on_a_page_fit_without_scrolling() -> None:
    wide = list[str]()
    for page in PAGES:
        blocks = re.findall(
            r"^( *)```(sh|toml|python)\n(.*?)^\1```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        wide += [
            f"{page.name}: {line}" for _, _, text in blocks for line in text.splitlines() if len(line) > PAGE_WIDTH
        ]
    assert wide == []


def test_every_link_leads_to_a_page_and_to_a_heading_of_it() -> None:
    broken = list[str]()
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = re.sub(r"^( *)(`{3,}).*?^\1\2$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target, fragment in re.findall(r"\]\(([^)#\s]*)(?:#([\w-]+))?\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            path = (page.parent / target).resolve() if target else page
            if not path.exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
            elif fragment and path.suffix == ".md":
                known = path.read_text(encoding="utf-8")
                if fragment not in {anchor(heading) for heading in headings(known)} and f'id="{fragment}"' not in known:
                    broken.append(f"{page.relative_to(ROOT)}: {target}#{fragment}")
    assert broken == []


WITHOUT_EXAMPLE = {
    "web-ui.md",
    "browser-tools.md",
    "comparison.md",
}  # screens, tools of a browser, and a table whose programs are in benchmarks/programs


def test_every_guide_has_an_example_that_runs() -> None:
    guides = sorted((DOCS / "guides").glob("*.md"))
    bare = {path.name for path in guides if "<!-- example: docs_src/" not in path.read_text(encoding="utf-8")}
    assert bare <= WITHOUT_EXAMPLE
