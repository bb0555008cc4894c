# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The planner's side of the API server: watches into a view, a plan into server-side applies, the leader's lease.

Nothing here decides anything about an order. Nothing outside this package talks to the API server.
"""
