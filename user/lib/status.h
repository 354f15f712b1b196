/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exit statuses of heaptap. */
#pragma once

/* `run` passes on the status of the program in place of STATUS_DONE. */
enum exit_status {
	STATUS_DONE = 0,
	STATUS_FINDINGS = 1,	 /* --fail-on found something */
	STATUS_USAGE = 2,	 /* the command line is wrong */
	STATUS_IMPOSSIBLE = 3,	 /* no permission, or not possible on this kernel */
	STATUS_NO_TARGET = 4,	 /* no such target, or it ended at once */
	STATUS_UNTRUSTED = 5,	 /* the result cannot be trusted or written; no CPU time is left */
	STATUS_NO_VERDICT = 6,	 /* nothing could be watched, or --fail-on asks for what was not measured */
	STATUS_CANNOT_RUN = 126, /* the program could not be started */
	STATUS_NOT_FOUND = 127,	 /* there is no such program */
};
