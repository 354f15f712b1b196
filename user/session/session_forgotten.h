/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of a session: stacks and files that nothing names any more. */
#pragma once

struct session;

/*
 * If there are many stacks or files, forget those of processes that were forgotten: session_drop_ended(). What the
 * books of other processes name stays. Names of reports before it are not valid any more.
 */
void session_forget_unused(struct session *s);
