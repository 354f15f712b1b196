# SPDX-License-Identifier: GPL-2.0-or-later
# The programs that tell their call chains, by both compilers at all levels. Included by targets.mk.

STACK_PROGRAMS := stack_calls stack_random
STACK_FLAGS    := -I. -D_GNU_SOURCE -fno-builtin -Wall -Wextra $(if $(CI),-Werror)

STACK_LEVELS   := O0 O1 O2 O3
STACK_VARIANTS := $(foreach c,gcc clang,$(foreach l,$(STACK_LEVELS),$c-$l-fp $c-$l-nofp))

# $(call stack_rule,NAME,COMPILER,FLAGS)
define stack_rule
$(T)/%-$(1): tests/targets/%.c
	@mkdir -p $$(@D)
	@echo "  TARGET  $$@"
	$$(Q)$(2) $$(STACK_FLAGS) $(3) -pthread -MMD -MP -MF $$@.d -o $$@ $$<
endef

stack_compiler_gcc   = $(CC)
stack_compiler_clang = $(CLANG)

$(foreach c,gcc clang,$(foreach l,$(STACK_LEVELS),\
  $(eval $(call stack_rule,$c-$l-fp,$(stack_compiler_$c),-$l -fno-omit-frame-pointer))\
  $(eval $(call stack_rule,$c-$l-nofp,$(stack_compiler_$c),-$l -fomit-frame-pointer))))

STACK_TARGETS := $(foreach v,$(STACK_VARIANTS),$(STACK_PROGRAMS:%=$(T)/%-$v))
