# SPDX-License-Identifier: GPL-2.0-or-later
# heaptap: see "make help".

VERSION := 0.1.0
O       ?= build
prefix  ?= /usr/local
CC      ?= gcc
CLANG   ?= clang
ARCH    ?= $(shell uname -m)

# The kernel's name of the CPU, for BPF and nowhere else.
BPF_ARCH := $(subst x86_64,x86,$(subst aarch64,arm64,$(ARCH)))
IS_X86   := $(filter x86_64,$(ARCH))

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 \
            -Wno-missing-field-initializers
OPT      := $(if $(DEBUG),-Og -g3,-O2 -g)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# For another CPU: the compiler's root, with the libraries' -dev packages unpacked in it.
SYSROOT  ?=
ROOTFLAG := $(if $(SYSROOT),--sysroot=$(SYSROOT))
CPPFLAGS += $(ROOTFLAG) -I. -D_GNU_SOURCE -DHEAPTAP_VERSION='"$(VERSION)"'
CFLAGS   += -std=gnu11 $(OPT) $(WARNINGS) $(SANFLAGS) $(if $(CI),-Werror)
LDFLAGS  += $(ROOTFLAG) $(SANFLAGS)
LDLIBS   += -lbpf -ldw -lelf -lz -lzstd -liberty $(if $(IS_X86),-lZydis) -lpthread -ldl
# The console's prompt: without the library it is a plain one. READLINE= leaves it out.
READLINE ?= $(if $(wildcard $(SYSROOT)/usr/include/readline/readline.h),1)
CPPFLAGS += $(if $(READLINE),,-DWITHOUT_READLINE)
LDLIBS   += $(if $(READLINE),-lreadline)
Q        := $(if $(V),,@)

# Of arch/ what knows one machine only by its own CPU, and the decoder that needs Zydis on x86 only.
OTHER_CPU := $(filter-out %_$(ARCH).c %_plain.c,$(wildcard arch/regs_*.c arch/tracee_*.c)) $(if $(IS_X86),,arch/insn_x86.c)
LIB_SRCS  := $(filter-out user/main.c $(OTHER_CPU),$(sort $(wildcard user/*.c user/lib/*.c fallback/*.c arch/*.c)))
LIB_OBJS  := $(LIB_SRCS:%.c=$(O)/%.o) $(O)/user/bpf_object.o
UNIT_SRCS := $(sort $(wildcard tests/unit/test_*.c))
UNITS     := $(UNIT_SRCS:%.c=$(O)/%)
BENCHES   := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/bench/*.c)))
BENCH_TARGETS := $(addprefix $(O)/tests/bench/,pair keep)

.DELETE_ON_ERROR:
.PHONY: all deps demo check check-unit check-e2e check-ptrace check-leaks check-arch check-board check-kernels check-style check-headers agent-musl bench install clean help targets

all: $(if $(AGENT),$(O)/heaptap-agent,$(O)/heaptap)  ## build heaptap (default), or with AGENT=1 the agent

$(O)/heaptap: $(O)/user/main.o $(O)/libheaptap.a
	@echo "  LINK    $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/libheaptap.a: $(LIB_OBJS)
	@echo "  AR      $@"
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# No BTF, no CO-RE: one object for every kernel since 5.8.
$(O)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	$(Q)$(CLANG) -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -I. -Ivmlinux/$(ARCH) $(ROOTFLAG) \
		-idirafter $(SYSROOT)/usr/include/$(shell $(CC) -print-multiarch) -O2 -g -Wall -Wno-unused-function \
		$(if $(CI),-Werror) -MMD -MP -MT $@ -MF $@.d -c -o $@.tmp $<
	$(Q)llvm-strip -g $@.tmp && mv $@.tmp $@

$(O)/user/bpf_object.o: user/bpf_object.S $(O)/bpf/heaptap.bpf.o
	@mkdir -p $(@D)
	$(Q)$(CC) -DOBJECT='"$(O)/bpf/heaptap.bpf.o"' -c -o $@ $<

$(O)/tests/unit/%: tests/unit/%.c $(O)/libheaptap.a
	@mkdir -p $(@D)
	@echo "  TEST    $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(O)/libheaptap.a $(LDLIBS) -lcmocka

# It reads its own tables too: .debug_frame for its functions, .eh_frame for the library's.
$(O)/tests/unit/test_cfi_rows: private CFLAGS += -g -fno-asynchronous-unwind-tables

$(O)/tests/bench/%: tests/bench/%.c $(O)/libheaptap.a
	@mkdir -p $(@D)
	@echo "  BENCH   $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(O)/libheaptap.a $(LDLIBS)

# Programs to measure on: other people's, no library of ours in them.
$(BENCH_TARGETS): $(O)/tests/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	@echo "  BENCH   $@"
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -O2 -g -fno-builtin $(WARNINGS) $(if $(CI),-Werror) -pthread -o $@ $<

deps:                            ## install what building and testing need (asks the distribution's package manager)
	$(Q)tests/deps.sh

demo: all $(O)/tests/targets/leak  ## trace the bundled leaking program (root)
	$(O)/heaptap run $(O)/tests/targets/leak

check: all check-style check-unit check-e2e check-ptrace  ## run all tests

check-unit: $(UNITS)             ## unit tests only
	$(Q)tests/prove.sh unit $(UNITS)

-include tests/targets/targets.mk
include user/agent/agent.mk

# With a small C library, as tests/e2e/agent.bats has its limits.
agent-musl:                      ## the agent with musl, for its tests
	$(Q)if command -v musl-gcc >/dev/null; then \
		$(MAKE) --no-print-directory -s AGENT=1 CC="$(findstring ccache,$(CC)) musl-gcc" O=$(O)/musl; \
	else echo "agent-musl: no musl-gcc here: its tests are skipped"; fi

check-e2e: all targets agent-musl ## end-to-end tests only (root)
	$(Q)[ "$$(id -u)" -eq 0 ] || { echo "check-e2e: not root: tracing: type: sudo make check-e2e"; exit 1; }
	$(Q)HEAPTAP=$(abspath $(O))/heaptap O=$(abspath $(O)) tests/prove.sh e2e tests/e2e/*.bats

# What tests of heaptap's own parts do not depend on is left out: reports, names, options, recordings, serve.
PTRACE_TESTS := attach counts faults_allocators faults_lifecycle faults_memory follow leaks losses programs run stacks

check-ptrace: all targets        ## the main end-to-end tests again, with the ptrace source (root)
	$(Q)HEAPTAP=$(abspath $(O))/heaptap O=$(abspath $(O)) HEAPTAP_BACKEND=ptrace tests/prove.sh ptrace $(PTRACE_TESTS:%=tests/e2e/%.bats)

check-leaks: all $(LEAK_PROGRAMS)  ## ten million blocks in random heaps, with verdicts known (root; some minutes; SEEDS=n)
	$(Q)O=$(abspath $(O)) tests/leaks/run.sh $(or $(SEEDS),9) 400000

check-arch:                      ## the agent on other CPUs, in qemu (downloads and builds kernels; half an hour the first time)
	$(Q)tests/arch/run.sh $(abspath $(O))

check-board: all targets         ## an agent on emulated boards, its host outside (root; kernels as for check-arch)
	$(Q)tests/arch/board.sh $(abspath $(O))

check-kernels: all targets       ## the main jobs on other kernels, in qemu (downloads kernel packages; some minutes)
	$(Q)tests/kernels/run.sh $(abspath $(O))

bench: all $(BENCHES)            ## measure speed and memory, as ratios (root; some 4 minutes)
	$(Q)tests/bench/run.sh $(abspath $(O))

check-style: check-headers       ## layers, sizes, names, spelling
	$(Q)tests/style.sh

check-headers:
	$(Q)for h in user/*.h user/lib/*.h arch/*.h fallback/*.h; do $(CC) $(CPPFLAGS) -std=gnu11 $(WARNINGS) -include user/lib/types.h -fsyntax-only -include $$h -x c /dev/null || exit 1; done

install: all                     ## install heaptap and its manual under $(DESTDIR)$(prefix)
	$(Q)install -D -m 755 $(O)/heaptap $(DESTDIR)$(prefix)/bin/heaptap
	$(Q)install -D -m 644 man/heaptap-agent.1 $(DESTDIR)$(prefix)/share/man/man1/heaptap-agent.1
	$(Q)install -D -m 644 man/heaptap.1 $(DESTDIR)$(prefix)/share/man/man1/heaptap.1
	$(Q)install -D -m 644 man/heaptap-recording.5 $(DESTDIR)$(prefix)/share/man/man5/heaptap-recording.5

clean:                           ## remove what was built
	$(Q)rm -rf $(O)

help:                            ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Options: V=1  O=dir  DEBUG=1  SAN=address,undefined  CI=1 (warnings are errors)  READLINE= (a plain prompt)  prefix=, DESTDIR="

-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)
