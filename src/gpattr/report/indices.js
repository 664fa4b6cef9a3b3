"use strict";
// Sobol indices: two bars a feature, what it explains by itself and what it explains with its interactions, with intervals.
// Nothing here depends on the data of the page.
const sobol = (() => {
  const { make, shape, line } = pictures;

  // A share of the variance: 38%, 4.1%, < 0.1%.
  const share = (x) => (!Number.isFinite(x) ? "–" : Math.abs(x) < 1e-3 ? "< 0.1%" : `${numbers.fixed(100 * x, Math.abs(x) < 0.0995 ? 1 : 0)}%`);

  function bar(s, { value, low, high }, top, name) {
    const middle = top + 3.5, [from, to] = [s.at(low), s.at(high)];
    return [
      shape("rect", { x: s.at(Math.min(0, value)), y: top, width: `${Math.max(0.15, Math.abs(s.part(value) - s.part(0))).toFixed(3)}%`, height: 7, rx: 1, class: name }),
      line(from, middle, to, middle, "halo"), line(from, middle, to, middle, "whisker"), line(from, middle - 3, from, middle + 3, "whisker"), line(to, middle - 3, to, middle + 3, "whisker"),
    ];
  }

  // `lines` are {name, full, first, total}, each index {value, low, high}.
  function draw(box, lines, { level, axis, foot }) {
    const s = pictures.scale(lines.flatMap(({ first, total }) => [first, total].flatMap((index) => [index.value, index.low, index.high])), { fixed: [0, 0] });
    s.ticks.text = ((text) => (x) => `${text(100 * x)}%`)((x) => numbers.readable(x, 3));
    const interval = ({ low, high }) => `${share(low)} to ${share(high)}`;
    pictures.table(box, {
      s, axis, foot,
      heads: [{ name: "feature" }, { name: "", kind: "picture" }, { name: "by itself" }, { name: "in total" }],
      lines: lines.map(({ name, full, first, total }) => ({
        name, cells: [{ text: share(first.value) }, { text: share(total.value) }], data: { feature: full, first: first.value, total: total.value },
        tip: `${full}\nby itself ${share(first.value)}, ${level} interval ${interval(first)}\nin total ${share(total.value)}, ${level} interval ${interval(total)}`,
        picture: pictures.drawing(s, [pictures.across([...bar(s, first, -8, "down"), ...bar(s, total, 1, "down doubt")])]),
      })),
    });
  }

  const legend = () => [make("span", undefined, {}, [make("i", undefined, { class: "square" }), "by itself (first-order index)"]), make("span", undefined, {}, [make("i", undefined, { class: "square pale" }), "in total: by itself and together with others"])];

  return { draw, share, legend };
})();
