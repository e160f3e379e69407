-module(witness_recorded_checked).
-moduledoc """
A program with processes that do the same in every run. The order is the same whether messages count when they come or when they
are taken. It has a server, and processes that were spawned with funs, by name and with timeouts.
""".
-behaviour(gen_server).

-export([run/0, forever/0, large/0, killed/0, killed/1, long/1, long/2]).
-export([init/1, handle_call/3, handle_cast/2, named/1, echo/0, waiting/1, sized/2]).

run() ->
    {ok, Server} = gen_server:start_link(?MODULE, 0, []),
    [1, 2, 3] = [gen_server:call(Server, add) || _ <- [1, 2, 3]],
    Self = self(),
    Echo = spawn(fun echo/0),
    {Fun, Ref} = spawn_monitor(fun() -> receive {N, From} -> From ! {twice, 2 * N} end end),
    Named = spawn(?MODULE, named, [Self]),
    receive {ready, Named} -> ok end,
    [begin To ! {N, Self}, receive {_, 2} -> ok; {_, 1} -> ok end end || {To, N} <- [{Echo, 1}, {Fun, 1}, {?MODULE, 1}]],
    receive {'DOWN', Ref, process, Fun, normal} -> ok end,
    Echo ! stop,
    ?MODULE ! stop,
    ok = gen_server:stop(Server),
    ok.

forever() ->
    Echo = spawn(?MODULE, echo, []),
    Echo ! {1, self()},
    receive {_, 1} -> io:format("running~n") end,
    receive never -> ok end.

%% Too large for a birth.
large() ->
    {Pid, Ref} = spawn_monitor(?MODULE, sized, [lists:seq(1, 5000), self()]),
    receive {sized, 5000} -> ok end,
    receive {'DOWN', Ref, process, Pid, normal} -> ok end.

sized(List, From) -> From ! {sized, length(List)}.

long(Times) ->
    says_too_much(Times),
    receive after 1500 -> ok end.

%% Until this file is there.
long(Times, File) ->
    says_too_much(Times),
    until_there(File).

until_there(File) ->
    case filelib:is_file(File) of
        true -> ok;
        false -> receive after 20 -> until_there(File) end
    end.

%% One that was there before anything is forgotten, and others that come and go. The last of them says too much.
says_too_much(Times) ->
    Old = spawn(?MODULE, echo, []),
    [begin
         New = spawn(?MODULE, echo, []),
         Load = {N, binary:copy(<<"a">>, 500)},
         [begin To ! {Load, self()}, receive {_, Load} -> ok end end || To <- [Old, New]],
         New ! stop
     end || N <- lists:seq(1, Times)],
    Last = spawn(?MODULE, named, [self()]),
    receive {ready, Last} -> ok end,
    Last ! {0, self()},
    receive {named, 0} -> ok end,
    Last ! stop,
    Old ! stop,
    ok.

%% What was written by then is all that there is: what is flushed each second, also where a thread stands still for two.
killed() ->
    Echo = spawn(?MODULE, echo, []),
    [begin Echo ! {N, self()}, receive {_, N} -> ok end end || N <- lists:seq(1, 100)],
    receive after 5000 -> ok end,
    kill().

%% When this file is there.
killed(File) ->
    until_there(File),
    kill().

kill() ->
    Pid = os:getpid(),
    os:cmd("kill -9 " ++ Pid),
    receive never -> ok end.

echo() ->
    receive
        {N, From} ->
            From ! {echoed, N},
            echo();
        stop -> ok
    end.

named(From) ->
    true = register(?MODULE, self()),
    From ! {ready, self()},
    waiting(0).

waiting(Times) ->
    receive
        {N, From} -> From ! {named, N}, waiting(Times);
        stop -> ok
    after 60_000 -> waiting(Times + 1)
    end.

init(N) -> {ok, N}.

handle_call(add, _, N) -> {reply, N + 1, N + 1}.

handle_cast(_, N) -> {noreply, N}.
