/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heaptap's end: starts the reader, asks it, and notices its death. */
#include "user/names/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/names/reader_main.h"

/* A reader that neither answers nor uses CPU time waits for a file server. */
enum { ROUND_MS = 1000, IDLE_ROUNDS_MAX = 10 };

struct names_reader {
	int fd;	   /* owned; -1 = no reader is running */
	pid_t pid; /* owned */
	u32 generation, nr_deaths;
	bool has_died_idle;
	u64 cpu_ns;   /* that all readers may use */
	u64 spent_ns; /* of those that have ended */
	u64 used_ns;  /* of the running one, when it answered last */
	char death[80];
	char *bytes; /* owned; of the last answer */
	size_t max;
};

/* The program is this process when its file is executed again: before main(), whatever else the program is. */
static void become_reader(int argc, char **argv)
{
	if (argc == 2 && argv && argv[0] && !strcmp(argv[0], READER_COMM))
		reader_main(STDIN_FILENO, strtoull(argv[1], NULL, 10));
}

/* In place of an attribute: gcc -flto calls such a function without its arguments. */
__attribute__((section(".init_array"), used)) static void (*const before_main)(int, char **) = become_reader;

int reader_new(struct names_reader **out, u64 cpu_ns)
{
	struct names_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	r->cpu_ns = cpu_ns;
	*out = r;
	return 0;
}

/* Collect the process, which has ended or ends now. *@status: as wait(2) gives it; -1 = not known. */
static void reader_bury(struct names_reader *r, int *status)
{
	struct rusage usage = { 0 };
	pid_t got;

	/* A reader that a filter does not allow to kill sees the end of its socket, and exits. */
	close(r->fd);
	r->fd = -1;
	do
		got = wait4(r->pid, status, 0, &usage);
	while (got < 0 && errno == EINTR);
	if (got == r->pid) {
		r->used_ns = (u64)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * SECOND_NS +
			     (u64)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	} else {
		/* The watcher of a program that heaptap has started has seen the end. */
		*status = -1;
	}
	r->spent_ns += r->used_ns;
	r->used_ns = 0;
}

void reader_free(struct names_reader *r)
{
	int status;

	if (!r)
		return;
	if (r->fd >= 0) {
		kill(r->pid, SIGKILL);
		reader_bury(r, &status);
	}
	free(r->bytes);
	free(r);
}

/* The running reader is of no use any more. @why: it had to be ended; NULL = it has ended by itself. */
static int reader_lose(struct names_reader *r, const char *why)
{
	int status = 0;

	kill(r->pid, SIGKILL);
	reader_bury(r, &status);
	r->nr_deaths++;
	if (why)
		snprintf(r->death, sizeof(r->death), "%s", why);
	else if (reader_is_out_of_time(r))
		snprintf(r->death, sizeof(r->death), "has used up its CPU time");
	else if (status != -1 && WIFSIGNALED(status))
		snprintf(r->death, sizeof(r->death), "was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (status != -1 && WEXITSTATUS(status) == READER_EXIT_NO_MEMORY)
		snprintf(r->death, sizeof(r->death), "had not enough memory");
	else
		snprintf(r->death, sizeof(r->death), "has died");
	return -EPIPE;
}

/* The child has the socket as its standard input, no other descriptor, no signals, and a session of its own. */
static int reader_spawn(struct names_reader *r, int socket, char **argv)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t all, none;
	int err;

	if (posix_spawn_file_actions_init(&files))
		return -ENOMEM;
	if (posix_spawnattr_init(&attr)) {
		posix_spawn_file_actions_destroy(&files);
		return -ENOMEM;
	}
	sigfillset(&all);
	sigdelset(&all, SIGXCPU);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &all);
	sigaddset(&none, SIGXCPU);
	posix_spawnattr_setsigdefault(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	err = posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
	/* An empty root has no /dev/null. The reader writes to none of these. */
	if (!err)
		err = access("/dev/null", W_OK)
			      ? posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO)
			      : posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY,
								 0);
	/* Sanitizers write there. */
	if (!err && !READER_IS_SANITIZED)
		err = posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
	if (!err)
		err = posix_spawn(&r->pid, "/proc/self/exe", &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

static int names_reader_start(struct names_reader *r)
{
	u64 left = r->cpu_ns > r->spent_ns ? r->cpu_ns - r->spent_ns : 0;
	char name[] = READER_COMM, seconds[24];
	char *argv[] = { name, seconds, NULL };
	int sockets[2], err;

	snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)(left / SECOND_NS + 1));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	err = reader_spawn(r, sockets[1], argv);
	close(sockets[1]);
	if (err) {
		close(sockets[0]);
		return err;
	}
	r->fd = sockets[0];
	r->generation++;
	return 0;
}

static u64 cpu_now_ns(const struct names_reader *r)
{
	clockid_t clock;

	return clock_getcpuclockid(r->pid, &clock) ? 0 : clock_ns(clock);
}

/* Wait until something can be received. False: the reader makes no progress. */
static bool reader_await(const struct names_reader *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	u64 before = 0, now;
	int idle = 0;

	while (poll(&p, 1, ROUND_MS) <= 0) {
		now = cpu_now_ns(r);
		idle = now == before ? idle + 1 : 0;
		before = now;
		if (idle >= IDLE_ROUNDS_MAX)
			return false;
	}
	return true;
}

/* Receive the bytes behind a reply. */
static int take_bytes(struct names_reader *r, struct reader_answer *a)
{
	int err;

	if (a->head.len > READER_REPLY_MAX)
		return -EPIPE;
	err = array_reserve(r->bytes, r->max, (size_t)a->head.len + 1);
	if (err)
		return err;
	err = reader_wire_take(r->fd, r->bytes, a->head.len, NULL);
	r->bytes[a->head.len] = '\0';
	a->bytes = r->bytes;
	return err;
}

int reader_ask(struct names_reader *r, const struct reader_request *request, const void *bytes, int fd,
	       struct reader_answer *a)
{
	int status, err = r->fd < 0 ? names_reader_start(r) : 0;

	if (err) {
		debug("names: no reader: %s", strerror(-err));
		return -EAGAIN;
	}
	err = reader_wire_send(r->fd, request, sizeof(*request), bytes, request->len, fd);
	r->has_died_idle = err;
	if (!err && !reader_await(r))
		return reader_lose(r, "waited too long for its file");
	if (!err)
		err = reader_wire_take(r->fd, &a->head, sizeof(a->head), NULL);
	if (!err)
		err = take_bytes(r, a);
	if (err == -ENOMEM) {
		/* The rest of the reply would be taken for the next one. */
		kill(r->pid, SIGKILL);
		reader_bury(r, &status);
		return err;
	}
	if (err)
		return reader_lose(r, NULL);
	r->used_ns = a->head.cpu_ns;
	return 0;
}

int reader_reject(struct names_reader *r)
{
	return r->fd < 0 ? -EPIPE : reader_lose(r, "made no sense");
}

u32 reader_generation(const struct names_reader *r)
{
	return r->fd >= 0 ? r->generation : 0;
}

u32 reader_nr_deaths(const struct names_reader *r)
{
	return r->nr_deaths;
}

const char *reader_last_death(const struct names_reader *r)
{
	return r->death;
}

bool reader_has_died_idle(const struct names_reader *r)
{
	return r->has_died_idle;
}

bool reader_is_out_of_time(const struct names_reader *r)
{
	return r->spent_ns + r->used_ns >= r->cpu_ns;
}
