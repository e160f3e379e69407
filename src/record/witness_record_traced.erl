-module(witness_record_traced).
-moduledoc """
Recording by the VM's tracing alone (`--tracing-only`): the modules of the program and of OTP run as they are.

| Event of the VM | In the recording |
|---|---|
| `receive`: a message comes, and whom it is from | `from`, or `content` where the sender is not recorded, or has ended |
| `receive` of the clock's `timeout` | `timeout` |
| `spawned`, `exit` | births and ends, as in any recording |
| `send`, with contents | `named`, `sent` |

**What it cannot tell.** The VM reports a message when the process *fetches* it, before a `receive` looks at it, so which message was
taken when is not known: only in which order they came. When the time of a `receive` is over, the process first handles its signals, which
fetches messages that nobody looks at any more, and then the VM reports the end of the time: so `from, timeout` is a message that was taken
before the time began, or one that came too late. A message `timeout` that a timer sends looks like the end of a time. What
calls have returned is not recorded. So such a recording cannot be replayed, and says so in its header (`tracing_only`).
""".

-export([start/2, first/3, prepare/1]).

%% The end of the time of a `receive' is reported as a message of the clock; all others have their sender in the second place.
-define(RECEIVED, [{[clock_service, '_', timeout], [], [{message, expired}]}, {['_', '$1', '_'], [], [{message, '$1'}]}]).

-doc """
Traces every process that is born from now on: whose child it is says whether it is recorded. The children of `adopting` are, though it
is not.
""".
-spec start(trace:session(), #{contents => boolean(), hash => boolean(), adopting => pid()}) -> ok.
start(Session, Options) ->
    Contents = maps:get(contents, Options, false),
    ok = witness_record_native:traced(Contents, maps:get(hash, Options, false), maps:get(adopting, Options, none), node()),
    _ = trace:recv(Session, ?RECEIVED, []),
    _ = trace:process(Session, new, true, [procs, 'receive'] ++ [send || Contents]),
    ok.

-doc "Spawns the first process.".
-spec first(module(), atom(), [term()]) -> {pid(), reference()}.
first(Module, Function, Args) ->
    _ = witness_record_native:child(),
    spawn_monitor(Module, Function, Args).

-doc "The code of such a recording, in the place of `witness_record_code:prepare/1`: nothing is woven.".
-spec prepare(witness_record:options()) -> {ok, witness_record_code:code()} | {error, witness_record:reason()}.
prepare(Options) ->
    maybe
        {ok, Dirs} ?= witness_record_code:folders(Options),
        {ok, Folders} ?= witness_record_code:objects(Dirs, Options),
        {ok, #{woven => [], plain => [Dir || Dir <- Dirs, not lists:prefix(code:lib_dir(), Dir)], unwoven => [], calls => #{},
               digests => witness_record_code:digests(Folders), outside => witness_record_code:outside(Options)}}
    end.
