import * as Plot from "@observablehq/plot";
import { analysesOf, compact, place, short, watcher, type Measured } from "./bench-data";
import type { Cell } from "./export";

export interface Drawing {
  title: string;
  says: string;
  columns: string[];
  rows: Cell[][];
  series: string[];
  draw: (width: number) => Plot.PlotOptions;
}

/** A quantity as it is drawn: the column of the results, what it is divided by, and what it means. */
interface Quantity {
  metric: string;
  title: string;
  unit: string;
  scale: number;
  says: string;
}

const MIB = 1048576;
const NARROW = 420;

export const QUANTITIES: Quantity[] = [
  {
    metric: "response_mean_ns",
    title: "Mean response time",
    unit: "ms",
    scale: 1e6,
    says: "How long a member waits for the answer to a request, on average. What stands above the untraced system is what watching costs whoever waits.",
  },
  {
    metric: "system_memory_mean",
    title: "Memory",
    unit: "MiB",
    scale: MIB,
    says: "The memory of the whole VM while the system is alive, on average. A line that is as steep as the untraced one costs a fixed amount, whatever the load.",
  },
  {
    metric: "system_utilisation",
    title: "Scheduler utilisation",
    unit: "%",
    scale: 1,
    says: "Which part of the time schedulers work, on average. Where it nears 100, the machine is saturated, and response times tell of queues rather than of watching.",
  },
  {
    metric: "duration_ms",
    title: "Duration",
    unit: "s",
    scale: 1000,
    says: "From the first step of the system to its end. It follows the loading time as long as the system keeps up; what watches without slowing it down leaves it alone.",
  },
];

export const MORE: Quantity[] = [
  {
    metric: "response_p50_ns",
    title: "Median response time",
    unit: "ms",
    scale: 1e6,
    says: "Half of the answers come sooner. Unlike the mean it hides the few that are very late.",
  },
  {
    metric: "response_p99_ns",
    title: "Response time, 99th percentile",
    unit: "ms",
    scale: 1e6,
    says: "One answer of a hundred takes longer. Queues and collected garbage show here first.",
  },
  {
    metric: "system_memory_peak",
    title: "Peak memory",
    unit: "MiB",
    scale: MIB,
    says: "The most in a sample while the system is alive. Where it is far above the mean, events have waited for their monitors.",
  },
  {
    metric: "done_ms",
    title: "Time until all monitors are done",
    unit: "s",
    scale: 1000,
    says: "Until each monitor has analysed its trace. What lies beyond the duration is how far monitors fall behind.",
  },
  {
    metric: "cpu_ms",
    title: "Processor time",
    unit: "s",
    scale: 1000,
    says: "Of the VM, until all monitors are done. Above the untraced system it is the whole cost of watching, whoever pays it.",
  },
  {
    metric: "tracers",
    title: "Tracers alive",
    unit: "tracers",
    scale: 1,
    says: "The most at the same time. Outline monitoring makes one for each partition that lives, so it follows the members that are alive, not all that there are.",
  },
  {
    metric: "lag_max_ns",
    title: "Lag of creation",
    unit: "ms",
    scale: 1e6,
    says: "How much later than planned a member was created, at most. Where it grows, the machine cannot follow the load.",
  },
  {
    metric: "idle_mean_ns",
    title: "Mean idle time",
    unit: "ms",
    scale: 1e6,
    says: "How long a process waits before a message comes, on average, as its monitor sees it (BenchCRV, case study). Where it parts from a straight line, the system is saturated.",
  },
];

/** Side by side where there is room, below each other where there is not. */
const facets = (width: number, places: string[], key: string) => {
  const narrow = width < NARROW && places.length > 1;
  const axis = { label: null, domain: places };
  return {
    narrow,
    by: narrow ? { fy: key } : { fx: key },
    options: narrow ? { fy: axis, height: 60 + 170 * places.length, marginRight: 64 } : { fx: axis, height: 280 },
  };
};

const spread = (values: number[]) => {
  const some = values.filter((value) => value > 0);
  return some.length > 1 && Math.max(...some) / Math.min(...some) > 40;
};

const seriesOf = (measured: readonly Measured[]) => {
  const name = watcher(measured);
  return [...new Set(measured.flatMap(({ steps }) => steps.flatMap(({ compared }) => compared.map(name))))];
};

const placesOf = (measured: readonly Measured[]) => [...new Set(measured.flatMap(({ steps }) => steps.map(place)))];

/** The second one is what the first is compared with. */
const whose = (measured: readonly Measured[], index: number) => (measured.length > 1 ? ["after", "before"][index]! : null);
const solidThenDashed = (measured: readonly Measured[]) => (measured.length > 1 ? " Dashed: before." : "");

/** The lines of one and of the other, which differ in nothing but this. */
const lines = (rows: { which: number }[], options: Plot.LineYOptions) => [
  Plot.lineY(
    rows.filter(({ which }) => which === 0),
    { strokeWidth: 1.8, ...options },
  ),
  Plot.lineY(
    rows.filter(({ which }) => which === 1),
    { strokeWidth: 1.4, strokeDasharray: "5,4", ...options },
  ),
];

/** A quantity against the number of members, in each shape (RIARC text, figures 7, 8, 14 to 18, 20). */
export function againstMembers(measured: readonly Measured[], quantity: Quantity): Drawing | null {
  const { metric, title, unit, scale, says } = quantity;
  const name = watcher(measured);
  const points = measured.flatMap((one, which) =>
    one.steps.flatMap((step) =>
      step.compared.flatMap((compared) => {
        const values = compared.metrics[metric];
        if (!values) return [];
        const [median, low, high] = values.map((value) => value / scale) as [number, number, number];
        return [{ which, place: place(step), n: step.n, series: name(compared), median, low, high }];
      }),
    ),
  );
  if (!points.some(({ median }) => median !== 0)) return null;
  const places = placesOf(measured);
  const log = spread(points.map(({ median }) => median));
  return {
    title,
    says: `${says} Medians, with the least and the largest of the repetitions.${log ? " The scale is logarithmic." : ""}${solidThenDashed(measured)}`,
    columns: [
      ...(measured.length > 1 ? ["experiment"] : []),
      "load",
      "members",
      "mode",
      `median (${unit})`,
      `least (${unit})`,
      `largest (${unit})`,
    ],
    rows: points.map((p) => [
      ...(measured.length > 1 ? [whose(measured, p.which)] : []),
      p.place,
      p.n,
      p.series,
      p.median,
      p.low,
      p.high,
    ]),
    series: seriesOf(measured),
    draw: (width) => {
      const { by, options } = facets(width, places, "place");
      return {
        ...options,
        x: { label: "members", tickFormat: compact, ticks: 4, inset: 8 },
        y: { label: unit, grid: true, ...(log ? { type: "log" as const } : { zero: true, nice: true }), tickFormat: short },
        marks: [
          Plot.frame({ stroke: "var(--line)" }),
          Plot.ruleX(points, { x: "n", y1: "low", y2: "high", stroke: "series", strokeOpacity: 0.7, ...by }),
          ...lines(points, { x: "n", y: "median", z: "series", stroke: "series", ...by }),
          Plot.dot(points, { x: "n", y: "median", fill: "series", symbol: "series", r: 3.5, ...by }),
          Plot.tip(
            points,
            Plot.pointer({
              x: "n",
              y: "median",
              ...by,
              fill: "var(--page)",
              stroke: "var(--line)",
              title: (p: (typeof points)[number]) =>
                `${p.series}${whose(measured, p.which) ? `, ${whose(measured, p.which)}` : ""}\n${compact(p.n)} members: ${short(p.median)} ${unit}\n${short(p.low)} to ${short(p.high)}`,
            }),
          ),
        ],
      };
    },
  };
}

interface Course {
  column: string;
  title: string;
  unit: string;
  scale: number;
  says: string;
}

export const COURSES: Course[] = [
  {
    column: "messages_per_s",
    title: "Messages over time",
    unit: "1/s",
    scale: 1,
    says: "What the system sends in a second, as the run goes on. A curve that lies below the untraced one, or lasts longer, belongs to a system that is slowed down.",
  },
  {
    column: "memory",
    title: "Memory over time",
    unit: "MiB",
    scale: MIB,
    says: "Of the whole VM. What watches is elastic where memory comes back after the peak of the load.",
  },
  {
    column: "utilisation",
    title: "Scheduler utilisation over time",
    unit: "%",
    scale: 1,
    says: "Of all schedulers, since the sample before. At 100 the machine has nothing left, and events wait.",
  },
  {
    column: "members",
    title: "Members over time",
    unit: "alive",
    scale: 1,
    says: "How many live at the moment of a sample. Short lives fall between samples, so a light load shows few of them.",
  },
  {
    column: "tracers",
    title: "Tracers over time",
    unit: "alive",
    scale: 1,
    says: "How many tracers live. An elastic way to watch has as many as the load needs, and none in the end.",
  },
];

/** A quantity over the time line, at the largest step (RIARC text, figures 9, 16 to 18). */
export function overTime(measured: readonly Measured[], { column, title, unit, scale, says }: Course): Drawing | null {
  const name = watcher(measured);
  const points = measured.flatMap((one, which) =>
    one.timelines.flatMap((timeline) => {
      const at = timeline.samples.columns.indexOf(column) + 2;
      return timeline.samples.rows.map((row) => ({
        which,
        place: `${place(timeline)}, ${compact(timeline.n)}`,
        series: name(timeline),
        time: row[0] / 1000,
        value: Number(row[at]) / scale,
      }));
    }),
  );
  if (!points.some(({ value }) => value !== 0)) return null;
  const places = [...new Set(points.map(({ place }) => place))];
  return {
    title,
    says: `${says} One repetition at the largest step of each load.${solidThenDashed(measured)}`,
    columns: [...(measured.length > 1 ? ["experiment"] : []), "load", "mode", "time (s)", `${column} (${unit})`],
    rows: points.map((p) => [...(measured.length > 1 ? [whose(measured, p.which)] : []), p.place, p.series, p.time, p.value]),
    series: seriesOf(measured),
    draw: (width) => {
      const { by, options } = facets(width, places, "place");
      return {
        ...options,
        x: { label: "time (s)", ticks: 5 },
        y: { label: unit, grid: true, zero: true, nice: true, tickFormat: compact },
        marks: [
          Plot.frame({ stroke: "var(--line)" }),
          ...lines(points, { x: "time", y: "value", z: "series", stroke: "series", ...by }),
          Plot.tip(
            points,
            Plot.pointer({
              x: "time",
              y: "value",
              ...by,
              fill: "var(--page)",
              stroke: "var(--line)",
              title: (p: (typeof points)[number]) => `${p.series}\n${short(p.time)} s: ${short(p.value)} ${unit}`,
            }),
          ),
        ],
      };
    },
  };
}

/** The load of each scheduler over the time line, at the largest step (RIARC text, figure 19). */
export function schedulerLoad([one]: readonly [Measured, ...Measured[]]): Drawing | null {
  const name = watcher([one]);
  const cells = one.timelines.flatMap((timeline) => {
    const { columns, rows } = timeline.samples;
    const schedulers = columns.flatMap((column, index) =>
      column.startsWith("scheduler_") ? [{ index: index + 2, scheduler: Number(column.slice(10)) }] : [],
    );
    const where = {
      lane: `${name(timeline)}, ${place(timeline)}`,
      load: `${place(timeline)}, ${compact(timeline.n)}`,
      series: name(timeline),
    };
    return rows.slice(1).flatMap((row, before) =>
      schedulers.map(({ index, scheduler }) => ({
        ...where,
        scheduler,
        from: rows[before]![0] / 1000,
        to: row[0] / 1000,
        percent: Number(row[index]),
      })),
    );
  });
  const schedulers = [...new Set(cells.map(({ scheduler }) => scheduler))];
  // One alone has the utilisation of all.
  if (schedulers.length < 2) return null;
  const lanes = [...new Set(cells.map(({ lane }) => lane))];
  return {
    title: "Load of each scheduler",
    says: "Each row is a scheduler, the darker the more it works. What is spread has the same shade in all rows; one row that stays dark while the others are light is a process that all others wait for. One repetition at the largest step of each load.",
    columns: ["load", "mode", "scheduler", "from (s)", "to (s)", "utilisation (%)"],
    rows: cells.map(({ load, series, scheduler, from, to, percent }) => [load, series, scheduler, from, to, percent]),
    series: [],
    draw: () => ({
      height: 50 + lanes.length * (26 + Math.min(120, 14 * schedulers.length)),
      marginTop: 24,
      x: { label: "time (s)", ticks: 5 },
      y: {
        label: null,
        domain: schedulers,
        tickFormat: (scheduler: number) => (schedulers.length > 8 && scheduler % 4 !== 1 ? "" : String(scheduler)),
        padding: 0.1,
      },
      fy: { axis: null, domain: lanes, padding: 0.3 },
      opacity: { domain: [0, 100], range: [0.04, 1] },
      marks: [
        Plot.text(lanes, { fy: (lane: string) => lane, text: (lane: string) => lane, frameAnchor: "top-left", dy: -13 }),
        Plot.barX(cells, {
          fy: "lane",
          y: "scheduler",
          x1: "from",
          x2: "to",
          fill: "var(--series-0)",
          fillOpacity: "percent",
          insetLeft: -0.25,
          insetRight: -0.25,
        }),
      ],
    }),
  };
}

/** The load shapes as generated (RIARC text, figure 13). */
export function loadShapes([{ arrivals }]: readonly [Measured, ...Measured[]]): Drawing | null {
  if (arrivals.length === 0) return null;
  const bars = arrivals.flatMap((load) =>
    load.counts.map(([from, to, count]) => ({
      place: `${place(load)}, ${compact(load.n)}`,
      from: from * load.seconds,
      to: to * load.seconds,
      count,
    })),
  );
  const places = [...new Set(bars.map(({ place }) => place))];
  return {
    title: "Load shapes",
    says: "How many members are created as time goes on, at the largest step of each load. All modes get these same members at these same times, since the seed decides them.",
    columns: ["load", "from (s)", "to (s)", "members created"],
    rows: bars.map(({ place, from, to, count }) => [place, from, to, count]),
    series: [],
    draw: (width) => {
      const { by, options } = facets(width, places, "place");
      return {
        ...options,
        x: { label: "time (s)", ticks: 5 },
        y: { label: "members created", grid: true, zero: true, nice: true },
        marks: [
          Plot.frame({ stroke: "var(--line)" }),
          Plot.rectY(bars, { x1: "from", x2: "to", y: "count", fill: "var(--series-0)", inset: 0.5, ...by }),
        ],
      };
    },
  };
}

/** Which part of the answers has come by then, and the best fit for the system itself (BenchCRV text, figure 5). */
export function distributions(measured: readonly Measured[]): Drawing | null {
  const name = watcher(measured);
  const points = measured.flatMap((one, which) =>
    one.responses.flatMap((of) =>
      of.quantiles.map(([share, ms]) => ({
        which,
        place: `${place(of)}, ${compact(of.n)}`,
        series: name(of),
        share: share * 100,
        ms,
      })),
    ),
  );
  if (points.length === 0) return null;
  const fitted = measured[0]!.responses.flatMap((of) =>
    of.fits
      .slice(0, 1)
      .flatMap(({ family, shares }) =>
        of.quantiles.map(([, ms], index) => ({ place: `${place(of)}, ${compact(of.n)}`, family, share: shares[index]! * 100, ms })),
      ),
  );
  const places = [...new Set(points.map(({ place }) => place))];
  return {
    title: "Distribution of response times",
    says: `Which part of the answers has come after so long; the scale of time is logarithmic. A curve further to the right waits longer, and one that is less steep varies more; dotted is the distribution that fits the untraced system best.${solidThenDashed(measured)}`,
    columns: [...(measured.length > 1 ? ["experiment"] : []), "load", "mode", "share (%)", "response time (ms)"],
    rows: points.map((p) => [...(measured.length > 1 ? [whose(measured, p.which)] : []), p.place, p.series, p.share, p.ms]),
    series: seriesOf(measured),
    draw: (width) => {
      const { by, options } = facets(width, places, "place");
      return {
        ...options,
        x: { label: "response time (ms)", type: "log", ticks: 4, tickFormat: short },
        y: { label: "% of the answers", grid: true, domain: [0, 100] },
        marks: [
          Plot.frame({ stroke: "var(--line)" }),
          ...lines(points, { x: "ms", y: "share", z: "series", stroke: "series", sort: "share", ...by }),
          Plot.line(fitted, { x: "ms", y: "share", stroke: "var(--text)", strokeDasharray: "1,4", strokeWidth: 1.5, ...by }),
          Plot.tip(
            points,
            Plot.pointer({
              x: "ms",
              y: "share",
              ...by,
              fill: "var(--page)",
              stroke: "var(--line)",
              title: (p: (typeof points)[number]) => `${p.series}\n${short(p.share)} % within ${short(p.ms)} ms`,
            }),
          ),
        ],
      };
    },
  };
}

/**
 * What analysing adds to instrumenting (RIARC text, figures 7 and 8): overheads of the same mode, with monitors that
 * count events and with those that analyse them.
 */
export function instrumentationGap(measured: readonly Measured[]): Drawing | null {
  const [one] = measured as [Measured];
  const analyses = analysesOf([one]);
  if (!analyses.includes("none") || analyses.length < 2) return null;
  const most = new Map(
    one.steps.map((step) => [place(step), Math.max(...one.steps.filter((s) => place(s) === place(step)).map(({ n }) => n))]),
  );
  const bars = one.steps
    .filter((step) => most.get(place(step)) === step.n)
    .flatMap((step) =>
      step.compared.flatMap(({ mode, analysis, metrics }) => {
        const values = metrics.response_mean_ns;
        return mode !== "untraced" && values?.length === 6
          ? [
              {
                place: `${place(step)}, ${compact(step.n)}`,
                mode: mode.replaceAll("_", " "),
                analysis: analysis === "none" ? "instrumentation alone" : analysis,
                overhead: values[3],
              },
            ]
          : [];
      }),
    );
  const places = [...new Set(bars.map(({ place }) => place))];
  const series = [...new Set(bars.map(({ analysis }) => analysis))];
  return {
    title: "Instrumentation against monitoring",
    says: "What delivering events costs in response time, and what analysing them costs with it, over the untraced system at the largest step. The gap between them is the price of the analysis, as the system sees it.",
    columns: ["load", "mode", "analysis", "overhead in response time (%)"],
    rows: bars.map(({ place, mode, analysis, overhead }) => [place, mode, analysis, overhead]),
    series,
    draw: () => ({
      height: 70 + 34 * places.length * new Set(bars.map(({ mode }) => mode)).size,
      marginLeft: 130,
      marginRight: 110,
      fy: { label: null, domain: places },
      x: { label: "overhead in response time (%)", grid: true, nice: true },
      y: { label: null, inset: 4 },
      marks: [
        Plot.ruleX([0]),
        Plot.dot(bars, { y: "mode", x: "overhead", fy: "place", fill: "analysis", symbol: "analysis", r: 5 }),
        Plot.link(
          bars
            .filter(({ analysis }) => analysis !== "instrumentation alone")
            .map((bar) => ({
              ...bar,
              from:
                bars.find((b) => b.place === bar.place && b.mode === bar.mode && b.analysis === "instrumentation alone")
                  ?.overhead ?? bar.overhead,
            })),
          { y1: "mode", y2: "mode", x1: "from", x2: "overhead", fy: "place", stroke: "analysis", strokeWidth: 1.5 },
        ),
      ],
    }),
  };
}

/** How far monitors are behind when the system has ended. */
export function behind(measured: readonly Measured[]): Drawing | null {
  const name = watcher(measured);
  const points = measured.flatMap((one, which) =>
    one.steps.flatMap((step) =>
      step.compared.flatMap((compared) => {
        const { done_ms: done, duration_ms: duration } = compared.metrics;
        return done && duration && compared.mode !== "untraced"
          ? [{ which, place: place(step), n: step.n, series: name(compared), ms: Math.max(0, done[0] - duration[0]) }]
          : [];
      }),
    ),
  );
  if (points.length === 0) return null;
  const places = placesOf(measured);
  return {
    title: "How far monitors fall behind",
    says: `The time from the end of the system to that of the last monitor, by medians. What grows with the load faster than the load belongs to a way to watch that will not keep up.${solidThenDashed(measured)}`,
    columns: [...(measured.length > 1 ? ["experiment"] : []), "load", "members", "mode", "behind (ms)"],
    rows: points.map((p) => [...(measured.length > 1 ? [whose(measured, p.which)] : []), p.place, p.n, p.series, p.ms]),
    series: seriesOf(measured),
    draw: (width) => {
      const { by, options } = facets(width, places, "place");
      return {
        ...options,
        x: { label: "members", tickFormat: compact, ticks: 4, inset: 8 },
        y: { label: "ms", grid: true, zero: true, nice: true, tickFormat: compact },
        marks: [
          Plot.frame({ stroke: "var(--line)" }),
          ...lines(points, { x: "n", y: "ms", z: "series", stroke: "series", ...by }),
          Plot.dot(points, { x: "n", y: "ms", fill: "series", symbol: "series", r: 3.5, ...by }),
        ],
      };
    },
  };
}

/** What shapes and variants do to the system itself, drawn over each other (BenchCRV text, figures 3 and 4). */
export function systemItself(measured: readonly Measured[], { metric, title, unit, scale }: Quantity): Drawing | null {
  const points = measured[0]!.steps.flatMap((step) =>
    step.compared.flatMap(({ mode, metrics }) => {
      const values = metrics[metric];
      return mode === "untraced" && values
        ? [{ which: 0, n: step.n, series: place(step), median: values[0] / scale, low: values[1] / scale, high: values[2] / scale }]
        : [];
    }),
  );
  const series = placesOf(measured.slice(0, 1));
  if (series.length < 2 || points.length === 0) return null;
  return {
    title: `${title} of the untraced system`,
    says: "What the shape of the load, or the variant of the model, does to the system when nobody watches. A load that comes at once fills queues that the same load would not fill if it were spread.",
    columns: ["load", "members", `median (${unit})`, `least (${unit})`, `largest (${unit})`],
    rows: points.map((p) => [p.series, p.n, p.median, p.low, p.high]),
    series,
    draw: () => ({
      height: 260,
      x: { label: "members", tickFormat: compact, ticks: 5, inset: 8 },
      y: { label: unit, grid: true, zero: true, nice: true, tickFormat: short },
      marks: [
        Plot.ruleX(points, { x: "n", y1: "low", y2: "high", stroke: "series", strokeOpacity: 0.7 }),
        ...lines(points, { x: "n", y: "median", z: "series", stroke: "series" }),
        Plot.dot(points, { x: "n", y: "median", fill: "series", symbol: "series", r: 3.5 }),
      ],
    }),
  };
}

/** How much repetitions differ (BenchCRV text, figure 7). */
export function variability(measured: readonly Measured[]): Drawing | null {
  const [one] = measured as [Measured];
  const name = watcher(measured);
  const quantities: Record<string, string> = {
    response_mean_ns: "response time",
    system_memory_mean: "memory",
    system_utilisation: "utilisation",
  };
  const most = Math.max(...one.variability.map(({ first }) => first));
  const points = one.variability
    .filter(({ first }) => first === most)
    .flatMap((of) =>
      Object.entries(of.variation).map(([metric, percent]) => ({
        quantity: quantities[metric] ?? metric,
        load: `${place(of)} ${compact(of.n)}`,
        series: name(of),
        percent,
      })),
    );
  if (points.length === 0) return null;
  return {
    title: "How much repetitions differ",
    says: `The coefficient of variation of the first ${most} repetitions, each dot a load and a mode. A difference between two modes that is smaller than this says nothing; the BenchCRV text has ${Object.entries(
      one.paper_variability,
    )
      .map(([metric, percent]) => `${percent} % for ${quantities[metric] ?? metric}`)
      .join(", ")}.`,
    columns: ["quantity", "load", "mode", "coefficient of variation (%)"],
    rows: points.map((p) => [p.quantity, p.load, p.series, p.percent]),
    series: seriesOf(measured),
    draw: () => ({
      height: 220,
      marginLeft: 110,
      x: { label: "coefficient of variation (%)", grid: true, zero: true, nice: true },
      y: { label: null },
      marks: [Plot.dot(points, { y: "quantity", x: "percent", fill: "series", symbol: "series", r: 4, fillOpacity: 0.8 })],
    }),
  };
}
