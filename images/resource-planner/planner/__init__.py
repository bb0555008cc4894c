# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The planner of ai-inference: the one place where placement is decided."""
