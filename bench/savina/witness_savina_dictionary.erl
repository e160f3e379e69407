-module(witness_savina_dictionary).
-moduledoc """
ConcurrentDictionary: `workers` ask one `gen_server` with a map of `entries` keys, each key its own value at
first, `requests` times each; `write_percent` of the requests write. A worker is seeded with the sum of its
place, `requests` and `write_percent`; Savina draws with Java's generator here, we with its own.

Filling the map is part of each run.

Since one number of the generator determines the next, and by default there are more entries than it has numbers,
no key is ever both read and written then; the parameters of the tests have fewer.

Verified: every answer to a write is what was written; every answer to a read is the key, or a value that some
worker writes to this key; and so are the values in the map at the end, which has as many entries as at first
and all keys that were written. It has had as many reads and writes as all workers have drawn.
""".
-behaviour(witness_savina).
-behaviour(gen_server).

-export([sets/0, run/1]).
-export([worker/3]).
-export([init/1, handle_call/3, handle_cast/2]).

-import(witness_savina_processes, [start/3, start_server/2, gather/3, await/1, verify/3]).

%% Savina's: the largest 32-bit number divided by 4,096.
-define(ENTRIES, 524_287).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{workers => 20, requests => 10_000, write_percent => 10, entries => ?ENTRIES},
      somns => #{workers => 20, requests => 1_000, write_percent => 20, entries => ?ENTRIES},
      small => #{workers => 4, requests => 30, write_percent => 20, entries => 50}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(Parameters = #{workers := Workers, requests := Requests, entries := Entries}) ->
    Dictionary = start_server(?MODULE, Entries),
    Seeds = [I + Requests + maps:get(write_percent, Parameters) || I <- lists:seq(0, Workers - 1)],
    _ = [start(?MODULE, worker, [self(), Dictionary, {Parameters, Seed}]) || Seed <- Seeds],
    Read = gather(Workers, fun({read, Changed}, All) -> Changed ++ All end, []),
    {Reads, Writes, Size, Stored} = gen_server:call(Dictionary, close, infinity),
    await(1),
    Drawn = [Write || Seed <- Seeds, Write <- writes(Requests, Parameters, Seed)],
    verify(requests, {Workers * Requests - length(Drawn), length(Drawn)}, {Reads, Writes}),
    Written = #{Write => true || Write <- Drawn},
    verify(entries, Entries, Size),
    verify(read, [], [Odd || Odd <- Read, not is_map_key(Odd, Written)]),
    verify(stored, [], [Odd || Odd <- Stored, not is_map_key(Odd, Written)]),
    Other = #{K => value || {K, _} <- Drawn, not is_map_key({K, K}, Written)},
    verify(lost, [], maps:keys(Other) -- [K || {K, _} <- Stored]),
    #{reads => Reads, writes => Writes}.

%% A worker asks what it draws, in this order.
draw(#{write_percent := Percent, entries := Entries}, R0) ->
    R1 = witness_savina_random:next(R0),
    R2 = witness_savina_random:next(R1),
    case R1 rem 100 < Percent of
        true ->
            R3 = witness_savina_random:next(R2),
            {{write, R2 rem Entries, R3}, R3};
        false ->
            {{read, R2 rem Entries}, R2}
    end.

writes(0, _, _) -> [];
writes(Left, Parameters, R0) ->
    case draw(Parameters, R0) of
        {{write, Key, Value}, R} -> [{Key, Value} | writes(Left - 1, Parameters, R)];
        {{read, _}, R} -> writes(Left - 1, Parameters, R)
    end.

-doc false.
worker(Main, Dictionary, {Parameters = #{requests := Requests}, Seed}) ->
    Main ! {read, requests(Requests, Dictionary, Parameters, Seed)}.

%% The values read that are not the key.
requests(0, _, _, _) -> [];
requests(Left, Dictionary, Parameters, R0) ->
    {Request, R} = draw(Parameters, R0),
    case {Request, gen_server:call(Dictionary, Request, infinity)} of
        {{read, Key}, Key} -> requests(Left - 1, Dictionary, Parameters, R);
        {{read, Key}, Value} -> [{Key, Value} | requests(Left - 1, Dictionary, Parameters, R)];
        {{write, _, Value}, Answer} ->
            verify(answer, Value, Answer),
            requests(Left - 1, Dictionary, Parameters, R)
    end.

-doc false.
init(Entries) -> {ok, {0, 0, #{Key => Key || Key <- lists:seq(0, Entries - 1)}}}.

-doc false.
handle_call({read, Key}, _, {Reads, Writes, Map}) ->
    {reply, maps:get(Key, Map), {Reads + 1, Writes, Map}};
handle_call({write, Key, Value}, _, {Reads, Writes, Map}) ->
    {reply, Value, {Reads, Writes + 1, Map#{Key => Value}}};
handle_call(close, _, {Reads, Writes, Map}) ->
    {stop, normal, {Reads, Writes, map_size(Map), [{K, V} || K := V <- Map, K =/= V]}, closed}.

-doc false.
handle_cast(_, State) -> {noreply, State}.
