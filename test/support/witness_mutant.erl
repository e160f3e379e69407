-module(witness_mutant).
-moduledoc "A module with a fault: its source with one place replaced, loaded under another name.".

-export([load/5]).

-doc "The text to find must stand in the source exactly once; `What` names the fault in the error if it does not.".
-spec load(Name :: module(), module(), What :: term(), Find :: string(), Replace :: string()) -> module().
load(Name, Module, What, Find, Replace) ->
    Source = proplists:get_value(source, Module:module_info(compile)),
    {ok, Binary} = file:read_file(Source),
    Text = unicode:characters_to_list(Binary),
    length(string:split(Text, Find, all)) =:= 2 orelse error({the_fault_cannot_be_planted_any_more, What}),
    {ok, Tokens, _} = erl_scan:string(lists:flatten(string:replace(Text, Find, Replace))),
    Forms = [case erl_parse:parse_form(Form) of
                 {ok, {attribute, L, module, _}} -> {attribute, L, module, Name};
                 {ok, Parsed} -> Parsed
             end || Form <- forms(Tokens, [])],
    {ok, Name, Code} = compile:forms(Forms, []),
    {module, Name} = code:load_binary(Name, atom_to_list(Name), Code),
    Name.

forms([], []) -> [];
forms([Dot = {dot, _} | Tokens], Form) -> [lists:reverse([Dot | Form]) | forms(Tokens, [])];
forms([Token | Tokens], Form) -> forms(Tokens, [Token | Form]).
