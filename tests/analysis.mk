# SPDX-License-Identifier: GPL-2.0-or-later
# Looks at heaptap's code: lines that the tests run, and what an analyser says.

COVERAGE_MAKE = $(MAKE) --no-print-directory -j$(JOBS) CC="$(findstring ccache,$(CC)) $(CLANG)" COVERAGE=1 O=$(O)/coverage

.PHONY: coverage analyse analyse-files analyse-quick analyse-gcc

# Targets stand for other people's programs: they are not counted, and the usual compiler makes them, because clang does not
# know the attribute noipa, which keeps their frames. Nor are tests counted that only packages or boards need.
coverage: agent-musl             ## lines of heaptap that unit tests and end-to-end tests run, by room (clang; root; some 40 minutes)
	$(is-root)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) O=$(O)/coverage targets
	$(Q)$(COVERAGE_MAKE) all $(UNIT_SRCS:%.c=$(O)/coverage/%)
	$(Q)O=$(abspath $(O))/coverage JOBS=$(JOBS) tests/coverage.sh $(E2E)

# Files for other CPUs are left out where the headers of this machine do not have their registers.
ANALYSED    := $(filter-out $(OTHER_CPU),$(LIB_SRCS)) $(wildcard user/agent/*.c) user/cli/main.c
# Files with compilers' flags of their own: for the kernel, and for the target.
ANALYSED_ALONE := bpf/heaptap.bpf.c bpf/uring.bpf.c $(if $(HAS_PIECE),inline/piece.c inline/stack.c)
CLANG_TIDY  ?= clang-tidy
# Any header may matter to any file.
ALL_HEADERS := $(wildcard user/*/*.h arch/*.h fallback/*.h call/*.h bpf/*.h inline/*.h)

analyse:                         ## clang-tidy on all of heaptap, by the checks in .clang-tidy (some minutes, then only what has changed)
	$(Q)$(MAKE) --no-print-directory -k -j$(JOBS) analyse-files

# -j: files at a time. The macro of libbpf declares a variable.
analyse-quick:                   ## cppcheck on all of heaptap; tests/cppcheck.txt has findings that are none (half a minute)
	$(Q)if command -v cppcheck >/dev/null; then cppcheck -q -j$(JOBS) --std=c11 --enable=warning,portability --error-exitcode=1 \
		-I. -D_GNU_SOURCE -D__x86_64__ -DHEAPTAP_VERSION='"$(VERSION)"' '-DLIBBPF_OPTS(type,name,...)=struct type name' \
		--suppressions-list=tests/cppcheck.txt --template='{file}:{line}: {message} [{id}]' user arch fallback call inline; \
	else echo "analyse-quick: skipped: no cppcheck here"; fi

analyse-gcc:                     ## gcc 12 -fanalyzer on all of heaptap; tests/analyse_gcc.tsv has findings that are none (3 minutes of CPU time)
	$(Q)JOBS=$(JOBS) tests/analyse_gcc.sh $(ANALYSED)

analyse-files: $(ANALYSED:%.c=$(O)/analysed/%) $(ANALYSED_ALONE:%.c=$(O)/analysed/%)

ANALYSED_FLAGS = $(CPPFLAGS) -std=gnu11
$(O)/analysed/bpf/%: ANALYSED_FLAGS = -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -I. -Ivmlinux/$(ARCH) \
	-idirafter $(SYSROOT)/usr/include/$(shell $(CC) -print-multiarch) -O2
$(O)/analysed/inline/%: ANALYSED_FLAGS = -I. -Ivmlinux/$(ARCH) -std=gnu11 -ffreestanding -mgeneral-regs-only

$(O)/analysed/%: %.c .clang-tidy $(ALL_HEADERS)
	@mkdir -p $(@D)
	@echo "  ANALYSE $<"
	$(Q)$(CLANG_TIDY) --quiet $< -- $(ANALYSED_FLAGS) >$@.said 2>&1 || { cat $@.said; exit 1; }
	$(Q)touch $@
