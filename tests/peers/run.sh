#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Compares real programs: their counts with those of memcheck, their stacks with those of gdb. Prints tables (root).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
: "${O:=$root/build}"
: "${HEAPTAP:=$O/heaptap}"
export O HEAPTAP
status=0

echo "Counts, by heaptap and memcheck:"
echo
"$root/tests/peers/counts.sh" || status=1
echo
echo "Stacks at calls of malloc, by gdb:"
echo
"$root/tests/stacks/gdb.sh" "$HEAPTAP" || status=1
exit "$status"
