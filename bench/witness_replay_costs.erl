-module(witness_replay_costs).
-moduledoc """
How long a replay takes: `main([Programs, Set, Samples, Milliseconds, Names, Memory])`, as for `bench/replay`.

A benchmark runs once to warm up, and then as often as takes so many milliseconds unrecorded. Its time replayed is that of
replaying all these runs minus that of replaying the first one alone, so neither the start of a VM nor the first
loading counts; the recordings are made before. Every run checks its own result, and every replay has to be identical.

| Column | |
|---|---|
| `plain ms`, `replayed` | medians, of one run |
| `ratio` | of these, with the least and the largest of the pairs |
| `messages` | messages a run, with a recorded sender |
| `MB` | the largest memory of the replaying VM (`VmHWM`, where the system reports it) |
| `ten times` | the same of a recording ten times as long, as a ratio; with `memory` only |
""".

-export([main/1, runs/4]).

-spec main([string()]) -> no_return().
main([Programs, Set0, Samples, Milliseconds, Names, Memory]) ->
    Set = list_to_atom(Set0),
    Work = filename:join(Programs, "work"),
    ok = filelib:ensure_path(Work),
    Given = #{programs => Programs, set => Set, work => Work, memory => Memory =:= "memory",
              milliseconds => list_to_integer(Milliseconds)},
    io:format("OTP ~s, 1 scheduler, parameters ~w, medians of ~s, runs of ~s ms~n",
              [erlang:system_info(otp_release), Set, Samples, Milliseconds]),
    io:format("~-22s ~6s ~10s ~10s ~7s ~15s ~9s ~7s ~9s~n",
              ["", "runs", "plain ms", "replayed", "ratio", "least to most", "messages", "MB", "ten times"]),
    Ratios = [benchmark(Name, list_to_integer(Samples), Given) || Name <- witness_savina_times:chosen(Names)],
    Mean = math:exp(lists:sum([math:log(Ratio) || {_, Ratio} <- Ratios]) / length(Ratios)),
    {Worst, Most} = lists:last(lists:keysort(2, Ratios)),
    io:format("geometric mean ~.2f, worst ~.2f (~w)~n", [Mean, Most, Worst]),
    ok = file:del_dir_r(Work),
    halt(0).

benchmark(Name, Samples, #{milliseconds := Milliseconds} = Given) ->
    Runs = repetitions(Name, Milliseconds, Given, 1),
    Once = recorded(Name, 1, Given),
    Often = recorded(Name, 1 + Runs, Given),
    %% The first replay weaves what is not in the cache.
    _ = replayed(Once),
    Pairs = [pair(I, Name, Runs, Once, Often, Given) || I <- lists:seq(1, Samples)],
    Plain = witness_savina_times:quartile(2, [A || {A, _, _} <- Pairs]),
    Replayed = witness_savina_times:quartile(2, [B || {_, B, _} <- Pairs]),
    Largest = lists:max([Kilobytes || {_, _, Kilobytes} <- Pairs]),
    Each = [B / A || {A, B, _} <- Pairs],
    Messages = (witness_record_costs:messages(Often) - witness_record_costs:messages(Once)) div Runs,
    io:format("~-22w ~6w ~10.2f ~10.2f ~7.2f ~7.2f-~7.2f ~9w ~7.1f ~9s~n",
              [Name, Runs, Plain / 1000, Replayed / 1000, Replayed / Plain, lists:min(Each), lists:max(Each), Messages,
               Largest / 1024, longer(Name, Runs, Largest, Given)]),
    _ = [ok = file:del_dir_r(Dir) || Dir <- [Once, Often]],
    {Name, Replayed / Plain}.

longer(_, _, _, #{memory := false}) -> "";
longer(Name, Runs, Before, Given) ->
    Dir = recorded(Name, 1 + 10 * Runs, Given),
    {_, Kilobytes} = replayed(Dir),
    ok = file:del_dir_r(Dir),
    io_lib:format("~.2f", [Kilobytes / max(1, Before)]).

repetitions(Name, Milliseconds, Given, Runs) ->
    case plain(Name, Runs, Given) of
        Wall when Wall * Runs < Milliseconds * 1000 ->
            repetitions(Name, Milliseconds, Given, max(2 * Runs, min(10 * Runs, ceil(Milliseconds * 1000 / Wall))));
        _ -> Runs
    end.

pair(I, Name, Runs, Once, Often, Given) when I rem 2 =:= 1 ->
    Plain = plain(Name, Runs, Given),
    {Replayed, Kilobytes} = difference(Once, Often, Runs),
    {Plain, Replayed, Kilobytes};
pair(_, Name, Runs, Once, Often, Given) ->
    {Replayed, Kilobytes} = difference(Once, Often, Runs),
    {plain(Name, Runs, Given), Replayed, Kilobytes}.

difference(Once, Often, Runs) ->
    {First, _} = replayed(Once),
    {All, Kilobytes} = replayed(Often),
    {(All - First) / Runs, Kilobytes}.

%% Microseconds of a run.
plain(Name, Runs, #{programs := Programs, set := Set, work := Work}) ->
    File = filename:join(Work, "plain"),
    Call = io_lib:format("~w:runs(~p, ~p, ~w, ~p), halt(0).", [?MODULE, Name, Set, 1 + Runs, File]),
    Port = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [nouse_stdio, exit_status, {args, ["-noshell", "+Bi", "+fnu", "+S", "1:1", "-boot", "no_dot_erlang",
                                                       "-mode", "interactive", "-pa", Programs, "-eval",
                                                       lists:flatten(Call)]}]),
    receive {Port, {exit_status, 0}} -> ok end,
    {ok, Bytes} = file:read_file(File),
    told(Name, plain, binary_to_term(Bytes) / Runs).

recorded(Name, Runs, #{programs := Programs, set := Set, work := Work}) ->
    Dir = filename:join(Work, io_lib:format("~w-~w", [Name, Runs])),
    _ = file:del_dir_r(Dir),
    {ok, #{outcome := recorded, ended := {returned, normal}}} =
        witness_record:record(#{run => {?MODULE, runs, [Name, Set, Runs, none]}, dir => lists:flatten(Dir), pa => [Programs],
                                vm_args => ["+S", "1:1"]}),
    lists:flatten(Dir).

%% Microseconds, and the largest memory of the VM in kilobytes.
replayed(Dir) ->
    Looking = witness_replay_memory:look(),
    Begin = erlang:monotonic_time(microsecond),
    {ok, #{outcome := identical}} = witness_replay:replay(#{dir => Dir, vm_args => ["+S", "1:1"]}),
    Time = erlang:monotonic_time(microsecond) - Begin,
    {told(filename:basename(Dir), replayed, Time), witness_replay_memory:most(Looking)}.

told(Name, How, Time) ->
    io:format(standard_error, "~s ~w ~.2f ms~n", [if is_atom(Name) -> atom_to_list(Name); true -> Name end, How, Time / 1000]),
    Time.

-doc "What the VM of a sample runs: microseconds of all runs but the first go to the file.".
-spec runs(witness_savina:name(), witness_savina:set(), Runs :: pos_integer(), file:filename() | none) -> ok.
runs(Name, Set, Runs, File) ->
    Parameters = witness_savina:parameters(Name, Set),
    Run = fun(_) -> {ok, _} = witness_savina:run(Name, Parameters) end,
    Run(1),
    Begin = erlang:monotonic_time(microsecond),
    lists:foreach(Run, lists:seq(2, Runs)),
    Time = erlang:monotonic_time(microsecond) - Begin,
    File =:= none orelse file:write_file(File, term_to_binary(Time)),
    ok.
