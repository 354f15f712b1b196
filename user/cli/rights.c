/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the outputs of a command to the rights that it keeps. */
#include "user/cli/rights.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "user/cli/options.h"
#include "user/lib/landlock.h"
#include "user/lib/privileges.h"
#include "user/report/output.h"
#include "user/stream/out_name.h"

enum { MAX_DIRECTORIES = 64, NR_TEMPORARY = 3 };

/* Directories that files are made in. */
struct allowed_places {
	int dirs[MAX_DIRECTORIES + NR_TEMPORARY];
	size_t nr_outputs; /* borrowed; at the front */
	size_t nr;	   /* the others are owned */
	bool is_cut;	   /* there are more */
};

static void find_places(struct allowed_places *p, const struct outputs *outs)
{
	const char *const temporary[NR_TEMPORARY] = { "/tmp", "/var/tmp", getenv("TMPDIR") };

	p->nr_outputs = outs ? outputs_directories(outs, p->dirs, MAX_DIRECTORIES) : 0;
	p->is_cut = p->nr_outputs > MAX_DIRECTORIES;
	if (p->is_cut)
		p->nr_outputs = MAX_DIRECTORIES;
	p->nr = p->nr_outputs;
	for (size_t i = 0; i < NR_TEMPORARY; i++)
		if (temporary[i] && *temporary[i])
			p->dirs[p->nr++] = open(temporary[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void places_fini(struct allowed_places *p)
{
	for (size_t i = p->nr_outputs; i < p->nr; i++)
		if (p->dirs[i] >= 0)
			close(p->dirs[i]);
}

/* Capabilities for files in the places. @is_recorded: files of a recording are made one after the other. */
static u64 rights_capabilities(const struct allowed_places *p, bool is_recorded)
{
	uid_t uid;
	gid_t gid;

	return privileges_to_write(p->is_cut || is_recorded ? NULL : p->dirs, p->nr_outputs,
				   out_find_caller(&uid, &gid));
}

void rights_keep_files(const struct options *o, const struct outputs *outs)
{
	struct allowed_places p = { .nr = 0 };

	find_places(&p, outs);
	privileges_drop(o->debuginfod ? PRIVILEGES_PEER : PRIVILEGES_FILES, rights_capabilities(&p, false));
	if (!o->debuginfod && !p.is_cut)
		landlock_forbid_writes(p.dirs, p.nr);
	places_fini(&p);
}

void rights_keep_peer(const struct options *o, const struct outputs *outs)
{
	struct allowed_places p = { .nr = 0 };

	find_places(&p, outs);
	privileges_drop(PRIVILEGES_PEER, rights_capabilities(&p, o->record));
	places_fini(&p);
}
