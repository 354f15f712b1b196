/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands `show BLOCK` and `print`: memory of a process that runs on. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/console/console.h"
#include "user/console/print_format.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/escape.h"
#include "user/lib/parse.h"
#include "user/lib/types.h"
#include "user/report/report_memory.h"
#include "user/report/report_parts.h"
#include "user/report/report_place.h"
#include "user/scan/memory_view.h"
#include "user/session/session.h"
#include "user/target/target.h"

/* The names of variables for the command `print`, from the symbol tables of mapped files. */

struct variable {
	const char *name;
	u64 value, size;
};

/* 1 = found. */
static int variable_take(void *ctx, const struct elf_symbol *sym)
{
	struct variable *v = ctx;

	if (sym->type != STT_OBJECT || sym->shndx == SHN_UNDEF || strcmp(sym->name, v->name) != 0)
		return 0;
	v->value = sym->value;
	v->size = sym->size;
	return 1;
}

static int variable_in(const struct module *m, struct variable *v)
{
	struct elf *elf;
	int err = m->fd < 0 ? -ENOENT : elf_open(&elf, m->fd);

	if (err)
		return err == -ENOMEM ? err : 0;
	err = elf_each_symbol(elf, ELF_SYMTAB | ELF_DYNSYM, variable_take, v);
	elf_close(elf);
	return err == -ENOMEM || err == 1 ? err : 0;
}

/*
 * The variable @name in the symbols of the files that @t has mapped, those of the program first: *@addr, and *@size in
 * bytes, 0 = not known. Blocks on disk I/O. 0; -ENOENT; -ENOMEM.
 */
static int console_variable(const struct target *t, const char *name, taddr_t *addr, u64 *size)
{
	const struct mapping_list *list = &t->maps;
	struct variable v = { .name = name };

	for (size_t i = 0; i < list->nr; i++) {
		const struct mapping *map = &list->maps[i];
		int err;

		/* Each file once: its mappings follow each other. */
		if (!map->module || (i && list->maps[i - 1].module == map->module))
			continue;
		err = variable_in(map->module, &v);
		if (err < 0)
			return err;
		if (!err)
			continue;
		*addr = map->bias + v.value;
		*size = v.size;
		return 0;
	}
	return -ENOENT;
}

enum { MAX_STRING = 200 }; /* letters of a string that print shows */

/* The arguments of a command, for the thread that reads memory. */
struct look {
	const struct console *console;
	const char *command;
	taddr_t addr;
	u64 max;	    /* show: bytes */
	const char *name;   /* print: of a variable; NULL = there is an address */
	const char *format; /* print; NULL = as it suits the size of the variable */
	char for_size[32];  /* such a format */
	u32 nr_shown;	    /* show: blocks that hold the address */
};

/* Memory can be read only where the process runs. 0 or -EINVAL, logged. */
static int check_place(const struct console *c, const char *command)
{
	if (c->path)
		return console_refuse(c, -EINVAL, "%s: a recording holds no contents of memory", command);
	if (c->remote)
		return console_refuse(c, -EINVAL,
				      "%s: contents of memory stay on the machine of the process: use "
				      "'heaptap console' there",
				      command);
	return 0;
}

static int take_addr(struct look *l, const char *word)
{
	if (!parse_hex(word, &l->addr))
		return 0;
	return console_refuse(l->console, -EINVAL, "%s: %s: must be an address such as 0x55d0c0de10",
			      l->command, word);
}

static int open_view(const struct look *l, const struct report_process *p, struct memory_view **v)
{
	int err = memory_view_new(v, p->target->pid);

	return err ? console_refuse(l->console, err, "%s: PID %d: cannot read its memory: %s", l->command,
				    (int)p->target->pid, strerror(-err))
		   : 0;
}

static int show_block(struct look *l, const struct report *r, const struct report_process *p)
{
	struct place_block b = { .addr = l->addr };
	struct memory_view *v;
	int err;

	report_place_blocks(p->heap, &b, 1);
	if (!b.is_found)
		return 0;
	l->nr_shown++;
	err = open_view(l, p, &v);
	if (err)
		return err;
	if (r->nr_processes > 1)
		report_name(l->console->out, p->target);
	err = report_memory(l->console->out, r, p, v, &b.block, l->max);
	memory_view_free(v);
	return err == -EIO ? console_refuse(l->console, err, "show: 0x%llx: the process has no such memory",
					    (unsigned long long)b.block.addr)
			   : err;
}

static int write_block(void *ctx, const struct report *r)
{
	struct look *l = ctx;
	int err = 0;

	for (size_t i = 0; i < r->nr_processes && !err; i++)
		if (target_is_alive(r->processes[i].target))
			err = show_block(l, r, &r->processes[i]);
	return err;
}

int console_show(struct console *c, size_t nr, char **words)
{
	struct look l = { .console = c, .command = "show", .max = MEMORY_DEFAULT };
	int err;

	if (!nr)
		return console_settings(c);
	err = check_place(c, "show");
	if (!err)
		err = take_addr(&l, words[0]);
	if (!err && nr > 1 && (parse_size(words[1], &l.max) || !l.max))
		err = console_refuse(c, -EINVAL, "show: %s: must be a size such as 4096 or 64K", words[1]);
	if (err)
		return err;
	err = session_show(c->session, c->pid, write_block, &l);
	if (err || l.nr_shown)
		return err;
	return console_refuse(c, -EINVAL, "show: %s: in no live block; 'print' shows any memory", words[0]);
}

const struct report_process *console_only_process(const struct console *c, const char *command,
						  const struct report *r)
{
	const struct report_process *found = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < r->nr_processes; i++) {
		if (!target_is_alive(r->processes[i].target) || r->processes[i].is_replaced)
			continue;
		found = &r->processes[i];
		nr++;
	}
	if (nr == 1)
		return found;
	if (nr)
		console_refuse(c, 0, "%s: which process? 'set process PID' chooses one of %zu", command, nr);
	else
		console_refuse(c, 0, "%s: no such process runs", command);
	return NULL;
}

static int cannot_read(const struct look *l, taddr_t addr)
{
	return console_refuse(l->console, -EINVAL, "print: 0x%llx: the process has no readable memory there",
			      (unsigned long long)addr);
}

/* Strings, one behind the other. */
static int print_strings(const struct look *l, const struct memory_view *v, u32 count)
{
	taddr_t addr = l->addr;

	for (u32 i = 0; i < count; i++) {
		char text[MAX_STRING + 1];
		size_t got = memory_view_read(v, addr, text, MAX_STRING), len;

		if (!got)
			return cannot_read(l, addr);
		text[got] = '\0';
		len = strlen(text);
		fprintf(l->console->out, "0x%llx:\t\"", (unsigned long long)addr);
		escape_text(l->console->out, text);
		fprintf(l->console->out, "\"%s\n", len == got ? "..." : "");
		addr += len + (len < got);
	}
	return 0;
}

/* Write the name of the place that the address @value leads to. */
static int console_memory_print_place(FILE *out, const struct report *r, const struct report_process *p,
				      const struct memory_view *v, taddr_t value)
{
	struct place_block b = { .addr = value };
	char text[PLACE_MAX];
	int err;

	if (!memory_view_map(v, value))
		return 0;
	report_place_blocks(p->heap, &b, 1);
	err = report_place(r, p, v, &b, text);
	if (!err)
		fprintf(out, "  %s", text);
	return err;
}

static int print_values(const struct look *l, const struct report *r, const struct report_process *p,
			const struct memory_view *v, const struct print_format *f)
{
	size_t want = (size_t)f->count * f->size, got;
	auto_free u8 *bytes = malloc(want);
	u32 columns = print_format_columns(f);
	FILE *out = l->console->out;
	int err = 0;

	if (!bytes)
		return -ENOMEM;
	got = memory_view_read(v, l->addr, bytes, want) / f->size;
	for (size_t i = 0; i < got && !err; i++) {
		if (i % columns == 0)
			fprintf(out, "%s0x%llx:", i ? "\n" : "", (unsigned long long)(l->addr + i * f->size));
		fputc('\t', out);
		print_format_write(out, f, bytes + i * f->size);
		if (f->letter == 'a')
			err = console_memory_print_place(out, r, p, v,
							 print_format_value(f, bytes + i * f->size));
	}
	if (got)
		fputc('\n', out);
	if (!err && got < f->count)
		err = cannot_read(l, l->addr + got * f->size);
	return err;
}

/* Find the variable l->name, and a format for its size. 0 or -EINVAL, logged. */
static int find_variable(struct look *l, const struct report_process *p)
{
	u64 size = 0;
	int err = console_variable(p->target, l->name, &l->addr, &size);
	char letter = size % 8 ? size % 4 ? 'b' : 'w' : 'g';

	if (err)
		return console_refuse(
			l->console, -EINVAL,
			"print: %s: must be an address such as 0x55d0c0de10, or a global variable in "
			"the symbols of the process",
			l->name);
	size /= letter == 'g' ? 8 : letter == 'w' ? 4 : 1;
	snprintf(l->for_size, sizeof(l->for_size), "%llux%c", (unsigned long long)(size ? size : 1), letter);
	if (!l->format)
		l->format = l->for_size;
	return 0;
}

static int console_memory_write_memory(void *ctx, const struct report *r)
{
	struct look *l = ctx;
	const struct report_process *p = console_only_process(l->console, l->command, r);
	struct print_format f;
	struct memory_view *v;
	int err;

	if (!p)
		return -EINVAL;
	err = l->name ? find_variable(l, p) : 0;
	if (err)
		return err;
	err = print_format_parse(&f, l->format ? l->format : "xw", p->target->is_32bit ? 4 : 8);
	if (err == -ERANGE)
		return console_refuse(l->console, err, "print: %s: more than %d KiB", l->format,
				      PRINT_MAX_BYTES / 1024);
	if (err)
		return console_refuse(
			l->console, err,
			"print: %s: must be a format such as 4xg: a count, one of x z d u o t c "
			"a f s, and a size: b h w g",
			l->format);
	err = open_view(l, p, &v);
	if (err)
		return err;
	if (f.letter == 's')
		err = print_strings(l, v, f.count);
	else
		err = print_values(l, r, p, v, &f);
	memory_view_free(v);
	return err;
}

int console_print(struct console *c, size_t nr, char **words)
{
	struct look l = { .console = c, .command = "print", .format = nr > 1 ? words[1] : NULL };
	int err = check_place(c, "print");

	if (parse_hex(words[0], &l.addr))
		l.name = words[0];
	if (!err)
		err = session_show(c->session, c->pid, console_memory_write_memory, &l);
	return err == -ERANGE ? -EINVAL : err;
}
