# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Plans and class verdicts become server-side applies: `status.plan` of orders, one ConfigMap for the classes.

The planner's field manager owns nothing but these. A plan is written only when it differs from what stands, a few
orders at a time; an order that refuses its plan is tried again alone, later and later, and holds up nobody else. Before
each request `allowed` is asked, so that a planner which is no longer the leader stops between two writes.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from planner.kube.backoff import Backoff
from planner.kube.client import APPLY, ApiError, Client, ConnectionLost
from planner.kube.resources import ORDERS, OWN
from planner.kube.view import View

log = logging.getLogger(__name__)

MANAGER: Final = "ai-inference-planner"
CLASSES: Final = "resource-planner-classes"
"""The ConfigMap with the verdict on each class: key `<class>.json`."""
WRITE_SECONDS: Final = 4.0
"""The longest silence in one write; see `lease` for why it must stay short."""
WRITERS: Final = 4
TRIES: Final = 3
"""How often a plan is written at once when somebody else writes the order between our look and our write."""
REPEAT_SECONDS: Final = 300.0
"""How often an unchanged ConfigMap is applied again, in case somebody edited or removed it."""

Json = Mapping[str, Any]


def canonical(value: Any) -> str:
    """JSON text that is equal for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(slots=True)
class _Attempt:
    """What was last written to an order (or tried), and what came of it."""

    wanted: str
    stands: str | None = None
    """What the API server made of it: it drops fields it does not know, and such a plan must not be written again."""
    failures: int = 0
    not_before: float = 0.0
    news: bool = False
    """Whether the answer changed the view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one round of writing did: counts of orders."""

    written: int = 0
    failed: int = 0
    waiting: int = 0
    """Orders whose last write failed and whose next try is not due."""
    news: int = 0
    """Changes of the view that these writes made: they need no further plan."""
    next_try: float | None = None
    """Seconds until the earliest of the tries that are still owed; None: nothing is owed."""


class Writer:
    """The one writer of plans."""

    def __init__(
        self,
        client: Client,
        view: View,
        *,
        namespace: str,
        allowed: Callable[[], bool],
        on_error: Callable[[str, str], None] = lambda target, reason: None,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`namespace` holds the ConfigMap; `on_error` is told the target (`order`, `classes`) and the reason word."""
        self._client, self._view, self._namespace = client, view, namespace
        self._allowed, self._on_error = allowed, on_error
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._attempts: dict[tuple[str, str, str], _Attempt] = {}
        self._carried: dict[tuple[str, str, str], tuple[Json, Json]] = {}
        """Orders that were found to carry their plan: the very objects that were compared."""
        self._classes = _Attempt(wanted="")
        self._pool = ThreadPoolExecutor(WRITERS, thread_name_prefix="write")

    def close(self) -> None:
        """Wait for the writes under way and take no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def write(self, plans: Mapping[str, Json]) -> Written:
        """Bring `status.plan` of every order (`namespace/name` → plan) to what `plans` says.

        An order without an entry is left alone, and so is one that is gone or being deleted. Returns after every write
        has an answer; an order's refusal is logged, counted and owed a new try, never raised.
        """
        standing = self._view.of(ORDERS)
        now = self._clock()
        due: list[tuple[tuple[str, str, str], Json, str]] = []
        alive = set()
        owed: list[float] = []
        for key, order in standing.items():
            metadata = order["metadata"]
            plan = plans.get("/".join(key))
            if plan is None or metadata.get("deletionTimestamp"):
                continue
            target = (*key, str(metadata["uid"]))
            alive.add(target)
            compared = self._carried.get(target)
            if compared is not None and compared[0] is order and compared[1] is plan:
                continue
            wanted = canonical(plan)
            stands = canonical((order.get("status") or {}).get("plan"))
            attempt = self._attempts.get(target)
            if stands == wanted:
                self._attempts.pop(target, None)
                self._carried[target] = order, plan
            elif attempt is not None and attempt.wanted == wanted and attempt.stands == stands:
                continue
            elif attempt is not None and attempt.wanted == wanted and attempt.not_before > now:
                owed.append(attempt.not_before)
            else:
                due.append((target, plan, wanted))
        for kept in (self._attempts, self._carried):
            for gone in kept.keys() - alive:
                del kept[gone]
        answers = list(self._pool.map(self._write_one, due))
        failed = [a.not_before for a in answers if a is not None and a.failures]
        return Written(
            written=sum(1 for a in answers if a is not None and not a.failures),
            failed=len(failed),
            waiting=len(owed),
            news=sum(1 for a in answers if a is not None and a.news),
            next_try=max(min(owed + failed) - self._clock(), 0.0) if owed or failed else None,
        )

    def _write_one(self, item: tuple[tuple[str, str, str], Json, str]) -> _Attempt | None:
        target, plan, wanted = item
        namespace, name, uid = target
        if not self._allowed():
            return None
        before = self._attempts.get(target)
        try:
            answer = self._apply(namespace, name, uid, plan)
            if answer is None:
                return None  # made again (the watch will say so), or not ours to write any more
        except (ApiError, ConnectionLost) as error:
            if isinstance(error, ApiError) and error.status == 404:
                return None
            attempt = self._failure(before, wanted, "order", f"{namespace}/{name}", error)
            self._attempts[target] = attempt
            return attempt
        news = self._view.put(ORDERS, answer, OWN)
        stands = canonical((answer.get("status") or {}).get("plan"))
        if stands != wanted:
            log.error("%s/%s: the API server keeps another plan than was written: wrote %s, stands %s",
                      namespace, name, wanted, stands)  # fmt: skip
            self._on_error("order", "PlanAltered")
        attempt = _Attempt(wanted=wanted, stands=stands, news=news)
        self._attempts[target] = attempt
        return attempt

    def _apply(self, namespace: str, name: str, uid: str, plan: Json) -> Json | None:
        """The order as the API server keeps it with its plan; None: it is of another uid now, or we lead no longer.

        An order made again under the same name must not get the plan of the old one. A uid in the body does not help:
        the API server drops metadata from a status of a custom resource before it compares it. The resource version is
        compared, so the plan is written to the very object that was looked at. Raises ApiError and ConnectionLost.
        """
        path = f"/apis/{OWN}/namespaces/{namespace}/{ORDERS.plural}/{name}"
        tries = 0
        while True:
            found = self._client.request("GET", path, timeout=WRITE_SECONDS)["metadata"]
            if found["uid"] != uid or not self._allowed():
                return None
            body = {
                "apiVersion": OWN,
                "kind": ORDERS.kind,
                "metadata": {"name": name, "namespace": namespace, "resourceVersion": found["resourceVersion"]},
                "status": {"plan": plan},
            }
            try:
                return self._patch(f"{path}/status", body)
            except ApiError as error:
                tries += 1
                if error.status != 409 or tries == TRIES:
                    raise
        raise AssertionError("unreachable")

    def write_classes(self, verdicts: Mapping[str, Json]) -> Written:
        """Bring the ConfigMap of class verdicts to what `verdicts` (class → verdict) says.

        A class that is gone loses its key. The first call writes whatever it is given, later ones only a difference to
        the last success, and with back-off after a failure. The ConfigMap is not watched, so an equal one is applied
        again every `REPEAT_SECONDS`.
        """
        data = {f"{name}.json": canonical(verdict) for name, verdict in sorted(verdicts.items())}
        wanted, now, last = canonical(data), self._clock(), self._classes
        if last.wanted == wanted and last.stands == wanted and now - last.not_before < REPEAT_SECONDS:
            return Written()
        if last.wanted == wanted and last.not_before > now:
            return Written(waiting=1, next_try=last.not_before - now)
        if not self._allowed():
            return Written()
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": CLASSES,
                "namespace": self._namespace,
                "labels": {"heritage": "deckhouse", "module": "ai-inference", "app": "resource-planner"},
            },
            "data": data,
        }
        try:
            self._patch(f"/api/v1/namespaces/{self._namespace}/configmaps/{CLASSES}", body)
        except (ApiError, ConnectionLost) as error:
            self._classes = self._failure(last, wanted, "classes", f"{self._namespace}/{CLASSES}", error)
            return Written(failed=1, next_try=max(self._classes.not_before - self._clock(), 0.0))
        self._classes = _Attempt(wanted=wanted, stands=wanted, not_before=now)
        return Written(written=1)

    def _patch(self, path: str, body: Json) -> Json:
        """Server-side apply as the planner's field manager. Raises ApiError and ConnectionLost."""
        return self._client.request(
            "PATCH",
            path,
            query={"fieldManager": MANAGER, "force": "true"},
            body=body,
            content_type=APPLY,
            timeout=WRITE_SECONDS,
        )

    def _failure(
        self, before: _Attempt | None, wanted: str, target: str, name: str, error: ApiError | ConnectionLost
    ) -> _Attempt:
        failures = (before.failures if before is not None and before.wanted == wanted else 0) + 1
        delay = self._backoff.delay(failures)
        reason = error.reason if isinstance(error, ApiError) else "ConnectionLost"
        log.warning("%s %s is not written (try %d, next in %.1f s): %s", target, name, failures, delay, error)
        self._on_error(target, reason)
        return _Attempt(wanted=wanted, failures=failures, not_before=self._clock() + delay)
