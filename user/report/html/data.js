"use strict";
/* The data of the report: frames, stacks, and the callers of each process with their numbers. */

const INLINED = 1, MARK = 2;
const MOST_FRAMES = 127; /* of a stack */

const baseName = path => path.slice(path.lastIndexOf("/", path.length - 2) + 1);

const WHY_CUT = {
	"depth": "", /* take() */
	"no-unwind-info": "no unwind information",
	"unsupported": "unwind information not supported",
	"unreadable": "stack memory not readable",
	"not-growing": "the stack did not go on",
	"unmapped": "code in no known file",
	"limit": "a table was full",
	"frame-pointers": "found by frame pointers: functions may be left out",
	"stale-mappings": "files were mapped meanwhile",
	"lost": "lost",
	"others": "of callers that allocated little",
	"none": "not taken",
};

const whyCut = word => WHY_CUT[word] || word;

/* Stacks are paths in a tree, nodeFrame and nodeParent; a parent has a smaller number than its children. */
let report, nodeFrame, nodeParent, modules, frames;
/* Functions that call each other in turn, by the node of the innermost one: [functions of a turn, turns]. */
let turns;

function makeFrame([fn, file, line, module, kind, offset]) {
	const frame = { lower: null, file: file < 0 ? "" : report.texts[file], line, module, kind, known: fn >= 0 && kind !== MARK };
	if (kind === MARK)
		frame.name = `[${/^(cut|found) /.test(whyCut(report.texts[fn])) ? "" : "cut: "}${whyCut(report.texts[fn])}]`;
	else if (fn >= 0)
		frame.name = report.texts[fn];
	else
		frame.name = module < 0 ? `${offset} in no file` : `${modules[module].name}+${offset}`;
	return frame;
}

function take(data) {
	report = data;
	/* The page of heaptap system has no callers. */
	if (report.system)
		return;
	nodeFrame = Int32Array.from(report.nodes.frame);
	nodeParent = Int32Array.from(report.nodes.up, (up, i) => i - up);
	turns = new Map(report.nodes.turns.map(([node, ...turn]) => [node, turn]));
	modules = report.modules.map(m => ({ path: m.path, buildId: m.build_id, name: baseName(m.path) }));
	/* The depth that was asked for may be the most that there is. */
	const depths = nodeFrame.map(() => 0);
	nodeParent.forEach((up, i) => { depths[i] = (up < 0 ? 0 : depths[up]) + (report.frames[nodeFrame[i]][4] ? 0 : 1); });
	WHY_CUT.depth = depths.some(n => n >= MOST_FRAMES) ? `cut at ${MOST_FRAMES} frames, the most that are taken`
		: `cut at the depth that was asked for (--depth ${MOST_FRAMES} has more)`;
	frames = report.frames.map(makeFrame);
}

take(JSON.parse(document.getElementById("report").textContent));

/* The frames of a stack, innermost first. */
function stackOf(node) {
	const list = [];
	for (; node >= 0; node = nodeParent[node])
		list.push(frames[nodeFrame[node]]);
	return list;
}

/* Numbers that a caller has; columns of zeros are not in the file. */
const COLUMNS = ["allocs", "frees", "alloc_bytes", "live_blocks", "live_bytes", "peak_bytes", "temporary", "grown",
	"mismatched", "bad", "definite_blocks", "definite_bytes", "indirect_blocks", "indirect_bytes",
	"possible_blocks", "possible_bytes", "reachable_blocks", "reachable_bytes", "unsure_blocks", "unsure_bytes",
	"through_blocks", "through_bytes", "suppressed_blocks", "suppressed_bytes"];

/* A column of the file: a list, one number for all callers, or nothing for zeros. */
function column(data, nr, Type) {
	return Array.isArray(data) ? Type.from(data) : new Type(nr).fill(data || 0);
}

class Process {
	constructor(data) {
		const { nr } = data.callers;
		this.data = data;
		this.nr = nr;
		for (const name of ["node", "truncated", "function", "place"])
			this[name] = column(data.callers[name], nr, Int32Array);
		for (const name of COLUMNS)
			this[name] = column(data.callers[name], nr, Float64Array);
		this.sums = new Map();
		/* Indirect blocks count for the caller whose lost block led to them: that is where the mistake is. */
		this.leaked_bytes = this.definite_bytes.map((n, i) => n + this.through_bytes[i]);
		this.leaked_blocks = this.definite_blocks.map((n, i) => n + this.through_blocks[i]);
		/* Ids have 64 bits, and lose some of them here: in both places the same. */
		this.stacks = new Map(data.stacks.map(([id, node, place]) => [id, { node, place: stackOf(node)[place] }]));
		this.whys = new Map(data.whys.map(w => [w.caller, w.why]));
	}

	get name() {
		return `${this.data.comm} (pid ${this.data.pid})`;
	}

	functionOf(caller) {
		return report.texts[this.function[caller]];
	}

	/* The frame that names a caller: the first function of the program's own code. */
	placeOf(caller) {
		return stackOf(this.node[caller])[this.place[caller]] || null;
	}

	/* The sum of a column. Callers that shrank since the last report do not count. */
	sum(name) {
		if (!this.sums.has(name))
			this.sums.set(name, this[name].reduce((all, n) => n > 0 ? all + n : all, 0));
		return this.sums.get(name);
	}

	has(name) {
		return this.sum(name) > 0 || this[name].some(n => n);
	}

	/* For each node of the tree of stacks: what a column has there and further in. */
	nodeTotals(name) {
		const totals = new Float64Array(nodeFrame.length);
		for (let i = 0; i < this.nr; i++)
			if (this.node[i] >= 0 && this[name][i] > 0)
				totals[this.node[i]] += this[name][i];
		for (let i = totals.length; i-- > 0;)
			if (nodeParent[i] >= 0)
				totals[nodeParent[i]] += totals[i];
		return totals;
	}

	/* Why the stack of a caller is cut, or "". */
	cutOf(caller) {
		const text = this.truncated[caller];
		return text < 0 ? "" : report.texts[text];
	}
}

/* What can be counted, in the order of the tabs. */
const REPORT_KINDS = [
	{ id: "leaked", label: "Leaked", column: "leaked_bytes", bytes: true,
	  help: "Bytes of definitely lost blocks, and of blocks lost with them" },
	{ id: "possible", label: "Possibly leaked", column: "possible_bytes", bytes: true,
	  help: "Bytes that only pointers into the middle of a block lead to" },
	{ id: "live", label: "Live", column: "live_bytes", bytes: true, help: "Bytes not freed at the time of the report" },
	{ id: "peak", label: "At the peak", column: "peak_bytes", bytes: true,
	  help: "Bytes that were live when the process had most" },
	{ id: "total", label: "Allocated", column: "alloc_bytes", bytes: true, help: "Bytes of all allocations" },
	{ id: "calls", label: "Calls", column: "allocs", help: "Number of all allocations" },
	{ id: "temporary", label: "Temporary", column: "temporary",
	  help: "Blocks that were freed before their thread allocated another one" },
	{ id: "blocks", label: "Live blocks", column: "live_blocks", help: "Number of blocks not freed" },
	{ id: "grown", label: "Grown", column: "grown", bytes: true, help: "Bytes more than at the last report" },
];

const sum = list => list.reduce((a, b) => a + b, 0);
