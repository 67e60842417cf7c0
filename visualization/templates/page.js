/* What stands above the figures: numbers to know first, and tables whose rows may have a sign and an interval */

function tile({ name, value, note, tone, large }) {
  return make("div", { class: `tile ${tone}${large ? " large" : ""}` }, make("dt", {}, name), make("dd", {}, ...breakable(value)), note ? make("p", {}, note) : null);
}

function tableFigure({ title, head, rows, notes, bar_at: place, signed }) {
  const most = Math.max(0, ...rows.flatMap(({ bar }) => (bar ? [bar.value, bar.high].filter((value) => value !== null) : [])));
  const bars = rows.map(({ bar }) => bar).filter(Boolean), largest = Math.max(0, ...bars.map(({ value }) => Math.abs(value)));
  const ends = Math.max(0, ...bars.flatMap(({ low, high }) => [Math.abs(low || 0), Math.abs(high || 0)]));
  const widest = Math.min(ends, Math.max(20, 3 * largest)); // an interval without a practical end goes to the edge
  const lines = rows.map(({ cells, run, strong, bar }) => make("tr", { class: strong ? "strong" : undefined }, ...cells.map((text, column) => make(column ? "td" : "th", column ? { "data-of": head[column] } : { scope: "row" },
    column === 0 && run !== null ? swatch(run) : null, column === place && bar ? (signed ? around(bar, widest) : range(bar, run, most)) : null, column === place ? make("span", {}, text) : text))));
  const all = make("table", {}, make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...lines));
  return make("figure", { class: "table-figure", "data-title": title }, title ? make("figcaption", {}, make("h3", {}, title)) : null,
    rows.length ? make("div", { class: "scroll", tabindex: 0 }, all) : null, notes.length ? make("ul", {}, ...notes.map((line) => make("li", {}, line))) : null);
}

/* A change with its interval on a scale around 0: a row of a forest plot. */
function around(bar, widest, wide = 200, high = 18) {
  const room = wide / 2 - 6, middle = high / 2;
  const at = (value) => (wide / 2 + Math.max(-room, Math.min(room, (value / (widest || 1)) * room))).toFixed(1);
  const sure = bar.low > 0 || bar.high < 0;
  return make("svg", { class: "range forest", width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": intervalText(bar) || format(bar.value) },
    make("path", { class: "zero", d: `M${wide / 2},0V${high}` }),
    make("path", { class: "whisker", d: `M${at(bar.low)},${middle}H${at(bar.high)}M${at(bar.low)},${middle - 4}v8M${at(bar.high)},${middle - 4}v8` }),
    make("circle", { class: sure ? "sure" : "open", cx: at(bar.value), cy: middle, r: 4.5 }));
}

/* A value on a scale from 0, with its interval. */
function range(bar, run, most, level = null, wide = 110, high = 16) {
  const at = (value) => (value / (most || 1)) * (wide - 4), middle = high / 2, thick = high / 4;
  const style = run === null ? "fill:var(--ink)" : `fill:${run !== null && invalid(run) ? `url(#hatch-${run})` : color(run)}`;
  const svg = make("svg", { class: "range", width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": intervalText(bar) || format(bar.value) });
  svg.append(make("rect", { class: "track", x: 0, y: middle - thick, width: wide, height: 2 * thick, rx: 2 }), make("rect", { x: 0, y: middle - thick, width: Math.max(at(bar.value), 1), height: 2 * thick, rx: 2, style }));
  if (level && level.value <= most) svg.append(make("path", { class: "level", d: `M${at(level.value).toFixed(1)},0V${high}` }));
  const [from, to] = [bar.low, bar.high].map((end) => (end === null ? end : at(end).toFixed(1)));
  const tip = middle - thick - 1, bracket = `M${from},${tip}v${2 * thick + 2}M${to},${tip}v${2 * thick + 2}M${from},${middle}H${to}`;
  if (from !== null) svg.append(make("path", { d: bracket, style: "stroke:var(--card);stroke-width:3.5;fill:none" }), make("path", { d: bracket, class: "whisker" }));
  return svg;
}

function addAnswer() {
  const answer = byId("answer");
  if (data.tiles.length) answer.append(make("dl", { id: "tiles" }, ...data.tiles.map(tile)));
  answer.append(...data.answer.map(tableFigure));
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
  const plain = (chart.lines || []).find((line) => line.run === null && !line.over.length && line.dashed);
  if (plain) return `dashed: ${plain.name}`;
  return names.size && names.size <= 2 ? [...names].map(([name, dashed]) => `${dashed ? "dashed" : "solid"}: ${name}`).join(", ") : "";
}

function addChart(chart, parent) {
  const bars = Boolean(chart.statistics), small = make("small"), note = make("p");
  const canvas = make("div"), details = make("details", {}, make("summary", {}, "Table"));
  const figure = make("figure", { "data-title": chart.title }, make("figcaption", {}, make("h3", {}, chart.title, small)), note, canvas, details);
  parent.append(figure);
  const draw = () => {
    const choice = bars ? chosen(chart) : chart.lines.some((line) => line.statistic) ? statistic : "";
    small.textContent = [subtitle(chart), choice].filter(Boolean).join(", ");
    note.textContent = [key(chart), chart.apart && chart.y.scale === "log" ? "logarithmic scale" : "", limitsText(chart, valuesOf(chart), bars ? "linear" : chart.y.scale)].filter(Boolean).join("; ");
    note.hidden = !note.textContent;
    canvas.replaceChildren((bars ? drawBars : drawCurves)(chart, Math.max(canvas.clientWidth, 240)));
    if (details.open) fill();
  };
  const fill = () => { details.lastElementChild.tagName === "DIV" && details.lastElementChild.remove(); details.append(bars ? barTable(chart) : curveTable(chart)); };
  details.addEventListener("toggle", () => { if (details.open) fill(); });
  drawings.push(draw);
}

/* What is drawn now, without the limits. */
function valuesOf(chart) {
  if (!chart.statistics) return visible(chart).flatMap((line) => line.points).map((point) => point.y).filter((y) => y !== null);
  return (chart.statistics[chosen(chart)] || []).filter((bar, place) => shown(place + chart.first) && bar.value !== null).map((bar) => Math.max(bar.value, bar.high || 0));
}

function redraw() { hideTip(); drawings.forEach((draw) => draw()); }

function addRun(run, index) {
  const toggle = make("button", { type: "button", "aria-pressed": "true", title: `Hide or show ${run.label}`, "aria-label": [run.label, invalid(index) && run.verdict].filter(Boolean).join(", ") }, swatch(index), make("span", {}, shortened(run.label, 200)));
  if (invalid(index)) toggle.append(make("b", { class: "verdict bad" }, data.runs.length > MANY ? "✗" : run.verdict.split(" ")[0]));
  toggle.addEventListener("click", () => {
    hidden.has(index) ? hidden.delete(index) : hidden.add(index);
    toggle.setAttribute("aria-pressed", String(shown(index)));
    document.querySelectorAll(`#overview tr[data-run="${index}"]`).forEach((row) => row.classList.toggle("off", !shown(index)));
    redraw();
  });
  byId("legend").append(toggle);
  if (data.answer.length || (data.overview && index < data.overview.rows.length)) return; // which says of each what a card would
  if (data.runs.length === 1 && data.tiles.length) { // which have its numbers
    const verdict = make("b", { class: `verdict ${invalid(index) ? "bad" : run.missed ? "missed" : ""}` }, `${mark(index)} ${run.verdict}`.trim());
    byId("answer").append(make("p", { class: "text" }, verdict, ` · ${[run.label, ...run.facts, ...run.hover].join(" · ")}`), ...run.problems.map((line) => make("p", { class: "problems" }, line)));
    return;
  }
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
  byId("statistics").hidden = names.length < 2;
  names.forEach((name) => {
    const radio = make("input", { type: "radio", name: "statistic", value: name });
    radio.checked = name === statistic;
    radio.addEventListener("change", () => { statistic = name; redraw(); });
    byId("statistics").append(make("label", {}, radio, name));
  });
}

addHatches();
addAnswer();
addOverview();
byId("toolbar").hidden = !data.runs.length;
data.runs.forEach(addRun);
addStatistics();
addTheme();
for (const section of data.sections) {
  const charts = make("div", { class: "charts" }), wide = make("div", { class: "charts wide" });
  byId("main").append(make("section", { id: section.key }, make("h2", {}, section.title), make("p", { class: "text" }, section.text), ...section.tables.map(tableFigure), charts, wide, sameInAll(section.same), section.commands.length ? make("pre", { tabindex: 0 }, section.commands.join("\n")) : null));
  section.charts.forEach((chart) => addChart(chart, chart.lines ? wide : charts));
}
byId("parts").append(...data.sections.map((section) => make("a", { href: `#${section.key}` }, section.title)));
byId("parts").hidden = data.sections.length < 4;
byId("legend").hidden = data.runs.length < 2;
drawAnew(redraw);
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  hideTip();
  if (lit !== null) light(lit);
});
