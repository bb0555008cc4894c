# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The planner's feasibility against recorded answers of the real allocators.

Where a file marks an upstream defect (or says what an exhaustive search written from the API text found), the text of
the API is the truth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from planner import allocation, dra

from tests.contract import answers, record_allocators

DRA = answers.FIXTURES
RECORD = DRA.parent / "allocator-answers.json"
VERSIONS = {"1.34": (1, 34), "1.35": (1, 35), "1.36": (1, 36), "1.37": (1, 37)}

API_TEXT: Mapping[str, Mapping[str, str]] = {
    "h100-four-distinct-root": {"1.34": "allocated", "1.35": "allocated"},
    "h100-five-distinct-root": {"1.34": "none", "1.35": "none"},
    "a100-split-15x1g": {"1.35": "none"},
    "dh-count-2-share": {"1.35": "allocated"},
    "dh-count-3-share": {"1.35": "none"},
    "mix-unguarded": {"1.34": "error", "1.35": "error"},
    "share-mem-fill-then-next": {"1.34": "allocated"},
    "share-ex-both-second": {"1.34": "allocated"},
    "pool-incomplete": {"1.34": "allocated"},
    "dh134-physical-and-mig-conflict": {"1.34": "allocated"},
    "two-drivers-both": {"1.35": "allocated", "1.36": "allocated", "1.37": "allocated"},
}
"""What the API says in the scenarios that `golden.json` marks with an upstream defect."""

UNMARKED = {"a100-split-2x1g-same-parent": "allocated"}
"""Scenarios whose recorded answer is an upstream defect that the file does not mark, with what the API says.

Two partitions of the free second card are asked. 1.35.6, 1.36.2 and 1.37.0-alpha.2 keep the counters of every device
that the constraint refuses and answer none (kubernetes issue 140436); 1.37.2 has the fix and allocates: measured with
`go-allocator`.
"""

LEFT_OUT = frozenset({"102-420", "202-459"})
"""Random clusters where 1.37.2 lets `All` fail on a matching shareable device without room.

Every release before it, 1.37.0-alpha.2 included, leaves such a device out, and so do the recorded files.
"""


def golden() -> list[dict[str, Any]]:
    scenarios: list[dict[str, Any]] = json.loads((DRA / "golden.json").read_text())["scenarios"]
    return scenarios


def wanted(scenario: Mapping[str, Any], version: str) -> str:
    recorded = scenario["expect"][version]
    if "upstreamDefect" in recorded:
        return API_TEXT[scenario["id"]][version]
    return UNMARKED.get(scenario["id"]) or str(recorded["outcome"])


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_scenarios_are_answered_as_the_real_allocator_does(version: str) -> None:
    given = {answer["id"]: answer["outcome"] for answer in answers.answers(DRA / "golden.json", VERSIONS[version], DRA)}
    scenarios = [scenario for scenario in golden() if version in scenario["expect"]]
    assert len(scenarios) == {"1.34": 66, "1.35": 89, "1.36": 89, "1.37": 89}[version]
    assert {scenario["id"]: given[scenario["id"]] for scenario in scenarios} == {
        scenario["id"]: wanted(scenario, version) for scenario in scenarios
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_the_devices_are_the_ones_that_the_real_allocator_gives(version: str) -> None:
    """The search goes in the scheduler's order, so even the first solution is the same, consumption included."""
    different = {}
    for scenario in golden():
        recorded = scenario["expect"].get(version, {})
        if recorded.get("outcome") != "allocated" or "upstreamDefect" in recorded:
            continue
        given = [
            {
                "request": one.request,
                "driver": one.device.driver,
                "pool": one.device.pool,
                "device": one.device.name,
                "shared": one.consumed is not None,
                **({"consumed": dict(one.consumed)} if one.consumed else {}),
            }
            for one in ask(scenario, VERSIONS[version]).given
        ]
        want = [
            {
                **device,
                **(
                    {"consumed": {name: dra.read_amount(value, name) for name, value in device["consumed"].items()}}
                    if device.get("consumed")
                    else {}
                ),
            }
            for device in recorded["devices"]
        ]
        if given != want:
            different[scenario["id"]] = (given, want)
    # Before 1.36 pools are tried in an order that varies from run to run.
    tolerated = set() if VERSIONS[version] >= (1, 36) else {"pool-old-generation", "pool-network"}
    assert {name: found for name, found in different.items() if name not in tolerated} == {}


def ask(scenario: Mapping[str, Any], version: tuple[int, int]) -> allocation.Outcome:
    objects = answers.fixture(DRA / scenario["fixture"])
    return allocation.placeable(
        slices=[dra.read_slice(item) for item in objects["ResourceSlice"]],
        claims=[dra.read_claim(item) for item in scenario["claims"]],
        held=[dra.read_claim(item) for item in scenario["existing"] or []],
        device_classes=[dra.read_device_class(item) for item in objects["DeviceClass"]],
        node=answers.node_named(scenario["node"], objects),
        kubernetes=version,
        gates=answers.gates(scenario["enabledGates"]),
    )


@pytest.mark.parametrize("version", ["1.35", "1.36", "1.37"])
@pytest.mark.parametrize(("name", "count"), [("random-golden.jsonl", 500), ("random-upstream-defects.jsonl", 100)])
def test_random_clusters_are_answered_by_the_text_of_the_api(name: str, count: int, version: str) -> None:
    given = {answer["id"]: answer["outcome"] for answer in answers.answers(DRA / name, VERSIONS[version], DRA)}
    cases = [json.loads(line) for line in (DRA / name).read_text().splitlines()]
    want = {case["id"]: case["byApiText"] for case in cases if "id" in case}
    assert len(want) == count
    assert given == want


def outcomes(run: Mapping[str, Any], version: tuple[int, int]) -> str:
    """The planner's answers to a recorded run, a letter each."""
    return "".join(
        allocation.placeable(
            slices=[dra.read_slice(item) for item in question["slices"]],
            claims=[dra.read_claim(item) for item in question["claims"]],
            held=[dra.read_claim(item) for item in question["existing"]],
            device_classes=[dra.read_device_class(item) for item in question["classes"]],
            node=dra.read_node(question["node"]),
            kubernetes=version,
            gates=answers.gates(question["gates"]),
        ).verdict.value[0]
        for question in record_allocators.questions(run["kind"], run["seed"], run["count"])
    )


@pytest.mark.parametrize("number", range(len(record_allocators.RUNS)))
def test_seeded_random_clusters_are_answered_as_kubernetes_1_37_2_does(number: int) -> None:
    """Only an `All` member refused by a constraint may differ: upstream makes an error of it, the API says no."""
    run = json.loads(RECORD.read_text())["runs"][number]
    lines = record_allocators.asked(run["kind"], run["seed"], run["count"])
    assert record_allocators.fingerprint(lines) == run["questions"], "the recorded answers are to other questions"
    given = outcomes(run, (1, 37))
    different = [
        f"{run['kind']} {run['seed']}-{place}: {ours}, recorded {theirs}"
        for place, (ours, theirs) in enumerate(zip(given, run["answers"], strict=True))
        if ours != theirs and theirs != "c" and f"{run['seed']}-{place}" not in LEFT_OUT
    ]
    assert different == []
    assert outcomes(run, (1, 36)) == given, "1.36 and 1.37 differ in nothing that these clusters have"


@pytest.mark.skipif(
    "REAL_ALLOCATORS" not in os.environ,
    reason="REAL_ALLOCATORS is not set: the folder with what tests/contract/go-allocator/build.sh builds (needs Go)",
)
def test_a_fresh_run_of_the_real_allocator_gives_the_recorded_answers() -> None:
    binary = Path(os.environ["REAL_ALLOCATORS"]) / "allocator-1.37"
    run = json.loads(RECORD.read_text())["runs"][0]
    assert (
        record_allocators.letters(binary, record_allocators.asked(run["kind"], run["seed"], run["count"]))
        == run["answers"]
    )


def test_the_tool_prints_one_object_a_line_and_says_what_it_cannot_read(tmp_path: Path) -> None:
    tool = Path(answers.__file__)
    path = DRA / "golden.json"
    done = subprocess.run(
        [sys.executable, tool, path, "--kubernetes", "1.36", "--fixtures", DRA], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in printed] == [scenario["id"] for scenario in golden()]
    assert {answer["outcome"] for answer in printed} == {"allocated", "none", "error"}
    other = tmp_path / "other.json"
    other.write_text('{"what": "ever"}')
    failed = subprocess.run([sys.executable, tool, other, "--kubernetes", "1.36"], capture_output=True, text=True)
    assert failed.returncode == 2
    assert str(other) in failed.stderr
