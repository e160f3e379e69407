-module(witness_record_runtime_tests).
-moduledoc """
What is recorded of a woven module is what its processes report to have taken, learned and spawned. What is outside stays
outside, and programs see nothing of the recorder.
""".
-include_lib("eunit/include/eunit.hrl").

-export([relay/0, tell/2, key/0, room/0]).

-define(M, witness_record_case).
-define(R, witness_record_native).

%% The number of a function that represents one in native code.
-define(TELL, 5000).

record_test_() ->
    {foreach, fun setup/0, fun cleanup/1,
     [{timeout, 60, {atom_to_list(Name), fun() -> Test(), ok end}} || {Name, Test} <- tests()]}.

setup() ->
    ok = ?R:available(),
    Forms = witness_weave:weave(witness_weave_source:forms(text()), plan()),
    {ok, ?M, Code} = compile:noenv_forms([{attribute, 1, file, {"case.erl", 1}} | Forms], [binary, debug_info]),
    {module, ?M} = code:load_binary(?M, "case", Code).

cleanup(_) ->
    ok = witness_record_runtime:stop(),
    code:purge(?M),
    code:delete(?M),
    code:purge(?M).

tests() ->
    [{senders, fun senders/0}, {times, fun times/0}, {names, fun names/0}, {results, fun results/0},
     {native_code, fun native_code/0},
     {births, fun births/0}, {the_dictionary_is_the_programs_own, fun the_dictionary_is_the_programs_own/0},
     {room_is_not_seen, fun room_is_not_seen/0},
     {the_program_does_not_see_that_the_recorder_monitors_it, fun the_program_does_not_see_that_the_recorder_monitors_it/0},
     {tracing_of_the_program, fun tracing_of_the_program/0},
     {a_process_that_is_not_recorded_has_label_0, fun a_process_that_is_not_recorded_has_label_0/0},
     {code_that_is_not_woven_passes_labels_on, fun code_that_is_not_woven_passes_labels_on/0},
     {contents, fun contents/0}, {before_it_starts, fun before_it_starts/0}].

text() ->
    """
    -module(witness_record_case).
    -compile([export_all, nowarn_export_all]).
    senders() ->
        Root = self(),
        Named = fun(N) -> spawn(fun() -> receive go -> Root ! {N, 1}, Root ! {N, 2} end end) end,
        A = Named(a), B = Named(b),
        A ! go, B ! go,
        receive {b, 1} -> ok end, receive {a, 1} -> ok end, receive {a, 2} -> ok end, receive {b, 2} -> ok end,
        Root ! own,
        receive own -> ok end,
        _ = erlang:send_after(0, Root, timer),
        receive timer -> ok end,
        {C, Ref} = spawn_monitor(fun() -> exit(bye) end),
        receive {'DOWN', Ref, process, C, bye} -> ok end,
        process_flag(trap_exit, true),
        D = spawn_link(fun() -> Root ! last, exit(gone) end),
        receive {'EXIT', D, gone} -> ok end,
        receive last -> ok end,
        said(senders, {C, Ref, D}).
    times() ->
        receive never -> 1 after 0 -> 2 end,
        receive never -> 1 after 1 -> 2 end,
        self() ! now,
        receive now -> ok after 1000 -> no end,
        self() ! now,
        receive now -> ok after infinity -> no end,
        T = 0, F = fun(X) -> receive never -> 1 after X -> 2 end end,
        F(T),
        self() ! 7,
        7 = prim_eval:'receive'(fun(M) when is_integer(M) -> M; (_) -> nomatch end, 1000),
        timeout = prim_eval:'receive'(fun(_) -> nomatch end, 0).
    names() ->
        Root = self(),
        P = spawn(fun() -> receive {_, _} -> Root ! hello end, receive x -> ok end, receive x -> ok end end),
        register(witness_record_named, P),
        {1, 2} = witness_record_named ! {1, 2},
        receive hello -> ok end,
        ok = erlang:send({witness_record_named, node()}, x, []),
        x = {witness_nobody, node()} ! x,
        x = erlang:send(witness_record_named, x),
        x = witness_record_outside ! x,
        said(names, try witness_nobody ! x catch error:badarg:Stack -> Stack end),
        P.
    results() ->
        T = ets:new(t, [public]),
        F = fun erlang:unique_integer/0,
        Said = [{{erlang, monotonic_time, 0}, erlang:monotonic_time()},
                {{erlang, unique_integer, 0}, F()},
                {{erlang, system_time, 1}, apply(id(erlang), id(system_time), id([second]))},
                {{erlang, make_ref, 0}, (id(erlang)):make_ref()},
                {{ets, insert, 2}, ets:insert(T, {a, 1})},
                {{ets, lookup, 2}, ets:lookup(T, a)},
                {{erlang, group_leader, 0}, (erlang:make_fun(erlang, group_leader, id(0)))()},
                {{persistent_term, get, 2}, persistent_term:get(witness_none, none)}],
        Failed = try ets:lookup(witness_none, a) catch error:badarg:Stack -> {ets, lookup, [witness_none, a], Info} = hd(Stack), Info end,
        said(results, [{{ets, new, 2}, T}, {Said, Failed}]).
    native_code() ->
        Root = self(),
        {ok, Dir} = file:get_cwd(),
        {ok, Dir} = prim_file:get_cwd(),
        {error, enoent} = prim_file:read_file("/nowhere/at/all"),
        {ok, _} = init:get_argument(root),
        {_, Ref} = spawn_monitor(fun() -> prim_file:get_cwd(), Root ! child end),
        receive child -> ok end,
        receive {'DOWN', Ref, _, _, _} -> ok end,
        Told = spawn(fun() -> receive told -> Root ! thanks end end),
        told = witness_record_runtime_tests:tell(Told, told),
        receive thanks -> ok end,
        said(native_code, Dir).
    births() ->
        Root = self(),
        Do = fun() -> Root ! self() end,
        Forms = [fun() -> spawn(Do) end, fun() -> spawn_link(Do) end, fun() -> element(1, spawn_monitor(Do)) end,
                 fun() -> spawn(node(), Do) end, fun() -> spawn(witness_record_case, send_self, [Root]) end,
                 fun() -> element(1, erlang:spawn_opt(Do, [link, monitor])) end,
                 fun() -> R = spawn_request(Do, [{reply_tag, t}]), receive {t, R, ok, P} -> P end end,
                 fun() -> apply(id(erlang), spawn, [Do]) end, fun() -> (fun spawn_link/1)(Do) end],
        Pids = [begin P = F(), receive P -> P end end || F <- Forms],
        [receive {'DOWN', _, _, P, _} -> ok end || I <- [3, 6], P <- [lists:nth(I, Pids)]],
        {error, badarg} = try spawn(nothing) catch C:R -> {C, R} end,
        Last = spawn(Do), receive Last -> ok end,
        said(births, Pids ++ [Last]).
    send_self(To) -> To ! self().
    dictionary() ->
        put(a, 1),
        [{a, 1}] = get(),
        [a] = get_keys(),
        {dictionary, [{a, 1}]} = process_info(self(), dictionary),
        [{dictionary, [{a, 1}]}, {trap_exit, false}] = process_info(self(), [dictionary, trap_exit]),
        {_, [{a, 1}]} = lists:keyfind(dictionary, 1, process_info(self())),
        [{a, 1}] = erase(),
        self() ! key,
        receive key -> Key = witness_record_runtime_tests:key() end,
        [] = erase(),
        Key = witness_record_runtime_tests:key(),
        [] = get(),
        self() ! m,
        receive m -> ok end.
    long_mailbox() ->
        [self() ! m || _ <- lists:seq(1, 600)],
        [receive m -> ok end || _ <- lists:seq(1, 300)],
        true = is_tuple(witness_record_runtime_tests:room()),
        [] = get(), [] = get_keys(), [] = erase(),
        {dictionary, []} = process_info(self(), dictionary),
        true = is_tuple(witness_record_runtime_tests:room()),
        [receive m -> ok end || _ <- lists:seq(1, 300)],
        undefined = witness_record_runtime_tests:room().
    outside_of_ended() ->
        Root = self(),
        {P, Ref} = spawn_monitor(fun() -> Root ! m end),
        receive {'DOWN', Ref, process, P, _} -> ok end,
        receive m -> ok end.
    %% Monitored by a process of its own, and by one of the recorder, which has looked at it by then.
    monitored() ->
        Root = self(),
        P = spawn(fun() -> erlang:monitor(process, Root), Root ! monitors, receive stop -> ok end end),
        receive monitors -> ok end,
        [begin self() ! I, receive I -> ok end end || I <- lists:seq(1, 64)],
        witness_record_listener ! {looked, Root},
        receive looked -> ok end,
        {monitored_by, Pids} = erlang:process_info(Root, monitored_by),
        [{monitored_by, Pids}] = erlang:process_info(Root, [monitored_by]),
        true = lists:member(P, Pids),
        P ! stop,
        said(monitored, Pids).
    tracing() ->
        0 = erlang:seq_trace(label, 17),
        false = erlang:seq_trace(send, true),
        [] = erlang:seq_trace_info(label),
        Root = self(),
        P = spawn(fun() -> erlang:seq_trace(label, 99), Root ! m end),
        receive m -> P end.
    outside() ->
        witness_record_outside ! {self(), first},
        receive {forwarded, first} -> ok end,
        P = spawn(fun() -> receive Parent -> Parent ! second end end),
        P ! self(),
        receive second -> ok end,
        Root = self(),
        spawn(fun() -> witness_record_outside ! {Root, third} end),
        receive {forwarded, third} -> ok end.
    %% Not recorded, and woven: forwards to processes what they send.
    forward() -> receive stop -> ok; {P, Msg} -> P ! {forwarded, Msg}, forward() end.
    said(What, Term) -> witness_record_listener ! {What, Term}.
    waits() -> receive never -> 1 after 0 -> 2 end.
    id(X) -> X.

    """.

plan() -> (witness_record_calls:plan())#{natives => #{{?MODULE, tell, 2} => ?TELL}}.

-doc false.
tell(To, Msg) ->
    2 = ?M:waits(),
    To ! Msg.

-doc false.
key() -> get('$witness_record').

-doc false.
room() -> get('$witness_record_heap').

%% --- what is recorded ------------------------------------------------------------

senders() ->
    #{entries := Entries, id := Own, said := [{senders, {C, Ref, D}}]} = recorded(senders),
    [A, B, Monitored, Linked] = spawned(Entries),
    ?assertMatch([{spawn, A}, {spawn, B}, {from, B}, {from, A}, {from, A}, {from, B}, {from, Own}, {result, _, _}, {content, timer},
                  {spawn, Monitored}, {result, _, {C, Ref}}, {content, {'DOWN', Ref, process, C, bye}}, {spawn, Linked},
                  {content, {'EXIT', D, gone}}, {from, Linked}, {named, 0}, {exit, normal}], Entries).

times() ->
    #{entries := Entries, id := Own} = recorded(times),
    ?assertEqual([timeout, timeout, {from, Own}, {from, Own}, timeout, {from, Own}, timeout, {exit, normal}], Entries).

names() ->
    Outside = spawn(fun() -> receive stop -> ok end end),
    register(witness_record_outside, Outside),
    #{entries := Entries, said := [{names, Stack}]} = recorded(names),
    Outside ! stop,
    normal = gone(Outside),
    [P] = spawned(Entries),
    Register = number(erlang, register, 2),
    Send = number(erlang, send, 2),
    ?assertMatch([{spawn, P}, {result, Register, true}, {named, P}, {from, P}, {named, P}, {named, 0}, {named, P}, {named, 0},
                  {raise, Send, {error, badarg}}, {named, 0}, {exit, normal}], Entries),
    ?assertMatch([{erlang, send, [witness_nobody, x], _} | _], Stack),
    ?assertMatch([_ | _], [Frame || {?M, names, 0, _} = Frame <- Stack]).

results() ->
    #{entries := Entries, said := [{results, [{New, T}, {Said, Info}]}]} = recorded(results),
    ?assertEqual([{number(M, F, A), Value} || {{M, F, A}, Value} <- [{New, T} | Said]],
                 [{Number, Value} || {result, Number, Value} <- Entries]),
    ?assertEqual([{number(ets, lookup, 2), {error, badarg}}], [{Number, Raised} || {raise, Number, Raised} <- Entries]),
    ?assertMatch([{error_info, _}], Info).

%% What native code does is outside, and after it the process has its own label again.
native_code() ->
    #{entries := Entries, all := All, said := [{native_code, Dir}]} = recorded(native_code),
    [Child, Told] = spawned(Entries),
    [Cwd, Read, Argument] = [number(M, F, A)
                             || {M, F, A} <- [{prim_file, get_cwd, 0}, {prim_file, read_file, 1}, {init, get_argument, 1}]],
    ?assertMatch([{result, Cwd, {ok, Dir}}, {result, Read, {error, enoent}}, {result, Argument, {ok, _}}, {spawn, Child},
                  {result, _, _}, {from, Child}, {content, {'DOWN', _, process, _, normal}},
                  {spawn, Told}, {result, ?TELL, told}, {from, Told}, {named, 0}, {exit, normal}],
                 %% The file server is not woven here, and what code that is not woven takes is not recorded.
                 Entries),
    ?assertEqual([{content, told}, {exit, normal}], maps:get(Told, All)).

births() ->
    %% One of the births is reported in a message with a tag of its own.
    #{entries := Entries, said := [{births, Pids}], births := Births, id := Root} = recorded(births),
    Children = spawned(Entries),
    ?assertEqual(Pids, [maps:get(pid, maps:get(Child, Births)) || Child <- Children]),
    ?assertEqual([Root], lists:usort([maps:get(parent, maps:get(Child, Births)) || Child <- Children])),
    ?assertEqual(Children, [From || {from, From} <- Entries]),
    ?assertEqual([number(erlang, spawn, 1)], [Number || {raise, Number, {error, badarg}} <- Entries]).

the_dictionary_is_the_programs_own() ->
    #{entries := Entries, id := Own} = recorded(dictionary),
    ?assertEqual([{from, Own}, {exit, normal}], lists:nthtail(length(Entries) - 2, Entries)).

%% A process with many waiting messages gets a larger heap, which it does not see.
room_is_not_seen() ->
    #{entries := Entries, id := Own} = recorded(long_mailbox),
    ?assertEqual(600, length([Own || {from, From} <- Entries, From =:= Own])).

%% The result of a call is recorded as the program got it.
the_program_does_not_see_that_the_recorder_monitors_it() ->
    #{entries := Entries, said := [{monitored, Pids}]} = recorded(monitored),
    Number = number(erlang, process_info, 2),
    ?assertEqual([{monitored_by, Pids}, [{monitored_by, Pids}]], [Value || {result, N, Value} <- Entries, N =:= Number]),
    %% The other monitoring process is this test.
    ?assertMatch([_, _], Pids),
    ?assert(lists:member(self(), Pids)).

tracing_of_the_program() ->
    #{entries := Entries} = recorded(tracing),
    [P] = spawned(Entries),
    ?assertEqual([{spawn, P}, {from, P}, {exit, normal}], Entries).

%% A woven process that is not recorded has label 0, also after a message from a recorded one.
a_process_that_is_not_recorded_has_label_0() ->
    Forwarder = spawn(?M, forward, []),
    register(witness_record_outside, Forwarder),
    #{entries := Entries, births := Births} = recorded(outside),
    Forwarder ! stop,
    normal = gone(Forwarder),
    [P, Q] = spawned(Entries),
    ?assertEqual([{named, 0}, {content, {forwarded, first}}, {spawn, P}, {from, P}, {spawn, Q},
                  {content, {forwarded, third}}, {exit, normal}], Entries),
    ?assertEqual(3, map_size(Births)).

%% Code that is not woven passes labels on: with labels that are believed, the process seems to have sent to itself.
code_that_is_not_woven_passes_labels_on() ->
    Entries = fun(Verify) ->
        Relay = spawn(?MODULE, relay, []),
        register(witness_record_outside, Relay),
        #{entries := Entries} = recorded(#{verify => Verify}, outside_of_two),
        normal = gone(Relay),
        Entries
    end,
    Text = ["-module(witness_record_case).\n-compile([export_all, nowarn_export_all]).\n"
            "outside_of_two() ->\n    Root = self(),\n"
            "    P = spawn(fun() -> witness_record_outside ! {Root, hello}, receive stop -> ok end end),\n"
            "    receive hello -> ok end,\n    P ! stop,\n"
            "    Q = spawn(fun() -> Root ! true, receive stop -> ok end end),\n    receive true -> Q ! stop end.\n"],
    Forms = witness_weave:weave(witness_weave_source:forms(Text), witness_record_calls:plan()),
    {ok, ?M, Code} = compile:noenv_forms(Forms, [binary]),
    code:purge(?M),
    {module, ?M} = code:load_binary(?M, "case", Code),
    ?assertMatch([{spawn, P}, {from, P}, {spawn, Q}, {from, Q}, {exit, normal}], Entries(false)),
    ?assertMatch([{spawn, _}, {content, hello}, {spawn, Q}, {from, Q}, {exit, normal}], Entries(true)).

-doc false.
relay() -> receive {To, Msg} -> To ! Msg end.

contents() ->
    #{entries := Entries} = recorded(#{contents => true, hash => true}, tracing),
    [P] = spawned(Entries),
    Hash = erlang:phash2(m) bor (erlang:phash2([m]) bsl 32),
    ?assertEqual([{spawn, P}, {from, P}, {contents, m}, {hash, Hash}, {exit, normal}], Entries),
    %% Where labels are not certain, the label of a process that has ended is not believed.
    #{entries := Verified} = recorded(#{contents => true, verify => true}, outside_of_ended),
    ?assertMatch([{spawn, P}, {result, _, _}, {content, {'DOWN', _, process, _, normal}}, {content, m}, {exit, normal}], Verified).

%% No process is asked anything, and nothing is put into the dictionary.
before_it_starts() ->
    Self = self(),
    [begin
         {P, Ref} = spawn_monitor(fun() -> ?M:Function(), Self ! {dictionary, get(), seq_trace:get_token()} end),
         receive {'DOWN', Ref, process, P, Reason} -> ?assertEqual({Function, normal}, {Function, Reason}) end,
         receive {dictionary, Dictionary, Token} -> ?assertEqual({[], []}, {Dictionary, Token}) end
     end || Function <- [times, dictionary, tracing]].

%% --- recording -------------------------------------------------------------------

recorded(Function) -> recorded(#{}, Function).

%% What the first process has recorded, and what it has said.
recorded(Options, Function) ->
    register(witness_record_listener, self()),
    ok = ?R:start(#{}),
    Session = trace:session_create(?MODULE, ?R:tracer(), []),
    _ = trace:process(Session, new, true, [procs]),
    {ok, Calming} = witness_record_exit_watch:start_link(Session),
    ok = witness_record_runtime:start((maps:with([contents, hash], Options))#{calming => Calming}),
    _ = [ok = witness_record_runtime:verify() || #{verify := true} <- [Options]],
    {Pid, Monitor, Id} = witness_record_runtime:root(?M, Function, []),
    ended(Pid, Monitor, Calming),
    ok = witness_record_exit_watch:settle(Calming),
    wait_for_ends(),
    ok = gen_server:stop(Calming),
    ok = witness_record_runtime:stop(),
    ok = ?R:stop(),
    true = trace:session_destroy(Session),
    unregister(witness_record_listener),
    Said = fun Said() -> receive {What, _} = Told when is_atom(What) -> [Told | Said()] after 0 -> [] end end,
    Decoded = #{entries := Entries} = witness_record_native_tests:decode(taken(), false),
    Decoded#{all => Entries, entries => maps:get(Id, Entries), id => Id, said => Said()}.

%% Answers `looked` once the process that reports ends has handled all earlier requests.
ended(Pid, Monitor, Calming) ->
    receive
        {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason);
        {looked, Asking} ->
            _ = sys:get_state(Calming),
            ?assert(lists:member(Calming, element(2, process_info(Asking, monitored_by)))),
            Asking ! looked,
            ended(Pid, Monitor, Calming)
    end.

%% It may have ended before; its name is free then.
gone(Pid) ->
    case witness_await:down(Pid) of
        noproc -> normal;
        Reason -> Reason
    end.

wait_for_ends() -> witness_await:until(fun() -> #{born := Born, ended := Ended} = ?R:info(), Born =:= Ended end).

taken() ->
    case ?R:take(1000) of
        {[], _} -> [];
        {Taken, _} -> Taken ++ taken()
    end.

spawned(Entries) -> [Child || {spawn, Child} <- Entries].

number(M, F, A) -> witness_record_calls:number(M, F, A).
