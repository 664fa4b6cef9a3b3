// The widget of a notebook: controls, the prediction, and the waterfall of the present values. Rows are explained here where the
// model came along, and by Python otherwise.
const loaded = new WeakMap(); // the views of one widget share its model

// Arrays that came as bytes, by name.
function unpackedArrays(model) {
  const { buffer, byteOffset = 0, byteLength } = model.get("arrays"), own = buffer.slice(byteOffset, byteOffset + byteLength);
  return Object.fromEntries(Object.entries(model.get("facts").arrays).map(([name, [start, count]]) => [name, new Float64Array(own, 8 * start, count)]));
}

function open(model) {
  if (!loaded.has(model)) {
    const facts = model.get("facts"), { data, ...others } = unpackedArrays(model);
    loaded.set(model, { data, script: facts.model && whatIf.load({ ...facts.model, ...others }) });
  }
  return loaded.get(model);
}

// Questions to Python, asked when the sliders stop for a moment: one at a time, and about the newest row only.
function asking(model, answered) {
  const PAUSE = 60, PATIENCE = 30000; // milliseconds
  const view = Math.random().toString(36).slice(2);
  let id = 0, waiting = null, next = null, timer = null;
  const send = () => {
    if (waiting !== null || next === null) return;
    id += 1;
    model.send({ kind: "ask", view, id, values: next });
    next = null;
    waiting = setTimeout(() => { waiting = null; send(); }, PATIENCE);
  };
  const receive = (message) => {
    if (!message || message.kind !== "answer" || message.view !== view || message.id !== id) return;
    clearTimeout(waiting);
    waiting = null;
    if (next === null) answered(message);
    else send();
  };
  model.on("msg:custom", receive);
  return {
    ask: (values) => { next = values; clearTimeout(timer); timer = setTimeout(send, PAUSE); },
    end: () => { clearTimeout(timer); clearTimeout(waiting); model.off("msg:custom", receive); },
  };
}

// Whether the page behind an element is dark: the first background that is not transparent decides. A canvas knows every notation.
function isDark(element) {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  for (let node = element; node; node = node.parentNode || node.host) {
    if (!(node instanceof Element)) continue;
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = getComputedStyle(node).backgroundColor;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    if (alpha > 127) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

// Follow the theme of the notebook and the width of its cell. Returns a function that ends it.
function following(root) {
  const recolor = () => { root.dataset.scheme = isDark(root.parentNode) ? "dark" : "light"; };
  let timer = null;
  const theme = new MutationObserver(() => { recolor(); clearTimeout(timer); timer = setTimeout(recolor, 400); }); // its style sheet comes later
  for (const node of [document.documentElement, document.body]) theme.observe(node, { attributes: true });
  const size = new ResizeObserver(() => { recolor(); for (const ticks of root.querySelectorAll(".ticks")) pictures.thin(ticks); });
  size.observe(root);
  return () => { clearTimeout(timer); theme.disconnect(); size.disconnect(); };
}

function chooser(facts, choose) {
  const { rows, numbered } = facts, named = (r) => (numbered ? `row ${rows[r]}` : rows[r]), MOST = 1000;
  const control = rows.length <= MOST
    ? pictures.make("select", undefined, {}, rows.map((_, r) => pictures.make("option", named(r), { value: r })))
    : pictures.make("input", undefined, { type: "number", min: 0, max: rows.length - 1, step: 1 });
  control.addEventListener("change", () => { const r = Number(control.value); if (Number.isInteger(r) && r >= 0 && r < rows.length) choose(r); });
  return [pictures.make("label", undefined, {}, [pictures.make("span", rows.length <= MOST ? "Start from" : `Start from row, 0 to ${rows.length - 1}`), control]), (r) => { control.value = r; }];
}

function render({ model, el }) {
  const { make } = pictures, MOST_BARS = 12, PAUSE = 150;
  const facts = model.get("facts"), { features, columns, level } = facts, { data, script } = open(model), d = columns.length;
  const percent = words.share(level), name = facts.quantity;
  let unfolded = false, answer = null, saving = null;

  const own = (r, j) => (facts.texts[columns[j].name] ? facts.texts[columns[j].name][r] : data[r * d + j]);
  const startOf = (r) => columns.map((_, j) => own(r, j));
  const [row, showRow] = chooser(facts, (r) => { model.set("row", r); panel.set(startOf(r)); });
  const reset = make("button", "Reset to the row", { type: "button" });
  const said = make("p", undefined, { class: "answer", role: "status" }), grid = make("div", undefined, { class: "sliders" }), below = make("div");
  const picture = make("div", undefined, { class: "waterfall" });
  const note = make("p", `${words.upper(facts.attribution)}, compared with the baseline (${facts.baseline}). ± is one standard deviation of the model's uncertainty; it does not include the noise of the data.`, { class: "note" });
  const root = make("div", undefined, { class: "gpattr gpattr-widget" }, [
    make("div", undefined, { class: "controls" }, [row, reset]), said,
    make("div", undefined, { class: "both" }, [make("div", undefined, {}, [grid, below]), make("div", undefined, {}, [picture, note])]),
  ]);
  el.append(root);

  const settings = () => Object.fromEntries(panel.values().map((value, j) => [columns[j].name, value]));
  const python = asking(model, (message) => { if (message.error) refuse(message.error); else show(message.answer); });

  function explain() {
    reset.hidden = panel.values().every((value, j) => value === own(model.get("row"), j));
    if (script) { show(whatIf.explain(script, whatIf.row(script, panel.values()))); return; }
    root.dataset.state = "waiting";
    python.ask(settings());
    save();
  }
  function refuse(text) {
    root.dataset.state = "refused";
    said.replaceChildren(make("span", text, { class: "outside" }));
  }
  function show(found) {
    answer = found;
    draw();
    save();
  }
  function draw() {
    const { prediction, base, std } = answer, texts = new Map(panel.texts().map((text, j) => [columns[j].name, text]));
    const write = facts.probability ? numbers.probability : numbers.column([prediction, base], 4, { unit: true });
    const parts = waterfall.parts(features.map((feature, place) => ({ feature, place, value: texts.get(feature) ?? "–" })), answer, facts.quantile);
    const fold = () => { unfolded = !unfolded; draw(); };
    waterfall.draw(picture, {
      parts, base, prediction, level, bounds: facts.probability ? [0, 1] : null, name, quantity: name, baseline: facts.baseline, write,
      most: unfolded ? Infinity : MOST_BARS, foot: (hidden) => pictures.more(hidden, unfolded, fold, `Show only the ${MOST_BARS} largest`),
    });
    const outside = panel.outside(), half = std === null ? null : facts.quantile * std;
    said.replaceChildren(
      make("strong", `${words.upper(name)} ${write(prediction)}`),
      ` ${std === null ? "" : `± ${numbers.column([std], 2, { beside: prediction })(std)}, ${percent} interval ${write(prediction - half)} to ${write(prediction + half)}; `}at the baseline ${write(base)}.`,
      make("span", `${script && script.waiting ? " Standard deviations are being prepared." : ""}`, { class: "note" }),
      make("span", outside.length ? ` Outside the range of the data: ${outside.join(", ")}.` : "", { class: "outside" }),
    );
    Object.assign(root.dataset, { state: "ready", prediction, base, std: std ?? "" });
    root.answer = answer; // in full precision
  }

  // What is shown becomes known to Python when the sliders stop for a moment.
  function save() {
    clearTimeout(saving);
    saving = setTimeout(() => { model.set("values", settings()); if (answer) model.set("answer", answer); model.save_changes(); }, PAUSE);
  }
  const differs = (values) => panel.values().some((value, j) => value !== values[columns[j].name]);
  const ordered = (values) => columns.map(({ name: column }) => values[column]);
  const follow = () => { clearTimeout(saving); if (differs(model.get("values"))) panel.set(ordered(model.get("values"))); };
  const followRow = () => { showRow(model.get("row")); };
  const writer = (j) => numbers.measured(facts.rows.map((_, r) => data[r * d + j]));
  const panel = sliders.make(grid, below, columns.map((column, j) => (column.labels || column.dates ? column : sliders.ranged(column, facts.rows.map((_, r) => data[r * d + j]), writer(j)))), explain);

  const ends = [pictures.listen(root), following(root), script ? whatIf.prepare(script, explain) : () => {}, python.end];
  reset.addEventListener("click", () => panel.set(startOf(model.get("row"))));
  model.on("change:values", follow);
  model.on("change:row", followRow);
  followRow();
  panel.set(ordered(model.get("values")));
  return () => {
    clearTimeout(saving);
    model.off("change:values", follow);
    model.off("change:row", followRow);
    for (const end of ends) end();
    root.remove();
  };
}

export default { render };
