/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Begins system calls again that a ptrace stop has made fail with EINTR. */
#include "arch/waits.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "arch/cpu_emulate.h"
#include "arch/regs.h"
#include "arch/thread_call.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* has this number on every CPU; Linux 5.3 */
#endif

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438 /* likewise; Linux 5.6 */
#endif

enum {
	/*
	 * The result by which the kernel begins a call again if no handler of a signal runs first, else it fails with
	 * EINTR (ERESTARTNOHAND).
	 */
	RESULT_BEGIN_AGAIN = -514,
	/* The mark: 8 bits that say so, and the end of the wait, in milliseconds. */
	MARK = 0xa5,
	MARK_SHIFT = 56,
	END_SHIFT = 32,
	END_MASK = 0xffffff,
	MOST_MS = 1 << 22, /* of a wait that is marked: 70 minutes */
	STACK_ALIGN = 16,
	MOST_S = 1 << 22,
};

static const s64 second_ns = 1000 * 1000 * 1000;

const struct wait_call *waits_find(const struct cpu *cpu, const struct cpu_regs *regs)
{
	const struct cpu_waits *w = cpu->waits;
	u64 word = cpu_get(cpu, regs, CPU_RESULT), number;
	s64 result = cpu->word_size == 8 ? (s64)word : (s32)word;

	if (!w || (result != -EINTR && result != RESULT_BEGIN_AGAIN))
		return NULL;
	number = cpu_get_word(cpu, regs, w->number);
	for (u32 i = 0; i < w->nr; i++)
		if (w->calls[i].number == number)
			return &w->calls[i];
	return NULL;
}

void waits_begin_again(const struct cpu *cpu, struct cpu_regs *regs)
{
	cpu_set(cpu, regs, CPU_RESULT, (taddr_t)RESULT_BEGIN_AGAIN);
}

/* The lower half of @word, and the mark of a wait that ends at @end_ms. */
static u64 marked(u64 word, u64 end_ms)
{
	return (u64)MARK << MARK_SHIFT | (end_ms & END_MASK) << END_SHIFT | (u32)word;
}

/* Milliseconds that are left of a wait of @asked_ms with the word @word: all, if there is no mark of this wait. */
static s32 left_of(u64 word, u64 now_ms, s32 asked_ms)
{
	/* The difference of two numbers of 24 bits, with its sign. */
	s32 rest = (s32)(((u32)(word >> END_SHIFT) - (u32)now_ms) << 8) >> 8;

	if (word >> MARK_SHIFT != MARK || rest > asked_ms)
		return asked_ms;
	return rest > 0 ? rest : 0;
}

u64 waits_left(u64 word, u64 now_ms)
{
	s32 asked = (s32)word, left;

	if (asked <= 0 || asked > MOST_MS)
		return word;
	left = left_of(word, now_ms, asked);
	return marked((u32)left, now_ms + (u32)left);
}

u64 waits_of_socket(u64 word, u64 now_ms, u64 asked_ms, bool *is_over)
{
	s32 left;

	*is_over = false;
	if (!asked_ms || asked_ms > MOST_MS)
		return word;
	left = left_of(word, now_ms, (s32)asked_ms);
	*is_over = !left;
	return *is_over ? (u32)word : marked(word, now_ms + (u32)left);
}

/* The rest of a wait, where the thread may read it. */
struct rest {
	s64 s, ns; /* struct timespec */
	u64 mark;
	u64 end_ns;
};

static const u64 rest_mark = 0x6865617074617021;

static bool read_words(pid_t tid, taddr_t addr, void *to, size_t len)
{
	for (size_t i = 0; i < len; i += sizeof(long)) {
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, tid, addr + i, 0);
		if (errno)
			return false;
		memcpy((u8 *)to + i, &word, sizeof(word));
	}
	return true;
}

static bool write_words(pid_t tid, taddr_t addr, const void *from, size_t len)
{
	for (size_t i = 0; i < len; i += sizeof(long)) {
		long word;

		memcpy(&word, (const u8 *)from + i, sizeof(word));
		if (ptrace(PTRACE_POKEDATA, tid, addr + i, word))
			return false;
	}
	return true;
}

/* The wait of @tid has a limit at @at that the program has written: when does it end, if it begins now? */
static bool find_end(pid_t tid, taddr_t at, taddr_t own, u64 now, u64 *end_ns)
{
	s64 asked[2];
	taddr_t stack;

	/* Elsewhere the memory below the stack pointer may be in use. */
	if (!read_words(tid, at, asked, sizeof(asked)) || asked[0] < 0 || asked[0] > MOST_S || asked[1] < 0 ||
	    asked[1] >= second_ns || thread_call_find_stack(&stack, tid) || own < stack)
		return false;
	*end_ns = now + (u64)(asked[0] * second_ns + asked[1]);
	return true;
}

/* Have the thread wait only for the rest of the time at the address in @word of its registers. */
static void shorten(pid_t tid, const struct cpu *cpu, struct cpu_regs *regs, u8 word)
{
	taddr_t at = cpu_get_word(cpu, regs, word), sp = cpu_get(cpu, regs, CPU_SP), own;
	struct rest rest = { 0 };
	u64 now = clock_now_ns(), left;

	if (!at || sizeof(long) != sizeof(rest.s) || cpu->word_size != sizeof(rest.s))
		return;
	own = (sp - arch_red_zone(cpu->word_size) - sizeof(rest)) / STACK_ALIGN * STACK_ALIGN;
	if (at != own || !read_words(tid, own, &rest, sizeof(rest)) || rest.mark != rest_mark) {
		rest.mark = rest_mark;
		if (!find_end(tid, at, own, now, &rest.end_ns))
			return;
	}
	left = rest.end_ns > now ? rest.end_ns - now : 0;
	rest.s = (s64)left / second_ns;
	rest.ns = (s64)left % second_ns;
	if (write_words(tid, own, &rest, sizeof(rest)))
		cpu_regs_set_word(regs, cpu->word_size, word, own);
}

/* The limit of calls on the socket @fd of thread @tid, in milliseconds; 0 = there is none, or that cannot be known. */
static u64 socket_limit_ms(pid_t tid, int fd, int option)
{
	auto_close int process = -1, socket = -1;
	struct timeval limit = { 0 };
	socklen_t len = sizeof(limit);
	struct proc_status status;

	/* A filter of system calls may look at the bits of the mark. */
	if (proc_read_status(&status, tid) || status.seccomp)
		return 0;
	process = (int)syscall(SYS_pidfd_open, status.tgid, 0);
	if (process >= 0)
		socket = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	if (socket < 0 || getsockopt(socket, SOL_SOCKET, option, &limit, &len))
		return 0;
	return (u64)limit.tv_sec * 1000 + ((u64)limit.tv_usec + 999) / 1000;
}

/* Mark the wait of @tid on a socket. True: its time is over. */
static bool mark_socket(pid_t tid, const struct cpu *cpu, struct cpu_regs *regs, const struct wait_call *call)
{
	u64 word = cpu_get_word(cpu, regs, call->word);
	bool is_over;

	word = waits_of_socket(
		word, clock_now_ms(),
		socket_limit_ms(tid, (int)(u32)word, call->limit == WAIT_SEND ? SO_SNDTIMEO : SO_RCVTIMEO),
		&is_over);
	cpu_regs_set_word(regs, cpu->word_size, call->word, word);
	return is_over;
}

/* The call of thread @tid, and its registers. */
static const struct wait_call *find_of_thread(pid_t tid, const struct cpu **cpu, struct cpu_regs *regs)
{
	*cpu = cpu_regs_read(regs, tid) ? NULL : cpu_of_regs(regs);
	return *cpu ? waits_find(*cpu, regs) : NULL;
}

void waits_keep(pid_t tid)
{
	const struct cpu *cpu;
	struct cpu_regs regs;

	if (!find_of_thread(tid, &cpu, &regs))
		return;
	waits_begin_again(cpu, &regs);
	(void)!cpu_regs_write(&regs, tid);
}

void waits_go_on(pid_t tid)
{
	const struct cpu *cpu;
	struct cpu_regs regs;
	const struct wait_call *call = find_of_thread(tid, &cpu, &regs);
	bool is_over = false;
	u64 word;

	if (!call)
		return;
	word = cpu_get_word(cpu, &regs, call->word);
	if (call->limit == WAIT_MS)
		cpu_regs_set_word(&regs, cpu->word_size, call->word, waits_left(word, clock_now_ms()));
	else if (call->limit == WAIT_TIMESPEC)
		shorten(tid, cpu, &regs, call->word);
	else if (call->limit == WAIT_RECEIVE || call->limit == WAIT_SEND)
		is_over = mark_socket(tid, cpu, &regs, call);
	if (is_over)
		cpu_set(cpu, &regs, CPU_RESULT, (taddr_t)-EAGAIN);
	else
		waits_begin_again(cpu, &regs);
	/* Fails only if the thread was killed. */
	(void)!cpu_regs_write(&regs, tid);
}
