-module(witness_recorded_run).
-moduledoc """
Records a program (`m:witness_record`) and monitors it at the same time. Monitors run in the recorded VM, beside the program,
and are not part of the recording.

```erlang
1> {ok, Run} = witness_recorded_run:start(#{run => {shop, demo, [10]}, pa => ["ebin"], dir => "shop.rec"},
                                       #{specs => ["shop.hml"], on_verdict => fun(V) -> io:format("~p~n", [V]) end},
                                       fun(Recorded) -> io:format("~p~n", [Recorded]) end).
2> {ok, Summary} = witness:await(Run, infinity).
```

The run supports the functions of every run: `witness:await/2`, `witness:stop/1`, which ends the recording,
and `witness:info/1`. Monitors read what is recorded: the first process and all that it spawns, and the processes of
applications that are started meanwhile.

In the recorded VM this module is the observer (`m:witness_record_node`): it starts a run there that observes what the recorder's
process and the application controller spawn.
""".
-behaviour(gen_server).
-behaviour(witness_record_node).

-export([start/3]).
-export([begin_observing/3, end_observing/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-record(recording, {pid :: pid(),
                    on_verdict :: fun((witness:verdict()) -> term()),
                    on_recorded :: fun((Result :: term()) -> term()),
                    last :: boolean(),
                    warnings = [] :: [witness:warning()],
                    dir :: file:filename_all(),
                    verdicts_of :: witness_verdicts:verdicts(),
                    verdicts = #{no => 0, yes => 0, inconclusive => 0} :: map(),
                    summary :: undefined | witness:summary(),
                    awaiting = [] :: [gen_server:from()],
                    stopping = [] :: [gen_server:from()],
                    started = erlang:monotonic_time(millisecond) :: integer()}).

%% Options that a run in another VM cannot have.
-define(LOCAL_OPTIONS, [system, on_verdict, owner, group_leader, unobserved, log_file]).

-doc """
Starts a recording, with the options of `witness_record:start/1`, and monitors it, with those of `witness:start/1` that concern
specifications, monitors and verdicts. `OnRecorded` is called at the end, with the result of `witness_record:await/2`, before
the run has ended. When the caller ends, the recording ends too. With the option `last`, each violation has the last part written.

## Errors

Those of `m:witness_record`, and those of `witness:start/1`.
""".
-spec start(witness_record:options(), map(), fun(({ok, witness_record:summary()} | {error, witness:error()}) -> term())) ->
    {ok, witness:run()} | {error, witness:error()}.
start(Options, Run, OnRecorded) ->
    case gen_server:start(?MODULE, {self(), Options, Run, OnRecorded}, [{timeout, infinity}]) of
        {ok, Pid} -> {ok, Pid};
        {error, {shutdown, Error}} -> {error, Error};
        {error, Reason} -> {error, {witness_run, {not_started, Reason}}}
    end.

%% --- in the recorded VM ------------------------------------------------------------

-doc false.
-spec begin_observing(map(), [pid(), ...], witness_record_node:tell()) -> {ok, witness:run()} | {error, witness:error()}.
begin_observing(Options, Parents, Tell) ->
    Given = Options#{system => {children, Parents}, halt => false, on_verdict => fun(Verdict) -> Tell({verdict, Verdict}) end},
    maybe
        {ok, Checked} ?= witness_options:check(Given),
        {ok, Run} ?= witness_sup:start_run(Checked#{recorded => true}),
        ok ?= witness_run:await_begin(Run),
        #{warnings := Warnings} = witness:info(Run),
        ok = Tell({warnings, Warnings}),
        {ok, Run}
    end.

-doc false.
-spec end_observing(witness:run()) -> {ok, witness:summary()} | {error, witness:error()}.
end_observing(Run) -> witness:stop(Run).

%% --- in this VM ----------------------------------------------------------------------

-doc false.
init({Owner, Options, Given, OnRecorded}) ->
    proc_lib:set_label(?MODULE),
    _ = monitor(process, Owner),
    %% The monitors and the recording have the same rows.
    case witness_options:signatures(maps:merge(maps:with([signatures], Options), Given)) of
        {ok, #{signatures := Rows} = Run} -> record(Options#{signatures => Rows}, Run, OnRecorded);
        {error, Error} -> {stop, {shutdown, Error}}
    end.

record(Options, Run, OnRecorded) ->
    Self = self(),
    Observed = Options#{observer => {?MODULE, maps:without(?LOCAL_OPTIONS, Run)}, on_told => fun(What) -> Self ! {told, What} end},
    case witness_record:start(Observed) of
        {ok, Pid} ->
            OnVerdict = maps:get(on_verdict, Run, fun(_) -> ok end),
            {ok, #recording{pid = Pid, dir = maps:get(dir, Options), verdicts_of = witness_verdicts:new(Run),
                            on_verdict = OnVerdict, on_recorded = OnRecorded,
                             last = is_map_key(last, Options)}, {continue, wait}};
        {error, Error} -> {stop, {shutdown, observer_error(Error)}}
    end.

%% What the run in the recorded VM says of its start.
observer_error({witness_record, {observer, Reason}} = Error) ->
    case witness_error:check(Reason) of
        {ok, Observed} -> Observed;
        error -> Error
    end;
observer_error(Error) -> Error.

-doc false.
handle_continue(wait, #recording{pid = Pid} = R) ->
    Self = self(),
    _ = spawn_link(fun() -> Self ! {recorded, witness_record:await(Pid, infinity)} end),
    {noreply, R}.

-doc false.
handle_call(await, _, #recording{summary = Summary} = R) when Summary =/= undefined -> {reply, {ok, Summary}, R};
handle_call(await, From, #recording{awaiting = Awaiting} = R) -> {noreply, R#recording{awaiting = [From | Awaiting]}};
handle_call(stop, _, #recording{summary = Summary} = R) when Summary =/= undefined -> {stop, normal, {ok, Summary}, R};
handle_call(stop, From, #recording{pid = Pid, stopping = Stopping} = R) ->
    ok = witness_record:stop(Pid),
    {noreply, R#recording{stopping = [From | Stopping]}};
handle_call(info, _, #recording{warnings = Warnings, verdicts = Verdicts, summary = Summary} = R) ->
    Phase = case Summary of undefined -> running; _ -> finished end,
    {reply, #{phase => Phase, processes => 0, events => 0, waiting_for => 0, monitors => 0, verdicts => Verdicts, gaps => 0,
              system => running, warnings => Warnings}, R}.

-doc false.
handle_cast(_, R) -> {noreply, R}.

-doc false.
handle_info({told, {verdict, #{verdict := Kind} = Verdict}}, #recording{verdicts = Verdicts} = R) ->
    ok = notify(Verdict, R),
    ok = keep_violation(Kind, R),
    {noreply, R#recording{verdicts = maps:update_with(Kind, fun(N) -> N + 1 end, Verdicts),
                          verdicts_of = witness_verdicts:add(Verdict, R#recording.verdicts_of)}};
handle_info({told, {warnings, Warnings}}, R) ->
    {noreply, R#recording{warnings = Warnings}};
handle_info({recorded, Result}, #recording{on_recorded = OnRecorded} = R) ->
    Summary = store_verdicts(summary(Result, R), Result, R),
    _ = OnRecorded(Result),
    finish(Summary, R);
handle_info({'DOWN', _, process, _, _}, R) ->
    {stop, shutdown, R}.

%% Writes what led to the violation, without waiting. A write in progress covers it; otherwise the last part at the end does.
keep_violation(no, #recording{last = true, pid = Pid}) ->
    _ = spawn(fun() -> try witness_record:keep(Pid) catch exit:_ -> ended end end),
    ok;
keep_violation(_, _) -> ok.

%% Verdicts that a replay can be compared with. The last part of a run cannot be replayed.
store_verdicts(#{warnings := Warnings} = Summary, {ok, #{observed := {ok, _}}},
               #recording{last = false, dir = Dir, verdicts_of = Verdicts}) ->
    case witness_verdicts:write(Dir, Verdicts) of
        ok ->
            %% Without a seal a replay needs trust in any case; the recorder has reported why.
            _ = witness_record_seal:add(Dir, "verdicts"),
            Summary;
        {error, Reason} -> Summary#{warnings := Warnings ++ [#{code => verdicts_lost, text => text(
            [~"the verdicts could not be written to the recording: ", file:format_error(Reason)])}]}
    end;
store_verdicts(Summary, _, _) -> Summary.

notify(Verdict, #recording{on_verdict = OnVerdict}) -> witness_run_notifier:call_back(OnVerdict, Verdict).

finish(Summary, #recording{awaiting = Awaiting, stopping = Stopping} = R) ->
    lists:foreach(fun(From) -> gen_server:reply(From, {ok, Summary}) end, Awaiting ++ Stopping),
    R1 = R#recording{summary = Summary, awaiting = [], stopping = []},
    case Stopping of
        [] -> {noreply, R1};
        _ -> {stop, normal, R1}
    end.

summary({ok, #{observed := {ok, Summary}, ended := Ended}}, _) -> set_end(Ended, Summary);
summary({ok, #{observed := {error, Reason}}}, R) ->
    Text = case witness_error:check(Reason) of
        {ok, Error} -> witness:format_error(Error);
        error -> witness_event:format_term(Reason, 400)
    end,
    lost_summary(Text, R);
summary({ok, #{}}, R) -> lost_summary(~"the VM of the program has ended without notice", R);
summary({error, Error}, R) -> lost_summary(witness:format_error(Error), R).

%% The run has watched children of processes that go on, so it does not know how the system ended.
set_end({returned, normal}, Summary) -> Summary#{system := normal};
set_end({stopped, _, normal}, Summary) -> Summary#{system := normal};
set_end({returned, Reason}, Summary) -> set_crash(Reason, Summary);
set_end({stopped, _, Reason}, Summary) -> set_crash(Reason, Summary);
set_end(_, Summary) -> Summary#{system := undefined}.

set_crash(Reason, #{warnings := Warnings, outcome := Outcome} = Summary) ->
    Warning = #{code => system_crashed, text => text([~"the system ended with ", Reason])},
    Summary#{system := normal, warnings := Warnings ++ [Warning],
             outcome := case Outcome of ok -> untrusted; _ -> Outcome end}.

%% Without a summary only the verdicts that were reported here are known.
lost_summary(Text, #recording{warnings = Warnings, verdicts = #{no := No} = Verdicts, started = Started}) ->
    #{processes => 0, tracers => 1, events => 0, verdicts => Verdicts, vacuous => 0, gaps => 0, slices => 0,
      monitored => lists:sum(maps:values(Verdicts)), coverage => [],
      warnings => Warnings ++ [#{code => run_lost, text => text([~"the monitors have not come to their end: ", Text])}],
      elapsed_ms => erlang:monotonic_time(millisecond) - Started,
      outcome => case No of 0 -> untrusted; _ -> violated end, refused => undefined, system => undefined}.

text(Chars) -> unicode:characters_to_binary(Chars).
