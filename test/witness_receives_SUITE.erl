-module(witness_receives_SUITE).
-moduledoc """
`taken` and `delivered` after `over`, in every way to get events: a property about messages that are taken is judged where these are
seen, and refused everywhere else before anything runs; and the same for those that are delivered.
""".

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_run_sees_deliveries/1, an_inline_run_sees_what_is_taken/1, a_run_of_a_running_node_sees_deliveries/1,
         a_run_that_is_recorded_sees_deliveries/1, recordings_have_what_is_taken/1, a_search_sees_what_is_taken/1,
         logs_say_which/1, logs_that_do_not_say_it/1, logs_of_several_parts/1, a_saved_position_knows_it/1]).
-export([loop/1, main/1]).

-include_lib("stdlib/include/assert.hrl").

-import(witness_command, [contains/2]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [a_run_sees_deliveries, an_inline_run_sees_what_is_taken, a_run_of_a_running_node_sees_deliveries,
     a_run_that_is_recorded_sees_deliveries, recordings_have_what_is_taken, a_search_sees_what_is_taken,
     logs_say_which, logs_that_do_not_say_it, logs_of_several_parts, a_saved_position_knows_it].

init_per_suite(Config) ->
    Root = witness_checkout:root(filename:dirname(code:which(?MODULE))),
    Dir = proplists:get_value(priv_dir, Config),
    Ebin = filename:join(Dir, "ebin"),
    ok = filelib:ensure_path(Ebin),
    {ok, _} = compile:file(filename:join([Root, "test", "witness_receives_SUITE.erl"]),
                           [debug_info, {outdir, Ebin}, {i, filename:join([Root, "test", "support"])}]),
    Specs = #{Word => spec(Word, Dir) || Word <- [any, taken, delivered]},
    Recordings = #{Late => filename:join(Dir, atom_to_list(Late) ++ ".rec") || Late <- [handled, waits]},
    Ready = [{root, Root}, {ebin, Ebin}, {specs, Specs}, {recordings, Recordings} | Config],
    [#{exit := 0} = witness(Ready, ["record", "--contents", "-o", Recording, "--pa", Ebin, call(Late)])
     || Late := Recording <- Recordings],
    Ready.

end_per_suite(_) -> ok.

spec(Word, Dir) ->
    File = filename:join(Dir, atom_to_list(Word) ++ ".hml"),
    Which = case Word of any -> ""; _ -> atom_to_list(Word) ++ " " end,
    ok = file:write_file(File, io_lib:format("never_late: with ~s:loop(_)~nover ~s_ ? late, _ ? stop~n"
                                             "monitor max X.([_ ? late] ff and [_ ? stop] X).~n", [?MODULE, Which])),
    File.

%% The message is in the mailbox when the process takes the other one: it handles it before, or never.
main(Late) ->
    {Pid, Ref} = spawn_monitor(?MODULE, loop, [Late]),
    Pid ! late,
    Pid ! stop,
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason end.

loop(handled) -> receive late -> loop(waits) end;
loop(waits) -> receive stop -> ok end.

%% Deliveries are violations in both programs, what is taken in one of them.
exits(delivered) -> [{handled, 1}, {waits, 1}];
exits(taken) -> [{handled, 1}, {waits, 0}].

%% --- ways to get events ----------------------------------------------------------

a_run_sees_deliveries(Config) ->
    [sees(delivered, ["run", "--instrument", Instrument, "--source", Source], Config)
     || Instrument <- ["outline", "central"], Source <- ["native", "evm"]].

an_inline_run_sees_what_is_taken(Config) -> sees(taken, ["run", "--instrument", "inline"], Config).

a_run_of_a_running_node_sees_deliveries(Config) ->
    #{taken := Taken, delivered := Delivered} = proplists:get_value(specs, Config),
    {error, Error} = witness:start(#{system => node, specs => [Taken]}),
    contains(iolist_to_binary(witness:format_error(Error)), [~"taken.hml:2:6: error: `taken` cannot be seen here"]),
    {ok, Run} = witness:start(#{system => node, specs => [Delivered]}),
    %% Later specifications are compared, too.
    {error, Later} = witness:replace(Run, [Taken]),
    contains(iolist_to_binary(witness:format_error(Later)), [~"taken.hml:2:6: error: `taken` cannot be seen here"]),
    {ok, _} = witness:stop(Run),
    ok.

a_run_that_is_recorded_sees_deliveries(Config) -> sees(delivered, ["record"], Config).

recordings_have_what_is_taken(Config) ->
    Recordings = proplists:get_value(recordings, Config),
    [sees(taken, Command, fun(Late) -> [map_get(Late, Recordings)] end, Config)
     || Command <- [["check"], ["check", "--replay"], ["replay"]]].

a_search_sees_what_is_taken(Config) -> sees(taken, ["search", "--schedules", "20"], Config).

sees(Seen, Command, Config) ->
    sees(Seen, Command, fun(Late) -> ["--pa", proplists:get_value(ebin, Config), call(Late)] end, Config).

sees(Seen, Command, Program, Config) ->
    #{any := Any, Seen := Wanted} = Specs = proplists:get_value(specs, Config),
    [{Other, Refused}] = maps:to_list(maps:without([any, Seen], Specs)),
    [begin
         #{exit := Got} = Told = witness(Config, Command ++ output(Command, Config) ++ ["--spec", Spec | Program(Late)]),
         ?assertEqual({Command, Spec, Late, Exit}, {Command, Spec, Late, Got}, Told)
     end || Spec <- [Any, Wanted], {Late, Exit} <- exits(Seen)],
    #{exit := 2, stderr := Text} = witness(Config, Command ++ output(Command, Config) ++ ["--spec", Refused | Program(handled)]),
    contains(Text, [iolist_to_binary(io_lib:format("~s.hml:2:6: error: `~s` cannot be seen here", [Other, Other]))]).

output([Command | _], Config) when Command =:= "record"; Command =:= "search" ->
    Name = "out-" ++ integer_to_list(erlang:unique_integer([positive])),
    ["-o", filename:join(proplists:get_value(priv_dir, Config), Name)];
output(_, _) -> [].

%% --- logs ------------------------------------------------------------------------

logs_say_which(Config) ->
    #{any := Any} = proplists:get_value(specs, Config),
    Of = fun(Name) -> filename:join(proplists:get_value(priv_dir, Config), Name) end,
    [begin
         #{exit := 1} = witness(Config, ["run", "--spec", Any, "--log", Of("run" ++ End), "--pa", proplists:get_value(ebin, Config),
                                         call(waits)]),
         judged(delivered, Of("run" ++ End), [1, 2], Config),
         #{waits := Recording} = proplists:get_value(recordings, Config),
         #{exit := 0} = witness(Config, ["replay", "--events", Of("replay" ++ End), Recording]),
         judged(taken, Of("replay" ++ End), [0, 2], Config)
     end || End <- [".log", ".jsonl"]].

judged(Seen, Log, Exits, Config) ->
    Specs = proplists:get_value(specs, Config),
    [Other] = [taken, delivered] -- [Seen],
    ?assertEqual({Log, Exits}, {Log, [exit_of(["check", "--spec", map_get(Word, Specs), Log], Config) || Word <- [Seen, Other]]}).

exit_of(Arguments, Config) ->
    #{exit := Exit} = witness(Config, Arguments),
    Exit.

logs_that_do_not_say_it(Config) ->
    #{any := Any, taken := Taken, delivered := Delivered} = proplists:get_value(specs, Config),
    Log = write("unsaid.log", events(), Config),
    1 = exit_of(["check", "--spec", Any, Log], Config),
    [begin
         #{exit := 2, stderr := Text} = witness(Config, ["check", "--spec", Spec | More] ++ [Log]),
         contains(Text, [~"unsaid.log:1: ", ~".hml:1 is about messages that are ", ~"begin the log with the line receives("])
     end || Spec <- [Taken, Delivered], More <- [[], ["--skip-malformed"], ["--instrument", "central"]]],
    Wrong = write("wrong.log", ["receives(sent)\n" | events()], Config),
    #{exit := 2, stderr := Told} = witness(Config, ["check", "--spec", Any, Wrong]),
    contains(Told, [~"wrong.log:1:10: expected receives(taken) or receives(delivered)"]),
    Json = write("wrong.jsonl", ["{\"event\":\"receives\",\"messages\":\"sent\"}\n"], Config),
    #{exit := 2, stderr := Said} = witness(Config, ["check", "--spec", Any, Json]),
    contains(Said, [~"wrong.jsonl:1:32: expected \"taken\" or \"delivered\""]).

%% Two logs, one behind the other.
logs_of_several_parts(Config) ->
    #{any := Any, taken := Taken} = proplists:get_value(specs, Config),
    [Init, Late, Stop, Exit] = events(),
    Same = write("same.log", ["receives(taken)\n", Init, Stop, "receives(taken)\n", Late, Exit], Config),
    1 = exit_of(["check", "--spec", Taken, Same], Config),
    Mixed = write("mixed.log", ["receives(taken)\n", Init, Stop, "receives(delivered)\n", Late, Exit], Config),
    #{exit := 2, stderr := Text} = witness(Config, ["check", "--spec", Taken, Mixed]),
    contains(Text, [~"mixed.log:4: ", ~"taken.hml:1 is about messages that are taken, and here each `recv` is a message that was delivered"]),
    1 = exit_of(["check", "--spec", Any, Mixed], Config).

a_saved_position_knows_it(Config) ->
    #{taken := Taken} = proplists:get_value(specs, Config),
    [Init, Late, Stop, Exit] = events(),
    Log = write("grows.log", ["receives(taken)\n", Init, Stop], Config),
    Position = filename:join(proplists:get_value(priv_dir, Config), "position"),
    0 = exit_of(["check", "--spec", Taken, "--save", Position, Log], Config),
    ok = file:write_file(Log, [Late, Exit], [append]),
    1 = exit_of(["check", "--spec", Taken, "--from", Position, Log], Config).

events() ->
    ["init(<0.10.0>,_,{witness_receives_SUITE,loop,[handled]})\n", "recv(<0.10.0>,late)\n", "recv(<0.10.0>,stop)\n",
     "exit(<0.10.0>,normal)\n"].

write(Name, Lines, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = file:write_file(File, Lines),
    File.

%% --- commands --------------------------------------------------------------------

call(Late) -> lists:flatten(io_lib:format("~s:main(~s)", [?MODULE, Late])).

witness(Config, Arguments) ->
    witness_command:run(Config, filename:join([proplists:get_value(root, Config), "bin", "witness"]), Arguments).
