import { place, signed, watcher, type Measured, type Metric, type Step } from "./bench-data";
import { QUANTITIES } from "./bench-figures";
import { count } from "./data";
import type { Cell } from "./export";
import { Table } from "./figure";

interface Change {
  load: string;
  n: number;
  series: string;
  quantity: string;
  unit: string;
  before: number;
  after: number;
  percent: number | null;
  /** The repetitions of one lie all above those of the other. */
  apart: boolean;
}

const cellOf = (steps: Step[], like: Step) =>
  steps.find((step) => place(step) === place(like) && step.n === like.n && step.w === like.w && step.t === like.t);

export function changesOf(now: Measured, before: Measured): Change[] {
  const name = watcher([now, before]);
  const common = now.steps.filter((step) => cellOf(before.steps, step));
  const most = (step: Step) => Math.max(...common.filter((other) => place(other) === place(step)).map(({ n }) => n));
  return common
    .filter((step) => step.n === most(step))
    .flatMap((step) =>
      step.compared.flatMap((compared) => {
        const other = cellOf(before.steps, step)?.compared.find(
          ({ mode, analysis }) => mode === compared.mode && analysis === compared.analysis,
        );
        return QUANTITIES.flatMap(({ metric, title, unit, scale }): Change[] => {
          const a: Metric | undefined = compared.metrics[metric];
          const b: Metric | undefined = other?.metrics[metric];
          if (!a || !b) return [];
          const single = compared.repetitions < 2 || (other?.repetitions ?? 0) < 2;
          return [
            {
              load: place(step),
              n: step.n,
              series: name(compared),
              quantity: title,
              unit,
              before: b[0] / scale,
              after: a[0] / scale,
              percent: b[0] === 0 ? null : (a[0] / b[0] - 1) * 100,
              apart: !single && (a[1] > b[2] || a[2] < b[1]),
            },
          ];
        });
      }),
    );
}

/** What is the same load in both, at the largest step that both have. */
export function Changes({ now, before }: { now: Measured; before: Measured }) {
  const changes = changesOf(now, before);
  if (changes.length === 0)
    return (
      <p class="warning">
        They have no load in common (shape, members, requests and loading time), so there is nothing to compare.
      </p>
    );
  const apart = changes.filter((change) => change.apart);
  const rows: Cell[][] = [...changes]
    .sort((a, b) => Number(b.apart) - Number(a.apart) || Math.abs(b.percent ?? 0) - Math.abs(a.percent ?? 0))
    .map((c) => [
      c.load,
      c.n,
      c.series,
      c.quantity,
      c.before,
      c.after,
      c.unit,
      c.percent === null ? null : `${signed(c.percent)} %`,
      c.apart ? "yes" : "no",
    ]);
  return (
    <>
      {now.platform !== before.platform && (
        <p class="warning">They were measured on different platforms: times cannot be compared.</p>
      )}
      <p>
        {apart.length === 0
          ? "Nothing has changed by more than repetitions differ."
          : `${count(apart.length, "number has", "numbers have")} changed by more than repetitions differ, of ${changes.length}.`}{" "}
        Medians at the largest load that both have; a change is clear where all repetitions of one lie above all of the other.
      </p>
      <Table
        title="Changes"
        rows={rows}
        columns={["load", "members", "mode", "quantity", "before", "after", "unit", "change", "clear"]}
      />
    </>
  );
}
