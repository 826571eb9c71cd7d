VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X main.version=$(VERSION)
GO      ?= go
KILLS   ?= 200
DAYS    ?= 40
comma   := ,
ROUNDS  ?= 14
FAILOVERS ?= 5
HISTORIES ?= 2000
HOOKS   ?= 3
DURATION ?= 1h
CHAOS   ?= .
OUTCOMES = $(abspath bin/chaos)
RECORDED = CCSHIP_CHAOS_OUTCOMES=$(OUTCOMES) CCSHIP_CHAOS_RESUME=$(RESUME)
GALLERY ?= gallery
CCUSAGE ?= npx --yes ccusage@20.0.24

# Everything is compiled once, also what tests build: they inherit this.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# How many packages are tested at once. Those that take longest begin first.
AT_ONCE ?= $(shell getconf _NPROCESSORS_ONLN)
LONGEST  = ./server/store ./e2e ./e2e/viewer ./daemon ./daemon/reconcile ./cmd/ccship

# Long tests of what changes rarely: `make nightly` runs them, every night (.github/workflows/nightly.yml).
NIGHTLY  = TestDeb|TestSmall|TestSiege|TestSiegeTLS|TestLarge

# What the measurement beside other programs is told.
FIELD    = CCSHIP_FIELD_PARTS='$(PARTS)' CCSHIP_FIELD_ONLY='$(ONLY)' CCSHIP_FIELD_FOLDER='$(FOLDER)' CCSHIP_FIELD_OUT='$(OUT)' \
	CCSHIP_FIELD_AGENTSVIEW='$(AGENTSVIEW)' \
	CGO_ENABLED=0 $(GO) test -trimpath -run TestBenchField -v -count 1 -timeout 24h

# What the race detector looks at: where goroutines share memory. SQLite's own code, translated from C, would cost it ten
# times as much as ours.
RACE    ?= ./tail/... ./outbox/... ./state/... ./daemon/... ./server/api/... ./server/auth ./server/derive ./server/hub
# The cases of the store in which goroutines meet.
MEET     = Concurrent|Crowding|Crowd|Changes|Derivers|SealMeanwhile|ColdMeanwhile|ForgetMeanwhile|ForgetDuringUpload|UploadsAtOnce|Tickets|QuotaOthers
RACING   = CGO_ENABLED=1 $(GO) test -race '-gcflags=modernc.org/...=-race=false' -vet=off -timeout 60m

.PHONY: help build run check lint vulnerabilities race test test-ahead test-short nightly fuzz bench bench-server bench-field bench-check crash damage model chaos chaos-page soak failover failover-patroni cold kill kill-page viewer screenshots gallery axe ccusage e2e-claude e2e-systemd e2e-wine first-minutes beside \
	packages release release-twice docs clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/ccship, bin/ccship-hook and bin/ccship-mcp beside it, and bin/ccship-server
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship ./cmd/ccship
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship-hook ./cmd/ccship-hook
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship-mcp ./cmd/ccship-mcp
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship-server ./cmd/ccship-server

run: ## server, daemon, import, viewer: try it now
	@echo "compiling; the first time takes a minute or two"
	@$(MAKE) --no-print-directory build
	bin/ccship up

check: ## what must hold before a change is merged: lint (it vets), race, test with 25 times kill -9
	$(MAKE) lint
	$(MAKE) race
	CCSHIP_CRASH_KILLS=25 $(MAKE) test TESTFLAGS='-vet=off $(TESTFLAGS)'

test: ## every test, end to end included, but those of nightly; the longest ones in short (see crash, damage, failover, viewer)
	CGO_ENABLED=0 $(GO) run .ci/tested.go 'make nightly runs it, every night ($(subst |,$(comma) ,$(NIGHTLY)))' -- \
		-p $(AT_ONCE) -timeout 60m -skip '^($(NIGHTLY))$$' $(TESTFLAGS) $(LONGEST) ./...

test-ahead: ## every test with the clock DAYS (default 40) ahead, in the tests and in the programs that they build
	GOFLAGS="$$(.ci/ahead $(DAYS))" CGO_ENABLED=0 $(GO) run .ci/tested.go -- -vet=off -p $(AT_ONCE) -timeout 60m $(TESTFLAGS) \
		$(or $(PACKAGES),./...)

nightly: ## what test leaves out, and the race detector over every package
	CGO_ENABLED=0 $(GO) run .ci/tested.go -- -p $(AT_ONCE) -timeout 60m -run '^($(NIGHTLY))$$' ./packaging/release ./e2e/bench/field ./e2e/viewer
	$(RACING) $$($(GO) list ./... | grep -v /e2e)

test-short: ## the tests of every package except the end-to-end ones
	$(GO) test -short -p $(AT_ONCE) -timeout 10m $$($(GO) list ./... | grep -v /e2e)

race: ## what shares memory between goroutines under the race detector
	$(RACING) $(RACE)
	$(RACING) -run 'TestSQLite/^($(MEET))$$' ./server/store

lint: ## gofmt, golangci-lint with go vet, go vet for macOS and Windows, actionlint
	.ci/lint

vulnerabilities: ## govulncheck, where its database can be reached
	.ci/vulnerabilities

fuzz: ## each fuzz target for FUZZTIME (default 60s)
	.ci/fuzz

bench: ## the benchmarks of every package, then the table of promises
	$(GO) test -run '^$$' -bench . -benchmem $$($(GO) list ./... | grep -v /e2e)
	$(GO) test -run '^$$' -bench Promises -benchtime 1x -timeout 60m ./e2e
	CCSHIP_E2E_CLAUDE=1 $(GO) test -run '^$$' -bench ClaudeTurn -benchtime 20x -timeout 60m ./e2e/claude

bench-server: ## ccship-server measured on SQLite and PostgreSQL at SIZES (default "0.1 1", GB), for docs/scale.md; see there
	CCSHIP_BENCH_SERVER=1 CCSHIP_BENCH_SIZES='$(SIZES)' CCSHIP_BENCH_BEFORE='$(BEFORE)' CCSHIP_BENCH_FOLDER='$(FOLDER)' \
	CCSHIP_BENCH_PARTS='$(PARTS)' CCSHIP_BENCH_STORES='$(STORES)' CCSHIP_BENCH_OUT='$(OUT)' CCSHIP_BENCH_SERVE='$(SERVE)' \
	CCSHIP_BENCH_MANY='$(MANY)' CCSHIP_BENCH_VERSION='$(VERSION)' \
	CGO_ENABLED=0 $(GO) test -trimpath -run TestBenchServer -v -count 1 -timeout 48h ./e2e/bench/server

bench-field: ## ccship beside what people use instead, for docs/benchmarks.md (hours; QUICK=1: ten minutes); PARTS, ONLY, FOLDER narrow it, PARTS=page only writes the page, AGENTSVIEW its program
	CCSHIP_BENCH_FIELD=1 CCSHIP_FIELD_QUICK='$(QUICK)' $(FIELD) ./e2e/bench/field

bench-check: ## the quick form compared with the committed ratios: fails when ccship is further behind than noise
	CCSHIP_FIELD_CHECK=1 CCSHIP_FIELD_QUICK=1 $(FIELD) ./e2e/bench/field

crash: ## kill -9 the daemon KILLS times (default 200) against each of two servers, and who writes state as often
	CCSHIP_CRASH_KILLS=$(KILLS) $(GO) test -run TestKilledWhile -v -count 1 -timeout 60m ./state/...
	CCSHIP_CRASH_KILLS=$(KILLS) $(GO) test -run TestCrash -v -count 1 -timeout 90m ./e2e

damage: ## the state file damaged in 16 ways under a running daemon, ROUNDS times (default 14) each
	CCSHIP_DAMAGE_ROUNDS=$(ROUNDS) $(GO) test -run TestDamagedInUse -v -count 1 -timeout 90m ./e2e

model: ## HISTORIES (default 2000) of two machines and a server, all of which go back in time, are cloned and cut off
	CCSHIP_MODEL_HISTORIES=$(HISTORIES) $(GO) test -run TestModel -v -count 1 -timeout 180m ./daemon/reconcile

chaos: ## hours of trouble of every kind for the real programs, for docs/reliability.md; CHAOS names tests, RESUME=1 goes on
	@[ -n '$(RESUME)' ] || rm -rf $(OUTCOMES)
	@mkdir -p $(OUTCOMES)
	$(RECORDED) CCSHIP_CHAOS_LONG=1 $(GO) test -run '$(CHAOS)' -count 1 -timeout 12h ./e2e/chaos
ifeq ($(CHAOS),.)
	$(RECORDED) $(MAKE) crash KILLS=500
	$(RECORDED) $(MAKE) damage model failover cold
endif
	@$(MAKE) --no-print-directory chaos-page

chaos-page: ## docs/reliability.md, from what `make chaos` recorded
	CCSHIP_CHAOS_OUTCOMES=$(OUTCOMES) CCSHIP_CHAOS_MERGE=1 $(GO) test -run TestPage -count 1 ./e2e/chaos

soak: ## DURATION (default 1h) of sixty busy sessions: the daemon's memory, descriptors, goroutines and state must stay flat
	CCSHIP_SOAK=$(DURATION) $(GO) test -run TestSoak -v -count 1 -timeout 24h ./e2e/chaos

failover: ## two servers on PostgreSQL: a server, the database, the primary killed mid-import, 20 times each
	CCSHIP_FAILOVER_ROUNDS=20 $(GO) test -run TestPostgres -v -count 1 -timeout 60m ./e2e

failover-patroni: ## three nodes with Patroni, etcd, HAProxy: the primary killed FAILOVERS (default 5) times, switched over as often
	CCSHIP_PATRONI_ROUNDS=$(FAILOVERS) $(GO) test -run 'TestPatroni$$' -v -count 1 -timeout 120m ./e2e

cold: ## cold storage on an S3 server (versitygw): its contract, then server and storage killed ROUNDS times (default 14)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(GO) build -modfile=.ci/tools/versitygw/go.mod -o "$$dir/versitygw" github.com/versity/versitygw/cmd/versitygw && \
	export CCSHIP_VERSITYGW="$$dir/versitygw" && \
	$(GO) test -run TestBucket -v -count 1 -timeout 30m ./server/store/objects && \
	CCSHIP_COLD_ROUNDS=$(ROUNDS) $(GO) test -run TestColdKilled -v -count 1 -timeout 60m ./cmd/ccship-server

kill: ## server, database, S3 server killed while lines are derived, sealed, moved, retired, forgotten, ROUNDS times (default 20) each, for docs/scale.md; KILL names some, as "server/sealing"
	@rm -rf bin/kill && mkdir -p bin/kill && \
	$(GO) build -modfile=.ci/tools/versitygw/go.mod -o bin/kill/versitygw github.com/versity/versitygw/cmd/versitygw && \
	CCSHIP_VERSITYGW='$(abspath bin/kill/versitygw)' CCSHIP_KILL_OUT='$(abspath bin/kill)' \
	CCSHIP_KILL_ROUNDS='$(if $(findstring file,$(origin ROUNDS)),20,$(ROUNDS))' \
	$(GO) test -run 'TestKill$$/$(KILL)|TestKilledAtSteps$(KILL)' -v -count 1 -timeout 12h ./e2e ./cmd/ccship-server
	@$(MAKE) --no-print-directory kill-page

kill-page: ## the table of kills in docs/scale.md, from what `make kill` recorded
	CCSHIP_KILL_OUT='$(abspath bin/kill)' CCSHIP_KILL_MERGE=1 $(GO) test -run TestKillPage -count 1 ./e2e

viewer: ## the viewer in headless Chromium, with every hostile text on every page and a session of 100 MB
	CCSHIP_VIEWER_LONG=1 $(GO) test -v -count 1 -timeout 30m ./e2e/viewer

screenshots: ## docs/screenshots, of invented conversations in headless Chromium
	CCSHIP_SCREENSHOTS=docs/screenshots $(GO) test -run TestScreenshots -v -count 1 ./e2e/viewer

gallery: ## every page at three widths, light and dark, as pictures in GALLERY, to look at
	CCSHIP_GALLERY='$(abspath $(GALLERY))' $(GO) test -run TestGalleryPictures -v -count 1 ./e2e/viewer

axe: ## axe-core (from npm) on every page: nothing serious
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; cp e2e/viewer/axe/package*.json "$$dir"; \
	npm ci --silent --ignore-scripts --prefix "$$dir" && \
	CCSHIP_AXE="$$dir/node_modules/axe-core/axe.min.js" $(GO) test -run TestAxe -v -count 1 ./e2e/viewer

ccusage: ## `ccship usage` beside ccusage (from npm), on real transcripts: those in CCSHIP_CORPUS
	CCSHIP_CCUSAGE='$(CCUSAGE)' $(GO) test -run TestCCUsage -v -count 1 ./daemon/usage

e2e-claude: ## the real Claude Code (from npm, or CCSHIP_CLAUDE_DIR) against a stub; each promise of the hooks HOOKS times (default 3)
	CCSHIP_E2E_CLAUDE=1 CCSHIP_HOOK_ROUNDS=$(HOOKS) $(GO) test -run TestRealClaude -v -count 1 -timeout 180m ./e2e/claude

e2e-wine: ## what reads, keeps and sends, as Windows programs under Wine, as far as Wine goes
	e2e/wine/run

e2e-systemd: ## both .deb packages in a Debian whose process 1 is systemd (root, on Debian 12)
	CCSHIP_E2E_SYSTEMD=1 $(GO) test -v -count 1 -timeout 30m ./e2e/systemd

first-minutes: ## docs/first-minutes.md and its moving picture: install, setup, search, resume on a clean Debian (as e2e-systemd)
	CCSHIP_E2E_SYSTEMD=1 CCSHIP_FIRST_MINUTES='$(abspath docs)' $(GO) test -run TestFirstMinutes -v -count 1 -timeout 60m ./e2e/systemd

beside: ## ccship beside agentsview (AGENTSVIEW, its program) on invented conversations, or on those below CCSHIP_CORPUS
	CCSHIP_BESIDE_AGENTSVIEW='$(AGENTSVIEW)' $(GO) test -run TestBeside -v -count 1 -timeout 120m ./e2e/bench/beside

packages: ## dist/: only the deb and rpm packages
	$(GO) run ./packaging/release -version '$(VERSION)' -only deb,rpm

release: ## dist/: archives for six systems, deb, rpm, Homebrew formula, install script, bill of materials, signed checksums
	$(GO) run ./packaging/release -version '$(VERSION)'

release-twice: ## builds the release in two folders, from nothing compiled, and compares every byte
	CCSHIP_RELEASE_TWICE=1 $(GO) test -run TestReproducible -v -count 1 -timeout 60m ./packaging/release

docs: ## docs/commands.md, docs/server-commands.md and the table of docs/configuration.md, from the programs
	$(GO) test -count 1 -run TestCommandPages ./packaging/man -update
	$(GO) test -count 1 -run TestDocumentedOptions ./daemon/config -update

clean: ## removes bin and dist
	rm -rf bin dist
