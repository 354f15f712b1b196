/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Containers by the paths of control groups, and limits in time. */
#include "user/system/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/system/limit.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHORT "0123456789ab"

static void runtimes(void **state)
{
	static const struct {
		const char *path, *runtime, *id, *pod;
	} rows[] = {
		{ "/", NULL, "", "" },
		{ "/system.slice/ssh.service", NULL, "", "" },
		{ "/system.slice/docker-" ID ".scope", "docker", SHORT, "" },
		{ "/docker/" ID, "docker", SHORT, "" },
		{ "/machine.slice/libpod-" ID ".scope/container", "podman", SHORT, "" },
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "podman",
		  SHORT, "" },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234abcd_0001_0002_0003_"
		  "0123456789ab.slice/cri-containerd-" ID ".scope",
		  "containerd", SHORT, "1234abcd-0001-0002-0003-0123456789ab" },
		{ "/kubepods/besteffort/pod1234abcd-0001-0002-0003-0123456789ab/" ID, "kubernetes", SHORT,
		  "1234abcd-0001-0002-0003-0123456789ab" },
		{ "/kubepods.slice/kubepods-podabcd_01.slice/crio-" ID ".scope", "cri-o", SHORT, "abcd-01" },
		{ "/some/" ID "/below", "container", SHORT, "" },
		/* One digit is missing. */
		{ "/docker/123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", NULL, "", "" },
		/* No pod of ours. */
		{ "/podium/pod7", NULL, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct container c;

		container_parse(&c, rows[i].path);
		assert_string_equal(c.cgroup, rows[i].path);
		assert_string_equal(c.id, rows[i].id);
		assert_string_equal(c.pod, rows[i].pod);
		if (rows[i].runtime)
			assert_string_equal(c.runtime, rows[i].runtime);
		else
			assert_null(c.runtime);
	}
}

static void long_paths_keep_their_end(void **state)
{
	char path[4096];
	struct container c;

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	strcpy(path + sizeof(path) - 80, "/docker/" ID);
	container_parse(&c, path);
	assert_int_equal(strlen(c.cgroup), CONTAINER_CGROUP_BYTES - 1);
	assert_non_null(strstr(c.cgroup, "/docker/" ID));
	assert_string_equal(c.id, SHORT);
}

static void words(void **state)
{
	struct container c;
	char text[256];

	(void)state;
	container_parse(&c, "/system.slice/docker-" ID ".scope");
	container_describe(&c, text, sizeof(text));
	assert_string_equal(text, "docker " SHORT);
	strcpy(c.name, "web");
	container_describe(&c, text, sizeof(text));
	assert_string_equal(text, "web (docker " SHORT ")");
	container_parse(&c, "/system.slice/ssh.service");
	container_describe(&c, text, sizeof(text));
	assert_string_equal(text, "");
}

static void of_this_process(void **state)
{
	struct container c;

	(void)state;
	assert_int_equal(container_read(&c, getpid()), 0);
	assert_int_equal(c.cgroup[0], '/');
	assert_int_equal(container_read(&c, 0x3fffffff), -3 /* ESRCH */);
}

static void limits(void **state)
{
	struct limit l = { LIMIT_CGROUP, 1000, 5000 };
	struct limit here = limit_read(getpid(), 1 << 20);

	(void)state;
	assert_int_equal(limit_time_ns(&l, 100), 10000000001ULL);
	assert_int_equal(limit_time_ns(&l, 0), 0);
	assert_int_equal(limit_time_ns(&l, -5), 0);
	assert_int_equal(limit_time_ns(&l, 1e-9), 0);
	l.kind = LIMIT_NONE;
	assert_int_equal(limit_time_ns(&l, 100), 0);
	/* Each machine has some memory. */
	assert_int_not_equal(here.kind, LIMIT_NONE);
	assert_true(here.max > 0 && here.left <= here.max);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runtimes), cmocka_unit_test(long_paths_keep_their_end),
		cmocka_unit_test(words),    cmocka_unit_test(of_this_process),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
