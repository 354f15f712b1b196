/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap doctor: the findings as text for people and as JSON for scripts. */
#include "user/cli/doctor.h"

#include "user/lib/escape.h"

static const struct {
	const char *key, *title;
} groups[NR_DOCTOR_GROUPS] = {
	[DOCTOR_PRIVILEGES] = { "privileges", "Privileges" },
	[DOCTOR_FEATURES] = { "features", "Kernel features (tried)" },
	[DOCTOR_SETTINGS] = { "settings", "Settings" },
};

/* ---- text ---- */

static void print_finding(FILE *out, const struct doctor_finding *f)
{
	fprintf(out, "  %-30s ", f->label);
	if (f->type == DOCTOR_BOOL)
		fprintf(out, "%s", f->number ? "yes" : "no");
	else if (f->type == DOCTOR_NUMBER)
		fprintf(out, "%lld", (long long)f->number);
	else if (f->type == DOCTOR_TEXT)
		escape_text(out, f->text);
	else
		putc('-', out);
	if (f->note && f->type != DOCTOR_UNKNOWN)
		fprintf(out, "  (%s)", f->note);
	putc('\n', out);
}

static void print_object(FILE *out, const struct doctor_object *o)
{
	fprintf(out, "  ");
	escape_text(out, o->path);
	if (o->kind)
		fprintf(out, ": %s, %zu allocator functions", o->kind, o->nr_functions);
	fprintf(out, ": ");
	if (o->debug_file)
		escape_text(out, o->debug_file);
	else if (o->has_symbols)
		fprintf(out, "names in the file itself");
	else
		fprintf(out, "no debug file, build ID %s", *o->build_id ? o->build_id : "none");
	putc('\n', out);
}

static const char *const left_names[] = { [INJECT_LEFT_NOTHING] = "",
					  [INJECT_LEFT_IN_USE] = "in use",
					  [INJECT_LEFT_BEHIND] = "left behind",
					  [INJECT_LEFT_UNKNOWN] = "unknown" };

/* Code of --backend inline. */
static void print_left(FILE *out, const struct doctor_target *t)
{
	if (t->left == INJECT_LEFT_IN_USE)
		fprintf(out, "  heaptap (PID %d) traces it by code inside it (--backend inline)\n",
			t->left_owner);
	else if (t->left == INJECT_LEFT_BEHIND)
		fprintf(out,
			"  a killed heaptap (PID %d) has left code inside it (--backend inline), which records "
			"nothing; the next heaptap with --backend inline takes it out\n",
			t->left_owner);
	else if (t->left == INJECT_LEFT_UNKNOWN)
		fprintf(out,
			"  code of another version of heaptap is inside it (--backend inline), or its record "
			"cannot be read\n");
}

static void print_target(FILE *out, const struct doctor *d, const struct doctor_target *t)
{
	bool has_allocator = false;

	fprintf(out, "\nProcess %d (", t->pid);
	escape_text(out, t->comm);
	fprintf(out, ")\n  ");
	escape_text(out, *t->exe ? t->exe : "(program file not ours to see)");
	fprintf(out, "\n  %s%u thread%s, uid %u",
		!*t->exe      ? ""
		: t->is_32bit ? "32-bit, "
			      : "64-bit, ",
		t->nr_threads, t->nr_threads == 1 ? "" : "s", t->uid);
	if (t->ns_depth)
		fprintf(out, ", in a container (%u PID namespaces down)", t->ns_depth);
	if (t->seccomp)
		fprintf(out, ", under a seccomp filter%s",
			d->caps.is_uretprobe_safe ? "" : ": no return probes there");
	putc('\n', out);
	if (t->tracer_pid) {
		fprintf(out, "  traced by process %d (", t->tracer_pid);
		escape_text(out, t->tracer_comm);
		fprintf(out, "): only the bpf backend can trace it too\n");
	}
	print_left(out, t);
	if (!t->is_readable)
		fprintf(out, "  its maps and memory are not ours to read\n");
	for (size_t i = 0; i < t->nr_objects; i++) {
		has_allocator |= t->objects[i].kind != NULL;
		print_object(out, &t->objects[i]);
	}
	if (!IS_AGENT && t->is_readable && t->census)
		fprintf(out, "  'heaptap scan %d' can take a census of it now, from the books of %s\n",
			t->pid, t->census);
	else if (!IS_AGENT && t->is_readable)
		fprintf(out, "  no census: it has %s%s\n",
			t->stranger ? t->stranger : "no allocator whose books heaptap can read",
			t->stranger ? ", whose books heaptap cannot read" : "");
	if (t->is_readable && !has_allocator)
		fprintf(out, "  no allocator found: try --alloc for a custom one\n");
}

void doctor_print_text(FILE *out, const struct doctor *d)
{
	if (!d->backend)
		fprintf(out, "heaptap cannot trace here%s\n",
			d->nr_help ? "; the end says what would help" : "");
	else
		fprintf(out, "heaptap works here%s\n",
			d->nr_help ? "; the end says what would make it better" : "");
	fprintf(out, "heaptap %s on Linux %s, %s\n", HEAPTAP_VERSION, d->release, d->machine);
	fprintf(out, "Backend: %s\n  %s\n", d->backend ? d->backend : "none", d->how);
	for (int g = 0; g < NR_DOCTOR_GROUPS; g++) {
		fprintf(out, "\n%s\n", groups[g].title);
		for (size_t i = 0; i < d->nr_findings; i++)
			if ((int)d->findings[i].group == g)
				print_finding(out, &d->findings[i]);
	}
	if (d->libc.path && !d->nr_targets) {
		fprintf(out, "\nDebug files\n");
		print_object(out, &d->libc);
	}
	for (size_t i = 0; i < d->nr_targets; i++)
		print_target(out, d, &d->targets[i]);
	if (d->nr_left_out)
		fprintf(out, "\n%zu more processes of that name\n", d->nr_left_out);
	doctor_print_breakpoints(out, &d->breakpoints);
	if (d->nr_help)
		fprintf(out, "\nThis would help\n");
	for (size_t i = 0; i < d->nr_help; i++) {
		fprintf(out, "  ");
		escape_text(out, d->help[i]);
		putc('\n', out);
	}
}

/* ---- JSON: heaptap-json(5) ---- */

static void json_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\": ", key);
	if (text && *text)
		escape_json(out, text);
	else
		fprintf(out, "null");
}

static void json_finding(FILE *out, const struct doctor_finding *f)
{
	if (f->type == DOCTOR_BOOL)
		fprintf(out, "\"%s\": %s", f->key, f->number ? "true" : "false");
	else if (f->type == DOCTOR_NUMBER)
		fprintf(out, "\"%s\": %lld", f->key, (long long)f->number);
	else
		json_text(out, f->key, f->type == DOCTOR_TEXT ? f->text : NULL);
}

static void json_object(FILE *out, const struct doctor_object *o)
{
	fprintf(out, "{ ");
	json_text(out, "path", o->path);
	fprintf(out, ", ");
	json_text(out, "kind", o->kind);
	fprintf(out, ", \"functions\": %zu, ", o->nr_functions);
	json_text(out, "build_id", o->build_id);
	fprintf(out, ", ");
	json_text(out, "debug_file", o->debug_file);
	fprintf(out, ", \"has_symbols\": %s }", o->has_symbols ? "true" : "false");
}

static void doctor_print_json_target(FILE *out, const struct doctor_target *t)
{
	fprintf(out, "    { \"pid\": %d, \"comm\": ", t->pid);
	escape_json(out, t->comm);
	fprintf(out, ", ");
	json_text(out, "exe", t->exe);
	fprintf(out, ", \"is_32bit\": %s, \"uid\": %u, \"threads\": %u, \"seccomp\": %u, ",
		!*t->exe      ? "null"
		: t->is_32bit ? "true"
			      : "false",
		t->uid, t->nr_threads, t->seccomp);
	fprintf(out, "\"pid_namespace_depth\": %u, \"tracer_pid\": ", t->ns_depth);
	if (t->tracer_pid)
		fprintf(out, "%d", t->tracer_pid);
	else
		fprintf(out, "null");
	fprintf(out, ", \"readable\": %s, ", t->is_readable ? "true" : "false");
	json_text(out, "census", t->census);
	fprintf(out, ", ");
	json_text(out, "inline", left_names[t->left]);
	fprintf(out, ",\n      \"objects\": [");
	for (size_t i = 0; i < t->nr_objects; i++) {
		fprintf(out, "%s\n        ", i ? "," : "");
		json_object(out, &t->objects[i]);
	}
	fprintf(out, "] }");
}

static void json_group(FILE *out, const struct doctor *d, int group)
{
	const char *before = "";

	fprintf(out, "  \"%s\": {", groups[group].key);
	for (size_t i = 0; i < d->nr_findings; i++) {
		if ((int)d->findings[i].group != group)
			continue;
		fprintf(out, "%s\n    ", before);
		json_finding(out, &d->findings[i]);
		before = ",";
	}
	fprintf(out, "\n  },\n");
}

void doctor_print_json(FILE *out, const struct doctor *d)
{
	fprintf(out, "{\n  \"schema\": \"heaptap-doctor/1\",\n  \"version\": \"%s\",\n  ", HEAPTAP_VERSION);
	json_text(out, "kernel", d->release);
	fprintf(out, ",\n  ");
	json_text(out, "arch", d->machine);
	fprintf(out, ",\n  ");
	json_text(out, "backend", d->backend);
	fprintf(out, ",\n  ");
	json_text(out, "reason", d->how);
	fprintf(out, ",\n");
	for (int g = 0; g < NR_DOCTOR_GROUPS; g++)
		json_group(out, d, g);
	fprintf(out, "  \"libc\": ");
	if (d->libc.path)
		json_object(out, &d->libc);
	else
		fprintf(out, "null");
	fprintf(out, ",\n  \"targets\": [");
	for (size_t i = 0; i < d->nr_targets; i++) {
		fprintf(out, "%s\n", i ? "," : "");
		doctor_print_json_target(out, &d->targets[i]);
	}
	fprintf(out, "],\n  \"targets_left_out\": %zu,\n", d->nr_left_out);
	doctor_json_breakpoints(out, &d->breakpoints);
	fprintf(out, "  \"help\": [");
	for (size_t i = 0; i < d->nr_help; i++) {
		fprintf(out, "%s\n    ", i ? "," : "");
		escape_json(out, d->help[i]);
	}
	fprintf(out, "]\n}\n");
}
