-module(witness_replay_reason).
-moduledoc """
Exit reasons of the same process, recorded and replayed: whether they are the same but for stack traces, in which frames of
the recorder and of the replay stand, and for the digest of the code of a fun, which is woven for the one or for the other.
""".

-export([same/2, digest/1, has_stack/1]).

-doc "Whether two reasons are the same but for stack traces.".
-spec same(term(), term()) -> boolean().
same(Same, Same) -> true;
same(A, B) -> shown(plain(A)) =:= shown(plain(B)).

-doc "What two reasons have in common if they are the same in that way, and no others.".
-spec digest(term()) -> binary().
digest(Reason) -> erlang:md5(term_to_binary(shown(plain(Reason)), [deterministic])).

-doc "Whether it has a stack trace: it is that of a crash.".
-spec has_stack(term()) -> boolean().
has_stack(Reason) -> plain(Reason) =/= Reason.

plain([{Module, Function, _, Location} | _]) when is_atom(Module), is_atom(Function), is_list(Location) -> '$stack';
plain([Head | Tail]) -> [plain(Head) | plain(Tail)];
plain(Term) when is_tuple(Term) -> list_to_tuple([plain(Element) || Element <- tuple_to_list(Term)]);
plain(Term) -> Term.

%% A fun by its place in its module, and its environment.
shown(Fun) when is_function(Fun) ->
    case erlang:fun_info(Fun, type) of
        {type, local} ->
            ['$fun' | [shown(erlang:fun_info(Fun, Item)) || Item <- [module, new_index, arity, uniq, env]]];
        {type, external} -> Fun
    end;
shown([Head | Tail]) -> [shown(Head) | shown(Tail)];
shown(Term) when is_tuple(Term) -> list_to_tuple([shown(Element) || Element <- tuple_to_list(Term)]);
shown(Term) when is_map(Term) -> #{shown(Key) => shown(Value) || Key := Value <- Term};
shown(Term) -> Term.
