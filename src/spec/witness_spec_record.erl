-module(witness_spec_record).
-moduledoc """
Records: the declarations at the top of a specification, and their expansion to plain tuples.

```text
-record(request, {id, from, body = none :: term()}).
-include("messages.hrl").
```

An included file is data: only its attributes `-record` and `-include` are read, in every branch of an `-ifdef`;
types and defaults are skipped, and nothing in it runs. This module searches the folder of the file that
includes it and the declared folders, and nothing outside of them. Each file is read once, so files may include
each other. All included files together have the limits of one specification.

An unreadable part of such a file (a field that is a macro, a file that is missing) is an error only if a
specification needs it.
""".

-export([declarations/2, expand/2]).
-export_type([records/0]).

-doc "The records, and the errors of included files.".
-opaque records() :: #{fields := fields(), left_out := [unicode:chardata()]}.

%% The fields of each record, or why they are unknown.
-type fields() :: #{atom() => [atom()] | {unknown, unicode:chardata()}}.

-type token() :: witness_spec_scan:token().
-type finding() :: witness_spec_diagnostic:finding().
-type location() :: witness_spec_diagnostic:location().
-type property() :: witness_spec_parse:property().

-define(MAX_FILES, 100).
%% Limits of the elements that records add to one pattern, and of the growth of all patterns and guards of a file.
-define(MAX_ELEMENTS, 2_500).
-define(MAX_GROWTH, 100_000).

%% The state while declarations are read. `read` are the files, `sources` their texts.
-record(reading, {folders :: [file:name_all()],
                  fields = #{} :: fields(),
                  places = #{} :: #{atom() => location()},
                  read = #{} :: #{file:filename_all() => []},
                  sources = <<>> :: binary(),
                  left_out = [] :: [unicode:chardata()]}).

-doc """
Reads the attributes at the top of a specification: the records, the tokens after the attributes, and the errors.
`-include` looks in `Folders`, the first one first.
""".
-spec declarations([token()], Folders :: [file:name_all()]) -> {records(), [token()], [finding()]}.
declarations(Tokens, Folders) -> declarations(Tokens, #reading{folders = Folders}, []).

declarations([{'-', _}, {atom, _, _} | _] = Tokens, Reading, Findings) ->
    {Form, Rest} = form(Tokens),
    try
        declarations(Rest, declaration(Form, Reading), Findings)
    catch
        throw:{error, _, _, _, _} = Finding -> declarations(Rest, Reading, [Finding | Findings])
    end;
declarations(Rest, #reading{fields = Fields, left_out = LeftOut}, Findings) ->
    {#{fields => Fields, left_out => lists:reverse(LeftOut)}, Rest, lists:reverse(Findings)}.

%% The tokens up to the dot. The last token of a file stays.
form(Tokens) ->
    case lists:splitwith(fun(Token) -> not lists:member(element(1, Token), [dot, eof]) end, Tokens) of
        {Form, [{dot, _} = Dot | Rest]} -> {Form ++ [Dot], Rest};
        {Form, Rest} -> {Form, Rest}
    end.

declaration([_, {atom, _, record} | _] = Form, #reading{fields = Fields, places = Places} = Reading) ->
    {Name, Location, Names} = record(Form),
    case Fields of
        #{Name := _} ->
            Hint = case Places of
                #{Name := {Line, _}} -> io_lib:format("the first one is in line ~b", [Line]);
                _ -> "it comes from an included file"
            end,
            fail(Location, duplicate_record, ["the record ", quote(Name), " is there already"], Hint);
        _ ->
            Reading#reading{fields = Fields#{Name => Names}, places = Places#{Name => Location}}
    end;
declaration([_, {atom, _, include}, {'(', _}, {string, Anno, File}, {')', _}, {dot, _}], Reading) ->
    include(File, witness_spec_scan:location({string, Anno}), Reading);
declaration([_, {atom, _, include} = Include | _], _) ->
    fail(witness_spec_scan:location(Include), syntax, "this is not how a file is included",
         "`-include(\"file.hrl\").`");
declaration([_, {atom, _, include_lib} = Include | _], _) ->
    fail(witness_spec_scan:location(Include), not_supported, "not supported: `-include_lib`",
         "`-include` looks in the folder of the specification and in folders that were declared");
declaration([_, {atom, _, Name} = Attribute | _], _) ->
    fail(witness_spec_scan:location(Attribute), syntax, ["the attribute ", quote(Name), " has no place here"],
         "a specification begins with `-record` and `-include`, if need be").

%% Erlang's own parser reads types and defaults. Releases differ in where they place a missing argument, and some crash on
%% an additional argument.
record([_, _, {'(', _}, _, {')', _} = Close | _]) ->
    not_a_record(witness_spec_scan:location(Close));
record([Dash | _] = Form) ->
    try erl_parse:parse_form(Form) of
        {ok, {attribute, _, record, {Name, Parsed}}} ->
            Fields = [field(Field) || Field <- Parsed],
            lists:foldl(fun check_once/2, #{}, [{Field, location(Anno)} || {atom, Anno, Field} <- Fields]),
            {Name, witness_spec_scan:location(Dash), [Field || {atom, _, Field} <- Fields]};
        {ok, _} ->
            not_a_record(witness_spec_scan:location(Dash));
        {error, {{_, _} = Location, _, _}} ->
            not_a_record(Location);
        %% The form ends before its dot.
        {error, _} ->
            not_a_record(witness_spec_scan:after_token(lists:last(Form)))
    catch
        error:_ -> not_a_record(witness_spec_scan:location(Dash))
    end.

field({typed_record_field, Field, _}) -> field(Field);
field({record_field, _, Name}) -> Name;
field({record_field, _, Name, _}) -> Name.

check_once({Field, Location}, Seen) ->
    is_map_key(Field, Seen) andalso fail(Location, duplicate_field, ["the field ", quote(Field), " stands twice"]),
    Seen#{Field => []}.

-spec not_a_record(location()) -> no_return().
not_a_record(Location) ->
    fail(Location, syntax, "this is not how a record is declared", "`-record(name, {field, other = Default}).`").

%% Included files. Their errors are reported at the `-include` of the specification.

include(File, Location, #reading{folders = Folders} = Reading) ->
    case find(File, Folders) of
        {ok, Path} ->
            include_file(Path, Location, Reading);
        outside ->
            fail(Location, include, [quote(File), " may lie outside of the folders for included files"],
                 "a path is relative, and goes down only");
        missing ->
            fail(Location, include, ["cannot find ", quote(File)], case Folders of
                [] -> "there is no folder to look in; the option `include` declares some";
                _ -> ["it is not in ", lists:join(", ", [name(Folder) || Folder <- Folders])]
            end)
    end.

find(File, Folders) ->
    Parts = [Part || Part <- filename:split(File), Part =/= "."],
    case Parts =/= [] andalso filename:pathtype(File) =:= relative andalso not lists:member("..", Parts) of
        true ->
            Paths = [filename:join([Folder | Parts]) || Folder <- Folders],
            case lists:search(fun filelib:is_regular/1, Paths) of
                {value, Path} -> {ok, Path};
                false -> missing
            end;
        false ->
            outside
    end.

include_file(Path, _, #reading{read = Read} = Reading) when is_map_key(Path, Read) ->
    Reading;
include_file(_, Location, #reading{read = Read}) when map_size(Read) >= ?MAX_FILES ->
    fail(Location, too_large, io_lib:format("more than ~b files are included", [?MAX_FILES]));
include_file(Path, Location, #reading{read = Read, sources = Before} = Reading) ->
    maybe
        {ok, Source} ?= witness_spec_scan:file(Path),
        {ok, Tokens} ?= witness_spec_scan:string(Source, Before),
        Known = Reading#reading{read = Read#{Path => []}, sources = <<Before/binary, $\n, Source/binary>>},
        header(Tokens, Path, Location, Known)
    else
        {error, [Finding]} -> fail_in_file(Path, Finding, Location);
        {error, Finding} -> fail_in_file(Path, Finding, Location)
    end.

-spec fail_in_file(file:filename_all(), finding(), location()) -> no_return().
fail_in_file(Path, {error, Place, Code, Text, Hint}, Location) ->
    Line = case Place of undefined -> ""; {Number, _} -> io_lib:format(":~b", [Number]) end,
    fail(Location, Code, [name(Path), Line, ": ", Text], Hint).

header([{eof, _}], _, _, Reading) ->
    Reading;
header(Tokens, Path, Location, Reading) ->
    {Form, Rest} = form(Tokens),
    header(Rest, Path, Location, header_form(Form, Path, Location, Reading)).

header_form([{'-', _}, {atom, _, include}, {'(', _}, {string, _, File}, {')', _} | _], Path, Location, Reading) ->
    #reading{folders = Folders, left_out = LeftOut} = Reading,
    case find(File, [filename:dirname(Path) | Folders]) of
        {ok, Nested} -> include_file(Nested, Location, Reading);
        _ -> Reading#reading{left_out = [[quote(File), " of ", name(Path)] | LeftOut]}
    end;
header_form([{'-', _}, {atom, _, record}, {'(', _}, {atom, _, Name} | _] = Form, Path, Location, Reading) ->
    #reading{fields = Fields, places = Places} = Reading,
    Declared = header_fields(Form),
    case Fields of
        #{Name := Declared} ->
            Reading;
        #{Name := _} when is_map_key(Name, Places) ->
            fail(Location, duplicate_record, [name(Path), " declares the record ", quote(Name), " in another way"]);
        #{Name := _} ->
            Reading#reading{fields = Fields#{Name := {unknown, "it is declared in two ways"}}};
        _ ->
            Reading#reading{fields = Fields#{Name => Declared}}
    end;
header_form(_, _, _, Reading) ->
    Reading.

%% Replaces a macro by an atom that no author writes.
-define(MACRO, '$witness_macro').

header_fields(Form) ->
    try
        {_, _, Fields} = record(without_macros(Form)),
        case lists:member(?MACRO, Fields) of
            true -> {unknown, "a field is a macro"};
            false -> Fields
        end
    catch
        throw:{error, _, duplicate_field, _, _} -> {unknown, "a field stands twice"};
        throw:{error, _, _, _, _} -> {unknown, "its declaration cannot be read"}
    end.

without_macros([{'?', _}, {Kind, Anno, _} | Rest]) when Kind =:= atom; Kind =:= var ->
    After = case Rest of
        [{'(', _} | _] -> element(3, witness_spec_pattern:split_enclosed(Rest));
        _ -> Rest
    end,
    [{atom, Anno, ?MACRO} | without_macros(After)];
without_macros([Token | Rest]) ->
    [Token | without_macros(Rest)];
without_macros([]) ->
    [].

-doc "The properties without records. A property with an error is left out.".
-spec expand([property()], records()) -> {[property()], [finding()]}.
expand(Properties, Records) ->
    {Expanded, Findings, _} = lists:foldl(fun(Property, {Done, Found, Left}) ->
        try property(Property, Records, Left) of
            {Plain, Remaining} -> {[Plain | Done], Found, Remaining}
        catch
            throw:{error, _, _, _, _} = Finding -> {Done, [Finding | Found], Left}
        end
    end, {[], [], ?MAX_GROWTH}, Properties),
    {lists:reverse(Expanded), lists:reverse(Findings)}.

property(#{signatures := Signatures, among := Among, over := Over, lets := Lets} = Property, Records, Left) ->
    Expand = fun(Guarded, Before) -> expand_guarded(Guarded, Records, Before) end,
    {Signed, Less} = lists:mapfoldl(Expand, Left, Signatures),
    All = fun(all, Before) -> {all, Before}; (Several, Before) -> lists:mapfoldl(Expand, Before, Several) end,
    {Members, Fewer} = All(Among, Less),
    {Seen, Remaining} = All(Over, Fewer),
    {Known, Behind} = witness_spec_parse:map_lets(Expand, Remaining, Lets),
    Plain = Property#{signatures := Signed, among := Members, over := Seen, lets := Known},
    case Plain of
        #{formula := Formula} ->
            {Expanded, After} = witness_spec_parse:actions(fun(Action, none, Before) ->
                {Other, Rest} = Expand(Action, Before),
                {Other, none, Rest}
            end, none, Behind, Formula),
            {Plain#{formula := Expanded}, After};
        _ ->
            {Plain, Behind}
    end.

%% An action or a signature, and by how much others may still grow.
expand_guarded(#{pattern := Pattern, guard := Guard, location := Location} = Guarded, Records, Left) ->
    {Expanded, _} = pattern(Pattern, ?MAX_ELEMENTS, Records),
    Tests = [[test(Test, Records) || Test <- Alternative] || Alternative <- Guard],
    Remaining = Left - size_of([Expanded | Tests]) + size_of([Pattern | Guard]),
    Remaining >= 0 orelse fail(Location, too_large, "the records of this file are too large"),
    {Guarded#{pattern := Expanded, guard := Tests}, Remaining}.

%% Patterns. The second argument says how many elements may still be added.

pattern({record, Anno, Name, Written}, Left, Records) ->
    Fields = fields(Name, location(Anno), Records),
    {Given, Remaining} = lists:mapfoldl(fun({record_field, _, Field, Pattern}, Before) ->
        {Expanded, Less} = pattern(Pattern, Before, Records),
        {{check_known(Field, Name, Fields), Expanded}, Less}
    end, Left, Written),
    lists:foldl(fun check_once/2, #{}, [{Field, location(At)} || {record_field, _, {_, At, Field}, _} <- Written]),
    Default = proplists:get_value('_', Given, {var, Anno, '_'}),
    Others = [Field || Field <- Fields, not lists:keymember(Field, 1, Given)],
    After = Remaining - length(Others) * size_of(Default),
    After >= 0 orelse fail(location(Anno), too_large, "this record is too large"),
    {{tuple, Anno, [{atom, Anno, Name} | [proplists:get_value(Field, Given, Default) || Field <- Fields]]}, After};
pattern({record_index, _, _, _} = Index, Left, Records) ->
    {expr(Index, Records), Left};
pattern({map_field_exact, Anno, Key, Value}, Left, Records) ->
    {Expanded, Remaining} = pattern(Value, Left, Records),
    {{map_field_exact, Anno, test(Key, Records), Expanded}, Remaining};
pattern({bin_element, Anno, Value, Size, Type}, Left, Records) ->
    {Expanded, Remaining} = pattern(Value, Left, Records),
    {{bin_element, Anno, Expanded, test(Size, Records), Type}, Remaining};
pattern(Expr, Left, Records) when is_tuple(Expr) ->
    {Parts, Remaining} = pattern(tuple_to_list(Expr), Left, Records),
    {list_to_tuple(Parts), Remaining};
pattern([Head | Tail], Left, Records) ->
    {First, More} = pattern(Head, Left, Records),
    {Others, Remaining} = pattern(Tail, More, Records),
    {[First | Others], Remaining};
pattern(Part, Left, _) ->
    {Part, Left}.

%% Checks a field if all fields are known.
check_known({var, _, '_'}, _, _) -> '_';
check_known({_, Anno, Field}, Name, Fields) -> index(Field, location(Anno), Name, Fields), Field.

size_of(Expr) when is_tuple(Expr) -> 1 + size_of(tuple_to_list(Expr));
size_of([Head | Tail]) -> size_of(Head) + size_of(Tail);
size_of(_) -> 0.

%% Guards. If a term is not such a record, access to its field makes Erlang treat the test as failed, or the operand of the
%% `andalso` or `orelse` around it. So the expanded test or operand begins with the test for the record.

test(Expr, Records) ->
    Expanded = expr(Expr, Records),
    lists:foldr(fun(Check, Test) -> {op, element(2, Test), 'andalso', Check, Test} end, Expanded,
                lists:uniq(checks(Expr, Records))).

expr({record_field, Anno, Value, Name, {atom, At, Field}}, Records) ->
    Index = index(Field, location(At), Name, fields(Name, location(Anno), Records)),
    {call, Anno, {atom, Anno, element}, [{integer, Anno, Index}, expr(Value, Records)]};
expr({record_index, Anno, Name, {atom, At, Field}}, Records) ->
    {integer, Anno, index(Field, location(At), Name, fields(Name, location(Anno), Records))};
expr({call, Anno, Function, [Value, {atom, At, Name}]} = Call, Records) ->
    case is_record_test(Function) of
        true -> is_record(Anno, expr(Value, Records), Name, length(fields(Name, location(At), Records)));
        false -> parts(Call, Records)
    end;
expr({op, Anno, Operator, Left, Right}, Records) when Operator =:= 'andalso'; Operator =:= 'orelse' ->
    {op, Anno, Operator, test(Left, Records), test(Right, Records)};
expr(Expr, Records) ->
    parts(Expr, Records).

parts(Expr, Records) when is_tuple(Expr) -> list_to_tuple(parts(tuple_to_list(Expr), Records));
parts([Head | Tail], Records) -> [expr(Head, Records) | parts(Tail, Records)];
parts(Part, _) -> Part.

is_record_test({atom, _, is_record}) -> true;
is_record_test({remote, _, {atom, _, erlang}, {atom, _, is_record}}) -> true;
is_record_test(_) -> false.

is_record(Anno, Value, Name, Count) ->
    {call, Anno, {atom, Anno, is_record}, [Value, {atom, Anno, Name}, {integer, Anno, Count + 1}]}.

%% The records of an operand, the innermost first, except those that an inner operand checks itself.
checks({op, _, Operator, _, _}, _) when Operator =:= 'andalso'; Operator =:= 'orelse' ->
    [];
checks({record_field, Anno, Value, Name, _}, Records) ->
    checks(Value, Records)
        ++ [is_record(Anno, expr(Value, Records), Name, length(fields(Name, location(Anno), Records)))];
checks(Expr, Records) when is_tuple(Expr) ->
    checks(tuple_to_list(Expr), Records);
checks([Head | Tail], Records) ->
    checks(Head, Records) ++ checks(Tail, Records);
checks(_, _) ->
    [].

%% The declaration of a record.

fields(Name, Location, #{fields := Fields, left_out := LeftOut}) ->
    case Fields of
        #{Name := {unknown, Why}} ->
            fail(Location, unknown_record, ["the record ", quote(Name), " is not known: ", Why]);
        #{Name := Names} ->
            Names;
        _ ->
            fail(Location, unknown_record, ["the record ", quote(Name), " is not known"], case LeftOut of
                [] -> "`-record(name, {field}).` or `-include(\"file.hrl\").` at the top of the file declares it";
                _ -> ["not included: ", lists:join(", ", lists:sublist(LeftOut, 10))]
            end)
    end.

%% The position of the field in the tuple.
index(Field, Location, Name, Fields) -> index(Field, Fields, 2, Location, Name).

index(Field, [Field | _], Index, _, _) -> Index;
index(Field, [_ | Fields], Index, Location, Name) -> index(Field, Fields, Index + 1, Location, Name);
index(Field, [], _, Location, Name) ->
    fail(Location, unknown_field, ["the record ", quote(Name), " has no field ", quote(Field)]).

name(File) -> witness_spec_diagnostic:quote(filename:flatten(File)).

quote(Name) when is_atom(Name) -> witness_spec_diagnostic:quote(atom_to_list(Name));
quote(Text) -> witness_spec_diagnostic:quote(Text).

location(Anno) -> {erl_anno:line(Anno), erl_anno:column(Anno)}.

-spec fail(location(), atom(), unicode:chardata()) -> no_return().
fail(Location, Code, Text) -> throw(witness_spec_diagnostic:error(Location, Code, Text)).

-spec fail(location(), atom(), unicode:chardata(), unicode:chardata()) -> no_return().
fail(Location, Code, Text, Hint) -> throw(witness_spec_diagnostic:error(Location, Code, Text, Hint)).
