# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What the speed benchmarks share: clusters of a size, orders by the thousand, and how results are told.

A cluster is half whole H100 (80 GB, one device class of their own beside the one for all) and half shared L40S; orders
ask models of four sizes, dedicated and shared in turn. Selectors are real CEL. The machine is shared with others, so
CPU seconds of the process stand beside the wall clock.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from planner.model import Order, Snapshot
from rich.console import Console
from rich.table import Table

from tests import build
from tests.build import Object

RESULTS: Final = Path(__file__).parent / "results"
NEEDS: Final = ("5Gi", "8Gi", "18Gi", "35Gi")
CLASSES: Final = (
    build.device_class("h100", 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].productName.lowerAscii().matches("^.*h100.*$")'),  # noqa: E501
    build.device_class("shared", 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].productName.lowerAscii().matches("^.*l40s.*$")'),  # noqa: E501
)  # fmt: skip
DECIMALS: Final = 3


def cluster(nodes: int, cards: int = 8) -> list[Object]:
    """Objects of `nodes` nodes with `cards` cards each, half of each kind, and what orders can ask there."""
    found: list[Object] = [*CLASSES, *(build.needing(need) for need in NEEDS)]
    for number in range(nodes):
        make = build.h100_80g if number % 2 else build.l40s_shared
        found += make(cards, f"node-{number:05}")
    found.append(build.service_class("alone", sharing=["Dedicated"], device_classes=["h100"]))
    found.append(build.service_class("share", sharing=["Shared"], device_classes=["shared"]))
    return found


def order(number: int, need: str, *, shared: bool) -> Object:
    """An order for a model that needs `need`, a share or a device of its own."""
    return build.order(
        f"o{number:07}", service_class="share" if shared else "alone", model=f"needs-{need.lower()}", created=number
    )


def mixed(count: int, start: int = 0) -> list[Object]:
    """Orders of four sizes, dedicated and shared in turn."""
    return [
        order(number, NEEDS[number // 2 % len(NEEDS)], shared=number % 2 == 0) for number in range(start, start + count)
    ]


def orders(base: Sequence[Object], made: Sequence[Object]) -> tuple[Order, ...]:
    """The records of `made`, which stand beside the objects `base`."""
    small = [item for item in base if item["kind"] not in ("ResourceSlice", "Node", "ResourceClaim")]
    return build.snapshot(small, made).orders


def snapshot(*parts: Any) -> Snapshot:
    """The snapshot of all objects."""
    return build.snapshot(*parts)


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def resident_mib() -> float:
    """The most memory that this process ever had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tell(
    name: str, title: str, rows: Sequence[Mapping[str, Any]], bars: Sequence[tuple[str, bool]], **about: Any
) -> int:
    """Print the rows and the bars, write both to results/<name>.json; the exit code: 1 when a bar is missed."""
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column.replace("_", " "), justify="left" if isinstance(rows[0][column], str) else "right")
    for row in rows:
        table.add_row(*(f"{value:.{DECIMALS}g}" if isinstance(value, float) else str(value) for value in row.values()))
    out = Console(width=max(Console().width, 150), file=sys.stdout)
    out.print(table)
    for words, reached in bars:
        out.print(f"{'pass' if reached else 'FAIL'}: {words}", markup=False)
    for key, value in about.items():
        out.print(f"{key}: {value}", markup=False)
    told = {"rows": list(rows), "bars": [{"bar": words, "reached": reached} for words, reached in bars], **about}
    (RESULTS / f"{name}.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return 0 if all(reached for _, reached in bars) else 1
