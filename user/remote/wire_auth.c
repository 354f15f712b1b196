/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The handshake in steps: each handles a frame and answers with one. */
#include "user/remote/wire_auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/random.h"

static const char magic[8] = "heaptap\n";

enum { FLAG_TOKEN = 1, AT_VERSION = 8, AT_FLAGS = 10, AT_NONCE = 16, NONCE_LEN = 32 };

static int fill_hello(u8 *hello, u8 flags)
{
	memset(hello, 0, WIRE_HELLO_LEN);
	memcpy(hello, magic, sizeof(magic));
	hello[AT_VERSION] = WIRE_VERSION;
	hello[AT_FLAGS] = flags;
	return random_fill(hello + AT_NONCE, NONCE_LEN);
}

int wire_auth_begin(struct wire_auth *a, bool is_target, const u8 *token, struct wire_out *out)
{
	int err;

	*a = (struct wire_auth){ .is_target = is_target, .token = token };
	a->next = is_target ? WIRE_HELLO : WIRE_CHALLENGE;
	if (is_target)
		return 0;
	err = fill_hello(a->hello, 0);
	return err ? err : wire_put(out, WIRE_HELLO, a->hello, sizeof(a->hello));
}

static void wire_auth_prove(const struct wire_auth *a, const char *who, u8 *mac)
{
	u8 text[8 + 2 * WIRE_HELLO_LEN] = { 0 };

	memset(mac, 0, SHA256_LEN);
	if (!a->token)
		return;
	memcpy(text, who, strlen(who));
	memcpy(text + 8, a->hello, WIRE_HELLO_LEN);
	memcpy(text + 8 + WIRE_HELLO_LEN, a->challenge, WIRE_HELLO_LEN);
	sha256_hmac(mac, a->token, WIRE_TOKEN_LEN, text, sizeof(text));
}

static int wire_auth_fail(struct wire_auth *a, int err, const char *why)
{
	snprintf(a->why, sizeof(a->why), "%s", why);
	return err;
}

/* Refuse another heaptap, with the reason. Other peers get no answer. */
static int wire_auth_refuse(struct wire_auth *a, int err, const char *why, struct wire_out *out)
{
	if (wire_put_text(out, WIRE_REFUSED, why))
		return -ENOMEM;
	return wire_auth_fail(a, err, why);
}

static int take_hello(struct wire_auth *a, const struct wire_frame *f, u8 *keep, struct wire_out *out)
{
	u32 version;
	char why[96];

	if (f->len != WIRE_HELLO_LEN || memcmp(f->data, magic, sizeof(magic)))
		return wire_auth_fail(a, -EPROTO, "the other side is no heaptap");
	memcpy(keep, f->data, WIRE_HELLO_LEN);
	version = keep[AT_VERSION] | keep[AT_VERSION + 1] << 8;
	if (version == WIRE_VERSION)
		return 0;
	snprintf(why, sizeof(why), "one side speaks version %u of the protocol, the other version %u",
		 version, WIRE_VERSION);
	return wire_auth_refuse(a, -EPROTONOSUPPORT, why, out);
}

static int wire_auth_on_hello(struct wire_auth *a, const struct wire_frame *f, struct wire_out *out)
{
	int err = take_hello(a, f, a->hello, out);

	if (!err)
		err = fill_hello(a->challenge, a->token ? FLAG_TOKEN : 0);
	if (!err)
		err = wire_put(out, WIRE_CHALLENGE, a->challenge, sizeof(a->challenge));
	a->next = WIRE_PROOF;
	return err;
}

static int on_challenge(struct wire_auth *a, const struct wire_frame *f, struct wire_out *out)
{
	u8 mac[SHA256_LEN];
	int err = take_hello(a, f, a->challenge, out);

	if (err)
		return err;
	if (!a->token && a->challenge[AT_FLAGS] & FLAG_TOKEN)
		return wire_auth_fail(a, -EACCES, "the other side asks for a token: --token-file");
	/* Otherwise a machine in the middle could pretend that no token is needed. */
	if (a->token && !(a->challenge[AT_FLAGS] & FLAG_TOKEN))
		return wire_auth_fail(a, -EACCES, "the other side does not ask for the token");
	wire_auth_prove(a, "host", mac);
	a->next = WIRE_WELCOME;
	return wire_put(out, WIRE_PROOF, mac, sizeof(mac));
}

static int on_proof(struct wire_auth *a, const struct wire_frame *f, struct wire_out *out)
{
	u8 mac[SHA256_LEN];

	wire_auth_prove(a, "host", mac);
	if (f->len != sizeof(mac) || !sha256_equal(f->data, mac, sizeof(mac)))
		return wire_auth_refuse(a, -EACCES, "wrong token", out);
	wire_auth_prove(a, "target", mac);
	return wire_put(out, WIRE_WELCOME, mac, sizeof(mac)) ? -ENOMEM : 1;
}

static int on_welcome(struct wire_auth *a, const struct wire_frame *f, struct wire_out *out)
{
	u8 mac[SHA256_LEN];

	(void)out;
	wire_auth_prove(a, "target", mac);
	if (f->len != sizeof(mac) || !sha256_equal(f->data, mac, sizeof(mac)))
		return wire_auth_fail(a, -EACCES, "the other side does not know the token");
	return 1;
}

static const struct {
	u8 kind;
	int (*take)(struct wire_auth *a, const struct wire_frame *f, struct wire_out *out);
} steps[] = {
	{ WIRE_HELLO, wire_auth_on_hello },
	{ WIRE_CHALLENGE, on_challenge },
	{ WIRE_PROOF, on_proof },
	{ WIRE_WELCOME, on_welcome },
};

int wire_auth_take(struct wire_auth *a, const struct wire_frame *f, struct wire_out *out)
{
	struct wire_view v = { f->data, f->len, false };

	if (f->kind == WIRE_REFUSED && !a->is_target) {
		wire_get_text(&v, a->why, sizeof(a->why));
		return -ECONNREFUSED;
	}
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (f->kind == a->next && f->kind == steps[i].kind)
			return steps[i].take(a, f, out);
	return wire_auth_fail(a, -EPROTO, "the other side is no heaptap");
}

static int wire_auth_digit(char c)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;

	if (!at)
		return -1;
	return at - digits < 16 ? at - digits : at - digits - 6;
}

static int parse_token(u8 *token, const char *text, size_t len)
{
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (len != 2 * WIRE_TOKEN_LEN)
		return -EINVAL;
	for (size_t i = 0; i < len; i += 2) {
		int high = wire_auth_digit(text[i]), low = wire_auth_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		token[i / 2] = high << 4 | low;
	}
	return 0;
}

int wire_token_read(u8 *token, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char text[2 * WIRE_TOKEN_LEN + 8];
	struct stat st;
	ssize_t len;
	int err = 0;

	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		error("--token-file: %s: %s", path, strerror(-err));
		return err;
	}
	if (!S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != geteuid()) || st.st_mode & 077) {
		error("--token-file: %s: must be a file of yours that nobody else can read (chmod 600)",
		      path);
		return -EPERM;
	}
	len = read(fd, text, sizeof(text));
	err = len < 0 ? -errno : parse_token(token, text, len);
	if (err)
		error("--token-file: %s: must hold 64 hexadecimal digits; make one with: "
		      "od -An -vN32 -tx1 /dev/urandom | tr -dc 0-9a-f",
		      path);
	return err;
}
