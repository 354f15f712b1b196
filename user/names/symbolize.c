/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names places in modules. Opens the files of each module once, and looks each place up once. */
#include "user/names/symbolize.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/hash.h"
#include "user/lib/hash_index.h"
#include "user/lib/log.h"
#include "user/names/debug_file.h"
#include "user/names/demangle.h"
#include "user/names/dwarf_names.h"
#include "user/names/function_index.h"
#include "user/names/symbol_server.h"

enum { BLOCK_SIZE = 64 << 10 };

#define COPY_BUDGET (2ULL << 30) /* bytes */

/* Of all files: bytes of unpacked debug sections, which are a part of the machine's memory; and CPU time. */
#define UNPACK_MIN (256ULL << 20)
#define UNPACK_MAX (1ULL << 30)
#define LOOK_UP_NS (60ULL * 1000 * 1000 * 1000)
enum { MEMORY_PARTS = 16 };

/* Where the names of one module come from. */
struct module_names {
	bool is_open;			   /* tried, at least */
	Dwfl *dwfl;			   /* owned; NULL = no file */
	Dwfl_Module *module;		   /* borrowed from dwfl; NULL = no file */
	struct function_index *functions;  /* owned; NULL = none */
	struct function_index *data, *tls; /* owned; of variables; made when first needed; NULL = none */
	bool has_data, has_tls;		   /* that was tried, at least */
	struct dwarf_names *dwarf;	   /* owned; NULL = none */
	Dwarf_Addr bias;		   /* of the DWARF's addresses to the file's */
};

/* A place, and the names that were found for it. */
struct named_place {
	struct code_ref ref;
	struct symbol *symbols;
	size_t nr;
};

/* Memory for names, which are freed together at the end. */
struct memory_block {
	struct memory_block *next;
	size_t used, size;
	char bytes[];
};

struct symbolizer {
	const struct module_table *modules; /* borrowed */
	struct debug_search search;
	char *sysroot, *debug_path; /* owned; NULL = none */
	struct module_names *names; /* owned; by module id - 1 */
	size_t nr_names, max_names;
	struct named_place *places; /* owned; every place that was looked up */
	size_t nr_places, max_places;
	struct hash_index places_index;
	struct memory_block *blocks; /* owned */
	size_t nr_stale;
	u64 spent_ns;	  /* CPU time for names */
	bool is_too_late; /* all of it is spent, which was logged */
};

/* Context of the libdwfl callback that finds a separate file. */
struct module_context {
	struct debug_search *search;
	const struct module *module;
};

static const struct symbol unknown;

/*
 * Where to continue when libdw runs out of memory: its default is to end the process. The callback has no context
 * argument.
 */
static _Thread_local jmp_buf out_of_memory;

static void __attribute__((noreturn)) leave_libdw(void)
{
	longjmp(out_of_memory, 1);
}

static int find_elf(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base, char **file_name,
		    Elf **elf)
{
	(void)mod, (void)data, (void)name, (void)base, (void)file_name, (void)elf;
	return -1; /* reported with its file already */
}

static int find_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **debug_name)
{
	const struct module_context *context = *data;
	int fd = -1;

	(void)mod, (void)name, (void)base, (void)file_name;
	if (!context || debug_file_open_debug(context->search, context->module, link, crc, &fd) != 0)
		return -1;
	*debug_name = strdup("separate");
	return fd;
}

/* Not the library's standard callbacks: they may ask servers without permission. */
static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static u64 unpack_budget(void)
{
	u64 part = (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE) / MEMORY_PARTS;

	return part < UNPACK_MIN ? UNPACK_MIN : part > UNPACK_MAX ? UNPACK_MAX : part;
}

int symbolizer_new(struct symbolizer **out, const struct module_table *modules,
		   const struct symbolizer_options *options)
{
	struct symbolizer *s = calloc(1, sizeof(*s));
	struct symbol_server *server = NULL;

	if (!s)
		return -ENOMEM;
	s->modules = modules;
	if (options && options->sysroot)
		s->sysroot = strdup(options->sysroot);
	if (options && options->debug_path)
		s->debug_path = strdup(options->debug_path);
	if (options && ((options->sysroot && !s->sysroot) || (options->debug_path && !s->debug_path))) {
		symbolizer_free(s);
		return -ENOMEM;
	}
	if (options && options->asks_server && symbol_server_new(&server) == -ENOMEM) {
		symbolizer_free(s);
		return -ENOMEM;
	}
	s->search = (struct debug_search){ .server = server,
					   .sysroot = s->sysroot,
					   .debug_path = s->debug_path,
					   .is_remote = module_table_is_remote(modules),
					   .copy_budget = COPY_BUDGET,
					   .unpack_budget = unpack_budget() };
	*out = s;
	return 0;
}

static void names_close(struct module_names *n)
{
	function_index_free(n->functions);
	function_index_free(n->data);
	function_index_free(n->tls);
	dwarf_names_free(n->dwarf);
	if (n->dwfl)
		dwfl_end(n->dwfl);
	*n = (struct module_names){ .is_open = true };
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_names; i++)
		names_close(&s->names[i]);
	free(s->names);
	free(s->places);
	hash_index_fini(&s->places_index);
	while (s->blocks) {
		struct memory_block *b = s->blocks;

		s->blocks = b->next;
		free(b);
	}
	symbol_server_free(s->search.server);
	free(s->sysroot);
	free(s->debug_path);
	free(s);
}

size_t symbolizer_stale(const struct symbolizer *s)
{
	return s->nr_stale;
}

static void *keep(struct symbolizer *s, size_t size)
{
	struct memory_block *b = s->blocks;
	size_t wanted = (size + 7) & ~(size_t)7;

	if (!b || b->size - b->used < wanted) {
		size_t room = wanted > BLOCK_SIZE ? wanted : BLOCK_SIZE;

		b = malloc(sizeof(*b) + room);
		if (!b)
			return NULL;
		*b = (struct memory_block){ .next = s->blocks, .size = room };
		s->blocks = b;
	}
	b->used += wanted;
	return b->bytes + b->used - wanted;
}

static const char *keep_text(struct symbolizer *s, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = keep(s, size);

	return copy ? memcpy(copy, text, size) : NULL;
}

/* Report the file @fd to libdwfl, at the addresses in its headers. Closes @fd. */
static Dwfl_Module *report_file(struct module_names *n, int fd)
{
	Dwfl_Module *mod;

	n->dwfl = dwfl_begin(&callbacks);
	if (!n->dwfl) {
		close(fd);
		return NULL;
	}
	dwfl_report_begin(n->dwfl);
	mod = dwfl_report_elf(n->dwfl, "module", "module", fd, 0, true);
	if (!mod)
		close(fd);
	if (dwfl_report_end(n->dwfl, NULL, NULL) != 0)
		return NULL;
	return mod;
}

/* Index the names in the files. 0 also if the files have no names. @is_too_big: not those in DWARF. */
static int index_names(struct module_names *n, Dwfl_Module *mod, bool is_too_big)
{
	Dwarf *dwarf;
	int err = function_index_new(&n->functions, mod, SYMBOL_FUNCTIONS);

	if (err == -ENOMEM || is_too_big)
		return err == -ENOMEM ? err : 0;
	dwarf = dwfl_module_getdwarf(mod, &n->bias);
	if (!dwarf)
		return 0;
	dwarf_new_oom_handler(dwarf, leave_libdw);
	err = dwarf_names_new(&n->dwarf, dwarf);
	return err == -ENOMEM ? err : 0;
}

void symbolizer_open(struct symbolizer *s, struct module *m)
{
	int fd;

	if (m->fd < 0 && !debug_file_open_main(&s->search, m, &fd))
		m->fd = fd;
}

static int open_names(struct symbolizer *s, struct module_names *n, const struct module *m)
{
	struct module_context context = { .search = &s->search, .module = m };
	bool is_too_big;
	Dwfl_Module *mod;
	void **data;
	int err, fd;

	s->search.is_too_big = false;
	err = debug_file_open_main(&s->search, m, &fd);
	if (err) {
		s->nr_stale += err == -ESTALE;
		if (err != -ENOENT)
			debug("symbol: no names for %s: %s", m->path, strerror(-err));
		return err == -ENOMEM ? err : 0;
	}
	is_too_big = s->search.is_too_big;
	mod = report_file(n, fd);
	if (!mod) {
		debug("symbol: no names for %s: %s", m->path, dwfl_errmsg(-1));
		return 0;
	}
	dwfl_module_info(mod, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	*data = &context;
	n->module = mod;
	err = index_names(n, mod, is_too_big);
	*data = NULL;
	/* Of this file, or of a separate one. */
	if (is_too_big || s->search.is_too_big)
		warn("symbol: %s: its compressed debug information is too big: names without it", m->path);
	return err;
}

/* The names of @m. The entry is made when it is first needed. NULL without memory for the table. */
static struct module_names *names_of(struct symbolizer *s, const struct module *m)
{
	if (m->id > s->nr_names) {
		size_t nr = module_count(s->modules);

		if (array_reserve(s->names, s->max_names, nr))
			return NULL;
		memset(s->names + s->nr_names, 0, (nr - s->nr_names) * sizeof(*s->names));
		s->nr_names = nr;
	}
	return &s->names[m->id - 1];
}

/* The path of a source file, made absolute where the DWARF says how. */
static int set_file(struct symbolizer *s, struct symbol *symbol, const struct dwarf_frame *frame)
{
	char path[2 * 4096];

	if (!frame->file)
		return 0;
	if (frame->file[0] != '/' && frame->directory)
		snprintf(path, sizeof(path), "%s/%s", frame->directory, frame->file);
	else
		snprintf(path, sizeof(path), "%s", frame->file);
	symbol->file = keep_text(s, path);
	symbol->line = frame->line;
	return symbol->file ? 0 : -ENOMEM;
}

static int set_function(struct symbolizer *s, struct symbol *symbol, const char *linker_symbol)
{
	char readable[DEMANGLE_MAX];

	if (!linker_symbol || !*linker_symbol)
		return 0;
	demangle(readable, linker_symbol);
	symbol->function = keep_text(s, readable);
	if (!symbol->function || !strcmp(readable, linker_symbol))
		return symbol->function ? 0 : -ENOMEM;
	symbol->linked = keep_text(s, linker_symbol);
	return symbol->linked ? 0 : -ENOMEM;
}

/* Name the address @addr of a file. The address is inside of the call instruction. */
static int look_up(struct symbolizer *s, struct module_names *n, u64 addr, struct named_place *found)
{
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	struct symbol *symbols;
	size_t nr = 0;

	if (n->dwarf)
		nr = dwarf_names_find(n->dwarf, addr - n->bias, frames);
	if (nr == 0) {
		nr = 1;
		frames[0] = (struct dwarf_frame){ 0 };
	}
	if (n->functions && !frames[nr - 1].function)
		frames[nr - 1].function = function_index_find(n->functions, addr);
	symbols = keep(s, nr * sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	memset(symbols, 0, nr * sizeof(*symbols));
	for (size_t i = 0; i < nr; i++) {
		if (set_function(s, &symbols[i], frames[i].function) || set_file(s, &symbols[i], &frames[i]))
			return -ENOMEM;
		symbols[i].is_inlined = i + 1 < nr;
		symbols[i].start_line = frames[i].start_line;
	}
	found->symbols = symbols;
	found->nr = nr;
	return 0;
}

/*
 * Open and look up in one function, because libdw may leave it by longjmp(). Then the objects of libdw are abandoned
 * without being released, because their state is unknown.
 */
static int open_and_look_up(struct symbolizer *s, const struct module *m, u64 addr, struct named_place *found)
{
	struct module_names *n = names_of(s, m);

	if (!n)
		return -ENOMEM;
	if (setjmp(out_of_memory)) {
		n = &s->names[m->id - 1];
		*n = (struct module_names){ .is_open = true };
		warn("symbol: %s: out of memory in its debug information, given up", m->path);
		found->symbols = NULL;
		return 0;
	}
	if (!n->is_open) {
		int err = open_names(s, n, m);

		n->is_open = true;
		if (err)
			return err;
	}
	return n->dwfl ? look_up(s, n, addr, found) : 0;
}

/* Like open_and_look_up(), as long as there is time. Without it the place has no names. */
static int look_up_in_time(struct symbolizer *s, const struct module *m, u64 addr, struct named_place *found)
{
	u64 start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err;

	if (s->is_too_late)
		return 0;
	err = open_and_look_up(s, m, addr, found);
	s->spent_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	s->is_too_late = s->spent_ns > LOOK_UP_NS;
	if (s->is_too_late)
		warn("symbol: %s: a minute of CPU time was used for names: no more are looked up", m->path);
	return err;
}

static u64 hash_of(struct code_ref ref)
{
	u64 key[2] = { ref.module, ref.offset };

	return hash_bytes(key, sizeof(key), 0);
}

static const struct named_place *find_place(const struct symbolizer *s, struct code_ref ref)
{
	u64 hash = hash_of(ref);
	u32 item, at = 0;

	while ((item = hash_index_next(&s->places_index, hash, &at)) != HASH_NO_ITEM)
		if (s->places[item].ref.module == ref.module && s->places[item].ref.offset == ref.offset)
			return &s->places[item];
	return NULL;
}

static int add_place(struct symbolizer *s, const struct named_place *found)
{
	if (s->nr_places >= HASH_NO_ITEM || array_reserve(s->places, s->max_places, s->nr_places + 1) ||
	    hash_index_add(&s->places_index, hash_of(found->ref), (u32)s->nr_places))
		return -ENOMEM;
	s->places[s->nr_places++] = *found;
	return 0;
}

int symbolize(struct symbolizer *s, struct code_ref ref, const struct symbol **symbols, size_t *nr)
{
	const struct module *m = module_get(s->modules, ref.module);
	const struct named_place *known = find_place(s, ref);
	struct named_place found = { .ref = ref };
	int err = 0;

	if (known) {
		found = *known;
	} else {
		/* One byte back: a return address may belong to the next line, or to the next function. */
		err = m ? look_up_in_time(s, m, ref.offset - 1, &found) : 0;
		if (!err && !found.symbols) {
			found.symbols = (struct symbol *)&unknown;
			found.nr = 1;
		}
		if (!err)
			err = add_place(s, &found);
		if (err)
			return err;
	}
	*symbols = found.symbols;
	*nr = found.nr;
	return 0;
}

/* The index of the variables of @n, which the first call makes. */
static int open_data(struct module_names *n, bool is_tls, const struct function_index **out)
{
	struct function_index **index = is_tls ? &n->tls : &n->data;
	bool *is_tried = is_tls ? &n->has_tls : &n->has_data;
	int err = 0;

	if (!*is_tried && n->module)
		err = function_index_new(index, n->module, is_tls ? SYMBOL_TLS : SYMBOL_DATA);
	*is_tried = true;
	*out = *index;
	return err == -ENOMEM ? err : 0;
}

int symbolize_data(struct symbolizer *s, struct code_ref ref, bool is_tls, const char **name, u64 *offset)
{
	const struct module *m = module_get(s->modules, ref.module);
	const struct function_index *index;
	struct named_place unused = { .ref = ref };
	char readable[DEMANGLE_MAX];
	const char *symbol;
	int err;

	*name = NULL;
	if (!m)
		return 0;
	/* Called to open the file; the names of the place are not used. */
	err = look_up_in_time(s, m, ref.offset, &unused);
	if (err || s->is_too_late)
		return err;
	err = open_data(&s->names[m->id - 1], is_tls, &index);
	if (err)
		return err;
	symbol = index ? function_index_find_data(index, ref.offset, offset) : NULL;
	if (!symbol)
		return 0;
	demangle(readable, symbol);
	*name = keep_text(s, readable);
	return *name ? 0 : -ENOMEM;
}
