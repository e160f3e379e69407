-module(witness_log_calls_tests).
-moduledoc """
Logs with calls and returns up to the verdicts: the verdicts do not depend on the format, and on how the log is read; and no property
about calls is judged where the log does not say that it has all of them.
""".
-behaviour(witness_monitor).
-include_lib("eunit/include/eunit.hrl").
-export([alphabet/1, init/3, handle_event/2, handle_end/2]).

-define(RUN_TIMEOUT, 60_000).
-define(HEAD, {functions, [{ets, insert, 2}]}).

every_way_to_read_a_log_finds_the_same_calls_test_() ->
    {timeout, 120, fun() ->
        with_files(fun(Dir, Specs) ->
            Items = items(),
            Log = lists:enumerate([{receives, delivered}, ?HEAD | Items]),
            Expected = expected(Log),
            ?assert(length(Expected) > 10),
            [begin
                 Checked = fun(Lines, Options) ->
                     checked(Dir, Lines, Options#{format => Format, instrument => Mode, specs => Specs})
                 end,
                 ?assertEqual(Expected, Checked(Log, #{})),
                 ?assertEqual(Expected, Checked(Log, #{compressed => true})),
                 ?assertEqual(Expected, Checked(Log, #{block => 100})),
                 ?assertEqual(Expected, Checked(Log, #{skew => 0})),
                 ?assertEqual(expected(Log, fun(Line) -> Line + 1 end),
                              Checked(lists:keyreplace(3, 1, Log, {3, {[bad(Format), element(2, lists:nth(3, Log))]}}),
                                      #{skip_malformed => true})),
                 %% The line that has the time is another one.
                 ?assertEqual([{Name, P, Slice} || {Name, P, Slice, _} <- Expected],
                              [{Name, P, Slice} || {Name, P, Slice, _} <- Checked(shuffled(Log), #{sort => 20})]),
                 ?assertEqual(Expected, in_parts(Dir, Log, Checked)),
                 ?assertEqual(Expected, followed(Dir, Log, Format, Mode, Specs))
             end || Format <- [text, json], Mode <- [outline, central]]
        end)
    end}.

logs_that_do_not_have_all_calls_are_refused_test_() ->
    {timeout, 60, fun() ->
        with_files(fun(Dir, Specs) ->
            Items = items(),
            [begin
                 Log = lists:enumerate(Head ++ Items),
                 Told = refused(Dir, Log, #{format => Format, instrument => Mode, specs => Specs}),
                 [?assertNotEqual(nomatch, string:find(Told, Part), {Part, Told}) || Part <- Parts]
             end || Format <- [text, json], Mode <- [outline, central],
                    {Head, Parts} <- [
                        {[], [":1: ", "is about calls of ets:insert/2, and the log does not say that it has all its calls and returns",
                              "begin the log with the line functions([{ets,insert,2}]), or {\"event\":"]},
                        {[{receives, taken}], [":2: ", "does not say that it has all its calls and returns"]},
                        {[{functions, [{ets, insert, 1}]}], [":1: ", "does not name this function"]},
                        %% A second log in the file begins with a head of its own.
                        {[?HEAD, {init, p(0), undefined, {m, main, []}, 1}, {receives, delivered}],
                         [":4: ", "does not say that it has all its calls and returns"]}]]
        end)
    end}.

%% In a sorted log, the heads of three logs stand together, and the events of all wait behind them.
sorted_logs_do_not_lend_each_other_their_heads_test_() ->
    {timeout, 60, fun() ->
        with_files(fun(Dir, Specs) ->
            Log = lists:enumerate([?HEAD | items()] ++ [{receives, delivered}, {init, p(11), undefined, {m, w, [11]}, 2_000_000}]
                                  ++ [?HEAD, {init, p(12), undefined, {m, w, [12]}, 3_000_000}]),
            [begin
                 Told = refused(Dir, Log, #{format => Format, instrument => Mode, specs => Specs, sort => 1_000}),
                 ?assertNotEqual(nomatch, string:find(Told, "does not say that it has all its calls and returns"), Told)
             end || Format <- [text, json], Mode <- [outline, central]]
        end)
    end}.

%% A property that names no function needs no such line, and reads no calls.
other_properties_are_judged_in_any_log_test_() ->
    {timeout, 60, fun() ->
        with_files(fun(Dir, _) ->
            Spec = filename:join(Dir, "any.hml"),
            ok = file:write_file(Spec, "ends: with m:w(_) check <_ <- _, _> min X.(<_ ** normal> tt or <_ : _ ! hello> X)."),
            [begin
                 Told = verdicts(Dir, lists:enumerate(Head ++ items()), #{format => Format, specs => [Spec]}),
                 ?assertEqual([yes], lists:usort([Verdict || #{verdict := Verdict} <- Told])),
                 ?assertEqual(10, length(Told))
             end || Format <- [text, json], Head <- [[], [?HEAD]]]
        end)
    end}.

%% A monitor that was written by hand is given the calls that its alphabet names, and none without an alphabet.
monitors_are_given_the_calls_that_they_name_test_() ->
    {timeout, 60, fun() ->
        with_files(fun(Dir, _) ->
            Items = items(),
            Named = [E || E <- Items, element(1, E) =:= call, element(2, E) =:= p(1), {ets, insert, _} <- [element(3, E)]],
            Messages = [E || E <- Items, element(2, E) =:= p(1), element(1, E) =/= call, element(1, E) =/= return],
            Options = fun(Arg) -> #{format => text, specs => [], monitors => [{{m, w, 1}, {?MODULE, Arg}}]} end,
            Log = lists:enumerate([?HEAD | Items]),
            ?assertMatch([_ | _], Named),
            Inserts = Options([{call, {ets, insert, 2}}]),
            ?assertEqual([Named], [Info || #{process := P, info := Info} <- verdicts(Dir, Log, Inserts), P =:= p(1)]),
            ?assertEqual([Messages], [Info || #{process := P, info := Info} <- verdicts(Dir, Log, Options(all)), P =:= p(1)]),
            Told = refused(Dir, lists:enumerate(Items), Inserts),
            ?assertNotEqual(nomatch, string:find(Told, "the monitor witness_log_calls_tests is about calls of ets:insert/2"))
        end)
    end}.

%% --- a monitor that says what it has read ----------------------------------------

alphabet(Alphabet) -> Alphabet.
init(_, _, _) -> {ok, []}.
handle_event(E, Read) -> {ok, [E | Read]}.
handle_end(_, Read) -> {yes, lists:reverse(Read)}.

%% --- the log ---------------------------------------------------------------------

%% Workers that insert into a table, one millisecond apart.
items() ->
    Workers = lists:seq(1, 10),
    Begin = [{init, p(0), undefined, {m, main, []}}]
        ++ lists:append([[{fork, p(0), p(N), {m, w, [N]}}, {init, p(N), p(0), {m, w, [N]}}] || N <- Workers]),
    Calls = lists:append([call(p(rand:uniform(10))) || _ <- lists:seq(1, 150)]),
    End = [{exit, p(N), normal} || N <- [0 | Workers]],
    [erlang:append_element(E, Time * 1_000_000) || {Time, E} <- lists:enumerate(Begin ++ Calls ++ End)].

call(P) ->
    case rand:uniform(4) of
        1 -> [{send, P, p(0), hello}];
        2 -> [{call, P, {ets, lookup, [table, rand:uniform(40)]}}, {return, P, {ets, lookup, 2}, [{k, "v"}]}];
        _ -> [{call, P, {ets, insert, [table, {rand:uniform(60), P}]}}, {return, P, {ets, insert, 2}, rand:uniform(4) > 1}]
    end.

p(N) -> list_to_pid("<0." ++ integer_to_list(10 + N) ++ ".0>").

%% Each second call with the same key, and the first return of a worker that is `false`.
expected(Log) -> expected(Log, fun(Line) -> Line end).

expected(Log, Shift) ->
    Inserts = by_key([{K, Line} || {Line, {call, _, {ets, insert, [_, {K, _}]}, _}} <- Log]),
    Again = [{~"again", p(0), [{~"K", K}], Shift(Line)}
             || K := Lines <- Inserts, {N, Line} <- lists:enumerate(Lines), N rem 2 =:= 0],
    False = by_key([{P, Line} || {Line, {return, P, {ets, insert, 2}, false, _}} <- Log]),
    lists:sort(Again ++ [{~"works", P, undefined, Shift(Line)} || P := [Line | _] <- False]).

by_key(Pairs) -> maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Value}) -> Value end, Pairs).

bad(text) -> {bad, "call(<0.11.0>,{ets,insert,2})\n"};
bad(json) -> {bad, "{\"event\":\"return\",\"process\":\"p\",\"signature\":\"{ets,insert,2}\"}\n"}.

shuffled([Receives, Functions | Log]) ->
    Late = [{witness_event:ts(E) + rand:uniform(20_000_000), Line} || {_, E} = Line <- Log],
    [Receives, Functions | [Line || {_, Line} <- lists:keysort(1, Late)]].

%% --- runs ------------------------------------------------------------------------

with_files(Fun) ->
    {ok, _} = application:ensure_all_started(witness),
    Dir = string:trim(os:cmd("mktemp -d")),
    Specs = [filename:join(Dir, Name) || Name <- ["works.hml", "again.hml"]],
    [ok = file:write_file(Spec, Text) || {Spec, Text} <- lists:zip(Specs, [
        "works: with m:w(_) over _ returns ets:insert/2 -> false check [_ returns ets:insert/2 -> false] ff.",
        """
        again: with m:main() group per K over _ calls ets:insert(_, {K, _})
        check [_ calls ets:insert(_, _)] [_ calls ets:insert(_, _)] ff.
        """])],
    try Fun(Dir, Specs) after file:del_dir_r(Dir) end.

text(Log, Format) -> iolist_to_binary([line(E, Format) || {_, E} <- Log]).

line({[{bad, Line}, E]}, Format) -> [Line, line(E, Format)];
line(E, Format) -> witness_log:line(E, Format).

checked(Dir, Log, Options) -> violations(verdicts(Dir, Log, Options)).

verdicts(Dir, Log, Options) ->
    {#{refused := undefined}, Verdicts} = run(Dir, Log, Options),
    Verdicts.

refused(Dir, Log, Options) ->
    {#{refused := Told}, []} = run(Dir, Log, Options),
    unicode:characters_to_list(Told).

run(Dir, Log, #{format := Format} = Options) ->
    File = filename:join(Dir, maps:get(file, Options, "whole.log")),
    Text = text(Log, Format),
    ok = case Options of
        #{compressed := true} -> file:write_file(File, zlib:gzip(Text));
        #{file := _} -> file:write_file(File, Text, [append]);
        #{} -> file:write_file(File, Text)
    end,
    {ok, Run} = witness:start((maps:without([compressed, file], Options))#{system => {log, {file, File}}, log => false}),
    {ok, Summary} = witness:await(Run, ?RUN_TIMEOUT),
    Verdicts = [Verdict || #{reason := Reason} = Verdict <- witness:verdicts(Run), Reason =/= stopped],
    {ok, _} = witness:stop(Run),
    {Summary, Verdicts}.

violations(Verdicts) ->
    lists:sort([{Name, case Name of ~"again" -> p(0); _ -> P end, Slice, line(Log)}
                || #{name := Name, verdict := no, process := P, slice := Slice, log := Log} <- Verdicts]).

line(Log) -> binary_to_integer(lists:last(binary:split(Log, ~":", [global]))).

%% The log grows, and a second run goes on where the first has ended, perhaps in the head.
in_parts(Dir, Log, Checked) ->
    File = io_lib:format("parts-~b.log", [erlang:unique_integer([positive])]),
    Position = filename:join(Dir, [File, ".position"]),
    {Begin, End} = lists:split(case rand:uniform(4) of 1 -> 1; _ -> rand:uniform(length(Log) - 1) end, Log),
    First = Checked(Begin, #{file => File, save => Position}),
    lists:sort(First ++ Checked(End, #{file => File, from => Position})).

%% The log grows while it is read, and is rotated once.
followed(Dir, Log, Format, Mode, Specs) ->
    File = filename:join(Dir, io_lib:format("followed-~b.log", [erlang:unique_integer([positive])])),
    {Begin, End} = lists:split(rand:uniform(length(Log) - 1), Log),
    {Middle, Last} = lists:split(length(End) div 2, End),
    ok = file:write_file(File, text(Begin, Format)),
    {ok, Run} = witness:start(#{system => {log, {file, File}}, format => Format, instrument => Mode, specs => Specs, follow => true,
                                log => false}),
    ok = file:write_file(File, text(Middle, Format), [append]),
    ok = file:rename(File, File ++ ".1"),
    ok = file:write_file(File, text(Last, Format)),
    Expected = expected(Log),
    witness_await:until(fun() -> length(violations(witness:verdicts(Run))) =:= length(Expected) end),
    Found = violations(witness:verdicts(Run)),
    {ok, _} = witness:stop(Run),
    %% The lines of the second file count from 1.
    Lines = length(Begin) + length(Middle),
    ?assertEqual(lists:sort([{Name, P, Slice, case Line > Lines of true -> Line - Lines; false -> Line end}
                             || {Name, P, Slice, Line} <- Expected]), Found),
    Expected.
