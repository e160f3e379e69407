-module(witness_explore_text).
-moduledoc """
What the explorer found, for people: a path as a message sequence, violations as sentences.

Each process and each tracer has a column. Events are numbered in their process: `Q2` is the second event of Q. When an event
happens, it has a mark in the column of its process. When a tracer takes it, which can be much later, it has an arrow to that
tracer. Messages of tracers are written where they are sent, and drawn where they are taken. A stamp `2.1` is that of
event 2 in the process's second session, `2+` a moment between the events 2 and 3.

```
          P       Q      T:P     T:Q
   1      *       |       |       |     P1: P spawns Q, seen by T:P
          |       *       |       |     Q1: Q begins, seen by T:P
   2      |------>|------>|       |     takes P1: P spawns Q
          |       |       +       |     analyses P1
```
""".

-export([sequence/2, violation/2, result/1]).

-define(PITCH, 8).
-define(MARGIN, 8).

-type row() :: {witness_explore_system:process() | witness_explore_world:tracer(), char(), unicode:chardata()}
             | {arrow, From :: integer(), To :: integer(), unicode:chardata()}.

-doc "The rows of a path. `Names` are those of the processes.".
-spec sequence(witness_explore:path(), [binary()]) -> [unicode:chardata()].
sequence(Path, Names) ->
    Steps = [[row(Note, Names) || Note <- shown(Notes)] || {_, Notes} <- Path],
    Lanes = lists:usort(fun order/2, lists:append([parties(Row) || Rows <- Steps, Row <- Rows])),
    [heading(Lanes, Names) |
     lists:append([drawn(Rows, N, Lanes) || {N, Rows} <- lists:enumerate([Rows || Rows <- Steps, Rows =/= []])])].

%% The report of a process's end to its monitors adds nothing.
shown(Notes) -> [Note || Note <- Notes, element(1, Note) =/= ended].

%% Processes come first, in their order, then the tracers, in the order of the processes that they were created for.
order(A, B) -> {A < 0, abs(A)} =< {B < 0, abs(B)}.

parties({arrow, From, To, _}) -> [From, To];
parties({At, _, _}) -> [At].

heading(Lanes, Names) ->
    string:trim([lists:duplicate(?MARGIN, $\s), [centred(who(Lane, Names)) || Lane <- Lanes]], trailing).

centred(Name) -> string:pad(string:slice(Name, 0, ?PITCH - 1), ?PITCH, both).

drawn([First | Rows], N, Lanes) ->
    [line(io_lib:format("~4b", [N]), First, Lanes) | [line(~"", Row, Lanes) || Row <- Rows]].

line(Number, Row, Lanes) ->
    Text = element(tuple_size(Row), Row),
    [string:pad(Number, ?MARGIN), lanes(Row, Lanes), Text].

lanes(Row, Lanes) ->
    Width = length(Lanes) * ?PITCH,
    Bare = #{place(Lane, Lanes) => $| || Lane <- Lanes},
    Cells = maps:merge(Bare, marks(Row, Lanes)),
    [maps:get(I, Cells, $\s) || I <- lists:seq(0, Width - 1)].

marks({arrow, From, To, _}, Lanes) ->
    {A, B} = {place(From, Lanes), place(To, Lanes)},
    Shaft = #{I => $- || I <- lists:seq(min(A, B) + 1, max(A, B) - 1)},
    case A < B of
        true -> Shaft#{B - 1 => $>};
        false -> Shaft#{B + 1 => $<}
    end;
marks({At, Mark, _}, Lanes) -> #{place(At, Lanes) => Mark}.

place(Lane, Lanes) -> length(lists:takewhile(fun(L) -> L =/= Lane end, Lanes)) * ?PITCH + (?PITCH - 1) div 2.

%% --- what happened ---------------------------------------------------------------

-spec row(witness_explore_world:note(), [binary()]) -> row().
row({happened, {other, P}, Tracers}, Names) ->
    {P, $*, [who(P, Names), ~" does what is no event, seen by ", list(Tracers, Names)]};
row({happened, Event, Tracers}, Names) ->
    Mark = case Event of {exit, _, _, _} -> $X; _ -> $* end,
    Seen = case Tracers of [] -> ~"seen by no tracer"; _ -> [~"seen by ", list(Tracers, Names)] end,
    {element(2, Event), Mark, [number(Event, Names), ~": ", event(Event, Names), ~", ", Seen]};
row({killed, P, Q}, Names) -> {P, $*, [who(P, Names), ~" kills ", who(Q, Names)]};
row({took, T, P, {own, Stamped}}, Names) when P > 0 -> {arrow, P, T, [~"takes ", stamped(Stamped, Names)]};
row({took, T, T, Message}, Names) -> {T, $+, [~"takes, from itself: ", message(Message, Names)]};
row({took, T, From, Message}, Names) -> {arrow, From, T, [~"takes: ", message(Message, Names)]};
row({sent, T, To, Message}, Names) -> {T, $+, [~"to ", who(To, Names), ~": ", message(Message, Names)]};
row({analysed, T, Event}, Names) -> {T, $+, [~"analyses ", number(Event, Names)]};
row({did, T, Op, Answer}, Names) -> {T, $+, done(Op, Answer, Names)};
row({given_back, T}, _) -> {T, $+, ~"has nothing left to do: back to the pool"}.

who(P, Names) when P > 0 -> lists:nth(P, Names);
who(T, Names) -> [~"T:", lists:nth(-T, Names)].

list(Ids, Names) -> lists:join(~" and ", [who(Id, Names) || Id <- Ids]).

number(Event, Names) -> [who(element(2, Event), Names), integer_to_binary(element(tuple_size(Event), Event))].

event({fork, P, C, _, _}, Names) -> [who(P, Names), ~" spawns ", who(C, Names)];
event({init, P, _, _, _}, Names) -> [who(P, Names), ~" begins"];
event({send, P, To, _, _}, Names) -> [who(P, Names), ~" sends to ", who(To, Names)];
event({recv, P, From, _, _}, Names) -> [who(P, Names), ~" receives from ", who(From, Names)];
event({exit, P, normal, _}, Names) -> [who(P, Names), ~" ends"];
event({exit, P, _, _}, Names) -> [who(P, Names), ~" is killed"].

stamped({none, {other, P}}, Names) -> [~"something of ", who(P, Names), ~" that is no event"];
stamped({Stamp, {other, P}}, Names) -> [~"something of ", who(P, Names), ~" that is no event, stamp ", stamp(Stamp)];
stamped({none, Event}, Names) -> [number(Event, Names), ~": ", event(Event, Names)];
stamped({Stamp, Event}, Names) -> [number(Event, Names), ~": ", event(Event, Names), ~", stamp ", stamp(Stamp)].

stamp(Stamp) when Stamp rem 16 =:= 15 -> [integer_to_binary(Stamp div 16), ~"+"];
stamp(Stamp) -> [integer_to_binary(Stamp div 16), ~".", integer_to_binary(Stamp rem 16)].

message({routed, O, {eof, P}}, Names) -> [~"eof of ", who(P, Names), ~", from ", who(O, Names)];
message({routed, O, {dtc, N, P}}, Names) ->
    [~"acknowledgement: ", who(P, Names), ~" is with ", who(N, Names), ~", from ", who(O, Names)];
message({routed, O, Stamped}, Names) -> [~"routed ", stamped(Stamped, Names), ~", from ", who(O, Names)];
message({take, P, O, _, _, How}, Names) ->
    [~"take ", who(P, Names), ~", origin ", who(O, Names),
     case How of
         {shared, Now} -> [~", being shared at ", stamp(Now)];
         born -> ~", which it has had since its birth";
         dead -> ~", which is dead";
         ask -> ~""
     end];
message({switch, P, {session, T}}, Names) -> [~"switch ", who(P, Names), ~" to ", who(T, Names)];
message({discard, P}, Names) -> [~"discard ", who(P, Names)];
message({dtc, T, P}, Names) -> [~"detach ", who(P, Names), ~", it is with ", who(T, Names)];
message(Other, _) -> io_lib:format("~0tp", [Other]).

done({off, P}, _, Names) -> [~"switches ", who(P, Names), ~" off in its session"];
done({settle, P}, _, Names) -> [~"switches the stamps of ", who(P, Names), ~" off"];
done({tracer, P}, {T, _}, Names) -> [~"a tracer for ", who(P, Names), ~"? ", who(T, Names)];
done({adopt, P}, _, Names) -> [~"adopts ", who(P, Names)];
done(lent, Answer, _) -> [~"lent? ", yes(Answer)];
done({traced, P, {session, T}}, Answer, Names) ->
    [~"is ", who(P, Names), ~" on at ", who(T, Names), ~"? ",
     case Answer of
         false -> ~"no";
         dead -> ~"it is dead";
         true -> ~"yes";
         born -> ~"yes, since its birth"
     end];
done({now, P}, {false, Now}, Names) -> [~"the moment for ", who(P, Names), ~" is ", stamp(Now)];
done({cut, P}, {cut, Cut}, Names) -> [~"the cut of ", who(P, Names), ~" is ", stamp(Cut)];
done({share, P, {session, T}}, Answer, Names) ->
    [~"shares ", who(P, Names), ~" with ", who(T, Names),
     case Answer of {cut, Cut} -> [~": moved at ", stamp(Cut)]; dead -> ~": it is dead"; _ -> ~"" end];
done({stamp, P}, _, Names) -> [~"switches the stamps of ", who(P, Names), ~" on"];
done({on, P, {session, T}}, dead, Names) -> [who(P, Names), ~" is dead: not shared with ", who(T, Names)];
done({on, P, {session, T}}, _, Names) -> [~"switches ", who(P, Names), ~" on in the session of ", who(T, Names)];
done({attach, P}, _, Names) -> [~"switches ", who(P, Names), ~" on, and owns it"];
done({clear, P}, _, Names) -> [~"clears ", who(P, Names), ~": off wherever it is on"];
done({preempt, P}, _, Names) -> [~"moves ", who(P, Names), ~" to its own session"];
done({trace, P}, _, Names) -> [~"traces ", who(P, Names)];
done({await, P}, _, Names) -> [~"nothing of ", who(P, Names), ~" is on its way to others any more"];
done(Op, none, _) -> io_lib:format("~0tp", [Op]);
done(Op, Answer, _) -> io_lib:format("~0tp: ~0tp", [Op, Answer]).

yes(true) -> ~"yes";
yes(false) -> ~"no".

%% --- what went wrong -------------------------------------------------------------

-doc "A violation as a sentence.".
-spec violation(term(), [binary()]) -> unicode:chardata().
violation({invariant, Name, P}, Names) ->
    io_lib:format("invariant ~ts of the core does not hold for ~ts", [Name, who(P, Names)]);
violation({crashed, Reason, Where}, _) -> io_lib:format("the core crashed: ~0tP in ~0tP", [Reason, 20, Where, 20]);
violation({no_event, P, T}, Names) -> [who(T, Names), ~" analyses something of ", who(P, Names), ~" that is no event"];
violation({analysed_twice, Event, T}, Names) -> [what(Event, Names), ~" is analysed a second time, by ", who(T, Names)];
violation({lost, Event, Last, T}, Names) ->
    [what(Event, Names), ~" is analysed by ", who(T, Names), ~" though ", who(element(2, Event), Names),
     integer_to_binary(Last + 1),
     ~" was not"];
violation({analysed_by_a_stranger, Event, T, 0}, Names) ->
    [what(Event, Names), ~" is analysed by ", who(T, Names), ~", and no tracer has adopted the process"];
violation({analysed_by_a_stranger, Event, T, Owner}, Names) ->
    [what(Event, Names), ~" is analysed by ", who(T, Names), ~", but its owner is ", who(Owner, Names)];
violation({wrong_monitors, Event, _}, Names) when is_tuple(Event) ->
    [what(Event, Names), ~" goes to the monitors of another process"];
violation({wrong_monitors, P, _}, Names) ->
    [~"the end of ", who(P, Names), ~" is told to the monitors of another process"];
violation({before_its_fork, Event, T}, Names) ->
    [what(Event, Names), ~" is analysed by ", who(T, Names), ~" before the spawn event of its parent"];
violation({incomplete, P, N, All}, Names) ->
    io_lib:format("at the end ~b of ~b events of ~ts were analysed", [max(N, 0), All, who(P, Names)]);
violation({end_not_told, P}, Names) -> [~"the monitors of ", who(P, Names), ~" are never told that it has ended"];
violation({ended_early, P}, Names) -> [who(P, Names), ~" is said to have ended before all its events were analysed"];
violation({circle, P, Way}, Names) -> [~"the route of ", who(P, Names), ~" is a circle: ", way(Way, Names)];
violation({route_to_nowhere, P, Way}, Names) ->
    [~"the route of ", who(P, Names), ~" ends where no tracer owns it: ", way(Way, Names)];
violation({still_owned, P, T}, Names) ->
    [~"at the end ", who(T, Names), ~" still owns ", who(P, Names), ~", which is dead"];
violation({still_routed, P, T}, Names) ->
    [~"at the end ", who(T, Names), ~" still has a route for ", who(P, Names), ~", which is dead"];
violation({still_kept, P, T}, Names) ->
    [~"at the end ", who(T, Names), ~" still keeps something of ", who(P, Names)];
violation({not_on, P}, Names) -> [who(P, Names), ~" lives, and is not on in the session of its owner"];
violation({on_in_vain, P, T}, Names) ->
    [who(P, Names), ~" is still on in the session of ", who(T, Names), ~", which has no use for it"];
violation({routed_in_vain, P, T}, Names) ->
    [who(T, Names), ~" still has a route for ", who(P, Names), ~", which its owner has directly"];
violation({undelivered, {T, From}}, Names) ->
    [~"something of ", who(From, Names), ~" is never taken by ", who(T, Names)];
violation({lost, T, Messages}, Names) ->
    [~"a message to ", who(T, Names), ~", which has ended, is lost: ", message(hd(Messages), Names)];
violation({not_empty, T}, Names) -> [who(T, Names), ~" goes back to the pool though its maps are not empty (I1)"];
violation({not_done, T}, Names) -> [~"all processes have ended, and ", who(T, Names), ~" is not done"];
violation({not_given_back, T}, Names) -> [who(T, Names), ~" is done, and never goes back to the pool"];
violation({blocked, T, {Op, _, _}}, Names) -> [who(T, Names), ~" waits for ever: ", done(Op, none, Names)];
violation({two_tracers, P}, Names) -> [~"a second tracer is asked for ", who(P, Names)];
violation({two_owners, P, A, B}, Names) ->
    [who(P, Names), ~" is adopted by ", who(B, Names), ~" though it has an owner, ", who(A, Names)];
violation({wrong_owner, P, T, 0}, Names) ->
    [who(P, Names), ~" is adopted by ", who(T, Names), ~", whom nobody has asked to"];
violation({wrong_owner, P, T, Right}, Names) ->
    [who(P, Names), ~" is adopted by ", who(T, Names), ~" instead of ", who(Right, Names)];
violation({stamps_of_what_is_off, P, T}, Names) ->
    [who(T, Names), ~" switches stamps of ", who(P, Names), ~", which is not on in its session"];
violation({routed_at_birth, T, Message}, Names) ->
    [who(T, Names), ~" routes an event, although each process has its own session: ", message(Message, Names)];
violation({not_direct, T}, Names) ->
    [who(T, Names), ~" routes something, or lets it wait, although each process has its own session"];
violation({shared_at_birth, P}, Names) -> [who(P, Names), ~" is shared although it has its own session from birth"];
violation({shared_by_a_stranger, P, T}, Names) ->
    [who(P, Names), ~" is shared by ", who(T, Names), ~", in whose session it is not on"];
violation(livelock, _) ->
    ~"the tracers can go round for ever: the last steps lead back to a state that was there before";
violation(Other, _) -> io_lib:format("~0tP", [Other, 40]).

what(Event, Names) -> [number(Event, Names), ~" (", event(Event, Names), ~")"].

way(Way, Names) -> lists:join(~" -> ", [who(T, Names) || T <- Way]).

-doc "The numbers of a search on one line.".
-spec result(witness_explore:stats()) -> unicode:chardata().
result(#{states := States, steps := Steps, depth := Depth, seconds := Seconds, rate := Rate}) ->
    io_lib:format("~ts states, ~ts steps, depth ~b, ~.1f s, ~ts states/s",
                  [thousands(States), thousands(Steps), Depth, Seconds, thousands(round(Rate))]).

thousands(N) when N < 1000 -> integer_to_binary(N);
thousands(N) -> [thousands(N div 1000), io_lib:format(",~3..0b", [N rem 1000])].
