"""A local model server for tests and benchmarks: five wire formats, scripted answers, real refusals.

    Provider        serves OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, Gemini and Ollama, always as
                    a stream
    Say, Think, …   what a model is told to do; a step is a list of them (`script.py`)

A request is read from top to bottom of `server.py`: connection → decode → model → strict → progress → render → bytes.
`strict_*` has one file per format (and one for what belongs together), each rule a small function with the words of
the real one. `render_*` has one file per format. Built-in models need no script: `plain`, `tool1`, `agent`,
`longargs` (`builtin.py`). In front of any name may stand the family whose strictness is wanted: `mistral-tool1`.

OpenAI's endpoints for pictures and sound go the same way, and their answers are files: connection → `asked.py` → model
→ strict → `media.py` → bytes. Built in are `image`, `voice` and `ear`.

    python -m everturn.testing.provider --port 8123 --no-record
"""

from everturn.testing.provider.script import (
    Call,
    Cut,
    CutAt,
    Finish,
    Hang,
    Heard,
    Image,
    InBandError,
    Item,
    Pause,
    Raw,
    Redacted,
    Refuse,
    Say,
    Speech,
    Status,
    Step,
    Think,
    Usage,
)
from everturn.testing.provider.server import Provider, Seen

__all__ = [
    "Call",
    "Cut",
    "CutAt",
    "Finish",
    "Hang",
    "Heard",
    "Image",
    "InBandError",
    "Item",
    "Pause",
    "Provider",
    "Raw",
    "Redacted",
    "Refuse",
    "Say",
    "Seen",
    "Speech",
    "Status",
    "Step",
    "Think",
    "Usage",
]
