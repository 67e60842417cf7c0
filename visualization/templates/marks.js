"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const hidden = new Set();
let statistic = data.statistic;
const drawings = [];
const COLORS = 8;
const MARKERS = ["circle", "square", "triangle", "diamond", "down", "plus", "cross", "ring", "star"];

const byId = (id) => document.getElementById(id);
const color = (run) => `var(--run-${(data.sides?.length ? data.sides[run] : run) % COLORS})`; // one colour for each side
const invalid = (run) => data.runs[run].doubtful;
const mark = (run) => invalid(run) ? "✗" : data.runs[run].missed ? "!" : /^[A-Z]/.test(data.runs[run].verdict) ? "✓" : ""; // what was judged is in capitals
const shown = (run) => !hidden.has(run);
const dash = (run) => data.dashes[Math.floor(run / COLORS) % data.dashes.length].join(" ");

/* Elements */

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "path", "text", "line", "defs", "pattern", "desc", "tspan", "circle"].includes(tag);
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

/* The sign of a run: its line with its marker. */
function swatch(run) {
  const line = make("path", { d: "M0,7H26", style: `stroke:${color(run)};stroke-width:2;stroke-dasharray:${dash(run) || "none"};fill:none` });
  return make("svg", { class: "swatch", width: 26, height: 14, viewBox: "0 0 26 14", "aria-hidden": "true" }, line, marker(run, 13, 7, 4.5));
}

/* A name that may go on in the next line between its words: CPU, Utilization. */
function breakable(name) {
  return String(name).split(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/).flatMap((word, place) => (place ? [make("wbr"), word] : [word]));
}

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
  if (bar.low === null) return "";
  const [low, high] = [format(bar.low), format(bar.high)];
  return low === high ? "" : `95%: ${low} – ${high}`; // of a whole number of instances both ends may be one
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

function shortened(text, room, size = 12) {
  let kept = text.length; // both ends say more than the beginning alone
  const cut = () => (kept === text.length ? text : `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`);
  while (kept > 3 && long(cut(), 400, size) > room) kept -= 1;
  return cut();
}

/* The page */

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

/* Draws now, and whenever the window has another width. */
function drawAnew(draw) {
  let settled = 0, width = innerWidth;
  draw();
  addEventListener("resize", () => {
    clearTimeout(settled);
    settled = setTimeout(() => { if (innerWidth !== width) { width = innerWidth; draw(); } }, 120);
  });
}
