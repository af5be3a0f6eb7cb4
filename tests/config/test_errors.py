"""What is wrong in a configuration is told at its place: all of it at once, and without repeating a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from everturn.config.errors import ConfigProblems
from everturn.config.load import LoadedConfig, describe_config, load_config
from everturn.config.secrets import AddressRef, SecretRef
from everturn.errors import ConfigError

NOWHERE = Path("/nonexistent/everturn.toml")
CANARY = "sk-canary-5f1d0b7e"


def read(tmp_path: Path, text: str, **environ: str) -> LoadedConfig:
    file = tmp_path / "everturn.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(str(file), environ, NOWHERE)


def wrong(tmp_path: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as failed:
        read(tmp_path, text, **environ)
    return str(failed.value).replace(f"{tmp_path}/", "").splitlines()


WRONG = [
    ("[server]\nprot = 1", "2:1: server.prot: [server] has no 'prot'; did you mean 'port'?"),
    ("[sever]\nport = 1", "1:2: sever: there is no 'sever'; did you mean 'server'?"),
    ("\n\n[server]\n  port = 'x'", "4:3: server.port: a whole number is wanted here, not a text in quotes"),
    ("server = 3", "1:1: server: this is a table: write [server], or { … }"),
    ("[server]\nport = 70000", "2:1: server.port: a port is at most 65535; 0 is any that is free"),
    ("[server]\nidle = -1", "2:1: server.idle: -1 is below 0, the least that it may be"),
    ("[server]\nidle = nan", "2:1: server.idle: a number is wanted here that has an end"),
    ("[server]\nhosts = [\n  'a',\n  3]", "4:3: server.hosts[1]: a text in quotes is wanted here, not a whole number"),
    (
        "[server]\norigins = ['*']",
        "2:12: server.origins[0]: an origin is a scheme and a host, as https://app.example.org; no *",
    ),
    ("[server]\nhosts = ['*']", "2:10: server.hosts[0]: a host is a name, as chat.example.org, without scheme or *"),
    ("[server]\npublic_url = 'chat'", "2:1: server.public_url: this is no address of a whole site"),
    ("[server]\nhost = ''", "2:1: server.host: this is no address to listen on"),
    ("[server.oidc]\nissuer = 'x'", "1:9: server.oidc: a provider of logins is configured under [auth.oidc]"),
    ("[store]\nurl = 3", "2:1: store.url: a text is wanted here, in quotes"),
    (f"[store]\nurl = 'postgresql://me:{CANARY}@host/db'", "2:1: store.url: this URL contains a password"),
    ("[store]\nurl = '${HOME}/x.db'", "2:1: store.url: a reference must be"),
    ("[store]\nurl = '${env:A B}'", "2:1: store.url: a reference must be"),
    ("[models.a]\nbase_url = 'http://h/v1'", "1:9: models.a: it needs 'model'"),
    ("[models.a]\nmodel = 'opnai:x'", "2:1: models.a.model: 'opnai:x' is not a model name: did you mean openai:x?"),
    ("[models.a]\nmodel = 'x'\nbase_url = 'nowhere'", "3:1: models.a.base_url: 'nowhere' is not a base URL"),
    ("[models.a]\nmodel = 'openai:x'\ntool_format = 'jsn'", "3:1: models.a.tool_format: "),
    ("[models.a]\nmodel = 'openai:x'\nfallback = ['b']", "3:13: models.a.fallback[0]: there is no model 'b'"),
    ("[models.a]\nmodel = 'openai:x'\nretry = { attemts = 2 }", "3:11: models.a.retry.attemts: "),
    ("[models.openai]\nmodel = 'openai:x'", "1:9: models.openai: a name of one's own"),
    (
        f"[models.a]\nmodel = 'openai:x'\napi_key = '{CANARY}'",
        "3:1: models.a.api_key: give a secret by reference",
    ),
    (
        "[models.a]\nmodel = 'openai:x'\napi_key = '${file:key}'",
        "3:1: models.a.api_key: the path of a file with a secret",
    ),
    ("[models.a]\nmodel = 'openai:x'\nprice = { input = 1 }", "3:1: models.a.price: it needs 'output'"),
    ("[models]\na = 'openai:x'", "2:1: models.a: a model is a table: write [models.a]"),
    ("[agents.'a b']", "1:9: agents.a b: 'a b' is not a name"),
    ("[agents.a]\nmodel = 'fsat'\n[models.fast]\nmodel = 'openai:x'", "2:1: agents.a.model: there is no model 'fsat'"),
    (
        "[agents.a]\nmodels = [ 'offline:demo', 'nope' ]",
        "2:28: agents.a.models[1]: there is no model 'nope' under [models]",
    ),
    (
        "[agents.a]\ntool_history = 'ful'",
        "2:1: agents.a.tool_history: this is not one of digest, full, none, results; did you mean 'full'?",
    ),
    ("[agents.a]\nmax_steps = 0", "2:1: agents.a.max_steps: 0 is below 1"),
    ("[agents.a]\nbudget = { cost = 1, cals = 2 }", "2:22: agents.a.budget.cals: [agents.a.budget] has no 'cals'"),
    ("[agents.a]\nsystem = 'x'\nsystem_file = 'y'", "3:1: agents.a.system_file: there is a `system`, too"),
    ("[agents.a]\nsystem_file = '../../etc/passwd'", "2:1: agents.a.system_file: a prompt is read beneath the folder"),
    ("[agents.a]\nsystem_file = '/etc/passwd'", "2:1: agents.a.system_file: a prompt is read beneath the folder"),
    ("[agents.a]\nsystem_file = 'gone.md'", "2:1: agents.a.system_file: this file cannot be read: No such file"),
    ("[[permissions]]\ntool = 'a'", "1:3: permissions[0]: it needs 'action'"),
    (
        "[[permissions]]\ntool = 'a'\naction = 'alow'",
        "3:1: permissions[0].action: this is not one of allow, ask, deny; did you mean 'allow'?",
    ),
    (
        "[[permissions]]\ntool = 'a'\naction = 'allow'\nmatch = { path = '' }",
        "4:1: permissions[0].match: the pattern '' for 'path'",
    ),
    ("[permissions]\ntool = 'a'", "1:2: permissions: a list is wanted here, not a table"),
    (
        "[[agents.a.permissions]]\ntool = ''\naction = 'ask'",
        "2:1: agents.a.permissions[0].tool: `tool` must be the name",
    ),
    ("[tools]\nfiles = '/a'\nvirtual_files = true", "3:1: tools.virtual_files: files and virtual_files have tools"),
    ("[mcp.a]\ncommand = 'x'\nurl = 'https://x'", "1:6: mcp.a: a server has either a command"),
    (
        f"[mcp.a]\nurl = 'https://x'\nheaders = {{ Authorization = '{CANARY}' }}",
        "3:13: mcp.a.headers.Authorization: give a secret",
    ),
    (f"[mcp.a]\ncommand = 'x'\nenv.API_TOKEN = '{CANARY}'", "3:5: mcp.a.env.API_TOKEN: give a secret"),
    ("[mcp.a]\ncommand = 'x'\ntransport = 'stdio'", "3:1: mcp.a.transport: [mcp.a] has no 'transport'"),
    ("[tenants.Acme]", "1:10: tenants.Acme: the name of a tenant"),
    ("[tenants.a.users.b]\nrole = 'admin'", "2:1: tenants.a.users.b.role: this is not one of"),
    ("[limits]\nrequests = 'many'", "2:1: limits.requests: a number is wanted here"),
    (
        f"[auth.oidc]\nissuer = 'https://i'\naudience = 'a'\nclient_secret = '{CANARY}'",
        "4:1: auth.oidc.client_secret: give a secret",
    ),
    ("[auth.oidc]\nissuer = 'http://i'\naudience = 'a'", "2:1: auth.oidc.issuer: an issuer is an address"),
    (
        "[auth.oidc]\nissuer = 'https://i'\naudience = 'a'\nalgorithms = ['none']",
        "4:15: auth.oidc.algorithms[0]: only algorithms",
    ),
    (
        "[auth.oidc]\nissuer = 'https://i'\naudience = 'a'\nrole = 'operator'",
        "4:1: auth.oidc.role: a token cannot grant the role operator",
    ),
    (
        "[auth.oidc]\nissuer = 'https://i'\naudience = 'a'\n[auth.oidc.roles]\nadmins = 'operator'",
        "5:1: auth.oidc.roles.admins: a token cannot grant the role operator",
    ),
    ("[telemetry]\nlogs = 'xml'", "2:1: telemetry.logs: this is not one of json, text"),
    ("[telemetry]\nratio = 2", "2:1: telemetry.ratio: this is a part of all turns"),
    (f"[telemetry.headers]\nauthorization = '{CANARY}'", "2:1: telemetry.headers.authorization: give a secret"),
    ("a = 1\nb = \n", "2:5: this is not valid TOML: Invalid value"),
    (
        "a = 1\n[agents.b]\nmodel = openai:gpt-5.2",
        '3:9: this is not valid TOML: Invalid value; write a text in quotes: model = "openai:gpt-5.2"',
    ),
    ("a = [", "1:1: this is not valid TOML"),
]


@pytest.mark.parametrize(
    ("text", "expected"), WRONG, ids=[expected.split(":")[2].strip()[:40] for _, expected in WRONG]
)
def test_an_error_points_at_its_line_and_column(tmp_path: Path, text: str, expected: str):
    (line,) = wrong(tmp_path, text)

    assert line.startswith(f"everturn.toml:{expected}")
    assert CANARY not in line


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_file(tmp_path: Path):
    text = "[server]\nport = 'x'\nhsot = 1\n[agents.a]\nlate = 'never'\n[limits]\nturns = 1.5\n[[permissions]]\n"
    assert wrong(tmp_path, text) == snapshot(
        [
            "everturn.toml:2:1: server.port: a whole number is wanted here, not a text in quotes",
            "everturn.toml:3:1: server.hsot: [server] has no 'hsot'; did you mean 'host'?",
            "everturn.toml:5:1: agents.a.late: this is not one of discard, inject, keep",
            "everturn.toml:7:1: limits.turns: a whole number is wanted here, not a number",
            "everturn.toml:8:3: permissions[0]: it needs 'tool'",
            "everturn.toml:8:3: permissions[0]: it needs 'action'",
        ]
    )


def test_what_a_check_of_meaning_finds_is_said_at_once_too(tmp_path: Path):
    text = "[server]\nport = 70000\n[agents.a]\nmodel = 'nope'\nsystem_file = '/x'\n"
    assert [line.split(": ")[0] for line in wrong(tmp_path, text)] == [f"everturn.toml:{n}:1" for n in (2, 4, 5)]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path):
    folder = tmp_path / "etc"
    folder.mkdir()
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (folder / "prompt.md").symlink_to(tmp_path / "secret.md")
    assert "beneath the folder" in wrong(folder, "[agents.a]\nsystem_file = 'prompt.md'")[0]


def test_a_prompt_is_read_from_a_file_beside_the_configuration(tmp_path: Path):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.md").write_text("Be brief.\n", encoding="utf-8")
    assert read(tmp_path, "[agents.a]\nsystem_file = 'prompts/a.md'").systems == {"a": "Be brief.\n"}


def test_rules_know_the_line_they_stand_on(tmp_path: Path):
    text = '[[permissions]]\ntool = "a"\naction = "deny"\n\n[[permissions]]\ntool = "b"\naction = "ask"\n'
    rules = read(tmp_path, text + '[[agents.x.permissions]]\ntool = "c"\naction = "allow"\n').rules
    assert [(rule.tool, rule.source.rpartition("/")[2], rule.layer) for rule in rules] == [
        ("a", "everturn.toml:1", "config"),
        ("b", "everturn.toml:5", "config"),
    ]


SECRETS = """
[store]
url = "postgresql://me:${env:DB_PASSWORD}@host/db"
[models.a]
model = "openai:x"
api_key = "${env:OPENAI}"
[mcp.a]
url = "https://h/mcp?key=plain-query"
headers = { Authorization = "Bearer ${TOKEN}", X-Other = "plain-header" }
[mcp.b]
command = "run"
args = ["--password", "plain-argument"]
[auth.oidc]
issuer = "https://i"
audience = "a"
client_secret = "${file:/run/secrets/oidc}"
[telemetry.headers]
authorization = "Bearer ${env:OTLP}"
"""


def test_secrets_are_in_nothing_that_is_shown(tmp_path: Path):
    environ = dict.fromkeys(("DB_PASSWORD", "OPENAI", "TOKEN", "OTLP"), CANARY)
    loaded = read(tmp_path, SECRETS, **environ)
    text = "\n".join([*describe_config(loaded), repr(loaded), repr(loaded.config), str(loaded.config)])

    assert CANARY not in text
    assert '"${env:OPENAI}"' in text
    for hidden in ("plain-query", "plain-header", "plain-argument"):
        assert hidden not in "\n".join(describe_config(loaded))


def test_a_secret_that_was_read_is_not_shown_by_accident(tmp_path: Path):
    (tmp_path / "key").write_text(f"{CANARY}\n", encoding="utf-8")
    for secret in (SecretRef(f"${{file:{tmp_path}/key}}"), SecretRef("${env:KEY}")):
        value = secret.resolved({"KEY": CANARY})
        assert value == CANARY
        assert CANARY not in f"{[value]!r} {secret!r} {secret}"


def test_a_password_keeps_its_place_in_an_address():
    assert AddressRef("postgresql://me:${env:P}@h/db").resolved({"P": "a@b/c"}) == "postgresql://me:a%40b%2Fc@h/db"
    assert AddressRef("${env:URL}").resolved({"URL": "postgresql://h/db"}) == "postgresql://h/db"


@pytest.mark.parametrize(
    ("written", "problem"), [("${env:NONE}", "NONE is not set"), ("${file:/nonexistent}", "No such file")]
)
def test_a_secret_that_is_not_there_is_reported_by_its_reference(written: str, problem: str):
    with pytest.raises(ConfigError, match=problem) as failed:
        SecretRef(written).resolved({})
    assert written in str(failed.value)


def test_troubles_are_data_too(tmp_path: Path):
    with pytest.raises(ConfigProblems) as failed:
        read(tmp_path, "[server]\nprot = 1")
    (trouble,) = failed.value.problems
    assert (trouble.where.line, trouble.where.column, trouble.key) == (2, 1, "server.prot")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[prompts.review]\n", 'a prompt has either `text = "…"` or `file = "review.md"`'),
        ('[prompts.review]\ntext = "x"\nfile = "y.md"\n', 'a prompt has either `text = "…"` or `file = "review.md"`'),
        ('[prompts.Review]\ntext = "x"\n', "name: 'Review': must have lowercase letters"),
        ('[prompts.review]\nfile = "../secret.md"\n', "beneath the folder of this file"),
        ('[prompts.review]\ntext = "x"\n[prompts.review.arguments.base]\n', "the text does not use 'base'"),
    ],
)
def test_a_wrong_saved_prompt_is_a_problem_of_the_file(tmp_path: Path, text: str, problem: str):
    file = tmp_path / "everturn.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load_config(str(file), {})
    assert problem in str(raised.value)
    assert "everturn.toml:" in str(raised.value)


def test_a_saved_prompt_is_read_from_a_file_beside_the_configuration(tmp_path: Path):
    (tmp_path / "review.md").write_text("Review {{branch}}.", encoding="utf-8")
    file = tmp_path / "everturn.toml"
    file.write_text('[prompts.review]\nfile = "review.md"\n', encoding="utf-8")
    (prompt,) = load_config(str(file), {}).prompts
    assert (prompt.text, [argument.name for argument in prompt.arguments]) == ("Review {{branch}}.", ["branch"])
