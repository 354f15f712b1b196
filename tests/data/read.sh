#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints what a report says of a file of this directory and what every later heaptap must say, without what may change.
#   read.sh HEAPTAP json|folded FILE OPTION...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# Names from other files than those of root/ depend on the machine: frames of their own are left out, and the last word
# of a stack is the function that allocated.
own_frames() {
	awk -v own='_start main lose_blocks lose_list link_node fill_cache work run_thread use_children use_heap use_markers' '
		BEGIN { n = split(own, names, " "); while (n) is_own[names[n--]] = 1 }
		{
			value = $NF
			n = split(substr($0, 1, length($0) - length(value) - 1), frames, ";")
			stack = ""
			for (i = 1; i < n; i++) if (frames[i] in is_own) stack = stack frames[i] ";"
			print stack frames[n], value
		}' | LC_ALL=C sort
}

heaptap=$1 format=$2 file=$3
shift 3
"$heaptap" report -q "$@" --format "$format" "$file" |
	case $format in
	folded) own_frames ;;
	*) jq -rf "$here/project.jq" ;;
	esac
