/** Charts over time, with the same figures as a table for whoever does not see them. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { n, short, t } from "../i18n/index.js";

/** Seconds. */
const HOUR = 3600;

/** `color`: a custom property of css/tokens.css, such as "--series-1"; null is no figure. @typedef {{label: string, color: string, values: (number | null)[]}} Series */
/** @typedef {"stacked" | "lines" | "bars"} Kind */

/**
 * @param {{title: string, times: number[], series: Series[], kind?: Kind, unit?: string, height?: number, when: (at: number) => string, tick: (at: number) => string}} props
 *   `times`: Unix seconds, ascending; `when`: one of them as words; `tick`: in few of them
 */
export function Chart(props) {
  const { title, times, series, kind = "lines", unit = "", height = 180, when, tick } = props;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [theme, width] = [useTheme(), useWidth(box)];
  const [pointed, setPointed] = useState(/** @type {number | null} */ (null));
  useEffect(() => {
    if (!box.current || width === 0 || times.length === 0) return;
    const drawing = draw(box.current, { times, series, kind, unit, height, width, tick, setPointed });
    return () => void drawing.then((chart) => chart.destroy());
  }, [theme, width, times, series, kind, height]);
  return html`<figure class="chart">
    <figcaption>
      <span class="chart-title">${title}</span>
      <span class="chart-at">${pointed !== null && times[pointed] !== undefined ? when(times[pointed]) : ""}</span>
      <span class="chart-legend">${series.map((each) => html`<span class="chart-key" key=${each.label}>
        <i class="swatch" style=${{ background: `var(${each.color})` }}></i>${each.label}
        ${pointed !== null && html`<b class="num">${figure(each.values[pointed], unit)}</b>`}
      </span>`)}</span>
    </figcaption>
    <div class="chart-canvas" ref=${box} aria-hidden="true" style=${{ minHeight: `${height}px` }}></div>
    <${Table} ...${{ title, times, series, unit, when }} />
  </figure>`;
}

/** @param {{title: string, times: number[], series: Series[], unit: string, when: (at: number) => string}} props */
function Table({ title, times, series, unit, when }) {
  const [open, setOpen] = useState(false);
  const rows = times.map((at, index) => ({ at, index })).reverse();
  return html`<details class="chart-table" onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}>
    <summary>${t("chart.table")}<span class="sr-only">: ${title}</span></summary>
    ${open && html`<div class="scroll-x" tabindex="0" role="region" aria-label=${title}><table>
      <thead><tr><th scope="col">${t("chart.time")}</th>
        ${series.map((each) => html`<th scope="col" class="num" key=${each.label}>${each.label}</th>`)}</tr></thead>
      <tbody>${rows.map(({ at, index }) => html`<tr key=${at}><th scope="row">${when(at)}</th>
        ${series.map((each) => html`<td class="num" key=${each.label}>${figure(each.values[index], unit)}</td>`)}
      </tr>`)}</tbody>
    </table></div>`}
  </details>`;
}

/** @param {number | null | undefined} value @param {string} unit */
const figure = (value, unit) =>
  value === null || value === undefined ? "–" : `${n(Math.round(value))}${unit && ` ${unit}`}`;

/** Dark or light; changes where the page's own switch or the system's does. */
function useTheme() {
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const changed = () => setTheme((count) => count + 1);
    const watching = new MutationObserver(changed);
    watching.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    return () => {
      watching.disconnect();
      system.removeEventListener("change", changed);
    };
  }, []);
  return theme;
}

/** @param {{current: HTMLElement | null}} box */
function useWidth(box) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watching = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    if (box.current) watching.observe(box.current);
    return () => watching.disconnect();
  }, []);
  return width;
}

/**
 * @param {HTMLElement} box
 * @param {{times: number[], series: Series[], kind: Kind, unit: string, height: number, width: number, tick: (at: number) => string, setPointed: (index: number | null) => void}} drawing
 */
async function draw(box, drawing) {
  const { default: UPlot } = await import("../vendor/uplot.js");
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const values = drawing.kind === "lines" ? drawing.series.map((each) => each.values) : stacked(drawing.series);
  // Drawn from the top of a stack down, so that lower bands lie over higher ones.
  const order = drawing.series.map((_, index) => index);
  if (drawing.kind !== "lines") order.reverse();
  // So that the first bar and the last are seen whole.
  const [at = 0, next = at + HOUR] = drawing.times;
  const margin = drawing.kind === "lines" && drawing.times.length > 1 ? 0 : (next - at) / 2;
  const bars = UPlot.paths.bars?.({ size: [0.7, 60], radius: 0.12 });
  const axis = { stroke: color("--muted"), font: `11px ${color("--font")}`, ticks: { show: false } };
  const grid = { stroke: color("--line"), width: 1 };
  const chart = new UPlot(
    {
      width: drawing.width,
      height: drawing.height,
      legend: { show: false },
      padding: [10, 8, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: drawing.kind === "lines" } },
      scales: {
        x: { time: true, range: () => [at - margin, (drawing.times.at(-1) ?? at) + margin] },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: [
        { ...axis, grid: { show: false }, space: 76, size: 30, values: (_, ticks) => ticks.map(drawing.tick) },
        { ...axis, grid, size: 56, incrs: STEPS, values: (_, ticks) => ticks.map((tick) => short(tick)) },
      ],
      series: [
        {},
        ...order.map((index) => {
          const each = /** @type {Series} */ (drawing.series[index]);
          const stroke = color(each.color);
          return drawing.kind === "lines"
            ? { label: each.label, stroke, width: 2, spanGaps: true, points: { size: 5, fill: stroke } }
            : { label: each.label, stroke, fill: stroke, width: 0, paths: bars, points: { show: false } };
        }),
      ],
      hooks: { setCursor: [(/** @type {any} */ plot) => drawing.setPointed(plot.cursor.idx ?? null)] },
    },
    /** @type {any} */ ([drawing.times, ...order.map((index) => values[index])]),
    box,
  );
  return chart;
}

/** Whole numbers between two lines of the grid: 1, 2, 5, 10, … */
const STEPS = Array.from({ length: 30 }, (_, at) => (/** @type {number} */ ([1, 2, 5][at % 3])) * 10 ** Math.floor(at / 3));

/** Each series on top of those before it. @param {Series[]} series */
function stacked(series) {
  /** @type {number[]} */
  let below = [];
  return series.map((each) => {
    below = each.values.map((value, index) => (value ?? 0) + (below[index] ?? 0));
    return below;
  });
}
