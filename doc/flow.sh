#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Draws the flow of events as SVG on standard output, from the boxes and arrows of doc/flow.txt.
# A row "box NAME X Y W H TITLE  LINE|LINE": two blanks end the title. A row "arrow FROM TO LABEL": down if TO lies
# below FROM, at the middle of the narrower box; else to the right.
set -euo pipefail
cd "$(dirname "$0")"

awk '
function escape(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); return text }
function text(px, py, class, what) {
	printf "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", px, py, class, escape(what)
}
function line(x1, y1, x2, y2) {
	printf "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" marker-end=\"url(#head)\"/>\n", x1, y1, x2, y2
}
function middle(low, high, at) { return at < low ? low : at > high ? high : at }
BEGIN {
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1060 722\" width=\"1060\" height=\"722\">"
	print "<!-- made by doc/flow.sh of doc/flow.txt -->"
	print "<style>"
	print "rect { fill: #f4f7fb; stroke: #44607c; } rect.page { fill: #ffffff; stroke: none; }"
	print "line { stroke: #44607c; stroke-width: 1.5; }"
	print "text { font: 13px sans-serif; fill: #1b2733; text-anchor: middle; }"
	print ".title { font-weight: bold; font-size: 16px; }"
	print ".label { font-style: italic; font-size: 13px; text-anchor: start; }"
	print "</style>"
	print "<defs><marker id=\"head\" markerWidth=\"10\" markerHeight=\"8\" refX=\"9\" refY=\"4\" orient=\"auto\">"
	print "<path d=\"M0,0 L10,4 L0,8 z\" fill=\"#44607c\"/></marker></defs>"
	print "<rect class=\"page\" width=\"1060\" height=\"722\"/>"
}
$1 == "box" {
	name = $2; x[name] = $3; y[name] = $4; w[name] = $5; h[name] = $6
	rest = $0
	for (i = 0; i < 6; i++) sub(/^[^ ]+ +/, "", rest)
	split(rest, half, /  +/)
	printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", $3, $4, $5, $6
	text($3 + $5 / 2, $4 + 24, "title", half[1])
	nr = split(half[2], lines, "|")
	for (i = 1; i <= nr; i++) text($3 + $5 / 2, $4 + 28 + 18 * i, "line", lines[i])
}
$1 == "arrow" {
	from = $2; to = $3; label = $4
	if (y[to] >= y[from] + h[from]) {
		at = w[from] <= w[to] ? x[from] + w[from] / 2 : x[to] + w[to] / 2
		line(at, y[from] + h[from], at, y[to])
		text(at + 6, (y[from] + h[from] + y[to]) / 2 + 4, "label", label)
	} else {
		at = y[from] + h[from] / 2
		line(x[from] + w[from], at, x[to], middle(y[to] + 14, y[to] + h[to] - 14, at))
		text(x[from] + w[from] + 4, at - 6, "label", label)
	}
}
END { print "</svg>" }' flow.txt
