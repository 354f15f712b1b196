/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a set of rules, and enters it. */
#include "user/lib/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/log.h"

/* Newer than some headers; the numbers are those of all CPUs. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, CREATE_VERSION = 1, RULE_BENEATH = 1 };

/* Rights to files, from linux/landlock.h. */
enum {
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	READ_FILE = 1 << 2,
	READ_DIR = 1 << 3,
	REMOVE_FILE = 1 << 5,
	MAKE_REG = 1 << 8,
	REFER = 1 << 13,
	TRUNCATE = 1 << 14,
	IOCTL_DEV = 1 << 15,
};

/* Rights to the network. */
enum { BIND_TCP = 1 << 0, CONNECT_TCP = 1 << 1 };

/* struct landlock_ruleset_attr of Linux 6.12; older kernels know its beginning. */
struct rights {
	u64 files, net, scoped;
};

/* struct landlock_path_beneath_attr */
struct landlock_rule {
	u64 files;
	s32 fd;
} __attribute__((packed));

/* By version of the interface: rights to files that the kernel knows, and sizes of struct rights. */
static const struct {
	u8 files, size;
} versions[] = { { 13, 8 }, { 14, 8 }, { 15, 8 }, { 15, 16 }, { 16, 16 }, { 16, 24 } };

/* A set of rules that forbids what @r names, as far as the kernel knows it. -1 = none. *@known: rights to files. */
static int new_rules(struct rights r, u64 *known)
{
	long version = syscall(CREATE_RULESET, NULL, 0, CREATE_VERSION);
	size_t size;

	if (version <= 0)
		return -1;
	if (version > (long)ARRAY_SIZE(versions))
		version = ARRAY_SIZE(versions);
	*known = (1ULL << versions[version - 1].files) - 1;
	size = versions[version - 1].size;
	r.files &= *known;
	return (int)syscall(CREATE_RULESET, &r, size, 0);
}

static void landlock_enter(int rules)
{
	if (syscall(RESTRICT_SELF, rules, 0))
		debug("privileges: no bounds of files: %s", strerror(errno));
	close(rules);
}

void landlock_forbid_all(void)
{
	const struct rights all = { .files = ~0ULL, .net = BIND_TCP | CONNECT_TCP, .scoped = 3 };
	u64 known;
	int rules = new_rules(all, &known);

	if (rules >= 0)
		landlock_enter(rules);
}

static void landlock_allow(int rules, int fd, u64 files)
{
	const struct landlock_rule rule = { .files = files, .fd = fd };

	if (fd >= 0 && syscall(ADD_RULE, rules, RULE_BENEATH, &rule, 0))
		debug("privileges: cannot allow writes: %s", strerror(errno));
}

static void forbid_writes(const int *dirs, size_t nr, u64 net)
{
	const struct rights r = { .files = ~(u64)(EXECUTE | READ_FILE | READ_DIR | IOCTL_DEV), .net = net };
	u64 known;
	int rules = new_rules(r, &known), null;

	if (rules < 0)
		return;
	for (size_t i = 0; i < nr; i++)
		landlock_allow(rules, dirs[i],
			       known & (WRITE_FILE | REMOVE_FILE | MAKE_REG | REFER | TRUNCATE));
	null = open("/dev/null", O_PATH | O_CLOEXEC);
	landlock_allow(rules, null, WRITE_FILE);
	if (null >= 0)
		close(null);
	landlock_enter(rules);
}

void landlock_forbid_writes(const int *dirs, size_t nr)
{
	forbid_writes(dirs, nr, BIND_TCP | CONNECT_TCP);
}

void landlock_forbid_all_but_sending(void)
{
	forbid_writes(NULL, 0, BIND_TCP);
}
