/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports a file to libdwfl, and asks its DWARF first and its symbol tables second. */
#include "user/names/file_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#include "user/names/function_index.h"
#include "user/names/reader_wire.h"

struct file_names {
	Dwfl *dwfl;			   /* owned */
	Dwfl_Module *module;		   /* borrowed from dwfl */
	struct function_index *functions;  /* owned; NULL = none */
	struct function_index *data, *tls; /* owned; of variables; made when first needed; NULL = none */
	bool has_data, has_tls;		   /* that was tried, at least */
	struct dwarf_names *dwarf;	   /* owned; NULL = none */
	Dwarf_Addr bias;		   /* of the DWARF's addresses to the file's */
	struct reader_jail *jail;	   /* borrowed */
};

/* libdw's default is a message and exit(). There is no way to go on: the state of libdw is unknown. */
static void __attribute__((noreturn)) die_without_memory(void)
{
	_exit(READER_EXIT_NO_MEMORY);
}

static int find_elf(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base, char **file_name,
		    Elf **elf)
{
	(void)mod, (void)data, (void)name, (void)base, (void)file_name, (void)elf;
	return -1; /* reported with its file already */
}

static int find_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **debug_name)
{
	const struct debug_finder *finder = *data;
	int fd = finder ? finder->find(finder->ctx, link, crc) : -1;

	(void)mod, (void)name, (void)base, (void)file_name;
	if (fd >= 0)
		*debug_name = strdup("separate");
	return fd;
}

/* Not the library's standard callbacks: they may ask servers without permission. */
static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* Report the file @fd to libdwfl, at the addresses in its headers. Closes @fd. */
static int report_file(struct file_names *n, int fd)
{
	n->dwfl = dwfl_begin(&callbacks);
	if (!n->dwfl) {
		close(fd);
		return -ENOMEM;
	}
	dwfl_report_begin(n->dwfl);
	n->module = dwfl_report_elf(n->dwfl, "module", "module", fd, 0, true);
	if (!n->module)
		close(fd);
	return dwfl_report_end(n->dwfl, NULL, NULL) || !n->module ? -ENOEXEC : 0;
}

/* Index the names in the files. 0 also if the files have no names. */
static int index_names(struct file_names *n, bool is_plain)
{
	int err = function_index_new(&n->functions, n->module, SYMBOL_FUNCTIONS, n->jail);
	Dwarf *dwarf;

	if (err == -ENOMEM || is_plain)
		return err == -ENOMEM ? err : 0;
	dwarf = dwfl_module_getdwarf(n->module, &n->bias);
	if (!dwarf)
		return 0;
	dwarf_new_oom_handler(dwarf, die_without_memory);
	err = dwarf_names_new(&n->dwarf, dwarf);
	return err == -ENOMEM ? err : 0;
}

int file_names_new(struct file_names **out, int fd, bool is_plain, const struct debug_finder *finder,
		   struct reader_jail *jail)
{
	struct file_names *n = calloc(1, sizeof(*n));
	void **data;
	int err;

	if (!n) {
		close(fd);
		return -ENOMEM;
	}
	n->jail = jail;
	err = report_file(n, fd);
	if (!err) {
		dwfl_module_info(n->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = (void *)finder;
		err = index_names(n, is_plain);
		*data = NULL;
	}
	if (err) {
		file_names_free(n);
		return err;
	}
	*out = n;
	return 0;
}

void file_names_free(struct file_names *n)
{
	if (!n)
		return;
	function_index_free(n->functions);
	function_index_free(n->data);
	function_index_free(n->tls);
	dwarf_names_free(n->dwarf);
	if (n->dwfl)
		dwfl_end(n->dwfl);
	free(n);
}

size_t file_names_look_up(struct file_names *n, u64 addr, struct dwarf_frame frames[DWARF_FRAMES_MAX])
{
	size_t nr = n->dwarf ? dwarf_names_find(n->dwarf, addr - n->bias, frames) : 0;

	if (nr == 0) {
		nr = 1;
		frames[0] = (struct dwarf_frame){ 0 };
	}
	if (n->functions && !frames[nr - 1].function)
		frames[nr - 1].function = function_index_find(n->functions, addr);
	return nr;
}

/* The index of the variables of @n, which the first call makes. */
static int open_data(struct file_names *n, bool is_tls, const struct function_index **out)
{
	struct function_index **index = is_tls ? &n->tls : &n->data;
	bool *is_tried = is_tls ? &n->has_tls : &n->has_data;
	int err = 0;

	if (!*is_tried)
		err = function_index_new(index, n->module, is_tls ? SYMBOL_TLS : SYMBOL_DATA, n->jail);
	*is_tried = true;
	*out = *index;
	return err == -ENOMEM ? err : 0;
}

int file_names_data(struct file_names *n, u64 addr, bool is_tls, const char **name, u64 *offset)
{
	const struct function_index *index;
	int err = open_data(n, is_tls, &index);

	if (err)
		return err;
	*name = index ? function_index_find_data(index, addr, offset) : NULL;
	return 0;
}
