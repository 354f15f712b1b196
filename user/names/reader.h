/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reader of names: a process without rights that reads hostile files by libdw, and that may die. It is started when
 * it is first asked, and again after its death.
 */
#pragma once

#include "user/names/reader_wire.h"

struct names_reader;

struct reader_answer {
	struct reader_reply head;
	const char *bytes; /* head.len bytes and a 0; valid until the next question */
};

/* All readers together may use @cpu_ns of CPU time. 0 or -ENOMEM. */
int reader_new(struct names_reader **out, u64 cpu_ns) __must_check;
/* Ends the process. NULL is fine. */
void reader_free(struct names_reader *r);

/*
 * Ask, and wait for the answer, as long as the reader works. @bytes: request->len of them. @fd is passed, and stays the
 * caller's; -1 = none. 0, and *@a; -EPIPE: the reader has died of it, or was ended, because it waited too long for a
 * file server; -EAGAIN: no reader can be started now; -ENOMEM.
 */
int reader_ask(struct names_reader *r, const struct reader_request *request, const void *bytes, int fd,
	       struct reader_answer *a) __must_check;

/* The last answer made no sense: end the reader. Returns -EPIPE. */
int reader_reject(struct names_reader *r);

/* The number of the running reader, from 1; 0 = none is running. Files that were opened in another one are not open. */
u32 reader_generation(const struct names_reader *r);
/* Readers that have died so far; and how the last one did: "was ended by signal 11 (Segmentation fault)". */
u32 reader_nr_deaths(const struct names_reader *r);
const char *reader_last_death(const struct names_reader *r);
/* The last one died before it was asked: the question is not to blame. */
bool reader_has_died_idle(const struct names_reader *r);
/* All CPU time is used up. */
bool reader_is_out_of_time(const struct names_reader *r);
