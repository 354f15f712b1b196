/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In place of musl's functions, which can also ask a name service: the users of /etc/passwd, and their groups. */
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FIELDS = 7, MAX_GROUPS = 64 };

struct line {
	char *text; /* owned */
	size_t size;
};

/* The next line of at least @nr fields. False at the end. */
static bool next_line(FILE *file, struct line *line, char *fields[MAX_FIELDS], size_t nr)
{
	while (getline(&line->text, &line->size, file) > 0) {
		size_t have = 0;
		char *rest = line->text;

		rest[strcspn(rest, "\n")] = 0;
		while (have < MAX_FIELDS && (fields[have] = strsep(&rest, ":")))
			have++;
		if (have >= nr)
			return true;
	}
	return false;
}

/* The user of the name @name; NULL: of the number @uid. The answer holds until the next call. */
static struct passwd *find_user(const char *name, uid_t uid)
{
	static struct line line; /* as musl: one answer at a time */
	static struct passwd found;
	FILE *file = fopen("/etc/passwd", "re");
	char *f[MAX_FIELDS];
	bool is_found = false;

	while (file && !is_found && next_line(file, &line, f, MAX_FIELDS)) {
		found = (struct passwd){ .pw_name = f[0],
					 .pw_uid = (uid_t)strtoul(f[2], NULL, 10),
					 .pw_gid = (gid_t)strtoul(f[3], NULL, 10),
					 .pw_dir = f[5],
					 .pw_shell = f[6] };
		is_found = *f[2] && *f[3] && (name ? !strcmp(name, found.pw_name) : uid == found.pw_uid);
	}
	if (file)
		fclose(file);
	return is_found ? &found : NULL;
}

struct passwd *getpwnam(const char *name)
{
	return find_user(name, 0);
}

struct passwd *getpwuid(uid_t uid)
{
	return find_user(NULL, uid);
}

static bool has_member(char *members, const char *user)
{
	const char *member;

	while ((member = strsep(&members, ",")))
		if (!strcmp(member, user))
			return true;
	return false;
}

int initgroups(const char *user, gid_t gid)
{
	FILE *file = fopen("/etc/group", "re");
	gid_t groups[MAX_GROUPS] = { gid };
	struct line line = { 0 };
	char *f[MAX_FIELDS];
	size_t nr = 1;

	while (file && nr < MAX_GROUPS && next_line(file, &line, f, 4))
		if (has_member(f[3], user))
			groups[nr++] = (gid_t)strtoul(f[2], NULL, 10);
	if (file)
		fclose(file);
	free(line.text);
	return setgroups(nr, groups);
}
