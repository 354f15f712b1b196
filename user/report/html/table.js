/* The table of callers, or of the functions, files and modules on their stacks: sorted, searched, opened. */

const FIRST_ROWS = 15, MORE_ROWS = 100, NEIGHBOURS = 12;

/* Columns of the table. A caller of "direct" columns is the innermost frame itself. */
const REPORT_COLUMNS = [
	{ id: "leaked_bytes", label: "Leaked", format: ofBytes, class: "bad", isScan: true },
	{ id: "possible_bytes", label: "Possibly", format: ofBytes, class: "maybe", isScan: true },
	{ id: "live_bytes", label: "Live", format: ofBytes, bar: true },
	{ id: "live_blocks", label: "Blocks", format: ofCalls, wide: true },
	{ id: "peak_bytes", label: "At the peak", format: ofBytes, wide: true },
	{ id: "alloc_bytes", label: "Allocated", format: ofBytes, wide: true },
	{ id: "allocs", label: "Calls", format: ofCalls, wide: true },
	{ id: "temporary", label: "Temporary", format: ofCalls, wide: true },
	{ id: "grown", label: "Grown", format: ofBytes, wide: true, isScan: true },
];

const TABLE_COLUMNS = isDiff ? DIFF_COLUMNS : isSeries ? SERIES_COLUMNS : REPORT_COLUMNS;

const TABLE_GROUPS = [
	{ id: "stack", label: "Stacks" },
	{ id: "function", label: "Functions" },
	{ id: "file", label: "Source files" },
	{ id: "module", label: "Modules" },
];

const columnsOf = process => process.columns || TABLE_COLUMNS;

/* What functions allocate themselves, of the column that the table is sorted by. */
const SELF = { id: "self", label: "Self" };

/*
 * Sums by key over all frames of each stack; of a key that comes twice on a stack, the outer frame counts. selves: where
 * the key is the innermost frame.
 */
function sumsByKey(process, by) {
	const { keys, parent, key, nr } = mergedTree(by);
	const columns = columnsOf(process);
	const trees = columns.map(c => process.has(c.id) ? new TopDown(mergedTree(by), process, c.id, true) : null);
	const rows = new Map();

	for (let id = 1; id < nr; id++) {
		let up = parent[id];
		if (keys.list[key[id]].isMark)
			continue;
		if (!rows.has(key[id]))
			rows.set(key[id], { key: key[id], sums: new Float64Array(columns.length), selves: new Float64Array(columns.length) });
		const row = rows.get(key[id]);
		for (let k = 0; k < trees.length; k++)
			if (trees[k])
				row.selves[k] += trees[k].self[id];
		while (up > 0 && key[up] !== key[id])
			up = parent[up];
		if (up > 0)
			continue;
		for (let k = 0; k < trees.length; k++)
			if (trees[k])
				row.sums[k] += trees[k].total[id];
	}
	return Array.from(rows.values()).filter(row => row.sums.some(n => n));
}

/* Who calls a key, and whom it calls, with what is allocated so: [key, number], most first. -1 is the start of a thread. */
function neighbours(process, by, key, column) {
	const merged = mergedTree(by), { total } = new TopDown(merged, process, column);
	const callers = new Map(), callees = new Map();
	const add = (map, to, n) => map.set(to, (map.get(to) || 0) + n);
	const sorted = map => Array.from(map).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);

	for (let id = 1; id < merged.nr; id++) {
		let up = merged.parent[id], inner = id;
		if (merged.key[id] !== key) {
			if (up > 0 && merged.key[up] === key)
				add(callees, merged.key[id], total[id]);
			continue;
		}
		for (; up > 0 && merged.key[up] !== key; up = merged.parent[up])
			inner = up;
		if (up <= 0)
			add(callers, merged.parent[id] > 0 ? merged.key[merged.parent[id]] : -1, total[id]);
		else if (inner !== id) /* further in, it counts for the callee there */
			add(callees, merged.key[inner], -total[id]);
	}
	return [sorted(callers), sorted(callees)];
}

class Table {
	constructor(table, more, note, search) {
		this.head = table.tHead;
		this.body = table.tBodies[0];
		this.table = table;
		this.more = more;
		this.note = note;
		this.askFor = search; /* put a text into the search */
		this.changed = () => {}; /* somebody sorted it */
		new ResizeObserver(() => this.hint()).observe(table.parentElement);
		more.addEventListener("click", () => { this.limit += MORE_ROWS; this.draw(); });
	}

	show(process, group, search) {
		this.process = process;
		this.group = group;
		this.search = search;
		this.limit = FIRST_ROWS;
		this.columns = columnsOf(process).filter(c => !c.isScan || process.has(c.id));
		this.columns = this.columns.filter(c => c.id !== "temporary" || process.sum("temporary"));
		if (!this.columns.includes(this.sortedBy))
			this.sortedBy = this.columns.find(c => !c.isSide && process.has(c.id)) || this.columns[0];
		this.measure = this.sortedBy;
		this.putSelf();
		this.makeRows();
		this.drawHead();
		this.draw();
	}

	/* SELF is beside the column that it belongs to. */
	putSelf() {
		this.columns = this.columns.filter(c => c !== SELF);
		if (this.group !== "stack")
			this.columns.splice(this.columns.indexOf(this.measure) + 1, 0, SELF);
		this.totals = this.columns.map(c => c === SELF ? 0 : this.process.sum(c.id));
	}

	find(search) {
		this.search = search;
		this.limit = FIRST_ROWS;
		this.filter();
		this.draw();
	}

	makeRows() {
		const { process, group } = this;
		if (group === "stack") {
			this.all = Array.from({ length: process.nr }, (x, i) => i);
			if (isDiff)
				this.all = this.all.filter(i => DIFF_NUMBERS.some(name => process["change_" + name][i]));
			if (process.columns)
				this.all = this.all.filter(i => process.columns.some(c => process[c.id][i]));
			this.value = (i, column) => process[column.id][i];
		} else {
			this.keys = mergedTree(group).keys;
			this.all = sumsByKey(process, group);
			this.value = (row, column) => column === SELF ? row.selves[columnsOf(process).indexOf(this.measure)]
				: row.sums[columnsOf(process).indexOf(column)];
		}
		this.sort();
	}

	/* The rows that the search lets through, in the order of all. */
	filter() {
		const { process, search, group } = this;
		const matches = search.isActive && group !== "stack" ? search.keysOf(this.keys) : null;
		this.rows = !search.isActive ? this.all
			: this.all.filter(matches ? row => matches[row.key] : i => search.hasCaller(process, i));
	}

	/* By the chosen column; equal rows by what is live, then by what was allocated. */
	sort() {
		const columns = columnsOf(this.process);
		const order = [this.sortedBy, columns[0], ...columns.filter(c => /^(live|alloc|change_live)_bytes$/.test(c.id))];
		const sign = this.isUp ? -1 : 1;
		this.all.sort((a, b) => {
			for (const column of order) {
				const difference = this.value(b, column) - this.value(a, column);
				if (difference)
					return sign * difference;
			}
			return 0;
		});
		this.filter();
	}

	sortBy(column) {
		this.sortTo(column.id, this.sortedBy === column && !this.isUp);
		this.head.querySelector(`[data-column=${column.id}] button`).focus();
		this.changed();
	}

	/* By the column @id, if the table has it. */
	sortTo(id, isUp) {
		const column = this.columns.find(c => c.id === id);
		if (!column)
			return;
		this.isUp = isUp;
		this.sortedBy = column;
		this.measure = column === SELF ? this.measure : column;
		this.putSelf();
		this.sort();
		this.drawHead();
		this.draw();
	}

	/* A narrow window shows few columns; the one that the table is sorted by is one of them. */
	widthOf(column) {
		return column.wide && column !== this.sortedBy ? " wide" : "";
	}

	drawHead() {
		const title = { stack: "Caller", function: "Function", file: "Source file", module: "Module" }[this.group];
		const cells = this.columns.map(c => {
			const isSorted = c === this.sortedBy;
			return el("th", { scope: "col", class: "number" + this.widthOf(c), "data-column": c.id,
				"aria-sort": isSorted ? this.isUp ? "ascending" : "descending" : "none" },
				el("button", { type: "button", class: "sort", click: () => this.sortBy(c), text: c.label }));
		});
		replace(this.head, el("tr", {}, el("th", { scope: "col", text: title }), ...cells));
	}

	draw() {
		const shown = this.rows.slice(0, this.limit);
		const left = this.rows.length - shown.length;
		const what = { stack: "caller", function: "function", file: "source file", module: "module" }[this.group];
		replace(this.body, ...shown.map(row => this.drawRow(row)));
		if (!shown.length)
			replace(this.body, el("tr", {}, el("td", { class: "empty", colspan: this.columns.length + 1,
				text: this.search.isActive ? "Nothing matches the search." : "Nothing was allocated." })));
		this.more.parentElement.hidden = !left;
		this.more.textContent = `Show ${Math.min(left, MORE_ROWS)} of ${count(left)} more`;
		this.note.textContent = (left ? `${count(shown.length)} of ` : "") + plural(this.rows.length, what) +
			(this.group === "stack" ? "" : ", each with all that is below it on a stack");
		this.table.dataset.rows = this.rows.length;
		this.hint();
	}

	hint() {
		const { scrollWidth, clientWidth } = this.table.parentElement;
		byId("sideways").hidden = scrollWidth <= clientWidth + 1;
	}

	drawRow(row) {
		const cells = this.columns.map((column, i) => {
			const value = this.value(row, column);
			const cell = el("td", { class: "number" + this.widthOf(column) + (value > 0 && column.class ? " " + column.class : ""),
				"data-value": value, text: value ? (column.format || this.measure.format)(value) : "\u2013" });
			if (value > 0 && this.totals[i] && column === this.sortedBy)
				cell.append(el("small", { text: percent(value, this.totals[i]) }));
			return cell;
		});
		return el("tr", {}, el("th", { scope: "row" }, this.group === "stack" ? this.drawCaller(row) : this.drawKey(row)), ...cells);
	}

	drawKey(row) {
		const { name, module } = this.keys.list[row.key];
		const field = this.group;
		const button = el("button", { type: "button", class: "caller opens", "aria-expanded": "false" },
			el("b", { text: field === "function" ? shortName(name) : name }));
		button.append(el("span", { text: field === "function" ? module >= 0 ? modules[module].name : ""
			: field === "module" && module >= 0 ? modules[module].path : "" }));
		button.addEventListener("click", () => this.open(button, row));
		return button;
	}

	/* The text that a search finds a key by. */
	searchOf(key) {
		const { name, module } = this.keys.list[key];
		return `${this.group}:${this.group === "module" && module >= 0 ? modules[module].path : name}`;
	}

	/* Callers and callees of a key, each a search. */
	keyDetails(row) {
		const [callers, callees] = neighbours(this.process, this.group, row.key, this.measure.id);
		const { format } = this.measure;
		const index = columnsOf(this.process).indexOf(this.measure);
		const item = ([key, n]) => el("li", {}, key < 0 || this.keys.list[key].isMark
			? el("span", { text: key < 0 ? "the start of a thread" : this.keys.list[key].name })
			: el("button", { type: "button", text: shortName(this.keys.list[key].name), title: "Search for it",
				click: () => this.askFor(this.searchOf(key)) }), el("b", { text: format(n) }));
		const list = (title, items) => el("div", {}, el("h4", { text: title }), items.length
			? el("ol", {}, ...items.slice(0, NEIGHBOURS).map(item)) : el("p", { class: "note", text: "nothing" }),
			items.length > NEIGHBOURS ? el("p", { class: "note", text: `and ${count(items.length - NEIGHBOURS)} more` }) : null);
		return el("div", { class: "near" }, list("Called by", callers),
			list(row.selves[index] ? `Calls (${format(row.selves[index])} by itself)` : "Calls", callees),
			el("p", {}, el("button", { type: "button", text: "Search for it", click: () => this.askFor(this.searchOf(row.key)) })));
	}

	drawCaller(caller) {
		const stack = stackOf(this.process.node[caller]);
		const place = this.process.placeOf(caller);
		const cut = this.process.cutOf(caller);
		const name = place ? shortName(place.name) : `[stack ${whyCut(cut)}]`;
		const next = place ? stack.slice(stack.indexOf(place) + 1).find(f => f.kind !== MARK && f.name !== place.name) : null;
		const button = el("button", { type: "button", class: "caller opens", "aria-expanded": "false" },
			el("b", { text: name }), next ? el("i", { text: "\u2190 " + shortName(next.name) }) : null,
			el("span", { text: place ? whereShort(place) : "" }));
		button.addEventListener("click", () => this.open(button, caller));
		return button;
	}

	open(button, caller) {
		const row = button.closest("tr");
		const isOpen = button.getAttribute("aria-expanded") === "true";
		button.setAttribute("aria-expanded", String(!isOpen));
		if (isOpen)
			row.nextElementSibling.remove();
		else
			row.after(el("tr", { class: "opened" }, el("td", { colspan: this.columns.length + 1 },
				this.group !== "stack" ? this.keyDetails(caller)
					: (isDiff ? comparisonDetails : isSeries ? seriesDetails : callerDetails)(this.process, caller))));
	}
}

const STACK_SHOWN = 32, STACK_OUTER = 6; /* frames of a long stack that are shown, and those of its outer end */

function stackItem(frame, number) {
	return el("li", { class: frame.kind === MARK ? "mark" : frame.known ? "" : "unknown", value: number },
		el("i", { text: frame.kind === MARK ? "" : String(number) }),
		el("code", { text: frame.name }), el("span", { text: whereIs(frame) + (frame.kind === INLINED ? " (inlined)" : "") }));
}

/* Of functions that call each other in turn, one turn and how many more. */
function stackItems(node, isEndSaid) {
	const stack = stackOf(node).filter(f => !isEndSaid || f.kind !== MARK), items = [];
	for (let i = 0; i < stack.length;) {
		const [nr, times] = turns.get(node) || [1, 1];
		items.push(...stack.slice(i, i + nr).map((frame, k) => stackItem(frame, i + k)));
		if (times > 1)
			items.push(el("li", { class: "mark" }, el("i"),
				el("code", { text: `and ${nr > 1 ? `these ${nr} lines ` : ""}${count(times - 1)} times more` })));
		for (const end = i + nr * times; i < end; i++)
			node = nodeParent[node];
	}
	return items;
}

/* The functions of a stack as a list; the middle of a long one is folded. */
function stackList(node, isEndSaid) {
	const items = stackItems(node, isEndSaid);
	const list = el("ol", { class: "stack" }, ...items);

	if (items.length > STACK_SHOWN + 4) {
		const folded = items.slice(STACK_SHOWN - STACK_OUTER, -STACK_OUTER);
		const button = el("button", { type: "button", text: `\u22ef ${folded.length} frames \u22ef`,
			click: () => button.parentElement.replaceWith(...folded) });
		folded[0].before(el("li", { class: "fold" }, button));
		folded.forEach(item => item.remove());
	}
	return list;
}

function callerDetails(shown, caller) {
	const process = shown.whole || shown;
	if (caller === process.nr)
		return el("p", { class: "note", text: "In a part of the run, callers that allocated little are counted together." });
	const n = name => process[name][caller];
	const facts = [
		["Leaked", n("leaked_bytes") && inBlocks(n("leaked_bytes"), n("leaked_blocks"))],
		["of it indirectly", n("through_bytes") && inBlocks(n("through_bytes"), n("through_blocks"))],
		["Possibly leaked", n("possible_blocks") && inBlocks(n("possible_bytes"), n("possible_blocks"))],
		["Lost with blocks of others", n("indirect_blocks") && inBlocks(n("indirect_bytes"), n("indirect_blocks"))],
		["No verdict", n("unsure_blocks") && inBlocks(n("unsure_bytes"), n("unsure_blocks"))],
		["Suppressed", n("suppressed_blocks") && inBlocks(n("suppressed_bytes"), n("suppressed_blocks"))],
		["Live", n("live_blocks") && inBlocks(n("live_bytes"), n("live_blocks"))],
		["At the peak", n("peak_bytes") && ofBytes(n("peak_bytes"))],
		["Allocated", inBlocks(n("alloc_bytes"), n("allocs"))],
		["Freed", plural(n("frees"), "block")],
		["Average size", n("allocs") && ofBytes(n("alloc_bytes") / n("allocs"))],
		["Temporary", n("temporary") && `${plural(n("temporary"), "block")} (${percent(n("temporary"), n("allocs"))})`],
		["Since the last report", n("grown") && ofBytes(n("grown"))],
		["Allocated by", process.functionOf(caller)],
	].filter(f => f[1]);
	const list = el("dl", { class: "facts-list" }, ...facts.map(([label, text]) => el("div", {}, el("dt", { text: label }), el("dd", { text }))));
	const cut = process.cutOf(caller);
	const stack = process.node[caller] >= 0 ? stackList(process.node[caller], true) : null;
	return el("div", { class: "details" }, el("div", {}, stack,
		cut ? el("p", { class: "note", text: `Stack: ${whyCut(cut)}.` }) : null, whyList(process, process.whys.get(caller))), list);
}

/* Who holds a block: from the root to the block. */
function whyList(process, why) {
	if (!why || !why.chain.length)
		return null;
	const steps = why.chain.map(step => {
		const place = process.stacks.has(step.stack) ? process.stacks.get(step.stack).place : null;
		return el("li", {}, (step.blocks > 1 ? `${count(step.blocks)} blocks, the last ` : "") + bytes(step.size) +
			(place ? ` of ${shortName(place.name)}` : ""),
			el("span", { text: step.address + (step.offset ? `, by a pointer to its byte ${count(step.offset)}` : "") }));
	});
	if (why.left_out)
		steps.splice(Math.floor(steps.length / 2), 0, el("li", { text: `\u2026 ${count(why.left_out)} more blocks \u2026` }));
	return el("div", { class: "why" }, el("h4", { text: `One of its blocks (${why.verdict}) is held by ${rootName(why.root)}` }),
		el("ol", {}, ...steps));
}

function rootName(root) {
	const object = root.object ? baseName(root.object) : "";
	const offset = root.offset && root.offset !== "0x0" ? "+" + root.offset : "";

	switch (root.kind) {
	case "global":
	case "tls":
		return (root.variable ? `${root.variable}${offset} in ${object}` : `the data of ${object} (${root.offset})`) +
			(root.kind === "tls" ? `, thread-local, thread ${root.thread}` : "");
	case "stack":
		return `the stack of thread ${root.thread}`;
	case "thread":
		return `data of thread ${root.thread}`;
	case "register":
		return `register ${root.register} of thread ${root.thread}`;
	case "kernel":
		return root.descriptor === undefined ? "a timer, in the kernel" : `the kernel, for descriptor ${root.descriptor}`;
	case "lost":
		return "nothing any more";
	case "memory":
		return `memory at ${root.address}${object ? " in " + object : ""}`;
	default:
		return "a root that was not kept";
	}
}
