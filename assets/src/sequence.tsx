import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { count, type Binding, type Explanation, type Lane, type Step } from "./data";

// Pixels from lane to lane: fewer where there are many lanes, or the screen is narrow.
const pitchOf = (lanes: number) =>
  matchMedia("(max-width: 40rem)").matches ? 84 : Math.min(124, Math.max(84, Math.round(520 / lanes)));
const MIDDLE = 16; // of a row, where the event stands
const ZOOMS = [0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3];
const WHOLE = ZOOMS.indexOf(1);

const parties = ({ own, from, to }: Step) => [own, from, to].filter((party) => party !== null);

/** What the arrow shows, in words. */
const who = ({ own, from, to }: Step, lanes: Lane[]) =>
  to === null ? lanes[own]?.name : `${from === null ? "unknown" : lanes[from]?.name} to ${lanes[to]?.name}`;

const passed = (deadline: string) => `the deadline has passed${deadline === "" ? "" : `, +${deadline}`}`;

/**
 * The events that led to a verdict as a sequence diagram. One of them is selected, and what the monitor knew after it
 * stands beside it. A list box to assistive technology: the arrow keys go from event to event.
 */
export function Sequence({ explanation, decided }: { explanation: Explanation; decided: number | null }) {
  const { lanes, steps, skipped } = explanation;
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());
  const [selected, setSelected] = useState(steps.at(-1)?.index);
  const [zoom, setZoom] = useState(WHOLE);
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  const rows = useMemo(() => steps.filter((step) => !parties(step).some((party) => hidden.has(party))), [steps, hidden]);
  const drawn = lanes.map((_, lane) => lane).filter((lane) => !hidden.has(lane));
  const pitch = pitchOf(drawn.length);
  const place = (lane: number) => pitch * (drawn.indexOf(lane) + 0.5);
  const current = rows.find(({ index }) => index === selected) ?? rows.at(-1);
  const at = current ? rows.indexOf(current) : -1;

  useEffect(() => {
    if (list.current?.contains(document.activeElement) || list.current === document.activeElement)
      document.getElementById(`${id}-${current?.index}`)?.scrollIntoView({ block: "nearest" });
  }, [current, id]);

  const go = (to: number) => {
    const step = rows[Math.min(Math.max(to, 0), rows.length - 1)];
    if (step) setSelected(step.index);
  };
  const zoomed = (to: number) => setZoom(Math.min(Math.max(to, 0), ZOOMS.length - 1));
  const keys: Record<string, () => void> = {
    ArrowDown: () => go(at + 1),
    ArrowUp: () => go(at - 1),
    Home: () => go(0),
    End: () => go(rows.length - 1),
    "+": () => zoomed(zoom + 1),
    "-": () => zoomed(zoom - 1),
    "0": () => zoomed(WHOLE),
  };
  const width = drawn.length * pitch;

  if (steps.length === 0) return <Decision explanation={explanation} />;
  return (
    <div class="sequence" style={{ "--lanes": `${width}px` }}>
      {lanes.length > 2 && (
        <fieldset class="tools">
          <legend>Processes</legend>
          {lanes.map((lane, index) => (
            <label key={index}>
              <input
                type="checkbox"
                checked={!hidden.has(index)}
                onChange={(event) => {
                  const next = new Set(hidden);
                  if (event.currentTarget.checked) next.delete(index);
                  else next.add(index);
                  setHidden(next);
                }}
              />
              {lane.name}
            </label>
          ))}
          <span role="status">
            {rows.length < steps.length && `${rows.length} of ${count(steps.length, "event", "events")} shown`}
          </span>
        </fieldset>
      )}
      {skipped > 0 && <p class="faint">{count(skipped, "earlier event is not shown", "earlier events are not shown")}.</p>}
      <p class="tools zoom">
        <button type="button" disabled={zoom === 0} onClick={() => zoomed(zoom - 1)}>
          Zoom out
        </button>
        <button type="button" disabled={zoom === ZOOMS.length - 1} onClick={() => zoomed(zoom + 1)}>
          Zoom in
        </button>
        <button type="button" disabled={zoom === WHOLE} onClick={() => zoomed(WHOLE)}>
          Reset zoom
        </button>
        <span role="status">{Math.round(ZOOMS[zoom]! * 100)} %</span>
      </p>
      <div class="panes" style={{ "--zoom": ZOOMS[zoom] }}>
        <div class="scroll chart" tabIndex={-1}>
          <div class="row heading" aria-hidden="true">
            <span class="index" />
            <span class="lanes">
              {drawn.map((lane) => (
                <span class="lane" style={{ width: `${pitch}px` }} key={lane}>
                  <b>{lanes[lane]?.name}</b>
                  {lanes[lane]?.title}
                </span>
              ))}
            </span>
            <span class="text" />
          </div>
          <ul
            ref={list}
            role="listbox"
            tabIndex={0}
            aria-label="Events that led to the verdict"
            aria-activedescendant={current && `${id}-${current.index}`}
            onKeyDown={(event) => {
              const does = keys[event.key];
              if (!does || event.ctrlKey || event.altKey || event.metaKey) return;
              event.preventDefault();
              does();
            }}
          >
            {rows.map((step) => (
              <li
                key={step.index}
                id={`${id}-${step.index}`}
                role="option"
                aria-selected={step === current}
                class={step.index === decided ? "row decided" : "row"}
                onClick={() => setSelected(step.index)}
              >
                <span class="index">
                  {step.index === decided && <b>⇒ </b>}
                  {step.index}
                </span>
                <span class="lanes">
                  <Arrow step={step} places={drawn.map(place)} place={place} width={width} />
                </span>
                <span class="unseen">
                  {step.index === decided && "decided here, "}
                  {who(step, lanes)}:
                </span>
                <span class="text">
                  {step.time && <span class="faint">+{step.time} </span>}
                  {step.text}
                </span>
              </li>
            ))}
          </ul>
          {explanation.ended && <p class="row decided end">⇒ end: no event followed</p>}
          {explanation.deadline !== null && <p class="row decided end">⇒ {passed(explanation.deadline)}</p>}
        </div>
        <div class="known">
          <p class="tools">
            <button type="button" disabled={at <= 0} onClick={() => go(at - 1)}>
              Previous
            </button>
            <button type="button" disabled={at < 0 || at >= rows.length - 1} onClick={() => go(at + 1)}>
              Next
            </button>
            <span>{current && `Event ${current.index}`}</span>
          </p>
          {current && <Known step={current} decides={current.index === decided} explanation={explanation} />}
          {(explanation.ended || explanation.deadline !== null) && (
            <>
              <h4>
                Decided by {explanation.deadline === null ? "the end: no event followed" : `time: ${passed(explanation.deadline)}`}
              </h4>
              <Decision explanation={explanation} />
            </>
          )}
        </div>
      </div>
    </div>
  );
}

/** Lanes with what happens between them. A message whose sender has no lane comes from nowhere, such as a timer. */
function Arrow(props: { step: Step; places: number[]; place: (lane: number) => number; width: number }) {
  const { step, places, place, width } = props;
  const own = place(step.own);
  const to = step.to === null ? null : place(step.to);
  const from = step.from === null ? (to === null ? null : to - 34) : place(step.from);
  const arrow = from !== null && to !== null && from !== to;
  const side = arrow && from < to ? -1 : 1;
  return (
    <svg width={width} height="100%" aria-hidden="true">
      {places.map((x) => (
        <line class="life" x1={x} x2={x} y1="0" y2="100%" key={x} />
      ))}
      {arrow && (
        <>
          <line class="arrow" x1={from} x2={to + 7 * side} y1={MIDDLE} y2={MIDDLE} />
          <path class="head" d={`M${to} ${MIDDLE}l${10 * side} -5v10z`} />
        </>
      )}
      {step.ends ? (
        <path class="arrow" d={`M${own - 6} ${MIDDLE - 6}l12 12m0 -12l-12 12`} />
      ) : (
        (!arrow || own !== to) && <circle class="head" cx={own} cy={MIDDLE} r="4.5" />
      )}
    </svg>
  );
}

function Known({ step, decides, explanation }: { step: Step; decides: boolean; explanation: Explanation }) {
  return (
    <div aria-live="polite">
      <h4>{decides ? "Decided by" : "Event"}</h4>
      <p>
        <code>{step.event}</code>
      </p>
      {decides ? (
        <Decision explanation={explanation} />
      ) : (
        <>
          <Bindings bindings={step.bindings} />
          {step.formula !== null && (
            <>
              <h4>Then to hold</h4>
              <p>
                <code>{step.formula}</code>
              </p>
            </>
          )}
        </>
      )}
    </div>
  );
}

function Decision({ explanation: { bindings, says } }: { explanation: Explanation }) {
  return (
    <>
      <Bindings bindings={bindings} />
      {says !== null && (
        <>
          <h4>The monitor says</h4>
          <p>
            <code>{says}</code>
          </p>
        </>
      )}
    </>
  );
}

function Bindings({ bindings }: { bindings: Binding[] }) {
  if (bindings.length === 0) return null;
  return (
    <>
      <h4>With</h4>
      <dl class="bindings">
        {bindings.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>
              <code>{value}</code>
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
