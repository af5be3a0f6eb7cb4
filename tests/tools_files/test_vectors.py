"""Ways out of the root, each tried by every tool and by both ways of opening: a canary outside is never read or written."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.tools_files.fake_app import Desk, folder_desk

from everturn.errors import ToolError
from everturn.tools.files import openat
from everturn.tools.files.folder import Folder

CANARY = "canary-7f3a"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux lets two names change places")

WRITTEN = [  # as a model may write them; {up} is the folder around the root
    "../outside/canary.txt",
    "../../outside/canary.txt",
    "./../outside/canary.txt",
    "inner/../../outside/canary.txt",
    "inner/./../../outside/canary.txt",
    "inner/deep/../../../outside/canary.txt",
    "missing/../../outside/canary.txt",
    "..",
    "../",
    "../root-evil/canary.txt",
    "../root/../outside/canary.txt",
    "inner//..//..//outside/canary.txt",
    "{up}/outside/canary.txt",
    "{up}/root/../outside/canary.txt",
    "{up}/root-evil/canary.txt",
    "//{up}/outside/canary.txt",
    "/",
    "/etc/passwd",
    "/proc/self/root{up}/outside/canary.txt",
    "/proc/self/cwd/canary.txt",
    "/dev/stdin",
    "~/canary.txt",
    "~",
    "~root/canary.txt",
    "file://{up}/outside/canary.txt",
    "..\\outside\\canary.txt",
    "inner\\..\\..\\outside\\canary.txt",
    "C:\\outside\\canary.txt",
    "C:/outside/canary.txt",
    "C:canary.txt",
    "\\\\server\\share\\canary.txt",
    "\\\\?\\C:\\canary.txt",
    "//server/share/canary.txt",
    "note.txt:stream",
    "note.txt::$DATA",
    ".git::$INDEX_ALLOCATION/config",
    "NUL",
    "nul.txt",
    "con",
    "inner/AUX.c",
    "COM1",
    "com¹.txt",
    "LPT9.log",
    "CONIN$",
    "..\0/outside/canary.txt",
    "note.txt\0.png",
    "\0",
    "note\n.txt",
    "note\r.txt",
    "note\x7f.txt",
    "note\x85.txt",
    "note\u2028.txt",
    "note\u202etxt.exe",
    "note\ud800.txt",
    ".. /outside/canary.txt",
    "... /outside/canary.txt",
    ".../outside/canary.txt",
    "..../canary.txt",
    "note.txt.",
    "note.txt ",
    "inner./note.txt",
    "%2e%2e/outside/canary.txt",
    "..%2foutside%2fcanary.txt",
    "%2e%2e%2foutside%2fcanary.txt",
    "..%c0%afoutside/canary.txt",
    "‥/outside/canary.txt",
    "\uff0e\uff0e/outside/canary.txt",
    "..\uff0foutside\uff0fcanary.txt",
    "..\u2215outside\u2215canary.txt",
    "$HOME/canary.txt",
    "${{PWD}}/../outside/canary.txt",
    "`pwd`/../outside/canary.txt",
    "a" * 256,
    "a/" * 3000 + "a",
    "a/" * 65 + "a",
    "",
]
MADE = [  # things that lie in the root and lead out, or are no files; see `world`
    "link-file",
    "link-up",
    "link-up/outside/canary.txt",
    "link-out/canary.txt",
    "link-out/new.txt",
    "inner/link-out/canary.txt",
    "inner/link-relative",
    "link-dangling",
    "link-dangling-folder/new.txt",
    "link-absolute-root/etc/passwd",
    "link-chain-1",
    "link-chain-folder/canary.txt",
    "link-loop",
    "link-loop/x",
    "link-proc/root{up}/outside/canary.txt",
    "link-proc/cwd",
    "link-fd/0",
    "link-inside",
    "link-inside-folder/note.txt",
    "pipe",
    "socket",
    "link-device",
]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A root with a sibling whose name begins as its own, and links of every kind."""
    root, outside, evil = tmp_path / "root", tmp_path / "outside", tmp_path / "root-evil"
    for folder in (root / "inner" / "deep", outside, evil):
        folder.mkdir(parents=True)
    for folder in (outside, evil, tmp_path):
        (folder / "canary.txt").write_text(CANARY, encoding="utf-8")
    (root / "note.txt").write_text("a note", encoding="utf-8")
    (root / "inner" / "note.txt").write_text("a note", encoding="utf-8")
    links = {
        "link-file": outside / "canary.txt",
        "link-up": "..",
        "link-out": outside,
        "inner/link-out": outside,
        "inner/link-relative": "../../outside/canary.txt",
        "link-dangling": outside / "new.txt",
        "link-dangling-folder": outside / "new",
        "link-absolute-root": "/",
        "link-chain-1": "link-chain-2",
        "link-chain-2": "link-file",
        "link-chain-folder": "link-out",
        "link-loop": "link-loop",
        "link-proc": "/proc/self",
        "link-fd": "/proc/self/fd",
        "link-inside": "note.txt",
        "link-inside-folder": "inner",
        "link-device": "/dev/zero",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as unix_socket:
        previous = os.getcwd()
        try:
            os.chdir(root)  # the path of a socket may be no longer than 108 bytes
            unix_socket.bind("socket")
        finally:
            os.chdir(previous)
    return root


def outside_of(root: Path) -> dict[str, str]:
    """All that is around the root, by content."""
    found: dict[str, str] = {}
    for path in root.parent.rglob("*"):
        if root not in (path, *path.parents):
            found[str(path)] = path.read_text(encoding="utf-8") if path.is_file() else ""
    return found


async def tried(desk: Desk, path: str) -> list[str]:
    """What every tool and the preview say of a path."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_directory", {}),
        ("read_file", {}),
        ("search_files", {"text": "canary"}),
        ("search_files", {"text": "can.ry", "regex": True}),
        ("edit_file", {"old_text": "canary", "new_text": "stolen"}),
        ("write_file", {"content": "overwritten"}),
    ]
    texts: list[str] = []
    for name, more in calls:
        try:
            if name in ("edit_file", "write_file"):
                texts.append((await desk.preview(name, path=path, **more)).text)
            texts.append(await desk.text(name, path=path, **more))
        except ToolError as error:
            texts.append(f"refused: {error}")
    return texts


@pytest.mark.parametrize("in_one", [True, False], ids=["openat2", "walk"])
@pytest.mark.parametrize("vector", [*WRITTEN, *MADE], ids=lambda vector: ascii(vector)[:40])
async def test_no_path_leads_out_of_the_root(world: Path, vector: str, in_one: bool) -> None:
    if in_one and not openat.has_openat2():
        pytest.skip("this kernel has no openat2")
    before = outside_of(world)
    path = vector.format(up=world.parent)
    texts = await tried(folder_desk(world, in_one=in_one), path)
    assert not any(CANARY in text for text in texts)
    assert outside_of(world) == before
    if vector in MADE:
        assert all(text.startswith("refused") for text in texts), texts


@pytest.mark.parametrize("in_one", [True, False], ids=["openat2", "walk"])
async def test_the_folder_itself_holds_when_nobody_read_the_path_before(world: Path, in_one: bool) -> None:
    before = outside_of(world)
    folder = Folder(world, in_one=in_one and openat.has_openat2())
    for vector in (*WRITTEN, *MADE):
        path = vector.format(up=world.parent)
        for attempt in (folder.read(path), folder.list(path), folder.change(path, lambda old: b"overwritten")):
            try:
                outcome = repr(await attempt)
            except (ToolError, UnicodeEncodeError) as error:  # the latter: half of a character
                outcome = str(error)
            assert CANARY not in outcome
        assert outside_of(world) == before


def test_there_are_enough_vectors() -> None:
    assert len({*WRITTEN, *MADE}) >= 60


def test_what_is_refused_for_its_spelling_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    harmless = ("%2e", "..%", "‥", "\uff0e", "..\uff0f", "..\u2215", "$HOME", "${", "`pwd", "~root", "...", "..../")
    desk = folder_desk(tmp_path)
    for path in (vector.format(up="/somewhere") for vector in WRITTEN):
        if path.startswith(harmless) and "/../" not in path and not path.startswith("..."):
            assert (
                desk.tools["read_file"].validate({"path": path})["path"] == path
            )  # just an odd name, beneath the root
        else:
            with pytest.raises(ToolError, match="cannot be used as a path"):
                desk.tools["read_file"].validate({"path": path})


async def test_a_link_is_refused_in_words_that_say_so(world: Path) -> None:
    for in_one in (openat.has_openat2(), False):
        desk = folder_desk(world, in_one=in_one)
        for path in ("link-inside", "link-inside-folder/note.txt", "link-out/canary.txt"):
            with pytest.raises(ToolError, match="not even those that stay inside"):
                await desk.text("read_file", path=path)


async def test_a_pipe_is_not_even_opened(world: Path) -> None:
    """A reader, however short, would let the writer of a pipe go on, and then break it."""
    desk = folder_desk(world)
    with pytest.raises(ToolError, match="pipe, socket or device"):
        await desk.text("read_file", path="pipe")
    with pytest.raises(OSError, match="No such device"):  # nobody reads it
        os.open(world / "pipe", os.O_WRONLY | os.O_NONBLOCK)


async def test_a_file_with_two_names_is_read_and_not_written(world: Path) -> None:
    os.link(world.parent / "canary.txt", world / "hard.txt")
    desk = folder_desk(world)
    for name, more in (("write_file", {"content": "x"}), ("edit_file", {"old_text": "canary", "new_text": "x"})):
        with pytest.raises(ToolError, match="2 names"):
            await desk.text(name, path="hard.txt", **more)
    assert (world.parent / "canary.txt").read_text(encoding="utf-8") == CANARY


def test_the_whole_disk_is_no_root() -> None:
    from everturn.errors import ConfigError

    with pytest.raises(ConfigError, match="whole disk"):
        Folder("/")
    with pytest.raises(ConfigError, match="not a folder"):
        Folder("/nowhere/at/all")


class Swapping:
    """A thread that has two names change places, again and again, with no moment at which one of them is not there."""

    def __init__(self, first: Path, other: Path) -> None:
        self.swaps = 0
        self._names = os.fsencode(first), os.fsencode(other)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._swap)

    def __enter__(self) -> Swapping:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()

    def _swap(self) -> None:
        rename, (first, other) = ctypes.CDLL(None).renameat2, self._names
        while not self._over.is_set():
            assert rename(-100, first, -100, other, 2) == 0  # RENAME_EXCHANGE
            self.swaps += 1


@linux
@pytest.mark.parametrize("in_one", [True, False], ids=["openat2", "walk"])
def test_a_directory_that_is_swapped_for_a_link_all_the_time_never_leads_out(world: Path, in_one: bool) -> None:
    if in_one and not openat.has_openat2():
        pytest.skip("this kernel has no openat2")
    folder = Folder(world, in_one=in_one)
    (world / "swap").mkdir()
    (world / "swap" / "canary.txt").write_text("inside", encoding="utf-8")
    (world / "bait").symlink_to(world.parent / "outside")
    before = outside_of(world)
    read: dict[str, int] = {"inside": 0, "refused": 0}
    tries = 0
    with Swapping(world / "swap", world / "bait") as swapping:
        while tries < 5_000 or swapping.swaps < 5_000 or min(read.values()) < 10:
            tries += 1
            try:
                content = folder._read("swap/canary.txt").decode().rstrip("!")
                if tries % 20 == 0:
                    folder._change("swap/canary.txt", lambda old: b"inside" if old != b"inside" else b"inside!")
                    folder._change(f"swap/new-{tries % 100}.txt", lambda old: (old or b"") + b"new")
            except ToolError:
                content = "refused"
            read[content] = read.get(content, 0) + 1
    assert read.keys() == {"inside", "refused"}
    assert outside_of(world) == before


@linux
def test_a_file_that_is_swapped_for_a_link_all_the_time_is_never_what_it_leads_to(world: Path) -> None:
    folder = Folder(world)
    (world / "swap").write_text("inside", encoding="utf-8")
    (world / "bait").symlink_to(world.parent / "canary.txt")
    read: dict[bytes, int] = {b"inside": 0, b"refused": 0}
    tries = 0
    with Swapping(world / "swap", world / "bait") as swapping:
        while tries < 5_000 or swapping.swaps < 5_000 or min(read.values()) < 10:
            tries += 1
            try:
                content = folder._read("swap")
            except ToolError:
                content = b"refused"
            read[content] = read.get(content, 0) + 1
    assert read.keys() == {b"inside", b"refused"}


def test_a_new_file_never_takes_a_name_that_something_has(tmp_path: Path) -> None:
    for name in ("new", "taken"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(FileExistsError):
            openat.rename_noreplace(directory, "new", "taken")
        assert (tmp_path / "taken").read_text(encoding="utf-8") == "taken"
        openat.rename_noreplace(directory, "new", "free")
    finally:
        os.close(directory)
    assert sorted(os.listdir(tmp_path)) == ["free", "taken"]
