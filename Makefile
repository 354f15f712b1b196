# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap: see "make help".

VERSION := 0.1.0
O       ?= build
# An absolute path would not match the names in the lists of dependencies.
override O := $(O:$(CURDIR)/%=%)
# Programs that tests run under sudo are those of root.
unexport SUDO_UID SUDO_GID
prefix  ?= /usr/local
CC      ?= gcc
CLANG   ?= clang
ARCH    ?= $(shell uname -m)

# The kernel's name of the CPU, for BPF and nowhere else.
BPF_ARCH := $(subst x86_64,x86,$(subst aarch64,arm64,$(ARCH)))
IS_X86   := $(filter x86_64,$(ARCH))
HAS_PIECE := $(filter x86_64 aarch64,$(ARCH))

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 \
            -Wno-missing-field-initializers
# Without vectors of two words: structs of two words go by them from stores to loads, which stalls the CPU each time.
OPT      := $(if $(DEBUG),-Og -g3,-O2 -g -fno-tree-slp-vectorize)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
            $(if $(findstring thread,$(SAN)),-Wno-tsan) \
            $(if $(findstring fuzzer,$(SAN)),-fno-sanitize=pointer-overflow -D__SANITIZE_ADDRESS__=1)
# Counters lie in a file that is mapped, so that those of processes that are killed or leave by _exit() count, too (clang).
COVFLAGS := $(if $(COVERAGE),-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation)
# For another CPU: the compiler's root, with the libraries' -dev packages unpacked in it.
SYSROOT  ?=
ROOTFLAG := $(if $(SYSROOT),--sysroot=$(SYSROOT))
# Two builds in different directories are equal (make check-reproducible): no names of directories in them.
MAP_PATHS := -ffile-prefix-map=$(CURDIR)=.
CPPFLAGS += $(MAP_PATHS) $(ROOTFLAG) -I. -D_GNU_SOURCE -DHEAPTAP_VERSION='"$(VERSION)"'
CFLAGS   += -std=gnu11 $(OPT) $(WARNINGS) $(SANFLAGS) $(COVFLAGS) $(if $(CI),-Werror)
LDFLAGS  += $(ROOTFLAG) $(SANFLAGS) $(if $(COVERAGE),-fprofile-instr-generate)
LDLIBS   += -lbpf -ldw -lelf -lz -lzstd -liberty $(if $(IS_X86),-lcapstone) -lpthread -ldl -lm
# The console's prompt: without the library it is a plain one. READLINE= leaves it out.
READLINE ?= $(if $(wildcard $(SYSROOT)/usr/include/readline/readline.h),1)
CPPFLAGS += $(if $(READLINE),,-DWITHOUT_READLINE)
LDLIBS   += $(if $(READLINE),-lreadline)
# The screen of top: without the library there is none. NCURSES= leaves it out.
NCURSES  ?= $(if $(wildcard $(SYSROOT)/usr/include/ncurses.h $(SYSROOT)/usr/include/curses.h),1)
CPPFLAGS += $(if $(NCURSES),,-DWITHOUT_NCURSES)
LDLIBS   += $(if $(NCURSES),-lncursesw -ltinfo)
# Metrics over HTTP: the library is loaded when they are wanted. METRICS= leaves them out.
METRICS  ?= $(if $(STATIC),,$(if $(wildcard $(SYSROOT)/usr/include/microhttpd.h),1))
CPPFLAGS += $(if $(METRICS),,-DWITHOUT_METRICS)
# Profiles to a server, likewise. PUSH= leaves that out.
PUSH     ?= $(if $(STATIC),,$(if $(wildcard $(SYSROOT)/usr/include/curl/curl.h $(SYSROOT)/usr/include/*/curl/curl.h),1))
CPPFLAGS += $(if $(PUSH),,-DWITHOUT_PUSH)
# One file that needs no library.
LDFLAGS  += $(if $(STATIC),-static)
STATIC_LIBS = $(if $(IS_X86),-lcapstone) -lbpf -ldw -lelf -lz -lzstd -llzma -lbz2 -liberty $(if $(READLINE),-lreadline) $(if $(NCURSES),-lncursesw) -ltinfo \
               -lpthread -ldl -lm
# Expanded when it links: make deps may have installed libraries since.
LINK_LIBS = $(if $(STATIC),$(STATIC_LIBS),$(LDLIBS))
Q        := $(if $(V),,@)

# The rooms of heaptap, from the bottom up: tests/style.sh says which room may include which.
ROOMS := lib target names probe unwind inject heap source scan core stream report census session remote metrics console top system cli

# Of arch/ what knows one machine only by its own CPU, and x86 code, which Capstone decodes, on x86 only.
OTHER_CPU := $(filter-out %_$(ARCH).c %_plain.c,$(wildcard arch/regs_*.c arch/tracee_*.c arch/inject_*.c arch/remote_*.c)) $(if $(IS_X86),,$(wildcard arch/insn_x86*.c))
LIB_SRCS  := $(filter-out user/cli/main.c $(OTHER_CPU),$(sort $(wildcard $(ROOMS:%=user/%/*.c) fallback/*.c arch/*.c)))
# The source `inline` is for x86_64 and aarch64, and its memory is larger than a 32-bit program may have.
INLINE_SRCS := $(wildcard user/inject/*.c) user/source/source_inline.c $(wildcard user/source/inline_*.c)
LIB_OBJS  := $(LIB_SRCS:%.c=$(O)/%.o) $(O)/user/source/bpf_object.o $(O)/user/inject/piece_object.o $(O)/user/report/html_template.o
UNIT_SRCS := $(sort $(wildcard tests/unit/*/test_*.c))
UNITS     := $(UNIT_SRCS:%.c=$(O)/%)
BENCHES   := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/bench/*.c)))
BENCH_TARGETS := $(addprefix $(O)/tests/bench/,pair keep gap callers server)

.DELETE_ON_ERROR:
.PHONY: all static check-fresh deps check-deps demo quick check soak build-tests check-unit check-all check-thread check-e2e check-ptrace check-inline check-core \
        check-leaks check-inject check-inject-memory soak-random check-verdicts check-peers check-collectors check-viewers check-containers check-packages check-arch check-board check-kernels check-style check-headers agent-musl agent-serve agent-size agent-32 bench bench-peers install install-docs uninstall clean help targets

all: $(if $(AGENT),$(O)/heaptap-agent,$(O)/heaptap)  ## build heaptap (default), or with AGENT=1 the agent

$(O)/heaptap: $(O)/user/cli/main.o $(O)/libheaptap.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--dynamic-list=user/cli/demo.list -o $@ $^ $(if $(COVERAGE),tests/coverage_start.c) $(LINK_LIBS)

$(O)/libheaptap.a: $(LIB_OBJS)
	@echo "  AR      $@"
	$(Q)rm -f $@ && ar rcsD $@ $^

$(O)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Of -g the object needs .BTF only. DWARF would be a quarter of it: awk leaves its lines out before the assembler reads the
# rest, because strip of binutils does not know BPF, and llvm-strip brings 18 packages.
WITHOUT_DWARF = /^\t\.section\t/ { skip = $$2 ~ /^\.debug/ } !skip && !/^\t\.(loc\t|file\t|cfi_)/

# No BTF of the kernel, no CO-RE: one object for every kernel since 5.8; uring.bpf.c is for kernels with BTF.
$(O)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	$(Q)$(CLANG) -target bpf -D__TARGET_ARCH_$(BPF_ARCH) $(MAP_PATHS) -I. -Ivmlinux/$(ARCH) $(ROOTFLAG) \
		-idirafter $(SYSROOT)/usr/include/$(shell $(CC) -print-multiarch) -O2 -g -Wall -Wno-unused-function \
		$(if $(CI),-Werror) -MMD -MP -MT $@ -MF $@.d -S -o $@.s $<
	$(Q)awk '$(WITHOUT_DWARF)' $@.s >$@.short.s && $(CLANG) -target bpf -c -o $@ $@.short.s && rm $@.s $@.short.s

$(O)/user/source/bpf_object.o: user/source/bpf_object.S $(O)/bpf/heaptap.bpf.o $(O)/bpf/uring.bpf.o
	@mkdir -p $(@D)
	$(Q)$(CC) -DOBJECT='"$(O)/bpf/heaptap.bpf.o"' -DURING_OBJECT='"$(O)/bpf/uring.bpf.o"' -c -o $@ $<

comma := ,
# The piece of code for targets: freestanding, without data, at home at any address. gcc would clear records by rep stos,
# which takes longer than all else that a hook does. The stack of a program may be small: so functions that are called
# once are apart, and none has padding. clang does not know these options.
PIECE_GCC := -mmemset-strategy=unrolled_loop:256:noalign$(comma)libcall:-1:noalign -fno-inline-functions-called-once \
             -mpreferred-stack-boundary=3
# Expanded when it compiles, like HAS_STATIC below: make deps may have installed the compiler since.
PIECE_FLAGS = -std=gnu11 -O2 -fPIE -ffreestanding -fvisibility=hidden -fno-stack-protector -fno-jump-tables \
               -fno-asynchronous-unwind-tables -mgeneral-regs-only \
               $(if $(IS_X86),-fcf-protection=none $(shell $(CC) $(PIECE_GCC) -E -x c /dev/null >/dev/null 2>&1 && echo $(PIECE_GCC)), \
               -mbranch-protection=none -mno-outline-atomics -ffixed-x18)
define COMPILE_PIECE
	@mkdir -p $(@D)
	$(Q)$(CC) $(ROOTFLAG) -I. $(PIECE_FLAGS) $(WARNINGS) $(if $(CI),-Werror) -MMD -MP -c -o $@ $<
endef
$(O)/inline/%.o: inline/%.c
	$(COMPILE_PIECE)
$(O)/inline/%.o: inline/%.S
	$(COMPILE_PIECE)

PIECE_OBJS := $(patsubst %,$(O)/inline/%.o,entry_$(ARCH) piece stack)
$(O)/inline/piece.bin: inline/piece.lds $(PIECE_OBJS)
	@echo "  PIECE   $@"
	$(Q)$(CC) $(ROOTFLAG) $(PIECE_FLAGS) -nostdlib -static -Wl,--build-id=none -Wl,-T,$< -o $@.elf $(PIECE_OBJS)
	$(Q)$(shell $(CC) -print-prog-name=objcopy) -O binary -j .text $@.elf $@

$(O)/user/inject/piece_object.o: user/inject/piece_object.S $(if $(HAS_PIECE),$(O)/inline/piece.bin)
	@mkdir -p $(@D)
	$(Q)$(CC) $(if $(HAS_PIECE),-DOBJECT='"$(O)/inline/piece.bin"') -c -o $@ $<

$(O)/user/report/html_template.o: user/report/html_template.S $(wildcard user/report/html/*)
	@mkdir -p $(@D)
	$(Q)$(CC) -c -o $@ $<

$(O)/tests/unit/%: tests/unit/%.c $(O)/libheaptap.a
	@mkdir -p $(@D)
	@echo "  TEST    $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(O)/libheaptap.a $(LINK_LIBS) -lcmocka

# The test reads its own tables too: .debug_frame for its functions, .eh_frame for the library's.
$(O)/tests/unit/unwind/test_cfi_rows: private CFLAGS += -g -fno-asynchronous-unwind-tables

$(O)/tests/bench/%: tests/bench/%.c $(O)/libheaptap.a
	@mkdir -p $(@D)
	@echo "  BENCH   $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(O)/libheaptap.a $(LINK_LIBS)

# Programs to measure on: other people's, no library of ours in them.
$(BENCH_TARGETS): $(O)/tests/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	@echo "  BENCH   $@"
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -O2 -g -fno-builtin $(WARNINGS) $(if $(CI),-Werror) -pthread -o $@ $<

HAS_STATIC = $(wildcard /usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null)/libcapstone.a)

static:                          ## build/static/heaptap: one file that needs no library
	$(Q)$(MAKE) --no-print-directory STATIC=1 O=$(O)/static

deps:                            ## install what building needs, by the distribution's package manager (root)
	$(Q)tests/deps.sh build

check-deps: deps                 ## install what make check needs, too (root; tests/deps.sh has lists for the other checks)
	$(Q)tests/deps.sh check

demo: all $(O)/tests/targets/leak  ## trace the bundled leaking program (root)
	$(O)/heaptap run $(O)/tests/targets/leak

# How many things are built, and how many files of tests run, at a time. Tests often wait: so one more than CPUs.
JOBS     ?= $(shell echo $$(($$(nproc) + 1)))
# For tests: absolute paths, because tests change directories.
# A child of a test may start threads although the test has had some (ThreadSanitizer).
TEST_ENV  = HEAPTAP=$(abspath $(O))/heaptap O=$(abspath $(O)) JOBS=$(JOBS) TSAN_OPTIONS=die_after_fork=0

# End-to-end tests that need no root and no libraries of their own.
PLAIN_TESTS := tests/e2e/golden.bats tests/e2e/deps.bats

# Unit tests that take long.
UNITS_LONG := $(addprefix $(O)/tests/unit/,scan/test_snapshot_copy stream/test_stream source/test_link_keeper source/test_launch session/test_control)

# Jobs of tests/run.py that trace nothing, those that take long first.
CODE_JOBS := make:analyse-quick make:check-style plain:tests/style.bats plain:tests/run.bats plain:tests/kernels/cells.bats $(PLAIN_TESTS:%=plain:%) make:check-fuzz

quick: build-tests               ## style, cppcheck, unit tests and the core end-to-end tests (root; some 3 minutes)
	$(Q)$(TEST_ENV) tests/run.py --tags core $(CODE_JOBS) $(CORE_TESTS) $(UNITS:%=unit:%)

# Random input is tried less often than in make check-all.
check: build-tests               ## what a change must pass: style, unit tests, the end-to-end tests without the tag "full" (root; some 12 minutes on two CPUs)
	$(Q)HEAPTAP_ROUNDS=3 RUNS=1000 $(TEST_ENV) tests/run.py --tags '!full' $(CODE_JOBS) $(UNITS_LONG:%=unit:%) $(GATE_TESTS) $(filter-out $(UNITS_LONG:%=unit:%),$(UNITS:%=unit:%))

check-all: build-tests           ## all tests, by all three sources (root; over an hour on two CPUs)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) check-unit32-built $(if $(HAS_STATIC),static)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) SAN=thread O=$(O)/tsan $(THREAD_UNITS:%=$(O)/tsan/tests/unit/%)
	$(Q)$(TEST_ENV) tests/run.py $(CODE_JOBS) $(UNITS:%=unit:%) $(TRACED_TESTS) \
		$(THREAD_UNITS:%=unit:$(O)/tsan/tests/unit/%) $(UNITS32:%=unit:%)

# Everything that tests need, compiled once, several files at a time.
build-tests:
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all targets agent-musl agent-32 $(UNITS) $(FUZZERS:%=$(O)/tests/fuzz/once/%)

check-unit: $(UNITS)             ## unit tests only
	$(Q)$(TEST_ENV) tests/run.py $(UNITS:%=unit:%)

-include tests/targets/targets.mk
include tests/unit32.mk
include tests/fuzz/fuzz.mk
include tests/analysis.mk
include user/agent/agent.mk
include packaging/packaging.mk

# With a small C library, as tests/e2e/agent.bats has its limits.
agent-musl:                      ## the agent with musl, for its tests
	$(Q)if command -v musl-gcc >/dev/null; then \
		$(MAKE) --no-print-directory -s AGENT=1 CC="$(findstring ccache,$(CC)) musl-gcc" O=$(O)/musl; \
	else echo "agent-musl: no musl-gcc here: its tests are skipped"; fi

agent-serve:                     ## an agent that only serves: no run, no attach, no reports of its own
	$(Q)$(MAKE) --no-print-directory -s AGENT=1 SERVE_ONLY=1 CC="$(findstring ccache,$(CC)) musl-gcc" O=$(O)/serve

agent-size: agent-musl agent-serve ## bytes of these agents by room of the source
	$(Q)for o in musl serve; do echo "$$o:"; user/agent/size.sh $(O)/$$o/heaptap-agent; done

# As on a 32-bit board. With little optimization, which takes 20 s in place of half a minute, and so without warnings as errors. Without any,
# what the agent leaves out would still be named.
agent-32:                        ## the agent as a 32-bit x86 program, for its tests
	$(Q)if [ "$(call runs_32bit,$(CC) $(M32_FLAGS))" = yes ]; then \
		$(MAKE) --no-print-directory -s AGENT=1 CC="$(CC) $(M32_FLAGS)" AGENT_CPU=i386 CI= O=$(O)/agent32 \
			AGENT_OPT="-std=gnu11 -O1 -ffunction-sections -fdata-sections"; \
	else echo "agent-32: skipped: $(NO_32BIT)"; fi

# Unit tests of code that has threads. Others fork with threads, or count threads, which ThreadSanitizer does not allow.
THREAD_UNITS := fallback/test_ring lib/test_proc scan/test_scan scan/test_snapshot_memory scan/test_snapshot_stop \
                session/test_ask session/test_session session/test_session_live source/test_backlog target/test_target

check-thread:                    ## unit tests of code that has threads, with ThreadSanitizer
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) SAN=thread O=$(O)/tsan $(THREAD_UNITS:%=$(O)/tsan/tests/unit/%)
	$(Q)$(TEST_ENV) tests/run.py $(THREAD_UNITS:%=unit:$(O)/tsan/tests/unit/%)

# tagged TAG,FILES: those of bats files that have a test with this tag
tagged = $(shell grep -lE '^\# bats (test|file)_tags=(.*,)?$(1)(,|$$)' $(2))

# All files, those that take long first: the last ones to run then end at about the same time.
E2E_LONG  := remote leaks counts stacks console errors attach faults_memory steer recording
E2E_TESTS := $(E2E_LONG:%=tests/e2e/%.bats)
E2E_TESTS += $(filter-out $(E2E_TESTS) $(PLAIN_TESTS),$(sort $(wildcard tests/e2e/*.bats)))

# Tests of heaptap's own parts do not depend on the source and are left out: reports, names, options, recordings, serve.
PTRACE_TESTS := waits stacks counts leaks attach waits run follow programs losses faults_lifecycle faults_memory faults_allocators markers sanitizers
PTRACE_TESTS := $(PTRACE_TESTS:%=ptrace:tests/e2e/%.bats)

# The inline source: in make check-all those that test the most, in make check-inline all of these. They were not run on aarch64
# yet: check-kernels tests that source there, in emulated machines.
ifeq ($(shell uname -m),x86_64)
INLINE_MAIN  := stacks run counts events markers losses
INLINE_TESTS := waits leaks attach waits follow errors programs steer faults_memory faults_lifecycle faults_allocators sanitizers \
                between scan console console_log formats top unwatched \
                again badinput broken_off containers faults_clock faults_environment faults_files leaks_random metrics \
                options recording remote series servers unread why
endif
INLINE_MAIN  := $(INLINE_MAIN:%=inline:tests/e2e/%.bats)
INLINE_TESTS := $(INLINE_MAIN) $(INLINE_TESTS:%=inline:tests/e2e/%.bats)

# By serve and connect: what a report says of one process, of its children and of its leaks.
CONNECT_TESTS := connect:tests/e2e/leaks.bats connect:tests/e2e/follow.bats connect:tests/e2e/run.bats \
                 connect:tests/e2e/attach.bats@connect

# Jobs of make check that trace: by BPF, or whatever heaptap chooses, all tests without the tag "full"; by the other
# sources those with their tag.
GATE_TESTS = $(patsubst %,ptrace:%@ptrace$(comma)!full,$(call tagged,ptrace,$(PTRACE_TESTS:ptrace:%=%))) \
             $(patsubst %,%@inline$(comma)!full,$(INLINE_TAGGED)) \
             $(addprefix e2e:,$(filter-out $(shell grep -l '^\# bats file_tags=full' tests/e2e/*.bats),$(E2E_TESTS)))
INLINE_TAGGED = $(addprefix inline:,$(call tagged,inline,$(INLINE_TESTS:inline:%=%)))
# Jobs of make check-all that trace.
TRACED_TESTS = $(E2E_TESTS:%=e2e:%) $(PTRACE_TESTS) $(INLINE_MAIN) $(addsuffix @inline,$(filter-out $(INLINE_MAIN),$(INLINE_TAGGED))) $(CONNECT_TESTS)
CORE_TESTS = $(addprefix e2e:,$(call tagged,core,$(E2E_TESTS)))

is-root = $(Q)[ "$$(id -u)" -eq 0 ] || { echo "$@: not root: tracing: type: sudo make $@"; exit 1; }

check-e2e: all targets agent-musl agent-32 ## end-to-end tests only (root)
	$(is-root)
	$(Q)$(TEST_ENV) tests/run.py $(E2E_TESTS:%=e2e:%)

check-ptrace: all targets        ## the main end-to-end tests again, with the ptrace source (root)
	$(is-root)
	$(Q)$(TEST_ENV) tests/run.py $(PTRACE_TESTS)

check-inline: all targets        ## the end-to-end tests of calls and reports again, with the inline source (root)
	$(is-root)
	$(Q)$(TEST_ENV) tests/run.py $(or $(INLINE_TESTS),$(error check-inline: these tests are run on x86_64 only))

# Tests with the tag "core": each main way through heaptap once.
check-core: all targets
	$(is-root)
	$(Q)$(TEST_ENV) tests/run.py --tags core $(CORE_TESTS)

ROUNDS_UNITS := $(addprefix $(O)/tests/unit/,source/test_launch stream/test_stream scan/test_snapshot_copy)

# Tests with the tag "rounds" repeat something at random moments: here 100 times, in make check 10 times.
soak: build-tests check-leaks analyse  ## tests of random moments, 100 rounds each, make check-leaks and make analyse (root; about an hour)
	$(is-root)
	$(Q)HEAPTAP_WATCH=1 HEAPTAP_ROUNDS=100 $(TEST_ENV) tests/run.py --tags rounds $(ROUNDS_UNITS:%=unit:%) \
		$(addprefix e2e:,$(call tagged,rounds,$(E2E_TESTS))) \
		$(addprefix ptrace:,$(call tagged,rounds,$(PTRACE_TESTS:ptrace:%=%)))

check-leaks: all $(LEAK_PROGRAMS)  ## ten million blocks in random heaps, with verdicts known (root; some minutes; SEEDS=n)
	$(Q)O=$(abspath $(O)) tests/leaks/run.sh $(or $(SEEDS),9) 400000

check-inject: all $(T)/steady $(T)/leak  ## each system call of heaptap fails in turn; the table is build/inject.tsv (root; about an hour; CALLS=n)
	$(is-root)
	$(Q)$(TEST_ENV) tests/own_libraries.sh tests/faults/inject.py -n $(or $(CALLS),12) -j $(JOBS) -t $(abspath $(O))/inject.tsv

check-inject-memory: all $(T)/steady $(T)/leak $(T)/libfail.so  ## allocations of heaptap fail in turn; the table is build/inject-memory.tsv (root; about an hour; CALLS=n)
	$(is-root)
	$(Q)$(TEST_ENV) tests/own_libraries.sh tests/faults/inject.py -a -n $(or $(CALLS),400) -j $(JOBS) -t $(abspath $(O))/inject-memory.tsv

soak-random: all $(T)/steady $(T)/sums   ## 10,000 attaches and 2,000 kills of heaptap for each source, under memory pressure (root; some 2 hours if the sources run side by side; ATTACHES=n, KILLS=n, SOURCES=bpf,ptrace,inline)
	$(is-root)
	$(Q)$(TEST_ENV) tests/own_libraries.sh tests/faults/soak.py -a $(or $(ATTACHES),10000) -k $(or $(KILLS),2000) -s $(or $(SOURCES),bpf$(comma)ptrace$(comma)inline)

check-verdicts: all $(VERDICT_PROGRAMS) $(MANY_PROGRAMS)  ## shapes of leaks: the verdicts of heaptap, memcheck and LeakSanitizer, and by allocator, as tables (root)
	$(Q)$(TEST_ENV) tests/own_libraries.sh tests/verdicts/run.pl
	$(Q)$(TEST_ENV) tests/own_libraries.sh tests/verdicts/allocators.sh

check-peers: all $(ORACLE)         ## counts of 40 programs against memcheck, stacks against gdb (installs the programs; root; some 5 minutes)
	$(Q)tests/deps.sh peers
	$(Q)$(TEST_ENV) tests/own_libraries.sh tests/peers/run.sh

check-collectors: all targets     ## Prometheus scrapes for a minute, go tool pprof reads over HTTP (installs them; root)
	$(Q)tests/deps.sh collectors
	$(Q)$(TEST_ENV) tests/collectors/run.sh

check-fresh:                     ## the commands of README.md in fresh roots of Debian 12 and 13 (root, network; some 20 minutes)
	$(Q)tests/packages/fresh_root.sh

check-viewers: all targets       ## reports in go tool pprof, google-pprof and speedscope's page, and by the schema of SARIF (root; npm's registry)
	$(Q)tests/deps.sh viewers
	$(Q)tests/peers/viewers.sh $(abspath $(O))

check-containers: all targets    ## start what packaging/ has for Docker, Kubernetes and systemd (root, network; some 10 minutes)
	$(Q)tests/packages/containers.sh $(abspath $(O))

check-packages: all targets      ## lintian and rpmlint on the packages, each installed in a fresh root (root, network; some 3 minutes)
	$(Q)$(PACK_ENV) tests/packages/packages.sh

check-arch:                      ## the agent on other CPUs, in qemu (downloads and builds kernels; half an hour the first time; RECORD=1: results into doc/tested.md)
	$(Q)tests/arch/run.sh $(abspath $(O))

check-board: all targets         ## an agent on emulated boards, its host outside (root; kernels as for check-arch; RECORD=1)
	$(Q)tests/arch/board.sh $(abspath $(O))

check-kernels: all targets $(O)/tests/unit/arch/test_thread_call ## the main jobs on other kernels, in qemu (downloads kernel packages; some minutes; RECORD=1)
	$(Q)tests/kernels/run.sh $(abspath $(O))

bench: all $(BENCHES)            ## measure speed and memory, as ratios (root; more than 10 minutes)
	$(Q)tests/bench/run.sh $(abspath $(O))

bench-peers: all $(O)/tests/bench/pair                 ## heaptap beside heaptrack, bpftrace, memcheck, dhat and the allocators' profilers, into doc/performance.md (root; some 10 minutes; PEERS_S=n: n seconds of it, the next call goes on)
	$(is-root)
	$(Q)$(TEST_ENV) tests/own_libraries.sh tests/bench/peers.py -r $(or $(ROUNDS),5) $(PEERS_S:%=-s %) $(PROGRAMS:%=-p %) \
		-k $(abspath $(O))/peers.json $(if $(PROGRAMS),,-w $(CURDIR)/doc/performance.md)

check-style: check-headers       ## layers, sizes, names, spelling
	$(Q)tests/style.sh

# Each header compiles alone. One that a source includes first has been tried by its compilation. call/life.h needs the adaptor
# of the file that includes it.
INCLUDED_FIRST = $(shell awk 'FNR == 1 { n = 0 } /^.include/ && !n++ { split($$0, part, "\""); print part[2] }' $(LIB_SRCS))
check-headers:
	$(Q)for h in $(filter-out call/life.h call/sample.h $(INCLUDED_FIRST),$(wildcard user/*/*.h arch/*.h fallback/*.h call/*.h)); do \
		$(CC) $(CPPFLAGS) -std=gnu11 $(WARNINGS) -include user/lib/types.h -fsyntax-only -include $$h -x c /dev/null || exit 1; done

# Documents that a command makes; make check-style finds those that are not up to date.
.PHONY: flow-picture faults gate deps-figures screenshot manual
flow-picture:                    ## draw doc/flow.svg from doc/flow.txt
	$(Q)doc/flow.sh >doc/flow.svg

deps-figures:                    ## write into HACKING.md how much deps and check-deps install on an empty Debian 12 (root, network)
	$(Q)tests/packages/fresh_root.sh -w

screenshot: all                  ## make doc/report.png: the HTML report on redis-server (root)
	$(Q)doc/screenshot.sh $(abspath $(O))/heaptap doc/report.png

faults:                          ## list the faults that tests try, with these tests
	$(Q)tests/faults.sh

manual: $(O)/heaptap             ## write the options of the program into the pages of man/
	$(Q)man/options.sh $(abspath $(O))/heaptap man

gate:                            ## list how many tests of each file run in make check, by each source
	$(Q)GATE="$(GATE_TESTS)" ALL="$(TRACED_TESTS)" tests/gate.sh

STRIP    ?= strip
DESTINATION = $(DESTDIR)$(prefix)
SHELLS   := bash zsh fish
COMPLETION_bash := share/bash-completion/completions/heaptap
COMPLETION_zsh  := share/zsh/site-functions/_heaptap
COMPLETION_fish := share/fish/vendor_completions.d/heaptap.fish
MANUALS  := $(foreach page,$(notdir $(wildcard man/*.[1-8])),man$(lastword $(subst ., ,$(page)))/$(page))

# Built for another CPU, heaptap cannot print the completions, and they are left out.
install: all                     ## install heaptap, its manuals and completions under $(DESTDIR)$(prefix)
	$(Q)install -D -m 755 -s --strip-program=$(STRIP) $(O)/heaptap $(DESTINATION)/bin/heaptap
	$(Q)install -D -m 644 include/heaptap.h $(DESTINATION)/include/heaptap.h
	$(Q)$(foreach m,$(MANUALS),install -D -m 644 man/$(notdir $(m)) $(DESTINATION)/share/man/$(m) &&) true
	$(Q)! $(O)/heaptap --version >/dev/null 2>&1 || { $(foreach s,$(SHELLS),mkdir -p $(dir $(DESTINATION)/$(COMPLETION_$(s))) && \
		$(O)/heaptap completion $(s) >$(DESTINATION)/$(COMPLETION_$(s)) &&) true; }

# Below share/doc/heaptap as here, so that links between pages hold. Packages have this, too.
DOCUMENTS = README.md NEWS.md CONTRIBUTING.md SECURITY.md $(wildcard doc/*.md doc/*.svg doc/*.png) \
	packaging/grafana-dashboard.json packaging/prometheus.yml $(wildcard packaging/kubernetes/*.yaml)
SYSTEMD_UNITS = packaging/heaptap@.service packaging/heaptap-system.service

install-docs:                    ## install the README, the pages of doc/, systemd units and the dashboard of Grafana
	$(Q)$(foreach f,$(DOCUMENTS),install -D -m 644 $(f) $(DESTINATION)/share/doc/heaptap/$(f) &&) true
	$(Q)$(foreach f,$(SYSTEMD_UNITS),install -D -m 644 $(f) $(DESTINATION)/lib/systemd/system/$(notdir $(f)) &&) true

uninstall:                       ## remove what make install has put there
	$(Q)rm -f $(DESTINATION)/bin/heaptap $(DESTINATION)/include/heaptap.h $(MANUALS:%=$(DESTINATION)/share/man/%) \
		$(foreach s,$(SHELLS),$(DESTINATION)/$(COMPLETION_$(s))) $(SYSTEMD_UNITS:packaging/%=$(DESTINATION)/lib/systemd/system/%)
	$(Q)rm -rf $(DESTINATION)/share/doc/heaptap

clean:                           ## remove what was built
	$(Q)rm -rf $(O)

help:                            ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Options: V=1  O=dir  DEBUG=1  SAN=address,undefined  CI=1 (warnings are errors)  READLINE= (a plain prompt)  NCURSES= (no top)  METRICS= (no --metrics)  PUSH= (no --push)  prefix=, DESTDIR="

-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)
