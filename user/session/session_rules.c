/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the suppressions that a traced program has in itself, when its first verdict is reported. */
#include "user/session/session_rules.h"

#include <errno.h>
#include <string.h>

#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/names/symbolize.h"
#include "user/scan/suppress_program.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

/* The program's file, which is open; of a recording or another machine, if it is here, too, as for names. */
static const struct module *session_rules_program_of(const struct session *s, const struct process *p)
{
	const struct mapping_list *maps = &p->target->maps;
	struct module *m = NULL;

	for (size_t i = 0; i < maps->nr && !m; i++)
		if (maps->maps[i].module && p->target->exe &&
		    !strcmp(maps->maps[i].module->path, p->target->exe))
			m = maps->maps[i].module;
	if (!IS_AGENT && m && s->symbolizer)
		symbolizer_open(s->symbolizer, m);
	return m && m->fd >= 0 ? m : NULL;
}

static int read_rules(struct suppress_list *list, const struct module *m)
{
	struct elf *elf;
	int err = elf_open(&elf, m->fd);

	if (err)
		return err;
	err = suppress_add_program(list, elf);
	elf_close(elf);
	return err;
}

const struct suppress_list *session_own_rules(const struct session *s, struct process *p)
{
	const struct module *m =
		p->has_own_rules || s->options->no_own_rules ? NULL : session_rules_program_of(s, p);
	int err;

	if (!m)
		return p->own_rules;
	p->has_own_rules = true;
	err = suppress_new(&p->own_rules);
	if (!err)
		err = read_rules(p->own_rules, m);
	if (err && err != -ENOENT && err != -ENOTSUP)
		warn("PID %d: its own suppressions are not used: %s", p->target->pid, strerror(-err));
	else if (err == -ENOTSUP && p->own_rules)
		warn("PID %d: its own suppressions are not used: __lsan_default_suppressions() does more than return a "
		     "constant; give them by --suppressions",
		     p->target->pid);
	return p->own_rules;
}
