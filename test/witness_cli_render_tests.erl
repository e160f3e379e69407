-module(witness_cli_render_tests).
-moduledoc """
Snapshots of what the command line prints for people: each case is a file of `test/cli_data`.

With the environment variable WITNESS_SNAPSHOTS set to `write` the files are written anew instead of compared; read
the difference before you keep it.
""".

-include_lib("eunit/include/eunit.hrl").

snapshots_test_() ->
    [{Name, fun() -> same(Name, Text) end} || {Name, Text} <- [
        {"violation.txt", witness_text_verdict:verdict(violation(), look(#{}))},
        {"violation_narrow.txt", witness_text_verdict:verdict(violation(), look(#{width => 60}))},
        {"violation_colour.txt", witness_text_verdict:verdict(violation(), look(#{colour => true}))},
        {"otp_server.txt", witness_text_verdict:verdict(otp_server(), look(#{}))},
        {"many_processes.txt", witness_text_verdict:verdict(many_processes(), look(#{}))},
        {"at_the_end.txt", witness_text_verdict:verdict(at_the_end(), look(#{}))},
        {"deadlines.txt", [[witness_text_verdict:verdict(V, look(#{})), $\n] || V <- deadlines()]},
        {"times.txt", witness_text_verdict:verdict(times(), look(#{}))},
        {"no_time.txt", witness_text_verdict:verdict(no_time(), look(#{}))},
        {"written_monitor.txt", witness_text_verdict:verdict(written_monitor(), look(#{}))},
        {"slice.txt", witness_text_verdict:verdict(slice(), look(#{}))},
        {"hostile.txt", witness_text_verdict:verdict(hostile(), look(#{}))},
        {"undecided.txt", witness_text_verdict:verdict(undecided(), look(#{}))},
        {"summaries.txt", [[witness_cli_render:summary(Summary, Result, look(#{})), $\n] || {Summary, Result} <- summaries()]}
    ]].

same(Name, Text) ->
    File = filename:join([code:lib_dir(witness), "test", "cli_data", Name]),
    Printed = unicode:characters_to_binary(Text),
    case os:getenv("WITNESS_SNAPSHOTS") of
        "write" -> ok = file:write_file(File, Printed);
        _ ->
            {ok, Kept} = file:read_file(File),
            ?assertEqual(string:split(Kept, ~"\n", all), string:split(Printed, ~"\n", all))
    end.

nothing_that_the_system_says_reaches_the_terminal_as_a_control_character_test() ->
    Printed = unicode:characters_to_binary(witness_text_verdict:verdict(hostile(), look(#{}))),
    ?assertEqual([], [Char || <<Char/utf8>> <= Printed, Char =/= $\n, Char < 32 orelse Char >= 127 andalso Char < 160]),
    ?assertEqual(nomatch, string:find(Printed, [16#202E])).

the_work_is_bounded_whatever_the_size_of_the_messages_test() ->
    Huge = lists:duplicate(1_000_000, {a, <<0:8000>>}),
    Steps = [step(Index, {recv, p(1), p(2), Huge, undefined}, undefined, [{~"A", Huge}]) || Index <- lists:seq(1, 20)],
    Printed = witness_text_verdict:verdict((violation())#{steps := Steps}, look(#{})),
    ?assert(iolist_size(unicode:characters_to_binary(Printed)) < 40_000).

look(Changes) -> maps:merge(#{colour => false, width => 100}, Changes).

%% Verdicts

p(1) -> pid("<0.91.0>");
p(2) -> pid("<0.85.0>");
p(N) -> pid("<0." ++ integer_to_list(100 + N) ++ ".0>").

pid(Text) -> list_to_pid(Text).

reference(N) -> list_to_ref("#Ref<0.0.0." ++ integer_to_list(N) ++ ">").

step(Index, Event, Formula, Bindings) ->
    #{index => Index, event => Event, formula => Formula, bindings => Bindings}.

violation() ->
    Always = ~"max X. and([_ ? {_, {add, A, B}}] and([_:_ ! {ok, R} when R =/= A + B] ff, [_:_ ! {ok, R} when R =:= A + B] X))",
    Event = {send, p(1), p(2), {ok, -1}, undefined},
    #{verdict => no, spec => ~"examples/sum.hml:3", name => ~"answer_is_the_sum", process => p(1),
      signature => {calc_server, loop, [buggy]}, slice => undefined, event => #{index => 3, event => Event},
      reason => undefined, vacuous => false, skipped => 0,
      source => #{file => ~"examples/sum.hml", line => 7, column => 7,
                  text => ~"\tand([_:_ ! {ok, R} when R =/= A + B] ff,\n"},
      info => #{line => 7, column => 7, action => ~"_:_ ! {ok, R} when R =/= A + B", matched => true,
                bindings => [{~"A", 1}, {~"B", 2}, {~"R", -1}], vacuous => false},
      steps => [step(1, {init, p(1), p(2), {calc_server, loop, [buggy]}, undefined}, Always, []),
                step(2, {recv, p(1), p(2), {p(2), {add, 1, 2}}, undefined},
                     ~"and([_:_ ! {ok, R} when R =/= A + B] ff, [_:_ ! {ok, R} when R =:= A + B] X)",
                     [{~"A", 1}, {~"B", 2}]),
                step(3, Event, undefined, [])]}.

otp_server() ->
    Alias = reference(7),
    Event = {send, p(1), Alias, {[alias | Alias], {booked, ~"1A", ~"bruno"}}, 200_000_000_000},
    #{verdict => no, spec => ~"bug.hml:3", name => ~"one_ticket_a_seat", process => p(1),
      signature => {seat_server, init, [[]]}, slice => undefined, event => #{index => 118, event => Event},
      reason => undefined, vacuous => false, skipped => 112,
      names => #{p(1) => ~"tickets", p(3) => ~"Shop.Client", p(4) => ~"b\e[5mruno"},
      info => #{line => 9, column => 1},
      source => #{file => ~"bug.hml", line => 9, column => 1, text => ~"max Sold."},
      steps => [step(113, {recv, p(1), p(3), {'$gen_call', {p(3), reference(5)}, {book, ~"1A", ~"anna"}}, 1_000_000}, undefined, []),
                step(114, {recv, p(1), undefined, tick, 1_314_000}, undefined, []),
                step(115, {send, p(1), p(3), {reference(5), {booked, ~"1A", ~"anna"}}, 13_000_000}, undefined,
                     [{~"Seat", ~"1A"}, {~"First", ~"anna"}]),
                step(116, {send, p(1), ledger_server, {'$gen_cast', {charge, ~"anna", 120}}, 1_500_000_000}, undefined,
                     [{~"Seat", ~"1A"}, {~"First", ~"anna"}]),
                step(117, {recv, p(1), p(4), {'$gen_call', {p(4), [alias | Alias]}, {book, ~"1A", ~"bruno"}}, 100_000_000_000}, undefined,
                     [{~"Seat", ~"1A"}, {~"First", ~"anna"}]),
                step(118, Event, undefined, [])]}.

many_processes() ->
    Calls = [step(Index, {recv, p(1), p(2 + Index), {hello, Index}, undefined}, undefined, []) || Index <- lists:seq(1, 8)],
    Fork = step(9, {fork, p(1), p(20), {worker, init, [1]}, undefined}, undefined, []),
    Self = step(10, {send, p(1), p(1), continue, undefined}, undefined, []),
    Long = {result, [{item, N, "a text"} || N <- lists:seq(1, 20)]},
    Event = {send, p(1), {logger, 'other@host'}, Long, undefined},
    (violation())#{name := undefined, event := #{index => 11, event => Event}, info := #{}, source := undefined,
                   names => #{p(3) => ~"first_client", p(9) => ~"seventh_client"},
                   steps := Calls ++ [Fork, Self, step(11, Event, undefined, [])]}.

at_the_end() ->
    Exit = {exit, p(1), {badarith, [{calc_server, loop, 1, [{line, 30}]}]}, undefined},
    (violation())#{event := undefined, info := #{line => 9, column => 4, action => ~"_:_ ! bye", matched => false},
                   source := #{file => ~"examples/sum.hml", line => 9, column => 4, text => ~"  <_:_ ! bye> tt"},
                   steps := lists:droplast(maps:get(steps, violation())) ++ [step(3, Exit, ~"<_:_ ! bye> tt", [])]}.

%% A late answer, none before the end, a deadline of days, no times, and what was forbidden until then.
deadlines() ->
    Begin = 700_000_000_000,
    Late = {send, p(1), p(2), {ok, 3}, Begin + 5_003_000_000},
    Asked = [step(1, {recv, p(1), p(2), {p(2), {add, 1, 2}}, Begin}, ~"within 5 s <_:_ ! {ok, _}> tt", []),
             step(2, {recv, p(1), p(2), ping, Begin + 5_000_000_000}, ~"within 5 s <_:_ ! {ok, _}> tt", [])],
    Info = #{line => 9, column => 15, action => ~"_:_ ! {ok, _}", deadline => Begin + 5_000_000_000, bindings => [],
             vacuous => false},
    V = (violation())#{event := #{index => 3, event => Late}, steps := Asked ++ [step(3, Late, undefined, [])], info := Info,
                       source := #{file => ~"examples/sum.hml", line => 9, column => 15, text => ~"  within 5 s <_:_ ! {ok, _}> tt"}},
    Week = 604_800_000_000_000,
    Forgotten = {send, p(1), p(2), {ok, 3}, Begin + Week + 5_000_000_000},
    [V, V#{event := undefined, steps := Asked},
     V#{event := #{index => 3, event => Forgotten}, steps := [hd(Asked), step(3, Forgotten, undefined, [])],
        info := Info#{deadline := Begin + Week}},
     V#{steps := [step(2, {recv, p(1), p(2), ping, undefined}, undefined, []), step(3, Late, undefined, [])]},
     V#{event := undefined, info := Info#{deadline := {start, 5_000_000_000}}},
     V#{verdict := yes}].

%% A monitor that knows the times of events, and of one that is not shown.
times() ->
    Begin = -576_460_751_648_928_281,
    Times = [Begin - 7_000_000_000, Begin, Begin + 1_500_000],
    Last = {send, p(1), p(2), {failed, 4}, Begin + 30_000_000_001},
    #{info := Info} = V = violation(),
    V#{event := #{index => 4, event => Last}, skipped := 1,
       info := Info#{bindings => [{~"Last", Times}, {~"T", Begin + 30_000_000_001}]},
       steps := [step(2, {send, p(1), p(2), {failed, 2}, Begin}, undefined, [{~"A", Begin}, {~"N", 7}]),
                 step(3, {send, p(1), p(2), {failed, 3}, Begin + 1_500_000}, undefined, [{~"Last", Times}]),
                 step(4, Last, undefined, [])]}.

no_time() ->
    (violation())#{verdict := inconclusive, info := #{reason => no_time, line => 9, column => 3}}.

written_monitor() ->
    Exit = {exit, p(1), killed, undefined},
    (violation())#{spec := ~"no_crash", source := undefined, name := undefined, info := {ended_with, killed},
                   event := #{index => 2, event => Exit},
                   steps := [step(1, {init, p(1), undefined, {calc_server, loop, [buggy]}, undefined}, undefined, []),
                             step(2, Exit, undefined, [])]}.

hostile() ->
    Escape = ~"\e[2J\e]0;owned\a\x{9b}31m",
    Event = {send, p(1), 'a\e[31mb', {Escape, "\e[0m\r\n", 'x\x{202E}y'}, undefined},
    (violation())#{spec := ~"\e[31m/spec.hml:3", name := <<"na\e[5mme", 16#202E/utf8>>,
                   signature := {'m\e[1m', 'f\n', [Escape]}, event := #{index => 2, event => Event},
                   info := #{line => 7, column => 4, action => Escape, bindings => [{Escape, Escape}]},
                   source := #{file => ~"\e[31m/spec.hml", line => 7, column => 4,
                               text => <<"\e[\t", Escape/binary, "\a">>},
                   slice := [{Escape, [Escape]}],
                   steps := [step(1, {recv, p(1), {external, Escape}, Escape, undefined}, Escape, [{Escape, Escape}]),
                             step(2, Event, undefined, [])]}.

undecided() ->
    (violation())#{verdict := inconclusive, reason := {gap, overload}, event := undefined, info := undefined,
                   source := undefined, steps := []}.

slice() ->
    Event = {send, p(1), reference(7), {[alias | reference(7)], -1}, undefined},
    Slice = [{~"From", {p(2), [alias | reference(7)]}}, {~"Id", 17}],
    #{info := Info, steps := Steps} = violation(),
    (violation())#{slice := Slice, event := #{index => 3, event => Event},
                   info := (maps:remove(matched, Info))#{bindings := Slice ++ [{~"R", -1}]},
                   steps := [Step#{bindings := Slice ++ Bindings} || Step = #{bindings := Bindings} <- Steps]}.

%% Summaries

summaries() ->
    Ok = #{processes => 12, tracers => 3, events => 12345, verdicts => #{no => 0, yes => 4, inconclusive => 0},
           vacuous => 1, gaps => 0, monitored => 4, slices => 0, coverage => [], warnings => [], elapsed_ms => 87,
           outcome => ok, system => normal},
    Coverage = [#{spec => ~"a.hml:1", name => undefined, actions => actions([no, undefined, yes], 3)},
                #{spec => ~"b.hml:7", name => ~"b", actions => actions([undefined, undefined], 1)}],
    [{Ok, {0, #{}}},
     {Ok#{elapsed_ms := 61_500, system := undefined, verdicts := #{no => 0, yes => 1, inconclusive => 3}, vacuous := 0,
          wanted => [{{~"b.hml:7", ~"b", {to_hold, ~"<_ : _ ! done> tt"}}, 1}, {{~"a.hml:1", undefined, none}, 2}]},
      {0, #{~"watching stopped before a decision" => 2, ~"events are missing: overload" => 1}}},
     {Ok#{system := undefined, verdicts := #{no => 0, yes => 1, inconclusive => 3}, vacuous := 0,
          wanted => [{{~"b.hml:7", ~"b", {to_come, ~"_ : _ ! done"}}, 2}, {{~"a.hml:1", undefined, none}, 1}]},
      {0, #{~"watching stopped before a decision" => 1, ~"watching stopped before what has to come" => 2}}},
     {Ok#{verdicts := #{no => 2, yes => 1, inconclusive => 0}, vacuous := 0, outcome := violated}, {1, #{}}},
     {Ok#{verdicts := #{no => 3, yes => 1, inconclusive => 1}, vacuous := 1, outcome := violated,
          properties => [property(~"quiet", 0, 1, 0), property(undefined, 1, 0, 0), property(~"worst", 2, 0, 1)]}, {1, #{}}},
     {Ok#{properties => [property(integer_to_binary(N), 0, 1, 0) || N <- lists:seq(1, 23)]}, {0, #{}}},
     {Ok#{monitored := 0, verdicts := #{no => 0, yes => 0, inconclusive => 0}, vacuous := 0, processes := 1, events := 1},
      {3, #{}}},
     {Ok#{verdicts := #{no => 0, yes => 3, inconclusive => 1}, outcome := untrusted},
      {3, #{~"the monitor crashed: {error,badarg}" => 1}}},
     {Ok#{slices := 120, monitored := 1, verdicts := #{no => 2, yes => 117, inconclusive => 1}, outcome := violated,
          coverage := lists:sublist(Coverage, 1)}, {1, #{}}},
     {Ok#{slices := 120, verdicts := #{no => 0, yes => 119, inconclusive => 1}, coverage := Coverage,
          wanted => [{others, 3} | [{{~"a.hml:1", undefined, {to_hold, integer_to_binary(N)}}, N} || N <- lists:seq(1, 7)]]}, {0, #{}}},
     {Ok#{coverage := [#{spec => ~"a.hml:1", name => undefined, actions => actions([undefined], 9)} | Coverage]},
      {0, #{}}},
     {Ok#{gaps := 3, system := {crashed, {undef, [{m, f, [], []}]}}}, {3, #{}}},
     {Ok#{application => calc}, {0, #{}}},
     {Ok#{application => calc, system := undefined}, {0, #{}}},
     {Ok#{application => calc, system := starting}, {0, #{}}},
     {Ok#{application => calc, system := {crashed, {not_started, calc, no_licence}}}, {3, #{}}},
     {Ok#{application => calc, system := {crashed, boom}}, {3, #{}}}].

property(Name, No, Yes, Inconclusive) ->
    #{spec => ~"a.hml:1", name => Name, version => 1 + Inconclusive, monitored => No + Yes + Inconclusive,
      verdicts => #{no => No, yes => Yes, inconclusive => Inconclusive}, vacuous => Yes}.

%% Not taken, each of them in so many lines.
actions(Decides, Lines) ->
    [#{line => Line, column => 5, text => <<"_ ? {request, ", (integer_to_binary(Line))/binary, "}">>, decides => D,
       taken => false} || D <- Decides, Line <- lists:seq(1, Lines)].

%% Each known reason has a sentence; an unknown one is shown as a term.
each_gap_says_what_was_missed_test_() ->
    [fun() ->
         Text = witness_text_verdict:reason(#{reason => {gap, Why}}),
         ?assertMatch({match, _}, re:run(Text, "^events are missing: .*" ++ Words))
     end || {Why, Words} <- [{overflow, "of one process or group"}, {memory, "in all"}, {lost, "the end of a process"},
                             {late, "too late"}, {tracer_lost, "a tracer of Witness"}, {{x, 1}, "{x,1}$"}]].
