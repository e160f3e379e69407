-module(witness_run_replay).
-moduledoc """
Replays as a source of events (`m:witness_replay`): a recording is monitored, or written to a log, while it is replayed.

```erlang
1> {ok, Run} = witness:start(#{system => {log, {replay, #{dir => "shop.rec"}}}, specs => ["shop.hml"],
                               on_verdict => fun(V) -> io:format("~p~n", [V]) end}).
2> {ok, Summary} = witness:await(Run, infinity).
```

The events are those of a recording that has the contents of messages: `recv` is a message that the process takes.
Verdicts name the process and its entry. A divergence, or a recording that cannot be replayed, ends the run as a malformed
log does (`refused`); earlier verdicts remain.
""".

-export([events/1, write/2, has_contents/1, check_deadlines/2, format_error/1]).

-export_type([options/0]).

-doc """
The options of `witness_replay:replay/1`, and

- `on_report`: called with its result when the replay has ended, in a process of the run;
- `events`: the file of a log to which all events are written, for `witness check` (`m:witness_log_writer`);
- `on_unwritten`: called with a text if that log is incomplete, and so deleted. Without this function the run is refused.
""".
-type options() :: #{dir := file:filename_all(),
                     on_report => fun(({ok, witness_replay:report()} | {error, witness_replay:error()}) -> term()),
                     events => file:filename(), on_unwritten => fun((unicode:chardata()) -> term()), atom() => term()}.

-doc "`log`: the log of the events cannot be opened; `unwritten`: it is incomplete.".
-type reason() :: {log | unwritten, unicode:chardata()}.

-doc "A replay, as a fold over its events.".
-spec events(options()) -> witness_trace_recording:events().
events(Options) ->
    fun(Fun, Acc) ->
        case replay(Fun, Acc, Options) of
            {ok, #{outcome := identical} = Report, Acc1} -> {ok, Acc1, maps:get(ended_at, Report, none)};
            {ok, #{outcome := diverged} = Report, Acc1} -> {error, format_divergence(Report), Acc1};
            {error, {?MODULE, Reason}, Acc1} -> {error, format_error(Reason), Acc1};
            {error, {Module, Reason}, Acc1} -> {error, [~"it cannot be replayed: ", Module:format_error(Reason)], Acc1}
        end
    end.

-doc "Replays, and writes all events to the log that `events` names.".
-spec write(file:filename(), options()) -> {ok, witness_replay:report()} | {error, witness_replay:error() | {?MODULE, reason()}}.
write(File, Options) ->
    case replay(fun(_, _, Acc) -> Acc end, ok, Options#{events => File}) of
        {ok, Report, ok} -> {ok, Report};
        {error, Error, ok} -> {error, Error}
    end.

replay(Fun, Acc, #{events := File} = Options) ->
    maybe
        {ok, Log} ?= witness_log_writer:open(File),
        ok ?= witness_log_writer:begin_log(Log),
        ok = witness_log_writer:write([{receives, taken} | functions(Options)], Log),
        Write = fun(Item, Place, A) ->
            ok = witness_log_writer:write([Item], Log),
            Fun(Item, Place, A)
        end,
        Replayed = replay(Write, Acc, maps:remove(events, Options)),
        check_closed(witness_log_writer:close_whole(Log), Replayed, Options)
    else
        {error, Text} -> {error, {?MODULE, {log, Text}}, Acc}
    end;
replay(Fun, Acc, Options) ->
    Replayed = witness_replay:fold(Fun, Acc, maps:without([on_report, on_unwritten], Options)),
    _ = case {Replayed, Options} of
        {{Outcome, What, _}, #{on_report := OnReport}} -> OnReport({Outcome, What});
        _ -> unwanted
    end,
    Replayed.

%% The log has all calls of these.
functions(#{functions := Functions}) when map_size(Functions) > 0 -> [{functions, lists:sort(maps:keys(Functions))}];
functions(#{}) -> [].

check_closed(ok, Replayed, _) -> Replayed;
check_closed({error, Text}, Replayed, #{on_unwritten := OnUnwritten}) ->
    _ = OnUnwritten(Text),
    Replayed;
check_closed({error, Text}, {_, _, Acc}, _) -> {error, {?MODULE, {unwritten, Text}}, Acc}.

format_divergence(#{divergence := #{process := Process, signature := Signature, position := Position}}) ->
    [~"the replay has diverged: ", Process, ~", ", Signature, ~", at entry ", integer_to_binary(Position)];
format_divergence(#{waiting := [#{process := Process, signature := Signature} | _]}) ->
    [~"the replay has diverged: ", Process, ~", ", Signature, ~", waits for a message that no process sends"].

-doc """
Whether these properties over several processes can be judged in a replay. Its events are in an order of cause and effect. So an
event of one process may come behind later ones of another, and a deadline would be called passed too early. An error is text for people.
""".
-spec check_deadlines([witness_instrument_map:entry()], file:filename_all()) -> ok | {error, unicode:chardata()}.
check_deadlines(Several, Dir) ->
    case [Spec || #{spec := Spec, monitor := Monitor} <- Several, witness_monitor:is_timed(Monitor)] of
        [Spec | _] ->
            case witness_log_recording:open(Dir) of
                {ok, Recording} -> refuse_deadlines(witness_log_recording:has_times(Recording), Spec, Dir);
                %% The replay reports it.
                {error, _} -> ok
            end;
        [] -> ok
    end.

refuse_deadlines(true, Spec, Dir) ->
    {error, [Spec, ~": a replay does not put the events of several processes in the order of their times, which the deadlines of this property ",
             ~"need. The recording itself has all messages, and times: check it without --replay (in a program {log, {recording, \"",
             unicode:characters_to_binary(Dir), ~"\"}})"]};
refuse_deadlines(false, _, _) -> ok.

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error({_, Text}) -> Text.

-doc "Whether a recording has events without being replayed. The reader of a damaged recording reports the error.".
-spec has_contents(file:filename_all()) -> boolean().
has_contents(Dir) ->
    case witness_log_recording:open(Dir) of
        {ok, Recording} -> witness_log_recording_events:check(Recording) =:= ok;
        {error, _} -> true
    end.
