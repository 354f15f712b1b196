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

static int read_all(struct session *s, const u8 *data, size_t size)
{
	int err = 0;

	for (size_t at = 0; at < size && !err; at += 4096)
		err = source_recording_feed(s->source, data + at, size - at < 4096 ? size - at : 4096);
	return err ? err : source_recording_finish(s->source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static u8 stream[4 * MAX_INPUT];
	static FILE *nowhere;
	const struct session_options so = { .command = "report" };
	const struct output_options oo = { .report = { .sort = &report_keys[0], .top = 10 } };
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
	if (source_recording_new(&s->source, s, 16 << 20, size && stream[0] != (u8)STREAM_MAGIC[0]))
		abort();
	if (read_all(s, stream, size) && !source_recording_why(s->source)[0])
		abort();
	if (s->nr_processes && session_report(s))
		abort();
	session_free(s);
	outputs_free(outs);
	return 0;
}
