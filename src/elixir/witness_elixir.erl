-module(witness_elixir).
-moduledoc """
Data of Witness for Elixir, and back: `nil` in the place of `undefined`, and structs.

Only the maps and lists of Witness are changed. What comes from the system or from a monitor, such as a message or the value of a
binding, stays as it is. So does the history of a run, which only reports read.
""".

-export([struct/2, from_erlang/1, to_erlang/1, text/1, format_error/1]).

%% The keys of these values.
-define(FOREIGN, [info, slice, signature, bindings, names, aliases, history]).

-doc "A struct with what a map has of its fields.".
-spec struct(#{'__struct__' := module(), _ => _}, map()) -> map().
struct(Default, Map) -> maps:merge(Default, from_erlang(maps:with(maps:keys(Default), maps:remove('__struct__', Map)))).

-doc "Data as Elixir has it.".
-spec from_erlang(term()) -> term().
from_erlang(Term) -> convert(undefined, nil, Term).

-doc "Data as Erlang has it.".
-spec to_erlang(term()) -> term().
to_erlang(Term) -> convert(nil, undefined, Term).

convert(From, To, From) -> To;
convert(From, To, Map) when is_map(Map) ->
    #{Key => case lists:member(Key, ?FOREIGN) andalso Value =/= From of
                 true -> Value;
                 false -> convert(From, To, Value)
             end || Key := Value <- Map};
convert(From, To, List) when is_list(List) -> [convert(From, To, Element) || Element <- List];
convert(_, _, Term) -> Term.

-doc "A string.".
-spec text(unicode:chardata()) -> binary().
text(Chars) ->
    Text = unicode:characters_to_binary(Chars),
    true = is_binary(Text),
    Text.

-doc "The text of an error, also of the one that OTP has if a name is taken.".
-spec format_error(witness:error() | {already_started, pid()}) -> binary().
format_error({already_started, Pid}) when is_pid(Pid) ->
    text([~"a process with this name runs already: ", witness_event:format_proc(Pid, elixir)]);
format_error(Error) -> text(witness:format_error(Error)).
