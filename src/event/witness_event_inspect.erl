-module(witness_event_inspect).
-moduledoc """
Terms of the system as text for people, as `inspect/2` of Elixir writes them.

The guarantees are those of `witness_event_term`: at most so many characters, on one line, bounded work on any term, and no
character that could harm a terminal. Elixir is not needed, no code of the system runs, and no atom is made. The text is that of
Elixir 1.20 with no limits and `sort_maps`, except:

- The fields of a struct are sorted by name, because their order is in the struct's module. Structs of Elixir that have a form of
  their own are shown in it (`witness_event_inspect_struct`).
- The author of a struct may hide fields from `inspect/2`. Then no field is shown: `#Shop.Conn<...>`
  (`witness_event_inspect_hidden`).
- Integers of more than some 900 digits are in base 16.
""".

-export([format/2, format/3, call/2, function/4, expand/3, mfa/3, arity/1]).

-export_type([item/0, hides/0]).

-doc "Whether the author of a struct has written how `inspect/2` shows it.".
-type hides() :: fun((module()) -> boolean()).

-doc "What remains to be written, beside text.".
-type item() ::
    {term, term()}
  | {list, [term()]}                                                 % a list, even if it could be a string
  | {rest, term(), Close :: witness_event_bounded:chunk()}           % what follows an element of a list, and the list's end
  | {tuple, tuple(), Next :: pos_integer()}
  | {pairs, maps:iterator(), Before :: witness_event_bounded:chunk()}
  | {fields, [{atom(), term()}], Before :: witness_event_bounded:chunk(), Close :: witness_event_bounded:chunk()}
  | {bits, bitstring(), Before :: witness_event_bounded:chunk()}.

-type work() :: witness_event_bounded:work(item()).

%% Characters of the shortest pair in a keyword list, `a: 1, `.
-define(PAIR_CHARACTERS, 4).

-doc "A term as at most `Limit` characters.".
-spec format(term(), Limit :: non_neg_integer()) -> binary().
format(Term, Limit) -> format(Term, Limit, fun witness_event_inspect_hidden:is_hidden/1).

-doc "Like `format/2`, with a function that says which structs hide their fields.".
-spec format(term(), Limit :: non_neg_integer(), hides()) -> binary().
format(Term, Limit, Hides) -> write([{term, Term}], Limit, Hides).

-doc "A call as `Exception.format_mfa/3` writes it: `Shop.Pool.init([size: 2])`, or a function if no argument is known.".
-spec call({module(), atom(), Args :: [term()]}, Limit :: non_neg_integer()) -> binary().
call({Module, Function, Args}, Limit) ->
    Arguments = case witness_event_term:are_unknown(Args) of true -> length(Args); false -> Args end,
    write(mfa(Module, Function, Arguments), Limit, fun witness_event_inspect_hidden:is_hidden/1).

-doc "A function: `Shop.Pool.init/1`, `:lists.map/2`, `anonymous fn/1 in Shop.run/2`.".
-spec function(module(), atom(), arity(), Limit :: non_neg_integer()) -> binary().
function(Module, Function, Arity, Limit) -> write(mfa(Module, Function, Arity), Limit, fun(_) -> false end).

write(Work, Limit, Hides) ->
    witness_event_bounded:write(Work, Limit, fun(Item, Left) -> expand(Item, Left, Hides) end).

-doc "The items of a function, or of a call with its arguments.".
-spec mfa(module(), atom(), arity() | [term()]) -> work().
mfa(Module, Function, Arity) when is_atom(Module), is_atom(Function) ->
    case witness_event_inspect_name:parent(atom_to_list(Function)) of
        none -> qualified(Module, atom_to_list(Function)) ++ arity(Arity);
        {Parent, ParentArity} ->
            Place = qualified(Module, Parent) ++ [{text, [$/ | ParentArity]}],
            [{text, ~"anonymous fn"} | arity(Arity)] ++ [{text, ~" in "} | Place]
    end;
mfa(Module, Function, Arity) -> [{term, Module}, {text, ~"."}, {term, Function} | arity(Arity)].

qualified(Module, Name) -> [{text, atom(Module)}, {text, ~"."}, {text, witness_event_inspect_name:call(Name)}].

-doc "The items of arguments, or of their number.".
-spec arity(arity() | [term()]) -> work().
arity(Args) when is_list(Args) -> [{text, ~"("} | elements(Args, ~")")];
arity(Arity) -> [{text, ~"/"}, {term, Arity}].

atom(Atom) -> witness_event_inspect_name:literal(atom_to_list(Atom)).

-doc "An item of work as its parts.".
-spec expand(item(), Left :: non_neg_integer(), hides()) -> work().
expand({term, #{'__struct__' := Module} = Struct}, Left, Hides) when is_atom(Module) -> struct(Module, Struct, Left, Hides);
expand({term, Term}, Left, _) -> term(Term, Left);
expand({list, List}, Left, _) -> list(List, Left);
expand({rest, [], Close}, _, _) -> [{text, Close}];
expand({rest, [Head | Tail], Close}, _, _) -> [{text, ~", "}, {term, Head}, {rest, Tail, Close}];
expand({rest, Tail, Close}, _, _) -> [{text, ~" | "}, {term, Tail}, {text, Close}];
expand({tuple, Tuple, Next}, _, _) when Next > tuple_size(Tuple) -> [{text, ~"}"}];
expand({tuple, Tuple, Next}, _, _) ->
    [{text, ~", "} || Next > 1] ++ [{term, element(Next, Tuple)}, {tuple, Tuple, Next + 1}];
expand({pairs, Iterator, Before}, _, _) ->
    case maps:next(Iterator) of
        {Key, Value, Next} -> [{text, Before}, {term, Key}, {text, ~" => "}, {term, Value}, {pairs, Next, ~", "}];
        none -> [{text, ~"}"}]
    end;
expand({fields, [], _, Close}, _, _) -> [{text, Close}];
expand({fields, [{Key, Value} | Rest], Before, Close}, _, _) ->
    [{text, Before}, {text, witness_event_inspect_name:key(atom_to_list(Key))}, {text, ~" "}, {term, Value},
     {fields, Rest, ~", ", Close}];
expand({bits, <<>>, _}, _, _) -> [{text, ~">>"}];
expand({bits, <<Byte, Rest/bitstring>>, Before}, _, _) -> [{text, Before}, {term, Byte}, {bits, Rest, ~", "}];
expand({bits, Rest, Before}, _, _) ->
    Size = bit_size(Rest),
    <<Bits:Size>> = Rest,
    [{text, Before}, {term, Bits}, {text, ~"::size("}, {term, Size}, {text, ~")>>"}].

term(Atom, _) when is_atom(Atom) -> [{text, atom(Atom)}];
term(Integer, Left) when is_integer(Integer) -> [{text, witness_event_bounded:integer(Integer, "0x", Left)}];
term(Float, _) when is_float(Float) -> [{text, decimal(Float)}];
term([], _) -> [{text, ~"[]"}];
term(List, Left) when is_list(List) ->
    case is_charlist(List, Left) of
        true -> [{text, ~"~c"} | string(List, Left)];
        false -> list(List, Left)
    end;
term(Tuple, _) when is_tuple(Tuple) -> [{text, ~"{"}, {tuple, Tuple, 1}];
term(Map, Left) when is_map(Map) -> [{text, ~"%{"} | map(Map, Left)];
term(Bits, Left) when is_bitstring(Bits) ->
    case is_binary(Bits) andalso witness_event_inspect_struct:is_printable(Bits, Left) of
        true -> string(Bits, Left);
        false -> [{text, ~"<<"}, {bits, Bits, ~""}]
    end;
term(Fun, _) when is_function(Fun) -> function(Fun);
term(Pid, _) when is_pid(Pid) -> [{text, "#PID" ++ witness_event_term:identifier(Pid)}];
term(Reference, _) when is_reference(Reference) ->
    "#Ref" ++ Numbers = witness_event_term:identifier(Reference),
    [{text, "#Reference" ++ Numbers}];
term(Port, _) when is_port(Port) -> [{text, witness_event_term:identifier(Port)}];
term(Other, Left) -> [{text, witness_event_term:other(Other, Left)}].

%% Elixir leaves out the exponent of floats that are written with up to 16 digits.
decimal(Float) when abs(Float) >= 1.0, abs(Float) < 1.0e16, trunc(Float) == Float -> integer_to_list(trunc(Float)) ++ ".0";
decimal(Float) -> float_to_list(Float, [short]).

string(Text, Left) ->
    [{text, [$" | witness_event_inspect_name:escape(witness_event_bounded:prefix(Text, Left), $")] ++ "\""}].

%% Elixir takes a list or map for keywords only if no key is a module of Elixir.
list(List, Left) ->
    case is_keywords(List, Left div ?PAIR_CHARACTERS) of
        true -> [{text, ~"["}, {fields, List, ~"", ~"]"}];
        false -> [{text, ~"["} | elements(List, ~"]")]
    end.

%% The elements of a list, which may be improper, and its end.
elements([Head | Tail], Close) -> [{term, Head}, {rest, Tail, Close}];
elements(Rest, Close) -> [{rest, Rest, Close}].

map(Map, Left) ->
    Iterator = witness_event_bounded:iterator(Map),
    case first_pairs(maps:next(Iterator), Left div ?PAIR_CHARACTERS + 1) of
        [_ | _] = Pairs ->
            case is_keywords(Pairs, Left) of
                true -> [{fields, Pairs, ~"", ~"}"}];
                false -> [{pairs, Iterator, ~""}]
            end;
        [] -> [{text, ~"}"}]
    end.

%% All pairs, or so many that not all of them can be written.
first_pairs({Key, Value, Iterator}, Count) when Count > 0 -> [{Key, Value} | first_pairs(maps:next(Iterator), Count - 1)];
first_pairs(_, _) -> [].

%% Whether the pairs that can still be written are those of a keyword list.
is_keywords([{Key, _} | Rest], Count) when is_atom(Key) ->
    case atom_to_list(Key) of
        "Elixir." ++ _ -> false;
        _ -> Count =:= 0 orelse is_keywords(Rest, Count - 1)
    end;
is_keywords(Rest, _) -> Rest =:= [].

%% Whether the elements that can still be written are characters of a charlist.
is_charlist([C | Rest], Left) when is_integer(C), C >= 7, C < $\d ->
    (C =< $\r orelse C =:= $\e orelse C >= $\s) andalso (Left =:= 0 orelse is_charlist(Rest, Left - 1));
is_charlist(Rest, _) -> Rest =:= [].

%% A struct of Elixir with a form of its own, or the default one. If it has other keys than atoms, it is a map.
struct(Module, Struct, Left, Hides) ->
    Name = atom_to_list(Module),
    Fields = first_pairs(maps:next(witness_event_bounded:iterator(Struct)), Left div ?PAIR_CHARACTERS + 3),
    IsStruct = witness_event_inspect_name:is_alias(Name) andalso lists:all(fun({Key, _}) -> is_atom(Key) end, Fields),
    case IsStruct andalso witness_event_inspect_struct:work(Struct, Left) of
        false -> [{text, ~"%{"} | map(Struct, Left)];
        none ->
            Shown = witness_event_inspect_name:literal(Name),
            case Hides(Module) of
                true -> [{text, [$# | Shown]}, {text, ~"<...>"}];
                false ->
                    [{text, [$% | Shown]}, {text, ~"{"},
                     {fields, [Field || {Key, _} = Field <- Fields, Key =/= '__struct__', Key =/= '__exception__'], ~"", ~"}"}]
            end;
        Work -> Work
    end.

function(Fun) ->
    Info = fun(Key) -> element(2, erlang:fun_info(Fun, Key)) end,
    Arity = integer_to_binary(Info(arity)),
    case Info(type) of
        external -> [{text, ~"&"} | qualified(Info(module), atom_to_list(Info(name)))] ++ [{text, <<"/", Arity/binary>>}];
        local ->
            Number = iolist_to_binary([integer_to_binary(Info(new_index)), $., integer_to_binary(Info(uniq)), $/, Arity]),
            [{text, ~"#Function<"}, {text, Number}, {text, ~" in "} | place(Info(module), Info(name))] ++ [{text, ~">"}]
    end.

%% The name of a fun is not known while its module is not loaded.
place(Module, []) -> [{text, atom(Module)}];
place(Module, Name) ->
    case witness_event_inspect_name:parent(atom_to_list(Name)) of
        none -> qualified(Module, atom_to_list(Name));
        {Parent, Arity} -> qualified(Module, Parent) ++ [{text, [$/ | Arity]}]
    end.
