# make help explains the targets. A machine with Go, make and git is enough for
# run, build and test; check also wants a C compiler, for the race detector.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
LINT    := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
TARGETS := linux/arm64 darwin/arm64

# For one's own choice: make run ARGS='-cpus 0-3', make fuzz FUZZTIME=10m.
ARGS     ?=
FUZZTIME ?= 10s

# Where bench-peers leaves the report and its data, and what bench-compare compares with.
OUT ?= docs/benchmarks
REF ?= HEAD

# Without cgo the binary is static, and needs no C compiler.
export CGO_ENABLED := 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build, then serve 10,000 made-up users on :8080
	./server -demo 10000 $(ARGS)

.PHONY: run-full
run-full: build ## the same with 100,000 users on MariaDB, Redis and a member service, started here
	$(GO) run ./internal/full ./server $(ARGS)

.PHONY: deps
deps: ## install what tests, run-full and the benchmarks start: databases, other servers, wrk
	@missing=; \
	command -v mariadbd >/dev/null || missing="$$missing mariadb-server"; \
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || missing="$$missing postgresql"; \
	command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	for name in wrk nginx haproxy gcc; do \
		command -v $$name >/dev/null || test -x /usr/sbin/$$name || missing="$$missing $$name"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing$$missing"; \
		apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	else \
		echo "install these packages:$$missing" >&2; exit 1; \
	fi

.PHONY: build
build: ## build one static binary, ./server
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o server .

.PHONY: test
test: ## run every test
	cd bench && $(GO) test -timeout 5m $(TESTFLAGS) ./...
	$(GO) test -timeout 10m $(TESTFLAGS) ./...

.PHONY: race
race: ## run the tests of every package under the race detector, in random order
	@# Those of the program itself run a binary without the detector.
	CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout 15m $$($(GO) list ./... | grep -v '^pinion$$')

.PHONY: test-numa
test-numa: ## boot machines with several NUMA nodes in qemu, and test the server on them
	$(GO) test -tags numa -run '^TestMachines$$' -v -count=1 -timeout 40m ./internal/machine

.PHONY: check
check: tidy lint cross race bench-once ## what a change must pass beside test and test-numa

.PHONY: lint
lint: ## formatting, vet and linters
	$(GO) vet ./...
	$(GO) vet -tags numa ./internal/machine/...
	cd bench && $(GO) vet ./...
	$(LINT) fmt --diff
	$(LINT) run ./...
	cd bench && $(LINT) run ./...

.PHONY: fmt
fmt: ## format the code
	$(LINT) fmt

.PHONY: tidy
tidy: ## fail if a go.mod or go.sum is not tidy
	$(GO) mod tidy -diff
	cd bench && $(GO) mod tidy -diff

.PHONY: cross
cross: ## compile product and tests for the other systems
	@for t in $(TARGETS); do \
		echo "compile for $$t"; \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null . && \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) vet ./... || exit 1; \
	done

.PHONY: bench
bench: ## run the Go benchmarks of whole requests and of each room
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-once
bench-once: # run each benchmark once, so that none rots
	$(GO) test -run '^$$' -bench . -benchtime 1x ./... >/dev/null

.PHONY: bench-peers
bench-peers: ## measure pinion beside ten other servers, and write the report; two CPUs, under 20 minutes
	cd bench && $(GO) run ./run -out $(abspath $(OUT))/raw.json $(ARGS)
	@rm -f $(OUT)/again.json
	@$(MAKE) --no-print-directory bench-report

.PHONY: bench-again
bench-again: ## the same once more; the report then tells how far both agree
	cd bench && $(GO) run ./run -out $(abspath $(OUT))/again.json $(ARGS)
	@$(MAKE) --no-print-directory bench-report

.PHONY: bench-quick
bench-quick: ## the same for some servers and loads, printed; under 3 minutes
	cd bench && $(GO) run ./run -quick $(ARGS)

.PHONY: bench-report
bench-report: ## make the report in OUT again, from its raw data alone
	cd bench && $(GO) run ./report -in $(abspath $(OUT))/raw.json -out $(abspath $(OUT)) \
		$(if $(wildcard $(OUT)/again.json),-again $(abspath $(OUT))/again.json)

.PHONY: bench-compare
bench-compare: ## measure this tree against the commit REF, in pairs, before a merge
	cd bench && $(GO) run ./compare -ref '$(REF)' $(ARGS)

.PHONY: bench-users
bench-users: ## measure a request for 20 users beside a plain service; needs two CPUs and ten minutes
	cd bench && $(GO) run ./users $(ARGS)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
		done; \
	done

.PHONY: clean
clean: ## remove what make and run left behind
	rm -f server pinion.db pinion.db-wal pinion.db-shm pinion.db-next pinion.db-turn
