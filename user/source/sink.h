/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The receiver of what a source delivers. */
#pragma once

#include "bpf/event.h"

/* Where records go, in the order of the calls of each process. */
struct sink {
	void *ctx;
	/* @rec is one record of bpf/event.h, @len its bytes; valid during the call. 0, or -errno to stop polling. */
	int (*record)(void *ctx, const struct event_header *rec, size_t len);
	/* As record(), for @nr heap events of one process, at least one. It may change them. NULL: use record(). */
	int (*heap_events)(void *ctx, struct heap_event *evs, size_t nr);
	/* Records are only kept here. They are handled before the next poll() with another sink. */
	bool is_aside;
};
