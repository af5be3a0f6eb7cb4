"""Files that go with a message and files that come with an answer, in front of a terminal and in a pipe."""

import os
from pathlib import Path

import pytest
from tests.terminal.chat_process import PROMPT, Start, ask, pipe

CAT = b"a cat" * 300
ROW = "↓ cat.png  image/png, 1.5 kB\n"


@pytest.fixture
def upload_folder(tmp_path: Path) -> Path:
    """A folder with some files to send."""
    (tmp_path / "my notes.txt").write_text("dear")
    (tmp_path / "talk.mp3").write_bytes(b"la la")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# A person attaches


def test_an_attached_file_goes_with_the_next_message_and_no_other(start: Start, upload_folder: Path):
    terminal = start(cwd=upload_folder)

    shown = ask(terminal, "/attach 'my notes.txt' talk.mp3")
    assert "↑ my notes.txt  text/plain, 4 B\n↑ talk.mp3  audio/mpeg, 5 B\n· what is attached goes with" in shown
    assert "my notes.txt=b'dear'; talk.mp3=b'la la'\n" in ask(terminal, "Read").replace("\nnotes", " notes")
    assert "· nothing is attached; /attach PATH" in ask(terminal, "/attach")


def test_what_is_attached_can_be_looked_at_and_dropped(start: Start, upload_folder: Path):
    terminal = start(cwd=upload_folder)
    ask(terminal, "/attach my notes.txt")
    ask(terminal, "/attach my notes.txt")

    shown = ask(terminal, "/attach")
    assert shown.count("↑ my notes.txt  text/plain, 4 B\n") == 1
    assert "/detach drops it" in shown.replace("\n  ", " ")
    assert "· 1 file dropped\n" in ask(terminal, "/detach")
    assert "my notes.txt" not in ask(terminal, "Hello")


def test_a_file_dropped_on_the_prompt_is_attached_and_not_sent(start: Start, upload_folder: Path):
    terminal = start(cwd=upload_folder)

    shown = ask(terminal, f"\x1b[200~'{upload_folder}/my notes.txt' \x1b[201~") + ask(
        terminal, f"{upload_folder}/talk.mp3"
    )
    assert "↑ my notes.txt" in shown
    assert "↑ talk.mp3" in shown
    assert "ada>" not in shown
    assert "heard '/" in ask(terminal, f" {upload_folder}/talk.mp3").replace("\n", " ")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("nope.txt", "there is no file nope.txt; is the path right?"),
        ("empty.txt", "empty.txt is empty; there is nothing to send"),
        ("folder", "folder is a folder; name the files in it"),
        ("pipe", "pipe is not a regular file; copy its content to one"),
        ("talk.mp3 nope.txt", "there is no file nope.txt"),
    ],
)
def test_a_file_that_cannot_be_sent_is_one_line_and_nothing_is_attached(
    start: Start, upload_folder: Path, path: str, expected: str
):
    terminal = start(cwd=upload_folder)

    assert f"× {expected}" in ask(terminal, f"/attach {path}")
    assert "· nothing is attached" in ask(terminal, "/attach")


def test_files_alone_are_sent_by_a_command(start: Start, upload_folder: Path):
    terminal = start("--model", "ear", "--attach", "talk.mp3", cwd=upload_folder)
    assert "↑ talk.mp3  audio/mpeg, 5 B\n" in terminal.text

    assert "ear heard '', answered 0; ''; talk.mp3=b'la la'\n" in ask(terminal, "/send")
    assert "× there is nothing to send: type a message, or /attach PATH first\n" in ask(terminal, "/send")


def test_a_message_that_lacks_something_is_not_sent_and_nothing_of_it_is_lost(start: Start, upload_folder: Path):
    terminal = start("--model", "ear", cwd=upload_folder)
    shown = ask(terminal, "Listen").replace("\n  ", " ")
    assert "needs a file: attach a recording, or ask in a branch that has one. /attach PATH attaches one" in shown
    assert "ear>" not in shown

    ask(terminal, "/model brush")
    ask(terminal, "/attach talk.mp3")
    shown = ask(terminal, "/send").replace("\n  ", " ")
    assert "needs words: say what the picture should show. The attachments are still there\n" in shown
    assert "↑ talk.mp3" in ask(terminal, "/attach")

    ask(terminal, "/model ear")
    assert "ear heard 'Listen', answered 0; ''; talk.mp3=b'la la'\n" in ask(terminal, "\x1b[A" * 6)


# A person keeps what came


def test_a_file_in_an_answer_is_a_row_with_a_hint_the_first_time(start: Start, tmp_path: Path):
    terminal = start(cwd=tmp_path)

    shown = ask(terminal, "draw")
    assert f"ada>\n{ROW}· 2 tokens in, 1 out\n· /save writes it to this folder, /save PATH to another place\n" in shown
    assert "nothing" not in shown
    shown = ask(terminal, "draw two")
    assert f"Here:\n{ROW}{ROW}" in shown
    assert "/save" not in shown
    assert names(tmp_path) == []


def test_save_writes_the_files_that_came_last_and_never_over_another(start: Start, tmp_path: Path):
    (tmp_path / "cat.png").write_bytes(b"mine")
    terminal = start(cwd=tmp_path)
    assert "× there is nothing to save: no answer has a file yet\n" in ask(terminal, "/save")
    ask(terminal, "draw two")
    ask(terminal, "Thanks")

    assert "· saved cat-2.png\n· saved cat-3.png\n" in ask(terminal, "/save")
    assert "· saved pets/cat.png\n· saved pets/cat-2.png\n" in ask(terminal, "/save pets/")
    assert "· saved my kitty.png\n· saved my kitty-2.png\n" in ask(terminal, "/save my kitty")
    assert (tmp_path / "cat.png").read_bytes() == b"mine"
    assert (tmp_path / "my kitty-2.png").read_bytes() == CAT


def test_a_file_that_cannot_be_written_is_one_line_and_can_be_saved_elsewhere(start: Start, tmp_path: Path):
    terminal = start(cwd=tmp_path)
    ask(terminal, "draw")

    assert "× there is no folder no; /save no/ creates it\n" in ask(terminal, "/save no/kitty.png")
    assert "× files cannot be saved in /dev/null: it is not a folder" in ask(terminal, "/save /dev/null/")
    assert "· saved kitty.png\n" in ask(terminal, "/save kitty.png")


def test_with_a_folder_to_save_in_every_file_is_there_at_once(start: Start, tmp_path: Path):
    terminal = start("--save", "deep/pets", cwd=tmp_path)

    assert f"{ROW}· 2 tokens in, 1 out\n· saved deep/pets/cat.png\n" in ask(terminal, "draw")
    assert "· saved deep/pets/cat-2.png\n" in ask(terminal, "/again")


def test_a_hostile_name_leads_nowhere_and_is_never_obeyed(start: Start, tmp_path: Path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    terminal = start(cwd=inner)

    assert "↓ profile_.txt  text/plain, 1 B\n" in ask(terminal, "draw evil")
    assert "· saved profile_.txt\n" in ask(terminal, "/save")
    assert (names(tmp_path), names(inner.parent), names(inner)) == (["a"], ["b"], ["profile_.txt"])
    assert not set("\u202e\x9b") & set(terminal.text)


def test_a_file_that_came_before_a_cancel_is_kept(start: Start, tmp_path: Path):
    terminal = start(cwd=tmp_path)
    terminal.type("draw and hang\n")
    terminal.until("One two")
    terminal.interrupt()
    terminal.until(PROMPT)

    assert f"One two …\n{ROW}· cancelled; the text so far stays" in terminal.text.replace("  …", " …").replace("^C", "")
    assert "· saved cat.png\n" in ask(terminal, "/save")


def test_signs_have_stand_ins_where_they_cannot_be_shown(start: Start, upload_folder: Path):
    terminal = start(cwd=upload_folder, PYTHONUTF8="0", PYTHONIOENCODING="ascii")

    assert "\n^  talk.mp3  audio/mpeg, 5 B\n" in ask(terminal, "/attach talk.mp3")
    assert "\nv  cat.png  image/png, 1.5 kB\n" in ask(terminal, "draw")


# A pipe


def test_a_pipe_says_what_the_model_says_and_saves_the_rest(tmp_path: Path):
    done = pipe("draw\ndraw two\nBye", "--save", "pets", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("Here:\n\nada heard")
    assert done.stderr.splitlines() == [
        "everturn: saved pets/cat.png",
        "everturn: saved pets/cat-2.png",
        "everturn: saved pets/cat-3.png",
    ]
    assert (tmp_path / "pets" / "cat-3.png").read_bytes() == CAT


def test_a_file_with_nowhere_to_go_is_a_failure_that_says_what_to_do(tmp_path: Path):
    done = pipe("draw two", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "Here:\n")
    assert done.stderr == "everturn: not saved: cat.png (1.5 kB), cat.png (1.5 kB); say where with --save DIR\n"
    assert names(tmp_path) == []


def test_files_go_with_the_first_line_of_a_pipe(upload_folder: Path):
    done = pipe("\nRead\nBye\n", "--attach", "talk.mp3", "--attach", "my notes.txt", cwd=upload_folder)

    assert (done.returncode, done.stderr) == (0, "")
    first, _, second = done.stdout.splitlines()
    assert first.startswith("ada heard 'Read', answered 0")
    assert first.endswith("talk.mp3=b'la la'; my notes.txt=b'dear'")
    assert second.count("talk.mp3") == 1


def test_files_go_alone_when_the_pipe_is_empty(upload_folder: Path):
    done = pipe("", "--model", "ear", "--attach", "talk.mp3", cwd=upload_folder)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "ear heard '', answered 0; ''; talk.mp3=b'la la'\n"


@pytest.mark.parametrize("words", [(), ("--attach", "my notes.txt")])
def test_a_line_that_lacks_something_is_a_failed_line(upload_folder: Path, words: tuple[str, ...]):
    done = pipe("Listen\n", "--model", "ear", *words, cwd=upload_folder)

    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith("or ask in a branch that has one; --attach FILE attaches one\n")


@pytest.mark.parametrize("line", ["/attach my notes.txt", "/save"])
def test_the_words_of_a_pipe_reach_no_files(upload_folder: Path, line: str):
    before = names(upload_folder)
    done = pipe(f"draw\n{line}\nHello\n", "--save", "out", cwd=upload_folder)

    assert done.returncode == 1
    assert f"everturn: {line.split()[0]} works only in a terminal; use the option --" in done.stderr
    assert "dear" not in done.stdout
    assert names(upload_folder) == sorted([*before, "out"])
