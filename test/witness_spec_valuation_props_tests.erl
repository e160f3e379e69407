-module(witness_spec_valuation_props_tests).
-moduledoc """
A `let` with a variable has, for each value, that of the same `let` in which this value stands in place of the variable. That one is a `let`
without variables, so it knows nothing of valuations.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% No event has the last one.
-define(VALUES, [1, 2, 3, 9]).

%% `#' is the variable or the value; `$' makes names of `let`s those of one value.
lets() ->
    ["let V$ = once {_ ? {a, #}}",
     "let V$ = once within 2 events {_ ? {a, #}}",
     "let V$ = once within 5 ns {_ ? {a, #}} or {_ ? all}",
     "let V$ = previously {_ ? {a, #}} or {_ ? all}",
     "let V$ = {_ ? {b, #}} since {_ ? {a, #}}",
     "let V$ = {_ ? {b, #}} or {_ ? {all, _}} since within 4 events {_ ? {a, #}} or {_ ? all}",
     "let V$ = {_ ? {b, #}} or {_ ? all} since within 6 ns {_ ? {a, #}}",
     "let O$ = once within 1 event {_ ? {b, #}} let V$ = not O$(#) since {_ ? {a, #}}",
     "let O$ = previously {_ ? {b, #}} or {_ ? all} let V$ = O$(#) since within 3 events {_ ? {a, #}}",
     "let V$ = count {_ ? {a, #}}",
     "let V$ = count within 3 events {_ ? {a, #}} or {_ ? all}",
     "let V$ = count within 6 ns {_ ? {a, #}}",
     "let V$ = count within 6 ns {_ ? {a, #}} or {_ ? {b, #}} or {_ ? all}",
     "let V$ = sum N of {_ ? {a, #, N}} or {_ ? {all, N}}",
     "let V$ = sum within 4 events N of {_ ? {a, #, N}} or {_ ? {all, N}}",
     "let V$ = min within 3 events N of {_ ? {a, #, N}}",
     "let V$ = min within 4 events N of {_ ? {a, #, N}} or {_ ? {all, N}}",
     "let V$ = max within 7 ns N of {_ ? {a, #, N} when N > 1} or {_ ? {all, N}}",
     "let V$ = mean within 5 events N of {_ ? {a, #, N}}",
     "let C$ = once within 4 events {_ ? {b, #}} let V$ = count {_ ? {a, #} when C$(#)}",
     "let C$ = count within 4 events {_ ? {b, #}} let V$ = sum C$(#) of C$(#) > 0",
     %% All windows are of one length.
     "let C$ = count within 2 events {_ ? {b, #}} let V$ = sum within 3 events C$(#) of C$(#) > -1",
     "let C$ = once {_ ? {b, #}} let V$ = count within 3 events C$(#)"].

a_valuation_is_a_value_in_place_of_the_variable_test_() ->
    {setup, fun compile/0, fun witness_spec:unload/1, fun(#{module := Module}) ->
        [{Let, {timeout, 120, fun() ->
             ?assert(proper:quickcheck(prop_same(Module, Index), [quiet, {numtests, 300}, {to_file, user}]))
         end}} || {Index, Let} <- lists:enumerate(lets())]
    end}.

compile() ->
    {ok, Map, _} = witness_spec:compile_string(~"valuations", unicode:characters_to_binary([property(Let) || Let <- lets()]), #{}),
    Map.

property(Let) ->
    Differs = lists:join("; ", [["V(", Value, ") =/= V", Value] || Value <- values()]),
    ["with m:f(_) ", written(Let, "(X)", "X", ""), [written(Let, Value, Value, Value) || Value <- values()],
     " check max Same.([_ ? _ when ", Differs, "] ff and [else] Same).\n"].

values() -> [integer_to_list(Value) || Value <- ?VALUES].

%% A definition has its variables behind its name, a use has them already.
written(Let, Parameters, Value, Suffix) ->
    Named = re:replace(Let, "\\$(?= =)", case Suffix of "" -> Parameters; _ -> Suffix end, [global, {return, list}]),
    Used = re:replace(Named, "\\$\\(#\\)", case Suffix of "" -> "(X)"; _ -> Suffix end, [global, {return, list}]),
    [" ", lists:flatten(string:replace(Used, "#", Value, all))].

event() ->
    K = oneof([1, 1, 2, 3]),
    oneof([{a, K}, {a, K}, {a, K, range(0, 3)}, {a, K, range(0, 3)}, {b, K}, all, {all, range(0, 2)}, z]).

prop_same(Module, Index) ->
    ?FORALL(Events, list({event(), range(0, 4)}), begin
        {ok, First} = Module:init({m, f, [0]}, self(), Index),
        holds(Events, 0, First, Module)
    end).

holds([], _, _, _) -> true;
holds([{Message, After} | Events], Before, State, Module) ->
    Time = Before + After,
    case Module:handle_event({recv, self(), undefined, Message, Time}, State) of
        {ok, Next} -> holds(Events, Time, Next, Module);
        {verdict, no, _} -> false
    end.
