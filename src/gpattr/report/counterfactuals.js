"use strict";
// Changes of a row that bring its prediction past a target, in words, each with a button that makes it. Nothing here depends on the page.
const counterfactuals = (() => {
  const { make } = pictures, { brief, upper } = words;
  const MOST = 6, SMALLEST = 1e-3; // changes that are listed, and the least of the whole that is

  // An old and a new value in the format of the page, or with as many digits as tell them apart.
  function apart(old, fresh, write) {
    if (typeof fresh === "string") return [old, fresh];
    let texts = [old, fresh].map(write);
    for (let digits = 3; texts[0] === texts[1] && digits < 16; digits++) texts = [old, fresh].map((x) => numbers.readable(x, digits));
    return texts;
  }

  const joined = (parts) => parts.flatMap((part, k) => [k === 0 ? "" : k === parts.length - 1 ? " and " : ", ", ...part]);
  const units = (distance) => { const text = numbers.readable(distance, 3); return `${text} standard unit${text === "1" ? "" : "s"}`; };

  // One way to change the row: {changes: [feature, old, new, step], the largest first, distance, prediction, interval}.
  function option({ changes, distance, prediction, interval }, { name, level, write, value, set }) {
    const shown = changes.filter(([, , , step], k) => k < MOST && Math.abs(step) >= SMALLEST * distance), hidden = changes.length - shown.length;
    const parts = shown.map(([feature, old, fresh]) => [make("strong", brief(feature)), ` ${apart(old, fresh, (x) => value(feature, x)).join("\u00a0→\u00a0")}`]);
    const [low, high] = interval.map(write);
    const sentence = make("span", undefined, {}, joined([...parts, ...(hidden ? [[`${hidden} smaller change${hidden > 1 ? "s" : ""}`]] : [])]));
    const result = make("span", `${upper(name)} ${write(prediction)}, ${level} interval ${low} to ${high}; ${units(distance)} away.`, { class: "note" });
    const texts = make("div", undefined, {}, [sentence, result]);
    if (!set) return make("li", undefined, {}, [texts]);
    const button = make("button", "Set the sliders to this", { type: "button" });
    button.addEventListener("click", () => set(changes));
    return make("li", undefined, {}, [texts, button]);
  }

  // What was asked, or why there is no answer.
  function question({ direction, target, level, probability, refusal, options }, quantity) {
    const wanted = `${direction} ${numbers.readable(target)}`;
    if (refusal) return refusal;
    if (!options.length) return `No change is needed for the ${quantity} to be ${wanted}: the probability is ${probability > 0.999 ? "more than 99.9%" : numbers.percent(probability)}.`;
    return `To bring the ${quantity} to ${wanted} with a probability of ${words.share(level)}${options.length > 1 ? ", any of these changes suffices" : ""}:`;
  }

  // Fill a box with counterfactuals {direction, target, level, probability, refusal, options}. `value(feature, x)` writes a number of a
  // feature, `write` a prediction; `set` is called with the changes of the option that is chosen, or is null.
  function draw(box, given, { quantity, ...look }) {
    box.hidden = !given.length;
    box.replaceChildren(make("h3", "What would have to change?"), ...given.flatMap((one) => [
      make("p", question(one, quantity)), ...(one.options.length ? [make("ul", undefined, { class: "changes" }, one.options.map((each) => option(each, look)))] : []),
    ]));
  }

  return { draw };
})();
