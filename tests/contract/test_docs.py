# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What the documentation says is what the module does: reasons, fields, commands, metrics, in both languages alike."""

from __future__ import annotations

import functools
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from jsonschema import Draft202012Validator
from lib.ai_inference import conditions
from planner import cel
from planner.__main__ import main as planner
from planner.metrics import Metrics, capacity_families
from planner.reasons import Refused

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMES = ["ADMIN_GUIDE", "CONFIGURATION", "CR", "EXAMPLES", "FAQ", "README", "RELEASE_NOTES", "USER_GUIDE"]
PAGES = [f"{name}{language}.md" for name in NAMES for language in ("", ".ru")]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
LABELS = {
    "FAQ.md": ["What it means.", "Where to look.", "What to change."],
    "FAQ.ru.md": ["Что это значит.", "Где смотреть.", "Что изменить."],
}
OF_CLASSES = {"SelectorBroken", "Unreadable", "DeviceClassNotFound", "StorageClassNotFound"}
"""Reasons that conditions of a service class show, by `planner.verdicts` and by `lib.ai_inference.classes`."""
OF_EVENTS = {"SettledRegionKept", "PlanChanged", "BoundLowered", "BoundRestored", "ReplicaRescheduled"}

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: the language it names and its text."""

    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One file of `docs/`."""

    front: Mapping[str, Any]
    headings: tuple[tuple[int, str], ...]
    blocks: tuple[Block, ...]
    prose: str
    """The text outside of fenced blocks."""


@functools.cache
def page(name: str) -> Page:
    _, front, body = (DOCS / name).read_text().split("---\n", 2)
    blocks: list[Block] = []
    prose: list[str] = []
    inside: list[str] | None = None
    language = ""
    for line in body.splitlines():
        if line.startswith("```") and inside is None:
            inside, language = [], line[3:]
        elif line == "```" and inside is not None:
            blocks.append(Block(language=language, text="\n".join(inside)))
            inside = None
        elif inside is not None:
            inside.append(line)
        else:
            prose.append(line)
    assert inside is None, f"{name}: a fenced block has no end"
    headings = tuple((len(found[1]), found[2]) for line in prose if (found := re.match(r"(#+) (.+)", line)))
    return Page(front=yaml.safe_load(front), headings=headings, blocks=tuple(blocks), prose="\n".join(prose))


def documents(name: str) -> list[Manifest]:
    """Every YAML document of a page."""
    return [
        document
        for block in page(name).blocks
        if block.language == "yaml"
        for document in yaml.safe_load_all(block.text)
    ]


def test_there_is_every_page_in_both_languages_and_no_other() -> None:
    assert sorted(path.name for path in DOCS.iterdir()) == sorted(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_front_matter_has_a_title_a_menu_title_and_a_description(name: str) -> None:
    front = page(name).front
    assert sorted(front) == ["description", "menuTitle", "title"]
    assert all(isinstance(text, str) and text for text in front.values())


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_have_the_same_structure(name: str) -> None:
    english, russian = page(f"{name}.md"), page(f"{name}.ru.md")
    assert [level for level, _ in english.headings] == [level for level, _ in russian.headings]
    assert skeleton(english.prose) == skeleton(russian.prose)


def skeleton(prose: str) -> list[str]:
    """What kind of line follows what: paragraph, list item, heading with its level, row of a table with its columns."""
    kinds: list[str] = []
    for line in prose.splitlines():
        if not line.strip():
            continue
        first = line.split(" ", 1)[0]
        kinds.append(f"|{line.count('|')}" if first == "|" else first if first in ("-", "1.", "##", "###") else "text")
    return kinds


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_show_the_same_code(name: str) -> None:
    def code(page_name: str) -> list[Block]:
        return [
            Block(
                language=block.language,
                text="\n".join("#" if line.startswith("# ") else line for line in block.text.splitlines()),
            )
            for block in page(page_name).blocks
        ]

    assert code(f"{name}.md") == code(f"{name}.ru.md")


@pytest.mark.parametrize("name", [f"{name}.md" for name in NAMES])
def test_english_pages_have_no_cyrillic(name: str) -> None:
    assert re.findall("[А-Яа-яЁё]+", (DOCS / name).read_text()) == []


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_pages_that_exist(name: str) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", page(name).prose)
    assert [t for t in targets if f"{t.partition('#')[0].removesuffix('.html').upper()}.md" not in PAGES] == []


# The FAQ


def entries(name: str) -> dict[str, str]:
    """Heading of the third level → the text under it."""
    found: dict[str, str] = {}
    for part in re.split(r"^### ", page(name).prose, flags=re.M)[1:]:
        heading, _, text = part.partition("\n")
        assert heading not in found, f"{name}: {heading} is there twice"
        found[heading] = re.split(r"^## ", text, flags=re.M)[0].strip()
    return found


def words(heading: str) -> list[str]:
    """The reasons that head an entry; empty for a question in words."""
    return heading.split(", ") if re.fullmatch(r"([A-Z][a-z]+[A-Za-z]+)(, [A-Z][A-Za-z]+)*", heading) else []


def reasons_of_orders() -> set[str]:
    """Every reason that a condition of an order may show while it is not plainly true, as its schema lists them."""
    crd = yaml.safe_load((ROOT / "crds" / "inferenceservice.yaml").read_text())
    status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    text = status["properties"]["conditions"]["items"]["properties"]["reason"]["description"]
    listed = set(re.findall(r"`([A-Z]\w+)`", text)) - set(conditions.TYPES) - {"True"}
    assert len(listed) > 20
    return listed


@pytest.mark.parametrize("name", LABELS)
def test_every_reason_has_one_entry_and_no_entry_is_of_a_reason_that_nobody_gives(name: str) -> None:
    headed = Counter(word for heading in entries(name) for word in words(heading))
    by_hooks = {*conditions.CLASS_REASONS, *conditions.MODEL_REASONS, *conditions.PLAN_REASONS, *conditions.REFUSALS}
    wanted = {*reasons_of_orders(), *by_hooks, *(refused.word for refused in Refused), *OF_CLASSES, *OF_EVENTS}
    assert headed == Counter(wanted)


@pytest.mark.parametrize("name", LABELS)
def test_an_entry_says_what_a_reason_means_where_to_look_and_what_to_change(name: str) -> None:
    for heading, text in entries(name).items():
        if words(heading):
            told = re.findall(r"^\*\*(.+?)\*\* \S+", text, flags=re.M)
            assert told == LABELS[name], heading


@pytest.mark.parametrize("name", LABELS)
def test_a_reason_stands_under_the_condition_that_shows_it(name: str) -> None:
    under: dict[str, str] = {}
    section = ""
    for level, heading in page(name).headings:
        if level == 2:
            section = heading.partition(":")[0]
        for word in words(heading) if level == 3 else ():
            under[word] = section
    assert {refused.word: under[refused.word] for refused in Refused} == {
        refused.word: refused.stage.value for refused in Refused
    }


def test_the_user_guide_names_every_refusal_of_the_planner() -> None:
    [table] = re.findall(r"^## When an order is refused\n(.*)", page("USER_GUIDE.md").prose, flags=re.M | re.S)
    named = set(re.findall(r"`([A-Z]\w+)`", table))
    assert {refused.word for refused in Refused} - named == set()


# Examples against the schemas


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a kind as JSON Schema, with unknown fields refused as strict validation of the API server does."""
    made = {key: part for key, part in schema.items() if not key.startswith("x-") and key != "nullable"}
    if "properties" in made:
        made["properties"] = {name: strict(part) for name, part in made["properties"].items()}
        made.setdefault("additionalProperties", False)
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), Mapping):
            made[key] = strict(made[key])
    if schema.get("nullable"):
        return {"anyOf": [{"type": "null"}, made]}
    return made


@functools.cache
def validators() -> dict[str, Draft202012Validator]:
    """Kind → what judges a manifest of it."""
    found: dict[str, Draft202012Validator] = {}
    for path in (ROOT / "crds").glob("inference*.yaml"):
        crd = yaml.safe_load(path.read_text())
        [version] = crd["spec"]["versions"]
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"] |= {
            "apiVersion": {"const": f"{crd['spec']['group']}/{version['name']}"},
            "kind": True,
            "metadata": {"type": "object"},
        }
        schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
        found[crd["spec"]["names"]["kind"]] = Draft202012Validator(schema)
    settings = strict(yaml.safe_load((ROOT / "openapi" / "config-values.yaml").read_text()))
    found["ModuleConfig"] = Draft202012Validator({"properties": {"spec": {"properties": {"settings": settings}}}})
    return found


def problems(manifest: Manifest) -> list[str]:
    judge = validators()[manifest["kind"]]
    return [
        f"{manifest['metadata']['name']}: {error.json_path}: {error.message}" for error in judge.iter_errors(manifest)
    ]


def ours(manifests: list[Manifest]) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest.get("kind") in validators()]


@pytest.mark.parametrize("name", PAGES)
def test_every_example_on_a_page_is_accepted_by_the_schema(name: str) -> None:
    assert [problem for manifest in ours(documents(name)) for problem in problems(manifest)] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.name))
def test_every_example_file_is_accepted_by_the_schema(path: Path) -> None:
    manifests = ours(list(yaml.safe_load_all(path.read_text())))
    assert manifests
    assert [problem for manifest in manifests for problem in problems(manifest)] == []


def test_the_schema_refuses_what_the_api_server_refuses() -> None:
    [order] = [manifest for manifest in documents("README.md") if manifest["kind"] == "InferenceService"]
    spec = order["spec"]
    wrong = [
        {**order, "spec": {**spec, "replicas": 2}},
        {**order, "spec": {**spec, "model": {**spec["model"], "src": "huggingface"}}},
        {**order, "spec": {"model": spec["model"]}},
    ]
    assert [len(problems(manifest)) for manifest in wrong] == [1, 1, 1]


def test_the_bundled_class_is_shown_as_the_module_ships_it() -> None:
    text = (ROOT / "templates" / "classes" / "default-llm.yaml").read_text()
    shipped = yaml.safe_load("\n".join(line for line in text.splitlines() if "{{" not in line))
    [shown] = [manifest for manifest in documents("ADMIN_GUIDE.md") if manifest["metadata"]["name"] == "default-llm"]
    assert shown["spec"] == shipped["spec"]


def expressions(manifest: Manifest) -> Iterator[str]:
    if manifest["kind"] == "DeviceClass":
        yield from (selector["cel"]["expression"] for selector in manifest["spec"]["selectors"])
    selector = (manifest.get("spec", {}).get("acceleratorPolicy") or {}).get("deviceSelector")
    if selector is not None:
        yield selector


@pytest.mark.parametrize("release", [(1, 34), (1, 37)], ids=["1.34", "1.37"])
def test_expressions_compile_and_are_answered_on_a_device_of_another_driver(release: tuple[int, int]) -> None:
    shown = [text for manifest in documents("ADMIN_GUIDE.md") for text in expressions(manifest)]
    assert len(shown) == 4
    for text in shown:
        assert cel.compile(text, release).error is None, text
        assert text.startswith("device.driver == "), text


# Commands and metrics


def commands(name: str) -> list[list[str]]:
    """Every call of the planner on a page, in blocks and in the text, split as a shell does."""
    shown = page(name)
    lines = [line for block in shown.blocks if block.language == "shell" for line in block.text.splitlines()]
    lines += re.findall(r"`(planner [^`]+)`", shown.prose)
    return [
        shlex.split(line.removeprefix("  python3 -m "))[1:]
        for line in lines
        if re.match(r"(  python3 -m )?planner ", line)
    ]


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_their_options_exist(name: str) -> None:
    for words_ in commands(name):
        found: click.Command = planner
        rest = list(words_)
        while isinstance(found, click.Group) and rest:
            found = found.commands[rest.pop(0)]
        known = {option for parameter in found.params for option in parameter.opts}
        assert [word for word in rest if word.startswith("-") and word not in known] == [], words_


def test_the_guides_call_every_question_of_the_planner() -> None:
    called = {words_[0] for name in PAGES for words_ in commands(name)}
    assert called == set(planner.commands) - {"serve"}


def test_metrics_that_the_guide_names_exist_and_none_of_the_planner_is_left_out() -> None:
    guide = page("ADMIN_GUIDE.md").prose
    exposed = Metrics().text().decode()
    families = set(re.findall(r"^# TYPE (\w+)", exposed, flags=re.M)) | {item.name for item in capacity_families({})}
    planned = {name for name in families if not name.endswith("_created")}
    later = {"ai_inference_planner_capacity_preempted", "ai_inference_planner_donor_lowered_by"}
    assert set(re.findall(r"`(ai_inference_planner_\w+)`", guide)) == planned - later
    hooks = (ROOT / "hooks" / "lib" / "ai_inference" / "metrics.py").read_text()
    assert [name for name in re.findall(r"`(d8_ai_inference_\w+)`", guide) if f'"{name}"' not in hooks] == []
