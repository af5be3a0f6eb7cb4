"""Who is asking, and what they may do: the one layer between faces that serve strangers and everything that is kept.

entrance   what somebody shows at the door → a `Principal`, or a refusal
access     a `Principal` → what they may see and do; every id that comes from outside is checked here, and only here
agents     the configured agents: a name → the options of a turn
"""

from everturn.access.access import Access
from everturn.access.needs import needs, role_of

__all__ = ["Access", "needs", "role_of"]
