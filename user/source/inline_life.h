/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A source that sees all but the calls of functions for the inline source: births, ends, new libraries, markers. */
#pragma once

#include "arch/stop_all.h"
#include "user/source/source.h"

struct source;
struct target;
struct guard_tracer;

struct inline_life {
	const struct source_ops *ops;
	const char *advice; /* the option that takes it alone */
	/* Take all probes of @pid out: the next update puts them in again, as its taker then says. */
	void (*place_again)(const struct source *life, pid_t pid);
	/* As source_bpf_has_shared(). NULL: never. */
	bool (*has_shared)(const struct source *life, const struct module *m);
	/* As source_bpf_number(). */
	void (*number)(const struct source *life, pid_t pid, taddr_t addr);
	/* The jumps of @pid are going to be taken out: do not look at them when it ends. NULL: it never does. */
	void (*unwatch)(const struct source *life, pid_t pid);
	/* attach() has failed, and will not be called again: let go of @pid. NULL: it has. */
	void (*leave)(const struct source *life, pid_t pid);
	/* Are the taker's probes still there, whose mappings are as before? */
	bool (*unchanged)(const struct source *life, pid_t pid);
	/* This source traces the targets by ptrace, so all changes of them are made by it. NULL: it does not. */
	void (*have_changed)(const struct source *life, struct guard_tracer *out);
};

extern const struct inline_life inline_life_bpf, inline_life_ptrace;

/*
 * Stop all threads of @t, whose calls are seen by @bpf, outside of all calls. @all is all zero, or was given before.
 * The calling thread is their tracer until stop_all_release() returns 0, which is to be called also after an error,
 * because a thread that was asked may stop later. 0; -EAGAIN: a thread stays in a call; or another -errno: all run.
 */
int inline_switch_stop(struct stopped_threads *all, const struct source *bpf,
		       const struct target *t) __must_check;
