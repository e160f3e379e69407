-module(witness_offline_core).
-moduledoc """
RIARC over a log: the tracers of a run as data, in one process.

The source (`m:witness_trace_log`) gives each item to the tracer that owns its process, one item after the other. If that
tracer, a `m:witness_outline_core`, sends something to another one, it is handled at once, before the next item. So no
message is on its way between two items. The source can give a new process to its own tracer before the first event of the
process. So each process is `born` into its partition, no route is ever made, and a tracer has nothing left when its
partition has ended.

The results are *operations* for monitors, in the order of the log: start, event, end, gap (`t:witness_offline_shard:op/0`).
A monitor is named by a number, and belongs to one of the shards of its property (`t:shard/0`). Shards can perform their
operations in parallel.

In mode `central` one tracer owns everything; monitors see the same. Properties over all processes are for that mode:
their monitors are started first and read every event, in the order of delivery.
""".

-export([new/1, items/3, clock/3, add_gap/3, settle/2, finish/2, stop/2, take/1, property/2, counts/1, save/1,
         load/2]).
-export([place/1, report_lives/1]).

-export_type([config/0, wanted/0, state/0, place/0, shard/0, batch/0, meta/0, life/0, missing/0]).

-doc """
`maps`: instrumentation maps; `properties`: all properties that they name; `all`: those of them that are over all processes;
`spread`: the number of shards for the monitors of each property; `wants`: properties, as text, about messages that are taken, or
delivered, or about calls of a function: the log must say that it has these. `attached`: whether processes that the log has from an
`attached` on have monitors of their own (`monitored`, the default). `skew`: by how many nanoseconds the time of an event may be before the greatest one so
far; without it only the events of a monitor, and the end of the log, tell it the time. `clock`: the times are system times (`clock/3`). The others are for the source (`witness_trace_log:new/1`).
""".
-type config() :: #{maps := [witness_instrument_map:instrumentation()], signatures => witness_event_wrapper:table(),
                    properties := [witness_instrument_map:entry()],
                    all => [witness_instrument_map:entry()], wants => [wanted()],
                    attached => monitored | ignored, mode := outline | central, spread := pos_integer(),
                    skew => non_neg_integer(), clock => boolean(),
                    roots := auto | [witness_event:proc()], waiting => pos_integer(), window => pos_integer()}.

-doc "What a property, as text, needs to know of the log.".
-type wanted() :: {taken | delivered, unicode:chardata()} | {function, mfa(), unicode:chardata()}.

-doc "A shard of the monitors of one property (`property/2`).".
-type shard() :: non_neg_integer().

-doc "What is known of a monitor.".
-type meta() :: #{process => witness_event:proc(), signature => witness_event:signature(),
                  spec := binary(), name := binary() | undefined}.

-doc "A birth or an end. `there`: the log shows a process from its beginning, or from its middle, on.".
-type life() :: witness_event:event() | {there, witness_event:proc(), witness_event:signature() | undefined}.

-doc """
For each shard the operations since the last `take/1`, in order, and the monitors that were started with them; which processes
were spawned with which signatures; births and ends with their lines, if they are wanted (`report_lives/1`).
""".
-type batch() :: #{operations := #{shard() => [witness_offline_shard:op(), ...]},
                   started := [{witness_offline_shard:id(), shard(), meta()}],
                   births := [{witness_event:proc(), witness_event:signature()}], lives := [{line(), life()}]}.

-doc """
Where an operation stems from: the line of its item. If the item had to wait for its spawn, also the line with which it could
be delivered; in a sorted log, the rank of its item, or of that one. The latter never decreases, so operations can be put in an order (`place/1`).
""".
-type place() :: line() | {Delivered :: line(), line()}.

-type reader() :: {shard(), witness_offline_shard:id()}.
-type tracer() :: non_neg_integer().
-type line() :: non_neg_integer().

%% What the first lines of the log say of it: what each `recv` is, and of which functions it has the calls. `open`: the next line
%% may say more.
-type head() :: {open | closed, #{receives => taken | delivered, functions => [mfa()]}}.

%% plain: the readers of processes that have sends, receives, calls and returns for these readers only, whatever other processes do
%% all: the monitors that read all processes
%% alive: how many processes of a group its monitor still waits for
%% properties: with their numbers
%% place: that of the item that is delivered
%% gaps: their number; hiding: how many may hide births; missing: the first gaps, newest first
%% ticking: the shards with monitors that may have deadlines; time: the greatest one of an event or a clock
%% told: the time that was told last, before which nothing comes any more
%% clock: the greatest one
%% latest: without `skew', of each process; back: the first time that is before that, and by how much the times go back at most
%% operations, births: newest first
-record(log, {config :: config(),
              source :: witness_trace_log:log(),
              cores :: #{tracer() => witness_outline_core:core()},
              plain = #{} :: #{witness_event:proc() => [reader()]},
              all = [] :: [reader()],
              head = {open, #{}} :: head(),
              alive = #{} :: witness_instrument_monitors:alive(),
              tracer = 0 :: tracer(),
              most = 1 :: pos_integer(),
              monitor = 0 :: non_neg_integer(),
              properties :: #{witness_instrument_map:entry() => non_neg_integer()},
              place = 1 :: place(),
              processes = 0 :: non_neg_integer(),
              events = 0 :: non_neg_integer(),
              gaps = 0 :: non_neg_integer(),
              hiding = 0 :: non_neg_integer(),
              missing = [] :: [missing()],
              ticking = [] :: [shard()],
              time = none :: none | integer(),
              told = none :: none | integer(),
              clock = none :: none | integer(),
              latest = #{} :: #{witness_event:proc() => integer()},
              back = none :: none | {line(), pos_integer()},
              operations = #{} :: #{shard() => [witness_offline_shard:op(), ...]},
              started = [] :: [{witness_offline_shard:id(), shard(), meta()}],
              births = [] :: [{witness_event:proc(), witness_event:signature()}],
              lives = none :: none | [{line(), life()}]}).

-opaque state() :: #log{}.

-doc "A gap: the process that misses events, why, and how many.".
-type missing() :: {witness_event:proc(), Reason :: atom(), pos_integer() | unknown}.

%% The most gaps that are listed.
-define(MAX_MISSING, 20).
%% No system clock shows a time before the year 2000; a clock that counts from the start of a machine or VM does.
-define(YEAR_2000_NS, 946_684_800_000_000_000).

%% An event that changes nothing but its monitors.
-define(IS_PLAIN(E), (element(1, E) =:= recv orelse element(1, E) =:= send orelse element(1, E) =:= call
                      orelse element(1, E) =:= return)).
%% What the log says of itself.
-define(IS_HEAD(E), (element(1, E) =:= receives orelse element(1, E) =:= functions)).

%% The tracer that owns the first processes, for as long as the log lasts.
-define(TOP, 0).

-doc "The state before anything was read.".
-spec new(config()) -> state().
new(Config) -> lists:foldl(fun start_all/2, new_log(Config), maps:get(all, Config, [])).

new_log(Config = #{properties := Properties}) ->
    Source = witness_trace_log:new((maps:with([roots, waiting, window], Config))#{top => ?TOP}),
    #log{config = Config, source = Source, cores = #{?TOP => new_core(?TOP, Config)},
         properties = maps:from_list([{Entry, Number} || {Number, Entry} <- lists:enumerate(0, Properties)])}.

start_all(Entry, L = #log{all = All}) ->
    {Reader, L1} = start_monitor(all, all, Entry, L),
    L1#log{all = All ++ [Reader]}.

new_core(Tracer, #{maps := Maps, mode := Mode}) ->
    Assign = fun(Signature, Parent) ->
        {Where, Label} = witness_instrument_map:assign(Signature, Parent, Maps),
        {case Mode of outline -> Where; central -> shared end, Label}
    end,
    witness_outline_core:new(#{self => Tracer, sink => Tracer, assign => Assign}).

-doc """
Takes items. Their lines are counted from the line `Base`, unless they were sorted (`m:witness_trace_sort`). An impossible item is refused, with its line; the items after it
were not taken. `unseen`: the log, from this line on, does not have what a property wants.
""".
-spec items([{line(), witness_log:entry()}] | witness_trace_sort:sorted(), Base :: non_neg_integer(), state()) ->
    {ok, state()}
  | {refused, line(), unicode:chardata(), Rest :: [{line(), witness_log:entry()}] | witness_trace_sort:sorted(), state()}
  | {unseen, line(), unicode:chardata(), state()}.
items(Items, Base, L = #log{head = {open, _}}) -> read_head(Items, Base, L);
items(Items, Base, L = #log{plain = Plain, operations = Operations, events = Events}) ->
    items(Items, Base, Plain, Operations, Events, L).

%% The first lines, and also later ones if the file has several logs, say what the log has. What one of them says is compared at
%% its line. What none of them says is missing at the line behind them.
read_head([{Line, {Key, What} = Says} | Items], Base, L = #log{head = {State, Head}}) when ?IS_HEAD(Says) ->
    %% The head of the next log replaces the one before as a whole.
    IsNext = State =:= closed orelse is_map_key(Key, Head),
    case unseen(#{Key => What}, [Key], L) of
        none when IsNext -> read_head(Items, Base, L#log{head = {open, #{Key => What}}});
        none -> read_head(Items, Base, L#log{head = {open, Head#{Key => What}}});
        Unseen -> {unseen, line(at(Line, Base)), Unseen, L}
    end;
read_head([{Line, _} | _] = Items, Base, L = #log{head = {_, Head}}) ->
    case unseen(Head, [receives, functions], L) of
        none -> items(Items, Base, L#log{head = {closed, Head}});
        Unseen -> {unseen, line(at(Line, Base)), Unseen, L}
    end;
read_head([], _, L) ->
    {ok, L}.

%% The first property that wants something else than a head says, of these parts of it.
unseen(Head, Keys, #log{config = Config, events = Events}) ->
    case [Wanted || Wanted <- maps:get(wants, Config, []), lists:member(part(Wanted), Keys), not is_seen(Wanted, Head)] of
        [] -> none;
        [{function, _, Property} = Wanted | _] ->
            All = [Function || {function, Function, Of} <- map_get(wants, Config), Of =:= Property],
            unseen_text(Wanted, Head, All, Events > 0);
        [Wanted | _] -> unseen_text(Wanted, Head)
    end.

part({function, _, _}) -> functions;
part(_) -> receives.

is_seen({function, Function, _}, #{functions := Functions}) -> lists:member(Function, Functions);
is_seen({What, _}, #{receives := Receives}) -> What =:= Receives;
is_seen(_, #{}) -> false.

%% All: the functions of the property. IsLater: there are events in front of this head.
unseen_text({function, Function, Property}, Head, All, IsLater) ->
    Texts = [witness_event:format_term(Of, 600) || Of <- lists:uniq(All)],
    [Property, " is about calls of ", witness_event:format_function(Function), ", and ", case Head of
         #{functions := _} -> "the line `functions` of the log does not name this function. If the log has all its calls and returns, add it: ";
         #{} when IsLater ->
             "from here on the log does not say that it has all its calls and returns. In a log of `witness run` the module was loaded anew, and "
             "what comes in front of this line can be checked as a log of its own. If the log has them, add another line here: ";
         #{} -> "the log does not say that it has all its calls and returns. If it has, begin the log with the line "
     end, "functions([", lists:join($,, Texts), "]), or {\"event\":\"functions\",\"functions\":", json:encode(Texts), "}"].

unseen_text({What, Property}, #{receives := Receives}) ->
    [about(What, Property), "here each `recv` is a message that was ", atom_to_list(Receives)];
unseen_text({What, Property}, #{}) ->
    Word = atom_to_list(What),
    [about(What, Property), "the log does not say that each of its `recv` is such a message. If it is, begin the log with the "
     "line receives(", Word, "), or {\"event\":\"receives\",\"messages\":\"", Word, "\"}"].

about(What, Property) -> [Property, " is about messages that are ", atom_to_list(What), ", and "].

%% The hot path: what changes with each message is passed as arguments.
items([{Line, E} | Items], Base, Plain, Operations, Events, L = #log{ticking = [], config = Config})
  when ?IS_PLAIN(E) andalso not is_map_key(skew, Config) ->
    P = element(2, E),
    case Plain of
        #{P := []} -> items(Items, Base, Plain, Operations, Events + 1, L);
        #{P := Readers} -> items(Items, Base, Plain, give(Readers, Base + Line, E, Operations), Events + 1, L);
        #{} -> add_item(E, Line, Items, Base, L#log{operations = Operations, events = Events})
    end;
items([{Line, E} | Items], Base, _, Operations, Events, L) when ?IS_PLAIN(E) ->
    note_time(E, Line, Items, Base, L#log{operations = Operations, events = Events});
items([{At, {passed, Time}} | Items], Base, _, Operations, Events, L) ->
    items(Items, Base, tell_passed(Time, L#log{operations = Operations, events = Events, place = At}));
items([{_, E} | _] = Items, Base, _, Operations, Events, L) when ?IS_HEAD(E) ->
    read_head(Items, Base, L#log{operations = Operations, events = Events});
items([{Line, E} | Items], Base, _, Operations, Events, L) ->
    note_time(E, Line, Items, Base, L#log{operations = Operations, events = Events});
items([], _, _, Operations, Events, L) ->
    {ok, L#log{operations = Operations, events = Events}}.

%% With a limit for how far times may go back, each time tells which deadlines have passed, in all processes.
note_time(E, Line, Items, Base, L = #log{ticking = [], config = Config}) when not is_map_key(skew, Config) ->
    add_item(E, Line, Items, Base, L);
note_time(E, Line, Items, Base, L0 = #log{time = Before, config = Config}) ->
    L = case Config of #{skew := _} -> L0; #{} -> note_back(E, at(Line, Base), L0) end,
    Skew = maps:get(skew, Config, none),
    case witness_event:ts(E) of
        Time when is_integer(Time), Time < ?YEAR_2000_NS, map_get(clock, Config) ->
            {refused, line(at(Line, Base)),
             ~"this is no time of a system clock: with --clock nanoseconds since 1970 are expected", Items, L};
        Time when is_integer(Time), Before =:= none orelse Time > Before ->
            add_timed(E, Line, Items, Base, tell(Skew, L#log{time = Time, place = at(Line, Base)}));
        Time when is_integer(Time), Skew =/= none, Time < Before - Skew, element(1, E) =/= clock ->
            {refused, line(at(Line, Base)), witness_trace_sort:too_early(Before - Time, ~"skew"), Items, L};
        _ -> add_timed(E, Line, Items, Base, tell(Skew, L#log{place = at(Line, Base)}))
    end.

%% Deadlines compare the times of a process's events, which the user may not know to go back.
note_back({clock, _}, _, L) -> L;
note_back({exit, P, _, _}, _, L = #log{latest = Latest}) -> L#log{latest = maps:remove(P, Latest)};
note_back(E, Line, L = #log{latest = Latest, back = Back}) ->
    case witness_event:ts(E) of
        undefined -> L;
        Time ->
            P = element(2, E),
            case Latest of
                #{P := Later} when Time < Later ->
                    {First, Most} = case Back of none -> {Line, 0}; _ -> Back end,
                    L#log{back = {First, max(Most, Later - Time)}};
                #{} -> L#log{latest = Latest#{P => Time}}
            end
    end.

%% The place of an item that does not wait.
at({_, _} = Sorted, _) -> Sorted;
at(Line, Base) -> Base + Line.

line(Place) -> element(2, place(Place)).

add_timed(E, Line, Items, Base, L = #log{plain = Plain, events = Events}) when ?IS_PLAIN(E) ->
    case Plain of
        #{element(2, E) := Readers} ->
            items(Items, Base, give(Readers, E, L#log{place = at(Line, Base), events = Events + 1}));
        #{} -> add_item(E, Line, Items, Base, L)
    end;
add_timed(E, Line, Items, Base, L) -> add_item(E, Line, Items, Base, L).

%% A time alone. The deadlines that it may pass were told before.
add_item({clock, Time}, _, Items, Base, L = #log{clock = Clock}) ->
    items(Items, Base, L#log{clock = case Clock of none -> Time; _ -> max(Time, Clock) end});
add_item(E, At, Items, Base, L = #log{source = Source, config = Config}) ->
    {Now, Line} = place(at(At, Base)),
    case witness_trace_log:add(Line, resolve(E, Config), Source) of
        {ok, Source1} -> items(Items, Base, deliver(Now, L#log{source = Source1}));
        {error, What, Source1} -> {refused, Line, What, Items, deliver(Now, L#log{source = Source1})}
    end.

%% What has written the log knew other rows, or none.
resolve({Kind, P, Q, {_, _, _} = Signature, Ts}, Config) when Kind =:= fork; Kind =:= init ->
    {Kind, P, Q, witness_event_signature:resolve(Signature, witness_event_wrapper:of_config(Config)), Ts};
resolve(E, _) -> E.

give([], _, _, Operations) -> Operations;
give([{Shard, Id} | Readers], Line, What, Operations) ->
    case Operations of
        #{Shard := Before} -> give(Readers, Line, What, Operations#{Shard := [{Line, Id, What} | Before]});
        #{} -> give(Readers, Line, What, Operations#{Shard => [{Line, Id, What}]})
    end.

give(Readers, What, L = #log{place = Place, operations = Operations}) ->
    L#log{operations = give(Readers, Place, What, Operations)}.

-doc "The number by which operations are ordered, and the line that they stem from.".
-spec place(place()) -> {Order :: line(), line()}.
place({_, _} = Place) -> Place;
place(Line) -> {Line, Line}.

-doc "All lines up to this one were taken when it was this time, in nanoseconds.".
-spec clock(Time :: integer(), line(), state()) -> state().
clock(Time, Line, L = #log{time = Before, config = Config}) when Before =:= none; Time > Before ->
    tell(maps:get(skew, Config, 0), L#log{time = Time, place = Line});
clock(_, _, L) -> L.

%% The time of a sorted log. In front of its first event nothing can pass.
tell_passed(Time, L = #log{time = Before}) when Before =/= none, Time > Before -> tell(0, L#log{time = Time});
tell_passed(_, L) -> L.

%% What waits for its spawn may be earlier, and is delivered later: then no time is told.
tell(none, L) -> L;
tell(_, L = #log{time = none}) -> L;
tell(Skew, L = #log{time = Time, told = Told}) when Told =/= none, Time - Skew =< Told -> L;
tell(Skew, L = #log{time = Time, source = Source}) ->
    case witness_trace_log:is_waiting(Source) of
        true -> L;
        false -> tell_time(Time - Skew, L#log{told = Time - Skew})
    end.

-doc "Events of unknown processes are missing after this line: no monitor that is undecided now can be judged.".
-spec add_gap(Reason :: atom(), place(), state()) -> state().
add_gap(Reason, Line, L) -> give_all({gap, Reason}, Line, L).

give_all(What, Line, L = #log{cores = Cores, all = All}) ->
    Labels = [Label || _ := Core <- Cores, {_, Label} <- witness_outline_core:owned(Core)],
    give(readers(Labels) ++ All, What, L#log{place = Line}).

readers(Labels) -> lists:usort(lists:append([witness_instrument_map:label(readers, Label) || Label <- Labels])).

-doc "Decides which process is the root, if that is open. Called when there is nothing to read at the moment after this line.".
-spec settle(place(), state()) -> state().
settle(Place, L = #log{source = Source}) ->
    {Now, _} = place(Place),
    deliver(Now, L#log{source = witness_trace_log:settle(Source)}).

-doc "The log has ended with this line. Returns the processes with items left, as their spawn was never seen, and how many.".
-spec finish(place(), state()) -> {[{witness_event:proc(), pos_integer()}], state()}.
finish(Line, L0) ->
    L = #log{source = Source} = settle(Line, L0),
    {Orphans, Source1} = witness_trace_log:finish(Source),
    {Orphans, stop(Line, pass_all(end_time(L0), Line, L#log{source = Source1}))}.

pass_all(none, _, L) -> L;
pass_all(Time, Line, L) -> tell_time(Time, L#log{place = Line}).

%% The whole log has been read: up to its greatest time, nothing more has happened. If it has clocks, the greatest one says up to
%% when it has everything: of what came later, it may have the events of one process and lack those of another.
end_time(#log{clock = none, time = Time}) -> Time;
end_time(#log{clock = Time}) -> Time.

tell_time(Time, L = #log{ticking = Shards}) -> give([{Shard, all} || Shard <- Shards], {time, Time}, L).

-doc "Watching ends after this line: undecided monitors stay so.".
-spec stop(place(), state()) -> state().
stop(Line, L) -> give_all(stopped, Line, L).

-doc "Takes the operations that monitors have to perform.".
-spec take(state()) -> {batch(), state()}.
take(L = #log{operations = Operations, started = Started, births = Births, lives = Lives}) ->
    {#{operations => #{Shard => lists:reverse(Of) || Shard := Of <- Operations}, started => lists:reverse(Started),
       births => lists:reverse(Births),
       lives => case Lives of none -> []; _ -> lists:reverse(Lives) end},
     L#log{operations = #{}, started = [], births = [], lives = case Lives of none -> none; _ -> [] end}}.

-doc "From now on births and ends are reported too.".
-spec report_lives(state()) -> state().
report_lives(L) -> L#log{lives = []}.

-doc "The property that a shard belongs to.".
-spec property(shard(), state()) -> witness_instrument_map:entry().
property(Shard, #log{config = #{spread := Spread, properties := Properties}}) ->
    lists:nth(Shard div Spread + 1, Properties).

-doc """
Processes, events and gaps so far, processes that are alive, and the highest number of tracers at one time. `hiding`: gaps
that may hide the birth of a process, which may have had monitors; `missing`: the first gaps; `back`: the first line with a time before that
of an earlier event of the same process, and by how many nanoseconds such times go back at most, if there are deadlines and no `skew`.
""".
-spec counts(state()) -> #{processes := non_neg_integer(), events := non_neg_integer(), gaps := non_neg_integer(),
                           hiding := non_neg_integer(), missing := [missing()], back := none | {line(), pos_integer()},
                           alive := non_neg_integer(), tracers := pos_integer()}.
counts(#log{processes = Processes, events = Events, gaps = Gaps, hiding = Hiding, missing = Missing, plain = Plain, most = Most,
            back = Back}) ->
    #{processes => Processes, events => Events, gaps => Gaps, hiding => Hiding, missing => lists:reverse(Missing), back => Back,
      alive => map_size(Plain), tracers => Most}.

-doc "The state as plain data. There must be nothing left to take.".
-spec save(state()) -> term().
save(#log{config = #{spread := Spread}, operations = Operations, started = [], tracer = Tracer, most = Most} = L)
  when map_size(Operations) =:= 0 ->
    #{spread => Spread, source => witness_trace_log:save(L#log.source),
      tracers => #{T => witness_outline_core:maps(Core) || T := Core <- L#log.cores},
      plain => L#log.plain, all => L#log.all, head => L#log.head,
      ticking => L#log.ticking, time => L#log.time, told => L#log.told, clock => L#log.clock,
      latest => L#log.latest, back => L#log.back,
      alive => L#log.alive, tracer => Tracer, most => Most, monitor => L#log.monitor,
      processes => L#log.processes, events => L#log.events, gaps => L#log.gaps, hiding => L#log.hiding, missing => L#log.missing}.

-doc "The state that was saved, for the same properties.".
-spec load(term(), config()) -> state().
load(#{spread := Spread, source := Source, tracers := Tracers} = Saved, Config0) ->
    Config = Config0#{spread := Spread},
    #{plain := Plain, all := All, alive := Alive, tracer := Tracer, most := Most, monitor := Monitor, processes := Processes,
      events := Events, gaps := Gaps} = Saved,
    (new_log(Config))#log{source = witness_trace_log:load(Source), plain = Plain, all = All, alive = Alive, tracer = Tracer,
                          most = Most,
                          cores = #{T => witness_outline_core:with_maps(Maps, new_core(T, Config)) || T := Maps <- Tracers},
                          monitor = Monitor, processes = Processes, events = Events, gaps = Gaps,
                          head = maps:get(head, Saved, old_head(Saved)),
                          %% An older position has no properties with deadlines.
                          ticking = maps:get(ticking, Saved, []), time = maps:get(time, Saved, none),
                          told = maps:get(told, Saved, none), clock = maps:get(clock, Saved, none),
                          latest = maps:get(latest, Saved, #{}), back = maps:get(back, Saved, none),
                          %% An older position does not say which gaps may hide births, so all of them may.
                          hiding = maps:get(hiding, Saved, Gaps), missing = maps:get(missing, Saved, [])}.

%% An older position says only what each `recv` is.
old_head(#{receives := none}) -> {open, #{}};
old_head(#{receives := Receives}) when Receives =/= unknown -> {closed, #{receives => Receives}};
old_head(#{}) -> {closed, #{}}.

%% --- from the source to the tracers ----------------------------------------------

%% Now: the line that was read last, or its rank.
deliver(Now, L = #log{source = Source}) ->
    case witness_trace_log:next(Source) of
        {deliver, Tracer, Line, Item, Source1} ->
            deliver(Now, handle_delivered(Item, Tracer, L#log{source = Source1, place = place(Line, Now)}));
        {root, P, Signature, Line, Source1} ->
            deliver(Now, add_root(P, Signature, L#log{source = Source1, place = place(Line, Now)}));
        {none, Source1} ->
            L#log{source = Source1}
    end.

place(Now, Now) -> Now;
place(Line, Now) -> {Now, Line}.

%% A process that the log shows only from its middle on has no signature, and so no monitor of its own, unless the log has the
%% function that it was spawned with.
add_root(P, {attached, Function}, L = #log{config = Config}) ->
    case maps:get(attached, Config, monitored) of
        monitored ->
            There = {there, P, witness_event_signature:unknown(Function)},
            adopt_attached(P, Function, add_birth(There, add_life(There, L)));
        ignored -> add_root(P, undefined, L)
    end;
add_root(P, Signature, L) -> adopt_first(P, Signature, add_birth({there, P, Signature}, add_life({there, P, Signature}, L))).

adopt_first(P, undefined, L) ->
    adopt_root(P, witness_instrument_map:new([], #{held => true}), fun witness_outline_core:adopt/3, L);
adopt_first(P, Signature, L = #log{config = #{maps := Maps}}) ->
    Label = witness_instrument_map:new(Maps, #{held => true, signature => Signature}),
    {Label1, L1} = start_monitors(P, Signature, Label, L),
    adopt_root(P, Label1, fun witness_outline_core:adopt_newborn/3, L1).

%% Which processes it has spawned before is not known, so no group that begins with it is known.
adopt_attached(P, Function, L = #log{config = #{maps := Maps}}) ->
    Signature = witness_event_signature:unknown(Function),
    Label = witness_instrument_map:new(Maps, #{held => true, signature => Signature}),
    {Label1, L1} = start_monitors(P, {Signature, Function}, Label, L),
    Groups = [Reader || {_, Reader, true} <- witness_instrument_map:label(members, Label1)],
    adopt_root(P, Label1, fun witness_outline_core:adopt/3, give(Groups, {gap, orphan}, L1)).

adopt_root(P, Label, Adopt, L = #log{cores = Cores, processes = Processes}) ->
    #{?TOP := Core} = Cores,
    L#log{cores = Cores#{?TOP := Adopt(P, Label, Core)}, processes = Processes + 1}.

handle_delivered({gap, P, Reason, Count, _}, Tracer,
                 L = #log{gaps = Gaps, hiding = Hiding, missing = Missing, all = All}) ->
    give(readers_of(P, Tracer, L) ++ All, {gap, Reason},
         L#log{gaps = Gaps + 1, hiding = Hiding + case may_hide(Reason) of true -> 1; false -> 0 end,
               missing = [{P, Reason, Count} || Gaps < ?MAX_MISSING] ++ Missing});
handle_delivered({attached, P, _, _} = Mark, Tracer, L = #log{all = All}) ->
    give(readers_of(P, Tracer, L) ++ All, Mark, L);
handle_delivered(E, Tracer, L0) ->
    L = handle(Tracer, {own, {none, E}}, add_birth(E, add_life(E, L0#log{events = L0#log.events + 1}))),
    case E of
        {exit, P, _, _} -> L#log{plain = maps:remove(P, L#log.plain)};
        _ -> note_plain(element(2, E), Tracer, L)
    end.

readers_of(P, Tracer, #log{cores = Cores}) ->
    readers([Label || {Q, Label} <- witness_outline_core:owned(map_get(Tracer, Cores)), Q =:= P]).

%% A gap with one of these reasons hides no births. Which events other gaps hide is not known here.
may_hide(Reason) -> not lists:member(Reason, [killed, contents, unwoven]).

add_birth({fork, _, P, Signature, _}, L = #log{births = Births}) -> L#log{births = [{P, Signature} | Births]};
add_birth({there, P, {_, _, _} = Signature}, L = #log{births = Births}) -> L#log{births = [{P, Signature} | Births]};
add_birth(_, L) -> L.

add_life(_, L = #log{lives = none}) -> L;
add_life(E, L) when ?IS_PLAIN(E) -> L;
add_life(E, L = #log{place = Place, lives = Lives}) ->
    {_, Line} = place(Place),
    L#log{lives = [{Line, E} | Lives]}.

note_plain(P, Tracer, L = #log{plain = Plain, source = Source, cores = Cores}) when not is_map_key(P, Plain) ->
    case witness_trace_log:is_plain(P, Source) andalso witness_outline_core:direct(P, map_get(Tracer, Cores)) of
        {ok, Label} -> L#log{plain = Plain#{P => witness_instrument_map:label(readers, Label) ++ L#log.all}};
        _ -> L
    end;
note_plain(_, _, L) -> L.

%% --- the tracers -----------------------------------------------------------------

handle(Tracer, Message, L = #log{cores = Cores}) ->
    remove_done(Tracer, perform(Tracer, witness_outline_core:handle(Message, map_get(Tracer, Cores)), L)).

perform(Tracer, {Effects, Next, Core}, L0 = #log{cores = Cores}) ->
    {Sent, L} = lists:foldl(fun effect/2, {[], L0#log{cores = Cores#{Tracer := Core}}}, Effects),
    L1 = case Next of
        done -> L;
        Question ->
            {Answer, L2} = question(Question, L),
            perform(Tracer, witness_outline_core:answer(Answer, map_get(Tracer, L2#log.cores)), L2)
    end,
    lists:foldl(fun({To, Message}, A) -> handle(To, Message, A) end, L1, lists:reverse(Sent)).

%% A partition that has ended leaves nothing behind.
remove_done(?TOP, L) -> L;
remove_done(Tracer, L = #log{cores = Cores}) ->
    case witness_outline_core:is_done(map_get(Tracer, Cores)) of
        true -> L#log{cores = maps:remove(Tracer, Cores)};
        false -> L
    end.

effect({send, To, Message}, {Sent, L}) -> {[{To, Message} | Sent], L};
effect({analyse, Label, {_, E}}, {Sent, L = #log{all = All}}) ->
    {Sent, give(witness_instrument_map:label(readers, Label) ++ All, E, L)};
effect({ended, _, Label}, {Sent, L = #log{alive = Alive}}) ->
    {Complete, Alive1} = witness_instrument_monitors:handle_end(Label, Alive),
    {Sent, give(Complete, complete, L#log{alive = Alive1})};
effect({off, P}, {Sent, L = #log{source = Source}}) -> {Sent, L#log{source = witness_trace_log:off(P, Source)}};
effect({settle, _}, Acc) -> Acc.

question({tracer, _}, L = #log{config = Config, cores = Cores, tracer = Last, most = Most}) ->
    Cores1 = Cores#{Last + 1 => new_core(Last + 1, Config)},
    {{Last + 1, Last + 1}, L#log{cores = Cores1, tracer = Last + 1, most = max(Most, map_size(Cores1))}};
%% No event of the new process was delivered yet, so it can change its tracer without loss.
question({traced, P, Tracer}, L = #log{source = Source}) ->
    {born, L#log{source = witness_trace_log:on(P, Tracer, Source)}};
question({adopt, P, {fork, _, P, Signature, _}, Label}, L = #log{processes = Processes}) ->
    start_monitors(P, Signature, Label, L#log{processes = Processes + 1}).

start_monitors(P, Signature, Label, L0 = #log{alive = Alive}) ->
    {Started, L} = lists:mapfoldl(fun({Map, Entry = #{group := Group}}, A) ->
        {Reader, A1} = start_monitor(P, Signature, Entry, A),
        {{Map, Reader, Group}, A1}
    end, L0, witness_instrument_map:starts(Label)),
    {Label1, Alive1} = witness_instrument_monitors:add_started(Started, Label, Alive),
    {Label1, L#log{alive = Alive1}}.

start_monitor(P, Signature, Entry = #{spec := Spec, name := Name}, L) ->
    #log{config = #{spread := Spread}, properties = Properties, started = Started} = L,
    Id = L#log.monitor + 1,
    Shard = map_get(Entry, Properties) * Spread + Id rem Spread,
    Reader = {Shard, Id},
    Ticking = case lists:member(Shard, L#log.ticking) orelse not witness_monitor:is_timed(maps:get(monitor, Entry)) of
        true -> L#log.ticking;
        false -> [Shard | L#log.ticking]
    end,
    {Of, Start} = case Signature of
        all -> {#{}, {start, P, all}};
        {Unknown, Function} -> {#{process => P, signature => Unknown}, {start, P, Unknown, Function}};
        _ -> {#{process => P, signature => Signature}, {start, P, Signature}}
    end,
    Meta = Of#{spec => Spec, name => Name},
    {Reader, give([Reader], Start,
                  L#log{monitor = Id, ticking = Ticking, started = [{Id, Shard, Meta} | Started]})}.
