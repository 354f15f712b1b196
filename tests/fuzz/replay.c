/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fuzzer's main() without libFuzzer: runs the files given, which are old findings and corpora. With -runs=NR as its
 * first argument it then runs NR changed copies of them, the same ones each time.
 */
#include "tests/fuzz/replay.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "user/lib/types.h"

enum { MAX_INPUT_BYTES = 1 << 20, MAX_CHANGED_BYTES = 4096, MAX_FILES = 1024, MAX_CPU_S = 20 };

static struct input {
	u8 *data;
	size_t size;
} inputs[MAX_FILES];
static size_t nr_inputs;

static u8 data[MAX_INPUT_BYTES];
static size_t size;
static char finding[4096];

/* Keep the input that ends the fuzzer. */
static void keep(int sig)
{
	int fd = open(finding, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd >= 0 && write(fd, data, size) == (ssize_t)size)
		dprintf(2, "signal %d: the input is in %s\n", sig, finding);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* One input may take some seconds of CPU time. */
static void run(void)
{
	const struct itimerval limit = { .it_value.tv_sec = MAX_CPU_S };

	setitimer(ITIMER_VIRTUAL, &limit, NULL);
	LLVMFuzzerTestOneInput(data, size);
}

static u32 any_below(u32 limit)
{
	static u64 state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return limit ? (u32)((state >> 16) % limit) : 0;
}

static u8 any_byte(void)
{
	static const u8 likely[] = { 0, 1, 2, 0x7f, 0x80, 0xfe, 0xff };

	return any_below(2) ? likely[any_below(sizeof(likely))] : (u8)any_below(256);
}

/* Overwrite, insert or delete some bytes, or put in a part of another input. */
static void change(void)
{
	const struct input *other = &inputs[any_below((u32)nr_inputs)];
	u32 at = any_below((u32)size + 1), left = (u32)(size - at), nr;

	switch (any_below(4)) {
	case 0:
		if (left)
			data[at] = any_byte();
		return;
	case 1:
		if (left)
			data[at] ^= 1 << any_below(8);
		return;
	case 2:
		nr = any_below(left < 16 ? left + 1 : 17);
		memmove(data + at, data + at + nr, left - nr);
		size -= nr;
		return;
	default:
		nr = any_below(other->size < 64 ? (u32)other->size + 1 : 65);
		if (size + nr > MAX_CHANGED_BYTES)
			return;
		memmove(data + at + nr, data + at, left);
		memcpy(data + at, other->data + any_below((u32)(other->size - nr) + 1), nr);
		size += nr;
	}
}

static void changed(long runs)
{
	for (long i = 0; i < runs && nr_inputs; i++) {
		const struct input *in = &inputs[any_below((u32)nr_inputs)];

		size = in->size < MAX_CHANGED_BYTES ? in->size : MAX_CHANGED_BYTES;
		memcpy(data, in->data, size);
		for (u32 nr = 1 + any_below(6); nr; nr--)
			change();
		run();
	}
}

static int file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct input *in = &inputs[nr_inputs];

	if (!f) {
		perror(path);
		return -1;
	}
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	if (nr_inputs < MAX_FILES) {
		in->size = size;
		in->data = malloc(size + 1);
		if (!in->data)
			return -1;
		memcpy(in->data, data, size);
		nr_inputs++;
	}
	run();
	return 0;
}

int main(int argc, char **argv)
{
	static const char option[] = "-runs=";
	static const int fatal[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGVTALRM };
	bool has_runs = argc > 1 && !strncmp(argv[1], option, sizeof(option) - 1);
	long runs = has_runs ? atol(argv[1] + sizeof(option) - 1) : 0;

	snprintf(finding, sizeof(finding), "%s.finding", argv[0]);
	for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
		signal(fatal[i], keep);
	for (int i = 1 + has_runs; i < argc; i++)
		if (file(argv[i]))
			return EXIT_FAILURE;
	changed(runs);
	printf("%d inputs\n", argc - 1 - has_runs);
	for (size_t i = 0; i < nr_inputs; i++)
		free(inputs[i].data);
	return EXIT_SUCCESS;
}
