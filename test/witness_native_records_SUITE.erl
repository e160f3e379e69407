-module(witness_native_records_SUITE).
-moduledoc """
Programs with native records, which are terms of a kind of their own since OTP 29: in messages, patterns and reasons of ends. Each way to
watch such a program sees all of it, and the VM goes on.
""".

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_run_sees_them/1, their_memory_is_counted/1, logs_have_them/1, recordings_replay/1, searches_control_them/1]).

-include_lib("stdlib/include/assert.hrl").

-import(witness_command, [contains/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [a_run_sees_them, their_memory_is_counted, logs_have_them, recordings_replay, searches_control_them].

init_per_suite(Config) ->
    case list_to_integer(erlang:system_info(otp_release)) < 29 of
        true -> {skip, "this release has no native records"};
        false ->
            Ebin = proplists:get_value(priv_dir, Config),
            File = filename:join(Ebin, "movable.erl"),
            ok = file:write_file(File, program()),
            {ok, movable} = compile:file(File, [debug_info, {outdir, Ebin}]),
            Spec = filename:join(Ebin, "movable.hml"),
            ok = file:write_file(Spec, ~"""
                once: with movable:loop() monitor [_ <- _, _] [_ ? {move, _, _}] [_ : _ ! {ok, _}] [_ ? {move, _, _}] ff.

                """),
            [{root, witness_checkout:root(filename:dirname(code:which(?MODULE)))}, {ebin, Ebin}, {spec, Spec} | Config]
    end.

end_per_suite(_) -> ok.

%% The last message is a record that has a list of so many bytes.
program() -> ~"""
    -module(movable).
    -export([moves/1, fails/0, overtakes/0, loop/0]).
    -record #point{x = 0, y = 0, more = []}.

    moves(Times) ->
        P = spawn(movable, loop, []),
        _ = [begin P ! {move, #point{x = X, y = {X}}, self()}, receive {ok, #point{x = New}} when New =:= X + 1 -> ok end end
             || X <- lists:seq(1, Times)],
        P ! #point{more = lists:duplicate(50_000, 1)},
        ok.

    fails() ->
        P = spawn(movable, loop, []),
        P ! {fail, #point{x = <<"why">>}},
        receive after 100 -> ok end.

    overtakes() ->
        Self = self(),
        _ = [spawn(fun() -> Self ! #point{x = X} end) || X <- [first, second]],
        receive #point{x = first} = P -> P; #point{x = X} -> error({overtaken, X}) end.

    loop() ->
        receive
            {move, #point{x = X} = P, From} -> From ! {ok, P#point{x = X + 1}}, loop();
            {fail, P} -> error({failed, P});
            #point{more = [_ | _]} -> ok
        end.

    """.

a_run_sees_them(Config) ->
    [begin
         #{exit := 1, stdout := Violated} = witness(Config, ["run", "--spec", spec(Config) | Options] ++ call(Config, "moves(2)")),
         contains(Violated, [~"VIOLATION of once", ~"{move,#movable:point{"])
     end || Options <- [[], ["--source", "evm"], ["--instrument", "inline"], ["--instrument", "central"]]],
    #{exit := 1, stdout := Crashed} = witness(Config, ["run", "--check", "crashes" | call(Config, "fails()")]),
    contains(Crashed, [~"VIOLATION of check crashes", ~"#movable:point{x = <<\"why\">>"]),
    #{exit := 1, stdout := Json} = witness(Config, ["run", "--json", "--spec", spec(Config) | call(Config, "moves(2)")]),
    contains(Json, [~"#movable:point{"]).

%% The native source counts what a message needs before it copies it. The list takes 800,000 bytes.
their_memory_is_counted(Config) ->
    Run = fun(Bytes) -> witness(Config, ["run", "--spec", spec(Config), "--message-size", Bytes | call(Config, "moves(1)")]) end,
    #{exit := 3, stdout := Larger} = Run("700000"),
    contains(Larger, [~"a message was larger than monitors are given"]),
    #{exit := 0, stdout := Smaller} = Run("2000000"),
    contains(Smaller, [~"OK: nothing was violated"]).

logs_have_them(Config) ->
    Log = filename:join(proplists:get_value(priv_dir, Config), "moves.log"),
    #{exit := 1} = witness(Config, ["run", "--spec", spec(Config), "--log", Log | call(Config, "moves(2)")]),
    {ok, Lines} = file:read_file(Log),
    contains(Lines, [~"{move,#Record<\"#movable:point{x = 1,y = {1},more = []}\">,<"]),
    #{exit := 1, stdout := Checked} = witness(Config, ["check", "--spec", spec(Config), Log]),
    contains(Checked, [~"VIOLATION of once"]).

recordings_replay(Config) ->
    [begin
         Dir = filename:join(proplists:get_value(priv_dir, Config), Call ++ ".rec"),
         #{exit := 0} = witness(Config, ["record", "--contents", "-o", Dir | call(Config, Call)]),
         #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
         contains(Replayed, [~"IDENTICAL"]),
         #{exit := 0, stdout := Listed} = witness(Config, ["log", Dir]),
         contains(Listed, [~"#movable:point{x = "])
     end || Call <- ["moves(2)", "fails()"]].

searches_control_them(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "found.rec"),
    #{exit := 1, stdout := Found} = witness(Config, ["search", "-o", Dir | call(Config, "overtakes()")]),
    contains(Found, [~"CRASH of <0.1.1>", ~"{overtaken,second}"]),
    #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
    contains(Replayed, [~"IDENTICAL"]),
    #{exit := 0, stdout := Passed} = witness(Config, ["search", "--schedules", "50" | call(Config, "moves(2)")]),
    contains(Passed, [~"OK: nothing went wrong in 50 schedules"]),
    ?assertEqual(nomatch, string:find(Passed, "unfaithful")).

call(Config, Call) -> ["--pa", proplists:get_value(ebin, Config), "movable:" ++ Call].

spec(Config) -> proplists:get_value(spec, Config).

witness(Config, Arguments) ->
    witness_command:run(Config, filename:join([proplists:get_value(root, Config), "bin", "witness"]), Arguments).
