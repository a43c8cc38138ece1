# Todoku. `make` alone prints what there is.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# The race detector needs a C compiler; without one the same tests run without it.
RACE := $(if $(shell command -v cc gcc clang 2>/dev/null),-race)
TEMPORAL := $(shell command -v temporal 2>/dev/null || echo .bin/temporal)
PACKAGES ?= ./...

.PHONY: help dev test lint bench chaos build clean secrets pin-images

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

# 32 random bytes as hexadecimal digits.
RANDOM := head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'

secrets: ## make the passwords and keys of docker-compose.yml in secrets/, those that are not there
	@mkdir -p -m 700 secrets
	@keep() { [ -e secrets/$$1 ] || { (umask 077; cat > secrets/$$1) && chmod 444 secrets/$$1 && echo "made secrets/$$1"; }; }; \
	for name in postgres_password phone_hash_key todoku_api_key; do $(RANDOM) | keep $$name; done; \
	for role in owner app; do echo "postgres://todoku_$$role:$$($(RANDOM))@postgres:5432/todoku?sslmode=disable" | keep $${role}_database_url; done; \
	password=$$($(RANDOM)); printf 'SQL_PASSWORD=%s\nPOSTGRES_PWD=%s\n' $$password $$password | keep temporal_env; \
	for name in twilio_auth_token twilio_auth_token_previous twilio_api_key_secret; do keep $$name < /dev/null; done
	@[ -s secrets/twilio_auth_token ] || echo "write Twilio's auth token into secrets/twilio_auth_token (chmod u+w it first)"

pin-images: ## write the digests of the images into docker-compose.yml and Dockerfile, as the registries tell them now
	@docker buildx version >/dev/null 2>&1 || { echo "docker buildx is not installed: it asks the registries"; exit 1; }
	@sed -nE 's/^ *(image:|FROM) ([a-z0-9./-]+:[A-Za-z0-9._-]+)( .*)?$$/\2/p' docker-compose.yml Dockerfile | sort -u | while read -r image; do \
		digest=$$(docker buildx imagetools inspect "$$image" --format '{{.Manifest.Digest}}') || exit 1; \
		case $$digest in sha256:*) ;; *) echo "$$image: the registry tells no digest"; exit 1;; esac; \
		sed -i.bak -E "s#^( *(image:|FROM) )$$image( .*)?\$$#\1$$image@$$digest\3#" docker-compose.yml Dockerfile && \
		rm docker-compose.yml.bak Dockerfile.bak && echo "$$image@$$digest"; \
	done

clean: ## delete what was built and the data of `make dev`
	@if [ -e .todoku/ready.json ]; then echo "todoku dev runs here: stop it first (Ctrl-C)"; exit 1; fi
	rm -rf .bin .todoku

.bin/temporal:
	@echo "Building the Temporal CLI into .bin/, once: this takes 4 to 10 minutes on 2 cores."
	@GOBIN=$(CURDIR)/.bin go install github.com/temporalio/cli/cmd/temporal@v1.5.1
