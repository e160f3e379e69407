"""Monitors traces of `bench/timescales` with Reelay.

Reads requests, one JSON object a line, and answers each with a line:

  {"formula": F, "trace": T, "measured": N}   two hexadecimal digits of T are a place: the sum of 1 for p, 2 for q, 4 for r, 8 for s
  {"first": P, "seconds": S}                  the first place with the value false (from 1), and the processor time of N places
"""

import json
import sys
import time

# What `reelay.discrete_timed_monitor` calls; it parses the formula twice.
from reelay import _pybind11_module as reelay

PLACES = [{name: bool(place & 1 << bit) for bit, name in enumerate("pqrs")} for place in range(16)]
OPTIONS = reelay.monitor_options("time", "value", False, True)


def run(formula, places, measured):
    update = reelay.discrete_monitor.make(formula, OPTIONS).update
    values = []
    begin = time.process_time()
    for place in places[:measured]:
        values.append(update(place)["value"])
    seconds = time.process_time() - begin
    values += [update(place)["value"] for place in places[measured:]]
    return {"first": values.index(False) + 1 if False in values else None, "seconds": seconds}


for line in sys.stdin:
    request = json.loads(line)
    trace = [PLACES[place] for place in bytes.fromhex(request["trace"])]
    print(json.dumps(run(request["formula"], trace, request["measured"])), flush=True)
