/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps what was found out about the kernel until the next boot, and trusts none of it when it is read back. */
#include "user/source/kernel_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/log.h"
#include "user/lib/sha256.h"
#include "user/source/caps.h"

enum { FACTS_VERSION = 2, MOST_BYTES = 4096 };

/* Heaptaps with other rights or program files have files of their own, of so many names. */
enum { FACTS_NAMES = 16, FACTS_NAME_SIZE = 24 };

/* A number, so that a file of the other byte order has another value. */
static const u64 facts_magic = 0x0a6b6e7270616568ULL;

struct facts_image {
	u64 magic;
	u32 version, size;
	u8 key[KERNEL_FACTS_KEY];
	struct kernel_facts found;
	u64 checksum; /* hash_bytes() of all before it */
};

static u64 facts_checksum(const struct facts_image *image)
{
	return hash_bytes(image, offsetof(struct facts_image, checksum), 0);
}

/* ---- what facts depend on ---- */

/* The first bytes of the file at @path; that there is none is a fact, too. Returns how many. */
static size_t kernel_facts_add_text(struct sha256 *h, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	u8 text[MOST_BYTES];
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));

	sha256_add(h, &len, sizeof(len));
	if (len > 0)
		sha256_add(h, text, (size_t)len);
	return len > 0 ? (size_t)len : 0;
}

/* Which file @path is; or that there is none. The times of files that the kernel makes up are those of a look. */
static void kernel_facts_add_file(struct sha256 *h, const char *path, bool has_time)
{
	struct stat st;
	u64 facts[6] = { 0 };

	if (!stat(path, &st)) {
		facts[0] = 1;
		facts[1] = st.st_dev;
		facts[2] = st.st_ino;
		facts[3] = (u64)st.st_size;
		facts[4] = has_time ? (u64)st.st_mtim.tv_sec : 0;
		facts[5] = has_time ? (u64)st.st_mtim.tv_nsec : 0;
	}
	sha256_add(h, facts, sizeof(facts));
}

/* False: what this run finds out holds for this run only. */
static bool facts_key(u8 *key, const struct caps_env *env)
{
	struct utsname kernel;
	struct sha256 h;
	size_t boot_len;

	if (!env->is_root || env->is_confined || env->seccomp || uname(&kernel))
		return false;
	sha256_init(&h);
	boot_len = kernel_facts_add_text(&h, "/proc/sys/kernel/random/boot_id");
	kernel_facts_add_text(&h, "/sys/kernel/notes");
	sha256_add(&h, kernel.release, strlen(kernel.release) + 1);
	sha256_add(&h, kernel.version, strlen(kernel.version) + 1);
	sha256_add(&h, &env->privileges, sizeof(env->privileges));
	sha256_add(&h, env->lockdown, strlen(env->lockdown) + 1);
	sha256_add(&h, &env->unprivileged_bpf_disabled, sizeof(env->unprivileged_bpf_disabled));
	sha256_add(&h, &env->perf_event_paranoid, sizeof(env->perf_event_paranoid));
	kernel_facts_add_text(&h, "/proc/self/attr/current"); /* of a security module */
	kernel_facts_add_file(&h, "/proc/self/exe", true);    /* trials place probes there */
	kernel_facts_add_file(&h, "/proc/self/ns/pid", false);
	kernel_facts_add_file(&h, TASK_TYPES_PATH, false);
	kernel_facts_add_file(&h, "/sys/bus/event_source/devices/uprobe/type", false);
	sha256_end(&h, key);
	return boot_len > 0;
}

/* ---- the file ---- */

/* Root has made it, and nobody else can have changed it. */
static bool is_roots(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* The directory of the file; made if it is missing and @is_made. Or -errno. */
static int open_facts_dir(const char *base, bool is_made)
{
	auto_close int parent = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int dir = -1;
	struct stat st;

	if (parent < 0 || fstat(parent, &st))
		return -errno;
	if (!is_roots(&st))
		return -EPERM;
	if (is_made && mkdirat(parent, "heaptap", 0700) && errno != EEXIST)
		return -errno;
	dir = openat(parent, "heaptap", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st))
		return -errno;
	return is_roots(&st) ? take_fd(dir) : -EPERM;
}

/* "kernel-3", or "kernel-3.new" for one that is being written. */
static void facts_name(const struct kernel_facts_file *f, char *name, const char *ending)
{
	snprintf(name, FACTS_NAME_SIZE, "kernel-%d%s", f->key[0] % FACTS_NAMES, ending);
}

static int read_facts(struct kernel_facts_file *f, const char *base)
{
	auto_close int dir = open_facts_dir(base, false);
	auto_close int fd = -1;
	struct facts_image image;
	char name[FACTS_NAME_SIZE];
	struct stat st;

	if (dir < 0)
		return dir;
	facts_name(f, name, "");
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !is_roots(&st) || st.st_size != sizeof(image) ||
	    read(fd, &image, sizeof(image)) != sizeof(image) || image.magic != facts_magic ||
	    image.version != FACTS_VERSION || image.size != sizeof(image) ||
	    image.checksum != facts_checksum(&image))
		return -EINVAL;
	if (memcmp(image.key, f->key, sizeof(f->key)))
		return -ESTALE;
	f->known = image.found;
	return 0;
}

void kernel_facts_read(struct kernel_facts_file *f, const struct caps_env *env, const char *base)
{
	int err;

	memset(f, 0, sizeof(*f));
	f->is_usable = facts_key(f->key, env);
	err = f->is_usable ? read_facts(f, base) : -EPERM;
	if (err)
		debug("kernel facts: the file in %s/heaptap is not used: %s", base, strerror(-err));
	f->now = f->known;
}

static int write_facts(const struct kernel_facts_file *f, const char *base)
{
	auto_close int dir = open_facts_dir(base, true);
	auto_close int fd = -1;
	char name[FACTS_NAME_SIZE], draft[FACTS_NAME_SIZE];
	struct facts_image image;

	if (dir < 0)
		return dir;
	facts_name(f, name, "");
	facts_name(f, draft, ".new");
	memset(&image, 0, sizeof(image)); /* padding is part of the checksum */
	image.magic = facts_magic;
	image.version = FACTS_VERSION;
	image.size = sizeof(image);
	memcpy(image.key, f->key, sizeof(image.key));
	memcpy(&image.found, &f->now, sizeof(image.found));
	image.checksum = facts_checksum(&image);
	/* Two that write at once may spoil it: the checksum shows that. */
	unlinkat(dir, draft, 0);
	fd = openat(dir, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, &image, sizeof(image)) != sizeof(image)) {
		unlinkat(dir, draft, 0);
		return -EIO;
	}
	return renameat(dir, draft, dir, name) ? -errno : 0;
}

void kernel_facts_keep(struct kernel_facts_file *f, const char *base)
{
	int err;

	if (!f->is_usable || !memcmp(&f->now, &f->known, sizeof(f->now)))
		return;
	err = write_facts(f, base);
	if (err)
		debug("kernel facts: not written in %s/heaptap: %s", base, strerror(-err));
	else
		memcpy(&f->known, &f->now, sizeof(f->known));
}

/* ---- new facts ---- */

void kernel_facts_add_trial(struct kernel_facts *now, bool is_multi, const struct trial_result *result)
{
	bool is_good = !result->err && result->is_return_safe;

	if (is_multi) {
		now->multi = *result;
		now->has_trials = is_good && result->is_pid_exact;
	} else {
		now->perf = *result;
		/* Before Linux 6.6 there are no multi links. */
		now->has_trials |= is_good && now->multi.err == -EINVAL;
	}
}

void kernel_facts_add_types(struct kernel_facts *now)
{
	struct task_types *types;

	if (task_types_new(&types, TASK_TYPES_PATH)) {
		debug("bpf: the kernel does not describe its types");
		return;
	}
	now->has_types = true;
	if (task_types_pending(types, &now->pending))
		debug("bpf: the kernel does not describe pending signals: dlopen may lose a blocked SIGCONT");
	if (task_types_task(types, &now->task))
		debug("bpf: the kernel does not describe its tasks");
	if (task_types_alt_stack(types, &now->alt_stack))
		now->alt_stack = (struct alt_stack_fields){ 0 };
	task_types_free(types);
}
