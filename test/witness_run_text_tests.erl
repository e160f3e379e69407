-module(witness_run_text_tests).

-include_lib("eunit/include/eunit.hrl").

%% Log lines, warnings and errors have the language of the process or application that they are about.
violations_in_the_log_are_written_as_their_process_test() ->
    Pid = list_to_pid("<0.91.0>"),
    Report = #{witness => violation, spec => ~"s.hml", name => ~"p", process => Pid, signature => {'Elixir.Shop', run, [ok]},
               slice => [{~"X", nil}]},
    ?assertEqual(~"s.hml (p) violated by #PID<0.91.0>, Shop.run(:ok), X = nil", line(Report)),
    ?assertEqual(~"s.hml (p) violated by <0.91.0>, shop:run(ok), X = nil", line(Report#{signature := {shop, run, [ok]}})),
    ?assertEqual(~"s.hml (p) violated by #PID<0.91.0>, :shop.run(:ok), X = nil",
                 line(Report#{signature := {shop, run, [ok]}, syntax => elixir})).

line(Report) ->
    {Format, Args} = witness_run_notifier:format(Report),
    unicode:characters_to_binary(io_lib:format(Format, Args)).

warnings_name_processes_as_they_are_written_test() ->
    Pid = list_to_pid("<0.91.0>"),
    Named = fun(Of) -> unicode:characters_to_binary(witness_run_warnings:format_process(Pid, Of)) end,
    ?assertEqual(~"#PID<0.91.0> (Shop.run/1)", Named({'Elixir.Shop', run, [a]})),
    ?assertEqual(~"<0.91.0> (shop:run/1)", Named({shop, run, 1})),
    ?assertEqual(~"<0.91.0>", Named(undefined)).

crashes_are_written_as_the_code_that_has_crashed_test() ->
    Crash = fun(Module) ->
        unicode:characters_to_binary(witness_run_warnings:format_crash({{badmatch, nil}, [{Module, run, 1, []}]}))
    end,
    ?assertEqual(~"the system ended: an exception was raised: ** (MatchError) no match of right hand side value: nil Shop.run/1",
                 Crash('Elixir.Shop')),
    ?assertEqual(~"the system ended with {{badmatch,nil},[{shop,run,1,[]}]}", Crash(shop)),
    [?assertEqual(erlang, witness_event:syntax_of_reason(Reason))
     || Reason <- [normal, {a, [b | c]}, {a, [{'Elixir.Shop', run, 1, []} | c]}, {a, {1, 2, 3}}]].

applications_that_do_not_start_name_their_function_test() ->
    Said = fun(Reason) ->
        unicode:characters_to_binary(witness_run_application:format_error({not_started, shop, Reason}))
    end,
    ?assertMatch({_, _}, binary:match(Said({{shutdown, nil}, {'Elixir.Shop', start, [normal, []]}}),
                                      ~"Shop.start/2 of shop returned the error shutdown: nil")),
    ?assertMatch({_, _}, binary:match(Said({{shutdown, nil}, {shop_app, start, [normal, []]}}),
                                      ~"shop_app:start/2 of shop returned the error {shutdown,nil}")).

%% Places and times are no contents.
what_a_deadline_decides_is_told_when_it_is_redacted_test() ->
    Info = #{line => 7, column => 2, action => ~"_ ? a", deadline => 5_000_000_000, bindings => [{~"T", {secret, 1}}], vacuous => false},
    V = #{signature => undefined, slice => undefined, event => undefined, reason => undefined, info => Info, steps => []},
    #{info := Redacted} = witness_run_redaction:verdict(true, V),
    ?assertEqual(maps:remove(bindings, Info), maps:remove(bindings, Redacted)),
    ?assertNotEqual(Info, Redacted),
    NoTime = #{reason => no_time, line => 7, column => 2},
    ?assertMatch(#{info := NoTime}, witness_run_redaction:verdict(true, V#{info := NoTime})).
