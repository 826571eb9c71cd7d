VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X main.version=$(VERSION)
GO      ?= go
KILLS   ?= 200
ROUNDS  ?= 14
HISTORIES ?= 2000

# How many packages are tested at once. Most of them wait more than they compute. Those that take longest begin first.
AT_ONCE ?= 4
LONGEST  = ./e2e ./e2e/viewer ./server/store ./packaging/release ./daemon ./daemon/reconcile ./cmd/ccship

# What the race detector looks at.
RACE    ?= $(shell $(GO) list ./... | grep -v /e2e)

.PHONY: help build run check lint vulnerabilities race test test-short fuzz bench crash damage model chaos failover viewer screenshots e2e-claude e2e-systemd \
	packages release release-twice clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/ccship, bin/ccship-mcp beside it, and bin/ccship-server
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship ./cmd/ccship
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship-mcp ./cmd/ccship-mcp
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship-server ./cmd/ccship-server

run: build ## server, daemon, import, viewer: try it now
	bin/ccship up

check: ## what must hold before a change is merged: lint, race, crash, test
	$(MAKE) lint
	$(MAKE) race
	$(MAKE) crash
	$(MAKE) test

test: ## go vet, then every test, end to end included; the longest ones in short (see crash, damage, failover, viewer)
	CGO_ENABLED=0 $(GO) vet ./...
	CGO_ENABLED=0 $(GO) test -trimpath -p $(AT_ONCE) -timeout 20m $(TESTFLAGS) $(LONGEST) ./...

test-short: ## the tests of every package except the end-to-end ones
	$(GO) test -short -p $(AT_ONCE) -timeout 10m $$($(GO) list ./... | grep -v /e2e)

race: ## every package except the end-to-end tests under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 30m $(RACE)

lint: ## gofmt, go vet for three systems, golangci-lint, actionlint
	.ci/lint

vulnerabilities: ## govulncheck, where its database can be reached
	.ci/vulnerabilities

fuzz: ## each fuzz target for FUZZTIME (default 60s)
	.ci/fuzz

bench: ## the benchmarks of every package, then the table of promises
	$(GO) test -run '^$$' -bench . -benchmem $$($(GO) list ./... | grep -v /e2e)
	$(GO) test -run '^$$' -bench Promises -benchtime 1x -timeout 60m ./e2e
	CCSHIP_E2E_CLAUDE=1 $(GO) test -run '^$$' -bench ClaudeTurn -benchtime 20x -timeout 60m ./e2e/claude

crash: ## kill -9 the daemon KILLS times (default 200) against each of two servers, and who writes state as often
	CCSHIP_CRASH_KILLS=$(KILLS) $(GO) test -run TestKilledWhile -v -count 1 -timeout 60m ./state/...
	CCSHIP_CRASH_KILLS=$(KILLS) $(GO) test -run TestCrash -v -count 1 -timeout 90m ./e2e

damage: ## the state file damaged in 16 ways under a running daemon, ROUNDS times (default 14) each
	CCSHIP_DAMAGE_ROUNDS=$(ROUNDS) $(GO) test -run TestDamagedInUse -v -count 1 -timeout 90m ./e2e

model: ## HISTORIES (default 2000) of two machines and a server, all of which go back in time, are cloned and cut off
	CCSHIP_MODEL_HISTORIES=$(HISTORIES) $(GO) test -run TestModel -v -count 1 -timeout 180m ./daemon/reconcile

chaos: damage model ## what is too long for every test: damage to everything that is kept, restores and clones

failover: ## two servers on PostgreSQL: a server, the database, the primary killed mid-import, 20 times each
	CCSHIP_FAILOVER_ROUNDS=20 $(GO) test -run TestPostgres -v -count 1 -timeout 60m ./e2e

viewer: ## the viewer in headless Chromium, with every hostile text on every page and a session of 100 MB
	CCSHIP_VIEWER_LONG=1 $(GO) test -v -count 1 -timeout 30m ./e2e/viewer

screenshots: ## docs/screenshots, of invented conversations in headless Chromium
	CCSHIP_SCREENSHOTS=docs/screenshots $(GO) test -run TestScreenshots -v -count 1 ./e2e/viewer

e2e-claude: ## the real Claude Code (from npm, or CCSHIP_CLAUDE_DIR) against a stub, while ccship ships
	CCSHIP_E2E_CLAUDE=1 $(GO) test -run TestRealClaude -v -count 1 -timeout 30m ./e2e/claude

e2e-systemd: ## both .deb packages in a Debian whose process 1 is systemd (root, on Debian 12)
	CCSHIP_E2E_SYSTEMD=1 $(GO) test -v -count 1 -timeout 30m ./e2e/systemd

packages: ## dist/: only the deb and rpm packages
	$(GO) run ./packaging/release -version '$(VERSION)' -only deb,rpm

release: ## dist/: archives for six systems, deb, rpm, Homebrew formula, install script, bill of materials, signed checksums
	$(GO) run ./packaging/release -version '$(VERSION)'

release-twice: ## builds the release in two folders, from nothing compiled, and compares every byte
	CCSHIP_RELEASE_TWICE=1 $(GO) test -run TestReproducible -v -count 1 -timeout 60m ./packaging/release

clean: ## removes bin and dist
	rm -rf bin dist
