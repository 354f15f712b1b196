/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-in for lists of events in the agent, which has no report --events. No list exists, so the others do nothing. */
#include <errno.h>

#include "user/stream/event_list.h"

int event_list_new(struct event_list **list, FILE *out, const struct alloc_table *fns)
{
	(void)out;
	(void)fns;
	*list = NULL;
	return -ENOTSUP;
}

void event_list_free(struct event_list *l)
{
	(void)l;
}

void event_list_process(struct event_list *l, const struct target *t)
{
	(void)l;
	(void)t;
}

void event_list_event(struct event_list *l, const struct event_header *rec)
{
	(void)l;
	(void)rec;
}

void event_list_losses(struct event_list *l, pid_t pid, const struct losses *total)
{
	(void)l;
	(void)pid;
	(void)total;
}

void event_list_mark(struct event_list *l, u64 time_ns, const char *text)
{
	(void)l;
	(void)time_ns;
	(void)text;
}

void event_list_thread(struct event_list *l, pid_t pid, pid_t tid, const char *name)
{
	(void)l;
	(void)pid;
	(void)tid;
	(void)name;
}

int event_list_finish(struct event_list *l)
{
	(void)l;
	return 0;
}

void event_list_show(struct event_list *l)
{
	(void)l;
}
