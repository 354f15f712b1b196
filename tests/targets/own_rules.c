/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loses blocks, and has suppressions for LeakSanitizer in itself that leave some of them out. */
#include <stdlib.h>

#include "tests/targets/truth.h"

enum { NR_KNOWN = 5 };

const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "# a comment\nleak:known_loss\n";
}

FN static void *known_loss(void)
{
	return malloc(10);
}

FN static void *other_loss(void)
{
	return malloc(20);
}

int main(void)
{
	void *p;

	truth_begin();
	for (int i = 0; i < NR_KNOWN; i++) {
		p = known_loss();
		keep(p);
	}
	p = other_loss();
	keep(p);
	p = NULL;
	keep(p);
	expect("definite 1 20 other_loss");
	return 0;
}
