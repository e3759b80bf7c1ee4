"""Official release binaries, each checked against the checksum published beside it.

The first failure ends the attempt: whoever cannot reach the first file will not reach the next.
"""

import hashlib
import queue
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from modelserve import errors
from servelab.cluster import releases, reporting, store

KUBERNETES_URL = "https://dl.k8s.io/{version}/bin/{system}/{processor}/{name}"
ETCD_URL = "https://github.com/etcd-io/etcd/releases/download/{version}"
ETCD_ARCHIVE = "etcd-{version}-linux-{processor}.tar.gz"
FIRST_ANSWER_REAL_S = 8.0
STALLED_REAL_S = 20.0
CHUNK_BYTES = 1 << 20

Open = Callable[[str], IO[bytes]]


def open_url(url: str) -> IO[bytes]:
    """Start reading ``url``. SetUpError within seconds if nothing answers, name lookup included."""
    answers: queue.Queue[IO[bytes] | Exception] = queue.Queue()

    def attempt() -> None:
        try:
            answers.put(urllib.request.urlopen(url, timeout=STALLED_REAL_S))
        except (OSError, ValueError) as failure:
            answers.put(failure)

    # A name lookup has no time limit of its own, hence the thread.
    threading.Thread(target=attempt, daemon=True, name="download").start()
    try:
        answer = answers.get(timeout=FIRST_ANSWER_REAL_S)
    except queue.Empty:
        raise errors.SetUpError(f"{url} did not answer in {FIRST_ANSWER_REAL_S:.0f} s") from None
    if isinstance(answer, Exception):
        reason = answer.reason if isinstance(answer, urllib.error.URLError) else answer
        raise errors.SetUpError(f"{url} cannot be had: {reason}") from answer
    return answer


def fetch(
    components: Sequence[releases.Component],
    into: store.Store,
    machine: releases.Platform,
    reporter: reporting.Reporter,
    opener: Open = open_url,
) -> None:
    """Download ``components`` into the store. SetUpError says why it went no further."""
    if machine.system != "linux":
        raise errors.SetUpError("the control plane is released for Linux only")
    for component in components:
        partial = into.partial(component)
        try:
            if component is releases.Component.ETCD:
                _fetch_etcd(component, partial, machine, reporter, opener)
            else:
                _fetch_kubernetes(component, partial, machine, reporter, opener)
            if not into.commit(component):
                raise errors.SetUpError(f"the downloaded {component} does not run here")
        finally:
            partial.unlink(missing_ok=True)


def _fetch_kubernetes(
    component: releases.Component,
    partial: Path,
    machine: releases.Platform,
    reporter: reporting.Reporter,
    opener: Open,
) -> None:
    url = KUBERNETES_URL.format(
        version=component.version,
        system=machine.system,
        processor=machine.processor,
        name=component.value,
    )
    expected = _text(opener, f"{url}.sha256").split()[:1]
    _save(url, expected, partial, f"downloading {component}", reporter, opener)


def _fetch_etcd(
    component: releases.Component,
    partial: Path,
    machine: releases.Platform,
    reporter: reporting.Reporter,
    opener: Open,
) -> None:
    base = ETCD_URL.format(version=component.version)
    name = ETCD_ARCHIVE.format(version=component.version, processor=machine.processor)
    sums = [line.split() for line in _text(opener, f"{base}/SHA256SUMS").splitlines()]
    expected = [words[0] for words in sums if words[1:] == [name]]
    archive = partial.with_name(f"{name}{store.PARTIAL_SUFFIX}")
    try:
        _save(f"{base}/{name}", expected, archive, f"downloading {component}", reporter, opener)
        with tarfile.open(archive) as files:
            member = files.extractfile(f"{name.removesuffix('.tar.gz')}/etcd")
            if member is None:
                raise errors.SetUpError(f"{name} holds no etcd")
            with partial.open("wb") as target:
                while chunk := member.read(CHUNK_BYTES):
                    target.write(chunk)
    except (tarfile.TarError, KeyError) as failure:
        raise errors.SetUpError(f"{name} cannot be unpacked: {failure}") from failure
    finally:
        archive.unlink(missing_ok=True)


def _text(opener: Open, url: str) -> str:
    with opener(url) as answer:
        return answer.read(CHUNK_BYTES).decode("utf-8", "replace")


def _save(
    url: str,
    expected: Sequence[str],
    path: Path,
    title: str,
    reporter: reporting.Reporter,
    opener: Open,
) -> None:
    digest = hashlib.sha256()
    done_bytes = 0
    begun_real_s = time.monotonic()
    try:
        with opener(url) as answer, path.open("wb") as file:
            total_bytes = int(getattr(answer, "length", 0) or 0)
            while chunk := answer.read(CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
                done_bytes += len(chunk)
                if total_bytes:
                    fraction = done_bytes / total_bytes
                    spent_real_s = time.monotonic() - begun_real_s
                    reporter.progress(title, fraction, spent_real_s * (1 / fraction - 1))
    except OSError as failure:
        raise errors.SetUpError(f"{url} broke off: {failure}") from failure
    if digest.hexdigest() not in expected:
        raise errors.SetUpError(f"{url} does not have the checksum that is published for it")
    reporter.finish(title)
