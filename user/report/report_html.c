/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report as one HTML file that needs no network: a page from user/report/html/ with the data of the report in it.
 *
 * The page may run only the script and the style whose hashes are in its security policy, and may load nothing.
 * So text of a target could do nothing even if its escape failed.
 */
#include "user/report/report.h"

#include <errno.h>
#include <string.h>

#include "user/lib/sha256.h"
#include "user/report/html_process.h"
#include "user/report/report_json.h"

/* Parts of the page: user/report/html_template.S. */
extern const char html_page_start[], html_page_end[];
extern const char html_style_start[], html_style_end[];
extern const char html_script_start[], html_script_end[];

static int write_text(FILE *out, const char *start, const char *end)
{
	fwrite(start, 1, (size_t)(end - start), out);
	return 0;
}

static int write_style(FILE *out, const struct report *r)
{
	(void)r;
	return write_text(out, html_style_start, html_style_end);
}

static int write_script(FILE *out, const struct report *r)
{
	(void)r;
	return write_text(out, html_script_start, html_script_end);
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

static int write_policy(FILE *out, const struct report *r)
{
	(void)r;
	fputs("default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src ", out);
	write_hash(out, html_style_start, html_style_end);
	fputs("; script-src ", out);
	write_hash(out, html_script_start, html_script_end);
	return 0;
}

static int write_data(FILE *out, const struct report *r)
{
	struct html_tables tables;
	struct json j;
	int err = 0;

	html_tables_init(&tables);
	json_init(&j, out, 0);
	j.in_page = true;
	json_object_begin(&j, NULL);
	report_json_head(&j, r);
	json_u64(&j, "real_ns", r->real_ns); /* 0 = not known */
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

/* A place in page.html, and what comes there. */
struct page_slot {
	const char *mark;
	int (*write)(FILE *out, const struct report *r);
};

static const struct page_slot slots[] = {
	{ "{{policy}}", write_policy },
	{ "{{style}}", write_style },
	{ "{{data}}", write_data },
	{ "{{script}}", write_script },
};

static const struct page_slot *slot_at(const char *text, size_t len)
{
	for (const struct page_slot *s = slots; s < slots + ARRAY_SIZE(slots); s++)
		if (len >= strlen(s->mark) && !memcmp(text, s->mark, strlen(s->mark)))
			return s;
	return NULL;
}

int report_html(FILE *out, const struct report *r)
{
	const char *done = html_page_start;
	int err = 0;

	for (const char *p = done; p < html_page_end && !err; p++) {
		const struct page_slot *slot = *p == '{' ? slot_at(p, (size_t)(html_page_end - p)) : NULL;

		if (!slot)
			continue;
		write_text(out, done, p);
		err = slot->write(out, r);
		done = p + strlen(slot->mark);
		p = done - 1;
	}
	write_text(out, done, html_page_end);
	return err ? err : report_flush(out);
}
