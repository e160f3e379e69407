-module(witness_record_flight).
-moduledoc """
Keeps the last part of a recording in memory (`m:witness_record_ring`), and writes it on request and at the end. It replaces
`m:witness_record_writer` for systems that run for long.

A part that is kept on request goes to a folder of its own, `kept-1`, `kept-2` and so on, in that of the recording. A process of
its own writes it meanwhile. The part at the end goes to the folder itself. If the VM is killed, the parts kept before remain.
""".
-behaviour(gen_server).

-export([start_link/3, keep/2, finish/3]).
-export([init/1, handle_call/3, write/3, handle_cast/2, handle_info/2, format_status/1]).

-export_type([options/0, kept/0]).

-doc "`last`: how much is kept. The others are options of `m:witness_record_writer`.".
-type options() :: #{last := witness_record_ring:limit(), compress => boolean(), native => module(), flush => pos_integer()}.

-doc "The folder of the kept part. `busy`: another part is being written; `enough`: there are a hundred folders.".
-type kept() :: {ok, file:filename()} | {error, busy | enough | witness_record_writer:reason()}.

-record(last, {dir :: file:filename(),
               header :: map(),
               options :: options(),
               native :: module(),
               ring :: witness_record_ring:ring(),
               kept = 0 :: non_neg_integer(),
               writing = none :: none | {reference(), gen_server:from()},
               ended = running :: witness_record_native:state()}).

-define(MAX_KEPT, 100).
-define(MAX_PIECES, 16).
-define(FLUSH_MS, 1_000).
-define(IDLE_MS, 10).

-doc "Starts to gather. `Header` is as for the writer.".
-spec start_link(file:filename(), Header :: map(), options()) -> {ok, pid()}.
start_link(Dir, Header, Options) -> {ok, _} = gen_server:start_link(?MODULE, {Dir, Header, Options}, []).

-doc "Writes the part that is in memory now. The modules are as for `finish/3`.".
-spec keep(pid(), [{module(), binary(), boolean()}]) -> kept().
keep(Pid, Modules) -> gen_server:call(Pid, {keep, Modules}, infinity).

-doc "Finishes the recording, as `witness_record_writer:finish/3` does.".
-spec finish(pid(), [{module(), binary(), boolean()}], More :: map()) ->
    {ok, witness_record_writer:summary()} | {ended, witness_record_writer:reason(), witness_record_writer:summary() | none}.
finish(Pid, Modules, More) -> gen_server:call(Pid, {finish, Modules, More}, infinity).

-doc false.
init({Dir, Header, #{last := Limit} = Options}) ->
    process_flag(trap_exit, true),
    %% As the writer.
    process_flag(priority, high),
    proc_lib:set_label(?MODULE),
    Full = case Header of #{options := #{full_ids := true}} -> true; #{} -> false end,
    self() ! take,
    _ = erlang:send_after(maps:get(flush, Options, ?FLUSH_MS), self(), flush),
    {ok, #last{dir = Dir, header = Header#{late => true}, options = Options,
               native = maps:get(native, Options, witness_record_native),
               ring = witness_record_ring:new(Limit, Full, witness_record_names:rows(Header))}}.

-doc false.
handle_call({keep, _}, _, #last{writing = {_, _}} = L) -> {reply, {error, busy}, L};
handle_call({keep, _}, _, #last{kept = ?MAX_KEPT} = L) -> {reply, {error, enough}, L};
handle_call({keep, Modules}, From, L0) ->
    L = #last{kept = Kept, dir = Dir} = collect(L0),
    Folder = filename:join(Dir, "kept-" ++ integer_to_list(Kept + 1)),
    {_, Ref} = spawn_monitor(?MODULE, write, [Folder, Modules, L]),
    {noreply, L#last{kept = Kept + 1, writing = {Ref, From}}};
handle_call({finish, Modules, More}, _, L0) ->
    #last{dir = Dir, ended = Ended} = L = collect(wait_for_part(L0)),
    Reply = case {write_ring(Dir, Modules, More, L), Ended} of
        {{ok, Summary}, running} -> {ok, Summary};
        {{ok, Summary}, {ended, Reason}} -> {ended, Reason, Summary};
        {{error, Reason}, _} -> {ended, Reason, none}
    end,
    {stop, normal, Reply, L}.

-doc false.
-spec write(file:filename(), [{module(), binary(), boolean()}], #last{}) -> no_return().
write(Folder, Modules, L) -> exit({written, Folder, write_ring(Folder, Modules, #{}, L)}).

-doc false.
handle_cast(_, L) -> {noreply, L}.

-doc false.
handle_info(take, L) ->
    {Taken, L1} = take(L),
    _ = case Taken of
        0 -> erlang:send_after(?IDLE_MS, self(), take);
        _ -> self() ! take
    end,
    {noreply, L1};
handle_info(flush, #last{options = Options} = L) ->
    _ = erlang:send_after(maps:get(flush, Options, ?FLUSH_MS), self(), flush),
    {noreply, collect(L)};
handle_info({'DOWN', Ref, process, _, Result}, #last{writing = {Ref, _}} = L) -> {noreply, reply(Result, L)};
handle_info(_, L) -> {noreply, L}.

-doc false.
format_status(Status) ->
    %% Messages of the program must not get into a log.
    maps:map(fun(state, #last{dir = Dir, ended = Ended}) -> {Dir, Ended};
                (_, Value) -> Value
             end, Status).

reply(Result, #last{writing = {_, From}} = L) ->
    gen_server:reply(From, case Result of
        {written, Folder, {ok, _}} -> {ok, Folder};
        {written, _, {error, Reason}} -> {error, Reason};
        Reason -> {error, Reason}
    end),
    L#last{writing = none}.

%% Waits for the part that is being written.
wait_for_part(#last{writing = none} = L) -> L;
wait_for_part(#last{writing = {Ref, _}} = L) -> receive {'DOWN', Ref, process, _, Result} -> reply(Result, L) end.

take(#last{native = Native, ring = Ring, ended = Ended} = L) ->
    {Parts, State} = Native:take(?MAX_PIECES),
    Flat = [{Kind, iolist_to_binary(Part)} || {Kind, Part} <- Parts],
    {lists:sum([byte_size(Part) || {_, Part} <- Flat]),
     L#last{ring = witness_record_ring:add(Flat, erlang:monotonic_time(millisecond), Ring),
            %% The recorder ended because it was told to stop: that is no early end of the recording.
            ended = case {Ended, State} of {running, {ended, stopped}} -> running; {running, _} -> State; _ -> Ended end}}.

collect(#last{native = Native} = L) ->
    ok = Native:flush(),
    drain(take(L)).

drain({0, #last{ring = Ring} = L}) -> L#last{ring = witness_record_ring:place_ends(Ring)};
drain({_, L}) -> drain(take(L)).

write_ring(Folder, Modules, More, #last{header = Header, options = Options, ring = Ring, ended = Ended}) ->
    witness_record_writer:write(Folder, Header, witness_record_ring:parts(Ring),
                                (maps:with([compress], Options))#{modules => Modules, ended => Ended, more => More}).
