-module(witness_step_trace).
-moduledoc """
All that the processes of a recording do, in an order that agrees with cause and effect, made by a replay: the steps of a
run, numbered from 1. So a number is a *consistent cut*: what each process has done up to there.

No other process sees the trace: it is a file that has no name any more when it is written. The file has the steps in blocks.
Between blocks it has states of the run (`m:witness_step_state`); the larger the states are, the further they are apart. To find
the state at a step, the trace takes the last stored state before it and folds the steps in between. Memory holds the places of
blocks and states, some blocks, and a few words for each process.

*Scanned data is small, and is not copied.* For each step, a block has the part that a state is made of
(`t:witness_step_state:brief/0`), and the rest, its stack and messages, as bytes. These are only decoded if the step is asked for.
If they exceed a bound, they are not in the block, but before it in the file. The dictionary of the process that owns the trace
has the blocks that were read, and the last state.
""".

-export([make/1, close/1, size/1, step/2, state/2, shared/1, fold/5, processes/1, process/2, process_id/2, find/4, first/3,
         at_entries/2, find_steps/2, exit_step/2, signal/2, skew/1]).

-export_type([trace/0, step/0, process/0, brief/0]).

-doc """
A step of the process `id`. `entry`: the entry of its log, or the one before, for a step that is no entry. `cause`: the step that
is its cause, 0 if it is not known; `stack`: where the program was.
""".
-type step() :: #{number := pos_integer(), id := pos_integer(), entry := non_neg_integer(), cause := non_neg_integer(),
                  stack := [tuple()], what := witness_step_state:what()}.

-doc "A process of the run: the steps with which it begins, and ends (0: it has not ended).".
-type process() :: #{id := pos_integer(), pid := pid(), parent := non_neg_integer(), called := mfa(), born := pos_integer(),
                     ended := non_neg_integer()}.

-doc "A step as `fold/5` reads it: without its stack, and without what messages contain.".
-type brief() :: #{number := pos_integer(), id := pos_integer(), cause := non_neg_integer(), brief := witness_step_state:brief()}.

%% Steps of a block; blocks that are cached after reading; minimum number of steps between two states.
-define(BLOCK_STEPS, 500).
-define(CACHED_BLOCKS, 40).
-define(MIN_STATE_STEPS, 2_000).
%% Maximum bytes of a step within its block.
-define(INLINE_BYTES, 4_096).
%% Steps between two reports of progress.
-define(PROGRESS_STEPS, 100).

%% While the trace is made: block: the latest first. blocks, states: their places, the latest first. since: the last state. hints:
%% details of the next step of a process. order: what is kept back. proven: for processes with sends that are not certain, the step
%% up to which they are. early: processes that have not ended in the trace although messages about their ends are there, each with
%% the first such step. skew: how many steps such a message precedes the end, at most.
-record(make, {file :: file:fd(),
               at = 0 :: non_neg_integer(),
               size = 0 :: non_neg_integer(),
               block = [] :: [stored()],
               blocks = [] :: [place()],
               states = [] :: [{non_neg_integer(), place()}],
               since = 0 :: non_neg_integer(),
               state :: witness_step_state:state(),
               hints = #{} :: #{pos_integer() => [witness_replay_emitter:detail()]},
               order :: witness_step_reorder:order(),
               tables = witness_step_shared:new() :: witness_step_shared:tables(),
               pids :: witness_step_state:pids(),
               ids :: #{pid() => pos_integer()},
               processes = #{} ::
                   #{pos_integer() => {Parent :: non_neg_integer(), mfa(), Born :: pos_integer(), Ended :: non_neg_integer()}},
               signals = #{} :: #{pos_integer() => pos_integer()},
               proven = #{} :: #{pos_integer() => non_neg_integer()},
               early = #{} :: #{pid() => pos_integer()},
               skew = 0 :: non_neg_integer(),
               on_progress :: fun((unicode:chardata()) -> term())}).

-record(trace, {file :: file:fd(),
                size :: non_neg_integer(),
                blocks :: tuple(),
                states :: [{non_neg_integer(), place()}],
                none :: witness_step_state:state(),
                pids :: witness_step_state:pids(),
                ids :: #{pid() => pos_integer()},
                processes :: #{pos_integer() => {non_neg_integer(), mfa(), pos_integer(), non_neg_integer()}},
                signals :: #{pos_integer() => pos_integer()},
                proven :: #{pos_integer() => non_neg_integer()},
                skew :: non_neg_integer(),
                on_progress :: fun((unicode:chardata()) -> term()),
                cache :: reference()}).

%% The bytes are those of the stack and of what the step does.
-type stored() :: {Id :: pos_integer(), Entry :: non_neg_integer(), Cause :: non_neg_integer(), witness_step_state:brief(),
                   binary() | place()}.
-type place() :: {Offset :: non_neg_integer(), Size :: non_neg_integer()}.

-opaque trace() :: #trace{}.

%% --- making it -------------------------------------------------------------------

-doc """
Replays, and stores all steps. The trace belongs to the calling process. If the replay diverges, the trace has the steps before
that.
""".
-spec make(witness_replay:options()) ->
    {ok, trace(), witness_replay:report()} | {error, witness_replay:error()}.
make(Options) ->
    OnProgress = maps:get(on_progress, Options, fun(_) -> ok end),
    Places = places(Options),
    maybe
        {ok, File} ?= open_unnamed(Options),
        First = fun(Processes) -> init(Processes, Places, File, OnProgress) end,
        case witness_replay:fold_reports(fun order_report/2, First, Options#{whole => true}) of
            {ok, Report, M} -> {ok, finish(save_state(write_block(add_held(M)))), Report};
            Error ->
                ok = file:close(File),
                {error, element(2, Error)}
        end
    end.

open_unnamed(Options) ->
    Dir = witness_record_code:cache(maps:with([cache], Options)),
    Name = filename:join(Dir, io_lib:format("step.~s.~b", [os:getpid(), erlang:unique_integer([positive])])),
    maybe
        ok ?= filelib:ensure_dir(Name),
        {ok, File} ?= file:open(Name, [raw, binary, read, write, exclusive]),
        ok ?= file:delete(Name),
        {ok, File}
    else
        {error, Reason} -> {error, {witness_replay, {file, Reason}}}
    end.

%% Of each process the places of its calls on shared memory. What cannot be read is reported by the replay.
places(#{dir := Dir}) ->
    maybe
        {ok, R} ?= witness_log_recording:open(Dir, #{max_atoms => 1_000_000, ordered => true}),
        Read = witness_log_recording:with_cursors(fun(Cursor) ->
            #{Id => Places || Id <- witness_log_recording:ids(R), {ok, First} <- [Cursor(Id)],
                              [_ | _] = Places <- [places(First, [])]}
        end, R),
        #{} ?= Read
    else
        {error, _} -> #{}
    end.

places(none, _) -> [];
places(Cursor, Places) ->
    case witness_log_recording_cursor:next(Cursor) of
        {ok, {ordered, _, _, _} = Call, Next} -> places(Next, [witness_step_reorder:place(Call) | Places]);
        {ok, _, Next} -> places(Next, Places);
        _ -> lists:reverse(Places)
    end.

init(Processes, Places, File, OnProgress) ->
    Pids = #{Id => Pid || #{id := Id, pid := Pid} <- Processes},
    Ids = #{Pid => Id || Id := Pid <- Pids},
    #make{file = File, state = witness_step_state:new(Pids), pids = Pids, ids = Ids, order = witness_step_reorder:new(Ids, Places),
          on_progress = OnProgress}.

order_report(Report, #make{order = Order} = M) ->
    {Reports, Order1} = witness_step_reorder:add(Report, Order),
    lists:foldl(fun add_report/2, M#make{order = Order1}, Reports).

add_held(#make{order = Order} = M) -> lists:foldl(fun add_report/2, M, witness_step_reorder:finish(Order)).

add_report({Id, Entry, {at, Stack, What}}, M) -> add_report(Id, Entry, Stack, What, M);
add_report({Id, Entry, What}, M) -> add_report(Id, Entry, [], What, M).

add_report(Id, Entry, Stack, {born, Called}, #make{processes = Processes} = M) ->
    step(Id, Entry, Stack, {born, Called}, M#make{processes = add_process(Id, 0, Called, M, Processes)});
add_report(Id, Entry, Stack, What, #make{state = State, hints = Hints} = M) ->
    case {witness_step_state:is_alive(Id, State), What} of
        %% Other processes had ended it, and it had gone on meanwhile.
        {false, _} -> M;
        {true, {Hint, _}} when Hint =:= leads -> add_hint(Id, What, M);
        {true, {with, _, _}} -> add_hint(Id, What, M);
        {true, _} -> step(Id, Entry, Stack, resolve(What, maps:get(Id, Hints, []), M), M#make{hints = maps:remove(Id, Hints)})
    end.

add_hint(Id, Hint, #make{hints = Hints} = M) -> M#make{hints = Hints#{Id => [Hint | maps:get(Id, Hints, [])]}}.

resolve({send, To, Msg, Sure}, Hints, #make{ids = Ids}) ->
    Receiver = case {Ids, Hints} of
        {#{To := Id}, _} -> Id;
        {#{}, [{leads, Id} | _]} -> Id;
        {#{}, _} -> 0
    end,
    {send, To, Receiver, Msg, Sure};
resolve({spawn, Child, Called}, Hints, _) ->
    {spawn, Child, Called, lists:append([spawn_ties(Function, Options) || {with, Function, Options} <- Hints])};
resolve(What, _, _) -> What.

spawn_ties(spawn_link, _) -> [link];
spawn_ties(spawn_monitor, _) -> [monitor];
spawn_ties(_, Options) when is_list(Options) -> [link || lists:member(link, Options)];
spawn_ties(_, _) -> [].

add_process(Id, Parent, {Module, Function, Args}, #make{at = At}, Processes) ->
    Processes#{Id => {Parent, {Module, Function, length(Args)}, At + 1, 0}}.

step(Id, Entry, Stack, {ordered, Begin, End, What}, #make{tables = Tables} = M) ->
    {Accesses, Tables1} = witness_step_shared:accesses(What, Tables),
    step(Id, Entry, Stack, What, {access, Accesses, Begin, End}, M#make{tables = Tables1});
step(Id, Entry, Stack, What, #make{tables = Tables} = M) ->
    step(Id, Entry, Stack, What, witness_step_state:brief(What), M#make{tables = witness_step_shared:note(What, Tables)}).

step(Id, Entry, Stack, What, Brief, #make{at = At, block = Block, state = State0, processes = Processes} = M0) ->
    {Cause, State} = witness_step_state:step(At + 1, {Id, Entry, Brief}, State0),
    Known = case What of
        {spawn, Child, Called, _} -> add_process(Child, Id, Called, M0, Processes);
        {exit, _, _} ->
            #{Id := {Parent, MFA, Born, 0}} = Processes,
            Processes#{Id := {Parent, MFA, Born, At + 1}};
        _ -> Processes
    end,
    {Bytes, M1} = bytes(Stack, What, prove(What, Id, Cause, note_end(What, Id, note_signal(What, M0)))),
    M = M1#make{at = At + 1, block = [{Id, Entry, Cause, Brief, Bytes} | Block], state = State, processes = Known},
    _ = (At + 1) rem ?PROGRESS_STEPS =:= 0 andalso (M#make.on_progress)([~"replays: ", integer_to_binary(At + 1), ~" steps"]),
    case (At + 1) rem ?BLOCK_STEPS of
        0 -> save_state(write_block(M));
        _ -> M
    end.

bytes(Stack, What, M) ->
    case term_to_binary({Stack, What}) of
        Bytes when byte_size(Bytes) =< ?INLINE_BYTES -> {Bytes, M};
        _ -> append(term_to_binary({Stack, What}, [{compressed, 1}]), M)
    end.

note_signal({effect, {erlang, Exit, _}, [Pid | _]}, #make{at = At, ids = Ids, signals = Signals} = M)
  when Exit =:= exit; Exit =:= exit_signal ->
    case Ids of
        #{Pid := Id} -> M#make{signals = Signals#{Id => At + 1}};
        #{} -> M
    end;
note_signal(_, M) -> M.

note_end({recv, outside, Msg}, _, M) -> note_early(witness_step_state:ended(Msg), M);
note_end({exit, _, _}, Id, #make{at = At, pids = Pids, early = Early, skew = Skew} = M) ->
    case maps:take(map_get(Id, Pids), Early) of
        {N, Left} -> M#make{early = Left, skew = max(Skew, At + 1 - N)};
        error -> M
    end;
note_end(_, _, M) -> M.

note_early(Pid, #make{at = At, ids = Ids, early = Early, processes = Processes} = M) ->
    case Ids of
        #{Pid := Id} when not is_map_key(Pid, Early) ->
            case Processes of
                #{Id := {_, _, _, Ended}} when Ended > 0 -> M;
                #{} -> M#make{early = Early#{Pid => At + 1}}
            end;
        #{} -> M
    end.

%% If a message was taken, it and all earlier ones of its sender were sent. If a process ended by itself, all its sends are proven.
prove({send, _, _, _, unsure}, Id, _, #make{proven = Proven} = M) -> M#make{proven = maps:merge(#{Id => 0}, Proven)};
prove({recv, From, _}, _, Cause, #make{proven = Proven} = M) when is_map_key(From, Proven) ->
    M#make{proven = maps:update_with(From, fun(N) -> max(N, Cause) end, Proven)};
prove({exit, ended, _}, Id, _, #make{at = At, proven = Proven} = M) when is_map_key(Id, Proven) ->
    M#make{proven = Proven#{Id := At}};
prove(_, _, _, M) -> M.

write_block(#make{block = []} = M) -> M;
write_block(#make{block = Block, blocks = Blocks} = M) ->
    {Place, M1} = append(term_to_binary(list_to_tuple(lists:reverse(Block)), [{compressed, 1}]), M),
    M1#make{block = [], blocks = [Place | Blocks]}.

%% The distance grows with the size of a state, so all states together are not larger than the steps.
save_state(#make{at = At, since = Since, state = State, states = States} = M) ->
    case At - Since >= ?MIN_STATE_STEPS + witness_step_state:size(State) of
        true ->
            {Place, M1} = append(witness_step_state:pack(State), M),
            M1#make{since = At, states = [{At, Place} | States]};
        false -> M
    end.

append(Bytes, #make{file = File, size = Size} = M) ->
    ok = file:pwrite(File, Size, Bytes),
    {{Size, byte_size(Bytes)}, M#make{size = Size + byte_size(Bytes)}}.

finish(#make{file = File, at = At, blocks = Blocks, states = States, pids = Pids, ids = Ids, processes = Processes,
             signals = Signals, proven = Proven, skew = Skew, on_progress = OnProgress}) ->
    #trace{file = File, size = At, blocks = list_to_tuple(lists:reverse(Blocks)), states = States,
           none = witness_step_state:new(Pids),
           pids = Pids, ids = Ids, processes = Processes, signals = Signals, proven = Proven, skew = Skew,
           on_progress = OnProgress, cache = make_ref()}.

-doc "Closes the file and erases the cache.".
-spec close(trace()) -> ok.
close(#trace{file = File, cache = Cache}) ->
    _ = [erase({?MODULE, What, Cache}) || What <- [blocks, state, shared]],
    ok = file:close(File).

%% --- reading it ------------------------------------------------------------------

-doc "How many steps there are.".
-spec size(trace()) -> non_neg_integer().
size(#trace{size = Size}) -> Size.

-doc "A step by its number.".
-spec step(pos_integer(), trace()) -> step().
step(N, #trace{proven = Proven} = Trace) ->
    {Id, Entry, Cause, _, Bytes} = read_step(N, Trace),
    {Stack, Stored} = witness_event_external:decode(case Bytes of {_, _} -> read(Bytes, Trace#trace.file); _ -> Bytes end),
    What = case {Stored, Proven} of
        {{send, To, Receiver, Msg, unsure}, #{Id := Up}} when N =< Up -> {send, To, Receiver, Msg, sure};
        _ -> Stored
    end,
    #{number => N, id => Id, entry => Entry, cause => Cause, stack => Stack, what => What}.

read_step(N, #trace{size = Size} = Trace) when N >= 1, N =< Size ->
    element((N - 1) rem ?BLOCK_STEPS + 1, block((N - 1) div ?BLOCK_STEPS + 1, Trace)).

block(Index, #trace{blocks = Blocks, file = File, cache = Cache}) ->
    Key = {?MODULE, blocks, Cache},
    case get(Key) of
        #{Index := Block} -> Block;
        Kept ->
            Block = witness_event_external:decode(read(element(Index, Blocks), File)),
            _ = put(Key, case Kept of
                #{} when map_size(Kept) < ?CACHED_BLOCKS -> Kept#{Index => Block};
                _ -> #{Index => Block}
            end),
            Block
    end.

%% The file belongs to this process, so all bytes are there.
read({Offset, Size}, File) ->
    {ok, Bytes} = file:pread(File, Offset, Size),
    Bytes.

-doc "The state behind a step; 0: before the first.".
-spec state(non_neg_integer(), trace()) -> witness_step_state:state().
state(N, #trace{states = States, none = None, file = File, cache = Cache} = Trace) ->
    Key = {?MODULE, state, Cache},
    {From, State} = case get(Key) of
        {Known, Cached} when Known =< N, N - Known < ?MIN_STATE_STEPS -> {Known, Cached};
        _ ->
            case lists:dropwhile(fun({At, _}) -> At > N end, States) of
                [{At, Place} | _] -> {At, witness_step_state:unpack(read(Place, File), None)};
                [] -> {0, None}
            end
    end,
    Reached = advance(From + 1, N, State, Trace),
    _ = put(Key, {N, Reached}),
    Reached.

advance(N, To, State, _) when N > To -> State;
advance(N, To, State, Trace) ->
    {Id, Entry, _, Brief, _} = read_step(N, Trace),
    {_, Next} = witness_step_state:step(N, {Id, Entry, Brief}, State),
    advance(N + 1, To, Next, Trace).

-doc "What processes have read of each other in shared memory. The first time, that takes a pass over the run.".
-spec shared(trace()) -> witness_step_shared:analysis().
shared(#trace{size = Size, cache = Cache} = Trace) ->
    Key = {?MODULE, shared, Cache},
    case get(Key) of
        undefined ->
            Analysis = witness_step_shared:analyse(fun(Add, Acc) ->
                fold(fun(#{number := N, id := Id, brief := Brief}, A) -> {next, Add(N, Id, Brief, A)} end, Acc, 1, Size, Trace)
            end),
            _ = put(Key, Analysis),
            Analysis;
        Known -> Known
    end.

-doc "The first step from this one on, forward or back, that passes the test.".
-spec find(fun((step()) -> boolean()), integer(), forward | back, trace()) -> pos_integer() | none.
find(_, N, _, #trace{size = Size}) when N < 1; N > Size -> none;
find(Test, N, Direction, Trace) ->
    ok = report_progress(N, Trace),
    case Test(step(N, Trace)) of
        true -> N;
        false -> find(Test, case Direction of forward -> N + 1; back -> N - 1 end, Direction, Trace)
    end.

-doc """
Folds over the steps from one to another, forward or back, until the function says `stop`. It does not read stacks and messages, so
it is much faster than `find/4`.
""".
-spec fold(fun((brief(), Acc) -> {next | stop, Acc}), Acc, From :: non_neg_integer(), To :: non_neg_integer(), trace()) -> Acc.
fold(Fun, Acc, From, To, Trace) when From =< To -> fold(Fun, Acc, From, To, 1, Trace);
fold(Fun, Acc, From, To, Trace) -> fold(Fun, Acc, From, To, -1, Trace).

fold(Fun, Acc0, N, To, By, Trace) when N >= 1, N =< Trace#trace.size ->
    ok = report_progress(N, Trace),
    {Id, _, Cause, Brief, _} = read_step(N, Trace),
    case Fun(#{number => N, id => Id, cause => Cause, brief => Brief}, Acc0) of
        {next, Acc} when N =/= To -> fold(Fun, Acc, N + By, To, By, Trace);
        {_, Acc} -> Acc
    end;
fold(_, Acc, _, _, _, _) -> Acc.

report_progress(N, #trace{size = Size, on_progress = OnProgress}) when N rem ?PROGRESS_STEPS =:= 0 ->
    _ = OnProgress([~"looks at events: it has come to ", integer_to_binary(N), ~" of ", integer_to_binary(Size)]),
    ok;
report_progress(_, _) -> ok.

-doc "The first step of a process at this entry of its log, or behind it.".
-spec first(pos_integer(), non_neg_integer(), trace()) -> pos_integer() | none.
first(Id, Entry, Trace) ->
    case at_entries([{Id, Entry}], Trace) of
        #{{Id, Entry} := [N | _]} -> N;
        #{} -> none
    end.

-doc """
The steps of each of these processes at its entry: the first one at that entry or behind it, and those that follow, up to the
first one behind that entry. One pass over the run finds all of them.
""".
-spec at_entries([{Id :: pos_integer(), Entry :: non_neg_integer()}], trace()) ->
    #{{pos_integer(), non_neg_integer()} => [pos_integer(), ...]}.
at_entries(Places, Trace) ->
    Sought = maps:groups_from_list(fun({Id, _}) -> Id end, fun({_, Entry}) -> Entry end, lists:usort(Places)),
    #{Place => lists:reverse(Steps) || Place := Steps <- at_entries(1, Sought, #{}, Trace)}.

%% Sought: for each process the entries that it has not passed yet, the smallest first.
at_entries(N, Sought, Found, #trace{size = Size}) when N > Size; map_size(Sought) =:= 0 -> Found;
at_entries(N, Sought, Found, Trace) ->
    {Id, Entry, _, _, _} = read_step(N, Trace),
    case Sought of
        #{Id := Entries} ->
            {Here, Later} = lists:splitwith(fun(E) -> E =< Entry end, Entries),
            Now = lists:foldl(fun(E, A) -> A#{{Id, E} => [N | maps:get({Id, E}, A, [])]} end, Found, Here),
            %% An entry that the process has passed is dropped.
            case [E || E <- Here, E =:= Entry] ++ Later of
                [] -> at_entries(N + 1, maps:remove(Id, Sought), Now, Trace);
                Left -> at_entries(N + 1, Sought#{Id := Left}, Now, Trace)
            end;
        #{} -> at_entries(N + 1, Sought, Found, Trace)
    end.

-doc """
The steps with which processes came to entries of their logs: the first one at that entry, or at the last entry before it that has
a step. If there is none, the step of its birth. Processes that are not in the trace have none.
""".
-spec find_steps([{Id :: pos_integer(), Entry :: non_neg_integer()}], trace()) ->
    #{{pos_integer(), non_neg_integer()} => pos_integer()}.
find_steps(Places, #trace{size = Size, processes = Processes} = Trace) ->
    Known = [Place || {Id, _} = Place <- lists:usort(Places), is_map_key(Id, Processes)],
    Sought = maps:groups_from_list(fun({Id, _}) -> Id end, fun({_, Entry}) -> Entry end, Known),
    Begun = #{Id => {0, maps:get(born, process(Id, Trace))} || Id := _ <- Sought},
    find_steps(1, Size, Sought, Begun, #{}, Trace).

%% Last: the current entry of each of these processes, and the first step there.
find_steps(N, Size, Sought, Last, Found, _) when N > Size ->
    maps:fold(fun(Id, Entries, Known) ->
        #{Id := {_, Step}} = Last,
        lists:foldl(fun(Entry, A) -> A#{{Id, Entry} => Step} end, Known, Entries)
    end, Found, Sought);
find_steps(N, Size, Sought, Last, Found, Trace) ->
    {Id, Entry, _, _, _} = read_step(N, Trace),
    case Last of
        #{Id := {At, Step}} when Entry > At ->
            #{Id := Entries} = Sought,
            {Passed, Left} = lists:splitwith(fun(E) -> E < Entry end, Entries),
            Now = lists:foldl(fun(E, A) -> A#{{Id, E} => Step} end, Found, Passed),
            find_steps(N + 1, Size, Sought#{Id := Left}, Last#{Id := {Entry, N}}, Now, Trace);
        #{} -> find_steps(N + 1, Size, Sought, Last, Found, Trace)
    end.

-doc "The processes that ever lived, in the order in which they were born.".
-spec processes(trace()) -> [process()].
processes(#trace{processes = Processes} = Trace) ->
    lists:sort(fun(#{born := A}, #{born := B}) -> A =< B end, [process(Id, Trace) || Id := _ <- Processes]).

-doc "A process by its number.".
-spec process(pos_integer(), trace()) -> process().
process(Id, #trace{processes = Processes, pids = Pids}) ->
    #{Id := {Parent, MFA, Born, Ended}} = Processes,
    #{id => Id, pid => map_get(Id, Pids), parent => Parent, called => MFA, born => Born, ended => Ended}.

-doc "The number of the process of this pid; 0: it is not in the trace.".
-spec process_id(term(), trace()) -> non_neg_integer().
process_id(Pid, #trace{ids = Ids, processes = Processes}) ->
    case Ids of
        #{Pid := Id} when is_map_key(Id, Processes) -> Id;
        #{} -> 0
    end.

-doc "The step with which the process of this pid ends; 0: it does not end, or is not in the recording.".
-spec exit_step(term(), trace()) -> non_neg_integer().
exit_step(Pid, Trace) ->
    case process_id(Pid, Trace) of
        0 -> 0;
        Id -> maps:get(ended, process(Id, Trace))
    end.

-doc "The last step that explicitly sent an exit signal to a process; 0: none.".
-spec signal(pos_integer(), trace()) -> non_neg_integer().
signal(Id, #trace{signals = Signals}) -> maps:get(Id, Signals, 0).

-doc """
How many steps before the end of a process another one has taken the message about it, at most. The replay does not order the two, so
here numbers do not agree with cause and effect.
""".
-spec skew(trace()) -> non_neg_integer().
skew(#trace{skew = Skew}) -> Skew.
