-module(witness_concuerror).
-moduledoc """
The programs of Concuerror's test suites, recorded and replayed: `main([Source, Work, Recordings, Replays, Seconds, Names])`, as for
`bench/concuerror`. They are small and full of races, and cover what a schedule can do to a program.

Concuerror explores the schedules of a *scenario*, a function of a module, within some bound; several scenarios are the same
function. Here each function runs in a VM of its own, on the VM's own schedule. Many wait for ever, which Concuerror reports as
a deadlock: these are stopped after `Seconds`, which is a planned end. A line says of each function

| Column | |
|---|---|
| first | `identical`, `refused`, `diverged` or `failed` |
| scenarios | the number of scenarios with this function |
| name | `suite/module:function` |
| rest | how the program ended; what went wrong |
""".

-export([main/1, programs/2, load/2]).

-export_type([program/0]).

%% No replay of such a small program takes so long.
-define(REPLAY_MS, 300_000).
-define(AT_ONCE, 2).

-type scenario() :: {Name :: string(), Ebin :: file:filename(), module(), atom()}.

-doc """
- `name`: `suite/program`; `ebin`: the folder of its compiled modules; `module`: the one that has the scenarios;
- `scenarios`: each with its function, its bound (`inf`: none), how Concuerror reduces schedules, and flags;
- `options`: those that the module sets for Concuerror.
""".
-type program() :: #{name := string(), ebin := file:filename(), module := module(), scenarios := [tuple()], options := [term()]}.

-spec main([string()]) -> no_return().
main([Source, Work, Recordings, Replays, Seconds | Names]) ->
    {ok, Out} = file:open("/dev/fd/3", [append, raw]),
    Functions = functions(Source, Work, Names),
    How = #{work => Work, recordings => list_to_integer(Recordings), replays => list_to_integer(Replays),
            ms => 1000 * list_to_integer(Seconds)},
    Found = each(Functions, How, Out),
    ok = say(Out, "~b scenarios, ~b functions~s~n",
             [length(lists:append(Found)), length(Found),
              [io_lib:format(", ~b ~w", [length([1 || [Is | _] <- Found, Is =:= Kind]), Kind])
               || Kind <- lists:usort([Is || [Is | _] <- Found])]]),
    Wrong = [Kind || [Kind | _] <- Found, Kind =/= identical],
    halt(case {Found, Wrong} of {[_ | _], []} -> 0; _ -> 1 end).

say(Out, Format, Args) -> file:write(Out, unicode:characters_to_binary(io_lib:format(Format, Args))).

%% --- programs --------------------------------------------------------------------

%% Each with the number of its scenarios.
-spec functions(file:filename(), file:filename(), [string()]) -> [{scenario(), pos_integer()}].
functions(Source, Work, Names) ->
    All = lists:append([scenarios(load(Program, Work)) || Program <- programs(Source, Names)]),
    [{Function, length([1 || Other <- All, Other =:= Function])} || Function <- lists:uniq(All)].

scenarios(#{name := Name, ebin := Ebin, module := Module, scenarios := Scenarios}) ->
    [{lists:flatten(io_lib:format("~s:~s", [Name, element(1, Scenario)])), Ebin, Module, element(1, Scenario)} || Scenario <- Scenarios].

-doc "The programs with these names; with no name, all.".
-spec programs(file:filename(), [string()]) -> [file:filename()].
programs(Source, Names) ->
    [Program || Program <- lists:sort(filelib:wildcard(filename:join(Source, "tests/suites/*/src/*"))), is_named(Program, Names),
                filelib:is_dir(Program) orelse filename:extension(Program) =:= ".erl"].

is_named(_, []) -> true;
is_named(Program, Names) -> lists:member(filename:basename(Program, ".erl"), Names).

%% A program of several modules is a folder; its module `test` has the scenarios.
-doc "Compiles a program.".
-spec load(file:filename(), Work :: file:filename()) -> program().
load(Program, Work) ->
    Suite = filename:basename(filename:dirname(filename:dirname(Program))),
    Name = filename:join(Suite, filename:basename(Program, ".erl")),
    Ebin = filename:join([Work, "ebin", Name]),
    {Module, Files} = case filelib:is_dir(Program) of
        true -> {test, filelib:wildcard(filename:join(Program, "*.erl"))};
        false -> {list_to_atom(filename:basename(Program, ".erl")), [Program]}
    end,
    ok = filelib:ensure_path(Ebin),
    [{ok, _} = compile:file(File, [debug_info, nowarn_export_all, {outdir, Ebin}]) || File <- Files],
    {module, Module} = code:load_abs(filename:join(Ebin, atom_to_list(Module))),
    Scenarios = case erlang:function_exported(Module, scenarios, 0) of
        true -> Module:scenarios();
        false -> []
    end,
    Attributes = Module:module_info(attributes),
    true = code:delete(Module),
    _ = code:purge(Module),
    #{name => Name, ebin => Ebin, module => Module, scenarios => [normal(Scenario) || Scenario <- Scenarios],
      options => [Option || {Kind, Options} <- Attributes, Kind =:= concuerror_options orelse Kind =:= concuerror_options_forced,
                            Option <- Options]}.

normal(Function) when is_atom(Function) -> {Function, inf, optimal};
normal({Function}) -> {Function, inf, optimal};
normal({Function, Bound}) -> {Function, Bound, optimal};
normal(Scenario) -> Scenario.

%% --- runs ------------------------------------------------------------------------

each(Functions, How, Out) -> each(Functions, #{}, How, Out).

each([], Running, _, _) when map_size(Running) =:= 0 -> [];
each([{Function, Scenarios} | Functions], Running, How, Out) when map_size(Running) < ?AT_ONCE ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({ran, runs(Function, How)}) end),
    each(Functions, Running#{{Pid, Monitor} => {Function, Scenarios}}, How, Out);
each(Functions, Running, How, Out) ->
    receive
        {'DOWN', Monitor, process, Pid, Reason} when is_map_key({Pid, Monitor}, Running) ->
            {{{Name, _, _, _}, Scenarios}, Others} = maps:take({Pid, Monitor}, Running),
            {Kind, Text} = case Reason of
                {ran, Ran} -> Ran;
                _ -> {failed, io_lib:format("~0p", [Reason])}
            end,
            ok = say(Out, "~-10w ~3b ~s ~ts~n", [Kind, Scenarios, Name, Text]),
            [lists:duplicate(Scenarios, Kind) | each(Functions, Others, How, Out)]
    end.

%% Stops at the first recording that is not identical; its folder stays. Every second one has contents, so that contents are
%% compared too.
runs(Function, #{recordings := Recordings} = How) -> runs(1, Recordings, Function, How, {failed, ""}).

runs(N, Recordings, _, _, Last) when N > Recordings -> Last;
runs(N, Recordings, {Name, Ebin, Module, Function} = Named, #{work := Work} = How, _) ->
    Dir = filename:join([Work, "recorded", Name ++ "-" ++ integer_to_list(N)]),
    _ = file:del_dir_r(Dir),
    {ok, Recording} = witness_record:start(#{run => {Module, Function, []}, dir => Dir, pa => [Ebin], contents => N rem 2 =:= 0}),
    case recorded(Recording, How) of
        {ok, #{outcome := recorded, refused := [], ended := Ended}} ->
            case replays(Dir, How) of
                {identical, _} = Same ->
                    ok = file:del_dir_r(Dir),
                    runs(N + 1, Recordings, Named, How, setelement(2, Same, io_lib:format("~0P", [Ended, 12])));
                Other -> Other
            end;
        {ok, #{outcome := recorded, refused := Refused}} -> {refused, io_lib:format("~0p", [Refused])};
        Other -> {failed, io_lib:format("~0p", [Other])}
    end.

recorded(Recording, #{ms := Ms}) ->
    case witness_record:await(Recording, Ms) of
        {error, {witness_record, timeout}} ->
            ok = witness_record:stop(Recording),
            witness_record:await(Recording, ?REPLAY_MS);
        Ended -> Ended
    end.

replays(Dir, #{replays := Replays}) ->
    lists:foldl(fun(_, {identical, _}) -> replayed(Dir); (_, Other) -> Other end, {identical, ""}, lists:seq(1, Replays)).

%% A replay that hangs is killed, and with it its VM.
replayed(Dir) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({replayed, witness_replay:replay(#{dir => Dir})}) end),
    receive
        {'DOWN', Monitor, process, Pid, {replayed, {ok, #{outcome := identical, cut := 0, complete := true}}}} -> {identical, ""};
        {'DOWN', Monitor, process, Pid, {replayed, {ok, Report}}} -> {diverged, io_lib:format("~0p", [Report])};
        {'DOWN', Monitor, process, Pid, {replayed, {error, Reason}}} -> {failed, witness:format_error(Reason)};
        {'DOWN', Monitor, process, Pid, Reason} -> {failed, io_lib:format("~0p", [Reason])}
    after ?REPLAY_MS ->
        exit(Pid, kill),
        {failed, "the replay does not end"}
    end.
