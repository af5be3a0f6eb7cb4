"""Authentication options: the configuration of an OpenID Connect provider."""

from __future__ import annotations

from msgspec import Struct

from everturn.core.tenants.accounts import Role


class OidcOptions(Struct, frozen=True):
    """Tokens and logins of an OpenID Connect provider.

    `jwks` and `issuer` are trusted; the claims of a token are mapped to a user, a tenant and a role.
    """

    issuer: str
    audience: str
    jwks: str = ""  # URL or file of the keys; "": from the issuer's discovery document
    client_id: str = ""  # for browser logins; "": tokens only
    client_secret: str = ""
    user_claim: str = "sub"
    tenant_claim: str = ""  # "": all users of this provider are in `tenant`
    tenant: str = "local"
    role_claim: str = ""  # "": the stored role of the user, or `role` for a new user
    roles: dict[str, Role] = {}  # value of the claim -> role
    role: Role | None = None  # of a new user; None: only existing users of the tenant are accepted
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    login_hosts: tuple[str, ...] = ()  # host:port of endpoints inside the network that are not at the issuer's address
    leeway: float = 30.0  # seconds that clocks may differ
