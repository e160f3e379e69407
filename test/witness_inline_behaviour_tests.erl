-module(witness_inline_behaviour_tests).
-moduledoc """
What inline monitoring sees of a process of a behaviour is what the callback module itself was given and has sent,
whatever it is asked to do: generated requests, against what the module has written down.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(WAIT_MS, 30_000).

a_server_is_seen_as_it_logs_itself_test_() -> check(fun prop_server/0).

a_machine_is_seen_as_it_logs_itself_test_() -> check(fun prop_machine/0).

a_manager_is_seen_as_its_handlers_log_test_() -> check(fun prop_manager/0).

%% What crashes is reported by OTP, and of no interest here.
check(Property) ->
    {setup, fun silent/0, fun(#{level := Level}) -> logger:set_primary_config(level, Level) end,
     {timeout, 300, fun() ->
         ?assert(proper:quickcheck(Property(), [{numtests, 60}, {to_file, user}, nocolors]))
     end}}.

silent() ->
    Config = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Config.

%%% gen_server

prop_server() ->
    ?FORALL(Requests, list(request()), begin
        {Processes, _} = witness_behaviour_observed:gather([witness_behaviour_server], [{witness_behaviour_server, init, 1}],
                                                           fun(Log) -> serve(Requests, Log) end),
        same(Processes, fun exit_reason/1)
    end).

request() ->
    frequency([{10, {oneof([call, cast, info]), list(act()), oneof([reply, later, {reply, hibernate}, {reply, 0}, {throw, reply},
                                                               {reply, {continue, [{tell, again}]}}])}},
               {2, {idle, [], {reply, 0}}},
               {1, {oneof([call, cast, info]), list(act()),
                    oneof([stop, crash, exit, bad, {stop, normal}, {stop, {shutdown, x}}])}}]).

act() -> oneof([{tell, integer()}, answer, {local, oneof([cast, info]), [{tell, inside}]}]).

%% The requests are in the server's queue in this order. The server may end before it has taken all of them.
serve(Requests, Log) ->
    Quiet = process_flag(trap_exit, true),
    {ok, Server} = gen_server:start(witness_behaviour_server, {Log, self(), ok}, []),
    Monitor = monitor(process, Server),
    [case Kind of
         call -> gen_server:send_request(Server, {Do, Return});
         idle -> timed_out(Server, Monitor, {Do, Return});
         cast -> gen_server:cast(Server, {Do, Return});
         info -> Server ! {Do, Return}
     end || {Kind, Do, Return} <- Requests ++ [{call, [], stop}]],
    receive {'DOWN', Monitor, process, _, Reason} -> note(Log, Server, Reason) end,
    process_flag(trap_exit, Quiet).

%% The time-out comes when there is nothing else to do. What the test has been told before is of no interest.
timed_out(Server, Monitor, Request) ->
    try gen_server:call(Server, Request) of
        yes ->
            receive
                {told, timeout} -> ok;
                {'DOWN', Monitor, _, _, _} = Down -> self() ! Down
            end
    catch
        exit:_ -> ended
    end.

note(Log, Process, Reason) -> ets:insert(Log, {erlang:unique_integer([monotonic]), {logged, Process}, {exit, Reason}}).

exit_reason(Reason) -> Reason.

%% The first event is the birth; the others are what was logged.
same(Processes, Reason) ->
    [{_, {[{init, _} | Seen], Logged}}] = maps:to_list(Processes),
    Ended = [case What of {exit, R} -> {exit, Reason(R)}; _ -> What end || What <- Seen],
    ?WHENFAIL(io:format(user, "seen   ~p~nlogged ~p~n", [Ended, Logged]), Ended =:= Logged).

%%% gen_statem

prop_machine() ->
    Made = {few(inserted(1)), list(machine_event(message))},
    ?FORALL({Mode, {Actions, Events}}, {mode(), ?LET(Generated, Made, numbered(Generated))}, begin
        {Processes, _} = witness_behaviour_observed:gather([witness_behaviour_machine], [{witness_behaviour_machine, init, 1}],
                                                           fun(Log) -> drive(Mode, Actions, Events, Log) end),
        same(Processes, fun exit_reason/1)
    end).

mode() -> oneof([state_functions, handle_event_function, [state_functions, state_enter], [handle_event_function, state_enter]]).

machine_event(Origin) -> machine_event(Origin, 2).

machine_event(Origin, Depth) ->
    ?LET({Kind, Attempts, Last}, {oneof([call, cast, info]), few(attempt(Depth, true)), attempt(Depth, false)},
         {Kind, {id, Origin, Attempts ++ [Last]}}).

attempt(Depth, Postpones) ->
    {oneof([keep, repeat, same, one, two, init, {throw, two}]),
     ?LET(Actions, few(action(Depth)), [postpone || Postpones] ++ [{reply, yes} || not Postpones] ++ Actions)}.

action(Depth) ->
    frequency([{2, {timeout, 0, tick}}, {1, {state_timeout, 0, tick}}, {1, {{timeout, name}, 0, tick}}, {1, hibernate},
               {1, {drop, now}}, {1, {next_event, internal, tick}}] ++ [{4, inserted(Depth - 1)} || Depth > 0]).

inserted(Depth) ->
    ?LET({Kind, Event}, machine_event(inserted, Depth), {next_event, Kind, Event}).

few(Generated) -> resize(3, list(Generated)).

%% Each event has a number of its own.
numbered(Generated) -> {Numbered, _} = numbered(Generated, 1), Numbered.

numbered({id, Origin, Attempts}, N) -> {Inside, Next} = numbered(Attempts, N + 1), {{N, Origin, Inside}, Next};
numbered(List, N) when is_list(List) -> lists:mapfoldl(fun numbered/2, N, List);
numbered(Tuple, N) when is_tuple(Tuple) -> {List, Next} = numbered(tuple_to_list(Tuple), N), {list_to_tuple(List), Next};
numbered(Term, N) -> {Term, N}.

drive(Mode, Actions, Events, Log) ->
    {ok, Machine} = gen_statem:start(witness_behaviour_machine, {Log, self(), {Mode, Actions}}, []),
    Monitor = monitor(process, Machine),
    [case Kind of
         call -> gen_statem:send_request(Machine, Event);
         cast -> gen_statem:cast(Machine, Event);
         info -> Machine ! Event
     end || {Kind, Event} <- Events ++ [{call, stop}]],
    receive {'DOWN', Monitor, process, _, Reason} -> note(Log, Machine, Reason) end.

%%% gen_event

prop_manager() ->
    ?FORALL(Steps, list(step()), begin
        {Processes, _} = witness_behaviour_observed:gather([witness_behaviour_handler], [{gen_event, init, 1}],
                                                           fun(Log) -> manage(Steps, Log) end),
        same_but_for_the_end(Processes)
    end).

step() ->
    oneof([{add, name(), oneof([ok, ok, bad])}, {delete, name()},
           {oneof([notify, sync_notify, info]), returns()},
           {call, name(), oneof([ok, hibernate, remove, bad, crash, throw, swap])}]).

name() -> oneof([one, two, three]).

returns() ->
    ?LET(Returns, [{name(), oneof([ok, hibernate, remove, bad, crash, throw, swap])}, {name(), ok}], maps:from_list(Returns)).

manage(Steps, Log) ->
    {ok, Manager} = gen_event:start(),
    ok = gen_event:add_handler(Manager, {witness_behaviour_handler, first}, {Log, first}),
    [stepped(Step, {Id, Manager}, Log) || {Id, Step} <- lists:enumerate(Steps)],
    gen_event:stop(Manager).

stepped({add, Name, How}, {_, Manager}, Log) ->
    Arg = case How of ok -> {Log, Name}; bad -> {{Log, Name}, bad} end,
    gen_event:which_handlers(Manager),
    lists:member({witness_behaviour_handler, Name}, gen_event:which_handlers(Manager)) orelse
        gen_event:add_handler(Manager, {witness_behaviour_handler, Name}, Arg);
stepped({delete, Name}, {_, Manager}, _) -> gen_event:delete_handler(Manager, {witness_behaviour_handler, Name}, gone);
stepped({notify, Returns}, {Id, Manager}, _) -> gen_event:notify(Manager, {Id, Returns});
stepped({sync_notify, Returns}, {Id, Manager}, _) -> gen_event:sync_notify(Manager, {Id, Returns});
stepped({info, Returns}, {Id, Manager}, _) -> Manager ! {Id, Returns};
stepped({call, Name, How}, {Id, Manager}, _) -> gen_event:call(Manager, {witness_behaviour_handler, Name}, {Id, How}).

%% Tags are made up, and how a manager ends its handlers do not see.
same_but_for_the_end(Processes) ->
    [{_, {[{init, {gen_event, init, [undefined]}} | Seen], Logged}}] = maps:to_list(Processes),
    Plain = [plain(What) || What <- Seen],
    Expected = [plain(What) || What <- Logged],
    ?WHENFAIL(io:format(user, "seen   ~p~nlogged ~p~n", [Plain, Expected]), Plain =:= Expected).

plain({recv, {_, {_, [alias | _]}, {call, Module, Request}}}) -> {recv, {call, Module, Request}};
plain({send, _, {[alias | _], {error, {'EXIT', {crash, _}}}}}) -> {send, {reply, crash}};
plain({send, _, {[alias | _], {error, bad}}}) -> {send, {reply, bad}};
plain({send, _, {[alias | _], yes}}) -> {send, {reply, yes}};
plain({send, {reply, Return}}) when Return =/= bad, Return =/= crash -> {send, {reply, yes}};
plain(What) -> What.
