/* The page of a single run: draws its figures, and tells what is under the pointer, or where the arrow keys are. */

const POINTS = ["dots", "squares", "rings"];
const toneOf = (colour) => (typeof colour === "number" ? color(colour) : `var(--${colour})`);
const figures = [...document.querySelectorAll("figure[data-figure]")].map((figure) => ({
  ...data.figures[+figure.dataset.figure], frame: figure.querySelector(".frame"), seconds: figure.closest(".strips") !== null,
}));

function drawFigure(figure) {
  const { frame, traces, levels, flags } = figure, width = Math.max(frame.clientWidth, 200), height = frame.clientHeight;
  const box = { left: 54, right: width - 14, top: figure.bands.length || flags.length ? 20 : 14, bottom: height - 38 };
  const points = traces.flatMap((trace) => trace.points), known = points.filter(([, y]) => y !== null);
  const ends = [...figure.bands.flatMap(([, start, end]) => [start, end]), ...(figure.span || [])];
  const x = scale({ ...figure.x, tight: true, own: true }, [...points.map(([at]) => at), ...ends], box.left, box.right);
  const y = scale(figure.y, [...known.map(([, value]) => value), ...levels.map(({ value }) => value)], box.bottom, box.top);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${figure.title} (${figure.y.unit || "number"}) by ${figure.x.title.toLowerCase()}` });
  const guide = make("line", { class: "guide", y1: box.top, y2: box.bottom, visibility: "hidden" });
  svg.append(...bands(figure.bands, x.at, box), ...axes(figure, x, y, box, 0), ...traces.map((trace) => traceOf(trace, x.at, y.at, box)),
    ...levels.flatMap((level) => limitOf(level, x, y, box)), ...flagsOf(flags, x.at, y.at, width, height), guide);
  frame.replaceChildren(svg);
  Object.assign(figure, { place: { x: x.at, y: y.at }, guide, width, height });
}

function traceOf({ points, kind, faint, colour }, x, y, box) {
  const at = ([across, up]) => `${x(across).toFixed(1)},${y(up).toFixed(1)}`, known = points.filter(([, up]) => up !== null);
  const dots = (some) => some.map((point) => `M${at(point)}h0`).join("");
  const alone = points.filter(([, up], place) => up !== null && points[place - 1]?.[1] == null && points[place + 1]?.[1] == null);
  const column = ([across, up], place) => (up ? `M${x(across).toFixed(1)},${box.bottom}V${y(up).toFixed(1)}H${x(points[place + 1][0]).toFixed(1)}V${box.bottom}Z` : "");
  const line = () => pathOf({ points: points.map(([across, up]) => ({ x: across, y: up })) }, x, y) + dots(alone);
  const d = kind === "columns" ? points.slice(0, -1).map(column).join("") : POINTS.includes(kind) ? dots(known) : line();
  return make("path", { class: `trace ${kind} faint-${faint}${known.length === 1 ? " lone" : ""}`, style: `--c:${toneOf(colour)}`, d });
}

/* A limit with its name at its right end, and a sign at the percentile that it is on. */
function limitOf({ value, name, missed, at }, x, y, box) {
  const tone = `level ${missed ? "missed" : "kept"}`, up = y.at(value), across = at === null ? null : x.at(at);
  const sign = across !== null && across >= box.left && across <= box.right;
  return [
    make("path", { class: tone, d: `M${box.left},${up.toFixed(1)}H${box.right}` }),
    make("text", { class: tone, x: box.right - 2, y: up - 4, "text-anchor": "end" }, `${missed ? "✗" : "✓"} ${name}`),
    ...(sign ? [make("text", { class: tone, x: across, y: up + 4, "text-anchor": "middle" }, "◇")] : []),
  ];
}

/* The numbers of points that a table tells of; none where another stands already. */
function flagsOf(flags, x, y, width, height) {
  const taken = [];
  return flags.flatMap((flag) => {
    const [across, up] = [x(flag.x), y(flag.y)];
    if (taken.some(([left, top]) => Math.abs(across - left) <= 0.025 * width && Math.abs(up - top) <= 0.06 * height)) return [];
    taken.push([across, up]);
    return [make("text", { class: "flag", x: across, y: up - 5, "text-anchor": "middle" }, flag.text)];
  });
}

/* The point of a trace that is nearest across; points of a cloud are nearest in the plane. */
function nearestPoint({ place }, trace, across, up) {
  const flat = !POINTS.includes(trace.kind);
  let best = null, least = Infinity;
  for (const [x, y] of trace.points) {
    if (y === null) continue;
    const far = Math.hypot(place.x(x) - across, flat ? 0 : place.y(y) - up);
    if (far < least) [least, best] = [far, [x, y]];
  }
  return { trace, best, far: least };
}

function tellPoint(figure, across, up, screenX, screenY) {
  let found = figure.traces.map((trace) => nearestPoint(figure, trace, across, up)).filter(({ best }) => best);
  if (!found.length) return;
  const closest = found.reduce((a, b) => (b.far < a.far ? b : a)), [x] = closest.best;
  found = POINTS.includes(closest.trace.kind) ? [closest] : found.filter(({ far }) => far <= closest.far + 12);
  const rows = found.map(({ trace, best }) => {
    const row = pair(` ${trace.name}`, withUnit(best[1], figure.y.unit));
    row.firstChild.prepend(make("i", { class: `swatch ${trace.kind}`, style: `--c:${toneOf(trace.colour)}` }));
    return row;
  });
  const named = figure.x.scale === "nines" ? percentText(x) : `${figure.x.title} ${withUnit(x, figure.x.unit)}`;
  showTip([make("b", {}, named), ...rows], screenX, screenY);
  for (const other of figures) guideAt(other, other === figure || (other.seconds && figure.seconds) ? x : null);
}

/* A line at the same second of every picture over time. */
function guideAt({ guide, place }, x) {
  guide.setAttribute("visibility", x === null ? "hidden" : "visible");
  if (x !== null) for (const end of ["x1", "x2"]) guide.setAttribute(end, place.x(x).toFixed(1));
}

function endTip() {
  hideTip();
  figures.forEach((figure) => guideAt(figure, null));
}

for (const figure of figures) {
  const { frame } = figure;
  let step = 0;
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect();
    tellPoint(figure, ((event.clientX - box.left) / box.width) * figure.width, ((event.clientY - box.top) / box.height) * figure.height, event.clientX, event.clientY);
  });
  frame.addEventListener("pointerleave", endTip);
  frame.addEventListener("blur", endTip);
  frame.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (!by) return;
    event.preventDefault();
    const stops = [...new Set(figure.traces.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
    step = Math.max(0, Math.min(stops.length - 1, step + by));
    const box = frame.getBoundingClientRect(), x = figure.place.x(stops[step]);
    tellPoint(figure, x, figure.height / 2, box.left + (x / figure.width) * box.width, box.top + box.height / 3);
  });
}
addEventListener("keydown", (event) => { if (event.key === "Escape") endTip(); });

for (const section of document.querySelectorAll("main > section")) byId("parts").append(make("a", { href: `#${section.id}` }, section.querySelector("h2").textContent));
byId("theme").hidden = false;
addTheme();
drawAnew(() => figures.forEach(drawFigure));
