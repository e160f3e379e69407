-module(witness_recorded).
-moduledoc """
What the programs of `m:witness_record_SUITE` write down about themselves while they are recorded: each process, next to
each of its steps, in a table that the first process owns. At the end the table goes to a file.

A step that is noted is one of

- `{message, From, Msg}`: a `receive` has taken a message of this process;
- `{content, Msg}`: it has taken a message that no process has sent, such as one of a timer or a port;
- `timeout`: the time of a `receive` was over;
- `{spawn, Pid}`: it has spawned this process;
- `{result, {M, F, A}, Value}`: this call has returned this value;
- `{either, [[Step]]}`: one of these sequences, where a library knows which.

`'_'` in a message stands for anything.

Under `listening/1` the steps are also sent to the first process, and a hash of them is its result: that of a
replay is the same only if all processes have noted the same.
""".

-export([run/3, listening/1, born/1, message/2, content/1, timeout/0, spawned/1, spawned/2]).
-export([monitored/1, monitored/2, result/2, either/1, ended/2]).
-export([child/1, bare/1]).

-define(TABLE, witness_recorded_journal).
-define(LISTENER, witness_recorded_listener).

-doc "The first process of a recorded program: the result of the function is in the file with the steps.".
run(Module, Function, File) ->
    ?TABLE = ets:new(?TABLE, [named_table, public, ordered_set, {write_concurrency, true}]),
    Result = case Function of
        {Name, Args} -> apply(Module, Name, Args);
        Name -> Module:Name()
    end,
    Steps = ets:tab2list(?TABLE),
    ok = file:write_file(File, term_to_binary(#{result => Result, root => self(), steps => Steps})).

-doc "Does something, and returns how many steps were noted meanwhile by processes that have ended, and a hash of them.".
listening(Fun) ->
    true = register(?LISTENER, self()),
    _ = Fun(),
    true = unregister(?LISTENER),
    heard(0, 0).

heard(N, Hash) ->
    receive {noted, _, _} = Step -> heard(N + 1, erlang:phash2({Hash, Step})) after 0 -> {N, Hash} end.

note(Step) ->
    Number = case get(?TABLE) of undefined -> 1; Last -> Last + 1 end,
    put(?TABLE, Number),
    true = ets:insert(?TABLE, {{self(), Number}, Step}),
    case whereis(?LISTENER) of
        undefined -> ok;
        Listener ->
            Listener ! {noted, self(), Step},
            ok
    end.

-doc "The first thing that a process notes: its parent.".
born(Parent) ->
    true = ets:insert(?TABLE, {{born, self()}, Parent}),
    ok.

message(From, Msg) -> note({message, From, Msg}).

content(Msg) -> note({content, Msg}).

timeout() -> note(timeout).

-doc "Spawns, and notes it.".
spawned(Fun) -> spawned(Fun, []).

spawned(Fun, Options) ->
    Parent = self(),
    Pid = spawn_opt(fun() -> born(Parent), Fun() end, Options),
    note({spawn, Pid}),
    Pid.

-doc "The same with a monitor.".
monitored(Fun) -> monitored(Fun, []).

monitored(Fun, Options) ->
    Parent = self(),
    {Pid, Ref} = spawn_opt(fun() -> born(Parent), Fun() end, [monitor | Options]),
    note({spawn, Pid}),
    {Pid, Ref}.

-doc "Notes what a call that spawns has returned.".
child({Pid, _} = Value) ->
    _ = child(Pid),
    Value;
child(Pid) ->
    true = ets:insert(?TABLE, {{born, Pid}, self()}),
    note({spawn, Pid}),
    Pid.

-doc "A message that no process has sent.".
bare(Msg) ->
    content(Msg),
    case Msg of
        {'DOWN', _, process, Pid, Reason} when Reason =/= noproc -> ended(Pid, Reason);
        _ -> ok
    end.

-doc "Notes what a call has returned.".
result(MFA, Value) ->
    note({result, MFA, Value}),
    Value.

either(Alternatives) -> note({either, Alternatives}).

-doc "How a process has ended, as another process has heard.".
ended(Pid, Reason) ->
    true = ets:insert(?TABLE, {{ended, Pid}, Reason}),
    ok.
