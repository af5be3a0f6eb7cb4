"""Local model server for tests and benchmarks: six wire formats, scripted answers, and the validation of real
providers.

`Provider` serves OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, Gemini, Ollama and Amazon Bedrock
Converse, always as a stream. `Say`, `Think`, … are the items of a script; a step is a list of them. A request goes through connection → decode →
model → strict → progress → render → bytes (`server`). A request for images or audio goes through connection →
`media_request` → model → strict → `media` → bytes. Run it with `python -m everturn.testing.provider --port 8123
--no-record`.

- `server`: `Provider`; routes requests, and records them
- `routes`: the format and the model of a path, also of the clouds
- `connection`: HTTP/1.1 connections
- `script`: the items and steps of a scripted model
- `builtin`: models without a script (`plain`, `tool1`, `agent`, `longargs`); a prefix sets the family: `mistral-tool1`
- `library`: finds the script and step of a request, and caches its answer
- `progress`: how many steps the turn of a request has taken
- `answers`: bytes and pauses of an answer
- `faults`: error bodies in the form of each provider
- `signatures`, `gemini_signatures`: signatures of reasoning
- `server_tools`, `gemini_tools`: calls and results of the tools that a provider runs itself
- `render`, `writers`: turn the items of a step into an answer; `render_chat`, `render_responses`, `render_messages`,
  `render_gemini`, `render_ollama`, `render_converse`: one writer per format; `event_frames`: the frames of AWS
- `strict`: validates a request as its provider does
- `strict_openai`, `strict_chat`, `strict_families`: OpenAI Chat Completions, and the families of compatible models
- `strict_responses`, `strict_items`: OpenAI Responses
- `strict_messages`, `strict_tools`, `strict_blocks`, `strict_pairs`, `strict_server_blocks`: Anthropic Messages
- `strict_gemini`, `strict_proto`, `strict_declarations`, `strict_turns`, `strict_gemini_tools`: Gemini
- `strict_ollama`, `strict_functions`: Ollama
- `strict_converse`, `converse_body`: Amazon Bedrock Converse
- `strict_schemas`: the schemas of structured output, for every format
- `media_request`, `multipart`: read requests for images and audio
- `media`, `render_media`, `png`, `sound`: answers with images and audio; built-in models `image`, `voice`, `ear`
- `strict_media`, `strict_images`, `strict_audio`: OpenAI Images and Audio
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
