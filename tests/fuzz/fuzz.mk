# SPDX-License-Identifier: GPL-2.0-or-later
# Fuzzers, and unit tests, with AddressSanitizer and UBSan: all of heaptap is built again by clang, with coverage.

FUZZERS  := $(basename $(notdir $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_S   ?= 60
SAN_MAKE  = $(MAKE) --no-print-directory -j$(JOBS) CC="$(findstring ccache,$(CC)) $(CLANG)" SAN=address,undefined,fuzzer-no-link O=$(O)/san

.PHONY: fuzz fuzz-corpus check-fuzz check-san check-san-tests

fuzz:                            ## search with each fuzzer for FUZZ_S seconds (60), with AddressSanitizer and UBSan (clang)
	$(Q)$(SAN_MAKE) $(FUZZERS:%=$(O)/san/tests/fuzz/%)
	$(Q)JOBS=$(JOBS) tests/fuzz/run.sh $(O)/san $(FUZZ_S) $(FUZZ)

fuzz-corpus:                     ## keep in tests/fuzz/corpus/ what earlier searches have found, as few small inputs as possible
	$(Q)NEW=1 tests/fuzz/run.sh $(O)/san 0

# Without libFuzzer: the inputs of the repository, and RUNS changed copies of them, which are the same ones each time.
RUNS ?= 5000
check-fuzz: $(FUZZERS:%=$(O)/tests/fuzz/once/%)  ## the kept inputs of all fuzzers, and 5,000 changed copies for each (RUNS=n)
	$(Q)for f in $(FUZZERS); do \
		echo "  FUZZ    $$f"; log=$(O)/tests/fuzz/once/$$f.log; \
		find tests/fuzz/corpus/$$f -type f | sort | xargs $(O)/tests/fuzz/once/$$f -runs=$(RUNS) >$$log 2>&1 || \
			{ tail -3 $$log; exit 1; }; \
	done

# Left out: these look for the allocator functions of their own program, which AddressSanitizer replaces (test_alias,
# test_ifunc, test_probe, test_scan_jemalloc) or read glibc's books of their children's heaps, which it replaces as well
# (test_census), or compare their own file with their memory, which it changes (test_elf, test_module).
# test_snapshot_copy copies itself, and each copy walks the tables of AddressSanitizer's terabytes: some 10 minutes.
# Not checked: NULL + 0, which clang 14 reports as pointer-overflow, and which is what an empty array is.
NO_SAN_UNITS := probe/test_alias probe/test_ifunc probe/test_probe lib/test_elf target/test_module scan/test_scan_jemalloc \
	scan/test_snapshot_copy census/test_census
SAN_UNITS = $(filter-out $(NO_SAN_UNITS:%=$(O)/san/tests/unit/%),$(UNIT_SRCS:%.c=$(O)/san/%))

check-san:                       ## unit and replay tests and all fuzzers for 5 s, with AddressSanitizer and UBSan (clang)
	$(Q)$(SAN_MAKE) $(FUZZERS:%=$(O)/san/tests/fuzz/%) $(SAN_UNITS)
	$(Q)$(TEST_ENV) tests/run.py $(SAN_UNITS:%=unit:%)
	$(Q)JOBS=$(JOBS) tests/fuzz/run.sh $(O)/san 5

$(O)/tests/fuzz/once/%: tests/fuzz/%.c tests/fuzz/replay.c $(O)/libheaptap.a
	@mkdir -p $(@D)
	@echo "  FUZZER  $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< tests/fuzz/replay.c $(O)/libheaptap.a $(LINK_LIBS) -lcmocka

$(O)/tests/fuzz/%: tests/fuzz/%.c $(O)/libheaptap.a
	@mkdir -p $(@D)
	@echo "  FUZZER  $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -MMD -MP -o $@ $< $(O)/libheaptap.a $(LINK_LIBS) -lcmocka
