/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leak scan on the serving side: the client's blocks in, verdicts out; memory contents stay here. */
#pragma once

#include "user/serve.h"

struct serve_scan;

/*
 * A scan has four steps, and whatever ends it early is told to the client in WIRE_SCANNED:
 * WIRE_SCAN: from here on events of @pid are remembered; WIRE_MARK tells the client which moment that is.
 * WIRE_BLOCKS: the blocks of that moment.
 * WIRE_BLOCKS_END: the process is stopped, read, let go, judged; a second WIRE_MARK says where it stood.
 * WIRE_VERDICTS, as the queue has room, and WIRE_SCANNED.
 */
void serve_scan_begin(struct serve *s, u32 pid, bool is_exiting);
void serve_scan_blocks(struct serve *s, struct wire_view *v);
/* WIRE_WHY. */
void serve_scan_why(struct serve *s, struct wire_view *v);

void serve_scan_run(struct serve *s, struct wire_view *v);

/* Send on what is to be sent. */
void serve_scan_round(struct serve *s);

/* Forget the scan that is going on, if there is one. */
void serve_scan_end(struct serve *s);
void serve_scan_free(struct serve_scan *scan);

/*
 * The program is about to end and stands: the client may ask for its verdict. Returns when it has it, does not
 * want it, is lost, or nothing was heard of it for 10 s.
 */
void serve_scan_exiting(struct serve *s, pid_t pid);
