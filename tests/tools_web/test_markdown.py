"""HTML to markdown: what is kept, what is dropped, and pages that mean ill."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from everturn.tools.web.charset import decode_page
from everturn.tools.web.markdown import html_to_markdown, tokenize_html

PAGE = """<!doctype html><html><head><title>Cats &amp; <b>dogs</b></title><style>p {}</style><base href="/docs/"></head><body>
<nav><a href=a>One</a> <a href="javascript:x()">Two</a> <a href="#here">Three</a></nav>
<h1>Hello <em>you</em></h1><p>Text with <b>bold</b>, <code>c()</code> and <a href="../x?a=1&amp;b=(2)">a  link</a>.<br>next
<ul><li>one<li>two<ul><li>inner</ul><li><p>three</p></ul><ol><li>a</li><li>b</li></ol>
<blockquote><p>q1</p><p>q2</p></blockquote><pre><code>def f():
    return "```"
</code></pre><table><tr><th>A<th>B</tr><tr><td><p>1</p><td>2|3</tr></table>
<img src="http://e.org/x.png?secret" alt="a cat"><script>alert("<p>")</script><!-- c --><b></b>end<hr>after
<table><tr><td><h2>laid out</h2><p>x</p><td>y</table></body>"""


def test_a_page_reads_as_markdown() -> None:
    page = html_to_markdown(PAGE, "https://e.org/q")
    assert page.title == "Cats & <b>dogs</b>"
    assert page.text == snapshot("""\
[One](https://e.org/docs/a) Two Three

# Hello *you*

Text with **bold**, `c()` and [a link](https://e.org/x?a=1&b=%282%29).
next

- one
- two
  - inner

- three

1. a
2. b

> q1
>
> q2

````
def f():
    return "```"
````

| A | B |
| --- | --- |
| 1 | 2\\|3 |

[image: a cat] end

---

after

## laid out

x

y\
""")
    assert not page.is_cut


@pytest.mark.parametrize(
    "source",
    [
        "<script>SECRET</script>",
        "<SCRIPT >SECRET</SCRIPT >",
        "<script>'</scriptx>' SECRET</script>",
        "<style>SECRET</style>",
        "<template><p>SECRET</p></template>",
        "<svg><text>SECRET</text></svg>",
        "<p hidden>SECRET</p>",
        "<div hidden=until-found>a<div>b</div>SECRET</div>",
        "<div style='color:red; DISPLAY : none'>SECRET</div>",
        "<span style=visibility:hidden>SECRET</span>",
        "<span style='opacity:0'>SECRET</span>",
        "<span style='font-size: 0'>SECRET</span>",
        "<!-- SECRET -->",
        "<!-- <p> --SECRET -->",
        "<!SECRET>",
        "<?SECRET?>",
        "<select><option>SECRET</select>",
        "<textarea>SECRET</textarea>",
        "<iframe src=x>SECRET</iframe>",
        "<img src=SECRET>",
        "<a href='javascript:SECRET'>x</a>",
        "<a href='data:text/html,SECRET'>x</a>",
        "<a title='>SECRET'>x</a>",
        "<meta content=SECRET>",
        "<input value=SECRET>",
    ],
)
def test_what_nobody_sees_is_dropped_and_what_follows_is_kept(source: str) -> None:
    text = html_to_markdown(f"<p>before</p>{source}<p>after</p>", "https://e.org/").text
    assert "SECRET" not in text
    assert text.startswith("before")
    assert text.endswith("after")


@pytest.mark.parametrize("style", ["opacity:0.5", "font-size:0.9em", "display:block"])
def test_what_can_be_seen_is_kept(style: str) -> None:
    assert html_to_markdown(f"<p style='{style}'>here</p>").text == "here"


def test_links_are_absolute_and_cannot_end_early() -> None:
    page = "<a href='/a b'>1</a><a href='?q=(x)'>2</a><a href='//other.org/\u00e9'>3</a><a href='http://['>4</a>"
    assert html_to_markdown(page, "https://e.org/d/").text == (
        "[1](https://e.org/a%20b)[2](https://e.org/d/?q=%28x%29)[3](https://other.org/%C3%A9)4"
    )


N = 120_000
HOSTILE = {
    "deep": "<div>" * (N // 5) + "x",
    "lists": "<ul><li>" * (N // 8) + "x",
    "quotes": "<blockquote>" * (N // 12) + "x<br>y",
    "tables": "<table><tr><td>" * (N // 15),
    "links": "<a href=x>" * (N // 10),
    "bold": "<b>" * (N // 3) + "x",
    "less": "<" * N,
    "comments": "<!--" * (N // 4),
    "instructions": "<?" * (N // 2),
    "declarations": "<![" * (N // 3),
    "ends": "</" * (N // 2),
    "end tags": "</p>" * (N // 4),
    "quotes of attributes": "<a " + "a=' " * (N // 4),
    "attributes": "<a " + "a " * (N // 2) + ">x",
    "equals": "<a " + "=" * N,
    "slashes": "<a " + "/" * N,
    "open tags": "<a" * (N // 2),
    "ampersands": "&" * N,
    "entities": "&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * (N // 33),
    "a number": "&#" + "1" * N + ";",
    "spaces": "<p>" + " " * N + "x",
    "scripts": "<script>" * (N // 8),
    "titles": "<title>" * (N // 7),
    "hidden": "<p hidden>" * (N // 10),
    "lines": "<blockquote>" * 9 + "<pre>" + "\n" * N,
    "ticks": "<pre>" + "`" * N + "</pre>",
    "breaks": "<blockquote>" * 9 + "<ul>" * 9 + "x<br>" * (N // 5),
    "styles": "<p style='" + "d " * (N // 2) + "'>x",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_that_means_ill_costs_what_its_length_costs(name: str) -> None:
    began = time.process_time()
    page = html_to_markdown(HOSTILE[name], "https://e.org/" + "p" * 1000, most=N)
    # Not how fast, which depends on the machine: what grows with the square would take minutes.
    assert time.process_time() - began < 8
    assert len(page.text) <= N


def test_the_text_is_never_longer_than_agreed_and_says_that_it_was_cut() -> None:
    page = html_to_markdown("<p>word</p>" * 1000, most=100)
    assert (len(page.text) <= 100, page.is_cut) == (True, True)


def test_it_stops_when_it_is_told_to() -> None:
    checks = 0

    def is_over() -> bool:
        nonlocal checks
        checks += 1
        return checks == 3

    page = html_to_markdown("<p>x" * 10_000, is_over=is_over)
    assert (page.is_cut, checks, page.text.count("x")) == (True, 3, 256)


@given(
    st.text("<>/!-?='\" ab&#;x", max_size=60) | st.lists(st.sampled_from(PAGE.split("<")), max_size=20).map("<".join)
)
def test_any_text_is_a_page(source: str) -> None:
    page = html_to_markdown(source, "https://e.org/")
    assert "\n\n\n" not in page.text or "<pre" in source
    assert all(isinstance(token, str) or token.name for token in tokenize_html(source))


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("h\u00e9".encode(), "", "h\u00e9"),
        ("h\u00e9".encode(), "utf-8", "h\u00e9"),
        ("h\u00e9".encode("latin-1"), "", "h\u00e9"),
        ("\u201ch\u00e9\u201d".encode("cp1252"), "iso-8859-1", "\u201ch\u00e9\u201d"),
        ("\u65e5\u672c".encode("shift_jis"), "shift_jis", "\u65e5\u672c"),
        ("\u65e5\u672c".encode("gb18030"), "gb2312", "\u65e5\u672c"),
        ("h\u00e9".encode("utf-16"), "", "h\u00e9"),
        ("h\u00e9".encode("utf-16-le"), "utf-16le", "h\u00e9"),
        (b"\xef\xbb\xbfh\xc3\xa9", "iso-8859-1", "h\u00e9"),
        (b"<meta charset='koi8-r'>" + "\u043f".encode("koi8-r"), "", "<meta charset='koi8-r'>\u043f"),
        (b"abc", "unicode_escape", "abc"),
        (b"\\x41", "unicode_escape", "\\x41"),
        (b"abc", "idna", "abc"),
        (b"abc", "zip", "abc"),
        (b"abc", "no-such-charset", "abc"),
        (b"+ADw-", "utf-7", "+ADw-"),
        (b"h\xc3", "utf-8", "h\ufffd"),
        (b"a\x1b[31mb\r\nc\x07", "utf-8", "a[31mb\nc"),
        ("a\u202eb\U000e0041c".encode(), "utf-8", "abc"),
        (b"a\x00b", "utf-8", None),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "", None),
    ],
)
def test_bytes_are_read_in_the_charset_they_are_in(body: bytes, charset: str, text: str | None) -> None:
    assert decode_page(body, charset, is_html=True) == text
