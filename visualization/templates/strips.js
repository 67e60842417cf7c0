/* Pictures over time: a strip a run, one above the other, all on the same axes. */

function drawStrips(chart, lines, width) {
  const runs = [...new Set(lines.map((line) => line.run))].sort((one, other) => one - other);
  const each = Math.max(38, Math.min(110, Math.floor(420 / runs.length))), top = chart.bands.length ? 16 : 4;
  const low = chart.strip ? STRIP + 8 : 0, bottom = top + each * runs.length, height = bottom + low + 40;
  const names = Math.max(54, Math.min(Math.max(...runs.map((run) => long(nameOf(run), 400, 11))) + 24, width * 0.26));
  const box = { left: names, right: width - 40, top, bottom }, ys = lines.flatMap((line) => line.points).filter((point) => point.y !== null).map((point) => point.y);
  const levels = within(levelsOf(chart), ys, chart.y.scale);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${chart.title}, one strip per run. Use the arrow keys to move along the points.` });
  svg.append(make("desc", {}, `${chart.y.title} against ${chart.x.title} of ${runs.length} runs; the table below has the numbers.`));
  const x = scale({ ...chart.x, tight: true }, timeSpan(chart), box.left, box.right);
  const y = exactScale(chart.y.scale, [...ys, ...levels.map((level) => level.value)], each - 3, 6);
  svg.append(...bands(chart.bands, x.at, box), ...timeAxis(chart, x, box, low));
  runs.forEach((run, place) => svg.append(oneStrip(run, lines, levels, x, y, { ...box, each, first: !place, filled: chart.y.scale !== "log" }, top + place * each)));
  if (chart.strip) svg.append(...strip(chart.strip, x.at, { ...box, top: bottom + 8, bottom: bottom + low }));
  const guide = make("line", { class: "guide", y1: top, y2: bottom + low, visibility: "hidden" });
  svg.append(guide);
  const under = (down) => { const run = runs[Math.floor((down - top) / each)]; return run === undefined ? lines : lines.filter((line) => line.run === run); };
  follow(svg, chart, lines, x, y, guide, width, height, under);
  return svg;
}

/* From what is least, or 0, to what is most: a strip has no room to give away. */
function exactScale(kind, values, from, to) {
  const of = kind === "log" ? LOG : (value) => value, least = Math.min(...values, kind === "log" ? Infinity : 0), most = Math.max(...values);
  const low = of(least), span = of(most) - low || 1;
  return { at: (value) => from + ((of(value) - low) / span) * (to - from), ticks: [least, most > least ? most : least + 1] };
}

const nameOf = (run) => `${data.runs[run].label}${invalid(run) ? " ✗" : ""}`;

/* Its name to the left; of the first the ends of the axis that all have to the right; the area below its first line
   tinted where the axis begins at 0. */
function oneStrip(run, lines, levels, x, y, box, down) {
  const floor = box.each - 3;
  const parts = y.ticks.flatMap((tick, top) => [
    make("line", { class: "grid", x1: box.left, x2: box.right, y1: y.at(tick), y2: y.at(tick) }),
    box.first ? make("text", { class: "soft", x: box.right + 5, y: y.at(tick) + (top ? 8 : 0) }, short(Number(tick.toPrecision(3)))) : null,
  ]).filter(Boolean);
  const middle = box.each / 2 + 4;
  parts.push(marker(run, 6, middle - 4, 3.5), make("text", { class: invalid(run) ? "soft failed" : "soft", x: 16, y: middle }, shortened(nameOf(run), box.left - 22, 11)));
  levels.forEach((level) => parts.push(levelLine(level, box.left, box.right, y.at(level.value), null)));
  for (const line of lines.filter((each) => each.run === run)) {
    const d = pathOf(line, x.at, y.at), style = `stroke:${color(run)}`, known = line.points.filter((point) => point.y !== null);
    const gaps = line.points.slice(line.points.indexOf(known[0]), line.points.lastIndexOf(known[known.length - 1]) + 1).length - known.length;
    if (box.filled && !line.dashed && !gaps) parts.push(make("path", { d: `${d}V${floor}H${x.at(known[0].x).toFixed(1)}Z`, class: "filled", style: `fill:${color(run)}` }));
    parts.push(make("path", { d, class: line.dashed ? "curve thin" : "curve", style }), ...lonely(line, x.at, y.at));
  }
  return make("g", { transform: `translate(0 ${down})`, class: "strip", "data-run": run }, ...parts);
}

/* Points that no line leads to. */
function lonely(line, x, y) {
  return line.points.filter((point, at) => point.y !== null && line.points[at - 1]?.y == null && line.points[at + 1]?.y == null).map((point) => marker(line.run, x(point.x), y(point.y), 3));
}

function timeAxis(chart, x, box, low) {
  const parts = x.ticks.flatMap((tick) => [
    make("line", { class: "axis", x1: x.at(tick), x2: x.at(tick), y1: box.bottom, y2: box.bottom + 4 }),
    make("text", { class: "soft", x: x.at(tick), y: box.bottom + low + 17, "text-anchor": "middle" }, short(tick)),
  ]);
  if (x.at(0) > box.left + 1) parts.push(make("line", { class: "axis", x1: x.at(0), x2: x.at(0), y1: box.bottom, y2: box.top }));
  return [...parts, make("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    make("text", { class: "soft", x: (box.left + box.right) / 2, y: box.bottom + low + 34, "text-anchor": "middle" }, `${chart.x.title}, ${chart.x.unit}`)];
}
