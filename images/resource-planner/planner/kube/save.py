# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The cluster of now as a replay file: every kind listed once, nothing watched, nothing written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubernetes.config import ConfigException

from planner.kube import snapshot, watch
from planner.kube.client import ApiError, ConnectionLost, connect
from planner.kube.resources import Object, watched


class NoCluster(RuntimeError):
    """The API server cannot be asked (no configuration, no connection, no right at all); the cause in a sentence."""


def replay_of_cluster(kubeconfig: str | None, *, catalog: bool) -> Mapping[str, Any]:
    """What a plan of this moment would depend on; `catalog`: the module's setting.

    A kind that is refused is named in `unreadable`. Raises NoCluster when the API server cannot be asked at all. The
    lists are read one after the other: in a cluster that changes meanwhile they may be seconds apart.
    """
    try:
        client = connect(kubeconfig)
        version = snapshot.kubernetes(client.request("GET", "/version"))
    except (ConfigException, ConnectionLost, ApiError, ValueError) as error:
        raise NoCluster(f"the cluster cannot be read: {error}") from error
    objects: list[Object] = []
    absent: list[str] = []
    unreadable: list[str] = []
    for resource in watched(catalog):
        try:
            found, _, _ = watch.whole(client, resource)
        except ConnectionLost as error:
            raise NoCluster(f"the cluster cannot be read: {error}") from error
        except ApiError as error:
            (absent if error.status == 404 and resource.optional else unreadable).append(resource.kind)
            continue
        objects.extend(item for _, item in found.values())
    circumstances = snapshot.Circumstances(
        kubernetes=version, now=snapshot.now(), catalog=catalog, absent=tuple(absent), unreadable=tuple(unreadable)
    )
    return snapshot.replay(objects, circumstances)
