# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The API server as the hooks use it: a request in, the object or the server's refusal out.

Thin on purpose: the `kubernetes` package supplies configuration and transport, its generated models are not used (they
would drop fields that they do not know). It takes a third of a second to import, so this module is imported only when
there is something to write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config
from urllib3.exceptions import HTTPError

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
_TIMEOUT: Final = urllib3.Timeout(connect=5, read=35)
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class Refusal(Exception):
    """The API server answered no. Its words are the text of the error."""

    def __init__(self, code: int, status: Mapping[str, Any]) -> None:
        super().__init__(status.get("message") or f"HTTP {code}")
        self.code = code
        self.reason = str(status.get("reason") or "")
        details = status.get("details") or {}
        self.causes = tuple(str(cause.get("reason")) for cause in details.get("causes") or ())

    @property
    def missing(self) -> bool:
        return self.code == 404

    @property
    def conflict(self) -> bool:
        return self.code == 409

    @property
    def terminating(self) -> bool:
        return "NamespaceTerminating" in self.causes


class Unreachable(Exception):
    """No answer at all: nothing is known about the write. The run fails and is repeated by the operator."""


class Api:
    """Requests over one pool of `connections`, as the service account or KUBECONFIG says. Safe to share by threads."""

    def __init__(self, connections: int = 4) -> None:
        settings = client.Configuration()
        try:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        except config.ConfigException:
            config.load_kube_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        settings.connection_pool_maxsize = connections
        self._client = client.ApiClient(settings)
        self._pool = self._client.rest_client.pool_manager
        self._host = settings.host.rstrip("/")

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        """The decoded answer. Raises Refusal for any status of 400 and above, Unreachable when there is none."""
        headers: dict[str, str] = {"Accept": accept, "User-Agent": "ai-inference-hooks"}
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = self._host + path + (f"?{urlencode(query)}" if query else "")
        payload = None
        if body is not None:
            headers["Content-Type"] = content_type
            payload = json.dumps(body, ensure_ascii=False).encode()
        try:
            answer = self._pool.request(method, url, headers=headers, body=payload, timeout=_TIMEOUT, retries=False)
        except (HTTPError, OSError) as error:
            raise Unreachable(f"{method} {path}: {error}") from error
        decoded = _decoded(answer.data)
        if answer.status >= 400:
            raise Refusal(answer.status, decoded)
        return decoded

    def metadata(self, path: str) -> dict[str, Any] | None:
        """The metadata of an object and nothing else of it; None: there is no such object."""
        try:
            found: dict[str, Any] = self.request("GET", path, accept=_METADATA).get("metadata") or {}
        except Refusal as refusal:
            if refusal.missing:
                return None
            raise
        return found

    def list_metadata(self, path: str, selector: Mapping[str, str]) -> list[dict[str, Any]]:
        """Metadata of all objects under a collection that carry the labels; empty also when the kind is not served."""
        query = {"labelSelector": ",".join(f"{name}={value}" for name, value in selector.items()), "limit": "500"}
        found: list[dict[str, Any]] = []
        while True:
            try:
                page = self.request("GET", path, query=query, accept=_METADATA_LIST)
            except Refusal as refusal:
                if refusal.missing:
                    return found
                raise
            found += [item["metadata"] for item in page.get("items") or ()]
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return found
            query["continue"] = following

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str, force: bool) -> dict[str, Any]:
        """Server-side apply with strict field validation."""
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        return self.request("PATCH", path, query=query, body=body, content_type=APPLY)

    def delete(self, path: str, *, uid: str | None = None) -> None:
        """Delete in the background, and only the object of that uid; an object that is gone already is no error."""
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        try:
            self.request("DELETE", path, body=body)
        except Refusal as refusal:
            if not refusal.missing and not refusal.conflict:
                raise


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(data) if data else {}
    except ValueError:
        return {"message": data[:1024].decode(errors="replace")}
    return decoded if isinstance(decoded, dict) else {}
