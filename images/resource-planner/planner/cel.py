# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A selector's verdict on one device: match, no match, or cannot judge with the cause; cached by device shape.

The answers are those of `k8s.io/dynamic-resource-allocation/cel` in Kubernetes 1.34 to 1.37 as the scheduler uses it
(stored expressions, consumable capacity on, list attributes off unless asked for), run-time cost limit included. They
are checked against recorded answers of the real evaluator: `tests/fixtures/dra/cel-golden.json` and
`tests/fixtures/cel-golden-more.json`.

Known differences from upstream:
* What this engine cannot judge is never guessed: the answer is an error with `unsupported` set. That is a literal of a
  protobuf message (`google.protobuf.Duration{…}`), an expression over 10 KiB or nested beyond Python's stack, and a
  value of more than 4 million characters or elements.
* The texts of `format.….validate(…)` errors are our own; whether there is an error agrees.
* Versions after 1.37 are judged as 1.37, those before 1.34 as 1.34.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, Final, TypeAlias

from planner import quantity, semver
from planner.expression import checker, evaluation, library, syntax, types
from planner.expression.values import Abort, Amount, BeyondBudget, DefaultMap, Failure, Map, type_name
from planner.quantity import Quantity
from planner.semver import Version

Scalar: TypeAlias = bool | int | str | Version
AttributeValue: TypeAlias = Scalar | tuple[Scalar, ...]

MAX_LENGTH: Final = 10 * 1024
"""Characters of a selector the API server accepts."""

_REMEMBERED: Final = 4_096
_OLDEST: Final = (1, 34)
_NEWEST: Final = (1, 37)


class Verdict(Enum):
    """What a selector says of a device."""

    MATCH = "match"
    NO_MATCH = "no match"
    COMPILE_ERROR = "compile error"
    RUNTIME_ERROR = "runtime error"


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict; for the two errors `cause` is one sentence, otherwise it is empty."""

    verdict: Verdict
    cause: str = ""
    unsupported: bool = False
    """Kubernetes may well have an answer here; this engine has none."""


@dataclass(frozen=True, slots=True)
class CelDevice:
    """All that a selector can see of a device; devices of one shape are equal, whatever their names.

    Names are qualified (`domain/id`) and sorted. `fault` says why no selector can be evaluated on the device, as when
    an attribute has no value or a version is malformed.
    """

    driver: str
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    capacity: tuple[tuple[str, Quantity], ...] = ()
    allow_multiple_allocations: bool | None = None
    fault: str = ""
    shape: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    facts: Mapping[tuple[str, ...], Any] = field(init=False, repr=False, compare=False)
    """What `shape` says, by its path below `device`; a fact that is not there is missing."""
    _hash: int = field(init=False, repr=False, compare=False)
    _readable: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shape = (
            self.driver,
            tuple((name, _tagged(value)) for name, value in self.attributes),
            tuple((name, value.representation) for name, value in self.capacity),
            self.allow_multiple_allocations,
            self.fault,
        )
        object.__setattr__(self, "shape", shape)
        facts: dict[tuple[str, ...], Any] = {("driver",): self.driver}
        facts["allowMultipleAllocations",] = bool(self.allow_multiple_allocations)
        for kind, found in (("attributes", shape[1]), ("capacity", shape[2])):
            for name, value in found:
                domain, _, identity = name.partition("/")
                facts[kind, domain, identity] = value
        object.__setattr__(self, "facts", facts)
        object.__setattr__(self, "_hash", hash(shape))
        lists = any(isinstance(value, tuple) for _, value in self.attributes)
        object.__setattr__(self, "_readable", not self.fault and not lists)

    @property
    def readable(self) -> bool:
        """Every attribute is a plain value: what a selector does not mention cannot matter to it."""
        return self._readable

    def __eq__(self, other: object) -> bool:
        return self.shape == other.shape if isinstance(other, CelDevice) else NotImplemented

    def __hash__(self) -> int:
        return self._hash


def _tagged(value: AttributeValue) -> tuple[Any, ...]:
    """A value with its type: true is not 1, and 1.0.0+a is not 1.0.0."""
    cls = type(value)
    if cls is Version:
        return ("Version", str(value))
    if isinstance(value, tuple):
        return ("list", tuple(_tagged(part) for part in value))
    return (cls.__name__, value)


def cel_device(driver: str, raw: Mapping[str, Any]) -> CelDevice:
    """The device of a ResourceSlice (its JSON, from `resource.k8s.io/v1` or the betas) as selectors see it.

    A name without a slash gets the driver's name as its domain. Never raises for what an API server can hold: what
    cannot be read becomes `fault`.
    """
    body = raw.get("basic") or raw
    faults: list[str] = []
    attributes: list[tuple[str, AttributeValue]] = []
    for name, attribute in sorted((body.get("attributes") or {}).items()):
        try:
            attributes.append((_qualified(name, driver), _attribute(attribute)))
        except ValueError as error:
            faults.append(f"attribute {name}: {error}")
    capacity: list[tuple[str, Quantity]] = []
    for name, amount in sorted((body.get("capacity") or {}).items()):
        try:
            value = amount.get("value") if isinstance(amount, Mapping) else amount
            capacity.append((_qualified(name, driver), quantity.of(value)))
        except ValueError as error:
            faults.append(f"capacity {name}: {error}")
    return CelDevice(
        driver,
        tuple(sorted(attributes, key=lambda pair: pair[0])),
        tuple(sorted(capacity, key=lambda pair: pair[0])),
        body.get("allowMultipleAllocations"),
        "; ".join(faults),
    )


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


_SCALARS: Final[Mapping[str, type[Any]]] = {"int": int, "bool": bool, "string": str}


def _attribute(raw: Any) -> AttributeValue:
    if type(raw) is dict and len(raw) == 1:  # the common case, told apart quickly
        ((kind, value),) = raw.items()
        if type(value) is _SCALARS.get(kind):
            return value  # type: ignore[no-any-return]
    if not isinstance(raw, Mapping):
        raise ValueError("unsupported attribute value")
    for kind in ("ints", "bools", "strings"):
        if raw.get(kind) is not None:
            return tuple(raw[kind])
    if raw.get("versions") is not None:
        return tuple(semver.parse(text) for text in raw["versions"])
    for kind, cls in _SCALARS.items():
        value = raw.get(kind)
        if value is not None:
            if type(value) is not cls:
                raise ValueError(f"{value!r} is no {kind}")
            return value  # type: ignore[no-any-return]
    if raw.get("version") is not None:
        return semver.parse(raw["version"])
    raise ValueError("unsupported attribute value")


class Program:
    """A compiled selector for one Kubernetes version; `error` says why it does not compile."""

    __slots__ = ("_answers", "_failed", "_program", "_sees_capacity", "_uses", "error", "expression", "list_attributes")

    def __init__(self, expression: str, release: tuple[int, int], *, list_attributes: bool) -> None:
        self.expression = expression
        self.list_attributes = list_attributes
        self.error: str | None = None
        self._failed: Answer | None = None
        self._program: evaluation.Program | None = None
        self._answers: dict[Any, Answer] = {}
        self._uses: tuple[tuple[str, ...], ...] | None = None
        self._sees_capacity = "capacity" in expression
        try:
            self._program = _compiled(expression, release, list_attributes)
            if self._program.uses is not None:
                self._uses = tuple(sorted(self._program.uses))
        except (syntax.SyntaxFault, checker.TypeFault, Failure) as fault:
            self._fail(str(fault))
        except checker.NotHere as missing:
            self._fail(f"not supported here: {missing}", unsupported=True)
        except (BeyondBudget, RecursionError) as beyond:
            cause = str(beyond) if isinstance(beyond, BeyondBudget) else "an expression nested this deep"
            self._fail(f"not supported here: {cause}", unsupported=True)
        except Abort as abort:
            self._fail(str(abort))

    def _fail(self, cause: str, *, unsupported: bool = False) -> None:
        self.error = cause
        self._failed = Answer(Verdict.COMPILE_ERROR, cause, unsupported)

    def judge(self, device: CelDevice) -> Answer:
        """The verdict on the device. Never raises; remembered for devices that look the same to this selector."""
        if self._failed is not None:
            return self._failed
        key: Any = device
        if self._uses is not None and device.readable:
            key = tuple(map(device.facts.get, self._uses))
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            answer = self._answers[key] = self.evaluate(device)
        return answer

    def evaluate(self, device: CelDevice) -> Answer:
        """The verdict on the device, computed anew."""
        if self._failed is not None:
            return self._failed
        return self.measure(device)[0]

    def measure(self, device: CelDevice) -> tuple[Answer, int | None]:
        """The verdict computed anew, and what the evaluation cost in Kubernetes' units where it came to an end."""
        if self._program is None:
            return self._failed or Answer(Verdict.COMPILE_ERROR), None
        try:
            value, cost = self._program.evaluate(_activation(device, self.list_attributes, self._sees_capacity))
        except Failure as failure:
            return Answer(Verdict.RUNTIME_ERROR, str(failure)), None
        except (BeyondBudget, RecursionError) as beyond:
            cause = str(beyond) if isinstance(beyond, BeyondBudget) else "an evaluation nested this deep"
            return Answer(Verdict.RUNTIME_ERROR, f"not supported here: {cause}", unsupported=True), None
        except Abort as abort:
            return Answer(Verdict.RUNTIME_ERROR, str(abort)), None
        if value is True:
            return _MATCH, cost
        if value is False:
            return _NO_MATCH, cost
        return Answer(Verdict.RUNTIME_ERROR, f"the result is of type {type_name(value)}, not bool"), cost


_MATCH: Final = Answer(Verdict.MATCH)
_NO_MATCH: Final = Answer(Verdict.NO_MATCH)


@lru_cache(maxsize=2_048)
def compile(expression: str, kubernetes: tuple[int, int], *, list_attributes: bool = False) -> Program:
    """The program of a selector as that Kubernetes version (major, minor) reads it; a fault is in its `error`.

    `list_attributes` is the feature gate DRAListTypeAttributes (off by default in 1.36 and 1.37).
    """
    release = min(max(kubernetes, _OLDEST), _NEWEST)
    return Program(expression, release, list_attributes=list_attributes)


def _compiled(expression: str, release: tuple[int, int], list_attributes: bool) -> evaluation.Program:
    if len(expression) > MAX_LENGTH:
        raise BeyondBudget(f"an expression of more than {MAX_LENGTH} characters")
    tree = syntax.parse(expression)
    attribute = types.DYN if list_attributes else types.ANY
    result = checker.check(tree, library.functions(release), attribute)
    if result not in (types.BOOL, attribute):
        raise checker.TypeFault(f"must evaluate to bool or the unknown type, not {result}")
    return evaluation.program(tree, release)


def _attributes(device: CelDevice, list_attributes: bool) -> DefaultMap:
    if device.fault:
        raise Abort(device.fault)
    domains: dict[str, list[tuple[str, Any]]] = {}
    for name, value in device.attributes:
        domain, _, identity = name.partition("/")
        if isinstance(value, tuple):
            if not list_attributes:
                raise Abort(f"attribute {name}: unsupported attribute value")
            domains.setdefault(domain, []).append((identity, list(value)))
        else:
            domains.setdefault(domain, []).append((identity, value))
    return _domains(domains.items())


def _domains(found: Iterable[tuple[str, list[tuple[str, Any]]]]) -> DefaultMap:
    return DefaultMap.named((domain, Map.named(entries)) for domain, entries in found)


@lru_cache(maxsize=_REMEMBERED)
def _constant_part(device: CelDevice, list_attributes: bool) -> Map:
    return Map.named(
        (
            ("driver", device.driver),
            ("allowMultipleAllocations", bool(device.allow_multiple_allocations)),
            ("attributes", _attributes(device, list_attributes)),
            ("capacity", DefaultMap()),
        )
    )


def _activation(device: CelDevice, list_attributes: bool, sees_capacity: bool) -> Map:
    """What the variable `device` is. Amounts are made anew: an evaluation may change how they are held."""
    constant = _constant_part(device, list_attributes)
    if not sees_capacity or not device.capacity:
        return constant
    domains: dict[str, list[tuple[str, Any]]] = {}
    for name, value in device.capacity:
        domain, _, identity = name.partition("/")
        domains.setdefault(domain, []).append((identity, Amount(value)))
    found = Map()
    found.entries = {**constant.entries, "capacity": ("capacity", _domains(domains.items()))}
    return found
