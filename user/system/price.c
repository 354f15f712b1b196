/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many calls, at what a call costs. */
#include "user/system/price.h"

#include <string.h>

#include "user/session/session_live.h"
#include "user/session/session_price.h"
#include "user/source/call_price.h"

u64 price_call_ns(struct session *s)
{
	bool is_code = !strcmp(session_backend(s), "inline");

	return is_code ? CALL_BY_CODE_NS : call_price_ns(session_call_price(s));
}

void price_look(struct price *p, struct session *s, u64 now_ns)
{
	struct session_sums sums = session_sums(s, 0);
	u64 calls = sums.allocs + sums.frees;

	/* The counts of a process that executes another program begin anew. */
	if (p->time_ns && now_ns > p->time_ns && calls >= p->calls) {
		double rate = (double)(calls - p->calls) * 1e9 / (double)(now_ns - p->time_ns);

		p->calls_per_s = p->calls_per_s > 0 ? (p->calls_per_s + rate) / 2 : rate;
	}
	p->calls = calls;
	p->time_ns = now_ns;
	p->permyriad = (u32)(p->calls_per_s * (double)price_call_ns(s) / 1e5);
}
