# phos-ft: `make help` lists the targets.

CARGO ?= cargo
# Tools that setup built stand before the machine's own.
export PATH := $(CURDIR)/.build/tools/bin:$(HOME)/.cargo/bin:$(PATH)
# cargo and nextest must agree on where the programs are.
export CARGO_TARGET_DIR ?= $(CURDIR)/target

# One after another: they share the target directory.
.NOTPARALLEL:
.PHONY: help setup build programs demo demo-ranks demo-compose test test-slow slowest all lint-sources unit slow e2e site screenshots docker images figures dist dist-check lint fmt ptx bench bench-storage fuzz mutants gpubundle advisories clean

help: ## this list
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: ## install what building and testing need (as root; quick when it is there)
	scripts/setup.sh

# The library that CRIU gets has no standard library, so it cannot unwind.
CRIU_PRELOAD = CARGO_PROFILE_DEV_PANIC=abort $(CARGO) build --locked -p phos-criu-preload

build: ## build everything
	$(CARGO) build --workspace --locked --exclude phos-criu-preload
	$(CRIU_PRELOAD)

# All at once: for some packages alone, cargo would choose other features of what they share, and build that twice.
programs: # what tests run, the tests, and benchmarks, so that they are linted
	$(CARGO) build --workspace --locked --lib --bins --tests --benches
	$(CRIU_PRELOAD)
	$(CARGO) nextest run --no-run --workspace --locked

demo: ## train, checkpoint, kill, lose the node, resume: needs root, no GPU
	scripts/setup.sh --demo
	$(MAKE) build
	$(CARGO_TARGET_DIR)/debug/phos-demo

demo-ranks: ## the same with four ranks that meet on the (simulated) GPU in each step; one of them is killed
	scripts/setup.sh --demo
	$(MAKE) build
	$(CARGO_TARGET_DIR)/debug/phos-demo --ranks 4

demo-compose: ## the same in containers, with an S3 server and the loss of a node: needs root, no GPU
	scripts/setup.sh --demo-compose
	$(MAKE) build
	scripts/docker-images.sh debug
	$(CARGO_TARGET_DIR)/debug/phos-demo-compose

# clippy's driver is the compiler that also lints. As the compiler of our own crates it lints what is built and tested, where
# `cargo clippy` would first check all dependencies for itself: four minutes. The flag is written as cargo-clippy hands it over.
LINTING = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__

test: setup ## what CI checks, but for most of `make slow` and for mutants
	scripts/beside.sh scripts/while-building.sh -- env $(LINTING) $(MAKE) lint-sources programs
	$(LINTING) $(MAKE) all slowest

test-slow: ## `make slow`, of what `make test` built
	$(LINTING) $(MAKE) slow

slowest: ## how long the tests took that ran last, and the slowest twenty
	scripts/slowest.py

lint: lint-sources ## generated files, formatting, clippy, dependencies, scripts
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

lint-sources: # all of that but clippy
	scripts/ptx.sh --check
	.build/venv/bin/python shim/generate/generate.py --check
	python3 integration-tests/gpu/performance.py --check
	scripts/drawings.py --check
	$(CARGO) fmt --all --check
	# fuzz/ is a workspace of its own, which no other target builds.
	$(CARGO) update --workspace --locked --quiet --manifest-path fuzz/Cargo.toml
	$(CARGO) deny --workspace --locked check bans licenses sources
	scripts/advisories.sh
	scripts/agent-check.sh
	shellcheck -x scripts/*.sh scripts/cc docker/entrypoint integration-tests/slurm-site.sh integration-tests/installed.sh .ci/run
	scripts/docker-check.sh
	scripts/site.sh --check
	scripts/security-check.sh
	scripts/mutants.sh --check

all: images ## unit, slow, e2e and docker in one pool, which takes half the time (as root)
	scripts/browser.sh
	scripts/kernel-test.sh
	scripts/criu-check.sh
	scripts/in-memory.sh scripts/with-s3.sh $(CARGO) nextest run --workspace --locked --profile all

unit: programs ## unit and property tests, kernels on the host
	scripts/kernel-test.sh
	scripts/in-memory.sh scripts/with-s3.sh $(CARGO) nextest run --workspace --locked

slow: programs ## 10,000 seeds of the storage simulation, 300 SIGKILLs against the S3 server, more kills of jobs (as root): a part of them is in `make test`
	scripts/in-memory.sh scripts/with-s3.sh $(CARGO) nextest run --workspace --locked --profile slow

e2e: programs ## end-to-end tests with CRIU on the simulated GPU (as root)
	scripts/browser.sh
	scripts/criu-check.sh
	scripts/in-memory.sh scripts/with-s3.sh $(CARGO) nextest run --workspace --locked --profile e2e

site: ## the documentation as a site in .build/site
	scripts/setup.sh --site
	$(MAKE) build
	scripts/site.sh

screenshots: programs ## pictures of the page in docs/screenshots, taken of a job on the simulated GPU (as root)
	scripts/browser.sh
	mkdir -p docs/screenshots
	PHOS_SCREENSHOTS=$(CURDIR)/docs/screenshots scripts/in-memory.sh $(CARGO) nextest run --locked -p phos-integration-tests --profile e2e -E 'test(/^page::/) | test(top_on_a_terminal)'
	.build/venv/bin/pip install --quiet --require-hashes --only-binary :all: -r scripts/requirements-screenshots.txt
	.build/venv/bin/python scripts/terminal-picture.py docs/screenshots/top.ansi docs/screenshots/top.svg
	rm docs/screenshots/top.ansi

docker: images ## end-to-end tests with docker compose, its demo among them (as root)
	$(CARGO) nextest run --workspace --locked --profile docker

images: programs ## the images that they run
	scripts/docker-images.sh --packages debug

figures: images ## what agent and sidecar take in containers, idle and checkpointing: the table of docs/deploy.md
	$(CARGO_TARGET_DIR)/debug/phos-container-figures

dist: ## phos-ft, shim and CRIU in .build/dist, for glibc 2.31 and newer (what docker/Dockerfile takes); a .deb and a wheel of them in .build/packages
	scripts/setup.sh --dist
	PHOS_PINNED=1 scripts/sysroot.sh
	scripts/release-build.sh -p phos-ft -p phos-shim -p phos-criu-preload
	PHOS_PINNED=1 scripts/dist.sh
	scripts/packages.sh

dist-check: ## whether the last commit gives the same bytes in two folders: two release builds
	scripts/setup.sh --dist
	scripts/dist-check.sh

bench: ## figures of this machine's CPU paths; integration-tests/gpu has those of a GPU
	$(CARGO) bench --locked -p phos-storage --bench throughput

# The malloc arenas are as many as phos-ft sets for itself (sidecar/src/heap.rs).
bench-storage: ## the store beside zstd, restic and plain puts: 4 GiB, a directory and the S3 server (10 GiB of memory, 10 GiB in /tmp)
	scripts/setup.sh --bench
	$(CARGO) bench --locked -p phos-storage --bench storage --no-run
	GLIBC_TUNABLES=glibc.malloc.arena_max=2 scripts/with-s3.sh $(CARGO) bench --locked -p phos-storage --bench storage

SECONDS ?= 60
fuzz: ## fuzz every decoder for SECONDS (60) each; from 600 on also 100,000 seeds of the storage simulation
	scripts/fuzz.sh $(SECONDS)
	[ $(SECONDS) -lt 600 ] || scripts/in-memory.sh $(CARGO) nextest run -p phos-storage --locked --profile long

mutants: ## undo rules of the store and of the engine one at a time (storage/mutants, sidecar/mutants), and see that tests notice: an hour; CI does a seventh of the store's a day
	scripts/mutants.sh $(MUTANTS)

# What integration-tests/gpu/h200.py needs on a machine without Rust and without a network.
gpubundle: ## release binaries, shim and CRIU in .build/gpu-bundle, for integration-tests/gpu
	scripts/criu-bundle.sh --bundle
	scripts/sysroot.sh
	scripts/release-build.sh -p phos-ft -p phos-shim -p phos-criu-preload -p phos-trainer -p phos-integration-tests
	rm -rf .build/gpu-bundle
	mkdir -p .build/gpu-bundle/bin
	cd $(CARGO_TARGET_DIR)/release && cp phos-ft libphos_shim.so libphos_criu_preload.so phos-trainer phos-demo phos-encoding-table $(CURDIR)/.build/gpu-bundle/bin/
	strip .build/gpu-bundle/bin/*
	cp -r .build/criu .build/gpu-bundle/criu
	git describe --always --dirty --exclude '*' >.build/gpu-bundle/commit
	du -sh .build/gpu-bundle

advisories: ## vulnerabilities of dependencies that are known now; fetches the database (`make lint` has it as of a day)
	$(CARGO) deny --workspace --locked check advisories

fmt: ## format the sources
	$(CARGO) fmt --all

ptx: ## compile the CUDA kernels to the committed PTX
	scripts/ptx.sh

clean: ## remove what was built; keeps the tools in .build
	$(CARGO) clean
	rm -rf .build/kernel-test
