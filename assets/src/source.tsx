import { useState } from "preact/hooks";
import type { Place, Property, Report } from "./data";

const AFTER = 2;

const lineOf = (spec: string) => Number(spec.slice(spec.lastIndexOf(":") + 1)) || 1;

/** The specification from where its property begins to the action that decided, or all of it. */
export function Source({ report, property, place }: { report: Report; property: Property; place: Place }) {
  const [whole, setWhole] = useState(false);
  const { file, line, column, marked } = place;
  if (file === null || line === null || marked === null) return null;
  const source = report.sources.find((source) => source.file === file);
  const lines = source?.lines ?? [];
  const begin = whole ? 1 : Math.min(lineOf(property.spec), line);
  const end = Math.min(Math.max(lines.length, line), whole ? Infinity : line + AFTER);
  const numbers = Array.from({ length: end - begin + 1 }, (_, index) => begin + index);
  return (
    <figure class="source">
      <figcaption>
        {file}:{line}
        {column !== null && `:${column}`}
        {lines.length > AFTER && (
          <button type="button" aria-pressed={whole} onClick={() => setWhole(!whole)}>
            Whole file
          </button>
        )}
        {whole && source?.cut && <span class="faint"> its first part: it is large</span>}
      </figcaption>
      <pre tabIndex={0} aria-label={`Source of ${file}`}>
        {numbers.map((number) => (
          <span class={number === line ? "line decided" : "line"} key={number}>
            <span class="number" aria-hidden="true">
              {number}
            </span>
            <span>{number === line ? <Marked pieces={marked} /> : lines[number - 1]}</span>
          </span>
        ))}
      </pre>
    </figure>
  );
}

/** An action that goes on over several lines is marked to the end of its first. */
function Marked({ pieces: [before, action, after] }: { pieces: [string, string, string] }) {
  const [text, rest] = action === "" ? [after, ""] : [action, after];
  return (
    <>
      {before}
      <mark>{text}</mark>
      {rest}
    </>
  );
}
