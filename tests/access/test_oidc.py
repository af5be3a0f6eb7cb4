"""Tokens of a provider: only what its keys have signed counts, by the algorithms that were configured, in time."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import algorithms
from msgspec.structs import replace

from everturn.access.administration.accounts import new_secret
from everturn.access.auth.authentication import CREDENTIAL_HINT, Authenticator
from everturn.access.auth.options import OidcOptions
from everturn.core.tenants.accounts import ROLES, AuditRecord, Credential, Tenant, User
from everturn.errors import ConfigError, NotRecognised
from everturn.server.app import Application
from everturn.server.routes.public import OIDC_ATTEMPTS
from everturn.stores.accounts import MemoryAccounts
from everturn.testing import FakeClock
from tests.helpers.server_app import PORT, Answer, ask, make, make_house
from tests.helpers.tenants import settle

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ISSUER = "https://login.example"
OPTIONS = OidcOptions(issuer=ISSUER, audience="everturn", tenant="ada")
NOW = FakeClock().now()


def public(key: Any, kid: str, **more: str) -> dict[str, Any]:
    by_key_type = {rsa.RSAPrivateKey: algorithms.RSAAlgorithm, ec.EllipticCurvePrivateKey: algorithms.ECAlgorithm}
    kind: Any = next(
        (algorithm for base, algorithm in by_key_type.items() if isinstance(key, base)), algorithms.OKPAlgorithm
    )
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


KEYS = {"keys": [public(RSA, "r1", alg="RS256", use="sig"), public(EC, "e1"), public(ED, "d1"), "nonsense", {"kid": 7}]}


def token(key: Any = RSA, alg: str = "RS256", kid: str | None = "r1", **claims: Any) -> str:
    payload: dict[str, Any] = {
        "iss": ISSUER,
        "aud": "everturn",
        "sub": "member-ada",
        "exp": NOW + 300,
        "iat": NOW,
        **claims,
    }
    payload = {name: value for name, value in payload.items() if value is not None}
    return jwt.encode(payload, key, alg, headers={} if kid is None else {"kid": kid})


async def a_door(tmp_path: Path, **how: Any) -> tuple[Authenticator, MemoryAccounts, FakeClock, Path]:
    accounts, clock, file = MemoryAccounts(), FakeClock(), tmp_path / "keys.json"
    await settle(accounts)
    for tenant in ("ada", "bob"):
        for user in await accounts.users(tenant):
            await accounts.put_user(replace(user, origin=how.get("issuer", ISSUER)))
    file.write_text(json.dumps(KEYS))
    return Authenticator(accounts, clock, replace(OPTIONS, **{"jwks": str(file), **how})), accounts, clock, file


async def refused(door: Authenticator, shown: str) -> None:
    with pytest.raises(NotRecognised) as raised:
        await door.authenticate(f"Bearer {shown}")
    assert str(raised.value) == CREDENTIAL_HINT
    assert raised.value.__cause__ is None


async def test_a_token_of_the_provider_is_somebody_of_the_tenant(tmp_path: Path) -> None:
    door, _, _, _ = await a_door(tmp_path)
    for shown in (
        token(),
        token(kid=None),
        token(EC, "ES256", None),
        token(EC, "ES256", "e1"),
        token(ED, "EdDSA", "d1"),
        token(jti="one"),
        token(jti="two"),
    ):
        principal = await door.authenticate(f"Bearer {shown}")
        assert (principal.tenant, principal.user, principal.role, principal.kind, principal.expires) == (
            "ada",
            "member-ada",
            "member",
            "token",
            NOW + 330,
        )
    credentials = [
        (await door.authenticate(f"Bearer {token(jti=name, extra=at)}")).credential for at, name in enumerate("aab")
    ]
    assert credentials[0] == credentials[1] != credentials[2]


def none_of(claims: dict[str, Any], alg: str, signature: bytes = b"") -> str:
    def text(value: Any) -> str:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    return f"{text({'alg': alg, 'kid': 'r1'})}.{text(claims)}.{text(signature)}"


def signed_with_the_public_key() -> str:
    """The classic: an asymmetric public key, taken for a shared secret."""
    claims = {"iss": ISSUER, "aud": "everturn", "sub": "owner-ada", "exp": NOW + 300, "iat": NOW}
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    unsigned = none_of(claims, "HS256").rpartition(".")[0]
    mac = hmac.digest(pem, unsigned.encode(), hashlib.sha256)
    return f"{unsigned}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


GOOD = {"iss": ISSUER, "aud": "everturn", "sub": "owner-ada", "exp": NOW + 300, "iat": NOW}
FORGED = {
    "no signature": lambda: none_of(GOOD, "none"),
    "no signature, in capitals": lambda: none_of(GOOD, "NONE"),
    "no algorithm": lambda: none_of(GOOD, ""),
    "the public key as a shared secret": signed_with_the_public_key,
    "a shared secret": lambda: token("s" * 40, "HS256"),
    "a stranger's key": lambda: token(STRANGER),
    "a stranger's key without a name": lambda: token(STRANGER, kid=None),
    "a key that is not there": lambda: token(kid="r2"),
    "the name of another key": lambda: token(kid="e1"),
    "an algorithm that is not configured": lambda: token(RSA, "RS512"),
    "an algorithm that is not the key's": lambda: token(RSA, "PS256"),
    "a key that it brings along": lambda: jwt.encode(
        GOOD, STRANGER, "RS256", headers={"kid": "r1", "jwk": public(STRANGER, "r1"), "jku": "http://127.0.0.1:1/"}
    ),
    "a file as the name of a key": lambda: token(kid="../../dev/null"),
    "another issuer": lambda: token(iss="https://evil.example"),
    "an issuer that begins so": lambda: token(iss=ISSUER + ".evil.example"),
    "another audience": lambda: token(aud="other"),
    "no audience": lambda: token(aud=None),
    "no issuer": lambda: token(iss=None),
    "no end": lambda: token(exp=None),
    "an end that is no number": lambda: token(exp="soon"),
    "a past end": lambda: token(exp=NOW - 31),
    "not yet": lambda: token(nbf=NOW + 31),
    "made in the future": lambda: token(iat=NOW + 31),
    "nobody": lambda: token(sub=None),
    "a stranger": lambda: token(sub="stranger"),
    "the runtime": lambda: token(sub="everturn"),
    "a plugin": lambda: token(sub="plugin:x"),
    "a changed body": lambda: ".".join(
        (token().split(".")[0], none_of({**GOOD, "sub": "owner-ada"}, "x").split(".")[1], token().split(".")[2])
    ),
    "a cut signature": lambda: token()[:-4],
    "five parts": lambda: token() + ".x.y",
}


@pytest.mark.parametrize("name", FORGED)
async def test_a_forged_token_is_refused(name: str, tmp_path: Path) -> None:
    door, _, _, _ = await a_door(tmp_path)
    await refused(door, FORGED[name]())
    assert (await door.authenticate(f"Bearer {token()}")).user == "member-ada"


async def test_clocks_may_differ_a_little(tmp_path: Path) -> None:
    door, _, clock, _ = await a_door(tmp_path)
    late: dict[str, Any]
    for late in ({"exp": NOW - 29}, {"nbf": NOW + 29}, {"iat": NOW + 29}):
        assert await door.authenticate(f"Bearer {token(**late)}")
    shown = token(exp=NOW + 10)
    assert await door.authenticate(f"Bearer {shown}")
    clock.advance(41)
    await refused(door, shown)


@pytest.mark.parametrize("listed", [("none",), ("HS256",), ("RS256", "HS512"), ()])
def test_algorithms_with_a_shared_secret_cannot_be_configured(listed: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="algorithms"):
        Authenticator(MemoryAccounts(), FakeClock(), replace(OPTIONS, algorithms=listed))
    for lacking in (replace(OPTIONS, audience=""), replace(OPTIONS, issuer="")):
        with pytest.raises(ConfigError, match="any token"):
            Authenticator(MemoryAccounts(), FakeClock(), lacking)


async def test_a_new_key_is_found_and_a_flood_of_unknown_ones_asks_seldom(tmp_path: Path) -> None:
    door, _, clock, file = await a_door(tmp_path)
    await door.authenticate(f"Bearer {token()}")
    file.write_text(json.dumps({"keys": [public(STRANGER, "r2")]}))
    await refused(door, token(STRANGER, kid="r2"))  # asked for just now
    clock.advance(30)
    shown = token(STRANGER, kid="r2", exp=NOW + 3000)
    assert await door.authenticate(f"Bearer {shown}")
    await refused(door, token(exp=NOW + 3000))  # the old key is gone
    file.unlink()
    clock.advance(601)
    await refused(door, token(STRANGER, kid="r2", jti="x"))  # a provider that is down lets nobody in by guess
    read = Path.open
    looks: list[Path] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", lambda self, *a, **k: (looks.append(self), read(self, *a, **k))[1])
        for at in range(200):
            await refused(door, token(STRANGER, kid=f"k{at}", exp=NOW + 3000))
    assert len(looks) <= 1


async def test_claims_say_which_tenant_and_which_role(tmp_path: Path) -> None:
    how = {"tenant_claim": "org", "role_claim": "groups", "roles": {"staff": "member", "boss": "owner"}}
    door, accounts, clock, _ = await a_door(tmp_path, **how)
    for groups, role in ((["staff"], "member"), (["x", "boss", "staff"], "owner"), ("boss", "owner")):
        principal = await door.authenticate(f"Bearer {token(sub='new', org='bob', groups=groups)}")
        assert (principal.tenant, principal.role) == ("bob", role)
    assert await accounts.user("bob", "new") is not None, "somebody who can be turned away"
    others: tuple[dict[str, Any], ...] = (
        {"org": "nowhere", "groups": "boss"},
        {"org": "bob"},
        {"org": "bob", "groups": ["operator", {}, None, 7]},
        {"org": ["bob"], "groups": "boss"},
        {"groups": "boss"},
        {"org": "bob", "groups": "boss", "sub": 7},
    )
    for claims in others:
        await refused(door, token(**{"sub": "other", **claims}))
    shown = token(sub="new", org="bob", groups="boss")
    principal = await door.authenticate(f"Bearer {shown}")
    assert await door.active_credentials([principal]) == set()
    await accounts.put_user(User("bob", "new", is_active=False))
    assert await door.active_credentials([principal]) == {principal.credential}
    clock.advance(2)
    await refused(door, shown)
    await accounts.put_tenant(Tenant("ada", is_active=False))
    await refused(door, token(sub="member-ada", org="ada", groups="boss"))


async def test_whoever_is_new_is_let_in_only_where_that_is_configured(tmp_path: Path) -> None:
    door, _, _, _ = await a_door(tmp_path)
    await refused(door, token(sub="new"))
    door, accounts, clock, _ = await a_door(tmp_path, role="viewer")
    principal = await door.authenticate(f"Bearer {token(sub='new')}")
    assert principal.role == "viewer"
    await accounts.put_user(User("ada", "new", role="approver", origin=ISSUER))
    clock.advance(2)
    assert (await door.authenticate(f"Bearer {token(sub='new')}")).role == "approver"
    assert await door.active_credentials([replace(principal, role="owner")]) == {principal.credential}
    clock.advance(330)
    assert await door.active_credentials([principal]) == {principal.credential}


@pytest.mark.parametrize("origin", ["", "https://login.example.evil", ISSUER + "/", "https://other.example"])
async def test_a_token_speaks_of_nobody_who_was_not_made_by_its_issuer(origin: str, tmp_path: Path) -> None:
    # The claim is one that people choose for themselves, and everybody new is let in.
    door, accounts, clock, _ = await a_door(tmp_path, tenant="local", user_claim="nickname", role="viewer")
    await door.local_token(tmp_path / "operator.token")
    local, _ = await accounts.user("local", "local") or (User("", ""), None)
    await accounts.put_user(replace(local, origin=origin))
    await accounts.put_user(User("local", "boss", role="owner", origin=origin))
    for name in ("local", "boss", "operator-local", "owner-local"):
        await refused(door, token(sub="mallory", nickname=name))
    assert [user.role for user in await accounts.users("local") if user.id in ("local", "boss")] == [
        "owner",
        "operator",
    ]
    # Who came by a token is somebody of their own, and stays so when they are somebody else's.
    principal = await door.authenticate(f"Bearer {token(sub='mallory', nickname='mallory')}")
    assert (principal.user, principal.role) == ("mallory", "viewer")
    mallory, _ = await accounts.user("local", "mallory") or (local, None)
    assert mallory.origin == ISSUER
    assert await door.active_credentials([principal]) == set()
    await accounts.put_user(replace(mallory, origin=origin))
    assert await door.active_credentials([principal]) == {principal.credential}
    clock.advance(2)
    await refused(door, token(nickname="mallory"))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"role": "operator"},
        {"role_claim": "groups", "roles": {"admins": "operator"}},
        {"role_claim": "groups", "role": "operator"},
    ],
)
async def test_a_token_makes_nobody_an_operator(how: dict[str, Any], tmp_path: Path) -> None:
    door, accounts, _, _ = await a_door(tmp_path, **how)
    await accounts.put_user(User("ada", "chief", role="operator", origin=ISSUER))
    assert (await door.authenticate(f"Bearer {token(sub='chief', groups='admins')}")).role == "owner"
    if how:
        assert (await door.authenticate(f"Bearer {token(sub='new', groups='admins')}")).role == "owner"
        assert {user.role for user in await accounts.users("ada") if user.id != "chief"} == {*ROLES} - {"operator"}


async def test_what_the_provider_takes_away_is_taken_from_keys_and_logins_too(tmp_path: Path) -> None:
    how: dict[str, Any] = {"role_claim": "groups", "roles": {"staff": "member", "boss": "owner"}}
    door, accounts, clock, _ = await a_door(tmp_path, **how)
    await door.authenticate(f"Bearer {token(sub='new', groups='boss')}")
    secret, digest = new_secret("evk_")
    await accounts.put_credential(Credential("k", "ada", "new", "key", digest, role="owner"))
    assert (await door.authenticate(f"Bearer {secret}")).role == "owner"
    for groups, role in (("staff", "member"), ("boss", "owner"), ("nothing", "viewer")):
        clock.advance(3)
        shown = token(sub="new", groups=groups, at=clock.now())
        if role == "viewer":
            await refused(door, shown)
        else:
            assert (await door.authenticate(f"Bearer {shown}")).role == role
        assert (await door.authenticate(f"Bearer {secret}")).role == role
    changes = [record for record in await accounts.audit("ada") if record.did == "user.change"]
    assert [json.loads(record.detail)["role"] for record in changes] == ["member", "owner", "viewer"]


ROLE_CLAIM: dict[str, Any] = {"role_claim": "groups", "roles": {"staff": "member", "boss": "owner"}, "role": "viewer"}


async def test_a_token_that_is_older_than_the_last_change_raises_nobody(tmp_path: Path) -> None:
    door, accounts, clock, _ = await a_door(tmp_path, **ROLE_CLAIM)

    async def shows(groups: str, issued: float | None) -> tuple[str, str]:
        clock.advance(3)
        principal = await door.authenticate(f"Bearer {token(sub='new', groups=groups, iat=issued, exp=NOW + 3000)}")
        found = await accounts.user("ada", "new")
        assert found is not None
        return principal.role, found[0].role

    assert await shows("boss", NOW) == ("owner", "owner")
    clock.advance(100)
    assert await shows("staff", NOW + 60) == ("member", "member")  # the provider has taken it away
    assert await shows("boss", NOW) == ("member", "member")  # an old token, which still holds
    assert await shows("boss", None) == ("member", "member")  # one that does not say how old it is
    assert await shows("boss", NOW + 61) == ("owner", "owner")  # it was given back
    assert await shows("staff", NOW + 60) == ("member", "owner")  # an old one is good for less, and takes nothing away
    person = await accounts.user("ada", "new")
    assert person is not None
    await accounts.put_user(replace(person[0], role="member"))
    await accounts.append_audit(AuditRecord("ada", clock.now(), "owner-ada", "k", "user.change", "new"))
    assert await shows("boss", NOW + 62) == ("member", "member")  # a person has said so later
    assert await shows("boss", clock.now() + 1) == ("owner", "owner")


ID_TOKENS: list[dict[str, Any]] = [
    {"nonce": "n"}, {"at_hash": "h"}, {"c_hash": "h"}, {"typ": "ID"}, {"typ": "Refresh"}, {"typ": "Logout"},
]  # fmt: skip


@pytest.mark.parametrize("claims", ID_TOKENS, ids=str)
async def test_a_token_that_says_who_has_logged_in_is_not_one_to_ask_with(
    claims: dict[str, Any], tmp_path: Path
) -> None:
    door, _, _, _ = await a_door(tmp_path)
    await door.authenticate(f"Bearer {token()}")
    await refused(door, token(**claims))


@pytest.mark.parametrize("kind", ["logout+jwt", "dpop+jwt", "secevent+jwt", "id+jwt"])
async def test_a_token_of_another_kind_is_refused_and_an_access_token_is_not(kind: str, tmp_path: Path) -> None:
    door, _, _, _ = await a_door(tmp_path)
    claims = {"iss": ISSUER, "aud": "everturn", "sub": "member-ada", "exp": NOW + 300, "iat": NOW, "nonce": "n"}
    await refused(door, jwt.encode({**claims, "nonce": None}, RSA, "RS256", headers={"kid": "r1", "typ": kind}))
    for good in ("at+jwt", "application/at+jwt", "AT+JWT"):
        shown = jwt.encode(claims, RSA, "RS256", headers={"kid": "r1", "typ": good})
        assert (await door.authenticate(f"Bearer {shown}")).user == "member-ada"
    assert (await door.authenticate(f"Bearer {token(typ='Bearer', nonce='n')}")).user == "member-ada"


async def test_where_both_kinds_are_for_one_audience_a_token_has_to_show_that_it_is_one_to_ask_with(
    tmp_path: Path,
) -> None:
    door, _, _, _ = await a_door(tmp_path, client_id="everturn")
    await refused(door, token())  # it may be an ID token without a nonce
    await refused(door, token(azp="everturn", email="a@example.org"))
    shows: list[dict[str, Any]] = [{"scope": "openid"}, {"scp": ["chat"]}, {"client_id": "other"}]
    for more in shows:
        assert (await door.authenticate(f"Bearer {token(**more)}")).user == "member-ada"
    await refused(door, token(scope="openid", nonce="n"))


async def test_whoever_comes_by_many_requests_at_once_is_made_once(tmp_path: Path) -> None:
    door, accounts, _, _ = await a_door(tmp_path, role="viewer")
    read = accounts.user

    async def slowly(tenant: str, user: str) -> Any:
        found = await read(tenant, user)
        await asyncio.sleep(0)
        return found

    accounts.user = slowly
    principals = await asyncio.gather(*(door.authenticate(f"Bearer {token(sub='new', n=n)}") for n in range(5)))
    assert {(principal.user, principal.role) for principal in principals} == {("new", "viewer")}
    assert [record.did for record in await accounts.audit("ada")] == ["user.create"]


# A browser -----------------------------------------------------------------------------------------------------------


class Authority:
    """A provider as small as can be: it knows one person, and holds clients to what they said."""

    def __init__(self) -> None:
        self.url = ""
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[dict[str, str]] = []
        self.lies: dict[str, Any] = {}
        self.takes = "client_secret_basic"

    async def document(self, request: web.Request) -> web.Response:
        endpoints = {name: f"{self.url}/{name}" for name in ("jwks_uri", "authorization_endpoint", "token_endpoint")}
        return web.json_response({"issuer": self.url, **endpoints, **self.lies.get("document", {})})

    async def keys(self, request: web.Request) -> web.Response:
        return web.json_response(KEYS)

    def log_in(self, url: str) -> tuple[str, str]:
        """What a person does in their browser: a code and the state come back."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["code_challenge_method"] == "S256"
        assert query["response_type"] == "code"
        code = f"code{len(self.codes)}"
        self.codes[code] = query
        return code, query["state"]

    async def token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append(form)
        proof = request.headers.get("Authorization", "")
        secret = form.get("client_secret")
        if self.takes == "client_secret_basic":
            right = f"Basic {base64.b64encode(b'web:hu%2Fsh').decode()}"  # as RFC 6749, 2.3.1 has it
            secret = "hu/sh" if proof == right and secret is None else ""
        elif proof:
            secret = ""
        query = self.codes.pop(form["code"], None)
        sum_of = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if (
            query is None
            or query["code_challenge"] != sum_of.decode()
            or secret != "hu/sh"
            or query["redirect_uri"] != form["redirect_uri"]
        ):
            return web.json_response({"error": "invalid_grant"}, status=400)
        claims = {"iss": self.url, "aud": "web", "nonce": query["nonce"], **self.lies.get("claims", {})}
        return web.json_response({"id_token": token(**claims)})


@asynccontextmanager
async def an_authority() -> AsyncGenerator[Authority]:
    authority, app = Authority(), web.Application()
    app.router.add_get("/.well-known/openid-configuration", authority.document)
    app.router.add_get("/jwks_uri", authority.keys)
    app.router.add_post("/token_endpoint", authority.token)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        authority.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield authority
    finally:
        await runner.cleanup()


HERE = "http://127.0.0.1/oidc/callback"


async def a_web_door(authority: Authority, tmp_path: Path) -> tuple[Authenticator, FakeClock]:
    how = {"issuer": authority.url, "jwks": "", "client_id": "web", "client_secret": "hu/sh"}
    door, _, clock, _ = await a_door(tmp_path, **how)
    return door, clock


async def test_a_browser_goes_there_and_back_and_is_logged_in(tmp_path: Path) -> None:
    async with an_authority() as authority:
        door, _ = await a_web_door(authority, tmp_path)
        flow = await door.begin_oidc(HERE)
        code, state = authority.log_in(flow.url)
        cookie, principal = await door.finish_oidc(code, state, flow.cookie, HERE)
        assert (principal.tenant, principal.user, principal.kind) == ("ada", "member-ada", "login")
        assert await door.authenticate(None, cookie) == principal
        assert "sh" not in flow.url.partition("state=")[0]
        assert "code_verifier" not in flow.url
        with pytest.raises(NotRecognised):  # the code was used up
            await door.finish_oidc(code, state, flow.cookie, HERE)
        # And its tokens are taken, with the keys that its own document names.
        assert (await door.authenticate(f"Bearer {token(iss=authority.url)}")).user == "member-ada"


@pytest.mark.parametrize(
    ("listed", "takes"),
    [
        (None, "client_secret_basic"),
        (["client_secret_basic"], "client_secret_basic"),
        (["client_secret_post", "client_secret_basic"], "client_secret_basic"),
        (["private_key_jwt", "client_secret_post"], "client_secret_post"),
        ("nonsense", "client_secret_basic"),
    ],
)
async def test_the_secret_is_shown_in_the_way_that_the_provider_takes(
    listed: object, takes: str, tmp_path: Path
) -> None:
    async with an_authority() as authority:
        authority.takes = takes
        if listed is not None:
            authority.lies["document"] = {"token_endpoint_auth_methods_supported": listed}
        door, _ = await a_web_door(authority, tmp_path)
        flow = await door.begin_oidc(HERE)
        _, principal = await door.finish_oidc(*authority.log_in(flow.url), flow.cookie, HERE)
        assert principal.user == "member-ada"


async def test_endpoints_that_a_provider_names_elsewhere_inside_are_not_asked(tmp_path: Path) -> None:
    arrived: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, an_authority() as authority:
        for name in ("token_endpoint", "jwks_uri"):
            authority.lies["document"] = {name: f"http://127.0.0.1:{port}/latest/meta-data"}
            door, _ = await a_web_door(authority, tmp_path)
            flow = await door.begin_oidc(HERE)
            with pytest.raises(NotRecognised):
                await door.finish_oidc(*authority.log_in(flow.url), flow.cookie, HERE)
            assert arrived == []
        how = {"jwks": "", "client_id": "web", "client_secret": "hu/sh", "login_hosts": (f"127.0.0.1:{port}",)}
        door, _, _, _ = await a_door(tmp_path, issuer=authority.url, **how)
        flow = await door.begin_oidc(HERE)
        with pytest.raises(NotRecognised):
            await door.finish_oidc(*authority.log_in(flow.url), flow.cookie, HERE)
        assert set(arrived) == {b"GET /latest/meta-data HTTP/1.1\r\n"}  # the operator has said so


@pytest.mark.parametrize(("origin", "role"), [("", None), (None, "owner")])
async def test_a_login_with_a_provider_makes_nobody_an_operator_nor_somebody_of_ours(
    origin: str | None, role: str | None, tmp_path: Path
) -> None:
    async with an_authority() as authority:
        how = {"issuer": authority.url, "jwks": "", "client_id": "web", "client_secret": "hu/sh", "role": "viewer"}
        door, accounts, _, _ = await a_door(tmp_path, **how)
        from_there = authority.url if origin is None else origin
        await accounts.put_user(User("ada", "chief", role="operator", origin=from_there))
        authority.lies["claims"] = {"sub": "chief"}
        flow = await door.begin_oidc(HERE)
        back = authority.log_in(flow.url)
        if role is None:
            with pytest.raises(NotRecognised):
                await door.finish_oidc(*back, flow.cookie, HERE)
            assert await accounts.credentials("ada") == []
            return
        cookie, principal = await door.finish_oidc(*back, flow.cookie, HERE)
        assert principal.role == role == (await door.authenticate(None, cookie)).role


async def test_a_login_that_was_begun_elsewhere_is_refused(tmp_path: Path) -> None:
    async with an_authority() as authority:
        door, clock = await a_web_door(authority, tmp_path)
        mine, other = await door.begin_oidc(HERE), await door.begin_oidc(HERE)
        code, state = authority.log_in(mine.url)
        body, mac = mine.cookie.split(".")
        for arguments in (
            (code, state, other.cookie, HERE),  # the cookie of another browser
            (code, "x", mine.cookie, HERE),
            (code, "", mine.cookie, HERE),
            ("", state, mine.cookie, HERE),
            (code, state, "", HERE),
            (code, state, body, HERE),
            (code, state, f"{body}.{mac[:-2]}xx", HERE),
            (code, state, f"{body[:-4]}xxxx.{mac}", HERE),
            (code, state, mine.cookie, "http://evil.example/"),
        ):
            with pytest.raises(NotRecognised):
                await door.finish_oidc(*arguments)
        assert not authority.asked, "the provider is not even asked"
        clock.advance(600)
        with pytest.raises(NotRecognised, match="log in again"):
            await door.finish_oidc(code, state, mine.cookie, HERE)


@pytest.mark.parametrize(
    "lies",
    [
        {"claims": {"nonce": "another"}},
        {"claims": {"nonce": None}},
        {"claims": {"aud": "everturn"}},
        {"claims": {"iss": "https://evil.example"}},
        {"claims": {"sub": "stranger"}},
        {"claims": {"exp": NOW - 100}},
        {"document": {"issuer": "https://evil.example"}},
        {"document": {"token_endpoint": "http://login.example/token"}},
    ],
    ids=str,
)
async def test_a_provider_that_says_something_else_logs_nobody_in(lies: dict[str, Any], tmp_path: Path) -> None:
    async with an_authority() as authority:
        door, _ = await a_web_door(authority, tmp_path)
        authority.lies = lies

        async def log_in() -> None:
            flow = await door.begin_oidc(HERE)
            await door.finish_oidc(*authority.log_in(flow.url), flow.cookie, HERE)

        with pytest.raises(NotRecognised):
            await log_in()


async def test_a_provider_that_is_not_there_logs_nobody_in_and_is_not_waited_for_twice(tmp_path: Path) -> None:
    how = {"issuer": "http://127.0.0.1:9", "jwks": "", "client_id": "web"}
    door, _, _, _ = await a_door(tmp_path, **how)
    with pytest.raises(NotRecognised, match="does not answer"):
        await door.begin_oidc(HERE)
    began = time.process_time()
    for _ in range(20):
        await refused(door, token(iss="http://127.0.0.1:9"))
    assert time.process_time() - began < 5
    door, _, _, _ = await a_door(tmp_path)
    with pytest.raises(NotRecognised, match="this way to log in is not available"):
        await door.begin_oidc(HERE)


async def test_a_good_key_with_an_algorithm_that_is_not_configured_is_refused(tmp_path: Path) -> None:
    door, _, _, _ = await a_door(tmp_path, algorithms=("RS256",))
    assert await door.authenticate(f"Bearer {token()}")
    await refused(door, token(EC, "ES256", "e1"))
    await refused(door, token(ED, "EdDSA", "d1"))


class Tab:
    """What a browser keeps of `Set-Cookie` for all its tabs, by name, and sends to the paths that they are for: of a page
    of another site, only what is `Lax`.
    """

    def __init__(self, app: Application) -> None:
        self.app, self.cookies = app, dict[str, tuple[str, str, str]]()  # text, path, SameSite

    async def get(self, path: str) -> Answer:
        comes_back = path.startswith("/oidc/callback")
        sent = "; ".join(
            f"{name}={text}"
            for name, (text, at, site) in self.cookies.items()
            if path.startswith(at) and (site == "Lax" or not comes_back)
        )
        headers = {"cookie": sent, "sec-fetch-site": "cross-site" if comes_back else "same-origin"}
        answer = await ask(self.app, "GET", path, headers=headers)
        for header, value in answer.headers:
            if header == "set-cookie":
                pair, *rest = value.split("; ")
                name, _, text = pair.partition("=")
                attributes = {attribute.partition("=")[0]: attribute.partition("=")[2] for attribute in rest}
                if attributes["Max-Age"] == "0":
                    assert self.cookies.pop(name)[1] == attributes["Path"], "one of another path would stay"
                else:
                    self.cookies[name] = text, attributes["Path"], attributes["SameSite"]
        return answer

    @property
    def attempts(self) -> list[str]:
        return [name for name in self.cookies if "-oidc-" in name]

    @property
    def is_logged_in(self) -> bool:
        return f"everturn-{PORT}" in self.cookies


@asynccontextmanager
async def a_browser(tmp_path: Path) -> AsyncGenerator[tuple[Tab, Authority, FakeClock]]:
    async with an_authority() as authority:
        door, clock = await a_web_door(authority, tmp_path)
        yield Tab(make(await make_house(), door)), authority, clock


def back(code: str, state: str) -> str:
    return f"/oidc/callback?{urlencode({'code': code, 'state': state})}"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_two_tabs_log_in_at_the_same_time(order: tuple[int, int], tmp_path: Path) -> None:
    async with a_browser(tmp_path) as (browser, authority, _):
        began = [(await browser.get("/oidc/login")).header("location") for _ in range(2)]
        assert len(browser.attempts) == 2
        returns = [back(*authority.log_in(url)) for url in began]
        for number, tab in enumerate(order, 1):
            assert (await browser.get(returns[tab])).status == 200
            assert len(browser.attempts) == 2 - number, "the cookie of this attempt is used up, and no other"
            assert browser.is_logged_in


async def test_a_callback_that_comes_again_logs_nobody_in(tmp_path: Path) -> None:
    async with a_browser(tmp_path) as (browser, authority, _):
        location = (await browser.get("/oidc/login")).header("location")
        cookies = dict(browser.cookies)
        callback = back(*authority.log_in(location))
        assert (await browser.get(callback)).status == 200
        request_count = len(authority.asked)
        again = await browser.get(callback)
        assert again.status == 401
        assert again.header("set-cookie") == ""
        assert len(authority.asked) == request_count, "without the cookie the provider is not asked"
        thief = Tab(browser.app)
        thief.cookies = cookies  # also who copied the cookie: the provider takes a code once
        assert (await thief.get(callback)).status == 401
        assert not thief.is_logged_in
        assert thief.attempts == []


async def test_a_callback_without_a_state_or_with_that_of_another_browser_is_refused(tmp_path: Path) -> None:
    async with a_browser(tmp_path) as (browser, authority, _):
        attacker = Tab(browser.app)
        foreign = back(*authority.log_in((await attacker.get("/oidc/login")).header("location")))
        code, state = authority.log_in((await browser.get("/oidc/login")).header("location"))
        for path in (foreign, f"/oidc/callback?code={code}", "/oidc/callback", back(code, ""), back(code, state + "x")):
            answer = await browser.get(path)
            assert answer.status == 401, path
            assert len(browser.attempts) == 1, "the attempt of this browser goes on"
        (mine,) = browser.attempts
        (theirs,) = attacker.attempts
        browser.cookies[mine] = attacker.cookies[theirs]  # the cookie of another attempt under this name
        assert (await browser.get(back(code, state))).status == 401
        assert not authority.asked
        assert not browser.is_logged_in
        assert browser.attempts == []


@pytest.mark.parametrize("why", ["denied", "late", "not confirmed"])
async def test_an_attempt_that_fails_is_used_up_too_and_says_how_to_begin_again(why: str, tmp_path: Path) -> None:
    async with a_browser(tmp_path) as (browser, authority, clock):
        code, state = authority.log_in((await browser.get("/oidc/login")).header("location"))
        path = back(code, state)
        if why == "denied":
            path = f"/oidc/callback?error=access_denied&state={state}"
        elif why == "late":
            clock.advance(601)
        else:
            authority.codes.clear()
        answer = await browser.get(path)
        assert answer.status == 401
        assert b'href="/oidc/login"' in answer.body
        assert browser.attempts == []
        assert not browser.is_logged_in


async def test_a_provider_that_does_not_answer_is_a_page_in_the_language_of_the_browser(tmp_path: Path) -> None:
    async with an_authority() as authority:
        door, _ = await a_web_door(authority, tmp_path)
    app = make(await make_house(), door)
    english, chinese = [
        await ask(app, "GET", "/oidc/login", headers={"accept-language": name}) for name in ("en", "zh")
    ]
    assert (english.status, chinese.status) == (401, 401)
    assert b"The login provider does not answer" in english.body
    assert "登录服务没有响应" in chinese.body.decode()
    assert b'href="/oidc/login"' in chinese.body
    assert "set-cookie" not in dict(english.headers)


async def test_attempts_that_nobody_finishes_do_not_pile_up(tmp_path: Path) -> None:
    async with a_browser(tmp_path) as (browser, authority, _):
        locations = [(await browser.get("/oidc/login")).header("location") for _ in range(OIDC_ATTEMPTS + 3)]
        assert len(browser.attempts) == OIDC_ATTEMPTS
        assert (await browser.get(back(*authority.log_in(locations[0])))).status == 401
        assert (await browser.get(back(*authority.log_in(locations[3])))).status == 200
        assert (await browser.get(back(*authority.log_in(locations[-1])))).status == 200
