-module(witness_step_place).
-moduledoc """
Whether a step was done in a function, or at a line: determined by its stack. Pure.

Names of functions are given as text, as events and stacks show them: `calc_server:loop/1`, `Shop.Server.handle_call/3`. They make
no atoms: a name that is not an atom of this VM is in no stack either.
""".

-export([innermost/1, named/1, function/1, line/2, message/1, kind/2]).

-type test() :: fun((witness_step_trace:step()) -> boolean()).

-doc "The innermost function of a stack.".
-spec innermost([tuple()]) -> mfa() | none.
innermost([{Module, Function, Args, _} | _]) when is_list(Args) -> {Module, Function, length(Args)};
innermost([{Module, Function, Arity, _} | _]) -> {Module, Function, Arity};
innermost([]) -> none.

-doc "A function as it is written in Erlang or Elixir, perhaps without its arity.".
-spec named(binary()) -> {Module :: binary(), Function :: binary(), arity() | any} | none.
named(Text) ->
    case re:run(Text, "^:?(.+)[:.]([^:./]+|'[^/]+')(?:/([0-9]+))?$", [{capture, all_but_first, binary}, unicode]) of
        {match, [Module, Function]} -> {Module, string:trim(Function, both, "'"), any};
        {match, [Module, Function, Arity]} when byte_size(Arity) < 4 ->
            {Module, string:trim(Function, both, "'"), binary_to_integer(Arity)};
        _ -> none
    end.

-doc "Whether a step was done while this function was being called.".
-spec function(binary()) -> {ok, test()} | {error, unknown}.
function(Text) ->
    case mfas(Text) of
        [] -> {error, unknown};
        Functions -> {ok, fun(#{stack := Stack}) -> lists:any(fun(Frame) -> is_in(Frame, Functions) end, Stack) end}
    end.

is_in({Module, Function, Args, Location}, Functions) when is_list(Args) ->
    is_in({Module, Function, length(Args), Location}, Functions);
is_in({Module, Function, Arity, _}, Functions) -> lists:member({Module, Function, Arity}, Functions);
is_in(_, _) -> false.

mfas(Text) ->
    case named(Text) of
        {Module, Function, Arity} when is_integer(Arity) ->
            [{M, F, Arity} || Name <- [Module, <<"Elixir.", Module/binary>>], M <- atoms(Name), F <- atoms(Function)];
        _ -> []
    end.

atoms(Text) ->
    try
        [binary_to_existing_atom(Text)]
    catch
        error:_ -> []
    end.

-doc "Whether a step was done at this line of a file. The path may be shortened from the left.".
-spec line(binary(), pos_integer()) -> test().
line(File, Line) ->
    Wanted = lists:reverse(filename:split(unicode:characters_to_list(File))),
    fun(#{stack := Stack}) -> lists:any(fun(Frame) -> is_at(Frame, Wanted, Line) end, Stack) end.

is_at({_, _, _, Location}, Wanted, Line) when is_list(Location) ->
    case {lists:keyfind(line, 1, Location), lists:keyfind(file, 1, Location)} of
        {{_, Line}, {_, File}} -> lists:prefix(Wanted, lists:reverse(filename:split(File)));
        _ -> false
    end;
is_at(_, _, _) -> false.

-doc "Whether a step sends or takes a message that matches an Erlang pattern, in which variables match anything.".
-spec message(binary()) -> {ok, test()} | {error, unicode:chardata()}.
message(Text) ->
    maybe
        {ok, Tokens, _} ?= erl_scan:string(unicode:characters_to_list(Text) ++ "."),
        {ok, [Pattern]} ?= erl_parse:parse_exprs(Tokens),
        {ok, Head} ?= match_head(Pattern),
        Compiled = ets:match_spec_compile([{{Head}, [], [true]}]),
        Matches = fun(Msg) -> ets:match_spec_run([{Msg}], Compiled) =/= [] end,
        {ok, fun(#{what := {send, _, _, Msg, _}}) -> Matches(Msg);
                (#{what := {recv, _, Msg}}) -> Matches(Msg);
                (_) -> false
             end}
    else
        {ok, _} -> {error, ~"it is one expression"};
        {error, {_, Module, Why}, _} -> {error, Module:format_error(Why)};
        {error, {_, Module, Why}} -> {error, Module:format_error(Why)};
        {error, Why} -> {error, Why}
    end.

%% The head of a match specification: a variable that occurs twice has the same value both times.
match_head(Pattern) ->
    try
        {ok, erl_parse:normalise(bind_variables(Pattern))}
    catch
        error:_ -> {error, ~"it is no pattern"}
    end.

bind_variables({var, Anno, '_'}) -> {atom, Anno, '_'};
bind_variables({var, Anno, Name}) -> {atom, Anno, list_to_atom("$" ++ integer_to_list(erlang:phash2(Name, 1_000_000)))};
bind_variables({map_field_exact, Anno, Key, Value}) -> {map_field_assoc, Anno, bind_variables(Key), bind_variables(Value)};
bind_variables(Tree) when is_tuple(Tree) -> list_to_tuple([bind_variables(Part) || Part <- tuple_to_list(Tree)]);
bind_variables(Trees) when is_list(Trees) -> [bind_variables(Tree) || Tree <- Trees];
bind_variables(Leaf) -> Leaf.

-doc "Whether a step is of a kind, and of a process.".
-spec kind(any | send | take | spawn | call | timeout | exit, any | pos_integer()) -> test().
kind(Kind, Of) ->
    fun(#{id := Id, what := What}) -> (Of =:= any orelse Id =:= Of) andalso (Kind =:= any orelse is_kind(Kind, What)) end.

is_kind(timeout, timeout) -> true;
is_kind(_, What) when is_atom(What) -> false;
is_kind(take, What) -> element(1, What) =:= recv;
is_kind(spawn, What) -> lists:member(element(1, What), [spawn, born]);
is_kind(call, What) -> lists:member(element(1, What), [call, raise, effect]);
is_kind(Kind, What) -> element(1, What) =:= Kind.
