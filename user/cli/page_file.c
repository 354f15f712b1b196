/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shows an HTML report in the browser of the user. */
#include "user/cli/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/report/format.h"
#include "user/report/output.h"
#include "user/stream/out_name.h"

static bool is_page(const char *name)
{
	const struct report_format *f = report_format_find(name);

	return f && f->write == report_html;
}

/* A name in a new directory, which belongs to the user also under sudo. */
static int make_own(struct page_file *f)
{
	const char *tmp = getenv("TMPDIR");
	auto_free char *directory = NULL;
	auto_close int fd = -1;

	if (asprintf(&directory, "%s/heaptap-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0) {
		directory = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(directory))
		return -errno;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (asprintf(&f->own, "%s/report.html", directory) < 0) {
		f->own = NULL;
		return -ENOMEM;
	}
	return out_give_to_caller(fd);
}

static int page_file_add_own(struct page_file *f, struct output_options *o)
{
	int err = make_own(f);

	if (err)
		return err;
	f->names = calloc(o->nr_names + 2, sizeof(*f->names));
	if (!f->names)
		return -ENOMEM;
	for (size_t i = 0; i < o->nr_names; i++)
		f->names[i] = o->names[i];
	f->names[o->nr_names] = f->own;
	f->path = f->own;
	o->names = f->names;
	o->nr_names++;
	return 0;
}

/* In the child: become xdg-open, when a path comes. Ends with 127 if that is not possible. */
static _Noreturn void run_opener(int fd)
{
	char path[PATH_MAX];
	ssize_t len = read(fd, path, sizeof(path) - 1);
	sigset_t none;

	/* No page was made. */
	if (len <= 0)
		_exit(0);
	path[len] = '\0';
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	if (!out_become_caller())
		execlp("xdg-open", "xdg-open", path, (char *)NULL);
	_exit(127);
}

static int page_file_start_opener(struct page_file *f)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	f->opener = fork();
	if (!f->opener) {
		close(fds[1]);
		/* Ctrl-C ends heaptap; the pipe then ends the child. */
		signal(SIGINT, SIG_IGN);
		run_opener(fds[0]);
	}
	close(fds[0]);
	f->go = fds[1];
	if (f->opener > 0)
		return 0;
	close(f->go);
	f->opener = 0;
	return -errno;
}

int page_file_init(struct page_file *f, struct output_options *o)
{
	int err;

	*f = (struct page_file){ .path = NULL };
	for (size_t i = 0; i < o->nr_names && !f->path; i++)
		if (is_page(o->names[i]))
			f->path = o->names[i];
	if (f->path && strchr(f->path, '%')) {
		error("--open: %s: cannot open a name with placeholders", f->path);
		return -EINVAL;
	}
	err = f->path ? 0 : page_file_add_own(f, o);
	if (err)
		error("--open: cannot make a directory for the page: %s", strerror(-err));
	if (!err) {
		err = page_file_start_opener(f);
		if (err)
			error("--open: %s", strerror(-err));
	}
	if (err)
		page_file_fini(f);
	return err;
}

/* The wait status. */
static int end_opener(struct page_file *f)
{
	int status = 0;
	pid_t got;

	close(f->go);
	do
		got = waitpid(f->opener, &status, 0);
	while (got < 0 && errno == EINTR);
	f->opener = 0;
	return got < 0 ? -1 : status;
}

void page_file_fini(struct page_file *f)
{
	if (f->opener)
		end_opener(f);
	free(f->names);
	free(f->own);
	*f = (struct page_file){ .path = NULL };
}

int page_file_open(struct page_file *f)
{
	auto_free char *path = realpath(f->path, NULL);
	size_t len = path ? strlen(path) : 0;
	bool is_sent = len && write(f->go, path, len) == (ssize_t)len;
	int status = end_opener(f);

	if (is_sent && WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (is_sent && WIFEXITED(status) && WEXITSTATUS(status) == 127)
		error("--open: cannot run xdg-open; open %s in a browser", f->path);
	else
		error("--open: xdg-open: failed: open %s in a browser", f->path);
	return -EIO;
}
