-module(witness_cli_replay).
-moduledoc """
`witness replay`: does what was recorded again, and says whether it went the same way.

The result goes to standard output, progress and, with `--mirror-output`, what the program prints to standard error.

| Exit code | Meaning |
|---|---|
| 0 | replayed: every process did what it did |
| 1 | a process diverged |
| 2 | wrong usage, or a recording that cannot be replayed |
""".

-export([run/1, command/0]).

-export_type([options/0]).

-doc "See `command/0`.".
-type options() :: #{json := boolean(), trust := boolean(), allow_changed := boolean(), mirror := boolean(), recording := string(),
                     pa => [string()]}.

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Replays the recording in the folder DIR, in a fresh node: each process takes the messages that it took, in "
               "that order, and hears what it heard. Nothing outside is asked or told again.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nExit codes: 0 replayed, every process did what it did; 1 a process diverged; 2 wrong usage, or a "
               "recording that cannot be replayed.\n\n"
               "  witness record --pa ebin -o calc.rec 'calc_demo:main(10)'\n"
               "  witness replay calc.rec\n"],
      arguments => [
        #{name => pa, long => "-pa", action => append, type => string,
          help => {"[--pa DIR]...", ["a folder with compiled modules, in the place of those that were recorded; may be "
                                     "repeated"]}},
        #{name => allow_changed, long => "-allow-changed", type => boolean, default => false,
          help => {"[--allow-changed]", ["replay although modules have changed since, to see where that makes a "
                                         "difference"]}},
        #{name => trust, long => "-trust", type => boolean, default => false,
          help => {"[--trust]", ["replay a recording of another user, whose code that may run"]}},
        #{name => mirror, long => "-mirror-output", type => boolean, default => false,
          help => {"[--mirror-output]", ["show what the program prints, on standard error"]}},
        #{name => json, long => "-json", type => boolean, default => false,
          help => {"[--json]", ["one JSON object on standard output"]}},
        #{name => recording, type => string, help => {"DIR", ["the folder of the recording"]}}
      ]}.

-doc "Replays; the exit code, or an error of the user.".
-spec run(options()) -> {ok, 0 | 1} | {error, unicode:chardata()}.
run(#{json := Json, recording := Dir, allow_changed := Allowed, trust := Trust, mirror := Mirror} = Options) ->
    Begin = erlang:monotonic_time(millisecond),
    Given = #{dir => Dir, allow_changed => Allowed, trust => Trust, on_progress => progress()},
    maybe
        ok ?= told(Dir, witness_replay:trusted(Given)),
        {ok, Folders} ?= witness_cli_setup:add_paths(maps:get(pa, Options, [])),
        ok ?= elixir(Dir, Folders),
        Paths = case Folders of [] -> #{}; _ -> #{pa => Folders} end,
        Output = case Mirror of true -> #{mirror => fun witness_cli_io:note/1}; false -> #{} end,
        {ok, Report} ?= told(Dir, witness_replay:replay(maps:merge(maps:merge(Given, Paths), Output))),
        All = Report#{dir => Dir, elapsed_ms => erlang:monotonic_time(millisecond) - Begin},
        tell(Json, witness_cli_io:open(case Json of true -> json; false -> text end), All),
        {ok, case Report of #{outcome := identical} -> 0; #{outcome := diverged} -> 1 end}
    end.

told(Dir, {error, Reason}) -> {error, [witness_text:clean(Dir), ~": ", witness_replay:format_error(Reason)]};
told(_, Done) -> Done.

%% What was recorded may need its libraries. What is wrong with the recording is told by who replays it.
elixir(Dir, Folders) ->
    maybe
        {ok, Recording} ?= witness_log_recording:open(Dir),
        #{code := #{pa := Recorded}} = Header ?= witness_log_recording:header(Recording),
        Module = case Header of #{run := {Called, _, _}} -> Called; #{} -> none end,
        witness_cli_setup:load_elixir(Module, case Folders of [] -> Recorded; _ -> Folders end)
    else
        {error, Text} when not is_map(Text) -> {error, Text};
        _ -> ok
    end.

%% Nobody watches where there is no terminal.
progress() ->
    case witness_cli_io:terminal(stderr) of
        true -> fun(Text) -> witness_cli_io:note([$\r, Text, ~"\e[K"]) end;
        false -> fun(_) -> ok end
    end.

tell(true, Out, Report) -> witness_cli_io:print(Out, witness_cli_json:replay(Report, witness_cli_json:header(node())));
tell(false, Out, Report) -> witness_cli_io:print(Out, witness_cli_replay_text:report(Report, witness_cli_io:look())).
