-module(witness_options_tests).
-include_lib("eunit/include/eunit.hrl").

the_defaults_are_complete_test() ->
    {ok, Options} = check(#{}),
    ?assertMatch(#{scope := tree, specs := [], include := [], monitors := [], max_slices := 100_000,
                   max_obligations := 1000, max_state := 10_000, max_verdicts := 10_000, explain := 12, halt := true}, Options).

what_is_given_stays_test() ->
    Given = #{include => ["a", ~"b"], max_slices => 1, max_obligations => 7, max_verdicts => 0, drain => infinity},
    {ok, Options} = check(Given),
    ?assertEqual(Given, maps:with(maps:keys(Given), Options)).

%% The native source where there is one. What is loaded does not change in a VM, so the other case is played in another.
the_source_is_chosen_test() ->
    {ok, Default} = check(#{}),
    case witness_trace_native:available() of
        ok ->
            ?assertMatch(#{source := native, warnings := []}, Default),
            ?assertMatch({ok, #{source := native, warnings := []}}, check(#{source => native}));
        {error, _} ->
            ?assertMatch(#{source := evm, warnings := [#{code := no_native}]}, Default)
    end,
    ?assertMatch({ok, #{source := evm, warnings := []}}, check(#{source => evm})).

without_native_code_the_user_is_told_test_() ->
    {timeout, 60, fun() ->
        Ebin = filename:dirname(code:which(witness_options)),
        Copy = filename:join("/tmp", "witness_options_" ++ os:getpid()),
        Modules = filelib:wildcard(filename:join(Ebin, "witness*.{beam,app}")),
        %% The modules without the folder of native code beside them.
        ok = filelib:ensure_path(filename:join(Copy, "ebin")),
        [{ok, _} = file:copy(M, filename:join([Copy, "ebin", filename:basename(M)])) || M <- Modules],
        {ok, Peer, _} = peer:start(#{connection => standard_io, args => ["-pa", filename:join(Copy, "ebin")]}),
        try
            ok = peer:call(Peer, logger, set_primary_config, [level, none]),
            Check = fun(Given) -> peer:call(Peer, witness_options, check, [Given#{system => {erlang, node, []}}]) end,
            {ok, #{source := evm, warnings := [#{code := no_native, text := Text}]}} = Check(#{}),
            ?assertMatch({match, _}, re:run(Text, "^events come from the tracing of the VM .*: Failed to load NIF library")),
            ?assertMatch({ok, #{source := evm, warnings := []}}, Check(#{source => evm})),
            {error, {witness_options, {source_unavailable, _}} = Reason} = Check(#{source => native}),
            ?assertMatch({match, _}, re:run(unicode:characters_to_binary(witness:format_error(Reason)),
                                            "^the native source of events is not available: ")),
            %% The run says so, once.
            Given = #{system => {erlang, node, []}, log => false, owner => peer:call(Peer, erlang, whereis, [init])},
            {ok, Run} = peer:call(Peer, witness, start, [Given]),
            {ok, #{warnings := Warnings}} = peer:call(Peer, witness, await, [Run, infinity]),
            ?assertMatch([_], [W || #{code := no_native} = W <- Warnings])
        after
            peer:stop(Peer),
            file:del_dir_r(Copy)
        end
    end}.

a_partition_has_half_of_the_memory_test() ->
    ?assertMatch({ok, #{memory := 1000, partition_memory := 500, batch := 64, flush := 2}}, check(#{memory => 1000})),
    ?assertMatch({ok, #{memory := 1000, partition_memory := 7}}, check(#{memory => 1000, partition_memory => 7})).

limits_do_not_strike_by_themselves_test() ->
    ?assertMatch({ok, #{rate := infinity, duration := infinity}}, check(#{})),
    ?assertMatch({ok, #{rate := 5, duration := 7}}, check(#{rate => 5, duration => 7})),
    ?assertMatch({error, {witness_options, {not_for_logs, rate}}}, check(#{system => {log, standard_input}, rate => 1})),
    ?assertMatch({error, {witness_options, {not_for_logs, duration}}}, check(#{system => {log, standard_input}, duration => 1})).

slices_that_end_when_idle_need_times_test() ->
    ?assertMatch({ok, #{slice_idle := infinity, timestamps := true}}, check(#{})),
    ?assertMatch({ok, #{timestamps := false}}, check(#{timestamps => false})),
    ?assertMatch({ok, #{timestamps := false}}, check(#{instrument => inline})),
    ?assertMatch({ok, #{slice_idle := 5, timestamps := true}}, check(#{slice_idle => 5})),
    ?assertMatch({ok, #{slice_idle := 5, timestamps := true}}, check(#{slice_idle => 5, timestamps => false})),
    ?assertMatch({ok, #{slice_idle := 5}}, check(#{system => {log, standard_input}, slice_idle => 5})).

systems_that_run_and_logs_are_watched_centrally_test() ->
    [?assertMatch({ok, #{instrument := central}}, check(More#{instrument => central}))
     || More <- [#{}, #{source => evm}, #{scope => node}, #{system => node}, #{system => {log, standard_input}}]].

%% To measure a message costs something, so over evm this is only done where it was asked for.
messages_are_measured_over_evm_where_that_was_asked_for_test() ->
    ?assertMatch({ok, #{message_size := infinity}}, check(#{source => evm})),
    ?assertMatch({ok, #{message_size := 1000}}, check(#{source => evm, message_size => 1000})),
    case witness_trace_native:available() of
        ok -> ?assertMatch({ok, #{message_size := 16#4000000}}, check(#{source => native}));
        {error, _} -> ok
    end.

an_ill_typed_option_is_named_test_() ->
    [{lists:flatten(io_lib:format("~p", [Option])), fun() ->
         [{Key, _}] = maps:to_list(Option),
         {error, {witness_option, {bad_option, Key, _}} = Reason} = check(Option),
         Text = unicode:characters_to_list(witness:format_error(Reason)),
         ?assertMatch({match, _}, re:run(Text, "^option " ++ atom_to_list(Key) ++ ": expected "))
     end} || Option <- [#{include => "include"}, #{include => dir}, #{include => [dir]}, #{specs => [1]},
                        #{max_slices => 0}, #{max_slices => infinity}, #{max_obligations => 0}, #{max_state => 0},
                        #{slice_idle => 0}, #{slice_idle => soon},
                        #{instrument => outside},
                        #{max_obligations => 1.5}, #{max_verdicts => -1}, #{scope => galaxy}, #{log_file => none}, #{halt => yes},
                        #{source => log}, #{partition_memory => 0},
                        #{redact => 1}, #{log_rate => 0},
                        #{batch => 0}, #{flush => 0.5}, #{rate => 0}, #{rate => fast}, #{duration => 0}, #{message_size => none},
                        #{source => undefined}, #{system => nothing}, #{system => {children, []}}, #{system => {children, [init]}},
                        #{monitors => [{a, b}]}]].

what_is_redacted_writes_no_contents_test() ->
    ?assertMatch({ok, #{redact := true, log_rate := infinity}}, check(#{redact => true, log_rate => infinity})),
    ?assertEqual({error, {witness_options, {not_redacted, log_file}}}, check(#{log_file => "a.log", redact => true})),
    ?assertEqual({error, {witness_options, {not_redacted, save}}},
                 check(#{system => {log, {file, "a.log"}}, save => "position", redact => true})),
    [?assertMatch({match, _},
                  re:run(witness:format_error({witness_options, {not_redacted, Key}}), "holds the contents of messages"))
     || Key <- [log_file, save]].

an_unknown_option_is_named_test() ->
    ?assertEqual({error, {witness_option, {unknown_option, warnings}}}, check(#{warnings => []})),
    ?assertEqual({error, {witness_option, {unknown_option, max_slice}}}, check(#{max_slice => 1})).

check(Options) -> witness_options:check(maps:merge(#{system => {erlang, node, []}}, Options)).
