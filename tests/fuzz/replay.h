/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fuzz target's main() for builds without libFuzzer: runs the files given, for old findings and for corpora. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Build with clang -fsanitize=fuzzer -DWITH_LIBFUZZER to search for new ones. */
#ifndef WITH_LIBFUZZER
enum { REPLAY_MAX = 1 << 20 };

int main(int argc, char **argv)
{
	static uint8_t data[REPLAY_MAX];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t size;

		if (!f) {
			perror(argv[i]);
			return EXIT_FAILURE;
		}
		size = fread(data, 1, sizeof(data), f);
		fclose(f);
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("%d inputs\n", argc - 1);
	return EXIT_SUCCESS;
}
#endif
