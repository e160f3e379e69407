"""A master and two workers, threads with queues, that log themselves for Witness.

    python3 counter.py LOG [--wrong]

The master sends numbered requests, and a worker answers each with the next number. With --wrong one of the workers
makes a mistake. What keeps the log in order: a process logs a fork and a send before it does them, and a receive
after it has happened; and a line is written as a whole.
"""
import json
import queue
import sys
import threading
import time

REQUESTS = 20
wrong = "--wrong" in sys.argv[2:]
log_file = open(sys.argv[1], "w", encoding="utf-8")
log_lock = threading.Lock()
mailboxes = {name: queue.Queue() for name in ("master", "worker 1", "worker 2")}


def log(event, process, **fields):
    line = {"event": event, "process": process, **fields}
    with log_lock:
        line["time"] = time.monotonic_ns()
        log_file.write(json.dumps(line, ensure_ascii=False) + "\n")


def send(process, to, message):
    log("send", process, to=to, message=message)
    mailboxes[to].put((process, message))


def receive(process):
    sender, message = mailboxes[process].get()
    log("recv", process, **{"from": sender}, message=message)
    return sender, message


def spawn(parent, child, function, *args):
    called = {"module": "counter", "function": function.__name__, "args": list(args)}
    log("fork", parent, child=child, **called)

    def run():
        log("init", child, parent=parent, **called)
        function(child, *args)
        log("exit", child, reason="normal")

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def worker(self, number):
    while True:
        sender, message = receive(self)
        if message == "stop":
            return
        mistake = 1 if wrong and number == 2 and message["request"] == 14 else 0
        send(self, sender, {"answer": message["request"] + 1 + mistake})


def master(self, requests):
    workers = ["worker 1", "worker 2"]
    threads = [spawn(self, name, worker, number) for number, name in enumerate(workers, 1)]
    for first in range(1, requests, 2):
        for number, name in enumerate(workers):
            send(self, name, {"request": first + number})
        for _ in workers:
            receive(self)
    for name in workers:
        send(self, name, "stop")
    for thread in threads:
        thread.join()


called = {"module": "counter", "function": "master", "args": [REQUESTS]}
log("init", "master", parent=None, **called)
master("master", REQUESTS)
log("exit", "master", reason="normal")
log_file.close()
