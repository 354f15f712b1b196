# SPDX-License-Identifier: GPL-2.0-or-later
# The agent: heaptap for machines without its libraries. Traces by ptrace, names places by module and offset; static.
#   make AGENT=1 CROSS_COMPILE=aarch64-linux-gnu-        build/heaptap-agent
#   make AGENT=1 CC=musl-gcc
#   make AGENT=1 SERVE_ONLY=1 ...				  without run, attach and reports

AGENT_CC   := $(if $(CROSS_COMPILE),$(CROSS_COMPILE)gcc,$(CC))
AGENT_CPU  := $(firstword $(subst -, ,$(shell $(AGENT_CC) -dumpmachine 2>/dev/null)))
AGENT_CPU  := $(patsubst arm%,arm,$(patsubst i%86,i386,$(AGENT_CPU)))
AGENT_O    := $(O)/agent-$(AGENT_CPU)

include user/agent/files.mk
AGENT_OBJS := $(AGENT_SRCS:%.c=$(AGENT_O)/%.o)
AGENT_OPT   := -std=gnu11 -Oz -fno-jump-tables -fno-caller-saves -fno-move-loop-invariants -flto=auto -flto-partition=none -g -fno-pie -fno-asynchronous-unwind-tables -fno-unwind-tables \
               -ffunction-sections -fdata-sections
# musl-gcc keeps the kernel's headers, which are the distribution's, out.
AGENT_FLAGS := $(AGENT_OPT) -include user/agent/missing.h -D_FILE_OFFSET_BITS=64 -DIS_AGENT=true $(if $(SERVE_ONLY),-DIS_SERVE_ONLY=true) -DWITHOUT_CAPSTONE -DONLY_NATIVE_CPUS -DONLY_NUMERIC_HOSTS $(WARNINGS) $(if $(CI),-Werror) \
               $(if $(findstring musl,$(AGENT_CC)),-idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch))

# A static program of musl does not write-protect what RELRO asks for, so its padding to a page is for nothing.
AGENT_LINK := -static -no-pie -Wl,--gc-sections,-z,noseparate-code$(if $(findstring musl,$(AGENT_CC)),$(comma)-z$(comma)norelro)

$(O)/heaptap-agent: $(AGENT_OBJS) user/agent/files.mk user/agent/no_sections.sh
	@echo "  LINK    $@"
	$(Q)$(AGENT_CC) $(AGENT_OPT) $(AGENT_LINK) -o $@.debug $(AGENT_OBJS) -Wl,-Map=$@.map -lpthread
	$(Q)$(patsubst %gcc,%strip,$(if $(CROSS_COMPILE),$(AGENT_CC),gcc)) -R .comment -o $@ $@.debug
	$(Q)user/agent/no_sections.sh $@

$(AGENT_O)/%.o: %.c user/agent/agent.mk user/agent/missing.h
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(AGENT_CC) $(CPPFLAGS) $(AGENT_FLAGS) -MMD -MP -c -o $@ $<
