-module(witness_sys_inline).
-moduledoc """
What inline monitoring says of the shared systems: the same as outline monitoring, wherever a process sees what the VM sees of
it. Each difference is here with its reason.
""".

-export([expected/1, agrees/2]).

-type counts() :: [{yes | no | inconclusive, pos_integer()}].

-doc "The text of the refusal, or for each property the counts of verdicts that it may have.".
-spec expected(witness_sys:system()) -> {refused, binary()} | #{Property :: binary() => [counts()]}.
expected(#{name := Name, specs := Specs} = System) ->
    case [Spec || Spec <- Specs, is_group(Spec)] of
        [_ | _] -> {refused, ~"a group reads several processes"};
        [] ->
            Outline = maps:map(fun(_, Counts) -> [Counts] end, by_property(witness_sys:expected(System))),
            maps:merge(Outline, #{Property => Allowed || {Property, _Reason, Allowed} <- differences(Name)})
    end.

is_group(Spec) ->
    {ok, #{entries := Entries} = Map, _} = witness_spec:compile_file(witness_sys:spec_file(Spec)),
    ok = witness_spec:unload(Map),
    lists:any(fun(#{group := Group}) -> Group end, Entries).

-doc "Whether these are counts that may be.".
-spec agrees([witness_sys:count()], #{binary() => [counts()]}) -> boolean().
agrees(Counts, Expected) ->
    Got = by_property(Counts),
    map_size(maps:without(maps:keys(Expected), Got)) =:= 0
        andalso lists:all(fun({Property, Allowed}) -> lists:member(maps:get(Property, Got, []), Allowed) end,
                          maps:to_list(Expected)).

by_property(Counts) ->
    maps:groups_from_list(fun({Property, _, _}) -> Property end, fun({_, Verdict, N}) -> {Verdict, N} end, Counts).

-define(SIGNAL, "a process is ended by a signal: its end is known if it waited then, and the host knew it").
-define(UNBORN, "a process is ended by a signal, perhaps before its first function is called: nothing is known of it then").
-define(ACK, "a process tells the one that has started it in proc_lib, which is not woven").
-define(SENDER, "the sender of a message is not known to the process that takes it").
-define(TAKEN, "a message is received when it is taken, not when it is delivered").
-define(OTP, "what a supervisor does, it does in OTP's modules").

differences(storm) ->
    [{~"witness_sys_counting", ?SENDER, [[{no, 3}]]}];
differences(mailbox) ->
    [{~"delivered_in_order", ?TAKEN, [[{no, 1}]]}];
differences(exits) ->
    [{~"told", ?SIGNAL, known_or_not(yes, 1, [])}, {~"kill_is_not_trapped", ?SIGNAL, known_or_not(yes, 1, [])},
     {~"follows_exit", ?UNBORN, [[] | known_or_not(yes, 1, [])]}, {~"follows_error", ?UNBORN, [[] | known_or_not(yes, 1, [])]}];
differences(links) ->
    [{~"burns", ?SIGNAL, known_or_not(yes, 6, [])}];
differences(spawns) ->
    [{~"acking", ?ACK, [[{no, 1}]]}, {~"forks", ?ACK, [[{no, 1}]]}];
differences(fragile) ->
    [{~"crashes_in_call", ?ACK, [[{no, 1}]]}, {~"never_replies", ?ACK, [[{no, 1}]]},
     {~"stops_after_reply", ?ACK, [[{no, 1}]]},
     {~"killed", ?SIGNAL, known_or_not(yes, 1, [])}, {~"no_abnormal_end", ?SIGNAL, known_or_not(no, 1, [{no, 2}, {yes, 1}])}];
differences(sup) ->
    [{~"never_crashes", ?SIGNAL, known_or_not(yes, 1, [{no, 3}])}, {~"steady_is_killed", ?SIGNAL, known_or_not(yes, 1, [])},
     {~"restarts", ?OTP, [[{inconclusive, 1}]]}];
differences(_) ->
    [].

%% Of so many processes, each has the verdict of outline monitoring or none; the counts of the others stay.
known_or_not(Verdict, N, Others) ->
    [counts([{inconclusive, N - Known}, {Verdict, Known} | Others]) || Known <- lists:seq(0, N)].

counts(Counts) ->
    Sums = maps:groups_from_list(fun({Verdict, _}) -> Verdict end, fun({_, N}) -> N end, Counts),
    [{Verdict, lists:sum(Ns)} || Verdict := Ns <- maps:iterator(Sums, ordered), lists:sum(Ns) > 0].
