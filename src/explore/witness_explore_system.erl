-module(witness_explore_system).
-moduledoc """
Small systems of processes: what each of them does, and every step that they can take.

A process is a list of actions. It is known by its number. Process 1, and any other that no process spawns, is there from
the start. A step of the system is one action or the death of one process. A process may die at any moment if it was killed
or is `mortal`.

`recv` is the delivery of the next message of a sender: it can happen at any time after the sending. If the receiver has
ended, or never receives the message, that is no event.
""".

-export([new/3, size/1, roots/1, parent/2, birth/2, start/1, steps/2, step/3, state/2, count/2, moment/3,
         undisturbed/1]).

-export_type([system/0, state/0, action/0, step/0, happening/0, process/0]).

-doc "The number of a process.".
-type process() :: pos_integer().

-doc """
`kill` makes the other process die at some later moment, and is no event. `other` is something that a source reports of a
process and that is no event either, such as a link.
""".
-type action() :: {spawn | send | recv | kill, process()} | other | exit.

-doc "The next action of a process, or its death.".
-type step() :: {act | die, process()}.

-doc "What happens in a step: an event, the birth of a process, the end of one (after its `exit`), a signal to end.".
-type happening() :: {event, witness_event:event()}
                   | {born, process(), Parent :: process(), Init :: witness_event:event()}
                   | {gone, process()}
                   | {killed, By :: process(), process()}
                   | {other, process()}.

-record(system, {scripts :: tuple(), signatures :: tuple(), parents :: tuple(), births :: tuple(),
                 mortal :: [process()]}).

-doc "What the processes of a system do.".
-opaque system() :: #system{}.

-doc """
For each process: `unborn`; or the place of its next action, the number of its events so far, and its status.
""".
-type state() :: tuple().

-doc "A system, from the actions and the signature of each process, and the processes that can die at any moment.".
-spec new([[action()]], Signatures :: [term()], Mortal :: [process()]) -> system().
new(Scripts, Signatures, Mortal) ->
    Processes = lists:seq(1, length(Scripts)),
    Spawns = [{C, P, N} || {P, Script} <- lists:enumerate(Scripts), {N, {spawn, C}} <- numbered(Script)],
    Parents = [case lists:keyfind(C, 1, Spawns) of {C, P, _} -> P; false -> none end || C <- Processes],
    Births = [case lists:keyfind(C, 1, Spawns) of
                  {C, P, N} -> N + first(lists:nth(P, Parents));
                  false -> 0
              end || C <- Processes],
    #system{scripts = list_to_tuple([list_to_tuple(Script) || Script <- Scripts]),
            signatures = list_to_tuple(Signatures),
            parents = list_to_tuple(Parents), births = list_to_tuple(Births), mortal = Mortal}.

%% The actions that are events, with their numbers.
numbered(Script) -> lists:enumerate([Action || Action <- Script, is_event(Action)]).

is_event({kill, _}) -> false;
is_event(Action) -> Action =/= other.

%% A process that was spawned has `init' before its own actions.
first(none) -> 0;
first(_) -> 1.

-doc "How many processes there are.".
-spec size(system()) -> pos_integer().
size(#system{scripts = Scripts}) -> tuple_size(Scripts).

-doc "The processes that no process spawns.".
-spec roots(system()) -> [process()].
roots(S) -> [P || P <- lists:seq(1, ?MODULE:size(S)), parent(P, S) =:= none].

-doc "The process that spawns this one.".
-spec parent(process(), system()) -> process() | none.
parent(P, #system{parents = Parents}) -> element(P, Parents).

-doc "The number that the fork of a process has among the events of its parent; 0 without a parent.".
-spec birth(process(), system()) -> non_neg_integer().
birth(P, #system{births = Births}) -> element(P, Births).

-doc "How much has happened to a process: its events, and what was no event.".
-spec moment(process(), system(), state()) -> non_neg_integer().
moment(P, S, State) -> count(P, State) + count_passed(other, P, S, State).

-doc "The processes that end only by their own `exit`.".
-spec undisturbed(system()) -> [process()].
undisturbed(#system{scripts = Scripts, mortal = Mortal}) ->
    Killed = [P || Script <- tuple_to_list(Scripts), {kill, P} <- tuple_to_list(Script)],
    lists:seq(1, tuple_size(Scripts)) -- lists:usort(Mortal ++ Killed).

-doc "The first state: only the roots are there.".
-spec start(system()) -> state().
start(S = #system{parents = Parents}) ->
    list_to_tuple([case element(P, Parents) of none -> {1, 0, alive}; _ -> unborn end
                   || P <- lists:seq(1, ?MODULE:size(S))]).

-doc "The status of a process. Killed ones are alive until they die.".
-spec state(process(), state()) -> unborn | alive | dead.
state(P, State) ->
    case element(P, State) of
        unborn -> unborn;
        {_, _, dead} -> dead;
        {_, _, _} -> alive
    end.

-doc "How many events a process has had.".
-spec count(process(), state()) -> non_neg_integer().
count(P, State) ->
    case element(P, State) of
        unborn -> 0;
        {_, N, _} -> N
    end.

-doc "What can happen next.".
-spec steps(system(), state()) -> [step()].
steps(S, State) -> steps(tuple_size(State), S, State, []).

steps(0, _, _, Steps) -> Steps;
steps(P, S = #system{scripts = Scripts, mortal = Mortal}, State, Steps) ->
    case element(P, State) of
        {Place, _, How} when How =/= dead ->
            Script = element(P, Scripts),
            Die = case How =:= killed orelse lists:member(P, Mortal) of true -> [{die, P} | Steps]; false -> Steps end,
            Act = Place =< tuple_size(Script) andalso enabled(P, element(Place, Script), S, State),
            steps(P - 1, S, State, case Act of true -> [{act, P} | Die]; false -> Die end);
        _ -> steps(P - 1, S, State, Steps)
    end.

enabled(P, {recv, From}, S, State) -> count_passed({send, P}, From, S, State) > count_passed({recv, From}, P, S, State);
enabled(_, {kill, Other}, _, State) -> element(Other, State) =/= unborn;
enabled(_, _, _, _) -> true.

%% How many actions of this kind a process has done.
count_passed(Action, P, #system{scripts = Scripts}, State) ->
    case element(P, State) of
        unborn -> 0;
        {Place, _, _} -> length([A || A <- lists:sublist(tuple_to_list(element(P, Scripts)), Place - 1), A =:= Action])
    end.

-doc "Takes a step. The time stamp of an event is its number in its process.".
-spec step(step(), system(), state()) -> {state(), [happening()]}.
step({die, P}, _, State) -> end_process(P, killed, State);
step({act, P}, #system{scripts = Scripts, signatures = Signatures}, State) ->
    {Place, N, How} = element(P, State),
    Next = setelement(P, State, {Place + 1, N + 1, How}),
    case element(Place, element(P, Scripts)) of
        {send, To} -> {Next, [{event, {send, P, To, m, N + 1}}]};
        {recv, From} -> {Next, [{event, {recv, P, From, m, N + 1}}]};
        {spawn, C} ->
            Signature = element(C, Signatures),
            {setelement(C, Next, {1, 1, alive}),
             [{event, {fork, P, C, Signature, N + 1}}, {born, C, P, {init, C, P, Signature, 1}}]};
        other -> {setelement(P, State, {Place + 1, N, How}), [{other, P}]};
        exit -> end_process(P, normal, State);
        {kill, Other} -> {kill(Other, setelement(P, State, {Place + 1, N, How})), [{killed, P, Other}]}
    end.

end_process(P, Reason, State) ->
    {Place, N, _} = element(P, State),
    {setelement(P, State, {Place, N + 1, dead}), [{event, {exit, P, Reason, N + 1}}, {gone, P}]}.

kill(P, State) ->
    case element(P, State) of
        {_, _, dead} -> State;
        {Place, N, _} -> setelement(P, State, {Place, N, killed})
    end.
