"""An address that a model named → what is there, or why nobody may go there. Whatever reaches out goes through here.

guard.py       a text → an address that was read, resolved and judged: the one guard
addresses.py   an IP address → why it is nobody's business outside; pure
resolving.py   a name → its IP addresses, by the machine's own resolver, bounded
fetching.py    an address → a page: pinned, every hop judged again, all of it bounded
policy.py      an address that a provider or server named → its answer: own origins, or judged by the guard
bodies.py      bytes from the wire → the body, never more of it than agreed
"""

from __future__ import annotations

from everturn.egress.fetching import Limits, Page, fetch
from everturn.egress.guard import Guard, Place
from everturn.egress.policy import Answer, Policy

__all__ = ["Answer", "Guard", "Limits", "Page", "Place", "Policy", "fetch"]
