-module(witness_replay_fun).
-moduledoc """
Funs in terms of a recording, as funs of this VM.

A fun of a woven module names the digest of its code, and the woven code of a replay is another one than that of the
recording. Both were made of the same module, and weaving adds no fun and moves none, so the fun with the same place in the
module is meant. Where it does not have as many variables of its surroundings it is left as it is, and cannot be called.
""".

-export([local/1]).

-doc "The term with its funs.".
-spec local(term()) -> term().
local(Fun) when is_function(Fun) -> function(Fun);
local([Head | Tail] = List) ->
    case [local(Head) | local(Tail)] of
        List -> List;
        Other -> Other
    end;
local(Tuple) when is_tuple(Tuple) -> list_to_tuple([local(Element) || Element <- tuple_to_list(Tuple)]);
local(Map) when is_map(Map) -> #{local(Key) => local(Value) || Key := Value <- Map};
local(Term) -> Term.

function(Fun) ->
    {module, Module} = erlang:fun_info(Fun, module),
    {type, Type} = erlang:fun_info(Fun, type),
    case Type =:= local andalso erlang:module_loaded(Module) of
        true -> of_module(Fun, Module);
        false -> Fun
    end.

%% NEW_FUN_EXT: size, arity, digest, index, number of variables, and the rest.
of_module(Fun, Module) ->
    case {term_to_binary(Fun), erlang:get_module_info(Module, md5)} of
        {<<131, 112, _:32, _, Md5:16/binary, _/binary>>, Md5} -> Fun;
        {<<131, 112, Size:32, Arity, _:16/binary, Index:32, Free:32, Rest/binary>>, Md5} ->
            case lambda(Module, Index) of
                {Total, Free, Old} when Total =:= Arity + Free ->
                    binary_to_term(<<131, 112, Size:32, Arity, Md5:16/binary, Index:32, Free:32,
                                     (with_uniq(Rest, Old))/binary>>);
                _ -> Fun
            end;
        _ -> Fun
    end.

%% Behind the module and the old index stands another number, which the compiler makes of the code.
with_uniq(Rest, Old) ->
    {_, Used} = binary_to_term(<<131, Rest/binary>>, [used]),
    {_, Used1} = binary_to_term(<<131, (binary:part(Rest, Used - 1, byte_size(Rest) - Used + 1))/binary>>, [used]),
    Before = Used - 1 + Used1 - 1,
    <<Kept:Before/binary, Behind/binary>> = Rest,
    {_, Used2} = binary_to_term(<<131, Behind/binary>>, [used]),
    Skip = Used2 - 1,
    <<_:Skip/binary, Last/binary>> = Behind,
    <<131, Uniq/binary>> = term_to_binary(Old),
    <<Kept/binary, Uniq/binary, Last/binary>>.

%% What the object code says of a fun: its arity with its variables, how many these are, and that number.
lambda(Module, Index) ->
    maybe
        File = code:which(Module),
        true ?= is_list(File),
        {ok, {_, [{"FunT", <<_:32, Table/binary>>}]}} ?= beam_lib:chunks(File, ["FunT"]),
        [Lambda | _] ?= [{Arity, Free, Old} || <<_:32, Arity:32, _:32, I:32, Free:32, Old:32>> <= Table, I =:= Index],
        Lambda
    else
        _ -> none
    end.
