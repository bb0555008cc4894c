# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The Common Expression Language as Kubernetes configures it: text → tree → checked tree → closures with cost.

`syntax` reads, `types` unifies, `library` declares what each Kubernetes version knows, `checker` types a tree, `values`
holds what an expression can compute with, `functions` computes, `evaluation` makes a program. The rules follow cel-go
and `k8s.io/apiserver/pkg/cel` as measured (see `tests/fixtures/cel-golden-more.json`); `planner.cel` is the way in.
"""
