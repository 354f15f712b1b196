# SPDX-License-Identifier: GPL-2.0-or-later
# The programs that end-to-end tests trace, in all the ways in which programs are linked, and the oracle.

T        := $(O)/tests/targets
TARGET_C := $(patsubst tests/targets/%.c,%,$(filter-out tests/targets/lib%.c tests/targets/plug_%.c,\
              $(sort $(wildcard tests/targets/*.c))))
TARGET_CC := $(patsubst tests/targets/%.cc,%,$(sort $(wildcard tests/targets/*.cc)))
CXX      ?= g++
MUSL_GCC ?= musl-gcc

# No sanitizers here: these stand for other people's programs.
TARGET_FLAGS := -I. -D_GNU_SOURCE -O1 -g -fno-builtin -fno-optimize-sibling-calls -Wall -Wextra $(if $(CI),-Werror)
# -idirafter: asm/ headers where only the 64-bit ones are installed
M32_FLAGS    := -m32 -idirafter /usr/include/$(ARCH)-linux-gnu

# Each variant is built of these; a compiler that is not there is said, and its variant left out.
VARIED  := leak leak_kinds order threads failed nothing exec stack_calls stack_random marked census tree
PLAIN   := $(TARGET_C:%=$(T)/%) $(TARGET_CC:%=$(T)/%) $(T)/libearly.so $(T)/plug_alloc.so $(T)/plug_own.so $(T)/plug_short.so $(T)/plug_leak.so $(T)/libfail.so $(T)/libpoison.so $(T)/libinfo.so $(T)/libclock.so $(T)/libnoloop.so $(T)/libold.so $(T)/libbusy.so $(T)/custom-cet $(T)/glib_objects-nopie $(T)/spin-static $(T)/own_sampler-guarded $(T)/harsh-library $(T)/short-alone
LINKED  := $(foreach v,static static-pie nopie stripped,$(VARIED:%=$(T)/%-$(v)))
ORACLE  := $(addprefix $(O)/tests/oracle/,count.so count-read text-differs)

include tests/targets/stack_variants.mk

include tests/leaks/leaks.mk

include tests/verdicts/verdicts.mk

targets: $(PLAIN) $(LINKED) $(LEAK_PROGRAMS) $(MANY_PROGRAMS) $(STACK_TARGETS) $(ORACLE) targets-musl targets-32bit  ## build the programs that tests trace
.PHONY: targets-musl targets-32bit

define target_rule
	@mkdir -p $(@D)
	@echo "  TARGET  $@"
	$(Q)$(1) $(TARGET_FLAGS) -MMD -MP -MF $@.d -o $@ $< $(2)
endef

$(T)/early: tests/targets/early.c $(T)/libearly.so
	$(call target_rule,$(CC),-L$(T) -learly -Wl$(comma)-rpath$(comma)'$$ORIGIN')
# No page of the file is mapped beside its code.
$(T)/short-alone: tests/targets/short.cc
	$(call target_rule,$(CXX),-pthread -Wl$(comma)-z$(comma)separate-code$(comma)-z$(comma)max-page-size=0x200000)
$(T)/harsh-library: tests/targets/harsh.c $(T)/libharsh.so
	$(call target_rule,$(CC),-DHAS_LIBRARY -L$(T) -lharsh -Wl$(comma)-rpath$(comma)'$$ORIGIN')
$(T)/libpoison.so: tests/targets/libpoison.c
	$(call target_rule,$(CC),-shared -fPIC -ldw -lelf)
# Functions begin with ENDBR (x86_64) or BTI (aarch64), and return addresses are signed where the CPU can.
$(T)/custom-cet: tests/targets/custom.c
	$(call target_rule,$(CC),$(if $(filter aarch64,$(ARCH)),-mbranch-protection=standard,-fcf-protection=full) -pthread)
$(T)/own_sampler: tests/targets/own_sampler.c
	$(call target_rule,$(CC),-lm)
$(T)/own_sampler-guarded: tests/targets/own_sampler.c
	$(call target_rule,$(CC),-DGUARDED -lm)
$(T)/%: tests/targets/%.c
	$(call target_rule,$(CC),-pthread)
$(T)/%: tests/targets/%.cc
	$(call target_rule,$(CXX),-pthread)
$(T)/%.so: tests/targets/%.c
	$(call target_rule,$(CC),-shared -fPIC -Wl$(comma)-Bsymbolic)
$(T)/%-static: tests/targets/%.c
	$(call target_rule,$(CC),-static -pthread)
$(T)/%-static-pie: tests/targets/%.c
	$(call target_rule,$(CC),-static-pie -fPIE -pthread)
$(T)/%-nopie: tests/targets/%.c
	$(call target_rule,$(CC),-no-pie -fno-pie -pthread)
$(T)/%-stripped: tests/targets/%.c
	$(call target_rule,$(CC),-s -pthread)
$(T)/%-musl: tests/targets/%.c
	$(call target_rule,$(MUSL_GCC),-pthread)
$(T)/%-musl-static: tests/targets/%.c
	$(call target_rule,$(MUSL_GCC),-static -pthread)
$(T)/%-32: tests/targets/%.c
	$(call target_rule,$(CC) $(M32_FLAGS),-pthread)
$(T)/%-32-static: tests/targets/%.c
	$(call target_rule,$(CC) $(M32_FLAGS),-static -pthread)

comma := ,

# $(call has_compiler,COMMAND): can it link a program?
has_compiler = $(shell echo 'int main(void) { return 0; }' | $(1) -xc -o /dev/null - 2>/dev/null && echo yes)

# $(call runs_32bit,COMMAND): can it link a program that runs here? Kernels can be without 32-bit programs.
runs_32bit = $(shell p=$$(mktemp) && { echo 'int main(void) { return 0; }' | $(1) -xc -o $$p - && $$p && echo yes; \
	rm -f $$p; } 2>/dev/null)
NO_32BIT := $(CC) -m32 makes no program that runs here (packages libc6-dev-i386, lib32gcc-12-dev)

targets-musl:
	$(Q)if [ "$(call has_compiler,$(MUSL_GCC))" = yes ]; then \
		$(MAKE) --no-print-directory -s $(foreach v,musl musl-static,$(VARIED:%=$(T)/%-$(v))); \
	else echo "  SKIP    musl targets: $(MUSL_GCC) is not installed (package musl-tools)"; fi

targets-32bit:
	$(Q)if [ "$(call runs_32bit,$(CC) $(M32_FLAGS))" = yes ]; then \
		$(MAKE) --no-print-directory -s $(foreach v,32 32-static,$(VARIED:%=$(T)/%-$(v))) $(T)/waits-32; \
	else echo "  SKIP    32-bit targets: $(NO_32BIT)"; fi

# Cleanups must run when an exception or pthread_cancel passes.
$(O)/tests/oracle/count.so: tests/oracle/count.c
	@mkdir -p $(@D)
	@echo "  ORACLE  $@"
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O2 -g $(WARNINGS) $(if $(CI),-Werror) -fPIC -shared -fno-builtin -fexceptions \
		-fno-reorder-blocks-and-partition \
		-fvisibility=hidden -MMD -MP -MF $@.d -o $@ $<

$(O)/tests/oracle/%: tests/oracle/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -D_GNU_SOURCE -std=gnu11 -O2 -g $(WARNINGS) $(if $(CI),-Werror) -MMD -MP -MF $@.d -o $@ $<
