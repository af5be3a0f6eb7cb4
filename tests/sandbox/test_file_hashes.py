"""A command that a person allowed runs with the files that they allowed it with, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn import Chat
from everturn.core.events import CallFinished
from everturn.events import GateOpened
from everturn.permissions.shell.command_line import read_command
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools.code import file_hashes
from everturn.tools.code.shell import run_shell


def names(line: str) -> set[str]:
    return set(file_hashes.named_paths([{"command": item} for item in read_command(line)]))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sh build.sh", {"sh", "build.sh"}),
        ("sh bui''ld.sh", {"build.sh"}),
        ("sh $'\\x62uild.sh'", {"build.sh"}),
        ("./build.sh", {"build.sh"}),
        ("sh /work/a/../build.sh", {"build.sh"}),
        ("bash -c 'sh build.sh'", {"build.sh"}),
        ("make --file=x.mk -fy.mk", {"x.mk", "y.mk"}),
        ("curl -d @data.json u", {"data.json"}),
        ("cd sub && sh build.sh", {"sub/build.sh", "build.sh"}),
        ("sh {a,b}.sh", {"a.sh", "b.sh"}),
        ("python src/*.py", {"src/*.py"}),
        ("cat < in.txt", {"in.txt"}),
        ("echo x | xargs sh run.sh", {"run.sh"}),
    ],
)
def test_the_names_of_a_line_are_found_however_they_are_written(line: str, expected: set[str]) -> None:
    assert expected <= names(line)


def test_no_name_leaves_the_folder() -> None:
    assert not any(
        name.startswith(("/", "..")) for name in names("cat /etc/passwd ../x a/../../y $HOME ~/z /work/../q")
    )


def test_what_a_file_holds_is_seen_and_that_it_comes_or_goes(tmp_path: Path) -> None:
    folder = str(tmp_path.resolve())
    (tmp_path / "a.sh").write_text("echo a", encoding="utf-8")
    (tmp_path / "link").symlink_to("a.sh")
    os.mkfifo(tmp_path / "pipe")
    line = [{"command": item} for item in read_command("sh a.sh link later *.sh pipe; cat /etc/passwd")]
    shown = file_hashes.preview_files(folder, line)
    assert shown.text == "with these files as they are now: a.sh, link, *.sh, pipe"
    assert file_hashes.changed_files(folder, shown.base_version) == []
    (tmp_path / "later").write_text("x", encoding="utf-8")
    assert file_hashes.changed_files(folder, shown.base_version) == ["later"]
    (tmp_path / "b.sh").write_text("echo b", encoding="utf-8")
    assert file_hashes.changed_files(folder, shown.base_version) == ["*.sh", "later"]
    (tmp_path / "a.sh").write_text("echo b", encoding="utf-8")
    assert file_hashes.changed_files(folder, shown.base_version) == ["*.sh", "a.sh", "later", "link"]


@pytest.fixture
def folder() -> Iterator[Path]:
    # Whoever runs in the sandbox must get there, and nobody else gets into the folder of pytest.
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        (folder / "build.sh").write_text("echo good >> out\n", encoding="utf-8")
        folder.chmod(0o755)
        if os.getuid() == 0:
            for path in (folder, *folder.iterdir()):
                os.chown(path, 65_533, 65_533)
        yield folder


@pytest.mark.live
async def test_a_file_that_changed_after_the_gate_is_not_run_and_asked_about_again(folder: Path) -> None:
    tool = run_shell(folder, writable=True, approval="ask")
    once = calls(call("run_shell", command="sh build.sh"))
    gates: list[str] = []
    settled: list[str] = []
    async with Chat(ScriptedModel([once], [once], say("done")), tools=[tool]) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, GateOpened):
                gates.append(event.gate.preview)
                if len(gates) == 1:
                    (folder / "build.sh").write_text("echo evil >> out\n", encoding="utf-8")
                await turn.answer(event.gate, allow="once")
            elif isinstance(event, CallFinished):
                settled.append(event.output.text)
    assert gates == ["with these files as they are now: build.sh"] * 2
    assert settled[0].startswith("'build.sh' changed after the person was asked about this command; nothing was run.")
    assert (folder / "out").read_text(encoding="utf-8") == "evil\n"  # once, and only after the second question


@pytest.mark.live
async def test_the_files_are_still_bound_when_another_process_takes_over(folder: Path) -> None:
    store = MemoryStore()
    script = ([calls(call("run_shell", command="sh build.sh"))], say("done"))

    def process() -> Chat:
        tool = run_shell(folder, writable=True, approval="ask")
        return Chat(ScriptedModel(*script), tools=[tool], store=store, session="s1")

    async with process() as first:
        turn = await first.send("go")
        async for event in turn:
            if isinstance(event, GateOpened):
                break
    (folder / "build.sh").write_text("echo evil >> out\n", encoding="utf-8")
    async with process() as second:
        [gate] = await second.gates()
        assert gate.base_version
        await second.answer(gate, allow="once")
        settled = [event.output.text async for event in second.turn(turn.id) if isinstance(event, CallFinished)]
    assert [text.partition(";")[0] for text in settled] == [
        "'build.sh' changed after the person was asked about this command"
    ]
    assert not (folder / "out").exists()


@pytest.mark.live
async def test_a_command_that_the_person_wrote_is_run_with_the_files_they_were_shown(folder: Path) -> None:
    tool = run_shell(folder, writable=True, approval="ask")
    async with Chat(
        ScriptedModel([calls(call("run_shell", command="sh build.sh"))], say("done")), tools=[tool]
    ) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, GateOpened):
                await turn.answer(event.gate, allow="once", arguments={"command": "sh build.sh; echo more >> out"})
            elif isinstance(event, CallFinished):
                assert event.output.text == "[it wrote nothing, and ended well]"
    assert (folder / "out").read_text(encoding="utf-8") == "good\nmore\n"
