-module(witness_explore_file).
-moduledoc """
Reads a scenario from a file. Its text is Erlang terms, each with a full stop:

```
% Q answers P, and its child may die at any moment.
{about, "a short description"}.
{process, p, [{spawn, q}, {send, q}, {recv, q}, exit]}.
{process, q, [{recv, p}, {spawn, r}, {send, p}]}.
{process, r, [exit]}.
{monitors, [{p, single}, {q, group}]}.     % an instrumentation map; there may be several
{mortal, [r]}.
```

Also `{sources, [ideal, birth, vm]}`, `{stamps, always}` or `handover`, `{pool, again}` or `fresh`, `{first, kept}` or
`pooled`, `{attach, true}`,
`{order, [q, q, p]}`. See `t:witness_explore_scenario:scenario/0`.

A file is data: nothing in it is evaluated, and no atoms are made; names stay binaries.
""".

-export([read/1, parse/2]).

-define(MAX_BYTES, 100_000).
-define(MAX_DEPTH, 8).

-type place() :: {Line :: pos_integer(), Column :: pos_integer()}.
-type item() :: {tuple | list, place(), [item()]} | {name | text, place(), binary()}.

-doc "The scenario of a file, or what is wrong with it: `FILE:LINE:COLUMN: ...`.".
-spec read(file:name_all()) -> {ok, witness_explore_scenario:scenario()} | {error, unicode:chardata()}.
read(File) ->
    case file:read_file(File) of
        {ok, Text} when byte_size(Text) =< ?MAX_BYTES -> parse(File, Text);
        {ok, _} -> {error, io_lib:format("~ts: a scenario has at most ~b bytes", [File, ?MAX_BYTES])};
        {error, Reason} -> {error, [shown(File), ~": ", file:format_error(Reason)]}
    end.

-doc "The scenario of a text. The file only names the place of errors.".
-spec parse(file:name_all(), binary()) -> {ok, witness_explore_scenario:scenario()} | {error, unicode:chardata()}.
parse(File, Text) ->
    try
        Name = unicode:characters_to_binary([filename:basename(File)]),
        Start = #{name => Name, about => ~"", processes => [], monitors => []},
        {ok, lists:foldl(fun entry/2, Start, terms({Text, {1, 1}}))}
    catch
        throw:{wrong, {Line, Column}, What} -> {error, [shown(File), io_lib:format(":~b:~b: ", [Line, Column]), What]}
    end.

shown(File) -> io_lib:format("~ts", [File]).

-spec wrong(place(), unicode:chardata()) -> no_return().
wrong(Place, What) -> throw({wrong, Place, What}).

%% --- what the terms say ----------------------------------------------------------

entry({tuple, _, [{name, _, ~"about"}, {text, _, Text}]}, S) -> S#{about => Text};
entry({tuple, _, [{name, _, ~"process"}, Name, {list, _, Actions}]}, S = #{processes := Processes}) ->
    S#{processes => Processes ++ [{name(Name), [action(A) || A <- Actions]}]};
entry({tuple, _, [{name, _, ~"monitors"}, {list, _, Entries}]}, S = #{monitors := Maps}) ->
    S#{monitors => Maps ++ [[monitor(E) || E <- Entries]]};
entry({tuple, _, [{name, _, ~"sources"}, {list, Place, Sources}]}, S) ->
    Sources =/= [] orelse wrong(Place, ~"a scenario needs a source: ideal, birth or vm"),
    S#{sources => [choice(Source, [ideal, birth, vm]) || Source <- Sources]};
entry({tuple, _, [{name, _, ~"stamps"}, How]}, S) -> S#{stamps => choice(How, [always, handover])};
entry({tuple, _, [{name, _, ~"pool"}, How]}, S) -> S#{pool => choice(How, [again, fresh])};
entry({tuple, _, [{name, _, ~"first"}, How]}, S) -> S#{first => choice(How, [kept, pooled])};
entry({tuple, _, [{name, _, ~"attach"}, How]}, S) -> S#{attach => choice(How, [true, false])};
entry({tuple, _, [{name, _, ~"mortal"}, {list, _, Names}]}, S) -> S#{mortal => [name(N) || N <- Names]};
entry({tuple, _, [{name, _, ~"order"}, {list, _, Names}]}, S) -> S#{order => [name(N) || N <- Names]};
entry({_, Place, _}, _) ->
    wrong(Place, [~"expected {process, NAME, [ACTION, ...]}, {monitors, [{NAME, single | group | none}, ...]}, ",
                  ~"{sources, [...]}, {stamps, ...}, {pool, ...}, {first, ...}, {attach, ...}, {mortal, [NAME, ...]}, ",
                  ~"{order, [NAME, ...]} or {about, \"...\"}"]).

action({name, _, ~"exit"}) -> exit;
action({name, _, ~"other"}) -> other;
action({tuple, _, [Kind, Name]}) -> {choice(Kind, [spawn, send, recv, kill]), name(Name)};
action({_, Place, _}) ->
    wrong(Place, ~"expected {spawn, NAME}, {send, NAME}, {recv, NAME}, {kill, NAME}, other or exit").

monitor({tuple, _, [Name, How]}) -> {name(Name), choice(How, [single, group, none])};
monitor({_, Place, _}) -> wrong(Place, ~"expected {NAME, single}, {NAME, group} or {NAME, none}").

name({name, _, Name}) -> Name;
name({_, Place, _}) -> wrong(Place, ~"expected the name of a process").

choice({name, Place, Name}, Choices) ->
    case [Choice || Choice <- Choices, atom_to_binary(Choice) =:= Name] of
        [Choice] -> Choice;
        [] -> expected(Place, Choices)
    end;
choice({_, Place, _}, Choices) -> expected(Place, Choices).

-spec expected(place(), [atom()]) -> no_return().
expected(Place, Choices) ->
    wrong(Place, [~"expected ", lists:join(~", ", [atom_to_binary(Choice) || Choice <- Choices])]).

%% --- terms -----------------------------------------------------------------------

terms(Input) ->
    case token(Input) of
        {eof, _, _} -> [];
        _ ->
            {Item, Rest} = term(Input, 0),
            case token(Rest) of
                {$., _, Rest1} -> [Item | terms(Rest1)];
                {_, Place, _} -> wrong(Place, ~"expected a full stop")
            end
    end.

-spec term({binary(), place()}, non_neg_integer()) -> {item(), {binary(), place()}}.
term(Input, Depth) ->
    case token(Input) of
        {_, Place, _} when Depth > ?MAX_DEPTH -> wrong(Place, ~"too deep");
        {${, Place, Rest} -> items(Rest, $}, tuple, Place, Depth + 1);
        {$[, Place, Rest} -> items(Rest, $], list, Place, Depth + 1);
        {{Kind, Text}, Place, Rest} -> {{Kind, Place, Text}, Rest};
        {_, Place, _} -> wrong(Place, ~"expected a term")
    end.

items(Input, Close, Kind, Place, Depth) ->
    case token(Input) of
        {Close, _, Rest} -> {{Kind, Place, []}, Rest};
        _ -> more_items(Input, Close, Kind, Place, Depth, [])
    end.

more_items(Input, Close, Kind, Place, Depth, Items) ->
    {Item, Rest} = term(Input, Depth),
    case token(Rest) of
        {$,, _, Rest1} -> more_items(Rest1, Close, Kind, Place, Depth, [Item | Items]);
        {Close, _, Rest1} -> {{Kind, Place, lists:reverse(Items, [Item])}, Rest1};
        {_, Wrong, _} -> wrong(Wrong, [~"expected a comma or ", Close])
    end.

%% --- tokens ----------------------------------------------------------------------

token({<<C, Text/binary>>, Place}) when C =:= $\s; C =:= $\t; C =:= $\r -> token({Text, next(Place)});
token({<<$\n, Text/binary>>, {Line, _}}) -> token({Text, {Line + 1, 1}});
token({<<$%, Text/binary>>, Place}) ->
    [Comment | _] = binary:split(Text, ~"\n"),
    token({binary:part(Text, byte_size(Comment), byte_size(Text) - byte_size(Comment)), Place});
token({<<>>, Place}) -> {eof, Place, {<<>>, Place}};
token({<<$", Text/binary>>, Place}) ->
    case binary:split(Text, ~"\"") of
        [String, Rest] ->
            lists:any(fun(C) -> C < 32 end, binary_to_list(String)) andalso wrong(Place, ~"a string ends on its line"),
            {{text, String}, Place, {Rest, next(Place, byte_size(String) + 2)}};
        [_] -> wrong(Place, ~"a string without an end")
    end;
token({<<C, Text/binary>>, Place}) when C =:= ${; C =:= $}; C =:= $[; C =:= $]; C =:= $,; C =:= $. ->
    {C, Place, {Text, next(Place)}};
token({Text, Place}) ->
    case re:run(Text, ~"^[A-Za-z][A-Za-z0-9_@]{0,39}", [{capture, first, binary}]) of
        {match, [Name]} ->
            Size = byte_size(Name),
            {{name, Name}, Place, {binary:part(Text, Size, byte_size(Text) - Size), next(Place, Size)}};
        nomatch -> wrong(Place, ~"expected a term: names begin with a letter and have at most 40 characters")
    end.

next(Place) -> next(Place, 1).

next({Line, Column}, N) -> {Line, Column + N}.
