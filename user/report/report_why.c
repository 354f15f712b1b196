/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes chains of pointers: roots with the names of variables, blocks with their callers. Names are looked up late. */
#include "user/report/report_why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/regs.h"
#include "user/names/data_ref.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/report/report_json.h"
#include "user/report/report_parts.h"
#include "user/report/report_text.h"
#include "user/lib/path.h"
#include "user/scan/kernel_words.h"
#include "user/names/symbolize.h"
#include "user/scan/leaks.h"
#include "user/target/target.h"

enum {
	MAX_NAME = 200,
	SHOWN_STEPS = 4, /* at each end of a chain */
};

/* The root of a chain. Strings live as long as the report, except strings in the buffers. */
struct root_name {
	const char *kind;     /* JSON: "global", "tls", ... */
	const char *variable; /* NULL = unknown */
	u64 offset;	      /* in the variable */
	const char *path;     /* of the mapped file, NULL = none */
	char reg[32];
};

static void report_why_open_file(void *ctx, struct module *m)
{
	symbolizer_open(ctx, m);
}

static int report_why_name_memory(struct root_name *n, const struct report *r, const struct report_process *p,
				  const struct leak_why *why)
{
	const struct mapping_list *maps = &p->target->maps;
	struct code_ref ref = { 0 };
	const struct module *m;
	bool is_tls;

	/* The files may be those of another machine, or may have changed: the symbolizer opens the right ones. */
	if (r->symbolizer)
		data_ref_open(maps, p->target->exe, why->root_addr, report_why_open_file, r->symbolizer);
	/* Look for thread-local data first: musl keeps the data of the first thread in .bss of the library. */
	if (why->root_tid)
		ref = data_ref_tls(maps, p->target->exe, why->root_tp, why->root_addr);
	is_tls = ref.module != 0;
	if (!is_tls)
		ref = data_ref(maps, why->root_addr);
	if (is_tls)
		n->kind = "tls";
	else if (ref.module)
		n->kind = "global";
	else if (why->root_tid)
		n->kind = why->root_addr < why->root_tp || !strcmp(why->root_path, "[stack]") ? "stack"
											      : "thread";
	m = module_get(r->modules, ref.module);
	n->path = m ? module_name(m) : *why->root_path ? why->root_path : NULL;
	n->offset = ref.offset;
	if (!m || !r->symbolizer)
		return 0;
	return symbolize_data(r->symbolizer, ref, is_tls, &n->variable, &n->offset);
}

static int name_root(struct root_name *n, const struct report *r, const struct report_process *p,
		     const struct leak_why *why)
{
	static const char *const kinds[] = {
		[ROOT_NONE] = "unknown",
		[ROOT_MEMORY] = "memory",
		[ROOT_REGISTER] = "register",
		[ROOT_KERNEL] = "kernel",
	};

	*n = (struct root_name){ .kind = kinds[why->root] };
	if (why->root == ROOT_REGISTER && why->root_path)
		snprintf(n->reg, sizeof(n->reg), "%s", why->root_path);
	else if (why->root == ROOT_REGISTER)
		arch_reg_name(why->word_size, why->root_where, n->reg, sizeof(n->reg));
	if (why->root == ROOT_NONE && why->verdict >= SCAN_DEFINITE)
		n->kind = "lost";
	return why->root == ROOT_MEMORY ? report_why_name_memory(n, r, p, why) : 0;
}

static void print_file(FILE *out, const struct report *r, const struct root_name *n)
{
	escape_text(out, r->options.verbose ? n->path : path_name(n->path));
}

/* "server.dbs+0x10 in redis-server" */
static void print_variable(FILE *out, const struct report *r, const struct root_name *n)
{
	char name[MAX_NAME];

	if (!n->variable) {
		fputs("the data of ", out);
		print_file(out, r, n);
		fprintf(out, " (+0x%llx)", (unsigned long long)n->offset);
		return;
	}
	fputs(escape_buf(name, sizeof(name), n->variable), out);
	if (n->offset)
		fprintf(out, "+0x%llx", (unsigned long long)n->offset);
	fputs(" in ", out);
	print_file(out, r, n);
}

static void report_why_print_memory(FILE *out, const struct report *r, const struct report_process *p,
				    const struct root_name *n, const struct leak_why *why)
{
	unsigned long long addr = why->root_addr;

	if (!strcmp(n->kind, "global") || !strcmp(n->kind, "tls")) {
		print_variable(out, r, n);
		if (*n->kind == 't')
			fprintf(out, ", thread-local, thread %d", (int)why->root_tid);
	} else if (!strcmp(n->kind, "stack")) {
		fprintf(out, "the stack of thread %d (0x%llx)", (int)why->root_tid, addr);
	} else if (!strcmp(n->kind, "thread")) {
		fprintf(out, "data of thread %d (0x%llx)", (int)why->root_tid, addr);
	} else {
		fprintf(out, "memory at 0x%llx", addr);
		if (n->path) {
			fputs(" in ", out);
			print_file(out, r, n);
		}
		/* Memory that is no known block: for example a block from before the attach. */
		if (p->leaks->is_partial)
			fprintf(out,
				", probably in a block from before tracing ('heaptap scan --why 0x%llx %d' follows it)",
				addr, (int)p->target->pid);
	}
}

static void report_why_print_root(FILE *out, const struct report *r, const struct report_process *p,
				  const struct root_name *n, const struct leak_why *why)
{
	switch (why->root) {
	case ROOT_MEMORY:
		report_why_print_memory(out, r, p, n, why);
		break;
	case ROOT_REGISTER:
		fprintf(out, "register %s of thread %d", n->reg, (int)why->root_tid);
		break;
	case ROOT_KERNEL:
		if (why->root_where == KERNEL_TIMER)
			fputs("a timer, in the kernel", out);
		else if (why->root_where == KERNEL_SIGNAL_STACK)
			fputs("the kernel, as a signal stack", out);
		else if (why->root_where == KERNEL_REQUEST)
			fputs("the kernel, for an io_uring request", out);
		else
			fprintf(out, "the kernel, for descriptor %u (epoll)", why->root_where);
		break;
	default:
		fputs(*n->kind == 'l' ? "nothing any more" : "a root that was not kept", out);
	}
}

/* One line of a chain. Equal lines that follow each other are shown once. */
struct line {
	char what[2 * MAX_NAME + 64]; /* "64 B of make_node < add_node" */
	u64 nr;			      /* blocks */
	taddr_t addr;		      /* of the last block */
	u64 offset;
};

/* Append to @line the callers that allocated the block. */
static int report_why_add_callers(struct line *line, const struct report *r, const struct report_process *p,
				  u32 row)
{
	char names[2 * MAX_NAME];
	size_t used = strlen(line->what);
	int err = row == WHY_NO_ROW ? 0 : report_callers(r, p, row, names, sizeof(names));

	if (!err && row != WHY_NO_ROW && *names)
		snprintf(line->what + used, sizeof(line->what) - used, " from %s", names);
	return err;
}

static int report_why_make_line(struct line *line, const struct report *r, const struct report_process *p,
				const struct why_step *step)
{
	*line = (struct line){ .nr = step->nr, .addr = step->addr, .offset = step->offset };
	snprintf(line->what, sizeof(line->what), "%s", human_bytes(step->size).text);
	return report_why_add_callers(line, r, p, step->row);
}

static void print_line(FILE *out, const struct line *line, bool is_last)
{
	fputs("          -> ", out);
	if (line->nr > 1)
		fprintf(out, "(%s more) -> ", human_count(line->nr - 1).text);
	fputs(line->what, out);
	if (is_last)
		fprintf(out, " (0x%llx)", (unsigned long long)line->addr);
	if (line->offset)
		fprintf(out, ", by a pointer to its byte %llu", (unsigned long long)line->offset);
	putc('\n', out);
}

/* Add a line to the chain, or one more block to its last line. */
static void report_why_add_line(struct line *lines, size_t *nr, const struct line *next)
{
	struct line *last = *nr ? &lines[*nr - 1] : NULL;

	if (last && !strcmp(last->what, next->what)) {
		u64 blocks = last->nr;

		*last = *next;
		last->nr += blocks;
		return;
	}
	lines[(*nr)++] = *next;
}

/* Both ends of a long chain say most. */
static void report_why_print_lines(FILE *out, const struct line *lines, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		u64 blocks = 0;

		for (; nr > 2 * SHOWN_STEPS + 1 && i >= SHOWN_STEPS && i < nr - SHOWN_STEPS; i++)
			blocks += lines[i].nr;
		if (blocks || !*lines[i].what)
			fprintf(out, "          -> (%s more)\n",
				human_count(blocks ? blocks : lines[i].nr).text);
		if (*lines[i].what)
			print_line(out, &lines[i], i + 1 == nr);
	}
}

static int print_steps(FILE *out, const struct report *r, const struct report_process *p,
		       const struct leak_why *why)
{
	const struct line gap = { .nr = why->nr_left_out };
	auto_free struct line *lines = calloc(why->nr_steps + 1, sizeof(*lines));
	size_t nr = 0;
	int err = lines ? 0 : -ENOMEM;

	for (size_t i = 0; i < why->nr_steps && !err; i++) {
		struct line next;

		err = report_why_make_line(&next, r, p, &why->steps[i]);
		if (gap.nr && i == WHY_MAX_STEPS / 2)
			report_why_add_line(lines, &nr, &gap);
		report_why_add_line(lines, &nr, &next);
	}
	if (!err)
		report_why_print_lines(out, lines, nr);
	return err;
}

int report_why_text(FILE *out, const struct report *r, const struct report_process *p,
		    const struct leak_why *why)
{
	struct root_name n;
	int err;

	if (!why->nr_steps)
		return 0;
	err = name_root(&n, r, p, why);
	if (err)
		return err;
	fputs("        one of them is held by ", out);
	report_why_print_root(out, r, p, &n, why);
	putc('\n', out);
	return print_steps(out, r, p, why);
}

int report_asked_text(FILE *out, const struct report *r, const struct report_process *p,
		      const struct leak_why *why)
{
	const struct why_step *last = why->nr_steps ? &why->steps[why->nr_steps - 1] : NULL;
	struct root_name n;
	int err;

	if (!last) {
		fprintf(out, "\n0x%llx is in no live block that heaptap saw allocated\n",
			(unsigned long long)why->addr);
		return 0;
	}
	err = name_root(&n, r, p, why);
	if (err)
		return err;
	fprintf(out, "\n0x%llx is in a block of %s, %s: held by ", (unsigned long long)why->addr,
		human_bytes(last->size).text, scan_verdict_name(why->verdict));
	report_why_print_root(out, r, p, &n, why);
	putc('\n', out);
	return print_steps(out, r, p, why);
}

static void report_why_json_root(struct json *j, const struct root_name *n, const struct leak_why *why)
{
	json_object_begin(j, "root");
	json_string(j, "kind", n->kind);
	if (why->root == ROOT_MEMORY) {
		json_hex(j, "address", why->root_addr);
		json_string(j, "variable", n->variable);
		json_hex(j, "offset", n->offset);
		json_string(j, "object", n->path);
	}
	if (why->root == ROOT_REGISTER)
		json_string(j, "register", n->reg);
	if (why->root_tid)
		json_u64(j, "thread", (u64)why->root_tid);
	if (why->root == ROOT_KERNEL && why->root_where < KERNEL_REQUEST)
		json_u64(j, "descriptor", why->root_where);
	json_object_end(j);
}

static void json_step(struct json *j, const struct caller_ids *ids, const struct why_step *step)
{
	json_object_begin(j, NULL);
	json_hex(j, "address", step->addr);
	json_u64(j, "size", step->size);
	json_u64(j, "offset", step->offset);
	json_u64(j, "blocks", step->nr);
	if (step->row != WHY_NO_ROW)
		report_json_id(j, "stack", ids, step->row);
	else
		json_null(j, "stack");
	json_object_end(j);
}

int report_why_json(struct json *j, const char *key, const struct report *r, const struct report_process *p,
		    const struct caller_ids *ids, const struct leak_why *why)
{
	struct root_name n;
	int err;

	if (!why) {
		json_null(j, key);
		return 0;
	}
	err = name_root(&n, r, p, why);
	if (err)
		return err;
	json_object_begin(j, key);
	json_hex(j, "address", why->addr);
	json_string(j, "verdict", scan_verdict_name(why->verdict));
	report_why_json_root(j, &n, why);
	json_u64(j, "left_out", why->nr_left_out);
	json_array_begin(j, "chain");
	for (size_t i = 0; i < why->nr_steps; i++)
		json_step(j, ids, &why->steps[i]);
	json_array_end(j);
	json_object_end(j);
	return 0;
}
