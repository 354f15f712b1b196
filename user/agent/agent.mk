# SPDX-License-Identifier: GPL-2.0-or-later
# The agent: heaptap for machines without its libraries. Traces by ptrace, names places by module and offset; static.
#   make AGENT=1 CROSS_COMPILE=aarch64-linux-gnu-        build/heaptap-agent
#   make AGENT=1 CC=musl-gcc

AGENT_CC   := $(if $(CROSS_COMPILE),$(CROSS_COMPILE)gcc,$(CC))
AGENT_CPU  := $(firstword $(subst -, ,$(shell $(AGENT_CC) -dumpmachine 2>/dev/null)))
AGENT_CPU  := $(patsubst arm%,arm,$(patsubst i%86,i386,$(AGENT_CPU)))
AGENT_O    := $(O)/agent-$(AGENT_CPU)

# Files for the machine that has the names. user/cli/options.h leaves their commands and options out: is_left_out.
AGENT_LESS := user/cli/attach_price.c user/cli/cmd_connect.c user/cli/cmd_report.c user/cli/page_file.c user/cli/cmd_completion.c user/cli/cmd_demo.c user/cli/cmd_diff.c user/cli/report_file.c user/cli/series_command.c user/session/session_replay.c \
              user/cli/cmd_console.c user/cli/cmd_top.c user/cli/cmd_system.c user/cli/cmd_census.c $(wildcard user/census/*.c user/system/*.c user/metrics/*.c user/top/top*.c user/console/*.c user/core/*.c user/session/session_core.c user/session/session_pace.c user/report/report_memory.c user/report/report_place.c user/report/report_blocks.c user/report/block_list.c user/scan/memory_view.c user/session/source_replay*.c user/report/diff*.c user/report/html_*.c user/report/report_html.c) \
              user/remote/source_remote.c user/remote/source_remote_scan.c user/session/source_recording.c \
              user/session/source_recording_scan.c user/session/kind_list.c user/remote/remote_link.c user/remote/remote_ssh.c user/lib/json_read.c user/lib/proc_limit.c \
              user/scan/snapshot_core.c user/scan/snapshot_core_notes.c user/scan/snapshot_running.c \
              user/scan/suppress.c user/scan/suppress_parse.c user/scan/suppress_program.c user/scan/leaks_suppress.c user/stream/event_list.c
# Files that need a library; user/agent/ has stand-ins for them. The decoder of x86 needs Zydis and has no stand-in.
AGENT_OUT  := user/cli/main.c user/lib/progress.c user/cli/mistakes.c user/source/programs.c user/source/links.c user/source/link_keeper.c user/source/source_bpf.c user/source/source_bpf_place.c user/source/source_ptrace_taker.c user/unwind/unwind_tables.c user/unwind/unwind_kernel.c user/source/caps_bpf.c user/source/caps_trial.c \
              user/names/symbolize.c $(wildcard user/names/reader*.c user/names/file_*.c) \
              user/names/debug_file.c user/names/dwarf_names.c user/names/demangle.c user/names/function_index.c user/names/decompress.c user/names/debug_package.c \
              user/report/report_compact.c user/report/compact_tables.c user/report/report_pprof.c user/report/pprof_tables.c user/report/report_heaptrack.c user/report/compressed.c user/report/intern.c \
              user/probe/guess.c user/probe/signatures.c user/report/findings.c user/report/report_junit.c user/report/report_sarif.c user/report/report_github.c \
              user/report/frames.c user/report/measure.c user/report/massif_tree.c \
              $(foreach f,csv folded heapprofile speedscope massif dot trace,user/report/report_$(f).c) \
              user/stream/stream_zstd.c user/names/symbol_server.c $(wildcard arch/insn_x86*.c) \
              $(INLINE_SRCS) \
              $(AGENT_LESS) \
              $(filter-out %_$(AGENT_CPU).c %_plain.c,$(wildcard arch/regs_*.c arch/tracee_*.c arch/inject_*.c))
AGENT_SRCS := $(filter-out $(AGENT_OUT),$(sort $(wildcard user/agent/*.c $(ROOMS:%=user/%/*.c) fallback/*.c arch/*.c))) \
              user/cli/main.c
AGENT_OBJS := $(AGENT_SRCS:%.c=$(AGENT_O)/%.o)
AGENT_OPT   := -std=gnu11 -Os -flto=auto -flto-partition=none -g -fno-pie -fno-asynchronous-unwind-tables -fno-unwind-tables \
               -ffunction-sections -fdata-sections
# musl-gcc keeps the kernel's headers, which are the distribution's, out.
AGENT_FLAGS := $(AGENT_OPT) -include user/agent/missing.h -D_FILE_OFFSET_BITS=64 -DIS_AGENT=true -DWITHOUT_ZYDIS -DONLY_NATIVE_CPUS -DONLY_NUMERIC_HOSTS $(WARNINGS) $(if $(CI),-Werror) \
               $(if $(findstring musl,$(AGENT_CC)),-idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch))

# A static program of musl does not write-protect what RELRO asks for, so its padding to a page is for nothing.
AGENT_LINK := -static -no-pie -Wl,--gc-sections,-z,noseparate-code$(if $(findstring musl,$(AGENT_CC)),$(comma)-z$(comma)norelro)

$(O)/heaptap-agent: $(AGENT_OBJS)
	@echo "  LINK    $@"
	$(Q)$(AGENT_CC) $(AGENT_OPT) $(AGENT_LINK) -o $@.debug $^ -lpthread
	$(Q)$(patsubst %gcc,%strip,$(if $(CROSS_COMPILE),$(AGENT_CC),gcc)) -o $@ $@.debug

$(AGENT_O)/%.o: %.c user/agent/agent.mk user/agent/missing.h
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(AGENT_CC) $(CPPFLAGS) $(AGENT_FLAGS) -MMD -MP -c -o $@ $<
