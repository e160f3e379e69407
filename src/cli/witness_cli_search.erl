-module(witness_cli_search).
-moduledoc """
`witness search`: runs a program by one schedule after the other, until a run goes wrong (`m:witness_search`).

Results go to standard output, progress to standard error. What the program prints is not shown.

| Exit code | Meaning |
|---|---|
| 0 | nothing went wrong in all schedules |
| 1 | a run went wrong, or with `--all` several: something was violated, a process crashed, or the run does not end |
| 2 | wrong usage or bad input, such as a program that cannot be controlled |
| 3 | no result: it was interrupted, nothing was monitored, a run took too much time or memory or could not be repeated, or its recording could not be written |

If a specification is violated, the recording is replayed with it (`m:witness_cli_replay`). So the explanation is that of `witness replay`.
""".

-export([run/2, command/0]).

-export_type([options/0]).

-doc "See `command/0`.".
-type options() :: #{system := string(), json := boolean(), seed := non_neg_integer(), no_deadlock := boolean(), output => string(),
                     mix => string(), app => [string()], config => string(), pa => [string()], weave => [string()],
                     specs => [string()], include => [string()], signatures => [string()],
                     report => witness_web:report(), atom() => term()}.

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Runs mod:fun(args) again and again in a fresh node, each time by another schedule: which process goes on next is "
               "decided here, and time is virtual. A run that violates a specification, in which a process crashes, or which does "
               "not end, is written as a recording, and the search ends, or with --all goes on. The program is not changed, and what it prints is not "
               "shown.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 nothing went wrong; 1 a run went wrong; 2 wrong usage or bad input, or the program cannot "
               "be controlled; 3 no result: interrupted, or too much time or memory.\n\n"
               "  witness search --pa ebin --app shop 'shop_demo:visits()'\n"
               "  witness search --spec shop.hml --pa ebin 'shop_demo:main(2)'\n"
               "  witness search --pa ebin --schedules 10000 --seed 7 -o found.rec 'shop_demo:main(2)'\n"
               "  witness replay --step found.rec\n"],
      arguments => witness_cli_options:arguments(search, [output, specs, include, pa, syntax,
        all, schedules, witness_cli_options:for(~"begin no further schedule"), seed, strategies, depth, steps, memory, timeouts,
        delivery, crashes, expect, left, mailboxes, no_deadlock, weave, app, config, signatures,
        witness_cli_options:json(~"one JSON object a line on standard output"),
        witness_cli_options:report(), project(), system])}.

project() ->
    #{name => mix, flag => "--mix", argument => "DIR",
      text => [~"in each run start the application of the Mix project in this folder, compiled and configured as by mix run, before ",
               ~"the function; --app names one of an umbrella project"]}.

-record(state, {worker :: pid(), ref :: reference(), progress :: witness_cli_progress:progress(),
                begun = none :: integer() | none, schedules = 0 :: non_neg_integer(),
                stopping = none :: none | atomics:atomics_ref()}).

-doc "Searches; returns the exit code, or an error of the user.".
-spec run(options(), Properties :: none | map()) ->
    {ok, 0..3} | {error, unicode:chardata() | {unwritten, unicode:chardata()} | witness:error()}.
run(Given, Properties) ->
    maybe
        #{json := Json, output := Dir, system := Text} = Options =
            absolute(maps:merge(#{output => witness_record:new_name(os:getpid())}, Given)),
        {ok, Mix} ?= mix(Options),
        {ok, Added} ?= witness_cli_setup:add_paths(maps:get(pa, Options, [])),
        Folders = Added ++ maps:get(folders, Mix, []),
        {ok, {Module, _, _} = Call} ?= witness_cli_call:parse(Text),
        ok ?= witness_cli_setup:load_elixir(Module, Folders),
        ok ?= witness_cli_call:check(Call),
        {ok, Weave} ?= applications(~"--weave", maps:get(weave, Options, [])),
        {ok, Named} ?= applications(~"--app", maps:get(app, Options, [])),
        ok ?= check_config(Options),
        ok ?= check_report(Options),
        {ok, Expected} ?= expected(Options, Call),
        {ok, Rows} ?= witness_cli_call:signatures(Options, Mix),
        {ok, Warnings} ?= warnings(Options),
        witness_cli_io:note([[witness_spec:format_diagnostic(Warning), $\n] || Warning <- Warnings]),
        Out = witness_cli_io:open(case Json of true -> json; false -> text end),
        Own = [Name || #{name := Name} <- witness_option_schema:search()],
        Search = (maps:merge(maps:merge(maps:without([signatures], maps:with(Own, Options)), Rows), Expected))#{
            run => Call, dir => Dir, pa => Folders, weave => Weave,
            applications => case Named of [] -> maps:get(apps, Mix, []); _ -> Named end,
            environment => maps:get(environment, Mix, []),
            deadlocks => not maps:get(no_deadlock, Options)},
        {ok, Report} ?= search(Search),
        {ok, result(Report, Properties, Out, (maps:merge(Options, Expected))#{strategies => strategies(Search)})}
    end.

%% A Mix project is used in its folder.
absolute(#{mix := _, output := Dir} = Options) ->
    maps:merge(Options#{output => filename:absname(Dir)},
               maps:map(fun(config, Name) -> filename:absname(Name);
                           (_, Names) -> [filename:absname(Name) || Name <- Names]
                        end, maps:with([pa, specs, include, config], Options)));
absolute(Options) -> Options.

mix(#{mix := Folder}) -> witness_cli_mix:export(Folder);
mix(#{}) -> {ok, #{}}.

applications(_, []) -> {ok, []};
applications(Flag, [Text | Texts]) ->
    maybe
        {ok, {application, App}} ?= witness_cli_call:parse_application(Text),
        {ok, Apps} ?= applications(Flag, Texts),
        {ok, [App | Apps]}
    else
        {error, _} -> {error, [Flag, ~": the name of an application is expected"]}
    end.

%% The VM of the search reads it, and would not start.
check_config(#{config := File}) ->
    maybe
        {ok, _} ?= witness_cli_setup:read_config(File),
        ok
    end;
check_config(#{}) -> ok.

check_report(#{all := true, report := _}) ->
    {error, ~"--all and --report exclude each other: replay a recording with --report"};
check_report(#{}) -> ok.

expected(#{expect := _}, {erl_eval, exprs, _}) -> {error, ~"--expect TERM: name one function, not several calls"};
expected(#{expect := Text}, {Module, _, _}) ->
    case witness_cli_call:parse_term(Text, Module) of
        {ok, Term} -> {ok, #{expect => Term}};
        {error, Problem} -> {error, [~"--expect TERM: ", Problem]}
    end;
expected(#{}, _) -> {ok, #{}}.

strategies(#{strategies := Strategies}) -> Strategies;
strategies(#{}) -> maps:get(strategies, witness_option:defaults(witness_option_schema:search())).

%% The search reports only the errors of specifications.
warnings(Options) ->
    case witness_search_monitors:compile(maps:get(specs, Options, []), maps:with([include], Options)) of
        {ok, _, Warnings} -> {ok, Warnings};
        {error, _} = Error -> Error
    end.

%% --- searching -------------------------------------------------------------------

%% Another process searches, so that this one receives interrupts meanwhile. The VM of the search ends with that process.
search(Options) ->
    ok = witness_cli_signal:catch_interrupts(),
    Self = self(),
    Ref = make_ref(),
    Progress = witness_cli_progress:new(),
    %% What was found before an interrupt is a result.
    Stopping = atomics:new(1, []),
    Told = #{on_progress => Progress,
             on_schedules => fun(Number) ->
                 Self ! {Ref, Number},
                 case atomics:get(Stopping, 1) of 0 -> ok; 1 -> stop end
             end},
    {Worker, Monitor} = spawn_monitor(fun() -> Self ! {Ref, searched, witness_search:search(maps:merge(Options, Told))} end),
    Result = wait(Monitor, #state{worker = Worker, ref = Ref, progress = Progress,
                                  stopping = case Options of #{all := true} -> Stopping; #{} -> none end}),
    %% On a terminal the line of the progress is still there.
    _ = witness_cli_io:terminal(stderr) andalso witness_cli_io:note(~"\r\e[K"),
    Result.

wait(Monitor, #state{ref = Ref, worker = Worker, progress = Progress, begun = Begun} = S) ->
    receive
        {Ref, 0} -> wait(Monitor, S#state{begun = now_ms()});
        {Ref, searched, {ok, Report}} -> searched(Monitor, {ok, Report});
        {Ref, searched, {error, Error}} -> searched(Monitor, refusal(Error));
        {Ref, Number} ->
            ok = Progress(witness_search_text:progress(Number, now_ms() - Begun)),
            wait(Monitor, S#state{schedules = Number});
        {'DOWN', Monitor, process, Worker, Reason} -> error({search_died, Reason});
        interrupt -> stop(Monitor, S);
        output_closed -> stop(Monitor, S);
        {'EXIT', _, _} -> wait(Monitor, S)
    end.

searched(Monitor, Result) ->
    true = demonitor(Monitor, [flush]),
    Result.

stop(Monitor, #state{stopping = Stopping, begun = Begun} = S) when Stopping =/= none, Begun =/= none ->
    ok = atomics:put(Stopping, 1, 1),
    wait(Monitor, S);
stop(Monitor, #state{worker = Worker, begun = Begun, schedules = Schedules}) ->
    true = exit(Worker, kill),
    receive {'DOWN', Monitor, process, Worker, _} -> ok end,
    {ok, #{outcome => interrupted, schedules => Schedules, unfaithful => [],
           elapsed_ms => case Begun of none -> 0; _ -> now_ms() - Begun end}}.

now_ms() -> erlang:monotonic_time(millisecond).

%% A run that cannot be repeated, and a full disk, are not errors in the user's arguments.
refusal({witness_search, {exists, _}} = Error) -> {error, Error};
refusal({witness_search, {generator, _, _}} = Error) -> {error, Error};
refusal({witness_search, {uncontrolled, _, _}} = Error) -> {error, Error};
refusal({witness_search, _} = Error) -> {error, {unwritten, witness:format_error(Error)}};
refusal({witness_record, {file, _, _}} = Error) -> {error, {unwritten, witness:format_error(Error)}};
refusal(Error) -> {error, Error}.

%% --- results ---------------------------------------------------------------------

result(#{outcome := Outcome} = Found, Properties, Out, #{json := Json, output := Dir} = Options) ->
    Own = maps:with([seed, strategies, specs, expect, crashes], Options),
    Report = maps:merge(Found, maps:merge(#{dir => Dir, specs => [], tool => tool()}, Own)),
    Look = witness_cli_io:look(),
    Code = code(Outcome),
    _ = Json orelse witness_cli_io:print(Out, witness_search_text:head(Report, Look)),
    ok = explain(Report, Properties, Options),
    lists:foreach(fun(Failure) -> failure(Failure, Properties, Out, Look, Options) end, witness_search_text:failures(Report)),
    witness_cli_io:print(Out, case Json of
        true -> witness_cli_json:search(Report, witness_cli_json:header(node()));
        false -> witness_search_text:tail(Report, Look)
    end),
    Code.

%% A task of a build tool says which one it is (`bin/witness`).
tool() ->
    case init:get_argument(witness_tool) of
        {ok, [["mix"]]} -> mix;
        {ok, [["rebar3"]]} -> rebar3;
        _ -> witness
    end.

%% One of several.
failure(#{dir := Dir} = Failure, Properties, Out, Look, #{json := Json} = Options) ->
    _ = Json orelse witness_cli_io:print(Out, witness_search_text:head(Failure, Look)),
    ok = explain(Failure, Properties, Options#{output := Dir}),
    _ = Json orelse witness_cli_io:print(Out, witness_search_text:tail(Failure, Look)),
    ok.

-spec code(term()) -> 0..3.
code(passed) -> 0;
code(failed) -> 1;
code(Outcome) when Outcome =:= interrupted; Outcome =:= unmonitored -> 3;
code({refused, _, _}) -> 2;
code(Outcome) ->
    case witness_search_scheduler:is_result(Outcome) of
        true -> 1;
        false -> 3
    end.

%% A violation, and every report, is that of a replay.
explain(#{outcome := {violated, _, _}}, Properties, Options) -> replay(Properties, Options);
explain(#{recorded := _}, Properties, #{report := _} = Options) -> replay(Properties, Options);
explain(#{}, _, _) -> ok.

replay(Properties, #{output := Dir, json := Json} = Options) ->
    Replay = (maps:with([syntax, report], Options))#{recording => Dir, json => Json, allow_changed => false, trust => false,
                                                     mirror => false, check => false, step => false},
    case witness_cli_replay:run(Replay, Properties) of
        {ok, Code} when Code < 2 -> ok;
        {ok, _} -> unexplained(~"see above");
        {error, {_, _} = Error} -> unexplained(witness:format_error(Error));
        {error, Text} -> unexplained(Text)
    end.

unexplained(Why) -> witness_cli_io:note([~"witness search: the replay of the recording does not explain it: ", Why, $\n]).
