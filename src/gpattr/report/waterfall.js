"use strict";
// From the baseline to a prediction, one bar for each feature. Nothing here depends on the page.
const waterfall = (() => {
  const { brief, equation, tone, upper } = words;

  // The parts of an answer {values, stds, and perhaps low, high and positive}: `shown` are {feature, value, place}.
  function parts(shown, { values, stds, low, high, positive }, quantile) {
    const spread = (i) => {
      const x = values[i], std = stds[i], sure = positive ? Math.max(positive[i], 1 - positive[i]) : numbers.normal(Math.abs(x) / std);
      return { std, low: low ? low[i] : x - quantile * std, high: high ? high[i] : x + quantile * std, sure: x === 0 && std === 0 ? undefined : sure };
    };
    return shown.map(({ feature, value, place }) => ({ name: equation(feature, value), feature, value, x: values[place], ...(stds ? spread(place) : {}) }));
  }

  // `parts` are {name, x} and, if available, feature, value, std, low, high and sure; beyond the `most` largest they are added up.
  // `bounds` are those of a probability, or null. Returns the format of the bars without their sign.
  function draw(box, { parts, base, prediction, level, bounds, name, quantity, baseline, write, most, foot }) {
    const falling = parts.slice().sort((one, two) => Math.abs(two.x) - Math.abs(one.x));
    const steps = falling.slice(0, most), rest = falling.slice(steps.length), percent = words.share(level);
    if (rest.length) steps.push({ name: `${rest.length} other feature${rest.length > 1 ? "s" : ""}`, x: rest.reduce((sum, step) => sum + step.x, 0) });
    let position = prediction;
    for (const step of steps) { step.end = position; position -= step.x; step.start = position; }
    const uncertain = steps.some((step) => step.low !== undefined);
    const s = pictures.scale([base, prediction, ...steps.flatMap((step) => [step.start, step.end, ...(step.low === undefined ? [] : [step.start + step.low, step.start + step.high])])], { fixed: bounds });
    const number = bounds ? (x) => numbers.fixed(x, 3, { sign: true }) : numbers.column(steps.map((step) => step.x), 3, { sign: true });
    const half = bounds ? (x) => numbers.fixed(x, 3) : numbers.column(steps.map((step) => step.x), 3);
    const mark = (x) => pictures.drawing(s, [pictures.across([pictures.line(s.at(x), -11, s.at(x), 11, "whisker")])], [base, prediction]);
    const blank = uncertain ? [{ text: "" }, { text: "" }] : [];
    const lines = steps.map((step) => {
      const doubtful = step.sure !== undefined && step.sure < level;
      const picture = pictures.drawing(s, [
        pictures.line(s.at(step.start), "50%", s.at(step.start), "100%", "step"), pictures.line(s.at(step.end), "0%", s.at(step.end), "50%", "step"),
        pictures.across([pictures.bar(s, step.start, step.end, `${step.x < 0 ? "down" : "up"}${doubtful ? " doubt" : ""}`), ...(step.low === undefined ? [] : pictures.whisker(s, step.start + step.low, step.start + step.high))]),
      ], [base, prediction]);
      const interval = step.low === undefined ? "" : `\n${percent} interval ${number(step.low)} to ${number(step.high)}`;
      return {
        name: step.feature === undefined ? step.name : equation(brief(step.feature), step.value), picture,
        data: { feature: step.feature ?? "", value: step.x, end: step.end, ...(step.std === undefined ? {} : { std: step.std }) },
        tip: `${step.name}: ${number(step.x)}${step.std === undefined ? "" : ` ± ${half(step.std)}`}${interval}`,
        cells: [{ text: number(step.x), kind: tone(number(step.x)) }, ...(uncertain ? [{ text: step.std === undefined ? "" : `± ${half(step.std)}` }, { text: step.sure === undefined ? "–" : numbers.percent(step.sure), kind: doubtful ? "unsure" : "" }] : [])],
      };
    });
    pictures.table(box, {
      s, axis: `${quantity}${uncertain ? `, with ${percent} intervals` : ""}`,
      heads: [{ name: "" }, { name: "", kind: "picture" }, { name: "attribution" }, ...(uncertain ? [{ name: "± std", kind: "wide" }, { name: "P(sign)" }] : [])],
      lines: [
        { name: upper(brief(name)), cells: [{ text: write(prediction) }, ...blank], picture: mark(prediction), kind: "end" }, ...lines,
        { name: `Baseline: ${brief(baseline)}`, cells: [{ text: write(base) }, ...blank], picture: mark(base), kind: "end" },
      ],
      foot: foot(rest.length),
    });
    box.dataset.end = prediction;
    return half;
  }

  return { parts, draw };
})();
