"use strict";

/* The page is drawn already: this adds what is under the pointer, or where the arrow keys are, the ways to its parts, and the theme. */

const data = JSON.parse(document.getElementById("data").textContent);
const tip = document.getElementById("tip");
const figures = [...document.querySelectorAll("figure[data-figure]")].map((figure) => {
  const frame = figure.querySelector(".frame");
  return { frame, cross: frame.querySelector(".cross"), seconds: figure.closest(".strips") !== null, ...data[+figure.dataset.figure] };
});
const POINTS = ["dots", "squares", "rings"];

function place(axis, value) {
  if (axis.scale === "log") return Math.log(value / axis.low) / Math.log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

function format(value) {
  const size = Math.abs(value);
  const digits = size >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 };
  return value.toLocaleString("en-US", digits);
}

const withUnit = (value, unit) => format(value) + (unit && !/^[%/]/.test(unit) ? ` ${unit}` : unit);

function percentile(nines) {
  const share = 100 * (1 - 10 ** -nines);
  return nines === 0 ? "min" : `p${share.toFixed(nines < 1 ? 0 : Math.max(0, Math.ceil(nines - 2 + 1e-9)))}`;
}

const named = (axis, x) => (axis.scale === "nines" ? percentile(x) : `${axis.title} ${withUnit(x, axis.unit)}`);

/* The point of a trace that is nearest across; points of a cloud are nearest in the plane. */
function nearest(figure, trace, x, y, box) {
  const flat = !POINTS.includes(trace.kind);
  let best = null, least = Infinity;
  for (const [px, py] of trace.points) {
    if (py === null) continue;
    const across = (place(figure.x, px) - x) * box.width, down = flat ? 0 : (place(figure.y, py) - y) * box.height;
    const far = across * across + down * down;
    if (far < least) [least, best] = [far, [px, py]];
  }
  return { best, far: Math.sqrt(least) };
}

function row(trace, text) {
  const line = document.createElement("div"), name = document.createElement("span"), value = document.createElement("b");
  const swatch = document.createElement("i");
  swatch.className = `swatch ${trace.kind}`;
  swatch.style.setProperty("--c", trace.colour);
  name.append(swatch, ` ${trace.name}`);
  value.textContent = text;
  line.append(name, value);
  return line;
}

function tell(figure, x, y, screenX, screenY) {
  const box = figure.frame.getBoundingClientRect();
  let found = figure.traces.map((trace) => ({ trace, ...nearest(figure, trace, x, y, box) })).filter(({ best }) => best);
  if (!found.length) return;
  const closest = found.reduce((a, b) => (b.far < a.far ? b : a));
  if (POINTS.includes(closest.trace.kind)) found = [closest];
  else found = found.filter(({ far }) => far <= closest.far + 12);
  const head = document.createElement("b");
  head.textContent = named(figure.x, closest.best[0]);
  tip.replaceChildren(head, ...found.map(({ trace, best }) => row(trace, withUnit(best[1], figure.y.unit))));
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(screenX + 14, innerWidth - size.width - 4))}px`;
  tip.style.top = `${screenY + 18 + size.height > innerHeight ? Math.max(4, screenY - size.height - 12) : screenY + 18}px`;
  mark(figure, closest.best[0]);
}

/* A line at the same second of every picture over time. */
function mark(figure, x) {
  for (const other of figures) {
    const alike = other === figure || (other.seconds && figure.seconds);
    const at = place(other.x, x);
    other.cross.hidden = !alike || at < 0 || at > 1;
    other.cross.style.left = `${100 * at}%`;
  }
}

function end() {
  tip.hidden = true;
  for (const { cross } of figures) cross.hidden = true;
}

for (const figure of figures) {
  let step = 0;
  const { frame } = figure;
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect();
    tell(figure, (event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height, event.clientX, event.clientY);
  });
  frame.addEventListener("pointerleave", end);
  frame.addEventListener("blur", end);
  frame.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (!by) return;
    event.preventDefault();
    const stops = [...new Set(figure.traces.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
    step = Math.max(0, Math.min(stops.length - 1, step + by));
    const box = frame.getBoundingClientRect(), x = place(figure.x, stops[step]);
    tell(figure, x, 0.5, box.left + x * box.width, box.top + box.height / 3);
  });
}
addEventListener("keydown", (event) => { if (event.key === "Escape") end(); });

for (const section of document.querySelectorAll("main > section")) {
  const way = document.createElement("a");
  way.href = `#${section.id}`;
  way.textContent = section.querySelector("h2").textContent;
  document.getElementById("parts").append(way);
}

const kinds = ["auto", "light", "dark"], button = document.getElementById("theme");
let kind = 0;
const apply = () => {
  document.documentElement.dataset.theme = kinds[kind];
  button.textContent = `Theme: ${kinds[kind]}`;
};
button.hidden = false;
button.addEventListener("click", () => { kind = (kind + 1) % 3; apply(); });
apply();
