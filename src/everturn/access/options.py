"""How people are recognised at the door, as configured."""

from __future__ import annotations

from msgspec import Struct

from everturn.core.accounts import Role


class OidcOptions(Struct, frozen=True):
    """Tokens and logins of an OpenID Connect provider.

    `jwks` and `issuer` are what is trusted; a token says who somebody is, and `tenant` and `role` how that is read.
    """

    issuer: str
    audience: str
    jwks: str = ""  # address of the keys, or a file; "": as the issuer's own document says
    client_id: str = ""  # for logins of a browser; "": tokens only
    client_secret: str = ""
    user_claim: str = "sub"
    tenant_claim: str = ""  # "": everybody of this provider is in `tenant`
    tenant: str = "local"
    role_claim: str = ""  # "": the role of the user in the tenant, or `role` for whoever is new
    roles: dict[str, Role] = {}  # value of the claim -> role
    role: Role | None = None  # of whoever is new; None: whoever is not a user of the tenant is not let in
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    login_hosts: tuple[str, ...] = ()  # host:port of endpoints that are inside, and not at the address of the issuer
    leeway: float = 30.0  # seconds that clocks may differ
