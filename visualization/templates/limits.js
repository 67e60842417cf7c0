/* Limits are lines where the metric is. */

const levelsOf = (chart) => (chart.levels || []).filter((level) => !level.statistic || level.statistic === statistic);

/* Those for which there is room: a limit far from all that was measured would press it flat. */
function within(levels, values, kind) {
  const most = Math.max(...values), least = Math.min(...values);
  return levels.filter(({ value }) => (kind === "log" ? value > 0 && value <= 8 * most && value >= least / 8 : value <= 2.5 * most && value >= 0));
}

function levelLine(level, from, to, down, label) {
  const line = make("path", { class: "level", d: `M${from.toFixed(1)},${down.toFixed(1)}H${to.toFixed(1)}` });
  if (label === null) return line;
  return make("g", {}, line, make("text", { class: "level", x: label, y: down - 4 }, level.text));
}

function limitsText(chart, values, kind) {
  const all = levelsOf(chart), drawn = within(all, values, kind);
  return all.map((level) => `${level.word} ${level.text}${drawn.includes(level) ? "" : ", beyond the scale"}`).join(", ");
}
