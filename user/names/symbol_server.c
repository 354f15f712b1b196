/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads libdebuginfod when the user asks for it: heaptap itself needs neither the network nor this library. */
#include "user/names/symbol_server.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/lib/unnamed_file.h"

typedef int fetch_fn(void *client, const unsigned char *build_id, int len, char **path);
typedef int progress_fn(void *client, long done, long size);

enum { MAX_TALK = 1 << 16 }; /* bytes of the library's talk with the servers that are read */

struct symbol_server {
	void *library; /* owned */
	void *client;  /* owned */
	void (*end)(void *client);
	void (*set_progress)(void *client, progress_fn *fn);
	void (*set_verbose_fd)(void *client, int fd); /* NULL = an old library */
	fetch_fn *fetch[2];			      /* by enum symbol_server_file */
	int talk;				      /* owned; a memory file; -1 = none */
	bool is_over;				      /* nobody is asked any more, which was said */
	bool has_answered, has_complained;	      /* a server; and heaptap, about one */
};

/* Static: the callback of the library has no argument for a context of the caller, and a signal handler neither. */
static struct {
	char name[128];
	volatile sig_atomic_t is_cancelled;
} current;

static void on_interrupt(int sig)
{
	(void)sig;
	current.is_cancelled = 1;
}

static bool symbol_server_is_called_off(void)
{
	sigset_t pending;

	return current.is_cancelled || (!sigpending(&pending) && (sigismember(&pending, SIGINT) > 0 ||
								  sigismember(&pending, SIGTERM) > 0));
}

/* Without a @size the library counts in @done how often it has called, until the server sends something. */
static int on_progress(void *client, long done, long size)
{
	char text[320];

	(void)client;
	if (size > 0)
		snprintf(text, sizeof(text), "%s of %s  %s  (Ctrl-C: go on without)",
			 human_bytes(done > 0 ? (u64)done : 0).text, human_bytes((u64)size).text,
			 current.name);
	else
		snprintf(text, sizeof(text), "waiting for a server: %s  (Ctrl-C: go on without)",
			 current.name);
	if (log_level() >= LOG_INFO)
		log_status(text);
	return symbol_server_is_called_off();
}

static bool find_functions(struct symbol_server *s, void *(**begin)(void))
{
	const struct {
		const char *name;
		void *where;
	} wanted[] = {
		{ "debuginfod_begin", begin },
		{ "debuginfod_end", &s->end },
		{ "debuginfod_set_progressfn", &s->set_progress },
		{ "debuginfod_set_verbose_fd", &s->set_verbose_fd },
		{ "debuginfod_find_executable", &s->fetch[SYMBOL_SERVER_BINARY] },
		{ "debuginfod_find_debuginfo", &s->fetch[SYMBOL_SERVER_DEBUG] },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		void *found = dlsym(s->library, wanted[i].name);

		if (!found && wanted[i].where != (void *)&s->set_verbose_fd)
			return false;
		memcpy(wanted[i].where, &found, sizeof(found));
	}
	return true;
}

int symbol_server_new(struct symbol_server **out)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct symbol_server *s;
	void *(*begin)(void);

	if (!urls || !*urls) {
		error("symbol: --debuginfod: DEBUGINFOD_URLS names no server");
		return -ENOSYS;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->talk = -1;
	s->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (s->library && find_functions(s, &begin))
		s->client = begin();
	if (!s->client) {
		error("symbol: --debuginfod: the library libdebuginfod.so.1 is not there");
		symbol_server_free(s);
		return -ENOSYS;
	}
	s->set_progress(s->client, on_progress);
	if (s->set_verbose_fd)
		s->talk = unnamed_file_in_memory("heaptap-servers");
	if (s->talk >= 0 && s->set_verbose_fd)
		s->set_verbose_fd(s->client, s->talk);
	*out = s;
	return 0;
}

void symbol_server_free(struct symbol_server *s)
{
	if (!s)
		return;
	if (s->client)
		s->end(s->client);
	if (s->library)
		dlclose(s->library);
	if (s->talk >= 0)
		close(s->talk);
	free(s);
}

/* The library gives one error for "no such file" and for each other answer: read the HTTP status. 0 = no answer. */
static int http_status(const struct symbol_server *s)
{
	auto_free char *text = s->talk >= 0 ? calloc(1, MAX_TALK + 1) : NULL;
	int status = 0;

	if (!text || pread(s->talk, text, MAX_TALK, 0) <= 0)
		return 0;
	for (const char *at = strstr(text, "HTTP/"); at; at = strstr(at + 1, "HTTP/")) {
		const char *space = at + strcspn(at, " \n");

		if (*space == ' ' && strspn(space + 1, "0123456789") == 3)
			status = atoi(space + 1);
	}
	return status;
}

static const char *symbol_server_reason(int err)
{
	switch (err) {
	case -EHOSTUNREACH:
		return "no such host";
	case -ECONNREFUSED:
		return "cannot connect";
	case -ETIME:
		return "no answer within DEBUGINFOD_TIMEOUT";
	default:
		return strerror(-err);
	}
}

/* Say once why names are missing. Servers of which none ever answered are not asked again. */
static void symbol_server_complain(struct symbol_server *s, int err)
{
	int status = http_status(s);

	s->has_answered |= status != 0;
	debug("symbol: debuginfod: %s: %s, HTTP status %d", current.name,
	      err < 0 ? strerror(-err) : "fetched", status);
	if (current.is_cancelled)
		warn("symbol: --debuginfod: no more waiting for servers: names that they have are missing");
	else if (!s->has_complained && err == -ENOENT && status >= 400 && status != 404)
		warn("symbol: --debuginfod: %s: refused with HTTP status %d: names are missing",
		     getenv("DEBUGINFOD_URLS"), status);
	else if (!s->has_complained && err != -ENOENT)
		warn("symbol: --debuginfod: %s: %s: names are missing", getenv("DEBUGINFOD_URLS"),
		     symbol_server_reason(err));
	else
		return;
	s->has_complained = true;
	s->is_over = current.is_cancelled || !s->has_answered;
}

/* Ctrl-C ends the waiting alone, and nothing else of heaptap: neither the trace nor the report. */
static int names_symbol_server_fetch(struct symbol_server *s, enum symbol_server_file kind,
				     const u8 *build_id, size_t len)
{
	struct sigaction cancel = { .sa_handler = on_interrupt }, old;
	sigset_t set, mask;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	current.is_cancelled = 0;
	if (s->talk >= 0 && (ftruncate(s->talk, 0) || lseek(s->talk, 0, SEEK_SET)))
		debug("symbol: debuginfod: %s", strerror(errno));
	sigaction(SIGINT, &cancel, &old);
	pthread_sigmask(SIG_UNBLOCK, &set, &mask);
	got = s->fetch[kind](s->client, build_id, (int)len, NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGINT, &old, NULL);
	return got;
}

int symbol_server_fetch(struct symbol_server *s, enum symbol_server_file kind, const u8 *build_id, size_t len,
			const char *name, int *fd)
{
	int got;

	if (s->is_over)
		return -ENOENT;
	current.is_cancelled = 0;
	if (symbol_server_is_called_off())
		return -EINTR;
	escape_buf(current.name, sizeof(current.name), path_name(name));
	got = names_symbol_server_fetch(s, kind, build_id, len);
	log_status(NULL);
	if (got < 0 || current.is_cancelled)
		symbol_server_complain(s, got);
	if (got < 0)
		return got;
	s->has_answered = true;
	*fd = got;
	return 0;
}
