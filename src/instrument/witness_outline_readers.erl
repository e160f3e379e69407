-module(witness_outline_readers).
-moduledoc """
Starts the monitors of a process, and tells them when the processes that they read have ended.

A monitor that is no group reads one process. A group's monitor reads those of its partition that its map leaves to it,
and is told of the end when the last of them has ended.
""".

-export([start/4, start/5, ended/2]).

-export_type([config/0, alive/0]).

-doc """
What the monitors of a run have in common. `ordered` says whether groups have to put events in order by their stamps; there
may be more of what a runner has to know (`t:witness_monitor_runner:spec/0`).
""".
-type config() :: #{run := pid(), explain := pos_integer(), ordered := boolean(), max_slices => pos_integer(),
                    take => witness_monitor_runner:take(), tracer => pid()}.

-doc "How many processes the runner of each group still waits for.".
-type alive() :: #{pid() => pos_integer()}.

-doc "Starts a monitor, and announces it to the run.".
-spec start(witness_event:proc(), witness_event:signature(), witness_outline_map:entry(), config()) -> pid().
start(P, Signature, #{monitor := Monitor, spec := Spec, name := Name, group := Group}, Config) ->
    #{run := Run, ordered := Ordered} = Config,
    Runner = witness_monitor_runner:start(Config#{process => P, signature => Signature, monitor => Monitor,
                                                  ordered := Group andalso Ordered}),
    Run ! {monitor, Runner, #{process => P, signature => Signature, spec => Spec, name => Name}},
    Runner.

-doc "Starts the monitors that a label names.".
-spec start(witness_event:proc(), witness_event:signature(), witness_outline_map:label(), config(), alive()) ->
    {witness_outline_map:label(), alive()}.
start(P, Signature, Label, Config, Alive) ->
    Started = [{Map, start(P, Signature, Entry, Config), Group}
               || {Map, Entry = #{group := Group}} <- witness_outline_map:starts(Label)],
    Label1 = witness_outline_map:with_readers(Started, Label),
    Count = fun({_, Runner, true}, A) -> maps:update_with(Runner, fun(N) -> N + 1 end, 1, A);
               ({_, _, false}, A) -> A
            end,
    {Label1, lists:foldl(Count, Alive, witness_outline_map:label(members, Label1))}.

-doc "A process with this label has ended, and all its events were given.".
-spec ended(witness_outline_map:label(), alive()) -> alive().
ended(Label, Alive) -> lists:foldl(fun reader_ended/2, Alive, witness_outline_map:label(members, Label)).

reader_ended({_, Runner, false}, Alive) ->
    ok = witness_monitor_runner:complete(Runner),
    Alive;
reader_ended({_, Runner, true}, Alive) ->
    case Alive of
        #{Runner := 1} ->
            ok = witness_monitor_runner:complete(Runner),
            maps:remove(Runner, Alive);
        #{Runner := N} ->
            Alive#{Runner := N - 1}
    end.
