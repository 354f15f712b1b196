/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places in modules become frames with names: each module's files opened once, each place looked up once. */
#include "user/symbolize.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include <elfutils/libdwfl.h>

#include "user/debug_file.h"
#include "user/demangle.h"
#include "user/dwarf_names.h"
#include "user/function_index.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/log.h"
#include "user/symbol_server.h"

enum { BLOCK_SIZE = 64 << 10 };

#define COPY_BUDGET (2ULL << 30) /* bytes */

/* Where the names of one module come from. */
struct names {
	bool is_open;			   /* tried, at least */
	Dwfl *dwfl;			   /* owned; NULL = no file */
	Dwfl_Module *module;		   /* borrowed from dwfl; NULL = no file */
	struct function_index *functions;  /* owned; NULL = none */
	struct function_index *data, *tls; /* the same for variables; made when first asked for */
	bool has_data, has_tls;		   /* that was tried, at least */
	struct dwarf_names *dwarf;	   /* owned; NULL = none */
	Dwarf_Addr bias;		   /* of the DWARF's addresses to the file's */
};

/* What was found for one place. */
struct found {
	struct code_ref ref;
	struct symbol *symbols; /* NULL = free slot */
	size_t nr;
};

/* Memory for what is never given back one by one. */
struct block {
	struct block *next;
	size_t used, size;
	char bytes[];
};

struct symbolizer {
	const struct module_table *modules; /* borrowed */
	struct debug_search search;
	char *sysroot, *debug_path; /* owned; NULL = none */
	struct names *names;	    /* owned; by module id - 1 */
	size_t nr_names;
	struct found *found; /* owned; hash table, at most half full */
	size_t nr_found, cap_found;
	struct block *blocks; /* owned */
	size_t nr_stale;
};

/* What the callback of libdwfl needs to find a separate file. */
struct module_context {
	struct debug_search *search;
	const struct module *module;
};

static const struct symbol unknown;

/* Where to go on when libdw runs out of memory: its own answer is to end the process. */
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

/* Never the library's standard callbacks: they may ask servers without being asked to. */
static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

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
					   .copy_budget = COPY_BUDGET };
	*out = s;
	return 0;
}

static void names_close(struct names *n)
{
	function_index_free(n->functions);
	function_index_free(n->data);
	function_index_free(n->tls);
	dwarf_names_free(n->dwarf);
	if (n->dwfl)
		dwfl_end(n->dwfl);
	*n = (struct names){ .is_open = true };
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_names; i++)
		names_close(&s->names[i]);
	free(s->names);
	free(s->found);
	while (s->blocks) {
		struct block *b = s->blocks;

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
	struct block *b = s->blocks;
	size_t wanted = (size + 7) & ~(size_t)7;

	if (!b || b->size - b->used < wanted) {
		size_t room = wanted > BLOCK_SIZE ? wanted : BLOCK_SIZE;

		b = malloc(sizeof(*b) + room);
		if (!b)
			return NULL;
		*b = (struct block){ .next = s->blocks, .size = room };
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

/* Give libdwfl the file @fd, at the addresses that it says itself. Closes @fd. */
static Dwfl_Module *report_file(struct names *n, int fd)
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

/* Index what the files have; 0 even if that is nothing. */
static int index_names(struct names *n, Dwfl_Module *mod)
{
	Dwarf *dwarf;
	int err = function_index_new(&n->functions, mod, SYMBOL_FUNCTIONS);

	if (err == -ENOMEM)
		return err;
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

static int open_names(struct symbolizer *s, struct names *n, const struct module *m)
{
	struct module_context context = { .search = &s->search, .module = m };
	Dwfl_Module *mod;
	void **data;
	int err, fd;

	err = debug_file_open_main(&s->search, m, &fd);
	if (err) {
		s->nr_stale += err == -ESTALE;
		if (err != -ENOENT)
			debug("symbol: no names for %s: %s", m->path, strerror(-err));
		return err == -ENOMEM ? err : 0;
	}
	mod = report_file(n, fd);
	if (!mod) {
		debug("symbol: no names for %s: %s", m->path, dwfl_errmsg(-1));
		return 0;
	}
	dwfl_module_info(mod, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	*data = &context;
	n->module = mod;
	err = index_names(n, mod);
	*data = NULL;
	return err;
}

/* The names of @m, opened when they are first asked for. NULL without memory for the table. */
static struct names *names_of(struct symbolizer *s, const struct module *m)
{
	if (m->id > s->nr_names) {
		size_t nr = module_count(s->modules);
		struct names *names = realloc(s->names, nr * sizeof(*names));

		if (!names)
			return NULL;
		memset(names + s->nr_names, 0, (nr - s->nr_names) * sizeof(*names));
		s->names = names;
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
	if (frame->file[0] != '/' && frame->folder)
		snprintf(path, sizeof(path), "%s/%s", frame->folder, frame->file);
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
	return symbol->function ? 0 : -ENOMEM;
}

/* Name the place @addr of a file, which is inside of the call. */
static int look_up(struct symbolizer *s, struct names *n, u64 addr, struct found *found)
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
	}
	found->symbols = symbols;
	found->nr = nr;
	return 0;
}

/*
 * Both in one place, because libdw may leave by the jump: then what it was working at is given up
 * without being released, for nobody knows in what state it is.
 */
static int open_and_look_up(struct symbolizer *s, const struct module *m, u64 addr, struct found *found)
{
	struct names *n = names_of(s, m);

	if (!n)
		return -ENOMEM;
	if (setjmp(out_of_memory)) {
		n = &s->names[m->id - 1];
		*n = (struct names){ .is_open = true };
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

static struct found *slot_of(struct symbolizer *s, struct code_ref ref)
{
	u64 key[2] = { ref.module, ref.offset };
	size_t i = hash_bytes(key, sizeof(key), 0) & (s->cap_found - 1);

	while (s->found[i].symbols &&
	       (s->found[i].ref.module != ref.module || s->found[i].ref.offset != ref.offset))
		i = (i + 1) & (s->cap_found - 1);
	return &s->found[i];
}

static int grow(struct symbolizer *s)
{
	struct found *old = s->found;
	size_t old_cap = s->cap_found, cap = old_cap ? old_cap * 2 : 1024;

	if (s->nr_found < old_cap / 2)
		return 0;
	s->found = calloc(cap, sizeof(*s->found));
	if (!s->found) {
		s->found = old;
		return -ENOMEM;
	}
	s->cap_found = cap;
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].symbols)
			*slot_of(s, old[i].ref) = old[i];
	free(old);
	return 0;
}

int symbolize(struct symbolizer *s, struct code_ref ref, const struct symbol **symbols, size_t *nr)
{
	const struct module *m = module_get(s->modules, ref.module);
	struct found found = { .ref = ref }, *slot;
	int err = grow(s);

	if (err)
		return err;
	slot = slot_of(s, ref);
	if (!slot->symbols) {
		/* One back: a return address may be the first of the next line, or of the next function. */
		err = m ? open_and_look_up(s, m, ref.offset - 1, &found) : 0;
		if (err)
			return err;
		if (!found.symbols) {
			found.symbols = (struct symbol *)&unknown;
			found.nr = 1;
		}
		*slot = found;
		s->nr_found++;
	}
	*symbols = slot->symbols;
	*nr = slot->nr;
	return 0;
}

/* The index of variables of @n, made now if it is not there yet. */
static int open_data(struct names *n, bool is_tls, const struct function_index **out)
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
	struct found unused = { .ref = ref };
	char readable[DEMANGLE_MAX];
	const char *symbol;
	int err;

	*name = NULL;
	if (!m)
		return 0;
	/* Opens the file, whatever it says of that place. */
	err = open_and_look_up(s, m, ref.offset, &unused);
	if (!err)
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
