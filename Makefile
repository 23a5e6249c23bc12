# Every target sets up what it needs; a second run starts within seconds.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test lint fmt generate check bench e2e-vllm preview lock clean

BIN := .venv/bin
C_FILES := $(wildcard exporter/prefix_cache_exporter/usage/lane/compiled/*.[ch])
TEST_PACKAGES := prometheus prometheus-alertmanager chromium fonts-dejavu-core python3-venv npm:nodejs,npm

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | column -t -s "$$(printf '\t')"

demo:  ## the whole story on one machine, without a GPU (DEMO_SECONDS: how long it stays open after it)
	@scripts/setup runtime --optional prometheus prometheus-alertmanager
	@$(BIN)/prefix-cache-exporter demo

test:  ## every test, with branch coverage of the package
	@scripts/setup dev $(TEST_PACKAGES)
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report

lint:  ## ruff, formatting, mypy strict
	@scripts/setup dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(C_FILES)
	$(BIN)/mypy

fmt:  ## format the code
	@scripts/setup dev
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_FILES)
	$(BIN)/ruff check --fix .

generate:  ## write dashboards, rules and other generated files anew
	@scripts/setup dev
	$(BIN)/python -m prefix_cache_exporter.config.reference docs/CONFIGURATION.md
	$(BIN)/python -m prefix_cache_exporter.measures.reference docs/METRICS.md
	$(BIN)/python scripts/prices/generate.py
	$(BIN)/prefix-cache-exporter pack

check: generate  ## lint, and fail where a generated file has drifted
	@$(MAKE) --no-print-directory lint
	git diff --exit-code

bench:  ## speed and memory beside the named peers, in one run
	@scripts/setup dev mtail
	$(BIN)/python -m benchmarks

e2e-vllm:  ## a real vLLM server on the CPU (VLLM_VERSION, RECORD=1); minutes and gigabytes
	@scripts/setup dev
	$(BIN)/python tests/e2e_vllm/run.py

preview:  ## pictures of every dashboard, drawn by Grafana's own components from a made history
	@scripts/setup dev $(TEST_PACKAGES)
	@dashboards/preview/setup
	PYTHONPATH=tests $(BIN)/python dashboards/preview/made.py

lock:  ## resolve the lock files anew
	scripts/lock

clean:  ## remove what the targets made
	rm -rf dashboards/preview/node_modules dashboards/preview/build
	rm -f exporter/prefix_cache_exporter/usage/lane/compiled/*.so
	rm -rf .venv .cache build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache
