/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shows an HTML report in the browser of the user. */
#include "user/cli/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/report/format.h"
#include "user/report/output.h"
#include "user/report/report.h"
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

static int add_own(struct page_file *f, struct output_options *o)
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
	if (f->path)
		return 0;
	err = add_own(f, o);
	if (err) {
		error("--open: cannot make a directory for the page: %s", strerror(-err));
		page_file_fini(f);
	}
	return err;
}

void page_file_fini(struct page_file *f)
{
	free(f->names);
	free(f->own);
	*f = (struct page_file){ .path = NULL };
}

/* In the child: become xdg-open. Ends with 127 if that is not possible. */
static _Noreturn void run_opener(const char *path)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!out_become_caller())
		execlp("xdg-open", "xdg-open", path, (char *)NULL);
	_exit(127);
}

int page_file_open(const struct page_file *f)
{
	auto_free char *path = realpath(f->path, NULL);
	int status = 0;
	pid_t pid = path ? fork() : -1;

	if (!pid)
		run_opener(path);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			pid = -1;
	if (pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
		error("--open: cannot run xdg-open; open %s in a browser", f->path);
	else
		error("--open: xdg-open: failed: open %s in a browser", f->path);
	return -EIO;
}
