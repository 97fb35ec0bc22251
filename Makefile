# Bare `make` prints this list. Anything longer than a line is a script in .ci/.
PYTHON ?= python3
BIN := .venv/bin
PIP_COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command "make lock" -q

# Tests start hundreds of processes; without bytecode each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup lock fmt lint types unit check test compatibility simulate prove-book prove-cold prove-servers proofs mutants same tour-check crash-matrix tail-kills metrics-check browser-test screenshots soak fuzz bench bench-backfill bench-cold bench-check bench-fleet bench-scale bench-start postgres-check stack-up stack-down stack-status ui notebook demo terminals proto clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv from the lock (PYTHON=python3.12 names another interpreter); a no-op when done
	@.ci/setup "$(PYTHON)"

lock: requirements/uv.lock requirements/browser.lock ## resolve pyproject.toml into requirements/requirements.lock
	$(PIP_COMPILE) --group dev pyproject.toml -o requirements/requirements.lock

requirements/%.lock: requirements/%.in
	$(PIP_COMPILE) $< -o $@

fmt: ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix-only -q . && $(BIN)/ruff format -q .

lint: ## ruff, and that the formatter has nothing to do
	$(BIN)/ruff check . && $(BIN)/ruff format --check -q .

types: ## mypy, strict
	$(BIN)/mypy

unit: ## tests that need no server
	$(BIN)/python -m pytest tests/unit -q

check: setup lint types unit ## what needs no server: lint, types, unit tests

test: setup ## every test, against the real servers; WORKERS=3 processes, each with servers of its own
	$(BIN)/python -m pytest -p tests.support.minutes -p tests.support.together -p tests.support.last_use -m "not untame and not matrix and not prove and not cold_faults and not wrong_library" -n $(or $(WORKERS),3) --dist loadfile --no-loadscope-reorder --durations 20 --durations-min 20

compatibility: setup ## every pinned Pulsar release and an untame cluster; then docs/compatibility.md
	$(BIN)/python -m pytest -p tests.support.compatibility_record -m "untame or matrix" $(ONLY)
	$(BIN)/python -m tests.support.compatibility --accept

simulate: setup ## the steps on simulated servers, SEEDS=10000 schedules; SEED=123 replays one; ACCEPT=1 keeps the result
	$(BIN)/python -m tests.support.simulate $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),10000))
	$(if $(SEED),,$(if $(ACCEPT),$(BIN)/python -m tests.support.proofs simulation))

prove-book: setup ## the catalogue after SEEDS=1000 simulated schedules, and as many that lie; build/book.json
	$(BIN)/python -m tests.support.book_histories --seeds $(or $(SEEDS),1000)
	$(BIN)/python -m tests.support.lying_catalogues --seeds $(or $(SEEDS),1000)

prove-cold: setup ## each fault of cold reads in each mode, on real servers, ONLY="plain columns" for some; ACCEPT=1 keeps the result
	$(BIN)/python -m tests.support.prove_cold $(if $(ONLY),--only $(ONLY))
	$(if $(ACCEPT),$(BIN)/python -m tests.support.proofs cold)

prove-servers: setup ## real servers for what make test shows in a cheaper way, Spark on standalone clusters among it
	$(BIN)/python -m pytest -p tests.support.minutes -p tests.support.together -p tests.support.last_use -m prove -n 2 --dist loadfile --no-loadscope-reorder

proofs: setup ## which accepted results of slow proofs (docs/results) are of older code
	@$(BIN)/python -m tests.support.proofs

mutants: setup ## take each guard out of our code; its recorded killer must notice. FIND=1 looks for new killers
	$(if $(FIND),CALLERS_DIR=build/callers $(BIN)/python -m pytest -q -n 2 --dist loadfile -p tests.support.callers tests/unit tests/golden)
	$(BIN)/python -m tests.support.mutate $(if $(FIND),--find)
	$(BIN)/python -m pytest -q -m wrong_library -n 2 tests/unit/native
	$(if $(ACCEPT),$(BIN)/python -m tests.support.proofs mutants)

same: setup ## does this tree do what BASE=COMMIT did? effects, commands, names and bytes compared; build/same.json
	$(BIN)/python -m tests.support.same $(or $(BASE),HEAD) --seeds $(or $(SEEDS),500)

tour-check: setup ## every command that reads only, where nothing is loaded: what each changed; build/read-only.json
	$(BIN)/python -m tests.support.tour_check

tail-kills: setup ## brokers killed under load while open ledgers' tails are read; build/tail-kills.json
	$(BIN)/python -m tests.support.tail_kills --kills $(or $(KILLS),100)

crash-matrix: setup ## kill a process at every crash point on real servers, run it again, audit; ACCEPT=1 keeps the result
	$(BIN)/python -m tests.support.crash_matrix $(if $(ONLY),--only "$(ONLY)")
	$(if $(ACCEPT),$(BIN)/python -m tests.support.proofs crash-matrix)

metrics-check: setup ## alert rules, counters and dashboard on a real Prometheus (Debian's, unpacked in build/); build/metrics.json
	$(BIN)/python -m tests.support.metrics_check

browser-test: setup build/browser/lib ## five questions at the demo's pages, by Debian's Chromium (package chromium); KEYS=5000 in a large fleet
	PYTHONPATH=build/browser/lib $(BIN)/python -m tests.support.browser_check $(if $(ONLY),--only $(ONLY)) $(if $(KEYS),--keys $(KEYS))

screenshots: setup build/browser/lib ## rewrite the pictures of Dagster's pages in docs/images, of the demo's, by Debian's Chromium
	PYTHONPATH=build/browser/lib $(BIN)/python -m tests.support.screenshots

build/browser/lib: requirements/browser.lock
	$(BIN)/uv pip install -q --require-hashes --target $@ -r $<
	@touch $@

soak: setup ## automation on real servers for MINUTES=10, with everything killed once; ACCEPT=1 keeps the result
	$(BIN)/python -m tests.support.soak --minutes $(or $(MINUTES),10) --runner $(or $(RUNNER),local)
	$(if $(ACCEPT),$(BIN)/python -m tests.support.proofs soak)

bench: setup ## measure against Pulsar's own offloader and what bounds both, MINUTES=30 at most; docs/performance.md
	@$(BIN)/python -m benchmarks.run --minutes $(or $(MINUTES),30); code=$$?; $(BIN)/python -m benchmarks.page; exit $$code

bench-backfill: setup ## one large ledger by two workers and by one, and what a live producer pays; ACCEPT=1 keeps it
	@$(BIN)/python -m benchmarks.backfill $(if $(ACCEPT),--accept); code=$$?; \
	$(BIN)/python -m benchmarks.polite $(if $(ACCEPT),--accept) || code=$$?; exit $$code

bench-fleet: setup ## surveys, sensor ticks, one ledger and the metrics over LEDGERS=10000; ACCEPT=1 keeps it
	$(BIN)/python -m benchmarks.fleet --ledgers $(or $(LEDGERS),10000) $(if $(BEFORE),--before $(BEFORE)) $(if $(ACCEPT),--accept)

bench-scale: setup ## sensors, lists and scans over a million ledgers of 100,000 topics, and lists of ten million; ACCEPT=1 keeps it
	$(BIN)/python -m benchmarks.scale $(if $(ACCEPT),--accept)

bench-cold: setup ## cold messages: decoding, Arrow, Spark and a broker in turns, on topics that were released; ACCEPT=1 keeps it
	$(BIN)/python -m benchmarks.cold $(if $(ACCEPT),--accept)

bench-start: setup ## what starting each kind of process costs, beside BASE=commit; benchmarks/results/start.json
	$(BIN)/python -m benchmarks.start --base $(or $(BASE),c48726d) --starts $(or $(STARTS),5)

bench-check: setup ## CPU of fixed work, without servers, against benchmarks/results/check.json; ACCEPT=1 keeps it
	@$(BIN)/python -m benchmarks.check $(if $(ACCEPT),--accept)

fuzz: setup ## damaged input for the library in C under a sanitizer, MINUTES=60; needs a C compiler
	@$(BIN)/python -m tests.support.fuzz_core --sanitizer --minutes $(or $(MINUTES),60)

postgres-check: setup ## Dagster on a real PostgreSQL as deploy/ has it; needs PostgreSQL installed
	@.ci/postgres-check

stack-up: setup ## start S3, ZooKeeper, three bookies and a broker; they stay until stack-down
	$(BIN)/tierkeeper stack up --dir build/stack

stack-down: ## stop them
	$(BIN)/tierkeeper stack down --dir build/stack

stack-status: ## which of them run, and where
	$(BIN)/tierkeeper stack status --dir build/stack

ui: setup ## Dagster's web page and daemon on http://127.0.0.1:3000, over your settings or else the demo's servers
	@.ci/ui

notebook: setup ## JupyterLab on 127.0.0.1 with notebooks/, over your settings or else the demo's data
	@.ci/notebook

demo: setup ## from nothing to a released ledger, on real servers
	$(BIN)/tierkeeper demo

terminals: setup ## rewrite docs/terminals, what commands print at 100 columns, from a simulated fleet
	$(BIN)/python -m tests.support.terminals

proto: ## generate resources/_proto from proto/
	$(BIN)/python -m tiering_assets.resources.proto_build

clean: ## remove what was built; a running stack is stopped first, .venv stays
	@if [ -e build/stack/stack.json ]; then $(MAKE) stack-down; fi
	rm -rf build .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
