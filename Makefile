# Build, test, show and install lsf. `make help` names the targets.
#
# The shipped file is static. With the musl target of rustup, which is added where that can be
# had, it is linked by the linker that comes with Rust; without, it is static glibc, half as large
# again. Its size is printed; the names of its functions are in it, for the trace of a daemon that
# panics. --target keeps crt-static away from build scripts and procedural macros, which must stay
# dynamic.

HOST    := $(shell rustc -vV | sed -n 's/^host: //p')
MUSL    := $(subst -gnu,-musl,$(HOST))
LIBS    := $(shell rustc --print sysroot)/lib/rustlib
# found when first needed, not by `make help`
TRIPLE   = $(eval TRIPLE := $(or $(CARGO_BUILD_TARGET),$(shell \
    [ -d $(LIBS)/$(MUSL)/lib ] || rustup target add $(MUSL) > /dev/null 2>&1; \
    [ -d $(LIBS)/$(MUSL)/lib ] && echo $(MUSL) || echo $(HOST))))$(TRIPLE)
TARGETS := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
# how the file is compiled: a profile of Cargo.toml
PROFILE  = release
BIN      = $(TARGETS)/$(TRIPLE)/$(PROFILE)/lsf
# the file names no path of the machine that made it
HIDDEN  := --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src=
FLAGS    = -C target-feature=+crt-static -C symbol-mangling-version=v0 $(HIDDEN) $(if $(findstring musl,$(TRIPLE)),$(MUSL_LD),$(GLIBC_LD))
# The functions that a start needs lie together, as tests/bench/order.py found them: a command has
# its text from a dozen windows of 64 KB instead of sixty (tests/bench/README.md).
OFTEN   := src/sys/order.txt
ORDER   := $(TARGETS)/order-$(firstword $(shell cksum < $(OFTEN))).ld
# Relocations packed. (One copy of functions with the same code would save 80 KB, but a trace would
# name another function than the one called. LLVM's outliner would save 90 KB and cost a fifth of
# the speed.)
MUSL_LD := -C linker=rust-lld -C link-arg=-zpack-relative-relocs -C link-arg=-O2 \
    -C link-arg=$(ORDER)
# The same with glibc, where the C compiler links, if it can have Rust's linker. Not every glibc
# reads packed relocations.
LLD     := $(LIBS)/$(HOST)/bin/gcc-ld
BY_LLD  := -C link-arg=-B$(LLD) -C link-arg=-fuse-ld=lld -C link-arg=-Wl,-O2,$(ORDER)
GLIBC_LD := $(if $(wildcard $(LLD)/ld.lld),$(BY_LLD))
STATIC   = CARGO_BUILD_TARGET=$(TRIPLE) RUSTFLAGS='$(FLAGS)'

PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  := $(DESTDIR)$(PREFIX)/bin
MANDIR  := $(DESTDIR)$(PREFIX)/share/man
BASHDIR := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR  := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
EXDIR   := $(DESTDIR)$(PREFIX)/share/lsf/conf-examples

# what `make release` builds for, and where it puts the files
RELEASED = $(or $(CARGO_BUILD_TARGET),$(sort $(TRIPLE) $(HOST)))
FILES_AT := $(TARGETS)/release-files

# how long `make soak` goes on
SOAK ?= 10m

# how long `make fuzz` spends on each target, seconds
FUZZ ?= 60
FUZZED := frame conf lang nlb record log
FUZZ_AT := $(TARGETS)/fuzz

# how long `make bench-long` goes on
MINUTES ?= 10
# for the C library, and with the allocator, of the file that is shipped
BENCH = $(STATIC) CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release -p lsf --test bench -- \
    --ignored --nocapture --exact

.PHONY: all build order release check picture test test-nfs test-tools demo soak fuzz bench bench-long bench-compare install uninstall clean help

all: build

help:
	@echo 'make build     the static binary, target/TRIPLE/release/lsf'
	@echo 'make order     finds anew which functions a start needs: src/sys/order.txt (python3, nm)'
	@echo 'make release   a static binary for each C library, target/release-files/TRIPLE/lsf'
	@echo 'make check     formatting, lints, house rules'
	@echo 'make picture   who imports whom: target/picture.svg, and the circles (python3)'
	@echo 'make test      every test; the last line counts them'
	@echo 'make test-nfs  a site on NFS, and clocks that are set, in a guest of its own (qemu, Debian kernel, nfs-kernel-server)'
	@echo 'make test-tools  tools of others on a personal cluster (python3; pip installs them)'
	@echo 'make demo      personal clusters of three hosts run a real workload, and one by policies'
	@echo 'make soak      simulations with fresh seeds, SOAK=10m'
	@echo 'make fuzz      coverage-guided fuzzing, FUZZ=60 seconds a target (nightly Rust, cargo-fuzz)'
	@echo 'make bench     figures beside what the machine itself can do'
	@echo 'make bench-long     arrays of real jobs without end, MINUTES=10'
	@echo 'make bench-compare  two runs side by side, OLD=FILE NEW=FILE'
	@echo 'make install   PREFIX=/usr/local DESTDIR='

$(ORDER): $(OFTEN)
	@mkdir -p $(@D)
	@{ echo 'SECTIONS { .text.often : {'; \
	    sed 's/.*/*(.text.& .text.&.* .text.unlikely.&)/' $<; \
	    echo '} } INSERT BEFORE .text;'; } > $@

# To be run where functions of a start have new names; what it brings is in tests/bench/README.md.
order: build
	@python3 tests/bench/order.py $(BIN) > $(TARGETS)/order.new
	@mv $(TARGETS)/order.new $(OFTEN) && wc -l $(OFTEN)

build: $(ORDER)
	@$(STATIC) cargo build --profile $(PROFILE) --locked --bin lsf
	@! readelf -l $(BIN) 2>/dev/null | grep -q INTERP || \
	    { echo '$(BIN) is dynamic'; exit 1; }
	@$(BIN) -V > /dev/null 2>&1 || { echo '$(BIN) does not start here'; exit 1; }
	@echo "$(BIN): $$(wc -c < $(BIN)) bytes, static"

# With musl where that target can be had, and with glibc, which every Rust has.
release:
	@rm -rf $(FILES_AT)
	@for t in $(RELEASED); do \
	    $(MAKE) --no-print-directory build CARGO_BUILD_TARGET=$$t && \
	    install -D -m 755 $(TARGETS)/$$t/release/lsf $(FILES_AT)/$$t/lsf || exit 1; done
	@cd $(FILES_AT) && sha256sum */lsf > SHA256SUMS && cat SHA256SUMS
	@echo 'Test each of them:'
	@for t in $(RELEASED); do echo "    LSF_TEST_BIN=$(FILES_AT)/$$t/lsf bash tests/run"; done

check:
	cargo fmt --all --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo test --locked --quiet --test tidy

picture:
	@mkdir -p $(TARGETS)
	@python3 tests/tidy/imports.py --svg $(TARGETS)/picture.svg
	@echo $(TARGETS)/picture.svg

# tests/run compiles the tests beside the file, whose last step has work for one processor only.
test:
	@LSF_TEST_BIN=$(BIN) LSF_TEST_BUILD='$(MAKE) --no-print-directory build' bash tests/run

# Apart from the others: with an emulated processor it takes more than a minute.
test-nfs: build
	@LSF_TEST_BIN=$(BIN) bash tests/nfs/run

# Apart from the others: pip needs a network, and the tools their time.
test-tools: build
	@LSF_TEST_BIN=$(BIN) bash tests/tools/run

# Built quickly, as it claims no speed; PROFILE=release shows the file of `make build` instead.
demo: PROFILE = demo
demo: build
	@LSF=$(BIN) bash conf-examples/jobs/demo
	@LSF=$(BIN) bash conf-examples/nlb/demo

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

# LSF_BENCH=submit,work: these groups only (tests/bench/README.md); sched alone needs no file
bench: $(ORDER) $(if $(filter-out sched,$(or $(LSF_BENCH),all)),build)
	LSF_TEST_BIN=$(BIN) $(BENCH) bench

bench-long: build
	LSF_TEST_BIN=$(BIN) LSF_BENCH_MINUTES=$(MINUTES) $(BENCH) long

bench-compare:
	@[ -n '$(OLD)' ] && [ -n '$(NEW)' ] || \
	    { echo 'usage: make bench-compare OLD=bench.json NEW=bench.json'; exit 1; }
	@LSF_BENCH_OLD='$(abspath $(OLD))' LSF_BENCH_NEW='$(abspath $(NEW))' $(BENCH) compare

install: build
	install -d $(BINDIR) $(EXDIR) $(BASHDIR) $(ZSHDIR)
	install -m 755 $(BIN) $(BINDIR)/lsf
	$(BINDIR)/lsf --install $(BINDIR)
	for page in man/*.[1-9]; do [ -e "$$page" ] || continue; \
	    install -d $(MANDIR)/man$${page##*.}; \
	    install -m 644 "$$page" $(MANDIR)/man$${page##*.}/; done
	$(BINDIR)/lsf --completion zsh > $(ZSHDIR)/_lsf
	$(BINDIR)/lsf --completion bash > $(BASHDIR)/lsf
	for name in $$($(BINDIR)/lsf --list); do [ ! -L $(BINDIR)/$$name ] || \
	    ln -sf lsf $(BASHDIR)/$$name; done
	cp -R conf-examples/. $(EXDIR)/

uninstall:
	for name in $$($(BINDIR)/lsf --list); do \
	    [ ! -L $(BINDIR)/$$name ] || rm -f $(BINDIR)/$$name $(BASHDIR)/$$name; done
	rm -f $(BASHDIR)/lsf $(ZSHDIR)/_lsf
	for page in man/*.[1-9]; do rm -f $(MANDIR)/man$${page##*.}/$${page##*/}; done
	rm -f $(BINDIR)/lsf
	rm -rf $(DESTDIR)$(PREFIX)/share/lsf

clean:
	cargo clean
