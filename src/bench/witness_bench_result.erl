-module(witness_bench_result).
-moduledoc """
The saved result of a benchmark: a row of `results.csv`; `docs/benchmarks.md` describes its columns.
""".

-export([columns/0, row/4, numbers/2, groups/2, cell/1, format/1, header/0, parse/1, quoted/1]).

-export_type([row/0, status/0]).

-doc "`unsound`: a trace was wrong or had unreported gaps; `failed`: nothing could be measured.".
-type status() :: ok | unsound | failed.

-doc "The columns by name. Unknown numbers are missing.".
-type row() :: #{id := binary(), status := status(), atom() => binary() | number() | status()}.

%% Texts, and then numbers, with their keys in the result of a benchmark.
-define(TEXTS, [id, begun, status, reason, mode, analysis, shape, variant, sound, trouble]).
-define(PLANNED, [n, w, t, seed, repetition, attempt, elapsed_ms, load_ms]).

measured() ->
    [{response_mean_ns, [response, mean_ns]}, {response_deviation_ns, [response, deviation_ns]},
     {response_p50_ns, [response, p50]}, {response_p95_ns, [response, p95]}, {response_p99_ns, [response, p99]},
     {response_p999_ns, [response, p999]}, {response_max_ns, [response, max]}, {response_count, [response, count]},
     {lag_mean_ns, [lag, mean_ns]}, {lag_p99_ns, [lag, p99]}, {lag_max_ns, [lag, max]}, {duration_ms, [duration_ms]},
     {done_ms, [done_ms]}, {cpu_ms, [cpu_ms]}, {members, [members]}, {messages, [messages]}, {tracers, [tracers]},
     {system_memory_mean, [windows, system, memory_mean]}, {system_memory_peak, [windows, system, memory_peak]},
     {system_utilisation, [windows, system, utilisation]}, {system_run_queue, [windows, system, run_queue]},
     {system_members_peak, [windows, system, members_peak]}, {system_tracers_peak, [windows, system, tracers_peak]},
     {system_messages_per_second, [windows, system, messages_per_second]},
     {monitors_memory_mean, [windows, monitors, memory_mean]},
     {monitors_memory_peak, [windows, monitors, memory_peak]},
     {monitors_utilisation, [windows, monitors, utilisation]}, {monitors_run_queue, [windows, monitors, run_queue]},
     {monitors_members_peak, [windows, monitors, members_peak]},
     {monitors_tracers_peak, [windows, monitors, tracers_peak]},
     {monitors_messages_per_second, [windows, monitors, messages_per_second]}, {events, [events]},
     {analysed, [analysed]}, {gaps, [gaps]}, {yes, [verdicts, yes]}, {no, [verdicts, no]},
     {inconclusive, [verdicts, inconclusive]}, {idle_mean_ns, [idle, mean_ns]},
     {idle_deviation_ns, [idle, deviation_ns]}, {idle_count, [idle, count]}].

-doc "The names of the columns, in their order.".
-spec columns() -> [atom()].
columns() -> ?TEXTS ++ ?PLANNED ++ [Column || {Column, _} <- measured()].

-doc "The row of a benchmark with its start time (UTC, RFC 3339) and its result.".
-spec row(witness_bench_experiment:benchmark(), Begun :: binary(), Attempt :: pos_integer(),
          {ok, map()} | {unsound | failed, Reason :: unicode:chardata()}) -> row().
row(#{id := Id, mode_label := Mode, analysis_label := Analysis, shape := Shape, variant := Variant, n := N, w := W,
      t := T, seed := Seed, repetition := Repetition}, Begun, Attempt, Result) ->
    Planned = #{id => Id, begun => Begun, mode => Mode, analysis => Analysis, shape => Shape, variant => Variant, n => N,
                w => W, t => T, seed => Seed, repetition => Repetition, attempt => Attempt},
    maps:merge(Planned, result(Result)).


result({ok, Result}) ->
    Numbers = #{Column => Value || {Column, Path} <- measured(), Value <- [within(Path, Result)], is_number(Value)},
    Texts = #{Key => Text || Key <- [sound, trouble], #{Key := Value} <- [Result],
                             <<_, _/binary>> = Text <- [text(Value)]},
    (maps:merge(Numbers, Texts))#{status => ok};
result({Status, Reason}) ->
    #{status => Status, reason => unicode:characters_to_binary(Reason)}.

text(Flag) when is_boolean(Flag) -> atom_to_binary(Flag);
text(Texts) -> unicode:characters_to_binary(lists:join(~"; ", Texts)).

within([Key | Path], #{} = Result) -> within(Path, maps:get(Key, Result, undefined));
within([], Value) -> Value;
within(_, _) -> undefined.

-doc "The numbers in a column, of the rows that have one.".
-spec numbers(atom(), [row()]) -> [number()].
numbers(Column, Rows) -> [Value || #{Column := Value} <- Rows, is_number(Value)].

-doc "Groups of rows with the same key, in the order of their first rows.".
-spec groups(fun((row()) -> term()), [row()]) -> [[row(), ...]].
groups(Key, Rows) ->
    Groups = maps:groups_from_list(Key, Rows),
    [maps:get(K, Groups) || K <- lists:uniq(lists:map(Key, Rows))].

-doc "The key that all repetitions share.".
-spec cell(row()) -> term().
cell(#{mode := Mode, analysis := Analysis, shape := Shape, variant := Variant, n := N}) ->
    {Variant, Shape, N, Mode, Analysis}.

-doc "The first line of the file.".
-spec header() -> iolist().
header() -> [lists:join($,, [atom_to_binary(Column) || Column <- columns()]), $\n].

-doc "A row as a line.".
-spec format(row()) -> iolist().
format(Row) -> [lists:join($,, [field(maps:get(Column, Row, undefined)) || Column <- columns()]), $\n].

field(undefined) -> ~"";
field(Value) when is_integer(Value) -> integer_to_binary(Value);
field(Value) when is_float(Value) -> float_to_binary(Value, [short]);
field(Value) when is_atom(Value) -> atom_to_binary(Value);
field(Text) -> quoted(Text).

-doc "A text as a field of CSV (RFC 4180), on one line.".
-spec quoted(binary()) -> iodata().
quoted(Text) ->
    %% Higher bytes are parts of characters.
    Line = re:replace(Text, ~B"[\x00-\x1F\x7F]+", ~" ", [global, {return, binary}]),
    case binary:match(Line, [~",", ~"\""]) of
        nomatch -> Line;
        _ -> [$", binary:replace(Line, ~"\"", ~"\"\"", [global]), $"]
    end.

-doc "The rows of a file. An error names the line.".
-spec parse(binary()) -> {ok, [row()]} | {error, unicode:chardata()}.
parse(Text) ->
    Header = string:trim(iolist_to_binary(header()), trailing),
    case binary:split(Text, ~"\n", [global, trim]) of
        [Header | Lines] -> rows(lists:enumerate(2, Lines), []);
        _ -> {error, ~"line 1: these are not the columns of this version of Witness"}
    end.

rows([], Rows) -> {ok, lists:reverse(Rows)};
rows([{Number, Line} | Lines], Rows) ->
    Columns = columns(),
    case fields(Line) of
        Fields when length(Fields) =:= length(Columns) ->
            try lists:append(lists:zipwith(fun value/2, Columns, Fields)) of
                Pairs -> rows(Lines, [maps:from_list(Pairs) | Rows])
            catch
                throw:{wrong, Column} ->
                    {error, io_lib:format("line ~b: the value of ~ts is not one that Witness writes", [Number, Column])}
            end;
        Fields -> {error, io_lib:format("line ~b: ~b fields instead of ~b", [Number, length(Fields), length(Columns)])}
    end.

fields(<<$", Rest/binary>>) -> quoted_field(Rest, <<>>);
fields(Line) ->
    case binary:split(Line, ~",") of
        [Field, Rest] -> [Field | fields(Rest)];
        [Field] -> [Field]
    end.

quoted_field(<<$", $", Rest/binary>>, Field) -> quoted_field(Rest, <<Field/binary, $">>);
quoted_field(<<$", $,, Rest/binary>>, Field) -> [Field | fields(Rest)];
quoted_field(<<$">>, Field) -> [Field];
quoted_field(<<Char, Rest/binary>>, Field) -> quoted_field(Rest, <<Field/binary, Char>>);
quoted_field(<<>>, Field) -> [Field].

value(status, Status) ->
    case [S || S <- [ok, unsound, failed], atom_to_binary(S) =:= Status] of
        [S] -> [{status, S}];
        [] -> throw({wrong, status})
    end;
value(Column, Field) ->
    case lists:member(Column, ?TEXTS) of
        _ when Field =:= ~"", Column =/= variant -> [];
        true -> [{Column, Field}];
        false -> [{Column, number(Column, Field)}]
    end.

number(Column, Field) ->
    try binary_to_integer(Field)
    catch
        error:badarg ->
            try binary_to_float(Field)
            catch error:badarg -> throw({wrong, Column})
            end
    end.
