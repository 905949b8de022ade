# Build, test, show and install lsf. `make help` names the targets.
#
# The shipped file is static. With the musl target of rustup, which is added where that can be
# had, it is linked by the linker that comes with Rust and stays below MAX_SIZE; without, it is
# static glibc, half as large again. --target keeps crt-static away from build scripts and
# procedural macros, which must stay dynamic.

HOST    := $(shell rustc -vV | sed -n 's/^host: //p')
MUSL    := $(subst -gnu,-musl,$(HOST))
LIBS    := $(shell rustc --print sysroot)/lib/rustlib
# found when first needed, not by `make help`
TRIPLE   = $(eval TRIPLE := $(or $(CARGO_BUILD_TARGET),$(shell \
    [ -d $(LIBS)/$(MUSL)/lib ] || rustup target add $(MUSL) > /dev/null 2>&1; \
    [ -d $(LIBS)/$(MUSL)/lib ] && echo $(MUSL) || echo $(HOST))))$(TRIPLE)
TARGETS := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
BIN      = $(TARGETS)/$(TRIPLE)/release/lsf
FLAGS    = -C target-feature=+crt-static $(if $(findstring musl,$(TRIPLE)),$(SMALL))
# no tables for unwinding, relocations packed, functions of the same code one, repeated
# instructions outlined (90 KB for a fifth or more of the speed where the processor is all that
# counts)
SMALL   := -C linker=rust-lld -C link-arg=--no-eh-frame-hdr -C link-arg=-zpack-relative-relocs \
    -C link-arg=--icf=all -C link-arg=-O2 \
    -C llvm-args=-enable-machine-outliner=always \
    -C link-arg=$(CURDIR)/src/sys/static.ld
STATIC   = CARGO_BUILD_TARGET=$(TRIPLE) RUSTFLAGS='$(FLAGS)'
# bytes
MAX_SIZE = $(if $(findstring musl,$(TRIPLE)),3000000,4600000)

PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  := $(DESTDIR)$(PREFIX)/bin
MANDIR  := $(DESTDIR)$(PREFIX)/share/man
EXDIR   := $(DESTDIR)$(PREFIX)/share/lsf/conf-examples

# how long `make soak` goes on
SOAK ?= 10m

# how long `make fuzz` spends on each target, seconds
FUZZ ?= 60
FUZZED := frame conf lang record log
FUZZ_AT := $(TARGETS)/fuzz

.PHONY: all build check test demo soak fuzz bench install uninstall clean help

all: build

help:
	@echo 'make build     the static binary, target/TRIPLE/release/lsf'
	@echo 'make check     formatting, lints, house rules'
	@echo 'make test      every test; the last line counts them'
	@echo 'make demo      a personal cluster of three hosts runs a real workload'
	@echo 'make soak      simulations with fresh seeds, SOAK=10m'
	@echo 'make fuzz      coverage-guided fuzzing, FUZZ=60 seconds a target (nightly Rust, cargo-fuzz)'
	@echo 'make bench     figures beside what the machine itself can do'
	@echo 'make install   PREFIX=/usr/local DESTDIR='

build:
	@$(STATIC) cargo build --release --locked --bin lsf
	@! readelf -l $(BIN) 2>/dev/null | grep -q INTERP || \
	    { echo '$(BIN) is dynamic'; exit 1; }
	@$(BIN) -V > /dev/null 2>&1 || { echo '$(BIN) does not start here'; exit 1; }
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

# What it finds is left in the folder that it names; it belongs into tests/fuzz/corpus.
fuzz:
	@cargo +nightly fuzz --version > /dev/null 2>&1 || { echo 'make fuzz needs nightly Rust and \
	    cargo-fuzz: rustup toolchain install nightly; cargo install cargo-fuzz'; exit 1; }
	@for t in $(FUZZED); do mkdir -p $(FUZZ_AT)/corpus/$$t && \
	    cargo +nightly fuzz run --fuzz-dir tests/fuzz/crate --target-dir $(FUZZ_AT) $$t \
	    $(FUZZ_AT)/corpus/$$t tests/fuzz/corpus/$$t -- -max_total_time=$(FUZZ) -max_len=8192 \
	    -timeout=10 -rss_limit_mb=2048 -artifact_prefix=$(FUZZ_AT)/$$t- || exit 1; done

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
