# Build, test, show and install lsf. `make help` names the targets.
#
# The shipped file is static: --target keeps crt-static away from build scripts and procedural
# macros, which must stay dynamic.

HOST    := $(shell rustc -vV | sed -n 's/^host: //p')
TRIPLE  := $(or $(CARGO_BUILD_TARGET),$(HOST))
TARGETS := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
BIN     := $(TARGETS)/$(TRIPLE)/release/lsf
STATIC  := CARGO_BUILD_TARGET=$(TRIPLE) RUSTFLAGS='-C target-feature=+crt-static -C force-unwind-tables=no'
# bytes; a ceiling that must only come down: the goal is 3000000
MAX_SIZE := 5000000

PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  := $(DESTDIR)$(PREFIX)/bin
MANDIR  := $(DESTDIR)$(PREFIX)/share/man
EXDIR   := $(DESTDIR)$(PREFIX)/share/lsf/conf-examples

# how long `make soak` goes on
SOAK ?= 10m

.PHONY: all build check test demo soak bench install uninstall clean help

all: build

help:
	@echo 'make build     the static binary: $(BIN)'
	@echo 'make check     formatting, lints, house rules'
	@echo 'make test      every test; the last line counts them'
	@echo 'make demo      a personal cluster of three hosts runs a real workload'
	@echo 'make soak      simulations with fresh seeds, SOAK=10m'
	@echo 'make bench     figures beside what the machine itself can do'
	@echo 'make install   PREFIX=/usr/local DESTDIR='

build:
	@$(STATIC) cargo build --release --locked --bin lsf
	@! readelf -l $(BIN) 2>/dev/null | grep -q INTERP || \
	    { echo '$(BIN) is dynamic'; exit 1; }
	@size=$$(wc -c < $(BIN)); [ $$size -lt $(MAX_SIZE) ] || \
	    { echo "$(BIN) is too large: $$size bytes, limit $(MAX_SIZE)"; exit 1; }
	@echo "$(BIN): $$(wc -c < $(BIN)) bytes, static"

check:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo test --locked --quiet --test tidy

test: build
	@LSF_TEST_BIN=$(BIN) bash tests/run

demo: build
	@LSF=$(BIN) bash conf-examples/jobs/demo

soak: build
	$(BIN) lsfsim -t $(SOAK)

bench: build
	LSF_TEST_BIN=$(BIN) CARGO_PROFILE_RELEASE_LTO=off \
	    cargo test --locked --release --test bench -- --ignored --nocapture

install: build
	install -d $(BINDIR) $(EXDIR)
	install -m 755 $(BIN) $(BINDIR)/lsf
	$(BINDIR)/lsf --install $(BINDIR)
	for page in man/*.[1-9]; do [ -e "$$page" ] || continue; \
	    install -d $(MANDIR)/man$${page##*.}; \
	    install -m 644 "$$page" $(MANDIR)/man$${page##*.}/; done
	cp -R conf-examples/. $(EXDIR)/

uninstall:
	for name in $$($(BINDIR)/lsf --list); do \
	    [ ! -L $(BINDIR)/$$name ] || rm -f $(BINDIR)/$$name; done
	for page in man/*.[1-9]; do rm -f $(MANDIR)/man$${page##*.}/$${page##*/}; done
	rm -f $(BINDIR)/lsf
	rm -rf $(DESTDIR)$(PREFIX)/share/lsf

clean:
	cargo clean
