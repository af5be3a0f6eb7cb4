"""A machine and its environment → the models that could be had here, and what to write for each of them.

Of a key only the name of its variable is told. On this machine alone, and only when somebody asks, it is looked whether a
server for models answers at one of the usual places.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from everturn import api
from everturn.access.overseeing import Survey
from everturn.config.layers import user_file
from everturn.config.loading import Loaded
from everturn.config.models import USUAL_MODELS
from everturn.models.offline import OFFLINE
from everturn.models.vendors import VENDORS

LOOKING: Final = 0.5  # seconds for all of them
LARGEST: Final = 1_000_000  # bytes of an answer
MOST: Final = 50  # models of one server
HOST: Final = "127.0.0.1"

EXAMPLES: Final[Mapping[str, str]] = {
    **USUAL_MODELS,
    "OPENROUTER_API_KEY": "openrouter:openrouter/auto",
    "DEEPSEEK_API_KEY": "deepseek:deepseek-chat",
    "DASHSCOPE_API_KEY": "qwen:qwen-max",
    "MOONSHOT_API_KEY": "kimi:kimi-latest",
    "MISTRAL_API_KEY": "mistral:mistral-large-latest",
    "GROQ_API_KEY": "groq:openai/gpt-oss-120b",
}
"""A model to begin with, by the variable of its vendor's key."""


class Place(Struct, frozen=True):
    """Where a server for models usually is; `vendor` is what its models are named by, "compatible": with an address."""

    name: str
    port: int
    vendor: str
    path: str = "/v1/models"


PLACES: Final[Sequence[Place]] = (
    Place("Ollama", 11434, "ollama", "/api/tags"),
    Place("llama.cpp", 8080, "llamacpp"),
    Place("LM Studio", 1234, "compatible"),
    Place("vLLM", 8000, "vllm"),
)


class _Row(Struct):
    id: str = ""
    name: str = ""


class _Told(Struct):
    data: list[_Row] = []  # as most servers say it
    models: list[_Row] = []  # as Ollama does


def survey(loaded: Loaded, environ: Mapping[str, str], places: Sequence[Place] = PLACES) -> Survey:
    """What can say which models could be had here, for an installation that was made of this."""

    async def look(agent: str, model: str) -> api.SetupView:
        file = _file(loaded, environ)
        found = await _servers(places)
        ways = [
            *_keys(environ, agent, model),
            *(way_to(place, models, agent, loaded.config.models) for place, models in found),
        ]
        return api.SetupView(
            agent=agent,
            model=model,
            is_offline=model == OFFLINE,
            file=str(file) if file is not None else "",
            has_file=file is not None and await asyncio.to_thread(file.exists),
            has_agent=agent in loaded.config.agents,
            ways=ways,
        )

    return look


def _file(loaded: Loaded, environ: Mapping[str, str]) -> Path | None:
    """The file that is read last, so that what it says counts; or the one that would be."""
    if loaded.files:
        return Path(os.path.abspath(loaded.files[-1]))
    return user_file(environ)


def _keys(environ: Mapping[str, str], agent: str, model: str) -> Iterable[api.WayIn]:
    known = dict.fromkeys(profile.key for profile in VENDORS.values() if profile.key)
    for variable in known:
        name = EXAMPLES.get(variable, "")
        if name and name != model and environ.get(variable, "").strip():
            yield api.WayIn(
                kind="key", name=variable, address="", models=[name], toml=_agent(agent, name), needs_restart=False
            )


def way_to(place: Place, models: list[str], agent: str, taken: Collection[str]) -> api.WayIn:
    """What to write for a server that was found; `taken` are the names that models have already."""
    usual = VENDORS[place.vendor].base_url
    is_named = bool(usual) and f":{place.port}" in usual
    root = f"http://{HOST}:{place.port}"
    if is_named:
        toml = _agent(agent, f"{place.vendor}:{models[0]}")
    else:
        base = root if place.vendor == "ollama" else f"{root}/v1"
        own = next(name for n in range(1, 999) if (name := f"local-{n}" if n > 1 else "local") not in taken)
        model = _text(f"{place.vendor}:{models[0]}")
        toml = f"[models.{own}]\nmodel = {model}\nbase_url = {_text(base)}\n\n{_agent(agent, own)}"
    # A table of [models] is read when a server starts; that of an agent whenever it changes.
    return api.WayIn(kind="server", name=place.name, address=root, models=models, toml=toml, needs_restart=not is_named)


def _agent(agent: str, model: str) -> str:
    return f"[agents.{_key(agent)}]\nmodel = {_text(model)}\n"


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _text(name)


def _text(text: str) -> str:
    """A text as TOML has it; a server on this machine may call its models anything."""
    return msgspec.json.encode(text).decode()


async def _servers(places: Sequence[Place]) -> list[tuple[Place, list[str]]]:
    found = await asyncio.gather(*(_models(place) for place in places))
    return [(place, models) for place, models in zip(places, found, strict=True) if models]


async def _models(place: Place) -> list[str]:
    """The models that a server at a place has; none where nobody answers, or something else does."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(LOOKING):
            reader, writer = await asyncio.open_connection(HOST, place.port)
            host = f"{HOST}:{place.port}"
            # In the old protocol an answer ends where the connection does.
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
    while len(data) < LARGEST and (piece := await reader.read(65_536)):
        data += piece
    return data


def _names(body: bytes) -> list[str]:
    try:
        told = msgspec.json.decode(body, type=_Told)
    except msgspec.DecodeError:
        return []
    names = [row.id or row.name for row in told.data or told.models]
    return [name for name in names if 0 < len(name) <= 200 and name.isprintable()][:MOST]
