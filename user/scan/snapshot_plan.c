/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice between the ways to get a moment. */
#include "user/scan/snapshot_plan.h"

#include <errno.h>
#include <stdlib.h>

#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/scan/precopy.h"
#include "user/scan/scan_plan.h"
#include "user/scan/scan_reason.h"
#include "user/scan/snapshot_price.h"

enum {
	FORK_NS_A_MIB = 20000,
	/* A pause that is worth no copy, whose pages the process pays for one by one as it writes them. */
	SHORT_NS = 10000000,
	MAX_READERS = 4, /* more threads share the memory's speed, and the pause is not much shorter */
};

bool snapshot_plan_wants_copy(u64 bytes, u32 nr_jobs)
{
	u32 nr = scan_plan_jobs(nr_jobs);

	return scan_plan_of(0, bytes, nr < MAX_READERS ? nr : MAX_READERS).read_ns > SHORT_NS;
}

/* Memory of files and shared memory is in no copy. */
static bool is_short(const struct snapshot_plan_options *o)
{
	struct proc_status status = { 0 };

	return proc_read_status(&status, o->pid) ||
	       !snapshot_plan_wants_copy(status.anonymous_bytes + status.swapped_bytes, o->nr_jobs);
}

static void refuse(const struct snapshot_plan_options *o, const char *way, int err,
		   const struct snapshot_price *price)
{
	enum log_level level = o->way != SNAPSHOT_AUTO ? LOG_WARN : o->is_price_known ? LOG_DEBUG : LOG_INFO;

	if (err == -EDQUOT)
		log_line(
			level,
			"scan: PID %d: no %s: the copy may take %s, and there is room for %s (see --max-copy)",
			(int)o->pid, way, human_bytes(price->bytes).text, human_bytes(price->room).text);
	else
		log_line(level, "scan: PID %d: no %s: %s", (int)o->pid, way, scan_reason_copy(err));
}

static int plan_fork(struct snapshot_plan *p, const struct snapshot_plan_options *o)
{
	struct snapshot_price price = { 0 };
	int err = snapshot_price_fork(&price, o->pid, o->max_copy);

	if (err) {
		refuse(o, "fork", err, &price);
		return err;
	}
	p->way = SNAPSHOT_FORK;
	log_line(o->is_price_known ? LOG_DEBUG : LOG_INFO,
		 "scan: PID %d: fork: it stands for about %s; pages that it writes meanwhile take up to %s "
		 "more, of %s",
		 (int)o->pid, human_duration((price.bytes >> 20) * FORK_NS_A_MIB + 1000000).text,
		 human_bytes(price.bytes).text,
		 price.room == UINT64_MAX ? "what there is" : human_bytes(price.room).text);
	return 0;
}

static int plan_precopy(struct snapshot_plan *p, const struct snapshot_plan_options *o)
{
	struct precopy_options po = { .max_pause_ns = o->max_pause_ns,
				      .is_unwanted = o->is_unwanted,
				      .holder = o->holder };
	struct snapshot_price price = { 0 };
	int err = snapshot_price_precopy(&price, o->pid, o->max_copy);

	if (!err) {
		log_line(o->is_price_known ? LOG_DEBUG : LOG_INFO,
			 "scan: PID %d: precopy: takes %s of heaptap's memory, of %s, and stands for the "
			 "pages that it writes last",
			 (int)o->pid, human_bytes(price.bytes).text,
			 price.room == UINT64_MAX ? "what there is" : human_bytes(price.room).text);
		po.max_bytes = price.room;
		err = precopy_new(&p->precopy, o->pid, &po);
	}
	if (!err)
		p->way = SNAPSHOT_PRECOPY;
	else
		refuse(o, "precopy", err, &price);
	return err;
}

void snapshot_plan_open(struct snapshot_plan *out, const struct snapshot_plan_options *o)
{
	bool is_auto = o->way == SNAPSHOT_AUTO && !is_short(o);

	*out = (struct snapshot_plan){ .way = SNAPSHOT_STOP };
	if ((o->way == SNAPSHOT_PRECOPY || is_auto) && !plan_precopy(out, o))
		return;
	if ((o->way == SNAPSHOT_FORK || is_auto) && plan_fork(out, o))
		debug("scan: PID %d: no copy", (int)o->pid);
}

void snapshot_plan_copy(struct snapshot_plan *p, const struct snapshot_plan_options *o)
{
	int err = p->precopy ? precopy_run(p->precopy) : 0;

	if (!err)
		return;
	snapshot_plan_free(p);
	p->way = SNAPSHOT_STOP;
	if (err == -ECANCELED)
		return;
	refuse(o, "precopy", err, &(struct snapshot_price){ 0 });
	if (o->way == SNAPSHOT_AUTO && plan_fork(p, o))
		debug("scan: PID %d: no copy", (int)o->pid);
}

void snapshot_plan_make(struct snapshot_plan *out, const struct snapshot_plan_options *o)
{
	snapshot_plan_open(out, o);
	snapshot_plan_copy(out, o);
}

void snapshot_plan_free(struct snapshot_plan *p)
{
	precopy_free(p->precopy);
	p->precopy = NULL;
}

u64 snapshot_plan_pause(const struct snapshot_plan *p)
{
	return p->precopy ? precopy_pause(p->precopy) : 0;
}
