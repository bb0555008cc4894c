# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Slices of partitionable cards as `gpu.nvidia.com` publishes them (tests/fixtures/dra/03 and 04), for any number.

A counter set for each card in a slice of its own kind, then for each card a slice with the whole card first and its
partitions sorted by name. Profiles: name, id, MiB, multiprocessors, copy engines, decoders, JPEG and OFA engines,
memory slices, starts. Sources: A30 and A100 are the fixtures' numbers; H100 and H200 are what `nvidia-smi mig -lgip`
prints on such cards (GiB to two digits; H200: NVIDIA/mig-parted issue 120), their starts NVIDIA's MIG user guide.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]
DRIVER: Final = "gpu.nvidia.com"


@dataclass(frozen=True, slots=True)
class Profile:
    """A way to cut a part from a card."""

    name: str
    number: int
    mebibytes: int
    engines: tuple[int, int, int, int, int]
    """Multiprocessors, copy engines, decoders, JPEG engines, OFA engines."""
    width: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A card and how it can be cut."""

    name: str
    architecture: str
    capability: str
    mebibytes: int
    engines: tuple[int, int, int, int, int]
    slots: int
    profiles: tuple[Profile, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The different sizes of its partitions, in MiB, rising."""
        return tuple(sorted({profile.mebibytes for profile in self.profiles}))


SEVEN: Final = (0, 1, 2, 3, 4, 5, 6)
PRODUCTS: Final[Mapping[str, Product]] = {
    "A30": Product("NVIDIA A30", "Ampere", "8.0.0", 24 * 1024, (56, 4, 4, 1, 1), 4, (
        Profile("1g.6gb", 14, 5952, (14, 1, 1, 0, 0), 1, (0, 1, 2, 3)),
        Profile("1g.6gb+me", 21, 5952, (14, 1, 1, 1, 1), 1, (0, 1, 2, 3)),
        Profile("2g.12gb", 5, 12032, (28, 2, 2, 0, 0), 2, (0, 2)),
        Profile("2g.12gb+me", 6, 12032, (28, 2, 2, 1, 1), 2, (0, 2)),
        Profile("4g.24gb", 0, 24125, (56, 4, 4, 1, 1), 4, (0,)),
    )),
    "A100": Product("NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", 40 * 1024, (98, 7, 5, 1, 1), 8, (
        Profile("1g.5gb", 19, 4864, (14, 1, 0, 0, 0), 1, SEVEN),
        Profile("2g.10gb", 14, 9856, (28, 2, 1, 0, 0), 2, (0, 2, 4)),
        Profile("3g.20gb", 9, 19968, (42, 3, 2, 0, 0), 4, (0, 4)),
        Profile("4g.20gb", 5, 19968, (56, 4, 2, 0, 0), 4, (0,)),
        Profile("7g.40gb", 0, 40192, (98, 7, 5, 1, 1), 8, (0,)),
    )),
    "H100": Product("NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", 81559, (132, 8, 7, 7, 1), 8, (
        Profile("1g.10gb", 19, 9984, (16, 1, 1, 1, 0), 1, SEVEN),
        Profile("1g.10gb+me", 20, 9984, (16, 1, 1, 1, 1), 1, SEVEN),
        Profile("1g.20gb", 15, 20096, (26, 1, 1, 1, 0), 2, (0, 2, 4, 6)),
        Profile("2g.20gb", 14, 20096, (32, 2, 2, 2, 0), 2, (0, 2, 4)),
        Profile("3g.40gb", 9, 40448, (60, 3, 3, 3, 0), 4, (0, 4)),
        Profile("4g.40gb", 5, 40448, (64, 4, 4, 4, 0), 4, (0,)),
        Profile("7g.80gb", 0, 81008, (132, 8, 7, 7, 1), 8, (0,)),
    )),
    "H200": Product("NVIDIA H200", "Hopper", "9.0.0", 143771, (132, 8, 7, 7, 1), 8, (
        Profile("1g.18gb", 19, 16384, (16, 1, 1, 1, 0), 1, SEVEN),
        Profile("1g.18gb+me", 20, 16384, (16, 1, 1, 1, 1), 1, SEVEN),
        Profile("1g.35gb", 15, 33024, (26, 1, 1, 1, 0), 2, (0, 2, 4, 6)),
        Profile("2g.35gb", 14, 33024, (32, 2, 2, 2, 0), 2, (0, 2, 4)),
        Profile("3g.71gb", 9, 71168, (60, 3, 3, 3, 0), 4, (0, 4)),
        Profile("4g.71gb", 5, 71168, (64, 4, 4, 4, 0), 4, (0,)),
        Profile("7g.141gb", 0, 143104, (132, 8, 7, 7, 1), 8, (0,)),
    )),
}  # fmt: skip
COUNTERS: Final = ("multiprocessors", "copy-engines", "decoders", "jpeg-engines", "ofa-engines")


def cards(product: Product, count: int, node: str = "node") -> list[Object]:
    """One node with `count` cards: the Node and its slices."""
    slices: list[Object] = []
    sets: list[Object] = []
    for number in range(count):
        card = f"gpu-{number:04}"
        counter_set = f"{card}-counter-set"
        uuid = f"GPU-{node}-{number:04}"
        full = _counters(product.mebibytes, product.engines, range(product.slots))
        sets.append({"name": counter_set, "counters": full})
        devices = [
            {
                "name": card,
                "attributes": _attributes(product, type="gpu", uuid=uuid),
                "capacity": {"memory": {"value": f"{product.mebibytes}Mi"}},
                "consumesCounters": [{"counterSet": counter_set, "counters": full}],
            }
        ]
        for profile in product.profiles:
            for start in profile.starts:
                used = range(start, min(start + profile.width, product.slots))
                bare = profile.name.replace(".", "").replace("+", "")
                devices.append(
                    {
                        "name": f"{card}-mig-{bare}-{profile.number}-{start}",
                        "attributes": _attributes(product, type="mig", parentUUID=uuid, profile=profile.name),
                        "capacity": {
                            "memory": {"value": f"{profile.mebibytes}Mi"},
                            "multiprocessors": {"value": str(profile.engines[0])},
                        },
                        "consumesCounters": [
                            {
                                "counterSet": counter_set,
                                "counters": _counters(profile.mebibytes, profile.engines, used),
                            }
                        ],
                    }
                )
        devices.sort(key=lambda device: str(device["name"]))
        slices.append({"devices": devices})
    parts: list[Object] = [{"sharedCounters": sets[at : at + 8]} for at in range(0, len(sets), 8)] + slices
    made: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node, "labels": {"kubernetes.io/hostname": node}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
    ]
    for number, part in enumerate(parts):
        made.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{node}-{number:04}"},
                "spec": {
                    "driver": DRIVER,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": len(parts)},
                    "nodeName": node,
                    **part,
                },
            }
        )
    return made


def _counters(mebibytes: int, engines: tuple[int, ...], slots: range) -> Object:
    return {
        "memory": {"value": f"{mebibytes}Mi"},
        **{name: {"value": str(count)} for name, count in zip(COUNTERS, engines, strict=True)},
        **{f"memory-slice-{slot}": {"value": "1"} for slot in slots},
    }


def _attributes(product: Product, **more: str) -> Object:
    return {
        **{name: {"string": value} for name, value in more.items()},
        "productName": {"string": product.name},
        "architecture": {"string": product.architecture},
        "cudaComputeCapability": {"version": product.capability},
        "driverVersion": {"version": "595.58.3"},
    }
