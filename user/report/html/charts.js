/* Charts of live memory: over time, by the size of blocks, by their age. */

/* Rows of a histogram: [label, blocks, bytes]. */
function histogram(rows, caption) {
	const most = Math.max(...rows.map(r => r[2]), 1);
	const body = rows.map(([label, blocks, size]) => {
		const bar = svg("svg", { class: "bar-cell", "aria-hidden": "true", preserveAspectRatio: "none", viewBox: "0 0 100 10" },
			svg("rect", { width: (100 * size / most).toFixed(2), height: 10, rx: 0 }));
		return el("tr", {}, el("th", { scope: "row", text: label }), el("td", { class: "grow" }, bar),
			el("td", { class: "number", text: ofBytes(size) }),
			el("td", { class: "number muted", text: ofBlocks(blocks) }));
	});
	return el("table", { class: "histogram" }, el("caption", { class: "unseen", text: caption }), el("tbody", {}, ...body));
}

function sizeLabel(start) {
	const round = n => n < 1024 ? String(n) : n < 1048576 ? n / 1024 + "\u00a0K"
		: n < 1073741824 ? n / 1048576 + "\u00a0M" : n / 1073741824 + "\u00a0G";
	return start < 2 ? `${start} B` : `${round(start)} \u2013 ${start < 1024 ? 2 * start - 1 + " B" : round(2 * start)}`;
}

function ageLabel(start, classes) {
	const words = { 0: "under 1 ms", 1e6: "1 \u2013 10 ms", 1e7: "10 \u2013 100 ms", 1e8: "0.1 \u2013 1 s", 1e9: "1 \u2013 10 s",
		1e10: "10 \u2013 60 s", 6e10: "1 \u2013 10 min", 6e11: "10 \u2013 60 min", 3.6e12: "1 \u2013 24 h", 8.64e13: "over a day" };
	return words[start] || duration(start) + " and more";
}

const THREADS_SHOWN = 20;

/* What each thread allocated and what of it is live. One thread alone says nothing. */
function showThreads(process) {
	const list = (process.data.threads || []).slice().sort((a, b) => b.live.bytes - a.live.bytes || b.allocated.bytes - a.allocated.bytes);
	const most = Math.max(...list.map(t => t.live.bytes), 1);
	const row = (label, live, allocated) => el("tr", { "data-live": live.bytes }, el("th", { scope: "row", text: label }),
		el("td", { class: "grow" }, svg("svg", { class: "bar-cell", "aria-hidden": "true", preserveAspectRatio: "none", viewBox: "0 0 100 10" },
			svg("rect", { width: (100 * Math.min(1, live.bytes / most)).toFixed(2), height: 10, rx: 0 }))),
		el("td", { class: "number", text: ofBytes(live.bytes) }), el("td", { class: "number muted", text: ofBlocks(live.blocks) }),
		el("td", { class: "number muted wide", text: `of ${ofBytes(allocated.bytes)} allocated` }));
	const rest = list.slice(THREADS_SHOWN);
	const add = key => ({ bytes: sum(rest.map(t => t[key].bytes)), blocks: sum(rest.map(t => t[key].blocks)) });

	byId("threads").hidden = list.length < 2;
	if (list.length < 2)
		return;
	replace(byId("threads-panel"), el("table", { class: "histogram" }, el("caption", { class: "unseen", text: "Live blocks by thread, most first" }),
		el("tbody", {}, ...list.slice(0, THREADS_SHOWN).map(t => row(t.tid === null ? "others" : `thread ${t.tid}`, t.live, t.allocated)),
			...rest.length ? [row(`${plural(rest.length, "thread")} more`, add("live"), add("allocated"))] : [])));
}

function showHistograms(process) {
	const sets = [["sizes", process.data.sizes, sizeLabel, "Live blocks by size"],
		["ages", process.data.ages, ageLabel, "Live blocks by age, oldest last"]];
	for (const [id, rows, label, caption] of sets) {
		byId(id).hidden = !rows || !rows.length;
		if (rows && rows.length)
			replace(byId(id + "-panel"), histogram(rows.map(r => [label(r[0]), r[1], r[2]]), caption));
	}
}
