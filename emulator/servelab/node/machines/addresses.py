"""Pod addresses from a reserved range that leads nowhere.

Not loopback and not link-local: with either, the EndpointSlice controller fails for the whole
Service. Whoever wants the engine takes its dial address from the pod's annotation.
"""

import ipaddress
import zlib

from modelserve import errors
from modelserve.api.pool import GPUPoolSpec

RANGE = "10.200.0.0/16"
ROOM = ipaddress.ip_network(RANGE).num_addresses - 2


def check_room(spec: GPUPoolSpec) -> None:
    """Raises InputError for a pool whose GPUs could have more pods than there are addresses."""
    nodes = spec.node_count if spec.elastic is None else spec.elastic.max
    if nodes * spec.gpus_per_node > ROOM:
        raise errors.InputError(
            f"spec.nodes: {nodes} nodes of {spec.gpus_per_node} GPUs have room for more pods than "
            f"the {ROOM} addresses of {RANGE}; ask for fewer nodes"
        )


class PodAddresses:
    """Hands out addresses of ``cidr`` in turn, so that a freed one is not reused at once.

    Several processes with a ``seed`` each begin in different places, and ``see`` what others gave.
    """

    def __init__(self, cidr: str = RANGE, seed: str = "") -> None:
        self._network = ipaddress.ip_network(cidr)
        self._by_uid: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1
        if seed:
            self._next += zlib.crc32(seed.encode()) % (self._network.num_addresses - 2)

    def take(self, uid: str) -> str:
        """The pod's address, a new one if it has none. Raises SetUpError when none is left."""
        if uid in self._by_uid:
            return self._by_uid[uid]
        usable = self._network.num_addresses - 2
        for _ in range(usable):
            address = str(self._network[self._next])
            self._next = self._next % usable + 1
            if address not in self._taken:
                return self._keep(uid, address)
        raise errors.SetUpError(f"all {usable} pod addresses of {self._network} are in use")

    def restore(self, uid: str, address: str) -> str:
        """Keep an address that the pod's status shows; a new one if that is empty or taken."""
        if not address or uid in self._by_uid or address in self._taken:
            return self.take(uid)
        return self._keep(uid, address)

    def see(self, uid: str, address: str) -> None:
        """A pod's status shows that address, whoever gave it; nothing is done for an empty one."""
        if address and uid not in self._by_uid and address not in self._taken:
            self._keep(uid, address)

    def free(self, uid: str) -> None:
        """Take the address back; a pod that had none is fine."""
        self._taken.discard(self._by_uid.pop(uid, ""))

    def _keep(self, uid: str, address: str) -> str:
        self._by_uid[uid] = address
        self._taken.add(address)
        return address
