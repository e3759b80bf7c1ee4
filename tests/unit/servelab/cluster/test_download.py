"""Downloads count only with the published checksum."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import pytest

from modelserve import errors
from servelab.cluster import download, releases, reporting, store

MACHINE = releases.Platform("linux", "amd64")
SCHEDULER = releases.Component.SCHEDULER
ETCD = releases.Component.ETCD
SCHEDULER_URL = "https://dl.k8s.io/v1.37.2/bin/linux/amd64/kube-scheduler"
ETCD_BASE = "https://github.com/etcd-io/etcd/releases/download/v3.7.3"
SCHEDULER_PROGRAM = b"#!/bin/sh\necho Kubernetes v1.37.2\n"
ETCD_PROGRAM = b"#!/bin/sh\necho etcd Version: 3.7.3\n"


class Web:
    """Answers for some addresses."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self._pages = pages

    def __call__(self, url: str) -> IO[bytes]:
        if url not in self._pages:
            raise errors.SetUpError(f"{url} cannot be had")
        return io.BytesIO(self._pages[url])


def digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as files:
        member = tarfile.TarInfo("etcd-v3.7.3-linux-amd64/etcd")
        member.size = len(ETCD_PROGRAM)
        files.addfile(member, io.BytesIO(ETCD_PROGRAM))
    return buffer.getvalue()


def fetch(component: releases.Component, into: Path, pages: Mapping[str, bytes]) -> store.Store:
    cache = store.Store(into)
    download.fetch([component], cache, MACHINE, reporting.Silent(), Web(pages))
    return cache


def test_a_download_with_the_published_checksum_is_taken(tmp_path: Path) -> None:
    sums = {f"{SCHEDULER_URL}.sha256": digest(SCHEDULER_PROGRAM)}
    assert fetch(SCHEDULER, tmp_path, sums | {SCHEDULER_URL: SCHEDULER_PROGRAM}).has(SCHEDULER)


def test_a_download_with_another_checksum_is_refused_and_removed(tmp_path: Path) -> None:
    pages = {f"{SCHEDULER_URL}.sha256": digest(b"else"), SCHEDULER_URL: SCHEDULER_PROGRAM}
    with pytest.raises(errors.SetUpError, match="checksum"):
        fetch(SCHEDULER, tmp_path, pages)
    assert list(tmp_path.iterdir()) == []


def test_etcd_is_taken_out_of_its_archive(tmp_path: Path) -> None:
    content = archive()
    name = "etcd-v3.7.3-linux-amd64.tar.gz"
    pages = {
        f"{ETCD_BASE}/SHA256SUMS": digest(content) + f"  {name}\n".encode(),
        f"{ETCD_BASE}/{name}": content,
    }
    assert fetch(ETCD, tmp_path, pages).has(ETCD)


def test_an_address_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.SetUpError, match="kube-scheduler"):
        fetch(SCHEDULER, tmp_path, {})
