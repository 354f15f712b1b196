/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the control group of a process to its container. */
#include "user/system/container.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"
#include "user/system/cgroup.h"

enum { ID_DIGITS = 64, SHORT_ID = 12, MAX_FILE = 256 << 10, PATH_BYTES = 4096 };

/* Texts that runtimes write before the id in the name of a group, and of a group above. The first match wins. */
static const struct {
	const char *prefix, *above, *runtime;
} runtimes[] = {
	{ "docker-", NULL, "docker" },
	{ "libpod-", NULL, "podman" },
	{ "cri-containerd-", NULL, "containerd" },
	{ "nerdctl-", NULL, "containerd" },
	{ "crio-", NULL, "cri-o" },
	{ "", "/docker/", "docker" },
	{ "", "/libpod", "podman" },
	{ "", "/kubepods", "kubernetes" },
	{ "", "/containerd/", "containerd" },
};

static const char *runtime_of(const char *path, const char *part, size_t prefix)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		const char *want = runtimes[i].prefix;

		if (strlen(want) == prefix && !strncmp(part, want, prefix) &&
		    (!runtimes[i].above || strstr(path, runtimes[i].above)))
			return runtimes[i].runtime;
	}
	return "container";
}

/* The id in the last part of the path that has one: *@id and what is before it in its part; false = none. */
static bool find_id(const char *path, const char **part, const char **id)
{
	size_t run = 0;
	bool found = false;

	*part = path;
	for (const char *at = path;; at++) {
		if (isxdigit((unsigned char)*at)) {
			run++;
			continue;
		}
		if (run >= ID_DIGITS) {
			const char *start = at - ID_DIGITS;

			*id = start;
			for (*part = start; *part > path && (*part)[-1] != '/';)
				--*part;
			found = true;
		}
		run = 0;
		if (!*at)
			return found;
	}
}

/* "kubepods-burstable-pod1234_5678.slice", "pod1234-5678": the UID, with dashes. */
static void find_pod(struct container *c, const char *path)
{
	const char *kube = strstr(path, "/kubepods"), *pod = NULL;
	size_t len;

	for (const char *at = kube; at && (at = strstr(at, "pod")); at += 3)
		if ((at[-1] == '/' || at[-1] == '-') && isxdigit((unsigned char)at[3]))
			pod = at + 3;
	if (!pod)
		return;
	len = strcspn(pod, "./");
	if (len >= sizeof(c->pod))
		return;
	memcpy(c->pod, pod, len);
	c->pod[len] = '\0';
	for (char *p = c->pod; *p; p++)
		if (*p == '_')
			*p = '-';
}

void container_parse(struct container *c, const char *cgroup)
{
	const char *part, *id;
	size_t len = strlen(cgroup), skip = len < sizeof(c->cgroup) ? 0 : len - sizeof(c->cgroup) + 1;

	*c = (struct container){ 0 };
	memcpy(c->cgroup, cgroup + skip, len - skip + 1);
	if (find_id(cgroup, &part, &id)) {
		memcpy(c->id, id, SHORT_ID);
		c->runtime = runtime_of(cgroup, part, (size_t)(id - part));
	}
	find_pod(c, cgroup);
}

static void set_name(struct container *c, const char *text, size_t len)
{
	if (!len || len >= sizeof(c->name))
		return;
	memcpy(c->name, text, len);
	c->name[len] = '\0';
}

/* The file in which the runtime keeps the names of containers: its path has the long id, or it lists all of them. */
static void name_by_runtime(struct container *c, const char *id)
{
	static const struct {
		const char *runtime, *path, *key;
	} files[] = {
		{ "docker", "/var/lib/docker/containers/%.64s/config.v2.json", "\"Name\":\"/" },
		{ "podman", "/var/lib/containers/storage/overlay-containers/containers.json",
		  "\"names\":[\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		auto_free char *text = NULL;
		char path[192];
		const char *at, *dirs = strstr(files[i].path, "%.64s");

		if (strcmp(files[i].runtime, c->runtime) != 0)
			continue;
		text = malloc(MAX_FILE);
		if (dirs)
			snprintf(path, sizeof(path), "%.*s%.64s%s", (int)(dirs - files[i].path),
				 files[i].path, id, dirs + strlen("%.64s"));
		else
			snprintf(path, sizeof(path), "%s", files[i].path);
		if (!text || proc_read_text(path, text, MAX_FILE) < 0)
			return;
		at = dirs ? text : strstr(text, c->id);
		at = at ? strstr(at, files[i].key) : NULL;
		if (at)
			set_name(c, at + strlen(files[i].key), strcspn(at + strlen(files[i].key), "\""));
		return;
	}
}

/* The host name of a pod is its name. Of other containers it mostly is the id. */
static void name_by_host(struct container *c, pid_t pid)
{
	static const char key[] = "HOSTNAME=";
	auto_free char *text = malloc(MAX_FILE);
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	len = text ? proc_read_text(path, text, MAX_FILE) : -ENOMEM;
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(text + at) + 1) {
		const char *value = text + at + strlen(key);

		if (strncmp(text + at, key, strlen(key)) != 0)
			continue;
		if (strncmp(value, c->id, SHORT_ID) != 0)
			set_name(c, value, strlen(value));
		return;
	}
}

int container_read(struct container *c, pid_t pid)
{
	struct proc_status status;
	const char *part, *id;
	char path[PATH_BYTES] = "";
	int err;

	*c = (struct container){ 0 };
	err = cgroup_read(pid, CGROUP_ANY, path, sizeof(path));
	if (err && err != -ENOENT)
		return err;
	container_parse(c, path);
	if (find_id(path, &part, &id))
		name_by_runtime(c, id);
	if ((c->id[0] || c->pod[0]) && !c->name[0])
		name_by_host(c, pid);
	if (!proc_read_status(&status, pid) && status.ns_depth)
		c->pid_inside = status.ns_tgid;
	return 0;
}

void container_describe(const struct container *c, char *text, size_t size)
{
	const char *kind = c->runtime ? c->runtime : "kubernetes";

	if (!c->id[0] && !c->pod[0])
		snprintf(text, size, "%s", "");
	else if (c->name[0])
		snprintf(text, size, "%s (%s %s)", c->name, kind, c->id);
	else
		snprintf(text, size, "%s %s", kind, c->id[0] ? c->id : c->pod);
}
