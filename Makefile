# What a developer runs is what CI runs. `make help` lists the targets.
CARGO ?= cargo

.PHONY: help demo install dist test lint bench live-bench live-hour fix-rounds page page-pictures golden accuracy exam readme corpus public-captures fuzz mutants thresholds tools

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: ## record the classic 40 ms stall on this machine, bill it, fix it, bill it again
	@echo 'nothing is installed: cargo builds tcpwhy with the crates that Cargo.lock names'
	$(CARGO) run --locked --release -p tcpwhy -- demo

install: ## the command, stripped, where cargo puts commands
	$(CARGO) install --locked --profile dist --path crates/tcpwhy

dist: ## the command as `make install` builds it; it has to stay below 8 MB
	$(CARGO) build --locked --profile dist -p tcpwhy
	@size=$$(wc -c < $${CARGO_TARGET_DIR:-target}/dist/tcpwhy); echo "tcpwhy: $$size B"; test "$$size" -lt 8000000

test: tools lint ## everything that must hold: formatting, lints, all tests
	$(CARGO) test --locked --workspace

lint: ## formatting and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

bench: tools ## speed beside tcpdump, tcptrace and tshark, printed as tables (BENCH="--packets rpc=9440000 --runs 9" for other sizes)
	$(CARGO) build --locked --release -p tcpwhy -p tcpwhy-gen
	python3 tools/bench.py $(BENCH)

live-bench: ## what `live` costs, and what it does to the traffic that it watches (docs/running.md; as root; needs redis)
	$(CARGO) build --locked --release -p tcpwhy
	tools/live/bench.sh

live-hour: ## an hour of `live` under load: memory, and its answer beside that of `read` (as root; HOUR="600 2000" for 10 minutes)
	$(CARGO) build --locked --release -p tcpwhy
	tools/live/hour.sh $(HOUR)

fix-rounds: ## 200 changes of a running system that are killed in the middle, 50 of two at once, and pauses of 3 s (as root)
	$(CARGO) test --locked --release -p tcpwhy --test running -- --ignored --nocapture two_hundred pauses_of_three

page: ## build the page of --html from its sources (page/, needs node and npm)
	page/build.sh

page-pictures: tools ## the screenshots of the docs, and the page on large captures and transfers
	$(CARGO) build --locked --release -p tcpwhy -p tcpwhy-gen
	$(CARGO) test --locked --release -p tcpwhy --test looks -- --ignored --nocapture pictures

golden: ## the same bills, byte for byte, as the version before the engine was rebuilt (GOLDEN="DIR --base REVISION" for more)
	python3 tools/golden.py $(GOLDEN)

accuracy: ## bills against the applications' own clocks, printed as a table
	$(CARGO) run --locked --release -p tcpwhy -- lab accuracy --write docs/accuracy.md

exam: ## real programs over fresh paths, recorded at both ends with tcpdump, judged by their clocks (docs/exam.md; as root; EXAM="rpc" for some)
	$(CARGO) build --locked --release -p tcpwhy
	python3 tools/exam/exam.py $(EXAM)

readme: ## measure the table of the reference cases afresh, on this machine's kernel, and put it into docs/laboratory.md
	$(CARGO) run --locked --release -p tcpwhy -- lab all --write docs/laboratory.md

corpus: ## record the captures of the repository afresh, on this machine's kernel
	$(CARGO) run --locked --release -p tcpwhy -- lab corpus corpus/lab
	$(CARGO) run --locked --release -p tcpwhy -- lab real --corpus corpus/real

public-captures: ## fetch other people's captures (docs/public-captures.md) and read them all; needs the network and tshark
	tools/public-captures.sh
	$(CARGO) test --locked --release -p tcpwhy --test public_captures -- --ignored --nocapture

fuzz: ## every fuzz target for two minutes (FUZZ="20" for 20 seconds each, FUZZ="600 pipeline" for one); no nightly needed
	tools/fuzz.sh $(FUZZ)

mutants: ## every rule changed in one place at a time: what do the engine's tests not notice? (docs/mutants.md; MUTANTS="nagle.rs" for one file)
	tools/mutants.sh $(MUTANTS)

thresholds: ## the list of the engine's thresholds (docs/thresholds.md; THRESHOLDS="HELD_BACK_MIN" or all: how far each may be moved)
	python3 tools/thresholds.py $(THRESHOLDS)

tools: ## the programs that the tests record and compare with
	@tools/install.sh
