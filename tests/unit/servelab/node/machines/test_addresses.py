"""Pod addresses."""

import ipaddress

import pytest

from modelserve import errors
from servelab.node.machines import addresses


def test_the_range_can_stand_in_an_endpoint_slice() -> None:
    network = ipaddress.ip_network(addresses.RANGE)
    assert network.is_private
    assert not network.is_loopback
    assert not network.is_link_local


def test_each_pod_keeps_its_own_address() -> None:
    pods = addresses.PodAddresses()
    assert pods.take("a") == pods.take("a")
    assert pods.take("a") != pods.take("b")


def test_a_freed_address_is_not_reused_at_once() -> None:
    pods = addresses.PodAddresses()
    first = pods.take("a")
    pods.free("a")
    assert pods.take("b") != first


def test_a_restored_address_is_not_given_away() -> None:
    pods = addresses.PodAddresses()
    assert pods.restore("a", "10.200.0.1") == "10.200.0.1"
    assert pods.take("b") == "10.200.0.2"
    assert pods.restore("c", "10.200.0.2") == "10.200.0.3"


def test_a_full_range_says_so() -> None:
    pods = addresses.PodAddresses("10.200.0.0/30")
    assert {pods.take("a"), pods.take("b")} == {"10.200.0.1", "10.200.0.2"}
    with pytest.raises(errors.SetUpError, match="all 2 pod addresses"):
        pods.take("c")
