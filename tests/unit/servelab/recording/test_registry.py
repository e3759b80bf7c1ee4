"""The registry that recorded pods pull from."""

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelserve import errors
from servelab.recording import busybox, registry


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    program, archive = tmp_path / "busybox", tmp_path / "image.tar"
    program.write_bytes(b"program")
    busybox.write(program, ["busybox"], "docker.io/library/busybox:1", ["sh"], archive)
    with registry.serving(archive, port=0) as port:
        yield f"http://127.0.0.1:{port}/v2"


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: bytes = answer.read()
        return found


def test_every_image_can_be_pulled_to_its_last_blob(served: str) -> None:
    manifest = json.loads(get(f"{served}/team/engine/manifests/v1"))
    for part in (manifest["config"], *manifest["layers"]):
        blob = get(f"{served}/team/engine/blobs/{part['digest']}")
        assert part["digest"] == f"sha256:{hashlib.sha256(blob).hexdigest()}"


@pytest.mark.parametrize("path", ["nothing/manifests/v1", "engine/blobs/sha256:00", "engine"])
def test_what_is_not_there_is_not_found(served: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404") as told:
        get(f"{served[:-3] if path == 'engine' else served}/{path}")
    told.value.close()


def test_a_port_that_is_taken_is_told(served: str, tmp_path: Path) -> None:
    port = int(served.split(":")[2].partition("/")[0])
    taken = pytest.raises(errors.SetUpError, match=f"port {port} is taken")
    with taken, registry.serving(tmp_path / "image.tar", port=port):
        pass
