/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a recording, or as a list of events: no crash, bounded memory, a report on what could be read (F4, F5).
 * The first byte chooses: the bytes as they are; or as records, or as columns of records,
 * in chunks with right lengths and checksums.
 */
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/stream_shape.h"
#include "user/lib/log.h"
#include "user/report/output.h"
#include "user/report/report_rows.h"
#include "user/session/session_private.h"
#include "user/session/source_recording.h"
#include "user/stream/event_list_read.h"

static int feed(void *ctx, const void *data, size_t len)
{
	const struct session *s = ctx;

	return source_recording_feed(s->source, data, len);
}

/* @list: NULL for a recording. */
static void read_all(struct session *s, struct event_list_reader *list, const u8 *data, size_t size)
{
	int err = 0;

	for (size_t at = 0; at < size && !err; at += 4096) {
		size_t nr = size - at < 4096 ? size - at : 4096;

		err = list ? event_list_feed(list, (const char *)data + at, nr) : feed(s, data + at, nr);
	}
	if (list && !err)
		err = event_list_end(list);
	if (err && list && event_list_why(list)[0])
		return;
	err = err ? err : source_recording_finish(s->source);
	if (err && !source_recording_why(s->source)[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static u8 stream[4 * MAX_INPUT];
	static FILE *nowhere;
	const struct session_options so = { .command = "report" };
	const struct output_options oo = { .report = { .sort = &report_keys[0], .top = 10 } };
	struct event_list_reader *list = NULL;
	struct outputs *outs;
	struct session *s;

	if (!size || size > MAX_INPUT)
		return 0;
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	log_set_level(LOG_ERROR);
	if (!nowhere || outputs_new(&outs, &oo, nowhere))
		abort();
	if (session_alloc(&s, &so, outs))
		abort();
	s->is_replayed = true;
	s->ops = &source_recording;
	/* Names that the input makes up are not looked for. */
	module_table_set_remote(s->modules);
	size = shape(stream, data[0], data + 1, size - 1);
	if (size && stream[0] != (u8)STREAM_MAGIC[0] &&
	    event_list_reader_new(&list, &(struct event_list_sink){ s, feed }))
		abort();
	if (source_recording_new(&s->source, s, 16 << 20, list ? event_list_line(list) : NULL))
		abort();
	read_all(s, list, stream, size);
	if (s->nr_processes && session_report(s))
		abort();
	session_free(s);
	outputs_free(outs);
	event_list_reader_free(list);
	return 0;
}
