# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Versions exactly as the Kubernetes CEL semver library reads and compares them: blang/semver v4 plus normalising.

Checked against answers of the real libraries (`tests/fixtures/semver-golden.json`).

Known differences from upstream: none. Build metadata has no precedence: "1.0.0+a" and "1.0.0+b" are equal.
"""

from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import Final

_NUMBERS: Final = frozenset("0123456789")
_ALPHANUM: Final = _NUMBERS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")
_MAX_UINT64: Final = (1 << 64) - 1


class VersionError(ValueError):
    """A text that is no version; the message names the text."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """major.minor.patch[-pre][+build]; equality, order and hash ignore the build, as upstream's comparison does."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    def _key(self) -> tuple[int, int, int, bool, tuple[tuple[int, int, str], ...]]:
        pre = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not self.pre, pre

    def compare(self, other: "Version") -> int:
        """-1, 0 or 1."""
        mine, theirs = self._key(), other._key()
        return (mine > theirs) - (mine < theirs)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: "Version") -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.pre:
            text += "-" + ".".join(map(str, self.pre))
        if self.build:
            text += "+" + ".".join(self.build)
        return text


@lru_cache(maxsize=16_384)
def parse(text: str, normalize: bool = False) -> Version:
    """The version written as `text`. Raises `VersionError` naming the text when it is none.

    `normalize` drops one leading "v" and leading zeros and fills in minor and patch, as `semver(text, true)` does.
    """
    return _parse(text, _normalized(text) if normalize else text)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part.encode("utf-8", "surrogatepass")) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1] in _NUMBERS else "0" + stripped
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise VersionError(f"{text!r} is no version: a short version cannot have a prerelease or build")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _parse(text: str, normal: str) -> Version:
    parts = normal.split(".", 2)
    if len(parts) != 3:
        raise VersionError(f"{text!r} is no version: major.minor.patch expected")
    patch, plus, build = parts[2].partition("+")
    patch, dash, pre = patch.partition("-")
    return Version(
        _number(text, parts[0], "major"),
        _number(text, parts[1], "minor"),
        _number(text, patch, "patch"),
        tuple(_prerelease(text, part) for part in pre.split(".")) if dash else (),
        tuple(_build(text, part) for part in build.split(".")) if plus else (),
    )


def _number(text: str, part: str, name: str) -> int:
    if not part or not _NUMBERS.issuperset(part):
        raise VersionError(f"{text!r} is no version: {name} {part!r} is not a number")
    if len(part) > 1 and part[0] == "0":
        raise VersionError(f"{text!r} is no version: {name} {part!r} has a leading zero")
    number = int(part) if len(part) <= 20 else _MAX_UINT64 + 1
    if number > _MAX_UINT64:
        raise VersionError(f"{text!r} is no version: {name} {part!r} is too large")
    return number


def _prerelease(text: str, part: str) -> int | str:
    if part and _NUMBERS.issuperset(part):
        return _number(text, part, "prerelease")
    if not part or not _ALPHANUM.issuperset(part):
        raise VersionError(f"{text!r} is no version: prerelease {part!r}")
    return part


def _build(text: str, part: str) -> str:
    if not part or not _ALPHANUM.issuperset(part):
        raise VersionError(f"{text!r} is no version: build {part!r}")
    return part
