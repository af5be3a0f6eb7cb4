"""PostgreSQL addresses: a URL for the driver, and the schema that it may name. Pure."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

from everturn.errors import ConfigError

SCHEMES = ("postgres", "postgresql")


def is_postgres_url(name: str) -> bool:
    """Return whether the name of a store is the URL of a PostgreSQL database."""
    scheme, separator, _ = name.partition("://")
    return bool(separator) and scheme.partition("+")[0] in SCHEMES


def parse_address(url: str, schema: str | None = None) -> tuple[str, str | None]:
    """Return the URL for the driver, and the schema that the URL may have: `…?schema=name`.

    Raises:
        ConfigError: this is not the URL of a PostgreSQL database, or the schema's name is invalid.
    """
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] not in SCHEMES:
        raise ConfigError(f"this is not the address of a PostgreSQL database: it begins with {parts.scheme!r}")
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    schema = schema or dict(parameters).get("schema")
    if schema is not None and re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) is None:
        raise ConfigError(f"the name of a schema has lowercase letters, digits and _, not {schema!r}")
    query = urlencode([(name, value) for name, value in parameters if name != "schema"])
    return parts._replace(scheme="postgresql", query=query).geturl(), schema
