/* The comparison of two reports: the same graph and table, with what grew and what shrank. */

const isDiff = Boolean(report.diff);

/* Numbers of a caller in the first report (a) and in the second one (b), and what changed. */
const DIFF_NUMBERS = ["live_bytes", "live_blocks", "alloc_bytes", "allocs", "leaked_bytes", "peak_bytes"];

class Comparison extends Process {
	constructor(data) {
		super({ callers: { ...data.callers, truncated: -1 }, stacks: [], whys: [], timeline: { time_ns: [] }, sizes: [], ages: [], errors: [],
			totals: {}, comm: "Comparison" });
		for (const name of DIFF_NUMBERS) {
			const a = this["a_" + name] = column(data.callers["a_" + name], this.nr, Float64Array);
			const b = this["b_" + name] = column(data.callers["b_" + name], this.nr, Float64Array);
			this["change_" + name] = a.map((n, i) => b[i] - n);
			this["more_" + name] = a.map((n, i) => Math.max(0, b[i] - n));
			this["less_" + name] = a.map((n, i) => Math.max(0, n - b[i]));
		}
	}
}

const DIFF_KINDS = [
	["leaked_bytes", "leaked", true], ["live_bytes", "live", true], ["peak_bytes", "at the peak", true],
	["alloc_bytes", "allocated", true], ["allocs", "calls", false],
].flatMap(([name, label, isBytes]) => [
	{ id: "more_" + name, label: "More " + label, column: "more_" + name, bytes: isBytes, help: "Callers with more in the second report" },
	{ id: "less_" + name, label: "Less " + label, column: "less_" + name, bytes: isBytes, help: "Callers with less in the second report" },
]);

const signed = format => n => (n > 0 ? "+" : "") + format(n);

const DIFF_COLUMNS = [
	{ id: "change_leaked_bytes", label: "Leaked", format: signed(bytes), class: "bad", isScan: true },
	{ id: "change_live_bytes", label: "Live", format: signed(bytes) },
	{ id: "a_live_bytes", label: "before", format: bytes, wide: true, isSide: true },
	{ id: "b_live_bytes", label: "after", format: bytes, isSide: true },
	{ id: "change_peak_bytes", label: "At the peak", format: signed(bytes), wide: true },
	{ id: "change_alloc_bytes", label: "Allocated", format: signed(bytes), wide: true },
	{ id: "change_allocs", label: "Calls", format: signed(count), wide: true },
];

function showComparison() {
	const { a, b } = report.diff;
	const change = b.totals.live_bytes - a.totals.live_bytes;
	const leaked = b.totals.leaked_bytes - a.totals.leaked_bytes;
	const isScanned = a.scanned && b.scanned;
	const text = change ? `${bytes(Math.abs(change))} ${change > 0 ? "more" : "less"} live` : "As much live as before";
	const leaks = !isScanned ? "no leak verdict in both reports"
		: leaked ? `${bytes(Math.abs(leaked))} ${leaked > 0 ? "more" : "less"} leaked` : "as much leaked as before";
	const tone = leaked > 0 && isScanned ? "bad" : "unknown";
	const row = (label, format, key) => el("tr", {}, el("th", { scope: "row", text: label }),
		...[a, b].map(side => el("td", { class: "number", text: format(side.totals[key]) })),
		el("td", { class: "number", "data-change": key, "data-value": b.totals[key] - a.totals[key],
			text: signed(format)(b.totals[key] - a.totals[key]) }));

	replace(byId("verdict"), el("div", { class: "hero " + tone },
		el("h1", {}, el("span", { text: `${baseName(b.file)} compared with ${baseName(a.file)}` })),
		el("p", { class: "headline", text: `${text}, ${leaks}` })),
	el("div", { class: "panel sides" }, el("table", { class: "histogram" },
		el("thead", {}, el("tr", {}, ...["", baseName(a.file), baseName(b.file), "change"].map((t, i) =>
			el("th", { scope: "col", class: i ? "number" : "", text: t })))),
		el("tbody", {}, row("Live", bytes, "live_bytes"), row("Live blocks", count, "live_blocks"),
			row("Leaked", bytes, "leaked_bytes"), row("Peak of all callers", bytes, "peak_bytes"),
			row("Allocated", bytes, "alloc_bytes"), row("Calls", count, "allocs")))),
	a.lost || b.lost ? el("ul", { class: "doubts" }, el("li", { text: `Lost events: ${count(a.lost)} before, ${count(b.lost)} after.` })) : null);
	for (const id of ["timeline", "errors", "sizes", "ages", "about"])
		byId(id).hidden = true;
	replace(byId("footer"), el("p", { text: `Made by heaptap ${report.version}. This file needs no network.` }));
}

function comparisonDetails(process, caller) {
	const rows = DIFF_NUMBERS.map((name, i) => {
		const format = /bytes$/.test(name) ? bytes : count;
		const label = ["Live", "Live blocks", "Allocated", "Calls", "Leaked", "At the peak"][i];
		return el("div", {}, el("dt", { text: label }),
			el("dd", { text: `${format(process["a_" + name][caller])} \u2192 ${format(process["b_" + name][caller])}` }));
	});
	return el("div", { class: "details" }, stackList(process.node[caller]), el("dl", { class: "facts-list" }, ...rows));
}
