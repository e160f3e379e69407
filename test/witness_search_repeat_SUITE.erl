-module(witness_search_repeat_SUITE).
-moduledoc """
The same seed and number is the same run, byte for byte: each program is searched again and again, in several VMs and again in each of them,
and the digests of all steps, the outcomes and what is found are the same each time; a schedule that runs alone is the same as after
hundreds of others. If the runs of a program differ, the search must say what is not controlled.

`WITNESS_SEARCH_REPEATS` says how often (2), and then all programs are searched, and not only some: `make deep-search`. `WITNESS_SEARCH_DONE`
names a file that lists what is done: the rest is done, until `WITNESS_SEARCH_UNTIL`, in seconds since 1970.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

%% The first schedule, and two of each strategy.
-define(SCHEDULES, 7).
-define(VMS, 5).
-define(MAX_NAMED, 5).

suite() -> [{timetrap, {minutes, 45}}].

all() -> [schedules_repeat].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = witness_record_programs:compile(Out),
    Source = filename:join(witness_checkout:root(filename:dirname(code:which(?MODULE))), "test/searched/witness_searched.erl"),
    {ok, _} = compile:file(Source, [return_errors, debug_info, {outdir, Out}]),
    [{pa, [Out]} | Config].

end_per_suite(_) -> ok.

schedules_repeat(Config) ->
    {Repeats, Programs} = case os:getenv("WITNESS_SEARCH_REPEATS") of
        false -> {2, some()};
        Number -> {list_to_integer(Number), recorded() ++ searched() ++ savina()}
    end,
    Left = [Program || Program <- Programs, not is_done({Program, Repeats})],
    Wrong = lists:append(in_turn(fun(Program) -> repeated(Program, Repeats, Config) end, Left, until())),
    io:format(user, "~b programs, ~b of them now, ~b searches of each, with ~b schedules; wrong: ~0p~n",
              [length(Programs), length(Left), Repeats, ?SCHEDULES, Wrong]),
    ?assertEqual([], Wrong).

some() -> [{Name, Args} || {Name, Args} <- searched(), lists:member(Name, [update, restart, machine, inherits, triangle])].

%% --- programs --------------------------------------------------------------------

recorded() ->
    [{run, [Module, Function]} || {_, Module, Function, _} <- witness_record_SUITE:programs(), Function =/= savina].

searched() ->
    [{Fault, [Wrong]} || Fault <- [register, update, deadlock, call, stale, restart, notify, late, name, links, machine],
                         Wrong <- [true, false]]
        ++ [{left, []}, {not_taken, []}, {ends, [wrong]}, {asserts, []}, {slow, []}, {triangle, []}, {halts, [0]}, {halts, [3]},
            {inherits, []}, {environment, []}, {leader, []}, {place, []}, {table, [true]}, {table, [false]}, {term, [none]},
            {term, [some]}, {background, [true, returns]}, {queue, [0]}, {queue, [1]}, {linked, []}, {misspelt, []}, {ports, []},
            {sockets, []}, {clock, []}, {outside, []}, {crowd, []}].

savina() -> [{savina, [Name]} || Name <- witness_savina:names()].

%% --- searches --------------------------------------------------------------------

in_turn(Fun, Programs, Until) ->
    [begin
         Wrong = Fun(Program),
         ok = mark_done(Wrong, Program),
         Wrong
     end || Program <- Programs, os:system_time(second) < Until].

%% So often in all, in some VMs: the schedules come again and again in each, and in others each one runs alone.
repeated(Program, Repeats, Config) ->
    Vms = min(Repeats, ?VMS),
    Rounds = #{all => true, schedules => ?SCHEDULES * ((Repeats + Vms - 1) div Vms), period => ?SCHEDULES},
    {Control, #{digests := Digests} = Found} = search(Program, Rounds, Config),
    All = lists:reverse(Digests),
    Base = lists:sublist(All, ?SCHEDULES),
    Whole = [{vm, Vm} || Vm <- lists:seq(2, Vms), {_, Other} <- [search(Program, Rounds, Config)], Other =/= Found],
    Alone = [{alone, Number} || Number <- lists:sublist(lists:seq(length(Base), 1, -1), Repeats div 2),
                                {_, #{digests := [Own | _]}} <- [search(Program, #{schedule => Number}, Config)],
                                Own =/= lists:nth(Number, Base)],
    Again = [{round, Number} || {Number, Digest} <- lists:enumerate(All),
                                Digest =/= lists:nth((Number - 1) rem ?SCHEDULES + 1, Base)],
    case {Control, Again ++ Whole ++ Alone} of
        {controlled, [_ | _] = Differ} -> [{Program, lists:sublist(Differ, ?MAX_NAMED)}];
        %% If the runs may differ, it is said why.
        _ -> []
    end.

search({Function, Args}, Options, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "search-" ++ integer_to_list(erlang:unique_integer([positive]))),
    Found = witness_search:search(maps:merge(Options, #{run => {witness_searched, Function, Args}, step_digests => true, dir => Dir,
                                                        steps => 3_000, pa => proplists:get_value(pa, Config)})),
    _ = file:del_dir_r(Dir),
    case Found of
        {ok, #{unfaithful := Named} = Report} ->
            {case {Named, Report} of
                 %% It is refused with the pid of a process outside, which is another one in another VM.
                 {_, #{outcome := {refused, _, _}}} -> uncontrolled;
                 {[], _} -> controlled;
                 _ -> uncontrolled
             end,
             (kept(Report))#{failures => [kept(Failure) || Failure <- maps:get(failures, Report, [])]}};
        %% The run that failed was another one when it ran again.
        {error, {witness_search, {not_repeated, Number, []}}} -> {controlled, #{not_repeated => Number, digests => []}};
        {error, {witness_search, {not_repeated, Number, _}}} -> {uncontrolled, #{not_repeated => Number, digests => []}}
    end.

%% Without what depends on the folder.
kept(Of) -> maps:with([outcome, digests, number, strategy, length, switches, reversed, count], Of).

%% --- what is done ----------------------------------------------------------------

until() ->
    case os:getenv("WITNESS_SEARCH_UNTIL") of
        false -> infinity;
        Seconds -> list_to_integer(Seconds)
    end.

is_done(Program) ->
    case os:getenv("WITNESS_SEARCH_DONE") of
        false -> false;
        File ->
            case file:consult(File) of
                {ok, Done} -> lists:member(Program, Done);
                {error, enoent} -> false
            end
    end.

mark_done([], Program) ->
    case os:getenv("WITNESS_SEARCH_DONE") of
        false -> ok;
        File -> file:write_file(File, io_lib:format("~0p.~n", [{Program, list_to_integer(os:getenv("WITNESS_SEARCH_REPEATS", "2"))}]), [append])
    end;
mark_done(_, _) -> ok.
