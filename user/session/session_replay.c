/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session on a file: a recording, or a list of events in words. */
#include "user/session/session_replay.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/session/session_private.h"
#include "user/session/session_span.h"
#include "user/session/source_recording.h"
#include "user/stream/event_list_read.h"
#include "user/stream/seek.h"
#include "user/stream/stream_read.h"

enum { PORTION = 256 * 1024, PROGRESS_NS = 200 * 1000 * 1000 };

/* A file that is being read, and how far, for a terminal. */
struct progress {
	const char *path;
	struct event_list_reader
		*list; /* borrowed; turns a list of events into a recording; NULL = it is one */
	u64 size;      /* bytes; 0 = show nothing */
	u64 done;
	u64 shown_ns; /* 0 = not yet */
};

static void progress_init(struct progress *p, const struct session_options *o, FILE *in)
{
	struct stat st;

	if (o->shows_progress && isatty(STDERR_FILENO) && !fstat(fileno(in), &st) && S_ISREG(st.st_mode))
		p->size = (u64)st.st_size;
}

static void progress_add(struct progress *p, size_t bytes)
{
	char text[256];
	u64 now;

	p->done += bytes;
	if (!p->size)
		return;
	now = clock_now_ns();
	if (now - p->shown_ns < PROGRESS_NS)
		return;
	/* A short file is read before the second call: do not show it. */
	if (p->shown_ns) {
		snprintf(text, sizeof(text), "%3u %%  %s",
			 (unsigned int)(p->done < p->size ? p->done * 100 / p->size : 100), p->path);
		log_status(text);
	}
	p->shown_ns = now;
}

static int feed_state(void *ctx, const void *data, size_t len)
{
	const struct session *s = ctx;

	return source_recording_feed(s->source, data, len);
}

static int only_check(void *ctx, const void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
	return 0;
}

/* Begin at the last seek point before the part that is wanted. One byte was read. 1; 0 = not done; or -errno. */
static int session_replay_skip(struct session *s, FILE *in)
{
	struct seek_point p;
	struct stat st;
	int err;

	if (!s->span.span || fstat(fileno(in), &st) || !S_ISREG(st.st_mode) ||
	    lseek(fileno(in), 0, SEEK_CUR) != 1 || !seek_find(fileno(in), s->span.span, &p))
		return 0;
	/* Where it is damaged, reading from the start says so. */
	if (seek_read_state(fileno(in), &p, only_check, NULL))
		return 0;
	debug("record: reading begins at byte %" PRIu64, p.offset);
	session_fill_start(s, p.start_ns);
	err = seek_read_state(fileno(in), &p, feed_state, s);
	if (!err)
		err = source_recording_resume(s->source, &p);
	if (!err && lseek(fileno(in), (off_t)p.offset, SEEK_SET) < 0)
		err = -errno;
	return err ? err : 1;
}

static ssize_t session_replay_read_some(int fd, u8 *buf)
{
	return TEMP_FAILURE_RETRY(read(fd, buf, PORTION));
}

static bool session_replay_is_unwanted(const struct session *s)
{
	return s->options->is_unwanted && s->options->is_unwanted();
}

/* Read @fd to its end, or to that of the span. @buf has the first @n bytes. */
static int feed_rest(struct session *s, struct progress *progress, int fd, u8 *buf, ssize_t n)
{
	const char *path = progress->path;
	int err = 0;

	while (!err && n > 0) {
		err = progress->list ? event_list_feed(progress->list, (char *)buf, (size_t)n)
				     : source_recording_feed(s->source, buf, (size_t)n);
		progress_add(progress, (size_t)n);
		recorder_show_list(s->recorder);
		if (!err && session_span_is_over(s))
			break;
		if (!err)
			err = session_replay_is_unwanted(s) ? -ECANCELED : 0;
		if (!err)
			n = session_replay_read_some(fd, buf);
	}
	log_status(NULL);
	if (err == STREAM_HALT)
		return 0;
	if (!err && n < 0) {
		err = -errno;
		error("%s: %s: %s", s->options->command, path, strerror(-err));
	}
	return err;
}

/* Read all of @in into the session. */
static int feed_all(struct session *s, struct progress *progress, FILE *in)
{
	auto_free u8 *buf = malloc(PORTION);
	int err = buf ? 0 : -ENOMEM;
	ssize_t n;

	if (!err && !progress->list)
		err = session_replay_skip(s, in);
	if (err < 0)
		return err;
	progress_init(progress, s->options, in);
	/* The byte that session_replay_read_file() has put back. Others are read as they come: a pipe may be slow. */
	n = err ? session_replay_read_some(fileno(in), buf) : (ssize_t)fread(buf, 1, 1, in);
	return feed_rest(s, progress, fileno(in), buf, n);
}

/* Reading has ended with @err. */
static int end_reading(struct session *s, int err, const struct progress *progress)
{
	int list_err = progress->list && !err ? event_list_end(progress->list) : 0;
	int end = source_recording_finish(s->source);
	const char *path = progress->path, *why = progress->list ? event_list_why(progress->list) : "";
	u64 nr_unknown = source_recording_unknown(s->source);

	why = *why ? why : source_recording_why(s->source);
	end = list_err ? list_err : end;
	if (err == -ECANCELED)
		return err;
	if (nr_unknown)
		warn("%s: %s: %" PRIu64
		     " records skipped: a later heaptap wrote them, whose kinds are not known here",
		     s->options->command, path, nr_unknown);
	err = err ? err : end;
	if (!err || session_span_is_over(s))
		return session_span_finish(s, path);
	if (!s->nr_processes) {
		error("%s: %s: %s", s->options->command, path, why);
		return err;
	}
	error("%s: %s: %s: the report covers only the events before it", s->options->command, path, why);
	s->is_damaged = true;
	return session_span_finish(s, path);
}

/* Let session_go_on() read on where the span ends. Without a regular file it cannot. */
static void prepare_halt(struct session *s, int fd)
{
	struct stat st;

	if (!s->options->keeps_place || !s->span.span || !session_span_is_simple(s->span.span) || s->outs ||
	    fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return;
	s->halted_fd = fd;
	source_recording_halt(s->source);
}

int session_go_on(struct session *s, const struct span *between, const char *path)
{
	auto_free u8 *buf = malloc(PORTION);
	struct progress progress = { .path = path };
	u64 offset;
	int err;

	if (!buf || !session_span_extend(s, between))
		return -EAGAIN;
	debug("record: reading goes on");
	err = source_recording_go_on(s->source, &offset);
	if (err == STREAM_HALT)
		return end_reading(s, 0, &progress);
	if (!err && lseek(s->halted_fd, (off_t)offset, SEEK_SET) < 0)
		err = -errno;
	if (!err)
		err = feed_rest(s, &progress, s->halted_fd, buf, session_replay_read_some(s->halted_fd, buf));
	return end_reading(s, err, &progress);
}

static int session_replay_read(struct session *s, FILE *in, const char *path, bool is_list)
{
	const struct event_list_sink sink = { s, feed_state };
	struct progress progress = { .path = path };
	int err = is_list ? event_list_reader_new(&progress.list, &sink) : 0;

	s->ops = &source_recording;
	if (!err)
		err = source_recording_new(&s->source, s, s->bound.max,
					   is_list ? event_list_line(progress.list) : NULL);
	if (err) {
		error("%s: %s: %s", s->options->command, path, strerror(-err));
	} else {
		if (!is_list)
			prepare_halt(s, fileno(in));
		err = end_reading(s, feed_all(s, &progress, in), &progress);
	}
	event_list_reader_free(progress.list);
	return err;
}

static int session_replay_read_file(struct session *s, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	auto_fclose FILE *in = is_stdin ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "re");
	int err = in ? 0 : -errno;
	ssize_t nr = -1;
	u8 first = 0;

	if (!err) {
		nr = TEMP_FAILURE_RETRY(read(fileno(in), &first, 1));
		err = nr < 0 ? -errno : 0;
	}
	if (err) {
		error("%s: %s: %s", s->options->command, path, strerror(-err));
		return err;
	}
	if (!nr) {
		error("%s: %s: is empty", s->options->command, path);
		return -ENODATA;
	}
	if (first != (u8)STREAM_MAGIC[0] && !isprint(first) && !isspace(first)) {
		error("%s: %s: is neither a recording nor a list of events", s->options->command, path);
		return -EINVAL;
	}
	if (first == '{') {
		error("%s: %s: is neither a recording nor a list of events; 'heaptap report FILE' and "
		      "'heaptap diff' read reports saved as JSON",
		      s->options->command, path);
		return -EINVAL;
	}
	if (ungetc(first, in) == EOF)
		return -ENOMEM;
	return session_replay_read(s, in, path, first != (u8)STREAM_MAGIC[0]);
}

int session_replay_status(int err)
{
	if (err == -ENOMEM)
		return STATUS_IMPOSSIBLE;
	return err == -ERANGE || err == -EOPNOTSUPP ? STATUS_USAGE : STATUS_NO_TARGET;
}

int session_new_replay(struct session **out, const struct session_options *o, struct outputs *outs,
		       const char *path)
{
	struct session *s;
	int err = session_alloc(&s, o, outs);

	if (err) {
		error("%s: %s: %s", o->command, path, strerror(-err));
		return err;
	}
	s->is_replayed = true;
	if (o->between)
		session_span_set(s, o->between);
	err = session_replay_read_file(s, path);
	if (err) {
		session_free(s);
		return err;
	}
	*out = s;
	return 0;
}
