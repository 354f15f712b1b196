/* Numbers and names as people read them, and the making of elements. */

const groups = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");

const count = n => n < 0 ? "\u2212" + groups(-n) : groups(n);

/* "9,216 B", "12.4 KiB": as heaptap prints it. */
function bytes(n) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
	let unit = 0;

	if (n < 0)
		return "\u2212" + bytes(-n);
	if (n < 10000)
		return groups(n) + "\u00a0B";
	for (; n >= 1023.95 && unit + 1 < units.length; unit++)
		n /= 1024;
	return n.toFixed(n < 9.995 ? 2 : 1) + "\u00a0" + units[unit];
}

/* In a text of heaptap's, a number and its unit stay on one line. */
const unbroken = text => text.replace(/(\d) (?=[KMGTPE]i?B\b|B\b|%)/g, "$1\u00a0");

function duration(ns) {
	const s = Math.floor(ns / 1e9);
	const two = n => String(n).padStart(2, "0");

	if (ns < 1e3)
		return `${Math.round(ns)} ns`;
	if (ns < 1e6)
		return `${Math.floor(ns / 1e3)} \u00b5s`;
	if (ns < 1e9)
		return `${Math.floor(ns / 1e6)} ms`;
	if (s < 60)
		return `${s}.${Math.floor(ns / 1e8) % 10} s`;
	if (s < 3600)
		return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
	if (s < 86400)
		return `${Math.floor(s / 3600)}h ${two(Math.floor(s / 60) % 60)}m`;
	return `${Math.floor(s / 86400)}d ${two(Math.floor(s / 3600) % 24)}h`;
}

function percent(part, whole) {
	const p = whole ? 100 * part / whole : 0;

	if (!p)
		return "0 %";
	if (part === whole)
		return "100 %";
	if (p < 0.05)
		return "<0.1 %";
	return (p > 99.9 && p < 100 ? "99.9" : p.toFixed(1)) + " %";
}

const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

/* Numbers of blocks and calls of the program, and their bytes: with --sample they are estimates. */
const about = text => report.sample_bytes ? "~" + text : text;
const ofBytes = n => about(bytes(n)), ofCalls = n => about(count(n)), ofBlocks = n => about(plural(n, "block"));
const amount = (kind, n) => kind.bytes ? ofBytes(n) : about(plural(n, kind.id === "calls" ? "call" : "block"));
const inBlocks = (size, blocks) => `${ofBytes(size)} in ${ofBlocks(blocks)}`;

/* Without template arguments, parameters and hashes: for places where the full name does not fit. */
const shortNames = new Map();

function shorten(name) {
	let out = "", depth = 0;

	for (let i = 0; i < name.length; i++) {
		const c = name[i];
		const isOperator = /operator[<>=-]*$/.test(name.slice(Math.max(0, i - 12), i));
		if (c === "<" && !isOperator && i > 0 && ++depth === 1)
			out += "<\u2026>";
		else if (c === ">" && !isOperator && depth)
			depth--;
		else if (!depth)
			out += c;
	}
	out = out.replace(/::h[0-9a-f]{16}$/, "");
	return out.replace(/([^(])\((?!anonymous)[^()]*(\([^()]*\)[^()]*)*\)( const| volatile|&)*( \[.*\])?$/,
		(all, before, inner, end, tag) => before === " " ? all : before + (tag || ""));
}

function shortName(name) {
	let short = shortNames.get(name);

	if (short === undefined) {
		short = /[<(]|::h[0-9a-f]{16}$/.test(name) ? shorten(name.slice(0, 2000)) || name : name;
		if (/^operator (new|delete)/.test(name))
			short = name;
		shortNames.set(name, short);
	}
	return short;
}

/* Functions that only pass on what others want: the place of an allocation is the first function that is none. */
const PLUMBING = new RegExp("(^|::)operator new|^(std::|__gnu_cxx::|boost::|alloc::|core::|hashbrown::|<?(alloc|core|std)::)|" +
	"^[^:]*(malloc|calloc|realloc|strn?dup|memdup)[^:]*$", "i");

/* The frame that names a stack: a function of the program, if there is one. */
function placeOf(stack) {
	const known = stack.filter(f => f.known);
	return known.find(f => !PLUMBING.test(f.name)) || known[0] || stack.find(f => f.kind !== MARK) || null;
}

const whereIs = frame => frame.file ? frame.file + (frame.line ? ":" + frame.line : "")
	: frame.module >= 0 ? modules[frame.module].path : "";
const whereShort = frame => frame.file ? baseName(frame.file) + (frame.line ? ":" + frame.line : "")
	: frame.module >= 0 ? modules[frame.module].name : "";

/* An element with attributes and children; text only ever becomes text. */
function el(tag, attributes, ...children) {
	const element = document.createElement(tag);

	for (const [name, value] of Object.entries(attributes || {})) {
		if (typeof value === "function")
			element.addEventListener(name, value);
		else if (name === "text")
			element.textContent = value;
		else if (value !== false && value !== null && value !== undefined)
			element.setAttribute(name, value === true ? "" : value);
	}
	element.append(...children.filter(c => c !== null && c !== undefined && c !== ""));
	return element;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
	const element = document.createElementNS(SVG, tag);

	for (const [name, value] of Object.entries(attributes || {}))
		element.setAttribute(name, value);
	element.append(...children);
	return element;
}

const byId = id => document.getElementById(id);
const replace = (element, ...children) => element.replaceChildren(...children.filter(c => c));
