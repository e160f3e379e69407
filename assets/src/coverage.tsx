import { count, type Action, type Report } from "./data";

// An action that violates by itself should never come, so that it never came is no lack.
const missing = ({ taken, decides }: Action) => !taken && decides !== "no";

export function Coverage({ report }: { report: Report }) {
  return (
    <section aria-labelledby="coverage">
      <h2 id="coverage">Coverage of the specifications</h2>
      <p class="faint">What never happened was not tested.</p>
      {report.coverage.map(({ spec, name, actions }) => {
        const lacking = actions.filter(missing).length;
        return (
          <details>
            <summary>
              <strong>{name ?? spec}</strong> {name && <span class="faint">{spec}</span>}{" "}
              <span class={lacking ? "doubtful" : "faint"}>
                {lacking ? count(lacking, "action never taken", "actions never taken") : "nothing is missing"}
              </span>
            </summary>
            <div class="scroll" tabIndex={0} role="region" aria-label={`Actions of ${name ?? spec}`}>
              <table>
                <thead>
                  <tr>
                    <th scope="col">Place</th>
                    <th scope="col">Action</th>
                    <th scope="col">Taken</th>
                  </tr>
                </thead>
                <tbody>
                  {actions.map((action) => (
                    <tr>
                      <td>
                        {action.line}:{action.column}
                      </td>
                      <td>
                        <code>{action.text}</code>
                      </td>
                      <td class={missing(action) ? "doubtful" : undefined}>
                        {action.taken ? "yes" : action.decides === "no" ? "no (a violation)" : "never"}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </details>
        );
      })}
    </section>
  );
}
