import { useMemo, useState } from "preact/hooks";
import { count, type Place, type Property, type Report, type Violation } from "./data";
import { Sequence } from "./sequence";
import { Source } from "./source";

const PAGE = 50;

export function Properties({ report }: { report: Report }) {
  return (
    <section aria-labelledby="violations">
      <h2 id="violations">{count(report.violations, "violation", "violations")}</h2>
      {report.properties.map((property, index) => (
        <PropertyOf report={report} property={property} first={index === 0} />
      ))}
    </section>
  );
}

function PropertyOf({ report, property, first }: { report: Report; property: Property; first: boolean }) {
  return (
    <section class="property" aria-label={`Violations of ${property.name ?? property.spec}`}>
      <h3>
        {property.name ?? property.spec} {property.name && <span class="faint">{property.spec}</span>}
        <span class="count">{property.count.toLocaleString("en")}</span>
      </h3>
      {property.places.map((place, index) => (
        <PlaceOf report={report} property={property} place={place} first={first && index === 0} />
      ))}
    </section>
  );
}

function PlaceOf(props: { report: Report; property: Property; place: Place; first: boolean }) {
  const { report, property, place } = props;
  const [open, setOpen] = useState(props.first);
  return (
    <details class="place" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {place.line !== null && <span class="faint">line {place.line}: </span>}
        {place.says}
        {place.action !== "" && (
          <>
            : <code>{place.action}</code>
          </>
        )}
        {place.function !== null && (
          <span class="faint">
            {" "}
            in <code>{place.function}</code>
          </span>
        )}
        <span class="count">{place.count.toLocaleString("en")}</span>
      </summary>
      {open && (
        <>
          <Source report={report} property={property} place={place} />
          <List place={place} first={props.first} />
        </>
      )}
    </details>
  );
}

const words = ({ process, signature, log, note, event, slice }: Violation) =>
  [process, signature, log, note, event, ...slice.flat()].join(" ").toLowerCase();

/** The violations of a place, a page at a time: a browser draws thousands slowly, and nobody reads them. */
function List({ place, first }: { place: Place; first: boolean }) {
  const [wanted, setWanted] = useState("");
  const [shown, setShown] = useState(PAGE);
  const found = useMemo(() => {
    const word = wanted.trim().toLowerCase();
    return word === "" ? place.violations : place.violations.filter((violation) => words(violation).includes(word));
  }, [place, wanted]);
  const kept = place.violations.length;
  const explained = place.violations.filter(({ explanation }) => explanation).length;
  return (
    <>
      {kept > 1 && (
        <p class="tools">
          <label>
            Find{" "}
            <input
              type="search"
              value={wanted}
              placeholder="process, value, message"
              onInput={(event) => {
                setWanted(event.currentTarget.value);
                setShown(PAGE);
              }}
            />
          </label>{" "}
          <span role="status">{wanted.trim() !== "" && `${found.length.toLocaleString("en")} found`}</span>
        </p>
      )}
      {explained < place.count && (
        <p class="faint">
          Left out for size: the explanations of all but the first {explained.toLocaleString("en")}
          {kept < place.count && <>, and {count(place.count - kept, "violation", "violations")} altogether</>}.
        </p>
      )}
      <ol class="violations">
        {found.slice(0, shown).map((violation) => (
          <li key={place.violations.indexOf(violation)}>
            <ViolationOf violation={violation} first={first && violation === place.violations[0]} />
          </li>
        ))}
      </ol>
      {found.length > shown && (
        <p>
          <button type="button" onClick={() => setShown(shown + PAGE)}>
            Show {Math.min(PAGE, found.length - shown)} more of {(found.length - shown).toLocaleString("en")}
          </button>
        </p>
      )}
    </>
  );
}

function Head({ violation }: { violation: Violation }) {
  const { process, signature, slice, log, note, event } = violation;
  return (
    <>
      {process !== null && <strong>{process}</strong>} {signature !== null && <code>{signature}</code>}
      {slice.map(([name, value]) => (
        <span class="slice">
          {name} = <code>{value}</code>
        </span>
      ))}
      {log !== null && <span class="faint"> at {log}</span>}
      {note !== null && <span class="note">{note}</span>}
      {event !== null && (
        <span class="event">
          <code>{event}</code>
        </span>
      )}
    </>
  );
}

function ViolationOf({ violation, first }: { violation: Violation; first: boolean }) {
  const [open, setOpen] = useState(first);
  if (!violation.explanation) {
    return (
      <div class="violation brief">
        <Head violation={violation} />
      </div>
    );
  }
  return (
    <details class="violation" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Head violation={violation} />
      </summary>
      {open && (
        <Sequence explanation={violation.explanation} decided={violation.explanation.deadline === null ? violation.index : null} />
      )}
    </details>
  );
}
