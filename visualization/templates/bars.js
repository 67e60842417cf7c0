/* Bars */

const MANY = 5; // from which on a bar has one line

function chosen(chart) {
  const names = Object.keys(chart.statistics);
  return names.length === 1 ? names[0] : statistic;
}

function drawBars(chart, width) {
  const choice = chosen(chart);
  const bars = (chart.statistics[choice] || chart.statistics[Object.keys(chart.statistics)[0]].map(() => ({ value: null, low: null, high: null, note: "" })));
  const of = (run) => bars[run - chart.first];
  const runs = data.runs.map((_, run) => run).filter((run) => shown(run) && of(run) && !(BY_NAME.includes(chart.source) && of(run).value === null));
  const ends = runs.flatMap((run) => [of(run).value, of(run).high].filter((v) => v !== null));
  const levels = within(levelsOf(chart), ends, "linear");
  const most = Math.max(0, ...ends, ...beside(chart), ...levels.map((level) => level.value));
  const least = Math.min(0, ...runs.map((run) => of(run).value || 0));
  const low = runs.length > MANY && width >= 300, span = most - least || 1, high = low ? 21 : 38;
  const value = low ? Math.max(...runs.map((run) => long(barText(of(run), chart.unit), 600, 12.5))) + 8 : 0;
  const name = low ? Math.min(Math.max(...runs.map((run) => long(data.runs[run].label) + (invalid(run) ? 20 : 0))) + 30, width * 0.45) : 0;
  const room = { low, name, width, at: (number) => name + ((number - least) / span) * (width - 2 - name - value) };
  const svg = make("svg", { viewBox: `0 0 ${width} ${Math.max(high * runs.length, 20)}`, role: "group", "aria-label": chart.title });
  svg.append(make("desc", {}, runs.map((run) => `${data.runs[run].label}: ${barText(of(run), chart.unit)}`).join("; ")));
  runs.forEach((run, place) => svg.append(barRow(chart, choice, of(run), run, place * high, room)));
  levels.forEach((level) => svg.append(make("path", { class: "level", d: runs.map((_, place) => `M${room.at(level.value).toFixed(1)},${place * high + (low ? 0 : 16)}v${low ? high : 18}`).join("") }))); // beside no text
  if (!runs.length) svg.append(make("text", { x: 0, y: 14, class: "soft" }, "No run is shown."));
  return svg;
}

/* Turns, labels, and errors, are held against one another: all of them on one scale. */
const BY_NAME = ["turns", "labels", "errors"];

function beside(chart) {
  if (!BY_NAME.includes(chart.source)) return [];
  const charts = data.sections.flatMap((section) => section.charts).filter((each) => each.source === chart.source);
  return charts.flatMap((each) => (each.statistics[chosen(each)] || []).filter((bar, place) => shown(place + each.first)).map((bar) => bar.value || 0));
}

/* With its name and its number above the bar; where there are many, beside it. */
function barRow(chart, name, bar, run, top, { low, name: names, width, at }) {
  const { label } = data.runs[run], text = barText(bar, chart.unit), interval = intervalText(bar);
  const spoken = [`${label}: ${text}`, interval, bar.note, invalid(run) ? data.runs[run].verdict : "", ...data.runs[run].hover].filter(Boolean).join(", ");
  const row = make("g", { class: "row", tabindex: 0, role: "img", "aria-label": spoken, "data-run": run, "data-value": bar.value, transform: `translate(0 ${top})` });
  const beside = low ? width - names : long(text, 600, 12.5) + (interval ? long(interval, 400, 10.5) + 8 : 0);
  const word = low ? "✗" : data.runs[run].verdict.split(" ")[0], room = width - 26 - beside - (invalid(run) ? (low ? 20 : 66) : 0);
  const title = make("text", { x: 16, y: 13 }, shortened(label, room));
  if (invalid(run)) title.append(make("tspan", { class: "bad", dx: 6 }, word));
  const value = make("text", { x: width, y: 13, "text-anchor": "end", class: bar.value === null ? "soft" : "value" });
  if (interval && !low) value.append(make("tspan", { class: "soft", "font-weight": 400, style: "fill:var(--soft);font-size:10.5px" }, `${interval}  `));
  value.append(text);
  const down = low ? 3 : 19, end = low ? at(0) : 0;
  row.append(make("rect", { x: 0, y: 0, width, height: low ? 20 : 34, fill: "transparent" }), marker(run, 6, 9, 4), title, value);
  if (!low) row.append(make("rect", { class: "track", x: end, y: down, width, height: 12, rx: 2 }));
  if (bar.value !== null) row.append(...barShape(bar, run, at, down));
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

function barShape(bar, run, at, down) {
  const left = Math.min(at(0), at(bar.value)), size = Math.max(Math.abs(at(bar.value) - at(0)), 1);
  const fill = invalid(run) ? `url(#hatch-${run})` : color(run);
  const parts = [make("rect", { class: "bar", x: left, y: down, width: size, height: 12, rx: 2, style: `fill:${fill};stroke:${color(run)};stroke-width:${invalid(run) ? 1 : 0}` })];
  if (bar.low !== null) {
    const [from, to] = [at(bar.low), at(bar.high)];
    const bracket = `M${from},${down + 1}v10M${to},${down + 1}v10M${from},${down + 6}H${to}`;
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
