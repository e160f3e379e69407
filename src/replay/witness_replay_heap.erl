-module(witness_replay_heap).
-moduledoc """
The heap limits of replayed processes.

*Limits of the program.* A limit that the program sets (`max_heap_size`) ends no process here: the size of a heap, and the times
of its collections, differ from those in the recorded VM. The flag returns the value that it was set to (`flag/2`). If a limit
may have ended the process, that explains the end `killed` (`is_limited/1`).

*Bounds of the replay.* A process that has nothing left but an end that may be a signal's may go on forever, and allocate. Then
it gets a real limit (`bound/1`): slightly more than the program's own, or than twice the size that it has by then. If the VM
kills the process at that limit, no report comes from it, but its row in a table remains. The controller finds the row
(`take_bounded/1`). What the process would have sent after that is not known, and is reported as such.
""".

-export([start/1, initial_limit/0, initial_limit/2, flag/2, min_heap_size/2, set_default/1, bound/1, is_limited/1,
         take_bounded/1, unbound/0]).

-export_type([limit/0]).

-doc "The flag of a process, with all its keys.".
-type limit() :: #{size := non_neg_integer(), kill := boolean(), atom() => term()}.

-define(BOUND, witness_replay_bound).

%% Words that the replay may use of a heap in addition to the program's; words that a process without a limit may use in
%% addition.
-define(MARGIN_WORDS, 262_144).
-define(SPARE_WORDS, 4_194_304).

-doc "Called before any process starts, with the default limit of the recorded VM.".
-spec start(limit() | none) -> ok.
start(Default) ->
    _ = ets:new(?BOUND, [named_table, public]),
    ok = persistent_term:put({?MODULE, ever}, false),
    defaults(case Default of none -> erlang:system_info(max_heap_size); _ -> Default end).

defaults(Limit) ->
    _ = [persistent_term:put({?MODULE, ever}, true) || kills(Limit), not persistent_term:get({?MODULE, ever})],
    persistent_term:put(?MODULE, Limit).

default() -> persistent_term:get(?MODULE).

kills(#{kill := Kill, size := Size}) -> Kill andalso Size > 0.

%% A missing key has the value of the default.
limit(Size) when is_integer(Size) -> (default())#{size => Size};
limit(Given) -> maps:merge(default(), maps:with([size, kill, error_logger, include_shared_binaries], Given)).

-doc "The limit of a process that is spawned without one.".
-spec initial_limit() -> limit().
initial_limit() -> default().

-doc "The limit of a process that this function of `erlang` spawns. The recorded VM has accepted its arguments.".
-spec initial_limit(atom(), [term()]) -> limit().
initial_limit(Function, Args) ->
    case [Given || {max_heap_size, Given} <- options(Function, Args)] of
        [] -> default();
        Given -> limit(lists:last(Given))
    end.

options(spawn_opt, Args) -> lists:last(Args);
options(spawn_request, [Fun, Options]) when is_function(Fun) -> Options;
options(spawn_request, [_, Fun, Options]) when is_function(Fun) -> Options;
options(spawn_request, [_, _, Args, Options]) when is_list(Args) -> Options;
options(spawn_request, [_, _, _, _, Options]) -> Options;
options(_, _) -> [].

-doc "The program has set the default limit of processes that are spawned from then on.".
-spec set_default(term()) -> ok.
set_default(Given) -> defaults(limit(Given)).

-doc "A process sets the flag: the previous value, or an exception as in the VM.".
-spec flag(term(), witness_replay_process:process()) -> {limit(), witness_replay_process:process()}.
flag(Given, P0) ->
    ok = check_limit(Given),
    P = witness_replay_process:set_heap(limit(Given), P0),
    _ = witness_replay_process:may_be_killed(P) andalso bound(P),
    {witness_replay_process:heap(P0), P}.

%% The VM checks whether it is a limit. Without `kill' it has no effect.
check_limit(Size) when is_integer(Size) -> set(#{size => Size, kill => false, error_logger => false});
check_limit(#{} = Given) ->
    case lists:all(fun is_boolean/1, maps:values(maps:with([kill, error_logger], Given))) of
        true -> set(Given#{kill => false, error_logger => false});
        false -> set(Given)
    end;
check_limit(Given) -> set(Given).

set(Given) ->
    _ = erlang:process_flag(max_heap_size, Given),
    ok.

-doc "A process sets its minimal heap size. The VM compares that with the program's limit, and not with the bound of the replay.".
-spec min_heap_size(term(), witness_replay_process:process()) -> term().
min_heap_size(Given, P) ->
    ok = check_limit(witness_replay_process:heap(P)),
    try
        erlang:process_flag(min_heap_size, Given)
    after
        _ = witness_replay_process:may_be_killed(P) andalso bound(P)
    end.

-doc "The caller has nothing left but its end, and may go on forever.".
-spec bound(witness_replay_process:process()) -> ok.
bound(P) ->
    Limit = witness_replay_process:heap(P),
    [{_, Now}, {_, Collection}] = process_info(self(), [total_heap_size, garbage_collection]),
    {_, Least} = lists:keyfind(min_heap_size, 1, Collection),
    {Size, Shared} = case kills(Limit) of
        true ->
            #{size := Given} = Limit,
            {max(Now, Given + Given div 4) + ?MARGIN_WORDS, maps:get(include_shared_binaries, Limit, false)};
        false -> {2 * (Now + binaries()) + ?SPARE_WORDS, true}
    end,
    true = ets:insert(?BOUND, {self(), witness_replay_process:compact(P)}),
    set(#{size => max(Size, Least), kill => true, error_logger => false, include_shared_binaries => Shared}).

binaries() ->
    {binary, Binaries} = process_info(self(), binary),
    lists:sum([Bytes || {_, Bytes, _} <- Binaries]) div erlang:system_info(wordsize).

-doc "Whether a limit may have ended the process.".
-spec is_limited(witness_replay_process:process()) -> boolean().
is_limited(P) -> kills(witness_replay_process:heap(P)) orelse persistent_term:get({?MODULE, ever}).

-doc """
The recorded process of this live one, if that has a bound and has not come to its end by itself. Called when it has ended, or
is to be killed.
""".
-spec take_bounded(pid()) -> witness_replay_process:process() | none.
take_bounded(Proxy) ->
    case ets:take(?BOUND, Proxy) of
        [{_, P}] -> P;
        [] -> none
    end.

-doc "The caller comes to its end by itself.".
-spec unbound() -> ok.
unbound() ->
    true = ets:delete(?BOUND, self()),
    ok.
