// What `witness_web_bench_data` writes.

/** What is told apart in a drawing. */
export interface Series {
  shape: string;
  variant: string;
  mode: string;
  analysis: string;
  n: number;
}

/** The median over the repetitions, the least, the largest; and the same of the overhead in per cent. */
export type Metric =
  | [median: number, low: number, high: number]
  | [median: number, low: number, high: number, overhead: number, least: number, most: number];

export interface Compared {
  mode: string;
  analysis: string;
  repetitions: number;
  gaps: number;
  problems: number;
  metrics: Record<string, Metric>;
}

export interface Step {
  shape: string;
  variant: string;
  n: number;
  w: number;
  t: number;
  load_ms: number | null;
  compared: Compared[];
}

export interface Run extends Series {
  id: string;
  status: "ok" | "unsound" | "failed";
  reason: string | null;
  trouble: string | null;
  sound: boolean | null;
  numbers: Record<string, number>;
}

export interface Fit {
  family: string;
  parameters: [number, number];
  d: number;
  shares: number[];
}

export interface Measured {
  name: string;
  about: string;
  folder: string;
  platform: string;
  parameters: [name: string, value: string][];
  runs: Run[];
  steps: Step[];
  growth: (Series & { metric: string; slope: number; r2: number | null })[];
  arrivals: { shape: string; variant: string; n: number; seconds: number; counts: [from: number, to: number, count: number][] }[];
  timelines: (Series & {
    id: string;
    repetition: number;
    samples: { columns: string[]; rows: [time: number, system: boolean, ...values: number[]][] };
  })[];
  responses: (Series & { count: number; quantiles: [share: number, ms: number][]; fits: Fit[] })[];
  idle: {
    size: number;
    shape: string;
    mode: string;
    metric: string;
    points: [n: number, ns: number][];
    fit: { degree: number; r2: number } | null;
  }[];
  variability: (Series & { first: number; variation: Record<string, number> })[];
  papers: [shape: string, lines: string[]][];
  paper_growth: Record<string, number>;
  paper_variability: Record<string, number>;
}

/** One experiment; or two, the second of which the first is compared with. */
export interface BenchReport {
  kind: "bench";
  time: string;
  version: string;
  measured: [Measured, Measured?];
}

/** The shape of a load, with the variant of the model. */
export const place = ({ shape, variant }: { shape: string; variant: string }) => [shape, variant].filter(Boolean).join(" ");

/** A mode; with its analysis, where there is more than one. */
export const watcher =
  (measured: readonly Measured[]) =>
  ({ mode, analysis }: { mode: string; analysis: string }) => {
    const name = mode.replaceAll("_", " ");
    return mode === "untraced" || analysesOf(measured).length < 2 ? name : `${name}, ${analysis}`;
  };

export const analysesOf = (measured: readonly Measured[]) => [
  ...new Set(measured.flatMap(({ runs }) => runs.filter(({ mode }) => mode !== "untraced").map(({ analysis }) => analysis))),
];

/** At the largest step of each shape and variant. */
export const largest = ({ steps }: Measured) => {
  const most = new Map<string, Step>();
  for (const step of steps) if (step.n >= (most.get(place(step))?.n ?? 0)) most.set(place(step), step);
  return [...most.values()];
};

/** Three digits that count. */
export const short = (value: number) =>
  value === 0 ? "0" : Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 12 });

/** A change in per cent. */
export const signed = (percent: number) =>
  percent
    .toLocaleString("en", { signDisplay: "exceptZero", maximumFractionDigits: Math.abs(percent) < 10 ? 1 : 0 })
    .replace("-", "\u2212");

const thousands = new Intl.NumberFormat("en", { notation: "compact" });
export const compact = (value: number) => thousands.format(value).replace("K", "k");
