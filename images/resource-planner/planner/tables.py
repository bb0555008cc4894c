# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Answers as tables for people. Nothing is decided here; `-o json` has everything that a table leaves out."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from planner.model import CapacityReport, PackingReport, Plan, Sitting
from planner.units import UNKNOWN, human


def console() -> Console:
    """The terminal; 200 columns where the output goes elsewhere."""
    return Console(soft_wrap=False, width=None if sys.stdout.isatty() else 200, highlight=False)


def plan(answer: Plan) -> None:
    """Every order with its decision, and what is wrong with classes and inventory."""
    table = Table(
        "Order", "Decision", "Device class", "Placement", "Share", "Devices", "Replicas", "Reason", show_lines=False
    )
    for item in answer.orders:
        placement = " ".join(part.value for part in (item.sharing, item.placement) if part is not None)
        share = "" if item.share is None else human(item.share.memory)
        names = list(dict.fromkeys(f"{device.pool}/{device.name}" for device in item.devices))
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        bounds = "" if item.bounds is None else f"{item.bounds.bound} ({item.bounds.min}..{item.bounds.max})"
        table.add_row(
            str(item.key), item.decision.value, item.device_class or "", placement, share, shown, bounds,
            item.message if item.refusal is None else f"{item.reason}: {item.message}",
        )  # fmt: skip
    out = console()
    out.print(table)
    for verdict in answer.classes:
        for name, condition in (("Validated", verdict.validated), ("Ready", verdict.ready)):
            if condition.status.value != "True":
                found = f"{name}={condition.status.value} {condition.reason}: {condition.message}"
                out.print(f"Class {verdict.name}: {found}", markup=False)
    for problem in answer.capacity.problems:
        out.print(f"Inventory: {problem}", markup=False)


def explain(answer: Mapping[str, Any]) -> None:
    """One order: its seats, what holds it up, what else was considered."""
    out = console()
    status = answer["plan"]
    out.print(f"{answer['order']}: {status['decision']}, {status['reason']}", markup=False)
    out.print(f"  {status['message']}", markup=False)
    for seat in answer.get("seats", ()):
        out.print(
            f"  replica on {seat['node']}: {', '.join(seat['devices'])}{' (held now)' if seat['standing'] else ''}",
            markup=False,
        )
    if answer["blocking"]:
        out.print("  It would fit without (all of them, and not with any one less):", markup=False)
        for holder in answer["blocking"]:
            out.print(
                f"    {'order' if holder['order'] else 'claim'} {holder['holder']} on {', '.join(holder['devices'])}",
                markup=False,
            )
    if answer["considered"]:
        table = Table("Device class", "Placement", "Product", "Profile", "Devices", "A replica holds", "Recipe", "")
        for offer in answer["considered"]:
            held = "" if offer["held"] is None else human(offer["held"])
            count = f"{offer['devicesPerReplica']} × " if offer["devicesPerReplica"] > 1 else ""
            table.add_row(
                offer["deviceClassName"], f"{offer['sharingMode']} {offer['placementType']}",
                offer["product"], offer["profile"],
                str(offer["devices"]), f"{count}{held}", offer["recipe"], "chosen" if offer["chosen"] else "",
            )  # fmt: skip
        out.print(table)
    if status.get("alternatives"):
        table = Table("What else was considered", "Placement", "Lost because", "")
        for item in status["alternatives"]:
            table.add_row(
                item["deviceClassName"],
                f"{item['sharingMode']} {item['placementType']}",
                item["reason"],
                item["message"],
            )
        out.print(table)


def what_if(answer: Mapping[str, Any]) -> None:
    """Whose plan would change."""
    out = console()
    if answer["changed"]:
        table = Table("Order", "Now", "Then")
        for order, change in answer["changed"].items():
            table.add_row(order, _in_words(change["before"]), _in_words(change["after"]))
        out.print(table)
    out.print(f"{len(answer['changed'])} orders change, {answer['unchanged']} do not.", markup=False)
    for name, verdict in answer["classes"].items():
        for kind in ("validated", "ready"):
            if verdict[kind]["status"] != "True":
                out.print(f"Class {name}: {verdict[kind]['reason']}: {verdict[kind]['message']}", markup=False)


def _in_words(short: Mapping[str, Any] | None) -> str:
    if short is None:
        return "not there"
    if short["decision"] != "Placed":
        return f"{short['decision']} {short['reason']}: {short.get('message', '')}"
    what = f"{short['sharingMode']} {short['placementType']} of {short['deviceClassName']}"
    return f"{what}, {short['bound']} replicas on {', '.join(short['devices'])}"


def capacity(report: CapacityReport) -> None:
    """What there is, who sits where and how well it is packed."""
    out = console()
    table = Table("Device class", "Node", "Devices", "Held", "Free", "Memory free")
    for item in report.classes:
        table.add_row(
            item.device_class, item.node, str(item.total), str(item.held), str(item.free), human(item.free_memory)
        )
    out.print(table)
    devices = Table("Device", "Product", "Memory", "Free", "Who sits there", "")
    for use in report.devices:
        if not use.sittings and use.placement.value == "Partition":
            continue  # a partition that nobody cut says nothing that its card does not
        sitting = ", ".join(_sitting(part) for part in use.sittings)
        devices.add_row(str(use.id), use.product, human(use.memory), human(use.free), sitting, use.problem)
    out.print(devices)
    for text, packed in (("Placed anew", report.placed), ("All replicas of our orders", report.standing)):
        if packed is not None:
            out.print(f"{text}: {_packing(packed)}", markup=False)
    for problem in report.problems:
        out.print(problem, markup=False)


def _packing(item: PackingReport) -> str:
    told = f"{item.replicas} replicas on {item.cards} cards that nobody else uses"
    if item.proven:
        return f"{told}, proven the fewest"
    if item.bound is None:
        return f"{told}; no bound was proven: {'; '.join(item.limited)}"
    return f"{told}; at least {item.bound} are needed" + (f" ({'; '.join(item.limited)})" if item.limited else "")


def _sitting(part: Sitting) -> str:
    memory = "" if part.memory is UNKNOWN else f" {human(part.memory)}"
    return f"{part.holder}{memory}{' (planned)' if part.planned else ''}"


def size(report: Mapping[str, Any]) -> None:
    """Every term of a size report, and what they add up to."""
    table = Table("Term", "One device", "Bytes", "Source")
    for row in report["rows"]:
        amount = row["bytes"]
        shown = "unknown" if amount is None else human(amount)
        table.add_row(row["name"], shown, "" if amount is None else str(amount), row["source"])
    out = console()
    out.print(table)
    for name in ("total", "contextPerProcess", "kvPerToken", "kvTokens"):
        value = report.get(name)
        if value is not None:
            out.print(f"{name}: {value if name == 'kvTokens' else f'{human(value)} ({value})'}", markup=False)
