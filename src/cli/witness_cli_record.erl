-module(witness_cli_record).
-moduledoc """
`witness record`: runs a program in a VM of its own, and records it.

Results go to standard output when the program has ended, after its own output, and progress goes to standard error.

| Exit code | Meaning |
|---|---|
| 0 | the run was recorded, however the program ended, and nothing was violated |
| 1 | it was monitored, and something was violated |
| 2 | wrong usage or bad input: nothing has run |
| 3 | the recording has ended before the program, or is incomplete; or the results of monitors cannot be trusted |

With `--spec` or `--monitor` the program is monitored in its VM while it is recorded. Its verdicts and summary are those of
`m:witness_cli_run`; the summary of the recording comes last.

An interrupt ends the program: for an application that is a normal end; otherwise the recording counts as
ended early.
""".

-export([run/2, command/0]).

-export_type([options/0]).

-doc "See `command/0`.".
-type options() :: #{json := boolean(), contents := boolean(), hash := boolean(), times := boolean(), tracing_only := boolean(),
                     output => string(), pa => [string()],
                     specs => [string()], monitors => [string()], weave => [string()], outside => [string()],
                     config => string(), report => witness_web:report(), app => string(), mix => string(), system => string()}.

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Runs mod:fun(args), or the application APP, in a fresh node and records what made this run what it was: "
               "which messages each process took, in which order and from whom, and what it learned from outside. The "
               "arguments are Erlang terms; nothing in them is evaluated.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nThe recording ends when the function has returned and all processes that it has spawned have "
               "ended, when the application has stopped, at the time of --for, or at an interrupt (Ctrl-C or SIGTERM)."
               "\n\nExit codes: 0 recorded, however the program ended; 1 a violation; 2 wrong usage or bad input; 3 the "
               "recording ended early or cannot be trusted, or what monitors found cannot.\n\n"
               "  witness record --pa ebin -o calc.rec 'calc_demo:main(10)'\n"
               "  witness log calc.rec\n"
               "  witness record --contents --spec calc.hml --pa ebin -o calc.rec 'calc_demo:main(10)'\n"
               "  witness check --spec other.hml calc.rec\n"],
      arguments => witness_cli_options:arguments(record, [output | witness_cli_options:properties()] ++ [
        instrument, contents, hash, times, tracing_only, no_code, last, weave, outside, config, witness_cli_options:for(~"end the recording"),
        witness_cli_options:report(),
        witness_cli_options:must_decide(),
        witness_cli_options:json(~"one JSON object a line on standard output; what the program prints goes to standard error"),
        app, witness_cli_options:mix(~"record"), system])}.

-doc "Records, and monitors if there are properties; returns the exit code, or an error of the user.".
-spec run(options(), Properties :: none | map()) ->
    {ok, 0..3} | {error, unicode:chardata() | {unwritten, unicode:chardata()} | witness:error()}.
run(Given, Properties) ->
    maybe
        #{json := Json, output := Dir} = Options = absolute(maps:merge(#{output => witness_record:new_name(os:getpid())}, Given)),
        {ok, Mix} ?= mix(Options),
        {ok, Named} ?= witness_cli_setup:add_paths(maps:get(pa, Options, [])),
        {ok, Program} ?= program(Options, maps:get(apps, Mix, [])),
        Folders = Named ++ maps:get(folders, Mix, []),
        ok ?= witness_cli_setup:load_elixir(module(Program), Folders),
        ok ?= check_call(Program),
        {ok, Applications} ?= applications(maps:get(weave, Options, [])),
        {ok, Outside} ?= applications(maps:get(outside, Options, [])),
        {ok, Rows} ?= witness_cli_call:signatures(Options, Mix),
        Out = witness_cli_io:open(case Json of true -> json; false -> text end),
        Begin = erlang:monotonic_time(millisecond),
        Own = [Name || #{name := Name} <- witness_option_schema:record()],
        All = maps:merge(maps:merge(maps:without([signatures], maps:with(Own, Options)), Rows),
                         #{dir => Dir, pa => Folders, weave => Applications, outside => Outside,
                           keep_code => not maps:get(no_code, Options, false),
                           environment => maps:get(environment, Mix, []), on_progress => witness_cli_progress:new()}),
        Watch = witness_cli_record_size:watch(Dir),
        Recorded = run_recording(maps:merge(All, Program), monitored(Properties, Rows),
                                 (maps:with([report, must_decide], Options))#{
                                     json => Json, out => Out, for => maps:get(for, Options, infinity),
                                     subject => [~"recorded in ", Dir]}),
        ok = witness_cli_record_size:stop(Watch),
        {ok, Found, Summary} ?= Recorded,
        Told = Summary#{dir => Dir, elapsed_ms => erlang:monotonic_time(millisecond) - Begin},
        Code = code(Told, Program),
        print_summary(Json, Out, Told, Code),
        {ok, both(Found, Code)}
    end.

%% A Mix project is run in its folder.
absolute(#{mix := _, output := Dir} = Options) ->
    maps:merge(Options#{output => filename:absname(Dir)},
               maps:map(fun(pa, Names) -> [filename:absname(Name) || Name <- Names];
                           (config, Name) -> filename:absname(Name)
                        end, maps:with([pa, config], Options)));
absolute(Options) -> Options.

mix(#{mix := Folder}) -> witness_cli_mix:export(Folder);
mix(#{}) -> {ok, #{}}.

monitored(none, _) -> none;
monitored(Properties, Rows) -> maps:merge(Properties, Rows).

%% The time of --for begins with the program, not with the weaving before it.
run_recording(Options, none, #{for := For}) ->
    ok = witness_cli_signal:catch_interrupts(),
    maybe
        {ok, Recording} ?= check_started(witness_record:start(Options)),
        Started = erlang:monotonic_time(millisecond),
        _ = For =/= infinity andalso erlang:send_after(For, self(), planned_end),
        {ok, Summary} ?= wait_for_end(Recording),
        {ok, 0, mark_planned(Summary, For, Started)}
    end;
run_recording(Options, Properties, #{for := For} = Output) ->
    Self = self(),
    With = fun(Start) ->
        Run = witness_recorded_run:start(Options, Start, fun(Summary) -> Self ! {recorded, Summary} end),
        Self ! {started, erlang:monotonic_time(millisecond)},
        Run
    end,
    case witness_cli_run:run(Output#{start => Properties#{system => recorded}, with => With, timeout => infinity}) of
        {ok, Code} ->
            Started = receive {started, Time} -> Time end,
            receive {recorded, {ok, Summary}} -> {ok, Code, mark_planned(Summary, For, Started)};
                    {recorded, {error, Error}} -> refusal(Error)
            end;
        {error, {witness_record, _} = Error} -> refusal(Error);
        {error, _} = Error -> Error
    end.

%% Whether the program was stopped at the time of --for.
mark_planned(Summary, For, Started) ->
    Summary#{planned => is_integer(For) andalso erlang:monotonic_time(millisecond) - Started >= For}.

%% A violation determines the exit code, whatever the result of the recording.
both(1, _) -> 1;
both(Found, Code) -> max(Found, Code).

program(#{app := _, system := _}, _) -> {error, ~"--app and 'mod:fun(args)' exclude each other"};
program(#{app := Text}, _) ->
    maybe
        {ok, {application, App}} ?= witness_cli_call:parse_application(Text),
        {ok, #{app => App}}
    end;
program(#{system := Text}, Apps) ->
    maybe
        {ok, Call} ?= witness_cli_call:parse(Text),
        {ok, #{run => Call, applications => Apps}}
    end;
program(#{}, [App]) -> {ok, #{app => App}};
program(#{}, []) -> {error, ~"'mod:fun(args)', --app APP or --mix DIR is expected, and not there"};
program(#{}, Apps) ->
    {error, [~"the project has the applications ", witness_text:list([atom_to_binary(App) || App <- Apps]),
             ~": name one with --app"]}.

%% For an application, the folders show whether it needs Elixir.
module(#{run := {Module, _, _}}) -> Module;
module(#{app := _}) -> erlang.

check_call(#{run := Call}) -> witness_cli_call:check(Call);
check_call(#{app := _}) -> ok.

applications([]) -> {ok, []};
applications([Text | Texts]) ->
    maybe
        {ok, {application, App}} ?= witness_cli_call:parse_application(Text),
        {ok, Apps} ?= applications(Texts),
        {ok, [App | Apps]}
    end.

check_started({error, Error}) -> refusal(Error);
check_started({ok, _} = Started) -> Started.

%% A full disk is not an error in the user's arguments.
refusal(Error) ->
    Text = witness_cli_options:name_option(witness:format_error(Error)),
    {error, case is_full(Error) of true -> {unwritten, Text}; false -> Text end}.

is_full({witness_record, Reason}) -> is_full(Reason);
is_full({file, _, _}) -> true;
is_full({dir, _, Full}) -> Full =:= enospc orelse Full =:= edquot;
is_full({weave, {_, Full}}) -> Full =:= enospc orelse Full =:= edquot;
is_full(_) -> false.

%% Another process waits for the end, so that this one receives interrupts meanwhile.
wait_for_end(Recording) ->
    Self = self(),
    {_, Waiter} = spawn_monitor(fun() -> Self ! {awaited, witness_record:await(Recording, infinity)} end),
    wait_for_end(Recording, Waiter).

wait_for_end(Recording, Waiter) ->
    receive
        {awaited, {ok, Summary}} -> {ok, Summary};
        {awaited, {error, Error}} -> refusal(Error);
        {'DOWN', Waiter, process, _, Reason} when Reason =/= normal -> error({recording_died, Reason});
        interrupt ->
            witness_cli_io:note(~"interrupted: the recording comes to its end; once more ends it at once\n"),
            ok = witness_record:stop(Recording),
            wait_for_end(Recording, Waiter);
        planned_end ->
            ok = witness_record:stop(Recording),
            wait_for_end(Recording, Waiter);
        {'DOWN', Waiter, process, _, normal} -> wait_for_end(Recording, Waiter);
        {'EXIT', _, _} -> wait_for_end(Recording, Waiter)
    end.

code(#{outcome := {ended, _}}, _) -> 3;
code(#{ended := stopped, planned := false}, #{run := _}) -> 3;
code(#{refused := Refused}, _) ->
    case lists:all(fun witness_log_recording_refusal:is_chosen/1, Refused) of
        true -> 0;
        false -> 3
    end;
code(#{}, _) -> 0.

print_summary(Json, Out, #{unsealed := Error} = Summary, Code) ->
    witness_cli_io:note([~"the recording has no seal, so that to replay it takes --trust: ", witness:format_error(Error), $\n]),
    print_summary(Json, Out, maps:remove(unsealed, Summary), Code);
print_summary(Json, Out, #{not_kept := Reason} = Summary, Code) ->
    witness_cli_io:note([~"the code is not kept with the recording, so that it is replayed only as long as that is unchanged: ",
                         file:format_error(Reason), $\n]),
    print_summary(Json, Out, maps:remove(not_kept, Summary), Code);
print_summary(true, Out, Summary, _) ->
    witness_cli_io:print(Out, witness_cli_json:recording(Summary, witness_cli_json:header(node())));
print_summary(false, Out, Summary, Code) ->
    witness_cli_io:print(Out, witness_cli_render:recording(Summary, Code, witness_cli_io:look())).
