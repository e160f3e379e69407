-module(witness_replay_reason).
-moduledoc """
Compares exit reasons of the same process, recorded and replayed. Two things may differ: stack traces, which have frames of the
recorder or of the replay, and the digest of the code of a fun. That code was woven for one or the other.
""".

-export([same/2, digest/1, has_stack/1]).

-doc "Whether two reasons are the same except for stack traces and digests of code.".
-spec same(term(), term()) -> boolean().
same(Same, Same) -> true;
same(A, B) -> shown(plain(A)) =:= shown(plain(B)).

-doc "A digest that two reasons share if they are the same in that way.".
-spec digest(term()) -> binary().
digest(Reason) -> erlang:md5(term_to_binary(shown(plain(Reason)), [deterministic])).

-doc "Whether a reason has a stack trace: it is that of a crash.".
-spec has_stack(term()) -> boolean().
has_stack(Reason) -> plain(Reason) =/= Reason.

plain([{Module, Function, _, Location} | _]) when is_atom(Module), is_atom(Function), is_list(Location) -> '$stack';
plain([Head | Tail]) -> [plain(Head) | plain(Tail)];
plain(Term) when is_tuple(Term) -> list_to_tuple([plain(Element) || Element <- tuple_to_list(Term)]);
plain(Term) -> Term.

%% A fun is compared by its place in its module, and its environment.
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
