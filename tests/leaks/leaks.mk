# SPDX-License-Identifier: GPL-2.0-or-later
# The program with a random heap, and the module that it loads.

L := $(O)/tests/leaks

LEAK_PROGRAMS := $(L)/heap $(L)/plug_tls.so

$(L)/heap: tests/leaks/heap.cc tests/leaks/shapes.cc tests/leaks/roots.cc tests/leaks/shapes.h tests/leaks/roots.h
	@mkdir -p $(@D)
	@echo "  TARGET  $@"
	$(Q)$(CXX) $(TARGET_FLAGS) -std=gnu++17 -o $@ $(filter %.cc,$^) -pthread -ldl

$(L)/plug_tls.so: tests/leaks/plug_tls.c
	@mkdir -p $(@D)
	@echo "  TARGET  $@"
	$(Q)$(CC) $(TARGET_FLAGS) -shared -fPIC -o $@ $<
