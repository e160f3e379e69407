// The pictures of the README and the guides; called by `pictures`.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { calculator, close, crowd, launch, open, root, run, witness, work } from "./testing.mjs";

const folder = join(root, "docs", "pictures");
mkdirSync(folder, { recursive: true });
await launch();
try {
  const look = { colorScheme: "light", viewport: { width: 1100, height: 900 } };
  const violated = run(
    1,
    "violated",
    "run",
    "--pa",
    calculator(),
    "--spec",
    "examples/calculator/sum.hml",
    "calculator_demo:main(buggy)",
  );
  await open(violated, look, (page) =>
    page
      .locator(".place")
      .first()
      .screenshot({ path: join(folder, "violation.png") }),
  );
  crowd(calculator());
  await open(
    run(1, "crowd", "run", "--pa", calculator(), "--spec", "examples/calculator/sum.hml", "crowd:main()"),
    look,
    async (page) => {
      const figure = page.locator(".processes figure");
      await figure.locator(".plot .bar rect").first().waitFor({ state: "attached" });
      await page.evaluate(() => document.querySelectorAll(".files, .numbers").forEach((element) => element.remove()));
      await figure.screenshot({ path: join(folder, "processes.png") });
    },
  );
  witness(0, "report", process.argv[2], "-o", join(work, "bench"));
  await open(join(work, "bench", "report.html"), look, async (page) => {
    const figure = page.locator("figure.figure", {
      has: page.getByRole("heading", { name: "Scheduler utilisation", exact: true }),
    });
    await figure.locator("svg .line path").first().waitFor({ state: "attached" });
    // What is there to be pressed is of no use on a picture.
    await page.evaluate(() => document.querySelectorAll(".files, .numbers").forEach((element) => element.remove()));
    await figure.screenshot({ path: join(folder, "benchmark.png") });
  });
} finally {
  await close();
}
