/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts for the client, which has the books: blocks come in, verdicts go out. Memory contents are not sent. */
#pragma once

#include "user/remote/serve.h"

/*
 * The server finds them as a session does (user/session/session_lent.h). There are four steps, and WIRE_SCANNED has the
 * reason if one of them fails.
 * 1. WIRE_SCAN: the server remembers events of @pid from now on, and sends WIRE_MARK at this moment of the stream.
 * 2. WIRE_BLOCKS: the client sends the blocks that are live at the mark.
 * 3. WIRE_BLOCKS_END: the server stops the process, reads its memory, resumes it and judges the blocks. A second
 *    WIRE_MARK is the moment when the process was stopped.
 * 4. WIRE_VERDICTS, as fast as the queue has room, and WIRE_SCANNED.
 */
void serve_books_begin(struct serve *s, struct wire_view *v);
void serve_books_blocks(struct serve *s, struct wire_view *v);
void serve_books_run(struct serve *s, struct wire_view *v);

/* WIRE_WHY. */
void serve_books_why(struct serve *s, struct wire_view *v);

/* Call often: sends verdicts and chains as the queue has room, and gives up after a silence. */
void serve_books_round(struct serve *s);

/* Forget the books that are here, if there are any. */
void serve_books_end(struct serve *s);

/*
 * A process is stopped before its exit, or before execve(), as @what says: let the client scan it. Returns when the
 * client lets it go on, is lost, or was silent for 10 s. Meanwhile the trace goes on, but does not end: see serve.late.
 */
void serve_books_wait(struct serve *s, pid_t pid, enum wire_mark what);
