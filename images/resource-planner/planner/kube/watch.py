# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""One thread per kind keeps the view of that kind true: list in pages, then watch from there, for ever.

* 410, as a status or as an ERROR line of a 200 answer: list anew.
* A lost connection: watch on from the last seen version, after a pause that grows.
* 403, 5xx and the like: the kind is marked as failing, the last view stays, tried again after a pause that grows.
* 404 on an optional kind: it is absent, looked for again once a minute.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from typing import Final

from planner.kube.backoff import Backoff
from planner.kube.client import ApiError, Client, ConnectionLost, Lines
from planner.kube.resources import Resource
from planner.kube.view import Listed, Standing, View

log = logging.getLogger(__name__)

SILENCE_SECONDS: Final = 150.0
"""Bookmarks come once a minute; a longer silence is a dead connection."""
ABSENT_SECONDS: Final = 60.0
"""How often a kind that is not served is looked for."""


def whole(client: Client, resource: Resource) -> tuple[Listed, str, str]:
    """All objects of a kind, cut to what is kept; the version to watch from; the API version that served them.

    The API versions of the kind are asked in their order until one is served. An expired page token starts the list
    again without pages, which is one answer of any size but cannot expire. Raises ApiError and ConnectionLost.
    """
    for number, version in enumerate(resource.versions):
        try:
            try:
                found, resource_version = _pages(client, resource, version, resource.page)
            except ApiError as error:
                if error.status != 410:
                    raise
                found, resource_version = _pages(client, resource, version, 0)
        except ApiError as error:
            if error.status == 404 and number + 1 < len(resource.versions):
                continue
            raise
        return found, resource_version, version
    raise AssertionError("a resource without versions")


def _pages(client: Client, resource: Resource, version: str, limit: int) -> tuple[Listed, str]:
    found: Listed = {}
    query = dict(resource.query)
    if limit:
        query["limit"] = str(limit)
    while True:
        page = client.request("GET", resource.path(version), query=query)
        for item in page.get("items") or ():
            metadata = item["metadata"]
            key = (metadata.get("namespace") or "", metadata["name"])
            found[key] = (int(metadata["resourceVersion"]), resource.cut(item, version))
        token = (page.get("metadata") or {}).get("continue")
        if not token:
            return found, str(page["metadata"]["resourceVersion"])
        query["continue"] = token


class Watch(threading.Thread):
    """Keeps one kind of the view; a daemon thread that never ends by itself."""

    def __init__(
        self,
        client: Client,
        view: View,
        resource: Resource,
        *,
        backoff: Backoff | None = None,
        absent_seconds: float = ABSENT_SECONDS,
    ) -> None:
        super().__init__(name=f"watch-{resource.plural}", daemon=True)
        self.resource = resource
        self.restarts = 0
        """How often a watch was opened again, for whatever cause."""
        self.relists = 0
        """How often the whole kind was listed, the first time included."""
        self._client = client
        self._view = view
        self._backoff = backoff or Backoff()
        self._absent_seconds = absent_seconds
        self._halted = threading.Event()
        self._lines: Lines | None = None
        self._served = resource.versions[0]

    def stop(self) -> None:
        """End the thread soon, also when it is blocked in a watch."""
        self._halted.set()
        lines = self._lines
        if lines is not None:
            lines.close()

    def run(self) -> None:
        version: str | None = None
        failures = 0
        while not self._halted.is_set():
            pause = 0.0
            try:
                if version is None:
                    version = self._list()
                    failures = 0
                    self._view.standing(self.resource, Standing.SYNCED)
                version, events = self._follow(version)
                # A watch that ends at once and empty would otherwise be opened again without a pause.
                failures = 0 if events else failures + 1
                pause = 0.0 if events else min(self._backoff.delay(failures), 1.0)
            except ConnectionLost as error:
                failures += 1
                pause = self._failed(f"connection lost: {error}", failures)
                version = self._last or version
            except ApiError as error:
                failures += 1
                if error.status == 410:
                    log.info("%s: the version to watch from has expired, listing anew", self.resource.plural)
                    version, pause = None, self._backoff.delay(failures) if failures > 1 else 0.0
                elif error.status == 404 and self.resource.optional:
                    self._view.standing(self.resource, Standing.ABSENT)
                    version, pause = None, self._absent_seconds * random.uniform(0.5, 1.0)
                else:
                    version, pause = None, self._failed(str(error), failures)
            self.restarts += 1
            self._halted.wait(pause)

    _last: str | None = None

    def _failed(self, detail: str, failures: int) -> float:
        if self._halted.is_set():
            return 0.0
        pause = self._backoff.delay(failures)
        if failures in (1, 2) or failures % 10 == 0:
            log.warning("%s cannot be read (%d in a row, next try in %.1f s): %s",
                        self.resource.plural, failures, pause, detail)  # fmt: skip
        self._view.standing(self.resource, Standing.FAILING, detail)
        return pause

    def _list(self) -> str:
        """Read the whole kind into the view; the version to watch from."""
        self._last = None
        found, resource_version, self._served = whole(self._client, self.resource)
        self.relists += 1
        self._view.replace(self.resource, found)
        return resource_version

    def _follow(self, version: str) -> tuple[str, int]:
        """Carry events into the view until the server ends the watch; the last seen version and the count of lines."""
        query = {
            **self.resource.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(random.randint(300, 600)),
        }
        self._last = version
        events = 0
        with self._client.lines(self.resource.path(self._served), query=query, silence=SILENCE_SECONDS) as lines:
            self._lines = lines
            if self._halted.is_set():
                return version, events
            self._view.standing(self.resource, Standing.SYNCED)
            for line in lines:
                events += 1
                self._take(line)
        return self._last, events

    def _take(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except ValueError as error:
            raise ConnectionLost("half a line of a watch") from error
        kind, raw = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            raise ApiError(int(raw.get("code") or 500), str(raw.get("reason")), str(raw.get("message")))
        if kind in ("ADDED", "MODIFIED"):
            self._view.put(self.resource, raw, self._served)
        elif kind == "DELETED":
            self._view.remove(self.resource, raw)
        self._last = str(raw["metadata"]["resourceVersion"])
