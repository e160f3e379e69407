-module(witness_replay_reason).
-moduledoc """
Exit reasons of the same process, recorded and replayed: whether they are the same but for stack traces, in which frames of
the recorder and of the replay stand.
""".

-export([same/2, has_stack/1]).

-doc "Whether two reasons are the same but for stack traces.".
-spec same(term(), term()) -> boolean().
same(Same, Same) -> true;
same(A, B) -> plain(A) =:= plain(B).

-doc "Whether it has a stack trace: it is that of a crash.".
-spec has_stack(term()) -> boolean().
has_stack(Reason) -> plain(Reason) =/= Reason.

plain([{Module, Function, _, Location} | _]) when is_atom(Module), is_atom(Function), is_list(Location) -> '$stack';
plain([Head | Tail]) -> [plain(Head) | plain(Tail)];
plain(Term) when is_tuple(Term) -> list_to_tuple([plain(Element) || Element <- tuple_to_list(Term)]);
plain(Term) -> Term.
