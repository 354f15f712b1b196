/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report as one HTML file that needs no network: a page from user/report/html/ with the data of the report in it.
 *
 * The page may run only the script and the style whose hashes are in its security policy, and may load nothing.
 * So text of a target could do nothing even if its escape failed.
 */
#include "user/report/report.h"

#include <string.h>

#include "user/lib/flush.h"
#include "user/lib/sha256.h"
#include "user/report/format.h"
#include "user/report/html_page.h"
#include "user/report/html_process.h"
#include "user/report/report_json.h"

/* Parts of the page: user/report/html_template.S. */
extern const char html_page_start[], html_page_end[];
extern const char html_style_start[], html_style_end[];
extern const char html_script_start[], html_script_end[];

static void report_html_write_text(FILE *out, const char *start, const char *end)
{
	fwrite(start, 1, (size_t)(end - start), out);
}

static void write_base64(FILE *out, const u8 *bytes, size_t nr)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < nr; i += 3) {
		u32 three = (u32)bytes[i] << 16 | (i + 1 < nr ? (u32)bytes[i + 1] << 8 : 0) |
			    (i + 2 < nr ? bytes[i + 2] : 0);

		putc(letters[three >> 18], out);
		putc(letters[three >> 12 & 63], out);
		putc(i + 1 < nr ? letters[three >> 6 & 63] : '=', out);
		putc(i + 2 < nr ? letters[three & 63] : '=', out);
	}
}

static void write_hash(FILE *out, const char *start, const char *end)
{
	u8 hash[SHA256_LEN];
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, start, (size_t)(end - start));
	sha256_end(&h, hash);
	fputs("'sha256-", out);
	write_base64(out, hash, sizeof(hash));
	putc('\'', out);
}

static void write_policy(FILE *out, bool is_live)
{
	fputs(is_live ? "connect-src 'self'; " : "", out);
	fputs("default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src ", out);
	write_hash(out, html_style_start, html_style_end);
	fputs("; script-src ", out);
	write_hash(out, html_script_start, html_script_end);
}

/* A report, and how old the verdicts are if it is of a page that follows a process. */
struct report_html_look {
	const struct report *report;
	bool is_live;
	u64 verdict_age_ns;
};

static int report_html_write(FILE *out, const void *ctx)
{
	const struct report_html_look *look = ctx;
	const struct report *r = look->report;
	struct html_tables tables;
	struct json j;
	int err = 0;

	html_tables_init(&tables);
	json_init(&j, out, 0);
	j.in_page = true;
	json_object_begin(&j, NULL);
	report_json_head(&j, r);
	json_u64(&j, "real_ns", r->real_ns); /* 0 = not known */
	if (look->is_live) {
		json_bool(&j, "live", true);
		if (look->verdict_age_ns)
			json_u64(&j, "verdict_age_ns", look->verdict_age_ns);
	}
	json_array_begin(&j, "processes");
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = html_process(&j, &tables, r, &r->processes[i]);
	json_array_end(&j);
	html_tables_write(&j, &tables);
	report_json_tail(&j, r);
	json_object_end(&j);
	html_tables_fini(&tables);
	return err;
}

/* The places in page.html. */
enum { SLOT_POLICY, SLOT_STYLE, SLOT_DATA, SLOT_SCRIPT, NR_SLOTS };

static int report_html_slot_at(const char *text, size_t len)
{
	static const char *const slots[] = { [SLOT_POLICY] = "{{policy}}",
					     [SLOT_STYLE] = "{{style}}",
					     [SLOT_DATA] = "{{data}}",
					     [SLOT_SCRIPT] = "{{script}}" };
	int slot = 0;

	while (slot < NR_SLOTS &&
	       (len < strlen(slots[slot]) || memcmp(text, slots[slot], strlen(slots[slot]))))
		slot++;
	return slot;
}

static int report_html_page(FILE *out, int (*write)(FILE *out, const void *ctx), const void *ctx,
			    bool is_live)
{
	const char *done = html_page_start;
	int err = 0;

	for (const char *p = done; p < html_page_end && !err; p++) {
		int slot = *p == '{' ? report_html_slot_at(p, (size_t)(html_page_end - p)) : NR_SLOTS;

		if (slot == NR_SLOTS)
			continue;
		report_html_write_text(out, done, p);
		if (slot == SLOT_POLICY)
			write_policy(out, is_live);
		else if (slot == SLOT_STYLE)
			report_html_write_text(out, html_style_start, html_style_end);
		else if (slot == SLOT_SCRIPT)
			report_html_write_text(out, html_script_start, html_script_end);
		else
			err = write(out, ctx);
		p = strstr(p, "}}") + 1;
		done = p + 1;
	}
	report_html_write_text(out, done, html_page_end);
	return err ? err : flush_stream(out);
}

int html_page(FILE *out, int (*write)(FILE *out, const void *ctx), const void *ctx)
{
	return report_html_page(out, write, ctx, false);
}

int html_page_live(FILE *out, int (*write)(FILE *out, const void *ctx), const void *ctx)
{
	return report_html_page(out, write, ctx, true);
}

int report_html(FILE *out, const struct report *r)
{
	const struct report_html_look look = { .report = r };

	return html_page(out, report_html_write, &look);
}

int report_html_live(FILE *out, const struct report *r, u64 verdict_age_ns)
{
	const struct report_html_look look = { r, true, verdict_age_ns };

	return html_page_live(out, report_html_write, &look);
}

int report_html_data(FILE *out, const struct report *r, u64 verdict_age_ns)
{
	const struct report_html_look look = { r, true, verdict_age_ns };
	int err = report_html_write(out, &look);

	return err ? err : flush_stream(out);
}
