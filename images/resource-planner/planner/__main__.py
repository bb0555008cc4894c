# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The command line: `plan`, `explain`, `what-if`, `capacity` over files, `size`, `snapshot save`, `serve`.

Files are dumps (`kubectl get … -o yaml`), manifests, folders of both, or a replay file; what is in them may stand in
any order. Exit status: 0 when a plan was made, refusals included; 2 when the input cannot be read (the message names
file and field) or the command line is wrong.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml

from planner import launches, modelfacts, quantity, questions, recipe, tables, wire
from planner.architecture import ModelFacts
from planner.model import CatalogState, Key, Snapshot
from planner.plan import Planning
from planner.units import UNKNOWN

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
                wire.by_kind(self.documents if documents is None else documents),
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
    tables.plan(answer)


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
    tables.explain(answer)


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
        after = given.snapshot(questions.edited(given.documents, edit))
    except questions.BadEdit as error:
        raise click.UsageError(str(error)) from error
    except wire.BadInput as error:
        raise Unreadable(str(error)) from error
    answer = questions.what_if(given.snapshot(), after)
    if output != "table":
        _print(answer, output)
        return
    tables.what_if(answer)


@main.command()
@_inputs
def capacity(files: tuple[str, ...], kubernetes: str | None, catalog: str | None, output: str) -> None:
    """What there is, who sits where, how well it is packed, and what is wrong with the inventory."""
    answer = Planning(Input(files, kubernetes, catalog).snapshot(), launches.shipped()).capacity()
    if output != "table":
        _print(wire.capacity_json(answer), output)
        return
    tables.capacity(answer)


@main.command()
@click.argument("model", required=False)
@click.option("--config", type=click.Path(exists=True, dir_okay=False), help="A checkpoint's own config.json.")
@click.option("--weights", metavar="QUANTITY", help="Bytes of the weights, where the config does not tell them.")
@click.option("--context", type=click.IntRange(min=1), help="Tokens of one request (default: the model's longest).")
@click.option("--concurrency", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--tensor-parallel", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--dtype", default="auto", show_default=True)
@click.option("--kv-dtype", default="auto", show_default=True)
@click.option("--device-memory", metavar="QUANTITY", help="Memory of one device: how many tokens fit.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def size(
    model: str | None,
    config: str | None,
    weights: str | None,
    context: int | None,
    concurrency: int,
    tensor_parallel: int,
    dtype: str,
    kv_dtype: str,
    device_memory: str | None,
    output: str,
) -> None:
    """Bytes that a model needs on one device, term by term, each with its source."""
    if (model is None) == (config is None):
        raise click.UsageError("name either a known MODEL or a --config file")
    try:
        report = recipe.size_report(
            _facts(model, config, weights),
            context=context,
            concurrency=concurrency,
            tensor_parallel=tensor_parallel,
            dtype=dtype,
            kv_dtype=kv_dtype,
            device_memory=None if device_memory is None else _bytes("--device-memory", device_memory),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if output != "table":
        _print(report, output)
        return
    tables.size(report)


def _facts(model: str | None, config: str | None, weights: str | None) -> ModelFacts:
    stated = UNKNOWN if weights is None else _bytes("--weights", weights)
    if config is not None:
        try:
            raw = json.loads(Path(config).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Unreadable(f"{config}: {error}") from error
        if not isinstance(raw, dict):
            raise Unreadable(f"{config}: an object is expected")
        try:
            return modelfacts.from_config(raw, stated, name=config)
        except ValueError as error:
            raise Unreadable(f"{config}: {error}") from error
    assert model is not None
    found = modelfacts.known(model)
    if found is None:
        raise click.UsageError(f"{model} is not in the table of known models: give its config.json with --config")
    return found if stated is UNKNOWN else replace(found, weights=stated)


def _bytes(option: str, text: str) -> int:
    try:
        return quantity.parse(text).bytes
    except quantity.QuantityError as error:
        raise click.UsageError(f"{option}: {error}") from error


@main.group()
def snapshot() -> None:
    """Everything a decision depends on, as one file that can be planned again elsewhere."""


@snapshot.command()
@click.option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Default: $KUBECONFIG, else in-cluster."
)
@click.option("--catalog-mode", type=click.Choice(["Enabled", "None"]), default="Enabled", show_default=True)
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="FILE_OR_FOLDER",
    help="Take the objects from dumps instead of a cluster.",
)
@click.option("--kubernetes", metavar="VERSION", help="With -f: version of the API server.")
@click.option(
    "-o", "--output", "target", metavar="FILE", default="-", help="Where to write (default: standard output)."
)
def save(
    kubeconfig: str | None, catalog_mode: str, files: tuple[str, ...], kubernetes: str | None, target: str
) -> None:
    """Save what a plan depends on; values of secrets never get into the file."""
    if files:
        given = Input(files, kubernetes, None)
        made = given.snapshot()
        saved: Mapping[str, Any] = wire.replay(
            given.documents,
            kubernetes=made.kubernetes,
            now=made.now,
            release=made.release,
            catalog=made.catalog,
            unreadable=made.unreadable,
        )
    else:
        from planner.kube import save as cluster  # the cluster's libraries load only where they are needed

        try:
            saved = cluster.replay_of_cluster(kubeconfig, catalog=catalog_mode == "Enabled")
        except cluster.NoCluster as error:
            raise Unreadable(str(error)) from error
    text = json.dumps(saved, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if target == "-":
        click.echo(text, nl=False)
    else:
        Path(target).write_text(text, encoding="utf-8")


@main.command()
@click.option("--namespace", default="d8-ai-inference", show_default=True, help="Where the lease lies.")
@click.option("--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT")
@click.option("--catalog-mode", type=click.Choice(["Enabled", "None"]), default="Enabled", show_default=True)
@click.option("--replay-dir", type=click.Path(file_okay=False), help="Where the input of a failed plan is saved.")
@click.option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Default: $KUBECONFIG, else in-cluster."
)
@click.option("--identity", envvar="POD_NAME", help="Who holds the lease (default: $POD_NAME, else host and process).")
def serve(
    namespace: str,
    listen: str,
    catalog_mode: str,
    replay_dir: str | None,
    kubeconfig: str | None,
    identity: str | None,
) -> None:
    """Watch a cluster, plan when something changed, write status.plan; until told to stop."""
    from planner import serve as service  # the servers' libraries load only where they are needed

    settings = service.Settings(
        namespace=namespace,
        listen=listen,
        catalog=catalog_mode == "Enabled",
        kubeconfig=kubeconfig,
        replays=Path(replay_dir) if replay_dir else None,
    )
    if identity:
        settings = replace(settings, identity=identity)
    sys.exit(service.serve(service.brain(), settings))


def _print(answer: Mapping[str, Any], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        click.echo(
            yaml.safe_dump(json.loads(json.dumps(answer)), sort_keys=False, allow_unicode=True, width=160), nl=False
        )


if __name__ == "__main__":
    main(prog_name="planner")
