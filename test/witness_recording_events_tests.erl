%% The events of recordings that were made here, whole, cut and wrong.
-module(witness_recording_events_tests).

-include_lib("eunit/include/eunit.hrl").

%% --- order -----------------------------------------------------------------------

%% Three processes: 1 spawns 2 and 3, and they pass a number around.
ring() ->
    [{birth(1, 0, main), [{spawn, 2}, {spawn, 3}, {sent, pid(2), {n, 1}}, {from, 3}, {contents, {n, 3}}, {exit, normal}]},
     {birth(2, 1, worker), [{from, 1}, {contents, {n, 1}}, {sent, pid(3), {n, 2}}, {exit, normal}]},
     {birth(3, 1, worker), [{from, 2}, {contents, {n, 2}}, {sent, pid(1), {n, 3}}, {exit, normal}]}].

events_are_those_of_the_entries_in_causal_order_test() ->
    [P1, P2, P3] = [pid(1), pid(2), pid(3)],
    {ok, Told} = events(ring()),
    Events = [Event || {Event, _} <- Told],
    Of = fun(P) -> [Event || Event <- Events, element(2, Event) =:= P] end,
    ?assertEqual([{init, P1, undefined, {sys, main, []}, undefined},
                  {fork, P1, P2, {sys, worker, []}, undefined}, {fork, P1, P3, {sys, worker, []}, undefined},
                  {send, P1, P2, {n, 1}, undefined}, {recv, P1, P3, {n, 3}, undefined}, {exit, P1, normal, undefined}], Of(P1)),
    ?assertEqual([{init, P2, P1, {sys, worker, []}, undefined}, {recv, P2, P1, {n, 1}, undefined},
                  {send, P2, P3, {n, 2}, undefined}, {exit, P2, normal, undefined}], Of(P2)),
    ?assert(is_causal(Events)),
    %% The place of each event, counted as `witness log' does.
    ?assertEqual({2, 1}, proplists:get_value({recv, P2, P1, {n, 1}, undefined}, Told)),
    ?assertEqual({1, 6}, proplists:get_value({exit, P1, normal, undefined}, Told)).

is_causal(Events) ->
    Place = maps:from_list([{Event, At} || {At, Event} <- lists:enumerate(Events)]),
    lists:all(fun({{recv, P, From, Msg, _}, At}) when From =/= undefined ->
                      maps:get({send, From, P, Msg, undefined}, Place) < At;
                 ({{init, P, Parent, Signature, _}, At}) when Parent =/= undefined ->
                      maps:get({fork, Parent, P, Signature, undefined}, Place) < At;
                 (_) -> true
              end, maps:to_list(Place)).

%% The second message is taken first. No message is taken before it was sent, whatever the identifiers are.
a_message_is_taken_behind_its_own_send_test() ->
    {ok, Told} = events(
        [{birth(1, 0, main), [{spawn, 2}, {from, 2}, {contents, b}, {from, 2}, {contents, a}, {exit, normal}]},
         {birth(2, 1, worker), [{sent, pid(1), a}, {sent, pid(3), b}, {sent, pid(1), b}, {exit, normal}]}]),
    ?assert(is_causal([Event || {Event, _} <- Told])).

names_and_aliases_are_followed_test() ->
    Alias = make_ref(),
    {ok, Told} = events(
        [{birth(1, 0, main), [{spawn, 2}, {from, 2}, {contents, a}, {from, 2}, {contents, b}, {exit, normal}]},
         {birth(2, 1, worker), [{named, 0}, {sent, logger, a}, {named, 1}, {sent, main, a}, {sent, Alias, b}, {exit, normal}]}]),
    Messages = [{element(1, Event), element(3, Event), element(4, Event)}
                || {Event, _} <- Told, lists:member(element(1, Event), [send, recv])],
    Before = fun(A, B) -> lists:member(B, lists:dropwhile(fun(M) -> M =/= A end, Messages)) end,
    ?assertEqual(5, length(Messages)),
    ?assert(Before({send, main, a}, {recv, pid(2), a})),
    ?assert(Before({send, Alias, b}, {recv, pid(2), b})).

%% A message without a recorded send is taken all the same, when no other process can go on.
a_message_whose_send_is_not_recorded_holds_up_no_process_test() ->
    {ok, Told} = events(
        [{birth(1, 0, main), [{spawn, 2}, {from, 2}, {contents, a}, {sent, pid(2), b}, {exit, normal}]},
         {birth(2, 1, worker), [{from, 1}, {contents, b}, {exit, normal}]}]),
    Of = fun(P) -> [{element(1, Event), element(4, Event)} || {Event, _} <- Told, element(2, Event) =:= pid(P),
                                                              lists:member(element(1, Event), [send, recv])] end,
    ?assertEqual([{recv, a}, {send, b}], Of(1)),
    ?assertEqual([{recv, b}], Of(2)).

messages_without_a_sender_are_received_test() ->
    {ok, Told} = events([{birth(1, 0, main), [{content, tick}, timeout, {result, {ets, lookup, 2}, []}, {content, {hello, [1]}},
                                              {exit, done}]}]),
    ?assertMatch([{init, _, _, _, _}, {recv, _, undefined, tick, _}, {recv, _, undefined, {hello, [1]}, _}, {exit, _, done, _}],
                 [Event || {Event, _} <- Told]).

%% More entries than a turn has, and more processes than have a block in memory.
many_processes_and_messages_test_() ->
    {timeout, 120, fun() ->
        Ids = lists:seq(2, 301),
        Main = [{spawn, Id} || Id <- Ids] ++ lists:append([[{from, Id}, {contents, {Id, N}}] || N <- [1, 2, 3, 4, 5], Id <- Ids]),
        Others = [{birth(Id, 1, worker), [{sent, pid(1), {Id, N}} || N <- [1, 2, 3, 4, 5]] ++ [{exit, normal}]} || Id <- Ids],
        {ok, Told} = events([{birth(1, 0, main), Main ++ [{exit, normal}]} | Others]),
        ?assertEqual(1 + 2 * 300 + 2 * 1500 + 301, length(Told)),
        ?assert(is_causal([Event || {Event, _} <- Told]))
    end}.

%% --- times -----------------------------------------------------------------------

%% The ring, with times; a process without a parent that begins late, and one with a clock that is too coarse.
timed_ring() ->
    [{(birth(1, 0, main))#{time => 5},
      [{timed, 10, {spawn, 2}}, {timed, 20, {spawn, 3}}, {timed, 30, {sent, pid(2), {n, 1}}}, {timed, 90, {from, 3}},
       {contents, {n, 3}}, {timed, 200, {exit, normal}}]},
     {(birth(2, 1, worker))#{time => 10},
      [{timed, 40, {from, 1}}, {contents, {n, 1}}, {timed, 60, {result, {ets, lookup, 2}, []}}, {timed, 70, {sent, pid(3), {n, 2}}},
       {timed, 150, {exit, normal}}]},
     {(birth(3, 1, worker))#{time => 20},
      [{timed, 70, {from, 2}}, {contents, {n, 2}}, {timed, 70, {sent, pid(1), {n, 3}}}, {timed, 100, {exit, normal}}]},
     {(birth(4, 0, late))#{time => 65}, [{timed, 66, {content, tick}}, {timed, 67, timeout}, {timed, 160, {exit, normal}}]}].

events_with_times_are_in_the_order_of_the_times_test() ->
    {ok, Told} = timed_events(timed_ring(), #{}),
    Events = [Event || {Event, _} <- Told],
    Times = [witness_event:ts(Event) || Event <- Events],
    ?assertEqual([5, 10, 10, 20, 20, 30, 40, 65, 66, 70, 70, 70, 90, 100, 150, 160, 200], Times),
    ?assert(is_causal([setelement(tuple_size(Event), Event, undefined) || Event <- Events])),
    [P1, P2, P3] = [pid(1), pid(2), pid(3)],
    ?assert(lists:member({fork, P1, P2, {sys, worker, []}, 10}, Events)),
    ?assert(lists:member({init, P2, P1, {sys, worker, []}, 10}, Events)),
    ?assert(lists:member({recv, P3, P2, {n, 2}, 70}, Events)),
    ?assert(lists:member({exit, P1, normal, 200}, Events)),
    %% They are the same events at the same places as without times.
    {ok, Untimed} = events([{maps:remove(time, Birth), [case Entry of {timed, _, E} -> E; _ -> Entry end || Entry <- Entries]}
                            || {Birth, Entries} <- timed_ring()]),
    ?assertEqual(lists:sort(Untimed), lists:sort([{setelement(tuple_size(E), E, undefined), Place} || {E, Place} <- Told])).

%% Nothing that comes later can be the sending of a message that was taken before. So no time goes back.
a_message_without_a_send_is_taken_at_its_time_test() ->
    {ok, Told} = timed_events(
        [{(birth(1, 0, main))#{time => 0},
          [{timed, 1, {spawn, 2}}, {timed, 20, {from, 2}}, {contents, a}, {timed, 40, {sent, pid(2), b}},
           {timed, 60, {exit, normal}}]},
         {(birth(2, 1, worker))#{time => 1},
          [{timed, 10, {content, tick}}, {timed, 30, {content, tick}}, {timed, 50, {from, 1}}, {contents, b},
           {timed, 70, {exit, normal}}]}],
        #{}),
    ?assertEqual([{init, 0}, {fork, 1}, {init, 1}, {recv, 10}, {recv, 20}, {recv, 30}, {send, 40}, {recv, 50}, {exit, 60},
                  {exit, 70}],
                 [{element(1, Event), witness_event:ts(Event)} || {Event, _} <- Told]).

%% A cut recording: a birth that no entry has told is told at its time, and no time goes back.
births_that_no_entry_tells_come_at_their_time_test() ->
    {ok, Told} = timed_events([{(birth(1, 0, main))#{time => 0}, [{timed, 5, {content, a}}]},
                               {(birth(2, 1, worker))#{time => 7}, [{timed, 9, {content, b}}]},
                               {(birth(3, 0, main))#{time => 1}, [{timed, 8, {content, c}}, {timed, 9, {exit, normal}}]}],
                              #{'end' => false}),
    [P1, P2, P3] = [pid(1), pid(2), pid(3)],
    ?assertMatch([{init, P1, undefined, _, 0}, {init, P3, undefined, _, 1}, {recv, P1, _, a, 5}, {gap, P1, cut, _, 5},
                  {gap, P1, cut, _, 7}, {fork, P1, P2, _, 7}, {init, P2, P1, _, 7}, {recv, P3, _, c, 8}, {recv, P2, _, b, 9},
                  {exit, P3, normal, 9}, {gap, P2, cut, _, 9}],
                 [Event || {Event, _} <- Told]),
    Times = [witness_event:ts(Event) || {Event, _} <- Told, is_integer(witness_event:ts(Event))],
    ?assertEqual(lists:sort(Times), Times).

%% A recording that begins late may begin between an entry and the contents of its message, which have no time of their own.
what_has_no_time_in_the_last_part_does_not_come_last_test() ->
    Parts = witness_recording_sample:parts(
        [{(birth(1, 0, main))#{time => 0}, [{contents, lost}, {timed, 5, {content, a}}, {timed, 9, {exit, normal}}]},
         {(birth(2, 0, main))#{time => 1}, [{timed, 7, {content, b}}, {timed, 8, {exit, normal}}]}], 7),
    #{header := Header} = timed_header(),
    {ok, Told} = read(Parts ++ [{processes, witness_log_recording_process:encode({early, 1})}], #{header => Header#{late => true}}),
    ?assertEqual([{attached, 0}, {init, 1}, {recv, 5}, {recv, 7}, {exit, 8}, {exit, 9}],
                 [{element(1, Event), witness_event:ts(Event)} || {Event, _} <- Told]).

%% However it is cut, times do not go back, and there is a gap where something is missing.
timed_files_that_were_cut_give_a_prefix_of_each_process_test_() ->
    {timeout, 120, fun() ->
        {ok, Whole} = timed_events(timed_ring(), #{}),
        with(witness_recording_sample:parts(timed_ring(), 4), (timed_header())#{block => 16}, fun(Dir) ->
            [begin
                 Name = witness_log_recording_file:name(Dir, Kind),
                 {ok, Bytes} = file:read_file(Name),
                 [begin
                      ok = file:write_file(Name, binary:part(Bytes, 0, Size)),
                      {ok, Told} = read(Dir),
                      Times = [witness_event:ts(Event) || {Event, _} <- Told, is_integer(witness_event:ts(Event))],
                      ?assertEqual(lists:sort(Times), Times, {Kind, Size}),
                      [is_prefix_or_gap({Kind, Size}, P, Told, Whole) || P <- [pid(1), pid(2), pid(3), pid(4)]]
                  end || Size <- lists:seq(22, byte_size(Bytes) - 1)],
                 ok = file:write_file(Name, Bytes)
             end || Kind <- [order, data, processes]]
        end)
    end}.

%% The header promises times, and there are some, or none, or they go back: that is no error of the reader.
times_that_no_recorder_writes_are_read_test() ->
    [?assertMatch({_, {ok, [_ | _]}}, {Processes, timed_events(Processes, #{})})
     || Processes <- [ring(), [{birth(1, 0, main), [{timed, 1 bsl 63, {content, a}}, {timed, 0, {content, b}}, {content, c}]}]]],
    %% A child that is older than its parent.
    ?assertMatch({error, "process 2 was spawned by 1 and by another one", _},
                 timed_events([{(birth(2, 1, worker))#{time => 1}, []},
                               {(birth(1, 0, main))#{time => 3}, [{timed, 4, {spawn, 2}}]}], #{})).

timed_events(Processes, Options) -> events(Processes, maps:merge(timed_header(), Options)).

timed_header() -> #{header => #{options => #{full_ids => false, contents => true, times => true}}}.

%% --- what processes are called ---------------------------------------------------

signatures_are_those_that_authors_wrote_test() ->
    Birth = birth(1, 0, main),
    Named = fun(Signature, Records) ->
        Parts = [{processes,
                  [witness_log_recording_process:encode(R) || R <- [{birth, Birth#{signature := Signature}} | Records]]}],
        {ok, [{{init, _, undefined, Told, _}, {1, 0}}]} = read(Parts, #{}),
        Told
    end,
    ?assertEqual({m, init, [[]]}, Named({proc_lib, init_p, [a, [], gen, init_it, [gen_server, a, b, m, [], []]]}, [])),
    ?assertEqual({m, f, [1]}, Named({erlang, apply, [fun() -> ok end, []]}, [{signature, 1, {m, f, [1]}}])).

%% These arguments were too large to be kept: no monitor may take them as known.
arguments_that_are_not_known_are_a_gap_test() ->
    {ok, Told} = events([{birth(1, 0, main), [{spawn, 2}, {sent, pid(2), a}, {exit, normal}]},
                         {(birth(2, 1, worker))#{signature := {sys, worker, 3}}, [{from, 1}, {contents, a}, {exit, normal}]}]),
    [P1, P2] = [pid(1), pid(2)],
    ?assertMatch([{init, P1, undefined, _, _}, {gap, P1, arguments, 1, _}, {attached, P2, {sys, worker, 3}, _},
                  {gap, P2, arguments, 1, _} | _], [Event || {Event, _} <- Told]).

%% --- holes -----------------------------------------------------------------------

a_process_that_lives_at_the_end_of_a_recording_has_no_gap_test() ->
    {ok, Told} = events([{birth(1, 0, main), [{content, a}]}]),
    ?assertMatch([{init, _, _, _, _}, {recv, _, _, a, _}], [Event || {Event, _} <- Told]).

a_recording_that_was_cut_has_gaps_where_it_was_test() ->
    {ok, Told} = events(ring(), #{'end' => false}),
    ?assertEqual([], [Gap || {{gap, _, _, _, _} = Gap, _} <- Told]),
    {ok, Cut} = events([{birth(1, 0, main), [{spawn, 2}, {content, a}, {exit, normal}]}, {birth(2, 1, worker), [{content, b}]}],
                       #{'end' => false}),
    P2 = pid(2),
    ?assertMatch([{{gap, P2, cut, unknown, undefined}, {2, 1}}], [Told1 || {{gap, _, _, _, _}, _} = Told1 <- Cut]).

%% The entry that reported its birth is missing.
a_child_of_what_was_cut_is_born_behind_the_gap_test() ->
    {ok, Told} = events([{birth(1, 0, main), [{content, a}]}, {birth(2, 1, worker), [{content, b}]}], #{'end' => false}),
    [P1, P2] = [pid(1), pid(2)],
    ?assertMatch([{init, P1, _, _, _}, {recv, P1, _, a, _}, {gap, P1, cut, _, _}, {gap, P1, cut, _, _}, {fork, P1, P2, _, _},
                  {init, P2, P1, _, _}, {recv, P2, _, b, _}, {gap, P2, cut, _, _}], [Event || {Event, _} <- Told]).

%% At every length of every file: a possible order, and a gap wherever something is missing.
files_that_were_cut_give_a_prefix_of_each_process_test_() ->
    {timeout, 120, fun() ->
        {ok, Whole} = events(ring()),
        with(witness_recording_sample:parts(ring(), 4), #{block => 16}, fun(Dir) ->
            [begin
                 Name = witness_log_recording_file:name(Dir, Kind),
                 {ok, Bytes} = file:read_file(Name),
                 [begin
                      ok = file:write_file(Name, binary:part(Bytes, 0, Size)),
                      {ok, Told} = read(Dir),
                      [is_prefix_or_gap({Kind, Size}, P, Told, Whole) || P <- [pid(1), pid(2), pid(3)]]
                  end || Size <- lists:seq(22, byte_size(Bytes) - 1)],
                 ok = file:write_file(Name, Bytes)
             end || Kind <- [order, data, processes]]
        end)
    end}.

is_prefix_or_gap(What, P, Told, Whole) ->
    Of = fun(Events) -> [Event || {Event, _} <- Events, element(2, Event) =:= P, element(1, Event) =/= init] end,
    {Before, Rest} = lists:splitwith(fun(Event) -> element(1, Event) =/= gap end, Of(Told)),
    Same = fun(Events) -> [case Event of {recv, Q, _, Msg, _} -> {recv, Q, Msg}; _ -> Event end || Event <- Events] end,
    ?assert(lists:prefix(Same(Before), Same(Of(Whole))), {What, P, Before}),
    ?assert(Before =:= Of(Whole) orelse Rest =/= [] orelse Before =:= [], {What, P, Before}).

a_module_that_ran_unwoven_is_a_gap_for_every_process_test() ->
    Parts = witness_recording_sample:parts(ring(), 100),
    Unwoven = fun(Options) ->
        {ok, Told} = read(Parts, Options),
        length([P || {{gap, P, unwoven, unknown, _}, _} <- Told])
    end,
    AsItWas = fun(Module) -> #{modules => [{lists, ~"md5", true}, {Module, ~"md5", false}]} end,
    ?assertEqual(3, Unwoven(AsItWas(lists))),
    ?assertEqual(3, Unwoven((AsItWas(lists))#{header => #{unwoven => [lists]}})),
    %% The program has loaded the module, from whichever folder.
    ?assertEqual(3, Unwoven(AsItWas(calendar))),
    %% Without the end of the recording, it is not known what was loaded.
    ?assertEqual(3, Unwoven(#{header => #{unwoven => [lists]}, 'end' => false})),
    ?assertEqual(0, Unwoven(#{header => #{unwoven => [nobody_has_loaded_this]}})),
    %% The calls of these modules are recorded, or the modules are no part of the program.
    ?assertEqual(0, Unwoven((AsItWas(lists))#{header => #{calls => #{{lists, sort, 1} => 1}}})),
    [?assertEqual({M, 0}, {M, Unwoven(AsItWas(M))}) || M <- [erlang, error_handler, witness_event, witness]].

%% --- what is wrong ---------------------------------------------------------------

a_recording_without_contents_says_what_it_lacks_test() ->
    {error, Text, []} = read(witness_recording_sample:parts(ring(), 10), #{header => #{options => #{full_ids => false}}}),
    ?assertNotEqual(nomatch, string:find(Text, "--contents")).

a_message_without_contents_is_a_gap_test() ->
    {ok, Told} = events([{birth(1, 0, main), [{spawn, 2}, {from, 2}, {content, a}, {exit, normal}]},
                         {birth(2, 1, worker), [{sent, pid(1), b}, {exit, normal}]}]),
    P1 = pid(1),
    ?assertMatch([{gap, P1, contents, 1, _}, {recv, P1, undefined, a, _}],
                 [Event || {Event, _} <- Told, lists:member(element(1, Event), [gap, recv])]).

damage_is_an_error_with_its_place_behind_what_came_before_test() ->
    with(witness_recording_sample:parts(ring(), 100), #{block => 16}, fun(Dir) ->
        Name = witness_log_recording_file:name(Dir, data),
        {ok, Bytes} = file:read_file(Name),
        At = byte_size(Bytes) - 3,
        <<Front:At/binary, Byte, Back/binary>> = Bytes,
        ok = file:write_file(Name, [Front, Byte bxor 1, Back]),
        {error, Text, [_ | _]} = read(Dir),
        ?assertNotEqual(nomatch, string:find(Text, Name)),
        ?assertNotEqual(nomatch, string:find(Text, "at byte"))
    end).

impossible_births_are_named_test() ->
    [?assertMatch({_, {error, _, _}}, {Processes, events(Processes)})
     || Processes <- [[{birth(1, 0, main), [{spawn, 2}, {spawn, 2}]}, {birth(2, 1, worker), []}],
                      [{birth(1, 2, main), []}, {birth(2, 1, worker), []}],
                      [{birth(1, 0, main), [{spawn, 2}]}, {birth(2, 3, worker), []}, {birth(3, 1, worker), []}],
                      [{(birth(1, 0, main))#{pid := no_pid}, []}],
                      [{birth(1, 0, main), [{sent, {no, 1}, a}]}]]].

%% --- the samples -----------------------------------------------------------------

birth(Id, Parent, Function) ->
    #{id => Id, parent => Parent, place => 0, pid => pid(Id), signature => {sys, Function, []}}.

pid(Id) -> list_to_pid(lists:flatten(io_lib:format("<0.~b.0>", [Id + 1000]))).

events(Processes) -> events(Processes, #{}).

events(Processes, Options) -> read(witness_recording_sample:parts(Processes, 7), Options).

read(Parts, Options) -> with(Parts, Options, fun read/1).

read(Dir) ->
    case witness_log_recording:open(Dir) of
        {ok, R} ->
            case witness_log_recording_events:fold(fun(Event, Place, Told) -> [{Event, Place} | Told] end, [], R) of
                {ok, Told} -> {ok, lists:reverse(Told)};
                {error, Text, Told} -> {error, unicode:characters_to_list(Text), lists:reverse(Told)}
            end;
        {error, Error} -> {error, unicode:characters_to_list(witness:format_error(Error)), []}
    end.

with(Parts, Options, Fun) ->
    Dir = witness_recording_sample:folder("events"),
    Header = maps:merge((witness_recording_sample:header(false))#{options => #{full_ids => false, contents => true}},
                        maps:get(header, Options, #{})),
    ok = witness_recording_sample:write(Dir, Parts, Options#{header => Header}),
    try Fun(Dir) after witness_recording_sample:delete(Dir) end.
