/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the package of a file, in the lists of dpkg, or by asking rpm. */
#include "user/names/debug_package.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/types.h"

enum { MAX_PACKAGE_BYTES = 128, MAX_LISTS = 20000 };

/* Does line @line of a list name @path? On systems where /lib is a link to /usr/lib, lists may have either. */
static bool names_path(const char *line, const char *path)
{
	size_t len = strcspn(line, "\n");

	if (len == strlen(path) && !strncmp(line, path, len))
		return true;
	return !strncmp(path, "/usr/", 5) && len == strlen(path) - 4 && !strncmp(line, path + 4, len);
}

static bool list_has(const char *list, const char *path)
{
	char line[PATH_MAX];
	FILE *f = fopen(list, "re");
	bool has = false;

	if (!f)
		return false;
	while (!has && fgets(line, sizeof(line), f))
		has = names_path(line, path);
	fclose(f);
	return has;
}

/* The package of the list "libc6:amd64.list" is libc6. False if @name is no list. */
static bool package_of_list(const char *name, char package[MAX_PACKAGE_BYTES])
{
	size_t len = strlen(name);

	if (len < 6 || strcmp(name + len - 5, ".list") != 0 || len >= MAX_PACKAGE_BYTES)
		return false;
	len = strcspn(name, ":") < len - 5 ? strcspn(name, ":") : len - 5;
	memcpy(package, name, len);
	package[len] = '\0';
	return true;
}

static bool find_in_dpkg(const char *root, const char *path, char package[MAX_PACKAGE_BYTES])
{
	char dir[PATH_MAX], list[PATH_MAX + 256];
	const struct dirent *e;
	bool is_found = false;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/var/lib/dpkg/info", root);
	d = opendir(dir);
	if (!d)
		return false;
	for (int i = 0; !is_found && i < MAX_LISTS && (e = readdir(d)); i++) {
		snprintf(list, sizeof(list), "%s/%s", dir, e->d_name);
		is_found = package_of_list(e->d_name, package) && list_has(list, path);
	}
	closedir(d);
	return is_found;
}

/* Is a directory there that only systems with this package manager have? */
static bool has_directory(const char *root, const char *name)
{
	char path[PATH_MAX];
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	d = opendir(path);
	if (d)
		closedir(d);
	return d;
}

void debug_package_hint(char *text, size_t size, const char *root, const char *path)
{
	char package[MAX_PACKAGE_BYTES];

	*text = '\0';
	/* The debug files of glibc are a package of their own. */
	if (find_in_dpkg(root, path, package))
		/* Packages with debug files are in another archive, which is not in the usual lists. */
		snprintf(text, size,
			 strcmp(package, "libc6")
				 ? "apt install %s-dbgsym (the debug archive must be in the sources)"
				 : "apt install %s-dbg",
			 package);
	else if (has_directory(root, "var/lib/dnf") && *path == '/')
		snprintf(text, size, "dnf debuginfo-install %s", path);
}
