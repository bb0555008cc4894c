# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""HTTP over the planner's questions, and the answers that probes and Prometheus ask for. No rule of its own.

Loopback only by default: who may ask is decided by the kube-rbac-proxy in front of it
(`inferenceserviceclasses/planner` for `/v1/…`, `deployments/prometheus-metrics` for `/metrics`). Questions are answered
from the current view, on the leader and on the others alike; they change nothing.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from planner.metrics import CONTENT_TYPE

log = logging.getLogger(__name__)

MOST_BODY: Final = 1 << 20
"""The largest what-if question, in bytes."""
AT_ONCE: Final = 2
"""Questions answered at the same time; more would only slow down planning."""

Json = Mapping[str, Any]


class BadQuestion(Exception):
    """The question cannot be understood; the sentence goes to whoever asked."""


class UnknownOrder(Exception):
    """The named order is not there."""


class NotReady(Exception):
    """There is no whole view of the cluster yet; the sentence says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where the answers come from."""

    alive: Callable[[], str]
    """Empty while every thread lives, else what is wrong."""
    ready: Callable[[], str]
    """Empty while the view is whole and the API server answers, else what is wrong."""
    metrics: Callable[[], bytes]
    explain: Callable[[str], Json]
    """`namespace/name` → answer."""
    what_if: Callable[[Json], Json]
    capacity: Callable[[], Json]


def application(desk: Desk) -> Starlette:
    """The ASGI application over `desk`."""
    free = threading.BoundedSemaphore(AT_ONCE)

    def probe(question: Callable[[], str]) -> Callable[[Request], Response]:
        def answer(_: Request) -> Response:
            wrong = question()
            return Response(wrong or "ok", status_code=503 if wrong else 200, media_type="text/plain")

        return answer

    def metrics(_: Request) -> Response:
        return Response(desk.metrics(), headers={"Content-Type": CONTENT_TYPE})

    def answered(question: Callable[[], Json]) -> Response:
        if not free.acquire(timeout=10):
            return _refusal(503, "Busy", "other questions are being answered, ask again")
        try:
            return JSONResponse(question())
        except BadQuestion as error:
            return _refusal(400, "BadQuestion", str(error))
        except UnknownOrder as error:
            return _refusal(404, "UnknownOrder", str(error))
        except NotReady as error:
            return _refusal(503, "NotReady", str(error))
        finally:
            free.release()

    def explain(request: Request) -> Response:
        order = request.query_params.get("order", "")
        if order.count("/") != 1 or order.startswith("/") or order.endswith("/"):
            return _refusal(400, "BadQuestion", "name the order as ?order=NAMESPACE/NAME")
        return answered(lambda: desk.explain(order))

    def capacity(_: Request) -> Response:
        return answered(desk.capacity)

    async def what_if(request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BODY:
                return _refusal(413, "TooLarge", f"a question may have {MOST_BODY} bytes")
        try:
            question = json.loads(body)
        except ValueError as error:
            return _refusal(400, "BadQuestion", f"the body is no JSON: {error}")
        if not isinstance(question, dict):
            return _refusal(400, "BadQuestion", "the body must be a JSON object")
        return await run_in_threadpool(answered, lambda: desk.what_if(question))

    return Starlette(
        routes=[
            Route("/healthz", probe(desk.alive)),
            Route("/readyz", probe(desk.ready)),
            Route("/metrics", metrics),
            Route("/v1/explain", explain),
            Route("/v1/capacity", capacity),
            Route("/v1/what-if", what_if, methods=["POST"]),
        ]
    )


def _refusal(status: int, reason: str, message: str) -> Response:
    return JSONResponse({"reason": reason, "message": message}, status_code=status)
