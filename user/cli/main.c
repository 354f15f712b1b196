/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Begin and end of heaptap: the command line, the command, its exit status. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/flush.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/source/launch_child.h"
#include "user/source/limits.h"
#include "user/cli/options.h"

/* heaptap keeps each mapped file of a target open; 1,024 are not enough for some targets. */
enum { MANY_FILES = 65536 };

static void main_ignore(int sig)
{
	(void)sig;
}

/*
 * Let writes fail with an error instead of a signal: a closed pipe or a full file must not end heaptap
 * while it is attached. A handler, not SIG_IGN: the program that `run` starts would inherit that.
 */
static void catch_write_signals(void)
{
	static const u8 signals[] = { SIGPIPE, SIGXFSZ };
	const struct sigaction caught = { .sa_handler = main_ignore, .sa_flags = SA_RESTART };
	struct sigaction now;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!sigaction(signals[i], NULL, &now) && now.sa_handler == SIG_DFL)
			sigaction(signals[i], &caught, NULL);
}

/*
 * A file opened later must not become descriptor 0, 1 or 2 and get what is printed. A program that heaptap starts has
 * them closed, as it would have been without heaptap.
 */
static int open_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		/* The lowest free number is taken, which is this one. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
			return -errno;
	return 0;
}

/* All output must have been written, or scripts would take a part of it for all. */
static int finish_stdout(int status)
{
	int err = flush_stream(stdout);

	if (!err)
		return status;
	/* The reader of the pipe has what it wants. */
	if (err != -EPIPE)
		error("standard output: %s",
		      err == -EIO ? "not everything could be written" : strerror(-err));
	return status ? status : STATUS_UNTRUSTED;
}

static int run_command(int argc, char **argv)
{
	struct options o;
	int err = options_parse(&o, argc, argv);
	int status = STATUS_DONE;

	if (err < 0)
		status = err == -EINVAL ? STATUS_USAGE : STATUS_IMPOSSIBLE;
	if (err == -ENOMEM)
		error("out of memory");
	if (!err) {
		log_set_level(o.quiet ? LOG_WARN : o.verbose ? LOG_DEBUG : LOG_INFO);
		status = o.command->run(&o);
		/* The report is right, but nobody has asked for this end. */
		if (status == STATUS_DONE && limits_is_out_of_cpu_time())
			status = STATUS_UNTRUSTED;
	}
	options_fini(&o);
	return status;
}

int main(int argc, char **argv)
{
	int err = open_standard_files();

	if (err) {
		/* If stderr is open. */
		error("/dev/null: %s: it is needed where stdin, stdout or stderr is closed", strerror(-err));
		return STATUS_IMPOSSIBLE;
	}
	catch_write_signals();
	inherited_begin();
	limits_raise(RLIMIT_NOFILE, MANY_FILES);
	return finish_stdout(run_command(argc, argv));
}
