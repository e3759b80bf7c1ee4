"""A serving certificate of our own, as a kubelet makes itself, and the cluster's client CA."""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import oid

from modelserve import errors, ports
from servelab.node.serving import server

# Where a cluster tells whose client certificates it trusts.
CONFIG_NAMESPACE, CONFIG_NAME, CONFIG_KEY = (
    "kube-system",
    "extension-apiserver-authentication",
    "client-ca-file",
)
VALID = datetime.timedelta(days=365)
CLOCK_SKEW = datetime.timedelta(hours=1)


async def files(
    cluster: ports.Cluster, host: str, directory: Path, now_unix_s: float
) -> server.Files:
    """Make them in ``directory``, for a server at ``host``. Raises SetUpError."""
    now = datetime.datetime.fromtimestamp(now_unix_s, datetime.UTC)
    try:
        found = await cluster.get(ports.CONFIG_MAPS, CONFIG_NAMESPACE, CONFIG_NAME)
        authority = (found.get("data") or {})[CONFIG_KEY]
    except (errors.ClusterError, KeyError) as error:
        raise errors.SetUpError(
            f"ConfigMap {CONFIG_NAMESPACE}/{CONFIG_NAME} does not tell the client CA ({error}): "
            "let the emulator read it, or name files with --kubelet-client-ca, --kubelet-cert and "
            "--kubelet-key"
        ) from error
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = _certificate(key, host, now).public_bytes(serialization.Encoding.PEM)
    return server.Files(
        _write(directory / "client-ca.crt", authority.encode()),
        _write(directory / "kubelet.crt", public),
        _write(directory / "kubelet.key", private),
    )


def _certificate(
    key: ec.EllipticCurvePrivateKey, host: str, now: datetime.datetime
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, "servelab-emulator")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .add_extension(x509.ExtendedKeyUsage([oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def _names(host: str) -> Sequence[x509.GeneralName]:
    try:
        return [x509.IPAddress(ipaddress.ip_address(host))]
    except ValueError:
        return [x509.DNSName(host)]


def _write(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(content)
    except OSError as error:
        raise errors.SetUpError(f"cannot write {path}: {error.strerror}") from error
    return path
