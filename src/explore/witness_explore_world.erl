-module(witness_explore_world).
-moduledoc """
The whole state as one small term: the system, the source, the tracers, the pool, and what was analysed; and every step
that can be taken from there.

The steps are those of the system (`m:witness_explore_system`), and those of the tracers. A tracer that is not busy
takes the next event of any process, or the next message of any other tracer: a mailbox can be filled in any order
that keeps the order of each sender. What it does then ends where it would interact with the system or the pool, which is a
step of its own. `off`, `settle`, and the parts of the questions `traced` and `share` come between any other steps, as
they do in `m:witness_outline_tracer`. The pool lends a free tracer, or a fresh one.

## Names

A tracer is named after the process that it was created for: `-3` for process 3. So names do not depend on the order in
which things happened, and neither do stamps (`m:witness_explore_source`). States that differ in such an order only are
one state.

## Reductions

- `atomic`: a tracer that has taken a message goes on over the first interaction with the others, unless it has sent
  something before. A question about a dead process is answered at once. Taking can as well happen later (no other tracer
  takes from these queues), sending can as well happen earlier (they only grow), and the dead stay dead. So the steps in
  between commute with those of all others (Lipton's reduction).
- `direct`: if there is a message of a process that its tracer analyses at once (`direct/2` of the core), only this step is
  explored. It changes nothing that any other step uses, and stays possible.
- `settled`: a process is settled if its owner analyses it directly, it is on in no other session, and no other tracer has
  anything to do with it any more. Then only its next action is explored. Its events can wait in a queue for any time, so it
  makes no difference if it acts later. This is not for processes that may be killed.

The tests of `m:witness_explore` compare the searches with and without these reductions.
""".

-export([new/1, steps/2, step/3, begin_step/2, view/2, assign/2]).

-export_type([world/0, setting/0, step/0, note/0, options/0, view/0, tracer/0]).

-type process() :: witness_explore_system:process().

-doc "A tracer, named after the process that it was created for; that of the first processes is -1.".
-type tracer() :: neg_integer().

-doc "The core to be explored, with what `new/1` is given besides `self`, `sink` and `assign`.".
-type choreography() :: module() | {module(), Extra :: map()}.

-doc """
What a world is made of: the system; the source with its stamps; how the pool lends (`again`: free tracers too;
`fresh`: new ones only); `first`: whether the first tracer goes to the pool when it is done, or is kept, as in a run;
`attach`: the roots are adopted while they run; `order`: the processes of the events that the first tracer takes first, in
this order; the core; the reductions.
""".
-type options() :: #{system := witness_explore_system:system(),
                     source := witness_explore_source:kind(), stamps := witness_explore_source:stamps(),
                     pool := again | fresh, first := kept | pooled, attach := boolean(),
                     order := [process()], choreography := choreography(), reduce := [atomic | direct | settled]}.

-record(setting, {module :: module(),
                  extra :: map(),
                  system :: witness_explore_system:system(),
                  source :: witness_explore_source:kind(),
                  stamps :: witness_explore_source:stamps(),
                  pool :: again | fresh,
                  first :: kept | pooled,
                  atomic :: boolean(),
                  direct :: boolean(),
                  settled :: [process()]}).

-define(UNSEEN, -1).

%% mail: messages between tracers, oldest first
%% tracers: core, whether it was lent, what it is in the middle of
%% read: the number of the last event of each process that was analysed; ?UNSEEN: no tracer has to see the process
%% closed: the processes that were said to have ended
%% owner: the tracer that has adopted a process; dictated: the one that was lent for it, or is to adopt it with its parent;
%% 0: none
-record(world, {system :: witness_explore_system:state(),
                source :: witness_explore_source:source(),
                mail = #{} :: #{{tracer(), tracer()} => [term(), ...]},
                tracers = #{} :: #{tracer() => {Core :: term(), Lent :: boolean(), none | pending()}},
                free = [] :: [tracer()],
                read :: tuple(),
                closed = [] :: [process()],
                owner :: tuple(),
                dictated :: tuple(),
                order = [] :: [process()]}).

%% What a tracer is in the middle of: where it interacts with others, the effects and the question behind it.
-type pending() :: {Op :: term(), Effects :: [term()], Next :: term()}.

%% A tracer at work. go: what it may do where it interacts with others, see op/6
-record(run, {id :: tracer(), core :: term(), lent :: boolean(), go :: fresh | go | stop, notes = [] :: [note()]}).

-opaque world() :: #world{}.
-opaque setting() :: #setting{}.

-doc """
A step: of the system; a tracer takes an event of a process or a message of a tracer; a tracer goes on with what it is
in the middle of, or with a tracer that the pool lends to it.
""".
-type step() :: witness_explore_system:step()
              | {event, tracer(), process()} | {mail, tracer(), From :: tracer()}
              | {go, tracer()} | {lend, tracer(), tracer()}.

-doc "What happened in a step, for people.".
-type note() :: {happened, witness_event:event() | {other, process()}, [tracer()]}
              | {killed, process(), process()}
              | {took, tracer(), From :: process() | tracer(), term()}
              | {sent, tracer(), tracer(), term()}
              | {analysed, tracer(), witness_event:event()}
              | {ended, tracer(), process()}
              | {did, tracer(), Op :: term(), Answer :: term()}
              | {given_back, tracer()}.

-doc "A world, to be checked.".
-type view() :: #{system := witness_explore_system:state(), source := witness_explore_source:source(),
                  mail := map(), tracers := map(), free := [tracer()], read := tuple(), closed := [process()],
                  owner := tuple(), dictated := tuple(), module := module(),
                      structure := witness_explore_system:system(),
                  kind := witness_explore_source:kind()}.

%% --- the beginning ---------------------------------------------------------------

-doc "The first state of a world, and what does not change in it.".
-spec new(options()) -> {world(), setting()}.
new(#{system := System, source := Kind, stamps := Stamps, pool := Pool, first := First, attach := Attach,
      order := Order, choreography := Choreography, reduce := Reduce}) ->
    {Module, Extra} = case Choreography of {M, X} -> {M, X}; M -> {M, #{}} end,
    {module, Module} = code:ensure_loaded(Module),
    S = #setting{module = Module, extra = Extra, system = System, source = Kind, stamps = Stamps, pool = Pool,
                 first = First,
                 atomic = lists:member(atomic, Reduce),
                 direct = lists:member(direct, Reduce) andalso erlang:function_exported(Module, direct, 2),
                 settled = case lists:member(settled, Reduce) andalso erlang:function_exported(Module, direct, 2) of
                               true -> witness_explore_system:undisturbed(System);
                               false -> []
                           end},
    Size = witness_explore_system:size(System),
    Nobody = erlang:make_tuple(Size, 0),
    Core = new_core(-1, S),
    W = #world{system = witness_explore_system:start(System), source = witness_explore_source:new(Kind, Stamps, Size),
               tracers = #{-1 => {Core, false, {look, [], done}}},
               read = erlang:make_tuple(Size, ?UNSEEN), owner = Nobody, dictated = Nobody, order = Order},
    case Attach of
        true -> {W, S};
        false ->
            {Adopted, W1} = lists:foldl(fun(P, {C, A}) -> attach(P, C, A, S) end, {Core, W},
                                        witness_explore_system:roots(System)),
            {W1#world{tracers = #{-1 => {Adopted, First =:= pooled, none}}}, S}
    end.

new_core(T, #setting{module = Module, extra = Extra}) ->
    Module:new(Extra#{self => T, sink => {session, T}, assign => fun ?MODULE:assign/2}).

-doc """
The owner of a process, from its signature and the label of its parent. The label of process P is `P`, or `{P}` before it is
adopted.
""".
-spec assign({own | shared, process(), process()}, term()) -> {own | shared, {process()}}.
assign({How, Child, Parent}, Parent) -> {How, {Child}};
assign({_, Child, Parent}, Label) -> violated({label, Child, Parent, Label}).

%% The first tracer adopts a process. No tracer gets what it did before.
attach(P, Core, W = #world{owner = Owner, dictated = Dictated, read = Read, source = Source},
       #setting{module = Module, stamps = Stamps}) ->
    {Module:adopt(P, P, Core),
     W#world{source = witness_explore_source:switch_on(-1, P, Stamps =:= always, Source),
             owner = setelement(P, Owner, -1), dictated = setelement(P, Dictated, -1),
             read = setelement(P, Read, count(P, W))}}.

%% --- the steps -------------------------------------------------------------------

-doc "The steps that can be taken.".
-spec steps(world(), setting()) -> [step()].
steps(W = #world{system = State, tracers = Tracers, mail = Mail}, S = #setting{system = System}) ->
    Events = [{event, T, P} || {T, P} <- witness_explore_source:heads(W#world.source), idle(T, Tracers),
              in_order(T, P, W), is_read(T, W, S)],
    case S#setting.direct andalso first_direct(Events, W, S) of
        {event, _, _} = Step -> [Step];
        _ ->
            Acts = witness_explore_system:steps(System, State),
            case lists:search(fun(Act) -> is_settled(Act, W, S) end, Acts) of
                {value, Act} -> [Act];
                false ->
                    Acts ++ Events ++
                        [{mail, T, From} || {T, From} := _ <- Mail, idle(T, Tracers)] ++
                        lists:append([go_steps(T, Op, W, S) || T := {_, _, {Op, _, _}} <- Tracers])
            end
    end.

idle(T, Tracers) -> element(3, map_get(T, Tracers)) =:= none.

in_order(-1, P, #world{order = [Q | _]}) -> P =:= Q;
in_order(_, _, _) -> true.

%% A partition that was there before its tracer waits until the tracer owns a process.
is_read(T, W, #setting{source = birth, module = Module}) -> Module:owned(core(T, W)) =/= [];
is_read(_, _, _) -> true.

first_direct([], _, _) -> none;
first_direct([Step | Steps], W, S) ->
    case is_direct(Step, W, S) of
        true -> Step;
        false -> first_direct(Steps, W, S)
    end.

is_direct({event, T, P}, #world{tracers = Tracers, source = Source, order = Order}, #setting{module = Module}) ->
    [{_, Event} | _] = witness_explore_source:look({T, P}, Source),
    (element(1, Event) =:= send orelse element(1, Event) =:= recv) andalso
        (T =/= -1 orelse Order =:= []) andalso
        Module:direct(P, element(1, map_get(T, Tracers))) =/= no.

%% The owner analyses the process directly, and the process is on in no other session, for good: no other tracer has, or is
%% about to get, a message about it.
is_settled({act, P}, W = #world{owner = Owner, source = Source, tracers = Tracers, mail = Mail},
           #setting{module = Module, settled = Settled, stamps = Stamps}) ->
    T = element(P, Owner),
    lists:member(P, Settled) andalso T =/= 0 andalso
        witness_explore_source:is_only_on(T, P, Stamps =:= always, Source) andalso
        Module:direct(P, core(T, W)) =/= no andalso
        lists:all(fun({Q, X}) -> X =/= P orelse Q =:= T end, witness_explore_source:queues(Source)) andalso
        not lists:any(fun(M) -> is_about(P, M) end, [M || _ := Messages <- Mail, M <- Messages]) andalso
        not lists:any(fun({_, _, none}) -> false;
                         ({_, _, {Op, Effects, _}}) ->
                             is_about(P, Op) orelse lists:any(fun(E) -> is_about(P, E) end, Effects)
                      end, maps:values(Tracers)) andalso
        not lists:any(fun({Core, _, _}) -> is_map_key(P, witness_explore_check:hops(Module, Core)) end,
                      maps:values(Tracers));
is_settled(_, _, _) -> false.

is_about(P, {routed, _, {eof, Q}}) -> P =:= Q;
is_about(P, {routed, _, {_, Event}}) -> element(2, Event) =:= P;
is_about(P, {send, _, Message}) -> is_about(P, Message);
is_about(P, {attach, Ps}) -> lists:member(P, Ps);
is_about(P, Other) -> is_tuple(Other) andalso tuple_size(Other) > 1 andalso element(2, Other) =:= P.

go_steps(T, {tracer, C}, W, S) -> [{lend, T, Lent} || Lent <- lendable(C, W, S)];
go_steps(T, {await, P}, #world{source = Source}, _) ->
    [{go, T} || not lists:any(fun({O, Q}) -> Q =:= P andalso O =/= T end, witness_explore_source:queues(Source))];
go_steps(T, _, _, _) -> [{go, T}].

%% A free tracer may be on its way back to the pool, so a fresh one is possible as well.
lendable(C, #world{free = Free}, #setting{source = Kind, pool = again}) when Kind =/= birth -> [-C | Free];
lendable(C, _, _) -> [-C].

-doc "Takes a step. Throws `{violation, What}` if something happens in it that must not happen.".
-spec step(step(), world(), setting()) -> {world(), [note()]}.
step({Kind, _} = Step, W = #world{system = State}, S = #setting{system = System}) when Kind =:= act; Kind =:= die ->
    {State1, Happenings} = witness_explore_system:step(Step, System, State),
    {W1, Notes} = lists:foldl(fun(H, {A, N}) -> apply_effect(H, A, N, S) end, {W#world{system = State1}, []}, Happenings),
    {W1, lists:reverse(Notes)};
step({event, T, P}, W = #world{source = Source}, S) ->
    {Stamped, Source1} = witness_explore_source:take({T, P}, Source),
    Order = case {T, W#world.order} of {-1, [_ | Rest]} -> Rest; {_, O} -> O end,
    handle(T, P, {own, Stamped}, W#world{source = Source1, order = Order}, S);
step({mail, T, From}, W = #world{mail = Mail}, S) ->
    #{{T, From} := [Message | Rest]} = Mail,
    Mail1 = case Rest of [] -> maps:remove({T, From}, Mail); _ -> Mail#{{T, From} := Rest} end,
    handle(T, From, Message, W#world{mail = Mail1}, S);
step({go, T}, W = #world{tracers = Tracers}, S) ->
    #{T := {Core, Lent, {Op, Effects, Next}}} = Tracers,
    check_routes(T, W, perform(Op, Effects, Next, #run{id = T, core = Core, lent = Lent, go = stop}, W, S), S);
step({lend, T, Tracer}, W = #world{tracers = Tracers}, S) ->
    #{T := {Core, Lent, {Op, Effects, Next}}} = Tracers,
    check_routes(T, W, lend(Op, Tracer, Effects, Next, #run{id = T, core = Core, lent = Lent, go = stop}, W, S), S).

-doc "The beginning of a step that cannot be taken to its end.".
-spec begin_step(step(), world()) -> [note()].
begin_step({event, T, P}, #world{source = Source}) ->
    [Stamped | _] = witness_explore_source:look({T, P}, Source),
    [{took, T, P, {own, Stamped}}];
begin_step({mail, T, From}, #world{mail = Mail}) ->
    [Message | _] = map_get({T, From}, Mail),
    [{took, T, From, Message}];
begin_step({go, T}, #world{tracers = Tracers}) ->
    {_, _, {Op, _, _}} = map_get(T, Tracers),
    [{did, T, Op, none}];
begin_step(_, _) -> [].

handle(T, From, Message, W = #world{tracers = Tracers}, S = #setting{module = Module}) ->
    #{T := {Core, Lent, none}} = Tracers,
    R = #run{id = T, core = Core, lent = Lent orelse element(1, Message) =:= take, go = fresh,
             notes = [{took, T, From, Message}]},
    check_routes(T, W, result(assert_core(fun() -> Module:handle(Message, Core) end), R, W, S), S).

%% The routes are checked if some have changed.
check_routes(T, Before, {After, Notes}, S = #setting{module = Module, source = Kind}) ->
    Kind =/= birth orelse witness_explore_check:is_direct(Module, core(T, After)) orelse violated({not_direct, T}),
    case witness_explore_check:hops(Module, core(T, Before)) =:= witness_explore_check:hops(Module, core(T, After)) of
        true -> ok;
        false -> witness_explore_check:routes(view(After, S))
    end,
    {After, lists:reverse(Notes)}.

core(T, #world{tracers = Tracers}) -> element(1, map_get(T, Tracers)).

count(P, #world{system = State}) -> witness_explore_system:count(P, State).

moment(P, #world{system = State}, #setting{system = System}) -> witness_explore_system:moment(P, System, State).

alive(P, #world{system = State}) -> witness_explore_system:state(P, State) =:= alive.

-spec violated(term()) -> no_return().
violated(What) -> throw({violation, What}).

%% An assertion of the core that fails is a violation, and so is its crash.
assert_core(Call) ->
    try Call()
    catch
        error:{invariant, Name, P} -> violated({invariant, Name, P});
        error:Reason:Stack -> violated({crashed, Reason, [Place || {_, _, _, _} = Place <- lists:sublist(Stack, 2)]})
    end.

%% --- the system and the source ---------------------------------------------------

apply_effect({event, Event}, W, Notes, S) -> emit(element(2, Event), Event, W, Notes, S);
apply_effect({other, P}, W, Notes, S) -> emit(P, {other, P}, W, Notes, S);
apply_effect({born, C, P, Init}, W0 = #world{source = Source, read = Read, dictated = Dictated}, Notes, S) ->
    {_, _, _, {How, _, _}, _} = Init,
    %% If no tracer watches a process, none watches its children.
    {Own, W} = case S#setting.source =:= birth andalso How =:= own andalso
        witness_explore_source:on(P, Source) =/= [] of
        true -> {-C, start(-C, W0#world{dictated = setelement(C, Dictated, -C)}, S)};
        false -> {none, W0}
    end,
    Seen = case element(P, Read) of ?UNSEEN -> ?UNSEEN; _ -> 0 end,
    apply_effect({event, Init}, W#world{source = witness_explore_source:add_birth(C, P, Own, Source),
                                     read = setelement(C, Read, Seen)}, Notes, S);
apply_effect({gone, P}, W = #world{source = Source}, Notes, _) ->
    {W#world{source = witness_explore_source:remove(P, Source)}, Notes};
apply_effect({killed, _, _} = Killed, W, Notes, _) ->
    {W, [Killed | Notes]}.

emit(P, What, W = #world{source = Source}, Notes, S) ->
    {W#world{source = witness_explore_source:emit(P, moment(P, W, S), What, Source)},
     [{happened, What, witness_explore_source:on(P, Source)} | Notes]}.

start(T, W = #world{tracers = Tracers}, S) -> W#world{tracers = Tracers#{T => {new_core(T, S), false, none}}}.

%% --- a tracer at work ------------------------------------------------------------

result({Effects, Next, Core}, R, W, S) -> work(Effects, Next, R#run{core = Core}, W, S).

%% `settle' does nothing where all events are stamped.
work([{send, To, Message} | Es], Next, R = #run{id = T, go = Go, notes = Notes}, W = #world{mail = Mail}, S) ->
    S#setting.source =:= birth andalso is_routed_event(Message) andalso violated({routed_at_birth, T, Message}),
    is_map_key(To, W#world.tracers) orelse violated({no_such_tracer, To}),
    Go1 = case Go of fresh -> stop; _ -> Go end,
    work(Es, Next, R#run{go = Go1, notes = [{sent, T, To, Message} | Notes]},
         W#world{mail = Mail#{{To, T} => maps:get({To, T}, Mail, []) ++ [Message]}}, S);
work([{analyse, Label, Stamped} | Es], Next, R, W, S) ->
    W1 = analysed(R#run.id, Label, Stamped, W, S),
    work(Es, Next, note({analysed, R#run.id, element(2, Stamped)}, R), W1, S);
work([{ended, P, Label} | Es], Next, R, W, S) ->
    W1 = end_monitors(R#run.id, P, Label, W),
    work(Es, Next, note({ended, R#run.id, P}, R), W1, S);
work([{settle, _} | Es], Next, R, W, S = #setting{stamps = always}) -> work(Es, Next, R, W, S);
work([Effect | Es], Next, R, W, S) -> op(Effect, Es, Next, R, W, S);
work([], done, R, W, S) -> done(R, W, S);
work([], {adopt, P, Fork, Label}, R, W, S) -> answer({adopt, P}, P, R, adopt(P, Fork, Label, R, W, S), S);
work([], Question, R, W, S) -> op(Question, [], asked, R, W, S).

is_routed_event({routed, _, {_, Event}}) -> is_tuple(Event);
is_routed_event(_) -> false.

note(Note, R = #run{notes = Notes}) -> R#run{notes = [Note | Notes]}.

%% Here a tracer interacts with the system, the source or the pool.
op(Op, Es, Next, R, W, S = #setting{atomic = Atomic}) ->
    case Atomic andalso ((R#run.go =:= fresh andalso not is_choice(Op, W, S)) orelse is_void(Op, W)) of
        true when element(1, Op) =:= tracer -> lend(Op, -element(2, Op), Es, Next, R#run{go = stop}, W, S);
        true ->
            Go = case is_void(Op, W) of true -> R#run.go; false -> stop end,
            perform(Op, Es, Next, R#run{go = Go}, W, S);
        false -> park({Op, Es, Next}, R, W)
    end.

%% Operations that must be a step of their own in any case.
is_choice({tracer, C}, W, S) -> length(lendable(C, W, S)) > 1;
is_choice({await, _}, _, _) -> true;
is_choice(_, _, _) -> false.

%% Operations with the same result at any time from now on, which change nothing: the process is dead.
is_void({Op, P}, W) when Op =:= off; Op =:= settle; Op =:= traced; Op =:= now; Op =:= cut -> not alive(P, W);
is_void({Op, P, _}, W) when Op =:= traced; Op =:= share; Op =:= on -> not alive(P, W);
is_void(_, _) -> false.

park(Pending, #run{id = T, core = Core, lent = Lent, notes = Notes}, W = #world{tracers = Tracers}) ->
    {W#world{tracers = Tracers#{T := {Core, Lent, Pending}}}, Notes}.

%% As in `m:witness_outline_tracer': a lent tracer that is done gives itself back.
done(R = #run{id = T, core = Core, lent = Lent}, W = #world{free = Free, tracers = Tracers},
     #setting{module = Module}) ->
    case Lent andalso Module:is_done(Core) of
        false -> {W#world{tracers = Tracers#{T := {Core, Lent, none}}}, R#run.notes};
        true ->
            %% I1
            Module:owned(Core) =:= [] andalso map_size(witness_explore_check:hops(Module, Core)) =:= 0 orelse
                violated({not_empty, T}),
            {W#world{tracers = Tracers#{T := {Core, false, none}}, free = lists:usort([T | Free])},
             [{given_back, T} | R#run.notes]}
    end.

answer(Op, Answer, R = #run{core = Core}, W, S = #setting{module = Module}) ->
    result(assert_core(fun() -> Module:answer(Answer, Core) end), note({did, R#run.id, Op, Answer}, R), W, S).

lend({tracer, C} = Op, Lent, [], asked, R, W0 = #world{dictated = Dictated, free = Free}, S) ->
    S#setting.source =:= birth orelse element(C, Dictated) =:= 0 orelse violated({two_tracers, C}),
    W = case is_map_key(Lent, W0#world.tracers) of true -> W0; false -> start(Lent, W0, S) end,
    answer(Op, {Lent, {session, Lent}}, R,
           W#world{dictated = setelement(C, Dictated, Lent), free = lists:delete(Lent, Free)}, S).

perform({off, P} = Op, Es, Next, R = #run{id = T}, W = #world{source = Source}, S) ->
    work(Es, Next, note({did, T, Op, ok}, R), W#world{source = witness_explore_source:switch_off(T, P, Source)}, S);
perform({settle, P} = Op, Es, Next, R = #run{id = T}, W, S) ->
    work(Es, Next, note({did, T, Op, ok}, R), stamps(T, P, false, W), S);
perform({trace, P} = Op, [], asked, R = #run{id = T}, W = #world{source = Source}, S) ->
    Free = alive(P, W) andalso witness_explore_source:on(P, Source) =:= [],
    answer(Op, ok, R, case Free of
                          true -> W#world{source = witness_explore_source:switch_on(T, P, false, Source)};
                          false -> W
                      end, S);
perform({clear, P} = Op, [], asked, R, W, S = #setting{source = vm}) ->
    answer(Op, ok, R, cleared(P, W), S);
perform({clear, P} = Op, [], asked, R, W, S) ->
    op({await, P}, [], asked, note({did, R#run.id, Op, ok}, R), cleared(P, W), S);
perform({preempt, P}, [], asked, R, W, S = #setting{source = vm}) ->
    op({trace, P}, [], asked, note({did, R#run.id, {clear, P}, ok}, R), cleared(P, W), S);
perform({preempt, P} = Op, [], asked, R = #run{id = T}, W = #world{source = Source}, S) ->
    W1 = #world{source = Cleared} = cleared(P, W),
    Moved = case witness_explore_source:on(P, Source) of
        [] -> Cleared;
        [_] -> witness_explore_source:switch_on(T, P, false, Cleared)
    end,
    op({await, P}, [], asked, note({did, T, Op, ok}, R), W1#world{source = Moved}, S);
perform({await, _} = Op, [], asked, R, W, S) -> answer(Op, ok, R, W, S);
perform(lent, [], asked, R = #run{id = T}, W = #world{free = Free}, S) ->
    answer(lent, (T =/= -1 orelse S#setting.first =:= pooled) andalso not lists:member(T, Free), R, W, S);
perform({traced, P}, [], asked, R = #run{id = T}, W, S) -> perform({traced, P, {session, T}}, [], asked, R, W, S);
%% A source that makes the partition of a process at its birth knows it whether the process lives or not.
perform({traced, P, {session, In}} = Op, [], asked, R, W, S = #setting{source = birth}) when -P =:= In ->
    answer(Op, born, R, W, S);
perform({traced, P, {session, In}} = Op, [], asked, R, W, S) ->
    case {alive(P, W), witness_explore_source:is_on(In, P, W#world.source)} of
        {false, _} -> answer(Op, dead, R, W, S);
        {true, true} -> answer(Op, true, R, W, S);
        {true, false} -> op({now, P}, [], asked, note({did, R#run.id, Op, false}, R), W, S)
    end;
perform({now, P} = Op, [], asked, R, W, S) ->
    answer(Op, {false, witness_explore_source:now(moment(P, W, S))}, R, W, S);
perform({share, P, Sink} = Op, [], asked, R = #run{id = T}, W, S = #setting{source = Kind, stamps = Stamps}) ->
    case {alive(P, W), Kind, Stamps} of
        {false, _, _} -> answer(Op, dead, R, W, S);
        {true, birth, _} -> violated({shared_at_birth, P});
        {true, ideal, _} ->
            {session, To} = Sink,
            witness_explore_source:is_on(T, P, W#world.source) orelse violated({shared_by_a_stranger, P, T}),
            N = moment(P, W, S),
            answer(Op, {cut, witness_explore_source:now(N)}, R,
                   W#world{source = witness_explore_source:move(P, T, To, N, W#world.source)}, S);
        {true, vm, always} -> perform({on, P, Sink}, [], asked, R, W, S);
        {true, vm, handover} ->
            op({on, P, Sink}, [], asked, note({did, T, {stamp, P}, ok}, R), stamps(T, P, true, W), S)
    end;
perform({on, P, {session, To}} = Op, [], asked, R, W = #world{source = Source}, S) ->
    case alive(P, W) of
        true -> op({cut, P}, [], asked, note({did, R#run.id, Op, ok}, R),
                   W#world{source = witness_explore_source:switch_on(To, P, true, Source)}, S);
        false -> answer(Op, dead, R, W, S)
    end;
perform({cut, P} = Op, [], asked, R, W, S) ->
    answer(Op, {cut, witness_explore_source:now(moment(P, W, S))}, R, W, S);
perform(look, [], done, R, W = #world{source = Source, system = State}, S) ->
    case [P || P <- lists:seq(1, tuple_size(State)), alive(P, W), witness_explore_source:on(P, Source) =:= []] of
        [] -> done(R, W, S);
        Ps -> park({{attach, Ps}, [], done}, R, W)
    end;
perform({attach, []}, [], done, R, W, _) -> park({look, [], done}, R, W);
perform({attach, [P | Ps]}, [], done, R = #run{id = T, core = Core}, W, S) ->
    {Core1, W1} = case alive(P, W) of
        true -> assert_core(fun() -> attach(P, Core, W, S) end);
        false -> {Core, W}
    end,
    park({{attach, Ps}, [], done}, note({did, T, {attach, P}, ok}, R#run{core = Core1}), W1).

cleared(P, W = #world{source = Source}) ->
    W#world{source = lists:foldl(fun(T, A) -> witness_explore_source:switch_off(T, P, A) end, Source,
                                 witness_explore_source:on(P, Source))}.

stamps(T, P, Stamped, W = #world{source = Source}) ->
    case alive(P, W) of
        false -> W;
        true ->
            witness_explore_source:is_on(T, P, Source) orelse violated({stamps_of_what_is_off, P, T}),
            W#world{source = witness_explore_source:stamp(T, P, Stamped, Source)}
    end.

%% --- what must hold in each step -------------------------------------------------

%% Each process is adopted once, by the tracer that the map dictates: the one that was lent for it, or that of its parent.
adopt(P, {fork, Parent, P, {How, P, Parent}, _}, Label, #run{id = T},
        W = #world{owner = Owner, dictated = Dictated}, _) ->
    Label =:= {P} orelse violated({label, P, Label}),
    element(P, Owner) =:= 0 orelse violated({two_owners, P, element(P, Owner), T}),
    Dictated1 = case How of
        own -> Dictated;
        shared -> setelement(P, Dictated, element(Parent, Owner))
    end,
    element(P, Dictated1) =:= T orelse violated({wrong_owner, P, T, element(P, Dictated1)}),
    W#world{owner = setelement(P, Owner, T), dictated = Dictated1}.

%% Definition 1: the events of a process that were analysed are a prefix of what it did, each once, by its owner, for its own
%% monitors; and a fork comes before all events of the child.
analysed(T, _, {_, {other, P}}, _, _) -> violated({no_event, P, T});
analysed(T, Label, {_, Event}, W = #world{read = Read, owner = Owner}, #setting{system = System}) ->
    P = element(2, Event),
    N = element(tuple_size(Event), Event),
    Last = element(P, Read),
    N > Last orelse violated({analysed_twice, Event, T}),
    N =:= Last + 1 orelse violated({lost, Event, Last, T}),
    element(P, Owner) =:= T orelse violated({analysed_by_a_stranger, Event, T, element(P, Owner)}),
    Label =:= P orelse violated({wrong_monitors, Event, Label}),
    case Event of
        {init, P, Parent, _, _} ->
            element(Parent, Read) >= witness_explore_system:birth(P, System) orelse
                violated({before_its_fork, Event, T});
        _ -> ok
    end,
    W#world{read = setelement(P, Read, N)}.

end_monitors(T, P, Label, W = #world{closed = Closed, read = Read, owner = Owner}) ->
    lists:member(P, Closed) andalso violated({ended_twice, P}),
    Label =:= P orelse violated({wrong_monitors, P, Label}),
    element(P, Owner) =:= T orelse violated({ended_by_a_stranger, P, T, element(P, Owner)}),
    not alive(P, W) andalso element(P, Read) =:= count(P, W) orelse violated({ended_early, P}),
    W#world{closed = lists:usort([P | Closed])}.

-doc "The parts of a world.".
-spec view(world(), setting()) -> view().
view(#world{system = State, source = Source, mail = Mail, tracers = Tracers, free = Free, read = Read, closed = Closed,
            owner = Owner, dictated = Dictated}, #setting{module = Module, system = System, source = Kind}) ->
    #{system => State, source => Source, mail => Mail, tracers => Tracers, free => Free, read => Read, closed => Closed,
      owner => Owner, dictated => Dictated, module => Module, structure => System, kind => Kind}.
