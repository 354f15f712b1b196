/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for code scanning: SARIF 2.1.0, a result for each finding. */
#include "user/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/misuse.h"
#include "user/heap/stacks.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/hash.h"
#include "user/lib/json.h"
#include "user/names/symbolize.h"
#include "user/report/findings.h"
#include "user/report/format.h"
#include "user/report/report_verdict.h"
#include "user/target/target.h"

/* Break lines down to the parts of a result. */
enum { FOLD_DEPTH = 6, DOUBT_MAX = 512, TEXT_MAX = 1024 };

static const char *const levels[] = {
	[LEVEL_ERROR] = "error", [LEVEL_WARNING] = "warning", [LEVEL_NOTE] = "note"
};

/* The file that is being written. */
struct sarif {
	struct json json;
	const struct findings *findings;
};

/* An object with one text: how SARIF writes messages. */
static void put_message(struct json *j, const char *key, const char *text)
{
	json_object_begin(j, key);
	json_string(j, "text", text);
	json_object_end(j);
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("/-._~", c);
}

/* The path @path as a URI: absolute with a scheme, else relative. NULL: out of memory. */
static char *make_uri(const char *path, bool is_directory)
{
	static const char scheme[] = "file://";
	char *uri = malloc(sizeof(scheme) + 3 * strlen(path) + 1);
	char *at = uri;

	if (!uri)
		return NULL;
	if (*path == '/')
		at = stpcpy(at, scheme);
	for (const char *s = path; *s; s++)
		at += is_plain(*s) ? sprintf(at, "%c", *s) : sprintf(at, "%%%02X", (unsigned char)*s);
	strcpy(at, is_directory ? "/" : "");
	return uri;
}

/* The place @line of @file, a name from finding_file(); 0 = only the file. */
static int put_physical(struct json *j, const char *file, u32 line)
{
	auto_free char *uri = make_uri(file, false);

	if (!uri)
		return -ENOMEM;
	json_object_begin(j, "physicalLocation");
	json_object_begin(j, "artifactLocation");
	json_string(j, "uri", uri);
	/* "./csu/x.c" is below the directory of another build. */
	if (*file != '/' && *file != '.')
		json_string(j, "uriBaseId", "SRCROOT");
	json_object_end(j);
	if (line) {
		json_object_begin(j, "region");
		json_u64(j, "startLine", line);
		json_object_end(j);
	}
	json_object_end(j);
	return 0;
}

/* Names are escaped as in the other formats, because viewers show them as text. */
static int put_logical(struct json *j, const char *function)
{
	auto_free char *name = escape_new(function);

	if (!name)
		return -ENOMEM;
	json_array_begin(j, "logicalLocations");
	json_object_begin(j, NULL);
	json_string(j, "fullyQualifiedName", name);
	json_string(j, "kind", "function");
	json_object_end(j);
	json_array_end(j);
	return 0;
}

/* A location under @key; @file and @function may be NULL. */
static int put_location(struct json *j, const char *key, const char *file, u32 line, const char *function)
{
	int err = 0;

	json_object_begin(j, key);
	if (file)
		err = put_physical(j, file, line);
	if (function && !err)
		err = put_logical(j, function);
	json_object_end(j);
	return err;
}

static int report_sarif_put_frame(struct sarif *s, struct code_ref ref)
{
	const struct module *m = module_get(s->findings->report->modules, ref.module);
	struct json *j = &s->json;
	const struct symbol *symbols;
	size_t nr;
	int err = report_symbols(s->findings->report, ref, &symbols, &nr);

	for (size_t i = 0; i < nr && !err; i++) {
		const char *file = symbols[i].file ? finding_file(s->findings, symbols[i].file) : NULL;
		auto_free char *module = escape_new(m ? module_name(m) : "");

		if (!module)
			return -ENOMEM;
		json_object_begin(j, NULL);
		err = put_location(j, "location", file, file ? symbols[i].line : 0, symbols[i].function);
		json_string(j, "module", module);
		json_object_end(j);
	}
	return err;
}

static int put_stacks(struct sarif *s, const struct finding_item *item)
{
	struct finding_stack stacks[FINDING_MAX_STACKS];
	size_t nr = finding_stacks(item, stacks);
	struct json *j = &s->json;
	int err = 0;

	json_array_begin(j, "stacks");
	for (size_t i = 0; i < nr && !err; i++) {
		const struct stack *stack = finding_stack_get(item, stacks[i].row);

		json_object_begin(j, NULL);
		put_message(j, "message", stacks[i].what);
		json_array_begin(j, "frames");
		for (size_t k = 0; stack && k < stack->nr_frames && !err; k++)
			err = report_sarif_put_frame(s, stack->frames[k]);
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
	return err;
}

static int put_locations(struct sarif *s, const struct finding_item *item)
{
	struct finding_place place;
	int err = finding_place(s->findings, item, &place);

	json_array_begin(&s->json, "locations");
	if (!err && (place.file || place.function))
		err = put_location(&s->json, NULL, place.file, place.line, place.function);
	json_array_end(&s->json);
	return err;
}

static void put_properties(struct json *j, const struct finding_item *item)
{
	json_object_begin(j, "properties");
	json_u64(j, "pid", (u64)item->process->target->pid);
	if (item->misuse) {
		json_u64(j, "count", item->misuse->count);
	} else {
		json_u64(j, "blocks", item->blocks);
		json_u64(j, "bytes", item->bytes);
	}
	json_object_end(j);
}

static int put_result(struct sarif *s, const struct finding_item *item)
{
	const struct finding_rule *rule = &finding_rules[item->kind];
	struct json *j = &s->json;
	auto_free char *title = NULL, *message = NULL;
	char print[20];
	int err = finding_title(s->findings, item, &title);

	if (!err)
		err = finding_message(s->findings, item, &message);
	if (err)
		return err;
	json_object_begin(j, NULL);
	json_string(j, "ruleId", rule->id);
	json_u64(j, "ruleIndex", item->kind);
	json_string(j, "level", levels[rule->level]);
	put_message(j, "message", message);
	err = put_locations(s, item);
	if (!err)
		err = put_stacks(s, item);
	/* Equal from run to run, so that a result that is known is found again. */
	snprintf(print, sizeof(print), "%016" PRIx64, hash_bytes(title, strlen(title), 0));
	json_object_begin(j, "partialFingerprints");
	json_string(j, "heaptapCallers/v1", print);
	json_object_end(j);
	put_properties(j, item);
	json_object_end(j);
	return err;
}

static void put_rule(struct json *j, const struct finding_rule *rule)
{
	json_object_begin(j, NULL);
	json_string(j, "id", rule->id);
	json_string(j, "name", rule->name);
	put_message(j, "shortDescription", rule->what);
	put_message(j, "fullDescription", rule->help);
	json_object_begin(j, "defaultConfiguration");
	json_string(j, "level", levels[rule->level]);
	json_object_end(j);
	json_object_end(j);
}

static void put_tool(struct json *j)
{
	json_object_begin(j, "tool");
	json_object_begin(j, "driver");
	json_string(j, "name", "heaptap");
	json_string(j, "semanticVersion", HEAPTAP_VERSION);
	json_array_begin(j, "rules");
	for (size_t i = 0; i < NR_FINDING_KINDS; i++)
		put_rule(j, &finding_rules[i]);
	json_array_end(j);
	json_object_end(j);
	json_object_end(j);
}

/* Did the run find all there is to find? Doubts are errors of the run, so that no result is no proof. */
static void put_invocation(struct json *j, const struct report *r)
{
	char doubt[DOUBT_MAX], text[TEXT_MAX];
	bool has_doubts = false;

	json_array_begin(j, "invocations");
	json_object_begin(j, NULL);
	json_array_begin(j, "toolExecutionNotifications");
	for (size_t i = 0; i < r->nr_processes; i++) {
		for (size_t k = 0; finding_doubt(&r->processes[i], k, doubt, sizeof(doubt)); k++) {
			snprintf(text, sizeof(text), "pid %d: %s", (int)r->processes[i].target->pid, doubt);
			json_object_begin(j, NULL);
			json_string(j, "level", "error");
			put_message(j, "message", text);
			json_object_end(j);
			has_doubts = true;
		}
	}
	json_array_end(j);
	json_bool(j, "executionSuccessful", !has_doubts);
	json_object_end(j);
	json_array_end(j);
}

static int put_root(struct sarif *s)
{
	auto_free char *uri = make_uri(s->findings->root, true);

	if (!uri)
		return -ENOMEM;
	json_object_begin(&s->json, "originalUriBaseIds");
	json_object_begin(&s->json, "SRCROOT");
	if (*uri == 'f')
		json_string(&s->json, "uri", uri);
	json_object_end(&s->json);
	json_object_end(&s->json);
	return 0;
}

/* The sentences that all reports begin with. */
static int report_sarif_put_verdicts(struct json *j, const struct report *r)
{
	int err = 0;

	json_object_begin(j, "properties");
	json_array_begin(j, "verdicts");
	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		struct report_verdict v;

		err = report_verdict_of(&v, r, &r->processes[i]);
		json_object_begin(j, NULL);
		json_u64(j, "pid", (u64)r->processes[i].target->pid);
		json_string(j, "text", v.text);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
	return err;
}

static int put_run(struct sarif *s)
{
	struct json *j = &s->json;
	int err;

	json_object_begin(j, NULL);
	put_tool(j);
	put_invocation(j, s->findings->report);
	err = put_root(s);
	json_array_begin(j, "results");
	for (size_t i = 0; i < s->findings->nr && !err; i++)
		err = put_result(s, &s->findings->list[i]);
	json_array_end(j);
	if (!err)
		err = report_sarif_put_verdicts(j, s->findings->report);
	json_object_end(j);
	return err;
}

int report_sarif(FILE *out, const struct report *r)
{
	struct findings f;
	struct sarif s = { .findings = &f };
	int err = findings_init(&f, r);

	json_init(&s.json, out, FOLD_DEPTH);
	json_object_begin(&s.json, NULL);
	json_string(&s.json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	json_string(&s.json, "version", "2.1.0");
	json_array_begin(&s.json, "runs");
	if (!err)
		err = put_run(&s);
	json_array_end(&s.json);
	json_object_end(&s.json);
	findings_fini(&f);
	return err ? err : flush_stream(out);
}
