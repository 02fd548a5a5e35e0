# Everything a person or CI runs. `make` alone lists it. Each target makes its own environment.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := $(shell find crates -name '*.rs' -o -name 'Cargo.toml' 2>/dev/null) Cargo.toml Cargo.lock
# Lints are denied in the version they were chosen with; a newer clippy's new ones are only shown.
CLIPPY := $(if $(findstring 1.95.,$(shell rustc --version)),-D warnings,--cap-lints warn)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check build wheel standalone engines bless bench cross docs site lock calibrate clean

help: ## List these targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 12

demo: $(VENV)/.built ## Find and prove the missing indexes of a small shop; ends by naming its report
	$(BIN)/uncork demo

test: $(VENV)/.built $(VENV)/.dev $(VENV)/.engines $(VENV)/.site ## Run what protects each command: Rust, unit, property, calibration, real PostgreSQL, browser
	@bash tools/system_packages.sh
	cargo test --workspace --release --locked
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "not thorough" --durations=40 --durations-min=5

test-all: $(VENV)/.built $(VENV)/.dev $(VENV)/.engines $(VENV)/.site ## Run every test
	@bash tools/system_packages.sh
	cargo test --workspace --release --locked
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

check: $(VENV)/.built $(VENV)/.dev $(VENV)/.engines ## Format, lint, types, import contracts, generated files fresh; under a minute
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --release --locked -- $(CLIPPY)
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --locked --offline check bans licenses sources; \
	elif [ -n "$$CI" ]; then echo "cargo-deny is missing"; exit 1; \
	else echo "cargo-deny is not installed, so licences were not checked (cargo install cargo-deny --locked)"; fi
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@# By itself: beside the package, stubtest reads all of it and spoils mypy's cache.
	@rm -rf build/stub && mkdir -p build/stub/uncork && touch build/stub/uncork/__init__.py
	@ln -s $(abspath python/uncork)/_core.* build/stub/uncork
	cd build/stub && PYTHONPATH=. MYPYPATH=. $(abspath $(BIN))/python -m mypy.stubtest uncork._core
	$(BIN)/lint-imports
	$(BIN)/typos
	$(BIN)/python tools/generate.py --check

engines: $(VENV)/.engines ## Install every optional package (drivers, S3, pandas, ...), half a gigabyte

build: $(VENV)/.built ## Build the Rust core and install the package into .venv

wheel: $(VENV)/.built ## Build a wheel into dist/, and try it in an environment that has no Rust
	rm -rf dist
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin build --release --locked --quiet --out dist
	$(BIN)/python tools/try_wheel.py dist/*.whl

standalone: $(VENV)/.built ## Build an archive with its own Python into dist/, and try it where nothing but glibc exists
	rm -rf dist
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin build --release --locked --quiet --out dist
	$(BIN)/python tools/standalone/build.py dist/*.whl
	$(BIN)/python tools/standalone/attempt.py dist/*.tar.gz

bless: $(VENV)/.built $(VENV)/.dev ## Rewrite goldens and generated files; read the diff afterwards
	UNCORK_BLESS=1 $(BIN)/python -m pytest -q tests/golden tests/unit -p no:randomly
	$(BIN)/python tools/generate.py

calibrate: $(VENV)/.built $(VENV)/.dev ## The long form of the simulations behind the stated error rates
	$(BIN)/python -m pytest -s tests/calibration --calibration=long
	UNCORK_CASES=10000 $(BIN)/python -m pytest tests/property/test_claims.py

cross: ## Check that the core compiles for Linux on ARM, and its Rust code for macOS (needs gcc-aarch64-linux-gnu)
	rustup target add aarch64-unknown-linux-gnu aarch64-apple-darwin
	PYO3_NO_PYTHON=1 cargo check --locked --target aarch64-unknown-linux-gnu -p uncork-py
	PYO3_NO_PYTHON=1 CC_aarch64_apple_darwin=$(CURDIR)/tools/no_compiler AR_aarch64_apple_darwin=$(CURDIR)/tools/no_compiler \
	  CXX_aarch64_apple_darwin=$(CURDIR)/tools/no_compiler cargo check --locked --target aarch64-apple-darwin -p uncork-py

bench: $(VENV)/.built ## Measure uncork against its peers (see bench/BENCHMARKS.md)
	$(BIN)/python bench/load_pgbench.py
	$(BIN)/python bench/http_peers.py
	$(BIN)/python bench/saturations.py --times 3

docs: $(VENV)/.built $(VENV)/.dev ## Regenerate the reference and run the examples in the docs
	$(BIN)/python tools/generate.py
	$(BIN)/python -m pytest -q tests/docs

site: $(VENV)/.site ## Build the site into build/site/html, from the Markdown of the repository
	$(BIN)/python tools/site/build.py

lock: $(VENV)/.dev ## Pin Python packages with hashes, after a change to requirements/*.in
	cd requirements && for set in run dev engines site; do ../$(BIN)/pip-compile -q --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras --allow-unsafe \
	  -o $$set.txt $$set.in; done

clean: ## Remove what these targets made (not the runs in .uncork)
	rm -rf $(VENV) target build

$(VENV)/.run: requirements/run.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("uncork needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements/run.txt
	touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	touch $@

$(VENV)/.site: requirements/site.txt $(VENV)/.dev
	$(BIN)/pip install --quiet --require-hashes -r requirements/site.txt
	touch $@

$(VENV)/.engines: requirements/engines.txt $(VENV)/.dev
	$(BIN)/pip install --quiet --require-hashes -r requirements/engines.txt
	touch $@

$(VENV)/.built: $(VENV)/.run $(RUST) pyproject.toml
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet
	touch $@
