/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cached tables: what was kept comes back, and nothing that somebody changed does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "tests/unit/cfi_image.h"
#include "user/unwind/cfi_cache.h"
#include "user/lib/elf.h"

static char folder[] = "/tmp/heaptap-test-XXXXXX";
static const char build_id[] = "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24";
static const char file_name[] = "heaptap/0102030405060708090a0b0c0d0e0f1011121314.cfi";

static const struct cfi_row rows[] = { { 0x10, 0x00010005 }, { 0x20, 0x00020005 }, { 0x30, CFI_NONE } };

static struct cfi_cache_key make_key(void)
{
	struct cfi_cache_key key;

	memset(&key, 0, sizeof(key));
	memcpy(key.build_id, build_id, 20);
	key.build_id_len = 20;
	key.machine = EM_X86_64;
	key.word_size = 8;
	key.input_hash = 42;
	return key;
}

static struct cfi_table make_table(void)
{
	struct cfi_table t = { .text_base = 0x1000,
			       .rows = (struct cfi_row *)rows,
			       .nr_rows = ARRAY_SIZE(rows) };

	t.stats.nr_fdes = 2;
	return t;
}

static void remove_files(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	return setenv("XDG_CACHE_HOME", folder, 1) || setenv("HOME", "/nonexistent", 1) || chdir(folder);
}

static int remove_folder(void **state)
{
	(void)state;
	remove_files("heaptap");
	rmdir("heaptap");
	return chdir("/") || rmdir(folder);
}

/* Open, write, close. */
static void keep(void)
{
	const struct cfi_cache_key key = make_key();
	const struct cfi_table t = make_table();
	int dir = cfi_cache_open();

	assert_true(dir >= 0);
	assert_int_equal(cfi_cache_write(dir, &key, &t), 0);
	close(dir);
}

static int fetch(struct cfi_table **t)
{
	const struct cfi_cache_key key = make_key();
	int dir = cfi_cache_open(), err;

	assert_true(dir >= 0);
	err = cfi_cache_read(dir, &key, t);
	close(dir);
	return err;
}

static void test_round_trip(void **state)
{
	struct cfi_table *t;
	struct stat st;

	(void)state;
	assert_int_equal(fetch(&t), -ENOENT);
	keep();
	assert_int_equal(stat(file_name, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat("heaptap", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fetch(&t), 0);
	assert_true(t->is_cached);
	assert_int_equal(t->text_base, 0x1000);
	assert_int_equal(t->nr_rows, ARRAY_SIZE(rows));
	assert_memory_equal(t->rows, rows, sizeof(rows));
	assert_int_equal(t->machine, EM_X86_64);
	assert_int_equal(t->stats.nr_fdes, 2);
	cfi_free(t);
}

static size_t read_file(u8 *bytes, size_t size)
{
	int fd = open(file_name, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, bytes, size);

	close(fd);
	assert_true(n > 0 && (size_t)n < size);
	return (size_t)n;
}

static void write_file(const u8 *bytes, size_t size)
{
	int fd = open(file_name, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static void test_damaged(void **state)
{
	struct cfi_table *t;
	u8 bytes[1024];
	size_t size;

	(void)state;
	keep();
	size = read_file(bytes, sizeof(bytes));
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 0x40;
		write_file(bytes, size);
		assert_int_equal(fetch(&t), -EINVAL);
		bytes[i] ^= 0x40;
		write_file(bytes, i);
		assert_int_equal(fetch(&t), -EINVAL);
	}
	bytes[size] = 0;
	write_file(bytes, size + 1);
	assert_int_equal(fetch(&t), -EINVAL);
	write_file(bytes, size);
	assert_int_equal(fetch(&t), 0);
	cfi_free(t);
}

/* A right checksum does not make rows right. */
static void test_invalid_rows(void **state)
{
	static const struct cfi_row bad[][3] = {
		{ { 0x20, 5 }, { 0x10, 5 }, { 0x30, CFI_NONE } },
		{ { 0x10, 5 }, { 0x10, 5 }, { 0x30, CFI_NONE } },
		{ { 0x10, 5 }, { 0x20, NR_CFI_KINDS }, { 0x30, CFI_NONE } },
		{ { 0x10, 5 }, { 0x20, 5 }, { 0x30, 5 } },
	};
	const struct cfi_cache_key key = make_key();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct cfi_table t = make_table(), *back;
		int dir = cfi_cache_open();

		t.rows = (struct cfi_row *)bad[i];
		assert_int_equal(cfi_cache_write(dir, &key, &t), 0);
		close(dir);
		assert_int_equal(fetch(&back), -EINVAL);
	}
}

static void test_foreign_files(void **state)
{
	struct cfi_table *t;

	(void)state;
	keep();
	assert_int_equal(chmod(file_name, 0622), 0);
	assert_int_equal(fetch(&t), -EINVAL);
	assert_int_equal(chmod(file_name, 0600), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(file_name, 65534, 65534), 0);
		assert_int_equal(fetch(&t), -EINVAL);
	} else {
		print_message("# not root: a file of another user is not tried\n");
	}
	assert_int_equal(rename(file_name, "heaptap/other.cfi"), 0);
	assert_int_equal(symlink("other.cfi", file_name), 0);
	assert_int_equal(fetch(&t), -EINVAL);
	assert_int_equal(unlink(file_name), 0);
	assert_int_equal(mkfifo(file_name, 0600), 0);
	assert_int_equal(fetch(&t), -EINVAL);
	keep(); /* replaces whatever is there */
	assert_int_equal(fetch(&t), 0);
	cfi_free(t);
}

/* A folder that others can write, or that is a link, is not used. */
static void test_foreign_folder(void **state)
{
	int dir;

	(void)state;
	if (geteuid() == 0) {
		print_message(
			"# root has another folder to fall back to: only the refusals of ours are checked\n");
		assert_int_equal(chmod("heaptap", 0777), 0);
		dir = cfi_cache_open();
		if (dir >= 0) {
			struct stat ours, got;

			assert_int_equal(stat("heaptap", &ours), 0);
			assert_int_equal(fstat(dir, &got), 0);
			assert_true(ours.st_ino != got.st_ino || ours.st_dev != got.st_dev);
			close(dir);
			rmdir("/var/cache/heaptap"); /* unless it is in use */
		}
	} else {
		assert_int_equal(chmod("heaptap", 0777), 0);
		assert_int_equal(cfi_cache_open(), -ENOENT);
	}
	assert_int_equal(chmod("heaptap", 0700), 0);
}

/* The least recently used go first, until the rest fits. */
static void test_trim(void **state)
{
	int dir = cfi_cache_open();

	(void)state;
	remove_files("heaptap");
	for (int i = 0; i < 4; i++) {
		struct timespec times[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };
		char name[32];
		int fd;

		snprintf(name, sizeof(name), i == 3 ? "keep.txt" : "file%d.cfi", i);
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(ftruncate(fd, 100 << 10), 0);
		assert_int_equal(futimens(fd, times), 0);
		close(fd);
	}
	cfi_cache_trim(dir, 300 << 10);
	assert_int_equal(faccessat(dir, "file0.cfi", F_OK, 0), 0);
	cfi_cache_trim(dir, 210 << 10);
	assert_int_equal(faccessat(dir, "file0.cfi", F_OK, 0), -1);
	assert_int_equal(faccessat(dir, "file1.cfi", F_OK, 0), 0);
	cfi_cache_trim(dir, 0);
	assert_int_equal(faccessat(dir, "file2.cfi", F_OK, 0), -1);
	assert_int_equal(faccessat(dir, "keep.txt", F_OK, 0), 0); /* not ours */
	close(dir);
	remove_files("heaptap");
}

static struct cfi_table *load(const char *id, u32 text)
{
	/* CIE, then an FDE of 16 bytes at @text. */
	u8 frame[48] = "\x14\0\0\0\0\0\0\0\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1\0\0\x14\0\0\0\x1c\0\0\0";
	const struct cfi_image im = {
		.machine = EM_X86_64, .frame = frame, .frame_size = sizeof(frame), .build_id = id
	};
	struct cfi_table *t;
	struct elf *elf;
	int fd;

	image_put(frame + 32, text - (IMAGE_FRAME + 32), 4);
	image_put(frame + 36, 16, 4);
	fd = cfi_image_open(&im);
	assert_int_equal(elf_open(&elf, fd), 0);
	assert_int_equal(cfi_load(&t, elf), 0);
	assert_int_equal(cfi_kind(cfi_find(t, text)), CFI_SP);
	elf_close(elf);
	close(fd);
	return t;
}

/* The second time from the cache; not for a file without build ID, nor for one changed under the same. */
static void test_load(void **state)
{
	static const struct {
		const char *id;
		u32 text;
		bool is_cached;
	} steps[] = { { build_id, IMAGE_TEXT, false },	   { build_id, IMAGE_TEXT, true },
		      { NULL, IMAGE_TEXT, false },	   { NULL, IMAGE_TEXT, false },
		      { build_id, IMAGE_TEXT + 8, false }, { build_id, IMAGE_TEXT + 8, true } };

	(void)state;
	remove_files("heaptap");
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct cfi_table *t = load(steps[i].id, steps[i].text);

		assert_int_equal(t->is_cached, steps[i].is_cached);
		assert_int_equal(t->stats.nr_fdes, 1);
		cfi_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_invalid_rows),   cmocka_unit_test(test_foreign_files),
		cmocka_unit_test(test_foreign_folder), cmocka_unit_test(test_trim),
		cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
