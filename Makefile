VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X main.version=$(VERSION)
GO      ?= go
KILLS   ?= 200
DAYS    ?= 40
comma   := ,
ROUNDS  ?= 14
HISTORIES ?= 2000

# Everything is compiled once, also what tests build: they inherit this.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# How many packages are tested at once. Those that take longest begin first.
AT_ONCE ?= $(shell getconf _NPROCESSORS_ONLN)
LONGEST  = ./server/store ./e2e ./e2e/viewer ./daemon ./daemon/proof ./cmd/ccship

# Long tests of what changes rarely: `make nightly` runs them, every night (.github/workflows/nightly.yml).
NIGHTLY  = TestDeb|TestSiege|TestLarge

# What the race detector looks at: where goroutines share memory. All code is instrumented, SQLite's too: generic code of
# the standard library that a package without instrumentation brings along hides what synchronises the others.
RACE    ?= ./tail/... ./outbox/... ./state/... ./daemon/... ./server/api/... ./server ./server/auth ./server/derive
# The cases of the store in which goroutines meet.
MEET     = Concurrent|Crowding|Crowd|Changes|Derivers|SealMeanwhile|ColdMeanwhile|ForgetMeanwhile|ForgetDuringUpload|UploadsAtOnce|Tickets|QuotaOthers
RACING   = CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 60m

.PHONY: help build run check lint race test test-ahead test-short nightly fuzz bench crash damage model viewer release docs fixtures clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/ccship, bin/ccship-hook and bin/ccship-mcp beside it, and bin/ccship-server
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship ./cmd/ccship
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship-hook ./cmd/ccship-hook
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship-mcp ./cmd/ccship-mcp
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ccship-server ./cmd/ccship-server

run: ## server, daemon, import, viewer: try it now
	@echo "compiling four programs and what they use; the first time takes a minute or two, then seconds"
	@began=$$(date +%s); n=0; for program in ccship-server ccship ccship-hook ccship-mcp; do \
		n=$$((n + 1)); echo "  $$program ($$n of 4), after $$(($$(date +%s) - began)) s"; \
		CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/$$program ./cmd/$$program || exit 1; \
	done; echo "compiled in $$(($$(date +%s) - began)) s"
	bin/ccship up

check: ## what must hold before a change is merged: lint (it vets), race, test with 25 times kill -9
	$(MAKE) lint
	$(MAKE) race
	CCSHIP_TEST=kills=25 $(MAKE) test TESTFLAGS='-vet=off $(TESTFLAGS)'

test: ## every test, end to end included, but those of nightly; the longest ones in short (see crash, damage, viewer, lab)
	CGO_ENABLED=0 $(GO) run .ci/tested.go 'make nightly runs it, every night ($(subst |,$(comma) ,$(NIGHTLY)))' -- \
		-p $(AT_ONCE) -timeout 60m -skip '^($(NIGHTLY))$$' $(TESTFLAGS) $(LONGEST) ./...

test-ahead: ## every test with the clock DAYS (default 40) ahead, in the tests and in the programs that they build
	GOFLAGS="$$(.ci/ahead $(DAYS))" CGO_ENABLED=0 $(GO) run .ci/tested.go -- -vet=off -p $(AT_ONCE) -timeout 60m $(TESTFLAGS) \
		$(or $(PACKAGES),./...)

nightly: ## what test leaves out, the tests of lab, and the race detector over every package
	CGO_ENABLED=0 $(GO) run .ci/tested.go -- -p $(AT_ONCE) -timeout 60m -run '^($(NIGHTLY))$$' ./packaging/release ./e2e/viewer
	cd lab && CGO_ENABLED=0 $(GO) test -timeout 60m ./...
	$(RACING) $$($(GO) list ./... | grep -v /e2e)

test-short: ## the tests of every package except the end-to-end ones
	$(GO) test -short -p $(AT_ONCE) -timeout 10m $$($(GO) list ./... | grep -v /e2e)

race: ## what shares memory between goroutines under the race detector
	$(RACING) $(RACE)
	$(RACING) -run 'TestSQLite/^($(MEET))$$' ./server/store

lint: ## gofmt, golangci-lint with go vet, go vet for macOS and Windows, actionlint
	.ci/lint

fuzz: ## each fuzz target for FUZZTIME (default 60s)
	.ci/fuzz

bench: ## the table of promises
	$(GO) test -run '^$$' -bench Promises -benchtime 1x -timeout 60m ./e2e

crash: ## kill -9 the daemon KILLS times (default 200) against each of two servers, and who writes state as often
	CCSHIP_TEST=kills=$(KILLS) $(GO) test -run TestKilledWhile -v -count 1 -timeout 60m ./state/...
	CCSHIP_TEST=kills=$(KILLS) $(GO) test -run TestCrash -v -count 1 -timeout 90m ./e2e

damage: ## the state file damaged in 16 ways under a running daemon, ROUNDS times (default 14) each
	CCSHIP_TEST=rounds=$(ROUNDS) $(GO) test -run TestDamagedInUse -v -count 1 -timeout 90m ./e2e

model: ## HISTORIES (default 2000) of two machines and a server, all of which go back in time, are cloned and cut off
	CCSHIP_TEST=histories=$(HISTORIES) $(GO) test -run TestModel -v -count 1 -timeout 180m ./daemon/proof

viewer: ## the viewer in headless Chromium, with every hostile text on every page and a session of 100 MB
	CCSHIP_TEST=long $(GO) test -v -count 1 -timeout 30m ./e2e/viewer

release: ## dist/: archives for six systems, deb, rpm, Homebrew formula, install script, bill of materials, signed checksums
	$(GO) run ./packaging/release -version '$(VERSION)'

docs: ## docs/commands.md, docs/server-commands.md and the table of docs/configuration.md, from the programs
	$(GO) test -count 1 -run TestCommandPages ./packaging/release -update
	$(GO) test -count 1 -run TestDocumentedOptions ./daemon/config -update

fixtures: ## what the present build writes, for TestUpgrade; VERSION is that of the release
	CCSHIP_TEST=upgrade=$(VERSION) $(GO) test -count 1 -run TestUpgrade ./e2e

clean: ## removes bin and dist
	rm -rf bin dist
