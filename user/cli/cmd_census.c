/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap scan of a process that nobody traces: a census of its heap, and one leak verdict. */
#include "user/cli/cmd_census.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/census/census.h"
#include "user/census/census_report.h"
#include "user/census/census_unpack.h"
#include "user/cli/options.h"
#include "user/lib/cleanup.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/progress.h"
#include "user/lib/status.h"
#include "user/lib/unnamed_file.h"
#include "user/report/output.h"
#include "user/scan/kernel_words.h"
#include "user/source/alt_stacks.h"
#include "user/source/listed_words.h"
#include "user/source/uring_words.h"
#include "user/target/program_build.h"

enum { MAX_OUTPUTS = 16 };

static const struct census_format *format_find(const char *name)
{
	for (const struct census_format *f = census_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

/* The census in one format, as a file that the caller closes. -errno: it was logged. */
static int cmd_census_write_format(const struct census *c, const struct census_report_options *ro,
				   const char *name)
{
	const struct census_format *format = format_find(name);
	auto_close int fd = -1;
	auto_fclose FILE *out = NULL;
	int copy, err;

	if (!format) {
		error("scan: PID %d: nobody traces it, and a census has no format %s: use text, json, csv or folded",
		      (int)c->pid, name);
		return -EOPNOTSUPP;
	}
	fd = unnamed_file_in_memory("heaptap-census");
	copy = fd >= 0 ? dup(fd) : -1;
	out = copy >= 0 ? fdopen(copy, "w") : NULL;
	if (!out) {
		err = fd < 0 ? fd : -errno;
		if (copy >= 0)
			close(copy);
		error("scan: cannot write the census: %s", strerror(-err));
		return err;
	}
	err = format->write(out, c, ro);
	if (!err)
		err = flush_stream(out);
	if (err) {
		error("scan: cannot write the census: %s", strerror(-err));
		return err;
	}
	return take_fd(fd);
}

/* The callers that a trace knows. -errno: it was logged. */
static int read_known(struct census_known **out, const struct options *o, const struct census *c)
{
	int err = census_known_new(out, o->callers, c->pid);

	if (!err)
		census_known_join(*out, c);
	else
		error("scan: --callers: %s: %s", o->callers,
		      err == -EBADMSG
			      ? "no list of blocks; make one by 'heaptap console -x \"blocks 0 0 > FILE.csv\"'"
		      : err == -ENODATA ? "no block of this process"
					: strerror(-err));
	return err;
}

static int cmd_census_write_all(const struct census *c, const struct options *o, struct outputs *outs)
{
	struct output_format formats[MAX_OUTPUTS];
	struct proc_stat stat = { .comm = "?" };
	const struct symbolizer_options so = { .sysroot = o->sysroot,
					       .debug_path = o->debug_path,
					       .asks_server = o->debuginfod };
	struct census_report_options ro = { .top = o->top, .why_addr = o->why_addr, .why_type = o->why_type };
	size_t nr = outputs_describe(outs, formats, MAX_OUTPUTS), nr_fds = 0;
	struct census_baseline *baseline = NULL;
	struct census_known *known = NULL;
	int fds[MAX_OUTPUTS], err = 0;

	if (!c->is_core && proc_read_stat(&stat, c->pid))
		debug("scan: PID %d has ended", (int)c->pid);
	/* Servers that are asked for names have a line of their own. */
	if (o->debuginfod)
		progress_end();
	progress_phase("naming");
	ro.comm = c->is_core ? c->core.comm : stat.comm;
	err = census_names_new(&ro.names, c, &so);
	if (err)
		error("scan: cannot prepare names: %s", strerror(-err));
	if (!err && o->baseline) {
		err = census_baseline_new(&baseline, o->baseline);
		if (err)
			error("scan: --baseline: %s: %s", o->baseline,
			      err == -EBADMSG ? "no census in JSON" : strerror(-err));
	}
	ro.baseline = baseline;
	if (!err && o->callers)
		err = read_known(&known, o, c);
	ro.known = known;
	for (; nr_fds < nr && nr_fds < MAX_OUTPUTS && !err; nr_fds += !err) {
		ro.width = formats[nr_fds].width;
		ro.is_terminal = formats[nr_fds].is_terminal;
		ro.is_brief = formats[nr_fds].is_terminal && !o->has_top && !o->verbose;
		fds[nr_fds] = cmd_census_write_format(c, &ro, formats[nr_fds].name);
		err = fds[nr_fds] < 0 ? fds[nr_fds] : 0;
	}
	progress_end();
	if (!err)
		err = outputs_copy(outs, c->pid, fds, nr_fds);
	for (size_t i = 0; i < nr_fds; i++)
		close(fds[i]);
	census_names_free(ro.names);
	census_baseline_free(baseline);
	census_known_free(known);
	return err;
}

/* Did --fail-on definite find something? */
static int cmd_census_judged_status(const struct options *o, const struct census *c)
{
	struct scan_result r;

	r = scan_result(c->scan);
	if (o->fail_on_definite && r.sums.of[SCAN_DEFINITE].blocks &&
	    r.sums.of[SCAN_DEFINITE].bytes + r.sums.of[SCAN_INDIRECT].bytes >= o->fail_bytes)
		return o->error_exitcode ? (int)o->error_exitcode : STATUS_FINDINGS;
	return STATUS_DONE;
}

/* The status of a census that was written with @err. Rules that need events of a trace have no answer here. */
static int cmd_census_status(const struct options *o, const struct census *c, int err)
{
	if (err)
		return STATUS_UNTRUSTED;
	if (!c->scan || o->fail_on_errors || o->fail_growth)
		return options_have_rule(o) || !c->scan ? STATUS_NO_VERDICT : STATUS_DONE;
	err = cmd_census_judged_status(o, c);
	/* Blocks that are not listed may be lost. */
	return !err && c->stranger && options_have_rule(o) ? STATUS_NO_VERDICT : err;
}

struct cmd_census_words {
	const struct listed_words *listed;
	pid_t pid;
};

/* struct kernel_words. */
static int cmd_census_kernel_words(void *ctx, int (*add)(void *add_ctx, taddr_t word, u32 where),
				   void *add_ctx)
{
	const struct cmd_census_words *w = ctx;
	int err = 0;

	for (size_t i = 0; i < w->listed->nr && !err; i++) {
		const struct listed_word *l = &w->listed->items[i];

		if (l->pid == w->pid)
			err = add(add_ctx, l->word,
				  l->kind == LISTED_REQUEST ? KERNEL_REQUEST : KERNEL_SIGNAL_STACK);
	}
	return err;
}

void census_list_words(struct listed_words *list, const pid_t *pids, size_t nr, const char *command)
{
	if (alt_stacks_list(list, pids, nr))
		debug("%s: signal stacks cannot be listed: blocks that are such stacks may be called lost",
		      command);
	for (size_t i = 0; i < nr; i++) {
		bool is_told = false;

		uring_words_list(list, pids[i], command, &is_told);
	}
}

static int cmd_census_take(struct census **out, pid_t pid, const struct options *o,
			   const struct listed_words *listed)
{
	struct cmd_census_words words = { listed, pid };
	const struct kernel_words kernel = { &words, cmd_census_kernel_words };
	const struct census_options co = { .way = o->snapshot,
					   .nr_jobs = o->nr_jobs,
					   .max_copy = o->max_copy,
					   .max_pause_ns = o->max_pause_ns,
					   .pointer_mask = o->pointer_mask,
					   .want_unaligned = o->unaligned,
					   .kernel = &kernel };

	return census_take(out, pid, &co);
}

int census_judge(const struct options *o, pid_t pid)
{
	struct census *c = NULL;
	struct listed_words listed = { .items = NULL };
	int status = STATUS_DONE, err = 0;
	const struct scan_sum *of;
	struct scan_result r;

	census_list_words(&listed, &pid, 1, o->command->name);
	err = cmd_census_take(&c, pid, o, &listed);
	free(listed.items);
	if (err || !c->scan) {
		warn("%s: PID %d: blocks from before the attach are not judged: %s", o->command->name,
		     (int)pid,
		     err == -ENOENT ? "heaptap cannot read the books of its allocator"
		     : err	    ? strerror(-err)
				    : c->why);
	} else {
		r = scan_result(c->scan);
		of = r.sums.of;
		status = cmd_census_judged_status(o, c);
		if (status != STATUS_DONE)
			error("%s: FAILED: PID %d: leaks %s, older blocks included (--fail-on definite; "
			      "heaptap scan %d shows them)",
			      o->command->name, (int)pid,
			      human_lost("", of[SCAN_DEFINITE].bytes, of[SCAN_DEFINITE].blocks,
					 of[SCAN_INDIRECT].bytes, of[SCAN_INDIRECT].blocks)
				      .text,
			      (int)pid);
	}
	census_free(c);
	return status;
}

/* There are no books to read in @pid. @stranger: its allocator, NULL = none is known. */
static void cmd_census_complain_of_books(pid_t pid, const char *stranger)
{
	struct program_build build = { .is_go = false };
	auto_close int exe = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	exe = open(path, O_RDONLY | O_CLOEXEC);
	if (!stranger && exe >= 0 && !program_build_read(&build, exe) && build.is_go)
		error("scan: PID %d: a Go program has an allocator of its own: Go's profiler (runtime/pprof) "
		      "shows its heap",
		      (int)pid);
	else
		error("scan: PID %d: no heaptap traces it, and it has %s%s; type 'heaptap attach %d', let it run "
		      "for a while, then scan again",
		      (int)pid, stranger ? stranger : "no allocator whose books heaptap can read",
		      stranger ? ", whose books heaptap cannot read" : " (" CENSUS_ALLOCATORS ")", (int)pid);
}

int census_process(const struct options *o, struct outputs *outs, pid_t pid,
		   const struct listed_words *listed)
{
	struct census *c = NULL;
	char what[32];
	int status, err;

	snprintf(what, sizeof(what), "scan: PID %d", (int)pid);
	progress_begin(what);
	err = cmd_census_take(&c, pid, o, listed);
	switch (err) {
	case 0:
		status = cmd_census_status(o, c, cmd_census_write_all(c, o, outs));
		break;
	case -ENOENT:
		cmd_census_complain_of_books(pid, c->stranger);
		status = STATUS_IMPOSSIBLE;
		break;
	case -ETIME:
	case -EAGAIN:
		status = STATUS_NO_VERDICT;
		break;
	case -ETIMEDOUT:
		error("scan: PID %d: its heap could not be read within 10 minutes", (int)pid);
		status = STATUS_NO_VERDICT;
		break;
	case -ESRCH:
		status = STATUS_NO_TARGET;
		break;
	case -EPERM:
	case -EACCES:
		/* The reason was logged. */
		if (geteuid())
			error("scan: PID %d: try: sudo heaptap scan %d", (int)pid, (int)pid);
		status = STATUS_IMPOSSIBLE;
		break;
	default:
		error("scan: PID %d: %s", (int)pid, strerror(-err));
		status = STATUS_UNTRUSTED;
	}
	progress_end();
	census_free(c);
	return status;
}

static bool is_compressed(const u8 head[18])
{
	static const u8 zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };

	return !memcmp(head, zstd_magic, sizeof(zstd_magic));
}

bool census_open_core(const char *name, int *fd)
{
	auto_close int file = -1;
	u8 head[18] = { 0 };
	struct stat st;

	if (name[strspn(name, "0123456789")] == '\0')
		return false;
	file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0 || fstat(file, &st) || !S_ISREG(st.st_mode) ||
	    pread(file, head, sizeof(head), 0) != sizeof(head))
		return false;
	if (!is_compressed(head) &&
	    (memcmp(head, ELFMAG, SELFMAG) != 0 || (head[16] != ET_CORE && head[17] != ET_CORE)))
		return false;
	*fd = take_fd(file);
	return true;
}

/* A copy without compression, if @file is compressed; else -1. -errno, logged, as *@err. */
static int cmd_census_unpack(const char *name, int file, int *err)
{
	u8 head[18];
	int fd;

	*err = 0;
	if (pread(file, head, sizeof(head), 0) != sizeof(head) || !is_compressed(head))
		return -1;
	fd = census_unpack(file);
	if (fd >= 0)
		return fd;
	*err = fd;
	error("scan: %s: cannot unpack it: %s", name, strerror(-fd));
	return -1;
}

int census_core(const struct options *o, struct outputs *outs, const char *name, int file)
{
	const struct census_options co = { .sysroot = o->sysroot,
					   .pointer_mask = o->pointer_mask,
					   .want_unaligned = o->unaligned };
	struct census *c = NULL;
	int status = STATUS_UNTRUSTED, err;
	auto_close int unpacked = cmd_census_unpack(name, file, &err);

	if (err)
		return status;
	progress_begin("scan");
	err = census_of_core(&c, unpacked >= 0 ? unpacked : file, &co);
	if (!err) {
		status = cmd_census_status(o, c, cmd_census_write_all(c, o, outs));
	} else if (err == -ENOENT) {
		error("scan: %s: it has %s%s%s", name,
		      c->stranger ? c->stranger : "no allocator whose books heaptap can read",
		      c->stranger ? ", whose books heaptap cannot read" : " (" CENSUS_ALLOCATORS ")",
		      c->core.truncated_bytes ? "; the file is cut" : "");
		status = STATUS_IMPOSSIBLE;
	} else {
		error("scan: %s: %s", name,
		      err == -ENOEXEC	  ? "no core file"
		      : err == -EINVAL	  ? "a damaged core file"
		      : err == -EIO	  ? "the file is cut"
		      : err == -ETIMEDOUT ? "its heap could not be read within 10 minutes"
					  : strerror(-err));
	}
	progress_end();
	census_free(c);
	return status;
}
