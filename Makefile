# Everything runs from a virtual environment that `make setup` creates and keeps up to date.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.modelserve-stamp
CRDS := crds charts/modelserve/files/crds
TOKENIZER := emulator/servelab/engine/text/tokenizer
COMPILED := build/compiled/.stamp
IMAGE ?= modelserve
TAG ?= 0.1.0
# Of pyproject.toml and hatch_build.py.
BUILD_TOOLS := hatchling mypy setuptools
SOURCES := $(shell find operator emulator -name '*.py')

.DEFAULT_GOAL := help
.PHONY: help setup format check test test-alone test-nodes test-cluster crds tokenizer verify record-kubelet demo up bench compiled test-compiled constraints image kind clean

help: ## Show the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create the virtual environment with everything in it.

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11: set PYTHON to a newer one"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the project and its tools into $(VENV)"
	@$(BIN)/python -P -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

format: setup ## Format the code and mend what can be mended.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup ## Formatting, lint, types, import contracts, generated files.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory verify

# Tests on a cluster mostly wait, the others compute: side by side they take as long as the longest.
test: setup ## All tests; the Kubernetes binaries are fetched or built once.
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target test-cluster test-nodes test-alone

test-alone: setup ## The tests that need no cluster; they give way to those that watch a clock.
	nice $(BIN)/python -P -m pytest --ignore=tests/cluster

test-compiled: $(COMPILED) ## The engine's tests on compiled modules.
	PYTHONPATH=build/compiled $(BIN)/python -P -m pytest tests/unit/servelab/engine

test-nodes: setup ## Emulated nodes on a control plane of their own.
	$(BIN)/python -P -m pytest tests/cluster/nodes

test-cluster: setup ## Operator, gateway and emulated nodes on a real API server.
	$(BIN)/python -P -m pytest tests/cluster --ignore=tests/cluster/nodes

crds: setup ## Write the CRDs and their reference from the Python types.
	$(BIN)/python -P -m modelserve.api.crd --write $(CRDS)
	$(BIN)/python -P -m modelserve.api.fields --write docs/reference

tokenizer: setup ## Train the tokenizer that ships with the engine.
	$(BIN)/python -P -m servelab.engine.text.training --write $(TOKENIZER)

verify: setup ## Fail if a generated file is not what it is made from.
	$(BIN)/python -P -m modelserve.api.crd --check $(CRDS)
	$(BIN)/python -P -m modelserve.api.fields --check docs/reference
	$(BIN)/python -P -m servelab.engine.text.training --check $(TOKENIZER)

record-kubelet: setup ## Record real pods on a real kubelet (root; CASES="a b" OUT=file TIMES=n CHANCE=n SEED=n).
	$(BIN)/python -P -m servelab.recording --cases '$(CASES)' \
	  $(if $(OUT),--out '$(OUT)') $(if $(TIMES),--times $(TIMES)) \
	  $(if $(CHANCE),--chance $(CHANCE)) $(if $(SEED),--seed $(SEED))

demo: setup ## The whole story: zero, one request, real traffic, zero again.
	$(BIN)/servelab demo

up: setup ## Start a local cluster and stay until Ctrl-C.
	$(BIN)/servelab up

bench: $(COMPILED) ## Measure everything, hot modules compiled, and write docs/benchmarks.md.
	PYTHONPATH=build/compiled $(BIN)/python -P -m servelab bench all --write docs/benchmarks.md

compiled: $(COMPILED) ## Both packages with hot modules compiled, in build/compiled (needs a C compiler).

$(COMPILED): $(STAMP) hatch_build.py $(SOURCES)
	@echo "compiling hot modules into build/compiled: some two minutes"
	@rm -rf build/compiled
	@MODELSERVE_COMPILE=1 $(BIN)/python -P -m pip install --quiet --disable-pip-version-check \
	  --no-deps --target build/compiled .
	@touch $@

# Where there are no ranges: a fresh environment of the image's Python, and what pip puts there.
PINNED := build/pinned
constraints: ## Pin what the image is built from, in constraints.txt (Python 3.11, the package index).
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
	  || { echo "the image has Python 3.11: set PYTHON to one"; exit 1; }
	@rm -rf $(PINNED) && $(PYTHON) -m venv --without-pip $(PINNED)
	@$(PYTHON) -m pip --python $(PINNED)/bin/python install --quiet --disable-pip-version-check \
	  '.[emulator]' $(BUILD_TOOLS)
	@{ echo '# What the image is built from; `make constraints` writes it anew.'; \
	  $(PYTHON) -m pip --python $(PINNED)/bin/python freeze --all --exclude modelserve \
	    --disable-pip-version-check; } > constraints.txt
	@rm -rf $(PINNED)

image: ## Build the container image IMAGE:TAG (needs Docker).
	docker build --tag $(IMAGE):$(TAG) --build-arg VERSION=$(TAG) \
	  --build-arg REVISION=$$(git rev-parse HEAD) .

kind: image ## ModelServe in a kind cluster, the gateway at 127.0.0.1:8080 (needs kind, helm).
	kind get clusters | grep -qx modelserve || kind create cluster --config charts/kind.yaml
	kind load docker-image --name modelserve $(IMAGE):$(TAG)
	helm upgrade --install modelserve charts/modelserve --kube-context kind-modelserve \
	  --namespace modelserve-system --create-namespace --values charts/modelserve/ci/kind-values.yaml \
	  --set-string image.repository=$(IMAGE),image.tag=$(TAG) --wait

clean: ## Remove the virtual environment and what tools left.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
