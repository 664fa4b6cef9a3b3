"use strict";
// The lower Cholesky factor of a covariance, row after row in one Float64Array: row i starts at i(i + 1)/2. Nothing here depends on
// the page.
const cholesky = (() => {
  const BLOCK = 32; // rows that are worked on together, so that those above are read once for all of them
  const start = (i) => (i * (i + 1)) / 2;

  // A generator that pauses every millisecond or so, for a page that stays responsive; it returns the factor, or null if the matrix
  // is singular to rounding. `fill(L, i, start)` writes row i of the matrix, its diagonal last, at L[start].
  function* factorise(m, fill) {
    const L = new Float64Array(start(m));
    for (let top = 0; top < m; top += BLOCK) {
      const bottom = Math.min(m, top + BLOCK);
      for (let i = top; i < bottom; i++) { fill(L, i, start(i)); yield; }
      for (let j = 0; j < top; j += 4) {
        for (let i = top; i < bottom; i += 2) eliminate(L, i, Math.min(i + 1, bottom - 1), j);
        yield;
      }
      for (let i = top; i < bottom; i++) if (!finish(L, i, top)) return null;
      yield;
    }
    return L;
  }

  // Columns j to j + 3 of two rows below them: eight sums at a time.
  function eliminate(L, one, two, j) {
    const x = start(one), y = start(two), a = start(j), b = start(j + 1), c = start(j + 2), d = start(j + 3);
    let x0 = L[x + j], x1 = L[x + j + 1], x2 = L[x + j + 2], x3 = L[x + j + 3], y0 = L[y + j], y1 = L[y + j + 1], y2 = L[y + j + 2], y3 = L[y + j + 3];
    for (let k = 0; k < j; k++) {
      const u = L[x + k], v = L[y + k], p = L[a + k], q = L[b + k], r = L[c + k], s = L[d + k];
      x0 -= u * p; x1 -= u * q; x2 -= u * r; x3 -= u * s;
      y0 -= v * p; y1 -= v * q; y2 -= v * r; y3 -= v * s;
    }
    const b0 = L[b + j], c0 = L[c + j], c1 = L[c + j + 1], d0 = L[d + j], d1 = L[d + j + 1], d2 = L[d + j + 2];
    x0 /= L[a + j]; y0 /= L[a + j];
    x1 = (x1 - x0 * b0) / L[b + j + 1]; y1 = (y1 - y0 * b0) / L[b + j + 1];
    x2 = (x2 - x0 * c0 - x1 * c1) / L[c + j + 2]; y2 = (y2 - y0 * c0 - y1 * c1) / L[c + j + 2];
    x3 = (x3 - x0 * d0 - x1 * d1 - x2 * d2) / L[d + j + 3]; y3 = (y3 - y0 * d0 - y1 * d1 - y2 * d2) / L[d + j + 3];
    L[x + j] = x0; L[x + j + 1] = x1; L[x + j + 2] = x2; L[x + j + 3] = x3;
    L[y + j] = y0; L[y + j + 1] = y1; L[y + j + 2] = y2; L[y + j + 3] = y3;
  }

  // The columns of row i from `top` on; false if its pivot is not positive.
  function finish(L, i, top) {
    const x = start(i);
    for (let j = top; j <= i; j++) {
      const y = start(j);
      let sum = L[x + j];
      for (let k = 0; k < j; k++) sum -= L[x + k] * L[y + k];
      if (j === i && !(sum > 0)) return false;
      L[x + j] = j === i ? Math.sqrt(sum) : sum / L[y + j];
    }
    return true;
  }

  // L⁻¹ applied to lines, (m) each, four at a time.
  function solve(L, m, lines) {
    const solved = [];
    for (let first = 0; first < lines.length; first += 4) {
      const some = lines.slice(first, first + 4), B = new Float64Array(4 * m);
      some.forEach((line, k) => { for (let i = 0; i < m; i++) B[4 * i + k] = line[i]; });
      substitute(L, m, B);
      some.forEach((_, k) => { const line = new Float64Array(m); for (let i = 0; i < m; i++) line[i] = B[4 * i + k]; solved.push(line); });
    }
    return solved;
  }
  // Forward substitution, two rows of L at a time; B has the four lines side by side.
  function substitute(L, m, B) {
    for (let i = 0; i < m; i += 2) {
      const last = i + 1 === m, x = start(i), y = last ? x : start(i + 1), end = 4 * i;
      let p = B[end], q = B[end + 1], r = B[end + 2], s = B[end + 3], t = 0, u = 0, v = 0, w = 0;
      if (!last) { t = B[end + 4]; u = B[end + 5]; v = B[end + 6]; w = B[end + 7]; }
      for (let j = 0, k = 0; j < end; j += 4, k++) {
        const l = L[x + k], n = L[y + k], c = B[j], d = B[j + 1], e = B[j + 2], f = B[j + 3];
        p -= l * c; q -= l * d; r -= l * e; s -= l * f;
        t -= n * c; u -= n * d; v -= n * e; w -= n * f;
      }
      const pivot = L[x + i];
      p /= pivot; q /= pivot; r /= pivot; s /= pivot;
      B[end] = p; B[end + 1] = q; B[end + 2] = r; B[end + 3] = s;
      if (last) return;
      const l = L[y + i], next = L[y + i + 1];
      B[end + 4] = (t - l * p) / next; B[end + 5] = (u - l * q) / next; B[end + 6] = (v - l * r) / next; B[end + 7] = (w - l * s) / next;
    }
  }

  return { factorise, solve };
})();
