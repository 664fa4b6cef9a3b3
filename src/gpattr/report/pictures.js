"use strict";
// Pictures as tables whose cells are drawn: a name, a bar on a scale that all rows share, numbers. The browser breaks long names
// into lines, changes colours with the scheme, and reads the table aloud. Positions are percentages, so that nothing is drawn
// again when the window changes. Text is never HTML: a column may be called anything. Nothing here depends on the data of the page.
const pictures = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const CIVIDIS = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [253, 231, 55]];

  function make(tag, text, attributes = {}, children = []) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  function shape(tag, attributes, children = []) {
    const node = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // A scale from numbers to percentages of the width, with a margin of a few per cent on both sides.
  function scale(values, { fixed = null, count = 4, margin = 0.04 } = {}) {
    let [low, high] = fixed || [Infinity, -Infinity];
    for (const x of values) if (Number.isFinite(x)) [low, high] = [Math.min(low, x), Math.max(high, x)];
    if (low > high) [low, high] = [0, 1];
    if (low === high) { const width = Math.abs(low) || 1; [low, high] = [low - width / 2, high + width / 2]; }
    const edge = margin * (high - low), from = low - edge, width = high - low + 2 * edge;
    const part = (x) => (100 * (Math.min(Math.max(x, from - width), from + 2 * width) - from)) / width;
    return { at: (x) => `${part(x).toFixed(3)}%`, part, low, high, ...{ ticks: numbers.ticks(low, high, count) } };
  }

  const line = (x1, y1, x2, y2, name) => shape("line", { x1, y1, x2, y2, class: name });
  // A drawing around the middle of a cell: percentages across, pixels down.
  const across = (parts) => shape("svg", { x: 0, y: "50%", width: "100%", height: 1, overflow: "visible" }, parts);
  const whisker = (s, low, high) => [
    line(s.at(low), 0, s.at(high), 0, "halo"), line(s.at(low), 0, s.at(high), 0, "whisker"),
    line(s.at(low), -4, s.at(low), 4, "whisker"), line(s.at(high), -4, s.at(high), 4, "whisker"),
  ];
  const bar = (s, from, to, name) => shape("rect", { x: s.at(Math.min(from, to)), y: -8, width: `${Math.max(0.15, Math.abs(s.part(to) - s.part(from))).toFixed(3)}%`, height: 16, rx: 1.5, class: name });
  const drawing = (s, parts, references = []) => shape("svg", { class: "cell", "aria-hidden": "true" }, [
    ...s.ticks.at.map((x) => line(s.at(x), "0%", s.at(x), "100%", "grid")), ...references.map((x) => line(s.at(x), "0%", s.at(x), "100%", "reference")), ...parts,
  ]);

  // A table: `heads` of its columns, of which one is the picture; lines {cells, picture, tip, data}; numbers below the picture.
  function table(box, { heads, lines, s, axis, foot }) {
    const heading = make("tr", undefined, {}, heads.map(({ name, kind = "" }) => make("th", name, { scope: "col", class: kind })));
    const rows = lines.map(({ name, cells, picture, tip, data = {}, kind = "" }) => {
      const row = make("tr", undefined, { class: kind, ...(tip ? { "data-tip": tip } : {}) });
      Object.assign(row.dataset, data);
      const others = [...cells];
      heads.forEach((head, k) => {
        if (k === 0) row.append(make("th", name, { scope: "row" }));
        else if (head.kind === "picture") row.append(make("td", undefined, { class: "picture" }, [picture]));
        else { const { text, kind: look = "" } = others.shift(); row.append(make("td", text, { class: `${head.kind || ""} ${look}`.trim() })); }
      });
      return row;
    });
    const ticks = make("div", undefined, { class: "ticks" }, s.ticks.at.map((x) => make("span", s.ticks.text(x), { style: `left:${s.at(x)}` })));
    const place = heads.findIndex((head) => head.kind === "picture");
    const below = make("tr", undefined, {}, heads.map((head, k) => (k === place ? make("td", undefined, { class: "axis" }, [ticks, make("div", axis, { class: "axis-name" })]) : make("td", undefined, { class: head.kind || "" }))));
    box.replaceChildren(make("table", undefined, { class: "bars" }, [make("thead", undefined, {}, [heading]), make("tbody", undefined, {}, rows), make("tfoot", undefined, {}, [below])]));
    if (foot) box.append(foot);
    thin(ticks);
  }

  // Tick labels that would touch are hidden, every second one at a time.
  function thin(ticks) {
    const all = [...ticks.children];
    for (let every = 1; every <= all.length; every *= 2) {
      all.forEach((tick, k) => { tick.hidden = k % every !== 0; });
      const boxes = all.filter((tick) => !tick.hidden).map((tick) => tick.getBoundingClientRect());
      if (boxes.every((next, k) => k === 0 || next.left > boxes[k - 1].right + 4)) return;
    }
  }

  // Points against a number. `points` are {x, y, low, high, color, hollow, tip, row}; `choose(row)` is called on a click.
  function scatter(box, { points, xName, yName, choose, xText, count = 5 }) {
    const across = scale(points.map((p) => p.x), { count }), up = scale(points.flatMap((p) => [p.y, p.low, p.high]), { fixed: [0, 0], count: 6 });
    const y = (value) => `${(100 - up.part(value)).toFixed(3)}%`;
    const area = shape("svg", { class: "area", style: `--faint:${faint(points.length)}`, role: "img", "aria-label": `${yName} against ${xName}` }, [
      ...across.ticks.at.map((x) => line(across.at(x), "0%", across.at(x), "100%", "grid")),
      ...up.ticks.at.map((value) => line("0%", y(value), "100%", y(value), "grid")), line("0%", y(0), "100%", y(0), "reference"),
      ...points.filter((p) => p.low !== undefined).map((p) => line(across.at(p.x), y(p.low), across.at(p.x), y(p.high), "faint")),
      ...points.map((p) => dot(across.at(p.x), y(p.y), p)),
    ]);
    const left = make("div", undefined, { class: "side" }, up.ticks.at.map((value) => make("span", up.ticks.text(value), { style: `top:${y(value)}` })));
    left.style.width = `${Math.max(...up.ticks.at.map((value) => up.ticks.text(value).length)) * 0.62 + 0.6}em`;
    const ticks = make("div", undefined, { class: "ticks" }, across.ticks.at.map((x) => make("span", (xText || across.ticks.text)(x), { style: `left:${across.at(x)}` })));
    const right = make("div", undefined, { class: "below" }, [ticks, make("div", xName, { class: "axis-name" })]);
    box.replaceChildren(make("div", yName, { class: "axis-name above" }), make("div", undefined, { class: "frame" }, [left, area, right]));
    thin(ticks);
    pointed(area, points, (p, size) => [(across.part(p.x) / 100) * size.width, (1 - up.part(p.y) / 100) * size.height], choose);
  }

  const faint = (count) => Math.min(0.55, Math.max(0.12, 60 / count)).toFixed(2); // many intervals would cover everything
  const dot = (cx, cy, p) => shape("circle", { cx, cy, r: 3.6, class: `dot${p.hollow ? " hollow" : ""}`, "data-row": p.row, ...(p.color ? { style: `--dot:${p.color}` } : {}) });

  // The tooltip of the nearest point, and the action of a click on it.
  function pointed(area, points, place, choose) {
    const nearest = (event) => {
      const size = area.getBoundingClientRect();
      let best = null, least = 18 ** 2;
      for (const p of points) {
        const [x, y] = place(p, size), far = (x - event.clientX + size.left) ** 2 + (y - event.clientY + size.top) ** 2;
        if (far < least) [best, least] = [p, far];
      }
      return best;
    };
    area.addEventListener("pointermove", (event) => { const p = nearest(event); if (p) tell(p.tip, event); else hush(); area.classList.toggle("near", Boolean(p)); });
    area.addEventListener("pointerleave", hush);
    area.addEventListener("click", (event) => { const p = nearest(event); if (p) { hush(); choose(p.row); } });
  }

  // Points in lines, one line for each category: `groups` are {name, points, text}.
  function strips(box, { groups, xName, head, last, choose }) {
    const all = groups.flatMap((group) => group.points);
    const s = scale(all.flatMap((p) => [p.y, p.low, p.high]), { fixed: [0, 0] });
    const spread = (k) => ((k * 0.618034) % 1) - 0.5; // golden-ratio steps: neighbours do not overlap
    table(box, {
      s, axis: xName, heads: [{ name: head }, { name: "", kind: "picture" }, { name: last }],
      lines: groups.map(({ name, points, text }) => {
        const shown = points.map((p, k) => ({ ...p, down: 20 * spread(k) }));
        const marks = shown.map((p) => dot(s.at(p.y), p.down, p));
        const lines = shown.filter((p) => p.low !== undefined).map((p) => line(s.at(p.low), p.down, s.at(p.high), p.down, "faint"));
        const picture = drawing(s, [across([...lines, ...marks])], [0]);
        picture.style.setProperty("--faint", faint(points.length));
        pointed(picture, shown, (p, size) => [(s.part(p.y) / 100) * size.width, size.height / 2 + p.down], choose);
        return { name, cells: [{ text }], picture, kind: "strip" };
      }),
    });
  }

  // A colour of the cividis scale, t from 0 to 1.
  function shade(t) {
    const place = Math.min(1, Math.max(0, t)) * (CIVIDIS.length - 1), k = Math.min(Math.floor(place), CIVIDIS.length - 2);
    return `rgb(${CIVIDIS[k].map((c, i) => Math.round(c + (place - k) * (CIVIDIS[k + 1][i] - c))).join(",")})`;
  }

  // A button that unfolds what is hidden.
  function more(hidden, open, toggle, fewer) {
    if (hidden <= 0 && !open) return null;
    const button = make("button", open ? fewer : `Show ${hidden} more feature${hidden > 1 ? "s" : ""}`, { type: "button", class: "more" });
    button.addEventListener("click", toggle);
    return button;
  }

  // The tooltip, inside the element with the class `gpattr` that the pointer is in.
  const note = make("div", undefined, { class: "tip", role: "status", hidden: "" });
  function tell(text, event) {
    const root = event.target.closest(".gpattr");
    if (note.parentNode !== root) root.append(note);
    note.textContent = text;
    note.hidden = false;
    note.style.left = note.style.top = "0px";
    const { width, height } = note.getBoundingClientRect(), { left, top } = root.getBoundingClientRect();
    note.style.left = `${Math.max(4, Math.min(event.clientX + 12, document.documentElement.clientWidth - width - 4)) - left}px`;
    note.style.top = `${(event.clientY + 18 + height < window.innerHeight ? event.clientY + 18 : event.clientY - height - 10) - top}px`;
  }
  function hush() { note.hidden = true; }

  // Show the tooltips of a root and keep its ticks apart. Returns a function that ends it.
  function listen(root) {
    const point = (event) => {
      const said = event.target.closest("[data-tip]");
      if (said) tell(said.dataset.tip, event);
      else if (!event.target.closest(".area, .cell")) hush();
    };
    const resize = () => { for (const ticks of root.querySelectorAll(".ticks")) thin(ticks); };
    root.addEventListener("pointermove", point);
    root.addEventListener("pointerleave", hush);
    document.addEventListener("scroll", hush, { passive: true, capture: true });
    window.addEventListener("resize", resize);
    return () => {
      root.removeEventListener("pointermove", point);
      root.removeEventListener("pointerleave", hush);
      document.removeEventListener("scroll", hush, { capture: true });
      window.removeEventListener("resize", resize);
    };
  }

  return { make, shape, scale, line, across, whisker, bar, drawing, table, scatter, strips, shade, thin, tell, hush, more, listen };
})();
