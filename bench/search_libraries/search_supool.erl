-module(search_supool).
-moduledoc "Uses of supool (github.com/okeuday/supool): each must end well in each schedule.".
-behaviour(gen_server).

-export([uses/0, gets/0, workers_end/0, pool_ends/1]).
-export([start_link/0, init/1, handle_call/3, handle_cast/2]).

-doc "The functions that are searched, with their arguments, and whether they pass or fail.".
uses() -> [{gets, [], passed}, {workers_end, [], passed}, {pool_ends, [false], passed}, {pool_ends, [true], failed}].

-doc "Clients get workers in turn.".
gets() ->
    pool(),
    all([fun() -> answer = gen_server:call(supool:get(?MODULE), ask) end || _ <- lists:seq(1, 4)]).

-doc "A worker ends: the other ones are got, and then its successor.".
workers_end() ->
    pool(),
    Ask = fun() ->
        case supool:get(?MODULE) of
            undefined -> ok;
            Pid -> try gen_server:call(Pid, ask) catch exit:_ -> ok end
        end
    end,
    all([fun() -> exit(supool:get(?MODULE), kill) end, Ask, Ask, Ask]).

-doc """
The process that chooses ends, and is started again. A call that comes then may end its caller, and this process too: it has its name before
it knows of any worker. (`Strict`: a caller is not prepared for that.)
""".
pool_ends(Strict) ->
    pool(),
    Ref = monitor(process, ?MODULE),
    exit(whereis(?MODULE), kill),
    receive {'DOWN', Ref, process, _, killed} -> ok end,
    Get = fun Get() ->
        try supool:get(?MODULE) of
            undefined -> timer:sleep(1), Get();
            Worker -> Worker
        catch
            exit:_ when not Strict -> Get()
        end
    end,
    all([fun() -> answer = gen_server:call(Get(), ask) end || _ <- [1, 2]]),
    ok.

pool() ->
    {ok, _} = supool:start_link(?MODULE, 2, {undefined, {?MODULE, start_link, []}, permanent, brutal_kill, worker, [?MODULE]}),
    ok.

all(Funs) ->
    Started = [spawn_monitor(Fun) || Fun <- Funs],
    [receive {'DOWN', Ref, process, Pid, Reason} -> normal = Reason end || {Pid, Ref} <- Started],
    ok.

start_link() -> gen_server:start_link(?MODULE, [], []).

init([]) -> {ok, []}.

handle_call(ask, _, State) -> {reply, answer, State}.

handle_cast(_, State) -> {noreply, State}.
