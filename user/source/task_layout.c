/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the PID in a task_struct, without a description of the types of the kernel. */
#include "user/source/task_layout.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "user/lib/cleanup.h"
#include "user/source/programs.h"

/* By chance several places may hold the IDs of one thread, but not those of several threads. */
enum { ROUNDS = 3, NR_WORDS = TASK_COPY_BYTES / 4 };

static void *note_tid(void *arg)
{
	*(u32 *)arg = (u32)syscall(SYS_gettid);
	return NULL;
}

/* Copy the first bytes of the task_struct of a new thread of ours. Returns its TID, or -errno. */
static int copy_one(const struct programs *p, u32 *words)
{
	volatile struct source_state *state = p->state;
	pthread_t thread;
	u32 tid = 0, zero = 0;
	int err;

	state->layout_pid = getpid();
	err = -pthread_create(&thread, NULL, note_tid, &tid);
	if (!err)
		err = -pthread_join(thread, NULL);
	if (!err && state->layout_pid)
		err = -EOPNOTSUPP; /* not seen, or under another TID */
	state->layout_pid = 0;
	if (!err && bpf_map_lookup_elem(p->task_copies_fd, &zero, words))
		err = -errno;
	return err ? err : (int)tid;
}

int task_layout_find(const struct programs *p)
{
	auto_free u32 *words = malloc(TASK_COPY_BYTES);
	auto_free bool *is_possible = malloc(NR_WORDS);
	u32 tgid = getpid();
	size_t nr = 0;

	if (!words || !is_possible)
		return -ENOMEM;
	memset(is_possible, true, NR_WORDS);
	for (int round = 0; round < ROUNDS; round++) {
		int tid = copy_one(p, words);

		if (tid < 0)
			return tid;
		/* The TID of the thread, and the PID of its process next to it. */
		for (size_t i = 0; i + 1 < NR_WORDS; i++)
			is_possible[i] &= words[i] == (u32)tid && words[i + 1] == tgid;
	}
	for (size_t i = 1; i + 1 < NR_WORDS; i++) {
		if (!is_possible[i])
			continue;
		p->state->task_pid_at = 4 * i;
		nr++;
	}
	if (nr == 1)
		return 0;
	p->state->task_pid_at = 0;
	return -EOPNOTSUPP;
}
