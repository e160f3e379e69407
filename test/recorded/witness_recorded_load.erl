-module(witness_recorded_load).
-moduledoc """
Pairs of processes that write to each other as fast as they can, and a process that samples how much memory that takes: that
of the VM, and what the recorder buffers until it is written.
""".

-export([run/3, held_up/2]).

-define(SAMPLE, 100).            % milliseconds
-define(ROUNDS, 5_000).

-doc "So many pairs for so many seconds, or until the recording has ended; the samples go to a file.".
run(Pairs, ended, File) -> load(Pairs, ended, File);
run(Pairs, Seconds, File) -> load(Pairs, erlang:monotonic_time(millisecond) + 1000 * Seconds, File).

load(Pairs, Until, File) ->
    Me = self(),
    Pids = [spawn(fun() -> Me ! {rounds, self(), ping(spawn(fun pong/0), Until)} end) || _ <- lists:seq(1, Pairs)],
    Samples = samples(Until, []),
    Rounds = [receive {rounds, Pid, N} -> N end || Pid <- Pids],
    ok = file:write_file(File, term_to_binary(#{samples => Samples, messages => 2 * lists:sum(Rounds)})).

ping(Pong, Until) -> ping(Pong, Until, 0).

ping(Pong, Until, N) when N rem ?ROUNDS =:= 0, N > 0 ->
    case is_over(Until) of
        false -> round(Pong, Until, N);
        true ->
            Pong ! stop,
            N
    end;
ping(Pong, Until, N) -> round(Pong, Until, N).

%% Most of what is recorded is messages. Now and then there is data: the recording keeps a message to oneself with options as it is.
round(Pong, Until, N) ->
    Pong ! {ping, self(), N},
    receive {pong, N} -> ok end,
    _ = N rem 16 =:= 0 andalso erlang:unique_integer(),
    _ = N rem 64 =:= 0 andalso begin
        ok = erlang:send(self(), {data, N, ~"some data"}, []),
        receive {data, N, _} -> ok end
    end,
    ping(Pong, Until, N + 1).

pong() ->
    receive
        {ping, From, N} -> From ! {pong, N}, pong();
        stop -> ok
    end.

samples(Until, Samples) ->
    receive after ?SAMPLE -> ok end,
    All = [sample() | Samples],
    case is_over(Until) of
        false -> samples(Until, All);
        true -> lists:reverse(All)
    end.

is_over(ended) -> maps:get(state, witness_record_native:info()) =/= running;
is_over(Until) -> erlang:monotonic_time(millisecond) >= Until.

sample() ->
    #{used := Used, budget := Budget} = witness_record_native:info(),
    #{vm => erlang:memory(total), resident => resident(), used => Used, budget => Budget}.

%% Bytes that the operating system has given to this VM.
resident() ->
    case file:read_file("/proc/self/statm") of
        {ok, Text} ->
            [_, Pages | _] = string:lexemes(Text, " "),
            4096 * binary_to_integer(Pages);
        {error, _} -> 0
    end.

-doc "So many processes read the clock, and the writer is suspended until the recorder gives up. Then the program goes on.".
held_up(Number, File) ->
    [Writer] = [Pid || Pid <- processes(), proc_lib:translate_initial_call(Pid) =:= {witness_record_writer, init, 1}],
    true = erlang:suspend_process(Writer),
    Pids = [spawn(fun flood/0) || _ <- lists:seq(1, Number)],
    Most = until_ended(0),
    [exit(Pid, kill) || Pid <- Pids],
    true = erlang:resume_process(Writer),
    ok = file:write_file(File, term_to_binary(Most)).

flood() ->
    _ = erlang:timestamp(),
    flood().

until_ended(Most) ->
    #{state := State, used := Used} = witness_record_native:info(),
    case State of
        running -> receive after 1 -> until_ended(max(Used, Most)) end;
        {ended, budget} -> {Most, Used}
    end.
