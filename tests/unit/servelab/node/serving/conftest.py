"""A node with one vLLM pod and one plain pod, its kubelet API on a socket, and a SPDY client."""

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest
from aiohttp import test_utils, web

from modelserve.api import names
from servelab.engine import metering
from servelab.node.gpus import devices
from servelab.node.pods import journal, podspec
from servelab.node.serving import inspecting, server, spdy

NOW_S = 1_800_000_000.0
ENGINE = {
    "name": "engine",
    "image": "vllm/vllm-openai:v0.33.0",
    "args": ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--max-model-len", "8192"],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
    "env": [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "GREETING", "value": "hello $(POD)"},
    ],
}
PHASES = (
    '{"timeScale": 1, "stamps": [{"phase": "WeightLoad", "start": 1799999000000, '
    '"end": 1799999100000}, {"phase": "Probe", "start": 1799999100000}]}'
)


def pod(name: str, container: Mapping[str, Any], **annotations: str) -> dict[str, Any]:
    """A bound pod."""
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"{name}-uid",
            "creationTimestamp": "2027-01-15T07:00:00Z",
            "annotations": annotations,
        },
        "spec": {"nodeName": "dgx-0", "containers": [copy.deepcopy(container)]},
        "status": {"podIP": "10.200.0.7", "phase": "Running"},
    }


@dataclass
class Pod:
    """A pod that is served; its containers run, unless ``state`` says otherwise."""

    pod: podspec.Pod
    state: dict[str, Any] = field(
        default_factory=lambda: {"running": {"startedAt": "2027-01-15T07:30:00Z"}}
    )
    last: dict[str, Any] = field(default_factory=dict)
    told: bool = True
    xids: dict[str, int] = field(default_factory=dict)
    journals: dict[str, journal.Journal] = field(default_factory=dict)

    def entry(self, container: str) -> dict[str, Any] | None:
        if container not in {each.name for each in self.pod.containers}:
            return None
        return {"state": self.state, "lastState": self.last} if self.told else {}

    def xid(self, container: str) -> int:
        return self.xids.get(container, 0)

    def say(self, *lines: str) -> None:
        log = self.journals.setdefault("main", journal.Journal())
        for number, line in enumerate(lines):
            log.append(NOW_S - len(lines) + number, line)


@dataclass
class Node:
    """A Node object."""

    name: str = "dgx-0"
    gpus: int = 2
    lost_at_s: float = float("inf")

    def lost(self, now_unix_s: float) -> bool:
        return now_unix_s >= self.lost_at_s

    @property
    def object(self) -> dict[str, Any]:
        return {
            "metadata": {
                "name": self.name,
                "creationTimestamp": "2027-01-15T07:00:00Z",
                "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            },
            "status": {
                "capacity": {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": str(self.gpus)},
                "nodeInfo": {"kernelVersion": "6.8.0-servelab", "kubeletVersion": "v1.37.2"},
            },
        }


@dataclass
class Host:
    """The emulator's part. ``loads_`` are told one after the other, the last for ever."""

    pods: list[Pod]
    nodes: dict[str, Node]
    loads_: list[dict[str, metering.Load]] = field(default_factory=lambda: [{}])
    now_s: float = NOW_S
    scale: float = 1.0
    dials: dict[str, str] = field(default_factory=dict)

    def dial(self, engine: str, port: int = 0) -> str:
        return self.dials.get(f"{engine}:{port}" if port else engine, "")

    def unix_s(self) -> float:
        return self.now_s

    async def sleep_real(self, seconds: float) -> None:
        self.now_s += seconds

    def served(self) -> list[Pod]:
        return self.pods

    def lookup(self, namespace: str, name: str) -> Pod | None:
        found = (p for p in self.pods if (p.pod.namespace, p.pod.name) == (namespace, name))
        return next(found, None)

    def served_nodes(self) -> dict[str, Node]:
        return self.nodes

    async def loads(self) -> dict[str, metering.Load]:
        return self.loads_.pop(0) if len(self.loads_) > 1 else self.loads_[0]


class Client:
    """One end of a SPDY connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._in, self._out = spdy.Reader(), spdy.Writer()
        self.got: dict[int, bytes] = {}
        self.reset: set[int] = set()
        self.ended: set[int] = set()

    async def ask(self, path: str, version: str) -> str:
        """Ask for an upgrade; the head of the answer."""
        self._writer.write(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
            f"X-Stream-Protocol-Version: {version}\r\nContent-Length: 0\r\n\r\n".encode()
        )
        return (await self._reader.readuntil(b"\r\n\r\n")).decode()

    def open(self, number: int, **headers: str) -> None:
        self._writer.write(self._out.open(number, headers))

    def send(self, number: int, payload: bytes, *, fin: bool = False) -> None:
        self._writer.write(spdy.data(number, payload, fin=fin))

    async def receive(self, *, until_ended: int = 0, until: int = 0) -> None:
        """Read until the peer closes, has closed that stream, or has sent something on it."""
        async with asyncio.timeout(5):
            while chunk := await self._reader.read(65536):
                for frame in self._in.feed(chunk):
                    self._take(frame)
                if until_ended in self.ended | self.reset or until in self.got:
                    return

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def _take(self, frame: spdy.Frame) -> None:
        match frame:
            case spdy.Data(number, payload, fin):
                self.got[number] = self.got.get(number, b"") + payload
                self.ended |= {number} if fin else set()
            case spdy.Broken(number):
                self.reset.add(number)


class Connect(Protocol):
    """Opens a connection to the kubelet API."""

    async def __call__(self) -> Client: ...


@pytest.fixture
def host() -> Host:
    uuid = devices.of_node("dgx-0", 1)[0].uuid
    told = {names.PHASES: PHASES, names.GPUS: uuid}
    engine = podspec.parse(pod("llm", ENGINE, **told))
    plain = podspec.parse(pod("plain", {"name": "main", "image": "busybox:1"}))
    return Host([Pod(engine), Pod(plain)], {"dgx-0": Node()})


class Server(test_utils.TestServer):
    """As the process serves it: a handler goes on when its client leaves."""

    async def _make_runner(self, **given: Any) -> web.BaseRunner:
        return await super()._make_runner(**{**given, "handler_cancellation": False})


@pytest.fixture
async def http(host: Host) -> AsyncIterator[test_utils.TestClient[Any, Any]]:
    kubelet = server.KubeletServer(inspecting.Inspector(host), server.Options(access=None))
    async with test_utils.TestClient(Server(kubelet.app)) as found:
        yield found


@pytest.fixture
async def connect(http: test_utils.TestClient[Any, Any]) -> AsyncIterator[Connect]:
    made: list[Client] = []

    async def make() -> Client:
        made.append(Client(*await asyncio.open_connection("127.0.0.1", http.server.port)))
        return made[-1]

    yield make
    for client in made:
        await client.close()
