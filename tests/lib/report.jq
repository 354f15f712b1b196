# SPDX-License-Identifier: GPL-2.0-or-later
# For scripts that read JSON reports by jq.

# A report without tables: each caller has its frames, and the numbers that are left out as they are 0; the timeline is a
# list of points. Other values, and reports that were expanded before, are as they were.
def expanded:
	if type != "object" or .schema != "heaptap-report/2" or (has("backtraces") | not) then . else
	. as $r
	| def item($table): if . == null then null else $table[.] end;
	def frame: $r.frames[.] | (.function | item($r.functions)) as $f | (.module | item($r.modules)) as $m
		| {function: $f.name, file: ($f.source | item($r.sources)), line, module: $m.path, build_id: $m.build_id, offset,
			inlined: (.inlined // false)};
	[$r.frames | range(length) | frame] as $frames
	| {blocks: 0, bytes: 0} as $none
	| {definite: $none, indirect: $none, possible: $none, reachable: $none, unsure: $none, indirect_through: $none,
		suppressed: $none, why: null} as $verdicts
	| .processes[] |= (
		(.scan != null) as $is_scanned
		| .timeline |= (. as $t | [range($t.time_ns | length) as $i | $t | map_values(.[$i])])
		| .stacks[] |= ({allocs: 0, frees: 0, alloc_bytes: 0, live_blocks: 0, live_bytes: 0, peak_bytes: 0, temporary: 0}
			+ (if $is_scanned then $verdicts else {} end) + .
			+ {complete: (.truncated == null), truncated, frames: [if .backtrace == null then empty else $r.backtraces[.backtrace][] | $frames[.] end]}
			| del(.backtrace)))
	| del(.modules, .sources, .functions, .frames, .backtraces)
	end;
