/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the frame of a stack that people look for, and names it. */
#include "user/report/own_code.h"

#include <stdio.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/escape.h"
#include "user/lib/path.h"
#include "user/names/symbolize.h"
#include "user/report/library_code.h"
#include "user/report/short_name.h"
#include "user/report/wrappers.h"
#include "user/target/target.h"

enum { FUNCTION_WIDTH = 50, FUNCTION_MAX = 100, FILE_MAX = 100 };

/* The search on one stack: what to take if no function of the program's own is found. */
struct own_search {
	const struct report *report;
	const struct report_process *process;
	const struct stack *stack;
	struct own_code first;	 /* the innermost one */
	struct own_code unnamed; /* the innermost one without a name that is in no library of a language */
	struct own_code skipped; /* the innermost function that was left out */
	struct own_code
		lineless; /* the innermost one of a library that has no line: a user of it may have one */
	u32 number;
};

static bool own_is_program(const struct own_search *s, const struct module *m)
{
	const char *exe = s->process->target->exe;

	return m && exe && !strcmp(exe, m->path);
}

static bool own_is_main(const char *name)
{
	size_t len = strlen(name);

	return !strcmp(name, "main") || (len > 6 && !strcmp(name + len - 6, "::main"));
}

/* Is the function of frame @i called from main alone? Then its name says what it does, also if that is to allocate. */
static int own_is_only_mains(const struct own_search *s, u32 i)
{
	const struct symbol *symbols;
	size_t nr;
	int err;

	if (i + 1 >= s->stack->nr_frames || wrappers_callers(s->process->wrappers, s->stack->frames[i]) > 1)
		return 0;
	err = report_symbols(s->report, s->stack->frames[i + 1], &symbols, &nr);
	return err ? err : symbols[nr - 1].function && own_is_main(symbols[nr - 1].function);
}

/* Is symbol @k of frame @i left out? 1, 0, or -errno. */
static int own_is_left_out(const struct own_search *s, const struct own_code *o, bool is_outermost)
{
	const struct module *m = module_get(s->report->modules, o->ref.module);
	int is_mains;

	if (code_ref_is_folded(o->ref) || (m && library_is_file(m->path)) || library_is_function(o->symbol))
		return 1;
	if (wrappers_is_named(s->process->wrappers, o->symbol->function))
		return 1;
	if (is_outermost && wrappers_has(s->process->wrappers, o->ref) && !own_is_main(o->symbol->function))
		return 1;
	if (!library_is_wrapper_name(o->symbol->function))
		return 0;
	is_mains = own_is_only_mains(s, o->frame);
	return is_mains < 0 ? is_mains : !is_mains;
}

/* A frame without a name: 1 if it is the program's own code, which is named by its offset. */
static int own_look_unnamed(struct own_search *s, const struct own_code *o)
{
	const struct module *m = module_get(s->report->modules, o->ref.module);

	if (m && library_is_file(m->path))
		return 0;
	/* Compiled code in no file has no offset that says something to a reader. */
	if (m && !s->unnamed.symbol)
		s->unnamed = *o;
	return own_is_program(s, m) && !wrappers_has(s->process->wrappers, o->ref);
}

/* Code of the program's file, or with a line: nothing further out is nearer to the program. */
static bool own_is_final(const struct own_search *s, const struct own_code *o)
{
	return o->symbol->line || own_is_program(s, module_get(s->report->modules, o->ref.module));
}

/* Look at frame @i. 1 if the search is over: *@out is the place if it is found; 0, or -errno. */
static int own_look(struct own_search *s, u32 i, struct own_code *out)
{
	const struct symbol *symbols;
	size_t nr;
	int err = report_symbols(s->report, s->stack->frames[i], &symbols, &nr);

	for (size_t k = 0; k < nr && !err; k++) {
		struct own_code o = { s->stack->frames[i], &symbols[k], i, (u32)k, s->number };

		if (!s->number++)
			s->first = o;
		if (i && symbols[k].function && library_is_start(symbols[k].function))
			return 1;
		if (!symbols[k].function)
			err = !own_look_unnamed(s, &o);
		else
			err = own_is_left_out(s, &o, k + 1 == nr);
		if (err > 0 && symbols[k].function && !s->skipped.symbol)
			s->skipped = o;
		if (!err && own_is_final(s, &o)) {
			*out = o;
			return 1;
		}
		if (!err && !s->lineless.symbol)
			s->lineless = o;
		err = err < 0 ? err : 0;
	}
	return err;
}

/* Is the code that asked an interpreter in frame @i, of @nr @symbols? 1, with *@out; 0, or -errno. */
static int own_look_outside(const struct own_search *s, u32 i, u32 number, const struct symbol *symbols,
			    size_t nr, struct own_code *out)
{
	int err = 1;

	for (size_t k = 0; k < nr && err > 0; k++) {
		struct own_code o = { s->stack->frames[i], &symbols[k], i, (u32)k, number + (u32)k };

		err = symbols[k].function ? own_is_left_out(s, &o, k + 1 == nr) : 1;
		if (!err)
			*out = o;
	}
	return err < 0 ? err : !err;
}

/*
 * The program that starts an interpreter in a library, ruby, says nothing: if *@out is in it, take the innermost
 * function of that library that has a name.
 */
static int own_look_started(const struct own_search *s, struct own_code *out)
{
	const u32 end = out->symbol->function && !own_is_main(out->symbol->function) ? 0 : out->frame;
	u32 number = 0;
	int err = 1;

	for (u32 i = 0; i < end && err > 0; i++) {
		const struct module *m = module_get(s->report->modules, s->stack->frames[i].module);
		const struct symbol *symbols;
		size_t nr;

		err = report_symbols(s->report, s->stack->frames[i], &symbols, &nr);
		if (!err)
			err = m && !own_is_program(s, m) && library_is_interpreter(m->path)
				      ? own_look_outside(s, i, number, symbols, nr, out)
				      : 0;
		err = err < 0 ? err : !err;
		number += (u32)nr;
	}
	return err < 0 ? err : 0;
}

/*
 * The functions that an interpreter without symbols exports have names still: of *@out, an offset in it, take the
 * innermost one on the stack, such as PyByteArray_Resize: the offset is a part of its work.
 */
static int own_look_exported(const struct own_search *s, struct own_code *out)
{
	u32 number = out->number - out->inlined;
	int err = 0;

	for (u32 i = out->frame; i < s->stack->nr_frames && !err; i++) {
		struct code_ref ref = s->stack->frames[i];
		const struct symbol *symbols;
		size_t nr;

		err = report_symbols(s->report, ref, &symbols, &nr);
		if (err || !nr || !symbols->function) {
			number += (u32)nr;
			continue;
		}
		if (ref.module == out->ref.module && !library_runs_code(symbols->function) &&
		    !library_is_start(symbols->function) && !own_is_main(symbols->function))
			*out = (struct own_code){ ref, symbols, i, 0, number };
		return 0;
	}
	return err;
}

/*
 * An interpreter allocates for the code that it runs. If *@out is in one, take the function that a perf map names, or
 * the extension in compiled code that called the interpreter: an object that it asked for is its own.
 */
static int own_look_interpreted(struct own_search *s, struct own_code *out)
{
	const struct module *m = module_get(s->report->modules, out->ref.module);
	u32 number = out->number - out->inlined;
	bool runs_code = false;
	int err = 0;

	if (!out->symbol || !m || !library_is_interpreter(m->path))
		return 0;
	for (u32 i = out->frame; i < s->stack->nr_frames && !err; i++) {
		struct code_ref ref = s->stack->frames[i];
		const struct symbol *symbols;
		size_t nr;

		err = report_symbols(s->report, ref, &symbols, &nr);
		if (err || !nr)
			continue;
		m = module_get(s->report->modules, ref.module);
		if (!m && symbols->function && !code_ref_is_folded(ref) && !library_is_function(symbols)) {
			*out = (struct own_code){ ref, symbols, i, 0, number };
			return 0;
		}
		if (m && !runs_code && !library_is_interpreter(m->path))
			err = own_look_outside(s, i, number, symbols, nr, out);
		runs_code |= library_runs_code(symbols[nr - 1].function);
		number += (u32)nr;
	}
	err = err ? err < 0 ? err : 0 : own_look_started(s, out);
	return err || out->symbol->function ? err : own_look_exported(s, out);
}

int own_code_find(const struct report *r, const struct report_process *p, u64 id, struct own_code *out)
{
	struct own_search s = { .report = r, .process = p };
	int err = 0;

	*out = (struct own_code){ .symbol = NULL };
	if (id != STACK_NONE && id != STACK_LOST)
		s.stack = stack_get(p->stacks, id);
	for (u32 i = 0; s.stack && i < s.stack->nr_frames && !err; i++)
		err = own_look(&s, i, out);
	if (err < 0)
		return err;
	if (!out->symbol)
		*out = s.lineless.symbol ? s.lineless : s.unnamed.symbol ? s.unnamed : s.skipped;
	if (!out->symbol)
		*out = s.first;
	return own_look_interpreted(&s, out);
}

char *own_code_text(const struct report *r, const struct own_code *o, char text[OWN_PLACE_MAX])
{
	const struct module *m = module_get(r->modules, o->ref.module);
	const struct symbol *s = o->symbol;
	char function[FUNCTION_MAX], file[FILE_MAX];
	const char *path = s && s->file && (s->line || !m) ? s->file : m ? module_name(m) : "";

	*text = '\0';
	if (!s)
		return text;
	escape_buf(file, sizeof(file), path_name(path));
	if (!IS_AGENT && s->function)
		bare_name(function, sizeof(function), s->function, FUNCTION_WIDTH);
	if (IS_AGENT || !s->function)
		snprintf(text, OWN_PLACE_MAX, m ? "%s+0x%llx" : "%s0x%llx", file,
			 (unsigned long long)o->ref.offset);
	else if (s->file && s->line)
		snprintf(text, OWN_PLACE_MAX, "%s (%s:%u)", function, file, s->line);
	else
		snprintf(text, OWN_PLACE_MAX, *file ? "%s (%s)" : "%s", function, file);
	return text;
}

int own_code_name(const struct report *r, const struct report_process *p, u64 id, char text[OWN_PLACE_MAX])
{
	struct own_code o;
	int err = own_code_find(r, p, id, &o);

	own_code_text(r, &o, text);
	return err;
}

/* Is the function @name of the frame @ref left out as a wrapper? */
static bool own_is_wrapper(const struct report *r, const struct report_process *p, struct code_ref ref,
			   const struct symbol *s)
{
	const struct module *m = module_get(r->modules, ref.module);

	if (!s->function || code_ref_is_folded(ref) || own_is_main(s->function) ||
	    (m && library_is_file(m->path)) || library_is_function(s))
		return false;
	return wrappers_has(p->wrappers, ref) || wrappers_is_named(p->wrappers, s->function) ||
	       (library_is_wrapper_name(s->function) && wrappers_callers(p->wrappers, ref) > 1);
}

int own_code_wrappers(const struct report *r, const struct report_process *p,
		      const char *names[OWN_MAX_WRAPPERS], size_t *nr)
{
	struct code_ref ref;
	int err = 0;

	*nr = 0;
	for (size_t i = 0; !err && *nr < OWN_MAX_WRAPPERS && wrappers_frame(p->wrappers, i, &ref); i++) {
		const struct symbol *symbols;
		size_t nr_symbols, k = 0;

		err = report_symbols(r, ref, &symbols, &nr_symbols);
		if (err || !own_is_wrapper(r, p, ref, &symbols[nr_symbols - 1]))
			continue;
		while (k < *nr && strcmp(names[k], symbols[nr_symbols - 1].function) != 0)
			k++;
		names[k] = symbols[nr_symbols - 1].function;
		*nr += k == *nr;
	}
	return err;
}
