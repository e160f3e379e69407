-module(witness_log_atoms).
-moduledoc """
The names that a log may add to this VM.

Atoms, named functions (`fun m:f/1`) and nodes take memory of the VM that is never freed, and the VM ends when
their tables are full. So a log may use those that exist, and may add a bounded number.

Any number of processes may share a counter. If two of them read the same new name at the same moment, it counts
twice: the bound is never exceeded.
""".

-export([new/1, intern/2, function/4, pid/4, reference/3, port/3]).

-export_type([atoms/0, refusal/0]).

-doc "A counter of names that were added, and its bound.".
-opaque atoms() :: {atoms, Max :: pos_integer(), atomics:atomics_ref()}.

-doc "Why there is no such atom, process, port or reference, for people.".
-type refusal() :: {refused, unicode:chardata()}.

%% The longest name of an atom, in characters.
-define(MAX_CHARACTERS, 255).

-doc "A counter that lets a log add `Max` names.".
-spec new(Max :: pos_integer()) -> atoms().
new(Max) -> {atoms, Max, atomics:new(1, [])}.

-doc "The atom of this name, which is in UTF-8.".
-spec intern(Name :: binary(), atoms()) -> atom() | refusal().
intern(Name, Atoms) ->
    try
        binary_to_existing_atom(Name)
    catch
        error:_ -> add(Name, Atoms)
    end.

add(Name, Atoms) ->
    case is_short(Name, ?MAX_CHARACTERS) of
        true -> count_and_intern(Name, Atoms);
        false -> {refused, ~"an atom of more than 255 characters"}
    end.

is_short(<<_/utf8, Rest/binary>>, Left) -> Left > 0 andalso is_short(Rest, Left - 1);
is_short(<<>>, _) -> true.

%% The count goes on above the bound: a name that was refused once is refused again.
count_and_intern(Name, {atoms, Max, Counter}) ->
    case atomics:add_get(Counter, 1, 1) =< Max of
        true -> binary_to_atom(Name);
        false -> {refused, [~"more than ", integer_to_binary(Max), ~" atoms that are not known"]}
    end.

-doc """
The function `fun Module:Function/Arity`. Its module is not loaded.

A function that was never named in this VM takes an entry of a table that is never freed. The VM does not say
which functions those are until their modules are loaded. So each of them takes an atom too, and the bound on atoms covers it.
""".
-spec function(module(), atom(), arity(), atoms()) -> fun() | refusal().
function(Module, Function, Arity, Atoms) ->
    External = <<131, 113, (term(Module))/binary, (term(Function))/binary, 97, Arity>>,
    try
        binary_to_term(External, [safe])
    catch
        error:badarg ->
            case intern(<<"fun ", (binary:encode_hex(erlang:md5(External)))/binary>>, Atoms) of
                {refused, _} = Refused -> Refused;
                _ -> binary_to_term(External)
            end
    end.

term(Term) ->
    <<131, External/binary>> = term_to_binary(Term),
    External.

-doc """
The process that is written `<Node.Id.Serial>`, where `Node` is not 0.

The text does not say which node that was: the result is a process of a node `Node@log` that does not exist. Two of them are
equal if their texts are.
""".
-spec pid(Node :: pos_integer(), Id :: non_neg_integer(), Serial :: non_neg_integer(), atoms()) -> pid() | refusal().
pid(Node, Id, Serial, Atoms) when Id < 1 bsl 32, Serial < 1 bsl 32 ->
    on_node(Node, 88, <<>>, <<Id:32, Serial:32, 1:32>>, Atoms);
pid(_, _, _, _) ->
    {refused, ~"a process whose number is too large"}.

-doc "The reference that is written `#Ref<Node.Number...>`, where `Node` is not 0; the numbers in that order.".
-spec reference(Node :: pos_integer(), [non_neg_integer()], atoms()) -> reference() | refusal().
reference(Node, Numbers, Atoms) when length(Numbers) >= 1, length(Numbers) =< 5 ->
    case lists:all(fun(Number) -> Number < 1 bsl 32 end, Numbers) of
        true ->
            Ids = << <<Number:32>> || Number <- lists:reverse(Numbers) >>,
            on_node(Node, 90, <<(length(Numbers)):16>>, <<1:32, Ids/binary>>, Atoms);
        false ->
            {refused, ~"a reference whose number is too large"}
    end;
reference(_, _, _) ->
    {refused, ~"a reference of more than five numbers"}.

-doc "The port that is written `#Port<Node.Number>`, where `Node` is not 0.".
-spec port(Node :: pos_integer(), Number :: non_neg_integer(), atoms()) -> port() | refusal().
port(Node, Number, Atoms) when Number < 1 bsl 64 -> on_node(Node, 120, <<>>, <<Number:64, 1:32>>, Atoms);
port(_, _, _) -> {refused, ~"a port whose number is too large"}.

%% The VM's external format; its tags are 88 for a process, 90 for a reference and 120 for a port.
on_node(Node, Tag, Before, After, Atoms) when Node < 1 bsl 64 ->
    case intern(<<(integer_to_binary(Node))/binary, "@log">>, Atoms) of
        {refused, _} = Refused -> Refused;
        Name -> binary_to_term(<<131, Tag, Before/binary, (term(Name))/binary, After/binary>>)
    end;
on_node(_, _, _, _, _) ->
    {refused, ~"a node whose number is too large"}.
