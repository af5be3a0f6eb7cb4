"""HTTP server: the JSON API, event streams, the web UI and the protocols of OpenAI, AI SDK and AG-UI clients.

A route is data (`route`); `app` builds one ASGI application from all routes. For each request the server checks Host and
Origin, authenticates the caller, decodes the body, and calls a method of `everturn.access`, which decides what the caller
may do.

In the order of a request:

- `serve`: listening socket, uvicorn, graceful shutdown
- `connections`: deadlines and the maximum number of connections
- `file_descriptors`: raises the limit of open files to fit the connections
- `middleware`: checks Host, Origin and headers; security headers and CORS
- `app`: the ASGI application: authentication, role check, decoding, handler, response
- `rate_limit`: rate limit for unauthenticated requests and unknown credentials
- `router`: finds the route of a method and path
- `route`: `Route`, `Param` and the request context of a handler
- `body_limits`: reads request bodies with limits on size, time and memory
- `decode`: decodes and cleans JSON bodies, path ids and query parameters
- `routes`: handlers of our own API, the login and the web UI
- `protocols`: handlers of the OpenAI, AI SDK and AG-UI protocols
- `streams`: server-sent event streams
- `compression`: gzip for JSON responses
- `errors`: maps exceptions to status codes and error bodies
- `openapi`: the OpenAPI document, built from the routes
"""
