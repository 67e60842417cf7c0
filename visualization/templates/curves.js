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
  low = axis.own ? low : Math.min(low, 0);
  high = high > low ? high : low + 1;
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
      points: line.points.map(([x, y], index) => ({ x, y, run: line.over.length ? line.over[index] : line.run, cross: line.crosses[index], text: line.texts[index] })).filter((p) => p.run === null || shown(p.run)),
    }));
}

function drawCurves(chart, width) {
  const low = chart.strip ? STRIP + 8 : 0; // what stands between the picture and the numbers of its axis
  const lines = visible(chart), named = namedAtTheirEnd(chart, lines);
  const bottom = Math.max(230, 12.5 * named.length + 20), height = bottom + 40 + low;
  const names = named.length ? Math.min(Math.max(...named.map((line) => long(data.runs[line.run].label, 400, 11))) + 30, width * 0.28) : 0;
  const box = { left: 54, right: width - 14 - names, top: 12, bottom };
  const points = lines.flatMap((line) => line.points).filter((point) => point.y !== null);
  if (chart.apart && new Set(points.map((point) => point.run)).size > 1) return drawStrips(chart, lines, width);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${chart.title}. Use the arrow keys to move along the points.` });
  svg.append(make("desc", {}, `${chart.y.title} against ${chart.x.title} of ${new Set(points.map((p) => p.run)).size} runs; the table below has the numbers.`));
  if (!points.some((point) => point.run !== null)) {
    svg.append(make("text", { x: box.left, y: 40, class: "soft" }, "Nothing to show for the chosen runs and statistic."));
    return svg;
  }
  const ends = (...places) => points.flatMap(({ cross }) => (cross ? places.map((place) => cross[place]).filter((end) => end !== null) : []));
  const xs = chart.x.title === "Time" ? timeSpan(chart) : [...points.map((p) => p.x), ...ends(0, 1)];
  const x = scale({ ...chart.x, tight: chart.x.title === "Time" }, xs, box.left, box.right);
  const ys = [...points.map((p) => p.y), ...ends(2, 3)], levels = within(levelsOf(chart), ys, chart.y.scale);
  const y = scale(chart.y, [...ys, ...levels.map((level) => level.value)], box.bottom, box.top);
  const stretches = bands(chart.bands, x.at, box), isName = (each) => each.tagName === "text";
  svg.append(...stretches.filter((each) => !isName(each)), ...axes(chart, x, y, box, low));
  if (chart.strip) svg.append(...strip(chart.strip, x.at, { ...box, top: box.bottom + 8, bottom: box.bottom + low }));
  levels.forEach((level) => svg.append(levelLine(level, box.left, level.until === null ? box.right : Math.min(x.at(level.until), box.right), y.at(level.value), box.left + 3)));
  lines.forEach((line) => svg.append(...curve(line, x.at, y.at, box, lines.length)));
  svg.append(...stretches.filter(isName), ...endNames(named, x.at, y.at, box, width));
  const guide = make("line", { class: "guide", y1: box.top, y2: box.bottom + low, visibility: "hidden" });
  svg.append(guide);
  follow(svg, chart, lines, x, y, guide, width, height);
  return svg;
}

/* Lines that cross have their names at their ends, which nobody has to look up; of one run alone, or of very many, none. */
const MOST_NAMED = 32;

function namedAtTheirEnd(chart, lines) {
  const own = lines.filter((line) => line.run !== null && line.points.some((point) => point.y !== null));
  return chart.x.scale === "nines" && own.length > 1 && own.length <= MOST_NAMED ? own : [];
}

/* As near to the ends as they have room one below the other, each with its sign and a thread to its line. */
function endNames(lines, x, y, box, width) {
  const ends = lines.map((line) => ({ run: line.run, ...line.points.filter((point) => point.y !== null).pop() })).map((end) => ({ ...end, from: y(end.y), at: y(end.y) })).sort((one, other) => one.from - other.from);
  const step = Math.min(13, (box.bottom - box.top) / ends.length);
  ends.forEach((end, place) => { end.at = Math.max(end.at, box.top + 4, place ? ends[place - 1].at + step : 0); });
  ends.reverse().forEach((end, place) => { end.at = Math.min(end.at, place ? ends[place - 1].at - step : box.bottom - 2); });
  return ends.map((end) => {
    const text = make("text", { class: invalid(end.run) ? "soft failed" : "soft", x: box.right + 24, y: end.at + 4 }, shortened(nameOf(end.run), width - box.right - 28, 11));
    const thread = make("path", { class: "thread", d: `M${x(end.x).toFixed(1)},${end.from.toFixed(1)}H${box.right.toFixed(1)}L${box.right + 9},${end.at.toFixed(1)}`, style: `stroke:${color(end.run)}` });
    return make("g", { class: "end", "data-run": end.run }, thread, marker(end.run, box.right + 15, end.at, 3.5), text);
  });
}

/* Pictures over time share one axis: from the start, or what was measured before it, to the last second or stage. */
function timeSpan(chart) {
  const section = data.sections.find(({ charts }) => charts.includes(chart)), charts = section.charts.filter((each) => each.x && each.x.title === "Time");
  const lines = charts.flatMap((chart) => chart.lines).filter((line) => shown(line.run));
  const ends = lines.map((line) => line.points[line.points.length - 1][0]);
  const stages = charts.flatMap((chart) => chart.bands.map(([, , end]) => end));
  return [Math.min(0, ...lines.map((line) => line.points[0][0])), Math.max(1, ...ends, ...stages, ...charts.map((chart) => chart.until || 0))];
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

function pathOf(line, x, y) {
  let d = "", pen = "M";
  for (const point of line.points) {
    if (point.y === null) { d += pen === "H" ? `H${x(point.x).toFixed(1)}` : ""; pen = "M"; continue; }
    const [across, down] = [x(point.x).toFixed(1), y(point.y).toFixed(1)];
    d += pen === "H" ? `H${across}V${down}` : `${pen}${across},${down}`;
    pen = line.stepped ? "H" : "L";
  }
  return d;
}

const LIMITS = ["limit", "allowed"]; // the names of lines that are one

function curve(line, x, y, box, count) {
  if (line.run === null && line.marked) return line.points.flatMap((point) => ring(line.name, x(point.x), y(point.y), box));
  const over = line.over.length > 0, plain = line.run === null && !over;
  const strokes = line.run === null || line.dashed ? "" : dash(line.run);
  const style = line.run === null ? undefined : `stroke:${color(line.run)}${strokes && `;stroke-dasharray:${strokes}`}`;
  const alone = ["chosen", "faint", "bad"].includes(line.tone); // points, which no line joins
  const kind = ["curve", line.dashed && "dashed", over && "over", line.tone, plain && "plain", plain && LIMITS.includes(line.name) && "level", count > 8 && "many"].filter(Boolean).join(" ");
  const parts = alone ? [] : [make("path", { d: pathOf(line, x, y), class: kind, style, "data-run": line.run })];
  const known = line.points.filter((point) => point.y !== null && point.run !== null && line.tone !== "bare");
  parts.push(...known.filter(({ cross }) => cross).map((point) => cross(point, x, y, line.tone)));
  if (count > 8 && !over && !line.marked) known.length = 0; // their names at their ends have the markers
  const step = over || line.marked ? 1 : Math.max(1, Math.ceil(known.length / 6)), first = step === 1 ? 0 : ((line.run * step) / Math.max(count, 1)) | 0;
  const single = (at) => line.points[at - 1]?.y == null && line.points[at + 1]?.y == null; // no line leads to it
  known.forEach((point, index) => {
    if ((index - first) % step === 0 || single(line.points.indexOf(point))) parts.push(toned(marker(point.run, x(point.x), y(point.y), over ? 5 : 3), line.tone));
    if (over && (invalid(point.run) || line.tone === "bad")) parts.push(make("text", { class: "bad", x: x(point.x), y: y(point.y) - 9, "text-anchor": "middle" }, "✗"));
  });
  const level = plain && line.name && line.points[0].y === line.points[line.points.length - 1].y;
  if (level) parts.push(make("text", { class: LIMITS.includes(line.name) ? "level" : "soft", x: x(line.points[0].x) + 2, y: y(line.points[0].y) - 4 }, line.name));
  if (line.knee && over && line.points.some((point) => point.x === line.knee)) parts.push(...knee(line.knee, x, y, box));
  return parts;
}

/* The 95% interval of a point, along each axis on which it is bounded. */
function cross({ run, x: across, y: up, cross: [left, right, low, high] }, x, y, tone) {
  const wide = left === null || right === null ? "" : `M${x(left).toFixed(1)},${y(up).toFixed(1)}H${x(right).toFixed(1)}`;
  const tall = low === null || high === null ? "" : `M${x(across).toFixed(1)},${y(low).toFixed(1)}V${y(high).toFixed(1)}`;
  return toned(make("path", { d: wide + tall, class: "cross", style: `stroke:${color(run)}`, "data-run": run }), tone);
}

function toned(sign, tone) {
  if (tone) sign.classList.add(tone);
  if (tone === "bad" && sign.style.fill !== "none") { sign.style.stroke = sign.style.fill; sign.style.fill = "var(--card)"; } // hollow
  return sign;
}

/* A point of its own, such as the wave that confirmed an answer; its name is below and to the right: a curve that rises is not there. */
function ring(name, left, top, box) {
  const fits = left + 8 * name.length < box.right;
  return [
    make("circle", { class: "ring", cx: left, cy: top, r: 6 }),
    make("text", { class: "value", x: left + (fits ? 5 : -5), y: Math.min(top + 19, box.bottom - 4), "text-anchor": fits ? "start" : "end" }, name),
  ];
}

function knee(rate, x, y, box) {
  const right = x(rate) > (box.left + box.right) / 2;
  return [
    make("path", { class: "knee", d: `M${x(rate)},${box.bottom}V${box.top}` }),
    make("text", { class: "value", x: x(rate) + (right ? -6 : 6), y: box.top + 10, "text-anchor": right ? "end" : "start" }, `keeps up to ${format(rate)}/s`),
  ];
}

/* What is under the pointer, or where the arrow keys are. */
function follow(svg, chart, lines, x, y, guide, width, height, under = () => lines) {
  const across = lines.some((line) => line.over.length);
  const stops = [...new Set(lines.filter((line) => across === line.over.length > 0).flatMap((line) => line.points.filter((p) => p.y !== null).map((p) => p.x)).concat(chart.strip ? seen(chart.strip).marks.map((mark) => mark.x) : []))].sort((a, b) => a - b);
  let place = -1;
  const tell = (stop, screenX, screenY, some = lines) => {
    guide.setAttribute("visibility", "visible");
    guide.setAttribute("x1", x.at(stop));
    guide.setAttribute("x2", x.at(stop));
    showTip(across ? tellRuns(chart, lines, stop) : tellLines(chart, some, stop, x), screenX, screenY);
  };
  const end = () => { guide.setAttribute("visibility", "hidden"); hideTip(); };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * width;
    tell(nearest(stops, at, x.at), event.clientX, event.clientY, under(((event.clientY - box.top) / box.height) * height));
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
  return points.flatMap((p) => [...about(p.run), ...(p.text ? [make("div", {}, p.text)] : []), pair(chart.x.title, withUnit(p.x, chart.x.unit)), pair(chart.y.title, withUnit(p.y, chart.y.unit))]);
}

const MOST_ROWS = 14;

function tellLines(chart, lines, stop, x) {
  const title = chart.x.scale === "nines" ? percentText(stop) : `${chart.x.title} ${withUnit(stop, chart.x.unit)}`;
  const rows = lines.filter((line) => lit === null || line.run === lit).flatMap((line) => {
    const known = line.points.filter((p) => p.y !== null);
    if (!known.length || line.run === null) return [];
    const at = nearest(known.map((p) => p.x), x.at(stop), x.at);
    if (Math.abs(x.at(at) - x.at(stop)) > 12) return [];
    const row = pair([data.runs[line.run].label, line.name].filter(Boolean).join(", "), withUnit(known.find((p) => p.x === at).y, chart.y.unit));
    row.firstChild.prepend(swatch(line.run), " ");
    return [row];
  });
  const more = rows.length - MOST_ROWS;
  if (more > 1) rows.splice(MOST_ROWS, rows.length, make("div", {}, `and ${more} more; click a run to highlight it alone`));
  return [make("b", {}, title), ...rows, ...(chart.strip ? tellStrip(chart.strip, stop, x.at) : [])];
}

function curveTable(chart) {
  const lines = chart.lines.filter((line) => (!line.statistic || line.statistic === statistic) && (line.run !== null || line.over.length));
  if (lines.some((line) => line.over.length)) {
    const rows = lines.flatMap((line) => line.points.map(([x, y], index) => [[data.runs[line.over[index]].label, line.texts[index]].filter(Boolean).join(", "), withUnit(x, chart.x.unit), y === null ? "" : withUnit(y, chart.y.unit)]));
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
