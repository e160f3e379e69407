-module(witness_run_holdings_tests).
-moduledoc "What is alive with a process, and what it costs to ask for it.".
-include_lib("eunit/include/eunit.hrl").

a_line_says_what_a_process_holds_test() ->
    Other = spawn(fun() -> receive never -> ok end end),
    P = holder(fun() ->
        register(?MODULE, self()),
        ets:insert(ets:new(orders, [public]), [{1}, {2}]),
        ets:new('Elixir.Shop.Stock', []),
        {ok, _} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}]),
        [monitor(process, Other) || _ <- [1, 2, 3]],
        monitor(process, holder(fun() -> ok end))
    end),
    [Port] = [Of || Of <- element(2, process_info(P, links)), is_port(Of)],
    {ok, Number} = inet:port(Port),
    Holds = holds(P),
    ?assertEqual("; has the name witness_run_holdings_tests, table 'Elixir.Shop.Stock' (0 objects), table orders (2 objects)"
                 " and UDP socket (port " ++ integer_to_list(Number) ++ "), monitors 2 processes", text(Holds, erlang)),
    ?assertEqual("; has the name :witness_run_holdings_tests, table Shop.Stock (0 objects), table :orders (2 objects)"
                 " and UDP socket (port " ++ integer_to_list(Number) ++ "), monitors 2 processes", text(Holds, elixir)),
    %% Its name is another one's later.
    [begin exit(Of, kill), witness_await:down(Of) end || Of <- [P, Other]].

what_holds_nothing_has_no_more_to_say_test() ->
    P = holder(fun() -> ok end),
    ?assertEqual("", text(holds(P), erlang)),
    exit(P, kill).

of_each_kind_three_are_named_test() ->
    P = holder(fun() ->
        [ets:new(list_to_atom("table_" ++ [$0 + N]), []) || N <- lists:seq(1, 5)],
        [open_port({spawn, "cat -"}, []) || _ <- lists:seq(1, 4)]
    end),
    ?assertEqual("; has table table_1 (0 objects), table table_2 (0 objects), table table_3 (0 objects), 2 other tables, "
                 "port cat, port cat, port cat and 1 other port", text(holds(P), erlang)),
    exit(P, kill).

what_has_ended_holds_nothing_test() ->
    P = spawn(fun() -> ok end),
    _ = witness_await:down(P),
    ?assertEqual("", text(holds(P), erlang)).

%% Processes, names and ports.
what_is_monitored_again_and_again_is_counted_test() ->
    Other = holder(fun() -> true = register(?MODULE, self()) end),
    P = holder(fun() ->
        Port = open_port({spawn, "cat"}, []),
        [monitor(process, Other) || _ <- lists:seq(1, 200)],
        [monitor(process, ?MODULE) || _ <- lists:seq(1, 150)],
        [monitor(port, Port) || _ <- lists:seq(1, 100)],
        [monitor(process, holder(fun() -> ok end)) || _ <- lists:seq(1, 110)]
    end),
    {{known, Targets}, _} = witness_run_holdings:monitors(P, 0, witness_run_holdings:new()),
    ?assertMatch([{Other, ?MODULE, 200}, {{?MODULE, Node}, undefined, 150}, {Port, undefined, 100}]
                   when Node =:= node() andalso is_port(Port), witness_run_holdings:repeated(Targets)),
    [exit(Of, kill) || Of <- [P, Other]].

a_target_has_its_name_in_the_language_of_the_system_test() ->
    Text = fun(Target, Name, Syntax) -> unicode:characters_to_list(witness_run_holdings:format_target(Target, Name, Syntax)) end,
    ?assertEqual([pid_to_list(self()) ++ " ('Elixir.Till')", "#PID" ++ pid_to_list(self()) ++ " (Till)"],
                 [Text(self(), 'Elixir.Till', Syntax) || Syntax <- [erlang, elixir]]),
    ?assertEqual(pid_to_list(self()), Text(self(), undefined, erlang)),
    ?assertEqual(["till", ":till"], [Text({till, node()}, undefined, Syntax) || Syntax <- [erlang, elixir]]),
    ?assertEqual("{till,a@b}", Text({till, a@b}, undefined, erlang)).

%% The VM would copy them all.
a_look_is_bounded_whatever_the_processes_have_test() ->
    Other = holder(fun() -> ok end),
    P = holder(fun() -> [monitor(process, Other) || _ <- lists:seq(1, 1000)] end),
    All = witness_run_holdings:new(),
    {{known, Targets}, Left} = witness_run_holdings:monitors(P, 0, All),
    ?assertEqual(1000, length(Targets)),
    ?assert(All - Left >= 1000),
    ?assertEqual({unknown, 0}, witness_run_holdings:monitors(P, 0, 999)),
    ?assertEqual({unknown, 0}, witness_run_holdings:monitors(P, 0, 0)),
    ?assertEqual({unknown, All}, witness_run_holdings:monitors(P, 100_001, All)),
    [exit(Of, kill) || Of <- [P, Other]].

a_process_with_very_many_monitors_is_asked_once_test() ->
    Other = holder(fun() -> ok end),
    P = spawn(fun() -> many_monitors(Other, []) end),
    Look = fun(Last, Holds) ->
        {#{processes := [#{process := P} = Process]}, _, Next} =
            witness_run_remaining:look([P], fun(_) -> system end, true, 0, {Last, witness_run_remaining:idle(Last)}, Holds),
        {Process, Next}
    end,
    Have = fun(Count) -> P ! {have, Count, self()}, receive {has, P} -> ok end end,
    Have(100),
    {#{repeatedly := [{Other, undefined, 100}]}, Few} = Look(#{}, repeated),
    Have(110_000),
    {#{repeatedly := unknown}, Many} = Look(Few, repeated),
    Have(100),
    {#{repeatedly := unknown}, Later} = Look(Many, repeated),
    {#{repeatedly := unknown, holds := #{monitors := 0}}, _} = Look(Later, all),
    %% Without the check it is asked for nothing.
    {Process, _} = Look(#{}, none),
    ?assertNot(is_map_key(repeatedly, Process) orelse is_map_key(holds, Process)),
    [exit(Of, kill) || Of <- [P, Other]].

many_monitors(Other, Refs) ->
    receive
        {have, Count, From} ->
            [demonitor(Ref) || Ref <- Refs],
            Next = [monitor(process, Other) || _ <- lists:seq(1, Count)],
            garbage_collect(),
            From ! {has, self()},
            many_monitors(Other, Next)
    end.

holds(P) ->
    {Monitors, _} = witness_run_holdings:monitors(P, 0, witness_run_holdings:new()),
    witness_run_holdings:holds(P, Monitors, witness_run_holdings:tables()).

text(Holds, Syntax) -> unicode:characters_to_list(witness_run_holdings:format(Holds, Syntax)).

%% A process that has done this and waits.
holder(Fun) ->
    Self = self(),
    P = spawn(fun() -> Fun(), Self ! {done, self()}, receive never -> ok end end),
    receive {done, P} -> P end.
