# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A real Kubernetes control plane with the real addon-operator, on loopback ports, for tests and for trying things out.

`Cluster` is etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok; `AddonOperator` installs the module
in it; `PlannerProcess` runs the planner as the rendered Deployment says; `devices` loads the recorded DRA objects. The
programs are built from their Go modules on first use and kept in a cache (`build`).
"""

from testbed.cluster import Cluster
from testbed.operator import AddonOperator
from testbed.planner_process import PlannerProcess

__all__ = ["AddonOperator", "Cluster", "PlannerProcess"]
