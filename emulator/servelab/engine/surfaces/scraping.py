"""What an engine says to Prometheus."""

from servelab.engine.exchange import Response
from servelab.engine.surfaces.surface import Host


def exposition(host: Host, more: str = "") -> Response:
    """All of an engine's metrics as of now; ``more`` are families beside its exporter's."""
    host.settle()
    exporter = host.exporter
    return Response(body=(exporter.render() + more).encode(), content_type=exporter.content_type)
