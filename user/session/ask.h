/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One heaptap asks another one that traces a process already: for a verdict and its reports, or to set a marker. */
#pragma once

#include "user/lib/passed_fds.h"

/*
 * Both heaptaps belong to one user on one machine, and have the same version. The socket is in a directory that only
 * this user can enter, and the kernel names the user at the other end. Reports come back as files in memory, so that
 * nobody waits for a slow reader.
 */

enum { ASK_MAX_FORMATS = PASSED_FDS_MAX, ASK_FORMAT_LEN = 16, ASK_MARK_LEN = 64 };

/* A report that is wanted. */
struct ask_format {
	char name[ASK_FORMAT_LEN]; /* of a row of report_formats */
	u32 width;		   /* struct report_options */
	u32 color;
};

struct ask_request {
	u32 magic, size; /* filled in by ask_send() */
	char version[16];
	s32 pid; /* of the process to scan; for a marker also the PID of the recording heaptap */
	char marker[ASK_MARK_LEN]; /* to set in the recording, without a scan; "" = none */
	u32 sort, top, verbose, gen_suppressions, nr_whys, leaks;
	u32 fail_on_definite, fail_on_errors, fail_growth;
	u64 fail_bytes;
	u64 why_addr;
	u64 min_size, max_size;
	u32 nr_formats;
	struct ask_format formats[ASK_MAX_FORMATS];
};

enum ask_status {
	ASK_NOT_TRACED, /* not by this heaptap */
	ASK_OTHER_VERSION,
	ASK_FAILED, /* error says why */
	ASK_DONE,
	ASK_WITHOUT_SCAN, /* traced with --no-scan */
};

struct ask_reply {
	u32 status; /* enum ask_status */
	u32 has_verdict;
	u32 is_untrusted; /* events were lost */
	s32 error;	  /* -errno */
	u32 is_found;	  /* a rule of --fail-on is met */
	u32 nr_fds;
	char version[16];
	int fds[ASK_MAX_FORMATS]; /* owned by the receiver; one for each format; sent as descriptors */
};

/* The side that traces. */
struct ask_server;

/*
 * Make the socket. 0 or -errno (the directory cannot be made or belongs to another user), not logged, because tracing
 * works without it. *@out is owned by the caller: ask_close() removes the socket.
 */
int ask_open(struct ask_server **out) __must_check;
void ask_close(struct ask_server *a); /* NULL is fine */

/* A descriptor that is readable when another heaptap asks. */
int ask_fd(const struct ask_server *a);

/*
 * Take the next request; waits up to 200 ms for a slow sender. *@fd, owned by the caller, is for ask_answer().
 * 0; -EAGAIN: no request; -EPERM: another user; -EPROTO: a bad request or another version, which has its answer.
 */
int ask_accept(struct ask_server *a, struct ask_request *request, int *fd) __must_check;

/* Send @reply with its descriptors, and close them and @fd. Never waits: a full socket loses the reply. */
void ask_answer(int fd, struct ask_reply *reply);

/*
 * Ask each heaptap of this user in turn, until one traces @request->pid. Blocks until it has answered.
 * 0; -ESRCH: no heaptap traces it (*@other: a heaptap of another version is running); -EOPNOTSUPP: one does, with
 * --no-scan; -ETIME: one that was named in a message is stopped or hangs, and may trace it; or another -errno.
 */
int ask_send(struct ask_request *request, struct ask_reply *reply, bool *other) __must_check;
