"""Keys and certificates of a throw-away certificate authority, for one run of the control plane."""

import dataclasses
import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import oid

VALID_DAYS = 365
CLOCK_SKEW = datetime.timedelta(hours=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Issues certificates into ``directory`` from one fresh key. ``now`` is wall-clock time."""

    def __init__(self, directory: Path, now: datetime.datetime) -> None:
        self._directory = directory
        self._begin = now - CLOCK_SKEW
        self._end = now + datetime.timedelta(days=VALID_DAYS)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("modelserve-local", ())
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(True, 0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        self.certificate = directory / "ca.crt"
        _write(self.certificate, _pem(builder.sign(self._key, hashes.SHA256())))

    def client(self, file: str, user: str, groups: Sequence[str] = ()) -> Pair:
        """A certificate that makes its holder ``user`` in ``groups``."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(user, groups), key.public_key())
        usages = [oid.ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(file, builder, key, usages)

    def server(self, file: str, names: Sequence[str], addresses: Sequence[str]) -> Pair:
        """A certificate for a server that is reached by ``names`` and IP ``addresses``.

        It also serves as the client's end where servers of one kind talk to each other (etcd).
        """
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = [
            *(x509.DNSName(name) for name in names),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
        ]
        builder = self._builder(_name(file, ()), key.public_key())
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        usages = [oid.ExtendedKeyUsageOID.SERVER_AUTH, oid.ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(file, builder, key, usages)

    def _issue(
        self,
        file: str,
        builder: x509.CertificateBuilder,
        key: ec.EllipticCurvePrivateKey,
        usages: Sequence[x509.ObjectIdentifier],
    ) -> Pair:
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        pair = Pair(self._directory / f"{file}.crt", self._directory / f"{file}.key")
        _write(pair.certificate, _pem(builder.sign(self._key, hashes.SHA256())))
        _write(pair.key, _private_pem(key))
        return pair

    def _builder(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._begin)
            .not_valid_after(self._end)
            .add_extension(authority, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        )


def signing_key(directory: Path, file: str) -> Pair:
    """A bare key pair, for signing service account tokens; ``certificate`` is the public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = Pair(directory / f"{file}.pub", directory / f"{file}.key")
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _write(pair.certificate, public)
    _write(pair.key, _private_pem(key))
    return pair


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(oid.NameOID.ORGANIZATION_NAME, o) for o in organizations]
    return x509.Name([*attributes, x509.NameAttribute(oid.NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
