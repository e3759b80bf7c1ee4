"""The throw-away authority: who is who, and that TLS accepts it."""

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import oid

from servelab.cluster import certificates, kubeconfig

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def authority(tmp_path: Path) -> certificates.Authority:
    return certificates.Authority(tmp_path, NOW)


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_client_certificate_names_user_and_groups(authority: certificates.Authority) -> None:
    subject = load(authority.client("a", "ada", ["system:masters"]).certificate).subject
    assert subject.get_attributes_for_oid(oid.NameOID.COMMON_NAME)[0].value == "ada"
    groups = subject.get_attributes_for_oid(oid.NameOID.ORGANIZATION_NAME)
    assert [group.value for group in groups] == ["system:masters"]


def test_a_server_certificate_names_its_addresses(authority: certificates.Authority) -> None:
    certificate = load(authority.server("s", ["localhost"], ["127.0.0.1"]).certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_certificates_are_signed_by_the_authority(authority: certificates.Authority) -> None:
    issued = load(authority.client("a", "ada").certificate)
    issued.verify_directly_issued_by(load(authority.certificate))


def test_openssl_takes_the_files(authority: certificates.Authority) -> None:
    pair = authority.client("a", "ada")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(pair.certificate, pair.key)


def test_keys_are_for_their_owner_only(authority: certificates.Authority, tmp_path: Path) -> None:
    pair = authority.client("a", "ada")
    accounts = certificates.signing_key(tmp_path, "accounts")
    assert pair.key.stat().st_mode & 0o077 == 0
    assert accounts.key.stat().st_mode & 0o077 == 0


def test_a_kubeconfig_is_for_its_owner_only(
    authority: certificates.Authority, tmp_path: Path
) -> None:
    document = kubeconfig.for_token("https://127.0.0.1:1", authority.certificate, "secret")
    path = kubeconfig.write(tmp_path / "config", document)
    assert path.stat().st_mode & 0o077 == 0
