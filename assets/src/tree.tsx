import * as Plot from "@observablehq/plot";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { short } from "./bench-data";
import { count, type History } from "./data";
import { Figure } from "./figure";
import { MOST, opened, pathTo, read, visible, type Branch, type Life, type Row, type Watch } from "./lives";

const ROW = 24; // pixels, also in style.css
const HEAD = 34;
const LIFE = "process";
const SERIES = [LIFE, "monitor, undecided", "monitor, violated", "monitor, satisfied"];

const least = (times: (number | null)[], otherwise: number) =>
  times.reduce<number>((a, b) => Math.min(a, b ?? otherwise), Infinity);

/** Who spawned whom, when each was born and has ended, and who has watched it. */
export function Processes({ history }: { history: History }) {
  const tree = useMemo(() => read(history), [history]);
  const { lives, roots, from, to, nobodys } = tree;
  const [open, setOpen] = useState<ReadonlySet<string>>(() => opened(tree));
  const [violated, setViolated] = useState(false);
  const [wanted, setWanted] = useState("");
  const all = useMemo(() => visible(roots, open, violated), [roots, open, violated]);
  const rows = all.slice(0, MOST);
  const firstViolated = lives.find(({ watches }) => watches.some(({ violations }) => violations > 0));
  const [selected, setSelected] = useState(firstViolated ? `${firstViolated.index}` : undefined);
  const current = rows.find(({ branch }) => branch.key === selected) ?? rows[0];
  const found = useMemo(() => {
    const word = wanted.trim().toLowerCase();
    return word === "" ? [] : lives.filter(({ name, function: called }) => `${name} ${called}`.toLowerCase().includes(word));
  }, [lives, wanted]);

  const show = (life: Life) => {
    setViolated(false);
    setOpen(new Set([...open, ...pathTo(life, lives, roots)]));
    setSelected(`${life.index}`);
  };
  const toggle = ({ branch: { key } }: Row, on: boolean) => {
    const next = new Set(open);
    if (on) next.add(key);
    else next.delete(key);
    setOpen(next);
    setSelected(key);
  };
  const draw = useMemo(
    () => () => drawing(rows, current?.branch.key, { unit: history.unit, from, to }),
    [all, current?.branch.key, history],
  );
  const csv = useMemo(
    () =>
      lives.flatMap((life) =>
        (life.watches.length === 0 ? [null] : life.watches).map((watch) => [
          life.name,
          life.parent === null ? null : lives[life.parent]!.name,
          life.function,
          life.born,
          life.ended,
          life.reason ?? (life.ended === null ? null : "normal"),
          watch && watch.property,
          watch && watch.reader,
          watch && watch.verdict,
          watch && watch.violations,
        ]),
      ),
    [lives],
  );

  if (lives.length === 0) return null;
  const unit = history.unit === "ms" ? "ms" : "place in the log";
  return (
    <section aria-labelledby="processes" class="processes">
      <h2 id="processes">Processes</h2>
      <p class="tools">
        <label>
          Find{" "}
          <input
            type="search"
            value={wanted}
            placeholder="process, function"
            onInput={(event) => setWanted(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || found.length === 0) return;
              show(found[(found.findIndex(({ index }) => `${index}` === selected) + 1) % found.length]!);
            }}
          />
        </label>
        <span role="status">
          {wanted.trim() !== "" &&
            `${found.length.toLocaleString("en")} found${found.length > 0 ? "; Enter goes to the next" : ""}`}
        </span>
        {firstViolated && (
          <label>
            <input type="checkbox" checked={violated} onChange={(event) => setViolated(event.currentTarget.checked)} /> violated
            only
          </label>
        )}
      </p>
      <Figure
        title="Processes, and who has watched them"
        draw={draw}
        series={SERIES}
        says={says(history, lives, all.length)}
        columns={[
          "process",
          "spawned by",
          "function",
          `born (${unit})`,
          `ended (${unit})`,
          "reason",
          "monitor",
          "read by",
          "verdict",
          "violations",
        ]}
        rows={csv}
        beside={<List rows={rows} current={current} select={setSelected} toggle={toggle} />}
        below={current && <Details branch={current.branch} lives={lives} history={history} show={show} />}
      />
      {nobodys.length > 0 && (
        <>
          <h3>Monitors of no single process</h3>
          <Watches watches={nobodys} unit={history.unit} />
        </>
      )}
    </section>
  );
}

/** What it shows, and what it does not. */
function says(history: History, lives: Life[], rows: number) {
  const groups = history.groups.reduce((sum, [, , number]) => sum + number, 0);
  return [
    "Each bar is the life of a process, below the one that spawned it, and the line in it a monitor: from the beginning of its partition to when its verdict was told.",
    "A monitor of a group also reads the processes below that its file leaves to it. A bar without a dot at its end belongs to a process that was not seen to end.",
    `${count(lives.length, "process is", "processes are")} told one by one${groups > 0 ? `; ${groups.toLocaleString("en")} more, which came later, by their function and number only` : ""}.`,
    history.untold > 0 &&
      `${count(history.untold, "monitor of the summary is", "monitors of the summary are")} not among them${history.left_out > 0 ? `, with ${count(history.left_out, "violation", "violations")}` : ""}.`,
    history.unit === "place" && "The log has no times for all of them, so they stand at their places in it.",
    history.ended === null && "When monitors have reached their verdicts is not known of a log.",
    history.lost !== null &&
      `From ${short(history.lost / 1000)} s on births and ends are not known: there were too many to be told.`,
    rows > MOST && `Only the first ${MOST} of ${rows.toLocaleString("en")} rows are drawn: close some to see what follows.`,
  ]
    .filter(Boolean)
    .join(" ");
}

function drawing(
  rows: Row[],
  selected: string | undefined,
  { unit, from, to }: { unit: History["unit"]; from: number; to: number },
): Plot.PlotOptions {
  const scale = unit === "ms" ? 1000 : 1;
  const at = (time: number | null, otherwise: number) => (time ?? otherwise) / scale;
  const bars = rows.flatMap(({ branch: { key, lives } }) =>
    lives.length === 0
      ? []
      : [
          {
            key,
            many: lives.length > 1,
            x1:
              least(
                lives.map(({ born }) => born),
                from,
              ) / scale,
            x2: lives.reduce((last, { ended }) => Math.max(last, ended ?? to), from) / scale,
            ended: lives.every(({ ended }) => ended !== null),
          },
        ],
  );
  const watches = rows.flatMap(({ branch: { key, lives } }) =>
    lives.length > 1
      ? []
      : lives.flatMap((life) =>
          life.watches.map((watch) => ({
            key,
            kind: `monitor, ${watch.violations > 0 ? "violated" : watch.verdict}`,
            x1: at(life.born ?? watch.began, from),
            x2: at(watch.ended ?? life.ended, to),
          })),
        ),
  );
  const sums = rows
    .filter(
      ({ branch, open }) =>
        branch.violations > 0 &&
        (branch.lives.length !== 1 || !open) &&
        !watches.some(({ key, kind }) => key === branch.key && kind.endsWith("violated")),
    )
    .map(({ branch }) => ({ key: branch.key, violations: branch.violations }));
  return {
    height: HEAD + rows.length * ROW,
    marginTop: HEAD,
    marginBottom: 0,
    marginLeft: 8,
    marginRight: 44,
    x: {
      axis: "top",
      label: unit === "ms" ? "time (s)" : "place in the log",
      domain: [from / scale, to / scale],
      ticks: 5,
      tickFormat: short,
      grid: true,
    },
    y: { axis: null, domain: rows.map(({ branch }) => branch.key), padding: 0 },
    marks: [
      Plot.barX(
        rows.filter(({ branch }) => branch.key === selected).map(({ branch }) => ({ key: branch.key })),
        { y: "key", x1: from / scale, x2: to / scale, fill: "var(--raised)" },
      ),
      Plot.barX(
        bars.filter(({ many }) => many),
        { y: "key", x1: "x1", x2: "x2", fill: () => LIFE, fillOpacity: 0.35, insetTop: 5, insetBottom: 5 },
      ),
      Plot.barX(
        bars.filter(({ many }) => !many),
        { y: "key", x1: "x1", x2: "x2", fill: () => LIFE, fillOpacity: 0.7, insetTop: 8, insetBottom: 8 },
      ),
      Plot.dot(
        bars.filter(({ many, ended }) => !many && ended),
        { y: "key", x: "x2", fill: () => LIFE, symbol: () => LIFE, r: 3.5 },
      ),
      Plot.ruleY(watches, { y: "key", x1: "x1", x2: "x2", stroke: "kind", strokeWidth: 3 }),
      Plot.dot(watches, { y: "key", x: "x2", fill: "kind", symbol: "kind", r: 5 }),
      Plot.text(sums, {
        y: "key",
        frameAnchor: "right",
        dx: 40,
        textAnchor: "end",
        fill: "var(--bad)",
        fontWeight: 700,
        text: ({ violations }) => `✗ ${violations.toLocaleString("en")}`,
      }),
      Plot.tip(
        bars,
        Plot.pointerY({
          y: "key",
          x: "x2",
          fill: "var(--page)",
          stroke: "var(--line)",
          title: ({ key }: { key: string }) => told(rows.find(({ branch }) => branch.key === key)!.branch, unit),
        }),
      ),
    ],
  };
}

const when = (time: number, unit: History["unit"]) => (unit === "ms" ? `${short(time)} ms` : time.toLocaleString("en"));

function told({ text, note, lives }: Branch, unit: History["unit"]) {
  const [life] = lives;
  return lives.length === 1 && life
    ? `${text} ${note}\n${life.born === null ? "there before" : `born ${when(life.born, unit)}`}, ${life.ended === null ? "not seen to end" : `ended ${when(life.ended, unit)}`}`
    : text;
}

/** A tree to assistive technology: the arrow keys go through it, open and close. */
function List(props: {
  rows: Row[];
  current: Row | undefined;
  select: (key: string) => void;
  toggle: (row: Row, on: boolean) => void;
}) {
  const { rows, current, select, toggle } = props;
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  const at = current ? rows.indexOf(current) : -1;
  useEffect(() => {
    if (document.activeElement === list.current)
      list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [current?.branch.key]);
  const go = (to: number) => {
    const row = rows[Math.min(Math.max(to, 0), rows.length - 1)];
    if (row) select(row.branch.key);
  };
  const keys: Record<string, (row: Row) => void> = {
    ArrowDown: () => go(at + 1),
    ArrowUp: () => go(at - 1),
    Home: () => go(0),
    End: () => go(rows.length - 1),
    ArrowRight: (row) => (row.open === false ? toggle(row, true) : row.open && go(at + 1)),
    ArrowLeft: (row) => (row.open ? toggle(row, false) : row.parent !== null && select(row.parent)),
    Enter: (row) => row.open !== null && toggle(row, !row.open),
    " ": (row) => row.open !== null && toggle(row, !row.open),
  };
  return (
    <ul
      ref={list}
      role="tree"
      tabIndex={0}
      aria-label="Processes by who spawned them"
      class="tree"
      aria-activedescendant={current && `${id}-${at}`}
      onKeyDown={(event) => {
        const act = keys[event.key];
        if (!act || !current || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        act(current);
      }}
    >
      {rows.map((row, index) => (
        <li
          key={row.branch.key}
          id={`${id}-${index}`}
          role="treeitem"
          aria-level={row.level}
          aria-selected={row === current}
          aria-expanded={row.open ?? undefined}
          title={`${row.branch.text} ${row.branch.note}`}
          style={{ "--level": row.level }}
          onClick={() => (row === current && row.open !== null ? toggle(row, !row.open) : select(row.branch.key))}
        >
          <span
            class="sign"
            aria-hidden="true"
            onClick={(event) => {
              if (row.open === null) return;
              event.stopPropagation();
              toggle(row, !row.open);
            }}
          >
            {row.open === null ? "" : row.open ? "▾" : "▸"}
          </span>
          {row.branch.violations > 0 && (
            <span class="sum">
              ✗<span class="unseen"> {count(row.branch.violations, "violation", "violations")}, </span>
            </span>
          )}
          <b>{row.branch.text}</b> <span class="faint">{row.branch.note}</span>
        </li>
      ))}
    </ul>
  );
}

function Details({
  branch,
  lives,
  history: { unit },
  show,
}: {
  branch: Branch;
  lives: Life[];
  history: History;
  show: (life: Life) => void;
}) {
  const [life] = branch.lives;
  if (branch.lives.length !== 1 || !life)
    return (
      <div class="details" aria-live="polite">
        <p>
          <strong>{branch.text}</strong> {branch.note}
        </p>
        {branch.lives.length > 1 && (
          <p>
            {count(branch.lives.filter(({ ended }) => ended !== null).length, "has", "have")} ended;{" "}
            {count(branch.violations, "violation", "violations")} of them and of what they spawned.
          </p>
        )}
      </div>
    );
  const parent = life.parent === null ? undefined : lives[life.parent];
  return (
    <div class="details" aria-live="polite">
      <p>
        <strong>{life.name}</strong> <code>{life.function}</code>
        {parent && (
          <>
            , spawned by{" "}
            <button type="button" class="link" onClick={() => show(parent)}>
              {parent.name}
            </button>
          </>
        )}
      </p>
      <p>
        {life.born === null ? "There before the run" : `Born at ${when(life.born, unit)}`};{" "}
        {life.ended === null ? (
          "not seen to end"
        ) : (
          <>
            ended at {when(life.ended, unit)}, {life.reason === null ? "normally" : <code>{life.reason}</code>}
          </>
        )}
        ; {count(life.children.length, "child", "children")}.
      </p>
      {life.watches.length === 0 ? (
        <p class="faint">No monitor has begun with it.</p>
      ) : (
        <Watches watches={life.watches} unit={unit} />
      )}
    </div>
  );
}

function Watches({ watches, unit }: { watches: Watch[]; unit: History["unit"] }) {
  return (
    <ul>
      {watches.map(({ property, reader, began, ended, verdict, violations }) => (
        <li>
          <span class={violations > 0 ? "bad" : undefined}>{verdict}</span>: {property}
          {violations > 1 && `, ${count(violations, "violation", "violations")}`}
          {reader !== null && `, read by ${reader}`}
          {began !== null && `, begun by ${when(began, unit)}`}
          {ended !== null && `, told at ${when(ended, unit)}`}
        </li>
      ))}
    </ul>
  );
}
