# SPDX-License-Identifier: GPL-2.0-or-later
# What a JSON report says and every later one must say, as lines: no times, no key that may come, no name that comes
# from another file than those of root/. A frame in another file is the name of that file.
. as $r |
def file: split("/") | last;
def frame:
	if .inlined then empty
	elif (.module // "" | file | startswith("kept")) then .function
	else .module // "?" | file end;
# The frames of a row, innermost first.
def frames:
	if .backtrace == null then []
	else $r.backtraces[.backtrace] | map($r.frames[.] | {
		inlined: (.inlined // false),
		module: (if .module == null then null else $r.modules[.module].path end),
		function: (if .function == null then null else $r.functions[.function].name end)}) end;
def verdicts: [to_entries[] | select(.key | IN("definite", "indirect", "possible", "reachable", "unsure")) |
	select(.value.blocks > 0) | "\(.key) \(.value.blocks) \(.value.bytes)"] | join(", ");
(.marks[] | "mark \(.name)"),
(.processes[] |
	"process \(.comm) \(.exe) started \(.started) exit \(.exit | tojson) watched \(.watched)",
	"  allocator \(.allocators[] | "\(.kind) \(.object | file)")",
	"  totals \(.totals | [.allocs, .frees, .alloc_bytes, .live_blocks, .live_bytes, .peak_bytes, .unknown_frees, .failed_allocs] | join(" "))",
	"  lost \(.lost | [.allocs, .frees, .stacks, .other] | join(" "))",
	"  calls \(.functions | to_entries | sort_by(.key)[] | "\(.key) \(.value)")",
	"  scan \(if .scan then .scan | verdicts else "none" end)",
	"  error \(.errors[] | "\(.kind) \(.function) \(.count)")",
	"  thread \(.threads | sort_by(.tid)[] | "\(.allocated.blocks) \(.allocated.bytes) \(.live.blocks) \(.live.bytes)")",
	([.stacks[] | "  stack \([.function, .family, .allocs // 0, .alloc_bytes // 0, .live_blocks // 0, .live_bytes // 0] | join(" "))" +
		": \([frames[] | frame] | join(" < "))" + " [\(verdicts)]"] | sort[]))
