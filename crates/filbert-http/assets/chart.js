// A line chart of the last minutes, drawn as SVG. It glides from sample to sample, unless less motion is wanted.

import { h, s, setText } from "./dom.js";
import { timeOfDay } from "./format.js";

const LEFT = 52;
const TOP = 8;
const BOTTOM = 20;
const still = matchMedia("(prefers-reduced-motion: reduce)");
let charts = 0;

/** The least round number (1, 2 or 5 times a power of ten; of two for bytes) that is not below a value. */
function roundUp(value, binary) {
  if (value <= 0) return 1;
  const base = binary ? 2 : 10;
  const power = base ** Math.floor(Math.log(value) / Math.log(base));
  const steps = binary ? [1, 1.5, 2] : [1, 2, 4, 5, 8, 10];
  return power * steps.find((step) => step * power >= value * 0.999999);
}

/**
 * Makes a chart. `series` are its lines ({label}), `format` writes a value, `tick` one beside the axis; `floor` is the least top of
 * the axis; `stacked` fills below the first line.
 */
export function chart({ title, series, format, tick = format, floor = 1, ceiling = null, binary = false, emptyText = "Nothing yet" }) {
  const id = `plot-${(charts += 1)}`;
  const at = h("span", { class: "at" });
  const values = series.map(() => h("b", {}, "–"));
  const legend = h("ul", { class: "legend" }, series.map(({ label }, line) =>
    h("li", {}, h("span", { class: `swatch s${line + 1}` }), label, values[line])));
  const plot = s("svg", { class: "plot", tabindex: "0", role: "slider", "aria-label": `${title}, use the arrow keys to read values` });
  const node = h("figure", { class: "panel chart" }, h("div", { class: "chart-head" }, h("h2", {}, title, at), legend), plot);

  const rules = s("g");
  const area = s("path", { class: "area" });
  const lines = series.map((_, line) => s("path", { class: `s${line + 1}` }));
  const moving = s("g", {}, area, ...lines);
  const clip = s("rect", { y: 0 });
  const cross = s("line", { class: "cross", visibility: "hidden" });
  const dots = series.map((_, line) => s("circle", { class: `s${line + 1}`, r: 3, visibility: "hidden" }));
  const none = s("text", { class: "none", "text-anchor": "middle" });
  plot.append(s("clipPath", { id }, clip), rules, s("g", { "clip-path": `url(#${id})` }, moving), cross, ...dots, none);

  let points = [];
  let span = 300_000;
  let size = { width: 0, height: 0 };
  let scale = null;
  let cursor = null;

  function draw(glides) {
    const { width, height } = size;
    if (width < LEFT + 20) return;
    const [right, bottom] = [width - 1, height - BOTTOM];
    const end = points.at(-1)?.t ?? Date.now();
    const shown = points.filter((point) => point.t >= end - span - 5000);
    const most = Math.max(0, ...shown.flatMap((point) => point.v.filter((value) => value !== null)));
    const top = ceiling ?? Math.max(roundUp(most, binary), floor);
    const x = (t) => right - ((end - t) / span) * (right - LEFT);
    const y = (value) => bottom - (value / top) * (bottom - TOP);
    scale = { x, y, shown };
    for (const [name, value] of Object.entries({ x: LEFT, width: right - LEFT + 1, height })) clip.setAttribute(name, value);
    drawRules(top, end, x, y, right, bottom);
    let any = false;
    for (const [line, path] of lines.entries()) {
      const text = pathOf(shown, line, x, y);
      any ||= text !== "";
      path.setAttribute("d", text);
      if (line === 0) area.setAttribute("d", series.length <= 3 ? areaOf(shown, x, y, bottom) : "");
    }
    none.setAttribute("x", (LEFT + right) / 2);
    none.setAttribute("y", (TOP + bottom) / 2 + 4);
    setText(none, any ? "" : emptyText);
    const step = shown.length > 1 ? x(end) - x(shown.at(-2).t) : 0;
    if (glides && !still.matches && step > 0 && step < 60) {
      const duration = Math.min(end - shown.at(-2).t, 4000);
      moving.animate([{ transform: `translateX(${step}px)` }, { transform: "none" }], { duration, easing: "linear" });
    }
    mark();
  }

  function drawRules(top, end, x, y, right, bottom) {
    const parts = [];
    for (const part of [0, 0.5, 1]) {
      const at = Math.round(y(top * part)) + 0.5;
      parts.push(s("line", { class: "rule", x1: LEFT, x2: right, y1: at, y2: at }));
      const text = s("text", { x: LEFT - 8, y: at + 4, "text-anchor": "end" });
      text.textContent = tick(top * part);
      parts.push(text);
    }
    const wide = right - LEFT > 420;
    for (const part of wide ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]) {
      const t = end - span * (1 - part);
      const anchor = part === 0 ? "start" : part === 1 ? "end" : "middle";
      const text = s("text", { x: x(t), y: bottom + 15, "text-anchor": anchor });
      text.textContent = timeOfDay(t);
      parts.push(text);
    }
    rules.replaceChildren(...parts);
  }

  function mark() {
    const point = cursor === null ? points.at(-1) : points.find((point) => point.t === cursor) ?? points.at(-1);
    setText(at, cursor !== null && point ? timeOfDay(point.t) : "");
    for (const [line, value] of values.entries()) {
      const now = point?.v[line];
      setText(value, now === null || now === undefined ? "–" : format(now));
    }
    const marked = cursor !== null && point && scale;
    cross.setAttribute("visibility", marked ? "visible" : "hidden");
    if (marked) {
      const at = Math.round(scale.x(point.t)) + 0.5;
      for (const [name, value] of Object.entries({ x1: at, x2: at, y1: TOP, y2: size.height - BOTTOM })) cross.setAttribute(name, value);
    }
    for (const [line, dot] of dots.entries()) {
      const value = point?.v[line];
      const seen = marked && value !== null && value !== undefined;
      dot.setAttribute("visibility", seen ? "visible" : "hidden");
      if (seen) {
        dot.setAttribute("cx", scale.x(point.t));
        dot.setAttribute("cy", scale.y(value));
      }
    }
    const told = series.map(({ label }, line) => `${label} ${values[line].textContent}`).join(", ");
    plot.setAttribute("aria-valuetext", point ? `${timeOfDay(point.t)}: ${told}` : emptyText);
    plot.setAttribute("aria-valuenow", point?.t ?? 0);
  }

  function moveTo(t) {
    const shown = scale?.shown ?? [];
    if (shown.length === 0) return;
    cursor = shown.reduce((best, point) => (Math.abs(point.t - t) < Math.abs(best - t) ? point.t : best), shown[0].t);
    mark();
  }

  function leave() {
    cursor = null;
    mark();
  }

  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const end = points.at(-1)?.t ?? 0;
    moveTo(end - ((size.width - 1 - (event.clientX - box.left)) / (size.width - 1 - LEFT)) * span);
  });
  plot.addEventListener("pointerleave", leave);
  plot.addEventListener("blur", leave);
  plot.addEventListener("keydown", (event) => {
    const shown = scale?.shown ?? [];
    const now = cursor === null ? shown.length : shown.findIndex((point) => point.t === cursor);
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageDown: now - 10, PageUp: now + 10, Home: 0, End: shown.length - 1 }[event.key];
    if (event.key === "Escape") leave();
    if (to === undefined || shown.length === 0) return;
    event.preventDefault();
    moveTo(shown[Math.max(0, Math.min(shown.length - 1, to))].t);
  });
  const watcher = new ResizeObserver(() => {
    size = { width: plot.clientWidth, height: plot.clientHeight };
    draw(false);
  });
  watcher.observe(plot);

  return {
    node,
    /** Shows points ({t, v: [one value for each line]}) of the last `span` milliseconds. */
    update(next, nextSpan = span) {
      const glides = next.at(-1)?.t !== points.at(-1)?.t && nextSpan === span;
      points = next;
      span = nextSpan;
      draw(glides);
    },
  };
}

/** A line that breaks where there is no value. */
function pathOf(points, line, x, y) {
  let text = "";
  let pen = false;
  for (const { t, v } of points) {
    const value = v[line];
    if (value === null || value === undefined) {
      pen = false;
      continue;
    }
    text += `${pen ? "L" : "M"}${x(t).toFixed(1)} ${y(value).toFixed(1)}${pen ? "" : "h0.01"}`;
    pen = true;
  }
  return text;
}

function areaOf(points, x, y, bottom) {
  const held = points.filter(({ v }) => v[0] !== null && v[0] !== undefined);
  if (held.length !== points.length || held.length < 2) return "";
  const along = held.map(({ t, v }) => `L${x(t).toFixed(1)} ${y(v[0]).toFixed(1)}`).join("");
  return `M${x(held[0].t).toFixed(1)} ${bottom}${along}L${x(held.at(-1).t).toFixed(1)} ${bottom}Z`;
}
