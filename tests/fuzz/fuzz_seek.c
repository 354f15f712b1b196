/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a seek point of a recording: no crash, bounded memory, and a report or a reason (F4, F5).
 * Two lengths and a choice, then the seek point, records of its state, and records behind it; chunks and checksums
 * are right.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/stream_shape.h"
#include "user/lib/log.h"
#include "user/report/output.h"
#include "user/report/report_rows.h"
#include "user/session/session.h"
#include "user/session/session_replay.h"
#include "user/stream/seek.h"
#include "user/stream/span.h"

struct file {
	u8 bytes[4 * MAX_INPUT];
	size_t nr;
	u32 number; /* of the next chunk */
};

static void add(struct file *f, u8 kind, const u8 *data, size_t len)
{
	u8 *chunk = f->bytes + f->nr;

	memcpy(chunk + STREAM_HEADER_LEN, data, len);
	f->nr += seal(chunk, len, len, f->number++, 0);
	chunk[16] = kind;
	le32_put(chunk, crc32c(0, chunk + 4, STREAM_HEADER_LEN - 4 + len));
}

/* Take the next @len of the @*left bytes at *@data, or those that are left. */
static size_t take(const u8 **data, size_t *left, size_t len)
{
	len = len < *left ? len : *left;
	*data += len;
	*left -= len;
	return len;
}

static void make(struct file *f, const u8 *data, size_t size)
{
	static const u8 end[] = { OP_RECORD, STREAM_END, 0 };
	static struct file state;
	const u8 *head, *records, *p = data + 3;
	size_t left = size - 3, head_len, records_len;

	head = p;
	head_len = take(&p, &left, data[0]);
	records = p;
	records_len = take(&p, &left, data[1]);
	state.nr = begin(state.bytes);
	state.number = 1;
	add(&state, STREAM_CHUNK_RECORDS, records, records_len);
	if (data[2] & 1)
		add(&state, STREAM_CHUNK_RECORDS, end, sizeof(end));
	f->nr = begin(f->bytes);
	f->number = 1;
	add(f, STREAM_CHUNK_STATE, state.bytes, state.nr);
	add(f, STREAM_CHUNK_SEEK, head, head_len);
	add(f, STREAM_CHUNK_RECORDS, p, left);
	if (data[2] & 2)
		add(f, STREAM_CHUNK_RECORDS, end, sizeof(end));
}

static void say_nothing(void *ctx, enum log_level level, const char *line)
{
	(void)ctx, (void)level, (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct file f;
	static FILE *nowhere;
	struct span span;
	const struct session_options so = { .command = "report", .max_memory = 16 << 20, .between = &span };
	const struct output_options oo = { .report = { .sort = &report_keys[0], .top = 10 } };
	struct outputs *outs;
	struct session *s;
	const char *why;
	char path[32];
	int fd, err;

	if (size < 3 || size > MAX_INPUT)
		return 0;
	make(&f, data, size);
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	log_divert(say_nothing, NULL);
	fd = memfd_create("seek", MFD_CLOEXEC);
	if (!nowhere || outputs_new(&outs, &oo, nowhere) || fd < 0 || span_parse(&span, "1h,end", &why))
		abort();
	span.marks[SPAN_FROM].ns = 1ULL << (data[2] >> 2);
	if (write(fd, f.bytes, f.nr) != (ssize_t)f.nr)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = session_new_replay(&s, &so, outs, path);
	if (!err) {
		if (session_report(s))
			abort();
		session_free(s);
	}
	outputs_free(outs);
	close(fd);
	return 0;
}
