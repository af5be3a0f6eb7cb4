"""Amazon Bedrock: the URL of a model in a region, and signatures with the credentials of AWS.

With an API key of Bedrock nothing is signed. Otherwise the credentials are those of the environment or, with botocore, those
that it finds: profiles, an SSO login, the role of a container or a machine. The signature is our own in any case.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

from everturn.errors import ConfigError, ModelError
from everturn.models.clouds import CloudServer, checked_label
from everturn.models.clouds.aws_signature import AwsCredentials, sign_request
from everturn.models.profile import Profile
from everturn.transport import HttpRequest

REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
ENDPOINT: Final = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"
ACCESS_KEY, SECRET_KEY, TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
SERVICE: Final = "bedrock"
EXCERPT: Final = 300  # characters of an error of botocore


def open_bedrock(profile: Profile, model: str, base_url: str, has_key: bool, environ: Mapping[str, str]) -> CloudServer:
    """Return the server of a model.

    Raises:
        ConfigError: the environment names no region, or has no credentials.
    """
    name = f"{profile.vendor}:{model}"
    region = next((found for variable in REGIONS if (found := environ.get(variable, "").strip())), "")
    home = environ.get(ENDPOINT, "").strip().rstrip("/")
    if region:
        checked_label(region, REGIONS[0])
        home = home or f"https://bedrock-runtime.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    root = base_url or home
    is_home = root == home
    if not root or (is_home and not region):
        raise ConfigError(f"{name} needs a region of AWS: set {REGIONS[0]}, for example us-east-1")
    path = f"/model/{quote(model, safe='', errors='replace')}/converse-stream"
    signer = None if has_key or not is_home else AwsSigner(_credentials(profile, name, environ), region)
    return CloudServer(root, lambda _: root + path, is_home, signer=signer)


class AwsSigner:
    """Signs requests; `fetch` returns the credentials, and may block."""

    def __init__(
        self, fetch: Callable[[], AwsCredentials], region: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._fetch, self._region, self._now = fetch, region, now
        self._last: AwsCredentials | None = None

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """Return the request with its signature."""
        credentials = await asyncio.to_thread(self._fetch)
        self._last = credentials
        return sign_request(request, credentials, SERVICE, self._region, self._now())

    def secrets(self) -> Sequence[str]:
        """The secret key, and the session token."""
        return (self._last.secret_key, self._last.token) if self._last is not None else ()

    def forget(self) -> None:
        """Credentials that expire are refreshed by botocore, which knows when."""


def _credentials(profile: Profile, name: str, environ: Mapping[str, str]) -> Callable[[], AwsCredentials]:
    access_key, secret_key, token = (environ.get(each, "").strip() for each in (ACCESS_KEY, SECRET_KEY, TOKEN))
    if access_key and secret_key:
        credentials = AwsCredentials(access_key, secret_key, token)
        return lambda: credentials
    if importlib.util.find_spec("botocore") is None:
        raise ConfigError(
            f"{name} needs a key: `everturn auth login bedrock` stores it, or set {profile.key}; or set {ACCESS_KEY} and "
            f"{SECRET_KEY}; or, for profiles, SSO and roles of AWS, install everturn[bedrock]"
        )
    return _BotocoreCredentials()


class _BotocoreCredentials:
    """Fetches the credentials that botocore finds, and lets it refresh them."""

    def __init__(self) -> None:
        self._found: Any = None

    def __call__(self) -> AwsCredentials:
        try:
            if self._found is None:
                sessions: Any = import_module("botocore.session")
                self._found = sessions.Session().get_credentials()
            frozen: Any = None if self._found is None else self._found.get_frozen_credentials()
        except Exception as error:  # of any of its providers: files, processes, HTTP
            why = str(error)[:EXCERPT] or type(error).__name__
            raise ModelError(f"AWS gave no credentials: {why}", "key") from None
        if frozen is None:
            raise ModelError(
                f"there are no credentials of AWS: set {ACCESS_KEY} and {SECRET_KEY}, or log in (`aws sso login`)",
                "key",
            )
        return AwsCredentials(frozen.access_key, frozen.secret_key, frozen.token or "")


__all__ = ["AwsSigner", "open_bedrock"]
