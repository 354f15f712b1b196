#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# prove.sh KIND FILE...: runs tests of one kind (unit, e2e, ptrace); at the end come the names of those that failed.
set -uo pipefail

here=${BASH_SOURCE[0]}

# What a unit test makes heaptap say is of interest only if it fails.
if [ "$1" = one-unit ]; then
	said=$(mktemp)
	trap 'rm -f "$said"' EXIT
	CMOCKA_MESSAGE_OUTPUT=TAP "$2" 2>"$said"
	status=$?
	[ "$status" -eq 0 ] || cat "$said" >&2
	exit "$status"
fi

kind=$1
shift
case $kind in
unit) how=("$here" one-unit) ;;
*) how=(bats --tap) ;;
esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A comment with which cmocka says that all went well is none that anybody waits for.
prove -fo -e "${how[*]}" "$@" 2>&1 | grep --line-buffered -v '^# ok - ' | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" -ne 0 ] || exit 0

# In prove's words: "FILE ...", then "not ok N NAME" for each test of it that failed.
printf '\n%s tests that failed:\n' "$kind"
awk '
	/^[^ #].* \.\.+ ?/ { if (file && is_bad && !named) print "  " file; file = $1; is_bad = named = 0 }
	/^not ok / { sub(/^not ok [0-9]+ (- )?/, ""); print "  " file ": " $0; named = 1 }
	/^Dubious|^Failed / { is_bad = 1 }
	/^Test Summary Report/ { exit }
	END { if (file && is_bad && !named) print "  " file }' "$log"
exit "$status"
