"""Settings of administrators: stored, checked, encrypted, applied without a restart, and never wider than the file."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from everturn import api
from everturn.access import Access
from everturn.access.context.server_context import ServerContext
from everturn.config.build import CommandLineOverrides, open_server
from everturn.config.load import load_config
from everturn.config.reload import ConfigReloader
from everturn.config.secret_box import SecretBox
from everturn.config.stored_settings import add_settings
from everturn.core.tenants.accounts import LOCAL, Principal, Role, Tenant
from everturn.core.tenants.settings import AgentSettings, ModelSettings, Setting, encode_body
from everturn.errors import ConfigError, Forbidden, HashMismatch, ModelError, UnknownSetting
from everturn.models.offline import OFFLINE
from everturn.transport import HttpRequest

CANARY = "sk-canary-0123456789abcdef"


class Node:
    """A process: a server with its reloader."""

    def __init__(self, context: ServerContext, reloader: ConfigReloader) -> None:
        self.context, self.reloader = context, reloader

    def access(self, role: Role = "owner", tenant: str = LOCAL) -> Access:
        return Access(self.context, Principal(tenant, "ada", role))

    @property
    def settings(self) -> Any:
        return self.access().settings


@asynccontextmanager
async def open_node(
    folder: Path, toml: str = "", engine: str = "inline", environ: dict[str, str] | None = None
) -> AsyncGenerator[Node]:
    file = folder / "everturn.toml"
    file.write_text(f'[store]\nengine = "{engine}"\n{toml}')
    environ = {"HOME": str(folder), **(environ or {})}
    loaded = load_config(str(file), environ)
    store = str(folder / "a.db")
    async with open_server(loaded, CommandLineOverrides(store=store), environ) as context:
        reloader = ConfigReloader(loaded, context.app, context, OFFLINE, str(file), environ)
        await reloader.open_settings(folder / "a.db.settings-key")
        yield Node(context, reloader)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncGenerator[Node]:
    async with open_node(tmp_path) as opened:
        yield opened


def agent(**fields: Any) -> api.NewAgentSettings:
    version = fields.pop("version", None)
    return api.NewAgentSettings(settings=AgentSettings(**fields), version=version)


def model(name: str, key: str = "", **fields: Any) -> api.NewModelSettings:
    return api.NewModelSettings(settings=ModelSettings(name, **fields), key=key)


async def test_a_key_and_a_model_are_added_and_used_without_a_restart(node: Node) -> None:
    shown = await node.settings.put_key("openai", api.NewModelKey(key=CANARY))
    assert (shown.last_four, shown.by) == ("cdef", "ada")
    await node.settings.put_model("fast", model("openai:gpt-5.2"))
    await node.settings.put_agent("helper", agent(model="fast", instructions="Be brief."))
    assert [entry.name for entry in node.context.agents.all] == ["assistant", "helper"]
    assert node.context.agents.get("helper").options.model == "fast"
    assert node.context.agents.get("assistant").models == ("fast",)
    assert node.context.agents.get("assistant").options.model == "fast", "the demo answers only until there is a model"
    assert node.context.app.model_for("fast").name == "fast"


async def test_a_model_whose_vendor_has_no_key_is_refused_and_nothing_is_stored(node: Node) -> None:
    with pytest.raises(ConfigError, match="needs a key"):
        await node.settings.put_model("fast", model("openai:gpt-5.2"))
    assert (await node.settings.list()).models == []


async def test_with_its_key_deleted_a_model_is_not_asked_any_more(node: Node) -> None:
    await node.settings.put_key("openai", api.NewModelKey(key=CANARY))
    await node.settings.put_model("fast", model("openai:gpt-5.2"))
    await node.settings.put_agent("helper", agent(model="openai:gpt-5.2", models=("fast",)))
    await node.settings.delete_key("openai")
    for name in ("fast", "openai:gpt-5.2"):
        with pytest.raises(ModelError, match="needs a key"):
            async for _ in node.context.app.model_for(name).stream(None):  # pyright: ignore[reportArgumentType]
                pass


async def test_a_key_is_in_no_answer_no_audit_record_no_log_and_not_in_the_database(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with open_node(tmp_path) as node:
        answers = [str(await node.settings.put_key("openai", api.NewModelKey(key=CANARY)))]
        await node.settings.put_model(
            "own", model("compatible:m", key=CANARY, base_url="https://models.example.com/v1")
        )
        with pytest.raises(ConfigError) as refused:
            await node.settings.put_key("nobody", api.NewModelKey(key=CANARY))
        answers += [str(await node.settings.list()), str(refused.value), repr(node.reloader.loaded)]
        answers += [str(await node.context.accounts.audit(LOCAL)), str(await node.context.app.store.settings.current())]
        answers += [repr(node.context.app.model_for("own"))]
    answers += [record.getMessage() for record in caplog.records]
    assert not [text for text in answers if CANARY in text]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]  # noqa: ASYNC240
    assert len(files) > 2
    assert not [file for file in files if CANARY.encode() in file.read_bytes()]


async def test_a_stored_key_is_read_again_after_a_restart_and_not_without_the_key_file(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.settings.put_key("openai", api.NewModelKey(key=CANARY))
        await node.settings.put_model("fast", model("openai:gpt-5.2"))
    async with open_node(tmp_path) as node:
        assert node.context.app.model_for("fast").name == "fast"
        assert (await node.settings.list()).keys[0].problem == ""
    key_file = tmp_path / "a.db.settings-key"
    assert key_file.stat().st_mode & 0o777 == 0o600
    key_file.unlink()
    async with open_node(tmp_path) as node:
        assert "does not decrypt" in (await node.settings.list()).keys[0].problem


def test_a_secret_opens_only_for_the_row_that_it_was_sealed_for() -> None:
    box, row = SecretBox([b"a" * 32]), Setting(kind="key", name="openai", version=1)
    sealed = box.seal(CANARY, row)
    moved = Setting(kind="key", name="anthropic", version=1, secret=sealed)
    with pytest.raises(ConfigError, match="does not decrypt"):
        box.open(moved)
    rotated = SecretBox([b"b" * 32, b"a" * 32])
    assert rotated.open(Setting(kind="key", name="openai", version=2, secret=sealed)) == CANARY


async def test_without_a_key_for_encryption_the_text_names_the_setting(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        settings = node.reloader.settings
        assert settings is not None
        settings._key_file, settings._box = None, None
        await settings.open()
        assert "signing_keys under [auth]" in (await node.settings.list()).secret_problem
        with pytest.raises(ConfigError, match="signing_keys"):
            await node.settings.put_key("openai", api.NewModelKey(key=CANARY))


async def test_what_a_file_defines_is_fixed_and_wins(tmp_path: Path) -> None:
    toml = f'[agents.helper]\nmodel = "{OFFLINE}"\n[models.fast]\nmodel = "{OFFLINE}"\n'
    async with open_node(tmp_path, toml, environ={"OPENAI_API_KEY": "sk-environment"}) as node:
        fixed = {(row.kind, row.name) for row in (await node.settings.list()).fixed}
        assert fixed == {("agent", "helper"), ("model", "fast"), ("key", "openai")}
        for change in (
            node.settings.put_agent("helper", agent(instructions="mine")),
            node.settings.put_model("fast", model(OFFLINE)),
            node.settings.put_key("openai", api.NewModelKey(key=CANARY)),
        ):
            with pytest.raises(ConfigError, match="takes precedence"):
                await change
        # A row that was stored before the file named it changes nothing either.
        row = Setting(kind="agent", name="helper", version=1, body=encode_body(AgentSettings(instructions="mine")))
        applied = add_settings(node.reloader.files, [row], None)
        assert applied.loaded.systems["helper"] == ""
        assert node.context.agents.get("helper").models == ()


async def test_a_setting_loads_no_code_and_reads_no_file_or_variable(node: Node) -> None:
    from msgspec import ValidationError, convert

    for field in ("deps", "plugins", "output_type", "system_file", "permissions"):
        with pytest.raises(ValidationError, match="unknown field"):
            convert({"settings": {field: "os:system"}}, api.NewAgentSettings)
    with pytest.raises(ConfigError, match="variables or files"):
        await node.settings.put_model("own", model("compatible:m", base_url="https://example.com/${env:HOME}"))


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:8000/v1", "https://169.254.169.254/v1", "https://10.0.0.7/v1", "https://localhost/v1"),
        *("http://models.example.com/v1", "https://[::1]/v1", "https://user:word@example.com/v1", "file:///etc/passwd"),
    ],
)
async def test_a_base_url_passes_the_egress_policy(node: Node, url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        await node.settings.put_model("own", model("compatible:m", base_url=url, key=CANARY))
    assert (await node.settings.list()).models == []
    if url == "http://127.0.0.1:8000/v1":
        assert 'write allow = ["127.0.0.1:8000"] under [settings] in everturn.toml' in str(refused.value)


async def test_a_name_that_leads_to_a_private_address_later_is_refused_when_it_is_asked(node: Node) -> None:
    await node.settings.put_model("own", model("compatible:m", base_url="https://models.example.com/v1", key=CANARY))

    async def resolve(host: str) -> list[str]:
        return ["10.0.0.7"]

    used = _transport_of(node.context.app.model_for("own"))
    used._policy._resolve = resolve
    with pytest.raises(ModelError, match="private"):
        async with used.post(HttpRequest("https://models.example.com/v1/chat/completions", {}, b"{}")):
            pass


def _transport_of(model: Any) -> Any:
    """The transport of a model, below its wrappers."""
    from everturn.egress.model_transport import GuardedTransport

    seen, queue = set[int](), [model]
    while queue:
        candidate = queue.pop()
        if isinstance(candidate, GuardedTransport):
            return candidate
        if id(candidate) in seen:
            continue
        seen.add(id(candidate))
        names = [
            *getattr(candidate, "__dict__", {}),
            *getattr(type(candidate), "__slots__", ()),
            *getattr(candidate, "__struct_fields__", ()),
        ]
        values = [getattr(candidate, name, None) for name in names]
        queue += [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
    raise AssertionError("there is no guarded transport")


async def test_agents_have_versions_that_can_be_restored(node: Node) -> None:
    await node.settings.put_agent("helper", agent(instructions="one", version=0))
    await node.settings.put_agent("helper", agent(instructions="two", version=1))
    with pytest.raises(HashMismatch):
        await node.settings.put_agent("helper", agent(instructions="three", version=1))
    versions = (await node.settings.agent_versions("helper")).versions
    assert [(row.version, row.settings.instructions) for row in versions] == [(2, "two"), (1, "one")]
    restored = await node.settings.restore_agent("helper", api.RestoreVersion(version=1))
    assert (restored.version, restored.settings.instructions) == (3, "one")
    await node.settings.delete_agent("helper")
    assert [entry.name for entry in node.context.agents.all] == ["assistant"]
    await node.settings.restore_agent("helper", api.RestoreVersion(version=2))
    assert node.context.agents.get("helper").definition is not None
    with pytest.raises(UnknownSetting):
        await node.settings.restore_agent("helper", api.RestoreVersion(version=9))


async def test_an_invalid_agent_is_refused_and_nothing_changes(node: Node) -> None:
    for wrong in (
        agent(model="nope"),
        agent(subagents=("nobody",)),
        agent(tools=("no_such_tool",)),
        agent(context="odd"),
    ):
        with pytest.raises(ConfigError):
            await node.settings.put_agent("helper", wrong)
    for name in ("../x", "", "a" * 65, "a b"):
        with pytest.raises(ConfigError):
            await node.settings.put_agent(name, agent())
    assert (await node.settings.list()).agents == []


async def test_a_model_that_an_agent_uses_is_not_deleted(node: Node) -> None:
    await node.settings.put_model("demo", model(OFFLINE))
    await node.settings.put_agent("helper", agent(model="demo"))
    with pytest.raises(ConfigError, match="demo"):
        await node.settings.delete_model("demo")
    await node.settings.delete_agent("helper")
    await node.settings.delete_model("demo")


async def test_every_change_is_audited_with_its_author(node: Node) -> None:
    await node.settings.put_key("openai", api.NewModelKey(key=CANARY))
    await node.settings.put_agent("helper", agent())
    await node.settings.delete_agent("helper")
    await node.settings.delete_key("openai")
    records = [(row.by, row.did, row.on) for row in await node.context.accounts.audit(LOCAL)]
    assert records[-4:] == [
        ("ada", "setting.put", "key:openai"),
        ("ada", "setting.put", "agent:helper"),
        ("ada", "setting.delete", "agent:helper"),
        ("ada", "setting.delete", "key:openai"),
    ]


async def test_with_several_tenants_only_an_operator_changes_what_all_share(node: Node) -> None:
    await node.settings.put_agent("helper", agent())
    await node.context.accounts.put_tenant(Tenant("other"))
    for change in (
        node.settings.list(),
        node.settings.put_agent("helper", agent()),
        node.settings.put_key("openai", api.NewModelKey(key=CANARY)),
        node.settings.delete_agent("helper"),
        node.settings.agent_versions("helper"),
    ):
        with pytest.raises(Forbidden, match="operator"):
            await change
    await node.access("operator").settings.put_agent("helper", agent(instructions="mine"))


async def test_another_process_applies_a_change_when_it_is_signalled(node: Node) -> None:
    other = ConfigReloader(node.reloader.files, node.context.app, None, OFFLINE)
    await other.open_settings()
    watching = asyncio.create_task(other.watch_settings(pause=3600))
    try:
        await asyncio.sleep(0)
        await node.settings.put_agent("helper", agent())
        async with asyncio.timeout(20):
            while "helper" not in other.loaded.config.agents:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        watching.cancel()


async def test_another_process_notices_a_change_by_itself_when_the_signal_is_lost(node: Node) -> None:
    other = ConfigReloader(node.reloader.files, node.context.app, None, OFFLINE)
    await other.open_settings()
    row = Setting(kind="agent", name="helper", version=1, body=encode_body(AgentSettings()))
    await node.context.app.store.settings.add(row)
    watching = asyncio.create_task(other.watch_settings(pause=0.01))
    try:
        async with asyncio.timeout(20):
            while "helper" not in other.loaded.config.agents:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        watching.cancel()


async def test_a_stored_agent_that_became_invalid_is_left_out_and_the_others_work(tmp_path: Path) -> None:
    async with open_node(tmp_path, f'[models.old]\nmodel = "{OFFLINE}"\n') as node:
        await node.settings.put_agent("one", agent(model="old"))
        await node.settings.put_agent("two", agent(model=OFFLINE))
    async with open_node(tmp_path) as node:
        assert [entry.name for entry in node.context.agents.all] == ["assistant", "two"]
        problems = {row.name: row.problem for row in (await node.settings.list()).agents}
        assert "old" in problems["one"]
        assert problems["two"] == ""


async def test_where_settings_are_not_editable_nothing_that_is_stored_applies(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.settings.put_agent("helper", agent())
    async with open_node(tmp_path, "[settings]\neditable = false\n") as node:
        assert [entry.name for entry in node.context.agents.all] == ["assistant"]
        assert (await node.settings.list()).is_editable is False
        with pytest.raises(ConfigError, match="editable"):
            await node.settings.put_agent("helper", agent())
