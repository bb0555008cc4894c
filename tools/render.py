# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`make render CASE=…`: the manifests of one scenario, as the hook would apply them.

A case is a file of tests/fixtures/render: a service class, an order and its plan. The order passes through the hook's
own jq filters, so that what is printed is what the same objects would become in a cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jq
import yaml
from lib.ai_inference import decide, kinds, render, world

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "fixtures" / "render"


def case(name: str) -> dict[str, Any]:
    """The file of a case: a service class, an order and its plan."""
    found: dict[str, Any] = yaml.safe_load((CASES / f"{name}.yaml").read_text())
    return found


def platform_values() -> dict[str, Any]:
    """The values of a stock addon-operator: `modules-values.yaml`."""
    values: dict[str, Any] = yaml.safe_load((ROOT / "modules-values.yaml").read_text())
    return values


def snapshot(bound: kinds.Bound, objects: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The snapshot that addon-operator would make of the objects: the binding's own filter over each."""
    return [{"filterResult": jq.compile(bound.jq).input_value(item).first()} for item in objects]


def wanted(given: Mapping[str, Any]) -> decide.Apply:
    """What should stand for the order of a case. Raises SystemExit when its plan places nothing."""
    snapshots = {
        kinds.ORDERS.name: snapshot(kinds.ORDERS, [given["order"]]),
        kinds.CLASSES.name: snapshot(kinds.CLASSES, [given["class"]]),
    }
    seen = world.read(snapshots, platform_values())
    apply = decide.wanted(seen, seen.orders[0], render.templates_digest())
    if apply is None:
        raise SystemExit("the plan of this case places nothing")
    return apply


def main() -> None:
    known = sorted(path.stem for path in CASES.glob("*.yaml"))
    if len(sys.argv) != 2 or sys.argv[1] not in known:
        raise SystemExit(f"usage: make render CASE=<case>; cases: {', '.join(known)}")
    found = wanted(case(sys.argv[1]))
    print(yaml.safe_dump_all(render.manifests(found.values), sort_keys=False, width=120), end="")


if __name__ == "__main__":
    main()
