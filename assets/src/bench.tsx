import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { largest, place, short, signed, watcher, type BenchReport, type Measured } from "./bench-data";
import {
  COURSES,
  MORE,
  QUANTITIES,
  againstMembers,
  behind,
  distributions,
  instrumentationGap,
  loadShapes,
  overTime,
  schedulerLoad,
  systemItself,
  variability,
  type Drawing,
} from "./bench-figures";
import { Changes } from "./bench-changes";
import { count } from "./data";
import type { Cell } from "./export";
import { Figure, Table } from "./figure";

export const headline = ({ measured }: BenchReport) => {
  const runs = measured.flatMap((one) => one!.runs);
  const unsound = runs.filter(({ status, sound }) => status === "unsound" || sound === false);
  const failed = runs.filter(({ status }) => status === "failed");
  const gaps = runs.filter(({ numbers }) => (numbers.gaps ?? 0) > 0);
  if (unsound.some(({ status }) => status === "unsound"))
    return { kind: "bad", text: `UNSOUND: ${count(unsound.length, "benchmark has", "benchmarks have")} seen a wrong trace.` };
  if (failed.length > 0)
    return { kind: "doubtful", text: `INCOMPLETE: ${count(failed.length, "benchmark has", "benchmarks have")} no result.` };
  return gaps.length > 0
    ? {
        kind: "doubtful",
        text: `SOUND, WITH GAPS: ${count(gaps.length, "benchmark of", "benchmarks of")} ${runs.length} had more events than it could take, and said so.`,
      }
    : {
        kind: "good",
        text: `SOUND: in all ${count(runs.length, "benchmark", "benchmarks")}, nothing that was to be seen is missing.`,
      };
};

export function Bench({ report }: { report: BenchReport }) {
  const { kind, text } = headline(report);
  const [now, before] = report.measured;
  const measured = report.measured as Measured[];
  const drawings = useMemo(() => figures(measured), [report]);
  return (
    <>
      <header class={`verdict ${kind}`}>
        <h1>{text}</h1>
        <p>
          <strong>{now.name}</strong> {now.about !== "" && <>: {now.about}</>}
        </p>
        <p>
          <code>{now.folder}</code>
          {before && (
            <>
              {" "}
              against <code>{before.folder}</code>
            </>
          )}
        </p>
        <p class="faint">
          <time dateTime={report.time}>{new Date(report.time).toLocaleString()}</time>, {report.version}
        </p>
      </header>
      <main class="bench">
        <Section id="conditions" title="Platform and parameters">
          <Conditions measured={measured} />
        </Section>
        {before && (
          <Section id="changes" title="What has changed">
            <Changes now={now} before={before} />
          </Section>
        )}
        <Section id="load" title="The load">
          <Figures of={drawings.load} />
        </Section>
        <Section id="cost" title="What watching costs">
          <Overheads measured={now} />
          <Figures of={drawings.cost} />
          <details class="more">
            <summary>{count(drawings.more.length, "further figure", "further figures")}</summary>
            <Figures of={drawings.more} />
          </details>
        </Section>
        <Section id="time" title="Over time">
          <Figures of={drawings.time} />
        </Section>
        <Section id="responses" title="Response times, and the system itself">
          <Figures of={drawings.system} />
          <Fits measured={now} />
          <Growth measured={now} />
          <Idle measured={now} />
        </Section>
        <Section id="runs" title="Soundness and gaps of each run">
          <Runs measured={measured} />
        </Section>
      </main>
    </>
  );
}

function figures(measured: Measured[]) {
  const drawn = (drawings: (Drawing | null)[]) => drawings.filter((drawing) => drawing !== null);
  return {
    load: drawn([loadShapes(measured as [Measured])]),
    cost: drawn([
      ...QUANTITIES.map((quantity) => againstMembers(measured, quantity)),
      instrumentationGap(measured),
      behind(measured),
    ]),
    more: drawn(MORE.map((quantity) => againstMembers(measured, quantity))),
    time: drawn([...COURSES.map((course) => overTime(measured, course)), schedulerLoad(measured as [Measured])]),
    system: drawn([
      distributions(measured),
      ...QUANTITIES.slice(0, 3).map((quantity) => systemItself(measured, quantity)),
      variability(measured),
    ]),
  };
}

function Section({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

const Figures = ({ of }: { of: Drawing[] }) => (
  <div class="gallery">
    {of.map((drawing) => (
      <Figure key={drawing.title} {...drawing} />
    ))}
  </div>
);

/** The same of both once; what differs, side by side. */
function Conditions({ measured }: { measured: Measured[] }) {
  const names = [...new Set(measured.flatMap(({ parameters }) => parameters.map(([name]) => name)))];
  const value = (of: Measured, name: string) => of.parameters.find(([other]) => other === name)?.[1] ?? "(the default)";
  const texts = (of: (one: Measured) => string) => {
    const all = measured.map(of);
    return new Set(all).size === 1 ? all.slice(0, 1) : all.map((text, index) => `${["after", "before"][index]}: ${text}`);
  };
  return (
    <dl class="facts">
      {[
        ["platform", texts(({ platform }) => platform)] as const,
        ...names.map((name) => [name, texts((one) => value(one, name))] as const),
      ].map(([label, all]) => (
        <div>
          <dt>{label}</dt>
          {all.map((text) => (
            <dd>{text}</dd>
          ))}
        </div>
      ))}
    </dl>
  );
}

const cell = (values: readonly number[] | undefined, scale: number) => (values ? values[0]! / scale : null);
const overhead = (values: readonly number[] | undefined): string | null =>
  values?.length === 6
    ? `${signed(values[3]!)}${values[4] === values[5] ? "" : ` (${signed(values[4]!)} to ${signed(values[5]!)})`}`
    : null;

/** Overheads and messages at maximal load, with what the papers have (RIARC text, tables 3 and 5). */
function Overheads({ measured }: { measured: Measured }) {
  const name = watcher([measured]);
  const steps = largest(measured);
  const papers = new Map(measured.papers);
  const rows: Cell[][] = steps.flatMap((step) =>
    step.compared.map((compared): Cell[] => {
      const { response_mean_ns, system_memory_mean, system_utilisation, duration_ms, done_ms, system_messages_per_second } =
        compared.metrics;
      const watched = compared.mode !== "untraced";
      return [
        place(step),
        step.n,
        name(compared),
        ...(watched
          ? [
              overhead(response_mean_ns),
              overhead(system_memory_mean),
              overhead(system_utilisation),
              overhead(duration_ms),
              overhead(done_ms),
            ]
          : [
              `${short(cell(response_mean_ns, 1e6) ?? 0)} ms`,
              `${short(cell(system_memory_mean, 1048576) ?? 0)} MiB`,
              `${short(cell(system_utilisation, 1) ?? 0)} %`,
              `${short(cell(duration_ms, 1000) ?? 0)} s`,
              `${short(cell(done_ms, 1000) ?? 0)} s`,
            ]),
        Math.round(cell(system_messages_per_second, 1) ?? 0),
        compared.gaps,
      ];
    }),
  );
  return (
    <>
      <h3>Overhead at maximal load</h3>
      <p>
        In per cent of the untraced system of the same repetition: the median, with the least and the largest. The untraced system
        itself is told in absolute numbers, and messages are what the system sends in a second.
      </p>
      <Table
        title="Overhead at maximal load"
        rows={rows}
        columns={[
          "load",
          "members",
          "mode",
          "response time (%)",
          "memory (%)",
          "utilisation (%)",
          "duration (%)",
          "until done (%)",
          "messages/s",
          "gaps",
        ]}
      />
      {papers.size > 0 && (
        <details>
          <summary>What the papers have, measured on other machines: to compare the shape, not the times</summary>
          {[...papers].map(([shape, lines]) => (
            <>
              <h4>{shape}</h4>
              <pre tabIndex={0}>{lines.join("\n")}</pre>
            </>
          ))}
          <p>
            Messages a second at maximal steady load (RIARC text, table 5): 162,000 with 100,000 workers of 100 requests on 4
            schedulers, 218,000 with 500,000, and 382,000 with 5,000 workers of 10,000 requests on 16.
          </p>
        </details>
      )}
    </>
  );
}

function Fits({ measured }: { measured: Measured }) {
  const rows: Cell[][] = measured.responses.flatMap((of) =>
    of.fits.map(({ family, parameters, d }): Cell[] => [place(of), of.n, of.count, family.replace("_", "-"), ...parameters, d]),
  );
  if (rows.length === 0) return null;
  return (
    <>
      <h3>Distributions that fit the untraced system</h3>
      <p>
        Fitted by maximum likelihood, the best first: the distance of Kolmogorov and Smirnov is the largest error of the share. The
        BenchCRV text (figure 5) has log-normal or Erlang, which is a gamma distribution.
      </p>
      <Table
        title="Distributions that fit the untraced system"
        rows={rows}
        columns={["load", "members", "answers", "distribution", "mean, mu or shape", "deviation, sigma or scale", "distance"]}
      />
    </>
  );
}

const METRICS: Record<string, [title: string, unit: string, scale: number]> = {
  response_mean_ns: ["mean response time", "ms", 1e6],
  system_memory_mean: ["memory", "MiB", 1048576],
  system_utilisation: ["utilisation", "%", 1],
  idle_mean_ns: ["mean idle time", "ms", 1e6],
};

function Growth({ measured }: { measured: Measured }) {
  const name = watcher([measured]);
  const rows: Cell[][] = measured.growth.map((of): Cell[] => {
    const [title, unit, scale] = METRICS[of.metric] ?? [of.metric, "", 1];
    return [title, place(of), name(of), of.slope / scale, unit, of.r2];
  });
  if (rows.length === 0) return null;
  const papers = Object.entries(measured.paper_growth).map(([metric, times]) => `${METRICS[metric]?.[0] ?? metric} ${times}`);
  return (
    <>
      <h3>Growth with the load</h3>
      <p>
        The slope of the line through the medians, for each thousand members; R² says how well a line fits. In the BenchCRV text
        bursts grow more steeply than steady loads, by these factors: {papers.join(", ")}.
      </p>
      <Table title="Growth with the load" rows={rows} columns={["quantity", "load", "mode", "slope", "unit", "R²"]} />
    </>
  );
}

function Idle({ measured }: { measured: Measured }) {
  const rows: Cell[][] = measured.idle.map((of): Cell[] => {
    const [title, unit, scale] = METRICS[of.metric] ?? [of.metric, "", 1];
    return [
      of.size,
      of.shape,
      of.mode,
      title,
      (of.points.at(-1)?.[1] ?? 0) / scale,
      unit,
      of.fit?.degree ?? null,
      of.fit?.r2 ?? null,
    ];
  });
  if (rows.length === 0) return null;
  return (
    <>
      <h3>Mean response and idle time as polynomials</h3>
      <p>
        The lowest degree that explains nine tenths of how they vary. In the BenchCRV text (figure 6) bursts are cubic at 20,000
        members, quadratic at 50,000, and linear at 500,000.
      </p>
      <Table
        title="Mean response and idle time as polynomials"
        rows={rows}
        columns={["size", "shape", "mode", "quantity", "at size", "unit", "degree", "R²"]}
      />
    </>
  );
}

function Runs({ measured }: { measured: Measured[] }) {
  const rows: Cell[][] = measured.flatMap(({ runs }, index) =>
    runs.map(({ id, status, sound, numbers, reason, trouble }): Cell[] => [
      ...(measured.length > 1 ? [["after", "before"][index]!] : []),
      id,
      status,
      sound === null ? "not known" : sound ? "yes" : "no",
      numbers.gaps ?? null,
      numbers.events ?? null,
      numbers.analysed ?? null,
      numbers.messages ?? null,
      [reason, trouble].filter(Boolean).join("; "),
    ]),
  );
  return (
    <>
      <p>
        Sound: every process that was to have a monitor had one, which saw its whole trace. A gap is a monitor that misses events,
        of which the tool has told; without gaps, nothing is missing.
      </p>
      <details>
        <summary>{count(rows.length, "run", "runs")}</summary>
        <Table
          title="Runs"
          rows={rows}
          columns={[
            ...(measured.length > 1 ? ["experiment"] : []),
            "run",
            "status",
            "sound",
            "gaps",
            "events",
            "analysed",
            "messages",
            "why",
          ]}
        />
      </details>
    </>
  );
}
