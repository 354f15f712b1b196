/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The OTLP form of a profile. The tables are one message, so all of it is made in memory. */
#include "user/report/otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/report/estimate.h"
#include "user/target/target.h"

enum { MAX_TYPES = 8, REMARKS_BYTES = 4096, TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

/* Fields of the messages, and of those of opentelemetry.proto.common and resource. */
enum request_field { REQUEST_RESOURCE = 1, REQUEST_DICTIONARY };
enum resource_profiles_field { RESOURCE_RESOURCE = 1, RESOURCE_SCOPES };
enum resource_field { RESOURCE_ATTRIBUTE = 1 };
enum scope_profiles_field { SCOPE_SCOPE = 1, SCOPE_PROFILE };
enum scope_field { SCOPE_NAME = 1, SCOPE_VERSION };
enum profile_field {
	PROFILE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_TIME,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD
};
enum otlp_type_field { TYPE_TYPE = 1, TYPE_UNIT };
enum otlp_sample_field { OTLP_SAMPLE_STACK = 1, OTLP_SAMPLE_ATTRIBUTES, OTLP_SAMPLE_VALUES = 4 };
enum stack_field { STACK_LOCATIONS = 1 };
enum link_field { LINK_TRACE = 1, LINK_SPAN };
enum key_value_field { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE };
enum dictionary_field {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION,
	DICTIONARY_FUNCTION,
	DICTIONARY_LINK,
	DICTIONARY_STRING,
	DICTIONARY_ATTRIBUTE,
	DICTIONARY_STACK,
};

struct otlp {
	const struct pprof_type *types; /* borrowed */
	size_t nr_types;
	const u64 *ids; /* borrowed: the stack of the samples that follow */
	size_t nr_ids;
	bool has_stack;			    /* it is in the table */
	u64 nr_stacks;			    /* of the table, without the empty one */
	struct protobuf stacks, message;    /* the table, and what is complete of the request */
	struct protobuf samples[MAX_TYPES]; /* of the process, by type */
	char remarks[REMARKS_BYTES];
};

int otlp_new(struct otlp **out, const struct pprof_type *types, size_t nr_types)
{
	struct otlp *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->types = types;
	o->nr_types = nr_types < MAX_TYPES ? nr_types : MAX_TYPES;
	*out = o;
	return 0;
}

void otlp_stack(struct otlp *o, const u64 *ids, size_t nr)
{
	o->ids = ids;
	o->nr_ids = nr;
	o->has_stack = false;
}

/* Only a stack that has samples comes into the table. */
static void otlp_add_stack(struct otlp *o)
{
	size_t start = protobuf_begin(&o->stacks, DICTIONARY_STACK);

	protobuf_packed(&o->stacks, STACK_LOCATIONS, o->ids, o->nr_ids);
	protobuf_end(&o->stacks, start);
	o->nr_stacks++;
	o->has_stack = true;
}

int otlp_sample(struct otlp *o, struct pprof_tables *t, const struct pprof_label *labels, size_t nr,
		const u64 *values)
{
	u64 ids[MAX_TYPES];
	size_t nr_ids = 0, start;
	int err = 0;

	for (size_t i = 0; i < nr && nr_ids < ARRAY_SIZE(ids) && !err; i++)
		if (labels[i].text || labels[i].number)
			err = pprof_attribute(t, &labels[i], &ids[nr_ids++]);
	if (!err && !o->has_stack)
		otlp_add_stack(o);
	for (size_t i = 0; i < o->nr_types && !err; i++) {
		struct protobuf *to = &o->samples[i];

		if (!values[i])
			continue;
		start = protobuf_begin(to, PROFILE_SAMPLE);
		protobuf_u64(to, OTLP_SAMPLE_STACK, o->nr_stacks);
		protobuf_packed(to, OTLP_SAMPLE_ATTRIBUTES, ids, nr_ids);
		protobuf_packed(to, OTLP_SAMPLE_VALUES, &values[i], 1);
		protobuf_end(to, start);
		err = to->err;
	}
	return err ? err : o->stacks.err;
}

int otlp_remark(struct otlp *o, const char *text)
{
	size_t len = strlen(o->remarks), room = sizeof(o->remarks) - len;

	if ((size_t)snprintf(o->remarks + len, room, "%s%s", len ? "; " : "", text) >= room)
		memcpy(o->remarks + sizeof(o->remarks) - 4, "...", 4);
	return 0;
}

/* An attribute of the resource, which is not in the tables. */
static void otlp_put_attribute(struct protobuf *out, const char *key, const char *text, u64 number)
{
	auto_free char *clean = text ? escape_new(text) : NULL;
	size_t start = protobuf_begin(out, RESOURCE_ATTRIBUTE);

	/* Names are of the target; a receiver refuses a message whose text is no UTF-8. */
	if (text && !clean)
		out->err = -ENOMEM;
	protobuf_string(out, KEY_VALUE_KEY, key);
	pprof_put_any(out, KEY_VALUE_VALUE, clean, number);
	protobuf_end(out, start);
}

static void put_resource(struct otlp *o, const struct report *r, const struct report_process *p)
{
	size_t start = protobuf_begin(&o->message, RESOURCE_RESOURCE);

	otlp_put_attribute(&o->message, "service.name", p->target->comm, 0);
	otlp_put_attribute(&o->message, "process.pid", NULL, (u64)p->target->pid);
	otlp_put_attribute(&o->message, "process.executable.path", p->target->exe, 0);
	otlp_put_attribute(&o->message, "heaptap.source", r->backend, 0);
	if (o->remarks[0])
		otlp_put_attribute(&o->message, "heaptap.remarks", o->remarks, 0);
	protobuf_end(&o->message, start);
	o->remarks[0] = '\0';
}

static int otlp_put_type(struct otlp *o, struct pprof_tables *t, u32 field, const struct pprof_type *type)
{
	u64 name, unit;
	size_t start;
	int err = pprof_string(t, type->type, &name);

	if (!err)
		err = pprof_string(t, type->unit, &unit);
	if (err)
		return err;
	start = protobuf_begin(&o->message, field);
	protobuf_u64(&o->message, TYPE_TYPE, name);
	protobuf_u64(&o->message, TYPE_UNIT, unit);
	protobuf_end(&o->message, start);
	return 0;
}

/* The profile of one type. Every byte counts where the trace takes no samples; where it does, values are scaled. */
static int otlp_put_profile(struct otlp *o, struct pprof_tables *t, const struct report *r, size_t type)
{
	static const struct pprof_type period = { "alloc_space", "bytes" };
	u64 distance = report_sample_bytes(r);
	size_t start = protobuf_begin(&o->message, SCOPE_PROFILE);
	int err = otlp_put_type(o, t, PROFILE_TYPE, &o->types[type]);

	protobuf_append(&o->message, &o->samples[type]);
	protobuf_clear(&o->samples[type]);
	protobuf_fixed64(&o->message, PROFILE_TIME, r->real_ns);
	protobuf_u64(&o->message, PROFILE_DURATION, r->duration_ns);
	if (!err)
		err = otlp_put_type(o, t, PROFILE_PERIOD_TYPE, &period);
	protobuf_u64(&o->message, PROFILE_PERIOD, distance ? distance : 1);
	protobuf_end(&o->message, start);
	return err;
}

int otlp_process(struct otlp *o, struct pprof_tables *t, const struct report *r,
		 const struct report_process *p)
{
	size_t resource = protobuf_begin(&o->message, REQUEST_RESOURCE), scopes, start;
	int err = 0;

	put_resource(o, r, p);
	scopes = protobuf_begin(&o->message, RESOURCE_SCOPES);
	start = protobuf_begin(&o->message, SCOPE_SCOPE);
	protobuf_string(&o->message, SCOPE_NAME, "heaptap");
	protobuf_string(&o->message, SCOPE_VERSION, HEAPTAP_VERSION);
	protobuf_end(&o->message, start);
	for (size_t i = 0; i < o->nr_types && !err; i++)
		err = otlp_put_profile(o, t, r, i);
	protobuf_end(&o->message, scopes);
	protobuf_end(&o->message, resource);
	return err ? err : o->message.err;
}

static void put_empty_link(struct protobuf *out)
{
	static const u8 zeros[TRACE_ID_BYTES];
	size_t start = protobuf_begin(out, DICTIONARY_LINK);

	protobuf_bytes(out, LINK_TRACE, zeros, TRACE_ID_BYTES);
	protobuf_bytes(out, LINK_SPAN, zeros, SPAN_ID_BYTES);
	protobuf_end(out, start);
}

/* Each table begins with an empty item; the strings have theirs. */
static void put_dictionary(struct otlp *o, const struct pprof_tables *t)
{
	const struct {
		u32 field;
		size_t nr;
		pprof_put_fn *put;
	} tables[] = {
		{ DICTIONARY_MAPPING, t->mappings.nr, pprof_put_mapping },
		{ DICTIONARY_LOCATION, t->locations.nr, pprof_put_location },
		{ DICTIONARY_FUNCTION, t->functions.nr, pprof_put_function },
		{ DICTIONARY_ATTRIBUTE, t->attributes.nr, pprof_put_attribute },
		{ DICTIONARY_STRING, t->strings.nr, pprof_put_string },
	};
	size_t start = protobuf_begin(&o->message, REQUEST_DICTIONARY);

	for (size_t k = 0; k < ARRAY_SIZE(tables); k++) {
		if (tables[k].field != DICTIONARY_STRING)
			protobuf_bytes(&o->message, tables[k].field, "", 0);
		for (size_t i = 0; i < tables[k].nr; i++)
			tables[k].put(t, &o->message, tables[k].field, i);
	}
	put_empty_link(&o->message);
	protobuf_bytes(&o->message, DICTIONARY_STACK, "", 0);
	protobuf_append(&o->message, &o->stacks);
	protobuf_end(&o->message, start);
}

int otlp_end(struct otlp *o, const struct pprof_tables *t, FILE *out)
{
	int err;

	put_dictionary(o, t);
	err = o->message.err;
	if (!err)
		fwrite(o->message.data, 1, o->message.len, out);
	for (size_t i = 0; i < MAX_TYPES; i++)
		protobuf_fini(&o->samples[i]);
	protobuf_fini(&o->stacks);
	protobuf_fini(&o->message);
	free(o);
	return err;
}
