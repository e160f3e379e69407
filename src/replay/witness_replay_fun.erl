-module(witness_replay_fun).
-moduledoc """
Translates funs of a recording to funs of this VM.

A fun of a woven module names the digest of its code, and the woven code of a replay differs from that of the recording. Both
were made of the same module, and weaving neither adds nor moves a fun. So the fun with the same place in the module is the
right one. If that fun has another arity, or another number of free variables, the fun is left as it is, and cannot be called.
""".

-export([local/1]).

-doc "The term, with its funs translated.".
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

%% Funs in its environment are translated too.
of_module(Fun, Module) ->
    [{_, Index}, {_, Digest}, {_, Arity}, {_, Env}] = [erlang:fun_info(Fun, Item) || Item <- [new_index, new_uniq, arity, env]],
    Md5 = erlang:get_module_info(Module, md5),
    Free = length(Env),
    case local(Env) of
        Env when Digest =:= Md5 -> Fun;
        Local ->
            case lambda(Module, Md5, Index) of
                {Total, Free, Uniq} when Total =:= Arity + Free ->
                    made(Arity, Md5, Index, Free, [Module, Index, Uniq, element(2, erlang:fun_info(Fun, pid)) | Local]);
                _ -> Fun
            end
    end.

%% NEW_FUN_EXT: size, arity, digest, index, number of variables; then the module, the index again, another number, which the
%% compiler makes of the code, the process that has made it, and the variables.
made(Arity, Md5, Index, Free, Terms) ->
    Bytes = <<Arity, Md5:16/binary, Index:32, Free:32, << <<(external(Term))/binary>> || Term <- Terms >>/binary>>,
    binary_to_term(<<131, 112, (byte_size(Bytes) + 4):32, Bytes/binary>>).

external(Term) ->
    <<131, External/binary>> = term_to_binary(Term),
    External.

%% The object code's data of a fun: its arity including free variables, their number, and the number of the compiler. It is read
%% once.
lambda(Module, Md5, Index) ->
    Key = {?MODULE, Module, Md5},
    Lambdas = case persistent_term:get(Key, none) of
        none ->
            Read = lambdas(Module),
            ok = persistent_term:put(Key, Read),
            Read;
        Known -> Known
    end,
    maps:get(Index, Lambdas, none).

lambdas(Module) ->
    maybe
        File = code:which(Module),
        true ?= is_list(File),
        {ok, {_, [{"FunT", <<_:32, Table/binary>>}]}} ?= beam_lib:chunks(File, ["FunT"]),
        #{Index => {Arity, Free, Old} || <<_:32, Arity:32, _:32, Index:32, Free:32, Old:32>> <= Table}
    else
        _ -> #{}
    end.
