"""Keys, models and the configuration from the command line."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.cli_run import plain

from everturn.config.available_models import AvailableModel, guess_model, search_models
from everturn.config.key_store import KeyStore, guess_key_vendor
from everturn.config.load import load_config
from everturn.config.toml_edit import set_value
from everturn.errors import ConfigError

NO_NETWORK = {"https_proxy": "http://127.0.0.1:9"}


def everturn(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "everturn", *words],
        env=plain(home, **NO_NETWORK),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_a_key_is_stored_listed_and_removed(tmp_path: Path) -> None:
    done = everturn(tmp_path, "auth", "login", "groq", stdin="gsk_0123456789abcdef\n")
    assert done.returncode == 0, done.stderr
    file = tmp_path / ".config" / "everturn" / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    listed = everturn(tmp_path, "auth", "list")
    assert "groq" in listed.stdout
    assert "gsk_" not in listed.stdout + done.stdout
    assert everturn(tmp_path, "auth", "logout", "groq").returncode == 0
    assert "gsk_" not in file.read_text()
    assert everturn(tmp_path, "auth", "logout", "groq").returncode == 2


@pytest.mark.parametrize(
    ("words", "stdin", "expected"),
    [
        (("auth", "login", "opnai"), "sk-0123456789abcdef\n", "did you mean openai?"),
        (("auth", "login"), "0123456789abcdef0123\n", "Name the vendor"),
        (("auth", "login", "openai"), "\n", "paste all of it"),
        (("config", "set", "assistant.git", "never"), "", "not one of ask, commit, off"),
        (("config", "set", "a..b", "1"), "", "is not a key"),
    ],
)
def test_mistakes_are_said_in_a_line_and_change_nothing(
    tmp_path: Path, words: tuple[str, ...], stdin: str, expected: str
) -> None:
    done = everturn(tmp_path, *words, stdin=stdin)
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.endswith(".lock")]


def test_the_file_of_others_is_not_read(tmp_path: Path) -> None:
    keys = KeyStore({"HOME": str(tmp_path)})
    keys.save("GROQ_API_KEY", "gsk_0123456789abcdef")
    assert keys.file is not None
    keys.file.chmod(0o666)
    with pytest.raises(ConfigError, match="chmod 600"):
        KeyStore({"HOME": str(tmp_path)}).stored("GROQ_API_KEY")


@pytest.mark.parametrize(
    ("key", "vendor"),
    [("sk-ant-x", "anthropic"), ("sk-or-v1-x", "openrouter"), ("gsk_x", "groq"), ("AIzax", "gemini"), ("sk-x", "")],
)
def test_the_vendor_of_a_key_is_known_by_its_form(key: str, vendor: str) -> None:
    assert guess_key_vendor(key) == vendor


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("gpt-5.2", "openai:gpt-5.2"),
        ("o3", "openai:o3"),
        ("claude", "anthropic:claude-opus-5"),
        ("claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("anthropic", "anthropic:claude-opus-5"),
        ("gemini-3-pro", "gemini:gemini-3-pro"),
        ("meta/llama-9", "openrouter:meta/llama-9"),
        ("ollama:qwen3:8b", "ollama:qwen3:8b"),
        ("mystery", "mystery"),
    ],
)
def test_a_bare_name_gets_its_vendor(tmp_path: Path, name: str, whole: str) -> None:
    environ = {"HOME": str(tmp_path)}
    assert guess_model(name, load_config(None, environ), KeyStore(environ)) == whole


def test_a_model_is_taken_from_openrouter_if_that_is_the_key_there_is(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "OPENROUTER_API_KEY": "sk-or-x"}
    found = guess_model("gemini-3-pro", load_config(None, environ), KeyStore(environ))
    assert found == "openrouter:google/gemini-3-pro"


def test_models_are_searched_by_words() -> None:
    models = [AvailableModel(name, "") for name in ("a:flash-lite", "b:flash", "c:other")]
    assert [model.name for model in search_models(models, "flash")] == ["b:flash", "a:flash-lite"]


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("", "assistant.git", "commit", '\n[assistant]\ngit = "commit"\n'),
        ("# mine\n[assistant]\ngit = 'ask'  # why\n", "assistant.git", "off", '# mine\n[assistant]\ngit = "off"  # why\n'),
        ("[assistant]\n# x\n[tools]\nweb = true\n", "assistant.max_steps", "5", "[assistant]\nmax_steps = 5\n# x\n[tools]\nweb = true\n"),
        ("[tools]\nweb = true\n", "small_model", "a:b", 'small_model = "a:b"\n[tools]\nweb = true\n'),
    ],
)  # fmt: skip
def test_a_value_is_set_and_comments_stay(before: str, key: str, value: str, after: str) -> None:
    assert set_value(before, key, value)[0] == after
