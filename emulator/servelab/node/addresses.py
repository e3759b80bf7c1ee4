"""Pod addresses from a reserved range that leads nowhere.

Not loopback and not link-local: with either, the EndpointSlice controller fails for the whole
Service. Whoever wants the engine takes its dial address from the pod's annotation.
"""

import ipaddress

from modelserve import errors

RANGE = "10.200.0.0/16"


class PodAddresses:
    """Hands out addresses of ``cidr`` in turn, so that a freed one is not reused at once."""

    def __init__(self, cidr: str = RANGE) -> None:
        self._network = ipaddress.ip_network(cidr)
        self._by_uid: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1

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

    def free(self, uid: str) -> None:
        """Take the address back; a pod that had none is fine."""
        self._taken.discard(self._by_uid.pop(uid, ""))

    def _keep(self, uid: str, address: str) -> str:
        self._by_uid[uid] = address
        self._taken.add(address)
        return address
