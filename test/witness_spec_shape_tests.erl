%% Which events come near to an action.
-module(witness_spec_shape_tests).

-include_lib("eunit/include/eunit.hrl").

-define(FROM, {external, ~"a"}).

an_event_compares_with_an_action_test_() ->
    [{unicode:characters_to_list([Action, " with ", io_lib:format("~tw", [Event])]), fun() ->
        ?assertEqual(Expected, witness_spec_shape:compare(Event, shape(Action)))
    end} || {Action, Event, Expected} <- [
        {"_ ? {add, A, B}", recv({add, 1, 2}), same},
        {"_ ? {add, A, B} when A > B", recv({add, 1, 2}), same},
        {"_ ? {add, 5, B}", recv({add, 1, 2}), same},
        {"_ ? {add, A, A}", recv({add, 1, 2}), same},
        {"_ ? {add, A, B}", recv({self, {add, 1, 2}}), near},
        {"_ ? {From, {add, A, B}}", recv({add, 1, 2}), near},
        {"_ ? {add, A}", recv({add, 1, 2}), near},
        {"_ ? add", recv({add, 1, 2}), near},
        {"_ ? {sub, A, B}", recv({add, 1, 2}), other},
        {"_ ? {ok, {add, A}}", recv({add, 1, 2}), other},
        {"_ : _ ! {add, A, B}", recv({add, 1, 2}), other},
        {"_ : _ ! {add, A, B}", {send, ?FROM, ?FROM, {add, 1}, 0}, near},
        %% Without a word nothing is near.
        {"_ ? {A, B}", recv({add, 1, 2}), other},
        {"_ ? {true, B}", recv([true]), other},
        {"_ ? #{withdraw := A}", recv(#{withdraw => 1}), same},
        {"_ ? #{withdraw := A}", recv(#{~"withdraw" => 1}), near},
        {"_ ? #{<<\"withdraw\">> := A}", recv(#{~"withdraw" => 1, ~"by" => ~"ann"}), same},
        {"_ ? #{<<\"withdraw\">> := A}", recv(#{withdraw => 1}), near},
        {"_ ? <<\"go\">>", recv(~"go"), same},
        {"_ ? <<\"go\">>", recv([go]), near},
        {"_ ? <<A, _/binary>>", recv(~"go"), same},
        {"_ ? [go | _]", recv([go, on]), same},
        {"_ ? [go]", recv([on, go]), near},
        {"_ ? [go]", recv([on | go]), other},
        {"_ ** {shutdown, R}", {exit, ?FROM, {shutdown, now}, 0}, same},
        {"_ ** {shutdown, R}", {exit, ?FROM, shutdown, 0}, near},
        {"_ <- _, m:f(A)", {init, ?FROM, undefined, {m, f, [1, 2]}, 0}, near},
        {"_ <- _, m:f(A)", {init, ?FROM, undefined, {m, f, [1]}, 0}, same},
        {"_ <- _, m:f(A)", {init, ?FROM, undefined, {m, g, [1]}, 0}, other}]].

%% A term may be as large as it wants: what is searched is bounded.
a_word_far_inside_a_large_term_is_not_found_test() ->
    Shape = shape("_ ? {add, A}"),
    ?assertEqual(near, witness_spec_shape:compare(recv(lists:seq(1, 100) ++ [add]), Shape)),
    ?assertEqual(other, witness_spec_shape:compare(recv(lists:seq(1, 100_000) ++ [add]), Shape)),
    ?assertEqual(other, witness_spec_shape:compare(recv(list_to_tuple(lists:seq(1, 100_000) ++ [add])), Shape)),
    ?assertEqual(other, witness_spec_shape:compare(recv(#{N => N || N <- lists:seq(1, 100_000)}), Shape)).

recv(Message) -> {recv, ?FROM, undefined, Message, 0}.

shape(Action) ->
    witness_folder:with(fun(Folder) ->
        File = filename:join(Folder, "a.hml"),
        ok = file:write_file(File, ["with m:f(_) check [_ <- _, _] [", Action, "] [_ ? stop] ff."]),
        {ok, [{_, [_, #{text := Text, shape := Shape}, _]}]} = witness_spec:actions(File, #{}),
        ?assertEqual(list_to_binary(Action), Text),
        Shape
    end).
