"""A store with two ports runs turns, and stores, models, engines and buses of other packages are found by name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from everturn import Chat, get_model, tool
from everturn.app import App
from everturn.bus.registry import get_bus
from everturn.core.store_ports import BlobStore, CommandInbox, EventLog, SessionDirectory, Store, TurnStore
from everturn.engine.registry import get_engine
from everturn.entry_points import names_in
from everturn.errors import ConfigError
from everturn.stores.memory import MemoryStore
from everturn.stores.partial import OPTIONAL_METHODS, complete_store
from everturn.stores.registry import get_store
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.contracts import TurnStoreContract


def methods(*ports: type) -> list[str]:
    return [name for port in ports for name in vars(port) if not name.startswith("_")]


class TwoPorts:
    """A store that has the log and the inbox, and nothing else."""

    def __init__(self) -> None:
        store = MemoryStore()
        for name in (*methods(EventLog, CommandInbox), "aclose"):
            setattr(self, name, getattr(store, name))


class TestTwoPorts(TurnStoreContract):
    async def make(self) -> Store:
        return complete_store(cast("TurnStore", TwoPorts()))


async def test_a_store_with_two_ports_runs_a_turn_with_a_tool_and_an_approval() -> None:
    @tool(approval="always")
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    store = cast("TurnStore", TwoPorts())
    async with Chat(ScriptedModel(calls(call("pay", amount=3)), say("Done.")), tools=[pay], store=store) as chat:
        turn = await chat.send("Pay")
        async for event in turn.events():
            if type(event).__name__ == "GateOpened":
                await turn.answer(cast("Any", event).gate, allow="once")
        answer = await turn
        assert answer.text == "Done."
        assert [message.role for message in await chat.messages()] == ["user", "assistant"]


async def test_what_a_partial_store_lacks_is_said_with_the_port_that_has_it() -> None:
    store = complete_store(cast("TurnStore", TwoPorts()))
    with pytest.raises(ConfigError, match="TwoPorts has no `search`: it does not implement the port SessionDirectory"):
        await store.search("soup")
    with pytest.raises(ConfigError, match="the port BlobStore"):
        await store.put_blob(b"")
    with pytest.raises(ConfigError, match="the port Accounts"):
        _ = store.accounts
    with store.restrict_to_tenant("t"):
        pass


def test_row_level_security_of_a_partial_store_is_used() -> None:
    class Restricting(TwoPorts):
        tenants: ClassVar[list[str]] = []

        def restrict_to_tenant(self, tenant: str, reader: object = None) -> AbstractContextManager[None]:
            self.tenants.append(tenant)
            return nullcontext()

    with complete_store(cast("TurnStore", Restricting())).restrict_to_tenant("ours"):
        assert Restricting.tenants == ["ours"]


def test_a_store_that_cannot_run_turns_is_refused_with_the_methods_it_lacks() -> None:
    store = TwoPorts()
    delattr(store, "claim")
    with pytest.raises(ConfigError, match="TwoPorts cannot run turns: it has no `claim`; the ports EventLog"):
        App(ScriptedModel([]), store=cast("TurnStore", store))
    with pytest.raises(ConfigError, match=r"is not a store; for example store=\"talks.db\""):
        App(ScriptedModel([]), store=cast("TurnStore", object()))


def test_a_whole_store_is_used_as_it_is() -> None:
    store = MemoryStore()
    assert complete_store(store) is store
    assert set(OPTIONAL_METHODS) == {
        *methods(SessionDirectory, BlobStore),
        "accounts",
        "user_memory",
        "schedules",
        "settings",
        "sharing",
        "webhooks",
    }
    bases = inspect.getmro(cast("type[object]", Store))
    inherited = {name for base in bases for name in vars(base) if not name.startswith("_")}
    assert inherited == {
        *methods(EventLog, CommandInbox, SessionDirectory, BlobStore),
        "accounts",
        "user_memory",
        "schedules",
        "settings",
        "sharing",
        "webhooks",
        "aclose",
    }


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package that provides one of each."""
    (tmp_path / "acme_everturn.py").write_text(
        "from everturn.bus.memory import MemoryBus\n"
        "from everturn.clock import SystemClock\n"
        "from everturn.engine.inline import InlineEngine\n"
        "from everturn.stores.memory import MemoryStore\n"
        "from everturn.testing import ScriptedModel, say\n"
        "opened = []\n"
        "def store(url):\n    opened.append(url)\n    return MemoryStore()\n"
        "def bus(url):\n    opened.append(url)\n    return MemoryBus()\n"
        "def engine(url):\n    opened.append(url)\n    return InlineEngine(SystemClock(), lambda session, error: None)\n"
        "def model(name):\n    opened.append(name)\n    return ScriptedModel([say('Hello from acme.')])\n"
    )
    info = tmp_path / "acme_everturn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-everturn\nVersion: 1.0\n")
    groups = {"stores": "store", "buses": "bus", "engines": "engine", "models": "model"}
    (info / "entry_points.txt").write_text(
        "".join(f"[everturn.{group}]\nacme = acme_everturn:{name}\n\n" for group, name in groups.items())
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("acme_everturn", None)


async def test_what_another_package_provides_is_found_by_its_entry_point(package: Path) -> None:
    app = App("acme:large", store="acme://host/1", bus="acme://bus", engine="acme://engine")
    async with Chat("acme:large", app=app) as chat:
        assert (await (await chat.send("Hi"))).text == "Hello from acme."
    await app.aclose()
    assert set(sys.modules["acme_everturn"].opened) == {"acme:large", "acme://host/1", "acme://bus", "acme://engine"}
    assert "acme" in names_in("everturn.stores")


def test_an_unknown_name_is_refused_with_those_that_there_are(package: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not a store; there are: .*, memory, acme://…"):
        get_store("other://host")
    with pytest.raises(ConfigError, match=r"is not a bus; there are: memory, acme://…"):
        get_bus("other://host")
    with pytest.raises(ConfigError, match=r"is not an engine; there are: acme://…"):
        get_engine("other://host")
    with pytest.raises(ConfigError, match="did you mean acme:large"):
        get_model("acne:large")


def test_an_entry_point_that_cannot_be_loaded_names_its_package(package: Path) -> None:
    info = package / "acme_everturn-1.0.dist-info" / "entry_points.txt"
    info.write_text("[everturn.stores]\nacme = acme_everturn:absent\n")
    with pytest.raises(ConfigError, match="cannot be loaded from acme_everturn:absent"):
        get_store("acme://host/1")
