-module(witness_sys_bank).
-moduledoc """
Accounts as processes, and tellers that move money between them at the same time: a withdrawal, and when it was
granted a deposit. A `careless` account 1 grants more than it has, once everything else is over.
""".
-export([main/2, account/3, teller/4]).

-spec main(pos_integer(), careful | careless) -> [ok].
main(Tellers, How) ->
    Accounts = [spawn(?MODULE, account, [Id, 100, How]) || Id <- lists:seq(1, 4)],
    Pids = [spawn_monitor(?MODULE, teller, [T, Accounts, 12, self()]) || T <- lists:seq(1, Tellers)],
    _ = [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Pids],
    _ = ask(hd(Accounts), {withdraw, 1000}),
    Total = lists:sum([ask(Account, balance) || Account <- Accounts]),
    [report(Account, Total) || Account <- Accounts].

report(Account, Total) -> Account ! {total, Total}, ok.

-spec account(pos_integer(), integer(), careful | careless) -> ok.
account(Id, Balance, How) ->
    receive
        {withdraw, From, Sum} when Sum =< Balance; How =:= careless, Id =:= 1, Sum =:= 1000 ->
            From ! {granted, self(), Sum},
            account(Id, Balance - Sum, How);
        {withdraw, From, Sum} ->
            From ! {refused, self(), Sum},
            account(Id, Balance, How);
        {deposit, From, Sum} ->
            From ! {granted, self(), Sum},
            account(Id, Balance + Sum, How);
        {balance, From} ->
            From ! {balance, self(), Balance},
            account(Id, Balance, How);
        {total, _} ->
            ok
    end.

-spec teller(pos_integer(), [pid()], pos_integer(), pid()) -> ok.
teller(T, Accounts, Rounds, _) ->
    _ = [move(pick(T + R, Accounts), pick(T * R + 1, Accounts), 10 * R) || R <- lists:seq(1, Rounds)],
    ok.

pick(N, Accounts) -> lists:nth(1 + N rem length(Accounts), Accounts).

move(From, To, Sum) ->
    case ask(From, {withdraw, Sum}) of
        granted -> granted = ask(To, {deposit, Sum}), ok;
        refused -> ok
    end.

ask(Account, balance) ->
    Account ! {balance, self()},
    receive {balance, Account, Balance} -> Balance end;
ask(Account, {What, Sum}) ->
    Account ! {What, self(), Sum},
    receive {Answer, Account, Sum} -> Answer end.
