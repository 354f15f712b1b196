/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a block with known contents for each line on stdin, at rest in between: a string, numbers, and pointers to
 * code, to a variable, and into another block. Prints the address of the block.
 */
#include "tests/targets/truth.h"

#include <stdint.h>

struct planted {
	char text[16];
	void (*code)(void);
	int *variable;
	char *other;
	uint64_t number;
	double fraction;
	int negative;
	char letters[4];
	struct planted *self;
};

int contents_variable[4] = { 1, 2, 3, 4 };

FN static void contents_code(void)
{
	puts("called");
}

FN static void *make_planted(void)
{
	struct planted *p = calloc(1, sizeof(*p));
	char *other = malloc(40);

	strcpy(p->text, "planted \033[31m");
	strcpy(other, "the other block");
	p->code = contents_code;
	p->variable = &contents_variable[1];
	p->other = other + 4;
	p->number = 0x1122334455667788;
	p->fraction = 2.5;
	p->negative = -7;
	memcpy(p->letters, "a'\n\377", 4);
	p->self = p;
	return p;
}

FN static void *make_long(void)
{
	char *text = calloc(1, 100000);

	strcpy(text + 64, "far along");
	return text;
}

int main(void)
{
	static char in[4096], out[4096];
	char line[64];

	setvbuf(stdin, in, _IOFBF, sizeof(in));
	setvbuf(stdout, out, _IOLBF, sizeof(out));
	puts("ready");
	while (fgets(line, sizeof(line), stdin))
		printf("at %p\n", *line == 'l' ? make_long() : make_planted());
	return 0;
}
