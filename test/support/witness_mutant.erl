-module(witness_mutant).
-moduledoc "A module with a fault: its source with one place replaced, loaded under another name.".

-export([load/5, can_be_planted/1, mutated/4, compiled/3, text/1]).

-export_type([fault/0]).

-type fault() :: {What :: term(), module(), Find :: string(), Replace :: string()}.

-doc "The text to find must stand in the source exactly once; `What` names the fault in the error if it does not.".
-spec load(Name :: module(), module(), What :: term(), Find :: string(), Replace :: string()) -> module().
load(Name, Module, What, Find, Replace) ->
    {ok, Tokens, _} = erl_scan:string(mutated(Module, What, Find, Replace)),
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

-doc """
A test that each of the faults can be planted: its text stands in the source exactly once, and the module with the fault in it is a
module. It takes milliseconds for each, so where only a share of the faults is looked for, all of them are planted.
""".
-spec can_be_planted([fault()]) -> tuple().
can_be_planted(Faults) ->
    {"each fault can be planted", {timeout, 120, fun() -> [] = [{What, Why} || {What, _, _, _} = Fault <- Faults,
                                                                               Why <- refusals(Fault)] end}}.

refusals({What, Module, Find, Replace}) ->
    try compiled(Module, mutated(Module, What, Find, Replace), [strong_validation]) of
        {ok, Module} -> [];
        {error, Errors, _} -> [Errors]
    catch
        error:{the_fault_cannot_be_planted_any_more, _, _} = Reason -> [Reason]
    end.

-doc "What `compile:file/2` returns for the module with this source.".
-spec compiled(module(), string(), [compile:option()]) -> tuple().
compiled(Module, Text, Options) ->
    Copy = filename:join("/tmp", lists:concat([Module, "_", os:getpid(), ".erl"])),
    try
        ok = file:write_file(Copy, unicode:characters_to_binary(Text)),
        compile:file(Copy, [return_errors, {i, filename:dirname(source(Module))} | Options])
    after
        file:delete(Copy)
    end.

-doc "The source of a module with a text replaced that must stand in it exactly once; `What` names the fault in the error.".
-spec mutated(module(), What :: term(), Find :: string(), Replace :: string()) -> string().
mutated(Module, What, Find, Replace) ->
    case string:split(text(Module), Find, all) of
        [Before, After] -> lists:append([Before, Replace, After]);
        Parts -> error({the_fault_cannot_be_planted_any_more, What, {times, length(Parts) - 1}})
    end.

-doc "The source of a module.".
-spec text(module()) -> string().
text(Module) ->
    {ok, Binary} = file:read_file(source(Module)),
    unicode:characters_to_list(Binary).

source(Module) -> proplists:get_value(source, Module:module_info(compile)).
