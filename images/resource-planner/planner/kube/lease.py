# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The leader's lease: at most one planner writes.

A holder renews every `period` seconds and stops considering itself the leader `deadline` seconds after the last *start*
of a successful renewal, by its own monotonic clock; another planner takes over only after it has watched the record
stand unchanged for `duration` seconds by its own clock. Clocks are never compared. With deadline + the longest write
(`WRITE_SECONDS` in `writer`) < duration, two planners never write at once, however slow the network is.

A holder that cannot reach the API server stops writing and goes on as a candidate: a restarted API server costs no
restart of the planner. A holder that finds somebody else in its place has been away (frozen, partitioned) and must end.

The package's own elector is not used: it decides by the wall clock of the record, has no release, and offers no
question "may I still write" that is answered without a request.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from planner.kube.client import ApiError, Client, ConnectionLost

log = logging.getLogger(__name__)


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Lease(threading.Thread):
    """Takes and renews one Lease; a daemon thread that ends when somebody else took it over or when it is released."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        duration: float = 15.0,
        deadline: float = 10.0,
        period: float = 2.0,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`identity` must be unique among the candidates; `on_change` is called when the lease is taken or lost."""
        super().__init__(name="lease", daemon=True)
        self.identity = identity
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._namespace, self._name = namespace, name
        self._duration, self._deadline, self._period = duration, deadline, period
        self._on_change = on_change
        self._halted = threading.Event()
        self._renewed: float | None = None
        self._led = False
        self._lost = False
        self._seen: tuple[str, float] | None = None
        """Resource version of the last seen record and when it was first seen (monotonic)."""

    @property
    def held(self) -> bool:
        """Whether this planner may write now; answered from the local clock, without a request."""
        renewed = self._renewed
        return not self._lost and renewed is not None and time.monotonic() - renewed < self._deadline

    @property
    def lost(self) -> bool:
        """Whether somebody else leads after this planner did: the process must end."""
        return self._lost

    def run(self) -> None:
        while not self._halted.is_set():
            started = time.monotonic()
            try:
                mine = self._take_or_renew()
            except (ApiError, ConnectionLost) as error:
                log.warning("the lease cannot be %s: %s", "renewed" if self._led else "taken", error)
                mine = None
            if mine:
                before = self.held
                self._renewed, self._led = started, True
                if not before:
                    log.info("%s leads", self.identity)
                    self._on_change()
            elif self._led and mine is False:
                self._lost = True
                log.error("somebody else leads now")
                self._on_change()
                return
            self._halted.wait(self._period)

    def release(self, timeout: float = 5.0) -> None:
        """Stop renewing and, if held, leave the lease free for the next candidate at once."""
        self._halted.set()
        self.join(timeout)
        if not self.held:
            return
        self._lost = True
        try:
            record = self._client.request("GET", f"{self._collection}/{self._name}", timeout=timeout)
            if record["spec"].get("holderIdentity") == self.identity:
                record["spec"] = {**record["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                self._client.request("PUT", f"{self._collection}/{self._name}", body=record, timeout=timeout)
        except (ApiError, ConnectionLost) as error:
            log.warning("the lease stays until it expires: %s", error)

    def _take_or_renew(self) -> bool | None:
        """True: ours now. False: somebody else's. None: nobody can tell."""
        timeout = self._deadline / 2
        try:
            record = self._client.request("GET", f"{self._collection}/{self._name}", timeout=timeout)
        except ApiError as error:
            if error.status != 404:
                raise
            return self._write(None, transitions=0, timeout=timeout)
        spec = record.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        transitions = int(spec.get("leaseTransitions") or 0)
        if holder == self.identity:
            # A record of this name from an earlier life of the same pod is ours as well: it writes no more.
            return self._write(record, transitions=transitions, timeout=timeout)
        if self._led and holder:
            return False
        now, version = time.monotonic(), str(record["metadata"]["resourceVersion"])
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, now)
        stated = float(spec.get("leaseDurationSeconds") or self._duration)
        if holder and now - self._seen[1] < stated:
            return False
        return self._write(record, transitions=transitions + 1, timeout=timeout)

    def _write(self, record: dict[str, Any] | None, *, transitions: int, timeout: float) -> bool | None:
        now = _micro(datetime.now(UTC))
        old = (record or {}).get("spec") or {}
        kept = old.get("acquireTime") if old.get("holderIdentity") == self.identity else None
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": (record or {}).get("metadata") or {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": max(1, round(self._duration)),
                "acquireTime": kept or now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }
        try:
            if record is None:
                self._client.request("POST", self._collection, body=body, timeout=timeout)
            else:
                self._client.request("PUT", f"{self._collection}/{self._name}", body=body, timeout=timeout)
        except ApiError as error:
            if error.status != 409:
                raise
            # Somebody wrote in between: the next look tells whether another candidate or only a label.
            return None
        return True
