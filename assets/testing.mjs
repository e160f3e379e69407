// What the tests of the page and its pictures have in common. CHROMIUM names its program; SCREENSHOTS a folder for pictures to look at.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import nodeTest from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.SCREENSHOTS;
export const work = mkdtempSync(join(tmpdir(), "witness-web-"));
let browser;

// The gate runs a share of long tests, and the next versions the others (test/support/witness_share.erl).
const share = Number(process.env.WITNESS_SHARE || 1);
const turn = Number(process.env.WITNESS_TURN || 0);
let declared = 0;

export function test(name, body) {
  declared += 1;
  nodeTest(name, { skip: declared % share !== turn % share && "the turn of another version" }, body);
}

// Elsewhere than in a container Chromium has its sandbox; as root, in a test, it has none.
export async function launch() {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
}

export async function close() {
  await browser?.close();
  rmSync(work, { recursive: true, force: true });
}

export function witness(code, ...words) {
  const { status, stdout, stderr } = spawnSync(join(root, "bin/witness"), words, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  assert.equal(status, code, stderr);
  return { stdout, stderr };
}

export function run(code, report, ...words) {
  witness(code, ...words, "--report", join(work, report));
  const file = join(work, report, "report.html");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  return file;
}

export function calculator() {
  const code = join(work, "calculator");
  mkdirSync(code, { recursive: true });
  const compile = 'eval "$(bin/toolchain env)"; erlc +debug_info -o "$0" examples/calculator/*.erl';
  execFileSync("bash", ["-c", compile, code], { cwd: root });
  return code;
}

/** Teams of servers, one of them large; the last server of each of the others is wrong, and second servers are killed. */
export function crowd(code) {
  const system = join(work, "crowd.erl");
  writeFileSync(
    system,
    `-module(crowd).\n-export([main/0, team/1]).\n
    main() -> [begin {P, R} = spawn_monitor(?MODULE, team, [N]), receive {'DOWN', R, _, P, _} -> ok end end || N <- [1100, 2, 1]].\n
    team(N) -> [begin S = calc_server:start(if I =:= N, N < 3 -> buggy; true -> correct end),\n
      calc_server:request(S, {add, I, 2}), stop(I, S) end || I <- lists:seq(1, N)].\n
    stop(2, S) -> exit(S, kill);\n stop(_, S) -> calc_server:request(S, stop).\n`,
  );
  execFileSync("bash", ["-c", 'eval "$(bin/toolchain env)"; erlc -o "$0" "$1"', code, system], { cwd: root });
}

/** Opens a report; the page fails the test if it complains, or asks for anything but itself. */
export async function open(file, settings, check) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...settings });
  const page = await context.newPage();
  const address = pathToFileURL(file).href;
  const wrong = [];
  page.on("console", (message) => wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("dialog", (dialog) => wrong.push(dialog.message()));
  page.on("request", (request) => request.url() === address || wrong.push(request.url()));
  await page.goto(address);
  await page.waitForSelector("h1");
  await check(page, wrong);
  assert.deepEqual(wrong, []);
  await context.close();
}

/** The accessibility linter comes in through the debugger, which the policy of the page does not bind. */
export async function accessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const told = violations.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]);
  assert.deepEqual(told, []);
}

export async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}

export const looks = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  narrow: { colorScheme: "light", viewport: { width: 380, height: 800 } },
};
