"""The cache of binaries notices what is not whole."""

import os
from pathlib import Path

import pytest

from servelab.cluster import releases, reporting, store

ETCD = releases.Component.ETCD


class Listener(reporting.Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


def binary(path: Path, version: str = releases.ETCD) -> Path:
    """A program that reports ``version`` as etcd does."""
    path.write_text(f"#!/bin/sh\necho 'etcd Version: {version.removeprefix('v')}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def filled(tmp_path: Path) -> store.Store:
    cache = store.Store(tmp_path)
    binary(cache.partial(ETCD))
    assert cache.commit(ETCD)
    return cache


def test_an_empty_store_has_nothing(tmp_path: Path) -> None:
    assert not store.Store(tmp_path).has(ETCD)


def test_a_committed_binary_is_there(filled: store.Store) -> None:
    assert filled.has(ETCD)


def test_a_committed_binary_leaves_no_partial_file(filled: store.Store) -> None:
    assert not list(filled.directory.glob("*.partial"))


def test_a_truncated_binary_is_noticed(filled: store.Store) -> None:
    os.truncate(filled.path(ETCD), 10)
    assert not filled.has(ETCD)


def test_a_binary_with_other_bytes_of_the_same_length_is_noticed(filled: store.Store) -> None:
    content = bytearray(filled.path(ETCD).read_bytes())
    content[-2] ^= 1
    filled.path(ETCD).write_bytes(content)
    assert not filled.has(ETCD)


def test_a_binary_that_was_only_touched_still_counts(filled: store.Store) -> None:
    os.utime(filled.path(ETCD), (1, 1))
    assert filled.has(ETCD)


def test_a_damaged_binary_is_removed_with_a_sentence(filled: store.Store) -> None:
    os.truncate(filled.path(ETCD), 10)
    listener = Listener()
    assert not filled.adopt(ETCD, listener)
    assert not filled.path(ETCD).exists()
    assert "damaged or half-written" in listener.said[0]


def test_a_whole_binary_without_a_manifest_is_adopted(tmp_path: Path) -> None:
    cache = store.Store(tmp_path)
    binary(cache.path(ETCD))
    assert cache.adopt(ETCD, reporting.Silent())
    assert cache.has(ETCD)


def test_a_binary_of_another_version_is_not_adopted(tmp_path: Path) -> None:
    cache = store.Store(tmp_path)
    binary(cache.path(ETCD), "v3.5.0")
    assert not cache.adopt(ETCD, reporting.Silent())


def test_a_damaged_manifest_vouches_for_nothing(filled: store.Store) -> None:
    (filled.directory / store.MANIFEST).write_text('{"etcd": {"versi')
    assert not filled.has(ETCD)
    assert filled.adopt(ETCD, reporting.Silent())


def test_a_build_that_reports_another_version_is_refused(tmp_path: Path) -> None:
    cache = store.Store(tmp_path)
    binary(cache.partial(ETCD), "v0.0.0")
    assert not cache.commit(ETCD)
    assert list(tmp_path.iterdir()) == []


def test_taking_the_lock_clears_what_an_interrupted_build_left(tmp_path: Path) -> None:
    (tmp_path / "etcd.123.partial").write_text("half")
    with store.Store(tmp_path).locked(reporting.Silent()):
        assert not list(tmp_path.glob("*.partial"))
