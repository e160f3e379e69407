-module(witness_remote_view).
-moduledoc """
Terms of a target as the target itself would show them: its processes, ports and references have the numbers that they have
there (`<0.98.0>`, not `<9123.98.0>`), and modules of Witness have their own names, not those of their slot.

The terms are for people. Their identifiers do not belong to this node.
""".

-export([to_local/3]).

-doc "A term from a node, with the names that modules of Witness have there.".
-spec to_local(term(), node(), witness_remote_bundle:renaming()) -> term().
to_local([Head | Tail], Node, Names) -> [to_local(Head, Node, Names) | to_local(Tail, Node, Names)];
to_local(Tuple, Node, Names) when is_tuple(Tuple) -> list_to_tuple(to_local(tuple_to_list(Tuple), Node, Names));
to_local(Map, Node, Names) when is_map(Map) ->
    #{to_local(Key, Node, Names) => to_local(Value, Node, Names) || Key := Value <- Map};
to_local(P, Node, _) when is_pid(P), node(P) =:= Node -> list_to_pid(replace_node_number("<0", pid_to_list(P)));
to_local(P, Node, _) when is_port(P), node(P) =:= Node -> list_to_port(replace_node_number("#Port<0", port_to_list(P)));
to_local(R, Node, _) when is_reference(R), node(R) =:= Node -> list_to_ref(replace_node_number("#Ref<0", ref_to_list(R)));
to_local(Term, _, Names) -> witness_remote_bundle:rename_term(Term, Names).

%% The first number identifies the node.
replace_node_number(Local, Text) -> Local ++ string:find(Text, ".").
