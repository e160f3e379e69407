import * as Plot from "@observablehq/plot";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { csv, fileName, save, svg, type Cell } from "./export";

const COLORS = 8;
export const colorOf = (index: number) => `var(--series-${index % COLORS})`;

/** Colours and symbols of the series, so that nobody needs to tell colours apart. */
export const scales = (series: string[]) => ({
  color: { domain: series, range: series.map((_, index) => colorOf(index)) },
  symbol: { domain: series, range: series.map((_, index) => SYMBOLS[index % SYMBOLS.length]!) },
});
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye", "asterisk"] as const;

interface Props {
  title: string;
  /** What it shows, and what it means. */
  says: string;
  columns: string[];
  rows: Cell[][];
  series: string[];
  draw: (width: number) => Plot.PlotOptions;
  /** What stands to the left of the drawing, row by row, and below it. */
  beside?: ComponentChildren;
  below?: ComponentChildren;
}

/** A drawing with its legend, the numbers behind it as a table, and both as files. */
export function Figure({ title, says, columns, rows, series, draw, beside, below }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<SVGElement | null>(null);
  const [width, setWidth] = useState(0);
  const id = useId();

  useLayoutEffect(() => {
    const element = place.current!;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (width === 0) return;
    const options = draw(width);
    const chart = Plot.plot({ ...options, width, ...scales(series), figure: false, className: "plot" }) as unknown as SVGElement &
      Plot.Plot;
    // What Plot would have in a <style> stands in style.css: the policy of the page runs no other.
    for (const style of chart.querySelectorAll("style")) style.remove();
    // An image has one name. Those of its parts are kept to find them by.
    for (const part of chart.querySelectorAll("[aria-label]")) {
      part.classList.add(part.getAttribute("aria-label")!.replace(/\W.*/, ""));
      part.removeAttribute("aria-label");
    }
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-labelledby", `${id}-title`);
    chart.setAttribute("aria-describedby", `${id}-says`);
    if (beside) {
      // Its rows stay those of the list, also where paper is narrower than the screen.
      chart.setAttribute("preserveAspectRatio", "none");
      chart.style.height = `${chart.getAttribute("height")}px`;
    }
    drawn.current = chart;
    place.current!.replaceChildren(chart);
  }, [width, draw, series, id, title]);

  return (
    <figure class="figure">
      <h3 id={`${id}-title`}>{title}</h3>
      {series.length > 1 && <Legend series={series} />}
      {beside ? (
        <div class="beside">
          {beside}
          <div class="drawing" ref={place} />
        </div>
      ) : (
        <div class="drawing" ref={place} />
      )}
      {below}
      <figcaption id={`${id}-says`}>{says}</figcaption>
      <div class="tools files">
        <button
          type="button"
          onClick={() =>
            save(
              fileName(title, "svg"),
              "image/svg+xml",
              svg(
                drawn.current!,
                title,
                series.map((name, index) => ({ name, color: colorOf(index) })),
              ),
            )
          }
        >
          SVG<span class="unseen"> of {title}</span>
        </button>
        <button type="button" onClick={() => save(fileName(title, "csv"), "text/csv", csv(columns, rows))}>
          CSV<span class="unseen"> of {title}</span>
        </button>
      </div>
      <Numbers title={title} columns={columns} rows={rows} />
    </figure>
  );
}

function Legend({ series }: { series: string[] }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { color, symbol } = scales(series);
    const legend = Plot.plot({
      color,
      symbol,
      className: "plot",
      marks: [Plot.dot(series, { x: series, fill: series, symbol: series })],
    }).legend("symbol", { fill: "color", className: "legend" })!;
    for (const style of legend.querySelectorAll("style")) style.remove();
    place.current!.replaceChildren(legend);
  }, [series]);
  return <div ref={place} />;
}

const MANY = 500;

function Numbers({ title, columns, rows }: { title: string; columns: string[]; rows: Cell[][] }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="numbers" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Numbers</summary>
      {open && <Table title={title} columns={columns} rows={rows.slice(0, MANY)} />}
      {open && rows.length > MANY && (
        <p class="faint">
          The first {MANY} of {rows.length.toLocaleString("en")} rows; CSV has all.
        </p>
      )}
    </details>
  );
}

export function Table({ title, columns, rows }: { title: string; columns: string[]; rows: Cell[][] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={title}>
      <table class="figures">
        <thead>
          <tr>
            {columns.map((column) => (
              <th scope="col">{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td class={typeof cell === "number" ? "number" : undefined}>
                  {typeof cell === "number" ? Number(cell.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 }) : cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
