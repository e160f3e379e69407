// A master and two workers, asynchronous functions with mailboxes, that log themselves for Witness.
//
//     node counter.js LOG [--wrong]
//
// The master sends numbered requests, and a worker answers each with the next number. With --wrong one of the workers
// makes a mistake. What keeps the log in order: a process logs a fork and a send before it does them, and a receive
// after it has happened.
"use strict";
const fs = require("fs");

const REQUESTS = 20;
const wrong = process.argv.includes("--wrong", 3);
const logFile = fs.openSync(process.argv[2], "w");

function log(event, name, fields) {
  // The text of a number beyond 2^53 would not be exact in JSON.stringify: the time is counted from the start.
  const time = Math.round(performance.now() * 1e6);
  fs.writeSync(logFile, JSON.stringify({ event, process: name, ...fields, time }) + "\n");
}

// Messages that have come, and those who wait for one.
const mailboxes = new Map();
const mailbox = (name) => {
  if (!mailboxes.has(name)) mailboxes.set(name, { messages: [], wake: null });
  return mailboxes.get(name);
};

function send(from, to, message) {
  log("send", from, { to, message });
  const box = mailbox(to);
  box.messages.push({ from, message });
  // Delivered in a later turn of the event loop, as from elsewhere.
  setImmediate(() => box.wake && box.wake());
}

async function receive(name) {
  const box = mailbox(name);
  while (box.messages.length === 0) await new Promise((wake) => (box.wake = wake));
  const { from, message } = box.messages.shift();
  log("recv", name, { from, message });
  return { from, message };
}

function spawn(parent, child, behaviour, ...args) {
  const called = { module: "counter", function: behaviour.name, args };
  log("fork", parent, { child, ...called });
  return (async () => {
    await null;
    log("init", child, { parent, ...called });
    await behaviour(child, ...args);
    log("exit", child, { reason: "normal" });
  })();
}

async function worker(self, number) {
  for (;;) {
    const { from, message } = await receive(self);
    if (message === "stop") return;
    const mistake = wrong && number === 2 && message.request === 14 ? 1 : 0;
    send(self, from, { answer: message.request + 1 + mistake });
  }
}

async function master(self, requests) {
  const workers = ["worker 1", "worker 2"];
  const running = workers.map((name, index) => spawn(self, name, worker, index + 1));
  for (let first = 1; first < requests; first += 2) {
    workers.forEach((name, index) => send(self, name, { request: first + index }));
    for (const _ of workers) await receive(self);
  }
  workers.forEach((name) => send(self, name, "stop"));
  await Promise.all(running);
}

(async () => {
  log("init", "master", { parent: null, module: "counter", function: "master", args: [REQUESTS] });
  await master("master", REQUESTS);
  log("exit", "master", { reason: "normal" });
  fs.closeSync(logFile);
})();
