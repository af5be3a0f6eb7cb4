"""The live edge between nodes, over NATS; `NatsBus` is all there is to use.

    packing    frames ⇄ messages, ids → subjects; pure
    link       a connection that is made again for ever
    backlog    the step so far, out of a JetStream stream
    sending    what this node publishes
    following  what this node's readers follow
    listening  what this node's drivers hear
    bus        joins them behind the port

Nothing here is needed for a turn to be right: every reader can make up what it missed from the log.
"""

from everturn.bus.nats.bus import NatsBus
from everturn.bus.nats.link import encrypted
from everturn.bus.nats.packing import LOOK_AGAIN

__all__ = ["LOOK_AGAIN", "NatsBus", "encrypted"]
