/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of a pprof profile, in which each string, function, place and mapping is once. */
#include "user/report/pprof_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/digits.h"
#include "user/names/symbolize.h"
#include "user/target/target.h"

/* Fields of the messages. */
enum mapping_field {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_OFFSET,
	MAPPING_FILE,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILES,
	MAPPING_HAS_LINES,
	MAPPING_HAS_INLINED,
};
enum location_field { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum line_field { LINE_FUNCTION = 1, LINE_LINE };
enum function_field { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_START };
/* Of OTLP: KeyValueAndUnit and AnyValue. */
enum attribute_field { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE };
enum any_field { ANY_TEXT = 1, ANY_NUMBER = 3 };

/* A function in a source file; numbers of strings. */
struct pprof_function {
	u64 name, linked, file;
	u64 start; /* line */
};

/* An executable mapping. All addresses 0: the module is mapped no more. */
struct mapping_item {
	struct {
		u64 module; /* id, and the number of the report above it */
		u64 start, end, offset;
	} key;
	u64 file, build_id; /* numbers of strings; for OTLP, the build ID is an attribute */
	bool has_functions, has_files;
};

struct attribute {
	u64 key, text, number; /* numbers of strings; "" for text: it is the number */
};

struct pprof_line {
	u64 function; /* id */
	u64 line;
};

/* A place, or a text in place of one. */
struct location {
	struct {
		u64 mapping; /* id, 0 = none */
		u64 address; /* of the call: one byte before the return address */
		u64 text;    /* number of a string, else 0 */
	} key;
	struct pprof_line *lines; /* owned, innermost first */
	size_t nr_lines;
};

int pprof_tables_init(struct pprof_tables *t, bool is_otlp)
{
	u64 empty;

	*t = (struct pprof_tables){
		.is_otlp = is_otlp,
		.functions = { .item_size = sizeof(struct pprof_function),
			       .key_size = sizeof(struct pprof_function) },
		.locations = { .item_size = sizeof(struct location),
			       .key_size = sizeof(((struct location *)0)->key) },
		.mappings = { .item_size = sizeof(struct mapping_item),
			      .key_size = sizeof(((struct mapping_item *)0)->key) },
		.attributes = { .item_size = sizeof(struct attribute), .key_size = sizeof(struct attribute) },
	};
	return pprof_string(t, "", &empty);
}

void pprof_tables_use(struct pprof_tables *t, const struct report *r)
{
	t->report = r;
	t->nr_reports++;
}

void pprof_tables_fini(struct pprof_tables *t)
{
	for (size_t i = 0; i < t->locations.nr; i++)
		free(((struct location *)intern_get(&t->locations, i))->lines);
	intern_fini(&t->functions);
	intern_fini(&t->locations);
	intern_fini(&t->mappings);
	intern_fini(&t->attributes);
	intern_strings_fini(&t->strings);
}

int pprof_string(struct pprof_tables *t, const char *text, u64 *number)
{
	size_t at = 0;
	int err = intern_string(&t->strings, text ? text : "", &at, NULL);

	*number = at;
	return err;
}

int pprof_attribute(struct pprof_tables *t, const struct pprof_label *label, u64 *id)
{
	struct attribute a = { .number = label->number };
	size_t number = 0;
	bool is_new;
	int err = pprof_string(t, label->key, &a.key);

	if (!err)
		err = pprof_string(t, label->text, &a.text);
	if (!err)
		err = intern_item(&t->attributes, &a, &number, &is_new);
	*id = number + 1;
	return err;
}

/* *@number is that of a string; for OTLP that of an attribute, which has the name that OpenTelemetry gives it. */
static int add_build_id(struct pprof_tables *t, const struct module *m, u64 *number)
{
	char hex[2 * BUILD_ID_MAX + 1];
	const struct pprof_label label = { .key = "process.executable.build_id.gnu", .text = hex };

	digits_bytes(hex, m->build_id, m->build_id_len < BUILD_ID_MAX ? m->build_id_len : BUILD_ID_MAX);
	return t->is_otlp && hex[0] ? pprof_attribute(t, &label, number) : pprof_string(t, hex, number);
}

/* The mapping of @p that holds the place @ref, NULL if that is mapped no more. */
static const struct mapping *mapping_of(const struct report_process *p, struct code_ref ref)
{
	const struct mapping_list *list = &p->target->maps;

	for (const struct mapping *m = list->maps; m < list->maps + list->nr; m++)
		if (m->module && m->module->id == ref.module && ref.offset + m->bias >= m->start &&
		    ref.offset + m->bias <= m->end)
			return m;
	return NULL;
}

/* The id of the mapping @m of @module. @m NULL: it is mapped no more. 0 or -ENOMEM. */
static int pprof_tables_add_mapping(struct pprof_tables *t, const struct module *module,
				    const struct mapping *m, u64 *id)
{
	struct mapping_item item = { .key = { .module = module->id | t->nr_reports << 32 } };
	struct mapping_item *added;
	size_t number;
	bool is_new;
	int err;

	if (m) {
		item.key.start = m->start;
		item.key.end = m->end;
		item.key.offset = m->file_offset;
	}
	err = intern_item(&t->mappings, &item.key, &number, &is_new);
	if (err)
		return err;
	*id = number + 1;
	if (!is_new)
		return 0;
	added = intern_get(&t->mappings, number);
	err = pprof_string(t, module->path, &added->file);
	return err ? err : add_build_id(t, module, &added->build_id);
}

int pprof_main_mapping(struct pprof_tables *t, const struct report_process *p)
{
	const struct mapping_list *list = &p->target->maps;
	u64 id;

	for (const struct mapping *m = list->maps; m < list->maps + list->nr; m++)
		if (m->module && !strcmp(m->module->path, p->target->exe))
			return pprof_tables_add_mapping(t, m->module, m, &id);
	return 0;
}

/* The mapping of @ref, and the address of the call in it. Without a module, *@id is 0. 0 or -ENOMEM. */
static int find_mapping(struct pprof_tables *t, const struct report_process *p, struct code_ref ref, u64 *id,
			u64 *address)
{
	const struct module *module = module_get(t->report->modules, ref.module);
	const struct mapping *m = mapping_of(p, ref);

	*address = ref.offset + (m ? m->bias : 0);
	*address -= *address > 0;
	*id = 0;
	return module ? pprof_tables_add_mapping(t, module, m, id) : 0;
}

/* The line of the function that @s names. 0 or -ENOMEM. */
static int pprof_tables_make_line(struct pprof_tables *t, struct pprof_line *line, const struct symbol *s)
{
	struct pprof_function f = { .start = s->start_line };
	size_t at;
	bool is_new;
	int err = pprof_string(t, s->function, &f.name);

	if (!err)
		err = pprof_string(t, s->linked ? s->linked : s->function, &f.linked);
	if (!err)
		err = pprof_string(t, s->file, &f.file);
	if (!err)
		err = intern_item(&t->functions, &f, &at, &is_new);
	if (err)
		return err;
	*line = (struct pprof_line){ .function = at + 1, .line = s->line };
	return 0;
}

/* Name the new location @number by @symbols. Names that are not known make no line: readers then show the address. */
static int name_location(struct pprof_tables *t, size_t number, const struct symbol *symbols, size_t nr)
{
	struct location *l = intern_get(&t->locations, number);
	struct mapping_item *m = l->key.mapping ? intern_get(&t->mappings, l->key.mapping - 1) : NULL;
	int err = 0;

	l->lines = calloc(nr, sizeof(*l->lines));
	if (!l->lines)
		return -ENOMEM;
	for (const struct symbol *s = symbols; s < symbols + nr && !err; s++) {
		if (!s->function)
			continue;
		err = pprof_tables_make_line(t, &l->lines[l->nr_lines++], s);
		if (m) {
			m->has_functions = true;
			m->has_files |= s->file != NULL;
		}
	}
	return err;
}

int pprof_location(struct pprof_tables *t, const struct report_process *p, struct code_ref ref, u64 *id)
{
	struct location item = { 0 };
	const struct symbol *symbols;
	size_t number, nr;
	bool is_new;
	int err = find_mapping(t, p, ref, &item.key.mapping, &item.key.address);

	if (!err)
		err = intern_item(&t->locations, &item.key, &number, &is_new);
	if (err)
		return err;
	*id = number + 1;
	if (!is_new)
		return 0;
	err = report_symbols(t->report, ref, &symbols, &nr);
	return err ? err : name_location(t, number, symbols, nr);
}

int pprof_location_text(struct pprof_tables *t, const char *text, u64 *id)
{
	const struct symbol symbol = { .function = text };
	struct location item = { 0 };
	size_t number;
	bool is_new;
	int err = pprof_string(t, text, &item.key.text);

	if (!err)
		err = intern_item(&t->locations, &item.key, &number, &is_new);
	if (err)
		return err;
	*id = number + 1;
	return is_new ? name_location(t, number, &symbol, 1) : 0;
}

/* The number of a field of the messages here: those of OTLP begin without an id. */
static u32 field_of(const struct pprof_tables *t, u32 field)
{
	return field - t->is_otlp;
}

static void put_id(const struct pprof_tables *t, struct protobuf *out, size_t i)
{
	if (!t->is_otlp)
		protobuf_u64(out, MAPPING_ID, i + 1);
}

void pprof_put_mapping(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i)
{
	const struct mapping_item *m = intern_get(&t->mappings, i);
	size_t start = protobuf_begin(out, field);

	put_id(t, out, i);
	protobuf_u64(out, field_of(t, MAPPING_START), m->key.start);
	protobuf_u64(out, field_of(t, MAPPING_LIMIT), m->key.end);
	protobuf_u64(out, field_of(t, MAPPING_OFFSET), m->key.offset);
	protobuf_u64(out, field_of(t, MAPPING_FILE), m->file);
	if (t->is_otlp) {
		protobuf_packed(out, field_of(t, MAPPING_BUILD_ID), &m->build_id, m->build_id != 0);
	} else {
		protobuf_u64(out, MAPPING_BUILD_ID, m->build_id);
		protobuf_u64(out, MAPPING_HAS_FUNCTIONS, m->has_functions);
		protobuf_u64(out, MAPPING_HAS_FILES, m->has_files);
		protobuf_u64(out, MAPPING_HAS_LINES, m->has_files);
		protobuf_u64(out, MAPPING_HAS_INLINED, m->has_files);
	}
	protobuf_end(out, start);
}

void pprof_put_location(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i)
{
	const struct location *l = intern_get(&t->locations, i);
	size_t start = protobuf_begin(out, field);

	put_id(t, out, i);
	protobuf_u64(out, field_of(t, LOCATION_MAPPING), l->key.mapping);
	protobuf_u64(out, field_of(t, LOCATION_ADDRESS), l->key.address);
	for (size_t k = 0; k < l->nr_lines; k++) {
		size_t line = protobuf_begin(out, field_of(t, LOCATION_LINE));

		protobuf_u64(out, LINE_FUNCTION, l->lines[k].function);
		protobuf_u64(out, LINE_LINE, l->lines[k].line);
		protobuf_end(out, line);
	}
	protobuf_end(out, start);
}

void pprof_put_function(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i)
{
	const struct pprof_function *f = intern_get(&t->functions, i);
	size_t start = protobuf_begin(out, field);

	put_id(t, out, i);
	protobuf_u64(out, field_of(t, FUNCTION_NAME), f->name);
	protobuf_u64(out, field_of(t, FUNCTION_SYSTEM_NAME), f->linked);
	protobuf_u64(out, field_of(t, FUNCTION_FILE), f->file);
	protobuf_u64(out, field_of(t, FUNCTION_START), f->start);
	protobuf_end(out, start);
}

void pprof_put_string(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i)
{
	protobuf_bytes(out, field, t->strings.list[i], strlen(t->strings.list[i]));
}

void pprof_put_any(struct protobuf *out, u32 field, const char *text, u64 number)
{
	size_t value = protobuf_begin(out, field);

	if (text)
		protobuf_bytes(out, ANY_TEXT, text, strlen(text));
	else
		protobuf_u64(out, ANY_NUMBER, number);
	protobuf_end(out, value);
}

void pprof_put_attribute(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i)
{
	const struct attribute *a = intern_get(&t->attributes, i);
	size_t start = protobuf_begin(out, field);

	protobuf_u64(out, ATTRIBUTE_KEY, a->key);
	pprof_put_any(out, ATTRIBUTE_VALUE, a->text ? t->strings.list[a->text] : NULL, a->number);
	protobuf_end(out, start);
}
