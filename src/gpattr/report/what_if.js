"use strict";
// The attributions of one row, computed in the page: integrated gradients of a Gaussian process whose kernel is a sum of squared
// exponentials, in closed form. A model is what gpattr.report.what_if writes; nothing here depends on the page.
//
//   mean    Aᵢ = Σₘ αₘ aᵢₘ,          aᵢₘ = −σ² pᵢ (pᵢ M₁ + vᵢ M₀)
//   cov     P − V (I − RRᵀ) Vᵀ,       V = a diag(w) L⁻ᵀ,   Pᵢⱼ = σ² pᵢpⱼ (δᵢⱼ G₀ − pᵢpⱼ G₂)
//
// with p = (x − b)/ℓ, v the difference to point m where the path is nearest to it, at t*, and Mₖ = ∫ (t − t*)ᵏ exp(−‖·‖²/2) dt.
const whatIf = (() => {
  const NODES = 11; // on two length-scales this is exact to the last digit, wherever the peak is
  const REACH = 9; // length-scales from the nearest point, beyond which exp(−r²/2) is below the last digit

  function gaussLegendre(n) { // on [0, 1]
    const nodes = [], weights = [];
    for (let i = 1; i <= n; i++) {
      let x = Math.cos((Math.PI * (i - 0.25)) / (n + 0.5)), slope = 1;
      for (let step = 0; step < 100; step++) {
        let p = 1, before = 0;
        for (let k = 1; k <= n; k++) [p, before] = [((2 * k - 1) * x * p - (k - 1) * before) / k, p];
        slope = (n * (x * p - before)) / (x * x - 1);
        const change = p / slope;
        x -= change;
        if (Math.abs(change) < 1e-16) break;
      }
      nodes.push(0.5 * (1 - x));
      weights.push(1 / ((1 - x * x) * slope * slope));
    }
    return [nodes, weights];
  }
  const [nodes, weights] = gaussLegendre(NODES);

  // Sum f(t) over the nodes of panels of two length-scales each, on the path from `from` to `to`.
  function integrate(from, to, length, add) {
    const panels = Math.max(1, Math.ceil(0.5 * length * (to - from))), width = (to - from) / panels;
    for (let k = 0; k < panels; k++) for (let i = 0; i < NODES; i++) add(from + width * (k + nodes[i]), width * weights[i]);
  }

  function unpacked(text) {
    return text === null || text === undefined ? null : new Float64Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  }

  function load(facts) {
    const model = { ...facts };
    for (const name of ["inputs", "alpha", "factor", "root", "column_scale"]) model[name] = unpacked(facts[name]);
    model.inside = (x) => model.source.map((place, j) => (x[place] - model.shift[j]) / model.scale[j]);
    model.owner = new Array(model.source.length); // the feature that each input belongs to
    model.columns.forEach(({ places }, i) => { for (const place of places) model.source.forEach((from, j) => { if (from === place) model.owner[j] = i; }); });
    model.base = prediction(model, model.inside(model.baseline), similarity(model, model.inside(model.baseline)));
    return model;
  }

  // k(x, Z), (m)
  function similarity({ m, inputs: Z, terms }, x) {
    const k = new Float64Array(m), D = x.length;
    for (const { variance, inverse } of terms) {
      for (let row = 0; row < m; row++) {
        let square = 0;
        for (let j = 0; j < D; j++) { const r = (x[j] - Z[row * D + j]) * inverse[j]; square += r * r; }
        k[row] += variance * Math.exp(-0.5 * square);
      }
    }
    return k;
  }

  const dot = (one, two) => { let sum = 0; for (let i = 0; i < one.length; i++) sum += one[i] * two[i]; return sum; };

  function prediction({ mean: { intercept, coefficients, origin }, alpha }, x, k) {
    return intercept + coefficients.reduce((sum, c, j) => sum + c * (x[j] - origin[j]), 0) + dot(k, alpha);
  }

  // Add what one squared exponential gives to a, (d, m), and to the prior variances of the attributions, (d).
  function addTerm({ variance, inverse }, { m, inputs: Z, owner }, x, b, a, prior) {
    const D = x.length;
    const p = x.map((value, j) => (value - b[j]) * inverse[j]);
    const square = dot(p, p), length = Math.sqrt(square);
    if (square === 0) return;
    const v = new Float64Array(D);
    for (let row = 0; row < m; row++) {
      for (let j = 0; j < D; j++) v[j] = (b[j] - Z[row * D + j]) * inverse[j];
      const nearest = Math.min(1, Math.max(0, -dot(p, v) / square));
      let distance = 0, along = 0;
      for (let j = 0; j < D; j++) { v[j] += nearest * p[j]; distance += v[j] * v[j]; along += v[j] * p[j]; }
      let M0 = 0, M1 = 0;
      integrate(Math.max(0, nearest - REACH / length), Math.min(1, nearest + REACH / length), length, (t, weight) => {
        const s = t - nearest, value = weight * Math.exp(-0.5 * (distance + s * (2 * along + s * square)));
        M0 += value;
        M1 += s * value;
      });
      for (let j = 0; j < D; j++) a[owner[j] * m + row] -= variance * p[j] * (p[j] * M1 + v[j] * M0);
    }
    let G2 = 0;
    integrate(0, Math.min(1, REACH / length), length, (u, weight) => { G2 += 2 * weight * (1 - u) * u * u * Math.exp(-0.5 * square * u * u); });
    const fall = -Math.expm1(-0.5 * square) / (0.5 * square); // G₀ − aG₂: no cancellation on long paths
    for (let i = 0; i < D; i++) {
      let others = 0;
      for (let j = 0; j < D; j++) {
        if (j === i) continue;
        others += p[j] * p[j];
        if (owner[j] === owner[i]) prior[owner[i]] -= variance * p[i] * p[i] * p[j] * p[j] * G2;
      }
      prior[owner[i]] += variance * p[i] * p[i] * (fall + others * G2);
    }
  }

  // The reduction by the data of the variances whose covariances with the points are `lines`, (m) each: the diagonal of V(I − RRᵀ)Vᵀ.
  function explained(model, lines) {
    const { m, factor: L, root: R, column_scale: w } = model;
    lines = lines.map((line) => line.slice());
    for (const line of lines) {
      if (w) for (let i = 0; i < m; i++) line[i] *= w[i];
      for (let i = 0, start = 0; i < m; start += ++i) {
        let sum = line[i];
        for (let j = 0; j < i; j++) sum -= L[start + j] * line[j];
        line[i] = sum / L[start + i];
      }
    }
    if (!R) return lines.map((line) => dot(line, line));
    const width = R.length / m;
    return lines.map((line) => {
      const reduced = new Float64Array(width);
      for (let i = 0; i < m; i++) for (let j = 0; j < width; j++) reduced[j] += line[i] * R[i * width + j];
      return dot(line, line) - dot(reduced, reduced);
    });
  }

  // The explanation of a row of columns: prediction, that of the baseline, attributions, and standard deviations of all.
  function explain(model, row) {
    const { m, terms, columns, owner, mean } = model, d = columns.length;
    const x = model.inside(row), b = model.inside(model.baseline);
    const k = similarity(model, x), a = new Float64Array(d * m), prior = new Float64Array(d);
    for (const term of terms) addTerm(term, model, x, b, a, prior);
    const lines = columns.map((_, i) => a.subarray(i * m, (i + 1) * m));
    const values = lines.map((line) => dot(line, model.alpha));
    x.forEach((value, j) => { values[owner[j]] += mean.coefficients[j] * (value - b[j]); });
    const { factor, offset } = model.output, outside = (y) => factor * y + offset;
    const result = { prediction: outside(prediction(model, x, k)), base: outside(model.base), values: values.map((y) => factor * y), std: null, stds: null };
    if (model.factor) {
      const known = explained(model, [...lines, k]);
      const left = (variance, i) => Math.abs(factor) * Math.sqrt(Math.max(0, variance - known[i]));
      result.stds = values.map((_, i) => left(prior[i], i));
      result.std = left(terms.reduce((sum, { variance }) => sum + variance, 0), d);
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

  return { load, explain, date };
})();
