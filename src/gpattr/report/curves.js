"use strict";
// Curves of single features: the average prediction with its band against numbers or dates, or a point with its interval for each
// category; below it how many rows the data have there. All curves share their vertical scale, so that effects compare.
// A curve is what gpattr.report.whole_function writes. Text is never HTML; nothing here depends on the data of the page.
const curves = (() => {
  const { make, shape, line } = pictures, DAY = 864e5, FEW = 10, MANY = 12, LETTERS = 9, LONGEST = 24;

  // A curve whose arrays can be read.
  function opened(curve, unpack) {
    const kinds = { at: Float64Array, outside: Uint8Array };
    return { ...curve, ...Object.fromEntries(Object.entries(curve.arrays).map(([name, text]) => [name, unpack(text, kinds[name] || Float32Array)])) };
  }

  // The same vertical scale for all of these curves. Bands of extrapolation may be cut off: they are wide, and would flatten everything else.
  const shared = (all) => pictures.scale(all.flatMap((c) => [...c.values, ...[c.low || [], c.high || []].flatMap((ends) => [...ends].filter((_, k) => !c.outside[k]))]), { count: 5 });
  const short = (label) => (label.length > LONGEST ? `${label.slice(0, LONGEST - 10)}…${label.slice(-9)}` : label);

  // Round dates between two days, at most `count` or so, and a function that writes them.
  function dateTicks(low, high, count) {
    const span = (high - low) / count, first = new Date(low * DAY), at = [];
    const iso = (length, from = 0) => (day) => new Date(Math.round(day * 1440) * 6e4).toISOString().slice(from, length).replace("T", " ");
    const round = (step, text) => { for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) at.push(k * step); return { at, text }; };
    for (const minutes of [5, 15, 60, 180, 360, 720]) if (span * 1440 <= minutes) return round(minutes / 1440, high - low <= 1 ? iso(16, 11) : iso(16, 5));
    for (const step of [1, 2, 7]) if (span <= step) return round(step, iso(10));
    let months = [1, 2, 3, 6].find((step) => span <= 31 * step);
    if (!months) { months = 12; for (let k = 0; span > months * 30.6; k++) months = 12 * [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3); }
    const years = months / 12;
    let year = years > 1 ? Math.floor(first.getUTCFullYear() / years) * years : first.getUTCFullYear();
    for (let k = 0, day = -Infinity; day <= high; k++) {
      day = new Date(0).setUTCFullYear(year, k * months, 1) / DAY;
      if (day >= low && day <= high) at.push(day);
    }
    return { at, text: iso(months < 12 ? 7 : 4) };
  }

  // The horizontal scale of a curve, its ticks, and where its values are, in per cent of the width.
  function horizontal(curve) {
    if (curve.kind === "category") {
      const G = curve.values.length, part = (k) => (100 * (k + 0.5)) / G;
      return { part, ticks: { at: curve.labels.map((_, k) => k), text: (k) => curve.labels[k] } };
    }
    const { low, high } = curve.data, s = pictures.scale([low, high, ...curve.at], { margin: 0.03, count: 5 });
    return { part: s.part, ticks: curve.kind === "date" ? dateTicks(s.low, s.high, 4) : s.ticks };
  }

  // Consecutive points with the same mark: pieces of a line {outside, from, to}. Lines to or from extrapolation are extrapolation.
  function pieces(outside) {
    const found = [];
    for (let k = 1; k < outside.length; k++) {
      const mark = Boolean(outside[k - 1] || outside[k]), last = found[found.length - 1];
      if (last && last.outside === mark) last.to = k; else found.push({ outside: mark, from: k - 1, to: k });
    }
    return found;
  }

  // The band and the line in a square of 100 × 100, which is stretched over the area.
  function drawn(curve, x, y) {
    const parts = [], points = (values, from, to) => Array.from({ length: to - from + 1 }, (_, k) => `${x(curve.at[from + k]).toFixed(3)} ${y(values[from + k]).toFixed(3)}`);
    const cut = pieces(curve.outside);
    for (const { outside, from, to } of cut) {
      const look = outside ? " guess" : "";
      if (curve.low) parts.push(shape("path", { class: `band${look}`, d: `M${points(curve.high, from, to).join("L")}L${points(curve.low, from, to).reverse().join("L")}Z` }));
    }
    for (const { outside, from, to } of cut) parts.push(shape("path", { class: `curve${outside ? " guess" : ""}`, d: `M${points(curve.values, from, to).join("L")}` }));
    return shape("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", width: "100%", height: "100%", overflow: "visible" }, parts);
  }

  function marks(curve, x, y, whiskers) {
    return Array.from(curve.values, (value, k) => {
      const at = `${x(curve.at[k]).toFixed(3)}%`, across = shape("svg", { x: at, width: 1, height: "100%", overflow: "visible" }), look = curve.outside[k] ? " hollow" : "";
      if (whiskers && curve.low) {
        const [low, high] = [curve.low[k], curve.high[k]].map((end) => `${y(end).toFixed(3)}%`);
        across.append(line(0, low, 0, high, "whisker"), line(-4, low, 4, low, "whisker"), line(-4, high, 4, high, "whisker"));
      }
      across.append(shape("circle", { cx: 0, cy: `${y(value).toFixed(3)}%`, r: whiskers ? 4 : 2.6, class: `dot${look}` }));
      return across;
    });
  }

  // How many rows of the data there are along the axis.
  function histogram({ kind, data: { counts, low, high } }, part) {
    const most = Math.max(1, ...counts), G = counts.length;
    const bars = counts.map((count, k) => {
      const from = kind === "category" ? part(k) - 30 / G : part(low + ((high - low) * k) / G), to = kind === "category" ? part(k) + 30 / G : part(low + ((high - low) * (k + 1)) / G);
      return count ? shape("rect", { x: `${from.toFixed(3)}%`, width: `${(to - from).toFixed(3)}%`, y: `${(100 - Math.max(5, (100 * count) / most)).toFixed(1)}%`, height: "100%" }) : null;
    });
    return shape("svg", { class: "density", "aria-hidden": "true" }, bars.filter(Boolean));
  }

  // One curve in a figure. `text` writes a value of the feature, `number` one of the curve; `up` is the shared scale.
  function figure(curve, { up, text, number, name, words, level }) {
    const { part, ticks } = horizontal(curve), category = curve.kind === "category", single = curve.values.length === 1;
    const y = (value) => 100 - up.part(value), rule = (value) => `${y(value).toFixed(3)}%`;
    const beyond = shape("g", {}), found = shape("g", { class: "found", visibility: "hidden" }, [line(0, "0%", 0, "100%", "reference"), shape("circle", { r: 4.5, class: "dot" })]);
    if (!category) {
      for (const { outside, from, to } of pieces(curve.outside)) if (outside) {
        const left = part(curve.at[from]), right = part(curve.at[to]);
        beyond.append(shape("rect", { class: "beyond", x: `${left.toFixed(3)}%`, width: `${(right - left).toFixed(3)}%`, y: 0, height: "100%" }));
      }
    }
    const said = Array.from(curve.values, (value, k) => `${curve.feature} = ${category ? curve.labels[k] : text(curve.at[k])}: ${number(value)}${curve.std ? ` ± ${numbers.column([curve.std[k]], 2, { beside: value })(curve.std[k])}\n${level} interval ${number(curve.low[k])} to ${number(curve.high[k])}` : ""}${category ? `\n${numbers.fixed(curve.data.counts[k], 0)} of ${numbers.fixed(curve.rows, 0)} rows` : ""}${curve.outside[k] ? "\noutside the data" : ""}`);
    const area = shape("svg", { class: "area curve-area", role: "img", tabindex: "0", "aria-label": `${name} against ${curve.feature}. ${words} Arrow keys read its values.` }, [
      beyond, ...(category ? [] : ticks.at.map((value) => line(`${part(value).toFixed(3)}%`, "0%", `${part(value).toFixed(3)}%`, "100%", "grid"))),
      ...up.ticks.at.map((value) => line("0%", rule(value), "100%", rule(value), "grid")),
      ...(category || single ? [] : [drawn(curve, part, y)]), ...(category || single ? marks(curve, part, y, true) : curve.values.length <= FEW ? marks(curve, part, y, false) : []), found,
    ]);
    const side = make("div", undefined, { class: "side" }, up.ticks.at.map((value) => make("span", up.ticks.text(value), { style: `top:${rule(value)}` })));
    side.style.width = `${Math.max(...up.ticks.at.map((value) => up.ticks.text(value).length)) * 0.62 + 0.6}em`;
    const upright = category && (curve.labels.length > 5 || curve.labels.some((label) => label.length * curve.labels.length > 4 * LETTERS));
    const below = make("div", undefined, { class: `ticks${upright ? " upright" : ""}` }, ticks.at.map((value) => make("span", category ? short(ticks.text(value)) : ticks.text(value), { style: `left:${part(value).toFixed(3)}%`, ...(category ? { "data-tip": ticks.text(value) } : {}) })));
    if (upright) below.style.height = `${Math.max(...curve.labels.map((label) => short(label).length)) * 0.45 + 0.8}rem`;
    const node = make("figure", undefined, { class: category && curve.labels.length > MANY ? "long" : "", "data-feature": curve.feature }, [
      make("figcaption", curve.feature), make("div", undefined, { class: "frame" }, [side, area, make("div", undefined, { class: "below" }, [histogram(curve, part), below])]), make("p", words, { class: "note" }),
    ]);
    pointed(area, found, curve, part, rule, said);
    return { node, below: category ? null : below };
  }

  // The value nearest to the pointer, or the one that arrow keys choose.
  function pointed(area, found, curve, part, rule, said) {
    let place = -1;
    const hide = () => { place = -1; found.setAttribute("visibility", "hidden"); pictures.hush(); };
    const show = (k, event) => {
      place = k;
      const [rod, dot] = found.children, x = `${part(curve.at[k]).toFixed(3)}%`;
      for (const end of ["x1", "x2"]) rod.setAttribute(end, x);
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", rule(curve.values[k]));
      found.setAttribute("visibility", "visible");
      pictures.tell(said[k], event);
    };
    area.addEventListener("pointermove", (event) => {
      const { left, width } = area.getBoundingClientRect(), x = (100 * (event.clientX - left)) / width;
      let best = 0;
      curve.at.forEach((value, k) => { if (Math.abs(part(value) - x) < Math.abs(part(curve.at[best]) - x)) best = k; });
      show(best, event);
    });
    area.addEventListener("pointerleave", hide);
    area.addEventListener("blur", hide);
    area.addEventListener("keydown", (event) => {
      const last = curve.values.length - 1, next = { ArrowRight: Math.min(last, place + 1), ArrowLeft: place < 0 ? last : Math.max(0, place - 1), Home: 0, End: last }[event.key];
      if (event.key === "Escape") hide();
      if (next === undefined) return;
      event.preventDefault();
      const { left, top, width, height } = area.getBoundingClientRect();
      show(next, { target: area, clientX: left + (width * part(curve.at[next])) / 100, clientY: top + height / 2 });
    });
  }

  // The shown curves, each in a figure; `describe(curve)` returns {text, words} in the format of the page.
  function draw(box, shown, { up, number, name, level, describe }) {
    const all = shown.map((curve) => figure(curve, { up, number, name, level, ...describe(curve) }));
    box.replaceChildren(...all.map(({ node }) => node));
    for (const { below } of all) if (below) pictures.thin(below);
  }

  return { opened, shared, dateTicks, draw };
})();
