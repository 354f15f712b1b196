/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are about to end; interpreters that drop their objects before: readers of a last verdict must know. */
#include "user/session/session_ending.h"

#include <string.h>
#include <sys/wait.h>

#include "user/lib/path.h"
#include "user/session/session_private.h"

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

pid_t session_next_ending(struct session *s)
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
