# SPDX-License-Identifier: GPL-2.0-or-later
# Compares the "block" lines of a program with the list of a census of it: awk -f judge_census.awk OUT LIST.csv. Prints
# one line of sums, as judge.jq does. "extra" counts live blocks that the program did not make itself. A block that was
# aligned may begin earlier in the list: mimalloc does not say where.

BEGIN { FS = "[ ,]" }
# The address @hex plus @more, as a key of an array.
function end_of(hex, more,    i, sum) {
	for (i = 3; i <= length(hex); i++)
		sum = sum * 16 + index("123456789abcdef", substr(hex, i, 1))
	return sprintf("%.0f", sum + more)
}
FNR == NR {
	if ($1 == "block") {
		size[$2] = $3
		truth[$2] = $4
		at_end[end_of($2, $3)] = $2
		blocks++
		lost += $4 == "definite" || $4 == "indirect"
		definite += $4 == "definite"
		possible += $4 == "possible"
	}
	next
}
FNR == 1 || $3 != "live" { next }
{ is_lost = $5 == "definite" || $5 == "indirect" }
!($1 in size) && (end = end_of($1, $2)) in at_end && at_end[end] > $1 {
	$1 = at_end[end]
	$2 = size[$1]
}
!($1 in size) {
	extra++
	foreign += is_lost
	next
}
{
	seen++
	differ += $2 != size[$1]
	judged += $5 != ""
	unsure += $5 == "unsure"
	definite_found += $5 == "definite"
	possible_found += $5 == "possible"
	if (truth[$1] == "definite" || truth[$1] == "indirect") {
		found += is_lost
	} else if (is_lost) {
		wrong++
		if (wrong <= 5)
			examples = examples (wrong > 1 ? "," : "") "\"" $1 " " $2 " " $5 " is " truth[$1] "\""
	}
}
END {
	printf "{\"blocks\":%d,\"lost\":%d,\"found\":%d,\"wrong\":%d,\"foreign\":%d,\"unsure\":%d,", blocks, lost, found, wrong, foreign, unsure
	printf "\"definite_told\":%d,\"definite_found\":%d,\"possible_told\":%d,\"possible_found\":%d,", definite, definite_found, possible, possible_found
	printf "\"extra\":%d,\"missing\":%d,\"other_sizes\":%d,", extra, blocks - seen, differ
	printf "\"differ\":[%s],", ((blocks != seen || differ || extra > 200) ? "\"the list of blocks\"" : "")
	printf "\"no_verdict\":%s,\"examples\":[%s]}\n", judged ? "false" : "true", examples
}
