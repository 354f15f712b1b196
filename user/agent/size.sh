#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# size.sh AGENT: what the bytes of the agent are, by room. Functions that were put into their callers count there. Symbols
# without a source file are the C library's; texts and what lies between symbols belong to no room.
set -euo pipefail

agent=$1
nm -S -l "$agent.debug" | awk -v all="$(stat -c %s "$agent")" '
function number(hex,   n, i) {
	for (i = 1; i <= length(hex); i++)
		n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
	return n
}
$3 ~ /^[tTrRdDvVwW]$/ && !seen[$1]++ {
	room = "C library"
	if (match($0, /(user\/[a-z]+|arch|fallback)\/[a-z0-9_]+\.[ch]:/)) {
		split(substr($0, RSTART), path, "/")
		room = path[1] == "user" ? path[2] : path[1]
	}
	bytes[room] += number($2)
	all -= number($2)
}
END {
	for (room in bytes)
		print bytes[room], room
	print all, "texts and the rest"
}' | sort -rn | awk '{ print; sum += $1 } END { print sum, "all" }'
