%% What `witness log' prints.
-module(witness_cli_log_tests).

-include_lib("eunit/include/eunit.hrl").

text_shows_each_process_with_what_it_did_test() ->
    with_sample(fun(Dir) ->
        {0, Text} = shown([Dir]),
        ?assertEqual(iolist_to_binary([Dir, """
            : 3 processes

            <0.90.0> (1)  sample:main(10): 8 entries
                  1  spawned <0.91.0> (2)
                  2  took 1 message of <0.91.0> (2)
                  3    it was {ok,3}
                  4  took, from outside: {tcp,<<"\e[31mred">>}
                  5  timed out 2 times
                  7  ets:lookup/2 raised error: badarg
                  8  ended: normal

            <0.91.0> (2)  sample:worker/2, spawned by <0.90.0> (1): 5 entries
                  1  took 1 message of <0.90.0> (1)
                  2  took 2 messages of <0.90.0> (1)
                  4  erlang:monotonic_time/0 returned -5
                  5  sent to a name, of <0.90.0> (1)

            ? (3)  ?: 1 entry
                  1  took 1 message of <0.91.0> (2)

            """]), Text)
    end).

one_process_is_named_by_its_id_or_its_pid_test() ->
    with_sample(fun(Dir) ->
        {0, ById} = shown([Dir, "--process", "2"]),
        {0, ByPid} = shown(["--process", "<0.91.0>", Dir]),
        ?assertEqual(ById, ByPid),
        ?assertEqual(nomatch, string:find(ById, "sample:main")),
        ?assertNotEqual(nomatch, string:find(ById, "sample:worker")),
        {2, Error} = shown([Dir, "--process", "<0.99.0>"]),
        ?assertNotEqual(nomatch, string:find(Error, "there is no process '<0.99.0>'"))
    end).

json_has_one_object_a_line_test() ->
    with_sample(fun(Dir) ->
        {0, Text} = shown([Dir, "--json"]),
        Objects = [json:decode(Line) || Line <- binary:split(Text, ~"\n", [global, trim])],
        [?assertMatch(#{~"v" := 1, ~"type" := _}, Object) || Object <- Objects],
        ?assertMatch([#{~"type" := ~"recording", ~"complete" := true, ~"ended" := ~"finished", ~"cut" := [], ~"processes" := 3},
                      #{~"type" := ~"process", ~"id" := 1, ~"process" := ~"<0.90.0>", ~"parent" := null, ~"ended" := true,
                        ~"signature" := ~"sample:main(10)", ~"entries" := 8},
                      #{~"type" := ~"entry", ~"id" := 1, ~"index" := 1, ~"kind" := ~"spawn", ~"child" := 2, ~"count" := 1},
                      #{~"index" := 2, ~"kind" := ~"from", ~"from" := 2},
                      #{~"index" := 3, ~"kind" := ~"contents", ~"text" := ~"{ok,3}"},
                      #{~"index" := 4, ~"kind" := ~"content"},
                      #{~"index" := 5, ~"kind" := ~"timeout", ~"count" := 2},
                      #{~"index" := 7, ~"kind" := ~"raise", ~"call" := ~"ets:lookup/2", ~"text" := ~"{error,badarg}"},
                      #{~"index" := 8, ~"kind" := ~"exit", ~"text" := ~"normal"},
                      #{~"type" := ~"process", ~"id" := 2, ~"parent" := 1, ~"ended" := false},
                      #{~"kind" := ~"from", ~"from" := 1, ~"count" := 1},
                      #{~"index" := 2, ~"kind" := ~"from", ~"from" := 1, ~"count" := 2} | _], Objects),
        ?assertEqual(nomatch, binary:match(Text, ~"\e"))
    end).

a_sequence_is_one_that_agrees_with_births_test() ->
    with_sample(fun(Dir) ->
        {0, Text} = shown([Dir, "--sequence"]),
        ?assertEqual(~"""
            sequenceDiagram
                participant P1 as #60;0.90.0#62; sample:main(10)
                participant P2 as #60;0.91.0#62; sample:worker/2
                P1->>P2: 1 message
                participant P3 as ? ?
                P2->>P3: 1 message
                P2->>P1: {ok,3}
                P1->>P2: 2 messages
                participant P0 as outside
                P0->>P1: {tcp,#60;#60;"#92;e[31mred"#62;#62;}

            """, Text),
        {0, Json} = shown([Dir, "--sequence", "--json", "--process", "3"]),
        ?assertMatch(#{~"type" := ~"message", ~"from" := 2, ~"to" := 3, ~"count" := 1, ~"text" := null}, json:decode(Json))
    end).

%% A message is taken only after its sender was spawned, whatever the order of the processes in the recording.
no_process_takes_a_message_before_its_sender_is_born_test() ->
    Processes = [{birth(1, 0, "<0.1.0>"), [timeout, timeout, {content, a}, {spawn, 3}, {from, 3}]},
                 {birth(2, 0, "<0.2.0>"), [{from, 3}, {content, b}]},
                 {birth(3, 1, "<0.3.0>"), [{content, c}, {from, 2}]}],
    with_processes(Processes, fun(Dir) ->
        {0, Text} = shown([Dir, "--sequence", "--json"]),
        Messages = [{maps:get(~"from", M), maps:get(~"to", M)} || Line <- binary:split(Text, ~"\n", [global, trim]),
                                                                  M <- [json:decode(Line)]],
        ?assertEqual(lists:sort([{null, 1}, {3, 1}, {3, 2}, {null, 2}, {null, 3}, {2, 3}]), lists:sort(Messages)),
        ?assertEqual({null, 1}, hd(Messages))
    end).

%% Text that would end a label, or begin something else, is written as an entity.
a_label_of_a_sequence_says_nothing_else_test() ->
    with_processes([{birth(1, 0, "<0.1.0>"), [{content, 'end'}, {content, ~"a;b#c\nd%%e"}]}], fun(Dir) ->
        {0, Text} = shown([Dir, "--sequence"]),
        [~"sequenceDiagram" | Lines] = binary:split(Text, ~"\n", [global, trim]),
        ?assertMatch([_, _, ~"    P0->>P1: 'e#8203;nd'", ~"    P0->>P1: #60;#60;\"a#59;b#35;c#92;nd#37;#37;e\"#62;#62;"], Lines)
    end).

a_recording_that_was_cut_says_so_test() ->
    with_sample(fun(Dir) ->
        Name = witness_log_recording_file:name(Dir, order),
        {ok, Bytes} = file:read_file(Name),
        ok = file:write_file(Name, binary:part(Bytes, 0, byte_size(Bytes) - 1)),
        {0, Text} = shown([Dir]),
        ?assertNotEqual(nomatch, string:find(Text, "cut: order")),
        [ok = file:delete(witness_log_recording_file:name(Dir, Kind)) || Kind <- [modules, index]],
        {0, Again} = shown([Dir]),
        ?assertNotEqual(nomatch, string:find(Again, "it has no end"))
    end).

damage_is_an_error_that_says_where_test() ->
    with_sample(fun(Dir) ->
        Name = witness_log_recording_file:name(Dir, data),
        {ok, <<Before:40/binary, Byte, After/binary>>} = file:read_file(Name),
        ok = file:write_file(Name, [Before, Byte bxor 1, After]),
        {2, Text} = shown([Dir]),
        ?assertNotEqual(nomatch, string:find(Text, "witness log: " ++ Name ++ ": at byte 22: a block is damaged")),
        %% What was read before it is there.
        ?assertNotEqual(nomatch, string:find(Text, "took 1 message of <0.91.0>")),
        {2, None} = shown(["/nowhere"]),
        ?assertNotEqual(nomatch, string:find(None, "witness log: /nowhere/header: no such file"))
    end).

%% --- samples ---------------------------------------------------------------------

birth(Id, Parent, Pid) ->
    #{id => Id, parent => Parent, place => 0, pid => list_to_pid(Pid), signature => {sample, main, [10]}}.

with_sample(Fun) ->
    with_processes([
        {birth(1, 0, "<0.90.0>"),
         [{spawn, 2}, {from, 2}, {contents, {ok, 3}}, {content, {tcp, ~"\e[31mred"}}, timeout, timeout,
          {raise, {ets, lookup, 2}, error, badarg}, {exit, normal}]},
        {(birth(2, 1, "<0.91.0>"))#{signature := {sample, worker, 2}},
         [{from, 1}, {from, 1}, {from, 1}, {result, {erlang, monotonic_time, 0}, -5}, {named, 1}]},
        {unborn, [{from, 2}]}], Fun).

with_processes(Given, Fun) ->
    Dir = witness_recording_sample:folder("shown"),
    _ = rand:seed(exsss, 1),
    Processes = [case P of {unborn, Es} -> {birth(3, 2, "<0.92.0>"), Es}; _ -> P end || P <- Given],
    Parts = [Part || Part <- witness_recording_sample:parts(Processes, 1000),
                     not lists:keymember(unborn, 1, Given) orelse not is_birth_of(3, Part)],
    try
        ok = witness_recording_sample:write(Dir, [{Kind, iolist_to_binary(Part)} || {Kind, Part} <- Parts],
                                            #{header => witness_recording_sample:header(false)}),
        Fun(Dir)
    after
        witness_recording_sample:delete(Dir)
    end.

is_birth_of(Id, {processes, Part}) -> binary:at(iolist_to_binary(Part), 1) =:= Id;
is_birth_of(_, _) -> false.

shown(Arguments) -> witness_output:of_call(fun() -> witness_cli:run(["log" | Arguments]) end).
