// The page's own script: it draws the charts with uPlot and moves the keyboard through the map. It writes
// text only (textContent), reads numbers from attributes, and asks nobody for anything.
(() => {
"use strict";
const all = (q, from = document) => [...from.querySelectorAll(q)];

// The map: one stop for Tab, arrows go from machine to machine.
const boxes = all(".fleet .box");
boxes.forEach((b, i) => { b.tabIndex = i ? -1 : 0; });
let at = 0;
const to = i => {
	if (!boxes[i]) return;
	boxes[at].tabIndex = -1;
	at = i;
	boxes[i].tabIndex = 0;
	boxes[i].focus();
};
const row = step => { // the nearest box of the next row
	const from = boxes[at].getBoundingClientRect();
	let top = null, best = -1, far = 0;
	for (let i = at + step; boxes[i]; i += step) {
		const r = boxes[i].getBoundingClientRect();
		if (top === null ? Math.abs(r.top - from.top) < 4 : Math.abs(r.top - top) >= 4) {
			if (top === null) continue;
			break;
		}
		top = r.top;
		const d = Math.abs(r.left - from.left);
		if (best < 0 || d < far) [best, far] = [i, d];
	}
	return best;
};
document.addEventListener("keydown", e => {
	const i = boxes.indexOf(document.activeElement);
	if (i < 0 || e.ctrlKey || e.altKey || e.metaKey) return;
	at = i;
	const next = {ArrowRight: () => i + 1, ArrowLeft: () => i - 1, ArrowDown: () => row(1), ArrowUp: () => row(-1), Home: () => 0, End: () => boxes.length - 1}[e.key];
	if (next) { e.preventDefault(); to(next()); }
	if (e.key === "Escape") boxes[i].blur();
});
// A tap or a click shows what there is to say of a machine, and leads nowhere.
boxes.forEach((b, i) => b.addEventListener("click", e => { e.preventDefault(); to(i); }));

// The charts.
const time = document.querySelector("#time-charts");
if (!time) return;
const runs = text => {
	const out = [];
	for (const part of (text || "").split(" ").filter(Boolean)) {
		const [v, n] = part.split("x");
		for (let k = +(n || 1); k > 0; k--) out.push(v === "-" ? null : +v);
	}
	return out;
};
const num = name => +time.dataset[name];
// The day as far as the hour's finer samples do not cover it, those, and this moment.
const xs = [], pick = [];
for (let i = 0, t = num("dayStart"); i < num("daySteps"); i++, t += num("dayStep")) if (t + num("dayStep") <= num("hourStart")) { xs.push(t); pick.push(["day", i]); }
for (let i = 0, t = num("hourStart"); i < num("hourSteps"); i++, t += num("hourStep")) if (t < num("at")) { xs.push(t); pick.push(["hour", i]); }
xs.push(num("at"));
let first = num("at");
const join = (el, name) => {
	const from = {day: runs(el.dataset[name + "Day"]), hour: runs(el.dataset[name + "Hour"])};
	const unit = +(el.dataset.unit || 1);
	const ys = pick.map(([k, i]) => from[k][i] ?? null);
	const coarse = i => from.day[Math.floor((xs[i] - num("dayStart")) / num("dayStep"))] ?? null;
	pick.forEach(([k], i) => { if (k === "hour" && ys[i] === null) ys[i] = coarse(i); }); // a file of an earlier run has no minutes
	ys.push(el.dataset[name + "Now"] === undefined ? ys[ys.length - 1] : +el.dataset[name + "Now"]);
	const known = ys.findIndex(v => v !== null);
	if (known >= 0) first = Math.min(first, xs[known]);
	return ys.map(v => v === null ? null : v / unit);
};
const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
let hours = 24;
const range = () => [Math.max(num("at") - hours * 3600, Math.min(first, num("at") - 600)), num("at")];
const charts = new Map();
const draw = el => {
	const has = name => (name + "Day") in el.dataset;
	const data = [xs], series = [{}], bands = [];
	const add = (name, s) => { data.push(join(el, name)); series.push({paths: uPlot.paths.stepped({align: 1}), points: {show: false}, ...s}); };
	if (has("high")) {
		add("high", {stroke: "transparent"});
		add("low", {stroke: "transparent"});
		bands.push({series: [1, 2], fill: colour("band")});
	}
	if (has("behind")) add("behind", {stroke: colour("quiet"), dash: [4, 4], width: 1});
	add("line", {stroke: colour("line"), width: 2});
	const line = data.length - 1, most = el.dataset.top ? +el.dataset.top / +(el.dataset.unit || 1) : 0;
	const marks = (el.dataset.marks || "").split(" ").filter(Boolean).map(m => { const [t, i, k] = m.split(":"); return {t: +t, i, k}; });
	const said = el.parentNode.querySelector("figcaption span");
	const axis = {stroke: colour("quiet"), grid: {stroke: colour("edge"), width: 1}, ticks: {show: false}, font: "12px system-ui", size: 46};
	const u = new uPlot({
		width: el.clientWidth, height: el.clientHeight, legend: {show: false}, bands, series,
		tzDate: t => uPlot.tzDate(new Date(t * 1000), "Etc/UTC"),
		fmtDate: () => d => String(d.getHours()).padStart(2, "0") + ":" + String(d.getMinutes()).padStart(2, "0"),
		cursor: {sync: {key: "time"}, y: false, points: {size: 6}},
		scales: {x: {range: (u, a, b) => a === undefined || a === null ? range() : [a, b]}, y: {range: (u, a, b) => [0, Math.max(1, b || 0, most) * 1.05]}},
		axes: [{...axis, size: 29, gap: 10, values: (u, ts) => ts.map(t => new Date(t * 1000).toISOString().slice(11, 16))}, {...axis}],
		hooks: {
			draw: [u => {
				const half = 4 * devicePixelRatio, y = u.bbox.top + u.bbox.height + half; // on the axis, so that no curve is hidden
				for (const m of marks) {
					const x = u.valToPos(m.t, "x", true);
					if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
					u.ctx.fillStyle = u.ctx.strokeStyle = colour(m.k === "grow" ? "grow" : m.k === "failed" ? "bad" : "end");
					u.ctx.beginPath();
					if (m.k === "failed") {
						u.ctx.lineWidth = 2 * devicePixelRatio;
						u.ctx.moveTo(x - half, y - half); u.ctx.lineTo(x + half, y + half);
						u.ctx.moveTo(x - half, y + half); u.ctx.lineTo(x + half, y - half);
						u.ctx.stroke();
						continue;
					}
					const tip = m.k === "grow" ? -half : half;
					u.ctx.moveTo(x, y + tip); u.ctx.lineTo(x - half, y - tip); u.ctx.lineTo(x + half, y - tip);
					u.ctx.fill();
				}
			}],
			setCursor: [u => {
				const i = u.cursor.idx;
				said.textContent = i == null || u.cursor.left < 0 || u.data[line][i] == null ? "" : new Date(xs[i] * 1000).toISOString().slice(11, 16) + ": " + u.data[line][i];
			}],
		},
	}, data, el);
	u.over.addEventListener("click", e => { // a mark leads to its row
		const x = e.clientX - u.over.getBoundingClientRect().left;
		let best = null, far = 9;
		for (const m of marks) { const d = Math.abs(u.valToPos(m.t, "x") - x); if (d < far) [best, far] = [m, d]; }
		if (best) location.hash = "#d" + best.i;
	});
	u.setScale("x", {min: range()[0], max: range()[1]});
	charts.set(el, u);
};
// A chart is drawn when it comes into view: a page has up to 200.
const seen = new IntersectionObserver(list => list.forEach(e => { if (e.isIntersecting && !charts.has(e.target)) draw(e.target); }), {rootMargin: "300px"});
const again = () => {
	for (const u of charts.values()) u.destroy();
	charts.clear();
	seen.disconnect();
	all(".plot", time).forEach(el => seen.observe(el));
};
all(".plot", time).forEach(el => ["line", "behind"].forEach(n => { if ((n + "Day") in el.dataset) join(el, n); })); // how far the history goes
document.documentElement.classList.remove("noscript");
const spans = document.querySelector(".spans");
spans.hidden = false;
all("button", spans).forEach(b => b.addEventListener("click", () => {
	hours = +b.dataset.hours;
	all("button", spans).forEach(o => o.setAttribute("aria-pressed", String(o === b)));
	for (const u of charts.values()) u.setScale("x", {min: range()[0], max: range()[1]});
}));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
let wide = innerWidth;
addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; again(); } });
again();
})();
