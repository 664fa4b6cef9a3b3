"use strict";
// Readable numbers: 690,400 and not 6.904e+05, a true minus sign, and the same decimals for all numbers of a column.
// Nothing here depends on the page.
const numbers = (() => {
  const LARGE = 1e12, SMALL = 1e-4; // beyond these, powers of ten are easier to read
  const SEPARATED = 10000; // from here on thousands are separated: 2024 may be a year
  const minus = (text) => text.replaceAll("-", "−");
  const separated = (text) => { const [whole, rest] = text.split("."); return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : ""); };
  const decimals = (x, digits) => (x === 0 || !Number.isFinite(x) ? 0 : Math.min(10, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x))))));
  const power = (x, digits) => { const [head, tail] = x.toExponential(digits - 1).split("e"); return `${minus(head)}e${minus(tail.replace("+", ""))}`; };
  const extreme = (x) => x !== 0 && (Math.abs(x) >= LARGE || Math.abs(x) < SMALL);

  // x with `places` decimals; what is shown as zero has no sign.
  function fixed(x, places, { sign = false, comma = Math.abs(x) >= SEPARATED - 0.5 } = {}) {
    if (!Number.isFinite(x)) return Number.isNaN(x) ? "–" : x > 0 ? "∞" : "−∞";
    const text = Math.abs(x).toFixed(places), zero = !/[1-9]/.test(text);
    return (zero ? "" : x < 0 ? "−" : sign ? "+" : "") + (comma ? separated(text) : text);
  }

  // x with the given number of significant digits: 690,400 for 690,412.3 with four; trailing zeros are left out.
  function readable(x, digits = 4, options = {}) {
    if (!Number.isFinite(x)) return fixed(x, 0);
    if (extreme(x)) return (options.sign && x > 0 ? "+" : "") + power(x, Math.min(digits, 3));
    const kept = Number(x.toPrecision(digits));
    return fixed(kept, (String(kept).split(".")[1] || "").length, options);
  }

  // A function that writes numbers like these, all with the decimals that give the largest of them `digits` digits. With `unit`,
  // whole numbers are rounded as well, to five digits of the largest: 690,410 for 690,412.3. A number
  // shown `beside` them also decides whether thousands are separated.
  function column(values, digits = 3, { sign = false, unit = false, beside = 0 } = {}) {
    let top = 0;
    for (const x of values) if (Number.isFinite(x)) top = Math.max(top, Math.abs(x));
    if (extreme(top)) return (x) => (x === 0 ? "0" : readable(x, digits, { sign }));
    const size = unit ? 10 ** Math.max(0, Math.floor(Math.log10(top || 1)) - 4) : 1;
    const places = decimals(top, digits), options = { sign, comma: Math.max(top, Math.abs(beside)) >= SEPARATED - 0.5 };
    return (x) => fixed(size > 1 ? size * Math.round(x / size) : x, places, options);
  }

  // A function that writes the values of a feature with the decimals that the data have, at most a few.
  function measured(values) {
    let low = Infinity, high = -Infinity, own = 0;
    for (const x of values) {
      if (!Number.isFinite(x)) continue;
      [low, high] = [Math.min(low, x), Math.max(high, x)];
      while (own < 8 && Math.abs(x - Number(x.toFixed(own))) > 1e-6 * Math.abs(x)) own += 1;
    }
    if (low > high) return (x) => fixed(x, 0);
    const top = Math.max(Math.abs(low), Math.abs(high));
    if (extreme(top)) return (x) => (x === 0 ? "0" : readable(x));
    const places = Math.min(own, Math.max(decimals(top, 4), decimals(high - low, 3))), comma = top >= SEPARATED - 0.5;
    return (x) => (places === 0 && !Number.isInteger(x) ? readable(x, 5, { comma }) : fixed(x, places, { comma }));
  }

  // A probability: 0.97, but never 0 or 1 unless it is.
  function probability(p) {
    if (!Number.isFinite(p)) return "–";
    return p > 0.999 ? "> 0.999" : p < 0.001 ? "< 0.001" : p > 0.99 || p < 0.01 ? p.toFixed(3) : p.toFixed(2);
  }

  // The same in per cent, rounded down, so that 94.96% does not read as 95%.
  function percent(p) {
    if (!Number.isFinite(p)) return "–";
    return p > 0.999 ? "> 99.9%" : `${Math.floor(1000 * p + 1e-9) / 10}%`;
  }

  // At most `count` round numbers within the ends, and a function that writes them.
  function ticks(low, high, count) {
    const span = high - low;
    if (!(span > 0) || !Number.isFinite(span)) return { at: [low], text: (x) => readable(x) };
    let step = 10 ** Math.floor(Math.log10(span / count));
    for (const factor of [1, 2, 5, 10]) if (span / (step * factor) <= count) { step *= factor; break; }
    const at = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) at.push(k * step);
    if (Math.max(Math.abs(low), Math.abs(high)) >= LARGE || step < SMALL) return { at, text: (x) => (Math.abs(x) < 1e-9 * step ? "0" : readable(x, 3)) };
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const comma = Math.max(Math.abs(low), Math.abs(high)) >= SEPARATED;
    return { at, text: (x) => fixed(x, places, { comma }) };
  }

  // Φ(z), the normal distribution: a series near 0, a continued fraction in the tails.
  function normal(z) {
    const x = Math.abs(z), density = Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
    let tail;
    if (x < 3) {
      let term = x, sum = x;
      for (let k = 1; k < 60; k++) { term *= (x * x) / (2 * k + 1); sum += term; }
      tail = 0.5 - sum * density;
    } else {
      let below = x;
      for (let k = 60; k > 0; k--) below = x + k / below;
      tail = density / below;
    }
    return z > 0 ? 1 - tail : tail;
  }

  return { normal, fixed, readable, column, measured, probability, percent, ticks };
})();
