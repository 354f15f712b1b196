/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The piece of code (inline/) in one target: brought in, led to from entries of functions, and taken out. Everything
 * that is needed to take it out is plain data in memory that heaptap shares with its guard.
 */
#pragma once

#include "inline/layout.h"
#include "user/inject/code.h"
#include "user/inject/inject_file.h"

/* For threads to leave the piece, or the code that is to be changed, where a user waits for that. */
#define INJECT_LEAVE_NS (3ULL * 1000 * 1000 * 1000)

enum {
	INJECT_MAX_PATCHES = 1024,
	INJECT_MAX_ISLANDS = 32,
	INJECT_MAX_COPIES = 256,
	INJECT_WHY_LEN = 192,
	INJECT_MAX_ROOM = 16
};

/* The name of the target's memory in /proc/PID/maps. */
#define INJECT_MEMORY_NAME "heaptap-inline"
/* That of copies of code; the path of the file follows. Their offsets are those in that file. */
#define INJECT_COPY_NAME "heaptap-code:"

struct inject_patch {
	taddr_t addr;
	u16 displaced; /* bytes whose instructions were moved */
	u16 closed; /* bytes from addr on: no thread may be behind the first one while the jump is put in */
	u8 old[CODE_MAX_JUMP], new[CODE_MAX_JUMP];
	u8 len;	   /* of old and new */
	u8 is_hop; /* 1 = in padding, where no code runs but from another patch */
};

/* Code near a library. */
struct inject_island {
	taddr_t start;
	u64 bytes;
};

/* Pages of code that are a copy, which is no mapping of the file. */
struct inject_copy {
	taddr_t addr, park; /* park: where the file's own pages are meanwhile */
	u64 bytes;
};

enum inject_state {
	INJECT_FREE,	/* the entry is not used */
	INJECT_NOTHING, /* nothing is in the target */
	INJECT_IN,
	INJECT_LEFT, /* memory of ours stays in the target, and the jumps that are still listed */
};

/* One target. */
struct injection {
	u32 state; /* enum inject_state */
	pid_t pid;
	u64 start_time; /* as struct target */
	pid_t owner;	/* the heaptap, and its start time */
	u64 owner_start;
	bool has_taken_over;	  /* what a killed heaptap had left was taken out first */
	taddr_t region;		  /* 0 = none yet */
	u32 nr_places, nr_shards; /* of the region, that are mapped */
	bool has_no_counter; /* the program has forbidden itself to read the CPU's counter (PR_SET_TSC) */
	struct code_ways ways;
	taddr_t returned; /* where calls return to us; 0 = the region is not complete, and no call was led to it */
	u32 nr_patches, nr_islands;
	struct inject_patch patches[INJECT_MAX_PATCHES];
	struct inject_island islands[INJECT_MAX_ISLANDS];
	u32 nr_copies, nr_in_place; /* in_place: pages that are changed where the file is mapped */
	struct inject_copy copies[INJECT_MAX_COPIES];
	char why_in_place[64];	    /* the last reason for that */
	u32 nr_buckets;		    /* of sampled blocks; 0 = all blocks are recorded */
	u64 put_in_ns, take_out_ns; /* the longest times that the target was stopped, for each */
	char why[INJECT_WHY_LEN];   /* the reason of the last error */
	/* The file of the shared memory stays open in the target, as that descriptor, until inject_close_file(). */
	bool keeps_file;
	s32 file; /* -1 = it is not open */
};

/* A function, or a call that the C library makes for itself. */
struct inject_site {
	taddr_t addr;  /* of the instruction */
	taddr_t start; /* of the function, for PIECE_RET; else addr */
	u64 len;       /* bytes of code from start */
	u64 room;      /* bytes behind these that belong to no function, at most INJECT_MAX_ROOM */
	u16 seen_at; /* bytes from addr to where breakpoints see the call: nothing saw one that is between */
	taddr_t hop; /* bytes near addr that belong to no function, for a jump; 0 = the function has room */
	u32 nr_hops; /* places that were tried for it */
	u32 index;
	u32 kind; /* enum piece_kind */
	struct call_probe call;
	u8 code[CODE_MAX_JUMP],
		hop_code[CODE_MAX_JUMP]; /* the bytes at start and at hop as the file has them */
	const char *name;		 /* of the function */
};

/*
 * Lead the functions at @sites in @f to the piece, which is brought in first if it is not there. The target is stopped
 * for that. 0, or -errno with the reason in in->why: then nothing was changed, except that the piece may be there, with
 * jumps to it that cannot be taken back. -ESRCH: the process has executed another program. -EINPROGRESS without a
 * reason: nothing was changed; try again when the stops of its threads have been handled. Of no effect until
 * inject_set_on().
 */
int inject_put_in(struct injection *in, const struct inject_site *sites, size_t nr,
		  const struct inject_file *f) __must_check;

/*
 * The process of @in is a forked child, stopped before its first instruction, and @in that of its parent but for the
 * PID: give it rings of its own, and the calls that are under way in its thread. Of no effect until inject_set_on(). 0,
 * or -errno with the reason in in->why: its calls are not seen.
 */
int inject_renew(struct injection *in) __must_check;

/*
 * Map more of the region: places for @nr_places threads, which may use them from then on, with their rings, and
 * @nr_shards shards of tables. The target is stopped for that. 0, or -errno, and nothing was changed. -ENOMEM: a limit
 * of the target, or other memory, is in the way. -EAGAIN, -EINPROGRESS: try again later. -ESRCH: as above.
 */
int inject_grow(struct injection *in, u32 nr_places, u32 nr_shards) __must_check;

/* Forget the functions in [@start, @end), which is no longer mapped. */
void inject_forget_range(struct injection *in, taddr_t start, taddr_t end);

/* Is the memory of ours that is known of still in the process? Not in a program that it has executed since. */
bool inject_is_there(const struct injection *in);

/* Is @addr in the piece, or in code that leads there and back? */
bool inject_has_code_at(const struct injection *in, taddr_t addr);

/* Calls are seen from now on, or no longer. Does not stop the target. 0 or -errno; -ESRCH as above. */
int inject_set_on(struct injection *in, bool is_on) __must_check;

/*
 * Restore all functions and return addresses, and unmap the piece. The target is stopped for that, again and again
 * for @time_ns at most while threads are inside the piece. 0, -EBUSY: the memory of the piece stays (INJECT_LEFT),
 * because a thread may be in it, or because of jumps that in->why tells of, or -errno: nothing was changed, in->why
 * says why. 0 also if the process has executed another program. -EINPROGRESS: all functions are as before; try again
 * when the stops of its threads have been handled.
 */
int inject_take_out(struct injection *in, u64 time_ns) __must_check;
