-module(witness_cli_record_size_tests).
-moduledoc "The size of a recording is said when it has doubled, and not after the recording.".
-include_lib("eunit/include/eunit.hrl").

-define(W, witness_cli_record_size).

it_is_said_when_it_has_doubled_test_() -> {timeout, 60, fun it_is_said_when_it_has_doubled/0}.

it_is_said_when_it_has_doubled() ->
    in_folder(fun(Dir) ->
        Watch = watch(Dir),
        grow(Dir, "a", 3),
        ?assertMatch({_, _}, binary:match(noted(), ~" has 3 MB so far")),
        grow(Dir, "b", 2),
        ?assertMatch({_, _}, binary:match(noted(), ~" has 5 MB so far")),
        %% Next is 8 MB, by both files together.
        grow(Dir, "a", 7),
        ?assertMatch({_, _}, binary:match(noted(), ~" has 9 MB so far")),
        ok = ?W:stop(Watch),
        grow(Dir, "a", 40),
        ?assertEqual(none, receive {noted, Text} -> Text after 0 -> none end)
    end).

it_is_said_once_at_a_size_test_() -> {timeout, 60, fun it_is_said_once_at_a_size/0}.

it_is_said_once_at_a_size() ->
    in_folder(fun(Dir) ->
        grow(Dir, "a", 3),
        Looks = counters:new(1, []),
        Self = self(),
        Watch = ?W:watch(Dir, #{first => 2_000_000, pause_ms => 1, note => fun(_) -> counters:add(Looks, 1, 1), Self ! noted end}),
        receive noted -> ok end,
        %% So many looks later it is still one line.
        wait_for(Watch, 200, element(2, process_info(Watch, reductions))),
        ?assertEqual(1, counters:get(Looks, 1)),
        ok = ?W:stop(Watch)
    end).

%% A folder that is not there yet has no size.
it_ends_with_its_owner_test() ->
    Self = self(),
    {Owner, OwnerRef} = spawn_monitor(fun() -> Self ! {watch, ?W:watch("/nothing/is/here", #{pause_ms => 1})}, receive stop -> ok end end),
    Watch = receive {watch, Found} -> Found end,
    Ref = monitor(process, Watch),
    Owner ! stop,
    receive {'DOWN', OwnerRef, process, _, Reason} -> ?assertEqual(normal, Reason) end,
    receive {'DOWN', Ref, process, _, End} -> ?assertEqual(normal, End) end.

watch(Dir) ->
    Self = self(),
    ?W:watch(Dir, #{first => 2_000_000, pause_ms => 1, note => fun(Text) -> Self ! {noted, iolist_to_binary(Text)} end}).

noted() -> receive {noted, Text} -> Text end.

grow(Dir, Name, Megabytes) ->
    New = filename:join(filename:dirname(Dir), "new"),
    ok = file:write_file(New, binary:copy(<<0>>, Megabytes * 1_000_000)),
    ok = file:rename(New, filename:join(Dir, Name)).

%% The process has done something so often.
wait_for(_, 0, _) -> ok;
wait_for(Watch, N, Before) ->
    case process_info(Watch, reductions) of
        {reductions, Before} -> erlang:yield(), wait_for(Watch, N, Before);
        {reductions, Now} -> wait_for(Watch, N - 1, Now)
    end.

in_folder(Test) ->
    Dir = filename:join("/tmp", "witness_record_size_" ++ os:getpid()),
    ok = filelib:ensure_path(filename:join(Dir, "calc.rec")),
    try Test(filename:join(Dir, "calc.rec")) after file:del_dir_r(Dir) end.
