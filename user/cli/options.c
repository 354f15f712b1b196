/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: the table of options, and the parsers of its rows. */
#include "user/cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/commands.h"
#include "user/cli/config.h"
#include "user/lib/array.h"
#include "user/lib/log.h"
#include "user/lib/parse.h"
#include "user/lib/serve_only.h"
#include "user/cli/options_private.h"
#include "user/report/output.h"
#include "user/report/report_rows.h"
#include "user/session/session_options.h"
#include "user/scan/suppress.h"

/* Options that the agent has not are without a row there. */
/* clang-format off */
#if IS_AGENT
#define OF_HOST(...)
#else
#define OF_HOST(...)	     __VA_ARGS__,
#endif
#if IS_SERVE_ONLY /* these are missing, too */
#define OF_BOOKS(...)
#else
#define OF_BOOKS(...)	      __VA_ARGS__,
#endif
#define OF_HOST_FN static __attribute__((unused)) /* only such rows use it */
/* clang-format on */

static int take_flag(struct options *o, const struct option_row *row, const char *text);
static int take_u32(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_u64(struct options *o, const struct option_row *row, const char *text);
static int take_size(struct options *o, const struct option_row *row, const char *text);
static int take_duration(struct options *o, const struct option_row *row, const char *text);
static int options_take_text(struct options *o, const struct option_row *row, const char *text);
static int take_list(struct options *o, const struct option_row *row, const char *text);
static int take_usdt(struct options *o, const struct option_row *row, const char *text);
static int take_choice(struct options *o, const struct option_row *row, const char *text);
static int take_alloc(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_format(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_html(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_scan(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_no_scan(struct options *o, const struct option_row *row, const char *text);
static int take_check(struct options *o, const struct option_row *row, const char *text);
static int take_no_check(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_ignore(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_why(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_mask(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_threshold(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_cost(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_between(struct options *o, const struct option_row *row, const char *text);

static const char *backend_choice(size_t i)
{
	static const char *const words[] = { [BACKEND_AUTO] = "auto",
					     [BACKEND_BPF] = "bpf",
					     [BACKEND_PTRACE] = "ptrace",
					     [BACKEND_INLINE] = "inline",
					     NULL };

	return words[i];
}

OF_HOST_FN const char *on_full_choice(size_t i)
{
	static const char *const words[] = { [ON_FULL_WAIT] = "wait", [ON_FULL_DROP] = "drop", NULL };

	return words[i];
}

static const char *color_choice(size_t i)
{
	static const char *const words[] = {
		[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never", NULL
	};

	return words[i];
}

OF_HOST_FN const char *leaks_choice(size_t i)
{
	static const char *const words[] = {
		[LEAKS_ALL] = "all", [LEAKS_NEW] = "new", [LEAKS_LEAKED] = "leaked", NULL
	};

	return words[i];
}

OF_HOST_FN const char *snapshot_choice(size_t i)
{
	static const char *const words[] = { [SNAPSHOT_STOP] = "stop",
					     [SNAPSHOT_FORK] = "fork",
					     [SNAPSHOT_AUTO] = "auto",
					     [SNAPSHOT_PRECOPY] = "precopy",
					     NULL };

	return words[i];
}

OF_HOST_FN const char *annotate_choice(size_t i)
{
	static const char *const words[] = { "none", "github", NULL };

	return words[i];
}

OF_HOST_FN const char *older_blocks_choice(size_t i)
{
	static const char *const words[] = { "yes", "no", NULL };

	return words[i];
}

OF_HOST_FN const char *sort_choice(size_t i)
{
	return report_keys[i].name;
}

OF_HOST_FN const char *output_choice(size_t i)
{
	return report_formats[i].ending;
}

OF_HOST_FN const char *format_choice(size_t i)
{
	return report_formats[i].name;
}

/* The agent lists its options without the text. */
#define HELP(text) .help = IS_AGENT ? NULL : (text)
#define FIELD(f)   offsetof(struct options, f)
#define IN(c)	   (1U << (c))
#define TRACING	   (IN(RUN) | IN(ATTACH) | IN(CONSOLE) | IN(TOP))
#define SERVING	   (TRACING | IN(SERVE))
#define WATCHING   (TRACING | IN(CONNECT))
#define BOTH	   (TRACING | IN(SERVE) | IN(CONNECT))
#define ALL	   (IN(NR_COMMANDS) - 1)

/* One row, one look. */
/* clang-format off */
const struct option_row option_rows[] = {
	{ "pid", 'p', "PID|NAME", take_list, FIELD(targets),
	  .commands = IN(ATTACH) | IN(SERVE) | IN(SCAN) | IN(CONSOLE) | IN(TOP) | IN(SYSTEM) | (IS_AGENT ? 0 : IN(RUN)),
	  .is_only_typed = true, HELP("a target: the same as the argument, but for run: trace it while PROGRAM runs; "
		  "may be repeated") },
	{ "backend", 'b', "NAME", take_choice, FIELD(backend), "auto", .choice = backend_choice,
	  .commands = SERVING | IN(SYSTEM), HELP("source of events; inline puts code into the target") },
	OF_HOST({ "on-full", 0, "WHAT", take_choice, FIELD(on_full), "wait", .choice = on_full_choice,
	  .commands = TRACING,
	  .help = "inline: a thread without room for its records waits while heaptap reads, or drops them" })
	OF_HOST({ "sample", 0, "BYTES|auto", options_take_sample, FIELD(sample_bytes), "off",
	  .commands = IN(RUN) | IN(ATTACH) | IN(SYSTEM),
	  .help = "trace one block in about BYTES allocated bytes, such as 512K, and estimate all sums without "
		  "a bias; auto: as many as make some 200 events a second" })
	{ "depth", 'd', "N", take_u32, FIELD(depth), "127", "0", "127", .commands = WATCHING | IN(SYSTEM),
	  HELP("frames per stack; 0 = no stacks") },
	{ "follow", 'f', NULL, take_flag, FIELD(follow), .commands = BOTH,
	  HELP("trace children too (fork, vfork, exec), and their children") },
	OF_BOOKS({ "no-wait", 0, NULL, take_flag, FIELD(no_wait), .commands = IN(RUN),
	  HELP("end with the program itself, and do not wait for followed processes that run on") })
	{ "max-procs", 0, "N", take_u32, FIELD(max_procs), "1000", "1", "4000", .commands = BOTH,
	  HELP("trace at most N children at a time with --follow, and list the last N that have ended") },
	OF_HOST({ "watch", 0, "N", take_u32, FIELD(max_watched), "4000", "1", "60000", .commands = IN(SYSTEM),
	  .help = "watch at most N processes at a time: those that grow, then the largest" })
	OF_HOST({ "comm", 0, "PATTERN", take_list, FIELD(comms), .commands = IN(SYSTEM),
	  .help = "watch processes of this name, such as redis-server or 'php*'; may be repeated" })
	OF_HOST({ "exe", 0, "PATTERN", take_list, FIELD(exes), .commands = IN(SYSTEM),
	  .help = "watch processes of this program: a path, or its last part; may be repeated" })
	OF_HOST({ "uid", 0, "USER", take_list, FIELD(uids), .commands = IN(SYSTEM),
	  .help = "watch processes of this user, a name or a number; may be repeated" })
	OF_HOST({ "cgroup", 0, "PART", take_list, FIELD(cgroups), .commands = IN(SYSTEM),
	  .help = "watch processes whose control group has PART in its path; may be repeated" })
	OF_HOST({ "container", 0, "NAME", take_list, FIELD(containers), .commands = IN(SYSTEM),
	  .help = "watch processes of this container: its name, at least 4 digits of its id, or the UID of a pod; "
		  "may be repeated" })
	OF_HOST({ "zoom", 0, "N", take_u32, FIELD(zoom), "3", "0", "64", .commands = IN(SYSTEM),
	  .help = "trace N processes at a time exactly, with stacks and leak verdicts: those that grow, "
		       "or that were chosen; 0 = none" })
	OF_HOST({ "everything", 0, NULL, take_flag, FIELD(everything), .commands = IN(SYSTEM),
	  .help = "trace all watched processes at once, and their children, at most 4000; --zoom is 0 then" })
	OF_HOST({ "threshold", 0, "RULE", take_threshold, FIELD(threshold_bytes), .commands = IN(SYSTEM),
	  .help = "write a report with a verdict on each process that meets RULE, once an hour: 500M: it needs so "
		  "many bytes; growth:10%/h: it grows so fast; may be repeated" })
	OF_HOST({ "max-cost", 0, "PERCENT", take_cost, FIELD(max_cost), "10%",
	  .commands = IN(ATTACH) | IN(CONSOLE) | IN(TOP) | IN(SYSTEM),
	  .help = "if breakpoints cost a process more of its CPU time, --backend auto puts code into it; 0% = no "
		  "limit. system: where that cannot be, let tracing cost it, and the machine, at most so much of a "
		  "CPU: with shorter stacks, then for a while at a time" })
	OF_HOST({ "spare", 0, "PATTERN", take_list, FIELD(spare), .commands = IN(SYSTEM),
	  .help = "never trace programs of this name, in addition to logins, key agents and the like; may be repeated; "
		  "none = without those" })
	OF_BOOKS({ "interval", 'i', "DUR", take_duration, FIELD(interval_ns), NULL, "100ms", "7d",
	  .commands = WATCHING | IN(SYSTEM), HELP("write a report every DUR") })
	OF_HOST({ "metrics", 0, "[ADDR:]PORT", options_take_text, FIELD(metrics),
	  .commands = IN(ATTACH) | IN(CONNECT) | IN(SYSTEM),
	  .help = "serve over HTTP at this port of 127.0.0.1, or of ADDR, or at unix:/path: a live page for a browser, "
		  "metrics for Prometheus and profiles for pprof; port 0 = any free one" })
	OF_HOST({ "push", 0, "URL", options_take_text, FIELD(push), .commands = IN(ATTACH) | IN(CONNECT) | IN(SYSTEM),
	  .help = "send a profile each minute, and at the end, to Pyroscope, as http://host:4040/ingest" })
	OF_BOOKS({ "keep", 0, "N", take_u32, FIELD(keep), "0", "0", "1000000", .commands = WATCHING | IN(SYSTEM),
	  HELP("keep the files of the last N reports, or of the last N parts of a recording; 0: keep all") })
	OF_BOOKS({ "duration", 't', "DUR", take_duration, FIELD(duration_ns), NULL, "100ms", "365d",
	  .commands = WATCHING | IN(SYSTEM), HELP("stop tracing after DUR") })
	OF_BOOKS({ "stop-after", 0, "N", take_u64, FIELD(stop_after), NULL, "1", "1000000000000",
	  .commands = IN(RUN) | IN(ATTACH),
	  HELP("stop tracing after N allocations; a few more may be counted") })
	OF_BOOKS({ "output", 'o', "FILE", take_list, FIELD(outputs), .choice = output_choice,
	  .commands = WATCHING | IN(REPORT) | IN(SCAN) | IN(DIFF) | IN(SYSTEM),
	  HELP("write the report to FILE; may be repeated; the ending of its name chooses the format; "
		  "- = standard output; in the name %p becomes the PID, %n the number of the report, %t the time") })
	OF_BOOKS({ "format", 0, "NAME", take_format, FIELD(format), .choice = format_choice,
	  .commands = WATCHING | IN(REPORT) | IN(SCAN) | IN(SYSTEM),
	  HELP("format of the printed report, and of files whose ending names no format (default text); "
		  "list = list the formats and end") })
	OF_BOOKS({ "record", 'w', "FILE", options_take_text, FIELD(record), .commands = WATCHING,
	  HELP("record all events in FILE, for `heaptap report`; placeholders as in --output") })
	OF_BOOKS({ "record-size", 0, "BYTES", take_size, FIELD(record_size), NULL, "64K", "1024T",
	  .commands = WATCHING,
	  HELP("begin another file of the recording when the file has this size; needs %n or %t in the name") })
	OF_BOOKS({ "record-time", 0, "DUR", take_duration, FIELD(record_ns), NULL, "1s", "365d", .commands = WATCHING,
	  HELP("begin another file of the recording after DUR; needs %n or %t in the name") })
	OF_HOST({ "record-seek", 0, "BYTES", take_size, FIELD(record_seek), "4M", "64K", "1024T",
	  .commands = WATCHING,
	  .help = "write a seek point after so many bytes of the recording, where reading a part of it can begin" })
	OF_HOST({ "annotate", 0, "SYSTEM", take_choice, FIELD(annotate), "none", .choice = annotate_choice,
	  .commands = WATCHING | IN(REPORT) | IN(SCAN),
	  .help = "print a line on stdout for each leak and each wrong release, so that the CI system shows it "
		  "at its source line" })
	OF_HOST({ "html", 0, "FILE", take_html, FIELD(outputs),
	  .commands = WATCHING | IN(REPORT) | IN(SCAN) | IN(DIFF),
	  .help = "write the report to FILE.html, a page for a browser: the same as --output" })
	OF_HOST({ "open", 0, NULL, take_flag, FIELD(open), .commands = IN(REPORT), .is_only_typed = true,
	  .help = "show the report as a page in the browser, by xdg-open" })
	OF_BOOKS({ "force", 0, NULL, take_flag, FIELD(force),
	  .commands = WATCHING | IN(REPORT) | IN(SCAN) | IN(DIFF) | IN(SYSTEM),
	  HELP("overwrite existing output files") })
	OF_BOOKS({ "sort", 's', "KEY", take_choice, FIELD(sort), "live-bytes", .choice = sort_choice,
	  .commands = WATCHING | IN(REPORT) | IN(SCAN) | IN(DIFF) | IN(SYSTEM),
	  HELP("order of the callers") })
	OF_BOOKS({ "top", 'n', "N", take_u32, FIELD(top), "10", "0", "1000000",
	  .commands = WATCHING | IN(REPORT) | IN(SCAN) | IN(DIFF) | IN(SYSTEM),
	  HELP("callers and processes in the text report (system: processes in a row), 0 = all") })
	OF_BOOKS({ "scan", 0, NULL, take_scan, FIELD(scan), .commands = WATCHING,
	  HELP("find leak verdicts for each report, not only for the last one; "
		  "each scan stops the target for a moment") })
	OF_BOOKS({ "no-scan", 0, NULL, take_no_scan, FIELD(scan), .commands = WATCHING | IN(SYSTEM),
	  HELP("find no leak verdicts, and do not stop the target for them") })
	{ "max-pause", 0, "DUR", take_duration, FIELD(max_pause_ns), NULL, "1us", "1h",
	  .commands = BOTH | IN(SYSTEM) | IN(SCAN),
	  HELP("give no leak verdict that would stop the target for longer, by an estimate before (default 500ms; "
		  "2s for a scan without a trace; no limit at the end of a program of run)") },
	OF_HOST({ "snapshot", 0, "WAY", take_choice, FIELD(snapshot), "auto", .choice = snapshot_choice,
	  .commands = IN(RUN) | IN(ATTACH) | IN(SYSTEM) | IN(TOP) | IN(SCAN) | IN(SERVE),
	  .help = "how a verdict reads the target's memory. stop: stop the target until all is read; fork: only until "
		  "it has forked, and read the copy; precopy: copy while the target runs, then stop it and read what "
		  "has changed; auto: fork, or precopy where that takes long or is not possible, if stop takes longer "
		  "than 10 ms" })
	{ "jobs", 0, "N", take_u32, FIELD(nr_jobs), NULL, "1", "16", .commands = SERVING | IN(SCAN),
	  HELP("threads that read the target's memory for a verdict (default one for each CPU that heaptap may use, "
		  "16 at most)") },
	OF_HOST({ "max-copy", 0, "BYTES", take_size, FIELD(max_copy), NULL, "1M", "1024T",
	  .commands = IN(RUN) | IN(ATTACH) | IN(SYSTEM) | IN(TOP) | IN(SCAN) | IN(SERVE),
	  .help = "make no copy for --snapshot that may take more memory (default for fork: what the target's "
		  "cgroups have left; for precopy: half of what heaptap has left)" })
	{ "check", 0, NULL, take_check, FIELD(check), .commands = BOTH | IN(REPORT),
	  HELP("check releases: by the right family of functions, only once, and of a block; "
		  "report wrong releases with their stacks (default in run)") },
	{ "no-check", 0, NULL, take_no_check, FIELD(check), .commands = BOTH | IN(REPORT),
	  HELP("do not check releases (cheaper)") },
	OF_BOOKS({ "leaks", 0, "KIND", take_choice, FIELD(leaks), "all", .choice = leaks_choice,
	  .commands = WATCHING | IN(SCAN),
	  HELP("report these lost blocks. all; new: not lost at the verdict before; "
		  "leaked: lost then and still lost") })
	OF_HOST({ "why", 0, "N|ADDRESS|TYPE", take_why, FIELD(nr_whys), "5", "0", "1000",
	  .commands = WATCHING | IN(SCAN) | IN(SYSTEM),
	  .help = "show who holds a block, for the N callers that grew most and N that have possibly lost blocks; "
		  "or for the block at ADDRESS (0x...); scan: or for blocks of a TYPE, in a census" })
	OF_HOST({ "blocks", 0, "N", take_u32, FIELD(nr_samples), "0", "0", "1000",
	  .commands = IN(RUN) | IN(ATTACH) | IN(CONNECT),
	  .help = "list N leaked blocks of each caller in the text report: address, size, verdict, age, thread" })
	OF_HOST({ "contents", 0, "N", take_u32, FIELD(contents), "0", "0", "4096", .commands = IN(RUN) | IN(ATTACH),
	  .help = "show the first N bytes of these blocks, of one of each caller without --blocks" })
	OF_HOST({ "perturb", 0, NULL, take_flag, FIELD(perturb), .commands = IN(RUN),
	  .help = "let glibc overwrite fresh and freed memory, so that old pointers in it hide no leak" })
	OF_BOOKS({ "pointer-mask", 0, "MASK", take_mask, FIELD(pointer_mask),
	  .commands = WATCHING | IN(SYSTEM) | IN(SCAN),
	  HELP("bits of a word that make an address, for programs that keep marks in pointers, such as "
		  "0x0000fffffffffff8") })
	OF_BOOKS({ "unaligned", 0, NULL, take_flag, FIELD(unaligned), .commands = WATCHING | IN(SYSTEM) | IN(SCAN),
	  HELP("look for pointers at every byte, not only at aligned words (slow)") })
	OF_HOST({ "suppressions", 0, "FILE", take_list, FIELD(suppressions), .commands = WATCHING | IN(SYSTEM),
	  .help = "leave out leaks that match the rules in FILE, which are LeakSanitizer's or valgrind's; "
		  "may be repeated" })
	OF_HOST({ "no-default-suppressions", 0, NULL, take_flag, FIELD(no_default_suppressions),
	  .commands = WATCHING | IN(SYSTEM),
	  .help = "report also the known leaks of allocators and C libraries themselves" })
	OF_HOST({ "ignore", 0, "REGEX", take_ignore, FIELD(suppress), .commands = WATCHING | IN(SYSTEM),
	  .help = "leave out leaks with a frame whose function, source file or object matches; may be repeated" })
	OF_HOST({ "wrappers", 0, "NAMES", options_take_text, FIELD(wrappers),
	  .commands = WATCHING | IN(REPORT) | IN(SYSTEM),
	  .help = "list the functions that were taken for wrappers of malloc, and take NAMES (my_alloc,pool_get) for "
		  "such, too: a leak is named by the function that calls them; list = name none" })
	OF_HOST({ "gen-suppressions", 0, NULL, take_flag, FIELD(gen_suppressions),
	  .commands = WATCHING | IN(SCAN) | IN(SYSTEM),
	  .help = "print a suppression for each leak at the end of the text report" })
	OF_HOST({ "libraries", 0, NULL, take_flag, FIELD(libraries),
	  .commands = IN(RUN) | IN(ATTACH) | IN(CONNECT) | IN(REPORT),
	  .help = "list the program and its libraries with addresses and build IDs in text and JSON" })
	OF_BOOKS({ "fail-on", 0, "RULE", options_take_fail_on, FIELD(fail_bytes),
	  .commands = WATCHING | IN(SCAN) | IN(DIFF),
	  HELP("exit with another status if RULE is met; may be repeated. definite: blocks are definitely lost; "
		  "definite:64K: only if at least so many bytes are lost; errors: a release was wrong; "
		  "growth:5%: the least live bytes in the last third of the time are so much more "
		  "than in the third before; diff: leaks: more is lost; growth:64K or growth:5%: more is live") })
	OF_HOST({ "older-blocks", 0, "WORD", take_choice, FIELD(older_blocks), "yes", .choice = older_blocks_choice,
	  .commands = IN(ATTACH),
	  .help = "with --fail-on definite: judge also blocks from before the attach, by a census at the end" })
	OF_BOOKS({ "error-exitcode", 0, "N", take_u32, FIELD(error_exitcode), NULL, "1", "255",
	  .commands = WATCHING | IN(SCAN) | IN(DIFF),
	  HELP("exit status if --fail-on is met (default 99 in run, else 1); alone it means --fail-on definite") })
	OF_BOOKS({ "min-size", 0, "BYTES", take_size, FIELD(min_size), NULL, "1", "1024T",
	  .commands = WATCHING | IN(REPORT) | IN(SCAN) | IN(SYSTEM),
	  HELP("count only live blocks of at least this size for each caller") })
	OF_BOOKS({ "max-size", 0, "BYTES", take_size, FIELD(max_size), NULL, "1", "1024T",
	  .commands = WATCHING | IN(REPORT) | IN(SCAN) | IN(SYSTEM),
	  HELP("count only live blocks of at most this size for each caller") })
	OF_HOST({ "thin", 0, NULL, take_flag, FIELD(thin), .commands = IN(CONNECT),
	  .help = "let the other side send only allocations of --min-size to --max-size, for slow lines; "
		  "the report says how many are left out, and its sums do not include them" })
	OF_BOOKS({ "older", 0, "DUR", take_duration, FIELD(older_ns), NULL, "1ms", "365d",
	  .commands = WATCHING | IN(REPORT) | IN(SYSTEM),
	  HELP("count only live blocks of at least this age for each caller") })
	OF_HOST({ "execute", 'x', "CMD", take_list, FIELD(execute), .commands = IN(CONSOLE), .is_only_typed = true,
	  .help = "run this console command instead of reading commands; may be repeated" })
	{ "nocpp", 0, NULL, take_flag, FIELD(no_cpp), .commands = BOTH | IN(SYSTEM),
	  HELP("count operators new and delete as the malloc and free inside them") },
	{ "mmap", 0, NULL, take_flag, FIELD(want_mmap), .commands = BOTH | IN(SYSTEM),
	  HELP("trace mmap, munmap, mremap and brk too") },
	OF_BOOKS({ "start-paused", 0, NULL, take_flag, FIELD(start_paused), .commands = TRACING,
	  HELP("count allocations only from the program's first HEAPTAP_RESUME on (heaptap.h), "
		  "or from `start` of the console on") })
	{ "mark-usdt", 0, "PROVIDER:NAME", take_usdt, FIELD(usdt), .commands = SERVING,
	  HELP("take this static probe of the program or a library as a marker, such as libstdcxx:throw; "
		  "may be repeated") },
	{ "omit", 0, "FILE", take_list, FIELD(omit), .commands = SERVING | IN(SYSTEM),
	  HELP("place no probes in this library; may be repeated") },
	{ "alloc", 0, "SPEC", take_alloc, FIELD(allocs), .commands = SERVING | IN(SYSTEM),
	  HELP("a custom allocator: malloc=F,free=F[,calloc=F][,realloc=F][,arg=N][,object=FILE]; "
		  "may be repeated") },
	{ "ring-size", 0, "BYTES", take_size, FIELD(ring_bytes), NULL, "4K", "1G",
	  .commands = SERVING | IN(SYSTEM), HELP("size of the buffer for events between kernel and heaptap") },
	{ "user", 'u', "NAME", options_take_text, FIELD(user), .commands = IN(RUN) | IN(SERVE),
	  HELP("run the program as this user") },
	OF_BOOKS({ "as-root", 0, NULL, take_flag, FIELD(as_root), .commands = IN(RUN), .is_only_typed = true,
	  HELP("under sudo, run the program as root, and not as the user who typed it") })
	{ "cwd", 'C', "DIR", options_take_text, FIELD(cwd), .commands = IN(RUN) | IN(SERVE),
	  HELP("run the program in this directory") },
	OF_HOST({ "between", 0, "FROM,TO[,AT]", take_between, FIELD(between),
	  .commands = IN(REPORT) | IN(CONSOLE) | IN(RUN) | IN(ATTACH), .is_only_typed = true,
	  .help = "count only blocks allocated from FROM to TO, as they were at AT (default TO); "
		  "each is a time since the start (10s, 1m30s), the name of a marker, start, or end" })
	OF_HOST({ "events", 0, NULL, take_flag, FIELD(events), .commands = IN(REPORT), .is_only_typed = true,
	  .help = "list the events on stdout instead of a report; `heaptap report` reads such a list too" })
	OF_BOOKS({ "max-memory", 0, "BYTES", take_size, FIELD(max_memory), NULL, "1M", "1024T",
	  .commands = WATCHING | IN(SYSTEM) | IN(REPORT) | IN(DIFF),
	  HELP("take at most so much memory: callers without live blocks are counted for the functions that "
		  "called them before more is taken (default half of what is left, at most 2G)") })
	OF_HOST({ "baseline", 0, "FILE", options_take_text, FIELD(baseline), .commands = IN(SCAN),
	  .help = "show the growth since the census in this file, which was written as JSON" })
	OF_HOST({ "census", 0, NULL, take_flag, FIELD(census), .commands = IN(SCAN),
	  .help = "take a census also of a process that a heaptap traces" })
	OF_HOST({ "callers", 0, "FILE", options_take_text, FIELD(callers), .commands = IN(SCAN),
	  .help = "show the callers of a census's blocks by this list, which the console's command blocks wrote as "
		  "CSV; implies --census" })
	OF_BOOKS({ "sysroot", 0, "DIR", options_take_text, FIELD(sysroot),
	  .commands = WATCHING | IN(REPORT) | IN(DIFF) | IN(SYSTEM) | IN(SCAN),
	  HELP("look here first for the target's binaries") })
	OF_HOST({ "debug-path", 0, "DIR", options_take_text, FIELD(debug_path),
	  .commands = WATCHING | IN(REPORT) | IN(DIFF) | IN(SYSTEM) | IN(SCAN),
	  .help = "look here first for separate debug files" })
	OF_HOST({ "debuginfod", 0, NULL, take_flag, FIELD(debuginfod),
	  .commands = WATCHING | IN(REPORT) | IN(DIFF) | IN(SYSTEM) | IN(SCAN),
	  .help = "fetch missing debug files from the servers in DEBUGINFOD_URLS, which get the build IDs" })
	{ "listen", 0, "ADDRESS", options_take_text, FIELD(listen), .commands = IN(SERVE) | IN(CONNECT),
	  .is_only_typed = true,
	  HELP("wait here for the other side: unix:/path, or tcp://number:port with a token "
		  "(default in serve: a UNIX socket in a directory of its own)") },
	{ "to", 0, "ADDRESS", options_take_text, FIELD(to), .commands = IN(SERVE), .is_only_typed = true,
	  HELP("connect to `heaptap connect --listen ADDRESS`; try again every two seconds") },
	{ "token-file", 0, "FILE", options_take_text, FIELD(token_file),
	  .commands = IN(SERVE) | IN(CONNECT) | IN(CONSOLE) | IN(TOP),
	  HELP("64 hexadecimal digits that both sides must know; TCP needs them") },
	{ "insecure-tcp", 0, NULL, take_flag, FIELD(insecure_tcp),
	  .commands = IN(SERVE) | IN(CONNECT) | IN(CONSOLE) | IN(TOP), .is_only_typed = true,
	  HELP("allow tcp:// to leave this machine, although all that it sends can be read and changed") },
	OF_HOST({ "announce", 0, NULL, take_flag, FIELD(announce), .commands = IN(SERVE), .is_only_typed = true,
	  .help = "let clients on the same network find this server (multicast)" })
	OF_HOST({ "discover", 0, NULL, take_flag, FIELD(discover), .commands = IN(CONNECT), .is_only_typed = true,
	  .help = "find the server that announces itself on the network, instead of an address" })
	{ "wait", 0, NULL, take_flag, FIELD(wait), .commands = IN(SERVE),
	  HELP("start the program only when a client is connected, so that no event is missed") },
	{ "stdio", 0, NULL, take_flag, FIELD(use_stdio), .commands = IN(SERVE), .is_only_typed = true,
	  HELP("talk to the client on standard input and output (connect ssh:// starts serve so)") },
	{ "allow-kill", 0, NULL, take_flag, FIELD(allow_kill), .commands = IN(SERVE),
	  HELP("let the client end the target") },
	OF_HOST({ "kill", 0, NULL, take_flag, FIELD(want_kill), .commands = IN(CONNECT), .is_only_typed = true,
	  .help = "end the target after the last report; the other side must allow it" })
	OF_HOST({ "json", 0, NULL, take_flag, FIELD(json), .commands = IN(DOCTOR) | IN(DIFF) | IN(SYSTEM),
	  .is_only_typed = true, .help = "print JSON" })
	{ "color", 0, "WHEN", take_choice, FIELD(color), "auto", .choice = color_choice,
	  .commands = ALL & ~IN(HELP), HELP("use colours; auto: on a terminal, unless NO_COLOR is set") },
	OF_HOST({ "status", 0, NULL, take_flag, FIELD(status), .commands = IN(RUN),
	  .help = "show a status line on the terminal, although output of the program may mix with it" })
	{ "quiet", 'q', NULL, take_flag, FIELD(quiet), .commands = ALL,
	  HELP("print only warnings and errors") },
	{ "verbose", 'v', NULL, take_flag, FIELD(verbose), .commands = ALL,
	  HELP("print more messages; full paths and unfolded stacks in the text report") },
	OF_HOST({ "config", 0, "FILE", options_take_text, FIELD(config), .commands = ALL & ~IN(HELP),
	  .is_only_typed = true, .help = "read this config file instead of the usual one" })
	{ "help", 'h', NULL, take_flag, FIELD(want_help), .commands = ALL, .is_only_typed = true,
	  HELP("print this help") },
	OF_HOST({ "all", 0, NULL, take_flag, FIELD(want_all), .commands = IN(HELP), .is_only_typed = true,
	  .help = "list all options of the command, in groups" })
	{ "version", 0, NULL, take_flag, FIELD(want_version), .commands = ALL, .is_only_typed = true,
	  HELP("print the version") },
	{ NULL },
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(option_rows) <= OPTIONS_MAX, "room in options_parse.c");

int options_bad_value(const struct options *o, const struct option_row *row, const char *fmt, ...)
{
	char why[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (o->config_line)
		error("config: %s:%u: %s: %s", o->config_path, o->config_line, row->name, why);
	else
		error("--%s: %s", row->name, why);
	return -EINVAL;
}

static void *options_field_of(struct options *o, const struct option_row *row)
{
	return (char *)o + row->field;
}

static int take_flag(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(bool *)options_field_of(o, row) = true;
	return 0;
}

/* Parse @text within the limits of @row, which are parsed the same way. */
static int options_take_number(const struct options *o, const struct option_row *row, const char *text,
			       int (*parse)(const char *, u64 *), const char *what, u64 *out)
{
	u64 min = 0;
	u64 max = 0;
	int err = parse(text, out);

	if (err == -EINVAL)
		return options_bad_value(o, row, "%s: must be %s", text, what);
	if (parse(row->min, &min) || parse(row->max, &max))
		return -EINVAL;
	if (!err && *out >= min && *out <= max)
		return 0;
	return options_bad_value(o, row, "%s: must be between %s and %s", text, row->min, row->max);
}

static int take_u32(struct options *o, const struct option_row *row, const char *text)
{
	u64 value;

	if (options_take_number(o, row, text, parse_u64, "a number", &value))
		return -EINVAL;
	*(u32 *)options_field_of(o, row) = value;
	return 0;
}

static int take_u64(struct options *o, const struct option_row *row, const char *text)
{
	return options_take_number(o, row, text, parse_u64, "a number", options_field_of(o, row));
}

static int take_size(struct options *o, const struct option_row *row, const char *text)
{
	return options_take_number(o, row, text, parse_size, "a size such as 4096, 64K or 1M",
				   options_field_of(o, row));
}

static int take_duration(struct options *o, const struct option_row *row, const char *text)
{
	return options_take_number(o, row, text, parse_duration, "a duration such as 500ms, 10s or 2h",
				   options_field_of(o, row));
}

static int options_take_text(struct options *o, const struct option_row *row, const char *text)
{
	if (!*text)
		return options_bad_value(o, row, "must not be empty");
	*(const char **)options_field_of(o, row) = text;
	return 0;
}

int options_list_add(struct option_list *list, const char *text)
{
	/* One more for the NULL at the end. */
	if (array_extend(list->items, list->nr + 1))
		return -ENOMEM;
	list->items[list->nr++] = text;
	list->items[list->nr] = NULL;
	return 0;
}

static int take_list(struct options *o, const struct option_row *row, const char *text)
{
	if (!*text)
		return options_bad_value(o, row, "must not be empty");
	return options_list_add(options_field_of(o, row), text);
}

static int take_html(struct options *o, const struct option_row *row, const char *text)
{
	size_t len = strlen(text);

	if (len <= 5 || strcmp(text + len - 5, ".html"))
		return options_bad_value(o, row, "%s: must end in .html", text);
	return options_list_add(options_field_of(o, row), text);
}

static int take_usdt(struct options *o, const struct option_row *row, const char *text)
{
	enum { MAX_PROVIDER = 23, MAX_NAME = 39 };
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!len || len > MAX_PROVIDER || !colon[1] || strlen(colon + 1) > MAX_NAME)
		return options_bad_value(o, row, "%s: must be PROVIDER:NAME", text);
	return take_list(o, row, text);
}

static int take_choice(struct options *o, const struct option_row *row, const char *text)
{
	char words[512] = "";
	size_t used = 0;

	for (size_t i = 0; row->choice(i); i++) {
		if (!strcmp(row->choice(i), text)) {
			*(u32 *)options_field_of(o, row) = i;
			return 0;
		}
		used += snprintf(words + used, sizeof(words) - used, " %s", row->choice(i));
		if (used >= sizeof(words))
			break;
	}
	return options_bad_value(o, row, "%s: must be one of%s", text, words);
}

static int take_format(struct options *o, const struct option_row *row, const char *text)
{
	if (!strcmp(text, "list") && !o->config_line) {
		o->want_formats = true;
		return 0;
	}
	o->format = report_format_named(text);
	return o->format ? 0 : options_bad_value(o, row, "%s: no such format; see --format list", text);
}

static int take_alloc(struct options *o, const struct option_row *row, const char *text)
{
	const char *why;
	int err = array_extend(o->allocs, o->nr_allocs);

	if (err)
		return err;
	err = alloc_spec_parse(&o->allocs[o->nr_allocs], text, &why);
	if (err == -EINVAL)
		options_bad_value(o, row, "%s: %s", text, why);
	if (!err)
		o->nr_allocs++;
	return err;
}

static int take_scan(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(u32 *)options_field_of(o, row) = SCAN_ALWAYS;
	return 0;
}

static int take_no_scan(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(u32 *)options_field_of(o, row) = SCAN_NEVER;
	return 0;
}

static int take_check(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(u32 *)options_field_of(o, row) = CHECK_ALWAYS;
	return 0;
}

static int take_no_check(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(u32 *)options_field_of(o, row) = CHECK_NEVER;
	return 0;
}

static int take_ignore(struct options *o, const struct option_row *row, const char *text)
{
	int err = o->suppress ? 0 : suppress_new(&o->suppress);
	char where[32] = "--ignore";

	(void)row;
	if (o->config_line)
		snprintf(where, sizeof(where), "config line %u", o->config_line);
	return err ? err : suppress_add_ignore(o->suppress, text, where);
}

/* A number, an address if it begins with 0x, or the name of a type, which only a census knows. */
static int take_why(struct options *o, const struct option_row *row, const char *text)
{
	bool is_type = *text && !strchr("0123456789-+", *text);

	if (!IS_AGENT && is_type && o->command && !strcmp(o->command->name, "scan")) {
		o->why_type = text;
		o->census = true;
		return 0;
	}
	if (strncmp(text, "0x", 2))
		return take_u32(o, row, text);
	if (parse_hex(text, &o->why_addr) || !o->why_addr)
		return options_bad_value(
			o, row, "%s: must be a number of callers, or an address such as 0x55d0c0de10", text);
	return 0;
}

static int take_mask(struct options *o, const struct option_row *row, const char *text)
{
	if (parse_hex(text, options_field_of(o, row)) || !*(u64 *)options_field_of(o, row))
		return options_bad_value(o, row, "%s: must be a mask such as 0x0000fffffffffff8", text);
	return 0;
}

static int take_between(struct options *o, const struct option_row *row, const char *text)
{
	const char *why;

	if (span_parse(&o->between, text, &why))
		return options_bad_value(o, row, "%s: %s", text, why);
	o->has_between = true;
	return 0;
}

static int take_cost(struct options *o, const struct option_row *row, const char *text)
{
	char bare[16];

	/* "5" is "5%". */
	snprintf(bare, sizeof(bare), "%s%%", text);
	if (parse_percent(text, options_field_of(o, row)) && parse_percent(bare, options_field_of(o, row)))
		return options_bad_value(o, row, "%s: must be a percentage such as 5%% or 0.5%%", text);
	o->has_max_cost = text != row->def;
	return 0;
}

/* A size, or a growth in an hour. */
static int take_threshold(struct options *o, const struct option_row *row, const char *text)
{
	const char *slash = strrchr(text, '/');
	char percent[16] = "";

	if (!strncmp(text, "growth:", 7) && slash && !strcmp(slash, "/h"))
		snprintf(percent, sizeof(percent), "%.*s", (int)(slash - text - 7), text + 7);
	if (*percent && !parse_percent(percent, &o->threshold_growth) && o->threshold_growth)
		return 0;
	if (!parse_size(text, &o->threshold_bytes) && o->threshold_bytes)
		return 0;
	return options_bad_value(
		o, row, "%s: must be a size such as 500M, or growth:10%%/h with any percentage", text);
}

bool options_have_rule(const struct options *o)
{
	return o->fail_on_definite || o->fail_on_errors || o->fail_growth;
}

const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (c->run && !strcmp(c->name, name))
			return c;
	return NULL;
}

void options_fini(struct options *o)
{
	for (size_t i = 0; i < o->nr_allocs; i++)
		alloc_spec_fini(&o->allocs[i]);
	free(o->allocs);
	free(o->targets.items);
	free(o->outputs.items);
	free(o->execute.items);
	free(o->omit.items);
	free(o->usdt.items);
	free(o->comms.items);
	free(o->exes.items);
	free(o->uids.items);
	free(o->cgroups.items);
	free(o->containers.items);
	free(o->spare.items);
	free(o->suppressions.items);
	suppress_free(o->suppress);
	free(o->config_path);
	free(o->config_text);
	memset(o, 0, sizeof(*o));
}
