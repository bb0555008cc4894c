# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Keys and certificates of one throw-away control plane."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = datetime.timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Pair:
    """Files of one certificate and its key, in PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority whose files lie in one folder. Keys are readable by their owner only."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _blank(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = _write(folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, name: str, hosts: list[str]) -> Pair:
        """A server certificate for `hosts`: names and addresses mixed."""
        alternatives = x509.SubjectAlternativeName([_host(host) for host in hosts])
        return self._issue(name, name, "", ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, name: str, *, user: str, group: str = "") -> Pair:
        """A client certificate: Kubernetes reads the common name as user and the organisation as group."""
        return self._issue(name, user, group, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self,
        name: str,
        common_name: str,
        organisation: str,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        if organisation:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
        builder = (
            _blank(x509.Name(attributes), self._name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(
            _write(self._folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM)),
            _write(self._folder / f"{name}.key", _private(key)),
        )


def service_account_key(folder: Path) -> Pair:
    """The key pair that signs ServiceAccount tokens; `certificate` holds the bare public key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return Pair(_write(folder / "service-account.pub", public), _write(folder / "service-account.key", _private(key)))


def _blank(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + VALID)
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
