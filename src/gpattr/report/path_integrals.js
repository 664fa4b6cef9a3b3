"use strict";
// Integrated gradients of a kernel along one path, and their prior variances. A kernel is a sum of terms σ² ∏ₗ gₗ(rₗ²) ∏_c L_c(x, z).
// Leaves g are squared exponentials, Matérn 3/2 and 5/2 and rational quadratics, each with its own inverse length-scales; factors
// L_c = o + Σⱼ vⱼ xⱼ zⱼ, such as kernels of categories, are linear along the path. Nothing here depends on the page.
//
// With pₗ = (x − b)/ℓₗ and vₗ = the difference to z where leaf l is nearest to it on the path, at tₗ, all in length-scales of the leaf,
//
//   𝒜ᵢk(·, z) = σ² Σₗ pₗᵢ (vₗᵢ I₀ₗ + pₗᵢ I₁ₗ),      Iₖₗ = ∫ (t − tₗ)ᵏ hₗ ∏_{j ≠ l} gⱼ dt,     h = g'/r,
//   Var 𝒜ᵢ    = −σ² (Σₗ Gₗ sₗᵢ + Σₗⱼ Qₗⱼ sₗᵢ sⱼᵢ),   sₗᵢ = Σ pₗ² over the inputs of feature i,
//
// where Gₗ = ∫ 2(1 − u) hₗ ∏ g du, Qₗⱼ = ∫ 2(1 − u) u² hₗhⱼ ∏ g du with h'/r instead of hₗ² for j = l: along one line the kernel
// depends on u = |s − t| only. Factors make it, with P = ∏ L_c and P₋c without L_c,
//
//   𝒜ᵢk(·, z) = σ² Σₗ pₗᵢ (vₗᵢ I₀ₗ + pₗᵢ I₁ₗ) + σ² Σ_c vᵢ (xᵢ − bᵢ) zᵢ J_c,      P inside of Iₖₗ,      J_c = ∫ ∏ g P₋c dt,
//   Var 𝒜ᵢ    = 2 ∫∫ ∂ᵢ∂'ᵢ k over s ≥ t,   L_c = L + (s + t) λ + s t μ,   ∂ᵢL_c = λᵢ + t μᵢ,   ∂'ᵢL_c = λᵢ + s μᵢ,   ∂ᵢ∂'ᵢL_c = μᵢ.
const pathIntegrals = (() => {
  const NODES = 12; // a panel
  const ROOT3 = Math.sqrt(3), ROOT5 = Math.sqrt(5);
  // `reach`: the radius beyond which a leaf is below the last digit. `width`: the longest panel, in length-scales. `floor`: the
  // radius within which a Matérn kernel is as if it had its kink on the path: what is neglected is below 1e-12.
  const KINDS = {
    squared_exponential: { code: 0, reach: 9, width: 2, floor: 0 },
    matern32: { code: 1, reach: 42 / ROOT3, width: 6 / ROOT3, floor: 1e-6 },
    matern52: { code: 2, reach: 44 / ROOT5, width: 6 / ROOT5, floor: 1e-3 },
    rational_quadratic: { code: 3, reach: Infinity, width: Infinity, floor: 0 },
  };

  function gaussLegendre(n) { // on [0, 1]
    const nodes = new Float64Array(n), weights = new Float64Array(n);
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
      nodes[i - 1] = 0.5 * (1 - x);
      weights[i - 1] = 1 / ((1 - x * x) * slope * slope);
    }
    return [nodes, weights];
  }
  const [nodes, weights] = gaussLegendre(NODES);
  const dot = (one, two) => { let sum = 0; for (let i = 0; i < one.length; i++) sum += one[i] * two[i]; return sum; };

  const opened = ({ kind, inverse, alpha = 1 }) => ({ ...KINDS[kind], inverse: Float64Array.from(inverse), alpha });

  function profile({ code, alpha }, r2) {
    if (code === 0) return Math.exp(-0.5 * r2);
    if (code === 3) return Math.exp(-alpha * Math.log1p((0.5 * r2) / alpha));
    const s = (code === 1 ? ROOT3 : ROOT5) * Math.sqrt(r2);
    return (code === 1 ? 1 + s : 1 + s * (1 + s / 3)) * Math.exp(-s);
  }
  // h = g'/r
  function slope({ code, alpha }, r2) {
    if (code === 0) return -Math.exp(-0.5 * r2);
    if (code === 3) return -Math.exp(-(alpha + 1) * Math.log1p((0.5 * r2) / alpha));
    const s = (code === 1 ? ROOT3 : ROOT5) * Math.sqrt(r2);
    return (code === 1 ? -3 : (-5 / 3) * (1 + s)) * Math.exp(-s);
  }
  // h'/r
  function curvature({ code, alpha }, r2) {
    if (code === 0) return Math.exp(-0.5 * r2);
    if (code === 3) return (1 + 1 / alpha) * Math.exp(-(alpha + 2) * Math.log1p((0.5 * r2) / alpha));
    const r = Math.sqrt(Math.max(r2, 1e-200)); // at r = 0 it is multiplied by 0
    return code === 1 ? (3 * ROOT3 * Math.exp(-ROOT3 * r)) / r : (25 / 3) * Math.exp(-ROOT5 * r);
  }

  // The value of a term for two inputs, x and Z[row].
  function value({ variance, leaves, factors }, x, Z, row) {
    let result = variance;
    const D = x.length, start = row * D;
    for (const leaf of leaves) {
      const { inverse } = leaf;
      let square = 0;
      for (let j = 0; j < D; j++) { const r = (x[j] - Z[start + j]) * inverse[j]; square += r * r; }
      result *= profile(leaf, square);
    }
    for (let c = 0; c < factors.length; c++) {
      const { offset, places, slopes } = factors[c];
      let sum = offset;
      for (let k = 0; k < places.length; k++) sum += slopes[k] * x[places[k]] * Z[start + places[k]];
      result *= sum;
    }
    return result;
  }

  // A leaf seen from the path: r² = near + s (2 along + s square), with s = t − at, `at` being the nearest point between 0 and 1.
  class Sight {
    constructor(leaf, step) {
      this.leaf = leaf;
      this.step = step; // p
      this.square = dot(step, step);
      this.length = Math.sqrt(this.square);
      this.difference = new Float64Array(step.length); // v
      this.at = this.near = this.along = this.first = this.second = 0;
    }
    look(b, Z, row) {
      const { leaf: { inverse }, step, square, difference: v } = this, D = step.length, start = row * D;
      let back = 0;
      for (let j = 0; j < D; j++) { v[j] = (b[j] - Z[start + j]) * inverse[j]; back += v[j] * step[j]; }
      this.at = square > 0 ? Math.min(1, Math.max(0, -back / square)) : 0;
      this.near = this.along = 0;
      for (let j = 0; j < D; j++) { v[j] += this.at * step[j]; this.near += v[j] * v[j]; this.along += v[j] * step[j]; }
    }
    radius(s) { return Math.max(0, this.near + s * (2 * this.along + s * this.square)); }
    // Where the whole line, beyond its ends as well, is nearest; and what a panel may be long near singularities ±i·core from there.
    prepare(origin) {
      const { square, length, along, near, leaf } = this;
      this.offset = origin - this.at;
      if (square === 0) return;
      this.star = -along / square - this.offset;
      const rest = Math.max(0, near - (along * along) / square);
      this.widest = leaf.width / length;
      this.beyond = leaf.reach / length;
      this.split = leaf.floor > 0 && rest < leaf.floor * leaf.floor;
      this.core = leaf.code === 3 ? (Math.sqrt(rest + 2 * leaf.alpha) / length) * Math.min(1, Math.sqrt(2 / leaf.alpha)) : leaf.floor > 0 && !this.split ? Math.sqrt(rest) / length : Infinity;
    }
    // The longest panel from s: [δ, 3δ] for Matérn kernels, [δ, 2δ] for the rational quadratic, seen from the nearest point.
    panel(s) {
      const far = this.star - s, growth = this.leaf.code === 3 ? 1 : 2;
      return Math.min(this.widest, Math.max(this.core, far > 0 ? (far * growth) / (1 + growth) : -far * growth));
    }
  }

  // A factor along the path, for one point: first + t·change, with the product of all others and the integral J.
  class Line {
    constructor({ offset, places, slopes }, x, b) {
      this.offset = offset;
      this.places = places;
      this.from = places.map((j, k) => slopes[k] * b[j]);
      this.step = places.map((j, k) => slopes[k] * (x[j] - b[j]));
      this.first = this.change = this.now = this.others = this.integral = 0;
    }
    look(Z, start) {
      const { places, from, step } = this;
      this.first = this.offset;
      this.change = this.integral = 0;
      for (let k = 0; k < places.length; k++) { const z = Z[start + places[k]]; this.first += from[k] * z; this.change += step[k] * z; }
    }
  }

  // Integrate each J, and multiply the weights of the nodes by P.
  function weigh(lines, sights, origin, count) {
    for (let k = 0; k < count; k++) {
      let g = W[k], before = 1, after = 1;
      for (const sight of sights) g *= profile(sight.leaf, sight.radius(S[k] + sight.offset));
      for (const line of lines) { line.now = line.first + (origin + S[k]) * line.change; line.others = before; before *= line.now; }
      for (let c = lines.length - 1; c >= 0; c--) { const line = lines[c]; line.integral += g * line.others * after; after *= line.now; }
      W[k] *= before;
    }
  }

  // Nodes and weights on the path, as distances s from `origin`, dense enough for all leaves. Panels of
  // many factors are short, for P is a polynomial of their number.
  const MOST = 4096 * NODES, S = new Float64Array(MOST), W = new Float64Array(MOST);
  function spread(sights, origin, lines) {
    const longest = lines.length > 16 ? 16 / lines.length : Infinity;
    let from = -origin, to = 1 - origin, count = 0;
    for (const sight of sights) {
      sight.prepare(origin);
      if (sight.square === 0) continue;
      from = Math.max(from, sight.star - sight.beyond);
      to = Math.min(to, sight.star + sight.beyond);
    }
    for (let s = from; s < to && count < MOST; ) {
      let end = to, width = longest;
      for (const sight of sights) {
        if (sight.square === 0) continue;
        if (sight.split && sight.star > s) end = Math.min(end, sight.star);
        width = Math.min(width, sight.panel(s));
      }
      width = (end - s) / Math.ceil(Math.max(1, (end - s) / width));
      if (!(s + width > s)) break; // shorter than the last digit
      for (let i = 0; i < NODES; i++, count++) { S[count] = s + width * nodes[i]; W[count] = width * weights[i]; }
      s = end - s <= width * 1.000001 ? end : s + width;
    }
    return count;
  }

  const steps = (leaves, x, b) => leaves.map((leaf) => new Sight(leaf, Float64Array.from(x, (to, j) => (to - b[j]) * leaf.inverse[j])));
  const steepest = (sights) => sights.reduce((best, sight) => (sight.square > best.square ? sight : best));

  // Add to a, (d, m), the covariances of the attributions of a term with the function at the points Z.
  function addCovariances({ variance, leaves, factors }, { m, inputs: Z, owner }, x, b, a) {
    const sights = steps(leaves, x, b), lines = factors.map((factor) => new Line(factor, x, b)), D = x.length;
    if (!lines.length && sights.every(({ square }) => square === 0)) return;
    const lead = steepest(sights), others = new Float64Array(sights.length);
    for (let row = 0; row < m; row++) {
      let far = false;
      for (const sight of sights) { sight.look(b, Z, row); sight.first = sight.second = 0; far = far || sight.near > sight.leaf.reach ** 2; }
      if (far) continue;
      const count = spread(sights, lead.at, lines);
      if (lines.length) {
        for (const line of lines) line.look(Z, row * D);
        weigh(lines, sights, lead.at, count);
        for (const { places, step, integral } of lines) {
          for (let k = 0; k < places.length; k++) a[owner[places[k]] * m + row] += variance * step[k] * Z[row * D + places[k]] * integral;
        }
      }
      if (sights.length === 1) {
        const { leaf } = lead;
        for (let k = 0; k < count; k++) { const h = W[k] * slope(leaf, lead.radius(S[k])); lead.first += h; lead.second += S[k] * h; }
      } else {
        for (let k = 0; k < count; k++) {
          for (let l = 0; l < sights.length; l++) others[l] = profile(sights[l].leaf, sights[l].radius(S[k] + sights[l].offset));
          for (let l = 0; l < sights.length; l++) {
            const sight = sights[l], s = S[k] + sight.offset;
            let h = W[k] * slope(sight.leaf, sight.radius(s));
            for (let n = 0; n < sights.length; n++) if (n !== l) h *= others[n];
            sight.first += h;
            sight.second += s * h;
          }
        }
      }
      for (const { step: p, difference: v, first, second } of sights) {
        for (let j = 0; j < D; j++) a[owner[j] * m + row] += variance * p[j] * (v[j] * first + p[j] * second);
      }
    }
  }

  // Add to `prior`, (d), the prior variances of the attributions of a term.
  function addVariances({ variance, leaves, factors }, owner, x, b, prior) {
    const sights = steps(leaves, x, b), d = prior.length;
    if (!factors.length && sights.every(({ square }) => square === 0)) return;
    const shares = sights.map(({ step }) => { const s = new Float64Array(d); step.forEach((p, j) => { s[owner[j]] += p * p; }); return s; });
    if (factors.length) {
      addTriangle(variance, sights, shares, factors.map((factor) => new Line(factor, x, b)), owner, x, b, prior);
      return;
    }
    const count = spread(sights, 0, []), n = sights.length, G = new Float64Array(n), Q = new Float64Array(n * n);
    for (let k = 0; k < count; k++) {
      const u = S[k], weight = 2 * (1 - u) * W[k], squares = sights.map(({ square }) => u * u * square);
      const g = sights.map(({ leaf }, l) => profile(leaf, squares[l])), h = sights.map(({ leaf }, l) => slope(leaf, squares[l]));
      const without = (one, two) => g.reduce((product, each, l) => (l === one || l === two ? product : product * each), weight);
      for (let l = 0; l < n; l++) {
        G[l] += without(l, l) * h[l];
        for (let j = 0; j < n; j++) Q[l * n + j] += u * u * (j === l ? without(l, l) * curvature(sights[l].leaf, squares[l]) : without(l, j) * h[l] * h[j]);
      }
    }
    // On long paths G and Q cancel. The sum over all features is known, Σ Gₗaₗ + Σ Qₗⱼaₗaⱼ = −2(1 − ∏ g) at u = 1 with aₗ = ‖pₗ‖²,
    // which leaves differences of φₗ, the shares of the feature in aₗ, or of ψₗ = 1 − φₗ, whichever are small.
    const lead = steepest(sights), long = lead.square > 1, at = sights.indexOf(lead), a = sights.map(({ square }) => square), share = (part, l) => (a[l] > 0 ? part / a[l] : 0);
    const total = 2 * (sights.reduce((product, { leaf, square }) => product * profile(leaf, square), 1) - 1);
    for (let i = 0; i < d; i++) {
      const own = shares.map((s, l) => share(s[i], l)), rest = shares.map((s, l) => share(s.reduce((sum, part, k) => (k === i ? sum : sum + part), 0), l)), few = own[at] < 0.5;
      const one = (l) => (!long ? own[l] : few ? own[l] - own[at] : rest[at] - rest[l]);
      const two = (l, j) => (!long ? own[l] * own[j] : few ? own[l] * own[j] - own[at] : rest[at] - rest[l] - rest[j] + rest[l] * rest[j]);
      let sum = long ? own[at] * total : 0;
      for (let l = 0; l < n; l++) {
        sum += G[l] * a[l] * one(l);
        for (let j = 0; j < n; j++) sum += Q[l * n + j] * a[l] * two(l, j) * a[j];
      }
      prior[i] -= variance * sum;
    }
  }

  // Multiply a function, given as [f, ∂f, ∂'f, ∂∂'f], by another.
  function multiply(f, g, x, z, xz) {
    f[3] = f[3] * g + f[1] * z + f[2] * x + f[0] * xz;
    f[2] = f[2] * g + f[0] * z;
    f[1] = f[1] * g + f[0] * x;
    f[0] *= g;
  }

  // The same of a term with factors: s − t by panels, t by a rule that is exact, for it enters by the factors alone.
  function addTriangle(variance, sights, shares, lines, owner, x, b, prior) {
    const [inner, innerWeights] = gaussLegendre(lines.length + 1), count = spread(sights, 0, lines), radial = new Float64Array(4), f = new Float64Array(4);
    const slopes = lines.map((line) => { // λᵢ and μᵢ
      const one = new Float64Array(prior.length), two = new Float64Array(prior.length);
      line.places.forEach((j, k) => { one[owner[j]] += line.step[k] * b[j]; two[owner[j]] += line.step[k] * (x[j] - b[j]); });
      line.look(b, 0);
      return { first: line.first, one, two, along: line.change, both: two.reduce((sum, each) => sum + each, 0) };
    });
    const moved = [...prior.keys()].filter((i) => shares.some((share) => share[i] > 0) || slopes.some(({ two }) => two[i] > 0));
    for (let k = 0; k < count; k++) {
      const u = S[k], squares = sights.map(({ square }) => u * u * square);
      const g = sights.map(({ leaf }, l) => profile(leaf, squares[l])), h = sights.map(({ leaf }, l) => slope(leaf, squares[l])), c = sights.map(({ leaf }, l) => curvature(leaf, squares[l]));
      for (const i of moved) {
        radial.set([2 * variance * (1 - u) * W[k], 0, 0, 0]);
        for (let l = 0; l < g.length; l++) { const a = shares[l][i]; multiply(radial, g[l], u * a * h[l], -u * a * h[l], -a * (h[l] + u * u * a * c[l])); }
        for (let n = 0; n < inner.length; n++) {
          const t = (1 - u) * inner[n], s = t + u;
          f.set(radial);
          for (const { first, one, two, along, both } of slopes) multiply(f, first + (s + t) * along + s * t * both, one[i] + t * two[i], one[i] + s * two[i], two[i]);
          prior[i] += innerWeights[n] * f[3];
        }
      }
    }
  }

  return { opened, value, addCovariances, addVariances, dot };
})();
