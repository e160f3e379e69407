import * as Plot from "@observablehq/plot";
import { useMemo } from "preact/hooks";
import { compact, short } from "./bench-data";
import type { History } from "./data";
import { Figure } from "./figure";

const FEW = 4; // samples that are no curve
const NONE: string[] = [];
const COUNTED = ["processes", "monitors", "violations", "gaps"];

/** How the run went: what was told of it while it ran. */
export function Course({ history }: { history: History }) {
  const { columns, rows } = history.course;
  const at = (row: readonly number[], column: string) => row[columns.indexOf(column) + 1] ?? 0;
  const rates = useMemo(
    () =>
      rows.slice(1).map((row, index) => {
        const before = rows[index]!;
        return {
          from: before[0] / 1000,
          to: row[0] / 1000,
          rate: ((at(row, "events") - at(before, "events")) * 1000) / Math.max(1, row[0] - before[0]),
        };
      }),
    [history],
  );
  const counted = useMemo(
    () => rows.flatMap((row) => COUNTED.map((name) => ({ time: row[0] / 1000, name, value: at(row, name) }))),
    [history],
  );
  const drawRates = useMemo(
    () => () => ({
      height: 220,
      x: { label: "time (s)", ticks: 6 },
      y: { label: "events a second", grid: true, zero: true, nice: true, tickFormat: compact },
      marks: [
        Plot.rectY(rates, { x1: "from", x2: "to", y: "rate", fill: "var(--series-1)" }),
        Plot.tip(
          rates,
          Plot.pointerX({
            x1: "from",
            x2: "to",
            y: "rate",
            fill: "var(--page)",
            stroke: "var(--line)",
            title: (r: (typeof rates)[number]) => `${short(r.from)} to ${short(r.to)} s: ${short(r.rate)} events a second`,
          }),
        ),
      ],
    }),
    [rates],
  );
  const drawCounted = useMemo(
    () => () => ({
      height: 220,
      x: { label: "time (s)", ticks: 6 },
      y: { label: "number", grid: true, zero: true, nice: true, tickFormat: compact },
      marks: [Plot.lineY(counted, { x: "time", y: "value", z: "name", stroke: "name", curve: "step-after", strokeWidth: 1.8 })],
    }),
    [counted],
  );
  if (rows.length < FEW) return null;
  return (
    <section aria-labelledby="course">
      <h2 id="course">Course of the run</h2>
      <div class="gallery">
        <Figure
          title="Events over time"
          draw={drawRates}
          series={NONE}
          says="How many events the monitors of the run were told in a second. Where it breaks off before the run ends, nothing happened, or monitors were not told."
          columns={["from (s)", "to (s)", "events a second"]}
          rows={rates.map(({ from, to, rate }) => [from, to, rate])}
        />
        <Figure
          title="Processes, monitors, violations and gaps"
          draw={drawCounted}
          series={COUNTED}
          says="Processes that were seen so far, monitors that have not ended, violations so far, and gaps: monitors and slices that have missed events. Where violations or gaps begin is where to look first."
          columns={["time (s)", "what", "number"]}
          rows={counted.map(({ time, name, value }) => [time, name, value])}
        />
      </div>
    </section>
  );
}
