"""The value that Reelay gives a formula at each place of a trace.

Reads requests, one JSON object a line, and answers each with a line: `0` or `1` for each place, or `error` and why.

  {"mode": "discrete", "formula": F, "rows": [[P...], ...]}   each row is a place; it names the propositions that are true
  {"mode": "dense", "formula": F, "rows": [[T, P...], ...]}   a place is a pulse from T to T + 1; between pulses all are false
"""

import json
import sys

# What `reelay.discrete_timed_monitor` and `dense_timed_monitor` call; they parse the formula twice.
from reelay import _pybind11_module as reelay

PROPOSITIONS = ["a", "b", "c", "d", "event", "even", "odd"]
NONE = dict.fromkeys(PROPOSITIONS, False)
DISCRETE = reelay.monitor_options("time", "value", False, True)
DENSE = reelay.monitor_options("time", "value", "constant", True)


def discrete(formula, rows):
    monitor = reelay.discrete_monitor.make(formula, DISCRETE)
    return [monitor.update({**NONE, **dict.fromkeys(row, True)})["value"] for row in rows]


def dense(formula, rows):
    monitor = reelay.dense_monitor.make(formula, DENSE)
    monitor.update({"time": 0, **NONE})
    changes = []
    for time, *row in rows:
        changes += monitor.update({"time": time, **NONE, **dict.fromkeys(row, True)})
        changes += monitor.update({"time": time + 1, **NONE})
    # A change at T is the value behind T, up to the next change with its own time included.
    values, value = [], False
    for time, *_ in rows:
        while changes and changes[0]["time"] < time + 1:
            value = changes.pop(0)["value"]
        values.append(value)
    return values


def main():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            evaluate = {"discrete": discrete, "dense": dense}[request["mode"]]
            answer = "".join("01"[value] for value in evaluate(request["formula"], request["rows"]))
        except Exception as error:  # whatever Reelay raises is the answer
            answer = "error " + repr(error).replace("\n", " ")
        print(answer, flush=True)


main()
