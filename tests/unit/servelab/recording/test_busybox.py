"""Images of one busybox, as a container runtime imports them."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from servelab.recording import busybox


@pytest.fixture
def archive(tmp_path: Path) -> dict[str, bytes]:
    program, made = tmp_path / "busybox", tmp_path / "image.tar"
    program.write_bytes(b"program")
    busybox.write(program, ["busybox", "sh"], "docker.io/library/busybox:1", ["sh"], made)
    with tarfile.open(made) as found:
        return {name: _content(found, name) for name in found.getnames()}


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def _blob(archive: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    content = archive[f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}"]
    assert len(content) == descriptor["size"]
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == descriptor["digest"]
    return content


def test_every_part_is_found_by_its_digest(archive: dict[str, bytes]) -> None:
    (entry,) = json.loads(archive["index.json"])["manifests"]
    manifest = json.loads(_blob(archive, entry))
    config = json.loads(_blob(archive, manifest["config"]))
    assert config["config"]["Cmd"] == ["sh"]
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert entry["annotations"]["io.containerd.image.name"] == "docker.io/library/busybox:1"


def test_the_layer_holds_the_program_under_all_its_names(archive: dict[str, bytes]) -> None:
    (entry,) = json.loads(archive["index.json"])["manifests"]
    layer = _blob(archive, json.loads(_blob(archive, entry))["layers"][0])
    with tarfile.open(fileobj=io.BytesIO(layer)) as found:
        assert _content(found, "bin/busybox") == b"program"
        assert found.getmember("bin/sh").linkname == "busybox"
