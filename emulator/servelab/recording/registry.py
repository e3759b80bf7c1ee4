"""A registry for recorded pods: it has every image but those called ``nothing``.

All are the busybox image under another name. One called ``slow-3`` takes three seconds to be found.
"""

import contextlib
import json
import re
import socket
import tarfile
import threading
from collections.abc import Iterator, Mapping
from http import server
from pathlib import Path

from modelserve import errors

# Where a runtime speaks plain HTTP to a registry.
HOST, PORT = "127.0.0.1", 5000
_PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs)/(?P<reference>[^/]+)")
_SLOW = re.compile(r"slow-(\d+)")
_MISSING = "nothing"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_UNKNOWN = b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}'
# How a TLS handshake begins: whoever tries that first has to be told that it is not spoken here.
_HANDSHAKE = b"\x16"
_NO_TLS = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def _handler(
    blobs: Mapping[str, bytes], manifest: str, over: threading.Event
) -> type[server.BaseHTTPRequestHandler]:
    """``manifest`` is the digest of the one there is; when it is ``over``, nothing is slow."""

    class Handler(server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            if self.connection.recv(1, socket.MSG_PEEK) == _HANDSHAKE:
                self.connection.sendall(_NO_TLS)
                return
            with contextlib.suppress(ConnectionError):
                super().handle()

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

        def _answer(self) -> None:
            asked = _PATH.fullmatch(self.path)
            if asked is None:
                self._send(200 if self.path.startswith("/v2") else 404, b"{}")
                return
            if self.command == "HEAD" and (slow := _SLOW.fullmatch(asked["name"])):
                over.wait(int(slow[1]))
            named = asked["kind"] == "manifests" and ":" not in asked["reference"]
            digest = manifest if named else asked["reference"]
            if asked["name"] == _MISSING or digest not in blobs:
                self._send(404, _UNKNOWN)
                return
            self._send(200, blobs[digest], digest)

        def _send(self, status: int, body: bytes, digest: str = "") -> None:
            self.send_response(status)
            kind = _MANIFEST if digest == manifest else "application/octet-stream"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler


def _read(archive: Path) -> tuple[dict[str, bytes], str]:
    """The blobs of an OCI archive by digest, and the digest of its manifest."""
    blobs, manifest = {}, ""
    with tarfile.open(archive) as tar:
        for entry in tar:
            held = tar.extractfile(entry)
            content = held.read() if held else b""
            if entry.name == "index.json":
                manifest = json.loads(content)["manifests"][0]["digest"]
            elif entry.name.startswith("blobs/"):
                blobs["sha256:" + entry.name.rpartition("/")[2]] = content
    return blobs, manifest


@contextlib.contextmanager
def serving(archive: Path, port: int = PORT) -> Iterator[int]:
    """Serve that image at the port that is yielded. Raises SetUpError where it is taken."""
    over = threading.Event()
    try:
        found = server.ThreadingHTTPServer((HOST, port), _handler(*_read(archive), over))
    except OSError as error:
        raise errors.SetUpError(
            f"port {port} is taken ({error.strerror}): recorded pods pull from a registry there"
        ) from error
    found.daemon_threads = True
    threading.Thread(target=found.serve_forever, daemon=True).start()
    try:
        yield found.server_port
    finally:
        over.set()
        found.shutdown()
        found.server_close()
