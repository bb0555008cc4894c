# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Where the API server is and how to speak to it: the pod's service account, else KUBECONFIG.

Read here because importing the `kubernetes` package takes half a second of CPU, more than everything else that a hook
does together. It is still asked for what is not plain: a kubeconfig with an exec plugin or a login provider.
"""

from __future__ import annotations

import base64
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PLAIN_USER: Final = frozenset(
    {"token", "client-certificate", "client-certificate-data", "client-key", "client-key-data"}
)


@dataclass(frozen=True, slots=True)
class Access:
    """The server's address, what its certificate is checked against, and the headers that say who asks."""

    server: str
    tls: ssl.SSLContext | None
    headers: dict[str, str] = field(default_factory=dict)


def find() -> Access:
    """The account of the pod that this runs in, else the current context of KUBECONFIG (or ~/.kube/config)."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if host and port and (_ACCOUNT / "token").exists():
        address = f"[{host}]" if ":" in host else host
        tls = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        return Access(f"https://{address}:{port}", tls, _bearer((_ACCOUNT / "token").read_text().strip()))
    path = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    return _plain(path) or _by_package(path)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _plain(path: Path) -> Access | None:
    """The access of a kubeconfig with certificates or a token; None when it holds anything else."""
    import yaml

    if not path.is_file():
        return None
    content = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        context = _named(content["contexts"], content["current-context"], "context")
        cluster = _named(content["clusters"], context["cluster"], "cluster")
        user = _named(content["users"], context["user"], "user")
    except (KeyError, TypeError):
        return None
    if not set(user) <= _PLAIN_USER or set(cluster) & {"proxy-url", "tls-server-name", "insecure-skip-tls-verify"}:
        return None
    headers = _bearer(user["token"]) if user.get("token") else {}
    if not cluster["server"].startswith("https://"):
        return Access(cluster["server"], None, headers)
    authority = cluster.get("certificate-authority-data")
    tls = ssl.create_default_context(
        cafile=str(path.parent / cluster["certificate-authority"]) if cluster.get("certificate-authority") else None,
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    if "client-certificate-data" in user or "client-key-data" in user:
        return None  # Python reads a client's key from a file only: the package knows how to keep one safely
    if "client-certificate" in user:
        tls.load_cert_chain(path.parent / user["client-certificate"], path.parent / user["client-key"])
    return Access(cluster["server"].rstrip("/"), tls, headers)


def _named(entries: Any, name: str, part: str) -> dict[str, Any]:
    for entry in entries:
        if entry["name"] == name:
            found: dict[str, Any] = entry[part] or {}
            return found
    raise KeyError(name)


def _by_package(path: Path) -> Access:
    """Whatever the `kubernetes` package makes of the kubeconfig. Raises its ConfigException when there is none."""
    from kubernetes import client, config

    settings = client.Configuration()
    config.load_kube_config(config_file=str(path), client_configuration=settings)  # type: ignore[no-untyped-call]
    tls = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if not settings.verify_ssl:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if settings.cert_file:
        tls.load_cert_chain(settings.cert_file, settings.key_file)
    headers: dict[str, str] = {}
    client.ApiClient(settings).update_params_for_auth(headers, [], ["BearerToken"], "/", "GET", None)
    return Access(settings.host.rstrip("/"), tls, headers)
