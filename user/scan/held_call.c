/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choose the thread that carries out a call. */
#include "user/scan/held_call.h"

#include <errno.h>
#include <stdlib.h>

#include "user/lib/cleanup.h"

int held_make(struct held_caller *by, struct thread_request *r)
{
	r->insn = by->places.insn;
	r->back = by->places.back;
	return by->holder ? by->holder->call(by->holder->ctx, r) : thread_call_do(by->call, r);
}

static int held_call_by(struct held_caller *by, pid_t tid, int (*work)(struct held_caller *by, void *ctx),
			void *ctx)
{
	int err = thread_call_begin(by->call, tid, by->places.insn, &by->places.back);

	if (err)
		return err;
	err = work(by, ctx);
	if (thread_call_end(by->call))
		err = -ESRCH;
	return err == -EBUSY ? -EAGAIN : err;
}

int held_call(struct held_caller *by, int (*work)(struct held_caller *by, void *ctx), void *ctx)
{
	auto_free struct thread_call *call = malloc(sizeof(*call));
	int err = call ? -EBUSY : -ENOMEM;

	if (by->holder)
		return by->holder->call ? work(by, ctx) : -ENOTSUP;
	by->call = call;
	for (size_t i = 0; i < by->held->nr && err == -EBUSY; i++) {
		const struct stopped_thread *t = &by->held->threads[i];

		/* Others are in other kinds of stop, from which they must not run. */
		if (t->state != STOP_TAKEN || t->stop != STOP_ASKED)
			continue;
		outliving_begin(by->outliving);
		err = held_call_by(by, t->tid, work, ctx);
		outliving_end(by->outliving);
	}
	by->call = NULL;
	return err;
}
