/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes of a peer, to both ends: frames, handshake, commands, blocks and verdicts, streams of records (G1, G3). */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/stream_shape.h"
#include "user/heap/heap.h"
#include "user/remote/remote_stream.h"
#include "user/remote/wire_auth.h"
#include "user/remote/wire_chain.h"
#include "user/remote/wire_command.h"
#include "user/remote/wire_scan.h"

static int on_record(void *ctx, const struct event_header *rec, size_t len)
{
	struct remote_stream *s = *(struct remote_stream **)ctx;
	struct target *t;

	if (len < sizeof(*rec))
		abort();
	/* As a session does with a process that it hears of. */
	if (rec->kind != EVENT_MAPS || remote_stream_target(s, rec->pid, &t))
		return 0;
	if (remote_stream_update(s, t) > 0)
		abort();
	target_free(t);
	return 0;
}

static void stream(const uint8_t *data, size_t size)
{
	struct module_table *modules;
	struct alloc_table *fns;
	struct remote_stream *s;
	struct sink sink = { &s, on_record };

	if (module_table_new(&modules))
		return;
	if (!alloc_table_new(&fns) && !remote_stream_new(&s, modules, fns, &stream_zstd)) {
		size_t half = size / 2;

		if (!remote_stream_feed(s, data, half, &sink)) {
			remote_stream_restart(s, size & 1);
			(void)!remote_stream_feed(s, data, size, &sink);
		}
		remote_stream_free(s);
	}
	alloc_table_free(fns);
	module_table_free(modules);
}

/* The first byte says how the others become one. */
static void shaped(const uint8_t *data, size_t size)
{
	static u8 bytes[4 * MAX_INPUT];

	if (size && size <= MAX_INPUT)
		stream(bytes, shape(bytes, data[0], data + 1, size - 1));
}

static void handshake(const uint8_t *data, size_t size, bool is_target)
{
	static const u8 token[WIRE_TOKEN_LEN] = { 1 };
	struct wire_auth auth;
	struct wire_out out;
	struct wire_in in;
	struct wire_frame f;
	int err;

	wire_in_init(&in, is_target ? WIRE_HOST : WIRE_TARGET);
	wire_out_init(&out, 4096);
	err = wire_auth_begin(&auth, is_target, token, &out);
	if (!err)
		err = wire_in_feed(&in, data, size);
	while (!err && wire_in_next(&in, &f) == 1)
		err = wire_auth_take(&auth, &f, &out);
	/* A guessed HMAC is never right. */
	if (err == 1)
		abort();
	wire_in_fini(&in);
	wire_out_fini(&out);
}

static void bodies(const uint8_t *data, size_t size)
{
	struct wire_view v = { data, size, false };
	struct wire_start *start = malloc(sizeof(*start));
	struct wire_scan_at at = { 0 };
	struct scan_block_info info;
	struct heap_block block;
	struct wire_scan_wish wish;
	struct tuning tuning;

	if (start && !wire_get_start(&v, start) && !tuning_is_sane(&start->tuning))
		abort();
	free(start);
	v = (struct wire_view){ data, size, false };
	if (!wire_get_wish(&v, &wish) && size != WIRE_WISH_LEN)
		abort();
	v = (struct wire_view){ data, size, false };
	if (!wire_get_tune(&v, &tuning) && (!tuning_is_sane(&tuning) || size != WIRE_TUNE_LEN))
		abort();
	v = (struct wire_view){ data, size, false };
	while (v.len && !wire_get_block(&v, &at, &block))
		if (block.size >> 48)
			abort();
	at = (struct wire_scan_at){ 0 };
	v = (struct wire_view){ data, size, false };
	while (v.len && !wire_get_verdict(&v, &at, &info))
		if (info.verdict >= NR_SCAN_VERDICTS)
			abort();
}

/* Chains of pointers: a byte says how many bytes of it are steps, the rest is the end. */
static void chains(const uint8_t *data, size_t size)
{
	size_t steps = size ? data[0] : 0;
	struct scan_chain *chain = calloc(1, sizeof(*chain));
	struct scan_step step;
	struct wire_view v;
	char name[64];
	taddr_t at = 0;

	if (!chain)
		return;
	if (steps > size)
		steps = size;
	v = (struct wire_view){ data, steps, false };
	while (v.len && !wire_get_step(&v, &at, &step))
		if (step.addr >> 56 || step.size >> 48)
			abort();
	v = (struct wire_view){ data + steps, size - steps, false };
	memset(name, 'x', sizeof(name));
	if (wire_get_chain_end(&v, chain, name, sizeof(name)) == 1 &&
	    (chain->root.kind > ROOT_KERNEL || strnlen(name, sizeof(name)) == sizeof(name) ||
	     chain->root.map))
		abort();
	free(chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	switch (data[0] & 7) {
	case 0:
		shaped(data + 1, size - 1);
		break;
	case 1:
		handshake(data + 1, size - 1, true);
		break;
	case 2:
		handshake(data + 1, size - 1, false);
		break;
	case 3:
		chains(data + 1, size - 1);
		break;
	default:
		bodies(data + 1, size - 1);
	}
	return 0;
}
