# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Small random clusters with claims to place: the questions that implementations of one rule book are compared on.

Every question is the JSON of real API objects. The same seed gives the same questions on any machine. Selectors come
from `SELECTORS`, where each stands beside the same predicate in Python, so that a reference needs no CEL.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = dict[str, Any]
DRIVERS = ("a.example.com", "b.example.com")
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n", "zone": "z"}},
}


def _attribute(device: Json, name: str) -> Any:
    value = device.get("attributes", {}).get(name)
    return None if value is None else next(iter(value.values()))


def _has(name: str, test: str) -> str:
    field = f"device.attributes[device.driver].{name}"
    return f"has({field}) && {field} {test}"


SELECTORS: Mapping[str, Callable[[str, Json], bool]] = {
    "true": lambda driver, device: True,
    'device.driver == "a.example.com"': lambda driver, device: driver == DRIVERS[0],
    'device.driver == "b.example.com"': lambda driver, device: driver == DRIVERS[1],
    _has("model", '== "x"'): lambda driver, device: _attribute(device, "model") == "x",
    _has("model", '== "y"'): lambda driver, device: _attribute(device, "model") == "y",
    _has("grp", "== 0"): lambda driver, device: _attribute(device, "grp") == 0,
    '"mem" in device.capacity[device.driver] && '
    'device.capacity[device.driver].mem.compareTo(quantity("8")) >= 0': lambda driver, device: (
        int(device.get("capacity", {}).get("mem", {}).get("value", -1)) >= 8
    ),
    "device.allowMultipleAllocations": lambda driver, device: bool(device.get("allowMultipleAllocations")),
}
"""Selector → the same as a predicate of (driver, device)."""

CLASSES = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    for name, expression in (
        ("any", "true"),
        ("a", 'device.driver == "a.example.com"'),
        ("b", 'device.driver == "b.example.com"'),
    )
]
"""The device classes that every question has."""


GATES = ("admin", "binding", "consumable", "partitionable", "prioritized", "taints")
ERRING = "device.attributes[device.driver].opt == 'q'"
"""A selector that cannot be judged on devices without the attribute, nor where it is a version."""


def questions(seed: int, count: int, *, hazards: bool = False) -> Iterator[Json]:
    """`count` questions of one seed, in the form that the allocator harness reads.

    `hazards` adds what goes wrong in clusters: pools in doubt, devices of other nodes, binding conditions, gates that
    are off, selectors that err, classes that are not there.
    """
    chance = random.Random(seed)
    for number in range(count):
        slices, published = _slices(chance)
        existing = _held(chance, published)
        claims = [_claim(chance, f"c{number}") for number in range(chance.choice((1, 1, 1, 2)))]
        question: Json = {
            "id": f"s{seed}-{number}",
            "node": NODE,
            "classes": CLASSES,
            "slices": slices,
            "existing": existing,
            "claims": claims,
            "gates": None,
        }
        for _ in range(chance.choice((1, 1, 2)) if hazards else 0):
            chance.choice(_HAZARDS)(chance, question)
        yield question


def cards(seed: int, count: int) -> Iterator[Json]:
    """`count` questions on a node of equal cards, each cut by counters, some held: where a search has symmetries."""
    chance = random.Random(seed)
    for number in range(count):
        profiles = [
            (f"m{size}", size, chance.randint(0, 4 - size)) for size in (1, 1, 1, 2, 2, 4) if chance.random() < 0.8
        ]
        sets: list[Json] = []
        devices: list[Json] = []
        for card in range(chance.choice((2, 2, 3))):
            counters = {f"s{i}": {"value": "1"} for i in range(4)} | {"u": {"value": str(chance.choice((3, 4, 4)))}}
            sets.append({"name": f"card-{card}", "counters": counters})
            for i, (model, size, start) in enumerate(profiles):
                used = {f"s{i}": {"value": "1"} for i in range(start, start + size)} | {"u": {"value": str(size)}}
                devices.append(
                    {
                        "name": f"d{card}-{i}",
                        "attributes": {"model": {"string": model}, "card": {"int": card}},
                        "consumesCounters": [{"counterSet": f"card-{card}", "counters": used}],
                    }
                )
        if not devices:
            continue
        published = [(DRIVERS[0], "p", device) for device in chance.sample(devices, len(devices))]
        requests = []
        for i in range(chance.choice((1, 2, 2, 3))):
            ask: Json = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": chance.randint(1, 4)}
            if chance.random() < 0.7:
                model = chance.choice(("m1", "m2", "m4"))
                ask["selectors"] = [{"cel": {"expression": f'device.attributes[device.driver].model == "{model}"'}}]
            requests.append({"name": f"r{i}", "exactly": ask})
        body: Json = {"requests": requests}
        if chance.random() < 0.3:
            kind = chance.choice(("matchAttribute", "distinctAttribute"))
            body["constraints"] = [{kind: f"{DRIVERS[0]}/card", "requests": [chance.choice(requests)["name"]]}]
        common = {
            "driver": DRIVERS[0],
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
            "nodeName": "n",
        }
        yield {
            "id": f"k{seed}-{number}",
            "node": NODE,
            "classes": CLASSES,
            "slices": [
                {"metadata": {"name": "s-0"}, "spec": {**common, "sharedCounters": sets}},
                {"metadata": {"name": "s-1"}, "spec": {**common, "devices": devices}},
            ],
            "existing": _held(chance, published),
            "claims": [{"metadata": {"name": "c", "namespace": "team-a"}, "spec": {"devices": body}}],
            "gates": None,
        }


def _incomplete(chance: random.Random, question: Json) -> None:
    pool = chance.choice(question["slices"])["spec"]
    for part in question["slices"]:
        if (part["spec"]["driver"], part["spec"]["pool"]["name"]) == (pool["driver"], pool["pool"]["name"]):
            part["spec"]["pool"] = {**part["spec"]["pool"], "resourceSliceCount": 4}


def _older(chance: random.Random, question: Json) -> None:
    """A whole pool of an older generation beside it, with devices that are no more."""
    copied = copy.deepcopy(question["slices"])
    for part in question["slices"]:
        part["spec"]["pool"]["generation"] = 2
    for part in copied:
        part["metadata"]["name"] += "-old"
    question["slices"] += copied


def _half_published(chance: random.Random, question: Json) -> None:
    """The newer generation has fewer slices than it says, or all that it needs."""
    part = chance.choice(question["slices"])
    part["spec"]["pool"] = {**part["spec"]["pool"], "generation": 2}
    if chance.random() < 0.5:
        part["spec"]["pool"]["resourceSliceCount"] = 1


def _twice(chance: random.Random, question: Json) -> None:
    """Two devices with one name."""
    part = chance.choice([part for part in question["slices"] if part["spec"].get("devices")])
    part["spec"]["devices"].append(copy.deepcopy(part["spec"]["devices"][0]))


def _unknown_counters(chance: random.Random, question: Json) -> None:
    part = chance.choice([part for part in question["slices"] if part["spec"].get("devices")])
    device = chance.choice(part["spec"]["devices"])
    name = chance.choice(("u", "z"))
    device["consumesCounters"] = [{"counterSet": chance.choice(("cs0", "none")), "counters": {name: {"value": "1"}}}]


def _elsewhere(chance: random.Random, question: Json) -> None:
    """A slice is reached otherwise: by label, from everywhere, or not from here."""
    spec = chance.choice(question["slices"])["spec"]
    if "nodeName" in spec:
        del spec["nodeName"]
        spec |= chance.choice(
            (
                {"allNodes": True},
                {"nodeName": "elsewhere"},
                {"nodeSelector": _selector("zone", "z")},
                {"nodeSelector": _selector("zone", "y")},
            )
        )


def _each_for_itself(chance: random.Random, question: Json) -> None:
    spec = chance.choice([part["spec"] for part in question["slices"] if part["spec"].get("devices")])
    spec.pop("nodeName", None)
    if "nodeSelector" in spec or "allNodes" in spec:
        return
    spec["perDeviceNodeSelection"] = True
    for device in spec["devices"]:
        device |= chance.choice(({"nodeName": "n"}, {"nodeName": "elsewhere"}, {"allNodes": True}))


def _binding(chance: random.Random, question: Json) -> None:
    part = chance.choice([part for part in question["slices"] if part["spec"].get("devices")])
    chance.choice(part["spec"]["devices"])["bindingConditions"] = ["ready.example.com/done"]


def _gates_off(chance: random.Random, question: Json) -> None:
    question["gates"] = [gate for gate in GATES if chance.random() < 0.75]


def _erring(chance: random.Random, question: Json) -> None:
    request = chance.choice(chance.choice(question["claims"])["spec"]["devices"]["requests"])
    ask = request.get("exactly") or chance.choice(request["firstAvailable"])
    ask["selectors"] = [{"cel": {"expression": ERRING}}]


def _no_class(chance: random.Random, question: Json) -> None:
    request = chance.choice(chance.choice(question["claims"])["spec"]["devices"]["requests"])
    (request.get("exactly") or chance.choice(request["firstAvailable"]))["deviceClassName"] = "nobody"


def _many(chance: random.Random, question: Json) -> None:
    """More devices than a claim may have, or nearly."""
    request = chance.choice(chance.choice(question["claims"])["spec"]["devices"]["requests"])
    ask = request.get("exactly") or chance.choice(request["firstAvailable"])
    ask |= {"allocationMode": "ExactCount", "count": chance.choice((31, 32, 33))}


def _overdrawn(chance: random.Random, question: Json) -> None:
    """A counter set that the devices held have overdrawn."""
    for part in question["slices"]:
        for counter_set in part["spec"].get("sharedCounters", []):
            for counter in counter_set["counters"].values():
                counter["value"] = "1"


_HAZARDS: tuple[Callable[[random.Random, Json], None], ...] = (
    _incomplete,
    _older,
    _half_published,
    _twice,
    _unknown_counters,
    _elsewhere,
    _elsewhere,
    _each_for_itself,
    _each_for_itself,
    _binding,
    _binding,
    _gates_off,
    _gates_off,
    _erring,
    _erring,
    _no_class,
    _many,
    _overdrawn,
)


def _selector(key: str, value: str) -> Json:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}


def _slices(chance: random.Random) -> tuple[list[Json], list[tuple[str, str, Json]]]:
    slices: list[Json] = []
    published: list[tuple[str, str, Json]] = []
    for number, driver in enumerate(DRIVERS[: chance.choice((1, 1, 2))]):
        pool = chance.choice(("p", f"p-{number}"))
        sets = [
            {"name": f"cs{i}", "counters": {key: {"value": str(chance.randint(1, 6))} for key in ("u", "m")}}
            for i in range(chance.choice((0, 1, 1, 2)))
        ]
        devices = [_device(chance, f"d{i}", sets) for i in range(chance.randint(1, 4))]
        published += [(driver, pool, device) for device in devices]
        parts: list[Json] = [{"sharedCounters": sets}] if sets else []
        cut = chance.choice((0, 0, 1)) if len(devices) > 1 else 0
        parts += [{"devices": part} for part in (devices[:cut], devices[cut:]) if part]
        for i, part in enumerate(parts):
            slices.append(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSlice",
                    "metadata": {"name": f"{pool}-{number}-{i}"},
                    "spec": {
                        "driver": driver,
                        "pool": {"name": pool, "generation": 1, "resourceSliceCount": len(parts)},
                        "nodeName": "n",
                        **part,
                    },
                }
            )
    return slices, published


def _device(chance: random.Random, name: str, sets: list[Json]) -> Json:
    device: Json = {
        "name": name,
        "attributes": {"model": {"string": chance.choice("xy")}, "grp": {"int": chance.randint(0, 1)}},
    }
    if chance.random() < 0.5:
        device["attributes"]["opt"] = chance.choice(({"string": chance.choice("pq")}, {"version": "1.0.0"}))
    shared = chance.random() < 0.45
    if shared:
        device["allowMultipleAllocations"] = True
    if chance.random() < 0.75:
        value = chance.choice((4, 8, 16))
        mem: Json = {"value": str(value)}
        if shared:
            policies: tuple[Json | None, ...] = (
                None,
                {"default": str(chance.choice((1, value)))},
                {
                    "default": "2",
                    "validRange": {"min": chance.choice(("1", "2")), "max": str(value), "step": chance.choice("12")},
                },
                {"default": "2", "validValues": ["2", "4"]},
            )
            policy = chance.choice(policies)
            if policy is not None:
                mem["requestPolicy"] = policy
        device["capacity"] = {"mem": mem}
        if shared and chance.random() < 0.3:
            device["capacity"]["seats"] = {"value": "3", "requestPolicy": {"default": "1", "validRange": {"min": "1"}}}
    if sets and chance.random() < 0.7:
        device["consumesCounters"] = [
            {"counterSet": cs["name"], "counters": {key: {"value": str(chance.randint(0, 3))} for key in ("u", "m")}}
            for cs in chance.sample(sets, chance.choice((1, 1, len(sets))))
        ]
    if chance.random() < 0.15:
        effect = chance.choice(("NoSchedule", "NoExecute", "None"))
        device["taints"] = [{"key": "t", "value": "v", "effect": effect}]
    return device


def _held(chance: random.Random, published: list[tuple[str, str, Json]]) -> list[Json]:
    held = []
    free = list(published)
    for number in range(chance.choice((0, 0, 1, 2))):
        if not free:
            break
        driver, pool, device = free.pop(chance.randrange(len(free)))
        result: Json = {"request": "g", "driver": driver, "pool": pool, "device": device["name"]}
        if device.get("allowMultipleAllocations"):
            result["shareID"] = f"0b000000-0000-4000-8000-{number:012}"
            if "capacity" in device:
                result["consumedCapacity"] = {
                    name: str(chance.choice((1, 2, 4)) if name == "mem" else 1) for name in device["capacity"]
                }
        if chance.random() < 0.1:
            result["adminAccess"] = True
        held.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": f"h{number}", "namespace": "team-b"},
                "spec": {"devices": {"requests": []}},
                "status": {"allocation": {"devices": {"results": [result]}}},
            }
        )
    return held


def _claim(chance: random.Random, name: str) -> Json:
    requests = [_request(chance, f"r{i}") for i in range(chance.choice((1, 1, 2, 2, 3)))]
    devices: Json = {"requests": requests}
    if chance.random() < 0.4:
        kind = chance.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        attribute = f"{chance.choice(DRIVERS)}/{chance.choice(('model', 'grp', 'opt'))}"
        constraint: Json = {kind: attribute}
        if chance.random() < 0.3:
            constraint["requests"] = [chance.choice(requests)["name"]]
        devices["constraints"] = [constraint]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"devices": devices},
    }


def _request(chance: random.Random, name: str) -> Json:
    if chance.random() < 0.2:
        asks = [{"name": f"s{i}", **_ask(chance)} for i in range(2)]
        return {"name": name, "firstAvailable": asks}
    ask = _ask(chance)
    if chance.random() < 0.05:
        ask["adminAccess"] = True
    return {"name": name, "exactly": ask}


def _ask(chance: random.Random) -> Json:
    ask: Json = {"deviceClassName": chance.choice(("any", "any", "a", "b"))}
    if chance.random() < 0.12:
        ask["allocationMode"] = "All"
    else:
        ask |= {"allocationMode": "ExactCount", "count": chance.choice((1, 1, 1, 2, 2, 3))}
    if chance.random() < 0.4:
        ask["selectors"] = [{"cel": {"expression": chance.choice(tuple(SELECTORS))}}]
    if chance.random() < 0.25:
        ask["capacity"] = {"requests": {"mem": str(chance.choice((0, 1, 2, 3, 5, 8)))}}
    if chance.random() < 0.3:
        ask["tolerations"] = [{"key": "t", "operator": "Exists"}]
    return ask


if __name__ == "__main__":
    for question in questions(int(sys.argv[1]), int(sys.argv[2])):
        print(json.dumps(question))
