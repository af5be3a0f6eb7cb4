"""Patterns: what they fit, what they must not fit, and how long that takes."""

import shlex
from functools import lru_cache
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everturn.core.rules.globs import (
    ANY_CHARACTER,
    ANY_PATH,
    compile_path_glob,
    compile_text_glob,
    escape_glob,
    fold_text,
    parse_glob,
)
from everturn.core.rules.patterns import (
    SUBJECT_KINDS,
    Subject,
    SubjectKind,
    compile_pattern,
    exact_pattern,
    explain_invalid_pattern,
    normalize_path,
    prepare_value,
)
from everturn.core.rules.urls import parse_url


def subject(kind: SubjectKind, text: str) -> Subject:
    return Subject(kind, text, tuple(shlex.split(text)) if kind == "command" else ())


def fits(kind: SubjectKind, pattern: str, text: str, generous: bool = False) -> bool:
    form = prepare_value(subject(kind, text))
    assert form is not None
    return compile_pattern(pattern, kind, generous)(form)


# ------------------------------------------------------------------------------------------------------------ globs


def naive(pattern: str, text: str, is_path: bool) -> bool:
    """The same by trying everything, for short texts."""
    tokens = [step for token in parse_glob(pattern) for step in (token if isinstance(token, str) else [token])]

    @lru_cache(None)
    def rest(place: int, at: int) -> bool:
        if place == len(tokens):
            return at == len(text)
        token = tokens[place]
        if isinstance(token, str):
            return text[at : at + 1] == token and rest(place + 1, at + 1)
        if token == ANY_CHARACTER:
            return at < len(text) and not (is_path and text[at] == "/") and rest(place + 1, at + 1)
        begins = place == 0 or tokens[place - 1] == "/"
        before_slash = tokens[place + 1 : place + 2] == ["/"]
        if is_path and token == ANY_PATH and begins and before_slash and rest(place + 2, at):
            return True
        fewest = 1 if is_path and token != ANY_PATH and begins and (before_slash or place + 1 == len(tokens)) else 0
        for end in range(at, len(text) + 1):
            if is_path and token != ANY_PATH and "/" in text[at:end]:
                break
            if end - at >= fewest and rest(place + 1, end):
                return True
        return False

    return rest(0, 0)


PATTERN = st.text("ab/*?\\", max_size=9)
TEXT = st.text("ab/*?\\", max_size=9)


@given(PATTERN, TEXT)
@example("a*b*a", "aba")
@example("*a?b", "aaab")
def test_a_glob_of_text_says_what_trying_everything_says(pattern: str, text: str) -> None:
    assert compile_text_glob(parse_glob(pattern))(text) is naive(pattern, text, is_path=False)


@given(PATTERN, TEXT)
@example("**/a", "a")
@example("**/a", "ba")
@example("a/**/b", "a/b")
@example("**/**/a", "b/a")
@example("a**b*/a", "a/b/a")
@example("**/*", "a")
def test_a_glob_of_paths_says_what_trying_everything_says(pattern: str, text: str) -> None:
    assert compile_path_glob(parse_glob(pattern))(text) is naive(pattern, text, is_path=True)


@given(st.lists(st.sampled_from(["*", "**", "?", "a", "b", "/", "**/", "/**"]), max_size=8).map("".join), TEXT)
def test_a_glob_of_paths_with_many_stars_says_the_same_too(pattern: str, text: str) -> None:
    assert compile_path_glob(parse_glob(pattern))(text) is naive(pattern, text, is_path=True)


@given(st.text(), st.text())
def test_an_escaped_text_fits_itself_alone(text: str, other: str) -> None:
    assert compile_text_glob(parse_glob(escape_glob(text)))(text)
    assert compile_text_glob(parse_glob(escape_glob(text)))(other) is (text == other)


def seconds(pattern: str, kind: SubjectKind, size: int) -> float:
    """The least of some tries."""
    form = prepare_value(Subject(kind, "a" * size, ("a" * size,)))
    assert form is not None
    test = compile_pattern(pattern, kind, False)
    tries: list[float] = []
    for _ in range(5):
        begun = process_time()
        assert not test(form)
        tries.append(process_time() - begun)
    return min(tries)


@pytest.mark.parametrize(
    "pattern", ["*a" * 12 + "b", "a*" * 12 + "b", "**a*" * 6 + "b", "?*" * 10 + "b", "**a?*a" * 4 + "b*c"]
)
@pytest.mark.parametrize("kind", ["text", "path", "command"])
def test_ten_times_the_text_takes_about_ten_times_as_long(pattern: str, kind: SubjectKind) -> None:
    small, large = seconds(pattern, kind, 4_000), seconds(pattern, kind, 40_000)

    assert large <= 40 * max(small, 0.0005)  # trying everything would take thousands of years


# ------------------------------------------------------------------------------------------------- one kind at a time

FITS: dict[SubjectKind, list[tuple[str, str]]] = {
    "text": [
        ("*", ""),
        ("*", "two\nlines"),
        ("say *", "say \nhello"),
        ("?", "\n"),
        (r"what\?", "what?"),
        (r"a\b", r"a\b"),
        ("[ab]", "[ab]"),
        ("é*", "été"[:1] + "x"),
    ],
    "path": [
        ("src/*", "src/a.py"),
        ("src/**", "src/a/b.py"),
        ("**/*.py", "a.py"),
        ("**/*.py", "src/a/b.py"),
        ("./src/*", "src//x/../a.py"),
        ("src/", "src"),
        ("/etc/**", "/etc//passwd"),
        ("/**", "/"),
        ("**", "."),
        ("../lib/*", "../lib/a"),
        ("../../*", "a/../../../b"),
        (".", "a/.."),
        (r"a\b", r"a\b"),
        ("src/.*", "src/.env"),
        ("lib**", "library/x"),
        ("~/x", "~/x"),
    ],
    "url": [
        ("https://*.example.com/**", "https://a.b.example.com/"),
        ("https://*.example.com/**", "HTTPS://A.example.COM:443/x/y?z=1#top"),
        ("https://example.com", "https://example.com/any/path?q"),
        ("https://example.com/a", "https://example.com./%61"),
        ("https://example.com/a/*", "https://example.com/b/../a/%2e%2E/a/x"),
        ("*://example.com/**", "ftp://example.com/x"),
        ("http://localhost:8000/**", "http://localhost:8000/x"),
        ("http://localhost:*", "http://localhost:8000/x"),
        ("https://example.com/Zürich", "https://example.com/Z%c3%bcrich"),
        ("https://example.com/s?q=*", "https://example.com/s?q=a"),
        ("http://[::1]/**", "http://[0:0::1]/x"),
        ("file:///tmp/**", "file:///tmp/x"),
        ("*", "https://example.com/"),
    ],
    "command": [
        ("git log *", "git log"),
        ("git log *", "git log --oneline -n 5"),
        ("git log", "git log"),
        ("*", "anything at all"),
        ("git l?g --since=* *", "git log --since=monday x"),
        ("git * --stat", "git diff --stat"),
        ("'/opt/my tools/x' *", "'/opt/my tools/x' 1"),
        ("ls *.py", "ls 'a b.py'"),
    ],
}

FITS_NOT: dict[SubjectKind, list[tuple[str, str]]] = {
    "text": [("a", "A"), ("a*", "ba"), ("", "a"), ("a", "a\n"), ("a", "\u0430"), (r"\*", "x")],
    "path": [
        ("src/*", "src/a/b.py"),
        ("src/*", "src"),
        ("src/**", "src"),
        ("src/**", "src/../etc/passwd"),
        ("src/**", "srcs/a"),
        ("src/**", "/src/a"),
        ("**", "/etc/passwd"),
        ("**", "../secret"),
        ("**/*.py", "/etc/x.py"),
        ("**/*.py", "../x.py"),
        ("*/x", "../x"),
        ("../*", "../../x"),
        ("../**", "../../x"),
        ("*", "."),
        ("/*", "/"),
        ("s?c", "s/c"),
        ("**/.env", "x.env"),
    ],
    "url": [
        ("https://*.example.com/**", "https://example.com/"),
        ("https://*.example.com/**", "https://evil.com/x.example.com/"),
        ("https://*.example.com", "https://evil.com/.example.com"),
        ("https://example.com/**", "http://example.com/"),
        ("https://example.com/**", "https://example.com:8443/"),
        ("https://example.com/**", "https://example.com.evil.com/"),
        ("https://example.com*/**", "https://evil.com/example.com/"),
        ("https://example.com/a", "https://example.com/a?b=1"),
        ("https://example.com/a/**", "https://example.com/a/../b"),
        ("https://example.com/a/**", "https://example.com/a/%2e%2e/b"),
        ("https://example.com/a/*", "https://example.com/a/b/c"),
        ("http://*", "https://a.com/"),
    ],
    "command": [
        ("git log *", "git"),
        ("git log *", "git logs"),
        ("git log *", "sudo git log"),
        ("git log", "git log --output=x"),
        ("git log *", "'git log'"),
        ("git log *", "/tmp/git log"),
        ("git log *", "GIT log"),
        ("git lo*", "git log x"),
        ("git * --stat", "git --stat"),
        (r"ls '\*'", "ls x"),
    ],
}


@pytest.mark.parametrize(("kind", "pattern", "value"), [(k, *pair) for k, pairs in FITS.items() for pair in pairs])
@pytest.mark.parametrize("generous", [False, True])
def test_it_fits(kind: SubjectKind, pattern: str, value: str, generous: bool) -> None:
    assert fits(kind, pattern, value, generous)


@pytest.mark.parametrize(("kind", "pattern", "value"), [(k, *pair) for k, pairs in FITS_NOT.items() for pair in pairs])
def test_it_does_not_fit(kind: SubjectKind, pattern: str, value: str) -> None:
    assert not fits(kind, pattern, value)


GENEROUS: list[tuple[SubjectKind, str, str]] = [
    ("text", "delete *", "DELETE all"),
    ("text", "Delete", "\uff44\uff45\uff4c\uff45\uff54\uff45"),
    ("path", "secrets/**", "secrets"),
    ("path", "secrets/**", "/secrets/a"),
    ("path", "/etc/**", "etc/passwd"),
    ("path", "**/.ENV", "src/.env"),
    ("path", ".env", "./.Env"),
    ("path", "**", "/etc/passwd"),
    ("path", "*", "a/b"),
    ("path", "**/id_rsa", "../../home/id_rsa"),
    ("url", "https://evil.com/**", "http://evil.com/x"),
    ("url", "https://evil.com", "https://evil.com:8443/x"),
    ("url", "https://evil.com/admin", "https://evil.com/Admin?x=1"),
    ("url", "https://evil.com/admin/**", "https://evil.com/admin"),
    ("url", "https://evil.com/admin/**", "https://evil.com//admin%2fx"),
    ("url", "http://127.0.0.1", "http://[::ffff:127.0.0.1]/"),
    ("command", "rm *", "/bin/rm -rf x"),
    ("command", "rm *", "RM x"),
    ("command", "/bin/rm *", "/BIN/rm x"),
    ("command", "Rm *", "\uff52\uff4d x"),
]


@pytest.mark.parametrize(("kind", "pattern", "value"), GENEROUS)
def test_what_asks_or_denies_fits_what_looks_alike_and_what_allows_does_not(
    kind: SubjectKind, pattern: str, value: str
) -> None:
    assert fits(kind, pattern, value, generous=True)
    if (kind, pattern) != ("url", "http://127.0.0.1"):  # that one is the same machine to the letter
        assert not fits(kind, pattern, value, generous=False)


PIECES = st.sampled_from(
    [
        "a",
        "B",
        "ß",
        "İ",
        "é",
        "e\u0301",
        "\uff0f",
        "/",
        ".",
        "..",
        "*",
        "**",
        "?",
        "\\",
        " ",
        "https://",
        "x.com",
        "%2F",
        "%41",
        "?q",
        ":80",
    ]
)
VALUES = st.lists(PIECES, max_size=7).map("".join)


@given(st.sampled_from(SUBJECT_KINDS), VALUES | st.builds("https://x.com/{}".format, VALUES), VALUES, VALUES)
def test_whatever_is_allowed_to_the_letter_is_denied_by_the_same_pattern(
    kind: SubjectKind, value: str, front: str, back: str
) -> None:
    form = prepare_value(Subject(kind, value, tuple(value.split())))
    for pattern in (front + back, value, escape_glob(value), f"{front}*{back}", value[:3] + "*", value[:3] + "**"):
        if form is not None and compile_pattern(pattern, kind, False)(form):
            assert compile_pattern(pattern, kind, True)(form)


@given(st.sampled_from(SUBJECT_KINDS), VALUES | st.builds("https://x.com/{}".format, VALUES), VALUES)
def test_the_exact_pattern_of_a_value_fits_it_and_none_that_is_another(
    kind: SubjectKind, value: str, other: str
) -> None:
    mine = Subject(kind, value, tuple(value.split()))
    form, other_form = prepare_value(mine), prepare_value(Subject(kind, other, tuple(other.split())))
    if form is not None:
        assert compile_pattern(exact_pattern(mine), kind, False)(form)
        if other_form is not None:
            assert compile_pattern(exact_pattern(mine), kind, False)(other_form) is (form.exact == other_form.exact)


# ---------------------------------------------------------------------------------------------------- values, normal


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", "."),
        ("a//b/./c/", "a/b/c"),
        ("a/../..", ".."),
        ("../a/../../b", "../../b"),
        ("/../a", "/a"),
        ("//a", "/a"),
        ("a/...", "a/..."),
        ("a\\..\\b", "a\\..\\b"),
    ],
)
def test_a_path_is_read_without_a_disk(text: str, normal: str) -> None:
    assert normalize_path(text) == normal


@pytest.mark.parametrize("text", ["a\0b", "a\nb", "a\x7fb", "a\x9bb", "a\ud800"])
def test_a_path_with_control_characters_is_not_read(text: str) -> None:
    assert normalize_path(text) is None


@given(st.text("ab./\\", max_size=12))
def test_a_normal_path_is_its_own_normal_form(text: str) -> None:
    normal = normalize_path(text)
    assert normal is not None
    assert normalize_path(normal) == normal
    assert ".." not in normal.lstrip("./").split("/")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "https:example.com",
        "https:///x",
        "https://user@example.com/",
        "https://user:pw@example.com/",
        "https://good.com@evil.com/",
        "https://good.com\\@evil.com/",
        "https://exa mple.com/",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://example.com/\u2028",
        "https://example.com/%",
        "https://example.com/%zz",
        "https://example.com:port/",
        "https://example.com:80:80/",
        "https://exämple.com/",
        "https://example。com/",
        "https://a..b/",
        "https://.a/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://1.2.3.400/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[fe80::1%25eth0]/",
        "http://a%2eb/",
        "1http://a/",
        "javascript:alert(1)",
        "https://example.com/\ud800",
    ],
)
def test_an_address_that_is_open_to_doubt_is_not_read(text: str) -> None:
    assert parse_url(text) is None


@given(st.builds("https://x.com{}".format, VALUES.map(lambda text: "/" + text)))
def test_a_normal_address_is_its_own_normal_form(text: str) -> None:
    url = parse_url(text)
    if url is not None:
        assert parse_url(str(url)) == url
        assert not {".", ".."} & set(url.path.split("/"))


def test_folding_makes_no_wildcards() -> None:
    assert fold_text("\uff0a") == "*"
    assert not fits("text", "a\uff0a", "abc", generous=True)


@pytest.mark.parametrize(
    ("kind", "pattern", "part"),
    [
        ("command", "rm '", "never closed"),
        ("command", " ", "at least one word"),
        ("path", "a/*/../b", "after a wildcard"),
        ("path", "a\nb", "control characters"),
        ("url", "example.com/**", "scheme"),
        ("url", "https://me@example.com", "user"),
        ("url", "https://exämple.com", "no host"),
        ("url", "https://example.com:x", "no port"),
        ("url", "https://[zz]/", "no host"),
        ("url", "https://example.com/../a", ". or .."),
        ("url", "https:///a", "no host"),
        ("url", "h*://example.com", "no scheme"),
    ],
)
def test_a_pattern_that_makes_no_sense_says_why_allows_nothing_and_denies_everything(
    kind: SubjectKind, pattern: str, part: str
) -> None:
    value = {"command": "x", "path": "x", "url": "https://x.com/", "text": "x"}[kind]

    assert part in explain_invalid_pattern(pattern, kind)
    assert not fits(kind, pattern, value)
    assert fits(kind, pattern, value, generous=True)


@given(st.text("ab*?/\\'\" .", max_size=8))
def test_no_pattern_makes_trouble_as_text(pattern: str) -> None:
    assert explain_invalid_pattern(pattern, "text") == ""
