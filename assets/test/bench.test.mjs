// Reports of real benchmarks, in a real Chromium.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { accessible, close, launch, looks, open, picture, test, witness, work } from "../testing.mjs";

const about = "what </script><script>alert(1)</script> <img src=x onerror=alert(2)> costs";
const modes = ["untraced", "inline, none", "inline, sequence"];
const folder = join(work, "tiny");

before(launch);
after(close);
before(() => {
  const experiment = join(work, "tiny.json");
  writeFileSync(
    experiment,
    JSON.stringify({
      name: "tiny",
      about,
      model: { w: 20, t: 4, period_ms: 75 },
      modes: ["untraced", "inline"],
      analyses: ["none", "sequence"],
      shapes: ["steady", "burst"],
      steps: [40, 80],
      repetitions: 1,
      warmup: 0,
      interval_ms: 30,
      papers: "high",
    }),
  );
  witness(0, "bench", experiment, "-o", folder);
});

function report(into, ...words) {
  witness(0, "report", ...words, "-o", join(work, into));
  const file = join(work, into, "report.html");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  return file;
}

/** Every figure has its marks, and none of them stands at what is no number. */
async function drawn(page, titles = usual) {
  await page.locator("details.more > summary").click();
  await page.waitForFunction(
    () => document.querySelectorAll(".drawing > svg").length === document.querySelectorAll("figure.figure").length,
  );
  const found = await page.evaluate(() =>
    [...document.querySelectorAll("figure.figure")].map((figure) => ({
      title: figure.querySelector("h3").textContent,
      name: figure.querySelector(".drawing > svg[role=img]").getAttribute("aria-labelledby") === figure.querySelector("h3").id,
      marks: figure.querySelectorAll(".line path, .dot path, .rect rect, .bar rect").length,
      wrong: /NaN|undefined|Infinity/.test(figure.querySelector(".drawing").innerHTML),
    })),
  );
  for (const title of titles) {
    const figure = found.find((figure) => figure.title === title);
    assert.ok(figure && figure.name && figure.marks > 0 && !figure.wrong, `${title}: ${JSON.stringify(figure)}`);
  }
}

const usual = [
  "Load shapes",
  "Mean response time",
  "Memory",
  "Scheduler utilisation",
  "Duration",
  "Instrumentation against monitoring",
  "How far monitors fall behind",
  "Median response time",
  "Response time, 99th percentile",
  "Peak memory",
  "Time until all monitors are done",
  "Processor time",
  "Lag of creation",
  "Messages over time",
  "Memory over time",
  "Scheduler utilisation over time",
  "Load of each scheduler",
  "Distribution of response times",
  "Mean response time of the untraced system",
];

test("what a benchmark has measured is drawn", async () => {
  const file = report("tiny-report", folder);
  for (const [name, look] of Object.entries(looks)) {
    await open(file, look, async (page) => {
      assert.match(await page.textContent("h1"), /^SOUND: in all 12 benchmarks/);
      assert.ok((await page.textContent(".verdict")).includes(about));
      assert.equal(await page.locator("img, script:not([type])").count(), 0);
      await drawn(page);
      const rows = page.getByRole("region", { name: "Overhead at maximal load" }).locator("tbody tr");
      assert.equal(await rows.count(), 2 * modes.length);
      assert.match(await rows.nth(0).textContent(), /^steady80untraced\d/);
      assert.match(await rows.nth(5).textContent(), /^burst80inline, sequence[+\u2212]?\d/);
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
      await page.waitForFunction(
        () => document.querySelectorAll(".numbers table").length === document.querySelectorAll(".numbers").length,
      );
      assert.equal(await page.getByRole("region", { name: "Runs", exact: true }).locator("tbody tr").count(), 12);
      const width = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(width <= 0, `the page is ${width} pixels too wide`);
      await accessible(page);
      await picture(page, `bench-${name}`);
    });
  }
  await open(file, looks.dark, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.ok(!(await page.getByRole("button", { name: "SVG of Memory", exact: true }).isVisible()));
    await picture(page, "bench-print");
    assert.ok((await page.pdf()).length > 50_000);
  });
});

test("figures are saved as SVG and CSV", async () => {
  const file = report("tiny-files", folder);
  await open(file, looks.dark, async (page, wrong) => {
    const saved = async (button) => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: button, exact: true }).click(),
      ]);
      return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
    };
    await page.getByRole("img", { name: "Memory", exact: true }).waitFor();
    const svg = await saved("SVG of Memory");
    assert.equal(svg.name, "memory.svg");
    assert.doesNotMatch(svg.text, /var\(|<style|<script/);
    // The page is dark, what is saved is not.
    assert.match(svg.text, /<rect[^>]* fill="rgb\(255, 255, 255\)"/);
    for (const mode of modes) assert.ok(svg.text.includes(`>${mode}</text>`));
    const load = (await saved("CSV of Load of each scheduler")).text.trimEnd().split("\r\n");
    assert.equal(load[0], "load,mode,scheduler,from (s),to (s),utilisation (%)");
    const numbers = load.slice(1).map((line) => line.split(",").slice(-4).map(Number));
    assert.ok(new Set(numbers.map(([scheduler]) => scheduler)).size > 1);
    for (const [, from, to, percent] of numbers) assert.ok(from < to && percent >= 0 && percent <= 100, [from, to, percent].join());
    const csv = await saved("CSV of Memory");
    assert.equal(csv.name, "memory.csv");
    const lines = csv.text.trimEnd().split("\r\n");
    assert.equal(lines[0], "load,members,mode,median (MiB),least (MiB),largest (MiB)");
    assert.equal(lines.length, 1 + 2 * 2 * modes.length);
    assert.match(lines[2], /^steady,40,"inline, none",\d+\.\d+,/);
    // A picture by itself opens without the page.
    const alone = join(work, svg.name);
    writeFileSync(alone, svg.text);
    // What is saved is no request to anybody.
    assert.ok(
      wrong.every((text) => text.startsWith("blob:")),
      wrong.join(),
    );
    wrong.length = 0;
    const other = await page.context().newPage();
    await other.goto(`file://${alone}`);
    assert.equal(
      await other
        .locator("text")
        .filter({ hasText: /^Memory$/ })
        .count(),
      1,
    );
    writeFileSync(`${alone}.html`, `<img src="${svg.name}">`);
    await other.goto(`file://${alone}.html`);
    assert.ok((await other.locator("img").evaluate((image) => image.naturalWidth)) > 300);
    await picture(other, "bench-svg");
  });
});

test("what the papers have besides is drawn from an experiment that measures it", async () => {
  const experiment = join(work, "besides.json");
  const [besides, sizes] = [join(work, "besides"), [30, 60]];
  writeFileSync(
    experiment,
    JSON.stringify({
      name: "besides",
      model: { w: 20, t: 2, period_ms: 75 },
      modes: ["untraced", "outline_evm"],
      analyses: ["idle_time"],
      shapes: ["steady"],
      steps: { sizes, count: 2 },
      repetitions: 3,
      warmup: 0,
      interval_ms: 10,
    }),
  );
  witness(0, "bench", experiment, "-o", besides);
  await open(report("besides-report", besides), looks.light, async (page) => {
    await drawn(page, ["Tracers over time", "Mean idle time", "How much repetitions differ"]);
    for (const [title, most] of [
      ["Growth with the load", 12],
      ["Distributions that fit the untraced system", 4],
      ["Mean response and idle time as polynomials", 8],
    ]) {
      const rows = page.getByRole("region", { name: title, exact: true }).locator("tbody tr");
      const count = await rows.count();
      assert.ok(count > 0 && count <= most, `${title}: ${count} rows`);
      for (const text of await rows.allTextContents()) assert.doesNotMatch(text, /NaN|undefined|Infinity/);
    }
    const sizesShown = await page
      .getByRole("region", { name: "Mean response and idle time as polynomials", exact: true })
      .locator("tbody td:first-child")
      .allTextContents();
    assert.deepEqual([...new Set(sizesShown)], sizes.map(String));
    await accessible(page);
    await picture(page, "bench-besides");
  });
});

/** The same with a second repetition, in which a column is so many times what it was. */
function copy(name, factor) {
  const to = join(work, name);
  cpSync(folder, to, { recursive: true });
  const results = join(to, "results.csv");
  const [header, ...rows] = readFileSync(results, "utf8").trimEnd().split("\n");
  const columns = header.split(",");
  const changed = rows.map((row) => {
    const fields = row.split(",");
    fields[columns.indexOf("system_memory_mean")] *= factor;
    return fields;
  });
  const again = changed.map((fields) =>
    fields.map((field, index) =>
      columns[index] === "id" ? field.replace(/1$/, "2") : columns[index] === "repetition" ? "2" : field,
    ),
  );
  for (const kind of ["samples", "responses"])
    for (const [id] of changed) cpSync(join(to, kind, `${id}.csv`), join(to, kind, `${id.replace(/1$/, "2")}.csv`));
  writeFileSync(results, [header, ...changed, ...again].map(String).join("\n") + "\n");
  return to;
}

test("two benchmarks are compared", async () => {
  const [same, larger] = [copy("same", 1), copy("larger", 3)];
  await open(report("larger-report", larger, "--against", same), looks.light, async (page) => {
    const section = page.locator("section", { has: page.locator("#changes") });
    assert.match(await section.textContent(), /6 numbers have changed by more than repetitions differ, of 24\./);
    assert.match(await section.locator("tbody tr").first().textContent(), /Memory.*\+200 %yes$/);
    await drawn(page);
    assert.match(await page.textContent(".verdict"), /larger against same/);
    // Those of before are dashed.
    assert.ok((await page.getByRole("img", { name: "Memory", exact: true }).locator("[stroke-dasharray] path").count()) > 0);
    await accessible(page);
    await picture(page, "bench-comparison");
  });
  await open(report("same-report", same, "--against", same), looks.light, async (page) =>
    assert.match(await page.textContent("#changes ~ p"), /Nothing has changed by more than repetitions differ/),
  );
});

test("a folder that is none of a benchmark, or is damaged, is refused", () => {
  const empty = join(work, "empty");
  mkdirSync(empty);
  assert.match(witness(2, "report", empty).stderr, /witness report: .*empty: holds no experiment of witness bench/);
  assert.match(witness(2, "report").stderr, /witness report: DIR is expected/);
  for (const [name, text, wrong] of [
    ["results.csv", "id,begun\n", /results\.csv: line 1/],
    ["experiment.json", "{", /experiment\.json: /],
    [
      "samples/burst.80.untraced.none.r1.csv",
      "time_ms,window\nx,y\n",
      /samples\/burst\.80\.untraced\.none\.r1\.csv: is not one that/,
    ],
    [
      "responses/burst.80.untraced.none.r1.csv",
      "low_ns,high_ns,count\nx,y,z\n",
      /responses\/burst\.80\.untraced\.none\.r1\.csv: is not/,
    ],
    ["platform.json", "{}", /platform\.json: is not one/],
  ]) {
    const to = join(work, `damaged-${name.replaceAll("/", "-")}`);
    cpSync(folder, to, { recursive: true });
    writeFileSync(join(to, name), text);
    assert.match(witness(2, "report", to).stderr, wrong);
  }
});
