"""The links of a cold start: alone on them, a transfer takes what the plan says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.catalog import layers
from modelserve.decide import moving, nodefacts
from servelab.timing import routes, shared, transfers

Binds = moving.Binds
rates = st.floats(1e6, 1e11)
sizes = st.integers(1, 10**12)


def limit(binds: moving.Binds, rate: float) -> moving.Limit:
    own = binds in (Binds.SPEC, Binds.LOADER, Binds.PCIE)
    return moving.Limit(binds, rate, shared=not own)


def pull(size: int, registry: float, unpack: float, share: float = 0.1) -> moving.Pull:
    down = moving.Transfer(size, (limit(Binds.REGISTRY, registry), limit(Binds.NETWORK, 25e9)))
    return moving.Pull(False, down, unpack, share, 0.5)


def read(size: int, device: float, backend: float, loader: float) -> moving.Transfer:
    found = ((Binds.STORAGE, device), (Binds.SHARED_STORAGE, backend), (Binds.LOADER, loader))
    return moving.Transfer(size, tuple(limit(*one) for one in found), latency_s=0.15)


def end_s(route: routes.Route) -> float:
    moves = shared.Shared()
    moves.declare(route.links, 0.0)
    moves.start("it", route.work, 0.0)
    return moves.ends_at_s("it")


@given(sizes, rates, rates, st.floats(0.0, 1.0), st.floats(0.96, 1.04))
def test_a_pull_alone_takes_what_is_planned(
    size: int, registry: float, unpack: float, share: float, factor: float
) -> None:
    planned = pull(size, registry, unpack, share)
    route = routes.pull(planned, "n", factor=factor)
    assert route.work.duration_s == pytest.approx(planned.duration_s * factor, rel=1e-9)
    assert end_s(route) == pytest.approx(route.work.duration_s, rel=1e-9)


@given(sizes, rates, rates, rates, st.floats(0.96, 1.04))
def test_a_read_alone_takes_what_is_planned(
    size: int, device: float, backend: float, loader: float, factor: float
) -> None:
    planned = read(size, device, backend, loader)
    route = routes.weights(planned, "n", "nfs", connections=8, factor=factor)
    assert route.work.duration_s == pytest.approx(planned.duration_s * factor, rel=1e-9)
    assert end_s(route) == pytest.approx(route.work.duration_s, rel=1e-9)


def test_a_read_passes_the_device_and_the_backend_under_its_loader() -> None:
    route = routes.weights(read(10**9, 5e9, 40e9, 4e9), "dgx-1", "lustre")
    assert route.links == {"node/dgx-1/read/lustre": 5e9, "storage/lustre": 40e9}
    assert route.work.stages[0].cap_bytes_per_s == 4e9


def test_a_pull_passes_registry_network_and_unpacking() -> None:
    planned = pull(10**9, 250e6, 120e6)
    links = routes.pull(planned, "dgx-1", registry_bytes_per_s=2e9, pool="dgx").links
    assert list(links) == [
        "registry/dgx",
        "node/dgx-1/registry",
        "node/dgx-1/net",
        "node/dgx-1/unpack",
    ]


def test_an_image_that_is_there_passes_no_link() -> None:
    there = moving.Pull(True, pull(10**9, 250e6, 120e6).download, 120e6, 0.1, 0.5)
    assert end_s(routes.pull(there, "n")) == 0.5


def test_a_pull_of_missing_layers_moves_only_those() -> None:
    every = tuple(layers.Layer(name, size, 3 * size) for name, size in (("a", 300), ("b", 100)))
    whole, _ = routes.ImagePull.of(every, nodefacts.node_rates({}), "n", factor=1.02)
    assert whole.size_bytes == 400
    assert whole.only(every) == transfers.Work(whole.duration_s, 400, whole.stages)
    assert sum(stage.size_bytes for stage in whole.only(every[1:]).stages[:2]) == 1.02 * 100
    assert whole.only(()).duration_s == pytest.approx(0.5 * 1.02)


def test_what_memory_has_is_read_before_the_rest() -> None:
    cached = moving.Transfer(10 * 10**9, (limit(Binds.PAGE_CACHE, 10e9),))
    route = routes.then(
        routes.weights(cached, "n", "nfs"), routes.weights(read(10**9, 1e9, 1e9, 1e9), "n", "nfs")
    )
    assert list(route.links) == ["node/n/memory", "node/n/read/nfs", "storage/nfs"]
    assert route.work.size_bytes == 11 * 10**9
    assert end_s(route) == pytest.approx(route.work.duration_s) == pytest.approx(2.15)


def test_a_wait_may_come_first() -> None:
    there = moving.Pull(True, pull(10**9, 250e6, 120e6).download, 120e6, 0.1, 0.5)
    route = routes.then(
        routes.pull(there, "n"), routes.weights(read(10**9, 1e9, 1e9, 1e9), "n", "x")
    )
    assert end_s(route) == pytest.approx(1.65)


def test_two_pulls_on_one_node_unpack_at_half_the_pace() -> None:
    moves, planned = shared.Shared(), pull(12 * 10**9, 1e9, 120e6, share=0.0)
    for name in ("one", "two"):
        route = routes.pull(planned, "n")
        moves.declare(route.links, 0.0)
        moves.start(name, route.work, 0.0)
    assert moves.ends_at_s("one") == pytest.approx(200.0)


def test_nodes_that_pull_at_once_share_the_registry() -> None:
    moves, planned = shared.Shared(), pull(10**9, 250e6, 1e9, share=0.0)
    for number in range(16):
        route = routes.pull(planned, f"n{number}", registry_bytes_per_s=2e9)
        moves.declare(route.links, 0.0)
        moves.start(f"n{number}", route.work, 0.0)
    assert moves.ends_at_s("n0") == pytest.approx(8.0)
