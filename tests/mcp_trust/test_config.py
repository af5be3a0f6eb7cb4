from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.core.rules.urls import is_loopback
from everturn.errors import ConfigError
from everturn.mcp.config import ServerSpec, load_servers

TOML = """
[mcp.files]
command = "npx"
args = ["-y", "server-files", "${ROOT:-/srv}"]
env = { TOKEN = "${TOKEN}", DEBUG = true }
cwd = "work"
timeout = 5
cancel = "leave"
annotations = { read_file = "read_only" }

[mcp.far]
url = "https://example.org/mcp"
headers = { Authorization = "Bearer ${TOKEN}" }
auth = "oauth"
"""


def _load(tmp_path: Path, content: Any, **environ: str) -> list[ServerSpec]:
    is_text = isinstance(content, str)
    path = tmp_path / ("servers.toml" if is_text else "servers.json")
    path.write_text(content if is_text else json.dumps(content), encoding="utf-8")
    return load_servers(path, environ)


def test_toml_is_read_with_variables_in_their_places(tmp_path: Path):
    files, far = _load(tmp_path, TOML, TOKEN="s3cret")
    assert (files.name, files.command, files.args) == ("files", "npx", ("-y", "server-files", "/srv"))
    assert files.env == {"TOKEN": "s3cret", "DEBUG": "true"}
    assert files.cwd == str(tmp_path / "work")
    assert (files.timeout, files.cancel, files.annotations) == (5.0, "leave", {"read_file": "read_only"})
    assert far.headers == {"Authorization": "Bearer s3cret"}
    assert far.auth == "oauth"


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_the_json_that_other_programs_have_is_read(tmp_path: Path, key: str):
    servers = {
        "one": {"type": "stdio", "command": "run", "args": ["${env:WHAT}"], "env": {"N": 3}},
        "two": {"type": "http", "url": "http://127.0.0.1:8000/mcp"},
        "off": {"command": "x", "disabled": True},
    }
    first, two = _load(tmp_path, {key: servers, "inputs": []}, WHAT="it")
    assert (first.args, first.env) == (("it",), {"N": "3"})
    assert two.url == "http://127.0.0.1:8000/mcp"


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({"command": "x", "comand": "y"}, "comand.*a server may have: command, args, env"),
        ({"command": "x", "args": "y"}, r"Expected `array`.*args"),
        ({"command": "x", "url": "https://a.example"}, "either a command .* or a url"),
        ({}, "either a command .* or a url"),
        ({"command": "x", "env": {"T": "${MISSING}"}}, "env.T: the variable MISSING is not set"),
        ({"command": "x", "args": ["${input:key}"]}, r"\$\{input:key\} is not supported"),
        ({"command": "x", "args": ["${}"]}, r"write \$\{VAR\}"),
        ({"command": "x\0y"}, "zero byte"),
        ({"command": "x", "headers": {"A": "b"}}, "headers and auth need a url"),
        ({"command": "x", "timeout": 0}, "timeout"),
        ({"command": "x", "timeout": 1e9}, "timeout"),
        ({"command": "x", "annotations": {"t": "maybe"}}, "annotations"),
        ({"command": "x", "cancel": "kill"}, "cancel"),
        ({"url": "ftp://a.example/"}, "must look like https"),
        ({"url": "file:///etc/passwd"}, "must look like https"),
        ({"url": "https://"}, "must look like https"),
        ({"url": "https://["}, "cannot be read"),
        ({"url": "https://a.example:99999/"}, "cannot be read"),
        ({"url": "https://a.example/\nx"}, "must look like https"),
        ({"url": "https://a.example\\@b.example/"}, "must look like https"),
        ({"url": "https://me:pass@a.example/"}, "put them in headers"),
        ({"url": "http://a.example/"}, "insecure = true"),
        ({"url": "http://127.0.0.1.a.example/"}, "insecure = true"),
        ({"url": "http://localhost.a.example/"}, "insecure = true"),
        ({"url": "https://a.example", "args": ["x"]}, "args, env and cwd need a command"),
        ({"url": "https://a.example", "headers": {"A b": "c"}}, "cannot be sent"),
        ({"url": "https://a.example", "headers": {"A": "c\r\nB: d"}}, "cannot be sent"),
        ({"url": "https://a.example", "type": "sse"}, "'sse' is not supported; there are: stdio, http"),
        ({"url": "https://a.example", "type": "stdio"}, "stdio needs a command"),
    ],
)
def test_what_makes_no_sense_is_refused_with_file_and_key(tmp_path: Path, server: Any, message: str):
    with pytest.raises(ConfigError, match=message) as error:
        _load(tmp_path, {"mcpServers": {"here": server}})
    assert str(error.value).startswith(f"{tmp_path}/servers.json: mcpServers.here")
    assert "pass@" not in str(error.value)


@pytest.mark.parametrize("name", ["", "Upper", "a b", "a/b", "x" * 33, "ä", "a\n"])
def test_a_name_is_short_and_plain(tmp_path: Path, name: str):
    with pytest.raises(ConfigError, match="is not a name for a server"):
        _load(tmp_path, {"mcpServers": {name: {"command": "x"}}})


@pytest.mark.parametrize("content", ["[mcp\n", "x = 1", "mcp = 3", {"other": {}}, {"servers": []}, [], "\ufeff{"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: Any):
    with pytest.raises(ConfigError, match=r"servers\.(toml|json)"):
        _load(tmp_path, content)


def test_a_file_that_is_none_or_too_large_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="there is no file"):
        load_servers(tmp_path)
    (tmp_path / "large.toml").write_text("#" * 1_000_001, encoding="utf-8")
    with pytest.raises(ConfigError, match="too large"):
        load_servers(tmp_path / "large.toml")


def test_plain_http_to_another_machine_is_possible_when_it_is_said(tmp_path: Path):
    (spec,) = _load(tmp_path, {"servers": {"a": {"url": "http://a.example/", "insecure": True}}})
    assert spec.insecure


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_is_known(host: str):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "localhost.", "2130706433", "", "::ffff:10.0.0.1"])
def test_other_machines_are_not_this_one(host: str):
    assert not is_loopback(host)


BASE = ServerSpec("a", "run", ("x", "y"), {"K": "v"}, "/srv")
FAR = ServerSpec("a", url="https://a.example/mcp", headers={"X-Key": "v"})


@pytest.mark.parametrize(
    "changed",
    [
        {"command": "run2"},
        {"args": ("x",)},
        {"args": ("x y",)},
        {"args": ("y", "x")},
        {"env": {"K": "w"}},
        {"env": {"L": "v"}},
        {"env": {"K": "v", "LD_PRELOAD": "x"}},
        {"cwd": "/srv2"},
    ],
)
def test_whatever_is_started_otherwise_has_another_hash(changed: dict[str, Any]):
    assert replace(BASE, **changed).launch_hash != BASE.launch_hash


@pytest.mark.parametrize("changed", [{"url": "https://b.example/mcp"}, {"headers": {"X-Key": "w"}}, {"headers": {}}])
def test_whatever_is_reached_otherwise_has_another_hash(changed: dict[str, Any]):
    assert replace(FAR, **changed).launch_hash != FAR.launch_hash


def test_what_starts_nothing_else_has_the_same_hash():
    assert replace(BASE, timeout=5, cancel="leave", annotations={"t": "read_only"}).launch_hash == BASE.launch_hash
    assert replace(FAR, headers={"x-key": "v"}).launch_hash == FAR.launch_hash


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_two_command_lines_have_one_hash_only_if_they_are_one(arguments: list[str], other: list[str]):
    try:
        first, second = ServerSpec("a", "run", tuple(arguments)), ServerSpec("a", "run", tuple(other))
    except ConfigError:
        return  # a zero byte
    assert (first.launch_hash == second.launch_hash) == (arguments == other)


def test_no_secret_is_in_what_is_shown(tmp_path: Path):
    content = {
        "servers": {
            "a": {"command": "run", "args": ["--key", "${KEY}"], "env": {"TOKEN": "${KEY}"}},
            "b": {"url": "https://a.example/mcp?key=${KEY}", "headers": {"X-Key": "${KEY}"}},
        }
    }
    specs = _load(tmp_path, content, KEY="s3cret")
    for spec in specs:
        assert "s3cret" not in repr(spec) + str(spec) + spec.line + spec.launch_hash
    assert specs[0].line == f"TOKEN=${{KEY}} run --key ${{KEY}} (in {tmp_path})"
    assert specs[1].line == "https://a.example/mcp?…${KEY} (headers: X-Key: ${KEY})"
    assert "s3cret" in specs[0].args


def test_what_is_shown_tells_which_variables_are_handed_over_and_what_runs_code(tmp_path: Path):
    env = {
        "LANG": "${KEY:-none}",
        "NODE_OPTIONS": "-r ./x.js",
        "API_KEY": "sk-1 and ${KEY}",
        "PASSWORD": "hush",
        "N": 3,
    }
    servers = {
        "a": {"command": "run", "env": env},
        "b": {"url": "https://a.example/mcp?a=hush&b=${KEY}", "headers": {"X-Lang": "Bearer ${KEY}", "X-Id": "hush"}},
    }
    program, far = _load(tmp_path, {"servers": servers}, KEY="s3cret")
    words = "API_KEY=…${KEY} LANG=${KEY:-none} N=3 'NODE_OPTIONS=-r ./x.js' PASSWORD=…"
    assert program.line == f"{words} run (in {tmp_path})"
    assert far.line == "https://a.example/mcp?…${KEY} (headers: X-Id: …, X-Lang: …${KEY})"
    assert "hush" not in program.line + far.line
    assert "s3cret" not in program.line + far.line


def test_the_same_words_in_another_folder_are_another_program(tmp_path: Path):
    words = {"servers": {"a": {"command": "python", "args": ["server.py"]}}}
    specs: list[ServerSpec] = []
    for name in ("mine", "strangers"):
        (tmp_path / name).mkdir()
        specs += _load(tmp_path / name, words)
    assert [spec.cwd for spec in specs] == [str(tmp_path / "mine"), str(tmp_path / "strangers")]
    assert specs[0].launch_hash != specs[1].launch_hash
    assert specs[0].line == f"python server.py (in {tmp_path / 'mine'})"


def test_the_library_is_not_imported_before_it_is_needed():
    code = (
        "import sys, everturn.mcp, everturn.mcp_server, everturn.mcp.config, everturn.mcp.trust, everturn.mcp.oauth, "
        "everturn.cli.commands.mcp, everturn.mcp_server.server; sys.exit('mcp' in sys.modules or 'mcp_types' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
