"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const hidden = new Set();
let statistic = data.statistic;
const drawings = [];
const COLORS = 8;
const MARKERS = ["circle", "square", "triangle", "diamond", "down", "plus", "cross", "ring", "star"];

const byId = (id) => document.getElementById(id);
const color = (run) => `var(--run-${run % COLORS})`;
const invalid = (run) => data.runs[run].doubtful;
const mark = (run) => invalid(run) ? "✗" : data.runs[run].missed ? "!" : data.runs[run].verdict.startsWith("VALID") ? "✓" : "";
const shown = (run) => !hidden.has(run);

/* Elements */

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "path", "text", "line", "defs", "pattern", "desc", "tspan"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function marker(run, x, y, size = 4) {
  const s = size, kind = MARKERS[run % MARKERS.length];
  const paths = {
    circle: `M${x - s},${y}a${s},${s} 0 1,0 ${2 * s},0a${s},${s} 0 1,0 ${-2 * s},0`,
    ring: `M${x - s},${y}a${s},${s} 0 1,0 ${2 * s},0a${s},${s} 0 1,0 ${-2 * s},0`,
    square: `M${x - s},${y - s}h${2 * s}v${2 * s}h${-2 * s}z`,
    triangle: `M${x},${y - s * 1.2}l${s * 1.2},${s * 2}h${-2.4 * s}z`,
    down: `M${x},${y + s * 1.2}l${s * 1.2},${-s * 2}h${-2.4 * s}z`,
    diamond: `M${x},${y - s * 1.3}l${s * 1.3},${s * 1.3}l${-s * 1.3},${s * 1.3}l${-s * 1.3},${-s * 1.3}z`,
    plus: `M${x - s},${y}h${2 * s}M${x},${y - s}v${2 * s}`,
    cross: `M${x - s},${y - s}l${2 * s},${2 * s}M${x - s},${y + s}l${2 * s},${-2 * s}`,
    star: `M${x - s},${y}h${2 * s}M${x - s / 2},${y - s}l${s},${2 * s}M${x - s / 2},${y + s}l${s},${-2 * s}`,
  };
  const open = ["plus", "cross", "ring", "star"].includes(kind);
  const style = open ? `fill:none;stroke:${color(run)};stroke-width:2` : `fill:${color(run)}`;
  return make("path", { d: paths[kind], style, class: "marker", "data-run": run });
}

const swatch = (run) => make("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" }, marker(run, 7, 7, 4.5));

/* Numbers */

function format(value) {
  const size = Math.abs(value);
  if (size > 0 && size < 1e-4) return value.toExponential(2).replace(/\.?0+e/, "e");
  const digits = size >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: size < 1 ? 3 : 4 };
  return value.toLocaleString("en-US", digits);
}

/* A number on an axis, where there is little room. */
function short(value) {
  const [size, letter] = [[1e12, "T"], [1e9, "G"], [1e6, "M"]].find(([least]) => Math.abs(value) >= least) || [1, ""];
  return format(value / size) + letter;
}

const unitText = (unit) => (unit && !/^[%/]/.test(unit) ? ` ${unit}` : unit);
const withUnit = (value, unit) => format(value) + unitText(unit);

function barText(bar, unit) {
  return (bar.value === null ? "not measured" : (bar.sign && `${bar.sign} `) + withUnit(bar.value, unit)) + (bar.note && "*");
}

function intervalText(bar) {
  return bar.low === null ? "" : `95%: ${format(bar.low)} – ${format(bar.high)}`;
}

function percentText(nines) {
  const rest = 10 ** -nines;
  return nines === 0 ? "min" : "p" + (100 * (1 - rest)).toFixed(nines < 1 ? 0 : Math.max(0, Math.ceil(nines - 2 + 1e-9))).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/* The tip */

const tip = byId("tip");

function showTip(lines, x, y) {
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 4))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
}

function hideTip() { tip.hidden = true; }

function about(run) {
  const { label, verdict, hover } = data.runs[run];
  return [make("b", {}, label), ...(invalid(run) ? [make("div", {}, verdict)] : []), ...hover.map((line) => make("div", {}, line))];
}

const pair = (left, right) => make("div", {}, make("span", {}, left), make("span", {}, right));

/* How long a text is, in px, and as much of it as there is room for. */
const pen = document.createElement("canvas").getContext("2d");

function long(text, weight = 400, size = 12) {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

function shortened(text, room) {
  let kept = text.length; // both ends say more than the beginning alone
  const cut = () => (kept === text.length ? text : `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`);
  while (kept > 3 && long(cut()) > room) kept -= 1;
  return cut();
}

/* Bars */

function chosen(chart) {
  const names = Object.keys(chart.statistics);
  return names.length === 1 ? names[0] : statistic;
}

function drawBars(chart, width) {
  const name = chosen(chart);
  const bars = (chart.statistics[name] || chart.statistics[Object.keys(chart.statistics)[0]].map(() => ({ value: null, low: null, high: null, note: "" })));
  const of = (run) => bars[run - chart.first];
  const runs = data.runs.map((_, run) => run).filter((run) => shown(run) && of(run));
  const most = Math.max(0, ...runs.flatMap((run) => [of(run).value, of(run).high].filter((v) => v !== null)));
  const least = Math.min(0, ...runs.map((run) => of(run).value || 0));
  const span = most - least || 1, high = 38;
  const at = (value) => ((value - least) / span) * (width - 2);
  const svg = make("svg", { viewBox: `0 0 ${width} ${Math.max(high * runs.length, 20)}`, role: "group", "aria-label": chart.title });
  svg.append(make("desc", {}, runs.map((run) => `${data.runs[run].label}: ${barText(of(run), chart.unit)}`).join("; ")));
  runs.forEach((run, place) => svg.append(barRow(chart, name, of(run), run, place * high, width, at)));
  if (!runs.length) svg.append(make("text", { x: 0, y: 14, class: "soft" }, "No run is shown."));
  return svg;
}

function barRow(chart, name, bar, run, top, width, at) {
  const { label } = data.runs[run], text = barText(bar, chart.unit), interval = intervalText(bar);
  const spoken = [`${label}: ${text}`, interval, bar.note, invalid(run) ? data.runs[run].verdict : "", ...data.runs[run].hover].filter(Boolean).join(", ");
  const row = make("g", { class: "row", tabindex: 0, role: "img", "aria-label": spoken, "data-run": run, "data-value": bar.value, transform: `translate(0 ${top})` });
  const room = width - 26 - long(text, 600, 12.5) - (interval ? long(interval, 400, 10.5) + 8 : 0) - (invalid(run) ? 66 : 0);
  const title = make("text", { x: 16, y: 13 }, shortened(label, room));
  if (invalid(run)) title.append(make("tspan", { class: "bad", dx: 6 }, data.runs[run].verdict.split(" ")[0]));
  const value = make("text", { x: width, y: 13, "text-anchor": "end", class: bar.value === null ? "soft" : "value" });
  if (interval) value.append(make("tspan", { class: "soft", "font-weight": 400, style: "fill:var(--soft);font-size:10.5px" }, `${interval}  `));
  value.append(text);
  row.append(make("rect", { x: 0, y: 0, width, height: 34, fill: "transparent" }), marker(run, 6, 9, 4), title, value);
  row.append(make("rect", { class: "track", x: 0, y: 19, width, height: 12, rx: 2 }));
  if (bar.value !== null) row.append(...barShape(bar, run, at));
  const lines = () => [...about(run), pair(name ? `${chart.title}, ${name}` : chart.title, text), ...(interval ? [pair("", interval)] : []), ...(bar.note ? [make("div", {}, `* ${bar.note}`)] : [])];
  row.addEventListener("pointermove", (event) => showTip(lines(), event.clientX, event.clientY));
  row.addEventListener("pointerleave", hideTip);
  row.addEventListener("focus", () => requestAnimationFrame(() => { // focus scrolls
    const box = row.getBoundingClientRect();
    showTip(lines(), box.left + 20, box.bottom - 12);
  }));
  row.addEventListener("blur", hideTip);
  return row;
}

function barShape(bar, run, at) {
  const left = Math.min(at(0), at(bar.value)), size = Math.max(Math.abs(at(bar.value) - at(0)), 1);
  const fill = invalid(run) ? `url(#hatch-${run})` : color(run);
  const parts = [make("rect", { class: "bar", x: left, y: 19, width: size, height: 12, rx: 2, style: `fill:${fill};stroke:${color(run)};stroke-width:${invalid(run) ? 1 : 0}` })];
  if (bar.low !== null) {
    const [from, to] = [at(bar.low), at(bar.high)];
    const bracket = `M${from},20v10M${to},20v10M${from},25H${to}`;
    parts.push(make("path", { d: bracket, style: "stroke:var(--card);stroke-width:3.5;fill:none" }), make("path", { d: bracket, class: "whisker" }));
  }
  return parts;
}

function barTable(chart) {
  const names = Object.keys(chart.statistics);
  const head = ["Run", ...names.map((name) => name || `${chart.title}${chart.unit ? `, ${chart.unit}` : ""}`)];
  const known = data.runs.map((_, run) => run).filter((run) => chart.statistics[names[0]][run - chart.first]);
  const rows = known.map((run) => [
    invalid(run) ? `${data.runs[run].label} (${data.runs[run].verdict})` : data.runs[run].label,
    ...names.map((name) => { const bar = chart.statistics[name][run - chart.first]; return [barText(bar, chart.unit), intervalText(bar), bar.note].filter(Boolean).join("; "); }),
  ]);
  return table(head, rows);
}

/* Curves */

const LOG = (value) => Math.log10(value);

function scale(axis, values, from, to) {
  let low = Math.min(...values), high = Math.max(...values);
  if (axis.scale === "log") {
    low = LOG(low); high = LOG(high);
    const room = (high - low || 1) * 0.04;
    low -= room; high += room;
    return { at: (v) => from + ((LOG(v) - low) / (high - low)) * (to - from), ticks: logTicks(low, high) };
  }
  if (axis.scale === "nines") {
    const ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999].map((share) => (share ? -LOG(1 - share) : 0));
    high = Math.max(high, 1);
    return { at: (v) => from + (v / high) * (to - from), ticks: ticks.filter((tick) => tick <= high + 1e-6), text: percentText };
  }
  low = Math.min(low, 0);
  high = high > low ? high : 1;
  const ticks = niceTicks(low, high, Math.abs(to - from) / (from < to ? 48 : 38), axis.tight);
  low = Math.min(low, ticks[0]);
  high = Math.max(high, ticks[ticks.length - 1]);
  return { at: (v) => from + ((v - low) / (high - low || 1)) * (to - from), ticks };
}

function niceTicks(low, high, count, tight) {
  const rough = (high - low || 1) / Math.max(count, 2), power = 10 ** Math.floor(LOG(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const ticks = [], last = tight ? high : Math.ceil(high / step - 1e-6) * step;
  const first = tight ? Math.ceil(low / step - 1e-6) : Math.floor(low / step + 1e-6);
  for (let tick = first * step; tick <= last + step * 1e-6; tick += step) ticks.push(Math.abs(tick) < step / 1e6 ? 0 : tick);
  return ticks;
}

function logTicks(low, high) {
  const wanted = high - low > 2.2 ? [1] : high - low > 0.9 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const ticks = [];
  for (let power = Math.floor(low); power <= Math.ceil(high); power++) ticks.push(...wanted.map((m) => m * 10 ** power));
  return ticks.filter((tick) => LOG(tick) >= low && LOG(tick) <= high);
}

/* The lines that are to be seen: each with its visible points, and the run of each point. */
function visible(chart) {
  return chart.lines
    .filter((line) => (!line.statistic || line.statistic === statistic) && (line.run === null || shown(line.run)))
    .map((line) => ({
      ...line,
      points: line.points.map(([x, y], index) => ({ x, y, run: line.over.length ? line.over[index] : line.run })).filter((p) => p.run === null || shown(p.run)),
    }));
}

function drawCurves(chart, width) {
  const low = chart.strip ? STRIP + 8 : 0; // what stands between the picture and the numbers of its axis
  const height = 270 + low, box = { left: 54, right: width - 14, top: 12, bottom: 230 };
  const lines = visible(chart), points = lines.flatMap((line) => line.points).filter((point) => point.y !== null);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${chart.title}. Arrow keys walk along the points.` });
  svg.append(make("desc", {}, `${chart.y.title} against ${chart.x.title} of ${new Set(points.map((p) => p.run)).size} runs; the table below has the numbers.`));
  if (!points.some((point) => point.run !== null)) {
    svg.append(make("text", { x: box.left, y: 40, class: "soft" }, "Nothing to show for the chosen runs and statistic."));
    return svg;
  }
  const xs = chart.x.title === "Time" ? timeSpan() : points.map((p) => p.x);
  const x = scale({ ...chart.x, tight: chart.x.title === "Time" }, xs, box.left, box.right);
  const y = scale(chart.y, points.map((p) => p.y), box.bottom, box.top);
  svg.append(...bands(chart.bands, x.at, box), ...axes(chart, x, y, box, low));
  if (chart.strip) svg.append(...strip(chart.strip, x.at, { ...box, top: box.bottom + 8, bottom: box.bottom + low }));
  lines.forEach((line) => svg.append(...curve(line, x.at, y.at, box, lines.length)));
  const guide = make("line", { class: "guide", y1: box.top, y2: box.bottom + low, visibility: "hidden" });
  svg.append(guide);
  follow(svg, chart, lines, x, y, guide, width, height);
  return svg;
}

/* Pictures over time share one axis: from the start, or what was measured before it, to the last second or stage. */
function timeSpan() {
  const section = data.sections.find(({ key }) => key === "time");
  const lines = section.charts.flatMap((chart) => chart.lines).filter((line) => shown(line.run));
  const ends = lines.map((line) => line.points[line.points.length - 1][0]);
  const stages = section.charts.flatMap((chart) => chart.bands.map(([, , end]) => end));
  return [Math.min(0, ...lines.map((line) => line.points[0][0])), Math.max(1, ...ends, ...stages)];
}

function axes(chart, x, y, box, low) {
  const parts = [];
  for (const tick of y.ticks) {
    parts.push(make("line", { class: "grid", x1: box.left, x2: box.right, y1: y.at(tick), y2: y.at(tick) }));
    parts.push(make("text", { class: "soft", x: box.left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, short(tick)));
  }
  for (const tick of x.ticks) {
    parts.push(make("line", { class: "axis", x1: x.at(tick), x2: x.at(tick), y1: box.bottom, y2: box.bottom + 4 }));
    parts.push(make("text", { class: "soft", x: x.at(tick), y: box.bottom + low + 17, "text-anchor": "middle" }, (x.text || short)(tick)));
  }
  parts.push(make("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  if (x.at(0) > box.left + 1) parts.push(make("line", { class: "axis", x1: x.at(0), x2: x.at(0), y1: box.bottom, y2: box.top }));
  const title = chart.x.unit ? `${chart.x.title}, ${chart.x.unit}` : chart.x.title;
  parts.push(make("text", { class: "soft", x: (box.left + box.right) / 2, y: box.bottom + low + 34, "text-anchor": "middle" }, title));
  return parts;
}

/* Below a picture, on its axis: steps, filled where they are not dashed, and a sign at each event. */
const STRIP = 52, SIGNS = 15;

function seen(strip) {
  return { lines: strip.lines.filter((line) => shown(line.run)), marks: strip.marks.filter((mark) => shown(mark.run)) };
}

function strip(whole, x, box) {
  const { lines, marks } = seen(whole);
  const most = Math.max(1, ...lines.flatMap((line) => line.points.map(([, y]) => y)));
  const y = (value) => box.bottom - (value / most) * (box.bottom - box.top - SIGNS);
  const parts = [make("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom })];
  for (const value of [0, most]) parts.push(make("text", { class: "soft", x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  for (const line of lines) {
    const steps = line.points.map(([at, count], place) => (place ? `H${x(at).toFixed(1)}V${y(count).toFixed(1)}` : `M${x(at).toFixed(1)},${y(count).toFixed(1)}`)).join("");
    const ends = [line.points[line.points.length - 1][0], line.points[0][0]].map((at) => x(at).toFixed(1));
    if (!line.dashed) parts.push(make("path", { class: "filled", d: `${steps}L${ends[0]},${y(0)}H${ends[1]}z`, style: `fill:${color(line.run)}` }));
    parts.push(make("path", { class: line.dashed ? "curve dashed" : "curve", d: steps, style: `stroke:${color(line.run)}` }));
  }
  for (const mark of marks) {
    parts.push(make("line", { class: "mark", x1: x(mark.x), x2: x(mark.x), y1: box.top + SIGNS - 3, y2: box.bottom, style: `stroke:${color(mark.run)}` }));
    parts.push(make("text", { class: "sign", x: x(mark.x), y: box.top + SIGNS - 5, "text-anchor": "middle" }, mark.sign));
  }
  return parts;
}

/* What the strip says of a place: how many there were, and what happened near it. */
function tellStrip(whole, stop, x) {
  const { lines, marks } = seen(whole);
  const counts = lines.flatMap((line) => {
    const last = line.points.filter(([at]) => at <= stop).pop();
    return last ? [pair([data.runs.length > 1 && data.runs[line.run].label, whole.title, line.name].filter(Boolean).join(", "), format(last[1]))] : [];
  });
  const near = marks.filter((mark) => Math.abs(x(mark.x) - x(stop)) <= 6);
  return [...counts, ...near.map((mark) => make("div", {}, `${mark.sign} ${format(mark.x)} s: ${mark.text}`))];
}

function stripTable(whole) {
  const rows = whole.marks.map((mark) => [`${format(mark.x)} s`, data.runs[mark.run].label, `${mark.sign} ${mark.text}`]);
  return table(["Time", "Run", whole.title], rows);
}

/* Every other stretch of the axis is shaded; its name stands above it, or upright in it where it is narrow. */
function bands(named, x, box) {
  return named.flatMap(([name, start, end], index) => {
    const left = Math.max(x(start), box.left), wide = Math.min(x(end), box.right) - left;
    if (wide <= 0) return [];
    const shade = index % 2 ? [] : [make("rect", { class: "band", x: left, y: box.top, width: wide, height: box.bottom - box.top })];
    const middle = left + wide / 2;
    if (wide > 6.2 * name.length + 4) return [...shade, make("text", { class: "soft", x: middle, y: box.top - 3, "text-anchor": "middle" }, name)];
    const upright = { class: "soft", transform: `translate(${middle + 4},${box.top + 3}) rotate(-90)`, "text-anchor": "end" };
    return wide > 11 ? [...shade, make("text", upright, name)] : shade;
  });
}

function curve(line, x, y, box, count) {
  let d = "", pen = "M";
  for (const point of line.points) {
    if (point.y === null) { d += pen === "H" ? `H${x(point.x).toFixed(1)}` : ""; pen = "M"; continue; }
    const [across, down] = [x(point.x).toFixed(1), y(point.y).toFixed(1)];
    d += pen === "H" ? `H${across}V${down}` : `${pen}${across},${down}`;
    pen = line.stepped ? "H" : "L";
  }
  const over = line.over.length > 0, plain = line.run === null && !over;
  const style = line.run === null ? undefined : `stroke:${color(line.run)}`;
  const kind = ["curve", line.dashed && "dashed", over && "over", plain && "plain"].filter(Boolean).join(" ");
  const parts = [make("path", { d, class: kind, style, "data-run": line.run })];
  const known = line.points.filter((point) => point.y !== null && point.run !== null);
  const step = over || line.marked ? 1 : Math.max(1, Math.ceil(known.length / 6)), first = step === 1 ? 0 : ((line.run * step) / Math.max(count, 1)) | 0;
  const alone = (at) => line.points[at - 1]?.y == null && line.points[at + 1]?.y == null; // no line leads to it
  known.forEach((point, index) => {
    if ((index - first) % step === 0 || alone(line.points.indexOf(point))) parts.push(marker(point.run, x(point.x), y(point.y), over ? 5 : 3));
    if (over && invalid(point.run)) parts.push(make("text", { class: "bad", x: Math.min(x(point.x) + 20, box.right), y: y(point.y) - 9, "text-anchor": "end" }, data.runs[point.run].verdict.split(" ")[0]));
  });
  const level = plain && line.name && line.points[0].y === line.points[line.points.length - 1].y;
  if (level) parts.push(make("text", { class: "soft", x: x(line.points[0].x) + 2, y: y(line.points[0].y) - 4 }, line.name));
  if (line.knee && over && line.points.some((point) => point.x === line.knee[0])) parts.push(...knee(line.knee, x, y, box));
  return parts;
}

function knee([rate, time], x, y, box) {
  const right = x(rate) > (box.left + box.right) / 2;
  return [
    make("path", { class: "knee", d: `M${x(rate)},${box.bottom}V${box.top}` }),
    make("text", { class: "value", x: x(rate) + (right ? -6 : 6), y: box.top + 10, "text-anchor": right ? "end" : "start" }, `knee near ${format(rate)}/s`),
  ];
}

/* What is under the pointer, or where the arrow keys are. */
function follow(svg, chart, lines, x, y, guide, width, height) {
  const across = lines.some((line) => line.over.length);
  const stops = [...new Set(lines.filter((line) => across === line.over.length > 0).flatMap((line) => line.points.filter((p) => p.y !== null).map((p) => p.x)).concat(chart.strip ? seen(chart.strip).marks.map((mark) => mark.x) : []))].sort((a, b) => a - b);
  let place = -1;
  const tell = (stop, screenX, screenY) => {
    guide.setAttribute("visibility", "visible");
    guide.setAttribute("x1", x.at(stop));
    guide.setAttribute("x2", x.at(stop));
    showTip(across ? tellRuns(chart, lines, stop) : tellLines(chart, lines, stop, x), screenX, screenY);
  };
  const end = () => { guide.setAttribute("visibility", "hidden"); hideTip(); };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * width;
    tell(nearest(stops, at, x.at), event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", end);
  svg.addEventListener("blur", end);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (!step) return;
    event.preventDefault();
    place = Math.max(0, Math.min(stops.length - 1, place + step));
    const box = svg.getBoundingClientRect();
    tell(stops[place], box.left + (x.at(stops[place]) / width) * box.width, box.top + box.height / 3);
  });
}

function nearest(stops, at, scaled) {
  return stops.reduce((best, stop) => (Math.abs(scaled(stop) - at) < Math.abs(scaled(best) - at) ? stop : best), stops[0]);
}

function tellRuns(chart, lines, stop) {
  const points = lines.flatMap((line) => line.points.filter((p) => p.x === stop && p.run !== null && p.y !== null));
  return points.flatMap((p) => [...about(p.run), pair(chart.x.title, withUnit(p.x, chart.x.unit)), pair(chart.y.title, withUnit(p.y, chart.y.unit))]);
}

function tellLines(chart, lines, stop, x) {
  const title = chart.x.scale === "nines" ? percentText(stop) : `${chart.x.title} ${withUnit(stop, chart.x.unit)}`;
  const rows = lines.flatMap((line) => {
    const known = line.points.filter((p) => p.y !== null);
    if (!known.length || line.run === null) return [];
    const at = nearest(known.map((p) => p.x), x.at(stop), x.at);
    if (Math.abs(x.at(at) - x.at(stop)) > 12) return [];
    const row = pair([data.runs[line.run].label, line.name].filter(Boolean).join(", "), withUnit(known.find((p) => p.x === at).y, chart.y.unit));
    row.firstChild.prepend(swatch(line.run), " ");
    return [row];
  });
  return [make("b", {}, title), ...rows, ...(chart.strip ? tellStrip(chart.strip, stop, x.at) : [])];
}

function curveTable(chart) {
  const lines = chart.lines.filter((line) => (!line.statistic || line.statistic === statistic) && (line.run !== null || line.over.length));
  if (lines.some((line) => line.over.length)) {
    const rows = lines.flatMap((line) => line.points.map(([x, y], index) => [data.runs[line.over[index]].label, withUnit(x, chart.x.unit), y === null ? "" : withUnit(y, chart.y.unit)]));
    return table(["Run", chart.x.title, chart.y.title], rows);
  }
  const label = chart.x.scale === "nines" ? percentText : format;
  const columns = lines.map((line) => new Map(line.points));
  const stops = [...new Set(lines.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
  const every = chart.x.scale === "nines" ? 10 : 1;
  const rows = stops.filter((_, index) => index % every === 0).map((x) => [label(x), ...columns.map((column) => (column.get(x) === undefined || column.get(x) === null ? "" : format(column.get(x))))]);
  const lineTable = table([chart.x.title, ...lines.map((line) => [data.runs[line.run].label, line.name].filter(Boolean).join(", "))], rows);
  return chart.strip ? make("div", {}, lineTable, stripTable(chart.strip)) : lineTable;
}

function table(head, rows) {
  const cells = (tag, texts) => make("tr", {}, ...texts.map((text) => make(tag, tag === "th" ? { scope: "col" } : {}, text)));
  return make("div", { class: "scroll", tabindex: 0 }, make("table", {}, make("thead", {}, cells("th", head)), make("tbody", {}, ...rows.map((row) => cells("td", row)))));
}

/* What stands above the figures: numbers to know first, and tables whose rows may have a sign and an interval */

function tile({ name, value, note, tone }) {
  return make("div", { class: `tile ${tone}` }, make("dt", {}, name), make("dd", {}, value), note ? make("p", {}, note) : null);
}

function told({ title, head, rows, notes, bar_at: place }) {
  const most = Math.max(0, ...rows.flatMap(({ bar }) => (bar ? [bar.value, bar.high].filter((value) => value !== null) : [])));
  const lines = rows.map(({ cells, run, strong, bar }) => make("tr", { class: strong ? "strong" : undefined }, ...cells.map((text, column) => make(column ? "td" : "th", column ? {} : { scope: "row" },
    column === 0 && run !== null ? swatch(run) : null, column === place && bar ? range(bar, run, most) : null, column === place ? make("span", {}, text) : text))));
  const all = make("table", {}, make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...lines));
  return make("figure", { class: "told", "data-title": title }, title ? make("figcaption", {}, make("h3", {}, title)) : null,
    rows.length ? make("div", { class: "scroll", tabindex: 0 }, all) : null, notes.length ? make("ul", {}, ...notes.map((line) => make("li", {}, line))) : null);
}

/* A value on a scale from 0, with its interval. */
function range(bar, run, most) {
  const wide = 110, at = (value) => 4 + (value / (most || 1)) * (wide - 8), style = run === null ? "fill:var(--ink)" : `fill:${color(run)}`;
  const svg = make("svg", { class: "range", width: wide, height: 16, viewBox: `0 0 ${wide} 16`, role: "img", "aria-label": intervalText(bar) || format(bar.value) });
  svg.append(make("rect", { class: "track", x: 0, y: 4, width: wide, height: 8, rx: 2 }), make("rect", { x: 0, y: 4, width: at(bar.value), height: 8, rx: 2, style }));
  const [low, high] = [bar.low, bar.high].map((end) => (end === null ? end : at(end).toFixed(1)));
  const bracket = `M${low},3v10M${high},3v10M${low},8H${high}`;
  if (low !== null) svg.append(make("path", { d: bracket, style: "stroke:var(--card);stroke-width:3.5;fill:none" }), make("path", { d: bracket, class: "whisker" }));
  return svg;
}

function addAnswer() {
  const answer = byId("answer");
  if (data.tiles.length) answer.append(make("dl", { id: "tiles" }, ...data.tiles.map(tile)));
  answer.append(...data.answer.map(told));
  answer.hidden = !answer.children.length;
}

/* The page */

function subtitle(chart) {
  if (chart.statistics) return chart.unit;
  const more = chart.title.startsWith(chart.y.title) ? "" : chart.y.title.replace(chart.title, "").replace(/^, /, "");
  return [more, chart.y.unit].filter(Boolean).join(", ");
}

function key(chart) {
  const names = new Map((chart.lines || []).filter((line) => line.name && line.run !== null).map((line) => [line.name, line.dashed]));
  if (names.size === 1) return chart.y.title.endsWith([...names.keys()][0]) ? "" : [...names.keys()][0];
  return names.size && names.size <= 2 ? [...names].map(([name, dashed]) => `${dashed ? "dashed" : "solid"}: ${name}`).join(", ") : "";
}

function addChart(chart, parent) {
  const bars = Boolean(chart.statistics), small = make("small"), note = make("p", {}, key(chart));
  const canvas = make("div"), details = make("details", {}, make("summary", {}, "Table"));
  const figure = make("figure", { "data-title": chart.title }, make("figcaption", {}, make("h3", {}, chart.title, small)), ...(key(chart) ? [note] : []), canvas, details);
  parent.append(figure);
  const draw = () => {
    const choice = bars ? chosen(chart) : chart.lines.some((line) => line.statistic) ? statistic : "";
    small.textContent = [subtitle(chart), choice].filter(Boolean).join(", ");
    canvas.replaceChildren((bars ? drawBars : drawCurves)(chart, Math.max(canvas.clientWidth, 240)));
    if (details.open) fill();
  };
  const fill = () => { details.lastElementChild.tagName === "DIV" && details.lastElementChild.remove(); details.append(bars ? barTable(chart) : curveTable(chart)); };
  details.addEventListener("toggle", () => { if (details.open) fill(); });
  drawings.push(draw);
}

function redraw() { hideTip(); drawings.forEach((draw) => draw()); }

function addRun(run, index) {
  const toggle = make("button", { type: "button", "aria-pressed": "true", title: run.label, "aria-label": [run.label, invalid(index) && run.verdict].filter(Boolean).join(", ") }, swatch(index), make("span", {}, shortened(run.label, 200)));
  if (invalid(index)) toggle.append(make("b", { class: "verdict bad" }, run.verdict.split(" ")[0]));
  toggle.addEventListener("click", () => {
    hidden.has(index) ? hidden.delete(index) : hidden.add(index);
    toggle.setAttribute("aria-pressed", String(shown(index)));
    redraw();
  });
  byId("legend").append(toggle);
  if (data.answer.length) return; // which says of each what a card would
  const card = make("article", { class: "run", style: `--color:${color(index)}` },
    make("h3", {}, run.label, make("span", { class: `verdict ${invalid(index) ? "bad" : run.missed ? "missed" : ""}` }, `${mark(index)} ${run.verdict}`)),
    make("p", {}, run.facts.join(" · ")),
    run.headline.length ? make("dl", {}, ...run.headline.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)))) : null,
    run.hover.length ? make("p", {}, run.hover.join(" · ")) : null,
    run.problems.length ? make("ul", { class: "problems" }, ...run.problems.map((line) => make("li", {}, line))) : null,
    run.findings.length ? make("details", {}, make("summary", {}, run.findings.length === 1 ? "1 finding" : `${run.findings.length} findings`), make("ul", {}, ...run.findings.map((line) => make("li", {}, line)))) : null);
  byId("runs").append(card);
}

function addHatches() {
  const patterns = data.runs.map((_, run) => make("pattern", { id: `hatch-${run}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, make("rect", { width: 2.5, height: 6, style: `fill:${color(run)}` })));
  document.body.append(make("svg", { width: 0, height: 0, style: "position:absolute", "aria-hidden": "true" }, make("defs", {}, ...patterns)));
}

function addStatistics() {
  const charts = data.sections.flatMap((section) => section.charts);
  const names = [...new Set(charts.flatMap((chart) => (chart.statistics ? Object.keys(chart.statistics) : chart.lines.map((line) => line.statistic))).filter(Boolean))];
  if (!names.includes(statistic)) statistic = names[0] || "";
  byId("statistics").hidden = !names.length;
  names.forEach((name) => {
    const radio = make("input", { type: "radio", name: "statistic", value: name });
    radio.checked = name === statistic;
    radio.addEventListener("change", () => { statistic = name; redraw(); });
    byId("statistics").append(make("label", {}, radio, name));
  });
}

function addTheme() {
  const kinds = ["auto", "light", "dark"], button = byId("theme");
  let kind = "auto";
  const apply = () => {
    document.documentElement.dataset.theme = kind;
    button.textContent = `Theme: ${kind}`;
  };
  button.addEventListener("click", () => { kind = kinds[(kinds.indexOf(kind) + 1) % 3]; apply(); });
  apply();
}

addHatches();
addAnswer();
byId("toolbar").hidden = !data.runs.length;
data.runs.forEach(addRun);
addStatistics();
addTheme();
for (const section of data.sections) {
  const curves = section.charts.some((chart) => chart.lines);
  const charts = make("div", { class: curves ? "charts wide" : "charts" });
  byId("main").append(make("section", { id: section.key }, make("h2", {}, section.title), make("p", { class: "text" }, section.text), ...section.tables.map(told), charts, section.commands.length ? make("pre", { tabindex: 0 }, section.commands.join("\n")) : null));
  section.charts.forEach((chart) => addChart(chart, charts));
}
redraw();
let settled = 0, width = innerWidth;
addEventListener("resize", () => {
  clearTimeout(settled);
  settled = setTimeout(() => { if (innerWidth !== width) { width = innerWidth; redraw(); } }, 120);
});
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
