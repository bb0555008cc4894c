# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A hook as addon-operator runs it: asked for its configuration, then started with the files of one run.

Snapshots are made by the hook's own jqFilter over objects, chosen as its bindings say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jq
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = {
    "BINDING_CONTEXT_PATH": "binding-context.json",
    "VALUES_PATH": "values.json",
    "CONFIG_VALUES_PATH": "config-values.json",
    "VALUES_JSON_PATCH_PATH": "values-patch.json",
    "CONFIG_VALUES_JSON_PATCH_PATH": "config-values-patch.json",
    "METRICS_PATH": "metrics.json",
    "KUBERNETES_PATCH_PATH": "kubernetes-patch.json",
}


class HookFailed(RuntimeError):
    """The hook ended with an error; the message is what it printed."""


def run(name: str, objects: Iterable[Mapping[str, Any]], folder: Path, *, env: Mapping[str, str]) -> str:
    """Run `hooks/<name>.py` once on the objects; what it printed. Raises HookFailed."""
    hook = REPOSITORY / "hooks" / f"{name}.py"
    config = json.loads(_start([str(hook), "--config"], env))
    snapshots = {binding["name"]: snapshot(binding, objects) for binding in config["kubernetes"]}
    values = yaml.safe_load((REPOSITORY / "modules-values.yaml").read_text())
    values.setdefault("aiInference", {}).setdefault("internal", {})
    context = [{"binding": config["kubernetes"][0]["group"], "type": "Group", "snapshots": snapshots}]
    folder.mkdir(parents=True, exist_ok=True)
    content = {"BINDING_CONTEXT_PATH": context, "VALUES_PATH": values, "CONFIG_VALUES_PATH": {}}
    paths = {}
    for variable, file in FILES.items():
        path = folder / file
        path.write_text(json.dumps(content[variable]) if variable in content else "")
        paths[variable] = str(path)
    return _start([str(hook)], {**env, **paths})


def snapshot(binding: Mapping[str, Any], objects: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the operator would hand over for one binding: the filtered objects, sorted by namespace and name."""
    program = jq.compile(binding["jqFilter"])
    chosen = [item for item in objects if _bound(binding, item)]
    chosen.sort(key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))
    return [{"filterResult": program.input_value(item).first()} for item in chosen]


def _bound(binding: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    if (item["apiVersion"], item["kind"]) != (binding["apiVersion"], binding["kind"]):
        return False
    labels = item["metadata"].get("labels", {})
    wanted = binding.get("labelSelector", {}).get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items())


def _start(command: list[str], env: Mapping[str, str]) -> str:
    search = os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": search, "LANG": "C.UTF-8", **env})
    if done.returncode:
        raise HookFailed(f"{Path(command[0]).name}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
