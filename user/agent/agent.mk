# SPDX-License-Identifier: GPL-2.0-or-later
# The agent: heaptap for machines without its libraries. Traces by ptrace, names places by module and offset; static.
#   make AGENT=1 CROSS_COMPILE=aarch64-linux-gnu-        build/heaptap-agent
#   make AGENT=1 CC=musl-gcc

AGENT_CC   := $(if $(CROSS_COMPILE),$(CROSS_COMPILE)gcc,$(CC))
AGENT_CPU  := $(firstword $(subst -, ,$(shell $(AGENT_CC) -dumpmachine)))
AGENT_CPU  := $(patsubst arm%,arm,$(patsubst i%86,i386,$(AGENT_CPU)))
AGENT_O    := $(O)/agent-$(AGENT_CPU)

# What belongs to the machine where the names are: options.h, is_left_out.
AGENT_LESS := user/cmd_connect.c user/cmd_report.c user/cmd_diff.c user/session_replay.c \
              user/cmd_console.c $(wildcard user/console*.c user/source_replay*.c user/diff*.c) \
              user/source_remote.c user/source_remote_scan.c user/source_recording.c \
              user/source_recording_scan.c user/remote_link.c user/remote_ssh.c user/lib/json_read.c \
              user/suppress.c user/suppress_parse.c user/leaks_suppress.c
# What needs a library has its stand-in in user/agent/; x86 has a decoder with Zydis, for which there is none.
AGENT_OUT  := user/main.c user/programs.c user/source_bpf.c user/unwind_tables.c user/caps_bpf.c user/caps_trial.c \
              user/symbolize.c \
              user/debug_file.c user/dwarf_names.c user/demangle.c user/function_index.c user/decompress.c \
              user/stream_zstd.c user/symbol_server.c arch/insn_x86.c \
              $(AGENT_LESS) \
              $(filter-out %_$(AGENT_CPU).c %_plain.c,$(wildcard arch/regs_*.c arch/tracee_*.c))
AGENT_SRCS := $(filter-out $(AGENT_OUT),$(sort $(wildcard user/agent/*.c user/*.c user/lib/*.c fallback/*.c arch/*.c))) \
              user/main.c
AGENT_OBJS := $(AGENT_SRCS:%.c=$(AGENT_O)/%.o)
AGENT_OPT   := -std=gnu11 -Os -g -fno-pie -fno-asynchronous-unwind-tables -fno-unwind-tables \
               -ffunction-sections -fdata-sections
# musl-gcc keeps the kernel's headers, which are the distribution's, out.
AGENT_FLAGS := $(AGENT_OPT) -include user/agent/missing.h -D_FILE_OFFSET_BITS=64 -DIS_AGENT=true -DWITHOUT_ZYDIS -DONLY_NATIVE_CPUS -DONLY_NUMERIC_HOSTS $(WARNINGS) $(if $(CI),-Werror) \
               $(if $(findstring musl,$(AGENT_CC)),-idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch))

$(O)/heaptap-agent: $(AGENT_OBJS)
	@echo "  LINK    $@"
	$(Q)$(AGENT_CC) $(AGENT_OPT) -static -no-pie -Wl,--gc-sections,-z,noseparate-code -o $@.debug $^ -lpthread
	$(Q)$(patsubst %gcc,%strip,$(if $(CROSS_COMPILE),$(AGENT_CC),gcc)) -o $@ $@.debug

$(AGENT_O)/%.o: %.c user/agent/agent.mk user/agent/missing.h
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(AGENT_CC) $(CPPFLAGS) $(AGENT_FLAGS) -MMD -MP -c -o $@ $<
