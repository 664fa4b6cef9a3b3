"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const { features, rows, level, uncertain } = facts;
  const d = features.length, n = rows.length, SHOWN = 25, MOST_BARS = 12, MOST_POINTS = 1500, FARTHEST = 1e100;
  const unpack = (text, kind) => text && new kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const A = Object.fromEntries(Object.entries(facts.arrays).map(([name, text]) => [name, unpack(text, name === "data" ? Float64Array : Float32Array)]));
  if (!A.low) { A.low = A.values.map((x, k) => x - facts.quantile * A.std[k]); A.high = A.values.map((x, k) => x + facts.quantile * A.std[k]); }
  const labels = new Map(Object.entries(facts.labels).map(([feature, { texts, codes }]) => [feature, Array.from(unpack(codes, texts.length < 65536 ? Uint16Array : Uint32Array), (k) => texts[k])]));
  const at = (array, row, feature) => array[row * d + feature];
  const el = (id) => document.getElementById(id);
  const make = (tag, text, attributes = {}) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text; // never HTML: a column may be called anything
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  };

  // Numbers as people read them.
  const rounded = (x, digits) => (Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-4) ? x.toExponential(digits - 2) : Number(x.toPrecision(digits)).toString()).replaceAll("-", "−");
  const plain = (x) => rounded(x, 4), short = (x) => rounded(x, 3), spread = (x) => rounded(x, 2);
  const signed = (x) => (x > 0 ? "+" : "") + short(x);
  const percent = (p) => (p > 0.999 ? "more than 99.9 %" : `${(100 * p).toFixed(p > 0.99 ? 1 : 0)} %`);
  const value = (row, i) => (labels.has(features[i]) ? labels.get(features[i])[row] : Number.isNaN(at(A.data, row, i)) ? "–" : plain(at(A.data, row, i)));
  const nothing = (row, i) => at(A.values, row, i) === 0 && at(A.std, row, i) === 0; // it equals the baseline, or the model does not use it
  const sure = (row, i) => Math.max(at(A.positive, row, i), 1 - at(A.positive, row, i));
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;"); // Plotly reads tags, and formulas

  const layout = (extra) => ({
    margin: { l: 8, r: 16, t: 8, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: color("--ink"), family: "system-ui, sans-serif", size: 13 }, showlegend: false, hovermode: "closest", ...extra,
  });
  const axis = (extra) => ({ exponentformat: "power", gridcolor: color("--line"), zerolinecolor: color("--soft"), automargin: true, fixedrange: true, ...extra });
  // Names beside a picture: whole, or on a phone in lines that leave room for the picture.
  const beside = (names) => {
    const width = window.innerWidth < 500 ? 15 : 42;
    const broken = (name) => {
      const lines = name.match(new RegExp(`.{1,${width}}(\\s|$)|.{1,${width}}`, "g")) || [name];
      return lines.slice(0, 3).join("\n").trim() + (lines.length > 3 ? "…" : "");
    };
    return { zeroline: false, showgrid: false, ticks: "outside", ticklen: 5, tickcolor: "rgba(0,0,0,0)", tickmode: "array", tickvals: names.map((_, k) => k), ticktext: names.map((name) => escaped(broken(name)).replaceAll("\n", "<br>")) };
  };
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
      type: "bar", orientation: "h", x: values, y: shown.map((_, k) => k), error_x: error,
      marker: { color: color("--down") }, hoverinfo: "text", hovertext: shown.map((i) => `${escaped(features[i])}: ${plain(v.values[i])}`), textposition: "none",
    }], layout({ height: 90 + 28 * shown.length, xaxis: axis({ title: { text: words(`mean |attribution| to the ${facts.quantity}`, "mean |attribution|") } }), yaxis: axis(beside(shown.map((i) => features[i]))) }), config);
    const hidden = d - shown.length;
    el("importance-note").textContent = (v.low === null ? "Means of absolute attributions over these rows." : `Expected mean absolute attribution over ${v.rows === n ? "the" : v.rows} rows, with ${Math.round(100 * level)} % credible intervals${v.note && ` (${v.note})`}. It contains the uncertainty of each attribution.`) + (hidden > 0 ? ` ${hidden} smaller features are not shown.` : "");
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
    const places = steps.map((_, k) => k);
    const data = [{
      type: "bar", orientation: "h", y: places, x: steps.map((step) => step.x), base: steps.map((step) => step.base),
      marker: { color: steps.map((step) => color(step.x < 0 ? "--down" : "--up")) }, hoverinfo: "text", hovertext: steps.map((step, k) => `${escaped(step.name)}: ${text[k]}`), textposition: "none",
    }, {
      type: "scatter", mode: "markers", y: places, x: ends, marker: { size: 1, color: color("--ink") }, hoverinfo: "skip",
      error_x: intervals ? { type: "data", symmetric: false, color: color("--ink"), thickness: 1.3, width: 4, array: steps.map((s) => (s.high === undefined ? 0 : s.high - s.x)), arrayminus: steps.map((s) => (s.low === undefined ? 0 : s.x - s.low)) } : undefined,
    }];
    const lines = [base, prediction].map((x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: color("--soft"), width: 1, dash: "dot" }, layer: "below" }));
    Plotly.react(id, data, layout({ height: 90 + 30 * steps.length, shapes: lines, xaxis: axis({ zeroline: false, title: { text: intervals ? words(`${facts.quantity}, with ${Math.round(100 * level)} % intervals`, facts.quantity) : facts.quantity } }), yaxis: axis(beside(steps.map((step) => step.name))) }), config);
    return steps;
  }

  let chosen = 0;
  function drawRow() {
    const all = features.map((name, i) => ({
      name: `${name} = ${value(chosen, i)}`, x: at(A.values, chosen, i), i,
      ...(uncertain ? { low: at(A.low, chosen, i), high: at(A.high, chosen, i), sure: nothing(chosen, i) ? undefined : sure(chosen, i) } : {}),
    }));
    const steps = drawWaterfall("waterfall", all, A.base[chosen], A.predictions[chosen]);
    const measured = A.measured && !Number.isNaN(A.measured[chosen]) ? `, measured ${plain(A.measured[chosen])}` : "";
    el("row-title").textContent = `Row ${rows[chosen]}: ${plain(A.predictions[chosen])}${measured}, at the baseline ${plain(A.base[chosen])}`;
    const list = make("ul");
    for (const step of steps.slice().reverse()) {
      if (step.i === undefined || step.x === 0) continue;
      const verb = step.x > 0 ? "adds" : "takes away", i = step.i;
      const item = make("li"), name = make("strong", `${features[i]} = ${value(chosen, i)}`), std = uncertain ? ` ± ${spread(at(A.std, chosen, i))}` : "";
      if (uncertain && sure(chosen, i) < level) item.append(name, document.createTextNode(` makes no clear difference: ${signed(step.x)}${std}; the model is ${percent(sure(chosen, i))} sure that it ${verb}.`));
      else {
        item.append(name, document.createTextNode(` ${verb} `), make("span", short(Math.abs(step.x)), { class: step.x > 0 ? "up" : "down" }));
        if (uncertain) item.append(document.createTextNode(`${std}; the model is ${percent(sure(chosen, i))} sure that it ${verb}.`));
      }
      list.append(item);
    }
    el("sentences").replaceChildren(list);
    for (const row of el("rows").tBodies[0].rows) row.setAttribute("aria-selected", String(Number(row.dataset.row) === chosen));
    startWhatIf();
  }

  // What if? The model itself, asked about values of one's own.
  const model = typeof facts.what_if === "string" ? null : whatIf.load(facts.what_if);
  const startWhatIf = () => { if (model) { for (const control of controls) control.start(); drawWhatIf(); } };
  const controls = !model ? [] : order.map((i) => {
    const { places, labels: texts, dates } = model.columns[i], name = features[i], box = make("div");
    if (texts) {
      const select = make("select", undefined, { "aria-label": name });
      texts.forEach((text, k) => select.append(make("option", text, { value: k })));
      select.addEventListener("input", () => drawWhatIf());
      box.append(make("span", name), select);
      el("sliders").append(box);
      return {
        i, start: () => { select.value = texts.indexOf(labels.get(name)[chosen]); }, text: () => texts[select.value], outside: () => false,
        write: (row) => { places.forEach((place, k) => { row[place] = k === Number(select.value) ? 1 : 0; }); },
      };
    }
    if (dates) {
      const input = make("input", undefined, { type: dates.timed ? "datetime-local" : "date", step: dates.timed ? 1 : "any", "aria-label": name });
      const own = () => labels.get(name)[chosen].replace(" ", "T");
      let current = "";
      input.addEventListener("input", () => { if (input.value) { current = input.value; drawWhatIf(); } }); // empty while it is typed
      box.append(make("span", name), input);
      el("sliders").append(box);
      return {
        i, start: () => { current = input.value = own(); }, text: () => current.replace("T", " "), changed: () => current !== own(),
        outside: () => { const [day] = whatIf.date(current, dates.cycles); return day < model.low[places[0]] || day > model.high[places[0]]; },
        write: (row) => { whatIf.date(current, dates.cycles).forEach((x, k) => { row[places[k]] = x; }); },
      };
    }
    const [place] = places;
    let low = model.low[place], high = model.high[place], whole = true, current = 0;
    for (let r = 0; r < n; r++) { const x = at(A.data, r, i); low = Math.min(low, x); high = Math.max(high, x); whole = whole && Number.isInteger(x); }
    const step = whole || high === low ? 1 : 10 ** Math.floor(Math.log10((high - low) / 1000)); // a slider has about so many places
    const slack = 1e-9 * (high - low);
    const slider = make("input", undefined, { type: "range", min: low, max: high, step: "any", "aria-label": name });
    const number = make("input", undefined, { type: "number", step: "any", "aria-label": `${name}, value` });
    const show = (x) => { current = x; number.value = Number(x.toPrecision(12)); };
    slider.addEventListener("input", () => { show(Math.min(high, Math.max(low, step * Math.round(Number(slider.value) / step)))); drawWhatIf(); });
    number.addEventListener("input", () => {
      if (number.value === "" || !(Math.abs(Number(number.value)) < FARTHEST)) return; // being typed
      current = Number(number.value);
      slider.value = current;
      drawWhatIf();
    });
    number.addEventListener("change", () => { if (Number(number.value) !== current || number.value === "") show(current); });
    box.append(make("span", name), number, slider);
    el("sliders").append(box);
    return {
      i, start: () => { show(at(A.data, chosen, i)); slider.value = current; }, text: () => plain(current),
      outside: () => current < low - slack || current > high + slack,
      write: (row) => { row[place] = current; },
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
      make("strong", `${facts.quantity.split(" of ")[0]} ${plain(prediction)}${std === null ? "" : ` ± ${spread(std)}`}`),
      document.createTextNode(`${same ? ", as in" : `, ${signed(change)} against`} row ${rows[chosen]}.`),
      make("span", outside.length ? ` Outside the data: ${outside.join(", ")}.` : "", { class: "outside" }),
    );
    el("what-if").answer = answer;
  }
  el("reset").addEventListener("click", startWhatIf);

  // The table: sorted, filtered, a page at a time.
  const shownFirst = order.find((i) => !labels.has(features[i]) && !Number.isNaN(at(A.data, 0, i)));
  const example = `${rows[Math.min(16, n - 1)]}${shownFirst === undefined ? "" : ` or ${features[shownFirst]} > ${plain(at(A.data, 0, shownFirst))}`}`;
  el("filter").placeholder = example;
  const columns = [
    { name: "row", get: (r) => rows[r], number: (r) => (Number.isNaN(Number(rows[r])) ? rows[r] : Number(rows[r])) },
    ...(A.measured ? [{ name: "measured", get: (r) => (Number.isNaN(A.measured[r]) ? "–" : plain(A.measured[r])), number: (r) => A.measured[r] }] : []),
    { name: facts.quantity.split(" of ")[0], get: (r) => plain(A.predictions[r]), number: (r) => A.predictions[r] },
    { name: "change", get: (r) => signed(A.predictions[r] - A.base[r]), number: (r) => A.predictions[r] - A.base[r] },
    ...order.map((i) => ({ name: features[i], get: (r) => signed(at(A.values, r, i)), number: (r) => at(A.values, r, i), feature: i })),
  ];
  let visible = rows.map((_, r) => r), sorted = { column: 0, up: true }, page = 0, understood = true;

  const numbers = new Map(columns.filter((column) => column.feature === undefined).map((column) => [column.name, column.number]));
  features.forEach((feature, i) => { if (!labels.has(feature)) numbers.set(feature, (r) => at(A.data, r, i)); });
  const matches = rowFilter(rows, numbers, labels);

  function arrange() {
    const keep = matches(el("filter").value), { column, up } = sorted, key = columns[column].number;
    understood = keep !== null;
    visible = rows.map((_, r) => r).filter(keep || (() => true));
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
          if (uncertain && !nothing(r, column.feature) && sure(r, column.feature) < level) cell.classList.add("unsure");
          cell.title = `${column.name} = ${value(r, column.feature)}`;
        }
        line.append(cell);
      }
      body.append(line);
    }
    el("rows").tBodies[0].replaceChildren(body);
    el("count").textContent = !understood ? `not understood: try ${example}` : visible.length ? `${first + 1}–${Math.min(first + SHOWN, visible.length)} of ${visible.length}${visible.length < n ? ` (${n} in all)` : ""}` : "no row matches";
    el("previous").disabled = page === 0;
    el("next").disabled = first + SHOWN >= visible.length;
  }

  const choose = (line) => { if (line && line.dataset.row !== undefined) { chosen = Number(line.dataset.row); drawRow(); } };
  el("rows").tBodies[0].addEventListener("click", (event) => { choose(event.target.closest("tr")); el("row-section").scrollIntoView({ block: "start" }); });
  el("rows").tBodies[0].addEventListener("keydown", (event) => {
    const line = event.target.closest("tr");
    if (!["ArrowDown", "ArrowUp", "Enter", " "].includes(event.key)) return;
    event.preventDefault();
    let next = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling }[event.key];
    if (event.key === "Enter" || event.key === " ") next = line;
    else if (!next) {
      const turned = page + (event.key === "ArrowDown" ? 1 : -1);
      if (turned < 0 || turned * SHOWN >= visible.length) return;
      page = turned;
      drawTable();
      const lines = el("rows").tBodies[0].rows;
      next = lines[event.key === "ArrowDown" ? 0 : lines.length - 1];
    }
    next.focus();
    choose(next);
  });
  el("filter").addEventListener("input", arrange);
  el("previous").addEventListener("click", () => { page -= 1; drawTable(); });
  el("next").addEventListener("click", () => { page += 1; drawTable(); });

  // One feature at a time.
  const numeric = order.filter((i) => !labels.has(features[i]) && !Number.isNaN(at(A.data, 0, i)));
  const drawable = order.filter((i) => labels.has(features[i]) || numeric.includes(i));
  for (const i of drawable) el("scatter-feature").append(make("option", features[i], { value: i }));
  for (const i of numeric) el("scatter-color").append(make("option", features[i], { value: i }));
  el("scatter-color").prepend(make("option", "none", { value: -1, selected: "" }));
  const stride = Math.max(1, Math.ceil(n / MOST_POINTS));
  const some = rows.map((_, r) => r).filter((r) => r % stride === 0);
  function drawScatter() {
    const i = Number(el("scatter-feature").value), j = Number(el("scatter-color").value);
    const points = {
      type: "scatter", mode: "markers", x: some.map((r) => (labels.has(features[i]) ? escaped(labels.get(features[i])[r]) : at(A.data, r, i))), y: some.map((r) => at(A.values, r, i)),
      hoverinfo: "text", hovertext: some.map((r) => `row ${escaped(rows[r])}: ${escaped(value(r, i))}, ${signed(at(A.values, r, i))}`),
      marker: { size: 7, color: j < 0 ? color("--down") : some.map((r) => at(A.data, r, j)), colorscale: "Cividis", showscale: j >= 0, colorbar: { title: { text: j < 0 ? "" : escaped(features[j]) }, thickness: 12 } },
    };
    if (uncertain) points.error_y = { type: "data", symmetric: false, array: some.map((r) => at(A.high, r, i) - at(A.values, r, i)), arrayminus: some.map((r) => at(A.values, r, i) - at(A.low, r, i)), color: color("--line"), thickness: 1, width: 0 };
    Plotly.react("scatter", [points], layout({ xaxis: axis({ title: { text: escaped(features[i]) }, type: labels.has(features[i]) ? "category" : "-" }), yaxis: axis({ title: { text: `attribution of ${escaped(features[i])}` } }), height: 384 }), config);
    el("scatter-note").textContent = (stride > 1 ? `${some.length} of ${n} rows. ` : "") + (j < 0 ? "" : "Vertical spread that goes with the colour is an interaction.");
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
      for (let r = 0; r < n; r++) { doubtful += !nothing(r, i) && sure(r, i) < level; size += Math.abs(at(A.values, r, i)); spread += at(A.std, r, i) ** 2; }
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
    el("unsure-note").textContent = `A sign counts as sure from ${Math.round(100 * level)} %; attributions that are exactly 0 do not count.` + (facts.importance.low === null ? "" : " Typical attributions leave out the uncertainty that the importance on top contains, and so are smaller.") + (A.total[widest[0]] > 0 ? ` The change from the baseline is least known in ${widest.map((r) => `row ${rows[r]} (± ${plain(A.total[r])})`).join(", ")}.` : "");
  }

  function drawWords() {
    for (const id of ["sliders", "what-if", "reset"]) el(id).hidden = !model;
    el("what-if-note").textContent = !model ? `There are no sliders here: ${facts.what_if}.` : "Change values of the chosen row: the model in this page answers, exactly, " + (model.factor ? "and says how sure it is." : "with its mean (the file would be too large for its uncertainty).");
    el("lead").textContent = `${n} rows × ${d} features. The ${facts.quantity} of each row is compared with that at the baseline (${facts.baseline}), and the difference is divided among the features.`;
    el("notes").replaceChildren(...facts.notes.map((note) => make("li", note)));
    const point = facts.baseline_values && features.map((name, i) => [name, facts.baseline_values[i]]).filter(([, x]) => x !== null).map(([name, x]) => `${name} ${plain(x)}`).join(", ");
    const card = [...facts.card, ["baseline", facts.baseline + (point ? `: ${point}` : "")], ["method", `integrated gradients, ${facts.method}`], ["error of the evaluation", facts.error === null ? "not known" : `at most ${plain(facts.error)}`], ["completeness", `attributions add up to the difference within ${plain(facts.gap)}`]];
    el("card").replaceChildren(...card.flatMap(([name, text]) => [make("dt", name), make("dd", text)]));
    el("footer").textContent = `Made by gpattr ${facts.version}. ± is one standard deviation of what the model does not know; it is not the noise of the data.`;
  }

  function draw() { drawImportance(); drawRow(); if (drawable.length) drawScatter(); else el("scatter-title").parentElement.hidden = true; }
  drawWords();
  drawUnsure();
  arrange();
  chosen = rows.map((_, r) => r).reduce((best, r) => (Math.abs(A.predictions[r] - A.base[r]) > Math.abs(A.predictions[best] - A.base[best]) ? r : best), 0);
  draw();
  page = Math.floor(visible.indexOf(chosen) / SHOWN); // the row that is shown first is in sight
  drawTable();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const printing = (yes) => () => { document.documentElement.toggleAttribute("data-print", yes); draw(); };
  window.addEventListener("beforeprint", printing(true));
  window.addEventListener("afterprint", printing(false));
  document.documentElement.dataset.ready = "yes";
})();
