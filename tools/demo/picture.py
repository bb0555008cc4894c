# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A picture of the devices and of who sits where: one HTML file with inline SVG that needs no network.

It draws what it is given, decides nothing. Sizes are bytes; a card is as wide as its memory, against the largest card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
from planner.units import human

WIDTH = 860
"""Pixels of the largest card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One holder of a part of a card. `kind` is `order` or `other`; `hue` keeps one order in one colour."""

    label: str
    detail: str
    memory: int
    kind: str
    hue: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A physical card: its product, its memory, and who holds how much of it."""

    name: str
    product: str
    memory: int
    seats: tuple[Seat, ...] = ()
    partitions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A node and its cards."""

    name: str
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A row of the table of orders."""

    order: str
    decision: str
    where: str
    reason: str
    message: str
    hue: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A seat in pixels."""

    seat: Seat | None
    x: float
    width: float
    text: str = field(default="")


def bars(card: Card, largest: int) -> tuple[Bar, ...]:
    """The card's seats from left to right, then what is free; a narrow seat keeps its label in its tooltip."""
    scale = WIDTH / largest if largest else 0.0
    out: list[Bar] = []
    x = 0.0
    for seat in card.seats:
        width = seat.memory * scale
        out.append(Bar(seat=seat, x=x, width=width, text=_fitting(seat.label, width)))
        x += width
    rest = card.memory * scale - x
    if rest > 1:
        out.append(Bar(seat=None, x=x, width=rest, text=_fitting(f"{human(round(rest / scale))} free", rest)))
    return tuple(out)


def _fitting(text: str, width: float) -> str:
    room = int((width - 8) / 7)
    if len(text) <= room:
        return text
    return text[: room - 1] + "…" if room > 3 else ""


def page(title: str, hosts: Sequence[Host], verdicts: Sequence[Verdict]) -> str:
    """The whole HTML page; every text is escaped by the template engine."""
    largest = max((card.memory for host in hosts for card in host.cards), default=0)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["human"] = human
    return environment.get_template("page.html.j2").render(
        title=title, hosts=hosts, verdicts=verdicts, width=WIDTH, largest=largest, bars=bars
    )
