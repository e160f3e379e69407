// The tree of processes as rows: what many have in common stands in one row until it is opened.

import { count, type History } from "./data";

const ALIKE = 4; // siblings of the same function that are told in one row
const PAGE = 50;
const OPENED = 24; // rows that are shown to begin with
export const MOST = 300; // rows that are drawn at a time

export type Verdict = "violated" | "satisfied" | "undecided";
export interface Watch {
  property: string;
  reader: string | null;
  began: number | null;
  ended: number | null;
  verdict: Verdict;
  violations: number;
}
export interface Life {
  index: number;
  name: string;
  parent: number | null;
  function: string;
  born: number | null;
  ended: number | null;
  reason: string | null;
  watches: Watch[];
  children: number[];
  /** Of it and of all below it: how many they are, violations, and whether anything was seen. */
  size: number;
  violations: number;
  seen: boolean;
}

/** A process, several that are alike, or those that are told by their number only. */
export interface Branch {
  key: string;
  text: string;
  note: string;
  lives: Life[];
  violations: number;
  branches: () => Branch[];
}
export interface Row {
  branch: Branch;
  level: number;
  open: boolean | null;
  parent: string | null;
}

export interface Lives {
  lives: Life[];
  roots: Branch[];
  nobodys: Watch[];
  from: number;
  to: number;
}

const verdicts: Record<string, Verdict> = { no: "violated", yes: "satisfied", inconclusive: "undecided" };

export function read(history: History): Lives {
  const name = (number: number) => history.names[number] ?? "";
  const lives: Life[] = history.processes.map(([text, parent, called, born, ended, reason], index) => ({
    index,
    name: text,
    parent,
    function: name(called),
    born,
    ended,
    reason: reason === null ? null : name(reason),
    watches: [],
    children: [],
    size: 1,
    violations: 0,
    seen: born !== null || ended !== null,
  }));
  const nobodys: Watch[] = [];
  for (const [process, property, reader, began, ended, verdict, violations] of history.monitors) {
    const watch = {
      property: history.properties[property] ?? "",
      reader,
      began,
      ended,
      verdict: verdicts[verdict ?? ""] ?? "undecided",
      violations,
    };
    const life = process === null ? undefined : lives[process];
    if (!life) nobodys.push(watch);
    else {
      life.watches.push(watch);
      life.violations += violations;
      life.seen = true;
    }
  }
  for (const life of lives) if (life.parent !== null) lives[life.parent]?.children.push(life.index);
  // From the first ones on; what a damaged log has in a circle comes last.
  const order: Life[] = [];
  const reached = new Set<number>();
  const reach = (from: Life) => {
    const waiting = [from];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      if (reached.has(next.index)) continue;
      reached.add(next.index);
      order.push(next);
      for (const child of next.children) waiting.push(lives[child]!);
    }
  };
  lives.filter(({ parent }) => parent === null).forEach(reach);
  for (const life of lives)
    if (!reached.has(life.index)) {
      life.parent = null;
      reach(life);
    }
  for (const life of lives) life.children = life.children.filter((child) => lives[child]!.parent === life.index);
  for (const life of order.toReversed()) {
    const parent = life.parent === null ? undefined : lives[life.parent];
    if (!parent) continue;
    parent.size += life.size;
    parent.violations += life.violations;
    parent.seen ||= life.seen;
  }
  const times = [
    ...lives.flatMap(({ born, ended }) => [born, ended]),
    ...history.monitors.flatMap(([, , , began, ended]) => [began, ended]),
  ].filter((time) => time !== null);
  const from = history.unit === "ms" ? 0 : Math.min(0, ...times.slice(0, 1));
  const to = times.reduce((most, time) => Math.max(most, time), history.ended ?? from + 1);
  const below = (parent: number | null, children: Life[]) => [
    ...grouped(children, lives, below),
    ...history.groups
      .filter(([of]) => of === parent)
      .map(([of, called, number, ended], index): Branch => ({
        key: `left ${of} ${index}`,
        text: `${name(called)} × ${number.toLocaleString("en")}`,
        lives: [],
        violations: 0,
        note: `not told one by one; ${count(ended, "has", "have")} ended`,
        branches: () => [],
      })),
  ];
  return {
    lives,
    nobodys,
    from,
    to,
    roots: below(
      null,
      lives.filter(({ parent }) => parent === null),
    ),
  };
}

type Below = (parent: number, children: Life[]) => Branch[];

function grouped(children: Life[], lives: Life[], below: Below): Branch[] {
  const alike = new Map<string, Life[]>();
  for (const life of children)
    if (life.seen) {
      const of = alike.get(life.function);
      if (of) of.push(life);
      else alike.set(life.function, [life]);
    }
  const idle = children.filter(({ seen }) => !seen);
  return [
    ...[...alike].flatMap(([called, of]): Branch[] =>
      of.length < ALIKE
        ? of.map((life) => single(life, lives, below))
        : [
            {
              key: `like ${of[0]!.index}`,
              text: `${called} × ${of.length.toLocaleString("en")}`,
              note: "",
              lives: of,
              violations: of.reduce((sum, { violations }) => sum + violations, 0),
              // Those first for which one looks.
              branches: () =>
                pages(
                  [...of].sort((a, b) => Math.sign(b.violations) - Math.sign(a.violations)),
                  lives,
                  below,
                ),
            },
          ],
    ),
    ...(idle.length === 0
      ? []
      : [
          {
            key: `idle ${idle[0]!.index}`,
            text: count(
              idle.reduce((sum, { size }) => sum + size, 0),
              "other process",
              "other processes",
            ),
            note: "there before, and nothing was seen of them",
            lives: [],
            violations: 0,
            branches: () => pages(idle, lives, below),
          },
        ]),
  ];
}

const pages = (of: Life[], lives: Life[], below: Below): Branch[] => [
  ...of.slice(0, PAGE).map((life) => single(life, lives, below)),
  ...(of.length > PAGE
    ? [
        {
          key: `more ${of[PAGE]!.index}`,
          text: `${(of.length - PAGE).toLocaleString("en")} more`,
          note: "",
          lives: of.slice(PAGE),
          violations: of.slice(PAGE).reduce((sum, { violations }) => sum + violations, 0),
          branches: () => pages(of.slice(PAGE), lives, below),
        },
      ]
    : []),
];

const single = (life: Life, lives: Life[], below: Below): Branch => ({
  key: `${life.index}`,
  text: life.name,
  note: life.function,
  lives: [life],
  violations: life.violations,
  branches: () =>
    below(
      life.index,
      life.children.map((child) => lives[child]!),
    ),
});

/** What is open to begin with: the way to the first violation, and others as long as there is room. */
export function opened({ roots, lives }: Lives): Set<string> {
  const open = new Set<string>();
  const first = lives.find(({ watches }) => watches.some(({ violations }) => violations > 0));
  if (first) for (const key of pathTo(first, lives, roots)) open.add(key);
  let rows = roots.length;
  for (const level = [...roots]; level.length > 0;) {
    const branch = level.shift()!;
    if (/^(idle|more|like)/.test(branch.key) && !open.has(branch.key)) continue;
    const branches = branch.branches();
    if (branches.length === 0 || (rows + branches.length > OPENED && !open.has(branch.key))) continue;
    open.add(branch.key);
    rows += branches.length;
    level.push(...branches);
  }
  return open;
}

/** The branches that have to be open for a process to be seen. */
export function pathTo(life: Life, lives: Life[], roots: Branch[]): string[] {
  const way = [life];
  for (let next = life; next.parent !== null;) way.unshift((next = lives[next.parent]!));
  const keys: string[] = [];
  let level = roots;
  for (const next of way) {
    const own = `${next.index}`;
    for (let found = level.find(({ key }) => key === own); !found; found = level.find(({ key }) => key === own)) {
      const holder = level.find((branch) => branch.lives.includes(next)) ?? level.find(({ key }) => key.startsWith("idle"));
      if (!holder || keys.includes(holder.key)) return keys;
      keys.push(holder.key);
      level = holder.branches();
    }
    if (next !== life) keys.push(own);
    level = level.find(({ key }) => key === own)!.branches();
  }
  return keys;
}

export function visible(roots: Branch[], open: ReadonlySet<string>, violated: boolean): Row[] {
  const rows: Row[] = [];
  const add = (branches: Branch[], level: number, parent: string | null) => {
    for (const branch of branches) {
      if (violated && branch.violations === 0) continue;
      const below = branch.branches().filter(({ violations }) => !violated || violations > 0);
      const isOpen = below.length === 0 ? null : open.has(branch.key);
      rows.push({ branch, level, open: isOpen, parent });
      if (isOpen && rows.length <= MOST) add(below, level + 1, branch.key);
    }
  };
  add(roots, 1, null);
  return rows;
}
