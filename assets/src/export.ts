// Figures as files: what is drawn as SVG, and the numbers behind it as CSV (RFC 4180).

export type Cell = string | number | null;

export function save(name: string, type: string, text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const fileName = (title: string, ending: string) =>
  `${title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")}.${ending}`;

// A spreadsheet takes a text that begins like this for a formula.
const field = (cell: Cell) => {
  const text = cell === null ? "" : typeof cell === "string" && /^[=+\-@]/.test(cell) ? `'${cell}` : String(cell);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export const csv = (columns: string[], rows: Cell[][]) =>
  [columns, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";

/**
 * The drawing by itself: with its title and its legend, and with the colours of a light page, since what stands in the
 * style of this page does not go with it.
 */
export function svg(chart: SVGElement, title: string, series: { name: string; color: string }[]) {
  const own = chart.cloneNode(true) as SVGElement;
  for (const tip of own.querySelectorAll("[aria-label=tip], .tip")) tip.remove();
  const width = Number(chart.getAttribute("width"));
  const height = Number(chart.getAttribute("height"));
  const probe = document.body.appendChild(document.createElement("span"));
  document.documentElement.classList.add("light");
  const resolve = (color: string) => {
    probe.style.color = color;
    return getComputedStyle(probe).color;
  };
  for (const element of [own, ...own.querySelectorAll("*")])
    for (const { name, value } of [...element.attributes]) if (value.startsWith("var(")) element.setAttribute(name, resolve(value));
  const colors = series.map(({ color }) => resolve(color));
  const [text, page] = [resolve("var(--text)"), resolve("var(--page)")];
  probe.remove();
  document.documentElement.classList.remove("light");

  const root = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const add = (element: string, attributes: Record<string, string | number>, content = "") => {
    const child = root.appendChild(document.createElementNS(root.namespaceURI!, element));
    for (const [name, value] of Object.entries(attributes)) child.setAttribute(name, String(value));
    child.textContent = content;
  };
  const head = 30 + (series.length > 1 ? 18 * series.length : 0);
  for (const [name, value] of Object.entries({
    width,
    height: height + head,
    viewBox: `0 0 ${width} ${height + head}`,
    color: text,
    fill: text,
    "font-family": "system-ui, sans-serif",
    "font-size": 12,
  }))
    root.setAttribute(name, String(value));
  add("rect", { width: "100%", height: "100%", fill: page });
  add("text", { x: 10, y: 20, "font-weight": "bold" }, title);
  if (series.length > 1)
    series.forEach(({ name }, index) => {
      add("rect", { x: 10, y: 31 + 18 * index, width: 12, height: 12, fill: colors[index] ?? text });
      add("text", { x: 28, y: 41 + 18 * index }, name);
    });
  own.setAttribute("y", String(head));
  root.append(own);
  return new XMLSerializer().serializeToString(root);
}
