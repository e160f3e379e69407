-module(witness_recorded_tree).
-moduledoc "A supervisor restarts workers that crash, while clients write to their names.".
-behaviour(supervisor).

-import(witness_recorded, [message/2, content/1, timeout/0, spawned/1, ended/2]).

-export([restarts/0, start_worker/2, worker/2, init/1]).

restarts() ->
    process_flag(trap_exit, true),
    {ok, Supervisor} = supervisor:start_link(?MODULE, self()),
    witness_recorded:either([[{spawn, Supervisor}, {message, Supervisor, {ack, Supervisor, {ok, Supervisor}}}]]),
    Me = self(),
    Clients = [spawned(fun() -> client(I, 30), Me ! {done, self()} end) || I <- [1, 2]],
    [receive {done, Client} = M -> message(Client, M) end || Client <- Clients],
    Ref = monitor(process, Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Ref, process, Supervisor, Reason} = Down -> content(Down), ended(Supervisor, Reason) end,
    receive {'EXIT', Supervisor, _} = Exit -> content(Exit) end,
    done.

init(Parent) ->
    witness_recorded:born(Parent),
    {ok, {#{strategy => one_for_all, intensity => 1000, period => 1},
          [#{id => Name, start => {?MODULE, start_worker, [self(), Name]}}
           || Name <- [recorded_left, recorded_right]]}}.

start_worker(Supervisor, Name) -> proc_lib:start_link(?MODULE, worker, [Supervisor, Name]).

worker(Supervisor, Name) ->
    witness_recorded:born(Supervisor),
    true = register(Name, self()),
    proc_lib:init_ack({ok, self()}),
    serve(Name, 0).

serve(Name, N) ->
    receive
        {get, From, _} = M ->
            message(From, M),
            From ! {got, self(), N},
            serve(Name, N + 1);
        {crash, From, I} = M ->
            message(From, M),
            case I rem 3 of
                0 -> exit({crashed, N});
                1 -> error(crashed);
                2 -> serve(Name, N)
            end
    end.

client(_, 0) -> ok;
client(I, N) ->
    Name = case N rem 2 of 0 -> recorded_left; 1 -> recorded_right end,
    case send(Name, {get, self(), N}) of
        sent -> receive {got, From, _} = M -> message(From, M) after 2 -> timeout() end;
        nobody -> ok
    end,
    N rem 5 =:= 0 andalso send(Name, {crash, self(), N + I}),
    client(I, N - 1).

send(Name, Msg) ->
    try Name ! Msg of _ -> sent catch error:badarg -> nobody end.
