/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a program's exec to its entry point, and from the exit of a thread to the end of the program. */
#include "fallback/program.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/tracee.h"
#include "fallback/places.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"

#define TO(state)    (1U << (state))
#define TO_NEW_IMAGE (TO(PROGRAM_STARTING) | TO(PROGRAM_RUNNING))
#define TO_LEFT	     TO(PROGRAM_LEFT)

static const u64 no_killer_ns = 1000 * 1000 * 1000;

/* An exec may come after the end was reported, when one thread ended the process and another one was faster. */
static const u16 followers[NR_PROGRAM_STATES] = {
	[PROGRAM_RUNNING] = TO_NEW_IMAGE | TO(PROGRAM_AT_END) | TO_LEFT | TO(PROGRAM_WAITING) /* a new one */,
	[PROGRAM_WAITING] = TO_NEW_IMAGE,
	[PROGRAM_STARTING] = TO_NEW_IMAGE | TO(PROGRAM_AT_END) | TO_LEFT,
	[PROGRAM_AT_END] = TO_NEW_IMAGE | TO(PROGRAM_ENDING),
	[PROGRAM_ENDING] = TO_NEW_IMAGE | TO_LEFT,
};

bool program_state_may_follow(enum program_state from, enum program_state to)
{
	return followers[from] & TO(to);
}

void program_set_state(struct program *p, pid_t pid, enum program_state state)
{
	if (!program_state_may_follow(p->state, state))
		debug("ptrace: PID %d: state %d after %d", pid, state, p->state);
	p->state = state;
}

bool program_find_entry(struct program *p, pid_t pid, bool is_32bit)
{
	u64 interp = 0;

	p->has_new_code = p->is_told = false;
	return !proc_auxv(&interp, pid, is_32bit, AT_BASE) && interp &&
	       !proc_auxv(&p->entry, pid, is_32bit, AT_ENTRY);
}

int program_follow_start(struct program *p, struct places *places, pid_t pid)
{
	const struct place place = { .addr = p->entry, .kind = PLACE_START };
	int err = places_add(places, &place);

	if (!err)
		program_set_state(p, pid, PROGRAM_STARTING);
	return err;
}

int program_copy(struct program *p, struct places *places, pid_t pid, const struct program *parent,
		 const struct places *from)
{
	int err = places_copy(places, from);

	if (err)
		return err;
	p->entry = parent->entry;
	p->has_new_code = parent->has_new_code;
	p->is_told = parent->is_told;
	if (p->entry && places_is_in_code(places, p->entry))
		program_set_state(p, pid, PROGRAM_STARTING);
	return 0;
}

int program_resume_request(const struct program *p, pid_t pid, pid_t tid)
{
	return p->state == PROGRAM_STARTING && !p->is_told && tid == pid ? PTRACE_SYSCALL : PTRACE_CONT;
}

bool program_is_alive(const struct program *p)
{
	return p->state == PROGRAM_RUNNING || p->state == PROGRAM_STARTING;
}

int program_exit_status(pid_t tid, int *status)
{
	unsigned long message = 0;

	if (ptrace(PTRACE_GETEVENTMSG, tid, 0, &message))
		return -ESRCH;
	*status = (int)message;
	return 0;
}

enum program_exit program_exit_kind(const struct program *p, pid_t tid, int status, bool is_last)
{
	enum tracee_call call = tracee_call(tid);

	if (WIFSIGNALED(status) || call == TRACEE_CALL_EXITS_ALL || is_last)
		return PROGRAM_EXIT_ALL;
	return call == TRACEE_CALL_EXITS || clock_now_ns() < p->no_killer_until_ns ? PROGRAM_EXIT_THREAD
										   : PROGRAM_EXIT_KILLED;
}

void program_has_no_killer(struct program *p)
{
	p->no_killer_until_ns = clock_now_ns() + no_killer_ns;
}
