/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the kernel keeps the number of a new task, without a description of its types. */
#include "user/task_layout.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "user/lib/cleanup.h"
#include "user/programs.h"

/* More places than one may hold the numbers of one thread by chance, but not those of several. */
enum { ROUNDS = 3, NR_WORDS = TASK_COPY_BYTES / 4 };

static void *note_tid(void *arg)
{
	*(u32 *)arg = (u32)syscall(SYS_gettid);
	return NULL;
}

/* Copy what a new thread of ours has at its beginning. Its number, or -errno. */
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
		err = -EOPNOTSUPP; /* not seen, or by another number */
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
		/* Its own number, and its process's next to it. */
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
