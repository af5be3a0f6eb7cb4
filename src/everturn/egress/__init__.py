"""Egress: requests to addresses that a model, a provider or a server named, with protection against SSRF.

Every address is parsed, resolved and checked against a policy; connections go only to the checked IP addresses, and
sizes and times are bounded. All outgoing requests of tools go through here.

    policy        the egress policy: which addresses may be reached
    ip_addresses  classification of IP addresses; pure
    dns           name resolution with the machine's resolver, bounded
    fetch         GET of a page: pinned addresses, every redirect checked again, all of it bounded
    client        requests to a provider's or server's URLs: the operator's own origins, or checked by the policy
    body          a response body with a size limit
"""

from __future__ import annotations

from everturn.egress.client import EgressClient, EgressResponse
from everturn.egress.fetch import FetchedPage, FetchLimits, fetch
from everturn.egress.policy import EgressPolicy, ResolvedUrl

__all__ = ["EgressClient", "EgressPolicy", "EgressResponse", "FetchLimits", "FetchedPage", "ResolvedUrl", "fetch"]
