"""A recorded session → the same turns again, offline, and what is different this time.

recording.py    the log of a session as one file, a line for each event: `log.jsonl` of an export
comparing.py    two logs → what differs, in words; times, ids and hashes do not count
model.py        a model that says again what was said, and objects when it is asked something else
performing.py   everything once more: what was sent, answered and taken back, on real tools
"""

from everturn.testing.replay.comparing import differences, normal
from everturn.testing.replay.model import replay_model
from everturn.testing.replay.performing import perform, replay
from everturn.testing.replay.recording import Recording

__all__ = ["Recording", "differences", "normal", "perform", "replay", "replay_model"]
