# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The command line: dumps in any shape and order, exit status 0 for every plan, 2 with file and field for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from planner import wire
from planner.__main__ import main
from planner.plan import plan

from tests import build
from tests.build import Object

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=text, catch_exceptions=False)


def answer(*arguments: str) -> Any:
    found = run(*arguments, "-o", "json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


@pytest.fixture
def world() -> list[Object]:
    return build.flat(
        build.any_device(),
        build.service_class(sharing=["Dedicated"], placement=["WholeDevice"]),
        build.l4_24g(1),
        build.tiny(),
        build.orders(2),
    )


@pytest.fixture
def dump(tmp_path: Path, world: list[Object]) -> Path:
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump_all(world))
    return path


def test_plan_prints_orders_classes_and_capacity_of_the_examples() -> None:
    found = answer("plan", "-f", str(EXAMPLES))
    assert set(found) == {"orders", "classes", "capacity"}
    reasons = {name: (item["decision"], item["reason"]) for name, item in found["orders"].items()}
    assert reasons == {
        "team-a/librarian": ("Placed", "LaunchPlanCalculated"),
        "team-a/drafts": ("Placed", "LaunchPlanCalculated"),
        "team-a/helper": ("Placed", "LaunchPlanCalculated"),
        "team-b/embedder": ("Placed", "LaunchPlanCalculated"),
        "team-b/reranker": ("Placed", "LaunchPlanCalculated"),
        "team-c/giant": ("Refused", "ResourceClaimExhausted"),
        "team-c/misspelt": ("Undecidable", "PlacementUndecidable"),
        "team-c/outsider": ("Refused", "NamespaceNotAllowed"),
    }
    assert found["orders"]["team-b/embedder"]["devices"] == found["orders"]["team-a/helper"]["devices"]
    assert found["classes"]["typo"]["validated"]["status"] == "False"


@pytest.mark.parametrize("shape", ["one list", "many files", "json", "folder", "replay", "standard input"])
def test_the_shape_of_the_input_does_not_matter(shape: str, tmp_path: Path, world: list[Object], dump: Path) -> None:
    want = wire.plan_json(plan(build.snapshot(world)))
    text = None
    match shape:
        case "one list":
            path = tmp_path / "list.yaml"
            path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": world[::-1]}))
            files = [str(path)]
        case "json":
            path = tmp_path / "list.json"
            path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": world}))
            files = [str(path)]
        case "many files":
            files = []
            for number, item in enumerate(world[::-1]):
                path = tmp_path / f"{number}.yaml"
                path.write_text(yaml.safe_dump(item))
                files.append(str(path))
        case "folder":
            (tmp_path / "deep").mkdir()
            dump.rename(tmp_path / "deep" / "dump.yml")
            (tmp_path / "README.md").write_text("not read")
            files = [str(tmp_path)]
        case "replay":
            path = tmp_path / "saved.json"
            assert run("snapshot", "save", "-f", str(dump), "-o", str(path)).exit_code == 0
            files = [str(path)]
        case _:
            files, text = ["-"], dump.read_text()
    found = run("plan", *(part for file in files for part in ("-f", file)), "-o", "json", text=text)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout) == want


def test_yaml_is_read_as_kubernetes_reads_it(tmp_path: Path, world: list[Object]) -> None:
    text = yaml.safe_dump_all(world).replace("'2026-01-01T00:00:01Z'", "2026-01-01T00:00:01Z")
    assert "creationTimestamp: 2026-01-01T00:00:01Z" in text
    path = tmp_path / "plain.yaml"
    path.write_text(text + "---\n# nothing\n---\n")
    assert answer("plan", "-f", str(path)) == wire.plan_json(plan(build.snapshot(world)))


def test_yaml_output_says_the_same_as_json(dump: Path) -> None:
    found = run("plan", "-f", str(dump), "-o", "yaml")
    assert yaml.safe_load(found.stdout) == answer("plan", "-f", str(dump))


def test_two_runs_are_byte_equal(dump: Path) -> None:
    first, second = (run("plan", "-f", str(dump), "-o", "json").stdout_bytes for _ in range(2))
    assert first == second


BAD = {
    "no file": ([], "name at least one file"),
    "a file that is not there": (["-f", "nowhere.yaml"], "nowhere.yaml: no such file or folder"),
    "an empty folder": (["-f", "."], ".: no .yaml, .yml or .json file in this folder"),
    "no YAML": (["-f", "broken.yaml"], "broken.yaml: "),
    "no object": (["-f", "text.yaml"], "text.yaml: an object is expected"),
    "no kind": (["-f", "kindless.yaml"], "kindless.yaml: kind: a text is expected"),
    "no name": (["-f", "nameless.yaml"], "nameless.yaml: metadata.name: a text is expected"),
    "a field in the second document": (["-f", "second.yaml"], "second.yaml: document 2: spec.replicas: unknown field"),
    "a field in a list": (
        ["-f", "list.yaml"],
        "list.yaml: items[1]: spec.model.src: 'Hub' is none of ai-models, HuggingFace",
    ),
    "a version that is none": (["-f", "fine.yaml", "--kubernetes", "new"], "--kubernetes: new is no version"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_input_that_cannot_be_read_ends_with_2_and_names_file_and_field(
    case: tuple[list[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, words = case
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    if arguments != ["-f", "."]:
        order = build.order("o")
        more = {**order, "spec": {**order["spec"], "replicas": 2}}
        hub = {**order, "spec": {**order["spec"], "model": {"src": "Hub", "ref": {"name": "x"}}}}
        for name, content in {
            "broken.yaml": "a: [",
            "text.yaml": "hello",
            "kindless.yaml": "metadata: {name: x}",
            "nameless.yaml": "kind: Node\nmetadata: {}",
            "second.yaml": yaml.safe_dump_all([build.tiny(), more]),
            "list.yaml": yaml.safe_dump({"kind": "List", "items": [build.tiny(), hub]}),
            "fine.yaml": yaml.safe_dump(order),
        }.items():
            Path(name).write_text(content)
    found = run("plan", *arguments)
    assert found.exit_code == 2
    assert words in found.output


@pytest.mark.parametrize("command", ["plan", "capacity"])
def test_tables_are_for_people(command: str, dump: Path) -> None:
    found = run(command, "-f", str(dump))
    assert found.exit_code == 0
    assert "gpu-0" in found.output


def test_explain_tells_what_holds_an_order_up(dump: Path) -> None:
    found = answer("explain", "team-a/o2", "-f", str(dump))
    assert found["plan"]["reason"] == "ResourceClaimExhausted"
    assert found["blocking"] == [{"holder": "team-a/o1", "order": True, "devices": ["gpu.nvidia.com/node-l4/gpu-0"]}]
    shown = run("explain", "team-a/o2", "-f", str(dump))
    assert "order team-a/o1 on gpu.nvidia.com/node-l4/gpu-0" in shown.output
    assert run("explain", "team-a/nobody", "-f", str(dump)).exit_code == 2


def test_what_if_tells_for_whom_something_would_change(dump: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text(yaml.safe_dump_all(build.l4_24g(1, "node-x")))
    found = answer("what-if", "-f", str(dump), "--add", str(more))
    assert list(found["changed"]) == ["team-a/o2"]
    assert found["changed"]["team-a/o2"]["after"]["devices"] == ["gpu.nvidia.com/node-x/gpu-0"]
    gone = answer("what-if", "-f", str(dump), "--remove", "InferenceService/team-a/o1")
    assert gone["changed"]["team-a/o1"]["after"] is None
    assert gone["changed"]["team-a/o2"]["after"]["decision"] == "Placed"
    drained = answer("what-if", "-f", str(dump), "--drain", "node-l4")
    assert drained["changed"]["team-a/o1"]["after"]["reason"] == "ResourceClaimExhausted"
    narrowed = answer(
        "what-if", "-f", str(dump), "--set",
        "InferenceServiceClass/standard:spec.admissionPolicy.allowedNamespaces=[\"team-b\"]",
    )  # fmt: skip
    assert narrowed["changed"]["team-a/o1"]["after"]["reason"] == "NamespaceNotAllowed"
    assert run("what-if", "-f", str(dump), "--drain", "nowhere").exit_code == 2


def test_size_prints_every_term_of_a_known_model_and_of_a_config_file(tmp_path: Path) -> None:
    found = answer("size", "Qwen/Qwen3-1.7B", "--context", "8192", "--device-memory", "24Gi")
    assert found["kvPerToken"] == 114_688
    assert found["total"] == sum(
        found[name] for name in ("weights", "kvCache", "activation", "graphs", "nonTorch", "safety")
    )
    assert found["kvTokens"] > 0
    assert "kvPerToken" in run("size", "Qwen/Qwen3-1.7B").output
    assert run("size", "nobody/knows").exit_code == 2
    assert run("size").exit_code == 2


def test_a_saved_snapshot_holds_no_secret_and_gives_the_equal_plan(tmp_path: Path, dump: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "s", "namespace": "team-a"},
                "data": {"token": "aGlkZGVu"},
            }
        )
    )
    saved = run("snapshot", "save", "-f", str(dump), "-f", str(secret))
    assert saved.exit_code == 0
    assert "aGlkZGVu" not in saved.stdout
    path = tmp_path / "saved.json"
    path.write_text(saved.stdout)
    assert answer("plan", "-f", str(path)) == answer("plan", "-f", str(dump), "-f", str(secret))
