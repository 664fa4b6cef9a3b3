"use strict";
// The explanation of one row, computed in the page: integrated gradients of a Gaussian process, with their standard deviations. A
// model is what gpattr.report.what_if writes; nothing here depends on the page.
//
//   mean    Aᵢ = Σₘ αₘ aᵢₘ,       a the covariances of the attributions with the points (path_integrals.js)
//   cov     P − V (I − RRᵀ) Vᵀ,    V = a diag(w) L⁻ᵀ
//
// L is part of the model, or computed here from K: L = chol(diag(w) K diag(w) + diag(noise)).
const whatIf = (() => {
  const AT_ONCE = 300; // points up to which the factor is computed before the page is shown, in milliseconds
  const SLICE = 20; // milliseconds of computing, after which the page may do something else
  const { dot } = pathIntegrals;

  // Numbers as Float64Array, from base64 or from what is one already.
  function unpacked(packed) {
    if (typeof packed !== "string") return packed || null;
    return new Float64Array(Uint8Array.from(atob(packed), (c) => c.charCodeAt(0)).buffer);
  }

  // A mixture is {weights, models}: what its models share stands beside them, and `each` are all of them whole.
  function load(facts) {
    if (!facts.models) return one(facts, AT_ONCE);
    const shared = { ...facts, inputs: unpacked(facts.inputs) }, atOnce = AT_ONCE / Math.cbrt(facts.models.length);
    const each = facts.models.map((own) => one({ ...shared, ...own }, atOnce));
    return { ...shared, each, noise: each[0].noise, get factor() { return each.every((part) => part.factor); }, get waiting() { return each.some((part) => part.waiting); } };
  }

  function one(facts, atOnce) {
    const model = { ...facts };
    for (const name of ["inputs", "alpha", "factor", "root", "column_scale", "noise"]) model[name] = unpacked(facts[name]);
    model.terms = facts.terms.map((term) => ({ ...term, leaves: term.leaves.map(pathIntegrals.opened) }));
    model.inside = (x) => model.source.map((place, j) => (x[place] - model.shift[j]) / model.scale[j]);
    model.owner = new Array(model.source.length); // the feature that each input belongs to
    model.columns.forEach(({ places }, i) => { for (const place of places) model.source.forEach((from, j) => { if (from === place) model.owner[j] = i; }); });
    model.base = prediction(model, model.inside(model.baseline), similarity(model, model.inside(model.baseline)));
    model.waiting = !model.factor && model.noise ? factorOf(model) : null; // what is left to do for standard deviations
    if (model.m <= atOnce) advance(model, Infinity);
    return model;
  }

  function factorOf({ m, inputs: Z, terms, noise, column_scale: w }) {
    const D = Z.length / m;
    return cholesky.factorise(m, (L, i, start) => {
      const x = Z.subarray(i * D, (i + 1) * D);
      for (let j = 0; j <= i; j++) {
        let sum = 0;
        for (const term of terms) sum += pathIntegrals.value(term, x, Z, j);
        L[start + j] = w ? w[i] * sum * w[j] : sum;
      }
      L[start + i] += noise[i];
    });
  }

  // Work on the factor, or those of a mixture, for some milliseconds; true when there is nothing left to do.
  function advance(model, milliseconds) {
    const until = performance.now() + milliseconds;
    if (model.each) return model.each.every((part) => advance(part, until - performance.now()));
    while (model.waiting && performance.now() < until) {
      const { done, value } = model.waiting.next();
      if (done) [model.factor, model.waiting] = [value, null];
    }
    return !model.waiting;
  }

  // Work on the factor in slices of time and call `done` once it is there. Returns a function that stops the work.
  function prepare(model, done) {
    if (!model.waiting) return () => {};
    let timer = setTimeout(function work() { if (advance(model, SLICE)) done(); else timer = setTimeout(work); });
    return () => clearTimeout(timer);
  }

  // k(x, Z), (m)
  function similarity({ m, inputs: Z, terms }, x) {
    const k = new Float64Array(m);
    for (const term of terms) for (let row = 0; row < m; row++) k[row] += pathIntegrals.value(term, x, Z, row);
    return k;
  }

  function prediction({ mean: { intercept, coefficients, origin }, alpha }, x, k) {
    return intercept + coefficients.reduce((sum, c, j) => sum + c * (x[j] - origin[j]), 0) + dot(k, alpha);
  }

  // The reduction by the data of the variances whose covariances with the points are `lines`, (m) each: the diagonal of V(I − RRᵀ)Vᵀ.
  function explained({ m, factor, root: R, column_scale: w }, lines) {
    const scaled = w ? lines.map((line) => line.map((x, i) => x * w[i])) : lines;
    return cholesky.solve(factor, m, scaled).map((line) => {
      if (!R) return dot(line, line);
      const width = R.length / m, reduced = new Float64Array(width);
      for (let i = 0; i < m; i++) for (let j = 0; j < width; j++) reduced[j] += line[i] * R[i * width + j];
      return dot(line, line) - dot(reduced, reduced);
    });
  }

  // The same of a mixture, by total variance, with the ends of intervals at a level and the probabilities of positive signs.
  function ofMixture({ each, weights }, row, level) {
    const answers = each.map((part) => explain(part, row)), average = (pick) => answers.reduce((sum, answer, k) => sum + weights[k] * pick(answer), 0);
    const values = answers[0].values.map((_, i) => average((answer) => answer.values[i]));
    const result = { prediction: average((answer) => answer.prediction), base: average((answer) => answer.base), values, std: null, stds: null };
    if (answers.some((answer) => !answer.stds)) return result;
    result.std = Math.sqrt(average((answer) => answer.std ** 2 + (answer.prediction - result.prediction) ** 2));
    result.stds = values.map((value, i) => Math.sqrt(average((answer) => answer.stds[i] ** 2 + (answer.values[i] - value) ** 2)));
    const below = (i, x) => average(({ values: m, stds: s }) => (s[i] > 0 ? numbers.normal((x - m[i]) / s[i]) : x > m[i] ? 1 : x < m[i] ? 0 : 0.5));
    const quantile = (i, p) => { // between those of the models, by halving
      let low = Infinity, high = -Infinity;
      for (const { values: m, stds: s } of answers) [low, high] = [Math.min(low, m[i] - 9 * s[i]), Math.max(high, m[i] + 9 * s[i])];
      for (let step = 0; step < 60 && low < high; step++) { const middle = 0.5 * (low + high); if (below(i, middle) < p) low = middle; else high = middle; }
      return 0.5 * (low + high);
    };
    const tail = 0.5 * (1 - level);
    return { ...result, low: values.map((_, i) => quantile(i, tail)), high: values.map((_, i) => quantile(i, 1 - tail)), positive: values.map((_, i) => 1 - below(i, 0)) };
  }

  // The explanation of a row of columns: prediction, that of the baseline, attributions, and standard deviations of all.
  function explain(model, row, level = 0.95) {
    if (model.each) return ofMixture(model, row, level);
    const { m, terms, columns, owner, mean } = model, d = columns.length;
    const x = model.inside(row), b = model.inside(model.baseline);
    const k = similarity(model, x), a = new Float64Array(d * m), prior = new Float64Array(d);
    for (const term of terms) {
      pathIntegrals.addCovariances(term, model, x, b, a);
      if (model.factor) pathIntegrals.addVariances(term, owner, x, b, prior);
    }
    const lines = columns.map((_, i) => a.subarray(i * m, (i + 1) * m));
    const values = lines.map((line) => dot(line, model.alpha));
    x.forEach((value, j) => { values[owner[j]] += mean.coefficients[j] * (value - b[j]); });
    const { factor, offset } = model.output, outside = (y) => factor * y + offset;
    const result = { prediction: outside(prediction(model, x, k)), base: outside(model.base), values: values.map((y) => factor * y), std: null, stds: null };
    if (model.factor) {
      const known = explained(model, [...lines, k]);
      const left = (variance, i) => Math.abs(factor) * Math.sqrt(Math.max(0, variance - known[i]));
      result.stds = values.map((_, i) => left(prior[i], i));
      result.std = left(terms.reduce((sum, term) => sum + pathIntegrals.value(term, x, x, 0), 0), d);
    }
    return result;
  }

  // The encoded columns of a date, as gpattr.encoders.dates makes them: days since 1970, then sine and cosine of each cycle.
  function date(text, cycles) {
    const DAY = 86400000, when = new Date(text.includes("T") ? `${text}Z` : `${text}T00:00Z`), days = when.getTime() / DAY, day = Math.floor(days);
    const newYear = (year) => new Date(0).setUTCFullYear(year, 0, 1) / DAY, year = when.getUTCFullYear();
    const parts = {
      season: (day - newYear(year)) / (newYear(year + 1) - newYear(year)), weekday: ((((day + 3) % 7) + 7) % 7) / 7, "time of day": days - day,
    };
    return [days, ...cycles.flatMap((cycle) => [Math.sin(2 * Math.PI * parts[cycle]), Math.cos(2 * Math.PI * parts[cycle])])];
  }

  // The row of columns for one value of each feature: a number, a label, or the text of a date.
  function row(model, values) {
    const result = new Array(model.low.length).fill(0);
    model.columns.forEach(({ places, labels, codes, dates }, i) => {
      const parts = codes ? codes[labels.indexOf(values[i])] : labels ? labels.map((label) => (label === values[i] ? 1 : 0)) : dates ? date(values[i].replace(" ", "T"), dates.cycles) : [values[i]];
      places.forEach((place, k) => { result[place] = parts[k]; });
    });
    return result;
  }

  return { load, prepare, row, explain, date };
})();
