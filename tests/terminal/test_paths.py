"""Names of files, from people who mean well and from models that may not."""

import resource
from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from everturn.core.parts import FilePart
from everturn.errors import ConfigError
from everturn.terminal.text import paths
from everturn.terminal.text.paths import (
    format_size,
    parse_dropped_paths,
    parse_paths,
    safe_name,
    save_path,
    write_new_file,
)

ANYTHING = st.text(st.characters(exclude_categories=()))


def file_part(name: str, media_type: str = "image/png") -> FilePart:
    return FilePart("blob", media_type, 1, name)


@drawn(ANYTHING, st.sampled_from(["image/png", "no/such", ""]))
def test_a_name_from_a_model_is_one_that_is_shown_and_leads_nowhere(name: str, media_type: str):
    safe = safe_name(file_part(name, media_type))

    assert safe.isprintable()
    assert not set(safe) & set("/\\:")
    assert safe[0] not in ".-~ "
    assert len(safe.encode()) <= 250
    assert Path("somewhere", safe).parent == Path("somewhere")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("cat.png", "cat.png"),
        ("two cats.png", "two cats.png"),
        ("Übung.jpeg", "Übung.jpeg"),
        ("", "file.png"),
        ("..", "file.png"),
        ("cat", "cat.png"),
        (".bashrc", "bashrc.png"),
        ("../../etc/passwd", "passwd.png"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("-rf.png", "rf.png"),
        ("a\x1b[2Jb.png", "a_[2Jb.png"),
        ("cat\u202egnp.exe", "cat_gnp.exe"),
        ("x" * 300 + ".png", "x" * 48 + ".png"),
    ],
)
def test_a_name_stays_what_it_is_where_it_can(name: str, safe: str):
    assert safe_name(file_part(name)) == safe


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a.png", ["a.png"]),
        ("a.png b.png\nc.png", ["a.png", "b.png", "c.png"]),
        ("'my cat.png' \"my dog.png\"", ["my cat.png", "my dog.png"]),
        (r"my\ cat.png", ["my cat.png"]),
        ("it's.png", ["it's.png"]),
        ("file:///tmp/my%20cat.png", ["/tmp/my cat.png"]),
        ("~/a.png '~/b c.png'", ["/home/ada/a.png", "/home/ada/b c.png"]),
    ],
)
def test_paths_are_read_as_terminals_paste_them(monkeypatch: pytest.MonkeyPatch, text: str, names: list[str]):
    monkeypatch.setenv("HOME", "/home/ada")

    assert parse_paths(text) == [Path(name) for name in names]


def test_a_path_with_blanks_needs_no_quotes_when_it_is_the_only_one(tmp_path: Path):
    (tmp_path / "my big cat.png").write_bytes(b"x")

    assert parse_paths(f"{tmp_path}/my big cat.png") == [tmp_path / "my big cat.png"]


def test_a_line_is_dropped_files_only_when_it_is_nothing_else(tmp_path: Path):
    cat, dog = tmp_path / "my cat.png", tmp_path / "dog.png"
    cat.write_bytes(b"x")
    dog.write_bytes(b"x")

    assert parse_dropped_paths(str(dog)) == [dog]
    assert parse_dropped_paths(f"'{cat}' {dog}") == [cat, dog]
    assert parse_dropped_paths(cat.as_uri()) == [cat]
    for line in (f"{dog} what is it?", str(tmp_path), "dog.png", f"/{'x' * 5000}", "/new", "'/"):
        assert parse_dropped_paths(line) == []


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1 B"), (999, "999 B"), (1000, "1 kB"), (1549, "1.5 kB"), (999_949, "1 MB"), (3_221_225_472, "3.2 GB")],
)
def test_a_size_is_said_as_people_say_it(count: int, text: str):
    assert format_size(count) == text


def test_a_file_is_never_written_over_nor_through_a_link(tmp_path: Path):
    (tmp_path / "cat.png").write_bytes(b"mine")
    (tmp_path / "cat-2.png").symlink_to(tmp_path / "elsewhere.png")

    assert write_new_file(b"new", tmp_path / "cat.png") == tmp_path / "cat-3.png"
    assert (tmp_path / "cat.png").read_bytes() == b"mine"
    assert not (tmp_path / "elsewhere.png").exists()


def test_nothing_is_left_of_a_file_that_does_not_fit(tmp_path: Path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(ConfigError, match=r"cat\.png cannot be written: File too large"):
            write_new_file(b"x" * 100_000, tmp_path / "cat.png")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert list(tmp_path.iterdir()) == []


def test_a_target_is_a_folder_or_a_name(tmp_path: Path):
    cat = file_part("cat.png")
    assert save_path("", cat) == Path("cat.png")
    assert save_path(str(tmp_path), cat) == tmp_path / "cat.png"
    assert save_path(f"{tmp_path}/new/", cat) == tmp_path / "new" / "cat.png"
    assert save_path(f"{tmp_path}/my kitty", cat) == tmp_path / "my kitty.png"
    assert save_path(f"'{tmp_path}/my kitty.jpg'", cat) == tmp_path / "my kitty.jpg"
    with pytest.raises(ConfigError, match=r"there is no folder .*/none; /save .*/none/ creates it"):
        save_path(f"{tmp_path}/none/kitty", cat)


def test_a_file_that_is_too_large_is_not_even_read(tmp_path: Path):
    huge = tmp_path / "huge.bin"
    with huge.open("wb") as out:
        out.truncate(60_000_000)

    with pytest.raises(ConfigError, match=r"huge\.bin is too large: 60 MB, and 50 MB can be sent"):
        paths.check_sendable(huge)
