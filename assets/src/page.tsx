import type { Report } from "./data";
import { Course } from "./course";
import { Coverage } from "./coverage";
import { Processes } from "./tree";
import { Properties } from "./violations";

const kinds = ["good", "bad", "doubtful", "doubtful"] as const;

export function Page({ report }: { report: Report }) {
  return (
    <>
      <header class={`verdict ${kinds[report.code]}`}>
        <h1>{report.sentence}</h1>
        <p>
          <code>{report.subject}</code>
        </p>
        <p class="faint">
          <time dateTime={report.time}>{new Date(report.time).toLocaleString()}</time>, {report.version}
        </p>
      </header>
      <main>
        <section aria-labelledby="summary">
          <h2 id="summary">Summary</h2>
          <Facts facts={report.facts} />
          {report.warnings.map((lines) => (
            <p class="warning">
              <strong>Warning: </strong>
              {lines.length === 1 ? lines[0] : <pre tabIndex={0}>{lines.join("\n")}</pre>}
            </p>
          ))}
        </section>
        {report.properties.length > 0 && <Properties report={report} />}
        {report.coverage.length > 0 && <Coverage report={report} />}
        {report.history ? (
          <>
            <Processes history={report.history} />
            <Course history={report.history} />
          </>
        ) : (
          <p class="faint">
            How the run went, and which processes there were, is not known here: it was lost with what was observed.
          </p>
        )}
      </main>
    </>
  );
}

/** Rows whose label is empty go on with the row before. */
function Facts({ facts }: { facts: Report["facts"] }) {
  const rows: { label: string; texts: string[] }[] = [];
  for (const [label, text] of facts) {
    const last = rows.at(-1);
    if (label === "" && last) last.texts.push(text);
    else rows.push({ label, texts: [text] });
  }
  return (
    <dl class="facts">
      {rows.map(({ label, texts }) => (
        <div>
          <dt>{label}</dt>
          {texts.map((text) => (
            <dd>{text}</dd>
          ))}
        </div>
      ))}
    </dl>
  );
}
