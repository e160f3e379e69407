-module(witness_trace_native_reader).
-moduledoc """
For tests: a session of `m:witness_trace_native` in which the caller reads all partitions.
""".

-export([flush/0, open/1, session/1, born/2, spawned/5, read/2, take/1, close/1, ended/1, partition/2, partitions/1, children/1,
         events/1,
         status/2, handle/2, unread/2, resources_left/1]).
-export_type([reader/0]).

-type partition() :: #{child := pid(), grouped := boolean(), held := boolean(), raw := term(),
                       status := witness_trace_native:status(), batches := [[witness_event:event()]]}.
-type reader() :: #{session := witness_trace_native:session(), launcher := pid(),
                    births := witness_trace_native:status(), ended := boolean(),
                    open := [{witness_trace_native:partition(), partition()}], done := [partition()]}.

-define(PATIENCE, 20_000).
%% Less than the limit of a suite. What goes, goes within a second, on a machine that does not stand still.
-define(GONE_MS, 60_000).

-doc "Opens a session in which the children of a launcher are traced.".
-spec open(map()) -> reader().
open(Options) ->
    Session = witness_trace_native:open(maps:merge(#{names => [{'_', '_', '_', false}]}, Options)),
    Launcher = spawn_link(fun Launch() ->
        receive {launch, From, Start} -> From ! {launched, self(), Start()}, Launch() end
    end),
    ok = witness_trace_native:launcher(Session, Launcher),
    #{session => Session, launcher => Launcher, births => open, ended => false, open => [], done => []}.

session(#{session := Session}) -> Session.

-doc "Starts a process of the system.".
-spec born(reader(), fun(() -> term())) -> pid().
born(Reader, Fun) -> spawned(Reader, erlang, spawn, [Fun], fun(P) -> P end).

-doc "Starts what a function starts, in a process of which the children are traced.".
-spec spawned(reader(), module(), atom(), [term()], fun((term()) -> Result)) -> Result.
spawned(#{launcher := Launcher}, M, F, Args, Of) ->
    Launcher ! {launch, self(), fun() -> Of(apply(M, F, Args)) end},
    receive {launched, Launcher, Result} -> Result after ?PATIENCE -> error(not_launched) end.

-doc "Reads whenever there is something, until it is enough.".
-spec read(reader(), fun((reader()) -> boolean())) -> reader().
read(Reader, Enough) ->
    Read = take(Reader),
    case Enough(Read) of
        true -> Read;
        false ->
            receive witness_data -> read(Read, Enough)
            after ?PATIENCE -> error({not_told, Read})
            end
    end.

-doc "Takes all there is, from the births and from every partition.".
-spec take(reader()) -> reader().
take(Reader = #{session := Session, births := open, open := Open, ended := Ended}) ->
    {Batches, Status} = all(witness_trace_native:births(Session)),
    Items = lists:append(Batches),
    Born = [{H, #{child => C, grouped => G, held => Held, raw => Raw, status => open, batches => []}}
            || {birth, H, G, Held, C, Raw} <- Items],
    taken(Reader#{births := Status, open := Open ++ Born, ended := Ended orelse lists:member(ended, Items)});
take(Reader) ->
    taken(Reader).

taken(Reader = #{open := Open, done := Done}) ->
    Taken = [{H, taken(H, P)} || {H, P} <- Open],
    {Still, Ended} = lists:partition(fun({_, #{status := Status}}) -> Status =:= open end, Taken),
    Reader#{open := Still, done := lists:reverse([P || {_, P} <- Ended], Done)}.

taken(H, P = #{batches := Batches}) ->
    {Taken, Status} = all(H),
    P#{status := Status, batches := lists:reverse(Taken, Batches)}.

%% The batches until there is nothing more, and the last status.
all(Partition) ->
    case witness_trace_native:take(Partition) of
        empty -> {[], open};
        ok ->
            receive
                {witness_batch, Items, open} ->
                    {Batches, Status} = all(Partition),
                    {[Items | Batches], Status};
                {witness_batch, Items, Status} ->
                    empty = witness_trace_native:take(Partition),
                    {[Items], Status}
            after 0 -> error(no_batch)
            end
    end.

-doc "Closes the session and reads what is left: every partition has its end then.".
-spec close(reader()) -> reader().
close(Reader = #{session := Session, launcher := Launcher}) ->
    ok = witness_trace_native:close(Session),
    unlink(Launcher),
    exit(Launcher, kill),
    Read = #{births := stopped, open := []} = take(Reader),
    flush(),
    Read.

flush() -> receive witness_data -> flush() after 0 -> ok end.

-doc "Whether the last of the processes that the launcher has started, and all that they have, is gone.".
ended(#{ended := Ended}) -> Ended.

-doc "The partition in which a process was born first.".
-spec partition(reader(), pid()) -> partition().
partition(Reader, Child) ->
    hd([P || P = #{child := C} <- partitions(Reader), C =:= Child]).

-doc "All partitions, in the order in which they ended, and those that are open.".
partitions(#{open := Open, done := Done}) -> lists:reverse(Done, [P || {_, P} <- Open]).
children(Reader) -> [C || #{child := C} <- partitions(Reader)].
status(Reader, Child) -> maps:get(status, partition(Reader, Child)).

handle(#{open := Open}, Child) ->
    hd([H || {H, #{child := C}} <- Open, C =:= Child]).

-doc "Says that the partition of a process is not read, and forgets it.".
unread(Reader = #{open := Open}, Child) ->
    H = handle(Reader, Child),
    ok = witness_trace_native:unread(H),
    Reader#{open := lists:keydelete(H, 1, Open)}.

-doc "The events of a partition, with signatures.".
-spec events(partition()) -> [witness_event:event()].
events(#{batches := Batches}) -> [resolved(E) || E <- lists:append(lists:reverse(Batches))].

resolved({Kind, P, Q, Raw, T}) when Kind =:= fork; Kind =:= init -> {Kind, P, Q, witness_event_signature:resolve(Raw), T};
resolved(E) -> E.

-doc "What native code has more than before, when it has had time to go.".
-spec resources_left(Before :: #{atom() => integer()}) -> [{atom(), integer()}].
resources_left(Before) -> resources_left(Before, erlang:monotonic_time(millisecond) + ?GONE_MS).

resources_left(Before, Until) ->
    %% Others hold what they were sent: init, the logger and the like.
    [garbage_collect(P) || P <- processes()],
    Left = [{What, N} || {What, N} <- maps:to_list(witness_trace_native:resources()), N > maps:get(What, Before)],
    case Left =:= [] orelse erlang:monotonic_time(millisecond) > Until of
        true -> Left;
        false -> receive after 10 -> resources_left(Before, Until) end
    end.
