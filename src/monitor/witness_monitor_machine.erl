-module(witness_monitor_machine).
-moduledoc """
A monitor as data: one state machine, with or without a filter, or one for each slice.

Its input is events; its output is the outcomes of decided slices, and at the end one *final* outcome. A machine
is not a process and sends no message: `m:witness_monitor_runner` gives a machine a process of its own, and
`m:witness_offline_shard` runs very many of one property. Only the marks of actions that were taken are in the process
dictionary of the process that runs the machine (`read_marks/0`).

```erlang
1> {ok, M} = witness_monitor_machine:new(#{monitor => {no_crash, none}, process => self(), signature => {m, f, []},
                                           explain => 12}).
2> {[], {ok, M1}} = witness_monitor_machine:run([{recv, self(), undefined, hello, 1}], M).
3> witness_monitor_machine:run([{exit, self(), normal, 2}], M1).
{[],{decided,#{verdict => yes,info => normal,reason => undefined,slice => undefined,vacuous => false,...}}}
```
""".

-export([prepare/1, has_deadlines/1, is_timed/1, new/1, run/2, pass/2, next_deadline/2, finish/2, inconclusive/2, save/1, load/2]).
-export([read_marks/0, take_marks/0]).
-export([instance/1, of_instance/2, final/1, failure_outcome/1, has_slices/1, is_large/2, state_key/1]).
-export_type([machine/0, spec/0, prepared/0, final/0, result/0, saved/0]).

-doc """
What to run: the monitor, the process that it is started for, how many steps an explanation has, how many slices may
be alive (default 100,000), and for how many milliseconds a slice may be idle (`m:witness_monitor_expiry`; by default
forever). `attached`: the process was running already, in this function; its first item is
`{attached, P, MFA, Ts}`, and the arguments in its signature mean nothing. Where watching stops, deadlines before the `stop_time` have passed. Other keys are ignored.

`all` in place of the process: the monitor reads all processes of the run. It is given all their events, births and
ends included. Each of its outcomes has the `process` of the deciding event, with its `signature`; both are `undefined`
if there was no such event, and the signature also if it is not known. A monitor with `among/2` reads only processes of which this
says `true`. At the first event of its alphabet of a process of which it is not known, it ends with the gap `unknown_signature`.

A monitor with `unsure/2` that says `true` of its process ends at once, with this gap: it depends on arguments, or on a parent, that
are not known.
""".
-type spec() :: #{monitor := {module(), Arg :: term()},
                  process := witness_event:proc() | all,
                  signature := witness_event:signature() | all,
                  explain := pos_integer(),
                  max_slices => pos_integer(),
                  slice_idle => pos_integer() | infinity,
                  stop_time => witness_monitor_stop_time:stop_time(),
                  attached => mfa(),
                  atom() => term()}.

-doc """
A `t:spec/0` without the process and its signature: `prepare/1` adds what all machines of the monitor share. `counted` is called
at each verdict `yes`: whether it is only counted.
""".
-type prepared() :: #{monitor := {module(), Arg :: term()},
                      explain := pos_integer(),
                      counted => fun(() -> boolean()),
                      max_slices => pos_integer(),
                      slice_idle => pos_integer() | infinity,
                      stop_time => witness_monitor_stop_time:stop_time(),
                      atom() => term()}.

-doc """
The end of a monitor. `ignored`: it refused its process. `{satisfied, Vacuous}`: it said `yes`, which is only counted. Slices have
outcomes of their own; the end of a monitor with slices has their number. If there was none, the outcome is an ordinary one, and
at a complete end a vacuous `yes`. It is also an ordinary one if the monitor could not go on: later slices would be in no outcome.
""".
-type final() ::
    ignored
  | witness_monitor_instance:satisfied()
  | #{slices := pos_integer()}
  | #{slice := undefined,
      verdict := witness_monitor:verdict(), reason := witness_monitor_instance:reason(),
      info := witness_monitor:info(), vacuous := boolean(),
      event := undefined | #{index := pos_integer(), event := witness_event:event()},
      steps := [witness_monitor_instance:step()], skipped := non_neg_integer(),
      process => witness_event:proc() | undefined, signature => witness_event:signature() | undefined}.

-doc "Outcomes of slices in the order in which they were reached, and the machine, if it goes on.".
-type result() :: {[witness_monitor_sliced:outcome() | witness_monitor_sliced:satisfied() | witness_monitor_sliced:undecided()],
                   {ok, machine()} | {decided, final()}}.

-opaque machine() ::
    {single, witness_monitor_instance:config(), witness_monitor_instance:instance()}
  | {chosen, witness_monitor_instance:config(), choice(), witness_monitor_instance:instance()}
  | {sliced, witness_monitor_instance:config(), witness_monitor_sliced:sliced()}
  | {requests, witness_monitor_requests:requests(), machine()}
  | {all, members(), none | alive(), machine()}.

%% Says of a signature whether a process with it is read; `unknown` if that depends on what is not known of it. Which events matter.
-type members() ::
    all
  | {Says :: fun((Arg :: term(), witness_event:signature() | undefined | {unknown, module(), atom(), arity()}) ->
                     boolean() | unknown),
     Arg :: term(), Matters :: fun((witness_event:event()) -> boolean())}.

%% The processes that have not ended; `none`: there has been none yet.
-type alive() :: #{witness_event:proc() => witness_event:signature() | undefined}.

%% The part that chooses events: the alphabet, which is not in the state, or the monitor, with a filter that is.
-type choice() :: {alphabet | monitor, witness_monitor_instance:choice()}.

-doc "The states of a machine as plain data, if the monitor's own states and its filter are plain data.".
-type saved() :: {whole, witness_monitor_instance:saved()}
               | {filtered, Filter :: term(), witness_monitor_instance:saved()}
               | {sliced, Filter :: term(), witness_monitor_sliced:saved()}
               | {requests, witness_monitor_requests:requests(), saved()}
               | {all, none | alive(), saved()}.

-define(MAX_SLICES, 100_000).
%% Marks of actions with a higher id are ignored.
-define(MAX_ID, 1_000_000).

-doc "For callers that start many machines of one monitor: computes once what all of them share.".
-spec prepare(prepared()) -> prepared().
prepare(#{monitor := {Module, _} = Monitor, explain := Explain} = Spec) ->
    Reads = reads_functions(Monitor),
    Config = add_traits(witness_monitor_instance:config(Module, Explain), Spec, fun() -> Reads end),
    Spec#{config => case Spec of
              #{counted := IsCounted} -> witness_monitor_instance:set_counting(IsCounted, Config);
              #{} -> Config
          end, choice => choice(Monitor)}.

add_traits(Config, #{monitor := Monitor} = Spec, Reads) ->
    witness_monitor_instance:set_functions(Reads, case witness_monitor:is_timed(Monitor) of
        true -> witness_monitor_instance:set_timed(maps:get(stop_time, Spec, witness_monitor_stop_time:none()), Config);
        false -> Config
    end).

reads_functions(Monitor) -> witness_monitor_alphabet:functions(Monitor) =/= [].

-doc "Whether the machines have deadlines.".
-spec has_deadlines(prepared()) -> boolean().
has_deadlines(#{config := Config}) -> witness_monitor_instance:is_timed(Config).

-doc "Whether the monitor has deadlines.".
-spec is_timed(machine()) -> boolean().
is_timed({all, _, _, Machine}) -> is_timed(Machine);
is_timed({requests, _, Machine}) -> is_timed(Machine);
is_timed(Machine) -> witness_monitor_instance:is_timed(element(2, Machine)).

-doc "Starts a monitor. It may refuse its process, or crash at once.".
-spec new(spec()) -> {ok, machine()} | {decided, final()}.
new(#{process := all} = Spec) ->
    case new_one(Spec#{process := undefined, signature := undefined}) of
        {ok, Machine} -> {ok, {all, members(Spec), none, Machine}};
        {decided, Final} -> {decided, put_process(Final, none)}
    end;
new(Spec) ->
    new_one(Spec).

members(#{monitor := {Module, Arg} = Monitor}) ->
    case erlang:function_exported(Module, among, 2) of
        true -> {fun Module:among/2, Arg, matters(choice(Monitor))};
        false -> all
    end.

matters(all) -> fun(E) -> not witness_monitor_alphabet:is_function_event(E) end;
matters({_, {Slice, Alphabet}}) -> fun(E) -> Slice(E, Alphabet) =/= skip end.

new_one(Spec) ->
    Config = config(Spec),
    try not is_unsure(Spec) andalso begin_as(call_init(Spec), Config, Spec) of
        false -> {decided, empty_outcome({gap, unknown_signature}, Config)};
        ignore -> {decided, ignored};
        {crashed, _} = Crash -> {decided, empty_outcome(Crash, Config)};
        Machine -> {ok, Machine}
    catch
        Class:Reason:Stack -> {decided, empty_outcome(witness_monitor_instance:crash(Class, Reason, Stack), Config)}
    end.

%% Whether something that is not known of the process decides if the monitor is for it, or what the monitor finds.
is_unsure(#{monitor := Monitor, attached := {M, F, A}}) -> witness_monitor:is_unsure(Monitor, {attached, M, F, A});
is_unsure(#{monitor := Monitor, signature := Signature}) ->
    case witness_event_signature:known(Signature) of
        {unknown, _, _, _} = Known -> witness_monitor:is_unsure(Monitor, Known);
        _ -> false
    end.

call_init(#{attached := MFA, monitor := {Module, Arg}, process := P, signature := Signature}) ->
    case erlang:function_exported(Module, attached, 3) of
        true -> Module:attached(MFA, P, Arg);
        false -> Module:init(Signature, P, Arg)
    end;
call_init(#{monitor := {Module, Arg}, process := P, signature := Signature}) ->
    Module:init(Signature, P, Arg).

config(#{config := Config}) -> Config;
config(#{monitor := {Module, _} = Monitor, explain := Explain} = Spec) ->
    Handle = callback(fun Module:handle_event/2, fun(State) -> {ok, State} end, Spec),
    %% A machine by itself asks for the alphabet only if it is given calls or returns: that takes longer than the rest of its start.
    add_traits(witness_monitor_instance:config(Module, Explain, Handle), Spec, fun() -> reads_functions(Monitor) end).

%% A specification ignores the unknown parts of the `init` of an attached process (`m:witness_spec_attach`). A
%% monitor that was written by hand was notified by `attached/3`. A log has the mark itself.
callback(Callback, _, #{monitor := {witness_monitor_log, _}}) -> Callback;
callback(Callback, Told, #{attached := _, monitor := {Module, _}}) ->
    Attached = case erlang:function_exported(Module, attached, 3) of
        true -> fun(_, State) -> Told(State) end;
        false -> fun({attached, P, MFA, Ts}, State) ->
                         Callback({init, P, undefined, witness_event_signature:unknown(MFA), Ts}, State)
                 end
    end,
    fun(Item, State) when element(1, Item) =:= attached -> Attached(Item, State);
       (Item, State) -> Callback(Item, State)
    end;
callback(Callback, _, _) -> Callback.

begin_as({ok, State}, Config, Spec) -> new_whole(witness_monitor_instance:new(State), Config, Spec);
begin_as({ok, State, Filter}, Config, Spec) -> new_filtered(Filter, witness_monitor_instance:new(State), Config, Spec);
begin_as({slices, Filter}, Config, Spec) -> {sliced, Config, new_sliced(Filter, Config, Spec)};
begin_as({requests, Begun}, Config, Spec) when is_tuple(Begun), element(1, Begun) =/= requests ->
    case begin_as(Begun, Config, Spec) of
        {crashed, _} = Crash -> Crash;
        Machine -> {requests, witness_monitor_requests:new(), Machine}
    end;
begin_as(ignore, _, _) -> ignore;
begin_as(Other, _, _) -> witness_monitor_instance:crash(init, Other).

new_whole(Instance, Config, Spec) ->
    Choice = case Spec of
        #{choice := Prepared} -> Prepared;
        #{monitor := Monitor} -> choice(Monitor)
    end,
    case Choice of
        all -> {single, Config, Instance};
        _ -> {chosen, Config, Choice, Instance}
    end.

choice(Monitor) ->
    case witness_monitor_alphabet:of_monitor(Monitor) of
        all -> all;
        Alphabet -> {alphabet, {fun witness_monitor_alphabet:slice/2, witness_monitor_alphabet:compile(Alphabet)}}
    end.

new_filtered(Filter, Instance, Config, Spec) ->
    {chosen, Config, {monitor, compile_choice(Filter, Spec)}, Instance}.

compile_choice(Filter, #{monitor := {Module, _}} = Spec) ->
    {callback(fun Module:slice/2, fun(_) -> skip end, Spec), Filter}.

new_sliced(Filter, Config, #{monitor := {Module, _}} = Spec) ->
    Max = maps:get(max_slices, Spec, ?MAX_SLICES),
    witness_monitor_sliced:new(Module, Config, compile_choice(Filter, Spec), Module:slice_names(Filter), Max,
                               maps:get(slice_idle, Spec, infinity)).

-doc "Takes events.".
-spec run([witness_event:event()], machine()) -> result().
run(Given, {single, Config, Instance}) ->
    case witness_monitor_instance:run(without_functions(Given, Config), Config, Instance) of
        {ok, Next} -> {[], {ok, {single, Config, Next}}};
        {decided, Outcome} -> {[], {decided, final(Outcome)}}
    end;
run(Given, {chosen, Config, {_, Choice} = By, Instance} = Machine) ->
    case witness_monitor_instance:choose(without_functions(Given, Config), Choice) of
        {[], ok} -> {[], {ok, Machine}};
        {Chosen, Result} ->
            case witness_monitor_instance:run(Chosen, Config, Instance) of
                {ok, Next} when Result =:= ok -> {[], {ok, {chosen, Config, By, Next}}};
                {ok, Next} -> decide(inconclusive(Result, {chosen, Config, By, Next}));
                {decided, Outcome} -> {[], {decided, final(Outcome)}}
            end
    end;
run(Given, {sliced, Config, Sliced}) ->
    case witness_monitor_sliced:run(without_functions(Given, Config), Sliced) of
        {ok, Outcomes, Next} -> {Outcomes, {ok, {sliced, Config, Next}}};
        {Crash, Outcomes, Next} ->
            {Others, Final} = inconclusive(Crash, {sliced, Config, Next}),
            {Outcomes ++ Others, {decided, Final}}
    end;
run(Events, {requests, Open, Machine}) ->
    {Known, Result, Left} = witness_monitor_requests:put_requests(Events, Open),
    case run(Known, Machine) of
        {Slices, {ok, Next}} when Result =:= ok ->
            {[witness_monitor_requests:plain(Slice) || Slice <- Slices], {ok, {requests, Left, Next}}};
        {Slices, {ok, Next}} ->
            {Others, Final} = inconclusive(Result, Next),
            decide(plain({Slices ++ Others, Final}));
        {Slices, {decided, Final}} ->
            decide(plain({Slices, Final}))
    end;
run([], {all, _, _, _} = Machine) ->
    {[], {ok, Machine}};
run(Events, {all, Members, Before, Machine}) ->
    {Now, Later} = split_at_end(Events, []),
    During = lists:foldl(fun add_process/2, case Before of none -> #{}; _ -> Before end, Now),
    {Slices0, Result} = run_members(Members, Now, During, Machine),
    Slices = [put_process(Slice, During) || Slice <- Slices0],
    case Result of
        {ok, Next} ->
            {Others, Last} = run(Later, {all, Members, remove_process(lists:last(Now), During), Next}),
            {Slices ++ Others, Last};
        {decided, Final} ->
            {Slices, {decided, put_process(Final, During)}}
    end.

%% Calls and returns of functions are events only for the monitors that name the functions.
without_functions(Events, Config) ->
    case has_functions(Events) andalso not witness_monitor_instance:reads_functions(Config) of
        true -> [E || E <- Events, not witness_monitor_alphabet:is_function_event(E)];
        false -> Events
    end.

has_functions([E | _]) when element(1, E) =:= call; element(1, E) =:= return -> true;
has_functions([_ | Events]) -> has_functions(Events);
has_functions([]) -> false.

run_members(all, Events, _, Machine) -> run(Events, Machine);
run_members(Members, Events, Alive, Machine) ->
    {Read, Known} = of_members(Events, Members, Alive, []),
    case run(Read, Machine) of
        {Slices, {ok, Next}} when Known =:= unknown ->
            {Others, Final} = inconclusive({gap, unknown_signature}, Next),
            {Slices ++ Others, {decided, Final}};
        Result -> Result
    end.

%% Those in front of the first one of which it is not known.
of_members([], _, _, Read) -> {lists:reverse(Read), ok};
of_members([E | Events], Members, Alive, Read) ->
    case is_member(E, Members, Alive) of
        true -> of_members(Events, Members, Alive, [E | Read]);
        false -> of_members(Events, Members, Alive, Read);
        unknown -> {lists:reverse(Read), unknown}
    end.

is_member(E, {Says, Arg, Matters}, Alive) ->
    Signature = map_get(element(2, E), Alive),
    case Says(Arg, witness_event_signature:known(Signature)) of
        unknown -> case Matters(E) of true -> unknown; false -> false end;
        IsMember -> IsMember
    end.

%% Outcomes have the events as their source gave them.
plain({Slices, Final}) -> {[witness_monitor_requests:plain(Slice) || Slice <- Slices], witness_monitor_requests:plain(Final)}.

%% The events up to a point where a process ends or starts: until then each process identifier means one process.
split_at_end([E | Events], Before) when element(1, E) =:= exit -> {lists:reverse(Before, [E]), Events};
split_at_end([E | _] = Events, [_ | _] = Before) when element(1, E) =:= init -> {lists:reverse(Before), Events};
split_at_end([E | Events], Before) -> split_at_end(Events, [E | Before]);
split_at_end([], Before) -> {lists:reverse(Before), []}.

%% A process that acts is alive, even if its birth was not seen.
add_process({init, P, _, Signature, _}, Alive) -> Alive#{P => Signature};
add_process({attached, P, MFA, _}, Alive) -> Alive#{P => witness_event_signature:unknown(MFA)};
add_process(E, Alive) when is_map_key(element(2, E), Alive) -> Alive;
add_process(E, Alive) -> Alive#{element(2, E) => undefined}.

remove_process({exit, P, _, _}, Alive) -> maps:remove(P, Alive);
remove_process(_, Alive) -> Alive.

put_process(#{event := #{event := E}} = Outcome, Alive) ->
    P = element(2, E),
    Outcome#{process => P, signature => map_get(P, Alive)};
put_process(#{event := undefined} = Outcome, _) -> Outcome#{process => undefined, signature => undefined};
put_process(Other, _) -> Other.

decide({Slices, Final}) -> {Slices, {decided, Final}}.

-doc "No event comes before this time any more, in nanoseconds of the times of events: deadlines before it have passed.".
-spec pass(Time :: integer(), machine()) -> result().
pass(Time, {sliced, Config, Sliced}) ->
    {Outcomes, Next} = witness_monitor_sliced:pass(Time, Sliced),
    {Outcomes, {ok, {sliced, Config, Next}}};
pass(Time, {requests, Open, Machine}) ->
    {Slices, Result} = pass(Time, Machine),
    case Result of
        {ok, Next} -> {[witness_monitor_requests:plain(Slice) || Slice <- Slices], {ok, {requests, Open, Next}}};
        {decided, Final} -> decide(plain({Slices, Final}))
    end;
pass(Time, {all, Members, Alive, Machine}) ->
    {Slices, Result} = pass(Time, Machine),
    {[put_process(Slice, none) || Slice <- Slices],
     case Result of
         {ok, Next} -> {ok, {all, Members, Alive, Next}};
         {decided, Final} -> {decided, put_process(Final, none)}
     end};
pass(Time, Machine) ->
    {Config, Instance} = single_instance(Machine),
    case witness_monitor_instance:pass(Time, Config, Instance) of
        open -> {[], {ok, Machine}};
        {decided, Outcome} -> {[], {decided, final(Outcome)}}
    end.

-doc "The first deadline that is at this time or later, if the monitor waits for one.".
-spec next_deadline(From :: integer(), machine()) -> integer() | none.
next_deadline(_, {sliced, _, Sliced}) -> witness_monitor_sliced:next_deadline(Sliced);
next_deadline(From, {requests, _, Machine}) -> next_deadline(From, Machine);
next_deadline(From, {all, _, _, Machine}) -> next_deadline(From, Machine);
next_deadline(From, Machine) ->
    {Config, Instance} = single_instance(Machine),
    witness_monitor_instance:next_deadline(From, Config, Instance).

-doc "No further event comes. Where watching has stopped and it is known when, deadlines before that time have passed.".
-spec finish(complete | stopped, machine()) ->
    {[witness_monitor_sliced:outcome() | witness_monitor_sliced:satisfied() | witness_monitor_sliced:undecided()], final()}.
finish(complete, Machine) -> conclude(complete, Machine);
finish(stopped, Machine) ->
    case stopped_at(Machine) of
        unknown -> conclude(stopped, Machine);
        Time ->
            case pass(Time, Machine) of
                {Slices, {ok, Next}} ->
                    {Last, Final} = conclude(stopped, Next),
                    {Slices ++ Last, Final};
                {Slices, {decided, Final}} -> {Slices, Final}
            end
    end.

stopped_at({all, _, _, Machine}) -> stopped_at(Machine);
stopped_at({requests, _, Machine}) -> stopped_at(Machine);
stopped_at(Machine) -> witness_monitor_instance:stopped_at(element(2, Machine)).

conclude(How, {sliced, Config, Sliced}) ->
    {Verdict, Reason} = case How of
        complete -> {yes, undefined};
        stopped -> {inconclusive, stopped}
    end,
    {witness_monitor_sliced:finish(How, Sliced), final_outcome(Verdict, Reason, Config, Sliced)};
conclude(How, {requests, _, Machine}) ->
    plain(conclude(How, Machine));
conclude(_, {all, _, Alive, Machine}) ->
    %% Observation stops; if no observed process is alive, nothing more could come.
    How = case Alive of #{} when map_size(Alive) =:= 0 -> complete; _ -> stopped end,
    put_no_process(conclude(How, Machine));
conclude(How, Machine) ->
    {Config, Instance} = single_instance(Machine),
    {[], final(witness_monitor_instance:finish(How, Config, Instance))}.

-doc "Nothing can be decided from here on: events are missing, or the monitor has crashed.".
-spec inconclusive(witness_monitor_instance:reason(), machine()) ->
    {[witness_monitor_sliced:outcome() | witness_monitor_sliced:undecided()], final()}.
inconclusive(Reason, {sliced, Config, Sliced}) ->
    {witness_monitor_sliced:inconclusive(Reason, Sliced), final_outcome(inconclusive, Reason, Config, Sliced)};
inconclusive(Reason, {requests, _, Machine}) ->
    plain(inconclusive(Reason, Machine));
inconclusive(Reason, {all, _, _, Machine}) ->
    put_no_process(inconclusive(Reason, Machine));
inconclusive(Reason, Machine) ->
    {Config, Instance} = single_instance(Machine),
    {[], final(witness_monitor_instance:inconclusive(Reason, Config, Instance))}.

put_no_process({Slices, Final}) -> {[put_process(Slice, none) || Slice <- Slices], put_process(Final, none)}.

single_instance({single, Config, Instance}) -> {Config, Instance};
single_instance({chosen, Config, _, Instance}) -> {Config, Instance}.

final_outcome(Verdict, Reason, Config, Sliced) ->
    case witness_monitor_sliced:count(Sliced) of
        Count when Count > 0, Reason =:= undefined orelse Reason =:= stopped -> #{slices => Count};
        _ -> (empty_outcome(Reason, Config))#{verdict := Verdict, vacuous := Verdict =:= yes}
    end.

%% The outcome of a machine that has seen nothing.
empty_outcome(Reason, Config) ->
    final(witness_monitor_instance:inconclusive(Reason, Config, witness_monitor_instance:new(none))).

-doc """
The final outcome of a machine with a single instance, from that of the instance. It is for callers that run an instance
themselves (`m:witness_monitor_instance`), as returned by `instance/1`.
""".
-spec final(witness_monitor_instance:outcome()) -> map();
           (witness_monitor_instance:satisfied()) -> witness_monitor_instance:satisfied().
final({satisfied, _} = Satisfied) -> Satisfied;
final(Outcome) -> Outcome#{slice => undefined}.

-doc "The outcome of a monitor of which only the reason that it is undecided is known.".
-spec failure_outcome(witness_monitor_instance:reason()) -> witness_monitor_runner:outcome().
failure_outcome(Reason) ->
    #{verdict => inconclusive, reason => Reason, info => undefined, slice => undefined, vacuous => false,
      event => undefined, steps => [], skipped => 0, covered => 0}.

-doc """
The instance of a machine that has nothing else: no slices, and no choice of events. If a monitor is run one
event at a time, the machine around it costs as much as the instance.
""".
-spec instance(machine()) -> {witness_monitor_instance:config(), witness_monitor_instance:instance()} | none.
instance({single, Config, Instance}) -> {Config, Instance};
instance(_) -> none.

-doc "The machine of such an instance.".
-spec of_instance(witness_monitor_instance:config(), witness_monitor_instance:instance()) -> machine().
of_instance(Config, Instance) -> {single, Config, Instance}.

-doc "A term that is equal for equal states. For slices it also differs if a slice has taken another step.".
-spec state_key(machine()) -> term().
state_key({sliced, _, Sliced}) -> Sliced;
state_key({requests, Open, Machine}) -> {Open, state_key(Machine)};
state_key({all, _, Alive, Machine}) -> {Alive, state_key(Machine)};
state_key(Machine) ->
    {_, Instance} = single_instance(Machine),
    {State, _, _} = witness_monitor_instance:save(Instance),
    State.

-doc "Whether the monitor has a machine for each slice.".
-spec has_slices(machine()) -> boolean().
has_slices({requests, _, Machine}) -> has_slices(Machine);
has_slices(Machine) -> element(1, Machine) =:= sliced.

-doc "Whether it takes more than so many words. Shared terms count once for each part that has them.".
-spec is_large(Words :: pos_integer(), machine()) -> boolean().
is_large(Words, Machine) -> erts_debug:flat_size(Machine) > Words.

-doc """
The machine as plain data, which names neither modules nor functions. A module with another name (of the same
specification, compiled again) can go on from it.
""".
-spec save(machine()) -> saved().
save({chosen, _, {monitor, {_, Filter}}, Instance}) -> {filtered, Filter, witness_monitor_instance:save(Instance)};
save({sliced, _, Sliced}) ->
    {Filter, Saved} = witness_monitor_sliced:save(Sliced),
    {sliced, Filter, Saved};
save({requests, Open, Machine}) ->
    {requests, Open, save(Machine)};
save({all, _, Alive, Machine}) ->
    {all, Alive, save(Machine)};
save(Machine) ->
    {_, Instance} = single_instance(Machine),
    {whole, witness_monitor_instance:save(Instance)}.

-doc """
The machine that was saved. The specification may lack the process and its signature, since `init/3` is not called.

## Errors

- `damaged`: the data are malformed;
- `{crashed, _}`: the monitor has no names for these slices.
""".
-spec load(saved() | term(), prepared()) -> {ok, machine()} | {error, damaged | {crashed, term()}}.
load({whole, Saved}, Spec) ->
    wrap_loaded(witness_monitor_instance:load(Saved), fun(Instance) -> new_whole(Instance, config(Spec), Spec) end);
load({filtered, Filter, Saved}, Spec) ->
    wrap_loaded(witness_monitor_instance:load(Saved), fun(Instance) -> new_filtered(Filter, Instance, config(Spec), Spec) end);
load({sliced, Filter, Saved}, Spec) ->
    Config = config(Spec),
    try new_sliced(Filter, Config, Spec) of
        Empty -> wrap_loaded(witness_monitor_sliced:load(Saved, Empty), fun(Sliced) -> {sliced, Config, Sliced} end)
    catch
        Class:Reason:Stack -> {error, witness_monitor_instance:crash(Class, Reason, Stack)}
    end;
load({requests, Open, Saved}, Spec) when is_map(Open) ->
    case load(Saved, Spec) of
        {ok, Machine} -> {ok, {requests, Open, Machine}};
        {error, _} = Error -> Error
    end;
load({all, Alive, Saved}, Spec) when Alive =:= none; is_map(Alive) ->
    case load(Saved, Spec) of
        {ok, Machine} -> {ok, {all, members(Spec), Alive, Machine}};
        {error, _} = Error -> Error
    end;
load(_, _) ->
    {error, damaged}.

wrap_loaded({ok, State}, Make) -> {ok, Make(State)};
wrap_loaded(error, _) -> {error, damaged}.

-doc """
The actions that monitors of this process have taken: bit 7 represents the `id` 7 (see `c:witness_monitor:coverage/1`).
The marks do not name their monitor: the process runs a single one, or all of them have one property.
""".
-spec read_marks() -> non_neg_integer().
read_marks() -> lists:foldl(fun add_mark/2, 0, get()).

-doc "The same, and removes all marks: the next marks may be those of another monitor.".
-spec take_marks() -> non_neg_integer().
take_marks() ->
    Covered = read_marks(),
    lists:foreach(fun({Key, _} = Mark) -> add_mark(Mark, 0) =:= 0 orelse erase(Key) end, get()),
    Covered.

add_mark({Key, Id}, Mask) when is_atom(Key), is_integer(Id), Id > 0, Id =< ?MAX_ID ->
    case atom_to_binary(Key) of
        <<"$witness_", _/binary>> -> Mask bor (1 bsl Id);
        _ -> Mask
    end;
add_mark(_, Mask) -> Mask.
