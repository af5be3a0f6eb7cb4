"""Azure OpenAI: the URL of a deployment, and tokens of Microsoft Entra ID.

The name of the model is the name of a deployment. Without OPENAI_API_VERSION requests go to the v1 API, which takes the
deployment as `model`; with a dated version, to the older URLs, which have it in the path.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

from everturn.errors import ConfigError
from everturn.models.clouds import CloudServer, RequestSigner
from everturn.models.clouds.tokens import AccessToken, StaticToken, TokenSource
from everturn.models.profile import Profile

ENDPOINT: Final = "AZURE_OPENAI_ENDPOINT"
TOKEN: Final = "AZURE_OPENAI_AD_TOKEN"
VERSION: Final = "OPENAI_API_VERSION"
SCOPE: Final = "https://cognitiveservices.azure.com/.default"
V1: Final = frozenset({"v1", "preview", "latest"})  # versions of the v1 API; `v1` is its default
_IN_DEPLOYMENTS: Final = frozenset({"/chat/completions"})  # the paths that name the deployment in older versions


def open_azure(profile: Profile, model: str, base_url: str, has_key: bool, environ: Mapping[str, str]) -> CloudServer:
    """Return the server of a deployment.

    Raises:
        ConfigError: the environment names no endpoint, or has no credentials for it.
    """
    home = _resource(environ.get(ENDPOINT, "").strip())
    root = _resource(base_url) or home
    if not root:
        raise ConfigError(
            f"{profile.vendor}:{model} needs the endpoint of your Azure OpenAI resource: set {ENDPOINT}, for example "
            "https://my-resource.openai.azure.com"
        )
    version = environ.get(VERSION, "").strip()
    query = "" if version in ("", "v1") else f"?api-version={quote(version, safe='')}"

    def url(path: str) -> str:
        if not version or version in V1:
            return f"{root}/openai/v1{path}{query}"
        if path in _IN_DEPLOYMENTS:
            return f"{root}/openai/deployments/{quote(model, safe='', errors='replace')}{path}{query}"
        return f"{root}/openai{path}{query}"

    is_home = root == home
    signer = None if has_key or not is_home else _signer(profile, model, environ)
    return CloudServer(root, url, is_home, ("api-key", ""), signer)


def _resource(url: str) -> str:
    """Return the endpoint without what users add out of habit: both forms are in Azure's own examples."""
    url = url.rstrip("/")
    for suffix in ("/openai/v1", "/openai"):
        url = url.removesuffix(suffix)
    return url


def _signer(profile: Profile, model: str, environ: Mapping[str, str]) -> RequestSigner:
    if token := environ.get(TOKEN, "").strip():
        return StaticToken(token)
    try:
        is_installed = importlib.util.find_spec("azure.identity") is not None
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        raise ConfigError(
            f"{profile.vendor}:{model} needs a key: `everturn auth login azure` stores it, or set {profile.key}; "
            f"or, for Microsoft Entra ID, set {TOKEN}, or install everturn[azure]"
        )
    return TokenSource(_EntraToken(), "Microsoft Entra ID (azure-identity)")


class _EntraToken:
    """Fetches tokens with the credentials that azure-identity finds: environment, managed identity, `az login`, …"""

    def __init__(self) -> None:
        self._credential: Any = None

    def __call__(self) -> AccessToken:
        if self._credential is None:
            identity: Any = import_module("azure.identity")
            self._credential = identity.DefaultAzureCredential()
        token = self._credential.get_token(SCOPE)
        return AccessToken(token.token, float(token.expires_on))
