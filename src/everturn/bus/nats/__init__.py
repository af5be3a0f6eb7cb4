"""NATS bus: live deltas and signals between nodes. `NatsBus` is the one class to use.

Nothing here is needed for a turn to be correct: every reader can make up for missed frames from the log.

- `bus`: `NatsBus`, which joins the following behind the port
- `connection`: a connection that is re-established for ever, with TLS
- `subscriptions`: the turns that readers on this node follow
- `signals`: the sessions that drivers on this node listen to
- `announcements`: the topics that are heard on this node
- `backlog`: the step so far, from a JetStream stream
"""

from everturn.bus.nats.bus import NatsBus
from everturn.bus.nats.connection import tls_context
from everturn.bus.remote.codec import READ_LOG

__all__ = ["READ_LOG", "NatsBus", "tls_context"]
