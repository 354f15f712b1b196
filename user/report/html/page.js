/* The page: what is shown now, and the controls that change it. */

const makeProcesses = () => isSystem ? [] : isDiff ? [new Comparison(report)] : report.processes.map(p => isSeries ? new SeriesProcess(p) : new Process(p));
let processes = makeProcesses();
const KINDS = isDiff ? DIFF_KINDS : isSeries ? SERIES_KINDS : REPORT_KINDS;

const state = {
	process: null, part: null, kind: null, wholeKind: null, by: "function", shape: SHAPES[0], group: "stack",
	search: new Search(""),
};

/* What the graph and the table show. */
const shown = () => state.part || state.process;

const flame = new Flame(byId("canvas"), {
	title: () => `${state.kind.label}${state.part ? ", " + timeline.brush.text() : ""}: ${amount(state.kind, flame.tree.total[0])}`,
	zoomed: () => { showCrumbs(); showDetail(flame.root); keepSpot(); },
	pointed: (id, event) => { showDetail(id < 0 ? flame.root : id); showTip(id, event); },
});

function askFor(text) {
	byId("search").value = text;
	find(text);
	keepSpot();
}

const table = new Table(byId("table"), byId("more"), byId("rows-note"), askFor);
table.changed = keepSpot;

const timeline = new Timeline(byId("timeline-panel"), (first, end) => {
	state.part = first < 0 ? null : new Part(state.process, first, end);
	showPart();
	showKinds();
	showFlame();
	showTable();
	keepSpot();
}, askFor);

/* A button for each item of a list; the one that is chosen is pressed. */
function showTabs(id, items, chosen, choose) {
	replace(byId(id), ...items.map(item => el("button", { type: "button", "aria-pressed": String(item === chosen),
		"data-id": item.id, title: item.help, click: () => choose(item) },
		el("b", { text: item.label }), item.note ? el("span", { text: item.note }) : null)));
}

function showKinds() {
	const process = shown(), all = state.part ? PART_KINDS : KINDS;
	const totals = all.map(k => process.sum(k.column));
	const kinds = all.filter((k, i) => totals[i] > 0);
	/* Growth is the change that the text below the picture has; the graph shows the callers that grew. */
	all.forEach((k, i) => { k.note = state.part && k.id === "growth" ? signed(bytes)(state.part.net) : k.bytes ? ofBytes(totals[i]) : ofCalls(totals[i]); });
	if (!state.part && state.wholeKind)
		state.kind = state.wholeKind;
	if (!kinds.includes(state.kind))
		state.kind = kinds.find(k => k.id !== "possible") || all.find(k => k.column === "alloc_bytes") || all[0];
	if (!state.part)
		state.wholeKind = state.kind;
	showTabs("kinds", kinds, state.kind, kind => {
		state.wholeKind = state.part ? state.wholeKind : kind;
		state.kind = kind;
		showKinds();
		showFlame();
		table.sortTo(...columnOf(kind));
		keepSpot();
	});
}

/* The column of the table that a kind is sorted by, and whether the least comes first. */
function columnOf({ column }) {
	const of = { growing: "per_hour", shrinking: "per_hour" };
	return [of[column] || column.replace(/^(more|less)_/, "change_"), /^(less_|shrinking)/.test(column)];
}

function showFlame() {
	const { kind, by, shape } = state, process = shown();
	const merged = mergedTree(by);
	const tree = new (shape.isInverted ? BottomUp : TopDown)(merged, process, kind.column);
	const ranked = rankModules(process, kind.column);
	const canvas = byId("canvas");

	if (isDiff || isSeries)
		plainColour = /^(more|growing)/.test(kind.id) ? [14, 38] : [152, 26];
	flame.matches = state.search.isActive ? state.search.keysOf(merged.keys) : null;
	flame.show(tree, shape);
	canvas.setAttribute("aria-label", `Graph of ${kind.label.toLowerCase()}, ${amount(kind, tree.total[0])} in all`);
	canvas.dataset.total = tree.total[0];
	canvas.dataset.kind = kind.id;
	showLegend(ranked);
	showCrumbs();
	showDetail(0);
	showFound();
}

/* What the chosen part is, and how to choose one. data-net: by how many bytes live memory grew in it. */
function showPart() {
	const { part } = state, { brush } = timeline;
	const box = byId("part"), grown = part && part.sum("growth");

	box.hidden = !brush.isOn;
	box.classList.toggle("hint", !part);
	byId("part-end").hidden = !part;
	byId("part-text").textContent = !part ? "Drag over the picture, or use the arrow keys in it, to see what a part of the run allocated."
		: `${brush.text()}: ${ofBytes(part.sum("alloc_bytes"))} allocated in ${about(plural(part.sum("allocs"), "call"))}, ` +
			`live memory ${signed(bytes)(part.net)}` +
			(grown === part.net ? ". " : ` (some callers ${signed(bytes)(grown)}, others ${bytes(part.net - grown)}). `) +
			"The graph and the table show this part alone.";
	for (const [name, value] of Object.entries({ net: part && part.net, from: part && brush.from(brush.first), to: part && brush.to(brush.end) }))
		if (part)
			box.dataset[name] = value;
		else
			delete box.dataset[name];
}

function showLegend(ranked) {
	const isDark = document.documentElement.dataset.look === "dark";
	const items = ranked.slice(0, HUES.length).map(m => {
		const [hue, saturation] = HUES[moduleRank[m]];
		return el("li", { title: modules[m].path }, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" },
			svg("rect", { width: 10, height: 10, rx: 2,
				fill: isDark ? `hsl(${hue} ${saturation}% 38%)` : `hsl(${hue} ${saturation + 20}% 76%)` })), modules[m].name);
	});
	if (ranked.length > HUES.length)
		items.push(el("li", { class: "muted", text: `and ${ranked.length - HUES.length} more in grey` }));
	replace(byId("legend"), ...items);
}

/* The path to the zoomed frame; a long one shows its ends. */
function showCrumbs() {
	const path = flame.pathTo(flame.root);
	const crumb = (id, isLast) => isLast ? el("b", { "aria-current": "true", text: shortName(flame.nameOf(id)) })
		: el("button", { type: "button", text: id ? shortName(flame.nameOf(id)) : "all", click: () => flame.zoom(id) });
	const shown = path.length > 6 ? [path[0], null, ...path.slice(-4)] : path;

	byId("crumbs").hidden = path.length < 2;
	byId("crumbs").dataset.depth = path.length - 1;
	replace(byId("crumbs"), ...shown.map((id, i) => id === null ? el("span", { text: "\u2026" }) : crumb(id, i === shown.length - 1)));
}

/* [name, module, where, numbers] of a frame of the graph. */
function describe(id) {
	const { tree } = flame, { kind, by } = state;
	const key = id ? tree.keys.list[tree.key[id]] : null;
	const frame = key && key.frame >= 0 ? frames[key.frame] : null;
	const outer = tree.parent[id];
	const folded = flame.folds.get(id);
	const numbers = [`${amount(kind, tree.total[id])}, ${percent(tree.total[id], tree.total[0])} of all`];

	if (outer > 0)
		numbers.push(`${percent(tree.total[id], tree.total[outer])} of ${shortName(flame.nameOf(outer))}`);
	if (tree.self[id] && tree.self[id] !== tree.total[id])
		numbers.push(`${amount(kind, tree.self[id])} directly`);
	if (folded)
		return { name: `${folded.length} frames, each the only callee of the one before`, numbers,
			where: folded.map(i => shortName(flame.nameOf(i))).slice(0, 8).join(" \u203a ") + (folded.length > 8 ? " \u2026" : "") };
	return {
		name: id ? key.name : "Everything", numbers,
		where: frame && by === "function" ? whereIs(frame) : key && key.module >= 0 ? modules[key.module].path : "",
	};
}

function showDetail(id) {
	const about = describe(id);
	replace(byId("detail"), el("b", { text: about.name.length > 200 ? shortName(about.name) : about.name }),
		el("span", { text: about.numbers.join(" \u00b7 ") }), about.where ? el("span", { class: "muted", text: about.where }) : null);
}

function showTip(id, event) {
	byId("tip").hidden = true;
	if (id < 0 || !event)
		return;
	const about = describe(id);
	showFloating(event, el("b", { text: about.name.slice(0, 400) }), ...about.numbers.map(text => el("span", { text })),
		about.where ? el("span", { class: "muted", text: about.where }) : null);
}

/* A small box beside the pointer. */
function showFloating(event, ...content) {
	const tip = byId("tip");
	tip.hidden = false;
	replace(tip, ...content);
	const box = tip.getBoundingClientRect();
	tip.style.left = Math.max(8, Math.min(event.clientX + 14, document.documentElement.clientWidth - box.width - 8)) + "px";
	tip.style.top = (event.clientY + 20 + box.height < window.innerHeight ? event.clientY + 18
		: Math.max(8, event.clientY - box.height - 12)) + "px";
}

function showFound() {
	const { search, kind } = state, process = shown();
	const found = byId("found");

	found.textContent = "";
	delete found.dataset.share;
	if (!search.isActive)
		return;
	const share = search.share(process, kind.column);
	const whole = flame.tree.total[0];
	found.textContent = `${percent(share, whole)} of ${kind.label.toLowerCase()}`;
	hit = { at: -1, list: null };
	found.title = `${amount(kind, share)} of ${amount(kind, whole)} has a match on its stack`;
	found.dataset.share = share;
}

/* The hits in the graph, and the one that it is opened at. */
let hit = { at: -1, list: null };

/* The next hit, or with @step -1 the one before. */
function goToHit(step) {
	hit.list = hit.list || flame.hits();
	if (!hit.list.length)
		return;
	hit.at = (hit.at + step + hit.list.length + (hit.at < 0 && step < 0 ? 1 : 0)) % hit.list.length;
	flame.zoom(hit.list[hit.at]);
	showHit();
	byId("graph").scrollIntoView({ block: "nearest" });
}

function showHit() {
	if (hit.at >= 0)
		byId("found").textContent = `${count(hit.at + 1)} of ${count(hit.list.length)}`;
}

/* data-took: milliseconds, for measurements. */
function find(text) {
	const begin = performance.now();
	state.search = new Search(text);
	flame.mark(state.search.isActive ? state.search.keysOf(flame.tree.keys) : null);
	table.find(state.search);
	showFound();
	byId("found").dataset.took = (performance.now() - begin).toFixed(1);
}

function showTable() {
	/* Comparisons and series know the names of functions only. */
	const groups = isDiff || isSeries ? TABLE_GROUPS.slice(0, 2) : TABLE_GROUPS;
	showTabs("groups", groups, TABLE_GROUPS.find(g => g.id === state.group), group => {
		state.group = group.id;
		showTable();
		keepSpot();
	});
	table.show(shown(), state.group, state.search);
}

function showProcess(index) {
	state.process = processes[index];
	state.part = state.wholeKind = null;
	document.title = `${state.process.data.comm} \u2013 heaptap ${isDiff ? "diff" : isSeries ? "growth" : "report"}`;
	document.body.dataset.process = state.process.data.pid;
	if (!isDiff && !isSeries) {
		showVerdict(state.process);
		timeline.show(state.process);
		showPart();
		showErrors(state.process);
	}
	byId("flame").hidden = byId("callers").hidden = !state.process.nr;
	showKinds();
	showFlame();
	showTable();
	if (isDiff) {
		showComparison();
	} else if (isSeries) {
		showSeries(state.process);
	} else {
		showThreads(state.process);
		showHistograms(state.process);
		showAbout(state.process);
	}
}

/* ---- the fragment of the address: what is shown ---- */

let isRestoring = false;

function keepSpot() {
	const { kind, by, shape, group, search, process } = state;
	const spot = { p: processes.length > 1 ? processes.indexOf(process) : "", part: state.part ? timeline.brush.spot : "", kind: kind && kind.id,
		by: by === "function" ? "" : by, as: shape === SHAPES[0] ? "" : shape.id, rows: group === "stack" ? "" : group,
		sort: table.sortedBy ? table.sortedBy.id + (table.isUp ? "-" : "") : "", q: search.text, at: flame.spot };
	const words = Object.entries(spot).filter(([, value]) => value !== "" && value !== undefined);

	/* Browsers refuse too many changes in a short time: the next one comes. */
	try {
		if (!isRestoring && process)
			history.replaceState(null, "", "#" + new URLSearchParams(words));
	} catch { /* nothing is lost */ }
}

/* Words that name nothing are passed over. */
function restoreSpot() {
	const spot = new URLSearchParams(location.hash.slice(1)), get = name => spot.get(name) || "";
	const by = GROUPINGS.findIndex(g => g.id === get("by")), shape = SHAPES.findIndex(s => s.id === get("as"));

	if (!location.hash.includes("="))
		return;
	isRestoring = true;
	state.by = GROUPINGS[byId("by").value = Math.max(0, by)].id;
	state.shape = SHAPES[byId("shape").value = Math.max(0, shape)];
	state.group = TABLE_GROUPS.some(g => g.id === get("rows")) ? get("rows") : "stack";
	byId("search").value = get("q");
	state.search = new Search(get("q"));
	if (processes[get("p")])
		byId("process").value = get("p");
	showProcess(Number(byId("process").value));
	timeline.brush.goTo(get("part"));
	state.kind = (state.part ? PART_KINDS : KINDS).find(k => k.id === get("kind")) || state.kind;
	state.wholeKind = state.part ? state.wholeKind : state.kind;
	showKinds();
	showFlame();
	table.sortTo(get("sort").replace(/-$/, ""), get("sort").endsWith("-"));
	flame.goTo(get("at"));
	hit.list = flame.hits();
	hit.at = hit.list.indexOf(flame.root);
	showHit();
	isRestoring = false;
}

/* ---- a running heaptap: the same page, with new data each time ---- */

const LIVE_MS = 2000;
let isLive = Boolean(report.live);

/* Not while somebody drags, or reads what is open in the table. */
const isBusy = () => document.hidden || timeline.brush.anchor !== null || document.querySelector(".opened, dialog[open]") !== null;

async function update() {
	try {
		const answer = isLive && !isBusy() ? await fetch("data" + location.search, { cache: "no-store" }) : null;
		if (answer && answer.ok)
			renew(await answer.json());
		showLive(answer ? answer.ok : true);
	} catch {
		showLive(false);
	}
	setTimeout(update, LIVE_MS);
}

function renew(data) {
	const pid = state.process && state.process.data.pid;

	if (isSystem) {
		take(data);
		showSystem();
		return;
	}
	if (state.search.text !== byId("search").value) /* somebody types */
		find(byId("search").value);
	keepSpot();
	take(data);
	mergedTrees.clear();
	processes = makeProcesses();
	fillProcesses();
	byId("process").value = String(Math.max(0, processes.findIndex(p => p.data.pid === pid)));
	location.hash.includes("=") ? restoreSpot() : processes.length && showProcess(Number(byId("process").value));
}

function showLive(isThere) {
	const button = byId("live");
	button.hidden = false;
	button.setAttribute("aria-pressed", String(isLive && isThere));
	button.textContent = !isThere ? "heaptap is gone" : isLive ? "\u25cf live" : "paused";
	button.title = isLive ? "Stop updating" : "Update again";
	button.dataset.time = report.time_ns;
}

/* Colours as the system has them, or as chosen. */
const LOOKS = [["", "Colours: system", "\u25d0"], ["light", "Colours: light", "\u2600"], ["dark", "Colours: dark", "\u263e"]];
let look = 0;

function showLook(index) {
	const isDark = LOOKS[index][0] ? LOOKS[index][0] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	look = index;
	document.documentElement.dataset.look = isDark ? "dark" : "light";
	byId("theme").textContent = LOOKS[index][2];
	byId("theme").setAttribute("aria-label", LOOKS[index][1]);
	byId("theme").title = LOOKS[index][1];
}

function redraw() {
	flame.draw();
	timeline.draw();
	showLegend(rankModules(shown(), state.kind.column));
}

function fillProcesses() {
	replace(byId("process"), ...processes.map((p, i) => el("option", { value: String(i), text: p.name })));
	byId("process").closest("label").hidden = processes.length < 2;
}

function fill(select, items, label, choose) {
	replace(select, ...items.map((item, i) => el("option", { value: String(i), text: label(item), title: item.help })));
	select.addEventListener("change", () => choose(items[select.value], Number(select.value)));
}

function listen() {
	let timer = 0;
	byId("search").addEventListener("input", () => {
		clearTimeout(timer);
		timer = setTimeout(() => { timer = 0; find(byId("search").value); keepSpot(); }, 60);
	});
	byId("search").addEventListener("keydown", e => {
		if (e.key !== "Enter" && e.key !== "Escape")
			return;
		e.preventDefault();
		clearTimeout(timer);
		if (e.key === "Escape") {
			askFor("");
			byId("canvas").focus();
		} else if (timer || state.search.text !== byId("search").value) {
			timer = 0;
			find(byId("search").value);
		}
		if (e.key === "Enter")
			goToHit(e.shiftKey ? -1 : 1);
	});
	document.addEventListener("keydown", e => {
		const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
		if (isTyping || e.ctrlKey || e.metaKey || byId("keys").open || e.key !== "/" && e.key !== "?")
			return;
		e.preventDefault();
		if (e.key === "/")
			byId("search").focus();
		else
			byId("keys").showModal();
	});
	byId("help").addEventListener("click", () => byId("keys").showModal());
	byId("live").addEventListener("click", () => { isLive = !isLive; showLive(true); });
	window.addEventListener("hashchange", restoreSpot);
	byId("part-end").addEventListener("click", () => {
		timeline.brush.choose(-1, -1);
		byId("timeline-panel").focus();
	});
	byId("theme").addEventListener("click", () => { showLook((look + 1) % LOOKS.length); redraw(); });
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { showLook(look); redraw(); });
	new ResizeObserver(() => {
		flame.draw();
		if (isSeries && state.process)
			drawSeries(state.process);
	}).observe(byId("graph"));
	/* Paper is white. */
	window.addEventListener("beforeprint", () => { document.documentElement.dataset.look = "light"; flame.draw(); });
	window.addEventListener("afterprint", () => { showLook(look); flame.draw(); });
	byId("process").addEventListener("change", () => { showProcess(Number(byId("process").value)); keepSpot(); });
	fillProcesses();
	fill(byId("by"), GROUPINGS, g => g.label, g => { state.by = g.id; showFlame(); keepSpot(); });
	fill(byId("shape"), SHAPES, s => s.label, s => { state.shape = s; showFlame(); keepSpot(); });
	byId("by").closest("label").hidden = isDiff || isSeries;
}

showLook(0);
listen();
/* The process with the worst verdict first; the list has the order of the report. */
if (processes.length) {
	const worth = p => isSeries ? (p.data.per_hour > 0 ? 1e15 + p.data.per_hour : p.data.last_bytes) : p.sum("leaked_bytes") * 1e6 + p.data.totals.live_bytes;
	const first = processes.reduce((best, p, i) => worth(p) > worth(processes[best]) ? i : best, 0);
	byId("process").value = String(first);
	showProcess(first);
	restoreSpot();
} else if (isSystem) {
	showSystem();
} else {
	replace(byId("verdict"), el("p", { class: "headline", text: "The report has no process." }));
}
if (isLive) {
	showLive(true);
	setTimeout(update, LIVE_MS);
}
document.documentElement.dataset.ready = performance.now().toFixed(0);
