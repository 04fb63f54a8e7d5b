# Each target sets up what it needs on a Debian-like machine (root, Python 3.11, Go; Docker is used where it runs).
SHELL := /bin/bash
.DELETE_ON_ERROR:

BIN := .venv/bin

.PHONY: venv try lint sbom audit browser prometheus test test-all demo demos demo-killed five-minutes long-stories bench
.PHONY: bench-scale chaos soak faults faults-real generate chart release-dry
.PHONY: test-sglang measure-sglang test-vllm test-sglang-jax prepare programs archives cluster-up cluster-down images operator-up

venv: .venv/.installed

.venv/.installed: requirements-dev.lock requirements-bench.lock pyproject.toml paceline_emulator/pyproject.toml
	dev/make-venv
	touch $@

# Without root and without a cluster: examples/try.yaml to its verdict, emulated.
try: venv
	rm -rf build/try
	mkdir -p build/try
	$(BIN)/paceline measure examples/try.yaml --emulated -o build/try/run.yaml --report report.html

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python dev/locked.py check

# What the image carries, as CycloneDX.
sbom: venv
	$(BIN)/python dev/locked.py sbom build/sbom.json

# What the package index says of what is locked: needs a network, and fails without one.
audit: venv
	$(BIN)/python dev/locked.py audit

generate: venv
	$(BIN)/paceline crds --directory crds
	$(BIN)/paceline crds --directory charts/paceline/files/crds
	$(BIN)/paceline crds --reference > docs/api.md
	$(MAKE) --no-print-directory chart

# What is written from the chart: its README, the descriptions in its schema, deploy/kustomize.
chart: venv
	$(BIN)/python dev/chart_docs.py
	dev/render-install

# After a change in dev/dashboards; the pictures take five minutes, and need etcd, kube-apiserver, helm and a Prometheus.
.PHONY: dashboards dashboard-pictures
dashboards: venv
	$(BIN)/python -m dev.dashboards

dashboard-pictures: venv prometheus
	dev/cluster/build etcd kube-apiserver kubectl helm
	$(BIN)/python -m tests.dashboards.pictures

# What takes long on a clean machine, side by side: one waits for its downloads while another compiles.
prepare:
	dev/cluster/install-packages
	$(MAKE) --no-print-directory --jobs venv programs archives

programs:
	dev/cluster/build

archives:
	dev/cluster/build-images --no-import

cluster-up:
	dev/cluster/up

cluster-down:
	dev/cluster/down

images: cluster-up
	dev/cluster/build-images

operator-up: prepare images
	dev/install-operator

browser:
	dev/install-browser

# docs/pictures, anew: emulated runs as the report and the terminal show them.
.PHONY: screenshots
screenshots: venv browser
	dev/screenshots

prometheus:
	dev/install-prometheus

test: lint browser prometheus operator-up
	$(BIN)/pytest -n 3

demo: operator-up venv
	$(BIN)/python -m tests.demo.demo

demos: operator-up venv
	$(BIN)/python -m tests.demo.demos

demo-killed: operator-up venv
	$(BIN)/python -m tests.demo.killed

.PHONY: demo-kind

# The demo on kind, with a Docker daemon and a node image of our own: no registry is asked. Touches no cluster that runs.
demo-kind: venv
	$(BIN)/python -m tests.demo.on_kind --write docs/reports/kind.md

bench: venv
	$(BIN)/python -m tests.gate.closed_loops
	$(BIN)/python -m tests.gate.open_loops
	$(BIN)/python -m tests.gate.rates
	$(BIN)/python -m tests.unit.watch.thousand
	$(BIN)/python -m tests.unit.search.bench
	$(BIN)/python -m tests.unit.search.two_loads
	$(BIN)/python -m tests.unit.search.bench_heads

# SIZES: numbers of deployments; 5,000 take a quarter of an hour on two quiet cores. Touches no cluster that runs.
SIZES ?= 100 1000 5000

bench-scale: venv
	dev/cluster/build etcd kube-apiserver kubectl
	$(BIN)/python -m tests.scale.bench --write --json docs/reports/scale.json $(SIZES)

# Every case of tests/fault/matrix.py; what was run at this commit is kept in build/faults, so it can be interrupted.
faults: venv
	$(BIN)/python -m tests.fault.matrix

# More than 200 faults on an API server of its own; its report is checked in. SEED draws other ones.
SEED ?= 15

faults-real: venv
	dev/cluster/build etcd kube-apiserver kubectl
	$(BIN)/python -m tests.fault.real.sample --seed $(SEED) --write docs/reports/faults-real.md

# HOURS: for a shorter one, which says less. Touches no cluster that runs.
HOURS ?= 8

soak: venv
	dev/cluster/build etcd kube-apiserver kubectl
	$(BIN)/python -m tests.scale.soak --hours $(HOURS) --write

five-minutes: venv
	$(BIN)/python -m tests.unit.round.five_minutes

test-sglang: operator-up venv
	dev/test-sglang "$(DIR)"

measure-sglang: venv
	dev/test-sglang --measure "$(DIR)"

# Real servers on the CPU of this machine, without the cluster (dev/test-on-cpu); CPUS holds what sets them up.
CPUS ?= ../shared

test-vllm: venv
	CPUS="$(CPUS)" dev/test-on-cpu vllm "$(or $(DIR),/var/tmp/paceline-vllm)"

test-sglang-jax: venv
	CPUS="$(CPUS)" dev/test-on-cpu sglang-jax "$(or $(DIR),/var/tmp/paceline-sglang-jax)"

long-stories: operator-up venv
	{ echo "$$(nproc) processors, commit $$(git rev-parse --short HEAD), $$(date -I)"; \
	  $(BIN)/pytest -v --no-header tests/cluster/long_*.py; } | tee docs/reports/long-stories.txt; exit $${PIPESTATUS[0]}

# NAMES: only these scenarios of tests/cluster/chaos/table.py.
chaos: operator-up venv
	dev/cluster/install-packages faketime
	$(BIN)/python -m tests.cluster.chaos $(NAMES)

# A release to a registry on loopback: what the release workflow runs. docs/releasing.md.
release-dry: venv
	dev/cluster/install-packages
	python3 -m dev.release.dry_run --write docs/reports/release.md

# What takes longer than `make test` may: its reports are in docs/reports.
test-all: test audit faults faults-real long-stories chaos five-minutes demos demo-killed demo-kind $(if $(wildcard $(CPUS)/vllm-cpu/setup),test-vllm test-sglang-jax)
