# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The planner's own answers to a file of questions, one JSON object a line, to be compared with recorded ones.

    python tests/contract/answers.py FILE --kubernetes 1.36 [--fixtures DIR]

Claim files (the format of `golden.json` or of `random-golden.jsonl`) give `{"id", "outcome": "allocated" | "none" |
"error"}`; selector files (`cel-golden.json`) give `{"id", "outcome": true | false | "compile-error" |
"runtime-error"}`.
Nothing that the file records of expected answers is read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "images" / "resource-planner"))

from planner import allocation, cel, dra  # noqa: E402

FIXTURES = ROOT / "tests" / "fixtures" / "dra"
COMMON = "random-golden.jsonl"
"""Its first line has the node and the device classes of all files of random clusters."""

GATES = {"listAttributes": "lists", "list": "lists", "listTypeAttributes": "lists"}
"""Names of gates in question files that differ from ours."""

Answer = dict[str, Any]


def claim_answers(document: Mapping[str, Any], kubernetes: tuple[int, int], fixtures: Path) -> Iterator[Answer]:
    """Answers to scenarios on fixture files, those that name no expectation for this version included."""
    for scenario in document["scenarios"]:
        objects = fixture(fixtures / scenario["fixture"])
        outcome = allocation.placeable(
            slices=[dra.read_slice(item) for item in objects.get("ResourceSlice", [])],
            claims=[dra.read_claim(item) for item in scenario["claims"]],
            held=[dra.read_claim(item) for item in scenario.get("existing") or []],
            device_classes=[dra.read_device_class(item) for item in objects.get("DeviceClass", [])],
            node=node_named(scenario["node"], objects),
            kubernetes=kubernetes,
            gates=gates(scenario.get("enabledGates")),
            taint_rules=[dra.read_taint_rule(item) for item in objects.get("DeviceTaintRule", [])],
        )
        yield {"id": scenario["id"], "outcome": outcome.verdict.value}


def random_answers(lines: list[str], kubernetes: tuple[int, int], fixtures: Path) -> Iterator[Answer]:
    """Answers to random clusters; the file's own first line, or that of `random-golden.jsonl`, has node and classes."""
    first = json.loads(lines[0])
    common = first if "classes" in first else json.loads((fixtures / COMMON).read_text().splitlines()[0])
    node = dra.read_node(common["node"])
    classes = [dra.read_device_class(item) for item in common["classes"]]
    for line in lines:
        case = json.loads(line)
        if "id" not in case:
            continue
        outcome = allocation.placeable(
            slices=[dra.read_slice(item) for item in case["slices"]],
            claims=[dra.read_claim(item) for item in case["claims"]],
            held=[dra.read_claim(item) for item in case["existing"]],
            device_classes=classes,
            node=node,
            kubernetes=kubernetes,
        )
        yield {"id": case["id"], "outcome": outcome.verdict.value}


OUTCOMES: dict[cel.Verdict, bool | str] = {
    cel.Verdict.MATCH: True,
    cel.Verdict.NO_MATCH: False,
    cel.Verdict.COMPILE_ERROR: "compile-error",
    cel.Verdict.RUNTIME_ERROR: "runtime-error",
}


def selector_answers(document: Mapping[str, Any], kubernetes: tuple[int, int]) -> Iterator[Answer]:
    """Answers to selectors; a case has its driver and device, or names one of the file's `devices`."""
    for case in document["cases"]:
        device = case["device"]
        named = document["devices"][device] if isinstance(device, str) else case
        program = cel.compile(case["expression"], kubernetes)
        answer = program.judge(cel.cel_device(named["driver"], named["device"]))
        yield {"id": case["id"], "outcome": OUTCOMES[answer.verdict]}


def gates(names: list[str] | None) -> allocation.Gates | None:
    """The gates that a scenario lists; None, as in the file, where it lists none."""
    return None if names is None else allocation.Gates.named(GATES.get(name, name) for name in names)


def node_named(name: str, objects: Mapping[str, list[Mapping[str, Any]]]) -> dra.Node:
    """The fixture's node; a name that it does not have is a node without labels but its host name."""
    for item in objects.get("Node", []):
        if item["metadata"]["name"] == name:
            return dra.read_node(item)
    return dra.Node(name=name, labels={"kubernetes.io/hostname": name})


@lru_cache
def fixture(path: Path) -> Mapping[str, list[Mapping[str, Any]]]:
    """The objects of a fixture file by kind."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for item in yaml.load_all(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if item:
            by_kind.setdefault(item["kind"], []).append(item)
    return by_kind


def version(text: str) -> tuple[int, int]:
    """Major and minor of "1.36" or "v1.36.2"."""
    major, minor = text.removeprefix("v").split(".")[:2]
    return int(major), int(minor)


def answers(path: Path, kubernetes: tuple[int, int], fixtures: Path) -> Iterator[Answer]:
    """The answers to whatever kind of file `path` is. Raises ValueError for a file of another kind."""
    if path.suffix == ".jsonl":
        return random_answers(path.read_text().splitlines(), kubernetes, fixtures)
    document = json.loads(path.read_text())
    if "scenarios" in document:
        return claim_answers(document, kubernetes, fixtures)
    if "cases" in document:
        return selector_answers(document, kubernetes)
    raise ValueError(f"{path}: neither scenarios with claims nor selector cases")


def main() -> int:
    """Print the answers; 2 when the file cannot be read as one of the formats."""
    parser = argparse.ArgumentParser(description="the planner's own answers to a file of questions")
    parser.add_argument("file", type=Path)
    parser.add_argument("--kubernetes", type=version, required=True, metavar="1.36")
    parser.add_argument("--fixtures", type=Path, default=FIXTURES, help="where the cluster files of scenarios lie")
    options = parser.parse_args()
    try:
        for answer in answers(options.file, options.kubernetes, options.fixtures):
            print(json.dumps(answer))
    except (OSError, ValueError, KeyError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
