-module(witness_offline).
-moduledoc """
Offline instrumentation: monitors read a log instead of a system.

```
feed (reads, parses) --blocks--> this process (m:witness_offline_core) --operations--> shards (monitors)
                                        ^------------- outcomes of each block ---------'
```

Blocks are parsed in parallel, and shards work in parallel. But a block is only done when all its shards have answered. Then
this process reports the results of the block to the run in the order of the log, however many schedulers there are. The
number of blocks on their way is bounded. So memory does not grow with the log, and a slow monitor slows down the reading.

A line that cannot be read, or an impossible event, ends the reading. What was found before stands, and undecided monitors
stay so. With `skip_malformed` such lines are counted and left out.

A shard dies if its monitors need more than `memory`, or if one has ended its process. Then those of its monitors that are
undecided are inconclusive, and processes that start later have their monitors in another shard.

This process reports `{checked, Number, Checked}` (`t:checked/0`) to the run. The run calls `acknowledge/2` for each, when it has
passed on the results. Without these calls, this process goes on to a few further blocks only, and saves no position. At the
end it reports `{log_ended, How}` (`t:ended/0`) once, and ends.
""".
-behaviour(gen_server).
-behaviour(witness_instrument).

-export([abilities/0]).
-export([start_link/1, lives/2, launch/3, each/2, acknowledge/2, stop/1, info/1, give_up/1, counts/1, called/1, seen/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-export_type([config/0, read/0, checked/0, place/0, ended/0, counter/0, missing/0]).

-doc """
`feed`: the log and how it is read (`t:witness_trace_feed:options/0`); `log`: what is made of it
(`t:witness_offline_core:config/0`), sorted by times with `sort` (`witness_trace_sort:new/1`); `file`: how errors name the log; `each`: whether each verdict is reported by itself
(`each/2`), as by default. With `save`, the position is saved in a file at intervals and when reading ends. With `from`,
reading goes on at a position that was saved with the same `identity`. `on_read` is called with each event for a monitor
(`t:read/0`), in the process of the monitor. `called`, what processes are called, is set by `start_link/1`.
""".
-type config() :: #{feed := witness_trace_feed:options(), log := witness_offline_core:config(), file := binary(),
                    sort => non_neg_integer(), each => boolean(), explain := pos_integer(), max_slices := pos_integer(),
                    slice_idle => pos_integer() | infinity,
                    memory => pos_integer(), run := pid(),
                    identity := binary(), save => file:name_all(), from => file:name_all(),
                    on_read => fun((read()) -> term()),
                    called => witness_instrument_called:called()}.

-doc """
An event for a monitor of a property. `taken`: the actions that the monitor took with this event: bit 7 represents the `id` 7
(`c:witness_monitor:coverage/1`). After its verdict it takes none. `place`: the event's number in the order of delivery, and its line.
""".
-type read() :: #{spec := binary(), name := binary() | undefined, place := {pos_integer(), pos_integer()},
                  event := witness_event:event(), taken := non_neg_integer()}.

-doc """
What a part of the log has shown. `started`: how many monitors of each property were started; `monitors`: which ones, if that
is wanted (`lives/2`); `covered`: the actions that monitors of a property have taken; `counted`: how many monitors and slices
were satisfied, if there is no more to report of them, and how many of them vacuously; likewise, how many slices were left
undecided, for each reason; `found`: verdicts with the place that decided them, in the order of the log.
""".
-type checked() :: #{started := [{Property :: #{spec := binary(), name := binary() | undefined}, pos_integer()}],
                     monitors := [witness_offline_core:meta()],
                     covered := [{witness_instrument_map:entry(), Mask :: non_neg_integer()}],
                     counted := [{witness_instrument_map:entry(), Monitors :: non_neg_integer(), Slices :: non_neg_integer(),
                                  Vacuous :: non_neg_integer(),
                                  Undecided :: #{witness_monitor_instance:reason() => pos_integer()}}],
                     found := [{slice | verdict, witness_offline_core:meta(), place(), Outcome :: map()}]}.

-doc "A line of a log; a process of a recording with the number of its entry, 0 for its birth.".
-type place() :: pos_integer() | {Id :: pos_integer(), Entry :: non_neg_integer()}.

-doc """
How reading has ended. `whole`: whether at the end of the log; `tracers`: how many there were at most; `gaps`: how many,
`hiding` of which may hide births; `missing`: the first gaps, with signatures where these are known; `orphans`: processes
without a spawn in the log, with the number of their items; `skipped`: how many lines were left out; `malformed`: the first
of them; `lost`: how often a followed file was truncated too early; `unsaved`: why the position could not be saved; `unsorted`: how many
lines were read and not judged, since earlier ones may come; `back`: the place
of the first time before that of an earlier event of the same process, and by how many nanoseconds such times go back at most.
""".
-type ended() :: #{whole := boolean(), tracers := pos_integer(), gaps := non_neg_integer(), hiding := non_neg_integer(),
                   missing := [missing()],
                   orphans := [{witness_event:proc(), pos_integer()}],
                   refused := undefined | unicode:chardata(),
                   skipped := non_neg_integer(), malformed := [unicode:chardata()], lost := non_neg_integer(),
                   unsaved => unicode:chardata(), unsorted => non_neg_integer(), back => {unicode:chardata(), pos_integer()}}.

-doc "A gap.".
-type missing() :: #{process := witness_event:proc(), signature := witness_event:signature() | mfa() | undefined, reason := atom(),
                     count := pos_integer() | unknown}.

-doc "The counters of a run, which any process may read at any time.".
-opaque counter() :: {counters:counters_ref(), witness_trace_feed:progress()}.

%% The places of the events of a recording, after so many lines before them.
-type places() :: none | {Before :: non_neg_integer(), tuple()}.

%% waits: shards that have not answered yet; asked: whether the feed was asked for it
-record(block, {waits :: #{pid() => []},
                asked :: boolean(),
                started :: [{witness_offline_shard:id(), witness_offline_core:shard(), witness_offline_core:meta()}],
                shift :: integer(),
                places :: places(),
                counted = [] :: [{witness_offline_core:shard(), witness_offline_shard:counted()}],
                found = [] :: [[{witness_offline_core:place(), witness_offline_shard:id(), slice | verdict, map()}]],
                covered = [] :: [{witness_offline_core:shard(), non_neg_integer()}]}).

%% early: blocks that have overtaken others; next: the number of the next one to take
%% blocks: those that monitors work on; oldest: the number of the oldest of these
%% unacknowledged: blocks for which the run has not called `acknowledge/2'
%% each: 1 if each verdict is reported by itself
%% sort: the items that wait, if the log is sorted
%% saving: no block is taken until the run has acknowledged the others and the position is saved; then this is done
%% line: lines so far; shift: from these to lines of the file, which restart when a file is rotated
-record(offline, {config :: config(),
                  feed :: witness_trace_feed:feed(),
                  counter :: counters:counters_ref(),
                  log :: witness_offline_core:state(),
                  sort = none :: none | witness_trace_sort:sort(),
                  reading = true :: boolean(),
                  next = 1 :: pos_integer(),
                  early = #{} :: #{pos_integer() => witness_trace_feed:what()},
                  sequence = 0 :: non_neg_integer(),
                  oldest = 1 :: pos_integer(),
                  blocks = #{} :: #{pos_integer() => #block{}},
                  shards = #{} :: #{witness_offline_core:shard() => pid()},
                  numbers = #{} :: #{pid() => witness_offline_core:shard()},
                  masks = #{} :: #{witness_offline_core:shard() => non_neg_integer()},
                  metas = #{} :: #{witness_offline_shard:id() => {witness_offline_core:shard(), witness_offline_core:meta()}},
                  position :: undefined | witness_log_reader:position(),
                  unacknowledged = #{} :: #{non_neg_integer() => #block{}},
                  saving = no :: no | saved | eof | stop,
                  line = 0 :: non_neg_integer(),
                  shift = 0 :: integer(),
                  places = none :: places(),
                  lives = none :: none | pid(),
                  each :: atomics:atomics_ref(),
                  ended :: ended()}).

-define(PROCESSES_INDEX, 1).
-define(EVENTS_INDEX, 2).
-define(ALIVE_INDEX, 3).
-define(LINES_INDEX, 4).

%% Milliseconds between two saves of the position.
-define(SAVE_MS, 5_000).
%% The most malformed lines that are listed.
-define(MAX_NAMED, 10).

-doc false.
-spec abilities() -> witness_instrument:abilities().
abilities() ->
    #{attach => false, parents => false, servers => false, adopt_node => false, alive => false, awaited => false,
      replace => {false, log}, each => true, acknowledge => true, lives => true, give_up => true, inherit => false,
      called => true,
      seen => true}.

-doc "Opens the log, for a run, which is the calling process. An error is text for people.".
-spec start_link(config()) -> {ok, pid(), counter()} | {error, unicode:chardata()}.
start_link(Config) ->
    Counter = {counters:new(4, [write_concurrency]), witness_trace_feed:progress()},
    %% Blocks are garbage soon, and the state is small.
    Whole = Config#{called => witness_instrument_called:new()},
    case gen_server:start_link(?MODULE, {Whole, Counter}, [{spawn_opt, [{fullsweep_after, 10}]}]) of
        {ok, Pid} -> {ok, Pid, Counter};
        {error, {shutdown, Text}} -> {error, Text}
    end.

-doc """
From now on births and ends are reported to a process as well, by the call `{lives, [{Place, Life}]}`, in the order of the log
(`t:witness_offline_core:life/0`).
""".
-spec lives(pid(), To :: pid()) -> ok.
lives(Pid, To) -> gen_server:call(Pid, {lives, To}, infinity).

-doc "See `c:witness_instrument:called/1`: a log has no registered names.".
-spec called(pid()) -> fun((witness_event:proc()) -> [atom()]).
called(Pid) ->
    Called = gen_server:call(Pid, called, infinity),
    fun(P) -> witness_instrument_called:find(P, Called) end.

-doc "See `c:witness_instrument:seen/1`.".
-spec seen(pid()) -> fun(() -> [witness_instrument:sight()]).
seen(Pid) ->
    Called = gen_server:call(Pid, called, infinity),
    fun() -> witness_instrument_called:seen(Called) end.

-doc "Starts to read.".
-spec launch(pid(), term(), pid()) -> {ok, pid()}.
launch(Pid, _, _) ->
    ok = gen_server:call(Pid, launch, infinity),
    {ok, Pid}.

-doc """
Whether each verdict is reported by itself from now on. Otherwise satisfied ones are only counted: to explain them, and to
send the explanations between processes, costs more than all their events.
""".
-spec each(pid(), boolean()) -> ok.
each(Pid, Each) -> gen_server:call(Pid, {each, Each}, infinity).

-doc "The run has passed on what was found in this block.".
-spec acknowledge(pid(), Number :: pos_integer()) -> ok.
acknowledge(Pid, Number) -> Pid ! {told, Number}, ok.

-doc "How many tracers a log has needed is in `log_ended`.".
-spec info(pid()) -> #{busy := 0, idle := 0, most := 1}.
info(_) -> #{busy => 0, idle => 0, most => 1}.

-doc "Ends the reading in good order: `log_ended` comes after all that was found in what was read.".
-spec stop(pid()) -> later.
stop(Pid) ->
    ok = gen_server:cast(Pid, stop),
    later.

-doc "Stops waiting for shards that have not answered: their monitors end as `{crashed, overdue}`.".
-spec give_up(pid()) -> ok.
give_up(Pid) -> gen_server:cast(Pid, give_up).

-doc "Processes and events so far, processes that are alive, lines and bytes that were read, and the size in bytes.".
-spec counts(counter()) -> #{processes := non_neg_integer(), events := non_neg_integer(), held := non_neg_integer(),
                             lines := non_neg_integer(), read := non_neg_integer(), size := pos_integer() | unknown}.
counts({Counter, Progress}) ->
    {Read, Size} = witness_trace_feed:read(Progress),
    #{processes => counters:get(Counter, ?PROCESSES_INDEX), events => counters:get(Counter, ?EVENTS_INDEX),
      held => counters:get(Counter, ?ALIVE_INDEX), lines => counters:get(Counter, ?LINES_INDEX), read => Read, size => Size}.

-doc false.
-spec init({config(), {counters:counters_ref(), witness_trace_feed:progress()}}) -> {ok, #offline{}} | {stop, term()}.
init({Config = #{feed := Feed, log := Log}, {Counter, Progress}}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_offline),
    maybe
        {ok, Saved} ?= read_saved(Config),
        {ok, Started} ?= witness_trace_feed:start_link(maps:merge(Feed, maps:with([position], Saved)), Progress),
        Each = atomics:new(1, []),
        ok = put_each(maps:get(each, Config, true), Each),
        Sort = case Config of #{sort := Window} -> witness_trace_sort:new(Window); #{} -> none end,
        O = #offline{config = Config, feed = Started, counter = Counter, log = witness_offline_core:new(Log), sort = Sort,
                     each = Each,
                     ended = #{whole => false, tracers => 1, gaps => 0, hiding => 0, missing => [], orphans => [],
                               refused => undefined, skipped => 0,
                               malformed => [], lost => 0}},
        {ok, load(Saved, O)}
    else
        {error, Text} -> {stop, {shutdown, Text}}
    end.

put_each(Each, Ref) -> atomics:put(Ref, 1, case Each of true -> 1; false -> 0 end).

%% The application `telemetry' may be loaded at any time.
is_counted_fun(Ref) -> fun() -> atomics:get(Ref, 1) =:= 0 andalso not erlang:function_exported(telemetry, execute, 3) end.

read_saved(#{from := File, identity := Identity}) -> witness_offline_checkpoint:read(File, Identity);
read_saved(#{}) -> {ok, #{}}.

load(#{position := Position, log := Log, shards := Shards, metas := Metas, line := Line, shift := Shift, ended := Ended,
       covered := Covered} = Saved, O) ->
    #offline{config = #{log := Config}} = O,
    Loaded = O#offline{position = Position, log = witness_offline_core:load(Log, Config), metas = Metas, line = Line,
                       sort = maps:get(sort, Saved, none),
                       shift = Shift, ended = Ended, masks = maps:from_list(Covered)},
    O1 = maps:fold(fun(Shard, Data, A) ->
        {Pid, A1} = find_shard(Shard, A#offline.log, A),
        ok = witness_offline_shard:load(Pid, Data),
        A1
    end, Loaded, Shards),
    %% The run counts the monitors that go on.
    Nothing = #block{waits = #{}, asked = false, started = [], shift = 0, places = none},
    report(0, Nothing#block{started = [{Id, Shard, Meta} || Id := {Shard, Meta} <- Metas], covered = Covered},
           [Meta || _ := {_, Meta} <- Metas], [], O1#offline{unacknowledged = #{0 => Nothing}});
load(#{}, O) -> O.

-doc false.
-spec handle_call(launch | called | {lives, pid()} | {each, boolean()}, gen_server:from(), #offline{}) ->
    {reply, ok | witness_instrument_called:called(), #offline{}}.
handle_call(called, _, O = #offline{config = #{called := Called}}) ->
    {reply, Called, O};
handle_call({lives, To}, _, O = #offline{log = Log}) ->
    {reply, ok, O#offline{lives = To, log = witness_offline_core:report_lives(Log)}};
handle_call({each, Each}, _, O = #offline{each = Ref}) ->
    {reply, put_each(Each, Ref), O};
handle_call(launch, _, O = #offline{config = #{feed := #{parsers := Parsers}}, feed = Feed}) ->
    %% Each parser has one block at work and one in reserve, and the shards have one or two.
    ok = witness_trace_feed:request(Feed, 2 * Parsers + 2),
    save_later(O),
    {reply, ok, O}.

-doc false.
-spec handle_cast(stop | give_up, #offline{}) -> {noreply, #offline{}} | {stop, normal, #offline{}}.
handle_cast(stop, O = #offline{reading = true, saving = Saving}) when Saving =:= no; Saving =:= saved ->
    report_done(save_then(stop, O));
handle_cast(give_up, O = #offline{blocks = Blocks}) ->
    Waits = lists:usort([Pid || _ := #block{waits = Pids} <- Blocks, Pid <- maps:keys(Pids)]),
    report_done(lists:foldl(fun(Pid, A) ->
        true = unlink(Pid),
        true = exit(Pid, kill),
        handle_shard_exit(Pid, overdue, A)
    end, O, Waits));
handle_cast(stop, O) ->
    {noreply, O}.

-doc false.
-spec handle_info(term(), #offline{}) -> {noreply, #offline{}} | {stop, normal, #offline{}}.
handle_info({witness_feed, Number, What}, O = #offline{reading = true, early = Early}) ->
    report_done(take_next(O#offline{early = Early#{Number => What}}));
handle_info(save, O = #offline{reading = true, saving = no}) ->
    report_done(save_then(saved, O));
handle_info({worked, Number, Shard, Found, Counted, Covered}, O = #offline{numbers = Numbers}) when is_map_key(Shard, Numbers) ->
    report_done(add_answer(Number, Shard, Found, Counted, Covered, O));
handle_info({told, Number}, O = #offline{unacknowledged = Untold}) ->
    {Block, Rest} = maps:take(Number, Untold),
    report_done(request_more(Block, O#offline{unacknowledged = Rest}));
handle_info({'EXIT', Shard, Reason}, O = #offline{numbers = Numbers}) when is_map_key(Shard, Numbers) ->
    report_done(handle_shard_exit(Shard, Reason, O));
handle_info({'EXIT', _, normal}, O) ->
    {noreply, O};
handle_info({'EXIT', _, Reason}, O) ->
    {stop, Reason, O};
handle_info(_, O) ->
    {noreply, O}.

%% A crash report would contain the contents of messages.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> witness_event_redact:status(Status).

-doc false.
-spec terminate(term(), #offline{}) -> ok.
terminate(_, #offline{feed = Feed, numbers = Shards}) ->
    ok = witness_trace_feed:stop(Feed),
    lists:foreach(fun(Shard) -> unlink(Shard), exit(Shard, kill) end, maps:keys(Shards)).

take_next(O = #offline{reading = true, saving = no, next = Next, early = Early}) when is_map_key(Next, Early) ->
    {What, Rest} = maps:take(Next, Early),
    take_next(handle_feed(What, O#offline{next = Next + 1, early = Rest}));
take_next(O) -> O.

handle_feed({block, #{items := Items, lines := Lines} = Parsed, Position}, O0 = #offline{log = Log, line = Base}) ->
    #{lines := Last} = Position,
    Places = case Parsed of #{places := Of} -> {Base, Of}; #{} -> none end,
    O = add_skipped(Parsed, O0#offline{line = Base + Lines, shift = Last - Lines - Base, position = Position, places = Places},
                    Base),
    go_on(take_items(Items, Base, Log, O), O, fun(Log1, O1) ->
        case Parsed of
            #{skipped := 0, malformed := [{Line, Column, What}]} -> end_at(Base + Line, Column, What, Log1, O1);
            #{} -> work(Log1, O1)
        end
    end);
handle_feed({long, Bytes, #{lines := Last} = Position}, O0 = #offline{log = Log, line = Base}) ->
    O = O0#offline{line = Base + 1, shift = Last - 1 - Base, position = Position},
    What = ["a line of at most ", integer_to_list(max_line(O)), " bytes is expected, this one has ",
            integer_to_list(Bytes), " (--max-line)"],
    case skips_malformed(O) of
        true -> work(Log, skip(Base + 1, undefined, What, O));
        false -> end_at(Base + 1, undefined, What, Log, O)
    end;
handle_feed({lost, Reason}, O = #offline{log = Log, ended = Ended = #{lost := Lost}}) ->
    work(witness_offline_core:add_gap(Reason, here(O), Log), O#offline{ended = Ended#{lost := Lost + 1}});
handle_feed({clock, Time}, O = #offline{sort = none, log = Log, line = Line}) ->
    work(witness_offline_core:clock(Time, Line, Log), false, O);
handle_feed({clock, Time}, O = #offline{sort = Sort, line = Line, shift = Shift}) ->
    {Sorted, Sort1} = witness_trace_sort:pass(Time, Line + Shift, Sort),
    take_rest(Sorted, O#offline{sort = Sort1}, fun(Log1, O1) -> work(witness_offline_core:settle(here(O1), Log1), false, O1) end);
handle_feed(idle, O = #offline{log = Log}) ->
    work(witness_offline_core:settle(here(O), Log), false, O);
handle_feed(eof, O) ->
    save_then(eof, O);
handle_feed({error, Text}, O) ->
    end_reading(witness_offline_core:stop(here(O), O#offline.log), put_refusal(Text, O)).

%% With `skip_malformed' an impossible item is left out as well.
take_items(Items, Base, Log, O = #offline{sort = Sort, shift = Shift}) when Sort =/= none ->
    case witness_trace_sort:add(Items, {Base, Shift}, Sort) of
        {ok, Sorted, Sort1} -> take_sorted(Sorted, Log, O#offline{sort = Sort1});
        {refused, Line, What, Sorted, Rest, Sort1} ->
            case take_sorted(Sorted, Log, O#offline{sort = Sort1}) of
                {ok, Log1, O1} ->
                    case skips_malformed(O) of
                        true -> take_items(Rest, Base, Log1, skip(Line, undefined, What, O1));
                        false -> {refused, Line, What, Log1, O1}
                    end;
                Refused -> Refused
            end
    end;
take_items(Items, Base, Log, O) ->
    case witness_offline_core:items(Items, Base, Log) of
        {ok, Log1} -> {ok, Log1, O};
        {refused, Line, What, Rest, Log1} ->
            case skips_malformed(O) of
                true -> take_items(Rest, Base, Log1, skip(Line, undefined, What, O));
                false -> {refused, Line, What, Log1, O}
            end;
        {unseen, _, _, _} = Unseen -> Unseen
    end.

%% Their lines are those of their file.
take_sorted(Sorted, Log, O = #offline{sort = Sort, shift = Shift}) ->
    case take_items(Sorted, 0, Log, O#offline{sort = none, shift = 0}) of
        {ok, Log1, O1} -> {ok, Log1, O1#offline{sort = Sort, shift = Shift}};
        {refused, Line, What, Log1, O1} -> {refused, Line - Shift, What, Log1, O1#offline{sort = Sort, shift = Shift}};
        {unseen, Line, What, Log1} -> {unseen, Line - Shift, What, Log1}
    end.

%% What has waited, and then the rest.
take_rest(Sorted, O = #offline{log = Log}, Then) -> go_on(take_sorted(Sorted, Log, O), O, Then).

%% Unless an item ends the reading.
go_on({ok, Log, O}, _, Then) -> Then(Log, O);
go_on({refused, Line, What, Log, O}, _, _) -> end_at(Line, undefined, What, Log, O);
go_on({unseen, Line, What, Log}, O, _) -> end_at(Line, undefined, What, Log, O).

skips_malformed(#offline{config = #{feed := Feed}}) -> maps:get(skip_malformed, Feed, false).

max_line(#offline{config = #{feed := #{max_line := Max}}}) -> Max.

add_skipped(#{skipped := 0}, O, _) -> O;
add_skipped(#{skipped := Count, malformed := Malformed}, O, Base) ->
    O1 = lists:foldl(fun({Line, Column, What}, A) -> skip(Base + Line, Column, What, A) end, O, Malformed),
    Ended = #{skipped := Skipped} = O1#offline.ended,
    O1#offline{ended = Ended#{skipped := Skipped + Count - length(Malformed)}}.

skip(Line, Column, What, O = #offline{ended = #{skipped := Skipped, malformed := Named} = Ended}) when Skipped < ?MAX_NAMED ->
    O#offline{ended = Ended#{skipped := Skipped + 1, malformed := Named ++ [error_text(Line, Column, What, O)]}};
skip(_, _, _, O = #offline{ended = Ended = #{skipped := Skipped}}) ->
    O#offline{ended = Ended#{skipped := Skipped + 1}}.

end_at(Line, Column, What, Log, O) ->
    end_reading(witness_offline_core:stop(here(Line, O), Log), put_refusal(error_text(Line, Column, What, O), O)).

put_refusal(Text, O = #offline{ended = Ended}) -> O#offline{ended = Ended#{refused := Text}}.

error_text(Line, _, What, #offline{config = #{file := File}, places = {_, _} = Places}) ->
    {Id, Entry} = place(Line, Places),
    [File, ": process ", integer_to_list(Id), ", entry ", integer_to_list(Entry), ": ", What];
error_text(Line, Column, What, #offline{config = #{file := File}, shift = Shift}) ->
    Place = [integer_to_list(N) || N <- [Line + Shift, Column], is_integer(N)],
    [lists:join($:, [File | Place]), ": ", What].

%% --- positions -------------------------------------------------------------------

save_later(#offline{config = #{save := _}}) -> erlang:send_after(?SAVE_MS, self(), save);
save_later(_) -> none.

%% Continues with `Then' when the position is saved, or at once if none is to be saved.
save_then(Then, O = #offline{config = #{save := _}}) -> O#offline{saving = Then};
save_then(Then, O) -> after_save(Then, O).

%% All that was read is done, and no message about it is on its way.
save(O = #offline{position = undefined}) -> O;
save(O = #offline{config = #{save := File, identity := Identity}, log = Log, shards = Shards, metas = Metas}) ->
    State = #{position => O#offline.position, log => witness_offline_core:save(Log), sort => O#offline.sort, metas => Metas,
              line => O#offline.line, shift => O#offline.shift, ended => O#offline.ended,
              covered => maps:to_list(O#offline.masks),
              shards => #{Shard => witness_offline_shard:save(Pid) || Shard := Pid <- Shards}},
    case witness_offline_checkpoint:write(File, Identity, State) of
        ok -> O;
        {error, Text} -> put_unsaved(Text, O)
    end.

put_unsaved(Text, O = #offline{ended = Ended}) -> O#offline{ended = Ended#{unsaved => Text}}.

after_save(saved, O) ->
    save_later(O),
    take_next(O#offline{saving = no});
%% A line that was not read may be before what waits.
after_save(stop, O = #offline{sort = Sort, log = Log, ended = Ended}) when Sort =/= none ->
    Told = Ended#{unsorted => witness_trace_sort:count(Sort)},
    end_reading(witness_offline_core:stop(here(O), Log), O#offline{saving = no, ended = Told});
after_save(stop, O = #offline{log = Log}) ->
    end_reading(witness_offline_core:stop(here(O), Log), O#offline{saving = no});
after_save(eof, O = #offline{sort = Sort}) when Sort =/= none ->
    {Sorted, Sort1} = witness_trace_sort:flush(Sort),
    take_rest(Sorted, O#offline{saving = no, sort = Sort1}, fun finish/2);
after_save(eof, O = #offline{log = Log}) ->
    finish(Log, O).

finish(Log, O = #offline{ended = Ended}) ->
    {Orphans, Log1} = witness_offline_core:finish(here(O), Log),
    end_reading(Log1, O#offline{saving = no, ended = Ended#{whole := true, orphans := Orphans}}).

%% The place behind all that was taken.
here(O = #offline{line = Line}) -> here(Line, O).

here(Line, #offline{sort = none}) -> Line;
here(Line, #offline{sort = Sort, shift = Shift}) -> witness_trace_sort:place(Line + Shift, Sort).

%% From the lines of places to those of the file.
shift(#offline{sort = none, shift = Shift}) -> Shift;
shift(_) -> 0.

%% Nothing more is read.
end_reading(Log, O) -> work(Log, O#offline{reading = false, early = #{}}).

%% --- the work of the shards ------------------------------------------------------

work(Log, O) -> work(Log, true, O).

work(Log0, Asked, O = #offline{sequence = Last}) ->
    {#{operations := Operations, started := Started, births := Births, lives := Lives}, Log} = witness_offline_core:take(Log0),
    #offline{config = #{called := Called}} = O,
    lists:foreach(fun({P, Signature}) -> witness_instrument_called:add_birth(P, Signature, Called) end, Births),
    ok = report_lives(Lives, O),
    Number = Last + 1,
    {Waits, O1} = maps:fold(fun(Shard, Of, {Pids, A}) ->
        {Pid, A1} = find_shard(Shard, Log, A),
        ok = witness_offline_shard:work(Pid, Number, Of, self()),
        {Pids#{Pid => []}, A1}
    end, {#{}, update_counters(O#offline{log = Log, sequence = Number})}, Operations),
    Block = #block{waits = Waits, asked = Asked, started = Started, shift = shift(O), places = O1#offline.places},
    O1#offline{blocks = (O1#offline.blocks)#{Number => Block},
               metas = maps:merge(O1#offline.metas, #{Id => {Shard, Meta} || {Id, Shard, Meta} <- Started})}.

%% The process that wants births and ends may have ended, which does not matter to the monitors.
report_lives([], _) -> ok;
report_lives(Lives, O = #offline{lives = To}) ->
    try gen_server:call(To, {lives, [{Place + shift(O), Life} || {Place, Life} <- Lives]}, infinity)
    catch exit:_ -> ok
    end.

update_counters(O = #offline{counter = Counter, log = Log, line = Line}) ->
    #{processes := Processes, events := Events, alive := Alive, tracers := Tracers, gaps := Gaps, hiding := Hiding, back := Back} =
        witness_offline_core:counts(Log),
    counters:put(Counter, ?PROCESSES_INDEX, Processes),
    counters:put(Counter, ?EVENTS_INDEX, Events),
    counters:put(Counter, ?ALIVE_INDEX, Alive),
    counters:put(Counter, ?LINES_INDEX, Line),
    add_back(Back, O#offline{ended = (O#offline.ended)#{tracers := Tracers, gaps := Gaps, hiding := Hiding}}).

%% The first place is that of the file that is read then.
add_back(none, O) -> O;
add_back({_, Most}, O = #offline{ended = #{back := {Place, _}} = Ended}) -> O#offline{ended = Ended#{back := {Place, Most}}};
add_back({Line, Most}, O = #offline{config = #{file := File}, shift = Shift, ended = Ended}) ->
    O#offline{ended = Ended#{back => {[File, $:, integer_to_binary(Line + Shift)], Most}}}.

find_shard(Shard, Log, O = #offline{shards = Shards, numbers = Numbers, config = Config, each = Each}) ->
    case Shards of
        #{Shard := Pid} -> {Pid, O};
        #{} ->
            #{monitor := Monitor} = Property = witness_offline_core:property(Shard, Log),
            Given = maps:merge(maps:with([explain, max_slices, slice_idle, memory], Config), on_read(Property, Config)),
            Pid = witness_offline_shard:start_link(Given#{monitor => Monitor, counted => is_counted_fun(Each)}),
            {Pid, O#offline{shards = Shards#{Shard => Pid}, numbers = Numbers#{Pid => Shard}}}
    end.

on_read(Property, #{on_read := OnRead}) ->
    Of = maps:with([spec, name], Property),
    #{on_read => fun(Place, Event, Taken) ->
        OnRead(Of#{place => witness_offline_core:place(Place), event => Event, taken => Taken})
    end};
on_read(_, #{}) -> #{}.

add_answer(Number, Pid, Found, Counted, Covered, O = #offline{blocks = Blocks, numbers = Numbers, masks = Masks}) ->
    #{Number := Block = #block{waits = Waits}} = Blocks,
    #{Pid := Shard} = Numbers,
    New = case Masks of
        #{Shard := Covered} -> [];
        #{} -> [{Shard, Covered}]
    end,
    Block1 = Block#block{waits = maps:remove(Pid, Waits), found = [Found || Found =/= []] ++ Block#block.found,
                         counted = [{Shard, Counted} || Counted =/= {[], 0, 0, 0, #{}}] ++ Block#block.counted,
                         covered = New ++ Block#block.covered},
    O#offline{blocks = Blocks#{Number := Block1}, masks = Masks#{Shard => Covered}}.

%% All answers of the shard came before. What it has done of the rest is unknown, so its monitors end in a block of their own,
%% behind those in which they were started.
handle_shard_exit(Pid, Reason, O = #offline{blocks = Blocks, numbers = Numbers, shards = Shards, sequence = Last, line = Line,
                                            shift = Shift, places = Places}) ->
    {Shard, Numbers1} = maps:take(Pid, Numbers),
    %% Its block has the shift of the last line.
    Ended = [{max(1, Line), Id, verdict, witness_monitor_machine:failure_outcome({crashed, Reason})} ||
             Id <- undecided_monitors(Shard, O)],
    Block = #block{waits = #{}, asked = false, started = [], shift = Shift, places = Places, found = [Ended]},
    Answered = #{N => B#block{waits = maps:remove(Pid, Waits)} || N := #block{waits = Waits} = B <- Blocks},
    O#offline{blocks = Answered#{Last + 1 => Block}, sequence = Last + 1, numbers = Numbers1, shards = maps:remove(Shard, Shards)}.

%% The monitors of a shard that have no verdict on its way to the run.
undecided_monitors(Shard, #offline{metas = Metas, blocks = Blocks}) ->
    Decided = #{Id => [] || _ := #block{found = Found} <- Blocks, Told <- Found, {_, Id, verdict, _} <- Told},
    Counted = #{Id => [] || _ := #block{counted = Of} <- Blocks, {_, {Ids, _, _, _, _}} <- Of, Id <- Ids},
    lists:sort([Id || Id := {L, _} <- Metas, L =:= Shard, not is_map_key(Id, Decided), not is_map_key(Id, Counted)]).

%% Blocks are reported in order. For each that the run has acknowledged, the feed may deliver another one.
report_done(O = #offline{oldest = Oldest, blocks = Blocks, sequence = Last, unacknowledged = Untold}) ->
    case Blocks of
        #{Oldest := Block = #block{waits = Waits}} when map_size(Waits) =:= 0 ->
            report_done(report_block(Oldest, Block, O#offline{blocks = maps:remove(Oldest, Blocks), oldest = Oldest + 1}));
        #{} when Oldest > Last, map_size(Untold) =:= 0, O#offline.saving =/= no ->
            report_done(after_save(O#offline.saving, save(O)));
        #{} when Oldest > Last, map_size(Untold) =:= 0, not O#offline.reading ->
            #offline{config = #{run := Run}, ended = Ended} = O,
            Run ! {log_ended, Ended#{missing := missing_events(O)}},
            {stop, normal, O};
        #{} -> {noreply, O}
    end.

missing_events(#offline{log = Log, config = #{feed := #{input := Input} = Feed}}) ->
    #{missing := Missing} = witness_offline_core:counts(Log),
    Known = case Input of
        {recording, Dir} when Missing =/= [] -> witness_trace_recording:signatures(Dir, [P || {P, _, _} <- Missing], Feed);
        {events, Dir, _} when Missing =/= [] -> witness_trace_recording:signatures(Dir, [P || {P, _, _} <- Missing], Feed);
        _ -> #{}
    end,
    [#{process => P, signature => maps:get(P, Known, undefined), reason => Reason, count => Count}
     || {P, Reason, Count} <- Missing].

report_block(_, Block = #block{started = [], found = [], counted = [], covered = []}, O) -> request_more(Block, O);
report_block(Number, Block = #block{started = Started, found = Found, counted = Counted, shift = Shift, places = Places}, O0) ->
    %% The sort is stable, so the results of one operation of a monitor stay in order.
    Ordered = lists:keysort(1, [{{Order, Id}, Line, Kind, Outcome}
                                || {Place, Id, Kind, Outcome} <- lists:append(Found),
                                   {Order, Line} <- [witness_offline_core:place(Place)]]),
    {Told, O} = lists:mapfoldl(fun({{_, Id}, Line, Kind, Outcome}, A) ->
        to_report(place(Line + Shift, Places), Id, Kind, Outcome, A)
    end, O0, Ordered),
    Monitors = case O#offline.lives of
        none -> [];
        _ -> [Meta || {_, _, Meta} <- Started]
    end,
    %% The descriptions of these monitors are not needed any more.
    Gone = lists:append([Ids || {_, {Ids, _, _, _, _}} <- Counted]),
    report(Number, Block, Monitors, Told,
           O#offline{unacknowledged = (O#offline.unacknowledged)#{Number => Block}, metas = maps:without(Gone, O#offline.metas)}).

report(Number, #block{started = Started, counted = Counted, covered = Covered}, Monitors, Found,
       O = #offline{config = #{run := Run}, log = Log}) ->
    Run ! {checked, Number, #{started => by_property(Started), monitors => Monitors, found => Found,
                              counted => [{witness_offline_core:property(Shard, Log), Of, Slices, Vacuous, Undecided}
                                          || {Shard, {_, Of, Slices, Vacuous, Undecided}} <- Counted],
                              covered => [{witness_offline_core:property(Shard, Log), Mask} || {Shard, Mask} <- Covered]}},
    O.

by_property(Started) ->
    maps:to_list(lists:foldl(fun({_, _, Meta}, Counts) ->
        Of = maps:with([spec, name], Meta),
        maps:update_with(Of, fun(N) -> N + 1 end, 1, Counts)
    end, #{}, Started)).

%% The events of a recording never wait for others. Beyond its last event, only the last place is left.
place(Line, {Before, Places}) -> element(max(1, min(Line - Before, tuple_size(Places))), Places);
place(Line, none) -> Line.

to_report(Place, Id, slice, Outcome, O = #offline{metas = Metas}) ->
    {_, Meta} = map_get(Id, Metas),
    {{slice, Meta, Place, Outcome}, O};
to_report(Place, Id, verdict, Outcome, O = #offline{metas = Metas}) ->
    {{_, Meta}, Metas1} = maps:take(Id, Metas),
    {{verdict, Meta, Place, Outcome}, O#offline{metas = Metas1}}.

request_more(#block{asked = true}, O = #offline{reading = true, feed = Feed}) ->
    ok = witness_trace_feed:request(Feed, 1),
    O;
request_more(_, O) -> O.
