# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Dumps → plan → the real hook as a subprocess → the real Helm engine → manifests, a table and a picture in `out/demo`.

Everything that decides, renders and applies is the product's own; only the API server is stood in for, by a recorder.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from planner import dra, inventory
from planner.quantity import parse
from rich.console import Console
from rich.table import Table

from demo import hooks
from demo.picture import Card, Host, Seat, Verdict, page
from demo.recorder import UIDS, Recorder, serving

EXAMPLES = hooks.REPOSITORY / "examples"
OUT = hooks.REPOSITORY / "out" / "demo"
KUBERNETES = "1.37"


def main() -> None:
    began = time.monotonic()
    console = Console(width=140)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    objects = read(EXAMPLES)
    plan = planned()
    (OUT / "plan.json").write_text(json.dumps(plan, indent=2))
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder, serving(recorder, Path(folder)) as kubeconfig:
        environment = {"KUBECONFIG": str(kubeconfig), "HOME": folder, "TMPDIR": folder}
        hooks.run("orders", with_plans(objects, plan), Path(folder) / "orders", env=environment)
    written = recorder.write(OUT / "manifests")
    rows = verdicts(plan)
    (OUT / "devices.html").write_text(page("Who sits where", hosts(objects, plan, rows), rows))
    show(console, rows)
    took = time.monotonic() - began
    shown = OUT.relative_to(hooks.REPOSITORY)
    console.print(
        f"\n{written} manifests in {shown}/manifests, the devices in {shown}/devices.html, after {took:.1f} s"
    )


def read(folder: Path) -> list[dict[str, Any]]:
    """The objects of all files below the folder, lists unpacked, with the metadata that an API server would add."""
    found: list[dict[str, Any]] = []
    for file in sorted(folder.rglob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document:
                found.extend(document["items"] if document["kind"] == "List" else [document])
    for number, item in enumerate(found):
        item["metadata"].setdefault("uid", UIDS.format(number + 1000))
        item["metadata"].setdefault("generation", 1)
    return found


def planned() -> dict[str, Any]:
    """`planner plan -f examples -o json`, as a reader would run it."""
    command = [sys.executable, "-m", "planner", "plan", "-f", str(EXAMPLES), "--kubernetes", KUBERNETES, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def with_plans(objects: list[dict[str, Any]], plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same objects with each order's plan in its status, where the running planner writes it."""
    orders = plan["orders"]
    out = []
    for item in objects:
        key = f"{item['metadata'].get('namespace')}/{item['metadata']['name']}"
        if item["kind"] == "InferenceService" and key in orders:
            observed = {**orders[key], "observedGeneration": item["metadata"]["generation"]}
            item = {**item, "status": {"plan": observed}}
        out.append(item)
    return out


def verdicts(plan: Mapping[str, Any]) -> list[Verdict]:
    """A row for each order; placed orders get colours spread over the wheel."""
    rows = []
    for number, (key, status) in enumerate(sorted(plan["orders"].items())):
        rows.append(
            Verdict(
                order=key,
                decision=status["decision"],
                where=where(status),
                reason=status["reason"],
                message=status.get("message", ""),
                hue=number * 47 % 360,
            )
        )
    return rows


def where(status: Mapping[str, Any]) -> str:
    """Device class, kind of place, and how much of the device; a dash for an order without a place."""
    if status["decision"] != "Placed":
        return "—"
    share = f", {status['share']['memory']}" if status.get("share") else ""
    devices = ", ".join(sorted({device["name"] for device in status["devices"]}))
    kind = f"{status['placementType']}, {status['sharingMode']}{share}"
    return f"{status['deviceClassName']}: {devices} ({kind}), serves {status['endpointType']}"


def hosts(objects: list[dict[str, Any]], plan: Mapping[str, Any], rows: list[Verdict]) -> list[Host]:
    """The cards of each node with their holders, partitions drawn inside the card they are cut from."""
    of_kind = {
        kind: [item for item in objects if item["kind"] == kind] for kind in ("Node", "ResourceSlice", "DeviceClass")
    }
    found = inventory.build(
        [dra.read_slice(item) for item in of_kind["ResourceSlice"]],
        [],
        [dra.read_device_class(item) for item in of_kind["DeviceClass"]],
        [],
        [dra.read_node(item) for item in of_kind["Node"]],
        tuple(int(part) for part in KUBERNETES.split(".")),  # type: ignore[arg-type]
    )
    hues = {row.order: row.hue for row in rows}
    used: dict[str, list[Seat]] = {}
    parts: set[str] = set()
    for use in plan["capacity"]["devices"]:
        device = found.by_id[dra.DeviceId(driver=use["driver"], pool=use["pool"], name=use["name"])]
        if not device.whole:
            parts.add(device.card)
        for holder in use["holders"]:
            size = bytes_of(holder["memory"]) or bytes_of(use["memory"]) or 0
            used.setdefault(device.card, []).append(
                Seat(
                    label=holder["name"] if device.whole else f"{holder['name']} ({device.profile})",
                    detail=f"{holder['memory'] or 'the whole'} of {use['name']}",
                    memory=size,
                    kind="order" if holder["order"] else "other",
                    hue=hues.get(holder["name"], 0),
                )
            )
    cards: dict[str, list[Card]] = {}
    for device in found.devices:
        if device.whole and isinstance(device.memory, int):
            card = Card(
                name=device.id.name, product=device.product or device.id.driver, memory=device.memory,
                seats=tuple(used.get(device.card, ())), partitions=device.card in parts,
            )  # fmt: skip
            for node in device.nodes:
                cards.setdefault(node, []).append(card)
    return [Host(name=node, cards=tuple(cards[node])) for node in sorted(cards)]


def bytes_of(text: str | None) -> int | None:
    return parse(text).bytes if text else None


def show(console: Console, rows: list[Verdict]) -> None:
    table = Table(title="Orders", title_justify="left", show_lines=True)
    for heading in ("order", "decision", "where", "why"):
        table.add_column(heading, overflow="fold")
    styles = {"Placed": "green", "Refused": "red", "Undecidable": "yellow"}
    for row in rows:
        decision = f"[{styles[row.decision]}]{row.decision}[/]"
        table.add_row(row.order, decision, row.where, f"[bold]{row.reason}[/]\n{row.message}")
    console.print(table)


if __name__ == "__main__":
    main()
