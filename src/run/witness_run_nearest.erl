-module(witness_run_nearest).
-moduledoc """
Which signatures there were, for a property that has monitored nothing: those that its author may have meant, and the most frequent
ones. Pure; the text and the work are bounded.
""".

-export([format/2, is_named/2]).

%% Signatures that are named, that are compared, and patterns of a property that are compared.
-define(MAX_SHOWN, 5).
-define(MAX_COMPARED, 200).
-define(MAX_PATTERNS, 8).
-define(MEANT, 2).
%% Names are similar from here on (`string:jaro_similarity/2').
-define(SIMILAR, 0.8).
-define(NAME_CHARACTERS, 100).

-doc "The end of a sentence that says what a property was for.".
-spec format([witness_options:signature_pattern()], [witness_instrument:sight()]) -> unicode:chardata().
format(_, []) -> ~"";
format(Patterns, Seen) ->
    Frequent = [Sight || {_, Sight} <- lists:sort([{-Count, Sight} || {_, _, _, Count} = Sight <- Seen])],
    Syntax = witness_event:syntax([M || {M, _, _} <- Patterns] ++ [M || {M, _, _, _} <- lists:sublist(Frequent, ?MAX_SHOWN)]),
    Compared = [{nearness(Sight, lists:sublist(Patterns, ?MAX_PATTERNS)), Sight} || Sight <- choose(Patterns, Frequent)],
    %% The sort is stable, so among equally near ones the most frequent comes first.
    Near = [Sight || {Nearness, Sight} <- lists:reverse(lists:keysort(1, lists:reverse(Compared))), Nearness > 0],
    %% If the function is right, its arguments are not.
    Meant = case lists:any(fun(Sight) -> is_named(Sight, Patterns) end, Near) of true -> []; false -> Near end,
    Shown = lists:sublist(lists:uniq(Near ++ Frequent), ?MAX_SHOWN),
    [~"; seen: ", lists:join(~", ", [sight(Sight, Patterns, Syntax) || Sight <- Shown]),
     [[~" and ", witness_text:count(length(Seen) - length(Shown), ~"other", ~"others")] || length(Seen) > length(Shown)],
     [[~"; did you mean ", lists:join(~" or ", [name(Sight, Syntax) || Sight <- lists:sublist(Meant, ?MEANT)]), ~"?"] || Meant =/= []]].

%% Those of the same module are few, and always compared.
choose(Patterns, Frequent) ->
    {First, Others} = lists:split(min(length(Frequent), ?MAX_COMPARED), Frequent),
    Modules = [M || {M, _, _} <- Patterns],
    First ++ [Sight || {M, _, _, _} = Sight <- Others, lists:member(M, Modules)].

sight({_, _, _, Count} = Sight, Patterns, Syntax) ->
    [name(Sight, Syntax), $\s, witness_text:count(Count, ~"time", ~"times"),
     [~" with other arguments" || is_named(Sight, Patterns)]].

name({M, '_', '_', _}, Syntax) -> [~"a fun of ", witness_event:format_term(M, ?NAME_CHARACTERS, Syntax)];
name({M, F, '_', _}, Syntax) -> [witness_event:format_term(M, ?NAME_CHARACTERS, Syntax), $:, witness_event:format_term(F, 100)];
name({M, F, A, _}, Syntax) -> witness_event:format_function({M, F, A}, Syntax).

-doc "Whether one of the patterns names this signature, whatever its arguments.".
-spec is_named(witness_instrument:sight(), [witness_options:signature_pattern()]) -> boolean().
is_named({M, F, A, _}, Patterns) -> lists:any(fun({M1, F1, A1}) -> is(M, M1) andalso is(F, F1) andalso is(A, A1) end, Patterns).

is(_, '_') -> true;
is(Value, Value) -> true;
is(_, _) -> false.

nearness(Sight, Patterns) -> lists:max([0 | [nearness_to(Sight, Pattern) || Pattern <- Patterns]]).

%% 3 and more: the same module; less: one with a similar name, or the same function where any module is meant.
nearness_to({M, F, A, _}, {M, F1, A1}) -> 3 + same(F, F1) + same(A, A1) / 2;
nearness_to({_, F, A, _}, {'_', F1, A1}) when F =:= F1, F =/= '_' -> 1 + same(A, A1) / 2;
nearness_to(_, {'_', _, _}) -> 0;
nearness_to({M, F, _, _}, {M1, F1, _}) ->
    case string:jaro_similarity(last_part(M), last_part(M1)) of
        Similarity when Similarity > ?SIMILAR -> 1 + Similarity + same(F, F1) / 2;
        _ -> 0
    end.

same(Value, Value) -> 1;
same(_, _) -> 0.

%% The modules of a project of Elixir have their first parts in common.
last_part(M) -> string:lowercase(lists:last(string:split(atom_to_list(M), ".", all))).
