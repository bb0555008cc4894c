# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`make demo`: from dumps of a small GPU cluster to manifests on disk, without Go and without a cluster."""
