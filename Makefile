# `make test` is everything CI runs; `make demo` needs neither Go nor a cluster. Each target does its own set-up.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
ROOM ?=
PYTEST_ARGS ?=
export PYTHONPATH := $(CURDIR)/tools:$(CURDIR)/hooks:$(CURDIR)/images/resource-planner:$(CURDIR)
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed-$(shell cat requirements-dev.txt 2>/dev/null | sha256sum | cut -c1-16)

.PHONY: help
help: ## this list
	@grep -hE '^[a-z][a-zA-Z0-9-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: setup
setup: $(STAMP) ## one virtual environment with everything that is pinned

$(STAMP): requirements-dev.txt
	@echo "installing the pinned packages into $(VENV)"
	@test -x $(PY) || python3 -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable images/resource-planner
	@touch $@

.PHONY: lint
lint: setup ## ruff and the strict type checker
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

.PHONY: test
test: lint ## everything CI runs; ROOM=hooks for one room of tests
	@$(PY) -m pytest tests/$(ROOM) $(PYTEST_ARGS)

.PHONY: demo
demo: setup ## example dumps → plan → hooks → Helm engine → manifests, a table and a picture in out/demo
	@$(PY) -m demo

.PHONY: plan
plan: setup ## a plan from dumps or a replay file: make plan FILE=…
	@$(VENV)/bin/planner plan -f $(FILE)

.PHONY: explain
explain: setup ## why one order is where it is: make explain FILE=… ORDER=ns/name
	@$(VENV)/bin/planner explain $(ORDER) -f $(FILE)

.PHONY: render
render: setup ## one scenario's manifests (tools/render.py; without CASE: their names): make render CASE=…
	@$(PY) -m render $(CASE)

.PHONY: golden
golden: setup ## the expected manifests of every scenario written anew; asks Helm itself too, which needs Go
	@$(PY) -m tests.render.test_orders
	@$(PY) -m tests.render.test_helm

.PHONY: testbed
testbed: setup ## a real API server, scheduler and addon-operator with the module, until Ctrl-C
	@$(PY) -m testbed up

.PHONY: e2e
e2e: setup ## the chain from order to pod on the test bed
	@$(PY) -m pytest tests/e2e $(PYTEST_ARGS)

.PHONY: bench-sizing
bench-sizing: setup ## predicted bytes against the engine's own reports
	@$(PY) -m benchmarks.sizing

.PHONY: bench-latency
bench-latency: setup ## seconds from kubectl apply to StatefulSet and to a scheduled pod, at 10, 100 and 300 standing orders
	@$(PY) -m benchmarks.latency

.PHONY: bench-packing
bench-packing: setup ## cards used against the proven optimum, beside first fit (REAL_ALLOCATORS: beside the real one)
	@$(PY) -m benchmarks.packing

.PHONY: bench-churn
bench-churn: setup ## orders accepted while they come and go, beside first fit and smallest first
	@$(PY) -m benchmarks.churn

.PHONY: bench-decisions
bench-decisions: setup ## admissions a second at 500 nodes x 8, beside the real allocator (needs Go)
	@$(PY) -m benchmarks.decisions

.PHONY: bench-refusals
bench-refusals: setup ## the time to a truthful no, every reason checked
	@$(PY) -m benchmarks.refusals

.PHONY: bench-replan
bench-replan: setup ## a plan made anew of 5,000 standing orders on 1,000 nodes x 8
	@$(PY) -m benchmarks.replan

.PHONY: bench-growth
bench-growth: setup ## how a decision's cost grows with orders and with devices
	@$(PY) -m benchmarks.growth
