"""Redaction: removes secrets from reports and cassettes before they are written.

Secrets are the values of environment variables whose names say so, in any of the forms in which a text can have them, and whatever looks like a
key, a token or the id of an account.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

REDACTED: Final = "[redacted]"
LEAST: Final = 6  # characters of a secret: shorter values would remove words
_SECRET_NAME: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|ACCOUNT|PROJECT|ORGANIZATION|RESOURCE|ENDPOINT", re.IGNORECASE
)
_PATTERNS: Final = re.compile(
    r"""(?x)
      \bsk-[A-Za-z0-9_-]{16,}              # OpenAI, Anthropic, OpenRouter, DeepSeek, Moonshot
    | \bgsk_[A-Za-z0-9]{20,}               # Groq
    | \bAIza[A-Za-z0-9_-]{30,}             # Google
    | \bya29\.[A-Za-z0-9._-]{20,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b        # AWS
    | \bABSK[A-Za-z0-9+/=]{20,}
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+   # a JWT
    | (?i:\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}
    | \b(?:org|proj|user)-[A-Za-z0-9]{12,}\b
    | \bproj_[A-Za-z0-9]{12,}\b
    """
)


def secrets_of(environ: Mapping[str, str], more: Iterable[str] = ()) -> list[str]:
    """The secrets in an environment, the longest first."""
    values = {value.strip() for name, value in environ.items() if _SECRET_NAME.search(name)} | set(more)
    forms: set[str] = set()
    for value in values:
        if len(value) >= LEAST:
            data = value.encode()
            forms |= {
                value,
                quote(value, safe=""),
                json.dumps(value)[1:-1],
                json.dumps(value, ensure_ascii=False)[1:-1],
            }
            forms |= {base64.b64encode(data).decode().rstrip("="), base64.urlsafe_b64encode(data).decode().rstrip("=")}
    return sorted(forms, key=len, reverse=True)


def redact(text: str, secrets: Iterable[str]) -> str:
    """A text without secrets."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return _PATTERNS.sub(REDACTED, text)
