-module(witness_log_item).
-moduledoc """
Makes events from the terms of a log, which can be anything.
""".

-export([check/2, functions/2, clock/2, kinds/0, peer/1]).

-export_type([place/0, wrong/0]).

-doc "A place in the log: an offset of the block.".
-type place() :: non_neg_integer().

-doc "What was expected at a place.".
-type wrong() :: {expected, What :: binary(), place()}.

%% The role of an element in an item.
-type role() :: process | parent | destination | origin | signature | call | function | reason | missing.

-doc """
The item, if each of its elements is valid for its role. The places are those of the elements after the kind, in their
order; messages, reasons and values can be any term, and so have no place.
""".
-spec check(tuple(), [place()]) -> witness_log:entry() | wrong().
check({recv, Process, From, _, _} = Item, _) when is_pid(Process), is_pid(From) orelse From =:= undefined -> Item;
check({send, Process, To, _, _} = Item, _) when is_pid(Process), is_pid(To) -> Item;
check(Item, Places) -> check(roles(element(1, Item)), 2, Places, Item).

check([Role | Roles], Index, [Place | Places], Item) ->
    case is_valid(Role, element(Index, Item)) of
        true -> check(Roles, Index + 1, Places, Item);
        false -> {expected, what(Role), Place}
    end;
check([], _, _, Item) ->
    Item.

-doc "The functions of which the log has the calls, if it is a list of functions.".
-spec functions(term(), place()) -> {functions, [mfa()]} | wrong().
functions(Functions, Place) ->
    case is_list(Functions) andalso are_functions(Functions) of
        true -> {functions, Functions};
        false -> {expected, ~"functions: [{module,function,Arity},...]", Place}
    end.

are_functions([Function | Functions]) -> is_valid(function, Function) andalso are_functions(Functions);
are_functions(Tail) -> Tail =:= [].

-doc "The time of a clock, if it is one.".
-spec clock(term(), place()) -> {clock, integer()} | wrong().
clock(Time, _) when is_integer(Time), Time > -1 bsl 63, Time < 1 bsl 63 -> {clock, Time};
clock(_, Place) -> {expected, ~"a time in nanoseconds, an integer below 2^63", Place}.

-doc "What a line may be, for people.".
-spec kinds() -> unicode:chardata().
kinds() -> ~"an event: fork, init, exit, send, recv, call, return, gap, attached, root, receives, functions or clock".

-spec roles(atom()) -> [role()].
roles(fork) -> [process, process, signature];
roles(init) -> [process, parent, signature];
roles(exit) -> [process];
roles(send) -> [process, destination];
roles(recv) -> [process, origin];
roles(call) -> [process, call];
roles(return) -> [process, function];
roles(gap) -> [process, reason, missing];
roles(attached) -> [process, function];
roles(root) -> [process].

-spec is_valid(role(), term()) -> boolean().
is_valid(process, Pid) when is_pid(Pid) -> true;
is_valid(process, {external, Name}) -> is_binary(Name);
is_valid(process, _) -> false;
is_valid(parent, Parent) -> Parent =:= undefined orelse is_valid(process, Parent);
is_valid(destination, {Name, Node}) when is_atom(Name), is_atom(Node) -> true;
is_valid(destination, To) -> is_atom(To) orelse is_port(To) orelse is_reference(To) orelse is_valid(process, To);
is_valid(origin, From) -> From =:= undefined orelse is_port(From) orelse is_valid(process, From);
%% `length' of an improper list fails, and with it the guard.
is_valid(signature, {Module, Function, Args}) when is_atom(Module), is_atom(Function), length(Args) >= 0 -> true;
is_valid(call, Call) -> is_valid(signature, Call);
is_valid(function, {Module, Function, Arity}) when is_atom(Module), is_atom(Function) -> is_integer(Arity) andalso Arity >= 0;
is_valid(reason, Reason) -> is_atom(Reason);
is_valid(missing, Missing) -> Missing =:= unknown orelse is_integer(Missing) andalso Missing >= 0;
is_valid(_, _) -> false.

what(process) -> ~"a process: <0.102.0>, or a name such as \"worker 1\"";
what(parent) -> ~"the process that is the parent, or _";
what(destination) -> ~"a destination: a process, a port, an atom, {Name,Node} or a reference";
what(origin) -> ~"a sender: a process, a port or undefined";
what(signature) -> ~"what it was spawned with: {module,function,[Argument]}";
what(call) -> ~"what it calls: {module,function,[Argument]}";
what(function) -> ~"a function: {module,function,Arity}";
what(reason) -> ~"the reason, an atom";
what(missing) -> ~"how many are missing: a number, or unknown".

-doc "A string becomes the name of a process elsewhere; every other term stays as it is.".
-spec peer(term()) -> term().
peer(Name) when is_list(Name) ->
    try unicode:characters_to_binary(Name) of
        Binary when is_binary(Binary) -> {external, Binary};
        _ -> Name
    catch
        error:badarg -> Name
    end;
peer(Other) -> Other.
