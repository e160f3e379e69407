-module(witness_recorded_limits).
-moduledoc """
Ways in which the VM ends a process, or refuses what one asks for. The result of each function is what the program is told: it
is the exit reason of the first process, so a replay has to come to the same.
""".

-export([flag/0, option/0, brief/0, request/0, by_default/0, binaries/0, unlimited/0, values/0, endless/0, endless_binaries/0,
         waiting/0]).
-export([processes/0, ports/0, open_ports/0, tables/0, atoms/0, sizes/0, no_memory/0]).

%% --- heaps -----------------------------------------------------------------------

-doc "A limit that the process sets itself, after it has sent something.".
flag() ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Self ! {self(), first},
        _ = process_flag(max_heap_size, limit(100_000)),
        Self ! {self(), second},
        grow([])
    end),
    [receive {Pid, N} -> ok end || N <- [first, second]],
    ended(Pid, Ref).

-doc "A limit that the process is born with.".
option() ->
    {Pid, Ref} = spawn_opt(fun() -> grow([]) end, [monitor, {max_heap_size, limit(10_000)}]),
    ended(Pid, Ref).

-doc "It takes more than it may, but not much: with more it would end by itself.".
brief() ->
    {Pid, Ref} = spawn_opt(fun() -> exit(length(lists:seq(1, 20_000))) end, [monitor, {max_heap_size, limit(10_000)}]),
    ended(Pid, Ref).

-doc "The same with a request.".
request() ->
    Request = spawn_request(erlang, apply, [fun() -> grow([]) end, []], [monitor, {max_heap_size, limit(10_000)}]),
    receive {spawn_reply, Request, ok, Pid} -> ended(Pid, Request) end.

-doc "What all are born with at that time.".
by_default() ->
    Before = erlang:system_flag(max_heap_size, limit(50_000)),
    {Pid, Ref} = spawn_monitor(fun() -> exit(length(lists:seq(1, 100_000))) end),
    Why = ended(Pid, Ref),
    Set = erlang:system_flag(max_heap_size, 0),
    {Before, Set, Why}.

-doc "What it takes is not on its heap.".
binaries() ->
    {Pid, Ref} = spawn_opt(fun() -> grow_binaries([]) end,
                           [monitor, {max_heap_size, (limit(100_000))#{include_shared_binaries => true}}]),
    ended(Pid, Ref).

-doc "A limit that does not end it.".
unlimited() ->
    {Pid, Ref} = spawn_opt(fun() -> exit(length(lists:seq(1, 50_000))) end,
                           [monitor, {max_heap_size, (limit(10_000))#{kill => false}}]),
    ended(Pid, Ref).

-doc "What the flag was, and what it cannot be.".
values() ->
    [try process_flag(max_heap_size, Value) of Old -> Old catch error:Why -> Why end
     || Value <- [200_000, #{size => 300_000, kill => false}, -1, #{}, #{size => 400_000, kill => 5}, 1,
                  #{size => 500_000, error_logger => false}, 0, 0]]
        ++ [try process_flag(min_heap_size, Size) of _ -> set catch error:Why -> Why end || Size <- [5_000_000, -1, 233]].

-doc "Another one kills it.".
endless() -> killed(fun() -> grow([]) end).

-doc "The same, with binaries.".
endless_binaries() -> killed(fun() -> grow_binaries([]) end).

-doc "It waits for what never comes, and has sent something before.".
waiting() ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Self ! {self(), ready},
        Self ! {self(), never_taken},
        receive never -> ok end
    end),
    receive {Pid, ready} -> ok end,
    waits(Pid),
    exit(Pid, stopped),
    ended(Pid, Ref).

waits(Pid) ->
    case process_info(Pid, [status, message_queue_len]) of
        [{status, waiting}, {message_queue_len, 0}] -> ok;
        _ ->
            true = erlang:yield(),
            waits(Pid)
    end.

killed(Endless) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Self ! {self(), begun},
        Endless()
    end),
    receive {Pid, begun} -> ok end,
    exit(Pid, kill),
    ended(Pid, Ref).

limit(Size) -> #{size => Size, kill => true, error_logger => false}.

grow(List) -> grow([List | List]).

grow_binaries(Binaries) -> grow_binaries([binary:copy(<<0>>, 100_000) | Binaries]).

ended(Pid, Ref) -> receive {'DOWN', Ref, process, Pid, Why} -> Why end.

%% --- tables of the VM -------------------------------------------------------------

-doc "As many processes as there may be. How many that are is chance: others of the VM come and go.".
processes() ->
    Pids = spawned([]),
    Refused = [catching(fun() -> spawn(fun() -> ok end) end), catching(fun() -> spawn_opt(fun() -> ok end, [monitor]) end)],
    Refs = [monitor(process, Pid) || Pid <- Pids],
    [exit(Pid, enough) || Pid <- Pids],
    [receive {'DOWN', Ref, process, _, enough} -> ok end || Ref <- Refs],
    {length(Pids) > 500, Refused}.

spawned(Pids) ->
    try spawn(fun() -> receive never -> ok end end) of
        Pid -> spawned([Pid | Pids])
    catch
        error:system_limit -> Pids
    end.

-doc "Ports that are not there, or not the caller's.".
ports() ->
    Port = open_port({spawn_driver, "udp_inet"}, [binary]),
    true = port_close(Port),
    [catching(fun() -> open_port({spawn_executable, "/nowhere/at/all"}, []) end),
     catching(fun() -> open_port({spawn_driver, "no such driver"}, []) end),
     catching(fun() -> open_port({spawn, 5}, []) end),
     catching(fun() -> port_command(Port, <<"x">>) end),
     catching(fun() -> port_connect(Port, self()) end),
     catching(fun() -> port_close(Port) end),
     catching(fun() -> port_control(Port, 1, []) end),
     catching(fun() -> erlang:port_info(Port) end)].

-doc "As many ports as there may be.".
open_ports() ->
    Ports = opened([]),
    [true = port_close(Port) || Port <- Ports],
    length(Ports) > 500.

opened(Ports) ->
    try open_port({spawn_driver, "udp_inet"}, [binary]) of
        Port -> opened([Port | Ports])
    catch
        error:system_limit -> Ports
    end.

-doc "Tables that are there already, not any more, or another one's.".
tables() ->
    ?MODULE = ets:new(?MODULE, [named_table, private]),
    Gone = ets:new(gone, []),
    true = ets:delete(Gone),
    Self = self(),
    {Pid, Ref} =
        spawn_monitor(fun() ->
            Self ! {self(), [catching(fun() -> ets:lookup(?MODULE, 1) end), catching(fun() -> ets:delete(?MODULE) end)]}
        end),
    Others = receive {Pid, Answers} -> Answers end,
    normal = ended(Pid, Ref),
    [Others, catching(fun() -> ets:new(?MODULE, [named_table]) end), catching(fun() -> ets:new(table, [no_option]) end),
     catching(fun() -> ets:insert(Gone, {1}) end), catching(fun() -> ets:insert(?MODULE, []) end),
     catching(fun() -> ets:insert(?MODULE, {}) end)].

%% --- what is too large ------------------------------------------------------------

-doc "Names that cannot be.".
atoms() ->
    [catching(fun() -> list_to_atom(lists:duplicate(256, $a)) end),
     catching(fun() -> binary_to_atom(binary:copy(<<"a">>, 256)) end),
     catching(fun() -> binary_to_existing_atom(<<"witness_recorded_limits_", "no such name">>) end),
     catching(fun() -> list_to_atom(unknown([-1])) end)].

-doc "Numbers, binaries and tuples that cannot be.".
sizes() ->
    Many = unknown(1 bsl 60),
    [catching(fun() -> 1 bsl Many end),
     catching(fun() -> 1 bsl unknown(640_000_000) end),
     catching(fun() -> binary:copy(<<"abc">>, Many) end),
     catching(fun() -> <<0:Many/unit:8>> end),
     catching(fun() -> erlang:make_tuple(Many, x) end),
     catching(fun() -> erlang:make_tuple(unknown(1 bsl 26), x) end),
     catching(fun() -> math:exp(unknown(1000.0)) end),
     catching(fun() -> erlang:send_after(Many, self(), late) end)].

-doc "The VM ends, when more was recorded than is kept in memory.".
no_memory() ->
    _ = [erlang:system_time() || _ <- lists:seq(1, 300_000)],
    atomics:new(unknown(1 bsl 60), []).

%% The compiler sees no constant.
unknown(Term) -> binary_to_term(term_to_binary(Term)).

catching(Fun) -> try Fun() of Value -> {value, Value} catch Class:Why -> {Class, Why} end.
