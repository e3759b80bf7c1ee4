"""Which process plays which node: an assignment, and who is thought to live."""

from hypothesis import given
from hypothesis import strategies as st

from servelab.node.machines import sharding

MEMBERS = st.lists(st.text("abcdefgh-0123", min_size=1, max_size=8), unique=True, max_size=6)
KEYS = [f"node/pool-{number}" for number in range(200)]


@given(MEMBERS)
def test_all_members_agree_whatever_the_order_in_which_they_know_each_other(
    members: list[str],
) -> None:
    shuffled = sorted(members, key=lambda name: name[::-1])
    found = [sharding.owner(key, members) for key in KEYS[:20]]
    assert found == [sharding.owner(key, shuffled) for key in KEYS[:20]]
    assert all(name in members for name in found) or not members


@given(MEMBERS.filter(lambda found: len(found) > 1), st.data())
def test_only_nodes_of_a_member_that_goes_change_hands(
    members: list[str], data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(members))
    left = [name for name in members if name != gone]
    for key in KEYS[:50]:
        before = sharding.owner(key, members)
        assert sharding.owner(key, left) == before or before == gone


def test_nodes_are_spread_over_the_members() -> None:
    counts = dict.fromkeys(("a", "b", "c", "d"), 0)
    for key in KEYS:
        counts[sharding.owner(key, counts)] += 1
    assert min(counts.values()) > 30


def test_nobody_owns_anything_where_nobody_is() -> None:
    assert sharding.owner("node/a", []) == ""


def test_nodes_that_share_a_backend_fall_to_one_member_with_their_pool() -> None:
    shared = {"modelserve.dev/storage-shared-bandwidth": "10GB/s"}
    labels = {"emulator.modelserve.dev/pool": "dgx"}
    nodes = [
        {"metadata": {"name": f"dgx-{n}", "annotations": shared, "labels": labels}}
        for n in range(3)
    ]
    assert {sharding.key_of_node(node) for node in nodes} == {sharding.key_of_pool("dgx")}


def test_a_node_that_shares_nothing_falls_to_a_member_by_its_own_name() -> None:
    assert sharding.key_of_node({"metadata": {"name": "dgx-1"}}) == "node/dgx-1"


def test_a_member_lives_until_no_renewal_was_seen_for_the_lapse() -> None:
    roster = sharding.Roster()
    for now in range(100, 115, 3):
        roster.see({"a": "t1"}, now)
        assert roster.live() == {"a"}
    roster.see({"a": "t1"}, 115.0)
    assert roster.live() == frozenset()
    roster.see({"a": "t2"}, 118.0)
    assert roster.live() == {"a"}


def test_a_member_that_withdrew_is_gone_at_once() -> None:
    roster = sharding.Roster()
    roster.see({"a": "t1"}, 100.0)
    roster.see({"a": ""}, 100.0)
    assert roster.live() == frozenset()


def test_a_member_whose_lease_somebody_deleted_lapses() -> None:
    roster = sharding.Roster()
    roster.see({"a": "t1"}, 100.0)
    lived = []
    for now in range(103, 121, 3):
        roster.see({}, now)
        lived.append(roster.live() == {"a"})
    assert lived == [True, True, True, True, False, False]


def test_nobody_is_dead_because_we_saw_nothing_for_a_while() -> None:
    roster = sharding.Roster()
    roster.see({"a": "t1"}, 100.0)
    roster.see({"a": "t1"}, 220.0)  # the API server was away
    assert roster.live() == {"a"}


def test_a_node_is_free_only_of_nobody_of_us_and_of_the_dead() -> None:
    live = frozenset(("us", "them"))
    free = {holder: sharding.may_take(holder, "us", live) for holder in ("", "us", "them", "dead")}
    assert free == {"": True, "us": True, "them": False, "dead": True}
