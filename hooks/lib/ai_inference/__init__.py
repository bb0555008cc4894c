# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What the hooks call: `decide` knows the rules, `render` the engine, `execute` the API server; none knows the SDK."""
