-module(recipes).
-moduledoc """
A small system for each recipe of `docs/specifications.md`: `recipes:NAME(good)` does what the recipe `NAME.hml`
demands, and `recipes:NAME(bad)` does not.
""".
-behaviour(gen_server).

-export([request_reply/1, mutual_exclusion/1, at_most_n/1, released_before_exit/1, nothing_after_close/1, ordering/1,
         token_passing/1, restart_limit/1, idempotent_replies/1, absence/1]).
-export([answer_in_time/1, failures_in_a_period/1, approved_before/1, restart_intensity/1, rate/1,
         never_overdrawn/1, saved_before_told/1, access/1]).
-export([init/1, handle_call/3, handle_cast/2]).
-export([lock/1, dispatcher/2, borrower/2, writer/2, sink/1, node/2, keeper/1, worker/0, shop/1, login/1, check/2]).
-export([importer/1, cashier/1, restarter/1, sender/2, account/1, journal/1, files/1]).

-type variant() :: good | bad.

%% --- request and reply ---------------------------------------------------------

-spec request_reply(variant()) -> ok.
request_reply(Variant) ->
    {ok, Server} = gen_server:start(?MODULE, Variant, []),
    Calls = [gen_server:send_request(Server, {double, N}) || N <- [1, 2, 3]],
    _ = [gen_server:wait_response(Call, 100) || Call <- Calls],
    gen_server:stop(Server).

-doc false.
init(Variant) -> {ok, Variant}.

-doc false.
handle_call({double, 2}, _, {slow, bad} = State) -> timer:sleep(1_200), {reply, 4, State};
handle_call({double, 2}, _, bad) -> {noreply, bad};
handle_call({double, N}, _, Variant) -> {reply, 2 * N, Variant}.

-doc false.
handle_cast(_, Variant) -> {noreply, Variant}.

%% --- mutual exclusion ------------------------------------------------------------

-spec mutual_exclusion(variant()) -> stop.
mutual_exclusion(Variant) ->
    Lock = spawn(?MODULE, lock, [Variant]),
    Clients = [spawn_monitor(fun() -> hold(Lock) end) || _ <- [1, 2]],
    _ = [receive {'DOWN', Ref, process, _, _} -> ok end || {_, Ref} <- Clients],
    Lock ! stop.

hold(Lock) ->
    Lock ! {acquire, self()},
    receive granted -> Lock ! {release, self()} end.

%% The bad one waits until both clients have asked.
-doc false.
lock(good) ->
    receive
        {acquire, Client} ->
            Client ! granted,
            receive {release, Client} -> lock(good) end;
        stop -> ok
    end;
lock(bad) ->
    Clients = [receive {acquire, Client} -> Client end || _ <- [1, 2]],
    _ = [Client ! granted || Client <- Clients],
    receive stop -> ok end.

%% --- at most N in flight ---------------------------------------------------------

-spec at_most_n(variant()) -> ok.
at_most_n(Variant) ->
    Limit = case Variant of good -> 2; bad -> 3 end,
    {_, Ref} = spawn_monitor(?MODULE, dispatcher, [Limit, lists:seq(1, 6)]),
    receive {'DOWN', Ref, process, _, _} -> ok end.

-doc false.
dispatcher(Limit, Jobs) -> dispatch(Limit, [], Jobs).

%% A worker begins when it is told to, so that nothing is done before the limit is reached.
dispatch(Limit, InFlight, [Job | Jobs]) when length(InFlight) < Limit ->
    Worker = spawn(fun() -> receive {job, From, N} -> receive go -> From ! {done, N} end end end),
    Worker ! {job, self(), Job},
    dispatch(Limit, InFlight ++ [Worker], Jobs);
dispatch(Limit, [Worker | InFlight], Jobs) ->
    Worker ! go,
    receive {done, _} -> dispatch(Limit, InFlight, Jobs) end;
dispatch(_, [], []) -> ok.

%% --- released before exit --------------------------------------------------------

-spec released_before_exit(variant()) -> ok.
released_before_exit(Variant) ->
    {Borrower, Ref} = spawn_monitor(?MODULE, borrower, [Variant, self()]),
    _ = [Borrower ! {lent, Thing} || Thing <- [book, lamp]],
    receive {'DOWN', Ref, process, _, _} -> ok end.

-doc false.
borrower(Variant, Lender) ->
    receive {lent, book} -> Lender ! {back, book} end,
    receive {lent, lamp} when Variant =:= bad -> exit(lamp_is_broken);
            {lent, lamp} -> Lender ! {back, lamp} end.

%% --- no message after close ------------------------------------------------------

-spec nothing_after_close(variant()) -> ok.
nothing_after_close(Variant) ->
    Connections = [spawn(fun connection/0) || _ <- [1, 2]],
    {_, Ref} = spawn_monitor(?MODULE, writer, [Variant, Connections]),
    receive {'DOWN', Ref, process, _, _} -> ok end.

connection() -> receive close -> ok end.

-doc false.
writer(Variant, Connections) ->
    _ = [begin C ! {data, 1}, C ! close end || C <- Connections],
    _ = [hd(Connections) ! {data, 2} || Variant =:= bad],
    ok.

%% --- ordering --------------------------------------------------------------------

-spec ordering(variant()) -> ok.
ordering(Variant) ->
    {Sink, Ref} = spawn_monitor(?MODULE, sink, [10]),
    Left = case Variant of good -> [1, 2, 3, 4, 5]; bad -> [1, 2, 4, 3, 5] end,
    _ = [spawn(fun() -> [Sink ! {item, Source, N} || N <- Items] end) ||
         {Source, Items} <- [{left, Left}, {right, [1, 2, 3, 4, 5]}]],
    receive {'DOWN', Ref, process, _, _} -> ok end.

-doc false.
sink(0) -> ok;
sink(Items) -> receive {item, _, _} -> sink(Items - 1) end.

%% --- token passing ---------------------------------------------------------------

-spec token_passing(variant()) -> ok.
token_passing(Variant) ->
    Third = spawn(?MODULE, node, [false, good]),
    Second = spawn(?MODULE, node, [false, Variant]),
    {First, Ref} = spawn_monitor(?MODULE, node, [true, good]),
    _ = [Node ! {next, Next} || {Node, Next} <- [{First, Second}, {Second, Third}, {Third, First}]],
    receive {'DOWN', Ref, process, _, _} -> ok end,
    _ = [Node ! stop || Node <- [Second, Third]],
    ok.

%% The node that begins with the token lets it go around three times, and keeps it.
-doc false.
node(true, _) ->
    receive {next, Next} -> ok end,
    _ = [begin Next ! token, receive token -> ok end end || _ <- [1, 2, 3]],
    ok;
node(false, Variant) ->
    receive {next, Next} -> pass(Next, Variant) end.

pass(Next, Variant) ->
    receive
        token ->
            Next ! token,
            _ = [Next ! token || Variant =:= bad],
            pass(Next, good);
        stop -> ok
    end.

%% --- restart limits --------------------------------------------------------------

-spec restart_limit(variant()) -> ok.
restart_limit(Variant) ->
    Restarts = case Variant of good -> 2; bad -> 3 end,
    {_, Ref} = spawn_monitor(?MODULE, keeper, [Restarts]),
    receive {'DOWN', Ref, process, _, _} -> ok end.

-doc false.
keeper(Restarts) ->
    {_, Ref} = spawn_monitor(?MODULE, worker, []),
    receive
        {'DOWN', Ref, process, _, _} when Restarts > 0 -> keeper(Restarts - 1);
        {'DOWN', Ref, process, _, Reason} -> exit({gave_up, Reason})
    end.

-doc false.
worker() -> exit(crashed).

%% --- idempotent replies ----------------------------------------------------------

-spec idempotent_replies(variant()) -> stop.
idempotent_replies(Variant) ->
    Shop = spawn(?MODULE, shop, [Variant]),
    _ = [begin Shop ! {buy, self(), Id}, receive {answer, Id, _} -> ok end end || Id <- [1, 2, 1]],
    Shop ! stop.

-doc false.
shop(Variant) -> sell(Variant, #{}, 1).

sell(Variant, Sold, Seat) ->
    receive
        {buy, Client, Id} when Variant =:= good, is_map_key(Id, Sold) ->
            Client ! {answer, Id, {sold, map_get(Id, Sold)}},
            sell(Variant, Sold, Seat);
        {buy, Client, Id} ->
            Client ! {answer, Id, {sold, Seat}},
            sell(Variant, Sold#{Id => Seat}, Seat + 1);
        stop -> ok
    end.

%% --- absence ---------------------------------------------------------------------

-spec absence(variant()) -> ok.
absence(Variant) ->
    {_, Ref} = spawn_monitor(?MODULE, login, [Variant]),
    receive {'DOWN', Ref, process, _, _} -> ok end.

-doc false.
login(Variant) ->
    Log = spawn(fun() -> receive {log, #{result := _}} -> ok end end),
    Log ! {log, #{user => ann}},
    {_, Ref} = spawn_monitor(?MODULE, check, [Log, #{user => ann, password => "secret"}]),
    receive {'DOWN', Ref, process, _, _} -> ok end,
    _ = [Log ! {log, #{user => ann, password => "secret"}} || Variant =:= bad],
    Log ! {log, #{result => welcome}},
    ok.

-doc false.
check(Log, #{user := User}) -> Log ! {log, #{checked => User}}.

%% --- answer in time --------------------------------------------------------------

-spec answer_in_time(variant()) -> ok.
answer_in_time(Variant) ->
    {ok, Server} = gen_server:start(?MODULE, {slow, Variant}, []),
    _ = [gen_server:call(Server, {double, N}) || N <- [1, 2, 3]],
    gen_server:stop(Server).

%% --- failures in a period --------------------------------------------------------

-spec failures_in_a_period(variant()) -> ok.
failures_in_a_period(Variant) -> run(importer, [Variant]).

%% The good one gives up after the third failure.
-doc false.
importer(Variant) ->
    Log = spawn(fun() -> receive stop -> ok end end),
    _ = [Log ! {failed, Line} || Line <- case Variant of good -> [2, 5, 6]; bad -> [2, 5, 6, 8] end],
    Log ! stop.

%% --- approved before -------------------------------------------------------------

-spec approved_before(variant()) -> ok.
approved_before(Variant) ->
    {Cashier, Ref} = spawn_monitor(?MODULE, cashier, [Variant]),
    _ = [Cashier ! Message || Message <- [{approved, 1}, {pay, 1}, {pay, 2}, stop]],
    receive {'DOWN', Ref, process, _, _} -> ok end.

-doc false.
cashier(Variant) -> pay(Variant, [], spawn(fun() -> receive stop -> ok end end)).

pay(Variant, Approved, Shop) ->
    receive
        {approved, Order} -> pay(Variant, [Order | Approved], Shop);
        {pay, Order} ->
            _ = [Shop ! {paid, Order} || Variant =:= bad orelse lists:member(Order, Approved)],
            pay(Variant, Approved, Shop);
        stop -> Shop ! stop
    end.

%% --- restart intensity -----------------------------------------------------------

-spec restart_intensity(variant()) -> ok.
restart_intensity(Variant) -> run(restarter, [case Variant of good -> 3; bad -> 4 end]).

-doc false.
restarter(0) -> ok;
restarter(Starts) ->
    {_, Ref} = spawn_monitor(?MODULE, worker, []),
    receive {'DOWN', Ref, process, _, _} -> restarter(Starts - 1) end.

%% --- rate ------------------------------------------------------------------------

-spec rate(variant()) -> ok.
rate(Variant) ->
    Sink = spawn(fun() -> receive stop -> ok end end),
    ok = run(sender, [Sink, Variant]),
    Sink ! stop,
    ok.

%% The good one waits after each message.
-doc false.
sender(Sink, Variant) ->
    _ = [begin
             Sink ! {data, N},
             Variant =:= bad orelse timer:sleep(120)
         end || N <- [1, 2, 3, 4]],
    ok.

%% --- never overdrawn -------------------------------------------------------------

-spec never_overdrawn(variant()) -> ok.
never_overdrawn(Variant) ->
    {Account, Ref} = spawn_monitor(?MODULE, account, [Variant]),
    _ = [Account ! Message || Message <- [{deposit, 70}, {withdraw, 50}, {deposit, 10}, {withdraw, 40}, stop]],
    receive {'DOWN', Ref, process, _, _} -> ok end.

-doc false.
account(Variant) -> book(Variant, 0, spawn(fun() -> receive stop -> ok end end)).

book(Variant, Balance, Till) ->
    receive
        {deposit, N} -> book(Variant, Balance + N, Till);
        {withdraw, N} when Variant =:= good, N > Balance -> Till ! refused, book(Variant, Balance, Till);
        {withdraw, N} -> Till ! {paid, N}, book(Variant, Balance - N, Till);
        stop -> Till ! stop
    end.

run(Function, Args) ->
    {_, Ref} = spawn_monitor(?MODULE, Function, Args),
    receive {'DOWN', Ref, process, _, _} -> ok end.

%% --- saved before it is told ------------------------------------------------------

-spec saved_before_told(variant()) -> ok.
saved_before_told(Variant) ->
    {Journal, Ref} = spawn_monitor(?MODULE, journal, [Variant]),
    _ = [begin
        Journal ! {save, self(), Item},
        receive {saved, Item} -> ok end
    end || Item <- [~"one\n", ~"two\n"]],
    Journal ! stop,
    receive {'DOWN', Ref, process, Journal, _} -> ok end.

-doc false.
-spec journal(variant()) -> ok.
journal(Variant) ->
    Name = filename:join(os:getenv("TMPDIR", "/tmp"), ["journal-", os:getpid()]),
    {ok, File} = file:open(Name, [write, raw]),
    ok = record(Variant, File),
    ok = file:close(File),
    ok = file:delete(Name).

record(Variant, File) ->
    receive
        {save, Client, Item} ->
            ok = file:write(File, Item),
            _ = [ok = file:sync(File) || Variant =:= good],
            Client ! {saved, Item},
            record(Variant, File);
        stop -> ok
    end.

%% --- access -----------------------------------------------------------------------

-spec access(variant()) -> ok.
access(Variant) ->
    {Server, Ref} = spawn_monitor(?MODULE, files, [Variant]),
    _ = [Server ! Message || Message <- [{login, ann}, {login, bob}, {open, ann, plan}]],
    contents = read(Server, ann, plan),
    Server ! {logout, ann},
    _ = read(Server, ann, plan),
    Server ! stop,
    receive {'DOWN', Ref, process, Server, _} -> ok end.

read(Server, User, File) ->
    Server ! {read, self(), User, File},
    receive {Answer, User, File} -> Answer end.

-doc false.
-spec files(variant()) -> ok.
files(Variant) -> files(Variant, #{}).

%% The bad one keeps the files of a user that has left.
files(Variant, Open) ->
    receive
        {login, User} -> files(Variant, Open#{User => []});
        {logout, User} when Variant =:= good -> files(Variant, maps:remove(User, Open));
        {logout, _} -> files(Variant, Open);
        {open, User, File} when is_map_key(User, Open) -> files(Variant, Open#{User := [File | map_get(User, Open)]});
        {read, From, User, File} ->
            From ! {case lists:member(File, maps:get(User, Open, [])) of true -> contents; false -> denied end, User, File},
            files(Variant, Open);
        stop -> ok
    end.
