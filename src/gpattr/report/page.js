"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const { features, rows, level } = facts, { make } = pictures;
  const d = features.length, n = rows.length, SHOWN = 25, MOST_BARS = 12, MOST_CURVES = 6, MOST_POINTS = 1500, MOST_COLORS = 8;
  const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#999999"]; // Okabe and Ito
  const unpack = (text, kind) => text && new kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const decoded = ({ texts, codes }) => Array.from(unpack(codes, texts.length < 65536 ? Uint16Array : Uint32Array), (k) => texts[k]);
  const data = unpack(facts.arrays.data, Float64Array), measured = unpack(facts.arrays.measured, Float32Array);
  const classes = facts.classes && decoded(facts.classes);
  const labels = new Map(Object.entries(facts.labels).map(([feature, coded]) => [feature, decoded(coded)]));
  const at = (array, row, feature) => array[row * d + feature];
  const el = (id) => document.getElementById(id);
  const all = rows.map((_, r) => r), longest = rows.reduce((most, name) => Math.max(most, name.length), 3);
  const { upper, list, brief, equation, tone } = words, percentLevel = words.share(level);
  const rowName = (r) => (facts.numbered ? `row ${rows[r]}` : rows[r]);

  const probPositive = (x, std) => (std > 0 ? numbers.normal(x / std) : x > 0 ? 1 : x < 0 ? 0 : 0.5);

  // One class or output: its arrays, its names, the format of its numbers.
  let A, order, out, write, columns, thing;
  const opened = new Map();
  function arraysOf(k) {
    if (!opened.has(k)) {
      const B = Object.fromEntries(Object.entries(facts.outputs[k].arrays).map(([name, text]) => [name, unpack(text, Float32Array)]));
      const { curves: own, indices } = facts.outputs[k];
      B.curves = own.map((curve) => curves.opened(curve, unpack));
      B.indices = indices && { ...indices, ...Object.fromEntries(Object.entries(indices.arrays).map(([name, text]) => [name, unpack(text, Float32Array)])) };
      if (!B.std) B.std = new Float32Array(n * d);
      if (!B.low) { B.low = B.values.map((x, i) => x - facts.quantile * B.std[i]); B.high = B.values.map((x, i) => x + facts.quantile * B.std[i]); }
      if (!B.positive) B.positive = B.values.map((x, i) => probPositive(x, B.std[i]));
      if (!B.total) B.total = new Float32Array(n);
      opened.set(k, B);
    }
    return opened.get(k);
  }
  function choose(k) {
    out = facts.outputs[k];
    A = arraysOf(k);
    const probability = out.quantity.startsWith("probability of ");
    thing = { probability, bounds: probability ? [0, 1] : null, name: out.quantity === "prediction" ? "prediction" : out.quantity };
    const predictions = numbers.column([...A.predictions, ...A.base.slice(0, 1)], 4, { unit: true }), changes = numbers.column(A.values, 3, { sign: true });
    write = {
      prediction: probability ? numbers.probability : predictions,
      change: probability ? (x) => numbers.fixed(x, 2, { sign: true }) : numbers.column(all.map((r) => A.predictions[r] - A.base[r]), 3, { sign: true }),
      attribution: probability ? (x) => numbers.fixed(x, 3, { sign: true }) : changes,
      measured: measured && numbers.measured(measured),
    };
    order = features.map((_, i) => i).sort((i, j) => out.importance.values[j] - out.importance.values[i]);
    columns = tableColumns();
  }

  const writers = features.map((name, i) => (labels.has(name) ? null : numbers.measured(all.map((r) => at(data, r, i)))));
  const written = (i, x) => (writers[i] ? writers[i](x) : numbers.readable(x));
  const value = (row, i) => (labels.has(features[i]) ? labels.get(features[i])[row] : written(i, at(data, row, i)));
  const nothing = (row, i) => at(A.values, row, i) === 0 && at(A.std, row, i) === 0; // equal to the baseline, or not used by the model
  const sure = (row, i) => Math.max(at(A.positive, row, i), 1 - at(A.positive, row, i));
  const target = (row) => (classes ? classes[row] : measured && !Number.isNaN(measured[row]) ? write.measured(measured[row]) : "");

  function drawImportance() {
    const v = out.importance, shown = expanded.importance ? order : order.slice(0, MOST_BARS);
    const s = pictures.scale(shown.flatMap((i) => [v.values[i], ...(v.low ? [v.low[i], v.high[i]] : [])]), { fixed: [0, 0] });
    const number = thing.probability && v.by !== "variance" ? (x) => numbers.fixed(x, 3) : numbers.column(v.values, 3);
    pictures.table(el("importance"), {
      s, axis: `${v.measure} to the ${out.quantity}`,
      heads: [{ name: "feature" }, { name: "", kind: "picture" }, { name: v.measure }],
      lines: shown.map((i) => ({
        name: brief(features[i]), cells: [{ text: number(v.values[i]) }], data: { feature: features[i], value: v.values[i] },
        tip: `${features[i]}: ${number(v.values[i])}${v.low ? `\n${percentLevel} interval ${number(v.low[i])} to ${number(v.high[i])}` : ""}`,
        picture: pictures.drawing(s, [pictures.across([pictures.bar(s, 0, v.values[i], "down"), ...(v.low ? pictures.whisker(s, v.low[i], v.high[i]) : [])])]),
      })),
      foot: more("importance", d - shown.length, drawImportance),
    });
    const many = numbers.fixed(v.rows, 0);
    el("importance-note").textContent = (v.low === null ? "Mean absolute attribution over these rows" : `Expected ${v.by === "variance" ? "variance of the attribution" : "mean absolute attribution"} over ${v.rows === n ? "the" : many} rows, with ${percentLevel} credible intervals${v.note && ` (${v.note})`}. It includes the uncertainty of each attribution`) + (v.groups && `. Groups: ${v.groups}`) + `. Baseline: ${facts.baseline}.`;
  }

  const expanded = { importance: false, waterfall: false, "what-if": false, curves: false, indices: false };
  const more = (id, hidden, draw, fewer = `Show only the ${MOST_BARS} largest`) => pictures.more(hidden, expanded[id], () => { expanded[id] = !expanded[id]; draw(); }, fewer);

  // What each feature does: the average prediction as it runs through its values, strongest features first.
  const LOG_ODDS = " Log odds of 0 are a probability of 50%, log odds of 2 one of 88%, and of −2 one of 12%.";
  function drawCurves() {
    const rank = new Map(order.map((i, k) => [features[i], k]));
    const own = A.curves.slice().sort((one, two) => rank.get(one.feature) - rank.get(two.feature)), shown = expanded.curves ? own : own.slice(0, MOST_CURVES);
    el("curves-section").hidden = !own.length;
    if (!own.length) return;
    const [{ quantity, centred }] = own, number = numbers.column(own.flatMap((curve) => [...curve.values]), 3, { unit: true }), name = `${upper(centred ? `centred ${quantity}` : quantity)}, on average`;
    curves.draw(el("curves"), shown, { up: curves.shared(own), number, name, level: percentLevel, describe: (curve) => {
      const i = features.indexOf(curve.feature), measure = numbers.measured([...curve.at]);
      const text = curve.kind === "date" ? (x) => (curve.timed ? new Date(Math.round(x * 864e5)).toISOString().slice(0, 16).replace("T", " ") : dayText(x)) : curve.kind === "category" ? (k) => curve.labels[k] : labels.has(curve.feature) ? measure : (x) => written(i, x);
      return { text, words: extremesOf(curve, curve.kind === "category" ? text : (x) => `at ${text(x)}`, number) };
    } });
    el("more-curves").replaceChildren(...[more("curves", own.length - shown.length, drawCurves, `Show only the ${MOST_CURVES} strongest`)].filter(Boolean));
    const many = new Set(own.map((curve) => curve.rows)), over = many.size === 1 ? `${numbers.fixed(own[0].rows, 0)} row${own[0].rows === 1 ? "" : "s"}` : "rows", known = own.some((curve) => curve.low);
    el("curves-note").textContent = `${upper(quantity)}, averaged over ${over} in which one feature takes each of its values and the others stay as they are${centred ? "; its own average over the rows is subtracted" : ""}. All curves have the same vertical scale.` + (quantity.startsWith("log odds of ") ? LOG_ODDS : "") + (own.length < d ? ` Curves of ${own.length} of ${d} features.` : "");
    const key = (look, text) => make("span", undefined, {}, [make("i", undefined, { class: look }), text]);
    const guessed = own.some((curve) => curve.outside.some(Boolean));
    el("curves-legend").replaceChildren(...(known ? [key("band", `at each value, contains the average with ${percentLevel} probability`)] : []), key("data", "where the rows are"), ...(guessed ? [key("dash", "outside the data, where the band may be cut off")] : []));
  }

  // The lowest and the highest average of a curve in words, and how certain it is which is which.
  function extremesOf({ extremes: { low, high, certain } }, text, number) {
    if ([...low, ...high].includes(null)) return "";
    const ends = [low, high].map(([at, value]) => `${number(value)} (${text(at)})`);
    if (low[0] === high[0] || number(low[1]) === number(high[1])) return `${number(low[1])} throughout, to this accuracy.`;
    const rising = certain === null ? "" : certain >= level ? `; the model is ${certain > 0.999 ? "more than 99.9%" : numbers.percent(certain)} certain of this difference` : `; the model is only ${numbers.percent(certain)} certain that the second is higher`;
    return `Lowest ${ends[0]}, highest ${ends[1]}${rising}.`;
  }

  // Where the variation comes from: Sobol indices.
  function drawIndices() {
    const S = A.indices;
    el("indices-section").hidden = !S;
    if (!S) return;
    const all = S.features.map((full, k) => ({ name: brief(full), full, ...Object.fromEntries(["first", "total"].map((kind) => [kind, { value: S[kind][k], low: S[`${kind}_low`][k], high: S[`${kind}_high`][k] }])) }));
    const shown = expanded.indices ? all : all.slice(0, MOST_BARS);
    sobol.draw(el("indices"), shown, { level: percentLevel, axis: `share of the variance of the ${S.quantity}, with ${percentLevel} intervals`, foot: more("indices", all.length - shown.length, drawIndices) });
    el("indices-legend").replaceChildren(...sobol.legend());
    el("indices-note").textContent = `Variation of the ${S.quantity} if the features vary independently of each other${S.inputs ? ` (${S.inputs})` : ""}, and the features it comes from. Totals may add up to more than 100%, because variation that features cause together counts for each of them.`;
    el("indices-method").textContent = `Variance ${numbers.readable(S.variance)} ± ${numbers.readable(S.variance_std, 2)}, of which ${sobol.share(S.unknown)} is not yet known: the model expects it, but the data do not show where it is. Sobol indices: ${S.method}, numerical error ${S.error === null ? "unknown" : `about ${numbers.readable(S.error, 1)}`}; intervals from ${numbers.fixed(S.draws, 0)} draws.`;
  }

  // From the baseline to the prediction.
  const drawWaterfall = (id, parts, base, prediction, redraw) => waterfall.draw(el(id), {
    parts, base, prediction, level, bounds: thing.bounds, name: thing.name, quantity: out.quantity, baseline: facts.baseline,
    write: write.prediction, most: expanded[id] ? Infinity : MOST_BARS, foot: (hidden) => more(id, hidden, redraw),
  });

  let chosen = facts.selected;
  function drawRow() {
    const parts = features.map((name, i) => ({
      name: equation(name, value(chosen, i)), feature: name, value: value(chosen, i), x: at(A.values, chosen, i), i,
      ...(out.uncertain ? { std: at(A.std, chosen, i), low: at(A.low, chosen, i), high: at(A.high, chosen, i), sure: nothing(chosen, i) ? undefined : sure(chosen, i) } : {}),
    }));
    const size = drawWaterfall("waterfall", parts, A.base[chosen], A.predictions[chosen], drawRow);
    const known = target(chosen);
    el("row-title").textContent = `${upper(rowName(chosen))}: ${thing.name} ${write.prediction(A.predictions[chosen])}, at the baseline ${write.prediction(A.base[chosen])}${known ? `; observed: ${known}` : ""}`;
    drawSentences(parts, size);
    const others = facts.outputs.map((other, k) => (other === out ? "" : `${other.quantity} ${other.quantity.startsWith("probability of ") ? numbers.probability(arraysOf(k).predictions[chosen]) : numbers.readable(arraysOf(k).predictions[chosen])}`)).filter(Boolean);
    el("row-note").textContent = others.length ? `${upper(others.join(", "))}.` : "";
    for (const row of el("rows").tBodies[0].rows) row.setAttribute("aria-selected", String(Number(row.dataset.row) === chosen));
    startWhatIf();
    drawCounterfactuals();
  }

  // The row in words: its largest attributions, and what is uncertain.
  function drawSentences(parts, size) {
    const falling = parts.filter((p) => !nothing(chosen, p.i)).sort((one, two) => Math.abs(two.x) - Math.abs(one.x));
    const certain = falling.filter((p) => !out.uncertain || p.sure >= level), strongest = certain.slice(0, 3);
    const text = (node) => document.createTextNode(node), nodes = [];
    strongest.forEach((p, k) => {
      nodes.push(text(k === 0 ? "" : k === strongest.length - 1 ? " and " : ", "));
      nodes.push(make("strong", equation(brief(p.feature), p.value)), text(p.x < 0 ? " subtracts " : " adds "), make("span", size(Math.abs(p.x)), { class: p.x < 0 ? "down" : "up" }));
    });
    if (strongest.length) {
      const weakest = Math.min(...strongest.map((p) => p.sure ?? 1));
      nodes.push(text(out.uncertain ? `; the model is ${weakest > 0.999 ? "more than 99.9%" : `${strongest.length > 1 ? "at least " : ""}${numbers.percent(weakest)}`} certain of ${strongest.length > 1 ? "each sign" : "this sign"}.` : "."));
    } else if (falling.length) nodes.push(text(`The sign of no single attribution is ${percentLevel} certain.`));
    if (out.uncertain && strongest.length) {
      const doubtful = falling.filter((p) => p.sure < level).map((p) => brief(p.feature));
      const named = doubtful.length > 4 ? [...doubtful.slice(0, 3), `${doubtful.length - 3} others`] : doubtful;
      if (doubtful.length) nodes.push(text(` ${doubtful.length > 1 ? "The signs" : "The sign"} of ${list(named)} ${doubtful.length > 1 ? "are" : "is"} uncertain.`));
    }
    el("sentences").replaceChildren(...nodes);
  }

  // What if? The model itself, for values that the reader chooses.
  const model = typeof facts.what_if === "string" ? null : whatIf.load(facts.what_if);
  let panel = null;
  const setSliders = (value) => { if (panel) panel.set(order.map((i) => value(i))); }; // value(i) of every feature i
  const startWhatIf = () => setSliders((i) => own(chosen, i));
  const own = (row, i) => (labels.has(features[i]) ? labels.get(features[i])[row] : at(data, row, i));
  const drawCounterfactuals = () => counterfactuals.draw(el("counterfactuals"), out.counterfactuals.filter((one) => one.rows.includes(chosen)), {
    quantity: out.quantity, name: thing.name, level: percentLevel, write: write.prediction, value: (feature, x) => written(features.indexOf(feature), x),
    set: model && ((changes) => {
      const fresh = new Map(changes.map(([feature, , x]) => [feature, x]));
      setSliders((i) => fresh.get(features[i]) ?? own(chosen, i));
      el("what-if-answer").scrollIntoView({ block: "nearest" });
    }),
  });
  function columnOf(i) {
    const { places, labels: texts, dates } = model.columns[i], column = { name: features[i], labels: texts, dates, low: model.low[places[0]], high: model.high[places[0]] };
    return texts || dates ? column : sliders.ranged(column, all.map((r) => at(data, r, i)), (x) => written(i, x));
  }
  function drawWhatIf() {
    const values = new Array(d);
    panel.values().forEach((value, k) => { values[order[k]] = value; });
    const answer = whatIf.explain(model, whatIf.row(model, values), level), { prediction, std } = answer;
    const moved = order.some((i) => values[i] !== own(chosen, i));
    el("what-if").hidden = !moved; // the unchanged row is shown above
    el("reset").hidden = !moved;
    const texts = panel.texts();
    if (moved) drawWaterfall("what-if", waterfall.parts(order.map((i, k) => ({ feature: features[i], value: texts[k], place: i })), answer, facts.quantile), answer.base, prediction, drawWhatIf);
    const outside = panel.outside();
    const change = prediction - A.predictions[chosen], same = Math.abs(change) < 1e-6 * (Math.abs(prediction) + Math.abs(change));
    el("what-if-answer").replaceChildren(
      make("strong", `${upper(thing.name)} ${write.prediction(prediction)}${std === null ? "" : ` ± ${numbers.column([std], 2, { beside: prediction })(std)}`}`),
      document.createTextNode(`${same ? ", as for" : `, ${write.change(change)} compared with`} ${rowName(chosen)}.`),
      make("span", outside.length ? ` Outside the range of the data: ${outside.join(", ")}.` : "", { class: "outside" }),
    );
    el("what-if").answer = answer;
  }
  function drawWhatIfNote() {
    const known = !model ? "" : model.factor ? "with their uncertainty." : model.waiting ? "with their uncertainty, which takes a few seconds to prepare." : `without their uncertainty (${model.noise ? "the covariance of the data is singular to rounding" : "the file would be too large"}).`;
    el("what-if-note").textContent = model ? `Change the values of the selected row: this page contains the model, and computes exact attributions ${known}` : `Not available: ${facts.what_if}.`;
  }
  el("reset").addEventListener("click", startWhatIf);

  // The table: sorted, filtered, a page at a time.
  function tableColumns() {
    const texts = classes || [];
    return [
      { name: "row", get: (r) => rows[r], number: (r) => (facts.numbered ? Number(rows[r]) : rows[r]), length: longest },
      ...(classes ? [{ name: "observed", get: (r) => texts[r] || "–", number: (r) => texts[r], text: true }] : []),
      ...(measured ? [{ name: "observed", get: (r) => target(r) || "–", number: (r) => measured[r] }] : []),
      { name: thing.name, get: (r) => write.prediction(A.predictions[r]), number: (r) => A.predictions[r] },
      { name: "change", get: (r) => write.change(A.predictions[r] - A.base[r]), number: (r) => A.predictions[r] - A.base[r] },
      ...order.map((i) => ({ name: features[i], get: (r) => write.attribution(at(A.values, r, i)), number: (r) => at(A.values, r, i), feature: i })),
    ];
  }
  const alphabet = new Intl.Collator("en", { numeric: true }); // Patient 9 comes before Patient 10
  let visible = all, sorted = { column: 0, up: true }, page = 0, understood = true, matches, example;

  function startFilter() {
    const first = order.find((i) => !labels.has(features[i]) && !Number.isNaN(at(data, 0, i)));
    example = `${rows[Math.min(16, n - 1)]}${first === undefined ? "" : ` or ${features[first]} > ${written(first, at(data, 0, first)).replaceAll(",", "")}`}`;
    el("filter").placeholder = example;
    const known = new Map([["prediction", (r) => A.predictions[r]]]);
    for (const column of columns) if (column.feature === undefined && !column.text) known.set(column.name, column.number);
    features.forEach((feature, i) => { if (!labels.has(feature)) known.set(feature, (r) => at(data, r, i)); });
    matches = rowFilter(rows, known, classes ? new Map([["observed", classes], ...labels]) : labels);
  }

  function arrange() {
    const keep = matches(el("filter").value), { column, up } = sorted, key = columns[column].number;
    understood = keep !== null;
    visible = all.filter(keep || (() => true));
    const compared = (x, y) => (typeof x === "string" && typeof y === "string" ? alphabet.compare(x, y) : x < y ? -1 : x > y ? 1 : 0);
    const keys = new Map(visible.map((r) => [r, key(r)]));
    visible.sort((a, b) => (compared(keys.get(a), keys.get(b)) || a - b) * (up ? 1 : -1));
    page = 0;
    drawTable();
  }

  function drawTable() {
    const head = make("tr");
    columns.forEach((column, c) => {
      const cell = make("th", undefined, { scope: "col", "aria-sort": c === sorted.column ? (sorted.up ? "ascending" : "descending") : "none", title: column.name, style: `min-width:${Math.min(column.length || column.name.length, 14) * 0.55}rem` });
      const button = make("button", column.name + (c === sorted.column ? (sorted.up ? "\u00a0▲" : "\u00a0▼") : ""), { type: "button" });
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
          cell.className = tone(cell.textContent);
          if (out.uncertain && !nothing(r, column.feature) && sure(r, column.feature) < level) cell.classList.add("unsure");
          cell.dataset.tip = equation(column.name, value(r, column.feature));
        }
        line.append(cell);
      }
      body.append(line);
    }
    el("rows").tBodies[0].replaceChildren(body);
    const whole = (x) => numbers.fixed(x, 0);
    el("count").textContent = !understood ? `invalid filter: try ${example}` : visible.length ? `${whole(first + 1)}–${whole(Math.min(first + SHOWN, visible.length))} of ${whole(visible.length)}${visible.length < n ? ` (${whole(n)} in total)` : ""}` : "no matching rows";
    el("previous").disabled = page === 0;
    el("next").disabled = first + SHOWN >= visible.length;
  }

  const choosing = (line) => { if (line && line.dataset.row !== undefined) { chosen = Number(line.dataset.row); drawRow(); } };
  el("rows").tBodies[0].addEventListener("click", (event) => { choosing(event.target.closest("tr")); el("row-section").scrollIntoView({ block: "start" }); });
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
    choosing(next);
  });
  el("filter").addEventListener("input", arrange);
  el("previous").addEventListener("click", () => { page -= 1; drawTable(); });
  el("next").addEventListener("click", () => { page += 1; drawTable(); });

  // Dates are drawn as days and written as dates.
  const days = new Map();
  for (const [name, texts] of labels) {
    if (texts.every((text) => /^\d{4}-\d\d-\d\d( \d\d:\d\d.*)?$/.test(text))) days.set(name, texts.map((text) => Date.parse(text.length > 10 ? `${text.replace(" ", "T")}Z` : text) / 864e5));
  }
  const dayText = (day) => new Date(day * 864e5).toISOString().slice(0, 10);
  const amount = (r, i) => (days.has(features[i]) ? days.get(features[i])[r] : at(data, r, i));
  const isCategory = (i) => labels.has(features[i]) && !days.has(features[i]);

  // One feature at a time.
  const isNumeric = (i) => !labels.has(features[i]) && !Number.isNaN(at(data, 0, i));
  const drawable = features.map((_, i) => i).filter((i) => labels.has(features[i]) || isNumeric(i));
  function startScatter() {
    const feature = el("scatter-feature").value, color = el("scatter-color").value, ordered = order.filter((i) => drawable.includes(i));
    el("scatter-feature").replaceChildren(...ordered.map((i) => make("option", features[i], { value: i })));
    el("scatter-color").replaceChildren(make("option", "none", { value: -1 }), ...ordered.map((i) => make("option", features[i], { value: i })));
    if (feature !== "") el("scatter-feature").value = feature;
    if (color !== "") el("scatter-color").value = color;
  }
  const stride = Math.max(1, Math.ceil(n / MOST_POINTS)), some = all.filter((r) => r % stride === 0);
  // Colours of the rows by a feature, and their legend.
  function coloring(j) {
    if (j < 0) return { of: () => "", legend: [] };
    const name = make("span", `${features[j]}:`);
    if (isCategory(j)) {
      const texts = labels.get(features[j]), counts = new Map();
      for (const text of texts) counts.set(text, (counts.get(text) || 0) + 1);
      const kinds = [...counts.keys()].sort((one, two) => counts.get(two) - counts.get(one)), shown = kinds.length > MOST_COLORS ? kinds.slice(0, MOST_COLORS - 1) : kinds;
      const place = new Map(shown.map((text, k) => [text, k]));
      const keys = shown.map((text, k) => make("span", undefined, {}, [make("i", undefined, { style: `--key:${COLORS[k]}` }), text]));
      if (shown.length < kinds.length) keys.push(make("span", undefined, {}, [make("i", undefined, { style: `--key:${COLORS[MOST_COLORS - 1]}` }), "others"]));
      return { of: (r) => COLORS[place.get(texts[r]) ?? MOST_COLORS - 1], legend: [name, ...keys] };
    }
    let low = Infinity, high = -Infinity;
    for (const r of all) { low = Math.min(low, amount(r, j)); high = Math.max(high, amount(r, j)); }
    const text = (x) => (days.has(features[j]) ? dayText(x) : written(j, x));
    const gradient = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map((t) => pictures.shade(t)).join(", ")})`;
    const bar = make("b", undefined, { style: `background:${gradient}` });
    return { of: (r) => pictures.shade(high > low ? (amount(r, j) - low) / (high - low) : 0.5), legend: [name, make("span", undefined, {}, [text(low), bar, text(high)])] };
  }
  function drawScatter() {
    const i = Number(el("scatter-feature").value), j = Number(el("scatter-color").value), color = coloring(j);
    const points = some.map((r) => ({
      row: r, x: amount(r, i), y: at(A.values, r, i), color: color.of(r), hollow: out.uncertain && !nothing(r, i) && sure(r, i) < level,
      ...(out.uncertain ? { low: at(A.low, r, i), high: at(A.high, r, i) } : {}),
      tip: `${upper(rowName(r))}: ${equation(features[i], value(r, i))}, ${write.attribution(at(A.values, r, i))}${out.uncertain ? ` ± ${numbers.column([at(A.std, r, i)], 2, { beside: at(A.values, r, i) })(at(A.std, r, i))}\n${nothing(r, i) ? "" : `sign ${numbers.percent(sure(r, i))} certain`}` : ""}${j < 0 ? "" : `\n${equation(features[j], value(r, j))}`}`,
    }));
    const show = (r) => { chosen = r; drawRow(); el("row-section").scrollIntoView({ block: "start" }); };
    const said = `attribution of ${features[i]} to the ${out.quantity}${out.uncertain ? `, with ${percentLevel} intervals` : ""}`;
    if (isCategory(i)) {
      const groups = new Map();
      for (const p of points) { const text = labels.get(features[i])[p.row]; if (!groups.has(text)) groups.set(text, []); groups.get(text).push(p); }
      const mean = (own) => own.reduce((sum, p) => sum + p.y, 0) / own.length;
      const ordered = [...groups].sort(([, one], [, two]) => mean(two) - mean(one));
      pictures.strips(el("scatter"), { xName: said, head: features[i], last: "mean", choose: show, groups: ordered.map(([name, own]) => ({ name: `${name} (${own.length})`, points: own, text: write.attribution(mean(own)) })) });
    } else pictures.scatter(el("scatter"), { points, xName: features[i], yName: said, choose: show, ...(days.has(features[i]) ? { xText: dayText } : {}) });
    el("scatter-legend").replaceChildren(...color.legend, ...(points.some((p) => p.hollow) ? [make("span", undefined, {}, [make("i", undefined, { class: "open" }), `hollow: sign less than ${percentLevel} certain`])] : []));
    el("scatter-note").textContent = (stride > 1 ? `${numbers.fixed(some.length, 0)} of ${numbers.fixed(n, 0)} rows. ` : "") + `Baseline: ${facts.baseline}. Click a point to see its row.` + (j < 0 ? "" : " Vertical variation that follows the colour indicates an interaction.");
  }
  el("scatter-feature").addEventListener("change", drawScatter);
  el("scatter-color").addEventListener("change", drawScatter);

  function drawUnsure() {
    el("unsure-section").hidden = !out.uncertain;
    if (!out.uncertain) return;
    const head = make("tr");
    for (const name of ["feature", "rows with an uncertain sign", "typical |attribution|", "typical ±"]) head.append(make("th", name, { scope: "col" }));
    el("unsure").tHead.replaceChildren(head);
    const lines = features.map((name, i) => {
      let doubtful = 0, size = 0, spread = 0;
      for (let r = 0; r < n; r++) { doubtful += !nothing(r, i) && sure(r, i) < level; size += Math.abs(at(A.values, r, i)); spread += at(A.std, r, i) ** 2; }
      return { name, doubtful: doubtful / n, size: size / n, spread: Math.sqrt(spread / n) };
    }).sort((a, b) => b.spread - a.spread).slice(0, MOST_BARS);
    const number = thing.probability ? (x) => numbers.fixed(x, 3) : numbers.column(lines.flatMap((line) => [line.size, line.spread]), 3);
    el("unsure").tBodies[0].replaceChildren(...lines.map((line) => make("tr", undefined, {}, [make("td", line.name), make("td", `${Math.round(100 * line.doubtful)}%`), make("td", number(line.size)), make("td", number(line.spread))])));
    const widest = all.slice().sort((a, b) => A.total[b] - A.total[a]).slice(0, Math.min(3, n));
    el("unsure-note").textContent = `Signs with a probability of at least ${percentLevel} count as certain; attributions that are exactly 0 are ignored.` + (out.importance.low === null || out.importance.by === "variance" ? "" : " Typical attributions do not include their uncertainty, unlike the importance above, and are therefore smaller.") + (A.total[widest[0]] > 0 ? ` The change from the baseline is most uncertain in ${list(widest.map((r) => `${rowName(r)} (± ${number(A.total[r])})`))}.` : "");
  }

  function drawWords() {
    el("sliders").hidden = !model;
    el("what-if").hidden = el("reset").hidden = true;
    drawWhatIfNote();
    el("lead").textContent = `${numbers.fixed(n, 0)} row${n > 1 ? "s" : ""} × ${d} feature${d > 1 ? "s" : ""}. The ${out.quantity} of each row is compared with that of the baseline (${facts.baseline}), and the difference is divided among the features${facts.attribution === "integrated gradients" ? "" : ` by ${facts.attribution}`}.`;
    el("opening").replaceChildren(...facts.opening.map((sentence) => make("p", sentence)));
    el("notes").replaceChildren(...facts.notes.map((note) => make("li", note)));
    el("rows-note").textContent = `Attributions: what each feature adds to the ${out.quantity} of a row, or subtracts from it, compared with the baseline (${facts.baseline}).${out.uncertain ? " Faint numbers: the sign is uncertain." : ""} Click a row, or use the arrow keys, to explain it above; click a heading to sort.`;
    const atBaseline = (i) => facts.baseline_values[i] === null ? (Object.hasOwn(facts.baseline_labels, features[i]) ? facts.baseline_labels[features[i]] : undefined) : Number.isInteger(facts.baseline_values[i]) ? written(i, facts.baseline_values[i]) : numbers.readable(facts.baseline_values[i]);
    const point = facts.baseline_values ? order.filter((i) => atBaseline(i) !== undefined).map((i) => `${features[i]} ${atBaseline(i)}`) : [];
    const shown = point.length > MOST_BARS ? [...point.slice(0, MOST_BARS), `${point.length - MOST_BARS} others`] : point;
    const card = [...facts.card, ["baseline", facts.baseline + (shown.length ? `: ${shown.join(", ")}` : "")], ["method", `${facts.attribution}, ${out.method}`], ["numerical error", out.error === null ? "unknown" : `at most ${numbers.readable(out.error, 2)}`], ["completeness", `attributions sum to the difference up to ${numbers.readable(out.gap, 2)}`]];
    el("card").replaceChildren(...card.flatMap(([name, text]) => [make("dt", name), make("dd", text)]));
    el("footer").textContent = `Made with gpattr ${facts.version}.${facts.outputs.some((each) => each.uncertain) ? " ± is one standard deviation of the model's uncertainty; it does not include the noise of the data." : ""}`;
  }

  // Of held-out rows: how often the predicted class is correct, against its probability.
  function drawCalibration() {
    const bins = facts.calibration || [];
    el("calibration-section").hidden = !bins.length;
    if (!bins.length) return;
    const s = pictures.scale([], { fixed: [0, 1], margin: 0.02 });
    el("calibration-note").textContent = "Held-out rows, grouped by the probability of the predicted class: the bar is the share of correct predictions, the line the mean probability.";
    pictures.table(el("calibration"), {
      s, axis: "share of correct predictions", heads: [{ name: "probability" }, { name: "", kind: "picture" }, { name: "correct" }, { name: "rows" }],
      lines: bins.map(([promised, right, count]) => ({
        name: numbers.probability(promised), cells: [{ text: `${Math.round(100 * right)}%` }, { text: numbers.fixed(count, 0) }],
        picture: pictures.drawing(s, [pictures.across([pictures.bar(s, 0, right, "down"), pictures.line(s.at(promised), -11, s.at(promised), 11, "whisker")])]),
      })),
    });
  }

  function drawAll() {
    drawWords();
    drawUnsure();
    startFilter();
    arrange();
    drawImportance();
    drawCurves();
    drawIndices();
    drawRow();
    startScatter();
    if (drawable.length) drawScatter();
    else el("scatter-title").parentElement.hidden = true;
  }

  el("title").append(facts.title, ...(facts.data_name ? [make("span", ` · ${facts.data_name}`, { class: "data" })] : []));
  if (facts.outputs.length > 1) {
    el("output-controls").hidden = false;
    el("output-label").textContent = facts.outputs.every((each) => / of /.test(each.quantity)) ? "Class" : "Output";
    el("output").append(...facts.outputs.map(({ name }, k) => make("option", name, { value: k })));
    el("output").addEventListener("change", () => { choose(Number(el("output").value)); drawAll(); });
  }
  choose(0);
  if (model) panel = sliders.make(el("sliders"), el("more-sliders"), order.map(columnOf), drawWhatIf);
  pictures.listen(document.body);
  drawAll();
  if (model) whatIf.prepare(model, () => { drawWhatIfNote(); drawWhatIf(); });
  page = Math.max(0, Math.floor(visible.indexOf(chosen) / SHOWN)); // the first row shown is visible
  drawTable();
  drawCalibration();
  document.documentElement.dataset.ready = "yes";
})();
