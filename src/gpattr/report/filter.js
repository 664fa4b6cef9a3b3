"use strict";
// A filter of rows by a text: "17", "3-10, 17", "loft", or conditions such as "alcohol > 11, kind = loft, prediction < 5,5".
//
// rowFilter(names of the rows, numbers by column: row -> number, texts by column: an array) returns a function of the text, which
// returns a test of a row, or null if the text is invalid. Nothing here depends on the page.
const rowFilter = (rows, numbers, texts) => {
  const SIGN = /^\s*(<=|>=|≤|≥|!=|≠|<|>|=)\s*(.+)$/;
  // Names are found regardless of case, unless two differ only in case.
  const fold = (name) => name.toLowerCase();
  const all = [...numbers.keys(), ...texts.keys()], twice = new Set(all.map(fold).filter((name, k, folded) => folded.indexOf(name) !== k));
  const key = (name) => (twice.has(fold(name)) ? name : fold(name));
  const lower = (map) => new Map([...map].map(([name, value]) => [key(name), value]));
  // The number of a row is its name, or the only number in it: "Patient 17".
  const numberOf = (name) => { const found = name.match(/\d+/g); return Number.isNaN(Number(name)) && found && found.length === 1 ? Number(found[0]) : Number(name); };
  const places = rows.map(numberOf);
  const numbersOf = lower(numbers), textsOf = lower(texts);

  function compared(name, sign, right) {
    const different = sign === "!=" || sign === "≠";
    if (textsOf.has(name)) {
      const wanted = right.trim().toLowerCase();
      return different || sign === "=" ? (r) => (textsOf.get(name)[r].toLowerCase() === wanted) !== different : null;
    }
    const bound = Number(right.trim().replace(",", ".").replace("−", "-"));
    if (Number.isNaN(bound)) return null;
    const near = (x) => Math.abs(x - bound) <= 1e-9 * Math.abs(bound);
    const test = {
      "<": (x) => x < bound && !near(x), ">": (x) => x > bound && !near(x), "=": near,
      "<=": (x) => x < bound || near(x), ">=": (x) => x > bound || near(x), "!=": (x) => !near(x),
    }[{ "≤": "<=", "≥": ">=", "≠": "!=" }[sign] || sign];
    return (r) => test(numbersOf.get(name)(r));
  }

  function condition(text) {
    // The longest column name that the text starts with: a name may have commas and signs in it.
    const known = [...numbersOf.keys(), ...textsOf.keys()].filter((name) => (twice.has(fold(name)) ? text : fold(text)).startsWith(name) && SIGN.test(text.slice(name.length)));
    if (known.length) {
      const name = known.sort((one, two) => two.length - one.length)[0], [, sign, right] = text.slice(name.length).match(SIGN);
      return compared(name, sign, right);
    }
    if (/[<>=≤≥≠]/.test(text)) return null;
    const part = text.toLowerCase(), isNumber = !Number.isNaN(Number(text));
    const within = (r) => rows[r].toLowerCase().includes(part) || [...textsOf.values()].some((all) => all[r].toLowerCase().includes(part));
    return (r) => rows[r] === text || (!isNumber && within(r));
  }

  function numbered(text) {
    const [first, last] = text.split(/[-–]/);
    return last === undefined ? (r) => rows[r] === first.trim() || places[r] === Number(first) : (r) => places[r] >= Number(first) && places[r] <= Number(last);
  }

  return (text) => {
    const all = text.trim();
    if (!all) return () => true;
    if (/^\d+(\s*[-–]\s*\d+)?(\s*,\s*\d+(\s*[-–]\s*\d+)?)*$/.test(all)) {
      const tests = all.split(",").map(numbered);
      return (r) => tests.some((test) => test(r));
    }
    const tests = all.split(/,(?!\d)/).map((part) => part.trim()).filter(Boolean).map(condition); // 2,5 is a number
    return tests.length > 1 && !tests.includes(null) ? (r) => tests.every((test) => test(r)) : condition(all);
  };
};
