"""Local model server for tests and benchmarks: six wire formats, scripted answers, and the validation of real
providers.

`Provider` serves OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, Gemini, Ollama and Amazon Bedrock
Converse, always as a stream. `Say`, `Think`, … are the items of a script; a step is a list of them. A request goes through connection → decode →
model → strict → progress → render → bytes (`server`). A request for images or audio goes through connection →
`media.requests` → model → strict → `render.media_models` → bytes. Run it with `python -m everturn.testing.provider --port 8123
--no-record`.

- `server`: `Provider`; routes requests, and records them
- `routes`: the format and the model of a path, also of the clouds
- `connection`: HTTP/1.1 connections
- `request_body`: decodes the body of a request
- `script`: the items and steps of a scripted model
- `builtin`: models without a script (`plain`, `tool1`, `agent`, `longargs`); a prefix sets the family: `mistral-tool1`
- `library`: finds the script and step of a request, and caches its answer
- `progress`: how many steps the turn of a request has taken
- `answers`: bytes and pauses of an answer
- `faults`: error bodies in the form of each provider
- `signatures`, `gemini_signatures`: signatures of reasoning
- `server_tools`, `gemini_tools`: calls and results of the tools that a provider runs itself
- `render`: turns the items of a step into an answer, with one writer per format
- `strict`: validates a request as its provider does
- `media`: requests with images and audio
- `files`: the files APIs, and references to files in requests
- `prompt_cache`: counts which tokens of a request a provider has cached, and what they cost
"""

from everturn.testing.provider.script import (
    Call,
    Cite,
    Cut,
    CutAt,
    Finish,
    Hang,
    HostedTool,
    Image,
    InBandError,
    Item,
    Pause,
    Raw,
    Redacted,
    Refuse,
    Say,
    ScriptedUsage,
    Speech,
    Status,
    Step,
    Think,
    Transcription,
)
from everturn.testing.provider.server import Provider, RecordedRequest

__all__ = [
    "Call",
    "Cite",
    "Cut",
    "CutAt",
    "Finish",
    "Hang",
    "HostedTool",
    "Image",
    "InBandError",
    "Item",
    "Pause",
    "Provider",
    "Raw",
    "RecordedRequest",
    "Redacted",
    "Refuse",
    "Say",
    "ScriptedUsage",
    "Speech",
    "Status",
    "Step",
    "Think",
    "Transcription",
]
