/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers in the buffers of streams, at the end of the program. Streams allocate a buffer where an array of pointers
 * lay before: the blocks are lost. Buffers of the program's own hold blocks: that of setvbuf() and that of a stream in
 * memory. With "exit" only stdin has a buffer, which exit() takes away.
 */
#include "tests/targets/truth.h"

enum { NR_LOST = 60, SIZE = 40, FIRST = 8, BUFFER = 4096 };

static FILE *volatile file;	   /* of the C library's own list */
static FILE *volatile with_buffer; /* its buffer is the program's */
static FILE *volatile in_memory;
static char *volatile text; /* of in_memory */
static size_t text_size;

FN static void *lost_block(void)
{
	return malloc(SIZE);
}

FN static void *held_block(void)
{
	return malloc(SIZE + 8);
}

/* A freed array of pointers, of the size of a buffer. Another block lies behind it. Returns its address, inverted. */
FN static unsigned long leave_array(void)
{
	void *volatile *array = malloc(BUFFER);
	unsigned long hidden = ~(unsigned long)array;

	for (int i = 0; i < NR_LOST; i++)
		array[FIRST + i] = lost_block();
	free((void *)array);
	return hidden;
}

FN static void check_buffer(const FILE *f, unsigned long hidden)
{
	if ((unsigned long)f->_IO_buf_base != ~hidden) {
		fprintf(stderr, "the buffer is not where the array was\n");
		_exit(2);
	}
}

FN static void fill_buffers(int is_exit)
{
	unsigned long hidden;

	if (!is_exit) {
		file = fopen("/dev/null", "w");
		hidden = leave_array();
		fputc('x', file);
		check_buffer(file, hidden);
	}
	hidden = leave_array();
	getchar();
	check_buffer(stdin, hidden);
}

FN static void hold_in_buffers(void)
{
	void *held = held_block();
	char *buffer = malloc(BUFFER);

	with_buffer = fopen("/dev/null", "w");
	setvbuf(with_buffer, buffer, _IOFBF, BUFFER);
	fwrite(&held, sizeof(held), 1, with_buffer);
	in_memory = open_memstream((char **)&text, &text_size);
	held = held_block();
	fwrite(&held, sizeof(held), 1, in_memory);
	text = NULL;
}

int main(int argc, char **argv)
{
	int is_exit = argc > 1 && !strcmp(argv[1], "exit"), nr = is_exit ? NR_LOST : 2 * NR_LOST;

	truth_begin();
	fill_buffers(is_exit);
	expect("definite %d %d lost_block", nr, nr * SIZE);
	if (is_exit)
		return 0;
	hold_in_buffers();
	expect("reachable 2 %d held_block", 2 * (SIZE + 8));
	fflush(stdout);
	_exit(0); /* exit() would write what is in the buffers */
}
