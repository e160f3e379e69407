-module(witness_recorded_patience).
-moduledoc """
Servers that are slow or crash, clients that wait for a millisecond or two, and a process that kills both at any point. A seed
decides what they try, and chance decides what comes of it.
""".
-behaviour(gen_server).

-import(witness_recorded, [content/1, message/2, result/2, timeout/0]).

-export([run/1, start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, handle_continue/2]).

-define(NAMES, [witness_patience_1, witness_patience_2, witness_patience_3]).
-define(CLIENTS, 4).
-define(REQUESTS, 15).
-define(KILLS, 12).

-doc "The result is what the processes have noted.".
run(Seed) -> witness_recorded:listening(fun() -> all(Seed) end).

all(Seed) ->
    process_flag(trap_exit, true),
    {ok, Supervisor} = supervisor:start_link(?MODULE, {supervisor, Seed}),
    Clients = [spawn_monitor(fun() -> client(seeded(Seed, I), ?REQUESTS) end) || I <- lists:seq(1, ?CLIENTS)],
    Pids = [Pid || {Pid, _} <- Clients],
    {_, Kills} = spawn_monitor(fun() -> killer(seeded(Seed, 0), Pids, ?KILLS) end),
    [receive {'DOWN', Ref, process, _, Reason} -> content({down, Reason}) end || Ref <- [Kills | [Ref || {_, Ref} <- Clients]]],
    Ref = monitor(process, Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Ref, process, _, Why} -> content({down, Why}) end.

seeded(Seed, N) -> rand:seed_s(exsss, {Seed, N, 1}).

chosen(List, State) ->
    {N, Next} = rand:uniform_s(length(List), State),
    {lists:nth(N, List), Next}.

%% --- the killer ------------------------------------------------------------------

killer(_, _, 0) -> ok;
killer(S, Clients, N) ->
    {Who, S1} = chosen(Clients ++ ?NAMES ++ ?NAMES, S),
    {How, S2} = chosen([kill, kill, shutdown, normal, {because, N}], S1),
    {Wait, S3} = chosen([{busy, 100}, {busy, 20_000}, {busy, 200_000}, {rest, 0}, {rest, 1}], S2),
    waited(Wait),
    _ = case located(Who) of
        undefined -> ok;
        Pid -> exit(Pid, How)
    end,
    killer(S3, Clients, N - 1).

located(Pid) when is_pid(Pid) -> Pid;
located(Name) -> result({erlang, whereis, 1}, whereis(Name)).

waited({busy, N}) -> busy(N);
waited({rest, Time}) -> receive after Time -> timeout() end.

busy(0) -> ok;
busy(N) -> busy(N - 1).

%% --- clients ---------------------------------------------------------------------

client(_, 0) -> flush();
client(S, N) ->
    {Name, S1} = chosen(?NAMES, S),
    {Request, S2} = chosen([at_once, {busy, 10_000}, {busy, 500_000}, {rest, 1}, {rest, 2}, later, elsewhere, idle, crash, stop,
                            {ask, lists:last(?NAMES)}, {ask, hd(?NAMES)}, hibernate, continue], S1),
    {Time, S3} = chosen([0, 1, 1, 2, 2], S2),
    {How, S4} = chosen([call, call, call, call, cast, flush, request, message, monitor], S3),
    asks(How, Name, Request, Time, N),
    client(S4, N - 1).

asks(call, Name, Request, Time, _) -> content(called(Name, Request, Time));
asks(cast, Name, Request, _, N) -> gen_server:cast(Name, {note, N, Request});
asks(flush, _, _, _, _) -> flush();
asks(request, Name, Request, Time, _) ->
    Id = gen_server:send_request(Name, Request),
    content(try gen_server:receive_response(Id, Time) catch _:Reason -> Reason end);
asks(message, Name, _, Time, N) ->
    _ = try Name ! {told, self(), N} catch error:badarg -> content(nobody) end,
    receive {heard, From, N} = Answer -> message(From, Answer) after Time -> timeout() end;
asks(monitor, Name, _, Time, _) ->
    Ref = monitor(process, Name),
    receive {'DOWN', Ref, process, _, Reason} -> content(Reason) after Time -> timeout() end,
    content(demonitor(Ref, [flush, info])).

called(Name, Request, Time) ->
    try {ok, gen_server:call(Name, Request, Time)} catch exit:{Reason, _} -> Reason end.

flush() -> receive Message -> content(Message), flush() after 0 -> timeout() end.

%% --- servers ---------------------------------------------------------------------

start_link(Name) -> gen_server:start_link({local, Name}, ?MODULE, {server, Name}, []).

init({supervisor, _}) ->
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 1},
          [#{id => Name, start => {?MODULE, start_link, [Name]}} || Name <- ?NAMES]}};
init({server, Name}) ->
    content({begins, Name}),
    {ok, 0}.

handle_call(Request, {From, _} = Client, N) ->
    message(From, {N, Request}),
    handled(Request, Client, N + 1).

handled({busy, _} = Wait, _, N) -> waited(Wait), {reply, N, N};
handled({rest, _} = Wait, _, N) -> waited(Wait), {reply, N, N, 1};
handled(later, Client, N) -> _ = erlang:send_after(1, self(), {later, Client}), {noreply, N};
handled(elsewhere, Client, N) -> _ = spawn_link(fun() -> gen_server:reply(Client, {elsewhere, N}) end), {noreply, N};
handled(idle, Client, N) -> gen_server:reply(Client, N), {noreply, N, 0};
handled(crash, _, N) -> error({crash, N});
handled(stop, _, N) -> {stop, {because, N}, N, N};
handled({ask, Name}, _, N) -> {reply, called(Name, at_once, 1), N};
handled(hibernate, _, N) -> {reply, N, N, hibernate};
handled(continue, Client, N) -> {noreply, N, {continue, Client}};
handled(at_once, _, N) -> {reply, N, N}.

handle_continue(Client, N) ->
    gen_server:reply(Client, {continued, N}),
    {noreply, N, 1}.

handle_cast({note, I, Request}, N) ->
    content({N, I, Request}),
    {noreply, N + I}.

handle_info({later, Client}, N) ->
    gen_server:reply(Client, later),
    {noreply, N, 1};
handle_info({told, From, I}, N) ->
    message(From, I),
    From ! {heard, self(), I},
    {noreply, N};
handle_info(Message, N) ->
    content(Message),
    {noreply, N}.
