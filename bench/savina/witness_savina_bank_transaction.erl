-module(witness_savina_bank_transaction).
-moduledoc """
A teller, the benchmark's main process, asks for `transactions` transfers between `accounts` accounts, each a
`gen_server`. It casts `credit` to the account that pays, which calls the one that receives (`debit`) and then notifies
the teller. The seed is 123456. The receiver is always behind the payer in the order of accounts, so no two wait for each other.

Savina's amounts and balances are floating-point numbers that are too large to be added to. Ours are whole
cents: 1,000 times `nextDouble()` is `100000 div (next + 1)` cents. Every account starts with the same balance.

Verified: no money was made or lost; the sum of all balances, each weighted with the account's place, is that of
the transfers that were drawn; all transactions were answered, and accounts have paid and received as
often.
""".
-behaviour(witness_savina).
-behaviour(gen_server).

-export([sets/0, run/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-import(witness_savina_processes, [start_server/2, await/1, verify/3]).

-define(SEED, 123_456).
-define(INITIAL, 1_000_000_000).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{accounts => 1_000, transactions => 50_000},
      somns => #{accounts => 1_000, transactions => 100_000},
      small => #{accounts => 10, transactions => 60}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{accounts := N, transactions := Transactions}) ->
    N >= 10 orelse exit(too_few_accounts),
    Accounts = list_to_tuple([start_server(?MODULE, ?INITIAL) || _ <- lists:seq(1, N)]),
    Drawn = transfer(Transactions, Accounts, ?SEED, 0),
    replies(Transactions),
    Balances = [gen_server:call(Account, close, infinity) || Account <- tuple_to_list(Accounts)],
    await(N),
    verify(replies, 0, pending()),
    verify(money, N * ?INITIAL, lists:sum([Balance || {Balance, _, _} <- Balances])),
    verify(paid, {Transactions, Transactions}, {lists:sum([P || {_, P, _} <- Balances]),
                                                lists:sum([R || {_, _, R} <- Balances])}),
    Weighted = [Place * (Balance - ?INITIAL) || {Place, {Balance, _, _}} <- lists:enumerate(Balances)],
    verify(weighted, Drawn, lists:sum(Weighted)),
    #{transactions => Transactions, weighted => Drawn}.

%% The sum of amounts, each times the number of places between payer and receiver.
transfer(0, _, _, Sum) -> Sum;
transfer(Left, Accounts, R0, Sum) ->
    N = tuple_size(Accounts),
    R1 = witness_savina_random:next(R0),
    R2 = witness_savina_random:next(R1),
    R3 = witness_savina_random:next(R2),
    From = R1 rem (N div 10 * 8),
    Distance = max(1, R2 rem (N - From)),
    Amount = 100_000 div (R3 + 1),
    gen_server:cast(element(From + 1, Accounts), {credit, Amount, element(From + Distance + 1, Accounts), self()}),
    transfer(Left - 1, Accounts, R3, Sum + Distance * Amount).

replies(0) -> ok;
replies(Left) -> receive done -> replies(Left - 1) end.

pending() -> receive done -> 1 after 0 -> 0 end.

%% Its balance, and how often it has paid and received. A hundred transfers may wait for each account: on the
%% heap, each garbage collection would scan all of them.
-doc false.
init(Initial) ->
    process_flag(message_queue_data, off_heap),
    {ok, {Initial, 0, 0}}.

-doc false.
handle_call({debit, Amount}, _, {Balance, Paid, Received}) ->
    {reply, ok, {Balance + Amount, Paid, Received + 1}};
handle_call(close, _, State) ->
    {stop, normal, State, State}.

-doc false.
handle_cast({credit, Amount, Recipient, Teller}, {Balance, Paid, Received}) ->
    ok = gen_server:call(Recipient, {debit, Amount}, infinity),
    Teller ! done,
    {noreply, {Balance - Amount, Paid + 1, Received}}.
