-module(witness_spec_pobserve_tests).
-moduledoc """
The properties that are compared with PObserve (`m:witness_spec_pobserve`), on logs in its format that are written here. Each log
is good, or its last line is the violation.
""".
-include_lib("eunit/include/eunit.hrl").

each_log_has_its_violations_test_() ->
    {setup, fun() -> ok end, fun(_) -> application:stop(witness) end,
     [{lists:concat([Property, ": ", Name]), {timeout, 60, fun() -> as_expected(Kind, Property, Lines) end}}
      || {Property, Logs} <- properties(), {Name, Kind, Lines} <- Logs]}.

as_expected(Kind, Property, Lines) ->
    Events = events(Property, Lines),
    {{Ms, _}, Key, _} = lists:last(Events),
    Expected = case Kind of good -> []; bad -> [{Ms, Key}] end,
    ?assertEqual(Expected, witness_spec_pobserve:violations(Property, Events)),
    %% Lines in any order are sorted by their times.
    ?assertEqual(Expected, witness_spec_pobserve:violations(Property, lists:reverse(Events))).

each_specification_has_logs_test() ->
    Files = filelib:wildcard(filename:join(filename:dirname(witness_spec_pobserve:file(bank)), "*.hml")),
    ?assertEqual(lists:sort(Files), lists:sort([witness_spec_pobserve:file(Property) || {Property, _} <- properties()])),
    [?assert(lists:keymember(Kind, 2, Logs), {Property, Kind}) || {Property, Logs} <- properties(), Kind <- [good, bad]].

a_specification_has_at_most_eight_lines_test() ->
    Long = [{Property, Lines} || {Property, _} <- properties(), Lines <- [length(code_lines(Property))], Lines > 8],
    ?assertEqual([], Long).

code_lines(Property) ->
    {ok, Text} = file:read_file(witness_spec_pobserve:file(Property)),
    [Line || Line <- binary:split(Text, ~"\n", [global, trim]), binary:first(Line) =/= $%].

lines_become_events_test() ->
    ?assertEqual([{{1001, 70}, 3, {recv, "bank", {withdraw, 3, 20, 8}}}], events(bank, [ask(1, 3, 20, 8)])),
    ?assertEqual([{{1002, 70}, 3, {send, "bank", {withdrawn, 3, 80, 8}}}], events(bank, [paid(2, 3, 80, 8)])),
    ?assertEqual([{{1003, 70}, 3, {send, "bank", {refused, 3, 80, 8}}}], events(bank, [refused(3, 3, 80, 8)])),
    ?assertEqual([{{1004, 70}, 3, {send, "bank", {created, 3, 100}}}, {{1004, 70}, 4, {send, "bank", {created, 4, 50}}}],
                 events(bank, [created(4, [{3, 100}, {4, 50}])])),
    ?assertEqual([{{1005, 70}, 6, {recv, "locks", {lock, 6, 2}}}, {{1006, 70}, 6, {send, "locks", {release, 6, 2, fail}}}],
                 events(locks, [lock(5, "REQUEST", "LOCK", 6, 2, "null"), released(6, 6, 2, "FAIL")])),
    ?assertEqual([], events(bank, [~"", ~"// changed"]) ++ events(pairs, [~""])),
    ?assertMatch([{{7, 0}, 1, {send, _, {value, 1, 30}}}], events(increasing, [~"7, 1, 30"])),
    ?assertMatch([{_, 1, {send, P, {expect, 1, 2, 3, 4}}}, {_, 1, {send, Q, {value, 1, 2, 0}}}, {_, 1, {send, P, {finished, 1}}}]
                     when P =/= Q, events(counts, [~"params, 7, 1, 2, 3, 4", ~"8, 1, 2, 0", ~"finished, 9, 1"])),
    ?assertMatch([{_, 1, {send, _, {start, 1, 5}}}, {_, 1, {send, _, {'end', 1, 5}}}, {_, 1, {send, _, {finished, 1}}}],
                 events(pairs, [~"7, 1, 5, start", ~"8, 1, 5, end", ~"9, 1, finished"])).

events(Property, Lines) -> [Event || Line <- Lines, Event <- witness_spec_pobserve:events(Property, Line)].

%% --- logs ------------------------------------------------------------------------

properties() ->
    [{bank, bank()}, {locks, locks()}, {increasing, increasing()}, {alternating, alternating()}, {counts, counts()},
     {pairs, pairs()}].

bank() ->
    Asked = [created(1, [{3, 100}, {4, 50}]), ask(2, 3, 30, 1), ask(3, 3, 65, 2), ask(4, 4, 5, 3)],
    [{"two accounts", good, Asked ++ [paid(5, 4, 45, 3), paid(6, 3, 70, 1), refused(7, 3, 70, 2)]},
     {"no account", bad, [created(1, [{3, 100}]), ask(2, 4, 30, 1)]},
     {"no request", bad, Asked ++ [paid(5, 4, 45, 1)]},
     {"another sum", bad, Asked ++ [paid(5, 3, 71, 1)]},
     {"less than 10 are left", bad, Asked ++ [paid(5, 3, 70, 1), paid(6, 3, 5, 2)]},
     {"a possible withdrawal is refused", bad, Asked ++ [refused(5, 3, 100, 1)]},
     {"a refusal takes the sum", bad, Asked ++ [paid(5, 3, 70, 1), refused(6, 3, 69, 2)]},
     {"less than 10 from the beginning", bad, [created(1, [{3, 9}]), ask(2, 3, 1, 1), refused(3, 3, 9, 1)]}].

locks() ->
    Taken = [locked(1, 6, 1, "SUCCESS"), locked(2, 7, 1, "SUCCESS")],
    [{"two clients", good, [released(0, 6, 1, "FAIL")] ++ Taken ++
          [lock(3, "REQUEST", "LOCK", 6, 2, "null"), locked(4, 6, 2, "FAIL"), released(5, 6, 2, "FAIL"), released(6, 6, 1, "SUCCESS"),
           locked(7, 6, 2, "SUCCESS")]},
     {"two owners", bad, Taken ++ [locked(3, 6, 2, "SUCCESS")]},
     {"a free lock is not granted", bad, Taken ++ [released(3, 6, 1, "SUCCESS"), locked(4, 6, 2, "FAIL")]},
     {"another client releases it", bad, Taken ++ [released(3, 6, 2, "SUCCESS")]},
     {"a free lock is released", bad, [released(1, 6, 2, "SUCCESS")]},
     {"its owner cannot release it", bad, Taken ++ [released(3, 6, 1, "FAIL")]}].

increasing() ->
    [{"two keys", good, [~"1, 1, 5", ~"2, 2, 3", ~"3, 1, 6", ~"4, 2, 4"]},
     {"the same", bad, [~"1, 1, 5", ~"2, 2, 9", ~"3, 1, 6", ~"4, 1, 6"]},
     {"less", bad, [~"1, 1, 5", ~"2, 1, 6", ~"3, 1, 5"]}].

alternating() ->
    [{"two keys", good, [~"1, 1, 0", ~"2, 2, 1", ~"3, 1, 1", ~"4, 2, 0", ~"5, 1, 0"]},
     {"two zeros", bad, [~"1, 1, 0", ~"2, 1, 0"]},
     {"two ones", bad, [~"1, 1, 0", ~"2, 1, 1", ~"3, 1, 1"]}].

counts() ->
    Values = [~"2, 1, 1, 1", ~"3, 1, 1, 0", ~"4, 2, 1, 1", ~"5, 1, 2, 1", ~"6, 1, 2, 1", ~"7, 1, 2, 0"],
    Begun = fun(Numbers) -> [<<"params, 0, 1, ", Numbers/binary>>, ~"params, 1, 2, 1, 0, 1"] ++ Values ++ [~"finished, 8, 1"] end,
    [{"two keys", good, Begun(~"1, 2, 5") ++ [~"finished, 9, 2"]},
     {"other ones of node 1", bad, Begun(~"2, 2, 5")},
     {"other ones of node 2", bad, Begun(~"1, 3, 5")},
     {"fewer values", bad, Begun(~"1, 2, 6")},
     {"a value of no key", bad, [~"params, 1, 1, 0, 0, 1", ~"2, 2, 1, 1"]},
     {"the end of no key", bad, [~"finished, 2, 1"]}].

pairs() ->
    Open = [~"1, 1, 5, start", ~"2, 1, 6, start", ~"3, 2, 5, start", ~"4, 1, 5, end"],
    [{"two keys", good, Open ++ [~"5, 1, 6, end", ~"6, 1, finished", ~"7, 2, 5, end", ~"8, 2, finished"]},
     {"two starts", bad, Open ++ [~"5, 1, 6, start"]},
     {"a start behind the end", bad, Open ++ [~"5, 1, 5, start"]},
     {"an end of another key", bad, Open ++ [~"5, 2, 6, end"]},
     {"two ends", bad, Open ++ [~"5, 1, 5, end"]},
     {"an event is open", bad, Open ++ [~"5, 1, finished"]}].

created(N, Accounts) ->
    Message = lists:join(", ", [io_lib:format("[~b, ~b.0]", [Account, Balance]) || {Account, Balance} <- Accounts]),
    bank(N, "RESPONSE", 0, "CREATE_ACCOUNT", 0, 0, "SUCCESS", ["[", Message, "]"]).
ask(N, Account, Sum, Id) -> bank(N, "REQUEST", Account, "WITHDRAW", Sum, Id, "null", "null").
paid(N, Account, Left, Id) -> bank(N, "RESPONSE", Account, "WITHDRAW", Left, Id, "SUCCESS", "null").
refused(N, Account, Left, Id) -> bank(N, "RESPONSE", Account, "WITHDRAW", Left, Id, "FAIL", "null").

bank(N, Type, Account, Transaction, Amount, Id, Result, Message) ->
    line(N, "MessageType=~s; AccountID=~b; TransactionType=~s; Amount=~b.00; TransactionID=~b; Result=~s; Message=~s",
         [Type, Account, Transaction, Amount, Id, Result, Message]).

locked(N, Lock, Client, Result) -> lock(N, "RESPONSE", "LOCK", Lock, Client, Result).
released(N, Lock, Client, Result) -> lock(N, "RESPONSE", "RELEASE", Lock, Client, Result).

lock(N, Type, Transaction, Lock, Client, Result) ->
    line(N, "MessageType=~s, ClientID=~b, LockID=~b, TransactionType=~s, TransactionID=1, Result=~s, LockStatus=FREE, Message=null",
         [Type, Client, Lock, Transaction, Result]).

%% So many milliseconds after the first second of 1970.
line(N, Format, Arguments) ->
    iolist_to_binary([io_lib:format("1970-01-01 00:00:01.~3..0b.70 [a] INFO  b - : ", [N]), io_lib:format(Format, Arguments)]).
