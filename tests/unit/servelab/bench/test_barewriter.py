"""The writer that does nothing but write."""

from modelserve import ports, testing
from servelab.bench import barewriter


async def test_it_writes_each_pods_statuses_and_events_and_cleans_up() -> None:
    cluster = testing.MemoryCluster()
    async with barewriter.pods(cluster, 3, {"containers": []}) as names:
        before = len(cluster.calls)
        rate = await barewriter.writes_per_s(
            cluster, names, [barewriter.status(0), barewriter.status(1)], [barewriter.event(0)]
        )
        calls = cluster.calls[before:]
    assert rate > 0
    assert sum(call.subresource == "status" for call in calls) == 6
    assert sum(call.resource == ports.EVENTS for call in calls) == 3
    assert (await cluster.list(ports.PODS))[0] == []
    assert (await cluster.list(ports.NODES))[0] == []
