/* Many reports of a long run: the live bytes over time with the line through them, and the growth of each caller. */

const isSeries = Boolean(report.series);

class SeriesProcess extends Process {
	constructor(data) {
		super({ ...data, callers: { ...data.callers, truncated: -1 }, stacks: [], whys: [], timeline: { time_ns: [] }, sizes: [], ages: [], errors: [],
			totals: {} });
		for (const name of ["first_bytes", "last_bytes", "per_hour", "error", "significant", "steps", "grown"])
			this[name] = column(data.callers[name], this.nr, Float64Array);
		this.growing = this.per_hour.map(n => Math.max(0, n));
		this.shrinking = this.per_hour.map(n => Math.max(0, -n));
		this.times = data.points.map(p => report.series[p[0]].after_ns);
	}

	get name() {
		return this.data.comm + (this.data.pid ? ` (pid ${this.data.pid})` : "");
	}
}

const SERIES_KINDS = [
	{ id: "growing", label: "Growing, per hour", column: "growing", bytes: true, help: "Slope of the line through the live bytes of each caller" },
	{ id: "shrinking", label: "Shrinking, per hour", column: "shrinking", bytes: true, help: "Callers that hold less and less" },
	{ id: "last", label: "Live at the end", column: "last_bytes", bytes: true, help: "Live bytes in the last report" },
	{ id: "first", label: "Live at the start", column: "first_bytes", bytes: true, help: "Live bytes in the first report" },
];

const SERIES_COLUMNS = [
	{ id: "per_hour", label: "Per hour", format: signed(bytes), class: "bad" },
	{ id: "error", label: "\u00b1", format: n => n < 0 ? "unknown" : bytes(n), wide: true, isSide: true },
	{ id: "first_bytes", label: "First", format: bytes, wide: true, isSide: true },
	{ id: "last_bytes", label: "Last", format: bytes, isSide: true },
	{ id: "grown", label: "Steps grown", format: count, wide: true, isSide: true },
];

/* "+10.1 MiB an hour ± 20 KiB", and whether that is more than noise. */
function slopeText(line) {
	const error = line.error < 0 ? ", uncertain (fewer than 3 reports)" : line.error ? ` \u00b1 ${bytes(line.error)}` : "";
	return `${signed(bytes)(line.per_hour)} an hour${error}` + (line.error >= 0 && !line.significant && line.per_hour ? ", not significant" : "");
}

/* Points as a step curve, with the straight line through them. */
function seriesPlot(times, values, label, width, height) {
	const length = Math.max(1, times[times.length - 1] - times[0]);
	const most = Math.max(1, ...values) * 1.06;
	const bottom = TOP + height;
	const x = ns => LEFT + (width - LEFT - RIGHT) * (ns - times[0]) / length;
	const y = n => bottom - height * Math.max(0, Math.min(n, most)) / most;
	const picture = svg("svg", { class: "line", width, height: bottom + 24, role: "img",
		"aria-label": `${label} in ${times.length} reports, from ${bytes(values[0])} to ${bytes(values[values.length - 1])}` });
	picture.append(svg("text", { x: 0, y: 11, class: "line-title" }, label));
	for (const at of ticks(most, height / 45, 1024))
		picture.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at), class: "grid" }),
			svg("text", { x: LEFT - 9, y: y(at) + 4, class: "tick", "text-anchor": "end" }, bytes(at)));
	for (const at of timeTicks(length, width / 130))
		picture.append(timeLabel(at, x(at + times[0]), bottom + 17, width));
	const path = values.map((n, i) => `${i ? "L" : "M"}${x(times[i]).toFixed(1)} ${y(n).toFixed(1)}`).join("");
	picture.append(svg("path", { class: "stroke", d: path }));
	values.forEach((n, i) => {
		const dot = svg("circle", { class: "dot", r: values.length > 120 ? 1.5 : 3, cx: x(times[i]).toFixed(1), cy: y(n).toFixed(1) });
		dot.append(svg("title", {}, `${duration(times[i])}: ${bytes(n)}`));
		picture.append(dot);
	});
	const mean = list => sum(list) / list.length;
	const [mx, my] = [mean(times), mean(Array.from(values))];
	const spread = sum(times.map(t => (t - mx) ** 2));
	const slope = spread ? sum(times.map((t, i) => (t - mx) * (values[i] - my))) / spread : 0;
	if (spread)
		picture.append(svg("line", { class: "trend", x1: x(times[0]), x2: x(times[times.length - 1]),
			y1: y(my + slope * (times[0] - mx)), y2: y(my + slope * (times[times.length - 1] - mx)) }));
	return picture;
}

function showSeries(process) {
	const { data } = process;
	const files = report.series, last = files[files.length - 1];
	const lost = sum(files.map(f => f.lost));
	const tone = data.significant && data.per_hour > 0 ? "bad" : data.significant ? "good" : "unknown";
	const worst = process.nr && process.per_hour[0] > 0 ? placeOf(stackOf(process.node[0])) : null;
	const text = data.points.length < 2 ? "In one report only: there is no growth to compute" : slopeText(data);

	replace(byId("verdict"), el("div", { class: "hero " + tone },
		el("h1", {}, el("span", { text: process.name }), el("small", { text: `${count(files.length)} reports in ${duration(last.after_ns)}` })),
		el("p", { class: "headline", "data-slope": data.per_hour }, text,
			...worst && data.per_hour > 0 ? [", most of it from ", ...nameOfPlace(worst)] : []),
		el("p", { class: "also", text: `${bytes(data.first_bytes)}, then ${bytes(data.last_bytes)}; grew in ${data.grown} of ${plural(data.steps, "step")}` })),
	lost ? el("ul", { class: "doubts" }, el("li", { text: `Lost ${plural(lost, "event")}: the numbers are not exact.` })) : null);
	for (const id of ["errors", "sizes", "ages", "about"])
		byId(id).hidden = true;
	byId("timeline").hidden = data.points.length < 2;
	drawSeries(process);
	replace(byId("footer"), el("p", { text: `From ${baseName(files[0].file)} to ${baseName(last.file)}. Made by heaptap ${report.version}. This file needs no network.` }));
}

/* The plots of the process and of the callers that grow most. */
function drawSeries(process) {
	const { data, times } = process, width = byId("timeline-panel").clientWidth;
	const grown = Array.from({ length: Math.min(3, data.callers.plots.length) }, (x, i) => i).filter(i => process.per_hour[i] > 0);

	if (data.points.length < 2 || width < 100)
		return;
	replace(byId("timeline-panel"), seriesPlot(times, data.points.map(p => p[1]), "Live bytes", width, 170),
		...grown.map(i => {
			const place = placeOf(stackOf(process.node[i]));
			return seriesPlot(times, data.callers.plots[i], `#${i + 1} ${place ? shortName(place.name) : "a caller without a stack"}`, width, 70);
		}));
	byId("timeline").dataset.points = data.points.length;
}

function seriesDetails(process, caller) {
	const line = { per_hour: process.per_hour[caller], error: process.error[caller], significant: process.significant[caller] };
	const facts = [["Growth", slopeText(line)], ["First", bytes(process.first_bytes[caller])], ["Last", bytes(process.last_bytes[caller])],
		["Grew in", `${process.grown[caller]} of ${plural(process.steps[caller], "step")}`], ["Allocated by", process.functionOf(caller)]];
	const plot = process.data.callers.plots[caller];

	return el("div", { class: "details" }, el("div", {},
		plot && plot.length > 1 ? seriesPlot(process.times, plot, "Live bytes", Math.max(300, Math.min(720, document.body.clientWidth - 420)), 90) : null,
		stackList(process.node[caller])),
	el("dl", { class: "facts-list" }, ...facts.map(([label, value]) => el("div", {}, el("dt", { text: label }), el("dd", { text: value })))));
}
