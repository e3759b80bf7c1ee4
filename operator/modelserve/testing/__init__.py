"""What tests use in place of the world: an API server in memory, a clock moved by hand.

``modelserve.testing.scripted`` is a server that misbehaves on request (it alone imports aiohttp).
"""

from modelserve.testing.apiserver import MemoryCluster as MemoryCluster
from modelserve.testing.clock import ManualClock as ManualClock
from modelserve.testing.clock import settle as settle
