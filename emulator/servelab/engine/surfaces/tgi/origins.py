"""Headers for pages of other origins, as tower-http's CORS layer sends them."""

from servelab.engine.exchange import Request, Response

# tower-http's CORS layer with its defaults; any origin.
CROSS_ORIGIN = (
    ("vary", "origin, access-control-request-method, access-control-request-headers"),
    ("access-control-allow-origin", "*"),
)
_PREFLIGHT = (
    ("access-control-allow-methods", "GET,POST"),
    ("access-control-allow-headers", "content-type"),
)


def crossed(response: Response) -> Response:
    """The answer with the headers for other origins."""
    return response._replace(headers=(*response.headers, *CROSS_ORIGIN))


def preflight(request: Request) -> Response | None:
    """The answer to a browser's question before its request, if it is one."""
    if request.method != "OPTIONS":
        return None
    return crossed(Response(200, content_type=None, headers=_PREFLIGHT))
