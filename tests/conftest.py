# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Fixtures of the test bed. What needs it gets the marker `testbed`; `-m "not testbed"` leaves it out.

One control plane per run (`cluster`), shared by everybody: tests make their objects in a namespace of their own
(`namespace`) and their devices through `load_devices`, which removes them again.
"""

import datetime
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed import AddonOperator, Cluster, PlannerProcess, devices

FIXTURES = {"cluster", "operator", "planner", "floor_cluster", "floor_clusters", "own_cluster", "namespace"}
FLOORS: dict[str, dict[str, bool]] = {
    "without gates": {},
    "with DRAPartitionableDevices": {"DRAPartitionableDevices": True},
}
KEPT = Path(__file__).parents[1] / "build" / "testbed-logs"

_failed = pytest.StashKey[bool]()
_kept = pytest.StashKey[list[Path]]()
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_failed] = False
    config.stash[_kept] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("testbed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    if report.failed and item.get_closest_marker("testbed"):
        item.config.stash[_failed] = True
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for path in config.stash[_kept]:
        terminalreporter.write_line(f"logs of the test bed: {path}")


class Floor:
    """Clusters of the oldest supported Kubernetes, each made at its first use and shared afterwards."""

    def __init__(self) -> None:
        self._clusters: dict[frozenset[str], Cluster] = {}

    def __call__(self, *gates: str) -> Cluster:
        """The 1.34 cluster with exactly these feature gates on."""
        key = frozenset(gates)
        if key not in self._clusters:
            made = Cluster(kubernetes="1.34", feature_gates=dict.fromkeys(gates, True))
            self._clusters[key] = made.start()
        return self._clusters[key]

    def stop(self, config: pytest.Config) -> None:
        for made in self._clusters.values():
            stop(made, config)


def stop(cluster: Cluster, config: pytest.Config) -> None:
    """Stop a cluster; its logs are kept when a test of the test bed failed."""
    if config.stash[_failed]:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S")
        config.stash[_kept].append(cluster.keep_logs(KEPT / f"{now}-{cluster.kubernetes}-{next(_numbers)}"))
    cluster.stop()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The control plane of this run, Kubernetes 1.37, with a default storage class and neither nodes nor devices."""
    made = Cluster().start()
    devices.storage(made)
    yield made
    stop(made, request.config)


@pytest.fixture(scope="module")
def own_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A control plane of one test file, for those that break things or run another operator."""
    made = Cluster().start()
    devices.storage(made)
    yield made
    stop(made, request.config)


@pytest.fixture(scope="session")
def operator(cluster: Cluster) -> Iterator[AddonOperator]:
    """addon-operator on `cluster` with the module of this checkout, ready."""
    made = AddonOperator(cluster)
    made.start().wait_ready()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def planner(operator: AddonOperator) -> Iterator[PlannerProcess]:
    """The planner's process with the rendered command and rights."""
    made = PlannerProcess(operator.cluster).start().wait_ready()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def floor_clusters(request: pytest.FixtureRequest) -> Iterator[Floor]:
    """Clusters of 1.34 by feature gates: `floor_clusters("DRAPartitionableDevices", "DRAConsumableCapacity")`."""
    made = Floor()
    yield made
    made.stop(request.config)


@pytest.fixture(scope="session", params=list(FLOORS.values()), ids=list(FLOORS))
def floor_cluster(request: pytest.FixtureRequest, floor_clusters: Floor) -> Cluster:
    """1.34 without feature gates, then with partitions; see `feature_gates` of the cluster."""
    return floor_clusters(*request.param)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of this test alone, on `cluster`; deleted afterwards without waiting."""
    name = f"test-{next(_numbers)}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def load_devices(cluster: Cluster) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """`load_devices("05")` loads a fixture into `cluster`; everything it made goes with the test."""
    made: list[dict[str, Any]] = []

    def load(*fixtures: str | Path) -> list[dict[str, Any]]:
        found = devices.load(cluster, *fixtures)
        made.extend(found)
        return found

    yield load
    devices.unload(cluster, made)
