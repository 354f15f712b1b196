/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "user/lib/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

struct thread_beginning {
	const char *name;
	void *(*main)(void *arg);
	void *arg;
};

static void *thread_begin(void *arg)
{
	const struct thread_beginning b = *(struct thread_beginning *)arg;

	free(arg);
	prctl(PR_SET_NAME, b.name);
	return b.main(b.arg);
}

static int thread_create(pthread_t *out, struct thread_beginning *b, size_t stack_bytes)
{
	pthread_attr_t attr;
	pthread_t detached;
	sigset_t all, old;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	if (!out)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack_bytes)
		pthread_attr_setstacksize(&attr, stack_bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(out ? out : &detached, &attr, thread_begin, b);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

int thread_start_sized(pthread_t *out, const char *name, void *(*main)(void *arg), void *arg,
		       size_t stack_bytes)
{
	struct thread_beginning *b = malloc(sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	*b = (struct thread_beginning){ name, main, arg };
	err = thread_create(out, b, stack_bytes);
	if (err)
		free(b);
	return err;
}
