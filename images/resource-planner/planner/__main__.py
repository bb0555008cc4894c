# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The command line: `plan`, `explain`, `what-if`, `capacity`, `size` over files, `snapshot save` and `serve` on a cluster.

Files are dumps (`kubectl get … -o yaml`), manifests, folders of both, or a replay file; what is in them may stand in any
order. Exit status: 0 when a plan was made, refusals included; 2 when the input cannot be read (the message names file
and field) or the command line is wrong.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml
from rich.console import Console
from rich.table import Table

from planner import launches, questions, recipe, wire
from planner.model import CatalogState, Key, Plan, Snapshot
from planner.plan import Planning
from planner.units import UNKNOWN, human

NEWEST = "1.37"


class Unreadable(click.ClickException):
    """Input that cannot be read; exit status 2."""

    exit_code = 2


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as Kubernetes reads it: no dates, no sexagesimal numbers, no yes and no for true and false."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:int", r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+|0o?[0-7]+", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        "-+.0123456789",
    ),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN"),
):
    _Loader.add_implicit_resolver(
        _tag, re.compile(f"^(?:{_pattern})$"), [*_first, ""] if _tag.endswith("null") else list(_first)
    )


def read(paths: tuple[str, ...]) -> Iterator[wire.Document]:
    """Every document of the files and folders, each with its file and place. Raises `Unreadable`."""
    for path in paths:
        if path == "-":
            yield from _documents("standard input", sys.stdin.read())
            continue
        where = Path(path)
        if where.is_dir():
            files = sorted(
                file for file in where.rglob("*") if file.suffix in (".yaml", ".yml", ".json") and file.is_file()
            )
            if not files:
                raise Unreadable(f"{path}: no .yaml, .yml or .json file in this folder")
        elif where.is_file():
            files = [where]
        else:
            raise Unreadable(f"{path}: no such file or folder")
        for file in files:
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise Unreadable(f"{file}: {error}") from error
            yield from _documents(str(file), text)


def _documents(source: str, text: str) -> Iterator[wire.Document]:
    try:
        if text.lstrip().startswith("{"):
            yield wire.Document(raw=json.loads(text), source=source)
            return
        for number, raw in enumerate(yaml.load_all(text, Loader=_Loader)):
            yield wire.Document(raw=raw, source=source if number == 0 else f"{source}: document {number + 1}")
    except (yaml.YAMLError, ValueError) as error:
        raise Unreadable(f"{source}: {' '.join(str(error).split())}") from error


class Input:
    """What the options say: documents, and the snapshot that they make."""

    def __init__(self, files: tuple[str, ...], kubernetes: str | None, catalog: str | None) -> None:
        if not files:
            raise click.UsageError("name at least one file or folder with -f")
        self.documents = list(read(files))
        self._kubernetes = kubernetes
        self._catalog = CatalogState(catalog.capitalize()) if catalog else None
        replays = [
            item
            for item in self.documents
            if isinstance(item.raw, Mapping) and item.raw.get("kind") == wire.REPLAY_KIND
        ]
        self.replay: wire.Document | None = None
        if replays:
            if len(replays) > 1:
                raise Unreadable(f"{replays[1].source}: a second snapshot beside {replays[0].source}")
            self.replay = replays[0]
            self.documents.remove(self.replay)
            objects = self.replay.raw.get("objects")
            if not isinstance(objects, list):
                raise Unreadable(f"{self.replay.source}: objects: a list is expected")
            self.documents += [
                wire.Document(raw=raw, source=f"{self.replay.source}: objects[{number}]")
                for number, raw in enumerate(objects)
            ]

    def snapshot(self, documents: list[wire.Document] | None = None) -> Snapshot:
        """The snapshot of `documents` (None: those that were read)."""
        saved = self.replay.raw if self.replay else {}
        kubernetes = self._kubernetes or str(saved.get("kubernetes") or NEWEST)
        version = re.fullmatch(r"v?(\d+)\.(\d+)(?:\..*)?", kubernetes)
        if version is None:
            raise click.UsageError(f"--kubernetes: {kubernetes} is no version such as {NEWEST}")
        catalog = self._catalog or (CatalogState(saved["catalog"]) if "catalog" in saved else None)
        try:
            return wire.snapshot(
                self.documents if documents is None else documents,
                kubernetes=(int(version[1]), int(version[2])),
                now=str(saved.get("now") or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),
                release=str(saved.get("release") or launches.shipped().release),
                catalog=catalog,
                unreadable=tuple(saved.get("unreadable") or ()),
            )
        except wire.BadInput as error:
            raise Unreadable(str(error)) from error
        except recipe.RecipeError as error:
            raise Unreadable(str(error)) from error


def _inputs(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "-f",
            "--file",
            "files",
            multiple=True,
            metavar="FILE_OR_FOLDER",
            help="Dumps, manifests, folders or a snapshot; repeatable. - reads standard input.",
        ),
        click.option(
            "--kubernetes",
            metavar="VERSION",
            help=f"Version of the API server (default: the snapshot's, else {NEWEST}).",
        ),
        click.option(
            "--catalog",
            type=click.Choice(["enabled", "disabled", "absent"]),
            help="The model catalog (default: enabled when a catalog object is in the files).",
        ),
        click.option(
            "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
        ),
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Where inference orders sit on DRA devices, and why."""


@main.command()
@_inputs
def plan(files: tuple[str, ...], kubernetes: str | None, catalog: str | None, output: str) -> None:
    """The decision for every order in the files, with the reason behind it."""
    answer = Planning(Input(files, kubernetes, catalog).snapshot(), launches.shipped()).result()
    if output != "table":
        _print(wire.plan_json(answer), output)
        return
    _plan_table(answer)


@main.command()
@click.argument("order", metavar="NAMESPACE/NAME")
@_inputs
def explain(order: str, files: tuple[str, ...], kubernetes: str | None, catalog: str | None, output: str) -> None:
    """Why one order is where it is, or what holds it up."""
    namespace, slash, name = order.rpartition("/")
    try:
        answer = questions.explain(
            Input(files, kubernetes, catalog).snapshot(), Key(namespace=namespace if slash else "default", name=name)
        )
    except questions.NoSuchOrder as error:
        raise click.UsageError(str(error)) from error
    if output != "table":
        _print(answer, output)
        return
    _explain_text(answer)


@main.command("what-if")
@click.option("--add", multiple=True, metavar="FILE", help="Objects to add, or to put in place of those of their name.")
@click.option(
    "--remove",
    multiple=True,
    metavar="KIND/NAMESPACE/NAME",
    help="An object to remove (KIND/NAME for cluster-wide kinds).",
)
@click.option("--drain", multiple=True, metavar="NODE", help="A node to cordon and empty of replicas.")
@click.option(
    "--set", "assignments", multiple=True, metavar="KIND/NAMESPACE/NAME:PATH=VALUE", help="One field of one object."
)
@_inputs
def what_if(
    add: tuple[str, ...],
    remove: tuple[str, ...],
    drain: tuple[str, ...],
    assignments: tuple[str, ...],
    files: tuple[str, ...],
    kubernetes: str | None,
    catalog: str | None,
    output: str,
) -> None:
    """What would change for whom, if objects were added, removed, changed or nodes drained. Nothing is changed."""
    given = Input(files, kubernetes, catalog)
    edit = questions.Edit(add=tuple(read(add)), remove=remove, drain=drain, set=assignments)
    try:
        after = questions.edited(given.documents, edit)
    except questions.BadEdit as error:
        raise click.UsageError(str(error)) from error
    except wire.BadInput as error:
        raise Unreadable(str(error)) from error
    answer = questions.what_if(given.snapshot(), given.snapshot(after))
    if output != "table":
        _print(answer, output)
        return
    _what_if_table(answer)


@main.command()
@_inputs
def capacity(files: tuple[str, ...], kubernetes: str | None, catalog: str | None, output: str) -> None:
    """What there is, who sits where, and what is wrong with the inventory."""
    answer = Planning(Input(files, kubernetes, catalog).snapshot(), launches.shipped()).result()
    if output != "table":
        _print(wire.capacity_json(answer.capacity), output)
        return
    _capacity_tables(answer)


def _print(answer: Mapping[str, Any], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        click.echo(
            yaml.safe_dump(json.loads(json.dumps(answer)), sort_keys=False, allow_unicode=True, width=160), nl=False
        )


def _console() -> Console:
    return Console(soft_wrap=False, width=None if sys.stdout.isatty() else 200, highlight=False)


def _plan_table(answer: Plan) -> None:
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
    console = _console()
    console.print(table)
    for verdict in answer.classes:
        for name, condition in (("Validated", verdict.validated), ("Ready", verdict.ready)):
            if condition.status.value != "True":
                console.print(
                    f"Class {verdict.name}: {name}={condition.status.value} {condition.reason}: {condition.message}",
                    markup=False,
                )
    for problem in answer.capacity.problems:
        console.print(f"Inventory: {problem}", markup=False)


def _explain_text(answer: Mapping[str, Any]) -> None:
    console = _console()
    status = answer["plan"]
    console.print(f"{answer['order']}: {status['decision']}, {status['reason']}", markup=False)
    console.print(f"  {status['message']}", markup=False)
    for seat in answer.get("seats", ()):
        console.print(
            f"  replica on {seat['node']}: {', '.join(seat['devices'])}{' (held now)' if seat['standing'] else ''}",
            markup=False,
        )
    if answer["blocking"]:
        console.print("  It would fit without (all of them, and not with any one less):", markup=False)
        for holder in answer["blocking"]:
            console.print(
                f"    {'order' if holder['order'] else 'claim'} {holder['holder']} on {', '.join(holder['devices'])}",
                markup=False,
            )
    if answer["considered"]:
        table = Table("Device class", "Placement", "Product", "Profile", "Devices", "A replica holds", "Recipe", "")
        for offer in answer["considered"]:
            held = "" if offer["held"] is None else human(offer["held"])
            count = f"{offer['devicesPerReplica']} × " if offer["devicesPerReplica"] > 1 else ""
            table.add_row(
                offer["deviceClassName"], f"{offer['sharingMode']} {offer['placementType']}", offer["product"], offer["profile"],
                str(offer["devices"]), f"{count}{held}", offer["recipe"], "chosen" if offer["chosen"] else "",
            )  # fmt: skip
        console.print(table)
    if status.get("alternatives"):
        table = Table("What else was considered", "Placement", "Lost because", "")
        for item in status["alternatives"]:
            table.add_row(
                item["deviceClassName"],
                f"{item['sharingMode']} {item['placementType']}",
                item["reason"],
                item["message"],
            )
        console.print(table)


def _what_if_table(answer: Mapping[str, Any]) -> None:
    console = _console()
    if answer["changed"]:
        table = Table("Order", "Now", "Then")
        for order, change in answer["changed"].items():
            table.add_row(order, _in_words(change["before"]), _in_words(change["after"]))
        console.print(table)
    console.print(f"{len(answer['changed'])} orders change, {answer['unchanged']} do not.", markup=False)
    for name, verdict in answer["classes"].items():
        for kind in ("validated", "ready"):
            if verdict[kind]["status"] != "True":
                console.print(f"Class {name}: {verdict[kind]['reason']}: {verdict[kind]['message']}", markup=False)


def _in_words(short: Mapping[str, Any] | None) -> str:
    if short is None:
        return "not there"
    if short["decision"] != "Placed":
        return f"{short['decision']} {short['reason']}: {short.get('message', '')}"
    return f"{short['sharingMode']} {short['placementType']} of {short['deviceClassName']}, {short['bound']} replicas on {', '.join(short['devices'])}"


def _capacity_tables(answer: Plan) -> None:
    console = _console()
    table = Table("Device class", "Node", "Devices", "Held", "Free", "Memory free")
    for item in answer.capacity.classes:
        table.add_row(
            item.device_class, item.node, str(item.total), str(item.held), str(item.free), human(item.free_memory)
        )
    console.print(table)
    devices = Table("Device", "Product", "Memory", "Free", "Who sits there", "")
    for use in answer.capacity.devices:
        if not use.sittings and use.placement.value == "Partition":
            continue  # a partition that nobody cut says nothing that its card does not
        sitting = ", ".join(
            f"{part.holder}{'' if part.memory is UNKNOWN else ' ' + human(part.memory)}{' (planned)' if part.planned else ''}"
            for part in use.sittings
        )
        devices.add_row(str(use.id), use.product, human(use.memory), human(use.free), sitting, use.problem)
    console.print(devices)
    for problem in answer.capacity.problems:
        console.print(problem, markup=False)


if __name__ == "__main__":
    main(prog_name="planner")
