/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a function in the files of a process, has the kernel watch it, and prints its calls. */
#include "user/console/console_calls.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "user/console/console.h"
#include "user/console/console_break.h"
#include "user/console/console_input.h"
#include "user/console/held_process.h"
#include "user/lib/clock.h"
#include "user/lib/elf.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/lib/path.h"
#include "user/lib/proc.h"
#include "user/lib/proc_memory.h"
#include "user/report/own_code.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/source/call_watch.h"
#include "user/target/target.h"

#if defined(__x86_64__)
enum { BREAKPOINT = 0xcc }; /* of the kernel for another probe: both are told */
#else
enum { BREAKPOINT = 0 };
#endif

enum { CODE_BYTES = 8 };
enum { FLUSH_NS = 50 * 1000 * 1000, MAX_WORD = 4096 };

/* A function whose calls are printed. */
struct console_calls {
	struct console_calls *next;
	struct call_watch *watch; /* owned */
	char *name;		  /* owned; as it was typed */
	pid_t pid;
	u64 rate, second_ns, nr_taken; /* calls a second; when the present one began; calls in it */
	u64 nr_left_out;	       /* since the last line about those */
	u64 flushed_ns, told_ns;       /* when calls were printed, and how many were left out */
};

/* The search for a function. */
struct calls_search {
	struct console *console;
	const char *command, *text; /* "FILE:FUNCTION" or "FUNCTION" */
	const char *function;	    /* in text */
	bool stops;
	bool is_found;
	u64 vaddr;		   /* of the symbol in its file */
	pid_t pid;		   /* of the process */
	struct call_watch *watch;  /* the result */
	struct held_process *held; /* with stops, the other one */
};

static int calls_on_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct calls_search *s = ctx;

	if (sym->shndx == SHN_UNDEF || sym->type != STT_FUNC || strcmp(sym->name, s->function) != 0)
		return 0;
	s->vaddr = sym->value;
	return 1;
}

/* Does the user mean the file @m? */
static bool calls_is_file(const struct calls_search *s, const struct module *m)
{
	size_t len = s->function == s->text ? 0 : (size_t)(s->function - s->text) - 1;
	const char *path = module_name(m), *base = path_name(path);

	if (!len)
		return true;
	return (strlen(path) == len && !strncmp(path, s->text, len)) ||
	       (strlen(base) == len && !strncmp(base, s->text, len));
}

/* Read the code of the function as the file has it, and as the process has it now. False if one cannot be read. */
static bool calls_read_code(const struct calls_search *s, struct elf *elf, const struct mapping *map,
			    u8 file[CODE_BYTES], u8 memory[CODE_BYTES])
{
	struct proc_memory m;
	ssize_t n;

	if (elf_read_vaddr(elf, s->vaddr, file, CODE_BYTES) || proc_memory_open(&m, s->pid))
		return false;
	n = proc_memory_read(&m, s->vaddr + map->bias, memory, CODE_BYTES);
	proc_memory_close(&m);
	return n == CODE_BYTES;
}

/*
 * Watch the function, which is in the file of @map. The probe would write a breakpoint over code that another tracer
 * has put there, such as that of --backend inline, and later the bytes of the file; and it does not come to pages that
 * have taken the place of the file. Then -EBUSY.
 */
static int calls_watch(struct calls_search *s, struct elf *elf, const struct mapping *map)
{
	u8 file[CODE_BYTES], memory[CODE_BYTES];
	char path[32];
	u64 offset;
	int err = elf_vaddr_to_offset(elf, s->vaddr, &offset);

	if (err)
		return err;
	if (!calls_read_code(s, elf, map, file, memory))
		return -EBUSY;
	if (BREAKPOINT && memory[0] == BREAKPOINT)
		memory[0] = file[0];
	if (memcmp(file, memory, CODE_BYTES) != 0)
		return -EBUSY;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", map->module->fd);
	err = call_watch_new(&s->watch, s->pid, path, offset, s->stops);
	if (err || (calls_read_code(s, elf, map, file, memory) && memcmp(file, memory, CODE_BYTES) != 0))
		return err;
	call_watch_free(s->watch);
	s->watch = NULL;
	return -EBUSY;
}

/* Watch the function if the file of @map has it. 0, -ENOENT or another -errno. */
static int calls_try_file(struct calls_search *s, const struct mapping *map)
{
	const struct module *m = map->module;
	struct elf *elf = NULL;
	int err;

	if (!m || m->fd < 0 || !calls_is_file(s, m) || elf_open(&elf, m->fd))
		return -ENOENT;
	err = elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, calls_on_symbol, s);
	s->is_found = err == 1;
	if (s->is_found)
		err = calls_watch(s, elf, map);
	elf_close(elf);
	return err || s->is_found ? err : -ENOENT;
}

static int calls_refuse(const struct calls_search *s, int err)
{
	const char *why = err == -EBUSY	   ? "its code in memory is not that of the file (--backend inline?)"
			  : err == -ENODEV ? "this kernel or CPU has no such probes"
			  : err == -EPERM || err == -EACCES ? "takes the rights of root (CAP_PERFMON)"
							    : strerror(-err);

	if (!s->is_found)
		return console_refuse(
			s->console, -EINVAL,
			"%s: %s: no such function: must be an allocator function (malloc, free, new, "
			"all), or FILE:FUNCTION, by its name for linkers (nm), in a mapped file",
			s->command, s->text);
	return console_refuse(s->console, err, "%s: %s: %s", s->command, s->text, why);
}

static int calls_search(void *ctx, const struct report *r)
{
	struct calls_search *s = ctx;
	const struct report_process *p = console_only_process(s->console, s->command, r);
	const struct mapping_list *list = p ? &p->target->maps : NULL;
	int err = -ENOENT;

	if (!p)
		return -EINVAL;
	s->pid = p->target->pid;
	if (s->stops && held_process_new(&s->held, p->target))
		return console_refuse(s->console, -ESRCH, "%s: PID %d cannot be stopped", s->command,
				      (int)s->pid);
	if (s->stops)
		s->stops = !held_process_expect(s->held);
	for (const struct mapping *m = list->maps; m < list->maps + list->nr && err == -ENOENT; m++)
		err = calls_try_file(s, m);
	return err ? calls_refuse(s, err) : 0;
}

/* Find @text in the files of the process, and watch it. 0 or -errno, logged. */
static int calls_find(struct calls_search *s)
{
	const char *colon = strrchr(s->text, ':');

	if (s->console->remote)
		return console_refuse(
			s->console, -EINVAL,
			"%s: %s: must be an allocator function: others are watched on their own "
			"machine only",
			s->command, s->text);
	s->function = colon ? colon + 1 : s->text;
	return session_show(s->console->session, s->console->pid, calls_search, s);
}

/* "f(1, 0x7f12, 0)  < main (a.c:3)". */
static int calls_print_one(FILE *out, const struct report *r, const char *name,
			   const struct watched_call *call)
{
	u64 start_ns = r->time_ns - r->duration_ns;
	const struct symbol *symbols;
	struct own_code caller = { .symbol = NULL };
	char place[OWN_PLACE_MAX] = "";
	size_t nr;
	int err = 0;

	fprintf(out, "%12.6f  thread %u  ", (double)(s64)(call->time_ns - start_ns) / 1e9, call->tid);
	escape_text(out, name);
	putc('(', out);
	for (u32 i = 0; i < call->nr_args; i++)
		fprintf(out, call->args[i] < MAX_WORD ? "%s%" PRIu64 : "%s0x%" PRIx64, i ? ", " : "",
			call->args[i]);
	putc(')', out);
	if (call->caller && r->nr_processes) {
		caller.ref = mapping_ref(&r->processes[0].target->maps, call->caller);
		err = report_symbols(r, caller.ref, &symbols, &nr);
		caller.symbol = err ? NULL : symbols;
		own_code_text(r, &caller, place);
	}
	fprintf(out, "%s%s\n", *place ? "  " : "", place);
	return err;
}

/* Is the call to be printed? Else it is left out. */
static bool calls_take(struct console_calls *f, const struct watched_call *call)
{
	if (call->time_ns - f->second_ns >= SECOND_NS) {
		f->second_ns = call->time_ns;
		f->nr_taken = 0;
	}
	if (f->nr_taken >= f->rate) {
		f->nr_left_out++;
		return false;
	}
	f->nr_taken++;
	return true;
}

/* Once a second, as `log` of allocator functions does. */
static void calls_tell_left_out(struct console_calls *f, FILE *out, bool at_once)
{
	u64 now = clock_now_ns();

	f->nr_left_out += call_watch_lost(f->watch);
	if (!f->nr_left_out || (!at_once && now - f->told_ns < SECOND_NS))
		return;
	fprintf(out, "%14s%s more of ", "", human_count(f->nr_left_out).text);
	escape_text(out, f->name);
	fprintf(out, ": at most %s calls a second are printed\n", human_count(f->rate).text);
	f->nr_left_out = 0;
	f->told_ns = now;
}

struct calls_round {
	struct console *console;
	bool at_once;
};

static int calls_print(void *ctx, const struct report *r)
{
	const struct calls_round *round = ctx;
	const struct console *c = round->console;
	FILE *out = c->file ? c->out : stdout;
	struct watched_call call;
	int err = 0;

	for (struct console_calls *f = c->calls; f && !err; f = f->next) {
		while (!err && call_watch_next(f->watch, &call))
			if (calls_take(f, &call))
				err = calls_print_one(out, r, f->name, &call);
		calls_tell_left_out(f, out, round->at_once);
	}
	return err ? err : flush_stream(out);
}

void console_calls_flush(struct console *c, bool at_once)
{
	struct calls_round round = { c, at_once };
	u64 now = clock_now_ns();

	if (!c->calls || (!at_once && now - c->calls->flushed_ns < FLUSH_NS))
		return;
	c->calls->flushed_ns = now;
	if (c->is_terminal && c->input)
		console_input_hide(c->input);
	if (session_show(c->session, c->pid ? c->pid : c->calls->pid, calls_print, &round))
		c->is_over = true;
}

static void calls_free_one(struct console_calls *f)
{
	call_watch_free(f->watch);
	free(f->name);
	free(f);
}

void console_calls_free(struct console *c)
{
	while (c->calls) {
		struct console_calls *f = c->calls;

		c->calls = f->next;
		calls_free_one(f);
	}
}

size_t console_calls_list(const struct console *c)
{
	size_t nr = 0;

	for (const struct console_calls *f = c->calls; f; f = f->next, nr++) {
		escape_text(c->out, f->name);
		fprintf(c->out, ": %s calls a second at most\n", human_count(f->rate).text);
	}
	return nr;
}

/* Take the function out of the list. False: it is in none. */
static bool calls_forget(struct console *c, const char *text)
{
	for (struct console_calls **f = &c->calls; *f; f = &(*f)->next) {
		struct console_calls *gone = *f;

		if (strcmp(gone->name, text) != 0)
			continue;
		*f = gone->next;
		calls_free_one(gone);
		return true;
	}
	return false;
}

int console_calls_log(struct console *c, const char *text, bool is_off, u64 rate)
{
	struct calls_search s = { .console = c, .command = "log", .text = text };
	struct console_calls *f;
	int err;

	console_calls_flush(c, true);
	if (calls_forget(c, text) && is_off)
		return 0;
	if (is_off)
		return console_refuse(c, -EINVAL, "log: %s: is not logged", text);
	err = calls_find(&s);
	if (err)
		return err;
	f = calloc(1, sizeof(*f));
	if (f)
		*f = (struct console_calls){
			.next = c->calls, .watch = s.watch, .name = strdup(text), .pid = s.pid, .rate = rate
		};
	if (f && f->name) {
		c->calls = f;
		return 0;
	}
	call_watch_free(s.watch);
	free(f);
	return console_refuse(c, -ENOMEM, "log: %s", strerror(ENOMEM));
}

/* A call that `break` waits for. */
struct calls_break {
	struct calls_search search;
	struct watched_call call;
	bool has_call, may_have_call, is_in_call;
	int err;
	u64 delay_ns;
};

static bool calls_is_stopped(pid_t pid)
{
	struct proc_stat stat;

	return !proc_read_stat(&stat, pid) && (stat.state == 'T' || stat.state == 't');
}

static bool calls_has_come(const struct console *c, void *arg)
{
	struct calls_break *b = arg;

	(void)c;
	if (b->has_call)
		return true;
	if (!call_watch_next(b->search.watch, &b->call)) {
		/* Without room for the call that was stopped, the latest one before tells where it was. */
		b->has_call =
			(b->may_have_call || (b->call.time_ns && call_watch_was_full(b->search.watch))) &&
			calls_is_stopped(b->search.pid);
	} else {
		b->may_have_call = b->call.may_be_stopped;
		b->has_call = !b->may_have_call;
	}
	if (!b->has_call)
		return false;
	b->is_in_call = b->call.is_stopped || b->may_have_call;
	if (b->call.is_stopped)
		held_process_found(b->search.held);
	else
		b->err = held_process_stop(b->search.held);
	b->delay_ns = clock_now_ns() - b->call.time_ns;
	return true;
}

static int calls_describe(void *ctx, const struct report *r)
{
	const struct calls_break *b = ctx;
	FILE *out = b->search.console->out;

	fprintf(out, "PID %d ", (int)b->search.pid);
	if (b->is_in_call)
		fputs("is stopped in this call, and waits until 'continue':\n", out);
	else
		fprintf(out, "was stopped %s after this call, and waits until 'continue':\n",
			human_duration(b->delay_ns).text);
	return calls_print_one(out, r, b->search.text, &b->call);
}

int console_calls_break(struct console *c, const char *text)
{
	struct calls_break b = { .search = {
					 .console = c, .command = "break", .text = text, .stops = true } };
	enum wait_end end = WAIT_ENDED;
	int err = calls_find(&b.search);

	if (!err) {
		c->is_eager = true;
		end = console_wait_for(c, 0, calls_has_come, &b);
		c->is_eager = false;
	}
	call_watch_free(b.search.watch);
	c->held = b.search.held;
	if (!err && b.has_call && !b.err)
		return session_show(c->session, b.search.pid, calls_describe, &b);
	console_break_end(c);
	if (err || (!b.has_call && end != WAIT_ENDED))
		return err;
	return console_refuse(c, -ESRCH, "break: the process has ended");
}
