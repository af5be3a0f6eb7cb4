"""A recorded session → the same turns again, offline, and what is different this time.

recording.py    one file: the log of a session, or of a turn and what lay before it, a line for each event
checking.py     whether it can be played again, and whether it was the same
comparing.py    two logs → what differs, in words; times, ids and hashes do not count
script.py       what comes next in a recorded turn, and what of it has happened again
stage.py        plugins, tools, time and spending, played from the recording
model.py        a model that says again what was said, and objects when it is asked something else
steering.py     messages that joined a turn, sent once more
playing.py      everything once more, with nothing but the recording
performing.py   everything once more on real tools, for those who write tools
looking.py      how things stood at a place in it
what_if.py      what another prompt, or other rules, would have made of it
cassette.py     recordings as tests: made where there is none, played where there is one
"""

from everturn.testing.replay.cassette import cassette, record
from everturn.testing.replay.comparing import differences, normal
from everturn.testing.replay.model import replay_model
from everturn.testing.replay.performing import perform, replay
from everturn.testing.replay.playing import again
from everturn.testing.replay.recording import Recording
from everturn.testing.replay.what_if import Change, what_if

__all__ = [
    "Change",
    "Recording",
    "again",
    "cassette",
    "differences",
    "normal",
    "perform",
    "record",
    "replay",
    "replay_model",
    "what_if",
]
