-module(witness_record_traced).
-moduledoc """
Recording by the VM's tracing alone (`--tracing-only`): the modules of the program and of OTP run as they are.

| Event of the VM | In the recording |
|---|---|
| `receive`: a message arrives, with its sender | `from`, or `content` if the sender is not recorded, or has ended |
| `receive` of the clock's `timeout` | `timeout` |
| `spawned`, `exit` | births and ends, as in any recording |
| `send`, with contents | `named`, `sent` |

**What it cannot record.** The VM reports a message when the process *fetches* it, before a `receive` checks it. So the order of
arrival is known, but not when a message was taken. When the time of a `receive` is over, the process first handles its signals.
This fetches messages that the `receive` does not check any more, and then the VM reports the timeout. So `from, timeout` is a
message that was taken before the time began, or one that came too late. A message `timeout` that a timer sends looks like a
timeout. The results of calls are not recorded. So such a recording cannot be replayed, and its header says so (`tracing_only`).
""".

-export([start/2, spawn_first/3, prepare/1]).

%% The timeout of a `receive' is reported as a message of the clock; all others have their sender in the second place.
-define(RECEIVED, [{[clock_service, '_', timeout], [], [{message, expired}]}, {['_', '$1', '_'], [], [{message, '$1'}]}]).

-doc """
Traces every process that is born from now on. A process is recorded if its parent is. The children of `adopting` are recorded,
though it is not.
""".
-spec start(trace:session(), #{contents => boolean(), hash => boolean(), adopting => pid()}) -> ok.
start(Session, Options) ->
    Contents = maps:get(contents, Options, false),
    ok = witness_record_native:traced(Contents, maps:get(hash, Options, false), maps:get(adopting, Options, none), node()),
    _ = trace:recv(Session, ?RECEIVED, []),
    _ = trace:process(Session, new, true, [procs, 'receive'] ++ [send || Contents]),
    ok.

-doc "Spawns the first process.".
-spec spawn_first(module(), atom(), [term()]) -> {pid(), reference()}.
spawn_first(Module, Function, Args) ->
    _ = witness_record_native:child(),
    spawn_monitor(Module, Function, Args).

-doc "The code of such a recording, instead of `witness_record_code:prepare/1`: nothing is woven.".
-spec prepare(witness_record:options()) -> {ok, witness_record_code:code()} | {error, witness_record:reason()}.
prepare(Options) ->
    maybe
        {ok, Dirs} ?= witness_record_code:folders(Options),
        {ok, Folders} ?= witness_record_code:objects(Dirs, Options),
        {ok, #{woven => [], plain => [Dir || Dir <- Dirs, not lists:prefix(code:lib_dir(), Dir)], unwoven => [], calls => #{},
               digests => witness_record_code:digests(Folders), outside => witness_record_code:outside(Options)}}
    end.
