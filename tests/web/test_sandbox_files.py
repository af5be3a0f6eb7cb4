"""The files of a conversation that stay in the browser: in its private file system, and in a database where it has none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser

from tests.helpers.scripted_server.server import Rig
from tests.web.sandbox_page import RUN, Bench

WITHOUT = "delete FileSystemFileHandle.prototype.createWritable"

ELSEWHERE: Final = (
    *("..", "../one/a", "a/../../b", "a/..", ".", "./a", "/a", "//a", "a//b", "", "a\\b", "..\\a", "a\0b", "a\nb"),
    *("C:", "a:b", "a|b", " a", "a ", "a.", "x" * 129, "/".join("a" * 9), "a/" * 300, "\ud800", "%2e%2e/a/."),
)


@pytest.fixture(scope="module", params=["opfs", "indexed"])
def bench(rig: Rig, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Bench]:
    context = browser.new_context()
    if request.param == "indexed":
        context.add_init_script(WITHOUT)
    yield Bench(rig, context.new_page())
    context.close()


def test_what_is_written_is_listed_and_read(bench: Bench) -> None:
    code = """
        await files.write('notes/today.md', 'first');
        await files.write('notes/today.md', '第二');
        await files.write('top.txt', '');
        return [await files.list(), await files.list('notes'), await files.list('notes/'), await files.read('notes/today.md')]
    """
    note = [{"name": "today.md", "kind": "file", "size": 6}]
    top = [{"name": "notes", "kind": "directory"}, {"name": "top.txt", "kind": "file", "size": 0}]
    assert bench.run(code, session="written").value == [top, note, note, "第二"]
    assert bench.run("return files.read('notes/today.md')", session="written").value == "第二"


def test_a_session_has_its_own(bench: Bench) -> None:
    bench.run("await files.write('a', 'one')", session="one")
    assert bench.run("return files.list()", session="two").value == []
    assert "there is no such file" in bench.run("return files.read('a')", session="two").text


def test_a_path_that_leads_elsewhere_is_refused(bench: Bench) -> None:
    code = """
        const texts = {};
        for (const path of %s) texts[path] = await files.write(path, 'x').then(() => 'written', (error) => error.message);
        return texts
    """
    texts = bench.run(code % json.dumps(ELSEWHERE), 20_000, session="paths").value
    assert len(texts) == len(set(ELSEWHERE))
    assert {path: text for path, text in texts.items() if "a path" not in text and "a name" not in text} == {}
    assert bench.run("return files.list()", session="paths").value == []


def test_what_is_too_much_is_refused(bench: Bench) -> None:
    ran = bench.run("await files.write('big', 'x'.repeat(1e6 + 1))", session="large")
    assert "at most 1000000 bytes, and this one 1000001" in ran.text
    code = "for (let at = 0; at < 21; at++) await files.write('f' + at, 'x'.repeat(1e6))"
    ran = bench.run(code, 30_000, session="large")
    assert "all files have at most 20000000 bytes" in ran.text
    assert len(bench.run("return files.list()", session="large").value) == 20
    assert bench.run("return files.write('f0', 'less')", session="large").value == 4


def test_a_directory_is_no_file_and_a_file_no_directory(bench: Bench) -> None:
    bench.run("await files.write('a/b', 'x')", session="kinds")
    for code in ("files.write('a/b/c', 'x')", "files.write('a', 'x')"):
        assert "a file is meant" in bench.run(f"await {code}", session="kinds").text
    assert bench.run("return files.read('a/b')", session="kinds").value == "x"
    assert "no such file or directory" in bench.run("return files.list('b')", session="kinds").text


def test_what_was_asked_for_before_the_end_is_not_done_after_it(bench: Bench) -> None:
    ran = bench.run("for (let at = 0; at < 900; at++) files.write('n', String(at)); for (;;);", 300, session="ended")
    assert ran.failed
    first = bench.run("return files.read('n').catch(() => '')", session="ended").value
    assert bench.run("return files.read('n').catch(() => '')", session="ended").value == first


def test_of_two_tabs_one_has_written_last(bench: Bench) -> None:
    other = Bench(bench.rig, bench.page.context.new_page())
    code = "for (let at = 0; at < 20; at++) await files.write('same', '{}'.repeat(50000))"
    start = f"(given) => {{ window.ran = ({RUN})(given); 0 }}"
    for tab, letter in ((bench, "a"), (other, "b")):
        tab.page.evaluate(start, [*tab.chunks, code.replace("{}", letter), 20_000, "tabs"])
    for tab in (bench, other):
        assert not tab.page.evaluate("window.ran")["failed"]
    text = bench.run(
        "return (await files.read('same')).replace(/(.)\\1*/g, (all) => all[0] + all.length)", session="tabs"
    )
    assert text.value in ("a50000", "b50000")
    other.page.close()


def test_a_browser_that_has_no_more_storage_says_so(rig: Rig, browser: Browser) -> None:
    bench = Bench(rig, browser.new_page())
    session = bench.page.context.new_cdp_session(bench.page)
    session.send("Storage.overrideQuotaForOrigin", {"origin": bench.rig.url, "quotaSize": 1000})
    try:
        ran = bench.run("await files.write('much', 'x'.repeat(900000))", session="room")
    finally:
        session.send("Storage.overrideQuotaForOrigin", {"origin": bench.rig.url})
    assert "gives no more room" in ran.text
    assert bench.run("await files.write('little', 'x'); return files.read('little')", session="room").value == "x"
    bench.page.close()
