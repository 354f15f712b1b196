/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds fields in a task_struct by values that heaptap knows, without a description of the kernel's types. */
#include "user/source/task_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "user/lib/cleanup.h"
#include "user/lib/helper_process.h"
#include "user/source/programs.h"

/* By chance several places may hold the IDs of one thread, but not those of several threads. */
enum { ROUNDS = 3, NR_WORDS = TASK_COPY_BYTES / 4, STACK_BYTES = 16 << 10 };

static void *note_tid(void *arg)
{
	*(u32 *)arg = (u32)syscall(SYS_gettid);
	return NULL;
}

/* A new thread of ours, which has ended. Returns its TID, or -errno. */
static int make_thread(void)
{
	pthread_t thread;
	u32 tid = 0;
	int err = -pthread_create(&thread, NULL, note_tid, &tid);

	if (!err)
		err = -pthread_join(thread, NULL);
	return err ? err : (int)tid;
}

static int end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

/*
 * A new child of ours, which has ended; by clone(), because the C library blocks signals in fork(). The child has our
 * memory, because to copy the page tables takes longer than all else, and no exit signal. Its PID, or -errno.
 */
static int make_child(void)
{
	u8 stack[STACK_BYTES] __attribute__((aligned(16)));
	pid_t pid = clone(end_at_once, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, NULL);

	if (pid < 0)
		return -errno;
	helper_process_wait(pid, NULL);
	return pid;
}

/* Copy the first bytes of the task_struct of a new task of ours. Returns what @make returned, or -errno. */
static int copy_one(const struct programs *p, int (*make)(void), void *words)
{
	volatile struct source_state *state = p->state;
	u32 zero = 0;
	int id;

	state->layout_pid = getpid();
	id = make();
	if (id >= 0 && state->layout_pid)
		id = -EOPNOTSUPP; /* not seen, or under another TID */
	state->layout_pid = 0;
	if (id >= 0 && bpf_map_lookup_elem(p->task_copies_fd, &zero, words))
		id = -errno;
	return id;
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
		int tid = copy_one(p, make_thread, words);

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

/* Which words of a task_struct, each of @size bytes, hold the value that they are expected to hold. */
struct field_search {
	size_t size;
	u8 nr_rounds, nr_equal[TASK_COPY_BYTES / 4]; /* rounds in which word i had the value */
};

static void search_round(struct field_search *s, const void *copy, u64 value)
{
	for (size_t i = 0; i < TASK_COPY_BYTES / s->size; i++)
		s->nr_equal[i] += !memcmp((const char *)copy + i * s->size, &value, s->size);
	s->nr_rounds++;
}

/* The offset of the only word that had its value in each round. 0, or -EOPNOTSUPP. */
static int search_result(const struct field_search *s, u32 *offset)
{
	size_t nr = 0, at = 0;

	for (size_t i = 1; i < TASK_COPY_BYTES / s->size; i++) {
		if (s->nr_equal[i] != s->nr_rounds)
			continue;
		at = i * s->size;
		nr++;
	}
	if (nr != 1)
		return -EOPNOTSUPP;
	*offset = (u32)at;
	return 0;
}

/* Copy the task_struct of a child that is made while the signals of @mask are blocked. 0 or -errno. */
static int copy_with_mask(const struct programs *p, u64 mask, u64 *words)
{
	u64 old;
	int id;

	if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof(mask)))
		return -errno;
	id = copy_one(p, make_child, words);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	return id < 0 ? id : 0;
}

static int find_blocked(const struct programs *p, u32 *offset, u64 *words)
{
	/* Masks that no other field holds by chance. SIGKILL and SIGSTOP cannot be blocked. */
	static const u64 masks[] = { 0x5a96c3693ca5f00fULL, 0xc33c5aa5960f69f0ULL, 0x0ff0a5c33c695a96ULL };
	const u64 never = 1ULL << (SIGKILL - 1) | 1ULL << (SIGSTOP - 1);
	struct field_search search = { .size = sizeof(u64) };

	for (size_t i = 0; i < ARRAY_SIZE(masks); i++) {
		int err = copy_with_mask(p, masks[i] & ~never, words);

		if (err)
			return err;
		search_round(&search, words, masks[i] & ~never);
	}
	return search_result(&search, offset);
}

/* A child that has our memory, and its own child. */
struct traced_family {
	int go[2];
	u8 parent_stack[STACK_BYTES] __attribute__((aligned(16)));
	u8 child_stack[STACK_BYTES] __attribute__((aligned(16)));
};

/* In the child: wait until heaptap traces this process, then make a child. */
static int be_parent(void *arg)
{
	struct traced_family *f = arg;
	pid_t pid;
	char byte;

	close(f->go[1]);
	if (read(f->go[0], &byte, 1) != 1)
		return 0;
	/* Without CLONE_VFORK, so that PTRACE_O_TRACECLONE makes it a tracee. */
	pid = clone(end_at_once, f->child_stack + STACK_BYTES, CLONE_VM, NULL);
	if (pid > 0)
		waitpid(pid, NULL, __WALL);
	return 0;
}

/*
 * Resume the traced @parent and its child until both have ended. Each wait names a process: other children of heaptap
 * are the business of others.
 */
static void run_to_end(pid_t parent)
{
	unsigned long child;
	int status;

	while (waitpid(parent, &status, __WALL) == parent && WIFSTOPPED(status)) {
		if (status >> 16 == PTRACE_EVENT_CLONE && !ptrace(PTRACE_GETEVENTMSG, parent, 0, &child)) {
			while (waitpid((pid_t)child, &status, __WALL) == (pid_t)child && WIFSTOPPED(status))
				ptrace(PTRACE_CONT, (pid_t)child, 0, 0);
		}
		ptrace(PTRACE_CONT, parent, 0, 0);
	}
}

/* Copy the task_struct of a task that is ptraced with @options since it was made. 0 or -errno. */
static int copy_traced(const struct programs *p, long options, u32 *words)
{
	volatile struct source_state *state = p->state;
	struct traced_family f;
	u32 zero = 0;
	pid_t parent;
	int err = 0;

	if (pipe2(f.go, O_CLOEXEC))
		return -errno;
	parent = clone(be_parent, f.parent_stack + STACK_BYTES, CLONE_VM, &f);
	if (parent < 0 || ptrace(PTRACE_SEIZE, parent, 0, options))
		err = -errno;
	state->layout_pid = err ? 0 : (u32)parent;
	if (!err && write(f.go[1], "", 1) != 1)
		err = -errno;
	close(f.go[0]);
	close(f.go[1]);
	if (parent > 0)
		run_to_end(parent);
	if (!err && state->layout_pid)
		err = -EOPNOTSUPP;
	state->layout_pid = 0;
	if (!err && bpf_map_lookup_elem(p->task_copies_fd, &zero, words))
		err = -errno;
	return err;
}

/* task_struct.ptrace: PT_PTRACED, PT_SEIZED, and the options, shifted (include/linux/ptrace.h of Linux 6.18). */
static int find_ptrace(const struct programs *p, u32 *offset, u32 *words)
{
	enum { PTRACED = 1, SEIZED = 0x10000, OPTION_SHIFT = 3 };
	static const long options[] = { PTRACE_O_TRACECLONE, PTRACE_O_TRACECLONE | PTRACE_O_TRACEVFORKDONE,
					PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD };
	struct field_search search = { .size = sizeof(u32) };

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		int err = copy_traced(p, options[i], words);

		if (err)
			return err;
		search_round(&search, words, PTRACED | SEIZED | options[i] << OPTION_SHIFT);
	}
	return search_result(&search, offset);
}

int task_layout_find_stop(const struct programs *p)
{
	auto_free u64 *words = malloc(TASK_COPY_BYTES);
	u32 blocked_at, ptrace_at;
	int err = words ? find_blocked(p, &blocked_at, words) : -ENOMEM;

	if (!err)
		err = find_ptrace(p, &ptrace_at, (u32 *)words);
	if (err)
		return err;
	p->state->task_ptrace_at = ptrace_at;
	p->state->task_blocked_at = blocked_at;
	return 0;
}
