# `make` alone lists what there is. Everything is installed into folders of this checkout.
PYTHON ?= python3
VENV := .venv
# What is typed in the demo when no person is there (make wheel-test).
DEMO_ANSWERS := examples/demo-answers.txt
FUZZ_SECONDS ?= 3600
export VENV_GEN := .venv-gen

export PIP_DISABLE_PIP_VERSION_CHECK := 1
INSTALL := -m pip install --quiet --require-hashes -r
say = @printf '==> %s\n'
LOCK := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header

.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz fuzz-service mutants golden conformance check format gen image wheel wheel-test locks clean

help: ## what you can do here
	@echo 'Turngate. Needs Python 3.11 or newer and make; all else is set up by the targets.'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Start with: make demo'

# --- environments: each stamp is renewed when what it was made from has changed ---

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "needs Python 3.11 or newer, '$(PYTHON)' is: $$($(PYTHON) --version 2>&1); try: make PYTHON=python3.12" >&2; exit 1; }
	$(say) 'making $(VENV)'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# What the services and the client need, and the project itself in editable mode.
$(VENV)/.runtime: requirements/runtime.txt requirements/build.txt pyproject.toml | $(VENV)/bin/python
	$(say) 'installing what Turngate needs to run'
	@$(VENV)/bin/python $(INSTALL) requirements/runtime.txt -r requirements/build.txt
	@$(VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	$(say) 'installing what tests and checks need'
	@$(VENV)/bin/python $(INSTALL) requirements/dev.txt
	@touch $@

$(VENV_GEN)/.ready: requirements/gen.txt | $(VENV)/bin/python
	$(say) 'installing the generators'
	@$(VENV)/bin/python -m venv --clear $(VENV_GEN)
	@$(VENV_GEN)/bin/python $(INSTALL) requirements/gen.txt
	@touch $@

setup: $(VENV)/.dev ## everything for work on Turngate, in .venv
	$(say) 'ready; to use it in this shell: source $(VENV)/bin/activate'

# --- to see and to try ---

demo: $(VENV)/.runtime ## a conversation with the two real services, in this terminal
	@$(VENV)/bin/turngate demo

test: $(VENV)/.dev ## all tests; some of them: make test ARGS="tests/unit -k gate"
	@$(VENV)/bin/python -m pytest -q -n auto --dist worksteal $(ARGS)

conformance: $(VENV)/.dev ## the conformance cases; others: make conformance CASES=path
	@PYTHONPATH=gen/python $(VENV)/bin/python -m tests.conformance $(CASES)

fuzz: $(VENV)/.dev ## every command in random order for an hour; less: make fuzz FUZZ_SECONDS=300
	@TURNGATE_FUZZ_SECONDS=$(FUZZ_SECONDS) PYTHONPATH=gen/python $(VENV)/bin/python -m tests.unit.broker.fuzz

# A dump of threads that are at work inside gRPC can end the process.
fuzz-service: $(VENV)/.dev ## the same against the real service, on both stores; as long for each
	@TURNGATE_FUZZ_SECONDS=$(FUZZ_SECONDS) $(VENV)/bin/python -m pytest -q -s \
		-o faulthandler_timeout=0 tests/e2e/test_machine.py

# Hours on a small machine, so no part of CI. What is known stays in mutants/; make clean forgets it.
mutants: $(VENV)/.dev ## changes of the core that no test notices; some: make mutants MUTANTS='turngate_core.gate.*'
	@set -f; nice $(VENV)/bin/python tools/mutants.py $(MUTANTS)

# --- to keep it right ---

check: $(VENV)/.dev $(VENV_GEN)/.ready ## lint, format, strict types, imports, protos, generated code
	$(say) 'ruff'
	@$(VENV)/bin/ruff check --quiet
	@$(VENV)/bin/ruff format --check --quiet || { $(VENV)/bin/ruff format --check; exit 1; }
	$(say) 'mypy'
	@$(VENV)/bin/mypy --no-error-summary
	$(say) 'import contracts'
	@$(VENV)/bin/lint-imports --no-logo > $(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }
	$(say) 'protos'
	@$(VENV)/bin/buf lint
	@$(VENV)/bin/buf format --diff --exit-code
	@$(VENV)/bin/buf breaking --against protos/image.binpb
	$(say) 'generated code'
	@tools/check_gen.sh

format: $(VENV)/.dev ## put code and protos into their form
	@$(VENV)/bin/ruff check --quiet --fix-only
	@$(VENV)/bin/ruff format --quiet
	@$(VENV)/bin/buf format --write

gen: $(VENV_GEN)/.ready ## generate gen/ from protos/
	@tools/generate.sh gen
	$(say) 'gen/ is up to date with protos/'

golden: $(VENV)/.dev ## at a release: logs that stay readable for ever: make golden NAME=0.2.0
	@PYTHONPATH=gen/python $(VENV)/bin/python -m tests.golden.make $(NAME)

image: $(VENV)/.dev ## at a release: what later protos may not break
	@$(VENV)/bin/buf build --exclude-source-info --output protos/image.binpb

locks: $(VENV)/.dev ## newest versions into requirements/
	$(say) 'locking'
	@$(LOCK) --upgrade --all-extras --group dev --group lock pyproject.toml --output-file requirements/dev.txt
	@$(LOCK) --constraint requirements/dev.txt pyproject.toml --output-file requirements/runtime.txt
	@$(LOCK) --constraint requirements/dev.txt --group build --output-file requirements/build.txt
	@$(LOCK) --upgrade --group gen --output-file requirements/gen.txt

# --- the package ---

wheel: $(VENV)/.dev ## the wheel, into dist/
	@rm -rf dist
	@$(VENV)/bin/python -m build --wheel --no-isolation --outdir dist > $(VENV)/wheel.log 2>&1 || { cat $(VENV)/wheel.log; exit 1; }
	@ls dist/*.whl

wheel-test: wheel ## the wheel, alone in an empty environment, runs the demo
	@tools/wheel_test.sh < $(DEMO_ANSWERS)

clean: ## remove environments, builds and caches
	@rm -rf $(VENV) $(VENV_GEN) build dist mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
