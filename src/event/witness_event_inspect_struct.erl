-module(witness_event_inspect_struct).
-moduledoc """
Structs of Elixir that `inspect/2` shows in a form of their own: ranges, sets, dates and times, regular expressions, and those of
which it leaves out some fields. Their fields decide: a struct with other fields, or other values in them, has the default form.
""".

-export([work/2, has_own_form/1, is_printable/2]).

-define(ISO, 'Elixir.Calendar.ISO').

-doc "The items of such a struct, or `none`.".
-spec work(#{'__struct__' := module(), _ => _}, Left :: non_neg_integer()) ->
    witness_event_bounded:work(witness_event_inspect:item()) | none.
work(#{'__struct__' := Module} = Struct, Left) ->
    case fields(Module) of
        [_ | _] = Fields -> ordered(Module, Fields, Struct);
        [] -> form(Module, maps:remove('__struct__', Struct), Left)
    end.

-doc "Whether a struct of this module, with the fields that Elixir gives it, has a form of its own here.".
-spec has_own_form(module()) -> boolean().
has_own_form(Module) ->
    fields(Module) =/= []
        orelse lists:member(Module, ['Elixir.Range', 'Elixir.MapSet', 'Elixir.Regex', 'Elixir.Date', 'Elixir.Time',
                                     'Elixir.NaiveDateTime', 'Elixir.DateTime', 'Elixir.Date.Range']).

%% The fields in their order, some with the value that is not shown.
fields('Elixir.URI') -> [scheme, {authority, nil}, userinfo, host, port, path, query, fragment];
fields('Elixir.Version') -> [major, minor, patch, {pre, []}, {build, nil}];
fields('Elixir.Duration') -> [{Unit, 0} || Unit <- [year, month, week, day, hour, minute, second]] ++ [{microsecond, {0, 0}}];
fields(_) -> [].

ordered(Module, Fields, Struct) ->
    Names = [case Field of {Name, _} -> Name; Name -> Name end || Field <- Fields],
    case map_size(Struct) =:= 1 + length(Names) andalso lists:all(fun(Name) -> is_map_key(Name, Struct) end, Names) of
        true ->
            "Elixir." ++ Name = atom_to_list(Module),
            Values = [{Field, maps:get(Field, Struct)} || Field <- Names],
            Shown = [Value || Value <- Values, not lists:member(Value, Fields)],
            [{text, [$% | Name]}, {text, ~"{"}, {fields, Shown, ~"", ~"}"}];
        false -> none
    end.

form('Elixir.Range', #{first := First, last := Last, step := Step} = Fields, _)
  when map_size(Fields) =:= 3, is_integer(First), is_integer(Last), is_integer(Step) ->
    [{term, First}, {text, ~".."}, {term, Last}] ++ [Part || Step =/= 1 orelse Last < First, Part <- [{text, ~"//"}, {term, Step}]];
form('Elixir.MapSet', #{map := Map} = Fields, Left) when map_size(Fields) =:= 1, is_map(Map) ->
    [{text, ~"MapSet.new("}, {list, first_keys(maps:next(witness_event_bounded:iterator(Map)), Left)}, {text, ~")"}];
%% Before Elixir 1.19 it has its version, too.
form('Elixir.Regex', #{source := Source, opts := Options, re_pattern := _} = Fields, Left)
  when (map_size(Fields) =:= 3 orelse map_size(Fields) =:= 4 andalso is_map_key(re_version, Fields)), is_binary(Source),
       length(Options) =< 16 ->
    case is_utf8(Source, Left) andalso modifiers(Options, "") of
        false -> none;
        Modifiers -> [{text, "~r/" ++ regex(witness_event_bounded:prefix(Source, Left)) ++ "/" ++ Modifiers}]
    end;
form('Elixir.Date', #{calendar := ?ISO} = Fields, _) when map_size(Fields) =:= 4 ->
    sigil("~D[", [date(Fields)], "]");
form('Elixir.Time', #{calendar := ?ISO} = Fields, _) when map_size(Fields) =:= 5 ->
    sigil("~T[", [time(Fields)], "]");
form('Elixir.NaiveDateTime', #{calendar := ?ISO} = Fields, _) when map_size(Fields) =:= 8 ->
    sigil("~N[", [date(Fields), " ", time(Fields)], "]");
form('Elixir.DateTime', #{calendar := ?ISO, time_zone := ~"Etc/UTC", utc_offset := 0, std_offset := 0} = Fields, _)
  when map_size(Fields) =:= 12 ->
    sigil("~U[", [date(Fields), " ", time(Fields)], "Z]");
form('Elixir.DateTime', #{calendar := ?ISO, time_zone := Zone, zone_abbr := Short, utc_offset := Utc, std_offset := Std} = Fields,
     Left)
  when map_size(Fields) =:= 12, is_binary(Zone), is_binary(Short), is_integer(Utc + Std), abs(Utc + Std) < 360_000 ->
    case is_printable(Zone, Left) andalso is_printable(Short, Left) of
        true ->
            Names = zone(Short, Left) ++ zone(Zone, Left),
            sigil("#DateTime<", [date(Fields), " ", time(Fields), offset(Utc + Std)], Names ++ ">");
        false -> none
    end;
form('Elixir.Date.Range', #{first := First, last := Last, step := Step} = Fields, _) when map_size(Fields) =:= 5 ->
    [{text, ~"Date.range("}, {term, First}, {text, ~", "}, {term, Last}]
        ++ [Part || Step =/= 1, Part <- [{text, ~", "}, {term, Step}]] ++ [{text, ~")"}];
form(_, _, _) -> none.

%% All keys, or so many that not all of them can be written.
first_keys({Key, _, Iterator}, Left) -> [Key | case Left of 0 -> []; _ -> first_keys(maps:next(Iterator), Left - 1) end];
first_keys(none, _) -> [].

sigil(Open, Parts, Close) ->
    case lists:member(none, Parts) of
        true -> none;
        false -> [{text, lists:flatten([Open, Parts, Close])}]
    end.

date(#{year := Y, month := M, day := D})
  when is_integer(Y), abs(Y) =< 9999, is_integer(M), M > 0, M < 13, is_integer(D), D > 0, D < 32 ->
    io_lib:format("~s~4..0b-~2..0b-~2..0b", [[$- || Y < 0], abs(Y), M, D]);
date(_) -> none.

time(#{hour := H, minute := M, second := S, microsecond := {Micro, Precision}})
  when is_integer(H), H >= 0, H < 24, is_integer(M), M >= 0, M < 60, is_integer(S), S >= 0, S < 60, is_integer(Micro), Micro >= 0,
       Micro < 1_000_000, is_integer(Precision), Precision >= 0, Precision =< 6 ->
    Digits = lists:sublist(lists:flatten(io_lib:format("~6..0b", [Micro])), Precision),
    io_lib:format("~2..0b:~2..0b:~2..0b~s", [H, M, S, [[$. | Digits] || Digits =/= []]]);
time(_) -> none.

offset(Seconds) ->
    Sign = case Seconds < 0 of true -> $-; false -> $+ end,
    io_lib:format("~c~2..0b:~2..0b", [Sign, abs(Seconds) div 3600, abs(Seconds) rem 3600 div 60]).

zone(Name, Left) ->
    [$\s | lists:flatmap(fun witness_event_inspect_name:escape_character/1, witness_event_bounded:prefix(Name, Left))].

modifiers([dotall, {newline, anycrlf} | Options], Letters) -> modifiers(Options, [$s | Letters]);
modifiers([unicode, ucp | Options], Letters) -> modifiers(Options, [$u | Letters]);
modifiers([Option | Options], Letters) ->
    case Option of
        caseless -> modifiers(Options, [$i | Letters]);
        extended -> modifiers(Options, [$x | Letters]);
        firstline -> modifiers(Options, [$f | Letters]);
        ungreedy -> modifiers(Options, [$U | Letters]);
        multiline -> modifiers(Options, [$m | Letters]);
        export -> modifiers(Options, [$E | Letters]);
        _ -> false
    end;
modifiers([], Letters) -> Letters.

%% In a regular expression a backslash has its own meaning.
regex("\\\\" ++ Rest) -> "\\\\" ++ regex(Rest);
regex("\\/" ++ Rest) -> "\\/" ++ regex(Rest);
regex("/" ++ Rest) -> "\\/" ++ regex(Rest);
regex("\\#{" ++ Rest) -> "\\#{" ++ regex(Rest);
regex("#{" ++ Rest) -> "\\#{" ++ regex(Rest);
regex([C | Rest]) when C =:= 7; C >= $\t, C =< $\r -> witness_event_inspect_name:escape([C], $/) ++ regex(Rest);
regex([C | Rest]) when C >= 16#80, C < 16#A0 -> "\\x" ++ integer_to_list(C, 16) ++ regex(Rest);
regex([C | Rest]) -> witness_event_inspect_name:escape_character(C) ++ regex(Rest);
regex("") -> "".

-doc "Whether the characters that can still be written are text in UTF-8 that Elixir shows as a string.".
-spec is_printable(binary(), Left :: non_neg_integer()) -> boolean().
is_printable(<<C/utf8, Rest/binary>>, Left)
  when C >= $\s, C =< $\d; C >= 7, C =< $\r; C =:= $\e; C >= 16#A0, C < 16#FFFE; C > 16#FFFF ->
    Left =:= 0 orelse is_printable(Rest, Left - 1);
is_printable(Rest, _) -> Rest =:= <<>>.

is_utf8(<<_/utf8, Rest/binary>>, Left) -> Left =:= 0 orelse is_utf8(Rest, Left - 1);
is_utf8(Rest, _) -> Rest =:= <<>>.
