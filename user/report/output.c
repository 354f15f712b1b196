/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Report files: names, formats, ownership; complete or not there at all. */
#include "user/report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "user/heap/heap.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash_index.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/lib/random.h"
#include "user/lib/wrap.h"
#include "user/lib/status.h"
#include "user/report/compressed.h"
#include "user/report/report_verdict.h"
#include "user/stream/kept.h"
#include "user/stream/out_name.h"
#include "user/target/target.h"

/*
 * A file that this run has made, and may replace. Size and time distinguish it from a later file with the same inode
 * number, and from an edited one.
 */
struct made {
	dev_t dev;
	ino_t ino;
	off_t size; /* bytes */
	struct timespec mtime;
};

/* One --output. */
struct output {
	const char *pattern; /* borrowed; as the user typed it */
	const char *name;    /* borrowed; its last part */
	const struct report_format *format;
	FILE *stream;	 /* borrowed; for standard output, and @device; else NULL */
	FILE *device;	 /* owned; /dev/null and the like; else NULL */
	int dir;	 /* owned; where the file goes */
	bool has_pid;	 /* %p: a file per process */
	bool is_varying; /* %n or %t: a name per report */
	bool has_failed; /* which was logged */
	bool has_told;	 /* its name was logged */
	enum packing packing;
	struct made *made; /* owned */
	size_t nr_made;
	struct kept kept; /* with --keep and a name per report */
	u64 *ended;	  /* owned; with has_pid: ended_mark() of those of the last report */
	size_t nr_ended;
	void **reserve; /* borrowed; that of the outputs; NULL = none */
};

/* Given back when a report lacks memory, which is then written again, with less in it. */
enum { RESERVE_BYTES = IS_AGENT ? 1 << 20 : 8 << 20, SHORT_TOP = 10, MAX_TOLD = 3 };

struct outputs {
	const struct output_options *options; /* borrowed */
	void *reserve;			      /* owned; RESERVE_BYTES of address space; NULL = none */
	size_t nr;
	u64 nr_reports;
	struct output list[];
};

/* The content of an output: a report, or the bytes of the file @fd. */
struct content {
	struct report report; /* its options are set for each output */
	int fd;		      /* borrowed; -1 = the report */
	pid_t pid;
};

static bool wants_color(u32 color, FILE *out)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (!out)
		return false;
	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	if ((no_color && *no_color) || !term || !strcmp(term, "dumb"))
		return false;
	return isatty(fileno(out));
}

struct report_options output_look(const struct output_options *o, FILE *out)
{
	struct report_options r = o->report;

	r.color = wants_color(o->color, out);
	r.is_terminal = out && isatty(fileno(out));
	if (out)
		r.width = wrap_width(out);
	return r;
}

static int output_refuse(const struct output *o, const char *why, int err)
{
	error("--output: %s: %s", o->pattern, why);
	return err;
}

/* The ending of the name chooses, else @format, which may be NULL. */
static int choose_format(struct output *o, const struct report_format *format)
{
	char endings[256] = "";
	size_t used = 0;
	const struct report_format *by_name = report_format_of(o->name, &o->packing);

	o->format = by_name ? by_name : format;
	if (o->format)
		return 0;
	for (const struct report_format *f = report_formats; f->name && used < sizeof(endings); f++)
		if (f->write)
			used += snprintf(endings + used, sizeof(endings) - used, " %s", f->ending);
	error("--output: %s: unknown ending, must be one of%s (with or without .gz behind it); "
	      "or name a format with --format",
	      o->pattern, endings);
	return -EINVAL;
}

/* Keep the directory of @o open, and check whether files can be made in it. */
static int output_open_directory(struct output *o)
{
	size_t len = o->name - o->pattern;
	auto_free char *directory = len ? strndup(o->pattern, len) : strdup(".");

	if (!directory)
		return output_refuse(o, strerror(ENOMEM), -ENOMEM);
	if (strchr(directory, '%'))
		return output_refuse(o, "placeholders belong in the name, not in the directory", -EINVAL);
	o->dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (o->dir < 0 || faccessat(o->dir, ".", W_OK | X_OK, AT_EACCESS)) {
		int err = -errno;

		return output_refuse(o, strerror(-err), err);
	}
	return 0;
}

/* @name must not exist, unless it is a file that may be replaced. */
static int output_check_existing(const struct output *o, const char *name, bool force)
{
	struct stat st;

	if (fstatat(o->dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : output_refuse(o, strerror(errno), -errno);
	if (!S_ISREG(st.st_mode))
		return output_refuse(o, "exists and is not a regular file", -EEXIST);
	if (!force)
		return output_refuse(o, "existing output file is not overwritten without --force", -EEXIST);
	return 0;
}

/*
 * Open @o if it is a device: 1; 0 if it is none; or -errno, logged. A device is written in place, because a file cannot
 * take its place. FIFOs and sockets are none: their readers may be somebody else's.
 */
static int open_device(struct output *o)
{
	struct stat st;
	int fd;

	if (lstat(o->pattern, &st) || !S_ISCHR(st.st_mode))
		return 0;
	fd = open(o->pattern, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && S_ISCHR(st.st_mode))
		o->device = fdopen(fd, "w");
	if (o->device) {
		o->stream = o->device;
		return 1;
	}
	if (fd >= 0)
		close(fd);
	return output_refuse(o, strerror(errno), -errno);
}

static int output_init(struct output *o, const char *pattern, const struct output_options *options)
{
	const struct report_format *format = options->format ? options->format : report_formats;
	static const struct out_values sample = { .pid = INT_MAX, .number = UINT32_MAX, .time = "time" };
	char name[NAME_MAX + 1];
	int err;

	*o = (struct output){ .pattern = pattern, .name = path_name(pattern), .dir = -1 };
	if (!strcmp(pattern, "-")) {
		o->stream = stdout;
		o->format = format;
		return 0;
	}
	err = open_device(o);
	if (err < 0)
		return err;
	if (err)
		return choose_format(o, format);
	err = choose_format(o, options->format);
	if (err)
		return err;
	err = out_expand(o->name, &sample, name);
	if (err == -EINVAL)
		return output_refuse(o, "placeholders are %p, %n, %t and %%", err);
	if (err)
		return output_refuse(o, strerror(-err), err);
	o->has_pid = strstr(o->name, "%p");
	o->is_varying = strstr(o->name, "%n") || strstr(o->name, "%t");
	o->kept.what = "report";
	err = output_open_directory(o);
	return err ? err : output_check_existing(o, name, options->force);
}

int outputs_status(int err)
{
	return err == -ENOMEM ? STATUS_IMPOSSIBLE : STATUS_USAGE;
}

/* Compressed data would only disturb a terminal. */
static int check_terminal(const struct output *o)
{
	if (!o->stream || !o->format->is_binary || !isatty(fileno(o->stream)))
		return 0;
	return output_refuse(o, "no text for a terminal: name a file", -EINVAL);
}

int outputs_new(struct outputs **out, const struct output_options *options, FILE *standard)
{
	size_t nr = options->nr_names;
	struct outputs *outs = calloc(1, sizeof(*outs) + (nr + 2) * sizeof(*outs->list));
	int err = 0;

	if (!outs) {
		error("--output: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	outs->options = options;
	/* Not touched: where memory is limited by what is used, nothing is kept from others. */
	outs->reserve = mmap(NULL, RESERVE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (outs->reserve == MAP_FAILED)
		outs->reserve = NULL;
	for (size_t i = 0; i < nr && !err; i++)
		err = output_init(&outs->list[outs->nr++], options->names[i], options);
	if (!nr) {
		outs->nr = 1;
		err = output_init(&outs->list[0], "-", options);
		outs->list[0].stream = standard;
	}
	for (size_t i = 0; i < outs->nr && !err; i++)
		err = check_terminal(&outs->list[i]);
	if (err) {
		outputs_free(outs);
		return err;
	}
	if (options->annotations)
		outs->list[outs->nr++] = (struct output){ .pattern = "-",
							  .name = "-",
							  .dir = -1,
							  .stream = stdout,
							  .format = options->annotations };
	for (size_t i = 0; i < outs->nr; i++)
		outs->list[i].reserve = &outs->reserve;
	*out = outs;
	return 0;
}

int outputs_new_stream(struct outputs **out, const struct output_options *o, FILE *stream, const char *name)
{
	struct outputs *outs = calloc(1, sizeof(*outs) + sizeof(*outs->list));

	if (!outs)
		return -ENOMEM;
	outs->options = o;
	outs->nr = 1;
	outs->list[0] = (struct output){
		.pattern = "-", .name = name, .stream = stream, .dir = -1, .format = report_format_find(name)
	};
	*out = outs;
	return 0;
}

void outputs_free(struct outputs *outs)
{
	if (!outs)
		return;
	for (size_t i = 0; i < outs->nr; i++) {
		if (outs->list[i].dir >= 0)
			close(outs->list[i].dir);
		if (outs->list[i].device)
			fclose(outs->list[i].device);
		free(outs->list[i].made);
		free(outs->list[i].ended);
		kept_fini(&outs->list[i].kept);
	}
	if (outs->reserve)
		munmap(outs->reserve, RESERVE_BYTES);
	free(outs);
}

/* A file whose report is being written. */
struct temporary {
	int fd; /* owned */
	char name
		[32]; /* in the directory of the output; "" = the file has no name, and goes if heaptap is killed */
};

static int choose_name(char name[32])
{
	u64 random;
	int err = random_fill(&random, sizeof(random));

	if (err)
		return err;
	snprintf(name, 32, ".heaptap-%016" PRIx64, random);
	return 0;
}

/* Make a file without a name in the directory of @o; or, where the file system cannot, with a random name. */
static int open_temporary(const struct output *o, char name[32])
{
	int fd = openat(o->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600), err;

	*name = '\0';
	if (fd >= 0)
		return fd;
	err = choose_name(name);
	if (err)
		return err;
	fd = openat(o->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int output_copy_file(FILE *out, int fd)
{
	char bytes[16384];
	off_t at = 0;
	ssize_t len;

	while ((len = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		if (fwrite(bytes, 1, len, out) != (size_t)len)
			return -errno;
		at += len;
	}
	if (len < 0 || fflush(out))
		return -errno;
	return 0;
}

static int output_write_plain(const struct output *o, FILE *out, const struct content *c)
{
	return c->fd < 0 ? o->format->write(out, &c->report) : output_copy_file(out, c->fd);
}

static int write_compressed(const struct output *o, FILE *out, const struct content *c, enum compression how)
{
	struct compressed *z;
	int err = compressed_new(&z, out, how);
	int end_err;

	if (err)
		return err;
	err = output_write_plain(o, compressed_file(z), c);
	end_err = compressed_end(z);
	return err ? err : end_err;
}

static int write_content(const struct output *o, FILE *out, const struct content *c)
{
	if (!IS_AGENT && o->packing == PACK_GZIP)
		return write_compressed(o, out, c,
					o->format->wants_tape ? COMPRESSION_GZIP_FAST : COMPRESSION_GZIP);
	if (!IS_AGENT && o->packing == PACK_ZSTD)
		return write_compressed(o, out, c, COMPRESSION_ZSTD);
	return output_write_plain(o, out, c);
}

static int write_fd(const struct output *o, const struct content *c, int fd)
{
	FILE *file = fdopen(fd, "w");
	int err;

	if (!file) {
		err = -errno;
		close(fd);
		return err;
	}
	err = write_content(o, file, c);
	if (!err)
		err = out_give_to_caller(fd);
	if (fclose(file) && !err)
		err = -errno;
	return err;
}

/* The entry of the file @st, NULL if this run did not make it. */
static struct made *find_made(const struct output *o, const struct stat *st)
{
	for (struct made *m = o->made; m < o->made + o->nr_made; m++)
		if (m->dev == st->st_dev && m->ino == st->st_ino && m->size == st->st_size &&
		    m->mtime.tv_sec == st->st_mtim.tv_sec && m->mtime.tv_nsec == st->st_mtim.tv_nsec)
			return m;
	return NULL;
}

/* Remember the file @st in place of @old; or, if that is NULL, in an entry for which there is room. */
static void output_remember(struct output *o, struct made *old, const struct stat *st)
{
	struct made made = { st->st_dev, st->st_ino, st->st_size, st->st_mtim };

	if (o->is_varying)
		return;
	if (old)
		*old = made;
	else
		o->made[o->nr_made++] = made;
}

/* Give the file @fd, which has none, a name that nothing has. */
static int link_as(const struct output *o, int fd, const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, o->dir, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Give @tmp the name @name, which nothing has. */
static int publish_new(const struct output *o, const char *tmp, const char *name)
{
	if (!renameat2(o->dir, tmp, o->dir, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* NFS and some others do not know the flag; link() does not replace a file either. */
	if (linkat(o->dir, tmp, o->dir, name, 0))
		return -errno;
	return unlinkat(o->dir, tmp, 0) ? -errno : 0;
}

/* Put @t in the place of the file @name. Only rename() replaces a file, and needs a name. */
static int output_replace(const struct output *o, struct temporary *t, const char *name)
{
	int err = *t->name ? 0 : choose_name(t->name);

	if (!err && t->fd >= 0) {
		err = link_as(o, t->fd, t->name);
		if (err)
			*t->name = '\0';
	}
	if (err)
		return err;
	return renameat(o->dir, t->name, o->dir, name) ? -errno : 0;
}

/* Give the finished file @t its name. */
static int output_publish(struct output *o, struct temporary *t, const char *name, bool force)
{
	struct stat st;
	struct stat old;
	int err;

	/* First: a file that has its name but is not remembered would be taken for somebody else's. */
	if (!o->is_varying && array_extend(o->made, o->nr_made))
		return -ENOMEM;
	if (*t->name ? fstatat(o->dir, t->name, &st, AT_SYMLINK_NOFOLLOW) : fstat(t->fd, &st))
		return -errno;
	if (fstatat(o->dir, name, &old, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			return -errno;
		err = *t->name ? publish_new(o, t->name, name) : link_as(o, t->fd, name);
		if (!err)
			output_remember(o, NULL, &st);
		return err;
	}
	if (!S_ISREG(old.st_mode) || !(force || find_made(o, &old)))
		return -EEXIST;
	err = output_replace(o, t, name);
	if (!err)
		output_remember(o, find_made(o, &old), &st);
	return err;
}

static int output_write_file(struct output *o, const struct content *c, const char *name, bool force)
{
	struct temporary t = { .fd = -1 };
	int fd = open_temporary(o, t.name);
	int err = 0;

	if (fd < 0)
		return fd;
	/* Writing closes the file, and a file without a name would be gone then. */
	if (!*t.name) {
		t.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		err = t.fd < 0 ? -errno : 0;
	}
	if (err)
		close(fd);
	else
		err = write_fd(o, c, fd);
	if (!err)
		err = output_publish(o, &t, name, force);
	if (err && *t.name)
		unlinkat(o->dir, t.name, 0);
	cleanup_close(&t.fd);
	return err;
}

/* Log a failure once, and the name of the first report. */
static int output_tell(struct output *o, const char *name, int err)
{
	int len = o->name - o->pattern; /* of the directory */

	/* The reader of a pipe has what it wants, and who breaks off knows that. */
	if ((err == -EPIPE && o->stream) || err == -ECANCELED)
		o->has_failed = true;
	if (err && !o->has_failed)
		error("report: %.*s%s: %s", len, o->pattern, name,
		      err == -EEXIST ? "existing output file is not overwritten without --force"
				     : strerror(-err));
	if (!err && !o->has_told && !o->stream)
		info("report: %.*s%s", len, o->pattern, name);
	o->has_failed = err;
	o->has_told |= !err;
	return err;
}

/* @err: there is not enough memory for the report @c. True: try it once more, now with less. */
static bool is_shortened(const struct output *o, struct content *c, int err)
{
	if (err != -ENOMEM || c->fd >= 0 || c->report.is_short)
		return false;
	if (o->reserve && *o->reserve)
		munmap(take_ptr(*o->reserve), RESERVE_BYTES);
	c->report.is_short = true;
	c->report.symbolizer = NULL;
	if (!c->report.options.top || c->report.options.top > SHORT_TOP)
		c->report.options.top = SHORT_TOP;
	warn("report: %s: not enough memory: the report is without names, and text has %d callers", o->name,
	     SHORT_TOP);
	return true;
}

static int write_named(struct output *o, struct content *c, struct out_values *v,
		       const struct output_options *options)
{
	char name[NAME_MAX + 1];
	int err;

	v->pid = c->pid;
	err = out_expand(o->name, v, name);
	c->report.options = output_look(options, NULL);
	if (!err)
		err = output_write_file(o, c, name, options->force);
	if (is_shortened(o, c, err))
		err = output_write_file(o, c, name, options->force);
	if (!err && options->keep && o->is_varying)
		kept_last(&o->kept, o->dir, name, v->number, options->keep);
	return output_tell(o, err ? o->name : name, err);
}

static int write_stream(struct output *o, struct content *c, u64 number, const struct output_options *options)
{
	int err;

	c->report.options = output_look(options, o->stream);
	log_status(NULL);
	if (number > 1)
		putc('\n', o->stream);
	err = write_content(o, o->stream, c);
	if (is_shortened(o, c, err)) {
		__fpurge(o->stream);
		err = write_content(o, o->stream, c);
	}
	if (err) {
		/* Drop the unwritten bytes, or exit() would try, and report, them again. */
		__fpurge(o->stream);
		clearerr(o->stream);
	}
	return output_tell(o, o->name, err);
}

/* Copy to @list those of @r with the PID of number @first, which is the first one that has it. Returns how many. */
static size_t same_pid(const struct report *r, size_t first, struct report_process *list)
{
	size_t nr = 0;

	for (size_t i = first; i < r->nr_processes; i++)
		if (r->processes[i].target->pid == r->processes[first].target->pid)
			list[nr++] = r->processes[i];
	return nr;
}

static bool is_first_of_pid(const struct report *r, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (r->processes[i].target->pid == r->processes[at].target->pid)
			return false;
	return true;
}

/* A mark of the @nr processes in @list, which have one PID, and of their numbers. 0: one of them still runs. */
static u64 ended_mark(const struct report_process *list, size_t nr)
{
	u64 mark = nr;

	for (size_t i = 0; i < nr; i++) {
		const struct report_process *p = &list[i];
		struct heap_totals totals = heap_totals(p->heap);

		if (!p->target->has_exited && !p->is_replaced)
			return 0;
		mark = hash_u64(mark ^ p->target->start_time << 24 ^ (u64)p->target->pid);
		mark = hash_u64(mark ^ totals.allocs << 32 ^ totals.live_bytes ^ (p->leaks != NULL));
	}
	return mark | 1;
}

static bool is_written(const struct output *o, u64 mark)
{
	for (size_t i = 0; mark && i < o->nr_ended; i++)
		if (o->ended[i] == mark)
			return true;
	return false;
}

/*
 * A PID whose process has executed a program is there twice: both go to the one file of this name. A process that has
 * ended stays as it is, and is not written in later reports, of which there may be thousands.
 */
static int write_by_pid(struct output *o, const struct report *r, struct out_values *v,
			const struct output_options *options)
{
	auto_free struct report_process *list = calloc(r->nr_processes + 1, sizeof(*list));
	auto_free u64 *ended = calloc(r->nr_processes + 1, sizeof(*ended));
	size_t nr_ended = 0;
	int first_err = 0;

	if (!list || !ended)
		return output_tell(o, o->name, -ENOMEM);
	for (size_t i = 0; i < r->nr_processes; i++) {
		struct content part = { *r, -1, r->processes[i].target->pid };
		int err = 0;
		u64 mark;

		if (!is_first_of_pid(r, i))
			continue;
		part.report.processes = list;
		part.report.nr_processes = same_pid(r, i, list);
		mark = ended_mark(list, part.report.nr_processes);
		if (!is_written(o, mark))
			err = write_named(o, &part, v, options);
		if (mark && !err)
			ended[nr_ended++] = mark;
		if (!first_err)
			first_err = err;
	}
	free(o->ended);
	o->ended = take_ptr(ended);
	o->nr_ended = nr_ended;
	return first_err;
}

static int write_output(struct output *o, const struct report *r, struct out_values *v,
			const struct output_options *options)
{
	struct content whole = { *r, -1, r->nr_processes ? r->processes[0].target->pid : 0 };

	if (o->stream)
		return write_stream(o, &whole, v->number, options);
	return o->has_pid ? write_by_pid(o, r, v, options) : write_named(o, &whole, v, options);
}

/* "Report 3, 2026-01-31 23:59:59" */
static void output_write_title(char *text, size_t size, u64 number)
{
	time_t now = time(NULL);
	struct tm tm;
	size_t len = (size_t)snprintf(text, size, "Report %s, ", human_count(number).text);

	if (!localtime_r(&now, &tm)) {
		text[len - 2] = '\0';
		return;
	}
	snprintf(text + len, size - len, "%04d-%02d-%02d %02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* Log the answer if the report goes to files alone: most people open them for it. */
static void tell_verdicts(const struct outputs *outs, const struct report *r)
{
	bool is_shown = outs->options->is_numbered;

	for (size_t i = 0; i < outs->nr; i++)
		is_shown |= outs->list[i].stream && !outs->list[i].device;
	for (size_t i = 0; i < r->nr_processes && i < MAX_TOLD && !is_shown; i++) {
		const struct report_process *p = &r->processes[i];
		struct report_verdict v;

		if (!p->is_replaced && !report_verdict_of(&v, r, p))
			info("%s (pid %d): %s", p->target->comm, (int)p->target->pid, v.text);
	}
}

int outputs_write(struct outputs *outs, const struct report *report)
{
	struct out_values values = { .number = ++outs->nr_reports };
	struct report r = *report;
	char title[64];
	int first_err = 0;

	out_values_set_time(&values);
	if (outs->options->is_numbered) {
		output_write_title(title, sizeof(title), values.number);
		r.title = title;
	}
	/* Before the names of the files: a screen shows the last message. */
	tell_verdicts(outs, &r);
	for (size_t i = 0; i < outs->nr; i++) {
		int err = write_output(&outs->list[i], &r, &values, outs->options);

		if (!first_err)
			first_err = err;
	}
	return first_err;
}

int outputs_write_to(void *outs, const struct report *r)
{
	return outputs_write(outs, r);
}

size_t outputs_directories(const struct outputs *outs, int *dirs, size_t max)
{
	size_t nr = 0;

	for (size_t i = 0; i < outs->nr; i++) {
		if (outs->list[i].dir < 0)
			continue;
		if (nr < max)
			dirs[nr] = outs->list[i].dir;
		nr++;
	}
	return nr;
}

size_t outputs_describe(const struct outputs *outs, struct output_format *formats, size_t max)
{
	for (size_t i = 0; i < outs->nr && i < max; i++) {
		const struct output *o = &outs->list[i];
		struct report_options ro = output_look(outs->options, o->stream);

		formats[i] = (struct output_format){ o->format->name, ro.width, ro.color, ro.is_terminal };
	}
	return outs->nr;
}

int outputs_copy(struct outputs *outs, pid_t pid, const int *fds, size_t nr)
{
	struct out_values values = { .number = ++outs->nr_reports };
	int first_err = 0;

	out_values_set_time(&values);
	for (size_t i = 0; i < outs->nr && i < nr; i++) {
		struct content c = { .fd = fds[i], .pid = pid };
		struct output *o = &outs->list[i];
		int err = o->stream ? write_stream(o, &c, values.number, outs->options)
				    : write_named(o, &c, &values, outs->options);

		if (!first_err)
			first_err = err;
	}
	return first_err;
}
