"""The images of recorded pods, made of one static busybox: no registry is needed."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

DIRECTORIES = ("bin", "tmp", "etc", "dev", "proc", "sys", "www")
PAUSE = "docker.io/library/pause:1"
PAUSE_COMMAND = ("sleep", "1000000")


def write(
    busybox: Path, applets: Sequence[str], name: str, command: Sequence[str], to: Path
) -> None:
    """Write an OCI archive of image ``name`` that runs ``command``."""
    layer = _layer(busybox.read_bytes(), applets)
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": list(command), "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _blob("application/vnd.oci.image.config.v1+json", config),
            "layers": [_blob("application/vnd.oci.image.layer.v1.tar", layer)],
        }
    )
    entry = _blob("application/vnd.oci.image.manifest.v1+json", manifest) | {
        "annotations": {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        }
    }
    blobs = {f"blobs/sha256/{_digest(each)[7:]}": each for each in (layer, config, manifest)}
    index = _json({"schemaVersion": 2, "manifests": [entry]})
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": index, **blobs}
    _archive(to, files)


def _layer(program: bytes, applets: Sequence[str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in DIRECTORIES:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            archive.addfile(entry)
        entry = tarfile.TarInfo("bin/busybox")
        entry.size, entry.mode = len(program), 0o755
        archive.addfile(entry, io.BytesIO(program))
        for applet in applets:
            if applet != "busybox":
                entry = tarfile.TarInfo(f"bin/{applet}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                archive.addfile(entry)
    return buffer.getvalue()


def _archive(to: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(to, "w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def _blob(media_type: str, content: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(document: object) -> bytes:
    return json.dumps(document).encode()
