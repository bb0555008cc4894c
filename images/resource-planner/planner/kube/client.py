# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Plain requests to the API server: JSON in, JSON out, and one stream of lines for watches.

The `kubernetes` package supplies what is tedious (kubeconfig, in-cluster token and its rotation, TLS, proxies); its
generated models are not used, because they would cost more memory than the objects themselves and hide unknown fields.
Nothing is retried here: who calls knows whether a repetition is safe and how long it may take.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config
from urllib3.exceptions import HTTPError

APPLY: Final = "application/apply-patch+yaml"
JSON: Final = "application/json"

CONNECT_SECONDS: Final = 5.0
"""How long a connection may take to open."""
READ_SECONDS: Final = 30.0
"""How long an answer may pause; a list page of a large cluster takes a few seconds."""


class ApiError(Exception):
    """The API server's refusal: HTTP status, its `reason` word and its sentence."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class ConnectionLost(Exception):
    """No answer: the server cannot be reached, went away in mid-sentence, or was silent for too long."""


class Lines:
    """An open stream of JSON lines; closing it from another thread ends the iteration with `ConnectionLost`."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        try:
            for chunk in self._response.stream(None, decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line)
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            # ValueError and AttributeError are what a read meets when another thread closed the response.
            raise ConnectionLost(str(error)) from error
        if rest.strip():
            yield rest

    def close(self) -> None:
        """End the stream, also under a thread that is blocked in it."""
        try:
            self._response.shutdown()
        except (HTTPError, OSError, ValueError, RuntimeError, AttributeError):
            self._response.close()


class Client:
    """One API server with one identity; safe to use from many threads."""

    def __init__(self, configuration: Any, connections: int = 32) -> None:
        configuration.connection_pool_maxsize = connections
        configuration.retries = False
        self._configuration = configuration
        self._pool: urllib3.PoolManager = kubernetes_client.ApiClient(configuration).rest_client.pool_manager
        self._contact: float | None = None

    @property
    def silent_seconds(self) -> float:
        """Seconds since the API server last answered anything but a 5xx; infinite before its first answer."""
        return float("inf") if self._contact is None else time.monotonic() - self._contact

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
        timeout: float = READ_SECONDS,
    ) -> dict[str, Any]:
        """The JSON object that the API server answers.

        `timeout` bounds in seconds the silence between two pieces of the answer. Raises ApiError for a refusal and
        ConnectionLost when there is no whole answer; a write may have happened in the latter case.
        """
        response = self._send(method, path, query=query, body=body, content_type=content_type, timeout=timeout)
        try:
            data = response.read(decode_content=True)
        except (HTTPError, OSError) as error:
            raise ConnectionLost(str(error)) from error
        finally:
            response.release_conn()
        return self._answer(response.status, data)

    @contextmanager
    def lines(self, path: str, *, query: Mapping[str, str], silence: float) -> Iterator[Lines]:
        """An open watch: lines as they come. More than `silence` seconds without a byte is `ConnectionLost`."""
        response = self._send("GET", path, query=query, body=None, content_type=JSON, timeout=silence)
        try:
            if response.status != 200:
                try:
                    data = response.read(decode_content=True)
                except (HTTPError, OSError) as error:
                    raise ConnectionLost(str(error)) from error
                self._answer(response.status, data)
            yield Lines(response)
        finally:
            response.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        content_type: str,
        timeout: float,
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": JSON, "User-Agent": "ai-inference-planner"}
        if body is not None:
            headers["Content-Type"] = content_type
        token = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        try:
            response = self._pool.request(
                method,
                url,
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=timeout),
                retries=False,
                preload_content=False,
            )
        except (HTTPError, OSError) as error:
            raise ConnectionLost(str(error)) from error
        if response.status < 500:
            self._contact = time.monotonic()
        return response

    @staticmethod
    def _answer(status: int, data: bytes) -> dict[str, Any]:
        try:
            content = json.loads(data) if data else {}
        except ValueError:
            content = {}
        if not isinstance(content, dict):
            content = {}
        if not 200 <= status < 300:
            text = str(content.get("message") or data[:300].decode(errors="replace"))
            raise ApiError(status, str(content.get("reason") or status), text)
        if not content:
            raise ConnectionLost("an answer that is no JSON object")
        return content


def connect(kubeconfig: str | None = None) -> Client:
    """A client from a kubeconfig (the argument, else $KUBECONFIG), and without one from the pod's own service account.

    Raises kubernetes.config.ConfigException when there is neither.
    """
    configuration = kubernetes_client.Configuration()
    path = kubeconfig or os.environ.get("KUBECONFIG")
    if path:
        kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=path, client_configuration=configuration
        )
    else:
        kubernetes_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    return Client(configuration)
