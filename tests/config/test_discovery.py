"""What could be had on a machine is found without telling a secret, and what is to be written makes sense."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everturn.access.access import Access
from everturn.config.build import CommandLineOverrides, open_server
from everturn.config.discovery import EXAMPLES, LOCAL_SERVERS, LocalModelServer, discover_models, server_setup
from everturn.config.load import load_config
from everturn.core.tenants.accounts import Principal
from everturn.models.offline import OFFLINE
from everturn.models.registry import get_model
from everturn.models.vendors import VENDORS

NOWHERE = Path("/nonexistent/everturn.toml")
CANARY = "sk-canary-5f1d0b7e"


@asynccontextmanager
async def a_server(answer: bytes) -> AsyncGenerator[int]:
    """Something that answers everybody the same; a port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def ok(body: str) -> bytes:
    return b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body.encode()


async def test_keys_are_reported_by_name_and_what_to_write_for_them_is_a_configuration(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "DEEPSEEK_API_KEY": CANARY, "MISTRAL_API_KEY": " "}
    view = await discover_models(load_config(None, environ, NOWHERE), environ, ())("assistant", OFFLINE)
    assert [(way.kind, way.name, way.needs_restart) for way in view.options] == [("key", "DEEPSEEK_API_KEY", False)]
    assert CANARY not in str(view)
    assert view.is_offline
    assert not view.has_file
    assert not view.has_agent
    file = Path(view.file)
    assert file == tmp_path / ".config/everturn/everturn.toml"
    write(file, view.options[0].toml)
    again = load_config(None, environ, NOWHERE)
    assert again.config.agents["assistant"].model == "deepseek:deepseek-chat"
    assert (await discover_models(again, environ, ())("assistant", OFFLINE)).has_agent


async def test_a_key_of_bedrock_is_offered_with_a_region_only(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "AWS_BEARER_TOKEN_BEDROCK": CANARY}
    for region, offered in ({}, []), ({"AWS_DEFAULT_REGION": "eu-west-1"}, ["AWS_BEARER_TOKEN_BEDROCK"]):
        found = await discover_models(load_config(None, environ, NOWHERE), environ | region, ())("assistant", OFFLINE)
        assert [option.name for option in found.options] == offered


@pytest.mark.parametrize("variable", EXAMPLES)
def test_the_model_to_begin_with_is_one_of_the_vendor_whose_key_it_is(variable: str) -> None:
    get_model(EXAMPLES[variable], environ={variable: "k", "AWS_REGION": "us-east-1"})


async def test_local_servers_are_found_by_what_they_answer(tmp_path: Path) -> None:
    hostile = 'a"] # ='
    body = '{"data": [{"id": "qwen3:8b"}, {"id": "other"}]}'
    async with (
        a_server(ok(body)) as good,
        a_server(ok(json.dumps({"models": [{"name": hostile}, {"name": "a\nb"}]}))) as tags,
        a_server(ok(body.replace('"other"', "5"))) as odd,
        a_server(b"HTTP/1.0 401 No\r\n\r\n" + body.encode()) as locked,
        a_server(b"garbage") as garbage,
    ):
        places = [LocalModelServer(f"at {port}", port, "compatible") for port in (good, odd, locked, garbage, 9)]
        places.append(LocalModelServer("Ollama", tags, "ollama", "/api/tags"))
        file = tmp_path / "everturn.toml"
        write(file, "[models.local]\nmodel = 'ollama:x'\n")
        view = await discover_models(load_config(str(file), {}, NOWHERE), {}, places)("assistant", OFFLINE)
        assert [(way.name, way.models) for way in view.options] == [
            (f"at {good}", ["qwen3:8b", "other"]),
            ("Ollama", [hostile]),
        ]
        for way in view.options:
            assert way.needs_restart
            write(file, f"[models.local]\nmodel = 'ollama:x'\n{way.toml}")
            again = load_config(str(file), {}, NOWHERE)
            assert again.config.models[again.config.agents["assistant"].model].model.endswith(way.models[0])
            assert len(again.config.models) == 1 + len(way.models), "the others can be chosen, too"


@pytest.mark.parametrize(
    ("model", "taken", "name"),
    [
        ("qwen3-coder", (), "qwen3-coder"),
        ("qwen2.5:7b", ("qwen2-5-7b",), "qwen2-5-7b-2"),
        ("/home/ann/models/SmolLM2-135M.gguf", (), "SmolLM2-135M"),
        ("…", (), "local"),
    ],
)
def test_a_model_of_a_server_is_called_by_its_name(model: str, taken: tuple[str, ...], name: str) -> None:
    place = LocalModelServer("here", 9999, "compatible")
    tables = tomllib.loads(server_setup(place, [model, "nomic-embed-text", "other"], "assistant", taken).toml)
    assert list(tables["models"]) == [name, "other"]
    assert tables["models"][name]["model"] == f"compatible:{model}"
    assert tables["agents"]["assistant"]["model"] == name


@pytest.mark.parametrize("place", LOCAL_SERVERS, ids=lambda place: place.name)
def test_a_server_at_its_usual_place_needs_no_table_of_its_own_and_no_restart(place: LocalModelServer) -> None:
    way = server_setup(place, ["m"], "a b", ())
    assert way.needs_restart == ("[models" in way.toml) == (place.vendor == "compatible")
    assert '[agents."a b"]' in way.toml


async def test_a_server_context_that_is_made_of_a_configuration_can_be_surveyed(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "GROQ_API_KEY": CANARY}
    async with open_server(
        load_config(None, environ, NOWHERE), CommandLineOverrides(store=str(tmp_path / "e.db")), environ
    ) as house:
        view = await Access(house, Principal("local", "local", "operator", "c")).admin.setup()
    assert view.is_offline
    assert [way.name for way in view.options if way.kind == "key"] == ["GROQ_API_KEY"]


def test_every_vendor_with_a_key_has_a_model_to_begin_with() -> None:
    # In a cloud the models are the user's own deployments, or depend on the region.
    keys = {profile.key for profile in VENDORS.values() if profile.key and not profile.cloud}
    assert keys - set(EXAMPLES) == set(), "add the vendor's key, with a model, to EXAMPLES in config/discovery.py"
