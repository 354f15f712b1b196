/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Uploads profiles by libcurl, which this process alone loads. */
#include "user/metrics/push_helper.h"

#include <unistd.h>

#ifdef WITHOUT_PUSH
void push_helper_run(const char *url, const char *name, int channel)
{
	(void)url;
	(void)name;
	(void)channel;
	_exit(1);
}
#else
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/lib/cleanup.h"
#include "user/lib/types.h"
#include "user/metrics/channel.h"
#include "user/metrics/helper.h"
#include "user/metrics/sandbox.h"

enum {
	MAX_PROFILE = 256 << 20,
	TIMEOUT_S = 30,
	CONNECT_S = 10,
	URL_BYTES = 4096,
	HTTP_OK = 200,
	HTTP_LAST = 299
};

/* The functions in use, each under its name without curl_. */
#define CURL_FUNCTIONS(X)                                                                                    \
	X(global_init)                                                                                       \
	X(easy_init)                                                                                         \
	X(easy_setopt)                                                                                       \
	X(easy_perform)                                                                                      \
	X(easy_getinfo)                                                                                      \
	X(easy_strerror)                                                                                     \
	X(easy_reset)                                                                                        \
	X(easy_escape)                                                                                       \
	X(free)                                                                                              \
	X(mime_init)                                                                                         \
	X(mime_addpart)                                                                                      \
	X(mime_name)                                                                                         \
	X(mime_data)                                                                                         \
	X(mime_filename)                                                                                     \
	X(mime_free)                                                                                         \
	X(slist_append)                                                                                      \
	X(slist_free_all)

/* With parentheses, because curl.h has macros of some of these names. */
struct curl_library {
#define MEMBER(name) __typeof__((curl_##name)) *name;
	CURL_FUNCTIONS(MEMBER)
#undef MEMBER
};

struct pusher {
	struct curl_library curl;
	CURL *easy;
	const char *url, *name; /* without a name, profiles are OTLP */
};

/* For Pyroscope, which knows only samples of Go. */
static const char sample_types[] =
	"{\"alloc_objects\":{\"units\":\"objects\",\"aggregation\":\"sum\",\"sampled\":false},"
	"\"alloc_space\":{\"units\":\"bytes\",\"aggregation\":\"sum\",\"sampled\":false},"
	"\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\",\"sampled\":false},"
	"\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\",\"sampled\":false},"
	"\"leak_objects\":{\"units\":\"objects\",\"aggregation\":\"average\",\"sampled\":false},"
	"\"leak_space\":{\"units\":\"bytes\",\"aggregation\":\"average\",\"sampled\":false}}";

static int push_helper_load(struct curl_library *c)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	const struct {
		const char *name;
		void *where;
	} wanted[] = {
#define ROW(function) { "curl_" #function, &c->function },
		CURL_FUNCTIONS(ROW)
#undef ROW
	};
	void *library = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; i < ARRAY_SIZE(wanted) && library; i++) {
		void *found = dlsym(library, wanted[i].name);

		if (!found)
			return -ENOSYS;
		memcpy(wanted[i].where, &found, sizeof(found));
	}
	return library ? 0 : -ENOSYS;
}

static size_t push_helper_drop(char *data, size_t size, size_t nr, void *ctx)
{
	(void)data;
	(void)ctx;
	return size * nr;
}

/* The whole of the file behind @fd; owned by the caller. NULL: too large, or no memory. */
static char *push_helper_read_all(int fd, size_t *len)
{
	struct stat st;
	char *data;

	if (fstat(fd, &st) || st.st_size <= 0 || st.st_size > MAX_PROFILE)
		return NULL;
	data = malloc((size_t)st.st_size);
	if (data && pread(fd, data, (size_t)st.st_size, 0) != st.st_size) {
		free(data);
		return NULL;
	}
	*len = (size_t)st.st_size;
	return data;
}

static void add_part(struct pusher *p, curl_mime *form, const char *name, const char *file, const char *data,
		     size_t len)
{
	curl_mimepart *part = p->curl.mime_addpart(form);

	p->curl.mime_name(part, name);
	p->curl.mime_filename(part, file);
	p->curl.mime_data(part, data, len);
}

/* The part of a request beside its URL; owned by the caller: free_content(). */
struct upload_content {
	curl_mime *form;
	struct curl_slist *headers;
};

/* A form, as Pyroscope takes it, or the message of OTLP, which is compressed. */
static struct upload_content set_content(struct pusher *p, const char *data, size_t len)
{
	struct upload_content c = { 0 };

	if (p->name) {
		c.form = p->curl.mime_init(p->easy);
		add_part(p, c.form, "profile", "profile.pprof", data, len);
		add_part(p, c.form, "sample_type_config", "sample_type_config.json", sample_types,
			 strlen(sample_types));
		p->curl.easy_setopt(p->easy, CURLOPT_MIMEPOST, c.form);
		return c;
	}
	c.headers = p->curl.slist_append(NULL, "Content-Type: application/x-protobuf");
	c.headers = p->curl.slist_append(c.headers, "Content-Encoding: gzip");
	p->curl.easy_setopt(p->easy, CURLOPT_HTTPHEADER, c.headers);
	p->curl.easy_setopt(p->easy, CURLOPT_POSTFIELDSIZE, (long)len);
	p->curl.easy_setopt(p->easy, CURLOPT_POSTFIELDS, data);
	return c;
}

static void free_content(struct pusher *p, struct upload_content *c)
{
	p->curl.mime_free(c->form);
	p->curl.slist_free_all(c->headers);
}

/* Upload. The result is in @m. */
static void push_helper_upload(struct pusher *p, const char *data, size_t len, const char *url,
			       struct channel_message *m)
{
	struct upload_content content;
	CURLcode result;
	long status = 0;

	p->curl.easy_reset(p->easy);
	content = set_content(p, data, len);
	p->curl.easy_setopt(p->easy, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
	p->curl.easy_setopt(p->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	p->curl.easy_setopt(p->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	p->curl.easy_setopt(p->easy, CURLOPT_TIMEOUT, (long)TIMEOUT_S);
	p->curl.easy_setopt(p->easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	p->curl.easy_setopt(p->easy, CURLOPT_NOSIGNAL, 1L);
	p->curl.easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, push_helper_drop);
	p->curl.easy_setopt(p->easy, CURLOPT_USERAGENT, "heaptap/" HEAPTAP_VERSION);
	result = p->curl.easy_perform(p->easy);
	p->curl.easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
	free_content(p, &content);
	m->status = (u32)status;
	if (result != CURLE_OK)
		snprintf(m->text, sizeof(m->text), "%s", p->curl.easy_strerror(result));
	else if (status < HTTP_OK || status > HTTP_LAST)
		snprintf(m->text, sizeof(m->text), "the server answered with status %ld", status);
}

/* The whole URL of an upload. Times are seconds. False: it is too long, or no memory. */
static bool make_url(struct pusher *p, char url[URL_BYTES], const struct channel_message *m)
{
	char *name;
	int len;

	if (!p->name)
		return snprintf(url, URL_BYTES, "%s", p->url) < URL_BYTES;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): push_helper_load() has found each function. */
	name = p->curl.easy_escape(p->easy, p->name, 0);
	len = !name ? URL_BYTES
		    : snprintf(url, URL_BYTES, "%s%sname=%s&from=%u&until=%u&format=pprof&spyName=heaptap",
			       p->url, strchr(p->url, '?') ? "&" : "?", name, m->id, m->make_ms);
	p->curl.free(name);
	return len < URL_BYTES;
}

static void send_profile(struct pusher *p, int fd, struct channel_message *m)
{
	auto_free char *data = NULL;
	char url[URL_BYTES];
	size_t len = 0;

	data = push_helper_read_all(fd, &len);
	if (!data || !make_url(p, url, m))
		snprintf(m->text, sizeof(m->text), "the profile is too large");
	else
		push_helper_upload(p, data, len, url, m);
}

void push_helper_run(const char *url, const char *name, int channel)
{
	struct channel_message m = { .kind = CHANNEL_READY };
	struct pusher p = { .url = url, .name = name };
	struct pollfd wait;
	int fd, err = 0;

	helper_leave_heaptap("heaptap-push", &channel, 1);
	if (push_helper_load(&p.curl) || p.curl.global_init(CURL_GLOBAL_DEFAULT) ||
	    !(p.easy = p.curl.easy_init())) {
		m.status = 1;
		snprintf(m.text, sizeof(m.text), "the library libcurl.so.4 is not there");
	}
	if (channel_send(channel, &m, -1) || m.status)
		_exit(1);
	sandbox_enter_sender();
	wait = (struct pollfd){ .fd = channel, .events = POLLIN };
	while (err != -EPIPE) {
		poll(&wait, 1, -1);
		err = channel_take(channel, &m, &fd);
		if (err || fd < 0)
			continue;
		m.kind = CHANNEL_ANSWER;
		m.text[0] = '\0';
		send_profile(&p, fd, &m);
		close(fd);
		err = channel_send(channel, &m, -1);
	}
	_exit(0);
}
#endif
