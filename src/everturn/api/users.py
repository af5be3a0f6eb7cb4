"""Users, invitations, passwords, budgets and API keys."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from everturn.api.base import Body, Name, View
from everturn.core.options import Spent
from everturn.core.tenants.accounts import CredentialKind, Role
from everturn.core.tenants.user_records import InvitationKind, PasswordSupport


class NewKey(Body, frozen=True, kw_only=True):
    """Create an API key for a user of the tenant, limited to this role."""

    name: Name = ""
    user: Name = ""  # "": the caller
    role: Role = "member"
    expires: Annotated[float, Meta(ge=0)] = 0.0


class PutUser(Body, frozen=True, kw_only=True):
    """Create or update a user."""

    name: Name = ""
    role: Role = "member"
    is_active: bool = True
    origin: Annotated[str, Meta(max_length=1000)] | None = (
        None  # the issuer whose tokens may authenticate this user; None: unchanged
    )


Password = Annotated[str, Meta(min_length=1, max_length=1000)]


class PutUserBudget(Body, frozen=True, kw_only=True):
    """Limit what a user may use in a period; 0 is no limit."""

    steps: Annotated[int, Meta(ge=0, le=2**53)] = 0
    calls: Annotated[int, Meta(ge=0, le=2**53)] = 0
    tokens: Annotated[int, Meta(ge=0, le=2**53)] = 0
    cost: Annotated[float, Meta(ge=0, le=1e12)] = 0.0  # in US dollars
    period: Annotated[float, Meta(ge=0, le=1e10)] = 30 * 86_400.0  # seconds back from now; 0: ever


class NewInvitation(Body, frozen=True, kw_only=True):
    """Invite a person: the link works once, and creates this user with this role."""

    user: Annotated[str, Meta(min_length=1, max_length=200)]
    name: Name = ""
    role: Role = "member"
    hours: Annotated[float, Meta(gt=0, le=24 * 30)] = 72.0  # until it expires


class OpenInvitation(Body, frozen=True, kw_only=True):
    """Look at an invitation before it is used."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]


class AcceptInvitation(Body, frozen=True, kw_only=True):
    """Use an invitation, or the link that resets a password. The password is left out where passwords are off."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]
    password: Annotated[str, Meta(max_length=1000)] = ""


class PasswordLogin(Body, frozen=True, kw_only=True):
    """Log a browser in with a password."""

    user: Annotated[str, Meta(min_length=1, max_length=200)]
    password: Password
    tenant: Annotated[str, Meta(min_length=1, max_length=200)] = "local"


class ChangePassword(Body, frozen=True, kw_only=True):
    """Change the caller's own password. `current` is left out by somebody who has none yet."""

    new: Password
    current: Annotated[str, Meta(max_length=1000)] = ""


class Me(View, frozen=True, kw_only=True):
    """The authenticated user."""

    tenant: str
    user: str
    role: Role
    version: str
    csrf: str = ""  # a client with a cookie sends it back as `X-CSRF-Token`


class KeyView(View, frozen=True, kw_only=True):
    """A credential, without its secret."""

    id: str
    user: str
    kind: CredentialKind
    name: str
    role: Role
    created: float
    expires: float
    revoked: float
    used: float = 0.0  # when it was last used, to a minute; 0: not yet


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """A new key. Its secret is shown only in this response."""

    secret: str


class KeyList(View, frozen=True, kw_only=True):
    """Credentials, oldest first."""

    keys: list[KeyView]


class UserBudgetView(View, frozen=True, kw_only=True):
    """What a user may use in a period, and what of it they have used; 0 is no limit."""

    steps: int
    calls: int
    tokens: int
    cost: float
    period: float
    spent: Spent


class UserView(View, frozen=True, kw_only=True):
    """A user."""

    id: str
    name: str
    role: Role
    is_active: bool
    origin: str = ""  # the issuer whose tokens may authenticate this user; "": none
    created: float = 0.0
    has_password: bool = False
    last_used: float = 0.0  # when a key or login of theirs was last used, to a minute; 0: not yet
    budget: UserBudgetView | None = None


class InvitationView(View, frozen=True, kw_only=True):
    """An invitation, or a link that resets a password, without its secret."""

    id: str
    kind: InvitationKind
    user: str
    name: str
    role: Role
    by: str
    created: float
    expires: float
    used: float
    revoked: float


class InvitationList(View, frozen=True, kw_only=True):
    """Invitations, newest first. `passwords`: whether people set a password when they accept one."""

    invitations: list[InvitationView]
    passwords: PasswordSupport


class NewInvitationView(InvitationView, frozen=True, kw_only=True):
    """A new invitation. Its secret is shown only in this response; the link is `{server}/#/invite/{secret}`."""

    secret: str


class OpenedInvitation(View, frozen=True, kw_only=True):
    """What an invitation is for."""

    kind: InvitationKind
    tenant: str
    user: str
    name: str
    passwords: PasswordSupport
    min_length: int  # of a password


class LoggedIn(View, frozen=True, kw_only=True):
    """Who a browser is logged in as; the response sets its cookie."""

    tenant: str
    user: str


class UserList(View, frozen=True, kw_only=True):
    """Users, by id."""

    users: list[UserView]


class LoginView(View, frozen=True, kw_only=True):
    """The URL at which a person logs in: in their own browser if it `returns` to the web UI, else in one on the server's
    machine."""

    address: str
    returns: bool = False
