/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translates addresses into places in files, by the table of modules and the executable mappings of each process. */
#include "user/target/module.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/hash_index.h"
#include "user/lib/log.h"
#include "user/lib/maps.h"
#include "user/lib/unnamed_file.h"
#include "user/target/mapped_file.h"

enum {
	MODULES_MAX = 1 << 16,
	MAPPINGS_MAX = 1 << 20,
	VDSO_MAX = 1 << 20,
	READS_MAX = 3,
	MAX_SILENT = 16,
	MIN_CROWD = 256, /* files before any are forgotten, where descriptors suffice */
};

_Static_assert((int)IMAGE_BUILD_ID_MAX == (int)BUILD_ID_MAX, "a build ID is copied between the two");

static const char deleted[] = " (deleted)";

struct module_entry {
	struct module module; /* must stay first: module_get() hands it out */
	struct file_identity id;
	struct image image;
	bool has_fd; /* counted in nr_fds */
};

struct module_table {
	struct module_entry **entries; /* owned, and each of them; by id - 1; NULL = the id is free */
	size_t nr, max, nr_free;
	size_t hand;  /* the last one that was looked at for a free id: that is reused as late as possible */
	size_t crowd; /* so many files are many */
	struct hash_index by_file; /* entries, by device and inode as the maps of a process have them */
	size_t nr_fds, max_fds; /* open descriptors are limited, because other parts of heaptap need some */
	size_t nr_skipped;
	/* Devices of file servers that do not answer: their files are not opened again. */
	u64 silent[MAX_SILENT];
	size_t nr_silent;
	bool is_remote;
};

/* One read of the maps of one process. */
struct maps_reading {
	struct module_table *table;
	struct file_source source;
	struct mapping *maps; /* owned */
	size_t nr, max;
	u64 hash; /* of all executable lines */
	struct {
		u32 dev_major, dev_minor;
		u64 inode;
		taddr_t start;
	} header; /* the last mapping of a file's first byte: its ELF header */
	struct mapping
		copy;	   /* copies of code before a mapping of their file, which comes next; end 0 = none */
	bool ends_in_copy; /* the last one of maps */
};

/* The number of files from which on a look for unused ones is worth it, where @nr are in use. */
static size_t module_table_crowd(const struct module_table *t, size_t nr)
{
	size_t least = t->max_fds / 2 < MIN_CROWD ? t->max_fds / 2 : MIN_CROWD;
	size_t many = 2 * nr > nr + least ? 2 * nr : nr + least;

	return many < MODULES_MAX ? many : MODULES_MAX;
}

int module_table_new(struct module_table **out)
{
	struct module_table *t = calloc(1, sizeof(*t));
	struct rlimit limit;

	if (!t)
		return -ENOMEM;
	t->max_fds = 128;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		t->max_fds = limit.rlim_cur / 2;
	if (!IS_AGENT)
		t->crowd = module_table_crowd(t, 0);
	*out = t;
	return 0;
}

static void entry_free(struct module_entry *e)
{
	if (!e)
		return;
	cleanup_close(&e->module.fd);
	free(e->module.path);
	free(e->module.link);
	free(e->module.root);
	free(e);
}

void module_table_free(struct module_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr; i++)
		entry_free(t->entries[i]);
	free(t->entries);
	hash_index_fini(&t->by_file);
	free(t);
}

const char *module_name(const struct module *m)
{
	return m->link && *m->link ? m->link : m->path;
}

int module_set_link(struct module *m, const char *link)
{
	if (!*link)
		return 0;
	if (!m->link) {
		m->link = strdup(link);
		return m->link ? 0 : -ENOMEM;
	}
	/* One file, several names (busybox): none of them is right for all processes. */
	if (strcmp(m->link, link))
		*m->link = '\0';
	return 0;
}

struct module *module_get(const struct module_table *t, u32 id)
{
	return id > 0 && id <= t->nr && (IS_AGENT || t->entries[id - 1]) ? &t->entries[id - 1]->module : NULL;
}

size_t module_count(const struct module_table *t)
{
	return t->nr;
}

void module_table_set_remote(struct module_table *t)
{
	t->is_remote = true;
}

bool module_table_is_remote(const struct module_table *t)
{
	return t->is_remote;
}

static u64 module_hash_of(u64 dev, u64 ino)
{
	u64 key[] = { dev, ino };

	return hash_bytes(key, sizeof(key), 0);
}

/* The next entry, after those that @at has counted, of a file with this device and inode. NULL at the end. */
static struct module_entry *next_entry(const struct module_table *t, u64 dev, u64 ino, u32 *at)
{
	u32 item;

	while ((item = hash_index_next(&t->by_file, module_hash_of(dev, ino), at)) != HASH_NO_ITEM)
		if (t->entries[item]->module.dev == dev && t->entries[item]->module.ino == ino)
			return t->entries[item];
	return NULL;
}

bool module_table_is_crowded(const struct module_table *t)
{
	return t->nr - t->nr_free >= t->crowd;
}

void module_table_keep(struct module_table *t, const bool *is_used)
{
	for (size_t i = 0; i < t->nr; i++) {
		struct module_entry *e = t->entries[i];

		if (!e || is_used[i + 1])
			continue;
		hash_index_del(&t->by_file, module_hash_of(e->module.dev, e->module.ino), (u32)i);
		t->nr_fds -= e->has_fd;
		entry_free(e);
		t->entries[i] = NULL;
		t->nr_free++;
	}
	t->crowd = module_table_crowd(t, t->nr - t->nr_free);
}

/* Have room for one more entry: *@out is its number. */
static int module_make_room(struct module_table *t, u32 *out)
{
	int err = t->nr_free		 ? 0
		  : t->nr == MODULES_MAX ? -ENOSPC
					 : array_reserve(t->entries, t->max, t->nr + 1);

	*out = (u32)t->nr;
	/* The agent forgets no files. */
	if (err || IS_AGENT || !t->nr_free)
		return err;
	do
		t->hand = (t->hand + 1) % t->nr;
	while (t->entries[t->hand]);
	*out = (u32)t->hand;
	return 0;
}

/* Add an entry without a file at the end of the table. Takes @path over. -ENOSPC if the table is full. */
static int entry_new(struct module_table *t, char *path, const char *root, u64 dev, u64 ino,
		     struct module_entry **out)
{
	struct module_entry *e = calloc(1, sizeof(*e));
	int err = -ENOMEM;
	u32 nr;

	if (!e)
		goto undo_path;
	e->module.fd = -1;
	e->module.path = path;
	e->module.root = strdup(root);
	if (!path || !e->module.root)
		goto undo_entry;
	err = module_make_room(t, &nr);
	if (!err)
		err = hash_index_add(&t->by_file, module_hash_of(dev, ino), nr);
	if (err)
		goto undo_entry;
	e->module.dev = dev;
	e->module.ino = ino;
	t->entries[nr] = e;
	if (IS_AGENT || nr == t->nr)
		t->nr++;
	else
		t->nr_free--;
	e->module.id = nr + 1;
	*out = e;
	return 0;

undo_entry:
	entry_free(e);
	return err;
undo_path:
	free(path);
	return err;
}

static void set_image(struct module_entry *e, const struct image *image)
{
	e->image = *image;
	e->module.build_id_len = image->build_id_len;
	memcpy(e->module.build_id, image->build_id, image->build_id_len);
}

/* Keep *@fd open in @e if there are descriptors left. */
static void set_fd(struct module_table *t, struct module_entry *e, int *fd)
{
	if (*fd < 0 || t->nr_fds >= t->max_fds)
		return;
	t->nr_fds++;
	e->has_fd = true;
	e->module.fd = take_fd(*fd);
}

int module_add(struct module_table *t, const char *path, const u8 *build_id, size_t build_id_len,
	       struct module **out)
{
	struct image image = { 0 };
	auto_close int fd = -1;
	struct module_entry *e;
	int err;

	if (build_id_len > BUILD_ID_MAX)
		return -EINVAL;
	err = entry_new(t, strdup(path), "", 0, 0, &e);
	if (err)
		return err;
	if (path[0] == '/' && !t->is_remote && mapped_file_open_path(path, &fd, &image) == 0)
		set_fd(t, e, &fd);
	if (build_id_len > 0)
		memcpy(image.build_id, build_id, build_id_len);
	image.build_id_len = build_id_len;
	set_image(e, &image);
	*out = &e->module;
	return 0;
}

static bool is_known_file(const struct module *known, int fd, const struct image *image)
{
	struct stat st;

	if (known->build_id_len)
		return image->build_id_len == known->build_id_len &&
		       !memcmp(image->build_id, known->build_id, known->build_id_len);
	return known->ino && !fstat(fd, &st) && st.st_dev == known->dev && st.st_ino == known->ino;
}

int module_add_known(struct module_table *t, const struct module *known, struct module **out)
{
	struct image image = { 0 };
	auto_close int fd = -1;
	struct module_entry *e;
	int err;

	if (known->build_id_len > BUILD_ID_MAX)
		return -EINVAL;
	err = entry_new(t, strdup(known->path), "", known->dev, known->ino, &e);
	if (err)
		return err;
	if (known->path[0] == '/' && !t->is_remote && mapped_file_open_path(known->path, &fd, &image) == 0) {
		if (is_known_file(known, fd, &image))
			set_fd(t, e, &fd);
		else
			image = (struct image){ 0 };
	}
	if (known->build_id_len > 0)
		memcpy(image.build_id, known->build_id, known->build_id_len);
	image.build_id_len = known->build_id_len;
	set_image(e, &image);
	e->module.is_deleted = known->is_deleted;
	*out = &e->module;
	return 0;
}

/* Make the entry of the vDSO in @line. Its image is copied from the target, because no file has it. */
static int vdso_entry(struct maps_reading *r, const struct map_line *line, struct module_entry **out)
{
	u64 size = line->end - line->start;
	auto_close int fd = unnamed_file_in_memory("vdso");
	struct image image = { 0 };
	auto_free void *copy = NULL;
	u32 at = 0;
	int err;

	if (size > VDSO_MAX)
		return -EINVAL;
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	if (fd < 0 || proc_memory_read(&r->source.memory, line->start, copy, size) != (ssize_t)size ||
	    write(fd, copy, size) != (ssize_t)size || image_read_file(&image, fd) != 0) {
		cleanup_close(&fd);
		fd = -1;
		image = (struct image){ 0 };
	}
	while ((*out = next_entry(r->table, 0, 0, &at)))
		if (!strcmp((*out)->module.path, line->path) && image_is_same(&(*out)->image, &image))
			return 0;
	err = entry_new(r->table, strdup(line->path), "", 0, 0, out);
	if (err)
		return err;
	set_image(*out, &image);
	set_fd(r->table, *out, &fd);
	return 0;
}

static u64 line_dev(const struct map_line *line)
{
	return makedev(line->dev_major, line->dev_minor);
}

/* Read the headers of the file in @line from the memory of the target. */
static int read_from_memory(const struct maps_reading *r, const struct map_line *line, struct image *image)
{
	if (!r->source.memory.pid || r->header.inode != line->inode ||
	    r->header.dev_major != line->dev_major || r->header.dev_minor != line->dev_minor)
		return -ENOENT;
	return image_read_memory(image, &r->source.memory, r->header.start);
}

/*
 * Find the entry of a file with this inode: by @id if it has not changed since (removing a link is a change), or by
 * @image if its headers are equal. @id is NULL if the file itself cannot be reached.
 */
static struct module_entry *find_entry(struct module_table *t, const struct map_line *line,
				       const struct file_identity *id, const struct image *image)
{
	struct module_entry *e, *newest = NULL;
	u32 at = 0;

	while ((e = next_entry(t, line_dev(line), line->inode, &at))) {
		if (id && (e->id.dev != id->dev || e->id.ino != id->ino))
			continue;
		if (image ? image_is_same(&e->image, image) : e->id.changed_ns == id->changed_ns)
			newest = !newest || e->module.id > newest->module.id ? e : newest;
	}
	return newest;
}

static bool ends_in_deleted(const char *path)
{
	size_t len = strlen(path), end = sizeof(deleted) - 1;

	return len > end && strcmp(path + len - end, deleted) == 0;
}

/* True if the kernel added " (deleted)" to the path of @line, and the name itself does not end so. */
static bool is_deleted(const struct maps_reading *r, const struct map_line *line,
		       const struct file_identity *id)
{
	if (!ends_in_deleted(line->path))
		return false;
	return !id || id->nr_links == 0 || !mapped_file_has_path(&r->source, line, id);
}

/* The path of @line as the target's file system has it. */
static char *true_path(const struct maps_reading *r, const struct map_line *line, bool is_gone)
{
	char link[80], exact[4096 + sizeof(deleted)];
	const char *path = line->path;
	ssize_t n = -1;

	if (line->is_ambiguous) {
		snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", r->source.reader,
			 (unsigned long long)line->start, (unsigned long long)line->end);
		n = readlink(link, exact, sizeof(exact) - 1);
	}
	if (n > 0) {
		exact[n] = '\0';
		path = exact;
	}
	return strndup(path, strlen(path) - (is_gone && ends_in_deleted(path) ? sizeof(deleted) - 1 : 0));
}

static int add_entry(struct maps_reading *r, const struct map_line *line, const struct file_identity *id,
		     const struct image *image, int *fd, struct module_entry **out)
{
	bool is_gone = is_deleted(r, line, id);
	int err;

	err = entry_new(r->table, true_path(r, line, is_gone), r->source.root, line_dev(line), line->inode,
			out);
	if (err)
		return err;
	(*out)->module.is_deleted = is_gone;
	if (id)
		(*out)->id = *id;
	set_image(*out, image);
	set_fd(r->table, *out, fd);
	return 0;
}

/* Without a file: the headers in memory identify it at least. */
static int entry_from_memory(struct maps_reading *r, const struct map_line *line, struct module_entry **out)
{
	struct image image;
	int no_fd = -1;

	if (read_from_memory(r, line, &image) != 0)
		image = (struct image){ 0 };
	*out = find_entry(r->table, line, NULL, &image);
	return *out ? 0 : add_entry(r, line, NULL, &image, &no_fd, out);
}

static bool module_is_silent(const struct module_table *t, u64 dev)
{
	for (size_t i = 0; i < t->nr_silent; i++)
		if (t->silent[i] == dev)
			return true;
	return false;
}

static void note_silent(struct module_table *t, const struct map_line *line, const struct file_identity *id)
{
	warn("module: %s: its file server does not answer: nothing in its files is probed or named",
	     line->path);
	if (t->nr_silent < MAX_SILENT)
		t->silent[t->nr_silent++] = id->dev;
}

/*
 * Find or make the entry of the file in @line. A file found by path is the mapped one if device and inode are equal.
 * Both may differ (overlayfs, btrfs, a race): then it is the mapped one if its headers are those in the memory of the
 * target.
 */
static int file_entry(struct maps_reading *r, const struct map_line *line, struct module_entry **out)
{
	auto_close int path_fd = -1, fd = -1;
	struct file_identity id;
	struct image image, mapped;
	int err;

	if (mapped_file_find(&r->source, line, &path_fd, &id) != 0)
		return entry_from_memory(r, line, out);
	*out = find_entry(r->table, line, &id, NULL);
	if (*out)
		return 0;
	if (module_is_silent(r->table, id.dev))
		return entry_from_memory(r, line, out);
	err = mapped_file_open(path_fd, &fd, &image);
	if (err == -ETIMEDOUT)
		note_silent(r->table, line, &id);
	if (err)
		return err == -ENOMEM ? err : entry_from_memory(r, line, out);
	if ((id.dev != line_dev(line) || id.ino != line->inode) &&
	    (read_from_memory(r, line, &mapped) != 0 || !image_is_same(&image, &mapped)))
		return entry_from_memory(r, line, out);
	*out = find_entry(r->table, line, &id, &image);
	if (!*out)
		return add_entry(r, line, &id, &image, &fd, out);
	(*out)->id = id;
	(*out)->module.is_deleted = is_deleted(r, line, &id);
	if ((*out)->module.fd < 0)
		set_fd(r->table, *out, &fd);
	return 0;
}

/* Find or make the module of @line. *@out is NULL for code that is in no file, or if the table is full. */
static int module_entry_of(struct maps_reading *r, const struct map_line *line, struct module_entry **out)
{
	int err = 0;

	*out = NULL;
	if (line->inode != 0)
		err = file_entry(r, line, out);
	else if (strcmp(line->path, "[vdso]") == 0)
		err = vdso_entry(r, line, out);
	if (err == -ENOSPC) {
		if (r->table->nr_skipped++ == 0)
			warn("module: more than %d files: the rest stays without names", MODULES_MAX);
		*out = NULL;
		err = 0;
	}
	return err;
}

static struct mapping module_range(const struct map_line *line)
{
	return (struct mapping){ .start = line->start, .end = line->end, .file_offset = line->offset };
}

/* Add a mapping that lies at @at, of the file in @line. */
static int module_add_mapping(struct maps_reading *r, const struct map_line *line, const struct mapping *at)
{
	struct module_entry *e;
	struct mapping *m;
	int err;

	if (r->nr == MAPPINGS_MAX)
		return -E2BIG;
	err = array_reserve(r->maps, r->max, r->nr + 1);
	if (err)
		return err;
	err = module_entry_of(r, line, &e);
	if (err)
		return err;
	m = &r->maps[r->nr++];
	*m = *at;
	if (e) {
		m->bias = image_bias(&e->image, at->start, at->file_offset);
		m->module = &e->module;
	}
	return 0;
}

static bool module_continues(const struct mapping *m, const struct map_line *line)
{
	return m->end == line->start && m->file_offset + (m->end - m->start) == line->offset;
}

/* A copy of code stands in the place of a part of a file's mapping, before, between or behind others. */
static void module_add_copy(struct maps_reading *r, const struct map_line *line)
{
	struct mapping *last = r->nr ? &r->maps[r->nr - 1] : NULL;

	if (last && last->module && module_continues(last, line)) {
		last->end = line->end;
		r->ends_in_copy = true;
	} else if (module_continues(&r->copy, line)) {
		r->copy.end = line->end;
	} else {
		r->copy = module_range(line);
	}
}

/* Copies stand in the place of a whole mapping: @line behind them is another one of that file (user/inject/pages.c). */
static int module_add_whole_copy(struct maps_reading *r, const struct map_line *line)
{
	const struct mapping copy = r->copy;

	r->copy = (struct mapping){ 0 };
	return copy.end && copy.end == line->start && line->inode ? module_add_mapping(r, line, &copy) : 0;
}

/* Join the mapping that was added last with copies before it, and with the mapping before those. */
static void join_copies(struct maps_reading *r)
{
	struct mapping *new = &r->maps[r->nr - 1], *last = r->nr > 1 ? new - 1 : new;
	const struct mapping *copy = &r->copy;

	if (r->ends_in_copy && last->module == new->module && last->end == new->start &&
	    last->bias == new->bias) {
		last->end = new->end;
		r->nr--;
	} else if (new->module && copy->end && copy->end == new->start &&
		   copy->file_offset + (copy->end - copy->start) == new->file_offset) {
		new->start = copy->start;
		new->file_offset = copy->file_offset;
	}
	r->ends_in_copy = false;
	r->copy = (struct mapping){ 0 };
}

static int module_add_line(struct maps_reading *r, const struct map_line *line)
{
	const struct mapping at = module_range(line);
	int err;

	/* Where the agent works, there is no code of heaptap. */
	if (!IS_AGENT && line->is_copy) {
		module_add_copy(r, line);
		return 0;
	}
	if (!maps_is_code(line))
		return IS_AGENT ? 0 : module_add_whole_copy(r, line);
	err = module_add_mapping(r, line, &at);
	if (!err && !IS_AGENT)
		join_copies(r);
	return err;
}

static u64 hash_line(u64 hash, const struct map_line *line)
{
	u64 numbers[] = { line->start, line->end, line->offset, line_dev(line), line->inode };

	return hash_bytes(line->path, strlen(line->path), hash_bytes(numbers, sizeof(numbers), hash));
}

/*
 * Read all lines of @pid once, and fill r->maps if @want_mappings. Returns 0, or -ESRCH if the process gave up its
 * memory meanwhile.
 */
static int module_read_lines(struct maps_reading *r, pid_t pid, bool want_mappings)
{
	struct maps_reader *reader;
	struct map_line line;
	int more;

	r->hash = 0;
	more = maps_open(&reader, pid);
	if (more)
		return more;
	while ((more = maps_next(reader, &line)) == 1) {
		if (line.offset == 0 && line.inode != 0 && !line.is_copy) {
			r->header.dev_major = line.dev_major;
			r->header.dev_minor = line.dev_minor;
			r->header.inode = line.inode;
			r->header.start = line.start;
		}
		if (maps_is_code(&line))
			r->hash = hash_line(r->hash, &line);
		more = want_mappings ? module_add_line(r, &line) : 0;
		if (more)
			break;
	}
	if (more == 0 && !maps_is_complete(reader))
		more = -ESRCH;
	maps_close(reader);
	return more;
}

static int read_mappings(struct maps_reading *r, pid_t pid)
{
	int err;

	r->nr = 0;
	r->ends_in_copy = false;
	r->copy = (struct mapping){ 0 };
	file_source_init(&r->source, pid);
	err = module_read_lines(r, pid, true);
	file_source_fini(&r->source);
	return err;
}

int mapping_list_read(struct mapping_list *list, struct module_table *t, pid_t pid)
{
	struct maps_reading r = { .table = t };
	int err;

	err = module_read_lines(&r, pid, false);
	if (!err && list->epoch > 0 && r.hash == list->hash)
		return 0;
	/* An exec during the read looks like the end of the process. The next attempt finds the new program. */
	for (int i = 0; i < READS_MAX; i++) {
		err = read_mappings(&r, pid);
		if (err != -ESRCH)
			break;
	}
	if (err) {
		free(r.maps);
		return err;
	}
	free(list->maps);
	list->maps = r.maps;
	list->nr = r.nr;
	list->hash = r.hash;
	list->epoch++;
	return 1;
}

void mapping_list_fini(struct mapping_list *list)
{
	free(list->maps);
	*list = (struct mapping_list){ 0 };
}

const struct mapping *mapping_find(const struct mapping_list *list, taddr_t addr)
{
	size_t at = array_search(i, 0, list->nr, list->maps[i].end <= addr);

	return at < list->nr && list->maps[at].start <= addr ? &list->maps[at] : NULL;
}

struct code_ref mapping_ref(const struct mapping_list *list, taddr_t addr)
{
	const struct mapping *m = mapping_find(list, addr);

	/* A return address may be one byte behind a mapping that ends with a call. */
	if (!m)
		m = mapping_find(list, addr - 1);
	if (!m || !m->module)
		return (struct code_ref){ .module = 0, .offset = addr };
	return (struct code_ref){ .module = m->module->id, .offset = addr - m->bias };
}
