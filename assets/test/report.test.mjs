// Reports of real runs, in a real Chromium.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { accessible, calculator, close, crowd, launch, looks, open, picture, root, run, test, witness, work } from "../testing.mjs";

before(launch);
after(close);

const options = (code) => ["run", "--pa", code, "--spec", "examples/calculator/sum.hml"];

test("a run that violates nothing", async () => {
  const file = run(0, "holds", ...options(calculator()), "calculator_demo:main(correct)");
  for (const [name, look] of Object.entries(looks)) {
    await open(file, look, async (page) => {
      assert.equal(await page.textContent("h1"), "OK: nothing was violated.");
      assert.match(await page.textContent(".verdict"), /calculator_demo:main\(correct\)/);
      assert.match(await page.textContent(".facts"), /system *returned.*1: 1 satisfied/);
      assert.equal(await page.locator("[role=listbox]").count(), 0);
      await page.click("#coverage ~ details > summary");
      assert.match(await page.textContent("table"), /no \(a violation\)/);
      await accessible(page);
      await picture(page, `holds-${name}`);
    });
  }
});

test("a violation is explained, and its events are stepped through", async () => {
  const file = run(1, "violated", ...options(calculator()), "calculator_demo:main(buggy)");
  for (const [name, look] of Object.entries(looks)) {
    await open(file, look, async (page) => {
      assert.equal(await page.textContent("h1"), "VIOLATED: 1 monitor has seen a violation.");
      assert.equal(await page.textContent("mark"), "_ : _ ! {ok, Sum} when Sum =/= A + B");
      const events = page.locator("[role=option]");
      assert.equal(await events.count(), 7);
      const selected = page.locator("[role=listbox] [aria-selected=true]");
      assert.match(await selected.textContent(), /7decided here, <.*> to <.*>:\+[0-9.]+ ms \{ok,-1\}$/);
      assert.match(await page.textContent(".known"), /Sum-1/);
      // Every arrow is drawn, within its picture.
      assert.equal(await page.locator(".chart path.head").count(), 6);
      const lanes = await page.locator(".chart svg").first().boundingBox();
      for (const arrow of await page.locator(".chart line.arrow").all()) {
        const { x, width } = await arrow.boundingBox();
        assert.ok(x >= lanes.x && x + width <= lanes.x + lanes.width);
      }
      await accessible(page);
      await picture(page, `violated-${name}`);
      await page.focus("[role=listbox]");
      await page.keyboard.press("ArrowUp");
      assert.match(await selected.textContent(), /^6</);
      assert.match(await page.textContent(".known"), /A1B2Then to holdand\(/);
      await page.keyboard.press("Home");
      assert.match(await selected.textContent(), /^1</);
      await page.keyboard.press("ArrowUp");
      assert.match(await selected.textContent(), /^1</);
      assert.ok(await page.getByRole("button", { name: "Previous" }).isDisabled());
      await page.getByRole("button", { name: "Next" }).click();
      assert.match(await selected.textContent(), /^2</);
      await events.nth(3).click();
      assert.match(await selected.textContent(), /^4</);
      await page.focus("[role=listbox]");
      await page.keyboard.press("End");
      assert.match(await selected.textContent(), /7decided here/);
      const line = page.locator(".source .line").first();
      assert.equal(await line.textContent(), "3answer_is_the_sum: with calc_server:loop(_)");
      await page.getByRole("button", { name: "Whole file" }).click();
      assert.match(await line.textContent(), /^1/);
      await page.locator(".violation > summary").press("Enter");
      await events.first().waitFor({ state: "detached" });
      await page.locator(".place > summary").click();
      await page.locator("mark").waitFor({ state: "detached" });
    });
  }
  await open(file, looks.dark, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.ok(!(await page.getByRole("button", { name: "Whole file" }).isVisible()));
    // On paper it is dark on light, whatever the screen is.
    const lightness = (property) =>
      page.evaluate((name) => getComputedStyle(document.documentElement)[name].match(/\d+/g)[0], property).then(Number);
    assert.ok((await lightness("color")) < 60 && (await lightness("backgroundColor")) > 200);
    await picture(page, "violated-print");
    assert.ok((await page.pdf()).length > 10_000);
  });
});

/** A log of servers, each with a client that has one wrong answer. */
function answers(file, servers, wrong) {
  const lines = ["init(<0.1.0>,_,{demo,main,[]})"];
  for (let n = 0; n < servers; n++) {
    const server = `<0.${2 * n + 10}.0>`;
    const client = `<0.${2 * n + 11}.0>`;
    const loop = `{calc_server,loop,[${n}]}`;
    lines.push(`fork(<0.1.0>,${server},${loop})`, `init(${server},<0.1.0>,${loop})`);
    lines.push(`recv(${server},${client},{${client},{add,${n},1}})`, `send(${server},${client},{ok,${wrong(n)}})`);
  }
  writeFileSync(file, lines.join("\n") + "\n");
}

test("a violation of a check says more than its events", async () => {
  const code = join(work, "checks");
  mkdirSync(code, { recursive: true });
  execFileSync("bash", ["-c", 'eval "$(bin/toolchain env)"; erlc -o "$0" examples/checks/*.erl', code], { cwd: root });
  const file = run(1, "checks", "run", "--check", "crashes,leaks", "--pa", code, "restaurant:main(late)");
  await open(file, {}, async (page) => {
    assert.equal(await page.textContent("h1"), "VIOLATED: 1 monitor has seen a violation.");
    assert.equal(await page.textContent("h3"), "check leaks 1");
    assert.match(
      await page.textContent(".note"),
      /still there after the end of the system:\n +<.*> restaurant:guest\/0.*; spawned by </,
    );
    await accessible(page);
    await picture(page, "checks");
  });
});

test("a report that cannot be written keeps the system from being run", () => {
  const file = join(work, "a-file");
  writeFileSync(file, "");
  const { stdout, stderr } = witness(2, ...options(calculator()), "calculator_demo:main(buggy)", "--report", file);
  assert.equal(stdout, "");
  assert.match(stderr, /--report: .*a-file/);
});

test("a violation that no event but the end decides", async () => {
  const spec = join(work, "ends.hml");
  const log = join(work, "ends.log");
  writeFileSync(spec, "stops: with calc_server:loop(_) over _ ? _ check <_ ? {_, {add, A, _}}> <_ ? {stop, A}> tt.\n");
  writeFileSync(
    log,
    [
      "init(<0.1.0>,_,{demo,main,[]})",
      "fork(<0.1.0>,<0.2.0>,{calc_server,loop,[x]})",
      "init(<0.2.0>,<0.1.0>,{calc_server,loop,[x]})",
      "recv(<0.2.0>,<0.3.0>,{<0.3.0>,{add,7,1}})",
      "exit(<0.2.0>,normal)",
      "exit(<0.1.0>,normal)",
    ].join("\n") + "\n",
  );
  const file = run(1, "ends", "check", "--spec", spec, log);
  await open(file, looks.light, async (page) => {
    assert.match(await page.textContent(".place > summary"), /this should have happened: _ \? \{stop, A\}/);
    assert.match(await page.textContent(".chart"), /end: no event followed/);
    assert.equal(await page.locator(".decided [role=option]").count(), 0);
    assert.match(await page.textContent(".known"), /Decided by the end: no event followedWithA7/);
    await accessible(page);
    await picture(page, "ends");
  });
});

test("a log that is refused says where, with its warnings", async () => {
  const log = join(work, "wrong.log");
  writeFileSync(log, "init(<0.1.0>,_,{demo,main,[]})\nrubbish\n");
  const file = run(2, "refused", "check", "--spec", "examples/calculator/sum.hml", log);
  await open(file, looks.dark, async (page) => {
    assert.match(await page.textContent("h1"), /^REFUSED/);
    assert.match(await page.textContent(".facts"), /refused.*wrong\.log:2:1: expected an event/);
    assert.match(await page.textContent(".warning"), /monitored nothing/);
    await accessible(page);
    await picture(page, "refused");
  });
});

test("a redacted run leaves no message in its report", async () => {
  const file = run(1, "redacted", ...options(calculator()), "calculator_demo:main(buggy)", "--redact");
  assert.ok(!/\{add,1,2\}|\{ok,-1\}|"-1"/.test(readFileSync(file, "utf8")));
  await open(file, looks.light, async (page) => {
    assert.equal(await page.textContent(".verdict code"), "calculator_demo:main/1");
    assert.match(await page.textContent("[role=option] >> nth=6"), /\{ok,'integer\(\)'\}/);
  });
});

test("what is recorded and what is replayed have their reports", async () => {
  const recording = join(work, "calculator.rec");
  const spec = ["--spec", "examples/calculator/sum.hml"];
  const recorded = run(1, "recorded", "record", "--pa", calculator(), ...spec, "-o", recording, "calculator_demo:main(buggy)");
  const replayed = run(1, "replayed", "replay", ...spec, recording);
  for (const [file, subject] of [
    [recorded, /^recorded in .*calculator\.rec$/],
    [replayed, /^replay of .*calculator\.rec$/],
  ])
    await open(file, looks.light, async (page) => {
      assert.match(await page.textContent(".verdict code"), subject);
      assert.equal(await page.textContent("#violations"), "1 violation");
      assert.equal(await page.locator("[role=option]").count(), 7);
      assert.match(await page.textContent(".tree [aria-selected=true]"), /1 violation, <.*> calc_server:loop\/1$/);
      assert.match(
        await page.textContent(".processes .details"),
        /spawned by <.*>.*ended at .*, normally; 0 children.*violated: answer_is_the_sum/,
      );
      await page.locator(".processes .plot .bar rect").nth(2).waitFor({ state: "attached" });
      await accessible(page);
    });
  for (const command of ["record", "replay"])
    assert.match(witness(2, command, "--report", join(work, "none"), "x:y()").stderr, /--report: name a specification/);
});

test("the course of a run is drawn, and asking for it is not part of it", async () => {
  const code = calculator();
  const system = join(work, "course.erl");
  writeFileSync(
    system,
    `-module(course).\n-export([main/1]).\nmain(N) ->\n
    [begin calculator_demo:main(correct), timer:sleep(60) end || _ <- lists:seq(1, N)].\n`,
  );
  execFileSync("bash", ["-c", 'eval "$(bin/toolchain env)"; erlc -o "$0" "$1"', code, system], { cwd: root });
  const file = run(0, "course", ...options(code), "course:main(12)");
  await open(file, looks.light, async (page) => {
    assert.match(await page.textContent(".facts"), /13 processes, 120 events/);
    for (const title of ["Events over time", "Processes, monitors, violations and gaps"])
      await page.getByRole("img", { name: title }).locator(".rect rect, .line path").first().waitFor({ state: "attached" });
    await page.locator(".numbers > summary").last().click();
    const last = page.getByRole("region", { name: "Processes, monitors, violations and gaps" }).locator("tr").last();
    assert.match(await last.textContent(), /gaps0$/);
    await accessible(page);
    await picture(page, "course");
  });
});

test("the tree of processes, of which thousands stand in a row", async () => {
  const code = calculator();
  crowd(code);
  const file = run(1, "crowd", ...options(code), "crowd:main()");
  for (const [name, look] of Object.entries(looks))
    await open(file, look, async (page) => {
      const tree = page.getByRole("tree");
      const selected = tree.locator("[aria-selected=true]");
      const details = page.locator(".processes .details");
      // The way to the first violation is open, and nothing else that is long.
      assert.match(await selected.textContent(), /^✗ 1 violation, <.*> calc_server:loop\/1$/);
      assert.match(
        await details.textContent(),
        /Born at .* ms; ended at .* ms, killed; 0 children\.violated: answer_is_the_sum .*, read by </,
      );
      const rows = tree.getByRole("treeitem");
      assert.ok((await rows.count()) < 40);
      const many = tree.getByRole("treeitem", { name: "calc_server:loop/1 × 1,100" });
      // A row of the list is one of the drawing, and at its height.
      const bars = page.locator(".processes .plot .bar rect");
      await bars.nth(3).waitFor({ state: "attached" });
      const [own, mark] = [await selected.boundingBox(), await bars.first().boundingBox()];
      assert.ok(Math.abs(own.y - mark.y) < 2 && Math.abs(own.height - mark.height) < 2, JSON.stringify([own, mark]));
      assert.equal(await page.locator(".processes .plot .dot [fill='var(--series-2)']").count(), 2);
      await accessible(page);
      await picture(page, `crowd-${name}`);
      await tree.focus();
      await page.keyboard.press("Home");
      assert.match(await selected.textContent(), /crowd:main\/0/);
      await page.keyboard.press("ArrowLeft");
      assert.equal(await selected.getAttribute("aria-expanded"), "false");
      assert.equal(await many.count(), 0);
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      assert.match(await selected.textContent(), /crowd:team\/1/);
      await page.keyboard.press("ArrowRight");
      assert.match(await selected.textContent(), /1,100/);
      await page.keyboard.press("ArrowLeft");
      assert.match(await selected.textContent(), /crowd:team\/1/);
      await page.keyboard.press("End");
      await many.click();
      await page.keyboard.press("Enter");
      assert.equal(await many.getAttribute("aria-expanded"), "true");
      assert.equal(await tree.getByRole("treeitem", { name: "1,050 more" }).count(), 1);
      await page.locator(".processes input[type=search]").fill("calc_server");
      await page.getByText("1,103 found; Enter goes to the next").waitFor();
      await page.locator(".processes input[type=search]").press("Enter");
      assert.match(await selected.textContent(), /calc_server:loop\/1$/);
      await page.getByRole("checkbox", { name: "violated only" }).check();
      for (const row of await rows.all()) assert.match(await row.textContent(), /violation/);
      await tree.focus();
      await page.keyboard.press("End");
      assert.match(await selected.textContent(), /calc_server:loop\/1$/);
      await details.getByRole("button").click();
      assert.match(await selected.textContent(), /crowd:team\/1$/);
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "CSV of Processes" }).first().click(),
      ]);
      const lines = readFileSync(await download.path(), "utf8")
        .trim()
        .split("\r\n");
      assert.equal(lines.filter((line) => /,violated,/.test(line)).length, 2);
      assert.equal(lines.filter((line) => /,crowd:team\/1,.*,normal,/.test(line)).length, 3);
    });
  await open(file, looks.dark, async (page) => {
    await page.emulateMedia({ media: "print" });
    await picture(page, "crowd-print");
  });
});

test("what a system says is text", async () => {
  const hostile = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "]]>", "<!--", "\"\\'`${alert(3)}"];
  const log = join(work, "hostile.log");
  const text = (string) => `[${[...string].map((char) => char.codePointAt(0)).join(",")}]`;
  const messages = [...hostile.map(text), "<<226,128,168,27,91,51,49,109,226,128,174>>", "[8232,8233,8238,27,0]"];
  answers(log, 1, () => `[${messages.join(",")}, <<"${"x".repeat(500_000)}">>]`);
  const spec = join(work, "<b>&amp;.hml");
  writeFileSync(
    spec,
    "'</script><i>': with calc_server:loop(_)\n" +
      'check [_ <- _, _] [_ ? _] [_ : _ ! {ok, ["</script><script>alert(1)</script>" | _]}] ff.\n',
  );
  const file = run(1, "hostile", "check", "--spec", spec, log);
  assert.ok(statSync(file).size < 450_000); // the page itself has 320,000
  await open(file, looks.light, async (page) => {
    const shown = await page.textContent(".violation .event");
    for (const word of hostile.slice(0, 4)) assert.ok(shown.includes(word), shown);
    assert.equal(await page.locator("img, i, b:not(.chart b, .tree b), script:not([type])").count(), 0);
    // eslint-disable-next-line no-control-regex
    assert.doesNotMatch(await page.textContent("#report"), /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/);
    assert.equal(await page.textContent("mark"), '_ : _ ! {ok, ["</script><script>alert(1)</script>" | _]}');
    await accessible(page);
    await picture(page, "hostile");
  });
  // Should anything break out all the same, it does nothing.
  await open(file, looks.light, async (page, wrong) => {
    const ran = await page.evaluate(async () => {
      const script = document.createElement("script");
      script.textContent = "globalThis.ran = true";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<button id=inline onclick='globalThis.ran = true'>x</button>");
      document.getElementById("inline").click();
      const fetched = await fetch("data:,x").then(
        () => true,
        () => false,
      );
      return globalThis.ran === true || fetched;
    });
    assert.equal(ran, false);
    assert.equal(wrong.filter((text) => text.includes("Content Security Policy")).length, wrong.length);
    wrong.length = 0;
  });
});

test("thousands of violations, of which some are looked for", async () => {
  const log = join(work, "many.log");
  answers(log, 10_000, (n) => n);
  const file = run(1, "many", "check", "--spec", "examples/calculator/sum.hml", log);
  assert.ok(statSync(file).size < 20_000_000);
  await open(file, looks.light, async (page) => {
    assert.equal(await page.textContent("#violations"), "10,000 violations");
    assert.match(await page.textContent(".place"), /explanations of all but the first 50\./);
    assert.equal(await page.locator(".violations > li").count(), 50);
    await page.getByRole("button", { name: "Show 50 more of 9,950" }).click();
    assert.equal(await page.locator(".violations > li").count(), 100);
    await page.fill("input[type=search]", "{ok,9999}");
    await page.getByText("1 found").waitFor();
    assert.match(await page.textContent(".violations"), /<0\.20008\.0> calc_server:loop\(9999\)/);
    await page.fill("input[type=search]", "");
    await accessible(page);
    await picture(page, "many");
  });
});

test("processes are left out of the diagram, and come back", async () => {
  const log = join(work, "lanes.log");
  const events = [
    "init(<0.1.0>,_,{demo,main,[]})",
    "fork(<0.1.0>,<0.2.0>,{calc_server,loop,[x]})",
    "init(<0.2.0>,<0.1.0>,{calc_server,loop,[x]})",
  ];
  for (const [client, sum] of [
    [3, 2],
    [4, 2],
    [5, 3],
  ])
    events.push(`recv(<0.2.0>,<0.${client}.0>,{<0.${client}.0>,{add,1,1}})`, `send(<0.2.0>,<0.${client}.0>,{ok,${sum}})`);
  writeFileSync(log, events.join("\n") + "\n");
  const file = run(1, "lanes", "check", "--spec", "examples/calculator/sum.hml", log);
  for (const [name, look] of Object.entries(looks)) {
    await open(file, look, async (page) => {
      const rows = page.locator("[role=option]");
      assert.equal(await rows.count(), 7);
      await page.getByRole("checkbox", { name: "<0.3.0>" }).uncheck();
      assert.equal(await rows.count(), 5);
      assert.equal(await page.locator(".heading .lane").count(), 3);
      assert.match(await page.textContent("fieldset"), /5 of 7 events shown/);
      await picture(page, `lanes-${name}`);
      await accessible(page);
      await page.getByRole("checkbox", { name: "<0.3.0>" }).check();
      assert.equal(await rows.count(), 7);
      await page.getByRole("checkbox", { name: "<0.2.0>" }).uncheck();
      assert.equal(await rows.count(), 0);
      await page.getByRole("checkbox", { name: "<0.2.0>" }).check();
      await zooms(page, rows);
    });
  }
});

/** The diagram is drawn larger and smaller, by buttons and by keys, and paper has it as it was. */
async function zooms(page, rows) {
  const width = async () => (await rows.first().locator("svg").boundingBox()).width;
  const is = async (percent, times) => {
    await page
      .locator(".zoom [role=status]")
      .filter({ hasText: `${percent} %` })
      .waitFor();
    assert.ok(Math.abs((await width()) - whole * times) < 2, `${percent} %: ${await width()} of ${whole}`);
  };
  const whole = await width();
  const button = (name) => page.getByRole("button", { name, exact: true });
  assert.ok(await button("Reset zoom").isDisabled());
  for (let clicks = 0; clicks < 3; clicks++) await button("Zoom in").click();
  await is(200, 2);
  await accessible(page);
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0);
  await page.emulateMedia({ media: "print" });
  assert.ok(Math.abs((await width()) - whole) < 2);
  await page.emulateMedia({ media: "screen" });
  await page.locator("[role=listbox]").focus();
  await page.keyboard.press("+");
  await is(300, 3);
  assert.ok(await button("Zoom in").isDisabled());
  await page.keyboard.press("0");
  await is(100, 1);
  await page.keyboard.press("-");
  await is(80, 0.8);
  // The keys that go from event to event do so at any size.
  await page.keyboard.press("Home");
  assert.equal(await rows.first().getAttribute("aria-selected"), "true");
}
