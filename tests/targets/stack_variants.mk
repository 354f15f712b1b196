# SPDX-License-Identifier: GPL-2.0-or-later
# The programs that tell their call chains, by both compilers at all levels. Included by targets.mk.

STACK_PROGRAMS := stack_calls stack_random
STACK_FLAGS    := -I. -D_GNU_SOURCE -fno-builtin -Wall -Wextra $(if $(CI),-Werror)

STACK_LEVELS   := O0 O1 O2 O3
STACK_VARIANTS := $(foreach c,gcc clang,$(foreach l,$(STACK_LEVELS),$c-$l-fp $c-$l-nofp))

# $(call stack_rule,NAME,COMPILER,FLAGS[,ENDING])
define stack_rule
$(T)/%-$(1): tests/targets/%.$(or $(4),c)
	@mkdir -p $$(@D)
	@echo "  TARGET  $$@"
	$$(Q)$(2) $$(STACK_FLAGS) $(3) -pthread -MMD -MP -MF $$@.d -o $$@ $$<
endef

stack_compiler_gcc   = $(CC)
stack_compiler_clang = $(CLANG)

$(foreach c,gcc clang,$(foreach l,$(STACK_LEVELS),\
  $(eval $(call stack_rule,$c-$l-fp,$(stack_compiler_$c),-$l -fno-omit-frame-pointer))\
  $(eval $(call stack_rule,$c-$l-nofp,$(stack_compiler_$c),-$l -fomit-frame-pointer))))

# The functions of these programs are in .debug_frame alone, those of linked libraries in .eh_frame.
STACK_VARIANTS += gcc-debug_frame clang-debug_frame
$(foreach c,gcc clang,$(eval $(call stack_rule,$c-debug_frame,$(stack_compiler_$c),\
  -O2 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables)))

STACK_TARGETS := $(foreach v,$(STACK_VARIANTS),$(STACK_PROGRAMS:%=$(T)/%-$v))

# Exceptions.
stack_compiler_g++     = $(CXX)
stack_compiler_clang++ = $(CLANG) --driver-mode=g++
$(foreach c,g++ clang++,$(foreach l,$(STACK_LEVELS),\
  $(eval $(call stack_rule,$c-$l,$(stack_compiler_$c),-$l -fomit-frame-pointer,cc))))
STACK_TARGETS += $(foreach c,g++ clang++,$(STACK_LEVELS:%=$(T)/stack_throw-$c-%))

# Libraries that stack_dlopen loads. Bound late: functions are looked up when they are called.
STACK_PLUGS := $(foreach n,plug_a plug_b lazy indirect,$(T)/stack_$n.so)
stack_flags_plug_a   := -DPLUG=t_plug_a -DROOM=100
stack_flags_plug_b   := -DPLUG=t_plug_b -DROOM=3000
stack_flags_lazy     := -DLAZY
stack_flags_indirect := -DINDIRECT

$(STACK_PLUGS): $(T)/stack_%.so: tests/targets/libstack.c
	@mkdir -p $(@D)
	@echo "  TARGET  $@"
	$(Q)$(CC) $(STACK_FLAGS) -O2 -fomit-frame-pointer -shared -fPIC -fplt -Wl,-z,lazy $(stack_flags_$*) \
		-MMD -MP -MF $@.d -o $@ $<

STACK_TARGETS += $(STACK_PLUGS)
