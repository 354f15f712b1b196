/* A part of the run: what each caller did in some neighbouring slices of time, for the graph and the table. */

const PART_KINDS = [
	REPORT_KINDS.find(k => k.id === "total"),
	REPORT_KINDS.find(k => k.id === "calls"),
	{ id: "growth", label: "Growth", column: "growth", bytes: true,
	  help: "Bytes that callers held more at the end of the part than at its start" },
];

const PART_COLUMNS = [
	{ id: "alloc_bytes", label: "Allocated", format: ofBytes, bar: true },
	{ id: "allocs", label: "Calls", format: ofCalls },
	{ id: "growth", label: "Growth", format: ofBytes },
];

/* Slices [first, end) of a process. It stands for the process in the graph and in the table. */
class Part extends Process {
	constructor(whole, first, end) {
		const nr = whole.nr + 1;
		super({ ...whole.data, callers: { nr }, stacks: [], whys: [] });
		this.whole = whole;
		this.columns = PART_COLUMNS;
		this.growth = new Float64Array(nr);
		for (const name of ["node", "truncated", "function"])
			this[name].set(whole[name]);
		this.node[whole.nr] = -1; /* callers that are not in the file one by one */
		whole.data.slices.slice(first, end).forEach(slice => this.add(slice));
		this.net = sum(Array.from(this.growth));
		this.nr = this.allocs[whole.nr] || this.growth[whole.nr] ? nr : whole.nr;
	}

	add(slice) {
		const callers = column(slice.caller, slice.nr, Int32Array);
		const columns = ["allocs", "alloc_bytes", "live_bytes"].map(name => column(slice[name], slice.nr, Float64Array));
		let caller = 0;

		for (let i = 0; i < slice.nr; i++) {
			caller += callers[i];
			this.allocs[caller] += columns[0][i];
			this.alloc_bytes[caller] += columns[1][i];
			this.growth[caller] += columns[2][i];
		}
	}

	cutOf(caller) {
		return caller === this.whole.nr ? "others" : super.cutOf(caller);
	}

	functionOf(caller) {
		return caller === this.whole.nr ? "" : super.functionOf(caller);
	}
}

/* The choice of a part, by pointer and keys, on the picture of the timeline. */
class Brush {
	constructor(timeline, chosen) {
		const { panel } = timeline;
		this.timeline = timeline;
		this.chosen = chosen; /* (first, end): slices, or -1, -1 for the whole run */
		this.begins = [];
		this.clear();
		panel.addEventListener("pointerdown", e => this.press(e));
		panel.addEventListener("pointermove", e => this.drag(e));
		panel.addEventListener("pointerup", e => this.release(e));
		panel.addEventListener("pointercancel", () => { this.anchor = null; });
		panel.addEventListener("keydown", e => this.type(e));
	}

	get isOn() {
		return this.begins.length > 1;
	}

	show(process) {
		const { panel, start } = this.timeline;
		const bySlider = { tabindex: 0, role: "slider", "aria-valuemin": 0, "aria-label": "Part of the run that the graph and the table show",
			"aria-describedby": "part-text", "aria-keyshortcuts": "ArrowLeft ArrowRight Shift+ArrowLeft Shift+ArrowRight Escape" };

		this.begins = (process.data.slices || []).map(s => Math.max(0, s.time_ns - start));
		this.clear();
		panel.dataset.slices = this.begins.length;
		for (const [name, value] of Object.entries(bySlider))
			if (this.isOn)
				panel.setAttribute(name, value);
			else
				panel.removeAttribute(name);
	}

	clear() {
		this.first = this.end = -1;
		this.anchor = null;
	}

	/* The slice of a time since the start. */
	at(ns) {
		let i = this.begins.length - 1;
		while (i > 0 && this.begins[i] > ns)
			i--;
		return i;
	}

	from(first) {
		return first > 0 ? this.begins[first] : 0;
	}

	to(end) {
		return end < this.begins.length ? this.begins[end] : this.timeline.length;
	}

	choose(first, end) {
		this.set(first, end);
		this.chosen(first, end);
	}

	set(first, end) {
		this.first = first;
		this.end = end;
		this.draw();
	}

	press(event) {
		const ns = this.timeline.timeAt(event);
		if (!this.isOn || event.button || ns < 0 || ns > this.timeline.length)
			return;
		this.anchor = ns;
		this.timeline.panel.setPointerCapture(event.pointerId);
	}

	/* All slices between where the pointer went down and where it is. */
	drag(event) {
		if (this.anchor === null)
			return;
		const ns = Math.max(0, Math.min(this.timeline.timeAt(event), this.timeline.length));
		this.set(this.at(Math.min(ns, this.anchor)), this.at(Math.max(ns, this.anchor)) + 1);
	}

	release(event) {
		if (this.anchor === null)
			return;
		this.drag(event);
		this.anchor = null;
		this.chosen(this.first, this.end);
	}

	type(event) {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		const last = this.begins.length;
		if (!this.isOn || event.ctrlKey || event.metaKey || event.altKey || !step && event.key !== "Escape")
			return;
		event.preventDefault();
		if (!step)
			this.choose(-1, -1);
		else if (this.first < 0)
			this.choose(step > 0 ? 0 : last - 1, step > 0 ? 1 : last);
		else if (event.shiftKey)
			this.choose(this.first, Math.max(this.first + 1, Math.min(this.end + step, last)));
		else if (this.first + step >= 0 && this.end + step <= last)
			this.choose(this.first + step, this.end + step);
	}

	draw() {
		const { timeline } = this, { panel } = timeline;
		const [x, end] = this.first < 0 ? [-9, -9] : [timeline.x(this.from(this.first)), timeline.x(this.to(this.end))];
		panel.querySelectorAll(".brush").forEach(r => { r.setAttribute("x", x); r.setAttribute("width", end - x); });
		if (!this.isOn)
			return;
		panel.setAttribute("aria-valuemax", this.begins.length - 1);
		panel.setAttribute("aria-valuenow", Math.max(0, this.first));
		panel.setAttribute("aria-valuetext", this.first < 0 ? "whole run" : this.text());
	}

	/* Slices in words, "3-5", and back. */
	get spot() {
		return this.first < 0 ? "" : `${this.first}-${this.end}`;
	}

	goTo(spot) {
		const [first, end] = spot.split("-").map(Number);
		if (this.isOn && first >= 0 && end > first && end <= this.begins.length)
			this.choose(first, end);
	}

	text() {
		return `${duration(this.from(this.first))} to ${duration(this.to(this.end))}`;
	}
}
