/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps that the files of an injection share: user/inject/process*.c only. */
#pragma once

#include "user/inject/process.h"
#include "user/inject/threads.h"

enum {
	INJECT_STOP_NS = 1000 * 1000 * 1000, /* for all threads to stop */
	INJECT_PAUSE_NS = 10 * 1000 * 1000,
	INJECT_PAUSE_MAX_NS = 600 * 1000 * 1000,
	INJECT_FILE_NAME = 250, /* bytes of the name of a memfd, with its NUL */
};

/*
 * Let the threads run for @ns before the next try, and for a quarter more the next time: each stop takes the CPU from a
 * thread that has waited for it, so on a busy machine short pauses alone would never let it go on. False, at once, if
 * @end_ns has come.
 */
bool inject_pause(u64 *ns, u64 end_ns);

/*
 * One try of inject_put_in(). -EAGAIN: a thread stays inside the code that is to be changed. The second one notes that
 * as the reason, and returns -EBUSY.
 */
int inject_try_put_in(struct injection *in, const struct inject_site *sites, size_t nr,
		      const struct inject_file *f) __must_check;
int inject_stays_inside(struct injection *in);

/* With keeps_file: the target, which is stopped, closes the file. 0 or -errno. */
int inject_close_file(struct injection *in) __must_check;

/* Note the reason of @err, which is returned. */
int inject_fail(struct injection *in, int err, const char *fmt, ...) __printf(3, 4);

/* The words on @err of a stop of its threads, or of a call that one of them makes. */
const char *inject_reason(const struct injection *in, int err);

/* Memory of the target: a descriptor, or -errno; 0 or -errno. */
int inject_open_memory(pid_t pid) __must_check;
int inject_write(int mem, taddr_t addr, const void *bytes, size_t len) __must_check;
int inject_read(int mem, taddr_t addr, void *bytes, size_t len) __must_check;

/* @bytes were read at @addr: put the file's code in the place of breakpoints of this trace. */
void inject_hide_own(const struct inject_file *f, taddr_t addr, u8 *bytes, size_t len);

/* Like threads_call(), but the -errno of the system call is returned. */
int inject_syscall(struct stopped *s, long nr, const u64 args[INJECT_ARGS], u64 *out) __must_check;

/* System calls of a stopped target. 0 or -errno; -EEXIST: memory was mapped, but not at @addr, which is not 0. */
int inject_map(struct stopped *s, taddr_t addr, u64 len, int prot, int flags, u64 fd,
	       u64 offset) __must_check;
int inject_unmap(struct stopped *s, taddr_t addr, u64 len) __must_check;
int inject_advise(struct stopped *s, taddr_t addr, u64 len, int advice) __must_check;
int inject_close(struct stopped *s, u64 fd) __must_check;
/* A memfd of @bytes, whose size nobody can change. @name: below INJECT_FILE_NAME. */
int inject_make_file(struct stopped *s, int mem, const char *name, u64 bytes, u64 *fd) __must_check;
/* Open the file behind descriptor @fd of the target: a descriptor of ours, or -errno. */
int inject_open_file(pid_t pid, u64 fd) __must_check;

/*
 * Is our region, which is not 0, still in the process? A program that it has executed since has other memory at these
 * addresses, or none. 0, -ESRCH: it is not, or -errno.
 */
int inject_check_region(const struct injection *in) __must_check;

/* Does @k name a thread, and its place? The target may have written anything there. */
static inline bool inject_is_key(const struct piece_key *k, const struct injection *in)
{
	return k->key && k->key != PIECE_CLAIMED && k->nr < in->nr_places;
}

/* Make the region, and bring the code into it. 0 or -errno, -EOPNOTSUPP with the reason; then nothing was changed. */
int inject_make_region(struct injection *in, struct stopped *s, int mem) __must_check;

/* Map a new file of the target at all parts of @region but the code, over what is there. 0 or -errno. */
int inject_map_file(struct stopped *s, int mem, struct injection *in, taddr_t region,
		    bool is_child) __must_check;

/* Unmap what is ours at @region. 0 or -errno. */
int inject_unmap_region(struct stopped *s, taddr_t region) __must_check;

/*
 * Unmap the islands to which no jump leads any more, because their libraries are gone, where no thread is in them. 0,
 * or -errno: the others are still listed.
 */
int inject_drop_islands(struct injection *in, struct stopped *s, int mem) __must_check;

/* Copies in [@start, @end) are no longer mapped there. */
void inject_forget_copies(struct injection *in, taddr_t start, taddr_t end);

/* The stack pointer of a stopped thread, and its link register. */
struct inject_link {
	taddr_t sp;
	u64 value;
	bool is_changed;
};

/*
 * Have all calls that are under way in stopped threads return to the program. @is_dry: only look. 0, -EAGAIN: a thread
 * is inside the piece, or an address cannot be replaced now, or -EBUSY: a call still returns to us.
 */
int inject_restore_returns(const struct injection *in, struct stopped *s, int mem, bool is_dry) __must_check;
/* As above, on a CPU whose calls use link registers: the caller sets those of @links that are changed. */
int inject_restore_links(const struct injection *in, const struct code_cpu *cpu, int mem,
			 struct inject_link *links, size_t nr, bool is_dry) __must_check;

/* 0, or -EOPNOTSUPP with the reason: this target must not be changed. */
int inject_refuse(struct injection *in) __must_check;

/* Do two of the threads have the same thread pointer? The piece would take them for one. */
bool inject_has_twins(const struct stopped *s);

/* Is a thread in the middle of the bytes that @patches change, now or when its signal handlers return? */
bool inject_is_inside(const struct stopped *s, int mem, const struct inject_patch *patches, size_t nr);

/*
 * Write the bytes of patches @first and on as they were, where our jump is, and forget these patches. -EBUSY: those
 * that are left in the list still lead to us, so our memory must stay. Hops are left to the second function: no thread
 * may stand there when they become padding again.
 */
int inject_restore_code(struct injection *in, int mem, u32 first) __must_check;
int inject_restore_hops(struct injection *in, int mem, u32 first) __must_check;
