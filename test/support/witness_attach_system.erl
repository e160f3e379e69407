-module(witness_attach_system).
-moduledoc """
An application to attach to: two supervisors, one below the other. A driver keeps their workers busy and crashes them; the
supervisor starts them again. Workers are numbered in a table in the order in which they began.
""".
-behaviour(application).
-behaviour(supervisor).

-export([start/0, finish/1, drive/2, workers/1, forget/2, began/2]).
-export([start/2, stop/1, init/1]).

-define(APP, ?MODULE).

-doc "Starts the application with so many workers; the table of its workers.".
start() ->
    Table = ets:new(workers, [ordered_set, public]),
    ok = application:load({application, ?APP, [{mod, {?MODULE, Table}}, {modules, []}, {registered, []},
                                               {applications, [kernel, stdlib]}, {env, []}]}),
    ok = application:start(?APP),
    [{ok, _} = supervisor:start_child(witness_attach_pool, []) || _ <- lists:seq(1, 6)],
    Table.

finish(Table) ->
    ok = application:stop(?APP),
    ok = application:unload(?APP),
    true = ets:delete(Table),
    ok.

start(_, Table) -> supervisor:start_link({local, witness_attach_top}, ?MODULE, {top, Table}).

stop(_) -> ok.

init({top, Table}) ->
    {ok, {#{intensity => 1_000_000, period => 1},
          [#{id => pool, type => supervisor,
             start => {supervisor, start_link, [{local, witness_attach_pool}, ?MODULE, {pool, Table}]}}
           | [#{id => N, start => {witness_attach_worker, start_link, [Table]}} || N <- [1, 2]]]}};
init({pool, Table}) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 1_000_000, period => 1},
          [#{id => worker, start => {witness_attach_worker, start_link, [Table]}}]}}.

-doc """
A round of messages to all workers, of which one then crashes. `Last`: the number of each worker's last message. Answers
are not waited for.
""".
drive(Table, Last) ->
    Workers = workers(Table),
    Next = #{W => hit(W, maps:get(W, Last, 0)) || W <- Workers},
    _ = [lists:nth(rand:uniform(length(Workers)), Workers) ! crash || Workers =/= []],
    answers(),
    Next.

hit(W, Last) ->
    W ! {hit, self(), Last + 1},
    W ! {hit, self(), Last + 2},
    Last + 2.

answers() -> receive {done, _} -> answers() after 0 -> ok end.

-doc "The workers that are alive, as far as the supervisors know.".
workers(Table) -> [P || {_, P} <- ets:tab2list(Table), is_process_alive(P)].

-doc "Forgets the workers that have ended and had begun before a moment.".
forget(Before, Table) ->
    Old = ets:select(Table, [{{'$1', '$2'}, [{'<', '$1', Before}], ['$_']}]),
    lists:foreach(fun({At, P}) -> is_process_alive(P) orelse ets:delete(Table, At) end, Old).

-doc "The workers that have begun between two moments (`erlang:unique_integer([monotonic])`).".
began({From, To}, Table) -> ets:select(Table, [{{'$1', '$2'}, [{'>', '$1', From}, {'<', '$1', To}], ['$2']}]).
