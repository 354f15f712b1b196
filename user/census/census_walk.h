/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For walkers of an allocator's books: bounded reads of the moment, and a place for what they find. */
#pragma once

#include "user/census/census_blocks.h"
#include "user/lib/hash_index.h"
#include "user/scan/page_reader.h"
#include "user/scan/snapshot.h"

enum {
	CENSUS_WINDOW = 256 << 10, /* bytes */
	CENSUS_WORD_TEXT = 9,	   /* bytes of the letters of a word, with the end */
};

/* One walk. Walkers read memory by the functions below only. */
struct census_walk {
	struct snapshot *snap;	   /* borrowed */
	struct census_blocks *out; /* borrowed */
	u64 deadline_ns;	   /* CLOCK_MONOTONIC; 0 = none */
	u64 page;		   /* bytes */
	u8 w;			   /* bytes of a word of the process */
	u32 nth;		   /* with is_many: leave out so many books of the allocator */
	/* The bytes that were read last, for reads that go upwards. */
	u8 *window; /* owned; CENSUS_WINDOW bytes */
	taddr_t window_start;
	size_t window_len, window_size; /* bytes that are valid; bytes to read next */
	/* Types by address. */
	struct hash_index types;		/* owned */
	const struct snapshot_map *type_map;	/* that the last type was in */
	const struct snapshot_map *pointer_map; /* that the last pointer to no file led to */
	taddr_t maps_start, maps_end;
	u32 nr_texts; /* types of text */
};

/* One allocator. */
struct census_walker {
	const char *name;
	bool is_many; /* the process may have several, which are walked one by one */
	/* Are the books there? 0, -ENOENT or -ENOMEM. */
	int (*find)(struct census_walk *w);
	/*
	 * Find the books and fill @w->out. 0: everything was read, and notes say what does not add up; -ENOENT: the
	 * process has no such allocator; -ETIME past the deadline; -ENOMEM.
	 */
	int (*walk)(struct census_walk *w);
};

/* The table; the last row has no name. */
extern const struct census_walker census_walkers[];

/* 0 or -ENOMEM. census_walk_fini() also after an error. */
int census_walk_init(struct census_walk *w, struct snapshot *snap, struct census_blocks *out,
		     u64 deadline_ns) __must_check;
void census_walk_fini(struct census_walk *w);

/* The word at @p, in the size and byte order of the process. */
u64 census_word_of(const struct census_walk *w, const u8 *p);

/* Read @nr words of private memory at @addr, at most 8. False if they cannot be read. */
bool census_words(const struct census_walk *w, taddr_t addr, u64 *words, u32 nr);

/*
 * @len bytes of private memory at @addr, at most a page: NULL if they cannot be read. Cheap for rising addresses.
 * Valid until the next call.
 */
const u8 *census_window(struct census_walk *w, taddr_t addr, size_t len);

/* Copy what is in memory of [@start, @start + @len) to @buf, and zeros for the rest. Also for data of files. */
void census_copy_data(const struct census_walk *w, taddr_t start, u8 *buf, size_t len);

/* The type of a block that begins with @word: an index in out->types. 0 or -ENOMEM. */
int census_type_of(struct census_walk *w, u64 word, u32 *type) __must_check;
/* Write the letters that @word begins with to @text, of CENSUS_WORD_TEXT bytes. Returns how many; 0: it is no text. */
u32 census_first_text(const struct snapshot *snap, u64 word, char *text);

/* 0, or -ETIME past the deadline. */
int census_check_time(const struct census_walk *w) __must_check;

/* Is @map private writable memory without a file? */
bool census_is_anonymous(const struct snapshot_map *map);

/* An allocator whose file the process has mapped, by its name, and that is not among @known. Static; NULL = none. */
const char *census_stranger(const struct snapshot *snap, const char *const *known, size_t nr);

/* The rows. */
int jemalloc_is_there(struct census_walk *w) __must_check;
int jemalloc_walk(struct census_walk *w) __must_check;
int mimalloc_is_there(struct census_walk *w) __must_check;
int mimalloc_walk(struct census_walk *w) __must_check;
int tcmalloc_is_there(struct census_walk *w) __must_check;
int tcmalloc_walk(struct census_walk *w) __must_check;
int musl_is_there(struct census_walk *w) __must_check;
int musl_walk(struct census_walk *w) __must_check;
int glibc_is_there(struct census_walk *w) __must_check;
int glibc_walk(struct census_walk *w) __must_check;
