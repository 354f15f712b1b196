/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are about to end; interpreters that drop their objects before: readers of a last verdict must know. */
#include "user/session/session_ending.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "user/heap/heap_sample.h"
#include "user/lib/cleanup.h"
#include "user/lib/human.h"
#include "user/lib/path.h"
#include "user/lib/signal_name.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/source/launch.h"
#include "user/source/source_tracer.h"

static const struct {
	const char *begin, *part; /* of the name of the interpreter's file, or of its library's */
	const char *text;
} interpreters[] = {
	/* ruby 3.1 gives back the pages with all objects, but frees few of the buffers that these held. */
	{ "libruby", ".so", "ruby leaves what its objects held when it ends: see RUBY in heaptap-leaks(7)" },
};

/* Without fnmatch(), which would make the agent 16 KiB larger. */
static bool is_file_of(const char *name, size_t k)
{
	return !strncmp(name, interpreters[k].begin, strlen(interpreters[k].begin)) &&
	       strstr(name, interpreters[k].part);
}

/* A process that calls _exit() and waits there for a moment, each once; 0 = none. */
static pid_t next_ending(struct session *s)
{
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (!p->is_ending || process_is_over(p))
			continue;
		p->is_ending = false;
		return p->target->pid;
	}
	return 0;
}

void session_await_ends(struct session *s, struct launch **l, const struct launch_hooks *hooks)
{
	const struct source_tracer *tracer = s->ops->tracer;
	int status;
	pid_t pid;

	while (tracer && (pid = tracer->exiting(s->source, &status))) {
		hooks->exiting(hooks->ctx, pid, status);
		tracer->let_end(s->source, pid);
	}
	while ((pid = next_ending(s)))
		launch_await_end(l, hooks, pid);
}

void session_note_verdict(struct process *p)
{
	if (!p->leaks || !p->leaks->has_verdict)
		return;
	p->is_judged = true;
	p->judged = p->leaks->result.sums;
}

/* "ended by SIGKILL", "ended by signal 35" */
static void session_ending_signal(char *text, size_t size, int sig)
{
	const char *name = signal_name(sig);

	if (name)
		snprintf(text, size, "ended by SIG%s", name);
	else
		snprintf(text, size, "ended by signal %d", sig);
}

void session_note_end(const struct session *s, struct process *p)
{
	const struct scan_sum *of = p->judged.of;
	const char *mark = HAS_SAMPLES && heap_sample_bytes(p->heap) ? "~" : "";
	int status = p->target->exit_status;
	char how[32] = "it had ended";
	size_t used;

	if (p->has_last_verdict || (p->leaks && !p->leaks->has_verdict))
		return;
	leaks_free(take_ptr(p->leaks));
	if (status != -1 && WIFSIGNALED(status))
		session_ending_signal(how, sizeof(how), WTERMSIG(status));
	else if (!p->is_judged)
		return;
	used = (size_t)snprintf(
		p->end_note, sizeof(p->end_note), "no leak verdict: %s, and its last state was not judged%s",
		how, p->target->is_started || s->ops->tracer ? "" : " (--backend ptrace judges it)");
	if (!p->is_judged)
		return;
	snprintf(p->end_note + used, sizeof(p->end_note) - used, "; the verdict before that: %s%s",
		 of[SCAN_DEFINITE].blocks ? "leaks " : "no leaks",
		 of[SCAN_DEFINITE].blocks
			 ? human_lost(mark, of[SCAN_DEFINITE].bytes, of[SCAN_DEFINITE].blocks,
				      of[SCAN_INDIRECT].bytes, of[SCAN_INDIRECT].blocks)
				   .text
			 : "");
}

const char *session_ending_note(const struct process *p)
{
	const struct mapping_list *maps = &p->target->maps;
	int status = p->target->exit_status;

	/* A program that is killed frees nothing before. */
	if (!p->leaks || !p->has_last_verdict || !p->target->has_exited || status == -1 ||
	    !WIFEXITED(status) || !p->leaks->result.sums.of[SCAN_DEFINITE].blocks)
		return NULL;
	for (size_t i = 0; i < maps->nr; i++) {
		const struct module *m = maps->maps[i].module;

		for (size_t k = 0; m && k < ARRAY_SIZE(interpreters); k++)
			if (is_file_of(path_name(module_name(m)), k))
				return interpreters[k].text;
	}
	return NULL;
}
