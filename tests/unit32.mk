# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests as 32-bit programs on x86_64. Distributions rarely have libbpf, libdw, libelf, zstd, Capstone and cmocka for
# both: sources that need them are left out or have a stand-in in user/agent/. tests/unit32/cmocka.h replaces cmocka.

O32       := $(O)/unit32
OUT32     := user/source/programs.c user/source/source_bpf.c user/source/source_bpf_place.c user/source/links.c user/source/link_keeper.c \
             user/unwind/unwind_tables.c user/unwind/unwind_kernel.c user/source/caps_bpf.c user/source/caps_trial.c user/names/symbolize.c \
             user/names/debug_file.c user/names/dwarf_names.c user/names/demangle.c user/names/function_index.c \
             user/names/decompress.c user/names/symbol_server.c user/stream/stream_zstd.c $(wildcard arch/insn_x86*.c) \
             $(INLINE_SRCS) user/source/source_ptrace_taker.c \
             user/cli/main.c $(filter-out %_plain.c,$(wildcard arch/regs_*.c arch/tracee_*.c arch/inject_*.c))
SRCS32    := $(filter-out $(OUT32),$(sort $(wildcard $(ROOMS:%=user/%/*.c) fallback/*.c arch/*.c))) \
             user/agent/no_libraries.c user/agent/no_bpf.c user/agent/no_names.c
OBJS32    := $(SRCS32:%.c=$(O32)/%.o)
CFLAGS32  := $(M32_FLAGS) -isystem tests/unit32 -D_FILE_OFFSET_BITS=64 -DWITHOUT_CAPSTONE -DWITHOUT_READLINE -DWITHOUT_NCURSES \
             -std=gnu11 $(OPT) -Wall -Wextra -Wno-missing-field-initializers

# Left out: test_elf needs libelf, test_stream zstd, test_snapshot_copy a function that tests/unit32/cmocka.h has not;
# test_cpu and test_snapshot have code for 64-bit registers.
# Open: test_unwind (a signal on another stack) and test_snapshot_memory (its sums) fail as 32-bit programs.
UNITS32   := $(patsubst %.c,$(O32)/%,$(filter-out %/test_elf.c %/test_stream.c %/test_cpu.c %/test_snapshot.c \
             %/test_unwind.c %/test_snapshot_memory.c %/test_snapshot_copy.c,\
             $(sort $(wildcard $(foreach r,arch call fallback heap lib scan stream,tests/unit/$r/test_*.c)))))

check-unit32: check-unit32-built ## unit tests of the lower rooms, as 32-bit programs
	$(Q)$(TEST_ENV) tests/run.py $(UNITS32:%=unit:%)

.PHONY: check-unit32 check-unit32-built
# tests/run.py counts those that are missing.
check-unit32-built:
	$(Q)if [ "$(call runs_32bit,$(CC) $(M32_FLAGS))" = yes ]; then $(MAKE) --no-print-directory -j$(JOBS) $(UNITS32); \
	else echo "check-unit32: $(NO_32BIT)"; fi

$(O32)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC32    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS32) -MMD -MP -c -o $@ $<

$(O32)/libheaptap.a: $(OBJS32)
	$(Q)rm -f $@ && ar rcs $@ $^

$(O32)/tests/unit/%: tests/unit/%.c $(O32)/libheaptap.a
	@mkdir -p $(@D)
	@echo "  TEST32  $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS32) -MMD -MP -o $@ $< $(O32)/libheaptap.a -lpthread -lm
