# Todoku. `make` alone prints what there is.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# The race detector needs a C compiler; without one the same tests run without it.
RACE := $(if $(shell command -v cc gcc clang 2>/dev/null),-race)
TEMPORAL := $(shell command -v temporal 2>/dev/null || echo .bin/temporal)
PACKAGES ?= ./...

.PHONY: help dev test lint bench chaos build clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z.\/]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dev: build $(TEMPORAL) ## run the whole product on this machine: Postgres, Temporal, a simulator of Twilio, worker, API
	@.bin/todoku dev $(ARGS)

test: lint $(TEMPORAL) ## run every linter and every test
	$(if $(RACE),,@echo "no C compiler: running the tests without the race detector")
	go tool gotestsum --format pkgname --format-hide-empty-pkg -- $(RACE) -timeout 30m $(PACKAGES)

lint: ## gofmt, go vet, staticcheck, workflowcheck
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
		if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted; exit 1; fi
	go vet ./...
	go tool staticcheck ./...
	go tool workflowcheck ./workflows

bench: $(TEMPORAL) ## measure the product beside its references, and write docs/benchmarks.md (about 15 minutes)
	@go run ./bench $(ARGS)

chaos: $(TEMPORAL) ## kill and freeze processes under load, and count what arrived (about 15 minutes)
	go test -count=1 -v -timeout 60m ./chaos -kills 20 -singles 5000 -batch 5000 -callers 1000 -long $(ARGS)

build: ## build the binary into .bin/
	@mkdir -p .bin
	@go build -o .bin/todoku .

clean: ## delete what was built and the data of `make dev`
	@if [ -e .todoku/ready.json ]; then echo "todoku dev runs here: stop it first (Ctrl-C)"; exit 1; fi
	rm -rf .bin .todoku

.bin/temporal:
	@echo "Building the Temporal CLI into .bin/, once: this takes 4 to 10 minutes on 2 cores."
	@GOBIN=$(CURDIR)/.bin go install github.com/temporalio/cli/cmd/temporal@v1.5.1
