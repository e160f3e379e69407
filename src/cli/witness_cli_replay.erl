-module(witness_cli_replay).
-moduledoc """
`witness replay`: replays a recording, reports whether the replay diverged, and optionally monitors it.

The result goes to standard output. Progress and, with `--mirror-output`, the output of the program go to standard error.
With `--spec` or `--monitor` the verdicts and the summary of the monitors come before it, as those of `m:witness_cli_run`.

| Exit code | Meaning |
|---|---|
| 0 | replayed: every process did what its log says, and nothing was violated |
| 1 | a process diverged, or something was violated |
| 2 | wrong usage, or a recording that cannot be replayed |
| 3 | the results of monitors cannot be trusted or say nothing |

With `--check` the verdicts are compared with those in the recording instead: 0 if they are the same, 1 if not.
""".

-export([run/2, with_stored/1, check_usable/2, command/0]).

-export_type([options/0]).

-doc "See `command/0`.".
-type options() :: #{json := boolean(), trust := boolean(), allow_changed := boolean(), mirror := boolean(), check := boolean(),
                     step := boolean(), commands => [string()], recording := string(), until => verdict,
                     report => witness_web:report(), events => string(), pa => [string()], specs => [string()],
                     monitors => [string()], stored => witness_verdicts:verdicts(), atom() => term()}.

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Replays the recording in the folder DIR, in a fresh node: each process takes the messages that it took, in "
               "that order, and hears what it heard. Nothing outside is asked or told again. Specifications and monitors see "
               "what its processes do.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 replayed, every process did what it did, and nothing was violated; 1 a process diverged, or a "
               "violation; 2 wrong usage, or a recording that cannot be replayed; 3 what monitors found cannot be trusted or says "
               "nothing. With --check, of a recording that was monitored when it was made: 0 also for the same violations, 1 for "
               "other verdicts.\n\n"
               "  witness record --spec calc.hml --pa ebin -o calc.rec 'calc_demo:main(10)'\n"
               "  witness replay calc.rec\n"
               "  witness replay --spec other.hml --until verdict calc.rec\n"
               "  witness replay --check calc.rec\n"
               "  witness replay --step calc.rec\n"],
      arguments => witness_cli_options:arguments(replay, witness_cli_options:properties() ++ [
        instrument,
        #{name => until, flag => "--until", value => {one_of, [verdict]}, text => ~"stop at the first violation"},
        #{name => check, flag => "--check",
          text => [~"compare with the verdicts that the recording has, of its specifications and monitors, or of those that are ",
                   ~"named"]},
        #{name => step, flag => "--step", text => ~"go through the run by commands, forward and back; help shows them"},
        #{name => commands, flag => "--command", argument => "COMMAND", repeated => true,
          text => ~"with --step: do this, and then end; may be repeated"},
        #{name => events, flag => "--events", argument => "FILE",
          text => [~"write all that processes do to a file, for witness check: as JSON Lines if its name ends in .jsonl, ",
                   ~".ndjson or .json"]},
        allow_changed, trust, mirror,
        witness_cli_options:report(),
        witness_cli_options:must_decide(),
        witness_cli_options:json(~"one JSON object a line on standard output"),
        #{name => recording, argument => "DIR", text => ~"the folder of the recording"}])}.

-doc """
With `--check`, adds the verdicts of the recording to the options, and its specifications and monitors unless the options name
others.
""".
-spec with_stored(options()) -> {ok, options()} | {error, unicode:chardata()}.
with_stored(#{until := _, check := true}) -> {error, ~"--until and --check exclude each other"};
with_stored(#{check := true, recording := Dir, trust := Trust} = Options) ->
    maybe
        %% The modules that it names are compiled and run.
        ok ?= check_trust(#{dir => Dir, trust => Trust}),
        {ok, #{specs := Specs, monitors := Monitors, signatures := Signatures, instrument := Instrument, verdicts := Verdicts}} ?=
            witness_verdicts:read(Dir),
        Named = [{instrument, Instrument} || not is_map_key(instrument, Options)]
            %% Recordings keep these rows too, except older ones.
            ++ [{signatures, lists:uniq(names(Signatures) ++ maps:get(signatures, Options, []))} || Signatures =/= []]
            ++ [{specs, names(Specs)} || Specs =/= []] ++ [{monitors, names(Monitors)} || Monitors =/= []],
        Checked = case is_map_key(specs, Options) orelse is_map_key(monitors, Options) of
            true -> Options;
            false -> maps:merge(Options, maps:from_list(Named))
        end,
        {ok, Checked#{stored => Verdicts}}
    else
        none -> {ok, Options};
        {error, Text} -> {error, Text}
    end;
with_stored(Options) -> {ok, Options}.

names(Texts) -> [unicode:characters_to_list(Text) || Text <- Texts].

-doc "Replays, and monitors if there are properties; returns the exit code, or an error of the user.".
-spec run(options(), Properties :: none | map()) ->
    {ok, 0..3} | {error, unicode:chardata() | {unwritten, unicode:chardata()} | witness:error()}.
run(#{until := _}, none) ->
    {error, ~"--until verdict: name a specification with --spec FILE.hml, or a monitor with --monitor 'm:f/1=module'"};
run(#{step := true} = Options, Properties) -> check_step(Options, Properties);
run(#{commands := _}, _) -> {error, ~"--command is for --step"};
run(#{json := Json, recording := Dir, allow_changed := Allowed, trust := Trust, mirror := Mirror} = Options, Properties) ->
    Begin = erlang:monotonic_time(millisecond),
    maybe
        {ok, Rows} ?= witness_cli_call:signatures(Options),
        Given = (maps:merge(maps:with([syntax], Options), Rows))#{dir => Dir, allow_changed => Allowed, trust => Trust,
                                                                  on_progress => witness_cli_progress:new()},
        ok ?= check_trust(Given),
        {ok, Folders} ?= witness_cli_setup:add_paths(maps:get(pa, Options, [])),
        ok ?= elixir(Dir, Folders),
        Output = case Mirror of true -> #{mirror => fun witness_cli_io:note/1}; false -> #{} end,
        Events = maps:with([events], Options),
        Out = witness_cli_io:open(case Json of true -> json; false -> text end),
        All = maps:merge(maps:merge(maps:merge(Given, Output), Events), paths(Folders, Properties, Dir)),
        {ok, Found, Report} ?= run_replay(All, Properties, Out, Options),
        Told = Report#{dir => Dir, monitored => Properties =/= none, elapsed_ms => erlang:monotonic_time(millisecond) - Begin},
        print_report(Json, Out, Told),
        {ok, note_unwritten(code(Told, Found), Told)}
    end.

check_step(Options, Properties) ->
    case [Name || Name <- [json, check, mirror], maps:get(Name, Options)]
             ++ [Name || Name <- [until, events], is_map_key(Name, Options)] of
        [mirror | _] -> {error, ~"--step and --mirror-output exclude each other"};
        [Name | _] -> {error, [~"--step and --", atom_to_binary(Name), ~" exclude each other"]};
        [] -> run_step(Options, Properties)
    end.

run_step(#{recording := Dir, allow_changed := Allowed, trust := Trust} = Options, Properties) ->
    maybe
        {ok, Rows} ?= witness_cli_call:signatures(Options),
        Given = (maps:merge(maps:with([syntax], Options), Rows))#{dir => Dir, allow_changed => Allowed, trust => Trust},
        ok ?= check_trust(Given),
        {ok, Folders} ?= witness_cli_setup:add_paths(maps:get(pa, Options, [])),
        ok ?= elixir(Dir, Folders),
        All = maps:merge(Given, paths(Folders, Properties, Dir)),
        {error, Error} ?= witness_cli_step:run(All, witness_cli_io:open(text),
                                               (maps:with([commands], Options))#{properties => Properties}),
        check_result(All, {error, Error})
    end.

%% The folders for monitors need not contain the modules of the program.
paths([], _, _) -> #{};
paths(Folders, none, _) -> #{pa => Folders};
paths(Folders, _, Dir) -> #{pa => Folders ++ [Folder || Folder <- recorded_folders(Dir), filelib:is_dir(Folder)]}.

recorded_folders(Dir) ->
    maybe
        {ok, Recording} ?= witness_log_recording:open(Dir),
        #{code := #{pa := Recorded}} ?= witness_log_recording:header(Recording),
        Recorded
    else
        _ -> []
    end.

run_replay(#{events := File} = All, none, _, _) ->
    Self = self(),
    Ref = make_ref(),
    maybe
        {ok, 0, Report} ?= check_result(All, witness_run_replay:write(File, (maps:remove(events, All))#{
            on_unwritten => fun(Text) -> Self ! {Ref, unwritten, Text} end})),
        {ok, 0, maps:merge(Report, unwritten(Ref))}
    end;
run_replay(All, none, _, _) -> check_result(All, witness_replay:replay(All));
run_replay(All, Properties, Out, #{json := Json} = Options) ->
    Self = self(),
    Ref = make_ref(),
    Replay = All#{on_report => fun(Result) -> Self ! {Ref, report, Result} end,
                  on_unwritten => fun(Text) -> Self ! {Ref, unwritten, Text} end},
    Run = (maps:with([until, report, must_decide], Options))#{
        start => Properties#{system => {log, {replay, Replay}}}, json => Json, out => Out, for => infinity, timeout => infinity,
        on_verdict => fun(Verdict) -> Self ! {Ref, verdict, Verdict} end},
    case witness_cli_run:run(Run#{subject => [~"replay of ", maps:get(recording, Options)]}) of
        {ok, Code} ->
            {ok, Found, Report} = report_verdicts(Code, verdicts(Ref, []), Ref, Properties, Options),
            {ok, Found, maps:merge(Report, unwritten(Ref))};
        {error, _} = Error -> Error
    end.

check_trust(#{dir := Dir} = Given) ->
    case witness_replay:check_trust(Given) of
        ok -> ok;
        {error, Error} -> {error, [witness_text:clean(Dir), ~": ", witness:format_error(Error)]}
    end.

check_result(_, {ok, Report}) -> {ok, 0, Report};
check_result(_, {error, {witness_run_replay, {log, _}} = Error}) -> {error, witness:format_error(Error)};
check_result(#{dir := Dir}, {error, Error}) ->
    Text = [witness_text:clean(Dir), ~": ", witness:format_error(Error)],
    {error, case is_full(Error) of true -> {unwritten, Text}; false -> Text end}.

%% A full disk is not an error in the user's arguments.
is_full({witness_record, {weave, {_, Full}}}) -> is_full_disk(Full);
is_full({witness_replay, {file, Full}}) -> is_full_disk(Full);
is_full(_) -> false.

is_full_disk(Reason) -> Reason =:= enospc orelse Reason =:= edquot.

unwritten(Ref) -> receive {Ref, unwritten, Text} -> #{unwritten => Text} after 0 -> #{} end.

%% If the requested events could not be written, the other results remain valid.
note_unwritten(Code, #{unwritten := Text}) ->
    witness_cli_io:note([~"witness replay: ", witness_text:clean(Text), $\n]),
    case Code of 0 -> 3; _ -> Code end;
note_unwritten(Code, #{}) -> Code.

%% The run has sent all verdicts before it ended.
verdicts(Ref, Verdicts) ->
    receive {Ref, verdict, Verdict} -> verdicts(Ref, [Verdict | Verdicts]) after 0 -> lists:reverse(Verdicts) end.

%% The run has printed its errors.
report_verdicts(Code, Verdicts, Ref, Properties, Options) ->
    Report = receive {Ref, report, Told} -> Told after 0 -> stopped end,
    case Report of
        %% A short replay ends before it can be stopped.
        {ok, #{outcome := identical}} when Code =:= 1, is_map_key(until, Options) -> {ok, Code, stopped_report(Verdicts)};
        {ok, #{outcome := identical} = Replayed} -> {ok, Code, add_differences(Replayed, Verdicts, Properties, Options)};
        {ok, Replayed} -> {ok, Code, Replayed};
        {error, Error} -> {ok, case is_full(Error) of true -> 3; false -> Code end, #{outcome => refused}};
        stopped -> {ok, Code, stopped_report(Verdicts)}
    end.

add_differences(Report, Verdicts, Properties, #{stored := Stored}) ->
    Replayed = lists:foldl(fun witness_verdicts:add/2, witness_verdicts:new(Properties), Verdicts),
    Report#{differing => witness_verdicts:differences(Stored, Replayed)};
add_differences(Report, _, _, _) -> Report.

%% The replay was stopped before its end.
stopped_report(Verdicts) ->
    Report = #{outcome => stopped, processes => null, entries => null, killed => null, cut => null, stopped => null,
               complete => null, changed => []},
    case [Place || #{verdict := no, log := Place} <- Verdicts] of
        [First | _] -> Report#{at => First};
        [] -> Report
    end.

-spec code(map(), 0..3) -> 0..3.
code(#{outcome := refused}, Found) -> Found;
code(#{outcome := diverged}, _) -> 1;
code(#{differing := []}, _) -> 0;
code(#{differing := [_ | _]}, _) -> 1;
code(_, Found) -> Found.

-doc "Whether the recording in a folder may be replayed, and whether its code is trusted; loads the libraries that it may need.".
-spec check_usable(file:filename(), Trust :: boolean()) -> ok | {error, unicode:chardata()}.
check_usable(Dir, Trust) ->
    maybe
        ok ?= check_trust(#{dir => Dir, trust => Trust}),
        elixir(Dir, [])
    end.

%% Errors in the recording are ignored here: the replay reports them.
elixir(Dir, Folders) ->
    maybe
        {ok, Recording} ?= witness_log_recording:open(Dir),
        #{code := #{pa := Recorded}} = Header ?= witness_log_recording:header(Recording),
        ok = witness_cli_setup:hide_structs(Dir, Recorded),
        Module = case Header of #{run := {Called, _, _}} -> Called; #{} -> none end,
        witness_cli_setup:load_elixir(Module, case Folders of [] -> Recorded; _ -> Folders end)
    else
        _ -> ok
    end.

%% The refusal was printed before.
print_report(_, _, #{outcome := refused}) -> ok;
print_report(true, Out, Report) -> witness_cli_io:print(Out, witness_cli_json:replay(Report, witness_cli_json:header(node())));
print_report(false, Out, Report) -> witness_cli_io:print(Out, witness_cli_replay_text:report(Report, witness_cli_io:look())).
