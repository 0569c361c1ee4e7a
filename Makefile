# What a developer runs is what CI runs. `make help` lists the targets.
CARGO ?= cargo
# The conversations that properties are tried on are the same in each run: what fails here fails there. `make properties` tries others.
SEED ?= 1

.PHONY: help demo install dist test lint bench live-bench live-hour fix-rounds page book page-pictures golden accuracy same exam readme corpus public-captures fuzz hostile properties mutants rules thresholds tools

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: ## record a 40 ms stall on this machine, diagnose it, fix it and measure again
	@echo 'building tcpwhy with cargo, which downloads the crates in Cargo.lock; nothing is installed'
	$(CARGO) run --locked --release -p tcpwhy -- demo

install: ## build the stripped binary and install it to ~/.cargo/bin
	CARGO=$(CARGO) tools/dist.sh install

dist: ## build the binary as `make install` does; fails if it is not below 8 MB
	@tcpwhy=$$(CARGO=$(CARGO) tools/dist.sh build) && size=$$(wc -c < "$$tcpwhy") && \
	    echo "$$tcpwhy: $$size B" && test "$$size" -lt 8000000

test: tools lint ## formatting, lints and all tests; installs missing programs with apt-get as root
	PROPTEST_RNG_SEED=$(SEED) $(CARGO) test --locked --workspace

properties: ## what must hold for any conversation, of thousands that nobody has tried yet (PROPERTIES="150000" of each kind; ten minutes)
	PROPTEST_CASES=$(or $(PROPERTIES),20000) $(CARGO) test --locked --release -p tcpwhy-core --test engine properties::

lint: ## formatting and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

bench: tools ## compare the speed with tcpdump, tcptrace and tshark (BENCH="--packets rpc=9440000 --runs 9" for other sizes)
	$(CARGO) build --locked --release -p tcpwhy-gen
	tcpwhy=$$(CARGO=$(CARGO) tools/dist.sh build) && TCPWHY=$$tcpwhy python3 tools/bench.py $(BENCH)

live-bench: ## what `live` costs, and what it does to the traffic that it watches (docs/running.md; as root; needs redis)
	$(CARGO) build --locked --release -p tcpwhy
	tools/live/bench.sh

live-hour: ## an hour of `live` under load: memory, and its answer beside that of `read` (as root; HOUR="600 2000" for 10 minutes)
	$(CARGO) build --locked --release -p tcpwhy
	tools/live/hour.sh $(HOUR)

fix-rounds: ## 200 changes of a running system that are killed in the middle, 50 of two at once, and pauses of 3 s (as root)
	$(CARGO) test --locked --release -p tcpwhy --test running -- --ignored --nocapture two_hundred pauses_of_three

page: ## build the HTML page from its sources in page/; needs node and npm
	page/build.sh

book: ## build the site of docs/ into target/book and follow its links; installs mdbook with pip under target/ where it is missing
	@python3 tools/book/book.py

page-pictures: tools ## take the screenshots of the docs, and test the page on large captures
	$(CARGO) build --locked --release -p tcpwhy -p tcpwhy-gen
	$(CARGO) test --locked --release -p tcpwhy --test looks -- --ignored --nocapture pictures

golden: ## check that bills are byte for byte those of an earlier revision (GOLDEN="DIR --base REVISION")
	python3 tools/golden.py $(GOLDEN)

accuracy: ## check the bills against the applications' own clocks (docs/accuracy.md)
	$(CARGO) run --locked --release -p tcpwhy -- lab accuracy --write docs/accuracy.md

same: ## record a scenario 50 times and count the pairs that `compare` says differ (docs/compare.md; as root; SAME="--runs 20 split c-idle")
	$(CARGO) build --locked --release -p tcpwhy
	python3 tools/same.py $(SAME)

exam: ## record real programs with tcpdump and check the bills against their clocks (docs/exam.md; as root; EXAM="rpc" for some)
	$(CARGO) build --locked --release -p tcpwhy
	python3 tools/exam/exam.py $(EXAM)

readme: ## measure the reference cases on this machine and update the table in docs/laboratory.md
	$(CARGO) run --locked --release -p tcpwhy -- lab all --write docs/laboratory.md

corpus: ## record the captures in corpus/ again, on this machine's kernel
	$(CARGO) run --locked --release -p tcpwhy -- lab corpus corpus/lab
	$(CARGO) run --locked --release -p tcpwhy -- lab real --corpus corpus/real

public-captures: ## download public captures (docs/public-captures.md) and read them all; needs the network and tshark
	tools/public-captures.sh
	$(CARGO) test --locked --release -p tcpwhy --test public_captures -- --ignored --nocapture

fuzz: ## run each fuzz target for two minutes (FUZZ="20" for 20 seconds each, FUZZ="600 pipeline" for one); no nightly needed
	tools/fuzz.sh $(FUZZ)

hostile: ## what captures made to fall over cost, at 1, 2, 3 and 8 threads (docs/robustness.md; HOSTILE="--shapes crowd --write")
	$(CARGO) build --locked --release -p tcpwhy -p tcpwhy-gen
	tools/hostile.py $(HOSTILE)

mutants: ## mutation testing of the engine's rules (docs/mutants.md; MUTANTS="nagle.rs" for one file)
	tools/mutants.sh $(MUTANTS)

rules: ## take the rules that everyday traffic needs out of the engine, one by one, and list what notices (docs/rules.md; RULES="R3 S1" for some)
	python3 tools/rules.py $(RULES)

thresholds: ## the list of the engine's thresholds (docs/thresholds.md; THRESHOLDS="HELD_BACK_MIN" or all: how far each may be moved)
	python3 tools/thresholds.py $(THRESHOLDS)

tools: ## install the programs that the tests use, or list them
	@tools/install.sh
