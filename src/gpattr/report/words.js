"use strict";
// Texts that the page and the widget share. Nothing here depends on either.
const words = (() => {
  const LONG = 48;
  const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const list = (items) => (items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`);
  const brief = (name) => (name.length > LONG ? `${name.slice(0, LONG - 12)}…${name.slice(-10)}` : name); // next to a picture
  const equation = (name, text) => (text === "–" ? name : `${name} = ${text}`);
  const tone = (text) => (text.startsWith("−") ? "down" : text.startsWith("+") ? "up" : ""); // no colour for what is shown as zero
  const share = (level) => `${Number((100 * level).toPrecision(4))}%`;
  return { upper, list, brief, equation, tone, share };
})();
