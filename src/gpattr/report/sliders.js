"use strict";
// Controls for the values of a row: a slider and a number, a choice of categories, or a date. Nothing here depends on the page.
//
// A column is {name, labels, dates, low, high, step, write}: `labels` of categories, or `dates` {timed}, or neither for a number.
// Values are numbers, labels, and texts of dates.
const sliders = (() => {
  const MOST = 12, FARTHEST = 1e100;
  const { make: element } = pictures;

  // A numeric column whose range covers these values, in about 1000 steps, or whole ones.
  function ranged(column, values, write) {
    let { low, high } = column, whole = true;
    for (const x of values) [low, high, whole] = [Math.min(low, x), Math.max(high, x), whole && Number.isInteger(x)];
    const step = whole || high === low ? 1 : 10 ** Math.floor(Math.log10((high - low) / 1000));
    return { ...column, low, high, step, write };
  }

  function choice({ name, labels }, changed) {
    const select = element("select", undefined, { "aria-label": name }, labels.map((text, k) => element("option", text, { value: k })));
    select.addEventListener("input", changed);
    return { nodes: [select], set: (label) => { select.value = labels.indexOf(label); }, value: () => labels[select.value], text: () => labels[select.value], outside: () => false };
  }

  function date({ name, dates: { timed }, low, high }, changed) {
    const input = element("input", undefined, { type: timed ? "datetime-local" : "date", step: timed ? 1 : "any", "aria-label": name });
    let current = "";
    const day = () => Date.parse(current.length > 10 ? `${current.replace(" ", "T")}Z` : current) / 864e5;
    input.addEventListener("input", () => { if (input.value) { current = input.value.replace("T", " "); changed(); } }); // empty while being typed
    return { nodes: [input], set: (text) => { current = text; input.value = text.replace(" ", "T"); }, value: () => current, text: () => current, outside: () => day() < low || day() > high };
  }

  function number({ name, low, high, step, write }, changed) {
    const slack = 1e-9 * (high - low), places = Math.min(12, Math.max(0, 7 - Math.floor(Math.log10(high - low || Math.abs(high) || 1)))); // more than the range needs
    const slider = element("input", undefined, { type: "range", min: low, max: high, step: "any", "aria-label": name });
    const box = element("input", undefined, { type: "number", step: "any", "aria-label": `${name}, value` });
    let current = 0;
    const show = (x, text = x.toPrecision(12)) => { current = x; box.value = Number(text); };
    slider.addEventListener("input", () => { show(Math.min(high, Math.max(low, step * Math.round(Number(slider.value) / step)))); changed(); });
    box.addEventListener("input", () => {
      if (box.value === "" || !(Math.abs(Number(box.value)) < FARTHEST)) return; // still being typed
      current = Number(box.value);
      slider.value = current;
      changed();
    });
    box.addEventListener("change", () => { if (box.value === "" || Math.abs(Number(box.value) - current) > 10 ** -places) show(current); });
    return {
      nodes: [box, slider], set: (x) => { show(x, x.toFixed(places)); slider.value = x; }, value: () => current, text: () => write(current),
      outside: () => current < low - slack || current > high + slack,
    };
  }

  // Fill a box with the controls of columns; those beyond the first are folded behind a button in `below`. `changed` is called after
  // every change, and once after `set`, which sets all of them to given values, in the order of the columns.
  function make(box, below, columns, changed) {
    const controls = columns.map((column) => (column.labels ? choice : column.dates ? date : number)(column, () => changed()));
    box.replaceChildren(...controls.map(({ nodes }, k) => element("div", undefined, {}, [element("span", columns[k].name), ...nodes])));
    let open = false;
    const fold = () => {
      [...box.children].forEach((child, k) => { child.hidden = k >= MOST && !open; });
      below.replaceChildren(...[pictures.more(open ? 0 : columns.length - MOST, open, () => { open = !open; fold(); }, `Show only the ${MOST} largest`)].filter(Boolean));
    };
    fold();
    return {
      set: (values) => { controls.forEach((control, k) => control.set(values[k])); changed(); },
      values: () => controls.map((control) => control.value()),
      texts: () => controls.map((control) => control.text()),
      outside: () => columns.filter((_, k) => controls[k].outside()).map(({ name }) => name),
    };
  }

  return { ranged, make };
})();
