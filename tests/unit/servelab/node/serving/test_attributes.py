"""What a request asks to do with a node."""

import pytest

from servelab.node.serving import attributes


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/containerLogs/default/p/c", "get", ("proxy",)),
        ("GET", "/metrics", "get", ("metrics",)),
        ("GET", "/metrics/resource", "get", ("metrics",)),
        ("GET", "/metricsx", "get", ("proxy",)),
        ("GET", "/stats/summary", "get", ("stats",)),
        ("GET", "/pods", "get", ("pods", "proxy")),
        ("GET", "/runningpods/", "get", ("pods", "proxy")),
        ("GET", "/healthz", "get", ("healthz", "proxy")),
        ("GET", "/configz", "get", ("configz", "proxy")),
        ("POST", "/exec/default/p/c", "create", ("proxy",)),
        ("GET", "/exec/default/p/c", "create", ("proxy",)),
        ("GET", "/portForward/default/p", "create", ("proxy",)),
        ("DELETE", "/nothing", "delete", ("proxy",)),
    ],
)
def test_a_path_is_a_subresource_of_the_node(
    method: str, path: str, verb: str, subresources: tuple[str, ...]
) -> None:
    assert attributes.of(method, path, "n") == attributes.Attributes(verb, "n", subresources)
