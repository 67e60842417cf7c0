/* The table to read first: sorted by a click on its head; a click on a run lights it up everywhere. */

let lit = null;

function light(run) {
  lit = lit === run ? null : run;
  byId("lit").textContent = lit === null ? "" : `main [data-run]:not([data-run="${lit}"]) { opacity: 0.28; }`;
  document.querySelectorAll("#overview tr[data-run]").forEach((row) => {
    const on = Number(row.dataset.run) === lit;
    row.classList.toggle("strong", on);
    row.querySelector("button").setAttribute("aria-pressed", String(on));
  });
  document.querySelectorAll("#overview tr.more").forEach((row) => { row.hidden = Number(row.dataset.of) !== lit; });
}

function runRow(run, cells, columns, most) {
  const { label, problems } = data.runs[run];
  const name = make("button", { type: "button", class: "name", "aria-pressed": "false", title: "Highlight it in every figure" }, swatch(run), make("span", {}, label));
  name.addEventListener("click", () => light(run));
  const head = make("th", { scope: "row", style: `--color:${color(run)}` }, name, problems.length ? make("small", { class: "problems" }, problems[0]) : null);
  return make("tr", { "data-run": run }, head, ...cells.map((cell, place) => runCell(run, cell, columns[place], most[place])));
}

function runCell(run, { text, bar, tone, note }, column, most) {
  const drawn = bar && column.numeric ? range(bar, run, most, column.level, 84, 9) : null;
  return make("td", { class: [column.numeric ? "" : "words", tone].filter(Boolean).join(" ") || undefined, title: bar ? intervalText(bar) || undefined : undefined },
    make("span", {}, ...worded(text, column)), drawn, note ? make("small", {}, note) : null);
}

/* A verdict's sign stands for it where there is little room. */
function worded(text, column) {
  const [sign, ...words] = text.split(" ");
  return !column.numeric && sign.length === 1 ? [sign, make("span", { class: "word" }, ` ${words.join(" ")}`)] : [text];
}

/* What else there is to say of a run: below its row, when it is lit. */
function moreRow(run, width) {
  const { facts, hover, problems, findings } = data.runs[run];
  const lines = [...problems, ...findings];
  const cell = make("td", { colspan: width }, make("p", {}, [...facts, ...hover].join(" · ")), lines.length ? make("ul", {}, ...lines.map((line) => make("li", {}, line))) : null);
  const row = make("tr", { class: "more", "data-of": run }, cell);
  row.hidden = true;
  return row;
}

function addOverview() {
  if (!data.overview) return;
  const { columns, rows, same } = data.overview;
  const most = columns.map(({ level }, place) => {
    const ends = rows.flatMap((cells) => (cells[place].bar ? [cells[place].bar.value, cells[place].bar.high || 0] : []));
    return Math.max(0, ...ends, ...within(level ? [level] : [], ends, "linear").map(({ value }) => value));
  });
  const body = make("tbody");
  const pairs = rows.map((cells, run) => [runRow(run, cells, columns, most), moreRow(run, columns.length + 1)]);
  const order = (place, falling) => {
    const rank = (run) => (place < 0 ? run : rows[run][place].rank);
    const runs = rows.map((_, run) => run).sort((one, other) => (rank(one) === null) - (rank(other) === null) || (falling ? rank(other) - rank(one) : rank(one) - rank(other)) || one - other);
    body.replaceChildren(...runs.flatMap((run) => pairs[run]));
  };
  const heads = [{ title: "Run", numeric: false, level: null }, ...columns].map((column, place) => headCell(column, place - 1, order));
  order(-1, false);
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body);
  const sameLine = same.length ? make("p", { class: "same" }, make("b", {}, "The same in all runs: "), same.join(" · ")) : null;
  byId("main").addEventListener("click", (event) => { // anything of a run lights it up, too
    const found = event.target.closest("[data-run]");
    if (found && rows[Number(found.dataset.run)]) light(Number(found.dataset.run));
  });
  byId("overview").append(make("div", { class: "scroll", tabindex: 0 }, table), ...[sameLine].filter(Boolean));
}

function headCell(column, place, order) {
  const button = make("button", { type: "button", title: "Sort by this column" }, column.title);
  const head = make("th", { scope: "col", class: column.numeric ? undefined : "words" }, button, column.level ? make("small", { class: "bad" }, column.level.text) : null);
  button.addEventListener("click", () => {
    const falling = head.getAttribute("aria-sort") === "ascending";
    head.parentNode.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    order(place, falling);
  });
  return head;
}

/* What is equal in all runs has a line and no picture. */
function sameInAll(pairs) {
  if (!pairs.length) return null;
  const listed = pairs.map(([name, text]) => (text.includes(",") && text.includes("p50") ? name : `${name} ${text}`)).join(" · ");
  return make("details", { class: "same" }, make("summary", {}, make("b", {}, "The same in all runs: "), listed), make("dl", {}, ...pairs.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])));
}
