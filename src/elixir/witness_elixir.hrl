%% What Elixir asks each of its modules, for one that is written in Erlang. All of it follows from the exports. It is included
%% after the types of the module, which may define
%% - ?FIELDS: it is a struct with these fields, in this order, [{Name, Default}];
%% - ?ATTRIBUTES: those that Elixir shall see, instead of all.
-export(['__info__'/1]).

-ifdef(FIELDS).
-export(['__struct__'/0, '__struct__'/1]).
-define(STRUCT, [#{field => Field, default => Default, required => false} || {Field, Default} <- ?FIELDS]).
-else.
-define(STRUCT, nil).
-endif.

-ifndef(ATTRIBUTES).
-define(ATTRIBUTES, erlang:get_module_info(?MODULE, attributes)).
-endif.

-doc false.
'__info__'(module) -> ?MODULE;
'__info__'(functions) ->
    [{Name, Arity} || {Name, Arity} <- lists:sort(erlang:get_module_info(?MODULE, exports)),
                      not lists:member(Name, ['__info__', module_info, behaviour_info]),
                      string:prefix(atom_to_list(Name), "MACRO-") =:= nomatch];
%% A macro is a function with one argument more, the environment of its caller.
'__info__'(macros) ->
    [{list_to_atom(Macro), Arity - 1} || {Name, Arity} <- lists:sort(erlang:get_module_info(?MODULE, exports)),
                                         Macro <- [string:prefix(atom_to_list(Name), "MACRO-")], Macro =/= nomatch];
'__info__'(struct) -> ?STRUCT;
'__info__'(deprecated) -> [];
'__info__'(attributes) -> ?ATTRIBUTES;
'__info__'(Key) when Key =:= compile; Key =:= md5 -> erlang:get_module_info(?MODULE, Key);
'__info__'(exports_md5) -> erlang:md5(term_to_binary(erlang:get_module_info(?MODULE, exports))).

-ifdef(FIELDS).
-doc false.
'__struct__'() -> maps:from_list([{'__struct__', ?MODULE} | ?FIELDS]).

%% An unknown field is a `KeyError' of Elixir.
-doc false.
'__struct__'(Fields) -> lists:foldl(fun({Field, Value}, Struct) -> Struct#{Field := Value} end, '__struct__'(), Fields).
-endif.
