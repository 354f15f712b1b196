/* Who held the memory over time: live bytes of the places that held most, one above the other. */

const HOLDERS = HUES.length;

/* Of a process: for each place its live bytes at the beginning and at the end of each slice, most first; null without slices. */
function holdersOf(process) {
	const { slices } = process.data;
	const byName = new Map();
	let at = 0;

	if (!slices || slices.length < 2)
		return null;
	for (const slice of slices) {
		const callers = column(slice.caller, slice.nr, Int32Array), grown = column(slice.live_bytes, slice.nr, Float64Array);
		let caller = 0;
		at++;
		for (let i = 0; i < slice.nr; i++) {
			caller += callers[i];
			const place = caller < process.nr ? process.placeOf(caller) : null;
			const name = caller === process.nr ? "others" : place ? place.name : "no stack";
			if (!byName.has(name))
				byName.set(name, new Float64Array(slices.length + 1));
			byName.get(name)[at] += grown[i];
		}
	}
	const all = Array.from(byName, ([name, live]) => {
		for (let i = 1; i < live.length; i++)
			live[i] += live[i - 1];
		return { name, live, most: Math.max(...live) };
	}).sort((a, b) => (a.name === "others") - (b.name === "others") || b.most - a.most);
	const shown = all.slice(0, HOLDERS), rest = all.slice(HOLDERS);
	if (rest.length)
		shown.push({ name: "others", live: shown[0].live.map((x, i) => sum(rest.map(h => h.live[i]))) });
	return shown;
}

function holderColour(holder, i) {
	const isDark = document.documentElement.dataset.look === "dark";
	const [hue, saturation] = holder.name === "others" ? [30, 4] : HUES[i];
	return isDark ? `hsl(${hue} ${saturation}% 45%)` : `hsl(${hue} ${saturation + 16}% 66%)`;
}

/* The areas, from the lowest one up; values hold until the next point, as in the lines. @x, @y: of points and bytes. */
function holderAreas(holders, x, y) {
	const below = new Float64Array(x.length);

	return holders.map((holder, i) => {
		const lower = below.slice();
		for (let k = 0; k < x.length; k++)
			below[k] += Math.max(0, holder.live[k]);
		const upper = Array.from(below, (n, k) => `${k ? "H" : "M"}${x[k].toFixed(1)}${k ? "V" : " "}${y(n).toFixed(1)}`);
		const back = Array.from(lower, (n, k) => `V${y(n).toFixed(1)}H${x[k].toFixed(1)}`).reverse();
		const area = svg("path", { class: "holder", fill: holderColour(holder, i), d: upper.join("") + back.join("") + "Z" });
		area.append(svg("title", {}, shortName(holder.name)));
		return area;
	});
}

/* The colours, each a search for the function. */
function showHolders(holders, askFor) {
	replace(byId("holders"), ...(holders || []).map((holder, i) => el("li", {}, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" },
		svg("rect", { width: 10, height: 10, rx: 2, fill: holderColour(holder, i) })),
		holder.name === "others" || holder.name === "no stack" ? holder.name
			: el("button", { type: "button", text: shortName(holder.name), title: "Search for it", click: () => askFor(`function:${holder.name}`) }))));
}
