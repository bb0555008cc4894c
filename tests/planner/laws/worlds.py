# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Small random worlds: a few nodes of real hardware, classes of every kind, orders, and claims of others."""

from __future__ import annotations

from hypothesis import strategies as st

from tests import build
from tests.build import Object

HARDWARE = (
    build.h100_mig,
    build.a30_mig,
    build.a30_deckhouse,
    build.l40s_shared,
    build.rtx3090_deckhouse,
    build.l4_24g,
    build.h100_80g,
)
NEEDS = ("5Gi", "8Gi", "18Gi", "35Gi")
BIG = "meta-llama/Llama-3.3-70B-Instruct"


@st.composite
def worlds(draw: st.DrawFn) -> list[Object]:
    """Objects of a world in which some orders fit and some don't."""
    parts: list[Object] = [
        build.any_device("every"),
        build.device_class("nvidia", 'device.driver == "gpu.nvidia.com"'),
        build.device_class(
            "parts", 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"'
        ),
        build.tiny(),
        *(build.needing(need) for need in NEEDS),
    ]
    for number in range(draw(st.integers(1, 2))):
        hardware = draw(st.sampled_from(HARDWARE))
        parts += hardware(draw(st.integers(1, 2)), f"node-{number}")
    some = draw(st.sampled_from(((1, 1), (1, 3), (2, 3))))
    parts += [
        build.service_class("any", replicas=some),
        build.service_class("alone", sharing=["Dedicated"], placement=["WholeDevice"], count=2),
        build.service_class("cut", sharing=["Dedicated"], placement=["Partition"], replicas=(1, 2)),
        build.service_class("share", sharing=["Shared"], share=(None, f"{12 * 1024}Mi"), replicas=(2, 2)),
        build.service_class("broken", selector='device.attributes["nobody"].knows == "it"'),
    ]
    for number in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(("any", "any", "alone", "cut", "cut", "share", "broken")))
        big = name == "alone" and draw(st.booleans())
        parts.append(
            build.order(
                f"o{number}",
                namespace=draw(st.sampled_from(("team-a", "team-b"))),
                service_class=name,
                model=BIG if big else draw(st.sampled_from(("tiny", *(f"needs-{need.lower()}" for need in NEEDS)))),
                hub=big,
                device_classes=draw(st.sampled_from((None, None, ["nvidia"], ["parts"]))),
                created=draw(st.integers(0, 9)),
            )
        )
    return parts


def devices_of(world: list[Object]) -> list[tuple[str, str, Object]]:
    """(driver, pool, device) of every published device."""
    return [
        (item["spec"]["driver"], item["spec"]["pool"]["name"], device)
        for item in world
        if item["kind"] == "ResourceSlice"
        for device in item["spec"].get("devices", ())
    ]


@st.composite
def held_worlds(draw: st.DrawFn) -> list[Object]:
    """A world in which others hold a few devices that do not exclude each other (one to a card)."""
    world = draw(worlds())
    seen: set[tuple[str, str, str]] = set()
    claims: list[Object] = []
    published = devices_of(world)
    for driver, pool, device in draw(st.lists(st.sampled_from(published), max_size=2)):
        consumed = device.get("consumesCounters")
        address = device["attributes"].get("gpu.deckhouse.io/pciAddress", {}).get("string")
        card = (driver, pool, consumed[0]["counterSet"] if consumed and not address else address or device["name"])
        if card in seen:
            continue
        seen.add(card)
        shares = None
        if device.get("allowMultipleAllocations"):
            shares = {"memory": f"{draw(st.integers(1, 20)) * 1024}Mi"}
            if "sharePercent" in device["capacity"]:
                shares["sharePercent"] = str(draw(st.integers(1, 100)))
        claims.append(build.claim(f"held-{len(claims)}", [(driver, pool, device["name"])], shares=shares))
    return [*world, *claims]
