"""Routes as data: method, path, role, body, response and handler of each endpoint. The application, the OpenAPI document and
the permission tests are all built from them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from everturn.access.access import Access
from everturn.access.context.server_context import ServerContext
from everturn.core.tenants.accounts import Role

if TYPE_CHECKING:
    from everturn.server.streams.open import StreamEndpoints

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
PayloadFormat = Literal["json", "events", "bytes", "none"]


class Param(Struct, frozen=True):
    """A query parameter."""

    name: str
    schema: dict[str, Any]  # JSON Schema
    about: str = ""
    is_needed: bool = False


class HttpRequestContext:
    """What a handler gets: the accepted request, the caller's `Access`, the decoded body and query."""

    def __init__(
        self,
        request: Request,
        server_context: ServerContext,
        streams: StreamEndpoints,
        access: Access | None,
        body: Any,
        query: dict[str, Any],
    ) -> None:
        self.request, self.server_context, self.streams, self._access, self.body = (
            request,
            server_context,
            streams,
            access,
            body,
        )
        self.query = query  # decoded and checked by the route's params; a parameter that was not sent has no entry

    @property
    def access(self) -> Access:
        """The caller's `Access`; a public route has none."""
        assert self._access is not None, "a public route asks for nothing that belongs to somebody"
        return self._access

    @property
    def ids(self) -> dict[str, str]:
        """The ids in the path."""
        return self.request.path_params

    @property
    def key(self) -> str:
        """The idempotency key, or ""."""
        return self.request.headers.get("idempotency-key", "")


Handler = Callable[[HttpRequestContext], Awaitable[Any]]
"""Returns one of the views of `everturn.api` (sent as JSON), None (204), or a whole Response."""


class Route(Struct, frozen=True, kw_only=True):
    """One endpoint."""

    method: Method
    path: str
    name: str  # operationId
    needs: Role | None  # the least role; None: public, without a credential
    about: str
    handler: Handler
    body: Any = None  # the type of the JSON body; None: no body
    takes: PayloadFormat = "json"  # the format of the body, when there is one
    answer: Any = None  # the type of the JSON response
    gives: PayloadFormat = "json"
    status: int = 200
    query: tuple[Param, ...] = ()
    is_cheap: bool = False  # exempt from the rate limit for unauthenticated requests: nothing is looked up for it
    is_uncounted: bool = False  # exempt from the tenant's rate limit: open pages send it all the time
    is_secret: bool = False  # the response contains a token of the caller, and is never compressed
    upload: bool = False  # the body may be as large as an uploaded file
    body_limit: Callable[[ServerContext, dict[str, str | None]], int] | None = (
        None  # bytes that are read of an unauthenticated body, if not as few as usual; 0: as usual
    )
    tag: str = "native"
    calls: Callable[..., Any] | None = (
        None  # the method of `Access`, or of a resource of it, that it calls; its role is the route's
    )
    media: tuple[str, ...] = ()  # the media types of the body or response, when these are bytes


__all__ = ["Handler", "HttpRequestContext", "Method", "Param", "PayloadFormat", "Response", "Route"]
