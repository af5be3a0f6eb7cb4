"""Model discovery: finds the models that this machine could use, and the configuration to write for each.

Only the name of a key's environment variable is reported, never the key. The usual ports of local model servers are
probed on this machine only, and only on request.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from everturn import api
from everturn.access.context.server_context import SetupSurvey
from everturn.config.layers import user_file
from everturn.config.load import LoadedConfig
from everturn.config.models import DEFAULT_MODELS
from everturn.models.clouds.bedrock import REGIONS
from everturn.models.offline import OFFLINE
from everturn.models.registry import find_key
from everturn.models.vendors import VENDORS

PROBE_TIMEOUT: Final = 0.5  # seconds for all probes
MAX_RESPONSE: Final = 1_000_000  # bytes of a response
MAX_MODELS: Final = 50  # models of one server
HOST: Final = "127.0.0.1"
MAX_TABLES: Final = 12  # models of one server that the configuration names
NAME_LENGTH: Final = 48  # characters of a name under [models]
BEDROCK_KEY: Final = "AWS_BEARER_TOKEN_BEDROCK"
NOT_CHAT: Final = re.compile(
    r"embed|moderation|whisper|tts|dall-e|image|imagen|veo|audio|realtime|transcribe|sora|rerank|guard|aqa|ocr|babbage|davinci"
)
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")

EXAMPLES: Final[Mapping[str, str]] = {
    **DEFAULT_MODELS,
    "OPENROUTER_API_KEY": "openrouter:openrouter/auto",
    "DEEPSEEK_API_KEY": "deepseek:deepseek-chat",
    "DASHSCOPE_API_KEY": "qwen:qwen-max",
    "MOONSHOT_API_KEY": "kimi:kimi-latest",
    "MISTRAL_API_KEY": "mistral:mistral-large-latest",
    "GROQ_API_KEY": "groq:openai/gpt-oss-120b",
    BEDROCK_KEY: "bedrock:global.anthropic.claude-sonnet-4-6-v1:0",
}
"""A model to begin with, by the environment variable of its vendor's key."""


class LocalModelServer(Struct, frozen=True):
    """The usual port of a model server; `vendor` is the prefix of its models, "compatible": with a base URL."""

    name: str
    port: int
    vendor: str
    path: str = "/v1/models"


LOCAL_SERVERS: Final[Sequence[LocalModelServer]] = (
    LocalModelServer("Ollama", 11434, "ollama", "/api/tags"),
    LocalModelServer("llama.cpp", 8080, "llamacpp"),
    LocalModelServer("LM Studio", 1234, "compatible"),
    LocalModelServer("vLLM", 8000, "vllm"),
)


class _ModelRow(Struct):
    id: str = ""
    name: str = ""


class _ModelList(Struct):
    data: list[_ModelRow] = []  # most servers
    models: list[_ModelRow] = []  # Ollama


def discover_models(
    loaded: LoadedConfig, environ: Mapping[str, str], places: Sequence[LocalModelServer] = LOCAL_SERVERS
) -> SetupSurvey:
    """Return a function that lists the models which this installation could use."""

    async def look(agent: str, model: str) -> api.SetupView:
        file = _file(loaded, environ)
        servers = await find_servers(places)
        ways = [
            *_keys(environ, agent, model),
            *(server_setup(place, models, agent, loaded.config.models) for place, models in servers),
        ]
        return api.SetupView(
            agent=agent,
            model=model,
            is_offline=model == OFFLINE,
            file=str(file) if file is not None else "",
            has_file=file is not None and await asyncio.to_thread(file.exists),
            has_agent=agent in loaded.config.agents,
            options=ways,
        )

    return look


def _file(loaded: LoadedConfig, environ: Mapping[str, str]) -> Path | None:
    """Return the file that is read last, so that its values win; or the one that would be."""
    if loaded.files:
        return Path(os.path.abspath(loaded.files[-1]))
    return user_file(environ)


def _keys(environ: Mapping[str, str], agent: str, model: str) -> Iterable[api.ModelSource]:
    known = dict.fromkeys(profile.key for profile in VENDORS.values() if profile.key)
    for variable in known:
        name = EXAMPLES.get(variable, "")
        if name and name != model and find_key(variable, environ).strip() and _has_region(variable, environ):
            yield api.ModelSource(
                kind="key", name=variable, address="", models=[name], toml=_agent(agent, name), needs_restart=False
            )


def _has_region(variable: str, environ: Mapping[str, str]) -> bool:
    """Whether a key can be used as it is: one of Amazon Bedrock needs a region as well."""
    return variable != BEDROCK_KEY or any(environ.get(region, "").strip() for region in REGIONS)


def server_setup(
    place: LocalModelServer, models: list[str], agent: str, taken: Collection[str], base_url: str = ""
) -> api.ModelSource:
    """Return the configuration for a server that was found, or for one at a URL; `taken` are names of models in use.

    The agent has the first model. The others get tables, too, where their names alone do not lead to the server.
    """
    usual = VENDORS[place.vendor].base_url
    is_named = bool(usual) and f":{place.port}" in usual
    root = base_url or f"http://{HOST}:{place.port}"
    if is_named:
        toml = _agent(agent, f"{place.vendor}:{models[0]}")
    else:
        base = root if place.vendor == "ollama" or base_url else f"{root}/v1"
        tables = dict[str, str]()
        for model in [name for name in models if name == models[0] or not NOT_CHAT.search(name)][:MAX_TABLES]:
            table = f"model = {_text(f'{place.vendor}:{model}')}\nbase_url = {_text(base)}\n"
            tables[_own_name(model, (*taken, *tables))] = table
        written = "\n".join(f"[models.{_key(name)}]\n{table}" for name, table in tables.items())
        toml = f"{written}\n{_agent(agent, next(iter(tables)))}"
    # [models] is read when a server starts; the table of an agent whenever it changes.
    return api.ModelSource(
        kind="server", name=place.name, address=root, models=models, toml=toml, needs_restart=not is_named
    )


def _own_name(model: str, taken: Collection[str]) -> str:
    """A name under `[models]` for a model of a server: its own without folders, or `local` if nothing is left of it."""
    bare = _NOT_IN_NAMES.sub("-", model.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".gguf"))
    bare = bare.strip("-")[:NAME_LENGTH].rstrip("-") or "local"
    return next(name for n in range(1, 999) if (name := f"{bare}-{n}" if n > 1 else bare) not in taken)


def _agent(agent: str, model: str) -> str:
    return f"[agents.{_key(agent)}]\nmodel = {_text(model)}\n"


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _text(name)


def _text(text: str) -> str:
    """Return a TOML string; a local server may have any model names."""
    return msgspec.json.encode(text).decode()


async def find_servers(places: Sequence[LocalModelServer]) -> list[tuple[LocalModelServer, list[str]]]:
    """Return the local model servers that answer, with their models."""
    model_lists = await asyncio.gather(*(_models(place) for place in places))
    return [(place, models) for place, models in zip(places, model_lists, strict=True) if models]


async def _models(place: LocalModelServer) -> list[str]:
    """Return the models of a server; none where nothing, or something else, answers."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection(HOST, place.port)
            host = f"{HOST}:{place.port}"
            # In HTTP/1.0 a response ends with the connection.
            writer.write(f"GET {place.path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n".encode())
            await writer.drain()
            answer = await _whole(reader)
    except (OSError, TimeoutError):
        return []
    finally:
        if writer is not None:
            writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return _names(body) if head.split(b"\r\n")[0].split(b" ")[1:2] == [b"200"] else []


async def _whole(reader: asyncio.StreamReader) -> bytes:
    data = b""
    while len(data) < MAX_RESPONSE and (piece := await reader.read(65_536)):
        data += piece
    return data


def _names(body: bytes) -> list[str]:
    try:
        listing = msgspec.json.decode(body, type=_ModelList)
    except msgspec.DecodeError:
        return []
    names = [row.id or row.name for row in listing.data or listing.models]
    return [name for name in names if 0 < len(name) <= 200 and name.isprintable()][:MAX_MODELS]
