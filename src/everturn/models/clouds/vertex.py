"""Vertex AI: the URL of a model in a project and a location, and tokens of Application Default Credentials.

Models of Google have the Gemini format, Claude has Anthropic's, with its model in the path. The addresses are those of
google-genai and of Anthropic's own client.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from datetime import UTC
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

from everturn.errors import ConfigError
from everturn.models.clouds import CloudServer, RequestSigner, checked_label
from everturn.models.clouds.tokens import AccessToken, TokenSource
from everturn.models.profile import Profile

PROJECT: Final = "GOOGLE_CLOUD_PROJECT"
LOCATION: Final = "GOOGLE_CLOUD_LOCATION"
ENDPOINT: Final = "GOOGLE_VERTEX_BASE_URL"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
GLOBAL: Final = "global"
MULTI_REGIONS: Final = frozenset({"us", "eu"})
_METHODS: Final = {  # of a format: version of the API, publisher, method
    "gemini": ("v1beta1", "google", "streamGenerateContent?alt=sse"),
    "messages": ("v1", "anthropic", "streamRawPredict"),
}


def open_vertex(profile: Profile, model: str, base_url: str, has_key: bool, environ: Mapping[str, str]) -> CloudServer:
    """Return the server of a model.

    Raises:
        ConfigError: the environment names no project, or no valid location, or has no credentials.
    """
    name = f"{profile.vendor}:{model}"
    location = checked_label(environ.get(LOCATION, "").strip() or GLOBAL, LOCATION)
    project = environ.get(PROJECT, "").strip()
    home = environ.get(ENDPOINT, "").strip().rstrip("/") or f"https://{_host(location)}"
    root = base_url or home
    is_home = root == home
    if not project and is_home:
        raise ConfigError(f"{name} needs a project of Google Cloud: set {PROJECT} (and {LOCATION}, default: global)")
    version, publisher, method = _METHODS[profile.for_model(model).format]
    place = f"/projects/{quote(project, safe='')}/locations/{location}" if project else ""
    path = f"/{version}{place}/publishers/{publisher}/models/{quote(model, safe='', errors='replace')}:{method}"
    signer = None if has_key or not is_home else _signer(name)
    return CloudServer(root, lambda _: root + path, is_home, signer=signer)


def _host(location: str) -> str:
    if location == GLOBAL:
        return "aiplatform.googleapis.com"
    if location in MULTI_REGIONS:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def _signer(name: str) -> RequestSigner:
    try:
        is_installed = importlib.util.find_spec("google.auth") is not None
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        raise ConfigError(
            f"{name} needs google-auth for Application Default Credentials: install everturn[vertex] (in Python, "
            "you can pass an access token as key=… instead)"
        )
    return TokenSource(_DefaultCredentials(), "Google (Application Default Credentials)")


class _DefaultCredentials:
    """Fetches tokens with the credentials that google-auth finds: a file, the metadata server, `gcloud auth`, …"""

    def __init__(self) -> None:
        self._credentials: Any = None

    def __call__(self) -> AccessToken:
        google_auth: Any = import_module("google.auth")
        requests: Any = import_module("google.auth.transport.requests")
        if self._credentials is None:
            self._credentials = google_auth.default(scopes=[SCOPE])[0]
        self._credentials.refresh(requests.Request())
        # `expiry` is in UTC, without a time zone.
        return AccessToken(self._credentials.token, self._credentials.expiry.replace(tzinfo=UTC).timestamp())
