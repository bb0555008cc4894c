# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""An order's values → its manifests, by the Helm engine on the module's own order templates.

`_engine` is the only place that knows which engine renders: Helm's own, in the release that addon-operator links, gives
the same bytes (tests/render/test_helm.py), and the whole chart gives the same manifests (test_one_chart.py). The chart
is loaded once per process, and only with the order templates in it: an engine parses every template of its chart at
every render.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lib.ai_inference import kinds

MODULE: Final = Path(__file__).resolve().parents[3]
_CHART: Final = b"apiVersion: v2\nname: ai-inference\nversion: 0.0.1\n"


class Unfit(Exception):
    """The values break `openapi/values.yaml` or the templates fail on them: a fault of ours, told to the order."""


def manifests(order_values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The objects of one order, in the order in which they are to be written.

    Raises Unfit with the path of the value that is wrong, or with the engine's words.
    """
    complaint = invalid(order_values)
    if complaint is not None:
        raise Unfit(complaint)
    objects = _engine({"aiInference": {"internal": {"order": dict(order_values)}}})
    return sorted(objects, key=lambda item: kinds.APPLIED.index(item["kind"]))


def invalid(order_values: Mapping[str, Any]) -> str | None:
    """What is wrong with the values by `openapi/values.yaml`, with its path; None: nothing."""
    for error in _validator().iter_errors(order_values):
        path = ".".join(str(part) for part in error.absolute_path) or "order"
        return f"internal values: {path}: {error.message}"
    return None


@functools.cache
def templates_digest() -> str:
    """A digest of the order templates: it changes exactly when the same values may render differently."""
    return files_digest(_files())


def files_digest(files: Mapping[str, bytes]) -> str:
    """Sixteen hex digits of the contents of files, by their names in the given order."""
    content = hashlib.sha256()
    for name, data in files.items():
        content.update(name.encode() + b"\0" + data + b"\0")
    return content.hexdigest()[:16]


@functools.cache
def _files() -> dict[str, bytes]:
    folder = MODULE / "templates"
    found = [folder / "_order.tpl", *sorted((folder / "orders").glob("*.yaml"))]
    return {str(path.relative_to(MODULE)): path.read_bytes() for path in found}


@functools.cache
def _validator() -> Any:
    import jsonschema
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load((MODULE / "openapi" / "values.yaml").read_bytes(), Loader=loader)
    return jsonschema.Draft7Validator(document["properties"]["internal"]["properties"]["order"])


@functools.cache
def _chart() -> Any:
    from helm_python import Chart

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name, data in {"Chart.yaml": _CHART, **_files()}.items():
            entry = tarfile.TarInfo(f"ai-inference/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return Chart.load_archive(buffer.getvalue())


def _engine(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Rendered objects, one at most from each template. Manifests are read by the engine's own YAML parser."""
    from helm_python import HelmError, values_from_yaml

    try:
        rendered = _chart().render(values, name="ai-inference", namespace="d8-ai-inference")
        objects = [values_from_yaml(text) for text in rendered.values() if text.strip()]
    except HelmError as error:
        raise Unfit(f"order templates: {error}") from error
    return [item for item in objects if item]


def text(order_values: Mapping[str, Any]) -> str:
    """The same manifests as JSON documents, one a line: for tools and reports."""
    return "\n".join(json.dumps(item, sort_keys=True) for item in manifests(order_values))
