// What `witness_web_data` writes. All of it is text for people, cut and free of control characters.

export type Binding = [name: string, value: string];

export interface Lane {
  name: string;
  /** Its registered name, its label, or the module that it was spawned with. */
  title: string | null;
}

/** An event: in whose lane it stands, and, of a message, between which lanes it goes. */
export interface Step {
  index: number;
  /** How long after the first event that is shown; empty if that is not known. */
  time: string;
  own: number;
  from: number | null;
  to: number | null;
  ends: boolean;
  text: string;
  event: string;
  formula: string | null;
  bindings: Binding[];
}

export interface Explanation {
  skipped: number;
  /** Decided by the end of the trace, not by an event. */
  ended: boolean;
  /** How long after the first step the deadline was that decided. Empty if that is not known, null if none did. */
  deadline: string | null;
  lanes: Lane[];
  steps: Step[];
  bindings: Binding[];
  says: string | null;
}

export interface Violation {
  process: string | null;
  signature: string | null;
  slice: Binding[];
  log: string | null;
  /** What a check says more of it, in lines. */
  note: string | null;
  index: number | null;
  event: string | null;
  explanation?: Explanation;
}

export interface Place {
  file: string | null;
  line: number | null;
  column: number | null;
  says: string;
  action: string;
  marked: [before: string, action: string, after: string] | null;
  function: string | null;
  count: number;
  violations: Violation[];
}

export interface Property {
  spec: string;
  name: string | null;
  count: number;
  places: Place[];
}

export interface Action {
  line: number;
  column: number;
  text: string;
  decides: "no" | "yes" | null;
  taken: boolean;
}

export interface Report {
  code: 0 | 1 | 2 | 3;
  sentence: string;
  subject: string;
  time: string;
  version: string;
  facts: [label: string, text: string][];
  violations: number;
  warnings: string[][];
  coverage: { spec: string; name: string | null; actions: Action[] }[];
  sources: { file: string; cut: boolean; lines: string[] }[];
  properties: Property[];
  history: History | null;
}

/** Times are in `unit`; names, properties and processes are meant by their numbers. */
export interface History {
  unit: "ms" | "place";
  names: string[];
  properties: string[];
  processes: [
    name: string,
    parent: number | null,
    called: number,
    born: number | null,
    ended: number | null,
    reason: number | null,
  ][];
  /** Processes that are told by their number only. */
  groups: [parent: number | null, called: number, count: number, ended: number][];
  monitors: [
    process: number | null,
    property: number,
    reader: string | null,
    began: number | null,
    ended: number | null,
    verdict: "no" | "yes" | "inconclusive" | null,
    violations: number,
  ][];
  /** Monitors that are not here, and violations of monitors or processes that are not. */
  untold: number;
  left_out: number;
  ended: number | null;
  lost: number | null;
  course: { columns: string[]; rows: [ms: number, ...values: number[]][] };
}

export const count = (number: number, one: string, many: string) =>
  number === 1 ? `1 ${one}` : `${number.toLocaleString("en")} ${many}`;
