"""A certificate of the emulator's own, and the cluster's client CA."""

from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509

from modelserve import errors, ports
from servelab.node.serving import selfsigned, server

NOW_S = 1_800_000_000.0


class Cluster:
    """Has one ConfigMap, or none."""

    def __init__(self, data: dict[str, str] | None) -> None:
        self._data = data

    async def get(self, *where: Any) -> dict[str, Any]:
        if self._data is None:
            raise errors.NotFound("there is none")
        return {"data": self._data}


def cluster(data: dict[str, str] | None) -> ports.Cluster:
    return cast(ports.Cluster, Cluster(data))


async def test_the_files_make_a_server(tmp_path: Path) -> None:
    first = await selfsigned.files(cluster({"client-ca-file": "x"}), "10.0.0.7", tmp_path, NOW_S)
    authority = first.certificate.read_text()
    found = await selfsigned.files(
        cluster({"client-ca-file": authority}), "10.0.0.7", tmp_path, NOW_S
    )
    assert server.server_context(found) is not None
    assert found.key.stat().st_mode & 0o077 == 0
    made = x509.load_pem_x509_certificate(found.certificate.read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.7"]


@pytest.mark.parametrize("data", [None, {}])
async def test_without_a_client_ca_it_says_what_to_do(
    tmp_path: Path, data: dict[str, str] | None
) -> None:
    with pytest.raises(errors.SetUpError, match="or name files with --kubelet-client-ca"):
        await selfsigned.files(cluster(data), "host", tmp_path, NOW_S)


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.crt"
    with pytest.raises(errors.InputError, match=r"none\.crt"):
        server.server_context(server.Files(missing, missing, missing))
