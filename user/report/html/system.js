/* The page of heaptap system: the processes of a machine, those that grow first. Texts are those of its screen. */

const isSystem = Boolean(report.system);

/* Columns that no process has are left out. */
const SYSTEM_COLUMNS = [
	{ label: "PID", text: p => String(p.pid), class: "number" },
	{ label: "Grows by", text: p => p.rate && `${p.rate} ${p.error}`, class: "number" },
	{ label: "What was found", text: p => p.answer },
	{ label: "Needs", text: p => p.needs, class: "number" },
	{ label: "Resident", text: p => p.resident, class: "number" },
	{ label: "Since", text: p => p.since, class: "number" },
	{ label: "Full in", text: p => p.limit },
	{ label: "Container", text: p => p.container },
];

/* A process that is traced has a page of its own. */
function systemRow(process, columns) {
	return el("tr", { "data-pid": process.pid, class: process.rate ? "grows" : false },
		el("th", { scope: "row" }, process.traced ? el("a", { href: `?pid=${process.pid}`, text: process.comm }) : process.comm),
		...columns.map(c => el("td", { class: c.class, text: c.text(process) })));
}

function showSystem() {
	const columns = SYSTEM_COLUMNS.filter(c => report.processes.some(p => c.text(p)));
	const left = report.watched - report.processes.length;
	const tone = report.processes.some(p => p.leaks) ? "bad" : report.processes.some(p => p.rate) ? "maybe" : "good";

	for (const id of ["timeline", "errors", "flame", "threads", "sizes", "ages", "about"])
		byId(id).hidden = true;
	for (const part of document.querySelectorAll(".find, .process, #callers .tools, #callers .more"))
		part.hidden = true;
	replace(byId("verdict"), el("div", { class: "hero " + tone },
		el("h1", {}, el("span", { text: "All processes" }), el("small", { text: new Date(report.real_ns / 1e6).toLocaleString() })),
		el("p", { class: "headline", text: unbroken(report.head) })));
	byId("callers-title").textContent = "Processes";
	replace(document.querySelector("#table thead"), el("tr", {}, el("th", { scope: "col", text: "Process" }),
		...columns.map(c => el("th", { scope: "col", class: c.class, text: c.label }))));
	replace(document.querySelector("#table tbody"), ...report.processes.map(p => systemRow(p, columns)));
	replace(byId("footer"), el("p", { text: `${left > 0 ? `${count(left)} more with -n 0. ` : ""}Made by heaptap ${report.version}.` }));
	document.title = "system \u2013 heaptap";
}
