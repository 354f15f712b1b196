/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A source of events: BPF, ptrace, the replay of a recording, or a remote server. */
#pragma once

#include "bpf/call_wish.h"
#include "bpf/event.h"
#include "bpf/thread_stop.h"
#include "user/source/caps.h"
#include "user/source/losses.h"
#include "user/probe/probe.h"
#include "user/source/probe_runs.h"
#include "user/source/sink.h"
#include "user/target/target.h"

struct source; /* one source, opaque: each kind has a struct of its own, to which its functions convert it */
struct source_told_ops; /* user/source/source_told.h */
struct source_tracer;	/* user/source/source_tracer.h */
struct tracer_changer;	/* fallback/tracer_change.h */
enum { SOURCE_MAX_LIFELINES = 1 };
/* Calls of a process are seen by ptrace or links of all; by breakpoints of its own, for good or until code is in. */
enum source_way { SOURCE_BY_OTHERS, SOURCE_BY_PROBES, SOURCE_AWAITS_CODE, SOURCE_BY_CODE };

/* By ptrace, does a thread wait until a record of @kind was handled? */
static inline bool source_waits_at(u8 kind)
{
	return kind == EVENT_EXEC || kind == EVENT_MAPS || kind == EVENT_FORK;
}

struct source_options {
	u32 depth;		      /* frames per stack, 0 = none, at most STACK_MAX_FRAMES */
	u64 ring_bytes, sample_bytes; /* 0 = default; mean distance of samples, 0 = all blocks are seen */
	bool want_free_stacks, drops_when_full, adapts_samples; /* sample_bytes is the first distance */
	bool stops_at_maps; /* targets are ptraced by us, now or soon: stop them when their mappings change */
	bool follows_later; /* no children before follow() */
	bool joins_later; /* inline, with begins_by_bpf: who gets code stays traced by the thread that puts it in */
	bool is_auto; /* inline: nobody asked for it; what it cannot see, or might harm, is left to BPF */
	bool begins_by_bpf; /* inline: BPF sees the calls of a process until put_code(), */
	u32 max_cost; /* but where that would take more than so many thousandths of its CPU time; 0 = no limit */
	bool wants_end;	      /* say that a process is about to end: EVENT_ENDING, if that is possible */
	bool stops_at_checks; /* a thread at HEAPTAP_LEAK_CHECK, or at execve(), waits for checked() */
	u32 max_followed;     /* most children, and theirs, that are traced too at a time; 0 = none */
	struct probe_options probes; /* which functions; what it points to outlives the source */
	const char *const *omit, *const *usdt, *const *chosen; /* as in struct source_choice */
	const struct probe_taker *taker;      /* user/source/probe_taker.h; NULL = the source does it */
	const struct tracer_changer *changer; /* another one who changes its targets; borrowed */
};

/* The functions of a source, by subject. One thread at a time calls them. */
struct source_ops {
	const char *name;			     /* "bpf", "ptrace", "replay" */
	const char *(*kind)(const struct source *s); /* the source that sees the calls; NULL = of this name */
	const struct source_told_ops *told;	     /* NULL = its processes are this machine's */

	/*
	 * Opening. NULL in a source that is opened by a function of its own, and whose records name its processes.
	 * probe: is it usable here? 0, or -errno with the reason in @caps. Touches no target.
	 * create: nothing is attached yet. *@out is owned by the caller: free().
	 * attach: start tracing @t, whose mappings have been read. The target is not stopped. Events flow unless it
	 * returns -errno: then nothing of @t stays attached. > 0: so many of its files have no probes, because there
	 * is no room for more; logged.
	 */
	int (*probe)(struct caps *caps);
	int (*create)(struct source **out, const struct source_options *options, const struct caps *caps);
	int (*attach)(struct source *s, struct target *t);

	/* Records. The descriptor is readable when many have come in; -1 = do not wait, all are there already. */
	int (*wait_fd)(struct source *s);
	/*
	 * Deliver the records that have come in, without waiting. Returns how many; -ENODATA: the end, no more will
	 * come; -EPIPE: the source has died, logged; or another -errno.
	 */
	int (*poll)(struct source *s, const struct sink *sink);
	/* Send each stack again before the next event that names it. NULL = it cannot. */
	void (*forget_stacks)(struct source *s);
	/* Totals since attach. */
	struct losses (*losses)(struct source *s, pid_t pid);
	bool (*nr_unchosen)(struct source *s, u64 *nr); /* untraced, of options.chosen; false or NULL: all */
	u64 (*nr_losses)(struct source *s); /* grows after each loss of any process. NULL: ask for each */

	void (*expect)(struct source *s, size_t nr); /* @nr processes will be attached. May be NULL */

	/*
	 * Processes. The mappings of @t were read again: place probes, note allocators. >= 0 as attach; -ESRCH (ended)
	 * or another -errno.
	 */
	int (*update)(struct source *s, struct target *t);
	/* The mappings of @t are as before. False: call update(), because a file was gone and is back. May be NULL. */
	bool (*unchanged)(struct source *s, const struct target *t);
	/* @t, a new child with these mappings, has been born (EVENT_FORK). 0 or -errno. NULL: there are no children. */
	int (*fork)(struct source *s, struct target *t);
	/*
	 * This child, of a program that heaptap started, is stopped by ptrace before its first instruction, after
	 * fork(). > 0: update() is to be called once more; or -errno: its calls are not seen. NULL: no need.
	 */
	int (*born)(struct source *s, struct target *t);
	/* The name of the program that @pid, which may have ended, executed last. May be NULL. */
	void (*comm)(struct source *s, pid_t pid, char comm[TARGET_COMM_LEN]);
	/* Why it has stopped @tid of a program that heaptap started; later, THREAD_STOP_LOOK. NULL: it never did. */
	struct thread_stop (*stop_reason)(struct source *s, pid_t tid);
	/*
	 * Thread @tid of @pid, which heaptap started, is stopped by ptrace because of SIGTRAP from the kernel. True: it
	 * had copied code with a breakpoint in it, which was taken out, and it can go on. NULL: it never has.
	 */
	bool (*trapped)(struct source *s, pid_t pid, pid_t tid);
	/* Are the probes still in the memory of @t? Those that are not count in losses(). May be NULL. */
	void (*look)(struct source *s, const struct target *t);
	void (*sleep)(struct source *s, bool is_asleep); /* heaptap stops: nobody may wait for it; or NULL */
	void (*forget)(struct source *s, pid_t pid); /* has ended, its last record was delivered; or NULL */
	/* Forget modules for which @is_used, by id, is false, or set it: they must stay. NULL: all must. */
	void (*keep_files)(struct source *s, bool *is_used);
	/* With follows_later: from now on children are followed, or not. Others count in losses(). NULL: no need. */
	void (*follow)(struct source *s, bool is_on);
	/* From now on until @is_on is false, what @pid forks is a copy for a snapshot and no child. NULL: no need. */
	void (*copying)(struct source *s, pid_t pid, bool is_on);

	/* Settings. From now on calls of the process are not seen / are seen again. */
	void (*pause)(struct source *s, pid_t pid), (*resume)(struct source *s, pid_t pid);
	int (*rest)(struct source *s, struct target *t, bool is_on); /* paused: probes out, or in */
	/*
	 * With begins_by_bpf, code in @t sees its calls from now on; none is missed. Stops @t for some 50 ms. On errors
	 * BPF sees them as before. -EAGAIN: a thread stays in a call. -EOPNOTSUPP: for good, logged. NULL: it cannot.
	 */
	int (*put_code)(struct source *s, struct target *t);
	enum source_way (*way)(const struct source *s, pid_t pid); /* NULL: SOURCE_BY_OTHERS */
	/* Take the probes of @m, shared by all processes, out for good. 0 or -errno. NULL: it cannot. */
	int (*leave)(struct source *s, const struct module *m);
	int (*set_depth)(struct source *s, u32 depth); /* of stacks; -EOPNOTSUPP: has none. NULL: it cannot */
	void (*limit_samples)(struct source *s, u32 sum); /* a second, of all processes; NULL: it does not */
	/*
	 * Begin (@is_on) or end to measure the probes in all targets. If that had begun before, *@out has what they
	 * have run since the last call, and with @is_on it goes on. -EOPNOTSUPP or another -errno: not here. Or NULL.
	 */
	int (*measure)(struct source *s, bool is_on, struct probe_runs *out);
	/* Forget the last wish, wait for @wish (NULL: none). True: the last one was met. NULL: it cannot. */
	bool (*wait_for)(struct source *s, const struct call_wish *wish);
	/* user/scan/kernel_words.h, read. NULL: it cannot. */
	int (*kernel_words)(const struct source *s, pid_t pid, int (*add)(void *ctx, taddr_t), void *ctx);
	/*
	 * Copies, owned by the caller, of the sockets to the processes that hold the probes; their number. NULL: none.
	 * When all are shut down, the probes are taken out as by detach, and poll() returns -ENODATA.
	 */
	size_t (*lifelines)(struct source *s, int fds[SOURCE_MAX_LIFELINES]);

	/* The end. Take every probe out; the target is as before. Records not yet polled stay readable. */
	void (*detach)(struct source *s), (*free)(struct source *s);
	const struct source_tracer *tracer; /* NULL: it traces nothing by ptrace */
};

/* The last one: the same where another process traces by ptrace, and there is no BPF. */
extern const struct source_ops source_bpf, source_ptrace, source_inline, source_inline_traced;
