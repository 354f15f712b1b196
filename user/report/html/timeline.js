/* Live bytes and live blocks over time, with the peak and the markers. */

const LINES = [
	{ id: "bytes", label: "Live bytes", height: 170, nrTicks: 3.8, format: bytes, base: 1024 },
	{ id: "blocks", label: "Live blocks", height: 84, nrTicks: 2.5, format: count, base: 1000 },
];
const HOLDER_LINE = { label: "Who held it", height: 130, nrTicks: 3, format: bytes, base: 1024 };
const LEFT = 76, RIGHT = 14, TOP = 24;
const TIME_WIDTH = 40; /* of a label of the time axis, in pixels */

/* From 0 up to @most, each @step. */
function stepsTo(most, step) {
	return Array.from({ length: Math.floor(most / step * 1.0001) + 1 }, (x, i) => i * step);
}

/* About @wanted steps up to @most, at round numbers. */
function ticks(most, wanted, base) {
	const unit = base ** Math.floor(Math.log(Math.max(most, 1)) / Math.log(base));
	const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500];
	return stepsTo(most, (steps.find(s => s * unit >= most / wanted) || 1000) * unit);
}

const TIME_STEPS = [1, 1e3, 1e6].flatMap(unit => [1, 2, 5, 10, 20, 50, 100, 200, 500].map(n => n * unit))
	.concat([1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800]
		.map(s => s * 1e9));

const timeTicks = (most, wanted) => stepsTo(most, TIME_STEPS.find(s => s >= most / wanted) || 30 * 86400e9);

/* The points of the columns @t: one object for each. */
const pointsOf = t => t.time_ns.map((time, i) => Object.fromEntries(Object.entries(t).map(([key, column]) => [key, column[i]])));

/* A label of the time axis around @x; one that would leave a picture of @width ends at its edge. */
function timeLabel(at, x, y, width) {
	const isAtEnd = x + TIME_WIDTH / 2 > width;
	return svg("text", { x: isAtEnd ? width : x, y, class: "tick", "text-anchor": !at ? "start" : isAtEnd ? "end" : "middle" },
		at ? duration(at) : "0");
}

class Timeline {
	/* @chosen as that of Brush. */
	constructor(panel, chosen, askFor) {
		this.panel = panel;
		this.askFor = askFor;
		this.brush = new Brush(this, chosen);
		new ResizeObserver(() => this.draw()).observe(panel);
		panel.addEventListener("mousemove", e => this.point(e));
		panel.addEventListener("mouseleave", () => this.leave());
	}

	show(process) {
		const { timeline, totals, slices } = process.data;
		this.points = pointsOf(timeline);
		const [first, last] = [this.points[0], this.points[this.points.length - 1]];
		/* A list of events has no duration: only the times of the events. */
		this.start = report.duration_ns ? report.time_ns - report.duration_ns : first ? first.time_ns : 0;
		if (first)
			this.start = Math.min(this.start, first.time_ns, slices && slices.length ? slices[0].time_ns : Infinity);
		this.length = Math.max(1, last ? last.time_ns - this.start : 0, report.duration_ns ? report.time_ns - this.start : 0);
		this.peak = totals.peak_bytes ? { at: totals.peak_time_ns - this.start, bytes: totals.peak_bytes } : null;
		this.marks = report.marks.filter(m => m.time_ns >= this.start && m.time_ns <= this.start + this.length);
		byId("timeline").hidden = this.points.length < 2;
		this.brush.show(process);
		this.holders = holdersOf(process);
		this.draw();
	}

	/* x of a time since the start, in pixels. */
	x(ns) {
		return LEFT + (this.width - LEFT - RIGHT) * ns / this.length;
	}

	draw() {
		this.width = this.panel.clientWidth;
		if (!this.points || this.points.length < 2 || this.width < 100)
			return;
		replace(this.panel, ...LINES.map((line, i) => this.drawLine(line, !this.holders && i === LINES.length - 1)),
			this.holders ? this.drawHolders() : null);
		showHolders(this.holders, this.askFor);
		byId("timeline").dataset.points = this.points.length;
		this.brush.draw();
	}

	/* [picture, y of a number, its bottom]: title, lines of numbers, and for the last picture the times. */
	drawFrame(line, highest, isLast) {
		const most = Math.max(1, highest) * 1.04;
		const bottom = TOP + line.height;
		const y = n => bottom - line.height * n / most;
		const picture = svg("svg", { class: "line", width: this.width, height: bottom + (isLast ? 24 : 14), role: "img",
			"aria-label": `${line.label} over ${duration(this.length)}, at most ${line.format(highest)}` });
		picture.append(svg("text", { x: 0, y: 11, class: "line-title" }, line.label));
		for (const at of ticks(most, line.nrTicks, line.base))
			picture.append(svg("line", { x1: LEFT, x2: this.width - RIGHT, y1: y(at), y2: y(at), class: "grid" }),
				svg("text", { x: LEFT - 9, y: y(at) + 4, class: "tick", "text-anchor": "end" }, line.format(at)));
		if (isLast)
			for (const at of timeTicks(this.length, this.width / 130))
				picture.append(timeLabel(at, this.x(at), bottom + 17, this.width));
		return [picture, y, bottom];
	}

	/* What follows the pointer and the keys. */
	drawCursors(picture, line, bottom) {
		picture.append(svg("rect", { class: "brush", x: -9, width: 0, y: TOP, height: line.height }),
			svg("line", { class: "cursor", y1: TOP, y2: bottom, x1: -9, x2: -9 }));
		return picture;
	}

	drawHolders() {
		const { begins } = this.brush, { holders } = this;
		const at = Array.from({ length: begins.length + 1 }, (e, i) => this.x(i < begins.length ? this.brush.from(i) : this.length));
		const highest = Math.max(...at.map((e, i) => sum(holders.map(h => Math.max(0, h.live[i])))));
		const [picture, y, bottom] = this.drawFrame(HOLDER_LINE, highest, true);

		picture.append(...holderAreas(holders, at, y));
		return this.drawCursors(picture, HOLDER_LINE, bottom);
	}

	drawLine(line, isLast) {
		const value = line.id === "bytes" ? p => p.bytes : p => p.blocks;
		const highest = line.id === "bytes" ? Math.max(this.peak ? this.peak.bytes : 0, ...this.points.map(p => p.max_bytes))
			: Math.max(...this.points.map(value));
		const [picture, y, bottom] = this.drawFrame(line, highest, isLast);
		this.drawArea(picture, value, y, line);
		this.lastMark = -Infinity;
		for (const mark of this.marks)
			this.drawMark(picture, mark, bottom, !isLast);
		if (this.peak && line.id === "bytes")
			this.drawPeak(picture, y);
		return this.drawCursors(picture, line, bottom);
	}

	/* Values hold until the next point. Behind them is the band from the least to the most. */
	drawArea(picture, value, y, line) {
		const at = p => this.x(p.time_ns - this.start).toFixed(1);
		const end = this.x(this.length).toFixed(1);
		const last = this.points[this.points.length - 1];
		const path = `M${LEFT} ${y(0).toFixed(1)}` + this.points.map(p => `H${at(p)}V${y(value(p)).toFixed(1)}`).join("") + `H${end}`;
		picture.append(svg("path", { class: "area", d: `${path}V${y(0).toFixed(1)}Z` }));
		if (line.id === "bytes")
			picture.append(svg("path", { class: "band", d: this.points.map(p =>
				`M${at(p)} ${y(p.min_bytes).toFixed(1)}V${y(p.max_bytes).toFixed(1)}`).join("") }));
		picture.append(svg("path", { class: "stroke", d: path }),
			svg("circle", { class: "dot", r: 2.5, cx: end, cy: y(value(last)) }));
	}

	drawPeak(picture, y) {
		const x = this.x(this.peak.at);
		const middle = Math.max(175, Math.min(x, this.width - RIGHT - 90));
		picture.append(svg("circle", { class: "peak", r: 4, cx: x, cy: y(this.peak.bytes) }),
			svg("text", { class: "peak-text", x: middle, y: 11, "text-anchor": "middle" },
				`peak ${ofBytes(this.peak.bytes)} after ${duration(this.peak.at)}`));
	}

	drawMark(picture, mark, bottom, hasText) {
		const x = this.x(mark.time_ns - this.start);
		picture.append(svg("line", { class: "mark-line", x1: x, x2: x, y1: TOP - 4, y2: bottom }));
		picture.lastChild.append(svg("title", {}, mark.name));
		/* Names that would lie on the one before are left out; the line has a title. */
		if (hasText && x - this.lastMark > 90) {
			const name = mark.name.length > 24 ? mark.name.slice(0, 23) + "\u2026" : mark.name;
			picture.append(svg("text", { class: "mark-text", x: x + 4, y: TOP + 4 }, name));
			this.lastMark = x;
		}
	}

	/* Time since the start at the pointer; it may be out of the picture. */
	timeAt(event) {
		return (event.clientX - this.panel.getBoundingClientRect().left - LEFT) / (this.width - LEFT - RIGHT) * this.length;
	}

	point(event) {
		const ns = this.timeAt(event);
		const x = this.x(ns);
		if (!this.points || ns < 0 || ns > this.length)
			return this.leave();
		let here = null;
		for (const p of this.points)
			if (p.time_ns - this.start <= ns)
				here = p;
		this.panel.querySelectorAll(".cursor").forEach(c => { c.setAttribute("x1", x); c.setAttribute("x2", x); });
		showFloating(event, el("b", { text: duration(ns) }), el("span", { text: here ? inBlocks(here.bytes, here.blocks) : "nothing yet" }),
			here ? el("span", { class: "muted", text: `${bytes(here.min_bytes)} to ${bytes(here.max_bytes)} around here` }) : null);
	}

	leave() {
		byId("tip").hidden = true;
		this.panel.querySelectorAll(".cursor").forEach(c => { c.setAttribute("x1", -9); c.setAttribute("x2", -9); });
	}
}
