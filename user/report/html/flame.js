/* The graph: draws one tree on a canvas, and follows pointer and keys. */

const ROW = 21, MIN_WIDTH = 0.6, TEXT_FROM = 26, PAD = 5;
const MOST_HITS = 1000, MOST_LOOKS = 50000;
const FOLD_FROM = 8, FOLD_KEEPS = 2; /* frames of a chain: fewer are not folded; so many stay at each end */

const SHAPES = [
	{ id: "icicle", label: "icicle", help: "main on top" },
	{ id: "flame", label: "flame graph", help: "main at the bottom", isUp: true },
	{ id: "inverted", label: "inverted", help: "the function that allocates on top", isInverted: true },
];

class Flame {
	constructor(canvas, callbacks) {
		this.canvas = canvas;
		this.box = canvas.parentElement;
		this.context = canvas.getContext("2d");
		this.callbacks = callbacks; /* zoomed(), pointed(id or -1, event) */
		this.root = 0;
		this.focus = -1;
		this.rects = [];
		canvas.addEventListener("mousemove", e => this.point(e));
		canvas.addEventListener("mouseleave", e => this.callbacks.pointed(this.focus, null));
		canvas.addEventListener("click", e => this.click(e));
		canvas.addEventListener("keydown", e => this.press(e));
		canvas.addEventListener("focus", () => this.draw());
		canvas.addEventListener("blur", () => this.draw());
	}

	show(tree, shape) {
		this.tree = tree;
		this.shape = shape;
		this.root = 0;
		this.focus = -1;
		this.folds = new Map();
		this.unfolded = new Set();
		this.draw();
		if (shape.isUp)
			this.box.scrollTop = this.box.scrollHeight;
	}

	mark(matches) {
		this.matches = matches;
		this.draw();
	}

	/* Zoom in, or open what is folded. */
	enter(id) {
		if (this.folds.has(id)) {
			this.unfolded.add(id);
			this.focus = id;
			this.draw();
		} else {
			this.zoom(id);
		}
	}

	zoom(id) {
		this.root = id;
		this.focus = id;
		this.draw();
		this.box.scrollTop = this.shape.isUp ? this.box.scrollHeight : 0;
		this.callbacks.zoomed();
	}

	/* Frames that match, in the order of the graph, as far as MOST_LOOKS frames go. */
	hits() {
		const found = [], todo = [0];
		for (let looks = 0; this.matches && todo.length && found.length < MOST_HITS && looks < MOST_LOOKS; looks++) {
			const id = todo.pop();
			if (id && this.matches[this.tree.key[id]])
				found.push(id);
			todo.push(...this.tree.children(id).slice().reverse());
		}
		return found;
	}

	/* The zoomed frame in words: the place of each frame of its path among its siblings, "0.2.1"; and back. */
	get spot() {
		return this.pathTo(this.root).slice(1).map(id => this.tree.children(this.tree.parent[id]).indexOf(id)).join(".");
	}

	goTo(spot) {
		let id = 0;
		for (const place of spot.split("."))
			id = this.tree.children(id)[place] ?? id;
		this.zoom(id);
	}

	/* From the whole to @id. */
	pathTo(id) {
		const path = [];
		for (; id >= 0; id = this.tree.parent[id])
			path.unshift(id);
		return path;
	}

	nameOf(id) {
		return id ? this.tree.keys.list[this.tree.key[id]].name : "everything";
	}

	/* The frames from @id on of which each has one callee, and that callee has all of its bytes. */
	chainFrom(id) {
		const { tree } = this;
		const chain = [id];
		for (;;) {
			const children = tree.children(id);
			if (children.length !== 1 || tree.total[children[0]] < tree.total[id])
				return chain;
			id = children[0];
			chain.push(id);
		}
	}

	/* Rectangles that are wide enough to be seen: [id, row, x, width, frames folded into it or null]. */
	layOut(width) {
		const { tree } = this;
		const todo = [[this.root, 0, 0, width, null]];
		const isInChain = new Set();
		this.folds.clear();
		this.rects = [];
		this.rows = 0;
		while (todo.length) {
			const rect = todo.pop();
			const [id, row, x, w, folded] = rect;
			let at = x;
			this.rects.push(rect);
			this.rows = Math.max(this.rows, row + 1);
			if (folded) {
				todo.push([tree.children(folded[folded.length - 1])[0], row + 1, x, w, null]);
				continue;
			}
			if (id !== this.root && !isInChain.has(id)) {
				const chain = this.chainFrom(id);
				const inner = chain.slice(FOLD_KEEPS, -FOLD_KEEPS);
				chain.forEach(c => isInChain.add(c));
				if (chain.length >= FOLD_FROM && !this.unfolded.has(inner[0]))
					this.folds.set(inner[0], inner);
			}
			for (const child of tree.children(id)) {
				const part = w * tree.total[child] / tree.total[id];
				if (part < MIN_WIDTH)
					break;
				todo.push([child, row + 1, at, part, this.folds.get(child) || null]);
				at += part;
			}
		}
	}

	draw() {
		const width = this.box.clientWidth;
		if (!this.tree || !width)
			return;
		const ratio = window.devicePixelRatio || 1;
		const style = getComputedStyle(document.documentElement);
		const colour = name => style.getPropertyValue(name).trim();
		this.layOut(width);
		this.height = this.rows * ROW;
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.height = this.height + "px";
		this.canvas.dataset.frames = this.rects.length;
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.context.font = "12px " + colour("--sans");
		this.context.textBaseline = "middle";
		this.letter = this.context.measureText("abcdefghijklmnopqrstuvwxyz_:").width / 28;
		this.ink = { text: colour("--flame-text"), root: colour("--flame-root"), dim: colour("--flame-dim"),
			dimText: colour("--muted"), match: colour("--flame-match"), matchText: colour("--flame-match-text"),
			edge: colour("--panel"), focus: colour("--text"), isDark: document.documentElement.dataset.look === "dark" };
		for (const rect of this.rects)
			this.drawRect(rect);
		this.drawFocus();
	}

	top(row) {
		return this.shape.isUp ? this.height - (row + 1) * ROW : row * ROW;
	}

	drawRect([id, row, x, w, folded]) {
		const { context, ink, tree } = this;
		const key = id ? tree.keys.list[tree.key[id]] : null;
		const isMatch = this.matches && id && (folded || [id]).some(i => this.matches[tree.key[i]]);
		const isDim = this.matches && !isMatch;
		const gap = w > 3 ? 1 : 0;
		context.fillStyle = isMatch ? ink.match : isDim ? ink.dim : key && !folded ? colourOf(key, tree.key[id], ink.isDark) : ink.root;
		context.fillRect(x, this.top(row), w - gap, ROW - 1);
		if (w < TEXT_FROM)
			return;
		const name = folded ? `\u22ef ${folded.length} frames \u22ef` : id ? this.label(key) : this.callbacks.title();
		const room = Math.floor((w - 2 * PAD) / this.letter);
		context.fillStyle = isMatch ? ink.matchText : isDim || folded ? ink.dimText : ink.text;
		context.fillText(name.length > room ? name.slice(0, Math.max(1, room - 1)) + "\u2026" : name, x + PAD,
			this.top(row) + ROW / 2, w - 2 * PAD + 4);
	}

	label(key) {
		return shortName(key.name.startsWith("/") ? baseName(key.name) : key.name);
	}

	drawFocus() {
		const rect = this.rects.find(r => r[0] === this.focus);
		if (!rect || document.activeElement !== this.canvas)
			return;
		this.context.strokeStyle = this.ink.focus;
		this.context.lineWidth = 2;
		this.context.strokeRect(rect[2] + 1, this.top(rect[1]) + 1, Math.max(2, rect[3] - 3), ROW - 3);
	}

	at(event) {
		const box = this.canvas.getBoundingClientRect();
		const x = event.clientX - box.left, y = event.clientY - box.top;
		const row = Math.floor(this.shape.isUp ? (this.height - y) / ROW : y / ROW);
		const rect = this.rects.find(r => r[1] === row && x >= r[2] && x < r[2] + r[3]);
		return rect ? rect[0] : -1;
	}

	point(event) {
		const id = this.at(event);
		this.canvas.classList.toggle("hit", id >= 0);
		this.callbacks.pointed(id, event);
	}

	/* A click on the frame that fills the graph goes one step out. */
	click(event) {
		const id = this.at(event);
		if (id < 0)
			return;
		if (id === this.root)
			this.zoom(Math.max(0, this.tree.parent[id]));
		else
			this.enter(id);
		this.callbacks.pointed(this.focus, null);
	}

	press(event) {
		const id = this.focus < 0 ? this.root : this.focus;
		const inwards = this.shape.isUp ? "ArrowUp" : "ArrowDown";
		const outwards = this.shape.isUp ? "ArrowDown" : "ArrowUp";
		const siblings = id === this.root ? [id] : this.tree.children(this.tree.parent[id]);
		const here = siblings.indexOf(id);
		const steps = {
			[inwards]: () => this.move(this.tree.children((this.folds.get(id) || [id]).at(-1))[0]),
			[outwards]: () => this.move(id === this.root ? id : this.shownParent(id)),
			ArrowLeft: () => this.move(siblings[here - 1]),
			ArrowRight: () => this.move(siblings[here + 1]),
			Enter: () => this.enter(id),
			Backspace: () => this.zoom(Math.max(0, this.tree.parent[this.root])),
			Escape: () => this.zoom(Math.max(0, this.tree.parent[this.root])),
			Home: () => this.zoom(0),
		};
		if (!steps[event.key] || event.ctrlKey || event.metaKey || event.altKey)
			return;
		event.preventDefault();
		steps[event.key]();
		this.callbacks.pointed(this.focus, null);
	}

	/* The frame outside of @id, or the fold that contains it. */
	shownParent(id) {
		const parent = this.tree.parent[id];
		for (const [first, folded] of this.folds)
			if (folded.at(-1) === parent)
				return first;
		return parent;
	}

	move(id) {
		if (id === undefined || !this.rects.some(r => r[0] === id))
			return;
		this.focus = id;
		this.draw();
	}
}

/* Modules have colours in the order of what they hold, so that the legend is short. Further ones are grey. */
const HUES = [[204, 36], [154, 26], [28, 46], [268, 30], [336, 34], [52, 40], [182, 32], [232, 34]];
let moduleRank = [];
let plainColour = [210, 6]; /* of modules without a rank */

function rankModules(process, column) {
	const held = new Float64Array(modules.length);

	const totals = process.nodeTotals(column);
	for (let i = 0; i < totals.length; i++) {
		const { module } = frames[nodeFrame[i]];
		if (module >= 0 && (nodeParent[i] < 0 || frames[nodeFrame[nodeParent[i]]].module !== module))
			held[module] += totals[i];
	}
	const order = modules.map((m, i) => i).filter(i => held[i] > 0).sort((a, b) => held[b] - held[a]);
	moduleRank = new Array(modules.length).fill(-1);
	order.slice(0, HUES.length).forEach((module, rank) => { moduleRank[module] = rank; });
	return order;
}

/* The lightness differs a little from key to key, so that neighbours can be told apart. */
function colourOf(key, number, isDark) {
	const rank = key.module >= 0 ? moduleRank[key.module] : -1;
	const step = (number * 2654435761 >>> 0) % 5;

	if (key.isMark)
		return isDark ? "hsl(30 4% 32%)" : "hsl(30 6% 80%)";
	const [hue, saturation] = rank >= 0 && rank !== undefined ? HUES[rank] : plainColour;
	return isDark ? `hsl(${hue} ${saturation}% ${29 + 2 * step}%)` : `hsl(${hue} ${saturation + 20}% ${75 + 2.2 * step}%)`;
}
