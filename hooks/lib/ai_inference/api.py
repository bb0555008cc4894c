# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The API server as the hooks use it: a request in, the object or the server's refusal out.

Thin on purpose: plain objects over one connection pool. Generated models would drop fields that they do not know, and
importing them costs more than everything else that a hook does. Imported only when there is something to write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from lib.ai_inference import access

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
    def replaced(self) -> bool:
        """The object of the uid that was sent is gone, whether or not another has its name."""
        return (self.conflict and not self.terminating) or (self.code == 422 and "metadata.uid" in str(self))

    @property
    def terminating(self) -> bool:
        return "NamespaceTerminating" in self.causes


class Unreachable(Exception):
    """No answer at all: nothing is known about the write. The run fails and is repeated by the operator."""


class Api:
    """Requests over one pool of `connections`, as the service account or KUBECONFIG says. Safe to share by threads."""

    def __init__(self, connections: int = 4) -> None:
        self._access = access.find()
        self._pool = urllib3.PoolManager(maxsize=connections, ssl_context=self._access.tls)

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
        headers = {"Accept": accept, "User-Agent": "ai-inference-hooks", **self._access.headers}
        url = self._access.server + path + (f"?{urlencode(query)}" if query else "")
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

    def data_keys(self, path: str) -> frozenset[str] | None:
        """Which keys of a Secret hold something; None: there is no such Secret.

        Kubernetes has no way to ask for the keys alone. The values are dropped here, unread.
        """
        try:
            return frozenset(key for key, held in (self.request("GET", path).get("data") or {}).items() if held)
        except Refusal as refusal:
            if refusal.missing:
                return None
            raise

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

    def delete(self, path: str, *, uid: str | None = None, version: str | None = None) -> bool:
        """Delete in the background, and only the object of that uid (and resource version); whether it was there."""
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        exact = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value is not None}
        if exact:
            body["preconditions"] = exact
        try:
            self.request("DELETE", path, body=body)
        except Refusal as refusal:
            if not refusal.missing and not refusal.conflict:
                raise
            return False
        return True


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(data) if data else {}
    except ValueError:
        return {"message": data[:1024].decode(errors="replace")}
    return decoded if isinstance(decoded, dict) else {}
