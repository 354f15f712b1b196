/* Trees for the graph: stacks merged from the outermost function on, or from the innermost one on. */

/* Frames that count as one in the graph. */
const GROUPINGS = [
	{ id: "function", label: "function", keyOf: f => f.name + "\n" + f.module, nameOf: f => f.name },
	{ id: "file", label: "source file", merges: true, keyOf: f => f.file || "\n" + f.module,
	  nameOf: f => f.file || (f.module < 0 ? f.name : modules[f.module].name) },
	{ id: "module", label: "module", merges: true, keyOf: f => f.kind === MARK ? f.name : String(f.module),
	  nameOf: f => f.module < 0 ? f.kind === MARK ? f.name : "in no file" : modules[f.module].name },
];

/* Numbers of keys: of[frame], and for each key a name, a module and one of its frames. */
class Keys {
	constructor(grouping) {
		const numbers = new Map();
		this.merges = Boolean(grouping.merges);
		this.list = [];
		this.of = Int32Array.from(frames, (frame, i) => {
			const text = grouping.keyOf(frame);
			let key = numbers.get(text);
			if (key === undefined) {
				key = this.list.length;
				numbers.set(text, key);
				this.list.push({ name: grouping.nameOf(frame), module: frame.module, frame: i,
					isMark: frame.kind === MARK });
			}
			return key;
		});
		for (const word of ["lost", "none", "others"]) {
			this[word] = this.list.length;
			this.list.push({ name: `[stack ${whyCut(word)}]`, module: -1, frame: -1, isMark: true });
		}
	}
}

/* Why a caller has no stack, as the trees name it. */
function withoutStack(process, caller) {
	const word = process.cutOf(caller);
	return word === "none" || word === "others" ? word : "lost";
}

/* The merged tree of all stacks; it is the same for each process and kind. */
class Merged {
	constructor(keys) {
		const room = nodeFrame.length + 4;
		this.keys = keys;
		this.parent = new Int32Array(room);
		this.key = new Int32Array(room);
		this.parent[0] = this.key[0] = -1;
		this.nr = 1;
		/* A hash table of ids by parent and key; 0 is an empty slot. */
		this.bits = Math.ceil(Math.log2(2 * room));
		this.slots = new Int32Array(1 << this.bits);
		this.of = new Int32Array(nodeFrame.length);
		for (let i = 0; i < nodeFrame.length; i++) {
			const parent = nodeParent[i] < 0 ? 0 : this.of[nodeParent[i]];
			const key = keys.of[nodeFrame[i]];
			this.of[i] = keys.merges && this.key[parent] === key ? parent : this.child(parent, key);
		}
		this.lost = this.child(0, keys.lost);
		this.none = this.child(0, keys.none);
		this.others = this.child(0, keys.others);
		this.slots = null;
		this.group();
	}

	child(parent, key) {
		const mask = this.slots.length - 1;
		let slot = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(key + 1, 0x85ebca6b)) >>> (32 - this.bits);

		for (;; slot = (slot + 1) & mask) {
			const id = this.slots[slot];
			if (!id)
				break;
			if (this.parent[id] === parent && this.key[id] === key)
				return id;
		}
		this.slots[slot] = this.nr;
		this.parent[this.nr] = parent;
		this.key[this.nr] = key;
		return this.nr++;
	}

	/* children[start[id]] to children[start[id + 1] - 1] are the children of id. */
	group() {
		const { nr } = this;
		this.start = new Int32Array(nr + 1);
		for (let id = 1; id < nr; id++)
			this.start[this.parent[id] + 1]++;
		for (let id = 0; id < nr; id++)
			this.start[id + 1] += this.start[id];
		const next = this.start.slice();
		this.list = new Int32Array(nr);
		for (let id = 1; id < nr; id++)
			this.list[next[this.parent[id]]++] = id;
	}
}

/* The outermost function first: 0 is everything. */
class TopDown {
	/* Without @isSigned, numbers below 0 do not count. */
	constructor(merged, process, column, isSigned) {
		const values = process[column];
		this.merged = merged;
		this.keys = merged.keys;
		this.parent = merged.parent;
		this.key = merged.key;
		this.self = new Float64Array(merged.nr);
		for (let i = 0; i < process.nr; i++) {
			const node = process.node[i];
			const id = node >= 0 ? merged.of[node] : merged[withoutStack(process, i)];
			if (values[i] > 0 || isSigned)
				this.self[id] += values[i];
		}
		this.total = this.self.slice();
		for (let id = this.total.length; --id > 0;)
			this.total[this.parent[id]] += this.total[id];
		this.sorted = new Map();
	}

	/* Largest first. */
	children(id) {
		let list = this.sorted.get(id);

		if (!list) {
			list = Array.from(this.merged.list.subarray(this.merged.start[id], this.merged.start[id + 1]));
			list = list.filter(c => this.total[c] > 0).sort((a, b) => this.total[b] - this.total[a]);
			this.sorted.set(id, list);
		}
		return list;
	}
}

/* The innermost function first. Grows as far as somebody looks, because the whole tree would be very large. */
class BottomUp {
	constructor(merged, process, column) {
		const values = process[column];
		this.keys = merged.keys;
		this.parent = [-1];
		this.key = [-1];
		this.self = [0];
		this.total = [0];
		this.values = values;
		this.lists = [null];
		this.items = [[]];
		for (let i = 0; i < process.nr; i++) {
			if (!(values[i] > 0))
				continue;
			const cut = this.keys[withoutStack(process, i)];
			this.items[0].push([i, process.node[i] >= 0 ? process.node[i] : -2 - cut]);
			this.total[0] += values[i];
		}
	}

	/* The key of a place: a node of a stack, or -2 - key. */
	keyAt(at) {
		return at >= 0 ? this.keys.of[nodeFrame[at]] : -2 - at;
	}

	children(id) {
		if (!this.lists[id])
			this.lists[id] = this.grow(id);
		return this.lists[id];
	}

	grow(id) {
		const byKey = new Map();
		const list = [];

		for (const [caller, at] of this.items[id]) {
			const key = this.keyAt(at);
			let child = byKey.get(key);
			if (child === undefined) {
				child = this.parent.length;
				byKey.set(key, child);
				list.push(child);
				this.parent.push(id);
				this.key.push(key);
				this.self.push(0);
				this.total.push(0);
				this.lists.push(null);
				this.items.push([]);
			}
			this.enter(child, caller, at);
		}
		this.items[id] = null;
		return list.sort((a, b) => this.total[b] - this.total[a]);
	}

	enter(id, caller, at) {
		let up = at >= 0 ? nodeParent[at] : -1;

		while (this.keys.merges && up >= 0 && this.keyAt(up) === this.key[id])
			up = nodeParent[up];
		this.total[id] += this.values[caller];
		if (up >= 0)
			this.items[id].push([caller, up]);
		else
			this.self[id] += this.values[caller];
	}
}

/* Keys and merged trees, made when they are first asked for. */
const mergedTrees = new Map(); /* of this report */

function mergedTree(by) {
	if (!mergedTrees.has(by))
		mergedTrees.set(by, new Merged(new Keys(GROUPINGS.find(g => g.id === by))));
	return mergedTrees.get(by);
}

/* What a search finds. A word before a colon limits it: "file:vec.h". Text between slashes is a regular expression. */
class Search {
	constructor(text) {
		const field = /^(function|file|module):(.*)$/.exec(text);
		const test = Search.tester(field ? field[2] : text);
		this.text = text;
		this.isActive = Boolean(test);
		if (!this.isActive)
			return;
		const inField = name => !field || field[1] === name;
		const paths = modules.map(m => inField("module") && test(m.path.toLowerCase()));
		const inFunction = inField("function"), inFile = inField("file");
		this.frame = new Uint8Array(frames.length);
		for (let i = 0; i < frames.length; i++) {
			const f = frames[i];
			f.lower = f.lower || [f.name.toLowerCase(), f.file.toLowerCase()];
			if (inFunction && test(f.lower[0]) || inFile && f.file && test(f.lower[1]) || f.module >= 0 && paths[f.module])
				this.frame[i] = 1;
		}
		this.node = new Uint8Array(nodeFrame.length);
		for (let i = 0; i < nodeFrame.length; i++) {
			const up = nodeParent[i];
			this.node[i] = up >= 0 ? this.frame[nodeFrame[i]] | this.node[up] : this.frame[nodeFrame[i]];
		}
	}

	/* A test of texts in lower case, or null for an empty search. */
	static tester(text) {
		const regex = /^\/(.+)\/$/.exec(text);
		const lower = text.trim().toLowerCase();

		if (!lower)
			return null;
		if (!regex)
			return words => words.includes(lower);
		try {
			const compiled = new RegExp(regex[1], "i");
			return words => compiled.test(words);
		} catch {
			return () => false;
		}
	}

	/* For each key: does one of its frames match? */
	keysOf(keys) {
		const out = new Uint8Array(keys.list.length);
		this.frame.forEach((yes, i) => { if (yes) out[keys.of[i]] = 1; });
		return out;
	}

	hasCaller(process, caller) {
		return process.node[caller] >= 0 && this.node[process.node[caller]] === 1;
	}

	/* The sum of a column over the callers with a match on their stack. */
	share(process, column) {
		let total = 0;
		for (let i = 0; i < process.nr; i++)
			if (process[column][i] > 0 && this.hasCaller(process, i))
				total += process[column][i];
		return total;
	}
}
