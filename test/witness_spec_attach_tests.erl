%% What is not known of a process decides nothing: its arguments, and of one that ran before it was seen its parent too.
-module(witness_spec_attach_tests).
-include_lib("eunit/include/eunit.hrl").

%% The property, with its processes `m:w(_)`, and whether it depends on the argument, and on the parent.
properties() ->
    [{~"with m:w(_) check [_ <- _, _] [_ ? stop] ff.", known, known},
     {~"with m:w(N) check [_ <- _, _] [_ ? stop] ff.", known, known},
     {~"with m:w(_), m:v(a) check [_ <- _, _] [_ ? stop] ff.", known, known},
     {~"with m:w(a), m:w(_) check [_ <- _, _] [_ ? stop] ff.", known, known},
     {~"with m:w(N) when N > 0 check [_ <- _, _] [_ ? stop] ff.", unknown, unknown},
     {~"with m:w(N) when is_atom(N) check [_ <- _, _] [_ ? stop] ff.", unknown, unknown},
     {~"with m:w(a) check [_ <- _, _] [_ ? stop] ff.", unknown, unknown},
     {~"with m:w({a, _}) check [_ <- _, _] [_ ? stop] ff.", unknown, unknown},
     {~"with m:w(N) check [_ <- _, _] [_ ? N] ff.", unknown, unknown},
     {~"with m:w(N) over _ ? N, _ ** _ check [_ ** _] ff.", unknown, unknown},
     {~"with m:w(N) per V over _ ? {V, N} check [_ ? _] [_ ? _] ff.", unknown, unknown},
     {~"with m:w(N) over _ ? _ let Is = once {_ ? N} check [_ ? _ when Is] ff.", unknown, unknown},
     {~"with m:w(_) check [_ <- _, m:w(N) when N > 0] ff.", unknown, unknown},
     {~"with m:w(_) check [_ <- P, _] [P2 ? stop when P =/= P2] ff.", known, unknown},
     {~"with m:F(_) when F =:= w check [_ <- _, _] [_ ? stop] ff.", known, known},
     {~"with m:F(_) when F =:= v check [_ <- _, _] [_ ? stop] ff.", none, none},
     {~"with m:F(_) when F =:= v, m:w(a) check [_ <- _, _] [_ ? stop] ff.", unknown, unknown},
     {~"with _:_(_) check [_ <- _, _] [_ ? stop] ff.", known, known},
     {~"with m:v(a) check [_ <- _, _] [_ ? stop] ff.", none, none}].

what_depends_on_unknown_arguments_or_a_parent_is_inconclusive_test_() ->
    [{Text, ?_assertEqual({Arguments, Parent},
                          with(Text, fun(Module, Map) ->
                              {answer(Module, Map, #{signature => {m, w, ['_']}}),
                               answer(Module, Map, #{signature => {m, w, ['_']}, attached => {m, w, 1}})}
                          end))}
     || {Text, Arguments, Parent} <- properties()].

%% Without arguments there is nothing to know but the parent.
what_has_no_arguments_is_known_test() ->
    Answers = fun(Text) -> with(Text, fun(Module, Map) ->
        {answer(Module, Map, #{signature => {m, w, []}}), answer(Module, Map, #{signature => {m, w, []}, attached => {m, w, 0}})}
    end) end,
    ?assertEqual({known, known}, Answers(~"with m:w() check [_ <- _, _] [_ ? stop] ff.")),
    ?assertEqual({known, unknown}, Answers(~"with m:w() check [_ <- P, _] [_ ? P] ff.")).

%% Properties that are known go on, and a process is left out only for what is known.
of_several_properties_each_answers_for_itself_test() ->
    with(~"""
         one: with m:w(a) check [_ <- _, _] [_ ? stop] ff.
         two: with m:w(_) check [_ <- _, _] [_ ? stop] ff.
         three: with m:w(N) when N > 0 none
         """, fun(_, Map) ->
        ?assertEqual([~"one", ~"two"], named(Map, {m, w, ['_']})),
        ?assertEqual([~"two"], named(Map, {m, w, [b]}) -- [none]),
        ?assertEqual([], named(Map, {m, v, ['_']}))
    end),
    with(~"one: with m:w(_) check [_ <- _, _] [_ ? stop] ff. two: with m:w(_) none", fun(_, Map) ->
        ?assertEqual([none, ~"one"], lists:sort(named(Map, {m, w, ['_']})))
    end).

with(Text, Fun) ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(~"test.hml", <<Text/binary, (full_stop(Text))/binary>>, #{}),
    try Fun(Module, witness_run_maps:of_spec(Map)) after ok = witness_spec:unload(Map) end.

full_stop(Text) ->
    case binary:last(Text) of $. -> ~""; _ -> ~"." end.

named(Map, Signature) -> [case Entry of none -> none; #{name := Name} -> Name end || Entry <- Map(Signature)].

answer(_, Map, #{signature := Signature} = Of) ->
    case Map(Signature) of
        [] -> none;
        [#{monitor := Monitor}] ->
            case witness_monitor_machine:new(Of#{monitor => Monitor, process => self(), explain => 3}) of
                {ok, _} -> known;
                {decided, #{verdict := inconclusive, reason := {gap, unknown_signature}, event := undefined}} -> unknown
            end
    end.
