/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Libraries for stack_dlopen: of the same size and layout, but each with its own function of its own frame size. */
#include "tests/targets/truth.h"

typedef void back_fn(size_t bytes);

#if defined(INDIRECT)
/* Chosen when it is called for the first time, and that choice allocates. */
static back_fn *resolver_back;

void set_back(back_fn *back);
void t_indirect(void);

void set_back(back_fn *back)
{
	resolver_back = back;
}

static void do_nothing(void)
{
}

__attribute__((used, noinline)) static void (*t_resolver(void))(void)
{
	void (*chosen)(void) = do_nothing;

	if (resolver_back)
		resolver_back(5);
	keep(chosen);
	return chosen;
}

void t_indirect(void) __attribute__((ifunc("t_resolver")));
#elif defined(LAZY)
void t_indirect(void);
void t_lazy(void);

FN void t_lazy(void)
{
	t_indirect();
	keep((int){ 0 });
}
#else
void PLUG(back_fn *back, size_t bytes);

FN void PLUG(back_fn *back, size_t bytes)
{
	volatile char room[ROOM];

	room[0] = room[ROOM - 1] = 1;
	back(bytes);
	keep(room[0]);
}
#endif
