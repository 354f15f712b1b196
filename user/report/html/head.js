/* The head of the page: the verdict in words, the main numbers, what to doubt; wrong releases; about the report. */

function nameOfPlace(place) {
	if (!place)
		return ["a place without a stack"];
	const where = whereShort(place);
	return [el("code", { text: shortName(place.name) }), where ? ` (${where})` : ""];
}

/* The tone of the sentence that all reports begin with. */
function toneOf({ watched, scan, verdict }) {
	if (!watched || !scan)
		return "unknown";
	if (scan.definite.blocks + scan.indirect.blocks)
		return "bad";
	return scan.possible.blocks || /; gr(ows|ew) by /.test(verdict) ? "maybe" : "good";
}

function scanLine(scan) {
	const names = [["definite", "definite"], ["indirect", "indirect"], ["possible", "possible"], ["reachable", "reachable"],
		["unsure", "without a verdict"], ["suppressed", "suppressed"], ["left_out", "left out by --leaks"],
		["new", "new since the last verdict"], ["found_again", "found again"]];
	return names.filter(([key]) => scan[key] && scan[key].blocks).map(([key, label]) =>
		el("li", { class: "verdict-" + key, "data-verdict": key, "data-bytes": scan[key].bytes, "data-blocks": scan[key].blocks },
			el("b", { text: label }), " " + inBlocks(scan[key].bytes, scan[key].blocks)));
}

function fateOf(data) {
	if (data.replaced)
		return "became another program";
	if (!data.ended)
		return report.broken_off ? "what came later is not known" : "still running";
	if (!data.exit)
		return "has ended";
	return data.exit.signal === undefined ? `exited with status ${data.exit.code}` : `killed by signal ${data.exit.signal}`;
}

const SOURCES = { bpf: "by BPF uprobes", ptrace: "by ptrace", replay: "from a recording" };

function factsOf(process) {
	const { totals } = process.data;
	const start = report.time_ns - report.duration_ns;
	const peakAt = totals.peak_bytes && totals.peak_time_ns >= start ? `after ${duration(totals.peak_time_ns - start)}` : "";

	return [
		["live_bytes", "Live", totals.live_bytes, ofBytes, ofBlocks(totals.live_blocks)],
		["peak_bytes", "Peak", totals.peak_bytes, ofBytes, peakAt],
		["alloc_bytes", "Allocated", totals.alloc_bytes, ofBytes, ofBlocks(totals.allocs)],
		["temporary", "Temporary", totals.temporary, ofCalls, percent(totals.temporary, totals.allocs) + " of the blocks"],
		["duration_ns", "Traced", report.duration_ns, duration, SOURCES[report.backend] || report.backend],
	].slice(0, report.duration_ns ? 5 : 4);
}

/* What a reader must know before trusting the numbers. */
function doubtsOf(process) {
	const { data } = process, { lost, scan, totals } = data;
	const list = [];
	const lostItems = [["allocs", "allocation"], ["frees", "free"], ["stacks", "stack"], ["other", "other event"]]
		.filter(([key]) => lost[key]).map(([key, word]) => plural(lost[key], word));

	if (data.unwatched_reason)
		list.push(`Nothing could be watched: ${data.unwatched_reason}.` + (data.unwatched_help ? ` What helps: ${data.unwatched_help}.` : ""));
	if (lostItems.length)
		list.push(`Lost: ${lostItems.join(", ")}` + (lost.frees ? ", so blocks shown as live may be free."
			: lost.allocs ? ", so there are more blocks than the numbers say." : "."));
	if (data.estimated)
		list.push(`Numbers with ~ are estimates, from ${plural(data.samples.seen, "sampled block")}: one sample in ${bytes(report.sample_bytes)}.`);
	if (totals.collisions)
		list.push(`${plural(totals.collisions, "free")} noticed late and corrected.`);
	if (scan && scan.unsure.blocks)
		list.push(`${plural(scan.unsure.blocks, "block")} (${bytes(scan.unsure.bytes)}) ${scan.unsure.blocks === 1 ? "has" : "have"} no verdict, because an event may be missing.`);
	if (scan && scan.skipped_bytes)
		list.push(`${bytes(scan.skipped_bytes)} of memory could not be read, so nothing is called definite.`);
	if (scan && scan.unstopped_threads)
		list.push(`${plural(scan.unstopped_threads, "thread")} ran on during the scan, so nothing is called definite.`);
	if (data.errors_unsure)
		list.push(`${plural(data.errors_unsure, "release")} of unknown blocks that may have been lost.`);
	for (const note of data.notes)
		list.push(note[0].toUpperCase() + note.slice(1) + ".");
	if (report.broken_off)
		list.push("The recording or the connection broke off: later calls are missing, and nobody has counted them.");
	if (report.filter)
		list.push(`Callers count only live blocks of ${report.filter.min_size ? `at least ${bytes(report.filter.min_size)}` : ""}` +
			`${report.filter.max_size ? ` at most ${bytes(report.filter.max_size)}` : ""}.`);
	if (report.unread_modules)
		list.push(`${plural(report.unread_modules, "file")} could not be read to the end: names are missing.`);
	if (report.stale_modules)
		list.push(`${plural(report.stale_modules, "file")} on disk ${report.stale_modules === 1 ? "is" : "are"} not what was mapped: no names from there.`);
	const cut = cutShare(process);
	if (cut)
		list.push(cut);
	return list;
}

/* A sentence if stacks of more than one percent of the blocks are not complete. */
function cutShare(process) {
	const all = process.sum("allocs");
	const words = new Map();
	let cut = 0;

	for (let i = 0; i < process.nr; i++) {
		const word = process.cutOf(i);
		if (!word)
			continue;
		cut += process.allocs[i];
		words.set(word, (words.get(word) || 0) + process.allocs[i]);
	}
	if (cut * 100 < all || !cut)
		return "";
	const [most] = Array.from(words).sort((a, b) => b[1] - a[1])[0];
	return `The stacks of ${percent(cut, all)} of the blocks are not complete, most of them: ${whyCut(most)}.`;
}

const hasLosses = ({ lost }) => lost.allocs || lost.frees || lost.stacks || lost.other;

function showVerdict(process) {
	const { data } = process;
	const tone = toneOf(data);
	const errors = sum(data.errors.map(e => e.count)) + data.errors_dropped;
	const doubts = doubtsOf(process);
	const capital = text => text[0].toUpperCase() + text.slice(1);
	const wrong = errors ? [el("a", { href: "#errors", text: `${plural(errors, "wrong release")} of memory` }),
		data.errors.length ? `: ${errorKinds(data)}` : ""] : null;
	replace(byId("verdict"), el("div", { class: "hero " + (errors ? "bad" : tone), "data-tone": tone },
		el("h1", {}, el("span", { text: data.comm }), el("small", { text: `pid ${data.pid}, ${fateOf(data)}` + (report.real_ns
			? ` \u00b7 ${new Date(report.real_ns / 1e6).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}` : "") })),
		el("p", { class: "headline", text: unbroken(capital(data.verdict)) }),
		errors ? el("p", { class: "wrong" }, ...wrong) : null,
		data.scan ? el("ul", { class: "sums" }, ...scanLine(data.scan)) : null,
		data.resident ? el("p", { class: "age", text: capital(data.resident.text) }) : null,
		data.scan && report.verdict_age_ns
			? el("p", { class: "age", text: `This verdict is at most ${duration(report.verdict_age_ns)} old.` }) : null),
	!data.watched ? null : el("dl", { class: "facts" }, ...factsOf(process).map(([id, label, value, format, more]) =>
		el("div", { "data-fact": id, "data-value": value }, el("dt", { text: label }),
			el("dd", {}, el("b", { text: format(value) }), el("span", { text: more }))))),
	doubts.length ? el("ul", { class: "doubts", "aria-label": "What to know about these numbers" },
		...doubts.map(text => el("li", { text }))) : null,
	hasLosses(data) ? null : el("p", { class: "sure", text: data.watched ? "No event was lost." : "" }));
}

const ERROR_NAMES = {
	"mismatched-free": "release by a function of another family",
	"size-mismatch": "release with a wrong size",
	"alignment-mismatch": "release with a wrong alignment",
	"double-free": "double free",
	"bad-free": "free of an address that is no block",
	"bad-realloc": "realloc of an address that is no block",
};

function errorKinds(data) {
	const kinds = new Map();
	for (const e of data.errors)
		kinds.set(e.kind, (kinds.get(e.kind) || 0) + e.count);
	return Array.from(kinds, ([kind, n]) => `${count(n)} \u00d7 ${ERROR_NAMES[kind] || kind}`).join(", ");
}

function showErrors(process) {
	const { errors, errors_dropped: dropped } = process.data;
	byId("errors").hidden = !errors.length;
	replace(byId("errors-list"), ...errors.map(e => {
		const stacks = [["Released by", e.free_stack], ["Released before by", e.earlier_free_stack],
			[e.inside ? `${count(e.inside)} bytes into a block allocated by` : "Allocated by", e.alloc_stack]]
			.filter(([, id]) => id !== null && process.stacks.has(id));
		const place = stacks.length ? process.stacks.get(stacks[0][1]).place : null;
		return el("details", { class: "error", open: errors.length === 1 },
			el("summary", {}, el("b", { text: ERROR_NAMES[e.kind] || e.kind }), place ? el("i", {}, "in ", ...nameOfPlace(place)) : null,
				el("span", { text: `${count(e.count)} \u00d7, by ${e.function}, ${e.address}${e.said_bytes === undefined ? ""
					: `, ${count(e.said_bytes)}, not ${count(e.block_bytes)} bytes`}${e.said_alignment === undefined ? ""
					: `, ${count(e.said_alignment)}, not ${count(e.block_alignment)}`}` })),
			el("div", { class: "stacks" }, ...stacks.map(([title, id]) =>
				el("div", {}, el("h4", { text: title }), stackList(process.stacks.get(id).node)))));
	}), dropped ? el("p", { class: "note", text: `${count(dropped)} more, by other callers.` }) : null);
}

function showAbout(process) {
	const { data } = process, { scan } = data;
	const functions = Object.entries(data.functions).sort((a, b) => b[1] - a[1]).map(([name, n]) => `${name} ${count(n)}`);
	const rows = [
		["Program", data.exe || data.comm],
		["Traced", `${duration(report.duration_ns)}, ${data.started ? "started by heaptap" : "attached to"}, ${SOURCES[report.backend] || report.backend}`],
		["When", report.real_ns && new Date(report.real_ns / 1e6).toLocaleString()],
		["Allocators", data.allocators.map(a => `${a.kind} (${a.object})`).join(", ")],
		["Calls", functions.join(", ")],
		["Freed", plural(data.totals.frees, "block") + (data.totals.unknown_frees
			? `, and ${count(data.totals.unknown_frees)} that heaptap never saw allocated` : "")],
		["Failed", data.totals.failed_allocs && plural(data.totals.failed_allocs, "allocation")],
		["Growth", data.rose],
		["Leak scan", scan && `${bytes(scan.scanned_bytes)} scanned, the process stopped for ${duration(scan.pause_ns)}`],
		["Releases", data.checked ? "checked" : "not checked"],
	].filter(r => r[1]);
	replace(byId("about-panel"), el("dl", { class: "about" }, ...rows.map(([label, text]) =>
		el("div", {}, el("dt", { text: label }), el("dd", { text })))));
	replace(byId("footer"), el("p", {}, `Made by heaptap ${report.version}. ${report.live ? "It asks this heaptap for new numbers." : "This file needs no network."}`));
}
