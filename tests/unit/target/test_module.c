/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the module table: files of this process and of children, by what is mapped and not by what is named. */
#include "user/target/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "user/target/image.h"
#include "user/lib/cleanup.h"
#include "user/lib/proc_memory.h"
#include "tests/unit/skip.h"

enum { PAGE = 4096 };

static char dir[] = "/tmp/heaptap-module-XXXXXX";
static long page_size;

/* Everything a test needs, for this process. */
struct fixture {
	struct module_table *table;
	struct mapping_list list;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return f ? module_table_new(&f->table) : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	mapping_list_fini(&f->list);
	module_table_free(f->table);
	free(f);
	return 0;
}

static const char *path_in(const char *folder, const char *name)
{
	static char path[8192];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* A copy of this program at @path: an ELF file with a build ID. Its last byte is @mark. */
static void copy_self(const char *path, char mark)
{
	auto_close int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	auto_close int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	char buf[1 << 16];
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		assert_true(write(out, buf, n) == n);
	assert_true(write(out, &mark, 1) == 1);
}

/* Map the first page of @path executable and close the file. */
static char *map_file(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *p = mmap(NULL, page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	assert_true(fd >= 0 && p != MAP_FAILED);
	return p;
}

static const struct mapping *mapping_of(struct fixture *f, const void *p)
{
	const struct mapping *m = mapping_find(&f->list, (uintptr_t)p);

	assert_non_null(m);
	return m;
}

static void read_own(struct fixture *f, int expected)
{
	assert_int_equal(mapping_list_read(&f->list, f->table, getpid()), expected);
}

static u64 inode_of_fd(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static u64 inode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

/* The reference for load bias and build ID is the dynamic loader. */
static void own_functions(void **state)
{
	struct fixture *f = *state;
	const void *places[] = { (const void *)(uintptr_t)own_functions, dlsym(RTLD_DEFAULT, "puts") };

	read_own(f, 1);
	assert_int_equal(f->list.epoch, 1);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const struct mapping *m = mapping_of(f, places[i]);
		struct code_ref ref = mapping_ref(&f->list, (uintptr_t)places[i]);
		Dl_info info;

		assert_true(dladdr(places[i], &info));
		assert_true(m->bias == (uintptr_t)info.dli_fbase);
		assert_non_null(m->module);
		assert_true(m->module->fd >= 0 && m->module->build_id_len == 20);
		assert_false(m->module->is_deleted);
		assert_string_equal(m->module->root, "");
		assert_int_equal(ref.module, m->module->id);
		assert_true(ref.offset == (uintptr_t)places[i] - m->bias);
		assert_ptr_equal(module_get(f->table, ref.module), m->module);
		assert_true(inode_of_fd(m->module->fd) == inode_of(m->module->path));
	}
}

/* Equal headers in memory and in the file decide when device and inode cannot. */
static void headers_in_memory(void **state)
{
	struct proc_memory mem;
	const void *places[] = { (const void *)(uintptr_t)own_functions, dlsym(RTLD_DEFAULT, "puts") };
	struct fixture *f = *state;
	struct image mapped[2], file;

	assert_int_equal(proc_memory_open(&mem, getpid()), 0);
	read_own(f, 1);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		Dl_info info;

		assert_true(dladdr(places[i], &info));
		assert_int_equal(image_read_memory(&mapped[i], &mem, (uintptr_t)info.dli_fbase), 0);
		assert_int_equal(image_read_file(&file, mapping_of(f, places[i])->module->fd), 0);
		assert_true(mapped[i].build_id_len == 20 && image_is_same(&mapped[i], &file));
	}
	assert_false(image_is_same(&mapped[0], &mapped[1]));
	assert_true(image_read_memory(&file, &mem, 0x1000) < 0);
	proc_memory_close(&mem);
}

static void unchanged_maps_keep_epoch(void **state)
{
	struct fixture *f = *state;
	size_t count;
	void *p;

	read_own(f, 1);
	count = module_count(f->table);
	read_own(f, 0);
	assert_int_equal(f->list.epoch, 1);
	p = map_file("/proc/self/exe");
	read_own(f, 1);
	assert_int_equal(f->list.epoch, 2);
	assert_int_equal(module_count(f->table), count);
	assert_ptr_equal(mapping_of(f, p)->module, mapping_of(f, (void *)(uintptr_t)own_functions)->module);
	munmap(p, page_size);
	read_own(f, 1);
	assert_null(mapping_find(&f->list, (uintptr_t)p));
}

static void code_in_no_file(void **state)
{
	struct fixture *f = *state;
	char *p = mmap(NULL, page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct code_ref ref;

	read_own(f, 1);
	assert_null(mapping_of(f, p)->module);
	ref = mapping_ref(&f->list, (uintptr_t)p + 5);
	assert_true(ref.module == 0 && ref.offset == (uintptr_t)p + 5);
	ref = mapping_ref(&f->list, 5);
	assert_true(ref.module == 0 && ref.offset == 5);
	munmap(p, page_size);
}

static void vdso_is_a_module(void **state)
{
	struct fixture *f = *state;
	struct module *vdso = NULL;
	struct image image;
	size_t count;

	read_own(f, 1);
	count = module_count(f->table);
	for (u32 id = 1; id <= count; id++) {
		struct module *m = module_get(f->table, id);

		if (strcmp(m->path, "[vdso]") == 0)
			vdso = m;
	}
	if (!vdso)
		skip_because("this kernel gives no vDSO");
	assert_true(vdso->fd >= 0);
	assert_int_equal(image_read_file(&image, vdso->fd), 0);
	assert_true(image.build_id_len > 0 && image.build_id_len == vdso->build_id_len);
	f->list.hash++;
	read_own(f, 1);
	assert_int_equal(module_count(f->table), count);
}

static void odd_file_names(void **state)
{
	static const char *const names[] = {
		"with blanks  ",    "new\nline\n", "literal\\012",
		"really (deleted)", "\xff\xfe",	   "tab\t\x1b[31m",
	};
	struct fixture *f = *state;

	if (geteuid() != 0)
		skip_because("only root reads /proc/PID/map_files");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *path = path_in(dir, names[i]);
		const struct mapping *m;
		char *p;

		copy_self(path, 0);
		p = map_file(path);
		read_own(f, 1);
		m = mapping_of(f, p);
		assert_string_equal(m->module->path, path);
		assert_false(m->module->is_deleted);
		assert_true(m->module->fd >= 0 && inode_of_fd(m->module->fd) == inode_of(path));
		munmap(p, page_size);
		unlink(path);
	}
}

/* The longest path that can be opened by name has 4095 bytes. */
static void longest_path(void **state)
{
	struct fixture *f = *state;
	char path[4096], name[201];
	size_t len = strlen(dir);
	char *p;

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	strcpy(path, dir);
	while (len + sizeof(name) < sizeof(path) - sizeof(name)) {
		len += sprintf(path + len, "/%s", name);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	memset(path + len, 'f', sizeof(path) - len);
	path[len] = '/';
	if (sizeof(path) - 1 - len > 201)
		path[len + 200] = '\0';
	else
		path[sizeof(path) - 1] = '\0';
	copy_self(path, 0);
	p = map_file(path);
	read_own(f, 1);
	assert_string_equal(mapping_of(f, p)->module->path, path);
	assert_true(inode_of_fd(mapping_of(f, p)->module->fd) == inode_of(path));
	munmap(p, page_size);
	unlink(path);
	for (; len > strlen(dir); len -= sizeof(name)) {
		path[len] = '\0';
		assert_int_equal(rmdir(path), 0);
	}
}

static void deleted_and_replaced(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct module *old;
	char *p, *q;
	u64 ino;

	if (geteuid() != 0)
		skip_because("only root reads /proc/PID/map_files");
	strcpy(path, path_in(dir, "replaced"));
	copy_self(path, 1);
	ino = inode_of(path);
	p = map_file(path);
	unlink(path);
	read_own(f, 1);
	old = mapping_of(f, p)->module;
	assert_true(old->is_deleted);
	assert_string_equal(old->path, path);
	assert_true(old->fd >= 0 && inode_of_fd(old->fd) == ino);

	copy_self(path, 2);
	q = map_file(path);
	read_own(f, 1);
	assert_ptr_equal(mapping_of(f, p)->module, old);
	assert_ptr_not_equal(mapping_of(f, q)->module, old);
	assert_false(mapping_of(f, q)->module->is_deleted);
	assert_string_equal(mapping_of(f, q)->module->path, path);

	/* A module that was there at first and goes later. */
	unlink(path);
	read_own(f, 1);
	assert_true(mapping_of(f, q)->module->is_deleted);
	munmap(p, page_size);
	munmap(q, page_size);
}

/* Deleted under one name, alive under another: the link count alone would not tell. */
static void deleted_with_second_link(void **state)
{
	struct fixture *f = *state;
	char path[128], other[128];
	char *p;

	strcpy(path, path_in(dir, "first"));
	strcpy(other, path_in(dir, "second"));
	copy_self(path, 0);
	assert_int_equal(link(path, other), 0);
	p = map_file(path);
	unlink(path);
	read_own(f, 1);
	assert_true(mapping_of(f, p)->module->is_deleted);
	assert_string_equal(mapping_of(f, p)->module->path, path);
	munmap(p, page_size);
	unlink(other);
}

static void memory_file(void **state)
{
	struct fixture *f = *state;
	auto_close int fd = memfd_create("jit code", MFD_CLOEXEC);
	char *p;

	assert_int_equal(ftruncate(fd, page_size), 0);
	p = mmap(NULL, page_size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	read_own(f, 1);
	assert_non_null(mapping_of(f, p)->module);
	assert_int_equal(mapping_of(f, p)->module->build_id_len, 0);
	assert_string_equal(mapping_of(f, p)->module->path, "/memfd:jit code");
	assert_true(mapping_ref(&f->list, (uintptr_t)p + 3).offset == 3);
	munmap(p, page_size);
}

/* A child that maps @path after @prepare, says so and waits for the pipe to close. */
static pid_t child_with(const char *path, void (*prepare)(const char *path), int *release)
{
	int ready[2], hold[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		prepare(path);
		if (map_file(path) && write(ready[1], &byte, 1) != 1)
			_exit(1);
		if (read(hold[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(ready[1]);
	close(hold[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*release = hold[1];
	return pid;
}

static void in_private_mount(const char *path)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, NULL))
		_exit(1);
	copy_self(path, 3);
}

/* A path leads to another file in the child than here: the child's file must be taken. */
static void other_mount_namespace(void **state)
{
	struct fixture *f = *state;
	const struct module *found = NULL;
	char path[128], root[64];
	int release;
	pid_t pid;

	if (geteuid() != 0)
		skip_because("a mount namespace needs root");
	strcpy(path, path_in(dir, "lib.so"));
	copy_self(path, 4);
	pid = child_with(path, in_private_mount, &release);
	assert_int_equal(mapping_list_read(&f->list, f->table, pid), 1);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	for (size_t i = 0; i < f->list.nr; i++)
		if (f->list.maps[i].module && strcmp(f->list.maps[i].module->path, path) == 0)
			found = f->list.maps[i].module;
	assert_non_null(found);
	assert_true(found->fd >= 0 && inode_of_fd(found->fd) != inode_of(path));
	assert_true(inode_of_fd(found->fd) == inode_of(path_in(root, path)));
	assert_string_equal(found->root, root);
	assert_false(found->is_deleted);
	close(release);
	waitpid(pid, NULL, 0);
	unlink(path);
}

/* Without CAP_SYS_ADMIN there is no map_files: paths, compared by inode, must do. Runs in a child. */
static int read_without_privilege(void)
{
	struct mapping_list list = { 0 };
	const struct mapping *m;
	struct module_table *t;

	if (setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 1) || module_table_new(&t))
		return 2;
	if (mapping_list_read(&list, t, getpid()) != 1)
		return 3;
	m = mapping_find(&list, (uintptr_t)dlsym(RTLD_DEFAULT, "puts"));
	if (!m || !m->module || m->module->fd < 0 || m->module->is_deleted)
		return 4;
	mapping_list_fini(&list);
	module_table_free(t);
	return 0;
}

static void without_privilege(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root, to give it up");
	pid = fork();
	if (pid == 0)
		_exit(read_without_privilege());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void on_overlay(const char *path)
{
	char options[512], lower[128];

	snprintf(lower, sizeof(lower), "%s/l/lib.so", dir);
	snprintf(options, sizeof(options), "lowerdir=%s/l,upperdir=%s/u,workdir=%s/w", dir, dir, dir);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, NULL) || mkdir(path_in(dir, "l"), 0700) ||
	    mkdir(path_in(dir, "u"), 0700) || mkdir(path_in(dir, "w"), 0700) ||
	    mkdir(path_in(dir, "m"), 0700))
		_exit(1);
	copy_self(lower, 5);
	if (mount("none", path_in(dir, "m"), "overlay", 0, options)) {
		print_message("no overlayfs here: a plain file instead\n");
		copy_self(path, 5);
	}
}

/* Where the file's device is another one in maps than in stat, the headers in memory decide. */
static void file_on_overlayfs(void **state)
{
	struct fixture *f = *state;
	const struct module *found = NULL;
	char path[128];
	int release;
	pid_t pid;

	if (geteuid() != 0)
		skip_because("a mount namespace needs root");
	strcpy(path, path_in(dir, "m/lib.so"));
	pid = child_with(path, on_overlay, &release);
	assert_int_equal(mapping_list_read(&f->list, f->table, pid), 1);
	for (size_t i = 0; i < f->list.nr; i++)
		if (f->list.maps[i].module && strcmp(f->list.maps[i].module->path, path) == 0)
			found = f->list.maps[i].module;
	assert_non_null(found);
	assert_true(found->fd >= 0 && found->build_id_len == 20);
	close(release);
	waitpid(pid, NULL, 0);
}

static void gone_processes(void **state)
{
	struct fixture *f = *state;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
	assert_int_equal(mapping_list_read(&f->list, f->table, pid), -ESRCH); /* a zombie */
	waitpid(pid, NULL, 0);
	assert_int_equal(mapping_list_read(&f->list, f->table, pid), -ESRCH);
	assert_int_equal(mapping_list_read(&f->list, f->table, 2), -ESRCH); /* a kernel thread */
	assert_int_equal(f->list.epoch, 0);
}

static void added_by_hand(void **state)
{
	static const u8 id[] = { 1, 2, 3 };
	struct fixture *f = *state;
	char path[128];
	struct module *m;

	assert_int_equal(module_add(f->table, "/no such file", id, sizeof(id), &m), 0);
	assert_true(m->id == 1 && m->fd == -1 && m->build_id_len == 3 && m->build_id[2] == 3);
	assert_int_equal(module_add(f->table, "/proc/self/exe", NULL, 0, &m), 0);
	assert_true(m->id == 2 && m->fd >= 0 && m->build_id_len == 0);
	assert_int_equal(module_add(f->table, "/dev/zero", NULL, 0, &m), 0);
	assert_int_equal(m->fd, -1);
	strcpy(path, path_in(dir, "fifo"));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(module_add(f->table, path, NULL, 0, &m), 0);
	assert_int_equal(m->fd, -1);
	unlink(path);
	assert_int_equal(module_add(f->table, "/x", id, BUILD_ID_MAX + 1, &m), -EINVAL);
	assert_null(module_get(f->table, 0));
	assert_null(module_get(f->table, 5));
	assert_int_equal(module_count(f->table), 4);
}

/* Our own headers, cut off anywhere and with each byte spoilt: no crash, and never a wrong build ID from the cut. */
static void damaged_headers(void **state)
{
	auto_close int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	auto_close int fd = memfd_create("damaged", MFD_CLOEXEC);
	struct image good, bad;
	u8 head[2 * PAGE];

	(void)state;
	assert_true(pread(self, head, sizeof(head), 0) == sizeof(head));
	assert_int_equal(image_read_file(&good, self), 0);
	for (size_t len = 0; len <= 1024; len++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_true(pwrite(fd, head, len, 0) == (ssize_t)len);
		if (image_read_file(&bad, fd) == 0 && bad.build_id_len > 0)
			assert_memory_equal(bad.build_id, good.build_id, good.build_id_len);
	}
	assert_true(pwrite(fd, head, sizeof(head), 0) == sizeof(head));
	for (size_t i = 0; i < 1024; i++) {
		u8 spoilt = head[i] ^ 0xff;
		int err;

		assert_true(pwrite(fd, &spoilt, 1, i) == 1);
		err = image_read_file(&bad, fd);
		assert_true(err == 0 || err == -ENOEXEC);
		assert_true(pwrite(fd, &head[i], 1, i) == 1);
	}
	assert_int_equal(image_read_file(&bad, fd), 0);
	assert_true(image_is_same(&good, &bad));
}

/* Segments as linkers lay them: two of them share a page of the file. */
static void bias_at_seams(void **state)
{
	const struct image image = {
		.nr_loads = 3,
		.loads = { { .vaddr = 0, .offset = 0, .file_size = 0x1600 },
			   { .vaddr = 0x2600, .offset = 0x1600, .file_size = 0x800, .is_executable = true },
			   { .vaddr = 0x4e00, .offset = 0x1e00, .file_size = 0x100 } }
	};
	const struct image fixed = {
		.nr_loads = 1, .loads = { { .vaddr = 0x400000, .file_size = 0x5000, .is_executable = true } }
	};
	const u64 base = 0x7f0000000000;

	(void)state;
	if (page_size != PAGE)
		skip_because("the numbers are for pages of 4096 bytes");
	assert_true(image_bias(&image, base + 0x2000, 0x1000) == base);
	assert_true(image_bias(&image, base, 0) == base);
	assert_true(image_bias(&fixed, 0x400000, 0) == 0);
	assert_true(image_bias(&fixed, 0x402000, 0x2000) == 0);
	assert_true(image_bias(&fixed, 0x900000, 0x50000) == 0x900000 - 0x50000);
}

/* Map page @nr of the file behind @fd at page @at of @place. */
static void map_page(char *place, int at, int fd, int nr)
{
	assert_true(mmap(place + at * page_size, page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			 fd, nr * page_size) != MAP_FAILED);
}

/* A memfd of @nr pages. */
static int memory_of(const char *name, int nr)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	assert_true(fd >= 0 && ftruncate(fd, nr * page_size) == 0);
	return fd;
}

/* The inline source puts copies of code in the place of a file's pages, and keeps those behind its own memory. */
static void copies_of_code(void **state)
{
	struct fixture *f = *state;
	const char *path = path_in(dir, "copied");
	auto_close int copies = memory_of("heaptap-code:/copied", 8), piece = memory_of("heaptap-inline", 1),
		       fd = -1;
	char *place = mmap(NULL, 16 * page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct mapping *m;

	copy_self(path, 'a');
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && place != MAP_FAILED);
	/* Pages 0 and 3 are copies, and so is page 1 of another mapping. */
	for (int i = 0; i < 5; i++)
		map_page(place, 1 + i, i == 0 || i == 3 ? copies : fd, i);
	map_page(place, 7, fd, 0);
	map_page(place, 8, copies, 1);
	map_page(place, 10, piece, 0);
	map_page(place, 11, fd, 3);
	/* All of a mapping is a copy: another one of the file follows. */
	map_page(place, 13, copies, 1);
	map_page(place, 14, fd, 2);
	assert_int_equal(mprotect(place + 14 * page_size, page_size, PROT_READ), 0);
	read_own(f, 1);
	m = mapping_of(f, place + page_size);
	assert_true(m->start == (uintptr_t)place + page_size && m->end == m->start + 5 * page_size);
	assert_true(m->file_offset == 0 && m->bias == m->start && m->module->fd >= 0);
	assert_ptr_equal(m, mapping_of(f, place + 5 * page_size));
	assert_ptr_equal(m->module, mapping_of(f, place + 7 * page_size)->module);
	assert_ptr_equal(mapping_of(f, place + 7 * page_size), mapping_of(f, place + 8 * page_size));
	assert_null(mapping_find(&f->list, (uintptr_t)place + 11 * page_size));
	assert_ptr_equal(m->module, mapping_of(f, place + 13 * page_size)->module);
	m = mapping_of(f, place + 13 * page_size);
	assert_true(m->start == (uintptr_t)place + 13 * page_size && m->end == m->start + page_size);
	assert_true(m->file_offset == (u64)page_size && m->bias == m->start - page_size);
	munmap(place, 16 * page_size);
	unlink(path);
}

static void named_by_links(void **state)
{
	struct fixture *f = *state;
	struct module *m;

	assert_int_equal(module_add(f->table, "/bin/file", NULL, 0, &m), 0);
	assert_string_equal(module_name(m), "/bin/file");
	assert_int_equal(module_set_link(m, ""), 0);
	assert_int_equal(module_set_link(m, "/bin/one"), 0);
	assert_int_equal(module_set_link(m, "/bin/one"), 0);
	assert_string_equal(module_name(m), "/bin/one");
	/* Two names: neither is right for both processes, for good. */
	assert_int_equal(module_set_link(m, "/bin/two"), 0);
	assert_string_equal(module_name(m), "/bin/file");
	assert_int_equal(module_set_link(m, "/bin/two"), 0);
	assert_string_equal(module_name(m), "/bin/file");
}

static size_t nr_descriptors(void)
{
	size_t nr = 0;

	for (int fd = 0; fd < 4096; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* Thousands of files that nothing names any more: they are closed, and their ids come again. */
static void forgotten_files(void **state)
{
	struct fixture *f = *state;
	const char *path = path_in(dir, "kept");
	struct module *kept, *m;
	size_t before;

	copy_self(path, 'k');
	assert_int_equal(module_add(f->table, path, NULL, 0, &kept), 0);
	assert_true(kept->fd >= 0);
	before = nr_descriptors();
	for (u32 i = 0; i < 3000; i++) {
		assert_int_equal(module_add(f->table, "/proc/self/exe", NULL, 0, &m), 0);
		assert_true(m->fd >= 0);
		assert_ptr_equal(module_get(f->table, m->id), m);
		if (module_table_is_crowded(f->table)) {
			bool *is_used = calloc(module_count(f->table) + 1, sizeof(*is_used));

			is_used[kept->id] = true;
			module_table_keep(f->table, is_used);
			free(is_used);
			assert_int_equal(nr_descriptors(), before);
			assert_null(module_get(f->table, kept->id == 1 ? 2 : 1));
		}
	}
	assert_true(module_count(f->table) < 600);
	assert_ptr_equal(module_get(f->table, kept->id), kept);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(named_by_links),	    TEST(own_functions),
		TEST(headers_in_memory),    TEST(unchanged_maps_keep_epoch),
		TEST(code_in_no_file),	    TEST(vdso_is_a_module),
		TEST(odd_file_names),	    TEST(longest_path),
		TEST(deleted_and_replaced), TEST(deleted_with_second_link),
		TEST(memory_file),	    TEST(other_mount_namespace),
		TEST(without_privilege),    TEST(file_on_overlayfs),
		TEST(gone_processes),	    TEST(added_by_hand),
		TEST(damaged_headers),	    TEST(bias_at_seams),
		TEST(copies_of_code),	    TEST(forgotten_files),
	};
	int failed;

	page_size = sysconf(_SC_PAGESIZE);
	if (!mkdtemp(dir))
		return 99;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
