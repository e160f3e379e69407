-module(witness_search_world).
-moduledoc """
A controlled program as a value: its processes, mailboxes, links, monitors, names, aliases, timers, and its clock. Pure.

Each process is parked at its next operation (`park/3`). `steps/1` says which steps are possible now, and `step/2` performs one: it is
the only way in which anything changes that another process can notice. So a run is a function of the program and of the list of
chosen steps.

| Step | What |
|---|---|
| `{process, Id}` | the process performs the operation at which it is parked |
| `{signal, From, To}` | the oldest signal that is on its way from one process to another is handled: the end of a link, a `'DOWN'`, an exit |
| `{timeout, Id}`, `{timer, Ref}` | virtual time moves to the next moment at which something is due, and that happens |

*Messages* are in the mailbox of the receiver when the send is done (`causal`), or they are on their way like other signals (`pairwise`), as
between nodes: then a message to one process may overtake an older one to another process. Setting up a link or a monitor, and removing it, takes effect at
once, which is one of the orders that the language allows. What tells of an end is on its way until the schedule chooses it, and
a message of the same sender never overtakes it.

*Time* moves only when no other step is possible (`late`), or whenever something waits for it (`any`): then each timeout and timer may
come at once, as in a VM that is slow somewhere.
""".

-export([new/1, first/2, park/3, steps/1, changes/1, step/2, query/3]).
-export([alive/1, is_alive/2, adopted/2, leader/2, pid/2, birth/2, clock/1, real/2, set_real/3, status/2, messages/2,
         receiver/2, timer_receiver/2, timer_name/2, is_told/2, is_pending/3, has/2, tell/3, describe/2, actor/2]).

-export_type([world/0, id/0, path/0, actor/0, step/0, operation/0, receive_/0, effect/0, start/0, message/0, birth/0, timeouts/0,
              delivery/0]).

-type id() :: pos_integer().

-doc "When timeouts and timers come.".
-type timeouts() :: late | any.

-doc "When messages come.".
-type delivery() :: causal | pairwise.

-type start() :: {module(), atom(), [term()]}.
-type step() :: {process, id()} | {signal, From :: id(), To :: id()} | {timeout, id()} | {timer, reference()}.

-doc "A `receive`: which messages it takes; its time; whether it takes the message, or only looks whether there is one (hibernation).".
-type receive_() :: #{match := fun((term()) -> boolean()), time := timeout(), take := boolean()}.

-doc "A message: its sender, or `outside`, which includes timers and ends; the alias that it was sent to; its content.".
-type message() :: {From :: id() | outside, Via :: none | reference(), Content :: term()}.

-type operation() :: {'receive', receive_()} | {ended, Reason :: term()} | registered | processes | tuple().

-doc """
What the caller has to do: `answer`: the process goes on with this result; `ended`: it has ended by itself; `start`: a process has to be
started, which then parks;
`kill`: a process was ended by a signal.
""".
-type effect() :: {answer, id(), term()} | {ended, id(), Reason :: term()} | {start, id(), start(), Options :: [term()]}
                | {kill, id(), Reason :: term(), status()}.

-doc """
A birth: the parent (0: none), and how many children it had before. The path names the process in all runs: it is a digest of the parent's
path and of the rank, or of the name of a process without a parent that came later. So it has the same size for each process.
""".
-type birth() :: #{parent := id() | 0, rank := non_neg_integer(), path := path(), start := start(), pid := pid()}.

-type status() :: running | {wants, operation()} | {finds, receive_(), message()}
                | {waits, receive_(), Deadline :: integer() | infinity}.

-type path() :: binary().

-doc "What acts in a step, by a name that it has in all runs.".
-type actor() :: path() | {signal, From :: path(), To :: path()} | {timer, reference()}.

-type signal() :: {message, message()} | {link, Reason :: term()} | {exit, Reason :: term()}
                | {down, reference(), Object :: term(), Reason :: term()}.

%% old: the messages that the current `receive' does not take; new: later ones, the last first. watchers: the
%% processes that monitor it, and how they have named it. monitors: its own, with their targets; tags: what their messages begin
%% with, if it is not 'DOWN'. signals: those on their way to it, of each sender; timers: those that send to its pid.
-record(process, {birth :: birth(),
                  real :: undefined | pid(),
                  status = running :: status(),
                  old = [] :: [message()],
                  new = [] :: [message()],
                  links = #{} :: #{id() => []},
                  monitors = #{} :: #{reference() => id() | none},
                  tags = #{} :: #{reference() => Tag :: term()},
                  watchers = #{} :: #{reference() => {Number :: pos_integer(), id(), Object :: term()}},
                  signals = #{} :: #{id() => [signal(), ...]},
                  timers = #{} :: #{reference() => []},
                  children = 0 :: non_neg_integer(),
                  name = [] :: [] | atom(),
                  leader :: pid(),
                  trap = false :: boolean()}).

%% changed: what may have become possible, or may not be possible any more: a process, signals between two, a timer. aliases: those
%% of a process that has ended are inactive.
-record(world, {next = 1 :: id(),
                living = #{} :: #{id() => #process{}},
                births = #{} :: #{id() => birth()},
                pids = #{} :: #{pid() => id()},
                names = #{} :: #{atom() => id()},
                adopted = #{} :: #{atom() => id()},
                changed = [] :: [id() | {From :: id(), To :: id()} | reference()],
                aliases = #{} :: #{reference() => {id(), explicit | once | monitor} | inactive},
                timers = #{} :: #{reference() => {At :: integer(), To :: pid() | atom(), Message :: term()}},
                references = 0 :: non_neg_integer(),
                integers = 0 :: non_neg_integer(),
                timeouts = late :: timeouts(),
                delivery = causal :: delivery(),
                clock = 0 :: integer()}).

-opaque world() :: #world{}.

%% --- what is there ---------------------------------------------------------------

-doc "An empty world. `clock`: the monotonic time of its beginning, in nanoseconds.".
-spec new(#{clock => integer(), timeouts => timeouts(), delivery => delivery()}) -> world().
new(Options) ->
    #world{clock = maps:get(clock, Options, 0), timeouts = maps:get(timeouts, Options, late),
           delivery = maps:get(delivery, Options, causal)}.

-doc "The first process. It runs: it parks next.".
-spec first(#{start := start(), leader := pid()}, world()) -> {id(), world()}.
first(#{start := Start, leader := Leader}, W) -> born(Start, 0, 0, <<>>, Leader, W).

born(Start, Parent, Rank, Path, Leader, #world{next = Id, living = Living, births = Births, pids = Pids} = W) ->
    Pid = witness_search_identity:pid(Id),
    Birth = #{parent => Parent, rank => Rank, path => Path, start => Start, pid => Pid},
    {Id, W#world{next = Id + 1, living = Living#{Id => #process{birth = Birth, leader = Leader}}, births = Births#{Id => Birth},
                 pids = Pids#{Pid => Id}}}.

-doc "The processes that are alive.".
-spec alive(world()) -> [id()].
alive(#world{living = Living}) -> lists:sort(maps:keys(Living)).

-spec is_alive(id(), world()) -> boolean().
is_alive(Id, #world{living = Living}) -> is_map_key(Id, Living).

-doc "The process that came with this name (`adopt`), while it is alive.".
-spec adopted(atom(), world()) -> id() | none.
adopted(Name, #world{adopted = Adopted, living = Living}) ->
    case Adopted of
        #{Name := Id} when is_map_key(Id, Living) -> Id;
        #{} -> none
    end.

-spec leader(id(), world()) -> pid().
leader(Id, W) -> (process(Id, W))#process.leader.

-doc "The pid that the program sees.".
-spec pid(id(), world()) -> pid().
pid(Id, #world{births = Births}) -> maps:get(pid, map_get(Id, Births)).

-spec birth(id(), world()) -> birth().
birth(Id, #world{births = Births}) -> map_get(Id, Births).

-doc "Monotonic time, in nanoseconds.".
-spec clock(world()) -> integer().
clock(#world{clock = Clock}) -> Clock.

-doc "Where a process is parked.".
-spec status(id(), world()) -> status().
status(Id, W) -> (process(Id, W))#process.status.

-doc "The process of this VM that runs it.".
-spec real(id(), world()) -> pid() | undefined.
real(Id, W) -> (process(Id, W))#process.real.

-spec set_real(id(), pid(), world()) -> world().
set_real(Id, Real, W) -> update(Id, (process(Id, W))#process{real = Real}, W).

-doc "Whether signals of a process to another one are on their way.".
-spec is_pending(id(), id(), world()) -> boolean().
is_pending(From, To, #world{living = Living}) ->
    case Living of
        #{To := #process{signals = Signals}} -> is_map_key(From, Signals);
        #{} -> false
    end.

-doc "The name of a living process, `[]` if it has none, and the processes that it monitors.".
-spec has(id(), world()) -> {[] | atom(), [id()]}.
has(Id, W) ->
    #process{name = Name, monitors = Monitors} = process(Id, W),
    {Name, [Target || _ := Target <- Monitors, Target =/= none]}.

-doc "What acts in a step.".
-spec actor(step(), world()) -> actor().
actor({Kind, Id}, W) when Kind =:= process; Kind =:= timeout -> path(Id, W);
actor({signal, From, To}, W) -> {signal, path(From, W), path(To, W)};
actor({timer, _} = Timer, _) -> Timer.

path(Id, #world{births = Births}) -> map_get(path, map_get(Id, Births)).

-doc "What a possible step does.".
-spec describe(step(), world()) -> term().
describe({process, Id}, W) ->
    case status(Id, W) of
        {finds, _, Message} -> Message;
        {waits, _, _} -> timeout;
        {wants, Operation} -> Operation
    end;
describe({signal, From, To}, W) ->
    #process{signals = #{From := [Signal | _]}} = process(To, W),
    Signal;
describe({timeout, _}, _) -> timeout;
describe({timer, Ref}, #world{timers = Timers}) -> map_get(Ref, Timers).
-doc "A process gets this message from outside.".
-spec tell(id(), Content :: term(), world()) -> world().
tell(Id, Content, W) ->
    case is_alive(Id, W) of
        true -> put_message(Id, {outside, none, Content}, W);
        false -> W
    end.

-doc "The living process that gets a message to this.".
-spec receiver(term(), world()) -> id() | none.
receiver(To, W) ->
    case to(To, W) of
        {living, Id} -> Id;
        {alias, Id} -> Id;
        _ -> none
    end.

-doc "The living process that gets the message of a timer.".
-spec timer_receiver(reference(), world()) -> id() | none.
timer_receiver(Ref, #world{timers = Timers} = W) ->
    #{Ref := {_, To, _}} = Timers,
    receiver(To, W).

-doc "The name to which a timer sends, if it is one.".
-spec timer_name(reference(), world()) -> {name, atom()} | none.
timer_name(Ref, #world{timers = Timers}) ->
    case Timers of
        #{Ref := {_, Name, _}} when is_atom(Name) -> {name, Name};
        #{} -> none
    end.

-doc """
Whether a process will be told if this one ends by an error: one that monitors it or that is linked to it and traps exits, or the same of
a process that ends with it.
""".
-spec is_told(id(), world()) -> boolean().
is_told(Id, W) -> is_told([Id], [], W).

is_told([], _, _) -> false;
is_told([Id | Ids], Seen, W) ->
    #process{links = Links, watchers = Watchers} = process(Id, W),
    Linked = [Other || Other := _ <- Links, is_alive(Other, W)],
    Watchers =/= #{} orelse lists:any(fun(Other) -> (process(Other, W))#process.trap end, Linked)
        orelse is_told([Other || Other <- Linked, not lists:member(Other, [Id | Seen])] ++ Ids, [Id | Seen], W).

process(Id, #world{living = Living}) -> map_get(Id, Living).

update(Id, P, #world{living = Living} = W) -> W#world{living = Living#{Id := P}}.

%% --- parking ---------------------------------------------------------------------

-doc "A process has come to its next operation.".
-spec park(id(), operation(), world()) -> world().
park(Id, {'receive', Receive}, W) ->
    #process{old = Old, new = New} = P = process(Id, W),
    search(Id, Receive, Old ++ lists:reverse(New), P#process{new = []}, W);
park(Id, Operation, W) -> changed(Id, update(Id, (process(Id, W))#process{status = {wants, Operation}}, W)).

search(Id, #{match := Match} = Receive, Messages, P, W) ->
    case find(Match, Messages, []) of
        {Message, Others} -> changed(Id, update(Id, P#process{old = Others, status = {finds, Receive, Message}}, W));
        none -> wait(Id, Receive, P#process{old = Messages}, W)
    end.

find(Match, [{_, _, Content} = Message | Messages], Before) ->
    case Match(Content) of
        true -> {Message, lists:reverse(Before, Messages)};
        false -> find(Match, Messages, [Message | Before])
    end;
find(_, [], _) -> none.

%% A time of zero is over at once, but only when the process is chosen: a message may still come.
wait(Id, #{time := infinity} = Receive, P, W) -> changed(Id, update(Id, P#process{status = {waits, Receive, infinity}}, W));
wait(Id, #{time := Time} = Receive, P, W) ->
    changed(Id, update(Id, P#process{status = {waits, Receive, now(W) + Time * 1_000_000}}, W)).

now(#world{clock = Clock}) -> Clock.

changed(What, #world{changed = [What | _]} = W) -> W;
changed(What, #world{changed = Changed} = W) -> W#world{changed = [What | Changed]}.

%% --- steps -----------------------------------------------------------------------

-doc """
What can happen next, in an order that follows from the steps so far: the oldest process first, and last what waits for a time, the earliest
one first. None: all processes wait for ever, or have ended. It costs as much as there are processes: `m:witness_search_possible` keeps
the same up to date.
""".
-spec steps(world()) -> [step()].
steps(#world{living = Living, timers = Timers, timeouts = Timeouts}) ->
    Changes = lists:append([[{Id, ready(P)} | [{{From, Id}, now} || From := _ <- P#process.signals]] || Id := P <- Living])
        ++ [{Ref, At} || Ref := {At, _, _} <- Timers],
    witness_search_possible:to_list(witness_search_possible:change(Changes, witness_search_possible:new(Timeouts))).

-doc "What has changed since this was asked last: what is possible, and when.".
-spec changes(world()) -> {[witness_search_possible:change()], world()}.
changes(#world{changed = Changed} = W) -> {[{What, change(What, W)} || What <- Changed], W#world{changed = []}}.

change(Id, #world{living = Living}) when is_integer(Id) ->
    case Living of
        #{Id := P} -> ready(P);
        #{} -> no
    end;
change({From, To}, W) ->
    case is_pending(From, To, W) of
        true -> now;
        false -> no
    end;
change(Ref, #world{timers = Timers}) ->
    case Timers of
        #{Ref := {At, _, _}} -> At;
        #{} -> no
    end.

%% A time of zero is over already, so it needs no step of the clock.
ready(#process{status = {wants, _}}) -> now;
ready(#process{status = {finds, _, _}}) -> now;
ready(#process{status = {waits, #{time := 0}, _}}) -> now;
ready(#process{status = {waits, _, At}}) when At =/= infinity -> At;
ready(#process{}) -> no.

-doc "Performs a step that is possible.".
-spec step(step(), world()) -> {[effect()], world()}.
step({process, Id}, W) ->
    P = process(Id, W),
    Running = changed(Id, update(Id, P#process{status = running}, W)),
    case P#process.status of
        {finds, #{take := true}, Message} -> {[{answer, Id, {message, Message}}], Running};
        {finds, #{take := false}, Message} ->
            {[{answer, Id, woken}], update(Id, P#process{status = running, old = [Message | P#process.old]}, Running)};
        {waits, _, _} -> {[{answer, Id, timeout}], Running};
        {wants, Operation} -> perform(Operation, Id, Running)
    end;
step({signal, From, To}, W) ->
    #process{signals = #{From := [Signal | Others]} = Signals} = P = process(To, W),
    Left = case Others of
        [] -> maps:remove(From, Signals);
        _ -> Signals#{From := Others}
    end,
    handle(Signal, From, To, changed({From, To}, update(To, P#process{signals = Left}, W)));
step({timeout, Id}, W) ->
    #process{status = {waits, _, At}} = P = process(Id, W),
    {[{answer, Id, timeout}], changed(Id, update(Id, P#process{status = running}, forward(At, W)))};
step({timer, Ref}, #world{timers = Timers} = W) ->
    #{Ref := {At, To, Message}} = Timers,
    Moved = forward(At, remove_timer(Ref, W)),
    case to(To, Moved) of
        {living, Id} -> {[], put_message(Id, {outside, none, Message}, Moved)};
        _ -> {[], Moved}
    end.

remove_timer(Ref, #world{timers = Timers} = W) ->
    {{_, To, _}, Others} = maps:take(Ref, Timers),
    Removed = changed(Ref, W#world{timers = Others}),
    case is_pid(To) andalso to(To, W) of
        {living, Id} ->
            #process{timers = Own} = P = process(Id, W),
            update(Id, P#process{timers = maps:remove(Ref, Own)}, Removed);
        _ -> Removed
    end.

forward(At, #world{clock = Clock} = W) -> W#world{clock = max(At, Clock)}.

put_message(Id, {_, _, Content} = Message, W) ->
    case process(Id, W) of
        #process{status = {waits, #{match := Match} = Receive, _}} = P ->
            case Match(Content) of
                true -> changed(Id, update(Id, P#process{status = {finds, Receive, Message}}, W));
                false -> update(Id, P#process{old = P#process.old ++ [Message]}, W)
            end;
        #process{new = New} = P -> update(Id, P#process{new = [Message | New]}, W)
    end.

%% --- signals ---------------------------------------------------------------------

push(From, To, Signal, #world{living = Living} = W) ->
    case Living of
        #{To := #process{signals = Signals} = P} ->
            Queue = maps:get(From, Signals, []) ++ [Signal],
            changed({From, To}, update(To, P#process{signals = Signals#{From => Queue}}, W));
        #{} -> W
    end.

%% What a process has sent before is handled before what it sends now.
flush(From, To, W) ->
    case is_pending(From, To, W) of
        false -> {[], W};
        true ->
            {Effects, W1} = step({signal, From, To}, W),
            {More, W2} = flush(From, To, W1),
            {Effects ++ More, W2}
    end.

handle({link, Reason}, From, To, W) ->
    #process{links = Links, trap = Trap} = P = process(To, W),
    case is_map_key(From, Links) of
        false -> {[], W};
        true ->
            Unlinked = update(To, P#process{links = maps:remove(From, Links)}, W),
            case {Trap, Reason} of
                {true, _} -> {[], put_message(To, {outside, none, {'EXIT', pid(From, W), Reason}}, Unlinked)};
                {false, normal} -> {[], Unlinked};
                {false, _} -> kill(To, Reason, Unlinked)
            end
    end;
handle({message, {_, Via, _} = Message}, _, To, #world{aliases = Aliases} = W) ->
    case Aliases of
        _ when Via =:= none -> {[], put_message(To, Message, W)};
        #{Via := {To, _}} -> {[], put_message(To, Message, use_alias(Via, W))};
        #{} -> {[], W}
    end;
handle({exit, kill}, _, To, W) -> kill(To, killed, W);
handle({exit, Reason}, From, To, W) ->
    case {process(To, W), Reason} of
        {#process{trap = true}, _} -> {[], put_message(To, {outside, none, {'EXIT', pid(From, W), Reason}}, W)};
        {_, normal} -> {[], W};
        _ -> kill(To, Reason, W)
    end;
handle({down, Ref, Object, Reason}, _, To, #world{aliases = Aliases} = W) ->
    #process{monitors = Monitors, tags = Tags} = P = process(To, W),
    case is_map_key(Ref, Monitors) of
        false -> {[], W};
        true ->
            Unaliased = case Aliases of
                #{Ref := {_, How}} when How =:= monitor; How =:= once -> W#world{aliases = Aliases#{Ref := inactive}};
                #{} -> W
            end,
            {[], put_message(To, {outside, none, {maps:get(Ref, Tags, 'DOWN'), Ref, process, Object, Reason}},
                             update(To, remove_monitor(Ref, P), Unaliased))}
    end.

kill(Id, Reason, W) ->
    Status = (process(Id, W))#process.status,
    {[{kill, Id, Reason, Status}], finish(Id, Reason, W)}.

%% The process has ended.
finish(Id, Reason, W) ->
    #process{links = Links, monitors = Monitors, watchers = Watchers, name = Name, signals = Signals,
             timers = Own} = process(Id, W),
    #world{living = Living, names = Names, timers = Timers, changed = Changed} = W,
    Gone = W#world{living = maps:remove(Id, Living), names = maps:remove(Name, Names),
                   timers = case map_size(Own) of 0 -> Timers; _ -> maps:without(maps:keys(Own), Timers) end,
                   changed = [Id | [{From, Id} || From := _ <- Signals] ++ maps:keys(Own) ++ Changed]},
    Told = lists:foldl(fun(Other, Acc) -> push(Id, Other, {link, Reason}, Acc) end, Gone, lists:sort(maps:keys(Links))),
    Said = lists:foldl(fun({_, Other, Ref, Object}, Acc) -> push(Id, Other, {down, Ref, Object, Reason}, Acc) end, Told,
                       in_order(Watchers)),
    maps:fold(fun unwatch/3, Said, Monitors).

in_order(Watchers) -> lists:sort([{Number, Other, Ref, Object} || Ref := {Number, Other, Object} <- Watchers]).

unwatch(Ref, Target, #world{living = Living} = W) ->
    case Living of
        #{Target := #process{watchers = Watchers} = P} ->
            update(Target, P#process{watchers = maps:remove(Ref, Watchers)}, W);
        #{} -> W
    end.

%% --- operations ------------------------------------------------------------------

answer(Id, Answer, W) -> {[{answer, Id, Answer}], W}.

%% A recording has messages of a process to itself by an alias, or with options, with their contents.
perform({send, To, Message, Arity}, Id, W) ->
    case to(To, W) of
        {living, Id} when Arity > 2 -> send(Id, Id, {outside, none, Message}, W);
        {living, Other} when Other =/= Id, W#world.delivery =:= pairwise -> send_late(Id, Other, {Id, none, Message}, W);
        {living, Other} -> send(Id, Other, {Id, none, Message}, W);
        {alias, Other} when Other =/= Id, W#world.delivery =:= pairwise -> send_late(Id, Other, {Id, To, Message}, W);
        {alias, Id} -> send(Id, Id, {outside, To, Message}, use_alias(To, W));
        {alias, Other} -> send(Id, Other, {Id, To, Message}, use_alias(To, W));
        Other -> answer(Id, Other, W)
    end;
perform({spawn, Start, Leader, Options}, Id, W0) ->
    #process{children = Rank, leader = Own} = P = process(Id, W0),
    Path = erlang:md5([path(Id, W0), integer_to_binary(Rank)]),
    {Child, W1} = born(Start, Id, Rank, Path, case Leader of inherited -> Own; _ -> Leader end,
                       update(Id, P#process{children = Rank + 1}, W0)),
    W2 = case lists:member(link, Options) of true -> set_link(Id, Child, W1); false -> W1 end,
    {Ref, W3} = case [Given || {monitor, Given} <- Options] of
        [Given | _] -> watch(Id, Child, pid(Child, W2), Given, W2);
        [] -> {none, W2}
    end,
    {[{start, Child, Start, Options}, {answer, Id, {spawned, Child, pid(Child, W3), Ref}}], W3};
%% A process without a parent, which has this name from its birth, and traps exits. It comes once.
perform({adopt, Name, Start, Leader}, Id, #world{names = Names, adopted = Adopted} = W0) ->
    case {Names, Adopted} of
        {#{Name := _}, _} -> answer(Id, true, W0);
        {#{}, #{Name := _}} -> answer(Id, false, W0);
        {#{}, #{}} ->
            {Child, W} = born(Start, 0, map_size(Adopted) + 1, erlang:md5(atom_to_binary(Name)), Leader, W0),
            Named = update(Child, (process(Child, W))#process{name = Name, trap = true}, W),
            {[{start, Child, Start, []}, {answer, Id, true}],
             Named#world{names = Names#{Name => Child}, adopted = Adopted#{Name => Child}}}
    end;
perform({reply_spawn, Tag, Ref, Pid}, Id, W) -> answer(Id, ok, put_message(Id, {outside, none, {Tag, Ref, ok, Pid}}, W));
perform({link, Pid}, Id, W) ->
    case to(Pid, W) of
        {living, Id} -> answer(Id, true, W);
        {living, Other} -> answer(Id, true, set_link(Id, Other, W));
        {ended, Other} ->
            #process{links = Links} = P = process(Id, W),
            answer(Id, true, push(Other, Id, {link, noproc}, update(Id, P#process{links = Links#{Other => []}}, W)));
        Else -> answer(Id, Else, W)
    end;
perform({unlink, Pid}, Id, W) ->
    case to(Pid, W) of
        {What, Other} when What =:= living; What =:= ended -> answer(Id, true, cut_link(Id, Other, W));
        Else -> answer(Id, Else, W)
    end;
perform({monitor, Target, Options}, Id, W) ->
    Object = case Target of Name when is_atom(Name) -> {Name, node()}; _ -> Target end,
    case to(Target, W) of
        {living, Other} -> answer_reference(Id, watch(Id, Other, Object, Options, W));
        {ended, Other} -> no_process(Other, Id, Object, Options, W);
        noname -> no_process(Id, Id, Object, Options, W);
        Else -> answer(Id, Else, W)
    end;
perform({demonitor, Ref, Flush}, Id, #world{aliases = Aliases} = W) ->
    #process{monitors = Monitors} = P = process(Id, W),
    case Monitors of
        #{Ref := Target} ->
            Unaliased = case Aliases of
                #{Ref := {_, How}} when How =:= monitor; How =:= once -> W#world{aliases = Aliases#{Ref := inactive}};
                #{} -> W
            end,
            answer(Id, true, unwatch(Ref, Target, update(Id, remove_monitor(Ref, P), Unaliased)));
        #{} when Flush -> answer(Id, false, drop_message(Id, fun(Message) -> is_down(Ref, Message) end, W));
        #{} -> answer(Id, false, W)
    end;
perform({exit, Pid, Reason}, Id, W) ->
    case to(Pid, W) of
        {living, Id} -> exit_self(Reason, Id, W);
        {living, Other} -> answer(Id, true, push(Id, Other, {exit, Reason}, W));
        {ended, _} -> answer(Id, true, W);
        Else -> answer(Id, Else, W)
    end;
perform({trap_exit, Trap}, Id, W) ->
    P = process(Id, W),
    answer(Id, P#process.trap, update(Id, P#process{trap = Trap}, W));
perform({register, Name, Pid}, Id, #world{names = Names} = W) ->
    case {Names, to(Pid, W)} of
        {#{Name := _}, _} -> answer(Id, badarg, W);
        {#{}, {living, Other}} ->
            case process(Other, W) of
                #process{name = []} = P ->
                    Named = update(Other, P#process{name = Name}, W),
                    answer(Id, true, Named#world{names = Names#{Name => Other}});
                #process{} -> answer(Id, badarg, W)
            end;
        {#{}, {outside, _} = Outside} -> answer(Id, Outside, W);
        {#{}, _} -> answer(Id, badarg, W)
    end;
perform({unregister, Name}, Id, #world{names = Names} = W) ->
    case Names of
        #{Name := Other} ->
            Unnamed = update(Other, (process(Other, W))#process{name = []}, W),
            answer(Id, true, Unnamed#world{names = maps:remove(Name, Names)});
        #{} -> answer(Id, noname, W)
    end;
perform({whereis, Name}, Id, #world{names = Names} = W) ->
    answer(Id, case Names of #{Name := Other} -> pid(Other, W); #{} -> noname end, W);
perform(registered, Id, #world{names = Names} = W) -> answer(Id, lists:sort(maps:keys(Names)), W);
perform(processes, Id, W) -> answer(Id, [pid(Other, W) || Other <- alive(W)], W);
%% Signals of the process to the other one are handled before the question is answered.
perform({is_alive, Pid}, Id, W) ->
    case to(Pid, W) of
        {living, Other} ->
            {Effects, W1} = flush(Id, Other, W),
            {More, W2} = answer(Id, is_alive(Other, W1), W1),
            {Effects ++ More, W2};
        {ended, _} -> answer(Id, false, W);
        Else -> answer(Id, Else, W)
    end;
perform({information, Pid}, Id, W) ->
    case to(Pid, W) of
        {living, Id} -> answer(Id, {information, information(Id, W)}, W);
        {living, Other} ->
            {Effects, W1} = flush(Id, Other, W),
            Known = case is_alive(Other, W1) of true -> {information, information(Other, W1)}; false -> ended end,
            {More, W2} = answer(Id, Known, W1),
            {Effects ++ More, W2};
        {ended, _} -> answer(Id, ended, W);
        Else -> answer(Id, Else, W)
    end;
perform({leader, Pid, Leader}, Id, W) ->
    case to(Pid, W) of
        {living, Other} -> answer(Id, true, update(Other, (process(Other, W))#process{leader = Leader}, W));
        _ -> answer(Id, badarg, W)
    end;
perform({timer, Kind, At, To, Message}, Id, #world{timers = Timers} = W0) ->
    {Ref, W} = new_reference(W0),
    Content = case Kind of send_after -> Message; start_timer -> {timeout, Ref, Message} end,
    Set = changed(Ref, W#world{timers = Timers#{Ref => {max(At, now(W)), To, Content}}}),
    answer(Id, Ref, case to(To, W) of
        {ended, _} -> W;
        {living, Other} when is_pid(To) ->
            #process{timers = Own} = P = process(Other, W),
            update(Other, P#process{timers = Own#{Ref => []}}, Set);
        _ -> Set
    end);
perform({cancel_timer, Ref}, Id, #world{timers = Timers} = W) ->
    case Timers of
        #{Ref := {At, _, _}} -> answer(Id, {left, At - now(W)}, remove_timer(Ref, W));
        #{} -> answer(Id, false, W)
    end;
perform({tell, Content}, Id, W) -> answer(Id, ok, put_message(Id, {outside, none, Content}, W));
perform({read_timer, Ref}, Id, #world{timers = Timers} = W) ->
    answer(Id, case Timers of #{Ref := {At, _, _}} -> {left, At - now(W)}; #{} -> false end, W);
perform({unalias, Ref}, Id, #world{aliases = Aliases} = W) ->
    case Aliases of
        #{Ref := {Id, _}} -> answer(Id, true, W#world{aliases = Aliases#{Ref := inactive}});
        #{} -> answer(Id, false, W)
    end;
perform({shared, _}, Id, W) -> answer(Id, go, W);
perform({ended, Reason}, Id, W) -> {[{ended, Id, Reason}], finish(Id, Reason, W)}.

-doc "Answers a question that no other process can notice.".
-spec query(term(), id(), world()) -> {term(), world()}.
query(reference, _, W) -> new_reference(W);
query(clock, _, W) -> {now(W), W};
query(integer, _, #world{integers = Last} = W) -> {Last + 1, W#world{integers = Last + 1}};
query(information, Id, W) -> {{information, information(Id, W)}, W};
query(leader, Id, W) -> {(process(Id, W))#process.leader, W};
query({alias, How}, Id, W) -> new_alias(How, Id, W);
query({arrives, none, Message}, Id, W) -> {ok, tell(Id, Message, W)};
query({arrives, Via, Message}, _, W) ->
    case to(Via, W) of
        {alias, Id} -> {ok, put_message(Id, {outside, Via, Message}, use_alias(Via, W))};
        _ -> {inactive, W}
    end;
query({is_alias, Ref}, _, W) ->
    case to(Ref, W) of
        {alias, _} -> {true, W};
        inactive -> {true, W};
        _ -> {false, W}
    end;
query({real, Pid}, _, W) ->
    case to(Pid, W) of
        {living, Id} -> {real(Id, W), W};
        _ -> {Pid, W}
    end;
%% What the process does at this step sends a message.
query({tell, Pid, Message}, _, W) ->
    case to(Pid, W) of
        {living, Id} -> {ok, tell(Id, Message, W)};
        _ -> {ok, W}
    end.

%% The receiver of a message. `outside': no process of the program.
to(Pid, #world{pids = Pids, living = Living}) when is_pid(Pid) ->
    case Pids of
        #{Pid := Id} when is_map_key(Id, Living) -> {living, Id};
        #{Pid := Id} -> {ended, Id};
        #{} -> {outside, Pid}
    end;
to(Name, #world{names = Names}) when is_atom(Name) ->
    case Names of
        #{Name := Id} -> {living, Id};
        #{} -> noname
    end;
to({Name, Node}, W) when is_atom(Name), Node =:= node() -> to(Name, W);
to(Ref, #world{aliases = Aliases, living = Living}) when is_reference(Ref) ->
    case Aliases of
        #{Ref := {Id, _}} when is_map_key(Id, Living) -> {alias, Id};
        #{Ref := _} -> inactive;
        #{} -> {outside, Ref}
    end;
to(Port, _) when is_port(Port) -> {outside, Port};
to({Name, Node}, _) when is_atom(Name), is_atom(Node) -> {outside, {Name, Node}};
to(_, _) -> badarg.

send(Id, Other, Message, W) ->
    {Effects, W1} = flush(Id, Other, W),
    Sent = case is_alive(Other, W1) of
        true -> put_message(Other, Message, W1);
        false -> W1
    end,
    {Effects ++ [{answer, Id, {sent, Other}}], Sent}.

send_late(Id, Other, Message, W) -> answer(Id, {sent, Other}, push(Id, Other, {message, Message}, W)).

%% An alias for one reply ends with it, and so does its monitor.
use_alias(Ref, #world{aliases = Aliases} = W) ->
    case Aliases of
        #{Ref := {Id, once}} ->
            #process{monitors = Monitors} = P = process(Id, W),
            Used = update(Id, P#process{monitors = maps:remove(Ref, Monitors)}, W#world{aliases = Aliases#{Ref := inactive}}),
            case Monitors of
                #{Ref := Target} -> unwatch(Ref, Target, Used);
                #{} -> Used
            end;
        #{} -> W
    end.

set_link(Id, Other, W) -> add_link(Other, Id, add_link(Id, Other, W)).

add_link(Id, Other, W) ->
    #process{links = Links} = P = process(Id, W),
    update(Id, P#process{links = Links#{Other => []}}, W).

cut_link(Id, Other, W) ->
    lists:foldl(fun({One, Two}, Acc) ->
        case is_alive(One, Acc) of
            true ->
                P = process(One, Acc),
                update(One, P#process{links = maps:remove(Two, P#process.links)}, Acc);
            false -> Acc
        end
    end, W, [{Id, Other}, {Other, Id}]).

watch(Id, Other, Object, Options, W0) ->
    {Ref, W} = monitor_reference(Options, Id, W0),
    Own = process(Id, W),
    W1 = update(Id, add_monitor(Ref, Other, Options, Own), W),
    #process{watchers = Watchers} = Target = process(Other, W1),
    {Ref, update(Other, Target#process{watchers = Watchers#{Ref => {W1#world.references, Id, Object}}}, W1)}.

no_process(From, Id, Object, Options, W0) ->
    {Ref, W} = monitor_reference(Options, Id, W0),
    P = process(Id, W),
    answer(Id, Ref, push(From, Id, {down, Ref, Object, noproc}, update(Id, add_monitor(Ref, none, Options, P), W))).

remove_monitor(Ref, #process{monitors = Monitors, tags = Tags} = P) ->
    P#process{monitors = maps:remove(Ref, Monitors), tags = maps:remove(Ref, Tags)}.

add_monitor(Ref, Target, Options, #process{monitors = Monitors, tags = Tags} = P) ->
    P#process{monitors = Monitors#{Ref => Target},
              tags = case lists:keyfind(tag, 1, Options) of {tag, Tag} -> Tags#{Ref => Tag}; false -> Tags end}.

answer_reference(Id, {Ref, W}) -> answer(Id, Ref, W).

monitor_reference(Options, Id, W) ->
    case lists:keyfind(alias, 1, Options) of
        {alias, explicit_unalias} -> new_alias(explicit, Id, W);
        {alias, demonitor} -> new_alias(monitor, Id, W);
        {alias, reply_demonitor} -> new_alias(once, Id, W);
        _ -> new_reference(W)
    end.

new_reference(#world{references = Last} = W) ->
    {witness_search_identity:reference(Last + 1), W#world{references = Last + 1}}.

new_alias(How, Id, #world{references = Last, aliases = Aliases} = W) ->
    Ref = witness_search_identity:alias(Last + 1, Id),
    {Ref, W#world{references = Last + 1, aliases = Aliases#{Ref => {Id, How}}}}.

is_down(Ref, {_, _, {_, Ref, _, _, _}}) -> true;
is_down(_, _) -> false.

drop_message(Id, Is, W) ->
    #process{old = Old, new = New} = P = process(Id, W),
    case lists:splitwith(fun(Message) -> not Is(Message) end, Old ++ lists:reverse(New)) of
        {Before, [_ | After]} -> update(Id, P#process{old = Before ++ After, new = []}, W);
        {_, []} -> W
    end.

%% A process that ends itself by a signal does so before the call returns.
exit_self(kill, Id, W) -> kill(Id, killed, W);
exit_self(Reason, Id, W) ->
    case process(Id, W) of
        #process{trap = true} -> answer(Id, true, put_message(Id, {outside, none, {'EXIT', pid(Id, W), Reason}}, W));
        #process{} -> kill(Id, Reason, W)
    end.

-doc "The messages in the mailbox of a process, the oldest first.".
-spec messages(id(), world()) -> [term()].
messages(Id, W) ->
    #process{status = Status, old = Old, new = New} = process(Id, W),
    Found = case Status of {finds, _, Message} -> [Message]; _ -> [] end,
    [Content || {_, _, Content} <- Found ++ Old ++ lists:reverse(New)].

information(Id, W) ->
    #process{birth = #{start := Start}, status = Status, links = Links, monitors = Monitors, watchers = Watchers,
             name = Name, leader = Leader, trap = Trap, real = Real} = process(Id, W),
    Messages = messages(Id, W),
    #{messages => Messages, message_queue_len => length(Messages),
      links => [pid(Other, W) || Other <- lists:sort(maps:keys(Links))],
      monitors => [{process, pid(Other, W)} || _ := Other <- maps:iterator(Monitors, ordered), Other =/= none],
      monitored_by => [pid(Other, W) || {_, Other, _, _} <- lists:reverse(in_order(Watchers))],
      registered_name => Name, group_leader => Leader,
      trap_exit => Trap, status => case Status of {waits, _, _} -> waiting; running -> running; _ -> runnable end,
      initial_call => begin {M, F, Args} = Start, {M, F, length(Args)} end, parent => parent(Id, W), real => Real}.

parent(Id, #world{births = Births} = W) ->
    case Births of
        #{Id := #{parent := 0}} -> undefined;
        #{Id := #{parent := Parent}} -> pid(Parent, W)
    end.
