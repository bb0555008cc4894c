# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Which kubeconfigs the hooks read by themselves, and which they leave to the `kubernetes` package."""

from __future__ import annotations

import base64
import datetime
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from lib.ai_inference import access


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate and its key, as files."""
    folder = tmp_path_factory.mktemp("pki")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (folder / "x.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "x.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "x.crt", folder / "x.key"


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443/", **cluster}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return path


def test_certificates_and_tokens_need_no_package(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = pair
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    authority = base64.b64encode(certificate.read_bytes()).decode()
    for cluster, user, headers in (
        ({"certificate-authority": str(certificate)}, {"token": "t"}, {"Authorization": "Bearer t"}),
        ({"certificate-authority-data": authority}, {"token": "t"}, {"Authorization": "Bearer t"}),
        (
            {"certificate-authority": str(certificate)},
            {"client-certificate": str(certificate), "client-key": str(key)},
            {},
        ),
    ):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, cluster, user)))
        found = access.find()
        assert (found.server, found.headers) == ("https://127.0.0.1:6443", headers)
        assert found.tls is not None
        assert found.tls.check_hostname


def test_keys_as_data_are_left_to_the_package(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = (base64.b64encode(path.read_bytes()).decode() for path in pair)
    user = {"client-certificate-data": certificate, "client-key-data": key}
    path = kubeconfig(tmp_path, {"certificate-authority-data": certificate}, user)
    assert access._plain(path) is None
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert access.find().server == "https://127.0.0.1:6443"


def test_logins_by_plugin_are_left_to_the_package(tmp_path: Path) -> None:
    assert access._plain(kubeconfig(tmp_path, {}, {"exec": {"command": "login"}})) is None
    assert access._plain(kubeconfig(tmp_path, {"insecure-skip-tls-verify": True}, {"token": "t"})) is None
    assert access._plain(tmp_path / "absent") is None
