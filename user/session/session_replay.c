/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session on a file: a recording, or a list of events in words. */
#include <ctype.h>
#include <errno.h>
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
#include "user/session/source_replay.h"
#include "user/session/source_recording.h"
#include "user/stream/seek.h"

enum { PORTION = 256 * 1024, PROGRESS_NS = 200 * 1000 * 1000 };

/* Progress of the reading of a file, for a terminal. */
struct progress {
	const char *path;
	u64 size; /* bytes; 0 = show nothing */
	u64 done;
	u64 shown_ns; /* 0 = not yet */
};

static void progress_init(struct progress *p, const struct session_options *o, FILE *in, const char *path)
{
	struct stat st;

	*p = (struct progress){ .path = path };
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
static int skip(struct session *s, FILE *in)
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

static ssize_t read_some(FILE *in, u8 *buf)
{
	return TEMP_FAILURE_RETRY(read(fileno(in), buf, PORTION));
}

/* Read all of @in into the session; source_recording_why() explains an error. */
static int feed_all(struct session *s, FILE *in, const char *path)
{
	auto_free u8 *buf = malloc(PORTION);
	struct progress progress;
	int err = buf ? skip(s, in) : -ENOMEM;
	ssize_t n = 0;

	progress_init(&progress, s->options, in, path);
	/* The byte that read_file() has put back. All others are read as they come: a pipe may be slow. */
	if (err >= 0)
		n = err ? read_some(in, buf) : (ssize_t)fread(buf, 1, 1, in);
	err = err < 0 ? err : 0;
	while (!err && n > 0) {
		err = source_recording_feed(s->source, buf, (size_t)n);
		progress_add(&progress, (size_t)n);
		recorder_show_list(s->recorder);
		if (!err && session_span_is_over(s))
			break;
		n = read_some(in, buf);
	}
	log_status(NULL);
	if (!err && n < 0) {
		err = -errno;
		error("%s: %s: %s", s->options->command, path, strerror(-err));
	}
	return err;
}

static int read_recording(struct session *s, FILE *in, const char *path)
{
	int err, end;

	s->ops = &source_recording;
	err = source_recording_new(&s->source, s, s->options->max_memory);
	if (err) {
		error("%s: %s: %s", s->options->command, path, strerror(-err));
		return err;
	}
	err = feed_all(s, in, path);
	end = source_recording_finish(s->source);
	err = err ? err : end;
	if (!err || session_span_is_over(s))
		return session_span_finish(s, path);
	if (!s->nr_processes) {
		error("%s: %s: %s", s->options->command, path, source_recording_why(s->source));
		return err;
	}
	error("%s: %s: %s: the report covers only the events before it", s->options->command, path,
	      source_recording_why(s->source));
	s->is_damaged = true;
	return session_span_finish(s, path);
}

/* Add the processes of the file, with their mappings. */
static int add_replayed(struct session *s)
{
	struct target *t;

	for (size_t i = 0; (t = source_replay_target(s->source, i)); i++) {
		struct process *p;
		int err = session_new_process(s, &p);

		if (err)
			return err;
		p->target = t;
		p->is_target_borrowed = true;
		err = session_begin_check(s, p);
		if (err)
			return err;
		recorder_process(s->recorder, t, 0);
	}
	return 0;
}

static void on_mark(void *ctx, u64 time_ns, const char *name)
{
	session_mark(ctx, time_ns, name);
}

static int read_words(struct session *s, FILE *in, const char *path)
{
	int err;

	s->ops = &source_replay;
	err = source_replay_read(&s->source, in, path, s->modules, s->fns);
	if (!err)
		source_replay_set_marker(s->source, on_mark, s);
	if (!err)
		err = add_replayed(s);
	while (!err && !source_replay_is_done(s->source))
		err = session_poll(s);
	return err ? err : session_span_finish(s, path);
}

static int read_file(struct session *s, const char *path)
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
		error("%s: %s: is neither a recording nor a list of events; 'heaptap diff' reads reports "
		      "saved as JSON",
		      s->options->command, path);
		return -EINVAL;
	}
	if (ungetc(first, in) == EOF)
		return -ENOMEM;
	return first == (u8)STREAM_MAGIC[0] ? read_recording(s, in, path) : read_words(s, in, path);
}

int session_replay_status(int err)
{
	if (err == -ENOMEM)
		return STATUS_IMPOSSIBLE;
	return err == -ERANGE ? STATUS_USAGE : STATUS_NO_TARGET;
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
	err = read_file(s, path);
	if (err) {
		session_free(s);
		return err;
	}
	*out = s;
	return 0;
}
