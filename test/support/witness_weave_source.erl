-module(witness_weave_source).
-moduledoc "Source text as abstract code, without macros.".

-export([forms/1, code/2]).

-spec forms(unicode:chardata()) -> [erl_parse:abstract_form()].
forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text), {1, 1}, [{reserved_word_fun, fun reserved/1}]),
    split(Tokens, []).

reserved('maybe') -> true;
reserved('else') -> true;
reserved(Word) -> erl_scan:reserved_word(Word).

split([], []) -> [];
split([Dot = {dot, _} | Tokens], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse([Dot | Form])),
    [Parsed | split(Tokens, [])];
split([Token | Tokens], Form) -> split(Tokens, [Token | Form]).

-doc "The object code of a text, with debug information if the options do not say otherwise.".
-spec code(unicode:chardata(), [compile:option()]) -> binary().
code(Text, Options) ->
    {ok, _, Code} = compile:noenv_forms([{attribute, 1, file, {"test.erl", 1}} | forms(Text)],
                                        case lists:member(no_debug_info, Options) of
                                            true -> Options;
                                            false -> Options ++ [debug_info]
                                        end),
    Code.
