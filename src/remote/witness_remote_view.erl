-module(witness_remote_view).
-moduledoc """
Terms of a target as the target itself would show them: its processes, ports and references have the numbers that they have
there (`<0.98.0>`, not `<9123.98.0>`), and modules of Witness have their own names, not those of their slot.

The terms are for people. Their identifiers do not belong to this node.
""".

-export([local/3]).

-doc "A term from a node, with the names that modules of Witness have there.".
-spec local(term(), node(), witness_remote_bundle:renaming()) -> term().
local([Head | Tail], Node, Names) -> [local(Head, Node, Names) | local(Tail, Node, Names)];
local(Tuple, Node, Names) when is_tuple(Tuple) -> list_to_tuple(local(tuple_to_list(Tuple), Node, Names));
local(Map, Node, Names) when is_map(Map) ->
    #{local(Key, Node, Names) => local(Value, Node, Names) || Key := Value <- Map};
local(P, Node, _) when is_pid(P), node(P) =:= Node -> list_to_pid(numbered("<0", pid_to_list(P)));
local(P, Node, _) when is_port(P), node(P) =:= Node -> list_to_port(numbered("#Port<0", port_to_list(P)));
local(R, Node, _) when is_reference(R), node(R) =:= Node -> list_to_ref(numbered("#Ref<0", ref_to_list(R)));
local(Term, _, Names) -> witness_remote_bundle:rename_term(Term, Names).

%% The first number identifies the node.
numbered(Local, Text) -> Local ++ string:find(Text, ".").
