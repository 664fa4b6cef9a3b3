"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const { features, rows, labels, level, uncertain } = facts;
  const d = features.length, n = rows.length, SHOWN = 25, MOST_BARS = 12, MOST_POINTS = 1500;
  const unpack = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const A = Object.fromEntries(Object.entries(facts.arrays).map(([name, text]) => [name, unpack(text)]));
  const at = (array, row, feature) => array[row * d + feature];
  const el = (id) => document.getElementById(id);
  const make = (tag, text, attributes = {}) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text; // never HTML: a column may be called anything
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  };

  // Numbers as people read them.
  const plain = (x) => (Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-4) ? x.toExponential(2) : Number(x.toPrecision(4)).toString()).replace("-", "−");
  const short = (x) => (Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-4) ? x.toExponential(1) : Number(x.toPrecision(3)).toString()).replace("-", "−");
  const signed = (x) => (x > 0 ? "+" : "") + short(x);
  const percent = (p) => (p > 0.999 ? "more than 99.9 %" : `${(100 * p).toFixed(p > 0.99 ? 1 : 0)} %`);
  const value = (row, i) => (labels[features[i]] ? labels[features[i]][row] : Number.isNaN(at(A.data, row, i)) ? "–" : plain(at(A.data, row, i)));
  const sure = (row, i) => Math.max(at(A.positive, row, i), 1 - at(A.positive, row, i));
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;"); // Plotly reads tags

  const layout = (extra) => ({
    margin: { l: 8, r: 16, t: 8, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: color("--ink"), family: "system-ui, sans-serif", size: 13 }, showlegend: false, hovermode: "closest", ...extra,
  });
  const axis = (extra) => ({ gridcolor: color("--line"), zerolinecolor: color("--soft"), automargin: true, fixedrange: true, ...extra });
  const words = (long, brief) => (window.innerWidth < 500 ? brief : long); // what fits below a picture on a phone
  const config = { displayModeBar: false, responsive: true };

  const order = features.map((_, i) => i).sort((i, j) => facts.importance.values[j] - facts.importance.values[i]);

  function drawImportance() {
    const shown = order.slice(0, MOST_BARS).reverse(), v = facts.importance;
    const values = shown.map((i) => v.values[i]);
    const error = v.low === null ? undefined : {
      type: "data", symmetric: false, color: color("--ink"), thickness: 1.3, width: 4,
      array: shown.map((i) => Math.max(v.high[i] - v.values[i], 0)), arrayminus: shown.map((i) => Math.max(v.values[i] - v.low[i], 0)),
    };
    Plotly.react("importance", [{
      type: "bar", orientation: "h", x: values, y: shown.map((i) => escaped(features[i])), error_x: error,
      marker: { color: color("--down") }, hovertemplate: "%{y}: %{x:.4g}<extra></extra>",
    }], layout({ height: 90 + 28 * shown.length, xaxis: axis({ title: { text: words(`mean |attribution| to the ${facts.quantity}`, "mean |attribution|") } }), yaxis: axis({}) }), config);
    const hidden = d - shown.length;
    el("importance-note").textContent = (v.low === null ? "Means of absolute attributions over these rows." : `Expected mean absolute attribution over the rows, with ${Math.round(100 * level)} % credible intervals.`) + (hidden > 0 ? ` ${hidden} smaller features are not shown.` : "");
  }

  // From the baseline to the prediction: `all` are the features, {name, x} and, where they are known, low, high and sure.
  function drawWaterfall(id, all, base, prediction) {
    const falling = all.slice().sort((one, two) => Math.abs(two.x) - Math.abs(one.x));
    const steps = falling.slice(0, MOST_BARS), rest = falling.slice(MOST_BARS);
    const intervals = steps.some((step) => step.low !== undefined);
    if (rest.length) steps.push({ name: `${rest.length} other features`, x: rest.reduce((sum, step) => sum + step.x, 0) });
    steps.reverse();
    let position = base;
    for (const step of steps) { step.base = position; position += step.x; }
    const ends = steps.map((step) => step.base + step.x);
    const text = steps.map((step) => signed(step.x) + (step.sure !== undefined ? `  (${percent(step.sure)} sure)` : ""));
    const names = steps.map((step) => escaped(step.name));
    const data = [{
      type: "bar", orientation: "h", y: names, x: steps.map((step) => step.x), base: steps.map((step) => step.base),
      marker: { color: steps.map((step) => color(step.x < 0 ? "--down" : "--up")) }, hoverinfo: "y+text", hovertext: text,
    }, {
      type: "scatter", mode: "markers", y: names, x: ends, marker: { size: 1, color: color("--ink") }, hoverinfo: "skip",
      error_x: intervals ? { type: "data", symmetric: false, color: color("--ink"), thickness: 1.3, width: 4, array: steps.map((s) => (s.high === undefined ? 0 : s.high - s.x)), arrayminus: steps.map((s) => (s.low === undefined ? 0 : s.x - s.low)) } : undefined,
    }];
    const lines = [base, prediction].map((x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: color("--soft"), width: 1, dash: "dot" }, layer: "below" }));
    Plotly.react(id, data, layout({ height: 90 + 30 * steps.length, shapes: lines, xaxis: axis({ zeroline: false, title: { text: intervals ? words(`${facts.quantity}, with ${Math.round(100 * level)} % intervals`, facts.quantity) : facts.quantity } }), yaxis: axis({}) }), config);
    return steps;
  }

  let chosen = 0;
  function drawRow() {
    const all = features.map((name, i) => ({
      name: `${name} = ${value(chosen, i)}`, x: at(A.values, chosen, i), i,
      ...(uncertain ? { low: at(A.low, chosen, i), high: at(A.high, chosen, i), sure: sure(chosen, i) } : {}),
    }));
    const steps = drawWaterfall("waterfall", all, A.base[chosen], A.predictions[chosen]);
    el("row-title").textContent = `Row ${rows[chosen]}: ${plain(A.predictions[chosen])}, at the baseline ${plain(A.base[chosen])}`;
    const list = make("ul");
    for (const step of steps.slice().reverse()) {
      if (step.i === undefined || step.x === 0) continue;
      const verb = step.x > 0 ? "adds" : "takes away", i = step.i;
      const item = make("li");
      item.append(make("strong", `${features[i]} = ${value(chosen, i)}`), document.createTextNode(` ${verb} `), make("span", short(Math.abs(step.x)), { class: step.x > 0 ? "up" : "down" }));
      if (uncertain) item.append(document.createTextNode(` ± ${Number(at(A.std, chosen, i).toPrecision(2))}; the model is ${percent(sure(chosen, i))} sure that it ${verb}.`));
      list.append(item);
    }
    el("sentences").replaceChildren(list);
    for (const row of el("rows").tBodies[0].rows) row.setAttribute("aria-selected", String(Number(row.dataset.row) === chosen));
    startWhatIf();
  }

  // What if? The model itself, asked about values of one's own.
  const model = facts.what_if && whatIf.load(facts.what_if);
  const startWhatIf = () => { if (model) { for (const control of controls) control.start(); drawWhatIf(); } };
  const controls = !model ? [] : order.map((i) => {
    const { places, labels: texts } = model.columns[i], name = features[i], box = make("div");
    if (texts) {
      const select = make("select", undefined, { "aria-label": name });
      texts.forEach((text, k) => select.append(make("option", text, { value: k })));
      select.addEventListener("input", () => drawWhatIf());
      box.append(make("span", name), select);
      el("sliders").append(box);
      return {
        i, start: () => { select.value = texts.indexOf(labels[name][chosen]); }, text: () => texts[select.value], outside: () => false,
        write: (row) => { places.forEach((place, k) => { row[place] = k === Number(select.value) ? 1 : 0; }); },
      };
    }
    const [place] = places;
    let low = model.low[place], high = model.high[place];
    for (let r = 0; r < n; r++) { low = Math.min(low, at(A.data, r, i)); high = Math.max(high, at(A.data, r, i)); }
    const digits = Math.min(20, Math.max(0, Math.ceil(-Math.log10((high - low) / 2000)))); // a slider has about so many places
    const slider = make("input", undefined, { type: "range", min: low, max: high, step: "any", "aria-label": name });
    const number = make("input", undefined, { type: "number", step: "any", "aria-label": `${name}, value` });
    slider.addEventListener("input", () => { number.value = Number(Number(slider.value).toFixed(digits)); drawWhatIf(); });
    number.addEventListener("input", () => { if (number.value !== "") { slider.value = number.value; drawWhatIf(); } });
    box.append(make("span", name), number, slider);
    el("sliders").append(box);
    return {
      i, start: () => { number.value = Number(at(A.data, chosen, i).toPrecision(7)); slider.value = number.value; }, text: () => plain(Number(number.value)),
      outside: () => Number(number.value) < low || Number(number.value) > high,
      write: (row) => { row[place] = Number(number.value); },
    };
  });
  function drawWhatIf() {
    const row = new Array(model.low.length).fill(0);
    for (const control of controls) control.write(row);
    const answer = whatIf.explain(model, row), { prediction, base, values, stds, std } = answer;
    drawWaterfall("what-if", controls.map(({ i, text }) => ({
      name: `${features[i]} = ${text()}`, x: values[i],
      ...(stds ? { low: values[i] - facts.quantile * stds[i], high: values[i] + facts.quantile * stds[i] } : {}),
    })), base, prediction);
    const outside = controls.filter((control) => control.outside()).map(({ i }) => features[i]);
    const change = prediction - A.predictions[chosen], same = Math.abs(change) < 1e-6 * (Math.abs(prediction) + Math.abs(change));
    el("what-if-answer").replaceChildren(
      make("strong", `${facts.quantity.split(" of ")[0]} ${plain(prediction)}${std === null ? "" : ` ± ${Number(std.toPrecision(2))}`}`),
      document.createTextNode(`${same ? ", as in" : `, ${signed(change)} against`} row ${rows[chosen]}.`),
      make("span", outside.length ? ` Outside the data: ${outside.join(", ")}.` : "", { class: "outside" }),
    );
    el("what-if").answer = answer;
  }
  el("reset").addEventListener("click", startWhatIf);

  // The table: sorted, filtered, a page at a time.
  const columns = [
    { name: "row", get: (r) => rows[r], number: (r) => (Number.isNaN(Number(rows[r])) ? rows[r] : Number(rows[r])) },
    { name: facts.quantity.split(" of ")[0], get: (r) => plain(A.predictions[r]), number: (r) => A.predictions[r] },
    { name: "change", get: (r) => signed(A.predictions[r] - A.base[r]), number: (r) => A.predictions[r] - A.base[r] },
    ...order.map((i) => ({ name: features[i], get: (r) => signed(at(A.values, r, i)), number: (r) => at(A.values, r, i), feature: i })),
  ];
  let visible = rows.map((_, r) => r), sorted = { column: 0, up: true }, page = 0;

  function matches(text) {
    const parts = text.split(",").map((part) => part.trim()).filter(Boolean);
    const tests = parts.map((part) => {
      const found = part.match(/^(.*?)\s*(<=|>=|<|>|=)\s*(.+)$/);
      const name = found && found[1].toLowerCase();
      const i = found ? features.findIndex((feature) => feature.toLowerCase() === name) : -1;
      if (i < 0) return (r) => rows[r] === part || (Number.isNaN(Number(part)) && (rows[r].toLowerCase().includes(part.toLowerCase()) || features.some((f) => labels[f] && labels[f][r].toLowerCase().includes(part.toLowerCase()))));
      if (labels[features[i]]) return (r) => found[2] === "=" && labels[features[i]][r].toLowerCase() === found[3].toLowerCase();
      const bound = Number(found[3].replace(",", ".").replace("−", "-"));
      const compare = { "<": (x) => x < bound, ">": (x) => x > bound, "<=": (x) => x <= bound, ">=": (x) => x >= bound, "=": (x) => Math.abs(x - bound) <= 1e-6 * Math.abs(bound) }[found[2]];
      return (r) => compare(at(A.data, r, i));
    });
    return (r) => tests.every((test) => test(r));
  }

  function arrange() {
    const keep = matches(el("filter").value), { column, up } = sorted, key = columns[column].number;
    visible = rows.map((_, r) => r).filter(keep);
    visible.sort((a, b) => { const x = key(a), y = key(b); return (x < y ? -1 : x > y ? 1 : a - b) * (up ? 1 : -1); });
    page = 0;
    drawTable();
  }

  function drawTable() {
    const head = make("tr");
    columns.forEach((column, c) => {
      const cell = make("th", undefined, { scope: "col", "aria-sort": c === sorted.column ? (sorted.up ? "ascending" : "descending") : "none" });
      const button = make("button", column.name + (c === sorted.column ? (sorted.up ? " ▲" : " ▼") : ""), { type: "button" });
      button.addEventListener("click", () => { sorted = { column: c, up: c === sorted.column ? !sorted.up : c === 0 }; arrange(); });
      cell.append(button);
      head.append(cell);
    });
    el("rows").tHead.replaceChildren(head);
    const first = page * SHOWN, body = document.createDocumentFragment();
    for (const r of visible.slice(first, first + SHOWN)) {
      const line = make("tr", undefined, { tabindex: "0", "aria-selected": String(r === chosen) });
      line.dataset.row = r;
      for (const column of columns) {
        const cell = make("td", column.get(r));
        if (column.feature !== undefined) {
          cell.className = at(A.values, r, column.feature) < 0 ? "down" : "up";
          if (uncertain && sure(r, column.feature) < level) cell.classList.add("unsure");
          cell.title = `${column.name} = ${value(r, column.feature)}`;
        }
        line.append(cell);
      }
      body.append(line);
    }
    el("rows").tBodies[0].replaceChildren(body);
    el("count").textContent = visible.length ? `${first + 1}–${Math.min(first + SHOWN, visible.length)} of ${visible.length}${visible.length < n ? ` (${n} in all)` : ""}` : "no row matches";
    el("previous").disabled = page === 0;
    el("next").disabled = first + SHOWN >= visible.length;
  }

  const choose = (line) => { if (line && line.dataset.row !== undefined) { chosen = Number(line.dataset.row); drawRow(); } };
  el("rows").tBodies[0].addEventListener("click", (event) => { choose(event.target.closest("tr")); });
  el("rows").tBodies[0].addEventListener("keydown", (event) => {
    const line = event.target.closest("tr");
    const next = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling, Enter: line, " ": line }[event.key];
    if (!next) return;
    event.preventDefault();
    next.focus();
    choose(next);
  });
  el("filter").addEventListener("input", arrange);
  el("previous").addEventListener("click", () => { page -= 1; drawTable(); });
  el("next").addEventListener("click", () => { page += 1; drawTable(); });

  // One feature at a time.
  const numeric = order.filter((i) => !labels[features[i]] && !Number.isNaN(at(A.data, 0, i)));
  for (const i of numeric) {
    el("scatter-feature").append(make("option", features[i], { value: i }));
    el("scatter-color").append(make("option", features[i], { value: i }));
  }
  el("scatter-color").prepend(make("option", "none", { value: -1, selected: "" }));
  const stride = Math.max(1, Math.ceil(n / MOST_POINTS));
  const some = rows.map((_, r) => r).filter((r) => r % stride === 0);
  function drawScatter() {
    const i = Number(el("scatter-feature").value), j = Number(el("scatter-color").value);
    const points = {
      type: "scatter", mode: "markers", x: some.map((r) => at(A.data, r, i)), y: some.map((r) => at(A.values, r, i)), customdata: some.map((r) => escaped(rows[r])),
      hovertemplate: "row %{customdata}: %{x:.4g}, %{y:+.4g}<extra></extra>",
      marker: { size: 7, color: j < 0 ? color("--down") : some.map((r) => at(A.data, r, j)), colorscale: "Cividis", showscale: j >= 0, colorbar: { title: { text: j < 0 ? "" : escaped(features[j]) }, thickness: 12 } },
    };
    if (uncertain) points.error_y = { type: "data", symmetric: false, array: some.map((r) => at(A.high, r, i) - at(A.values, r, i)), arrayminus: some.map((r) => at(A.values, r, i) - at(A.low, r, i)), color: color("--line"), thickness: 1, width: 0 };
    Plotly.react("scatter", [points], layout({ xaxis: axis({ title: { text: escaped(features[i]) } }), yaxis: axis({ title: { text: `attribution of ${escaped(features[i])}` } }), height: 384 }), config);
    el("scatter-note").textContent = (stride > 1 ? `${some.length} of ${n} rows. ` : "") + "Vertical spread that goes with the colour is an interaction.";
  }
  el("scatter-feature").addEventListener("change", drawScatter);
  el("scatter-color").addEventListener("change", drawScatter);

  function drawUnsure() {
    if (!uncertain) { el("unsure-section").hidden = true; return; }
    const head = make("tr");
    for (const name of ["feature", "rows whose sign is not sure", "typical attribution", "typical ±"]) head.append(make("th", name, { scope: "col" }));
    el("unsure").tHead.replaceChildren(head);
    const lines = features.map((name, i) => {
      let doubtful = 0, size = 0, spread = 0;
      for (let r = 0; r < n; r++) { doubtful += sure(r, i) < level; size += Math.abs(at(A.values, r, i)); spread += at(A.std, r, i) ** 2; }
      return { name, doubtful: doubtful / n, size: size / n, spread: Math.sqrt(spread / n) };
    }).sort((a, b) => b.spread - a.spread);
    const body = document.createDocumentFragment();
    for (const line of lines.slice(0, MOST_BARS)) {
      const row = make("tr");
      row.append(make("td", line.name), make("td", `${Math.round(100 * line.doubtful)} %`), make("td", plain(line.size)), make("td", plain(line.spread)));
      body.append(row);
    }
    el("unsure").tBodies[0].replaceChildren(body);
    const widest = rows.map((_, r) => r).sort((a, b) => A.total[b] - A.total[a]).slice(0, 3);
    el("unsure-note").textContent = `A sign counts as sure from ${Math.round(100 * level)} %.` + (A.total[widest[0]] > 0 ? ` The change from the baseline is least known in ${widest.map((r) => `row ${rows[r]} (± ${plain(A.total[r])})`).join(", ")}.` : "");
  }

  function drawWords() {
    el("what-if-section").hidden = !model;
    el("what-if-note").textContent = "Change values of the chosen row: the model in this page answers, exactly, " + (model && model.factor ? "and says how sure it is." : "with its mean (the file would be too large for its uncertainty).");
    el("lead").textContent = `${n} rows × ${d} features. The ${facts.quantity} of each row is compared with that at the baseline (${facts.baseline}), and the difference is divided among the features.`;
    const card = [...facts.card, ["baseline", facts.baseline], ["method", `integrated gradients, ${facts.method}`], ["error of the evaluation", `at most ${plain(facts.error)}`], ["completeness", `attributions add up to the difference within ${plain(facts.gap)}`]];
    el("card").replaceChildren(...card.flatMap(([name, text]) => [make("dt", name), make("dd", text)]));
    el("footer").textContent = `Made by gpattr ${facts.version}. ± is one standard deviation of what the model does not know; it is not the noise of the data.`;
  }

  function draw() { drawImportance(); drawRow(); if (numeric.length) drawScatter(); else el("scatter-title").parentElement.hidden = true; }
  drawWords();
  drawUnsure();
  arrange();
  chosen = rows.map((_, r) => r).reduce((best, r) => (Math.abs(A.predictions[r] - A.base[r]) > Math.abs(A.predictions[best] - A.base[best]) ? r : best), 0);
  draw();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.documentElement.dataset.ready = "yes";
})();
