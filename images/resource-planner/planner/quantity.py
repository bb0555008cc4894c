# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Kubernetes quantities, exactly as `k8s.io/apimachinery/pkg/api/resource` reads, prints, compares and adds them.

Checked against answers of the real library (`tests/fixtures/quantity-golden.json`), its oddities included: "+" and "Ki"
read as zero, "1.500" prints as it was written, anything finer than nano is rounded away from zero, a binary quantity is
capped at 2^63-1 when it takes the slow road, a decimal one is not.

Known differences from upstream:
* A text longer than 1,024 characters or an exponent beyond ±4,096 is refused, where upstream would compute numbers of
  billions of digits.
* `bytes` is the true value where upstream's `Value()` overflows int64 and wraps, and rounds every negative fraction
  away from zero where upstream's slow road rounds some toward it.
* White space around the text is refused, as by `ParseQuantity`; upstream's JSON decoder strips it first, as `of` does.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Final

_MAX_INT64: Final = (1 << 63) - 1
_MIN_INT64: Final = -(1 << 63)
_LONGEST: Final = 1_024
_WIDEST: Final = 4_096
_DIGITS: Final = frozenset("0123456789")
_LETTERS: Final = frozenset("eEinumkKMGTP")

_DECIMAL: Final[Mapping[str, int]] = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final[Mapping[str, int]] = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {power: suffix for suffix, power in _BINARY.items()}


class QuantityError(ValueError):
    """A text that is no quantity; the message names the text."""


class Format(Enum):
    """The family of suffixes a quantity was written with, and is printed with."""

    DECIMAL_EXPONENT = "DecimalExponent"
    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """`unscaled` × 10^`exponent`, exactly.

    Equality, order and hash go by value ("1000m" == "1"); `representation` tells apart what upstream can tell apart.
    """

    unscaled: int
    exponent: int
    format: Format
    slow: bool = False
    """Held by upstream as an arbitrary decimal rather than as an int64: never "an integer" to CEL."""
    written: str = field(default="")
    """The text it was read from, where upstream reuses that text when printing; otherwise empty."""

    @property
    def representation(self) -> tuple[int, int, Format, bool]:
        """All that any CEL function can see of it; equal quantities may differ here."""
        return self.unscaled, self.exponent, self.format, self.slow

    @property
    def nano(self) -> int:
        """The value in units of 10^-9, exact: nothing finer exists."""
        return int(self.unscaled * 10 ** (self.exponent + 9)) if self.unscaled else 0

    @property
    def bytes(self) -> int:
        """The value as a whole number, fractions rounded away from zero, as `Value()` does. Not limited to int64."""
        size = -(-abs(self.nano) // 10**9)
        return -size if self.unscaled < 0 else size

    @property
    def is_integer(self) -> bool:
        """The value is a whole number. CEL's `isInteger()` is narrower: see `as_int64`."""
        return self.nano % 10**9 == 0

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def as_int64(self) -> int | None:
        """The value as upstream's `AsInt64`: None when written with a fraction or too many digits, even if whole."""
        if self.slow or self.exponent < 0:
            return None
        if self.exponent > 18:
            return 0 if self.unscaled == 0 else None
        value = self.unscaled * int(10**self.exponent)
        return value if _MIN_INT64 <= value <= _MAX_INT64 else None

    def as_approximate_float(self) -> float:
        """The value as upstream's `AsApproximateFloat64`: may lose precision, infinite beyond a float's range."""
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = math.inf if self.unscaled > 0 else -math.inf
        if self.exponent == 0:
            return base
        return base * _power_of_ten(self.exponent)

    def as_slow(self) -> "Quantity":
        """The same value held as an arbitrary decimal: what comparing with such a one leaves behind upstream."""
        return self if self.slow else replace(self, slow=True)

    def compare(self, other: "Quantity") -> int:
        """-1, 0 or 1, by value."""
        mine, theirs = self.nano, other.nano
        return (mine > theirs) - (mine < theirs)

    def add(self, other: "Quantity") -> "Quantity":
        """The sum; its format is this one's, or the other's when this is zero."""
        form = other.format if self.unscaled == 0 else self.format
        if not self.slow and not other.slow:
            total = _add_int64((self.unscaled, self.exponent), (other.unscaled, other.exponent))
            if total is not None:
                return Quantity(total[0], total[1], form)
        exponent = min(self.exponent, other.exponent)
        unscaled = self.unscaled * 10 ** (self.exponent - exponent) + other.unscaled * 10 ** (other.exponent - exponent)
        return Quantity(int(unscaled), exponent, form, slow=True)

    def sub(self, other: "Quantity") -> "Quantity":
        """The difference; its format is this one's, or the other's when this is zero."""
        return self.add(replace(other, unscaled=-other.unscaled))

    def __add__(self, other: "Quantity") -> "Quantity":
        return self.add(other)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self.sub(other)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __str__(self) -> str:
        return self.written or _canonical(self)


ZERO: Final = Quantity(0, 0, Format.DECIMAL_SI, written="0")


@lru_cache(maxsize=65_536)
def parse(text: str) -> Quantity:
    """The quantity written as `text`. Raises `QuantityError` naming the text when it is none."""
    if not text:
        raise QuantityError("an empty text is no quantity")
    if text == "0":
        return ZERO
    if len(text) > _LONGEST:
        raise QuantityError(f"{text[:40]!r}… is no quantity: longer than {_LONGEST} characters")
    positive, value, whole, fraction, suffix = _split(text)
    form, power = _suffix(text, suffix)
    quick = _quick(text, positive, whole, fraction, form, power)
    if quick is not None:
        return quick
    return _thorough(text, value, form, power)


def of(raw: object) -> Quantity:
    """The quantity in a JSON document: a text (white space around it stripped) or a whole number or fraction.

    Raises `QuantityError` for anything else.
    """
    if isinstance(raw, str):
        return parse(raw.strip(" \t\n\v\f\r\x85\xa0"))
    if isinstance(raw, int) and not isinstance(raw, bool):
        return parse(str(raw))
    if isinstance(raw, float) and math.isfinite(raw):
        return parse(repr(raw))
    raise QuantityError(f"{raw!r} is no quantity")


def of_bytes(amount: int) -> Quantity:
    """`amount` bytes as a binary quantity."""
    if _MIN_INT64 <= amount <= _MAX_INT64:
        return Quantity(amount, 0, Format.BINARY_SI)
    return Quantity(amount, 0, Format.BINARY_SI, slow=True)


def _split(text: str) -> tuple[bool, str, str, str, str]:
    """Sign, the text of the number, its whole digits, its fraction digits, its suffix."""
    positive = text[0] != "-"
    position = 1 if text[0] in "+-" else 0
    end = len(text)
    while position < end and text[position] == "0":
        position += 1
    if position == end:
        return positive, "0", "0", "", ""
    start = position
    while position < end and text[position] in _DIGITS:
        position += 1
    whole = text[start:position]
    if position == end:
        return positive, text, whole, "", ""
    whole = whole or "0"
    fraction = ""
    if text[position] == ".":
        start = position = position + 1
        while position < end and text[position] in _DIGITS:
            position += 1
        fraction = text[start:position]
        if position == end:
            return positive, text, whole, fraction, ""
    value, suffix = text[:position], text[position:]
    while position < end and text[position] in _LETTERS:
        position += 1
    if position < end and text[position] in "+-":
        position += 1
    while position < end and text[position] in _DIGITS:
        position += 1
    if position < end:
        raise QuantityError(f"{text!r} is no quantity: a number with an optional suffix is expected")
    return positive, value, whole, fraction, suffix


def _suffix(text: str, suffix: str) -> tuple[Format, int]:
    if suffix in _DECIMAL:
        return Format.DECIMAL_SI, _DECIMAL[suffix]
    if suffix in _BINARY:
        return Format.BINARY_SI, _BINARY[suffix]
    digits = suffix[2:] if suffix[1:2] in ("+", "-") else suffix[1:]
    if suffix[0] in "eE" and digits and set(digits) <= _DIGITS:
        power = int(suffix[1:])
        if _MIN_INT64 <= power <= _MAX_INT64:
            power = (power + (1 << 31)) % (1 << 32) - (1 << 31)  # upstream keeps the low 32 bits
            if abs(power) > _WIDEST:
                raise QuantityError(f"{text!r} is no quantity this planner reads: exponent beyond ±{_WIDEST}")
            return Format.DECIMAL_EXPONENT, power
    raise QuantityError(f"{text!r} is no quantity: unknown suffix {suffix!r}")


def _quick(text: str, positive: bool, whole: str, fraction: str, form: Format, power: int) -> Quantity | None:
    """Upstream's int64 road, or None where it takes the slow one."""
    scale, mantissa = power, 1
    if form is Format.BINARY_SI:
        if fraction:
            return None
        scale, mantissa = 0, 1 << power
        precision = 15 - len(whole) - power * 3 // 10 - 1
    else:
        precision = 18 - len(whole) - len(fraction)
    scale -= len(fraction)
    if precision < 0 or scale < -9:
        return None
    digits = whole + fraction
    value = int(digits)
    result = value * mantissa
    if result > _MAX_INT64:
        return None
    if form is Format.BINARY_SI:
        canonical = value & 7 != 0
    else:
        canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(result if positive else -result, scale, form, written=text if canonical else "")


def _thorough(text: str, value: str, form: Format, power: int) -> Quantity:
    """Upstream's road through arbitrary decimals: rounded up to nano, capped when binary."""
    whole, point, fraction = value.lstrip("+-").partition(".")
    if not whole + fraction:
        raise QuantityError(f"{text!r} is no quantity: no digits")
    unscaled, exponent = int(whole + fraction), -len(fraction) if point else 0
    if form is Format.BINARY_SI:
        unscaled <<= power
    else:
        exponent += power
    if unscaled:
        unscaled = unscaled * int(10 ** (exponent + 9)) if exponent >= -9 else -(-unscaled // 10 ** (-9 - exponent))
        exponent = -9
    if form is Format.BINARY_SI:
        if unscaled > _MAX_INT64 * 10 ** (-exponent):
            unscaled, exponent = _MAX_INT64, 0
        if 0 < unscaled < 10 ** (-exponent):
            form = Format.DECIMAL_SI
    return Quantity(-unscaled if value[0] == "-" else unscaled, exponent, form, slow=True)


def _add_int64(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    """The sum at the finer of both scales, or None where int64 would overflow on the way."""
    if other[0] == 0:
        return one
    if one[0] == 0:
        return other
    coarse, fine = (one, other) if one[1] >= other[1] else (other, one)
    if coarse[1] - fine[1] > 18:
        return None
    lifted = coarse[0] * int(10 ** (coarse[1] - fine[1]))
    total = lifted + fine[0]
    if _MIN_INT64 <= lifted <= _MAX_INT64 and _MIN_INT64 <= total <= _MAX_INT64:
        return total, fine[1]
    return None


def _canonical(quantity: Quantity) -> str:
    if quantity.unscaled == 0:
        return "0"
    form = quantity.format
    nano = quantity.nano
    if form is Format.BINARY_SI and (abs(nano) < 1024 * 10**9 or nano % 10**9):
        form = Format.DECIMAL_SI
    if form is Format.BINARY_SI:
        number, power = nano // 10**9, 0
        while number % 1024 == 0:
            number, power = number // 1024, power + 10
        return f"{number}{_BINARY_SUFFIX.get(power, '')}"
    number, power = quantity.unscaled, quantity.exponent
    while number % 10 == 0:
        number, power = number // 10, power + 1
    while power % 3:
        number, power = number * 10, power - 1
    if form is Format.DECIMAL_SI:
        return f"{number}{_DECIMAL_SUFFIX.get(power, '')}"
    return f"{number}e{power}" if power else str(number)


def _power_of_ten(exponent: int) -> float:
    if exponent < -323:
        return 0.0
    if exponent > 308:
        return math.inf
    return float(f"1e{exponent}")
