# SPDX-License-Identifier: GPL-2.0-or-later
# The shapes as programs, plain and with LeakSanitizer.

V := $(O)/tests/verdicts

VERDICT_PROGRAMS := $(V)/shapes $(V)/shapes_cpp $(V)/shapes-lsan $(V)/shapes_cpp-lsan

$(V)/roles.o: tests/verdicts/roles.c tests/verdicts/roles.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(TARGET_FLAGS) -c -o $@ $<
$(V)/%: tests/verdicts/%.c $(V)/roles.o
	@echo "  TARGET  $@"
	$(Q)$(CC) $(TARGET_FLAGS) -o $@ $^ -pthread
$(V)/%: tests/verdicts/%.cc $(V)/roles.o
	@echo "  TARGET  $@"
	$(Q)$(CXX) $(TARGET_FLAGS) -std=gnu++17 -o $@ $^ -pthread
$(V)/%-lsan: tests/verdicts/%.c $(V)/roles.o
	@echo "  TARGET  $@"
	$(Q)$(CC) $(TARGET_FLAGS) -fsanitize=leak -o $@ $^ -pthread
$(V)/%-lsan: tests/verdicts/%.cc $(V)/roles.o
	@echo "  TARGET  $@"
	$(Q)$(CXX) $(TARGET_FLAGS) -std=gnu++17 -fsanitize=leak -o $@ $^ -pthread

# Blocks in one shape, by allocator.
MANY_PROGRAMS := $(V)/many $(if $(shell command -v $(MUSL_GCC)),$(V)/many-musl)

$(V)/many: tests/verdicts/many.c tests/verdicts/roles.h
	@mkdir -p $(@D)
	@echo "  TARGET  $@"
	$(Q)$(CC) $(TARGET_FLAGS) -o $@ $<
$(V)/many-musl: tests/verdicts/many.c tests/verdicts/roles.h
	@mkdir -p $(@D)
	@echo "  TARGET  $@"
	$(Q)$(MUSL_GCC) $(TARGET_FLAGS) -o $@ $<
