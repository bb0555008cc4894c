# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What an order is told: its seats with everything that its pods need, or why it has none.

Reads what the stages left in a `Work` and changes nothing. A retained order is told the same words and the same request
as before wherever they still hold: another template would restart its pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner import explanation, request
from planner.candidates import Candidates, Considered, Offer
from planner.explanation import Explainer
from planner.model import (
    Alternative,
    Bounds,
    Decision,
    ModelSource,
    OrderPlan,
    PlacementType,
    Refusal,
    SharingMode,
    VolumeNeed,
)
from planner.reasons import LAUNCH_PLAN_CALCULATED, Lack, Refused
from planner.resolution import Unresolved
from planner.seating import Seating
from planner.units import GI, UNKNOWN, Maybe
from planner.works import Work

EVERYTHING = 8
"""Devices per replica that a refusal considers when it asks whether a wider policy would help."""


class Answerer:
    """Tells the plans of orders from the board as it stands."""

    def __init__(
        self, candidates: Candidates, explainer: Explainer, seating: Seating, *, unreadable: Sequence[str]
    ) -> None:
        """`unreadable`: kinds without which nothing may be placed anew."""
        self._candidates = candidates
        self._explainer = explainer
        self._seating = seating
        self._inventory = seating.board.inventory
        self._unreadable = unreadable

    def answer(self, work: Work) -> OrderPlan:
        """The plan of one order."""
        order = work.order
        if work.unresolved is not None:
            return _unresolved(work.unresolved)
        assert work.resolved is not None
        if work.kept:
            assert order.plan is not None
            return order.plan
        if self._unreadable:
            return self._refused(
                work,
                Refusal(
                    reason=Refused.UNDECIDABLE,
                    message=f"{', '.join(self._unreadable)} cannot be read now, so nothing can be placed.",
                    lack=Lack.UNREADABLE,
                ),
            )
        if work.replicas and work.offer is not None:
            return self._placed(work, work.offer)
        return self._refused(work, self.refusal(work))

    def refusal(self, work: Work) -> Refusal:
        """Why the order has no seat."""
        assert work.considered is not None and work.resolved is not None
        return self._explainer.refusal(
            work.considered,
            nodes=self._seating.pinned(work, 0),
            wider=lambda: self._wider(work),
            service_class=work.resolved.service_class.name,
        )

    def _wider(self, work: Work) -> Considered:
        """The order's offers if neither class nor order limited where it may be placed."""
        assert work.question is not None
        service_class = replace(
            work.question.service_class,
            sharing_modes=tuple(SharingMode),
            placement_types=tuple(PlacementType),
            max_accelerator_count=max(EVERYTHING, work.question.service_class.max_accelerator_count),
            device_class_names=None,
            min_share_memory=None,
            max_share_memory=None,
        )
        return self._candidates.of(replace(work.question, service_class=service_class, device_classes=None))

    def _refused(self, work: Work, refusal: Refusal) -> OrderPlan:
        settled = work.resolved
        assert settled is not None
        alternatives: tuple[Alternative, ...] = ()
        if work.considered is not None and work.considered.blocked is None:
            alternatives = self._explainer.alternatives(work.considered, None, self._seating.pinned(work, 0))
        warning = f" {settled.warning}" if settled.warning else ""
        return OrderPlan(
            key=work.order.key,
            observed_generation=work.order.generation,
            decision=Decision.UNDECIDABLE if refusal.reason is Refused.UNDECIDABLE else Decision.REFUSED,
            reason=refusal.reason.word,
            message=refusal.message + warning,
            refusal=refusal,
            endpoint_type=settled.endpoint_type,
            endpoint_type_guessed=settled.endpoint_type_guessed,
            served_name=settled.served_name,
            model_revision=settled.revision,
            alternatives=alternatives,
        )

    def _placed(self, work: Work, offer: Offer) -> OrderPlan:
        settled, order, previous = work.resolved, work.order, work.order.plan
        assert settled is not None and work.considered is not None
        found = sorted(work.replicas, key=lambda replica: (replica.seat.node, replica.seat.devices))
        seats = tuple(replica.seat for replica in found)
        devices = tuple(name for seat in seats for name in seat.devices)
        nodes = tuple(sorted({seat.node for seat in seats if seat.node}))
        retained = previous if work.retained and previous is not None and previous.request is not None else None
        asked = request.pinned(devices, self._inventory.by_id, offer.capacity, settled.service_class.device_selector)
        if (
            retained is not None
            and retained.request is not None
            and retained.bounds is not None
            and retained.bounds.bound == len(seats)
            and set(devices) <= set(retained.devices)
        ):
            # The scheduler may have put replicas on the planned devices in another way, or a driver may publish none
            # of them for a while: another template would restart pods for nothing.
            devices, nodes, asked = retained.devices, retained.nodes or nodes, retained.request
        volume = _volume(work, offer)
        if retained is not None and retained.alternatives:
            alternatives = retained.alternatives
        else:
            alternatives = self._explainer.alternatives(work.considered, offer, None)
        return OrderPlan(
            key=order.key,
            observed_generation=order.generation,
            decision=Decision.PLACED,
            reason=LAUNCH_PLAN_CALCULATED,
            message=_placed_message(work, offer, len(seats)),
            endpoint_type=settled.endpoint_type,
            endpoint_type_guessed=settled.endpoint_type_guessed,
            served_name=settled.served_name,
            model_revision=settled.revision,
            device_class=offer.way.device_class,
            placement=offer.way.placement,
            sharing=offer.way.sharing,
            share=offer.share,
            accelerator_count=offer.wish.count,
            seats=seats,
            devices=devices,
            nodes=nodes,
            request=asked,
            recipe=offer.launch.recipe,
            host=offer.launch.host,
            sized=offer.launch.sized,
            volume=volume,
            bounds=Bounds(min=work.least, max=work.most, bound=len(seats)),
            alternatives=alternatives,
        )


def _unresolved(failed: Unresolved) -> OrderPlan:
    return OrderPlan(
        key=failed.order.key,
        observed_generation=failed.order.generation,
        decision=Decision.UNDECIDABLE if failed.undecidable else Decision.REFUSED,
        reason=failed.reason.word,
        message=failed.message,
        refusal=Refusal(reason=failed.reason, message=failed.message),
        endpoint_type=failed.endpoint_type,
        served_name=failed.served_name,
        model_revision=failed.revision,
    )


def _volume(work: Work, offer: Offer) -> VolumeNeed | None:
    """The model volume of a Hugging Face order: the checkpoint, a quarter more and 2 GiB, in whole GiB.

    Of a checkpoint that nobody knows, as much as its devices could hold. A volume planned before stays as it is.
    """
    settled = work.resolved
    assert settled is not None
    if work.order.model.source is not ModelSource.HUGGING_FACE:
        return None
    previous = work.order.plan
    if work.retained and previous is not None and previous.volume is not None:
        return previous.volume
    size: Maybe = settled.artifact
    if size is UNKNOWN:
        size = (64 * GI if offer.example.memory is UNKNOWN else offer.example.memory) * offer.wish.count
    whole = -(-(size + size // 4 + 2 * GI) // GI) * GI
    return VolumeNeed(size=whole, storage_class_name=settled.service_class.storage_class_name)


def _placed_message(work: Work, offer: Offer, seats: int) -> str:
    what = "a partition" if offer.way.placement is PlacementType.PARTITION else "a whole device"
    if offer.share is not None and offer.share.memory is not UNKNOWN:
        what = f"a share of {explanation.mib_up(offer.share.memory)} of {what}"
    if offer.wish.count > 1:
        what = f"{offer.wish.count} whole devices of one node"
    text = f"Each replica gets {what} of device class {offer.way.device_class}."
    if seats < work.least:
        text += f" Only {seats} of the {work.least} replicas it is entitled to have room now."
    elif seats < work.most:
        text += f" {seats} of at most {work.most} replicas have room now."
    settled = work.resolved
    if settled is not None and settled.warning:
        text += f" {settled.warning}"
    if not offer.sized:
        text += " Nobody states how many bytes the model has, so it gets the largest device it may."
    return text
