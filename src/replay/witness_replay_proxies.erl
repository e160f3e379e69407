-module(witness_replay_proxies).
-moduledoc """
The proxies: the live process of each recorded process, and the owner of each alias.

A proxy is a live process with its numbers (`m:witness_replay_backpressure`). The first process that spawns a recorded process, or
sends to it, makes its proxy. So a proxy may be there, and get messages, before the process starts: it waits for the function to
run (`run/3`). Nothing is kept of a process that has ended.

*Invariant:* a process without a row has ended, or was not needed yet. A bit for each process says that it has ended. `delete/2`
sets the bit before it deletes the rows. So a process that finds no row learns from the bit, read afterwards, what that means.
""".

-export([start/1, proxy/1, lookup/1, any/1, insert/3, run/3, delete/2, receiver/1, alias/2, alias_owner/1, owner/1, forget/1]).

-export_type([proxy/0, flow/0]).

-doc "A live process, and its numbers.".
-type proxy() :: {pid(), flow()}.

-doc "The two numbers of a process, first 0. Only `m:witness_replay_backpressure` knows what they say.".
-type flow() :: atomics:atomics_ref().

-define(PROXIES, witness_replay_proxies).
-define(PIDS, witness_replay_pids).
-define(ALIASES, witness_replay_aliases).

-define(FLOW_NUMBERS, 2).

%% So many bits of a word are used: with one more the values would be bignums, which need memory.
-define(WORD_BITS, 59).

%% Rows that are read at a time.
-define(BATCH_ROWS, 1000).

-doc "Makes the tables, for processes up to this one.".
-spec start(non_neg_integer()) -> ok.
start(Last) ->
    _ = [ets:new(Table, [named_table, public, {read_concurrency, true}]) || Table <- [?PROXIES, ?PIDS, ?ALIASES]],
    persistent_term:put(?MODULE, atomics:new(Last div ?WORD_BITS + 1, [])).

-doc "The live process of a recorded one, made when it is needed first. `none`: it has ended.".
-spec proxy(pos_integer()) -> proxy() | none.
proxy(Id) ->
    case lookup(Id) of
        {_, _} = Proxy -> Proxy;
        not_begun -> make(Id);
        ended -> none
    end.

-doc "The same, but nothing is made.".
-spec lookup(pos_integer()) -> proxy() | not_begun | ended.
lookup(Id) ->
    case ets:lookup(?PROXIES, Id) of
        [{_, Pid, Flow}] -> {Pid, Flow};
        [] -> case has_ended(Id) of true -> ended; false -> not_begun end
    end.

%% It may have started, and ended, meanwhile.
make(Id) ->
    Pid = spawn(fun wait_to_run/0),
    Flow = atomics:new(?FLOW_NUMBERS, []),
    Row = {Id, Pid, Flow},
    case ets:insert_new(?PROXIES, Row) andalso not has_ended(Id) of
        true -> {Pid, Flow};
        false ->
            true = ets:delete_object(?PROXIES, Row),
            true = exit(Pid, kill),
            proxy(Id)
    end.

%% What a live process does first.
-spec wait_to_run() -> no_return().
wait_to_run() -> receive {witness_run, Run, Args} -> apply(Run, Args) end.

-doc "Whether the test holds for the numbers of any process that is there from the start of the search to its end.".
-spec any(fun((flow()) -> boolean())) -> boolean().
any(Is) ->
    true = ets:safe_fixtable(?PROXIES, true),
    Found = any(Is, ets:select(?PROXIES, [{{'_', '_', '$1'}, [], ['$1']}], ?BATCH_ROWS)),
    true = ets:safe_fixtable(?PROXIES, false),
    Found.

any(_, '$end_of_table') -> false;
any(Is, {Flows, Next}) -> lists:any(Is, Flows) orelse any(Is, ets:select(Next)).

-doc "A process is about to start.".
-spec insert(pos_integer(), pid(), proxy()) -> ok.
insert(Id, Pid, Proxy) ->
    true = ets:insert(?PIDS, {Pid, Id, Proxy}),
    ok.

-doc "A proxy runs this function with these arguments, and ends with it.".
-spec run(pid(), fun((...) -> no_return()), [term()]) -> ok.
run(Pid, Run, Args) ->
    Pid ! {witness_run, Run, Args},
    ok.

-doc "A process has ended.".
-spec delete(pos_integer(), pid()) -> ok.
delete(Id, Pid) ->
    ok = mark_ended(Id, persistent_term:get(?MODULE)),
    true = ets:delete(?PIDS, Pid),
    true = ets:delete(?PROXIES, Id),
    ok.

%% Other processes may set other bits of the word, or the same one, meanwhile.
mark_ended(Id, Ended) ->
    At = Id div ?WORD_BITS + 1,
    Word = atomics:get(Ended, At),
    case atomics:compare_exchange(Ended, At, Word, Word bor (1 bsl (Id rem ?WORD_BITS))) of
        ok -> ok;
        _ -> mark_ended(Id, Ended)
    end.

has_ended(Id) -> atomics:get(persistent_term:get(?MODULE), Id div ?WORD_BITS + 1) band (1 bsl (Id rem ?WORD_BITS)) =/= 0.

-doc "The process that has this recorded pid, and its live process. `none`: it is outside.".
-spec receiver(pid()) -> {pos_integer(), proxy() | none} | none.
receiver(Pid) ->
    case ets:lookup(?PIDS, Pid) of
        [{_, Id, Proxy}] -> {Id, Proxy};
        [] ->
            case witness_replay_process_table:id(Pid) of
                none -> none;
                Id -> {Id, proxy(Id)}
            end
    end.

-doc """
A process has made an alias. The result is what to delete when it ends, if that is new. All aliases of a process share a row.
""".
-spec alias(reference(), pos_integer()) -> [term()].
alias(Ref, Id) ->
    Owner = owner(Ref),
    New = ets:insert_new(?ALIASES, {Owner, Id}),
    %% If the row belonged to another process, the caller would fail here, and its end would be reported.
    Id = alias_owner(Ref),
    [Owner || New].

-doc "The process that owns an alias, as long as it is alive.".
-spec alias_owner(reference()) -> pos_integer() | none.
alias_owner(Ref) ->
    case ets:lookup(?ALIASES, owner(Ref)) of
        [{_, Id}] -> Id;
        [] -> none
    end.

-doc """
The part that all aliases of a process have in common, and no other reference has: the VM puts the process into the last two of
their five words. For any other reference the result is the reference itself.
""".
-spec owner(reference()) -> binary() | reference().
owner(Ref) ->
    case term_to_binary(Ref) of
        <<131, 90, 5:16, Rest/binary>> -> binary:part(Rest, byte_size(Rest), -8);
        _ -> Ref
    end.

-doc "A process that has made aliases has ended.".
-spec forget([term()]) -> ok.
forget(Owners) -> lists:foreach(fun(Owner) -> ets:delete(?ALIASES, Owner) end, Owners).
