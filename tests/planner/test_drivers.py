# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What each driver's adapter makes of devices as that driver publishes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from planner import cel, dra, drivers
from planner.dra import Capacity, ClaimRequestConfig, DeviceSpec
from planner.drivers import Facts, Role
from planner.units import GI, MI, UNKNOWN

FIXTURES = Path(__file__).parents[1] / "fixtures" / "dra"


def published(fixture: str, name: str) -> tuple[str, DeviceSpec]:
    """The driver and the device of that name in a fixture."""
    for raw in yaml.safe_load_all((FIXTURES / fixture).read_text()):
        if raw["kind"] == "ResourceSlice":
            part = dra.read_slice(raw)
            for spec in part.devices:
                if spec.name == name:
                    return part.driver, spec
    raise LookupError(f"{fixture} has no device {name}")


def facts(fixture: str, name: str) -> Facts:
    driver, spec = published(fixture, name)
    return drivers.adapter_of(driver).facts(driver, spec)


def attribute(driver: str, name: str, value: str) -> str:
    field = f'device.attributes["{driver}"].{name}'
    return f'device.driver == "{driver}" && has({field}) && {field} == {value}'


NVIDIA, DECKHOUSE, AMD, INTEL, EXAMPLE = (
    "gpu.nvidia.com",
    "gpu.deckhouse.io",
    "gpu.amd.com",
    "gpu.intel.com",
    "gpu.example.com",
)
A100 = "GPU-00000000-0000-4000-8000-000000000210"

CASES: Mapping[str, tuple[str, str, Facts]] = {
    "a whole NVIDIA card": (
        "01-nvidia-h100-8x.yaml",
        "gpu-3",
        Facts(
            card="gpu-3",
            vendor="nvidia",
            product="NVIDIA H100 80GB HBM3",
            memory=81559 * MI,
            compute_capability=(9, 0),
            driver_version="580.95.5",
            identity=frozenset({"uuid", "resource.kubernetes.io/pciBusID"}),
            pins=(attribute(NVIDIA, "uuid", '"GPU-00000000-0000-4000-8000-000000000103"'),),
        ),
    ),
    "an NVIDIA partition that is not created yet is told by parent and profile": (
        "03-nvidia-a100-mig-split-slices-1.35.yaml",
        "gpu-0-mig-1g5gb-19-2",
        Facts(
            partition=True,
            profile="1g.5gb",
            card="gpu-0",
            vendor="nvidia",
            product="NVIDIA A100-SXM4-40GB",
            memory=4864 * MI,
            compute_capability=(8, 0),
            driver_version="580.95.5",
            identity=frozenset({"parentUUID"}),
            pins=(attribute(NVIDIA, "parentUUID", f'"{A100}"'), attribute(NVIDIA, "profile", '"1g.5gb"')),
        ),
    ),
    "a Deckhouse card": (
        "05-deckhouse-rtx3090-a30.yaml",
        "gpu-0000-02-00-0",
        Facts(
            card="0000:02:00.0",
            vendor="nvidia",
            product="geforce-rtx-3090",
            memory=24 * GI,
            compute_capability=(8, 6),
            driver_version="580.76.05",
            identity=frozenset({f"{DECKHOUSE}/pciAddress", f"{DECKHOUSE}/gpuUUID"}),
            pins=(
                attribute(DECKHOUSE, "pciAddress", '"0000:02:00.0"'),
                attribute(DECKHOUSE, "deviceType", '"Physical"'),
            ),
        ),
    ),
    "a Deckhouse partition": (
        "05-deckhouse-rtx3090-a30.yaml",
        "mig-0000-41-00-0-p14-s0-n1",
        Facts(
            partition=True,
            profile="1g.6gb",
            card="0000:41:00.0",
            vendor="nvidia",
            product="a30-pcie",
            memory=5949 * MI,
            compute_capability=(8, 0),
            driver_version="580.76.05",
            identity=frozenset({f"{DECKHOUSE}/pciAddress", f"{DECKHOUSE}/gpuUUID"}),
            pins=(
                attribute(DECKHOUSE, "pciAddress", '"0000:41:00.0"'),
                attribute(DECKHOUSE, "deviceType", '"MIG"'),
                attribute(DECKHOUSE, "migProfile", '"1g.6gb"'),
            ),
        ),
    ),
    "a whole AMD card": (
        "07-mixed-vendors.yaml",
        "gpu-0-128",
        Facts(
            card="0000:1b:00.0",
            vendor="amd",
            product="AMD_Instinct_MI300X_OAM",
            memory=196592 * MI,
            driver_version="6.16.6",
            identity=frozenset({"pciAddr", "cardIndex", "renderIndex", "deviceID"}),
            pins=(attribute(AMD, "pciAddr", '"0000:1b:00.0"'),),
        ),
    ),
    "an AMD partition": (
        "07-mixed-vendors.yaml",
        "gpu-32-160",
        Facts(
            partition=True,
            profile="dpx_nps1",
            card="0000:9b:00.0",
            vendor="amd",
            product="AMD_Instinct_MI300X_OAM",
            memory=98296 * MI,
            driver_version="6.16.6",
            identity=frozenset({"parentPciAddr", "cardIndex", "renderIndex", "parentDeviceID"}),
            pins=(attribute(AMD, "parentPciAddr", '"0000:9b:00.0"'), attribute(AMD, "cardIndex", "32")),
        ),
    ),
    "an Intel card": (
        "07-mixed-vendors.yaml",
        "0000-4d-00-0-0x56c0",
        Facts(
            card="0000-4d-00-0-0x56c0",
            vendor="intel",
            product="0x56c0",
            memory=16 * GI,
            identity=frozenset({"pciAddress"}),
            pins=(attribute(INTEL, "pciAddress", '"0000:4d:00.0"'),),
        ),
    ),
    "a device of a driver nobody wrote an adapter for": (
        "08-shared-consumable.yaml",
        "acc-0",
        Facts(product="vv", memory=48 * GI),
    ),
}


@pytest.mark.parametrize(("fixture", "name", "want"), CASES.values(), ids=CASES)
def test_an_adapter_reads(fixture: str, name: str, want: Facts) -> None:
    assert facts(fixture, name) == want


def test_a_card_with_unified_memory_has_unknown_memory_and_not_zero() -> None:
    spec = DeviceSpec(
        name="gpu-0", attributes={"type": ("string", "gpu"), "cudaComputeCapability": ("version", "12.1.0")}
    )
    read = drivers.adapter_of(NVIDIA).facts(NVIDIA, spec)
    assert (read.memory, read.compute_capability, read.pins) == (UNKNOWN, (12, 1), ())


def test_older_deckhouse_snapshots_write_names_in_snake_case() -> None:
    spec = DeviceSpec(
        name="mig",
        attributes={
            f"{DECKHOUSE}/{name}": value
            for name, value in {
                "device_type": ("string", "MIG"),
                "pci_address": ("string", "0000:41:00.0"),
                "mig_profile": ("string", "2g.12gb+me"),
                "cc_major": ("int", 8),
                "cc_minor": ("int", 0),
            }.items()
        },
    )
    read = drivers.adapter_of(DECKHOUSE).facts(DECKHOUSE, spec)
    assert (read.partition, read.profile, read.card, read.compute_capability) == (
        True,
        "2g.12gb+me",
        "0000:41:00.0",
        (8, 0),
    )
    assert read.pins[-1] == attribute(DECKHOUSE, "mig_profile", '"2g.12gb+me"')


def every_device() -> list[tuple[str, DeviceSpec]]:
    found = []
    for path in sorted(FIXTURES.glob("*.yaml")):
        for raw in yaml.safe_load_all(path.read_text()):
            if raw["kind"] == "ResourceSlice":
                part = dra.read_slice(raw)
                found += [(part.driver, spec) for spec in part.devices]
    return found


def test_a_pin_selects_its_device_and_errs_on_no_device_of_any_driver() -> None:
    devices = [(driver, spec, cel.cel_device(driver, spec.raw)) for driver, spec in every_device()]
    wrong = []
    for driver, spec in every_device():
        for pin in drivers.adapter_of(driver).facts(driver, spec).pins:
            program = cel.compile(pin, (1, 36))
            if program.judge(cel.cel_device(driver, spec.raw)).verdict is not cel.Verdict.MATCH:
                wrong.append(f"{driver}/{spec.name} is not selected by {pin}")
            for other_driver, other, seen in devices:
                verdict = program.judge(seen).verdict
                if verdict not in (cel.Verdict.MATCH, cel.Verdict.NO_MATCH):
                    wrong.append(f"{pin} errs on {other_driver}/{other.name}")
                elif verdict is cel.Verdict.MATCH and other_driver != driver:
                    wrong.append(f"{pin} selects {other_driver}/{other.name}")
    assert wrong == []


def test_the_pins_of_a_partition_select_only_its_equals_on_its_card() -> None:
    driver, spec = published("03-nvidia-a100-mig-split-slices-1.35.yaml", "gpu-0-mig-2g10gb-14-0")
    pins = drivers.adapter_of(driver).facts(driver, spec).pins
    selected = [
        other.name
        for other_driver, other in every_device()
        if all(
            cel.compile(pin, (1, 36)).judge(cel.cel_device(other_driver, other.raw)).verdict is cel.Verdict.MATCH
            for pin in pins
        )
    ]
    assert selected
    assert {name.rpartition("-14-")[0] for name in selected} == {"gpu-0-mig-2g10gb"}


def gpu_config(**sharing: Any) -> Mapping[str, Any]:
    return {"apiVersion": "resource.gpu.deckhouse.io/v1alpha1", "kind": "GpuConfig", "sharing": sharing}


STRATEGIES: Mapping[str, tuple[str, Mapping[str, Any], str | None]] = {
    "MPS": (DECKHOUSE, gpu_config(strategy="MPS", mpsConfig={"defaultActiveThreadPercentage": 25}), "MPS"),
    "time slices of the usual length": (
        NVIDIA,
        gpu_config(strategy="TimeSlicing", timeSlicingConfig={"interval": "Default"}),
        "TimeSlicing",
    ),
    "long time slices are another strategy": (
        NVIDIA,
        gpu_config(strategy="TimeSlicing", timeSlicingConfig={"interval": "Long"}),
        "TimeSlicing/Long",
    ),
    "parameters without sharing": (NVIDIA, {"kind": "GpuConfig"}, None),
    "sharing that is no object": (DECKHOUSE, {"sharing": "MPS"}, None),
    "a driver without strategies": (AMD, gpu_config(strategy="MPS"), None),
    "an unknown driver that says it the same way": (
        EXAMPLE,
        gpu_config(strategy="SpacePartitioning"),
        "SpacePartitioning",
    ),
}


@pytest.mark.parametrize(("driver", "parameters", "want"), STRATEGIES.values(), ids=STRATEGIES)
def test_the_strategy_that_opaque_parameters_set(driver: str, parameters: Mapping[str, Any], want: str | None) -> None:
    assert drivers.adapter_of(driver).strategy(parameters) == want


@pytest.mark.parametrize("driver", [NVIDIA, DECKHOUSE])
@pytest.mark.parametrize("strategy", ["MPS", "TimeSlicing", "TimeSlicing/Long"])
@pytest.mark.parametrize("partition", [False, True])
def test_the_config_that_asks_for_a_strategy_is_read_back_as_it(driver: str, strategy: str, partition: bool) -> None:
    adapter = drivers.adapter_of(driver)
    config = adapter.config(strategy, partition)
    assert config is not None
    assert config.driver == driver
    assert config.parameters["kind"] == ("MigDeviceConfig" if partition else "GpuConfig")
    assert adapter.strategy(config.parameters) == strategy


def test_a_driver_without_strategies_takes_no_config() -> None:
    assert drivers.adapter_of(AMD).config("MPS", False) is None
    wanted: ClaimRequestConfig | None = drivers.adapter_of(EXAMPLE).config("MPS", False)
    assert wanted is None


ROLES = {
    DECKHOUSE: {"memory": Role.MEMORY, "sharePercent": Role.COMPUTE},
    NVIDIA: {"memory": Role.MEMORY, "shares": Role.SEATS, "multiprocessors": Role.OTHER},
    AMD: {"memory": Role.MEMORY, "computeUnits": Role.COMPUTE, "simdUnits": Role.COMPUTE},
    INTEL: {"memory": Role.MEMORY, "millicores": Role.COMPUTE},
    EXAMPLE: {"memory": Role.MEMORY, "compute": Role.COMPUTE, "cores": Role.COMPUTE, "bandwidth": Role.OTHER},
}


@pytest.mark.parametrize(("driver", "roles"), ROLES.items(), ids=ROLES)
def test_what_capacities_stand_for(driver: str, roles: Mapping[str, Role]) -> None:
    adapter = drivers.adapter_of(driver)
    assert {name: adapter.role(name, Capacity(value=100)) for name in roles} == roles
