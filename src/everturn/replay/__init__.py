"""Replay: runs the turns of a recorded session again, offline, and reports what differs.

A recording is the log of a session. The runtime is real; model, tools, plugins, people and time come from the
recording.

- `recording`: the file format: the log of a session, or of a turn and the messages before it, one line per event
- `check`: whether a recording can be replayed, and all differences of a replay
- `compare`: differences of two logs in words; times, ids and hashes do not count
- `script`: the next recorded event of each turn, and which events have happened again
- `plugins`: plugins, tools, clock and spending from the recording
- `model`: a model that repeats its recorded answers, and fails if its request differs
- `steering_messages`: sends the messages again that joined a running turn
- `replay_app`: an app that drives the turns of agents it does not have
- `play`: full replay, with nothing but the recording
- `rerun`: replay of the recorded model and people on real tools, for authors of tools
- `inspect`: the state of a turn at an event of its log
- `what_if`: what another prompt, or other rules, would have changed
- `cassette`: recordings as test fixtures: recorded if missing, replayed if present
"""

from everturn.replay.cassette import cassette, record
from everturn.replay.compare import differences, normalize_recording
from everturn.replay.model import replay_model
from everturn.replay.play import replay_offline
from everturn.replay.recording import Recording
from everturn.replay.rerun import replay, rerun_with_tools
from everturn.replay.what_if import Change, what_if

__all__ = [
    "Change",
    "Recording",
    "cassette",
    "differences",
    "normalize_recording",
    "record",
    "replay",
    "replay_model",
    "replay_offline",
    "rerun_with_tools",
    "what_if",
]
