"use strict";

const make = (name, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
};

/* The values under the pointer, in every line chart. */
for (const plot of document.querySelectorAll(".plot")) {
  const lines = JSON.parse(plot.dataset.lines);
  const last = Number(plot.dataset.last);
  const cursor = make("div", { className: "cursor", hidden: true });
  const tip = make("div", { className: "tip", hidden: true });
  plot.append(cursor, tip);
  const nearest = (steps, step) =>
    steps.reduce((best, value, n) =>
      Math.abs(value - step) < Math.abs(steps[best] - step) ? n : best, 0);
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const step = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * last;
    const dense = lines.reduce((a, b) => (b.steps.length > a.steps.length ? b : a));
    const here = dense.steps[nearest(dense.steps, step)];
    const share = here / last;
    const texts = lines.map((line) => {
      const n = nearest(line.steps, step);
      const where = line.steps[n] === here ? "" : ` (step ${line.steps[n].toLocaleString("en")})`;
      return make("div", { textContent: `${line.name}: ${line.texts[n]}${where}` });
    });
    tip.replaceChildren(make("div", { textContent: `step ${here.toLocaleString("en")}` }), ...texts);
    cursor.style.left = `${100 * share}%`;
    cursor.hidden = tip.hidden = false;
    tip.style.left = share < 0.5 ? `calc(${100 * share}% + .6rem)` : "auto";
    tip.style.right = share < 0.5 ? "auto" : `calc(${100 - 100 * share}% + .6rem)`;
  });
  plot.addEventListener("pointerleave", () => { cursor.hidden = tip.hidden = true; });
}

/* Attention: `#cross-2-3` shows layer 2, head 3 of cross-attention; head 0 is the mean of all;
   `#cross-2-3-4` shows it for the fourth sentence. */
const source = document.getElementById("attention-data");
if (source) attentionViewer(JSON.parse(source.textContent), document.getElementById("attention-viewer"));

function attentionViewer(sentences, place) {
  const kinds = Object.keys(sentences[0].kinds);
  const state = { sentence: 0, kind: "cross", layer: sentences[0].kinds.cross.layers, head: 0 };
  const decoded = new Map();

  const weightsOf = (kind) => {
    if (!decoded.has(kind)) {
      const text = atob(kind.weights);
      decoded.set(kind, Uint8Array.from(text, (letter) => letter.charCodeAt(0)));
    }
    return decoded.get(kind);
  };
  /* (T x S) weights from 0 to 1; head 0 is the mean of the heads. */
  const weights = (kind, layer, head) => {
    const size = kind.rows.length * kind.columns.length;
    const all = weightsOf(kind);
    const start = (layer - 1) * kind.heads * size;
    const heads = head ? [head - 1] : [...Array(kind.heads).keys()];
    return Float32Array.from({ length: size }, (_, n) =>
      heads.reduce((sum, h) => sum + all[start + h * size + n], 0) / heads.length / 255);
  };

  const read = () => {
    const found = /^#(encoder|decoder|cross)-(\d+)-(\d+)(?:-(\d+))?$/.exec(location.hash);
    if (!found) return false;
    const [kind, layer, head, sentence] = [found[1], ...found.slice(2).map(Number)];
    const number = found[4] ? sentence - 1 : state.sentence;
    const shape = sentences[number]?.kinds[kind];
    if (!shape || layer < 1 || layer > shape.layers || head > shape.heads) return false;
    Object.assign(state, { kind, layer, head, sentence: number });
    return true;
  };
  const go = (change) => {
    Object.assign(state, change);
    const shape = sentences[state.sentence].kinds[state.kind];
    state.layer = Math.min(state.layer, shape.layers);
    history.replaceState(null, "", `#${state.kind}-${state.layer}-${state.head}-${state.sentence + 1}`);
    show();
  };

  const accent = () => getComputedStyle(document.documentElement).getPropertyValue("--accent").split(",").map(Number);
  const thumbnail = (kind, layer, head) => {
    const [width, height] = [kind.columns.length, kind.rows.length];
    const canvas = make("canvas", { width, height });
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    const [red, green, blue] = accent();
    weights(kind, layer, head).forEach((weight, n) =>
      image.data.set([red, green, blue, Math.round(255 * weight)], 4 * n));
    context.putImageData(image, 0, 0);
    return canvas;
  };

  const headName = (head) => (head ? `head ${head}` : "mean of the heads");
  const headTable = (kind) => {
    const table = make("table", { className: "heads" });
    const columns = [...Array(kind.heads + 1).keys()];
    table.append(make("tr", {}, make("th"), ...columns.map((h) => make("th", { scope: "col", textContent: h || "mean" }))));
    for (let layer = 1; layer <= kind.layers; layer++) {
      const row = make("tr", {}, make("th", { scope: "row", textContent: `layer ${layer}` }));
      for (const head of columns) {
        const button = make("button", { type: "button", title: `layer ${layer}, ${headName(head)}` }, thumbnail(kind, layer, head));
        button.id = `pick-${layer}-${head}`;
        button.setAttribute("aria-label", button.title);
        button.setAttribute("aria-pressed", layer === state.layer && head === state.head);
        button.addEventListener("click", () => {
          go({ layer, head });
          document.getElementById(button.id).focus({ preventScroll: true });
        });
        row.append(make("td", {}, button));
      }
      table.append(row);
    }
    return make("div", { className: "heads-box" }, table);
  };

  const svg = (name, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const measure = document.createElement("canvas").getContext("2d");
  const widest = (texts) => {
    measure.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return Math.ceil(Math.max(...texts.map((text) => measure.measureText(text).width)));
  };

  const map = (kind, room) => {
    const [width, height] = [kind.columns.length, kind.rows.length];
    const values = weights(kind, state.layer, state.head);
    const left = widest(kind.rows) + 28;
    const top = widest(kind.columns) + 28;
    const cell = Math.max(14, Math.min(30, Math.floor((room - left - 4) / width)));
    const drawing = svg("svg", {
      width: left + width * cell + 4, height: top + height * cell + 4, role: "img",
      "aria-label": `${kind.name} attention, layer ${state.layer}, ${headName(state.head)}`,
    });
    const reading = make("p", { className: "reading", textContent: "Point at a cell to read its weight." });
    drawing.append(svg("text", { x: left + (width * cell) / 2, y: 12, "text-anchor": "middle", class: "axis" }, kind.columnTitle));
    const middle = top + (height * cell) / 2;
    drawing.append(svg("text", { x: 10, y: middle, "text-anchor": "middle", class: "axis", transform: `rotate(-90 10 ${middle})` }, kind.rowTitle));
    const rows = kind.rows.map((text, t) => svg("text", { x: left - 6, y: top + (t + 0.5) * cell + 4, "text-anchor": "end" }, text));
    const columns = kind.columns.map((text, s) => {
      const [x, y] = [left + (s + 0.5) * cell + 4, top - 6];
      return svg("text", { x, y, transform: `rotate(-90 ${x} ${y})` }, text);
    });
    drawing.append(...rows, ...columns);
    values.forEach((weight, n) => {
      const [t, s] = [Math.floor(n / width), n % width];
      const square = svg("rect", {
        x: left + s * cell, y: top + t * cell, width: cell - 1, height: cell - 1,
        class: "cell", "fill-opacity": weight.toFixed(3),
      });
      const light = (on) => {
        rows[t].classList.toggle("lit", on);
        columns[s].classList.toggle("lit", on);
      };
      square.addEventListener("pointerenter", () => {
        light(true);
        reading.textContent = `${kind.rows[t]} → ${kind.columns[s]}: ${weight.toFixed(2)}`;
      });
      square.addEventListener("pointerleave", () => light(false));
      drawing.append(square);
    });
    drawing.append(svg("rect", { x: left - 0.5, y: top - 0.5, width: width * cell, height: height * cell, class: "frame", "pointer-events": "none" }));
    const title = make("h3", { id: "attention-title", textContent: `${kind.name}, layer ${state.layer} of ${kind.layers}, ${headName(state.head)}` });
    return [title, make("div", { className: "map" }, drawing), reading];
  };

  const choices = () => {
    const row = make("div", { className: "choices", role: "group" });
    for (const kind of kinds) {
      const button = make("button", { type: "button", textContent: sentences[state.sentence].kinds[kind].name });
      button.setAttribute("aria-pressed", kind === state.kind);
      button.addEventListener("click", () => go({ kind }));
      row.append(button);
    }
    return row;
  };
  const sentenceChoice = () => {
    const select = make("select", { ariaLabel: "sentence" });
    sentences.forEach((sentence, n) => select.append(new Option(sentence.text, n, false, n === state.sentence)));
    select.addEventListener("change", () => go({ sentence: Number(select.value) }));
    return make("div", { className: "sentences" }, select);
  };

  const show = () => {
    const kind = sentences[state.sentence].kinds[state.kind];
    const viewer = make("div", { className: "viewer" }, sentenceChoice(), make("div", {}, choices(), headTable(kind)));
    place.replaceChildren(viewer);
    const wide = matchMedia("(min-width: 60rem)").matches;
    const used = wide ? viewer.children[1].getBoundingClientRect().width + 30 : 0;
    viewer.append(make("div", {}, ...map(kind, place.clientWidth - used)));
  };

  const asked = read();
  show();
  if (asked) place.closest("section").scrollIntoView({ behavior: "instant" });
  addEventListener("hashchange", () => {
    if (read()) {
      show();
      place.closest("section").scrollIntoView();
    }
  });
  let width = place.clientWidth;
  addEventListener("resize", () => {
    if (place.clientWidth !== width) {
      width = place.clientWidth;
      show();
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}
