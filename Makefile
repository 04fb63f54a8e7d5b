# Each target sets up what it needs on a Debian-like machine (root, Python 3.11 to 3.13, Go). CLUSTER=kind: a cluster in Docker.
SHELL := /bin/bash
.DELETE_ON_ERROR:

BIN := .venv/bin

.DEFAULT_GOAL := help

# Rewritten assertions of tests are kept: without that every process writes them anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help venv try check tests-of-check lint docs follow-readme sbom audit browser prometheus test test-pythons test-api-servers test-gcs test-routed test-all demo demos demo-killed five-minutes long-stories bench
.PHONY: mutants oracles bench-scale chaos soak faults faults-real generate chart screenshots release-dry demo-kind
.PHONY: test-sglang measure-sglang test-vllm test-sglang-jax rehearse-gpu prepare programs archives cluster-up cluster-down images operator-up

# Every target has its line after `##`; `##@` begins a section (tests/unit/docs/test_help.py).
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { print "\n" substr($$0, 5) } \
	  /^[a-z][a-z-]*:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Start here

venv: .venv/.installed ## the virtual environment, from the lock files

.venv/.installed: requirements-dev.lock pyproject.toml paceline_emulator/pyproject.toml
	dev/make-venv
	touch $@ .venv/.runs

# Without what tests: half as large.
.venv/.runs: requirements-user.lock pyproject.toml paceline_emulator/pyproject.toml
	dev/make-venv requirements-user.lock
	touch $@

# Without root and without a cluster: examples/try.yaml to its verdict, emulated.
try: .venv/.runs ## one pool, emulated, to its verdict and report.html: three minutes, no root, no cluster
	rm -rf build/try
	mkdir -p build/try
	$(BIN)/paceline measure examples/try.yaml --emulated -o build/try/run.yaml --report report.html

##@ For every change

check: venv ## lint, types and the tests that are not slow: a minute, no root
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint tests-of-check

tests-of-check: venv ## the tests of make check alone
	$(BIN)/pytest -q -n 2 -m "not slow and not cluster"

lint: venv ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What the image carries, as CycloneDX.
sbom: venv ## what the image carries, as CycloneDX
	mkdir -p build
	$(BIN)/uv tool run --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements.lock -o build/sbom.json

# Fails where PyPI does not answer.
audit: venv ## known vulnerabilities of what is locked, by pip-audit; needs PyPI
	$(BIN)/uv tool run pip-audit==2.10.1 --strict --disable-pip -r requirements.lock -r requirements-dev.lock

generate: venv ## CRDs, docs/api.md and what follows from the chart, after a change in api or the chart
	$(BIN)/paceline crds --directory crds
	$(BIN)/paceline crds --directory charts/paceline/files/crds
	$(BIN)/paceline crds --reference > docs/api.md
	$(MAKE) --no-print-directory chart

# The chart's README, the descriptions in its schema, deploy/kustomize.
chart: venv ## what is written from the chart
	$(BIN)/python dev/chart_docs.py
	dev/render-install

screenshots: venv browser ## docs/pictures: emulated runs as the report and the terminal show them
	dev/screenshots

# Warnings are errors: a link or an anchor that leads nowhere, a page that is in no list of docs/index.md.
docs: venv ## the documents as a site, in build/site
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/site

# A clean clone in a folder of its own, with its own virtual environment; no root, no cluster.
follow-readme: ## README's commands on a clean clone, beside what it quotes
	dev/follow-readme

##@ The local cluster (root, a Debian-like machine)

# What takes long on a clean machine, side by side: one waits for its downloads while another compiles.
prepare: ## packages, the virtual environment, Kubernetes, image archives
	dev/cluster/install-packages
	$(MAKE) --no-print-directory --jobs venv programs archives

programs: ## Kubernetes' programs, built from Go modules into the cache
	dev/cluster/build

archives: ## the images as archives, before there is a cluster
	dev/cluster/build-images --no-import

cluster-up: ## the local cluster; idempotent
	dev/cluster/up

cluster-down: ## takes the local cluster away; leaves caches
	dev/cluster/down

images: cluster-up ## builds the images and loads them into the cluster
	dev/cluster/build-images

operator-up: prepare images ## installs the operator from its image and chart
	dev/install-operator

browser: ## a Chromium for the tests of the report
	dev/install-browser

prometheus: ## promtool for the tests of alerts
	dev/install-prometheus

test: lint browser prometheus operator-up ## everything a change is judged by: lint, cluster, operator, all tests
	$(BIN)/pytest -n 4

demo: operator-up venv ## the example from apply to both verdicts, in the local cluster
	$(BIN)/python -m tests.demo.demo

demos: operator-up venv ## five demos in a row; writes docs/reports/demos.md
	$(BIN)/python -m tests.demo.demos

demo-killed: operator-up venv ## a demo whose operator is killed again and again
	$(BIN)/python -m tests.demo.killed

# With a Docker daemon and a node image of our own: no registry is asked. Touches no cluster that runs.
demo-kind: venv ## the demo on kind; writes docs/reports/kind.md
	$(BIN)/python -m tests.demo.on_kind --write docs/reports/kind.md

##@ Measured and counted; takes long

bench: venv ## the counted tables of the documents; 1,000 pools
	$(BIN)/python -m tests.gate.closed_loops
	$(BIN)/python -m tests.gate.open_loops
	$(BIN)/python -m tests.gate.rates
	$(BIN)/python -m tests.unit.watch.thousand
	$(BIN)/python -m tests.unit.search.bench

# SIZES: numbers of deployments; 5,000 take a quarter of an hour on two quiet cores. Touches no cluster that runs.
SIZES ?= 100 1000 5000

mutants: venv ## breaks the rules of a list, one after another: their tests must fail
	$(BIN)/python -m tests.mutants

oracles: venv ## our client beside SGLang's and AIPerf; writes docs/reports/client.md
	dev/make-oracles
	$(BIN)/python -m tests.oracles.compare --write

bench-scale: venv ## 100, 1,000 and 5,000 deployments (SIZES); writes docs/reports/scale.json
	dev/cluster/build etcd kube-apiserver kubectl
	$(BIN)/python -m tests.scale.bench --write --json docs/reports/scale.json $(SIZES)

# Every case of tests/fault/matrix.py; what was run at this commit is kept in build/faults, so it can be interrupted.
faults: venv ## every case of the fault matrix in memory; can be interrupted
	$(BIN)/python -m tests.fault.matrix

# More than 200 faults on an API server of its own; its report is checked in. SEED draws other ones.
SEED ?= 15

faults-real: venv ## more than 200 faults on a real API server (SEED); writes docs/reports/faults.md
	dev/cluster/build etcd kube-apiserver kubectl
	$(BIN)/python -m tests.fault.real.sample --seed $(SEED) --write docs/reports/faults.md

# HOURS: for a shorter one, which says less. Touches no cluster that runs.
HOURS ?= 8

soak: venv ## eight hours (HOURS) with bounds on leaks; writes docs/reports/soak.md
	dev/cluster/build etcd kube-apiserver kubectl
	$(BIN)/python -m tests.scale.soak --hours $(HOURS) --write

five-minutes: venv ## a round whose servers start in five minutes
	$(BIN)/python -m tests.unit.round.five_minutes

##@ Real engines on the CPU of this machine

test-sglang: operator-up venv ## a real SGLang on the CPU (DIR), in the cluster
	dev/test-sglang "$(DIR)"

measure-sglang: venv ## a real SGLang on the CPU (DIR), by paceline measure
	dev/test-sglang --measure "$(DIR)"

# Real servers on the CPU of this machine, without the cluster (dev/test-on-cpu); CPUS holds what sets them up.
CPUS ?= ../shared

test-vllm: venv ## a real vLLM on the CPU (CPUS, DIR)
	CPUS="$(CPUS)" dev/test-on-cpu vllm "$(or $(DIR),/var/tmp/paceline-vllm)"

test-sglang-jax: venv ## a real sglang-jax on the CPU (CPUS, DIR)
	CPUS="$(CPUS)" dev/test-on-cpu sglang-jax "$(or $(DIR),/var/tmp/paceline-sglang-jax)"

# dev/gpu/pack and dev/gpu/run, without a GPU and without a network, as the machine with a GPU has them.
rehearse-gpu: ## the kit for a GPU, up to SGLang's refusal for want of one (CPUS, DIR)
	SHARED="$(CPUS)" dev/gpu/rehearse "$(or $(DIR),/var/tmp/paceline-gpu)"

##@ Stories and chaos on the cluster

# Without the upgrade: dev/previous-release has the API's former shape, which no code reads.
LONG_STORIES := $(filter-out tests/cluster/long_upgrade.py,$(wildcard tests/cluster/long_*.py))
long-stories: operator-up venv ## the stories of tests/cluster that take long; writes docs/reports/long-stories.txt
	{ echo "$$(nproc) processors, commit $$(git rev-parse --short HEAD), $$(date -I)"; \
	  $(BIN)/pytest -v --no-header $(LONG_STORIES); } | tee docs/reports/long-stories.txt; exit $${PIPESTATUS[0]}

# NAMES: only these scenarios of tests/cluster/chaos/table.py.
chaos: operator-up venv ## faults of a real cluster, by scenario (NAMES) and seed
	dev/cluster/install-packages faketime
	$(BIN)/python -m tests.cluster.chaos $(NAMES)

# To a registry on loopback: what the release workflow runs (docs/release.md).
release-dry: venv ## a release from image to installation, signed with a key of its own; root
	dev/cluster/install-packages
	python3 -m dev.release.dry_run --write docs/reports/release.md

# The lock files are made for the oldest one: this shows that they hold for the others.
test-pythons: ## the tests without a cluster, on each of Python 3.11 to 3.13 that the machine has
	dev/test-pythons

# KUBERNETES: only these of the releases that have a module (dev/cluster/pin-api-server). Devices need the scheduler that
# belongs to the API server.
KUBERNETES ?= $(patsubst dev/cluster/modules/kubernetes-%,%,$(wildcard dev/cluster/modules/kubernetes-*))

test-api-servers: venv prometheus ## tests/api on API servers of the oldest and the newest Kubernetes (KUBERNETES)
	dev/cluster/build etcd kubectl helm cel-cost $(KUBERNETES:%=kube-apiserver-%)
	set -e; for release in $(KUBERNETES); do \
	  PACELINE_KUBERNETES=$$release $(BIN)/pytest -n 2 tests/api --ignore tests/api/test_devices.py; done

test-gcs: venv ## models of Google's buckets, from a server on loopback
	$(BIN)/pytest tests/unit/fetch/long_gcs.py

test-routed: venv ## a tree per class of prompts against the best single tree, emulated, some minutes
	$(BIN)/pytest tests/unit/measure/long_routed.py

# What takes longer than `make test` may: its reports are in docs/reports.
test-all: test test-pythons test-api-servers test-gcs test-routed follow-readme mutants oracles faults faults-real long-stories chaos five-minutes demos demo-killed demo-kind release-dry $(if $(wildcard $(CPUS)/vllm-cpu/setup),test-vllm test-sglang-jax) $(if $(wildcard $(CPUS)/sglang-real/models/small),rehearse-gpu) ## make test and all that takes longer than it may
