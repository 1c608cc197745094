"use strict";
// Draws what the view holds, and lets a reader sort, search, choose clients and change the light. Nothing here talks
// to the network; live.js, beside it, does.
const report = (() => {
  const root = document.documentElement;
  const by = (id) => document.getElementById(id);
  const sorted = {};  // table id → {column, down}: outlives an update
  const picked = new Set();  // clients drawn in the timeline on request
  let view = null;
  root.classList.add("js");

  // --- light and dark

  const dusk = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dusk.matches);
  function setTheme(theme) {
    root.dataset.theme = theme;
    try { localStorage.setItem("fedcoast-theme", theme); } catch { /* a file from disk may have no storage */ }
    lightChanged();
  }
  function lightChanged() {
    nameTheme();
    redraw();
  }
  function nameTheme() {
    by("theme").textContent = isDark() ? "◐ Light" : "◐ Dark";
    by("theme").setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
  }
  // Every light colour of a figure for its dark partner; names and numbers are none.
  const UNPAINTED = new Set(["x", "y", "z", "customdata", "ticktext", "tickvals", "text", "name"]);
  function inked(part, partners) {
    if (typeof part === "string") return partners[part] ?? part;
    if (Array.isArray(part)) return part.map((p) => inked(p, partners));
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(Object.entries(part).map(([key, value]) =>
      [key, UNPAINTED.has(key) ? value : inked(value, partners)]));
  }

  // --- figures

  // Plotly takes a while to start, so the page is shown, and can be used, before. In a report it lies in the page as
  // inert text, which becomes a script when it is needed; the live page fetches it.
  let plotly = null;
  function startPlotly() {
    return plotly ??= new Promise((done) => {
      const script = document.createElement("script"), held = by("plotly");
      if (held) script.textContent = held.textContent;
      else script.src = "plotly.js";
      script.onload = () => done(true);
      script.onerror = () => { plotly = null; done(false); };  // the server is gone; its return brings the next try
      document.head.append(script);
      if (held) done(true);
    });
  }
  const shown = new Promise((done) => {
    if (document.readyState === "complete") done();
    else addEventListener("load", () => setTimeout(done, 30));
  });

  // A label of so many characters; an entity is one, and text kept apart from its surroundings stays so.
  function shortened(text, most) {
    const characters = text.match(/&[^;]+;|./gsu) ?? [];
    return characters.length <= most ? text : characters.slice(0, most - 1).join("") + "…" + (text.startsWith("\u2068") ? "\u2069" : "");
  }
  function fitted(figure, width) {
    const { layout } = figure;
    if (width >= 640) return figure;
    layout.font.size = 11;
    layout.margin = { ...layout.margin, l: 4, r: 8 };
    if (layout.yaxis.ticktext) layout.yaxis.ticktext = layout.yaxis.ticktext.map((text) => shortened(text, 16));
    for (const trace of figure.data) if (trace.texttemplate && layout.xaxis.ticktext?.length > 5) delete trace.texttemplate;
    for (const trace of figure.data) if (trace.colorbar) {  // below the plot, or above it where names stand below
      const above = layout.xaxis.side !== "top";
      const bar = { orientation: "h", thickness: 8, x: 0.5, xanchor: "center", y: above ? 1.02 : -0.02, yanchor: above ? "bottom" : "top" };
      trace.colorbar = { ...trace.colorbar, ...bar, len: 200 };
      layout.margin[above ? "t" : "b"] += 55;
      layout.height += 55;
    }
    if (layout.xaxis.side === "top") layout.xaxis = { ...layout.xaxis, tickangle: -90 };
    if (layout.legend?.orientation === "v") {
      layout.legend = { ...layout.legend, orientation: "h", x: 0, y: -0.18 };
      layout.height += 14 * figure.data.length;
    }
    return figure;
  }

  function drawn(name) {
    const figure = structuredClone(view.figures[name]);
    if (name === "timeline") figure.data.push(...extraLines(figure.data));
    return figure;
  }

  const paper = matchMedia("print");  // a redraw while printing stays light
  function draw(element, beforePrint = false) {
    const name = element.dataset.figure, printing = beforePrint || paper.matches;
    const width = printing ? 680 : element.clientWidth;
    const figure = fitted(drawn(name), width);
    const coloured = isDark() && !printing ? inked(figure, view.partners) : figure;
    coloured.layout.width = width;
    Plotly.react(element, coloured.data, coloured.layout, {
      displaylogo: false, displayModeBar: false, scrollZoom: false, doubleClick: false,
    });
    element.dataset.drawn = width;
    performance.mark(`drawn ${name}`);
  }
  const figures = () => [...document.querySelectorAll("[data-figure]")].filter((element) => view.figures[element.dataset.figure]);

  // Figures are drawn when they come near, one a frame, so that a page of any length opens at once.
  const near = new Set();
  const nearing = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? near.add(target) : near.delete(target);
    drawNear();
  }, { rootMargin: "60% 0px" });
  let drawing = null;
  function drawNear() {
    return drawing ??= (async () => {
      try {
        await shown;
        if (!await startPlotly()) return;
        for (let due; (due = figures().find((element) => near.has(element) && !element.dataset.drawn));) {
          draw(due);
          await new Promise(requestAnimationFrame);
        }
      } finally {
        drawing = null;
      }
    })();
  }
  function redraw(which = () => true) {
    for (const element of figures().filter(which)) delete element.dataset.drawn;
    drawNear();
  }

  // --- clients on request

  function extraLines(data) {
    const { rounds, clients, names, colours } = view.lines;
    const shown = new Set(data.map((trace) => trace.meta));
    for (const trace of data) if (picked.has(clients[trace.meta])) trace.line.width = 5;
    if (!picked.size) return [];
    const floats = sums();
    return [...picked].map((client) => clients.indexOf(client)).filter((row) => row >= 0 && !shown.has(row)).map((row, nth) => ({
      type: "scatter", mode: "lines", name: names[row], meta: row, x: rounds,
      y: floats.subarray(row * rounds.length, (row + 1) * rounds.length),
      line: { color: colours[nth % colours.length], width: 3.5, dash: "dash" },
      hovertemplate: "%{fullData.name}<br>round %{x}: %{y:,.4~r}<extra></extra>",
    }));
  }
  function sums() {
    const bytes = Uint8Array.from(atob(view.lines.sums), (c) => c.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  }
  const client = (button) => view.lines.clients[Number(button.closest("tr").dataset.place)];
  function pick(button) {
    if (!picked.delete(client(button))) picked.add(client(button));
    button.setAttribute("aria-pressed", picked.has(client(button)));
    redraw((element) => element.dataset.figure === "timeline");
  }

  // --- tables

  function sort(table, column, down) {
    everyone();
    sorted[table.id] = { column, down };
    const value = (row) => row.cells[column].dataset.value ?? "";
    const rows = [...table.tBodies[0].rows];
    const numeric = rows.every((row) => value(row) === "" || Number.isFinite(Number(value(row))));
    const order = (a, b) => (numeric ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true }));
    const known = rows.filter((row) => value(row) !== "");
    known.sort((a, b) => (down ? -1 : 1) * order(value(a), value(b)) || a.dataset.place - b.dataset.place);
    table.tBodies[0].append(...known, ...rows.filter((row) => value(row) === ""));
    for (const head of table.tHead.rows[0].cells) {
      const here = head.cellIndex === column;
      here ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort");
    }
    showEnds(table);
  }
  // The rows between the best and the worst, from the text they wait in.
  function everyone() {
    const table = by("ranking-table"), rest = by("ranking-rest");
    if (!rest) return;
    const box = document.createElement("template");
    box.innerHTML = rest.textContent;
    rest.remove();
    const rows = table.tBodies[0].rows;
    table.dataset.shown = rows.length;
    rows[Math.ceil(rows.length / 2) - 1].after(...box.content.querySelector("tbody").rows);
    for (const button of table.querySelectorAll(".pick")) button.setAttribute("aria-pressed", picked.has(client(button)));
  }
  // The best and the worst of the present order are shown, whatever it is sorted by.
  function showEnds(table) {
    if (!table.dataset.shown) return;  // all are there, or the gap is marked already
    const rows = [...table.tBodies[0].rows], shown = Number(table.dataset.shown);
    const top = Math.ceil(shown / 2), bottom = rows.length - (shown - top);
    rows.forEach((row, at) => {
      row.classList.toggle("between", at >= top && at < bottom);
      row.classList.toggle("after-gap", bottom > top && at === bottom);
    });
  }
  function search() {
    const table = by("ranking-table"), input = by("search");
    if (!table || !input) return;
    const words = input.value.trim().toLocaleLowerCase(), all = by("show-all")?.getAttribute("aria-pressed") === "true";
    if (words || all) everyone();
    let found = 0;
    for (const row of table.tBodies[0].rows) {
      const fits = !words || row.querySelector("th").textContent.toLocaleLowerCase().includes(words);
      if (row.hidden === fits) row.hidden = !fits;
      found += fits;
    }
    table.classList.toggle("all", Boolean(words) || all);
    const count = (n) => n.toLocaleString("en");
    by("found").textContent = words ? `${count(found)} of ${count(table.tBodies[0].rows.length)}` : "";
    showEnds(table);
  }

  // --- what a reader does

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.id === "theme") setTheme(isDark() ? "light" : "dark");
    else if (button.id === "show-all") {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
      search();
    } else if (button.classList.contains("pick")) pick(button);
    else if (button.dataset.column !== undefined) {
      const table = button.closest("table"), column = Number(button.dataset.column), now = sorted[table.id];
      const first = column > 0 && table.tBodies[0].rows[0]?.cells[column].tagName === "TD";
      sort(table, column, now?.column === column ? !now.down : first);
    }
  });
  document.addEventListener("input", (event) => { if (event.target.id === "search") search(); });
  dusk.addEventListener("change", lightChanged);
  addEventListener("beforeprint", () => {
    startPlotly();
    if (window.Plotly) figures().forEach((element) => draw(element, true));
  });
  addEventListener("afterprint", () => redraw());
  let widths;
  new ResizeObserver(() => { clearTimeout(widths); widths = setTimeout(resized, 120); }).observe(document.body);
  const resized = () => redraw((element) => element.dataset.drawn && Number(element.dataset.drawn) !== element.clientWidth);
  const reading = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = document.querySelector(`nav a[href="#${target.id}"]`);
      isIntersecting ? link?.setAttribute("aria-current", "true") : link?.removeAttribute("aria-current");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });

  // --- from one state to the next

  function take(next) {
    view = next;
    for (const button of picked.size ? document.querySelectorAll(".pick") : []) {
      button.setAttribute("aria-pressed", picked.has(client(button)));
    }
    for (const [id, { column, down }] of Object.entries(sorted)) {
      const table = by(id);
      if (table && table.tHead.rows[0].cells[column]) sort(table, column, down);
      else delete sorted[id];
    }
    document.querySelectorAll("main > section").forEach((section) => reading.observe(section));
    search();
    near.clear();
    nearing.disconnect();
    figures().forEach((element) => nearing.observe(element));
    redraw();
    root.dataset.height = Math.ceil(document.body.getBoundingClientRect().bottom);  // for whoever takes a picture
  }

  try { const kept = localStorage.getItem("fedcoast-theme"); if (kept) root.dataset.theme = kept; } catch { /* none */ }
  by("theme").hidden = false;
  const given = by("view");
  view = JSON.parse(given.textContent);
  nameTheme();
  take(view);
  return { take };
})();
