# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""An address on loopback that takes what a hook applies and keeps it as files, where no cluster is at hand.

It stands where the API server would: what is looked up is absent, what is applied becomes a manifest. It judges
nothing; the test bed has the real server. The value of a token is not kept.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

UIDS = "{:08d}-0000-4000-8000-000000000000"


class Recorder:
    """What was applied, in the order in which it came; statuses by `namespace/name` of the order."""

    def __init__(self) -> None:
        self.applied: list[dict[str, Any]] = []
        self.statuses: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    async def answer(self, request: Request) -> JSONResponse:
        """404 to a look-up, the object itself to a write."""
        if request.method == "GET":
            return JSONResponse({"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"}, 404)
        body = await request.json()
        with self._lock:
            if request.url.path.endswith("/status"):
                self.statuses[f"{body['metadata']['namespace']}/{body['metadata']['name']}"] = body["status"]
            elif "/events" not in request.url.path and not request.url.path.endswith("/scale"):
                body.setdefault("kind", "Secret" if "/secrets" in request.url.path else "Unknown")
                self.applied.append(body)
            number = len(self.applied)
        return JSONResponse({**body, "metadata": {**body.get("metadata", {}), "uid": UIDS.format(number)}})

    def write(self, folder: Path) -> int:
        """One file an object, `<namespace>/<order>/<kind>-<name>.yaml`; how many were written."""
        for item in self.applied:
            meta = item["metadata"]
            order = meta.get("labels", {}).get("ai-inference.deckhouse.io/inference-service", meta["name"])
            target = folder / meta["namespace"] / order
            target.mkdir(parents=True, exist_ok=True)
            kept = {key: value for key, value in item.items() if key not in ("data", "stringData")}
            file = target / f"{item['kind'].lower()}-{meta['name']}.yaml"
            file.write_text(yaml.safe_dump(kept, sort_keys=False, width=120, allow_unicode=True))
        return len(self.applied)


@contextmanager
def serving(recorder: Recorder, folder: Path) -> Iterator[Path]:
    """Serve on a free loopback port; the path of a kubeconfig that points there."""
    routes = [Route("/{path:path}", recorder.answer, methods=["GET", "POST", "PATCH", "PUT", "DELETE"])]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the recorder did not start")
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "demo",
        "clusters": [{"name": "demo", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "demo", "user": {}}],
        "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "demo"}}],
    }  # fmt: skip
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    try:
        yield path
    finally:
        server.should_exit = True
        thread.join(5)
