# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`planner serve`: watch the cluster, plan when something changed, write what differs; until told to stop.

The loop holds no rule: it turns the view into a snapshot, asks `decide`, and hands the answer to the writer. It plans
only while it leads, only from a view in which every kind was seen whole, and never while a kind is unsettled. An error
of the planner itself is caught here and nowhere else: the last plan stands, the objects are saved for a replay, and the
next try waits.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import uvicorn
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from planner import garbage, questions, wire
from planner.incremental import Kept
from planner.kube.backoff import Backoff
from planner.kube.client import ApiError, Client, ConnectionLost, connect
from planner.kube.lease import Lease
from planner.kube.resources import Object, watched
from planner.kube.snapshot import Circumstances, Reader, Seen, kubernetes, now, read, replay
from planner.kube.view import View
from planner.kube.watch import Watch
from planner.kube.writer import Writer
from planner.memory import Memory
from planner.metrics import Metrics
from planner.model import Key
from planner.server import BadQuestion, Desk, NotReady, UnknownOrder, application

log = logging.getLogger(__name__)

LEASE: Final = "resource-planner"
QUIET_SECONDS: Final = 0.05
"""Changes closer together than this are planned together …"""
LULL_SECONDS: Final = 0.25
"""… and than this when nobody waits for an answer to any of them: they are what becomes of a plan, step by step, and
whoever makes these steps needs the machine …"""
PATIENCE_SECONDS: Final = 0.5
"""… but none waits longer than this for others."""
TICK_SECONDS: Final = 1.0
"""How often the loop looks up when nothing changes."""
CAPACITY_SECONDS: Final = 10.0
"""How old the capacity in the metrics may become while changes keep coming; a quiet tick brings it up to date."""
BUSY_SECONDS: Final = 300.0
"""Not alive when one round takes longer than this."""
REPLAYS: Final = 5
"""How many replay files are kept."""
SILENT_SECONDS: Final = 30.0
"""Not ready when the API server has been silent for longer: the lease alone asks it every two seconds."""

Json = Mapping[str, Any]
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brain(Generic[S]):
    """What is decided, as functions; `serve` supplies the cluster."""

    snapshot: Callable[[Mapping[str, Sequence[Object]], Circumstances], S]
    """The view's objects by kind. Not called by two threads at once."""
    decide: Callable[[S], Json]
    """Of the answer of `planner plan -o json`: `orders` (`namespace/name` → status.plan) and `classes`."""
    left: Callable[[], Json]
    """Of the same answer: `capacity`, as the last `decide` left it. Called by the thread that decides, and only after a
    `decide` that did not fail."""
    explain: Callable[[S, str], Json]
    what_if: Callable[[S, Json], Json]
    capacity: Callable[[S], Json]
    replay: Callable[[Sequence[Object], Circumstances], Json]
    """What is saved when `decide` fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How `serve` runs; every field is an option of the command."""

    namespace: str = "d8-ai-inference"
    """Where the lease and the class verdicts lie."""
    identity: str = field(default_factory=lambda: f"{os.uname().nodename}-{os.getpid()}")
    """Unique among the planners of one cluster: the pod's name."""
    listen: str = "127.0.0.1:8080"
    catalog: bool = True
    kubeconfig: str | None = None
    """None: $KUBECONFIG, else the pod's service account."""
    replays: Path | None = None
    """Where replay files go; None: nowhere."""
    absent_seconds: float = 60.0
    """How often a kind that is not served is looked for."""
    grace_seconds: float = 30.0
    """How long a kind that cannot be read holds up planning, before what depends on it is called undecidable."""
    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    renew_period_seconds: float = 2.0


class Service(Generic[S]):
    """One running planner. `run` blocks; `stop` may be called from a signal handler or another thread."""

    def __init__(self, brain: Brain[S], settings: Settings, client: Client | None = None) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self._brain = brain
        self._client = client or connect(settings.kubeconfig)
        self.view = View(watched(settings.catalog), grace_seconds=settings.grace_seconds)
        self._watches = [
            Watch(self._client, self.view, resource, absent_seconds=settings.absent_seconds)
            for resource in self.view.resources
        ]
        self.lease = Lease(
            self._client,
            namespace=settings.namespace,
            name=LEASE,
            identity=settings.identity,
            duration=settings.lease_seconds,
            deadline=settings.renew_deadline_seconds,
            period=settings.renew_period_seconds,
            on_change=self.view.wake,
        )
        self._writer = Writer(
            self._client,
            self.view,
            namespace=settings.namespace,
            allowed=lambda: self.lease.held and not self._stopping.is_set(),
            on_error=lambda target, reason: self.metrics.write_errors.labels(target, reason).inc(),
        )
        self._stopping = threading.Event()
        self._reading = threading.Lock()
        self._read: tuple[tuple[int, tuple[str, ...]], S] | None = None
        self._kubernetes: tuple[int, int] | None = None
        self._backoff = Backoff(first=1.0, most=60.0)
        self._looked_up = time.monotonic()
        self._planned: tuple[int, tuple[str, ...]] | None = None
        self._answered: int | None = None
        """What was `asked` of the view when the last plan was begun."""
        self._planned_at: float | None = None
        self._measure_from: float | None = None
        """Since when the capacity in the metrics is of an older plan; None: it is of the last one."""
        self._failures = 0
        self.metrics.live(self._families)

    def stop(self) -> None:
        """End `run` within a second or, while a plan is being made, after it."""
        self._stopping.set()

    def run(self) -> int:
        """Serve until stopped (0), or until somebody else leads or the port is lost (1)."""
        server, thread = self._http()
        for watch in self._watches:
            watch.start()
        self.lease.start()
        try:
            code = self._loop(thread)
        finally:
            self._stopping.set()
            self._writer.close()
            self.lease.release()
            self.metrics.leader.set(0)
            for watch in self._watches:
                watch.stop()
            server.should_exit = True
            thread.join(5.0)
        return code

    def _http(self) -> tuple[uvicorn.Server, threading.Thread]:
        host, _, port = self.settings.listen.rpartition(":")
        desk = Desk(
            alive=self._wrong_with_threads,
            ready=self._wrong_with_view,
            metrics=self.metrics.text,
            explain=lambda order: self._brain.explain(self.snapshot(), order),
            what_if=lambda question: self._brain.what_if(self.snapshot(), question),
            capacity=lambda: self._brain.capacity(self.snapshot()),
        )
        config = uvicorn.Config(
            application(desk),
            host=host.strip("[]") or "127.0.0.1",
            port=int(port),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, name="http", daemon=True)
        thread.start()
        return server, thread

    # The view as a snapshot.

    def snapshot(self) -> S:
        """The snapshot of the current view; the same object as long as nothing changed.

        Raises NotReady until every kind was seen whole once.
        """
        with self._reading:
            missing = self.view.never_listed()
            if missing:
                raise NotReady(
                    "not read yet: " + "; ".join(f"{k} ({d})" if d else k for k, d in sorted(missing.items()))
                )
            mark = self._state()
            if self._read is None or self._read[0] != mark:
                self._read = (mark, self._brain.snapshot(self.view.objects(), self._circumstances(mark[1])))
            return self._read[1]

    def _circumstances(self, unreadable: tuple[str, ...]) -> Circumstances:
        if self._kubernetes is None:
            try:
                version = self._client.request("GET", "/version", timeout=5.0)
            except (ApiError, ConnectionLost) as error:
                raise NotReady(f"the API server's version cannot be read: {error}") from error
            try:
                self._kubernetes = kubernetes(version)
            except ValueError as error:
                raise NotReady(str(error)) from error
        return Circumstances(
            kubernetes=self._kubernetes,
            now=now(),
            catalog=self.settings.catalog,
            absent=self.view.absent(),
            unreadable=unreadable,
        )

    # The loop.

    def _loop(self, http: threading.Thread) -> int:
        retry_at: float | None = None
        while not self._stopping.is_set():
            self._looked_up = time.monotonic()
            if self.lease.lost:
                log.error("another planner leads now: ending")
                return 1
            if not http.is_alive():
                log.error("nobody listens on %s: ending", self.settings.listen)
                return 1
            leads = self.lease.held
            self.metrics.leader.set(1 if leads else 0)
            if not leads and self._planned is not None:
                # Whoever leads next starts from the view alone, also when it is this planner again.
                self._planned, retry_at, self._measure_from = None, None, None
                self.metrics.decided({})
                self.metrics.left({})
            due = retry_at is not None and time.monotonic() >= retry_at
            state = self._state()
            if leads and (due or state != self._planned) and not self._waits():
                if not due:
                    settle(self.view, self._answered)
                retry_at = self._round()
                quiet = False
            else:
                pause = TICK_SECONDS if retry_at is None else min(TICK_SECONDS, max(retry_at - time.monotonic(), 0.01))
                quiet = self.view.wait(state[0], pause) == state[0]
            self._measure(quiet)
        return 0

    def _measure(self, quiet: bool) -> None:
        """Bring the capacity in the metrics up to date: nobody waits for it, so it stands back while orders come."""
        since = self._measure_from
        if since is not None and (quiet or time.monotonic() - since > CAPACITY_SECONDS):
            self.metrics.left(self._brain.left())
            self._measure_from = None

    def _state(self) -> tuple[int, tuple[str, ...]]:
        """What a plan depends on: the view's change count, and what of it cannot be read."""
        return self.view.count, tuple(sorted(self.view.unreadable()))

    def _waits(self) -> bool:
        return bool(self.view.never_listed() or self.view.unsettled())

    def _round(self) -> float | None:
        """Plan once and write; the monotonic time of the next try that is owed, None when nothing is."""
        state, self._answered = self._state(), self.view.asked
        started = time.monotonic()
        try:
            answer = self._brain.decide(self.snapshot())
        except NotReady as error:
            log.warning("%s", error)
            return time.monotonic() + 1.0
        except Exception:  # the one place where an error of the planner itself is caught
            self._failures += 1
            self.metrics.plan_failures.inc()
            delay = self._backoff.delay(self._failures)
            log.exception("no plan could be made (%d in a row, next try in %.0f s); the last one stands%s",
                          self._failures, delay, self._save())  # fmt: skip
            # A change alone does not end the pause: the same objects would fail again, up to many times a second.
            self._planned, self._measure_from = state, None
            self._stopping.wait(min(delay, TICK_SECONDS))
            return time.monotonic() + max(delay - TICK_SECONDS, 0.0)
        self._failures = 0
        took = time.monotonic() - started
        self.metrics.plan_seconds.observe(took)
        self._planned, self._planned_at = state, time.monotonic()
        orders: Mapping[str, Json] = answer.get("orders") or {}
        self.metrics.decided(orders)
        if self._measure_from is None:
            self._measure_from = time.monotonic()
        if self._waits():
            # A watch failed while planning: what was decided may rest on an old view. The plan is made again.
            self._planned = None
            return None
        plans = self._writer.write(orders)
        # What we wrote ourselves is no reason to plan again; any other change is, also one that came meanwhile.
        self._planned = (state[0] + plans.news, state[1])
        self._answered += plans.news
        classes = self._writer.write_classes(answer.get("classes") or {})
        self.metrics.writes.inc(plans.written)
        if plans.written or plans.failed or classes.written or classes.failed:
            log.info("planned %d orders in %.0f ms: %d written, %d failed, %d waiting; classes: %s",
                     len(orders), took * 1000, plans.written, plans.failed, plans.waiting,
                     "written" if classes.written else "failed" if classes.failed else "unchanged")  # fmt: skip
        owed = [seconds for seconds in (plans.next_try, classes.next_try) if seconds is not None]
        return time.monotonic() + min(owed) if owed else None

    def _save(self) -> str:
        """Save what the failed plan was made of; words for the log."""
        folder = self.settings.replays
        if folder is None:
            return ""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        path = folder / f"replay-{stamp}.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for old in sorted(folder.glob("replay-*.json"))[: -(REPLAYS - 1)]:
                old.unlink()
            given = self._circumstances(tuple(sorted(self.view.unreadable())))
            saved = self._brain.replay(list(chain.from_iterable(self.view.objects().values())), given)
            path.write_text(json.dumps(saved, ensure_ascii=False), encoding="utf-8")
        except (OSError, ValueError, NotReady) as error:
            return f"; the replay file cannot be written: {error}"
        return f"; what it was made of is saved in {path}"

    # What probes and scrapes ask.

    def _wrong_with_threads(self) -> str:
        dead = [thread.name for thread in (*self._watches, self.lease) if not thread.is_alive()]
        if dead and not self._stopping.is_set():
            return "ended: " + ", ".join(dead)
        busy = time.monotonic() - self._looked_up
        return f"the loop has been busy for {busy:.0f} s" if busy > BUSY_SECONDS else ""

    def _wrong_with_view(self) -> str:
        missing = self.view.never_listed()
        if missing:
            return "not read yet: " + "; ".join(
                f"{kind} ({detail})" if detail else kind for kind, detail in missing.items()
            )
        if self._client.silent_seconds > SILENT_SECONDS:
            return f"the API server has not answered for {self._client.silent_seconds:.0f} s"
        return ""

    def _families(self) -> list[GaugeMetricFamily | CounterMetricFamily]:
        age = GaugeMetricFamily(
            "ai_inference_planner_snapshot_age_seconds",
            "Seconds since the last plan while a change waits to be planned; 0 when nothing waits.",
        )
        state = self._state()
        waits = self._planned_at is not None and self.lease.held and state != self._planned
        age.add_metric((), time.monotonic() - self._planned_at if waits and self._planned_at is not None else 0.0)
        contact = GaugeMetricFamily(
            "ai_inference_planner_api_silence_seconds", "Seconds since the API server last answered."
        )
        contact.add_metric((), self._client.silent_seconds)
        objects = GaugeMetricFamily("ai_inference_planner_objects", "Objects in the view.", labels=("kind",))
        readable = GaugeMetricFamily(
            "ai_inference_planner_kind_readable",
            "1 while the kind can be read (or is known to be absent), 0 while it cannot.",
            labels=("kind",),
        )
        for kind, about in self.view.state().items():
            objects.add_metric((kind,), about["objects"])
            readable.add_metric((kind,), 1 if about["standing"] in ("Synced", "Absent") else 0)
        restarts = CounterMetricFamily(
            "ai_inference_planner_watch_restarts", "Watches that were opened again.", labels=("kind",)
        )
        lists = CounterMetricFamily(
            "ai_inference_planner_lists", "Whole lists of a kind, the first one included.", labels=("kind",)
        )
        for watch in self._watches:
            restarts.add_metric((watch.resource.kind,), watch.restarts)
            lists.add_metric((watch.resource.kind,), watch.relists)
        return [age, contact, objects, readable, restarts, lists]


def settle(view: View, answered: int | None) -> None:
    """Wait for a short silence, so that a burst of changes becomes one plan.

    answered: what was `asked` of the view when the last plan was begun; None: there was none.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    count = view.count
    while (left := end - time.monotonic()) > 0:
        now = view.wait(count, min(LULL_SECONDS if view.asked == answered else QUIET_SECONDS, left))
        if now == count:
            return
        count = now


def brain() -> Brain[Seen]:
    """The planner's own decision and questions, with the recipes of the shipped release."""

    kept, reader, memory = Kept(), Reader(), Memory()

    def decide(seen: Seen) -> Json:
        plans = kept.decide(seen.snapshot)
        return {
            "orders": memory.result("orders", tuple(plans.values()), lambda once: {
                str(key): once(wire.plan_status, plans[key]) for key in sorted(plans)}),
            "classes": {item.name: wire.class_status(item) for item in kept.planning.classes()},
        }  # fmt: skip

    def left() -> Json:
        return wire.capacity_json(kept.planning.occupancy())

    def explain(seen: Seen, order: str) -> Json:
        namespace, _, name = order.partition("/")
        try:
            return questions.explain(seen.snapshot, Key(namespace=namespace, name=name))
        except questions.NoSuchOrder as error:
            raise UnknownOrder(str(error)) from error

    def what_if(seen: Seen, question: Json) -> Json:
        try:
            edit = _edit(question)
            # An added object is judged strictly: left out, it would answer another question than was asked.
            read(edit.add, seen.circumstances, strict=True)
            after = read(questions.edited(seen.documents, edit), seen.circumstances)
        except (questions.BadEdit, wire.BadInput) as error:
            raise BadQuestion(str(error)) from error
        return questions.what_if(seen.snapshot, after)

    def capacity(seen: Seen) -> Json:
        return questions.capacity(seen.snapshot)

    return Brain(
        snapshot=reader.see, decide=decide, left=left,
        explain=explain, what_if=what_if, capacity=capacity, replay=replay,
    )  # fmt: skip


def _edit(question: Json) -> questions.Edit:
    """The edit that a question's body states: `add` (objects), `remove`, `drain`, `set` (texts). Raises BadQuestion."""
    unknown = sorted(question.keys() - {"add", "remove", "drain", "set"})
    if unknown or not question:
        raise BadQuestion(f"{', '.join(unknown) or 'the question'}: one of add, remove, drain, set is expected")
    parts: dict[str, tuple[Any, ...]] = {}
    for name, kind in (("add", dict), ("remove", str), ("drain", str), ("set", str)):
        given = question.get(name) or []
        if not isinstance(given, list) or not all(isinstance(item, kind) for item in given):
            raise BadQuestion(f"{name}: a list of {'objects' if kind is dict else 'texts'} is expected")
        parts[name] = tuple(given)
    added = tuple(wire.Document(raw=raw, source=f"add[{number}]") for number, raw in enumerate(parts["add"]))
    return questions.Edit(add=added, remove=parts["remove"], drain=parts["drain"], set=parts["set"])


def serve(brain: Brain[S], settings: Settings) -> int:
    """Run a planner until SIGTERM or SIGINT; the exit code of the process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    garbage.seldom()
    service = Service(brain, settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.stop())
    return service.run()
