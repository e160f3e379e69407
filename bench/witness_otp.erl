-module(witness_otp).
-moduledoc """
Small programs over OTP, recorded and replayed: `main([Root, Work, Replays | Names])`, as for `bench/otp`. Each exported function without arguments of the
modules `witness_otp_*` in `bench/otp_programs` is a program. `witness_otp_program:run/2` runs it, and its process ends with
what it has returned.

The command does all of it, as for a user. Each program is recorded without contents, then with them. A line says of a program

| Column | |
|---|---|
| first | `identical`: each replay of both recordings. `refused`: `record` has ended with code 3 and the reason, and `replay` refuses too. `needless`: the same, and the module does not list it under `-refused`. `diverged`. `failed`: anything else, such as a program that crashes |
| seconds | for all of it |
| name | `module:function` |
| rest | how the program has ended; the reason; what went wrong |
""".

-export([main/1]).

%% No program takes so long, even on a busy machine.
-define(SECONDS, "900").
-define(AT_ONCE, 2).

-type kind() :: identical | refused | needless | diverged | failed.

-spec main([string()]) -> no_return().
main([Root, Work, Replays | Names]) ->
    Programs = [Program || Beam <- lists:sort(filelib:wildcard(filename:join(Work, "ebin/*.beam"))), Program <- programs(Beam),
                is_named(Program, Names)],
    Kinds = each(Programs, #{}, #{root => Root, work => Work, replays => list_to_integer(Replays)}),
    io:format("~b programs~s~n",
              [length(Kinds),
               [io_lib:format(", ~b ~w", [length([1 || Is <- Kinds, Is =:= Kind]), Kind]) || Kind <- lists:usort(Kinds)]]),
    halt(case {Kinds, [Kind || Kind <- Kinds, Kind =/= identical, Kind =/= refused]} of {[_ | _], []} -> 0; _ -> 1 end).

%% Callback modules are no programs, though they export functions without arguments too.
programs(Beam) ->
    Module = list_to_atom(filename:basename(Beam, ".beam")),
    Behaviours = proplists:get_all_values(behaviour, Module:module_info(attributes)),
    [{Module, F}
     || Behaviours =:= [], {F, 0} <- lists:sort(Module:module_info(exports)), F =/= module_info, Module =/= witness_otp_program].

is_named(_, []) -> true;
is_named({Module, Function}, Names) -> lists:member(atom_to_list(Module), Names) orelse lists:member(atom_to_list(Function), Names).

-spec each([{module(), atom()}], map(), map()) -> [kind()].
each([], Running, _) when map_size(Running) =:= 0 -> [];
each([Program | Programs], Running, How) when map_size(Running) < ?AT_ONCE ->
    Ran = spawn_monitor(fun() -> exit({ran, program(Program, How)}) end),
    each(Programs, Running#{Ran => {Program, erlang:monotonic_time(millisecond)}}, How);
each(Programs, Running, How) ->
    receive
        {'DOWN', Monitor, process, Pid, Reason} when is_map_key({Pid, Monitor}, Running) ->
            {{{Module, Function}, Began}, Others} = maps:take({Pid, Monitor}, Running),
            {Kind, Text} = case Reason of
                {ran, Ran} -> Ran;
                _ -> {failed, io_lib:format("~0p", [Reason])}
            end,
            io:format("~-9w ~5.1f ~w:~w ~ts~n",
                      [Kind, (erlang:monotonic_time(millisecond) - Began) / 1000, Module, Function, Text]),
            [Kind | each(Programs, Others, How)]
    end.

%% --- a program -------------------------------------------------------------------

%% The result is the same for both recordings, or that of the first one that is not identical.
-spec program({module(), atom()}, map()) -> {kind(), iodata()}.
program(Program, How) ->
    case recorded(Program, "plain", [], How) of
        {identical, _} -> recorded(Program, "contents", ["--contents"], How);
        Other -> Other
    end.

recorded({Module, Function} = Program, Kind, Options, #{work := Work} = How) ->
    Dir = filename:join([Work, "recorded", lists:concat([Module, "-", Function, "-", Kind])]),
    _ = file:del_dir_r(Dir),
    Call = lists:concat(["witness_otp_program:run(", Module, ", ", Function, ")"]),
    {Code, Ended, Errors} = command(Dir ++ ".record",
                                    ["record", "--json", "--pa", filename:join(Work, "ebin"), "-o", Dir | Options] ++ [Call], How),
    case Ended of
        #{<<"type">> := <<"recording">>, <<"replayable">> := true, <<"ended">> := End} when Code =:= 0 ->
            case is_result(End) of
                true -> replays(1, Dir, Kind, How#{result => string:slice(End, 0, 150)});
                false -> {failed, [Kind, ": the program has failed: ", End]}
            end;
        #{<<"type">> := <<"recording">>, <<"replayable">> := false, <<"refused">> := [_ | _] = Reasons} when Code =:= 3 ->
            Text = lists:join("; ", Reasons),
            case command(Dir ++ ".replay", ["replay", "--json", Dir], How) of
                {2, _, _} -> {case is_expected(Program, Text) of true -> refused; false -> needless end, [Kind, ": ", Text]};
                {Other, _, _} ->
                    {failed, [Kind, ": refused by record, not by replay, with exit code ", integer_to_list(Other), ": ", Text]}
            end;
        _ -> {failed, io_lib:format("~s: record has ended with exit code ~b: ~0tp ~ts", [Kind, Code, Ended, Errors])}
    end.

%% A program that has ended the VM by itself has no result.
is_result(<<"{returned,<<\"{result,", _/binary>>) -> true;
is_result(<<"halted">>) -> true;
is_result(_) -> false.

is_expected({Module, Function}, Text) ->
    Expected = lists:append(proplists:get_all_values(refused, Module:module_info(attributes))),
    lists:any(fun({F, Part}) -> F =:= Function andalso string:find(Text, Part) =/= nomatch end, Expected).

replays(N, Dir, _, #{replays := Replays, result := Result}) when N > Replays ->
    ok = file:del_dir_r(Dir),
    {identical, Result};
replays(N, Dir, Kind, How) ->
    case command(Dir ++ ".replay", ["replay", "--json", Dir], How) of
        {0, #{<<"outcome">> := <<"identical">>, <<"complete">> := true, <<"cut">> := 0}, _} -> replays(N + 1, Dir, Kind, How);
        {1, #{<<"divergences">> := Divergences}, _} -> {diverged, io_lib:format("~s, replay ~b: ~0tp", [Kind, N, Divergences])};
        {Code, Ended, Errors} ->
            {failed, io_lib:format("~s, replay ~b has ended with exit code ~b: ~0tp ~ts", [Kind, N, Code, Ended, Errors])}
    end.

%% --- the command -----------------------------------------------------------------

%% The command's exit code, the last object that it has printed, and its standard error.
command(Name, Args, #{root := Root}) ->
    ok = filelib:ensure_dir(Name),
    Errors = Name ++ ".errors",
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", "errors=$1; shift; exec timeout -k 10 " ?SECONDS " \"$@\" < /dev/null 2> \"$errors\"", "sh",
                              Errors, filename:join(Root, "bin/witness") | Args]},
                      binary, exit_status, use_stdio, hide]),
    {Code, Out} = output(Port, []),
    {ok, Said} = file:read_file(Errors),
    {Code, last_object(Out), string:slice(Said, 0, 1500)}.

output(Port, Read) ->
    receive
        {Port, {data, Data}} -> output(Port, [Read, Data]);
        {Port, {exit_status, Code}} -> {Code, iolist_to_binary(Read)}
    end.

last_object(Out) ->
    lists:foldl(fun(Line, Last) ->
        try json:decode(Line) of
            #{<<"type">> := _} = Object -> Object;
            _ -> Last
        catch error:_ -> Last
        end
    end, none, binary:split(Out, <<"\n">>, [global])).
