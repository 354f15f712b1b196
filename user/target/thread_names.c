/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of threads, from /proc into a recording. */
#include "user/target/thread_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"

enum {
	SLOT_BITS = 12, /* two threads that share a slot replace each other, at most once a tick */
	NR_LOOKS = 2,
	AGAIN_NS = 500 * 1000 * 1000,
};

struct slot {
	u32 pid, tid;
	u8 nr_looks;
	u64 due_ns;
	char name[THREAD_NAME_LEN]; /* as said */
};

struct thread_names {
	u32 nr_due;
	struct slot slots[1 << SLOT_BITS];
};

int thread_names_new(struct thread_names **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void thread_names_free(struct thread_names *t)
{
	free(t);
}

void thread_names_forget(struct thread_names *t)
{
	memset(t, 0, sizeof(*t));
}

void thread_names_note(struct thread_names *t, u32 pid, u32 tid)
{
	struct slot *s = &t->slots[(tid * 0x9e3779b1U) >> (32 - SLOT_BITS)];

	if (s->tid == tid && s->pid == pid)
		return;
	*s = (struct slot){ .pid = pid, .tid = tid };
	t->nr_due++;
}

static bool thread_names_read_name(char name[THREAD_NAME_LEN], u32 pid, u32 tid)
{
	char path[64];
	auto_close int fd = -1;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, name, THREAD_NAME_LEN);
	if (len <= 0)
		return false;
	/* The text ends in a newline. */
	name[len - 1] = '\0';
	return true;
}

void thread_names_look(struct thread_names *t, u64 now_ns, bool is_last,
		       void (*say)(void *ctx, u32 pid, u32 tid, const char *name), void *ctx)
{
	if (!t->nr_due)
		return;
	t->nr_due = 0;
	for (size_t i = 0; i < ARRAY_SIZE(t->slots); i++) {
		struct slot *s = &t->slots[i];
		char name[THREAD_NAME_LEN];

		if (!s->tid || s->nr_looks == NR_LOOKS)
			continue;
		if (is_last || now_ns >= s->due_ns) {
			s->due_ns = now_ns + AGAIN_NS;
			s->nr_looks++;
			if (thread_names_read_name(name, s->pid, s->tid) && strcmp(name, s->name) != 0) {
				memcpy(s->name, name, sizeof(name));
				say(ctx, s->pid, s->tid, name);
			}
		}
		t->nr_due += s->nr_looks < NR_LOOKS;
	}
}
