/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control group of a process, and the container or pod that its path names. */
#pragma once

#include "user/lib/types.h"

enum { CONTAINER_CGROUP_BYTES = 256, CONTAINER_NAME_BYTES = 80 };

struct container {
	char cgroup[CONTAINER_CGROUP_BYTES]; /* its path, cut at the front; "" = not known */
	const char *runtime; /* "docker", "containerd", "cri-o", "podman", "kubernetes"; NULL = none */
	char id[13];	     /* the first 12 digits, as runtimes print them; "" = none */
	char name[CONTAINER_NAME_BYTES]; /* that its runtime gave it, or its host name; "" = not known */
	char pod[48];			 /* UID of the pod; "" = none */
	pid_t pid_inside;		 /* 0 = it has no PID namespace of its own */
};

/* Find runtime, id and pod in a path such as "/system.slice/docker-<64 digits>.scope". */
void container_parse(struct container *c, const char *cgroup);

/* Read that of process @pid. 0, -ESRCH if it is gone, or -errno. */
int container_read(struct container *c, pid_t pid) __must_check;

/* "web (docker 0123456789ab)", or "" without a container; not escaped. */
void container_describe(const struct container *c, char *text, size_t size);
