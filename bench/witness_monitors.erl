-module(witness_monitors).
-moduledoc """
What an event costs a monitor: each property of `witness_monitors.hml` beside the same one written by hand
(`witness_monitors_<name>`), over the same events, in one run and interleaved.

- `ns`: nanoseconds an event, as a runner pays them, with the call of the callback and its garbage collection. The call
  of a callback that does nothing is measured by itself. Medians;
- `words`: garbage an event;
- `ratio`: compiled to written by hand; `net` without the call of a callback;
- `state`: words of the state after 10,000 events and after 200,000.

Then slices go through a runner: some end, and some displace each other. The table has its memory after each tenth of them.

Usage: `witness_monitors:main([File, Repetitions, Slices])`.
""".

-export([main/1]).
-export([handle_event/2]).

-define(EVENTS, 2_000).
-define(ROUNDS, 10).
-define(EXPLAIN, 12).

-spec main([string()]) -> no_return().
main([File | Numbers]) ->
    [Repetitions, Slices] = [list_to_integer(Number) || Number <- Numbers],
    {ok, #{module := Module, entries := Entries}, _} = witness_spec:compile_file(File),
    Monitors = [{binary_to_atom(Name), Module, Index} || #{name := Name, index := Index} <- Entries],
    costs(Repetitions, Monitors),
    {calls, _, Calls} = lists:keyfind(calls, 1, Monitors),
    io:format("~n~b slices through a runner: MB after each tenth of them~n", [Slices]),
    [io:format("~-10s~ts~n", [Kind, [io_lib:format(" ~6.2f", [MB]) || MB <- memory(Kind, Slices, {Module, Calls})]]) ||
     Kind <- [ended, displaced]],
    halt(0).

costs(Repetitions, Monitors) ->
    Runs = #{call => {{loop, fun ?MODULE:handle_event/2, none}, events(sum)}},
    Cases = lists:foldl(fun({Name, Module, Index}, Acc) ->
        Written = list_to_atom("witness_monitors_" ++ atom_to_list(Name)),
        Acc#{{compiled, Name} => {started(Module, Index), events(Name)},
             {written, Name} => {machine(Name, started(Written, none)), events(Name)}}
    end, Runs, Monitors),
    Measured = [{Key, measure(Run, Events)} || _ <- lists:seq(1, Repetitions), Key := {Run, Events} <- Cases],
    Medians = #{Key => median([Time || {K, Time} <- Measured, K =:= Key]) || Key := _ <- Cases},
    #{call := Call} = Medians,
    io:format("OTP ~s, medians of ~b; the call of a callback: ~.1f ns~n~n~-10s ~16s ~16s ~7s ~6s ~10s ~10s~n",
              [erlang:system_info(otp_release), Repetitions, Call,
               "", "compiled ns/words", "written ns/words", "ratio", "net", "state", "written"]),
    lists:foreach(fun({Name, _, _}) ->
        #{{compiled, Name} := Own, {written, Name} := Other} = Medians,
        #{{compiled, Name} := {Run, Events}, {written, Name} := {Hand, _}} = Cases,
        io:format("~-10s ~9.1f ~7.1f ~8.1f ~7.1f ~7.2f ~6.2f ~10s ~10s~n",
                  [Name, Own, garbage(Run, Events), Other, garbage(Hand, Events), Own / Other,
                   (Own - Call) / (Other - Call), states(Run, Events), states(Hand, Events)])
    end, Monitors).

started(Module, Arg) ->
    case Module:init({bench, loop, [own]}, self(), Arg) of
        {ok, State} -> {loop, fun Module:handle_event/2, State};
        {ok, State, Filter} -> {chosen, fun Module:handle_event/2, fun Module:slice/2, Filter, State};
        {slices, Filter} ->
            {sliced, witness_monitor_sliced:new(Module, witness_monitor_instance:config(Module, ?EXPLAIN),
                                                {fun Module:slice/2, Filter},
                                                Module:slice_names(Filter), 1000, infinity)}
    end.

%% Slices keep the steps of an explanation, so the monitor that they are compared with has to.
machine(sessions, {loop, _, State}) ->
    Config = witness_monitor_instance:config(witness_monitors_sessions, ?EXPLAIN),
    {machine, Config, witness_monitor_instance:new(State)};
machine(_, Run) -> Run.

%% The monitor that measures the loop itself.
-doc false.
handle_event(_, State) -> {ok, State}.

%% Nanoseconds an event, garbage collection included.
measure(Run, Events) ->
    {Pid, Ref} = spawn_monitor(fun() ->
        Warm = rounds(1, Run, Events),
        Begin = erlang:monotonic_time(nanosecond),
        _ = rounds(?ROUNDS, Warm, Events),
        exit({result, (erlang:monotonic_time(nanosecond) - Begin) / (?ROUNDS * length(Events))})
    end),
    receive {'DOWN', Ref, process, Pid, {result, Result}} -> Result end.

%% Words an event. The heap holds all garbage, so it is never collected; another process reads its size.
garbage(Run, Events) ->
    Self = self(),
    Pid = spawn_opt(fun() ->
        Warm = rounds(1, Run, Events),
        Self ! {self(), ready},
        receive go -> _ = rounds(5, Warm, Events), Self ! {self(), ready} end,
        receive stop -> ok end
    end, [link, {min_heap_size, 16_000_000}]),
    receive {Pid, ready} -> ok end,
    Before = used(Pid),
    Pid ! go,
    receive {Pid, ready} -> ok end,
    Words = (used(Pid) - Before) / (5 * length(Events)),
    Pid ! stop,
    Words.

used(Pid) ->
    {garbage_collection_info, Info} = process_info(Pid, garbage_collection_info),
    proplists:get_value(heap_size, Info).

states(Run, Events) ->
    lists:join(" ", [integer_to_list(erts_debug:flat_size(state(rounds(N div length(Events) + 1, Run, Events)))) ||
                     N <- [10_000, 200_000]]).

state({loop, _, State}) -> State;
state({chosen, _, _, _, State}) -> State;
state({machine, _, Instance}) -> Instance;
state({sliced, Sliced}) -> Sliced.

rounds(0, Run, _) -> Run;
rounds(N, Run, Events) -> rounds(N - 1, round(Run, Events), Events).

round({loop, Handle, State}, Events) ->
    {loop, Handle, each(Events, Handle, State)};
round({chosen, Handle, Slice, Filter, State}, Events) ->
    {chosen, Handle, Slice, Filter, each(Events, Handle, Slice, Filter, State)};
round({machine, Config, Instance}, Events) ->
    {ok, Next} = witness_monitor_instance:run(Events, Config, Instance),
    {machine, Config, Next};
round({sliced, Sliced}, Events) ->
    {ok, _, Next} = witness_monitor_sliced:run(Events, Sliced),
    {sliced, Next}.

each([Event | Events], Handle, State) ->
    {ok, Next} = Handle(Event, State),
    each(Events, Handle, Next);
each([], _, State) ->
    State.

each([Event | Events], Handle, Slice, Filter, State) ->
    case Slice(Event, Filter) of
        skip ->
            each(Events, Handle, Slice, Filter, State);
        all ->
            {ok, Next} = Handle(Event, State),
            each(Events, Handle, Slice, Filter, Next)
    end;
each([], _, _, _, State) ->
    State.

median(List) -> lists:nth((length(List) + 1) div 2, lists:sort(List)).

%% Events after which each monitor has the same state as before.

events(sum) -> pairs(fun(N) -> [recv({self(), {add, N, 1}}), send({ok, N + 1})] end);
events(range) -> pairs(fun(N) -> [recv({value, N, 0, 1_000_000}), send(N)] end);
events(token) -> pairs(fun(N) -> [recv(token), send({token, N})] end);
events(most) ->
    Round = [recv(a), recv(b), send(a), recv(c), recv(d), send(b), send(c), send(d)],
    lists:append(lists:duplicate(?EVENTS div 8, Round));
events(branches) ->
    lists:append([case N rem 3 of
        0 -> [recv({kind("a", N), N}), recv({kind("a", N + 5), N})];
        _ -> [recv({kind("b", N), N}), send(N)]
    end || N <- lists:seq(1, ?EVENTS div 2)]);
events(overlap) -> pairs(fun(N) -> [recv({N, allowed}), send(N)] end);
events(both) -> pairs(fun(N) -> [recv({self(), N}), send({ok, N})] end);
events(pending) ->
    lists:append([[recv({request, N}), recv({request, N + 1}), recv({request, N + 2}),
                   send({answer, N + 1}), send({answer, N}), send({answer, N + 2})] ||
                  N <- lists:seq(1, ?EVENTS div 2, 3)]);
events(chosen) -> pairs(fun(N) -> [recv({set, N}), recv(noise), send({noise, N}), send({value, N})] end);
events(sessions) -> calls(fun(N) -> N rem 10 end);
events(calls) -> calls(fun(N) -> N end).

%% Ten calls wait at a time.
calls(Id) ->
    lists:append([[recv({call, Id(N), {add, N, 1}}) || N <- Ten] ++ [recv(noise) || _ <- Ten]
                  ++ [send({reply, Id(N), N + 1}) || N <- Ten] ||
                  First <- lists:seq(1, ?EVENTS div 3, 10), Ten <- [lists:seq(First, First + 9)]]).

pairs(Make) -> lists:append([Make(N) || N <- lists:seq(1, ?EVENTS div 2)]).

kind(Letter, N) -> list_to_atom(Letter ++ integer_to_list(N rem 9 + 1)).

recv(Message) -> {recv, self(), undefined, Message, 1}.
send(Message) -> {send, self(), self(), Message, 1}.

%% Megabytes of a runner after each tenth of the slices.
memory(Kind, Slices, Monitor) ->
    Run = spawn_link(fun Forget() -> receive _ -> Forget() end end),
    Runner = witness_monitor_runner:start(#{monitor => Monitor, process => self(), signature => {bench, loop, [own]},
                                            run => Run, explain => 12, ordered => false, max_slices => 1000}),
    Tenth = Slices div 10,
    Measured = [begin
                    fed(Runner, Kind, N * Tenth, Tenth),
                    true = garbage_collect(Runner),
                    {memory, Bytes} = process_info(Runner, memory),
                    Bytes / 1.0e6
                end || N <- lists:seq(0, 9)],
    ok = witness_monitor_runner:stop(Runner),
    Measured.

fed(_, _, _, 0) -> ok;
fed(Runner, Kind, From, Count) ->
    Batch = min(Count, 1000),
    Events = lists:append([[recv({call, Id, {add, Id, 1}}) | [send({reply, Id, Id + 1}) || Kind =:= ended]] ||
                           Id <- lists:seq(From + 1, From + Batch)]),
    ok = witness_monitor_runner:send_events(Runner, [{none, Event} || Event <- Events]),
    settled(Runner),
    fed(Runner, Kind, From + Batch, Count - Batch).

%% The runner waits for messages, and there are none.
settled(Runner) ->
    case process_info(Runner, [status, message_queue_len]) of
        [{status, waiting}, {message_queue_len, 0}] -> ok;
        _ -> erlang:yield(), settled(Runner)
    end.
