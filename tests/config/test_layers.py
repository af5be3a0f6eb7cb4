"""Which files and variables count, and which one wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.config.load import describe_config, load_config
from everturn.errors import ConfigError

NOWHERE = Path("/nonexistent/everturn.toml")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_later_layers_win_key_by_key(tmp_path: Path):
    system = write(tmp_path / "etc/everturn.toml", "[server]\nport = 1\nidle = 1\nhost = '127.0.0.2'")
    write(tmp_path / "home/.config/everturn/everturn.toml", "[server]\nport = 2\nidle = 2")
    environ = {"HOME": str(tmp_path / "home"), "EVERTURN_SERVER__PORT": "3"}

    server = load_config(None, environ, system).config.server

    assert (server.port, server.idle, server.host, server.drain) == (3, 2.0, "127.0.0.2", 25.0)


def test_a_file_that_is_named_takes_the_place_of_the_usual_ones(tmp_path: Path):
    system = write(tmp_path / "etc/everturn.toml", "[server]\nidle = 1")
    write(tmp_path / "home/.config/everturn/everturn.toml", "[server]\nidle = 2")
    named = write(tmp_path / "own.toml", "[server]\nport = 4")

    loaded = load_config(str(named), {"HOME": str(tmp_path / "home"), "EVERTURN_SERVER__HOST": "::1"}, system)

    assert (loaded.config.server.port, loaded.config.server.idle, loaded.config.server.host) == (4, 60.0, "::1")
    assert loaded.files == (str(named),)


def test_rules_of_all_layers_hold_together(tmp_path: Path):
    rule = '[[permissions]]\ntool = "{}"\naction = "{}"\n'
    system = write(tmp_path / "etc/everturn.toml", rule.format("rm", "deny"))
    write(
        tmp_path / "home/.config/everturn/everturn.toml", "\n" + rule.format("rm", "allow") + rule.format("ls", "ask")
    )

    rules = load_config(None, {"HOME": str(tmp_path / "home")}, system).rules

    assert [(rule.tool, rule.action, rule.source.rpartition(":")[2]) for rule in rules] == [
        ("rm", "deny", "1"),
        ("rm", "allow", "2"),
        ("ls", "ask", "5"),
    ]


def test_an_error_names_the_file_of_its_layer(tmp_path: Path):
    system = write(tmp_path / "etc/everturn.toml", "[server]\nport = 1\nidel = 1")
    user = write(tmp_path / "home/.config/everturn/everturn.toml", "\n[server]\nport = 'x'")

    with pytest.raises(ConfigError) as failed:
        load_config(None, {"HOME": str(tmp_path / "home"), "EVERTURN_SERVER__DRAIN": "soon"}, system)

    assert [line.split(": ")[0] for line in str(failed.value).splitlines()] == [
        f"{system}:3:1",
        f"{user}:3:1",
        "EVERTURN_SERVER__DRAIN",
    ]


@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("EVERTURN_SERVER__PORT", "81", ("server", "port"), 81),
        ("EVERTURN_SERVER__HOST", "10", ("server", "host"), "10"),  # a text is wanted, so it is one
        ("EVERTURN_SERVER__HOSTS", '["a", "b"]', ("server", "hosts"), ("a", "b")),
        ("EVERTURN_TELEMETRY__CONTENT", "true", ("telemetry", "content"), True),
        ("EVERTURN_TOOLS__SHELL", "/srv", ("tools", "shell"), "/srv"),
        ("EVERTURN_LIMITS__BUDGET__COST", "1.5", ("limits", "budget", "cost"), 1.5),
    ],
)
def test_a_variable_is_read_as_its_key_wants_it(name: str, value: str, path: tuple[str, ...], expected: object):
    found: object = load_config(None, {name: value}, NOWHERE).config
    for key in path:
        found = getattr(found, key)
    assert found == expected


def test_a_variable_for_a_key_that_is_not_there_is_reported():
    with pytest.raises(
        ConfigError, match=r"^EVERTURN_SERVR__PORT: servr: there is no 'servr'; did you mean 'server'\?$"
    ):
        load_config(None, {"EVERTURN_SERVR__PORT": "1"}, NOWHERE)


def test_other_variables_of_ours_are_no_configuration():
    environ: dict[str, str] = dict.fromkeys(
        ("EVERTURN_MODEL", "EVERTURN_API_KEY", "EVERTURN_DATABASE", "EVERTURN_CLUSTER"), "x"
    )
    assert load_config(None, environ, NOWHERE).tree.values == {}


def test_a_hostile_file_in_the_current_folder_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = tmp_path / "project"
    for name in ("everturn.toml", ".everturn.toml", ".config/everturn/everturn.toml", "everturn/everturn.toml"):
        write(project / name, "[mcp.evil]\ncommand = 'evil'\n[tools]\npython = ['evil']\n[server]\nhost = '0.0.0.0'")
    monkeypatch.chdir(project)
    for environ in ({"HOME": str(tmp_path / "home")}, {"XDG_CONFIG_HOME": "."}, {"HOME": "."}, {}):
        loaded = load_config(None, environ, NOWHERE)
        assert loaded.files == ()
        assert describe_config(loaded) == [
            "# no file: every setting has its default; docs/deploy/configuration.md lists them"
        ]


def test_a_named_file_that_is_not_there_is_reported(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"gone\.toml: the configuration cannot be read: No such file"):
        load_config(str(tmp_path / "gone.toml"), {}, NOWHERE)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(str(tmp_path), {}, NOWHERE)
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load_config(str(tmp_path / "bad.toml"), {}, NOWHERE)


def test_what_is_shown_says_where_each_value_comes_from(tmp_path: Path):
    system = write(tmp_path / "etc/everturn.toml", "[server]\nport = 1\n\n[agents.a]\nmodel = 'offline:demo'")
    assert describe_config(load_config(None, {"EVERTURN_SERVER__PORT": "9"}, system)) == [
        f"# {system}",
        'server.port = "9"  # EVERTURN_SERVER__PORT',
        f'agents.a.model = "offline:demo"  # {system}:5:1',
    ]
