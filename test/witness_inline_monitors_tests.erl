-module(witness_inline_monitors_tests).
-moduledoc """
Monitors that run in a process say what the same monitors say as machines, with the same steps. That holds whatever the
events are and whenever the run looks, also if a monitor has a verdict, crashes, is stopped or is asked for its state.
""".
-behaviour(witness_monitor).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([init/3, handle_event/2, handle_end/2, alphabet/1, slice/2, instance/2, slice_names/1, coverage/1]).

%% --- monitors --------------------------------------------------------------------

%% {whole, Kinds, Decides, Crashes}: how many events until each; the state is how many were seen.
init(_, _, {sliced, _}) -> {slices, filter};
init(_, _, {refuses}) -> ignore;
init(_, _, {fails}) -> error(wrong);
init(_, _, Arg) -> {ok, {Arg, 0}}.

handle_event({_, _, _, {1, _}, _} = E, {Arg, N}) -> mark('$witness_1', 1), count(E, Arg, N + 1);
handle_event(E, {Arg, N}) -> mark('$witness_2', 2), count(E, Arg, N + 1).

%% As specifications do.
mark(Key, Id) -> get(Key) =:= undefined andalso begin put(Key, Id), put('$witness_marked', true) end.

count(_, {whole, _, N, _}, N) -> {verdict, no, {decided, N}};
count(_, {whole, _, _, N}, N) -> error({crashed, N});
count(_, Arg, N) -> {ok, {Arg, N}}.

handle_end(How, {_, N}) -> {case How of complete -> yes; stopped -> inconclusive end, N}.

alphabet({whole, Kinds, _, _}) -> Kinds;
alphabet(_) -> all.

slice({_, _, _, {K, _}, _}, filter) -> {slice, {K}};
slice(_, filter) -> skip.
instance(_, filter) -> {{whole, all, 7, never}, 0}.
slice_names(filter) -> [~"K"].

coverage(_) -> [#{id => Id, line => Id, column => 1, text => ~"", decides => undefined} || Id <- [1, 2, 3]].

%% --- generators ------------------------------------------------------------------

arg() ->
    frequency([{6, {whole, kinds(), oneof([never, range(1, 120)]), oneof([never, range(1, 120)])}},
               {2, {sliced, x}}, {1, {refuses}}, {1, {fails}}]).

kinds() -> oneof([all, [init, send, exit], [recv], [{recv, [{['_', {1, '_'}], [], []}]}, exit]]).

events() ->
    ?LET(N, oneof([range(0, 10), range(0, 200)]), vector(N, {oneof([send, recv]), {range(1, 3), range(0, 9)}})).

event({send, M}) -> {send, self(), self(), M, undefined};
event({recv, M}) -> {recv, self(), undefined, M, undefined}.

ending() -> oneof([complete, stopped, {gap, somewhere}, asked]).

%% --- the property ----------------------------------------------------------------

monitors_in_a_process_are_machines_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(as_machines(), [{numtests, 1500}, {to_file, user}]))}.

as_machines() ->
    ?FORALL({Args, Explain, Events, Ending, Does},
            {?LET(N, range(1, 3), vector(N, arg())), range(1, 20), events(), ending(), oneof([compute, inner, outer])},
            begin
                {Told, Count} = inline(Args, Explain, Events, Ending, Does),
                Expected = [machine(Arg, Explain, Events, Ending) || Arg <- Args],
                Same = plain(Told, length(Args)) =:= Expected,
                Seen = lists:max([wanted(Arg, Explain, Events, Ending) || Arg <- Args]),
                ?WHENFAIL(io:format("told ~p~nexpected ~p~ncounted ~p~n", [plain(Told, length(Args)), Expected, Count]),
                          conjunction([{same, Same}, {count, length(Args) > 1 orelse Count =:= Seen}]))
            end).

inline(Args, Explain, Events, Ending, Does) ->
    {Told, [{_, _, _, none, _}], Count} = inline(Args, Explain, Events, Ending, Does, 1),
    {Told, Count}.

%% The monitors only compute, but for their marks, so they may be prepared as any of the kinds of `does'.
inline(Args, Explain, Events, Ending, Does, Each) ->
    Taken = fun(Prepared) -> Prepared#{does := Does} end,
    in_process([{?MODULE, Arg} || Arg <- Args], Taken, Explain, Events, Ending, Each).

%% In a process of its own, with this one as the coordinator.
in_process(Monitors, Taken, Explain, Events, Ending, Each) ->
    Traps = process_flag(trap_exit, true),
    Switch = atomics:new(3, []),
    ok = atomics:put(Switch, 2, Each),
    Notes = witness_inline_birth_table:new(self()),
    ok = atomics:put(Switch, 1, 1),
    Counter = counters:new(1, []),
    Kept = witness_inline_kept:new(),
    Cell = witness_inline_kept:new_cell(),
    Births = #{coordinator => self(), switch => Switch, events => Counter, birth_table => Notes, kept => Kept, stamped => false,
               prepared => #{Monitor => Taken(witness_inline_monitors:prepare(#{monitor => Monitor, explain => Explain},
                                                                              traits(Module)))
                             || {Module, _} = Monitor <- Monitors}},
    Entries = [{N, #{monitor => Monitor, spec => ~"x", name => undefined, group => false}}
               || {N, Monitor} <- lists:enumerate(Monitors)],
    Self = self(),
    Dies = is_tuple(Ending) andalso element(1, Ending) =:= dead,
    {P, Ref} = spawn_monitor(fun() ->
        put(mine, untouched),
        true = witness_inline_birth_table:insert({m, f, []}, Entries, {Self, Cell}, Notes),
        State = witness_inline_monitors:start({m, f, []}, Self, Entries, Cell, Births),
        Last = lists:foldl(fun given/2, State, [case E of _ when is_atom(E) -> E; _ -> fun() -> event(E) end end || E <- Events]),
        Marks = [{K, V} || {K, V} <- get(), lists:member(K, ['$witness_1', '$witness_2'])],
        case Last of
            none -> ok;
            _ when Ending =:= asked -> Self ! {asked, self(), Last, Marks};
            _ when Dies -> Self ! {left, self()};
            _ ->
                Ended = given(fun() -> {exit, self(), normal, undefined} end, Last),
                Ended =:= none orelse witness_inline_monitors:finish(Ending, Ended)
        end,
        [{mine, untouched}] = [KV || {K, _} = KV <- get(), K =/= '$witness_inline',
                               Ending =/= asked andalso not Dies orelse K =:= mine]
    end),
    receive {'DOWN', Ref, process, P, Reason} -> normal = Reason end,
    Asked = receive
        {asked, P, Last, Marks} ->
            {Stopped, More} = witness_inline_monitors:stop(Marks, Last),
            ok = counters:add(Counter, 1, More),
            Stopped;
        {left, P} ->
            #{prepared := Prepared} = Births,
            {Left, More} = witness_inline_monitors:finish_dead(
                #{process => P, signature => {m, f, []}, life => {Self, Cell},
                  reason => case Ending of {dead, unknown} -> unknown; _ -> {ok, normal} end,
                  entries => [{Entry, map_get(Monitor, Prepared)} || {_, #{monitor := Monitor}} = Entry <- Entries]}, false, Kept),
            ok = counters:add(Counter, 1, More),
            Decided = [N || {'EXIT', _, {told, Of, Told}} <- element(2, process_info(self(), messages)), Of =:= P,
                       {verdict, N, _} <- Told],
            [One || One <- Left, not lists:member(element(2, One), Decided)]
    after 0 -> []
    end,
    _ = [erase(K) || {K, _} <- get(), lists:member(K, ['$witness_1', '$witness_2', '$witness_marked'])],
    Noted = witness_inline_birth_table:all(Notes),
    ok = witness_inline_birth_table:delete(Notes),
    Reports = told(P) ++ Asked,
    true = process_flag(trap_exit, Traps),
    {Reports, Noted, counters:get(Counter, 1)}.

%% They are read from the code once: the properties need them for each of thousands of monitors.
traits(Module) ->
    try persistent_term:get({?MODULE, Module})
    catch error:badarg ->
        Traits = witness_inline_traits:of_module(Module),
        ok = persistent_term:put({?MODULE, Module}, Traits),
        Traits
    end.

given(_, none) -> none;
given(wait, State) ->
    put('$witness_inline', State),
    ok = witness_inline_process:wakes(witness_inline_process:blocks(infinity)),
    get('$witness_inline');
given(die, State) ->
    put('$witness_inline', State),
    _ = witness_inline_process:blocks(infinity),
    get('$witness_inline');
given(Make, State) ->
    E = Make(),
    put('$witness_inline', State),
    case witness_inline_monitors:wants(element(1, E), State) of
        true -> witness_inline_monitors:event(E, State);
        false -> State
    end.

told(P) ->
    receive {'EXIT', P, {told, P, Told}} -> Told ++ told(P)
    after 0 -> []
    end.

%% By monitor, without the stacks of crashes.
plain(Told, Count) ->
    [[{Kind, anonymous(Outcome)} || {Kind, N, Outcome} <- Told, N =:= I] || I <- lists:seq(1, Count)].

anonymous(ignored) -> ignored;
anonymous(#{slices := _} = Outcome) -> maps:remove(covered, Outcome);
anonymous(#{reason := Reason, steps := Steps, event := Event} = Outcome) ->
    (maps:remove(covered, Outcome))#{reason := case Reason of {crashed, {C, R, _}} -> {crashed, {C, R}}; _ -> Reason end,
                                     steps := [S#{event := kind(E)} || #{event := E} = S <- Steps],
                                     event := case Event of undefined -> undefined; #{event := E} -> Event#{event := kind(E)} end}.

kind({init, _, _, _, _}) -> init;
kind({exit, _, _, _}) -> exit;
kind({Kind, _, _, M, _}) -> {Kind, M}.

%% --- a process that a signal ends ------------------------------------------------

%% What a process leaves when it waits is enough to go on with its monitors. They say what they would have said of its end in
%% the process, but for the steps of a monitor that is alone. If the process did not wait, they say only that events are missing.
what_a_process_leaves_is_what_its_monitors_knew_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(as_left(), [{numtests, 400}, {to_file, user}]))}.

%% One of several is decided by the birth.
a_birth_that_decides_is_given_once_test() ->
    Args = [{whole, all, never, never}, {whole, all, 1, never}, {whole, all, never, never}],
    Taken = fun(Prepared) -> Prepared#{does := compute, survives := true, ends := false, specification := false} end,
    Given = lists:append(lists:duplicate(9, [wait, {send, {1, 0}}])) ++ [die],
    {Told, _, _} = in_process([{?MODULE, Arg} || Arg <- Args], Taken, 12, Given, {dead, true}, 1),
    ?assertEqual([what(machine(Arg, 12, lists:duplicate(9, {send, {1, 0}}), complete)) || Arg <- Args],
                 [what(Found) || Found <- plain(Told, length(Args))]).

%% The reason is known only if the end was seen. A property that does not read the reason is judged without it; others are not.
an_unknown_reason_is_a_gap_only_for_properties_that_read_it_test() ->
    Text = ~"""
        quiet: with m:f() check [_ <- _, _] max X.([_ : _ ! bad] ff and [_ : _ ! M when M =/= bad] X).
        asks: with m:f() check [_ <- _, _] max X.([_ ** crash] ff and [_ : _ ! _] X).
        chosen: with m:f() over _ : _ ! _ check [_ : _ ! bad] ff.
        """,
    {ok, #{module := Module} = Spec, _} = witness_spec:compile_string(~"reasons", Text),
    Verdict = fun(Index, Ending) ->
        {Told, _, _} = in_process([{Module, Index}], fun(Prepared) -> Prepared#{ends := false} end, 3, [{send, {1, 0}}, wait, die],
                                  Ending, 1),
        [[{verdict, #{verdict := V, reason := Reason}}]] = plain(Told, 1),
        {V, Reason}
    end,
    try
        ?assertEqual([{yes, undefined}, {yes, undefined}, {yes, undefined}], [Verdict(Index, {dead, true}) || Index <- [1, 2, 3]]),
        ?assertEqual([{yes, undefined}, {inconclusive, {gap, signal_reason}}, {yes, undefined}],
                     [Verdict(Index, {dead, unknown}) || Index <- [1, 2, 3]])
    after
        witness_spec:unload(Spec)
    end.

as_left() ->
    ?FORALL({Args, Given, Waits, Specification},
            {?LET(N, range(1, 3), vector(N, arg())),
             ?LET(Events, events(), [[wait, E] || E <- Events]), boolean(), boolean()},
            ?FORALL(Which, vector(length(Given), frequency([{1, true}, {4, false}])),
            begin
                Waiting = lists:append([case W of true -> E; false -> tl(E) end || {W, E} <- lists:zip(Which, Given)]),
                Events = [E || E <- Waiting, E =/= wait],
                Taken = fun(Prepared) ->
                    Prepared#{does := compute, survives := true, ends := false, specification := Specification}
                end,
                {Told, _, Count} = in_process([{?MODULE, Arg} || Arg <- Args], Taken, 12,
                                              Waiting ++ [die || Waits], {dead, Waits}, 1),
                Found = plain(Told, length(Args)),
                Expected = [machine(Arg, 12, Events, complete) || Arg <- Args],
                Decided = [machine(Arg, 12, Events, asked) || Arg <- Args],
                Alone = [whole] =:= [element(1, Arg) || Arg <- Args, element(1, Arg) =/= refuses, element(1, Arg) =/= fails],
                Times = length([x || wait <- Waiting]),
                Missed = [V || {verdict, #{reason := {gap, Gap}} = V} <- lists:append(Found),
                               Gap =:= signal_state orelse Waits andalso Gap =:= signal],
                Same = case Missed of
                    %% It was in too many states.
                    [_] -> Alone andalso Times >= case Specification of true -> 7; false -> 2 end
                        andalso lists:all(fun({A, D}) -> is_no_more(A, D) end, lists:zip(Found, Decided));
                    [] when Waits -> lists:map(fun what/1, Found) =:= lists:map(fun what/1, Expected);
                    [] -> lists:all(fun({A, D}) -> is_no_more(A, D) end, lists:zip(Found, Decided))
                end,
                ?WHENFAIL(io:format("~p~ntold ~p~nexpected ~p~n", [{Args, Waiting, Waits}, Found, Expected]),
                          conjunction([{same, Same},
                                       {count, not Waits orelse length(Args) > 1 orelse Missed =/= []
                                        orelse Count =:= counted(hd(Args), Events)}]))
            end)).

%% The events up to the verdict, without the end of the process.
counted(Arg, Events) -> wanted(Arg, 12, Events, asked).

%% The verdicts, and of what.
what(Told) ->
    lists:sort([{Kind, case Outcome of
         #{verdict := Verdict} -> {Verdict, maps:get(reason, Outcome), maps:get(info, Outcome), maps:get(slice, Outcome)};
         _ -> Outcome
     end} || {Kind, Outcome} <- Told]).

%% What was decided before is decided, and once; everything else misses something.
is_no_more(Found, Decided) ->
    Slices = fun(Told) -> length([S || {slice, S} <- Told]) end,
    Firm = fun(Told) -> lists:sort([{Kind, V, S} || {Kind, #{verdict := V, slice := S, reason := undefined}} <- Told]) end,
    Firm(Found) =:= Firm(Decided) andalso Slices(Found) =< Slices(Decided).

%% --- effects ---------------------------------------------------------------------

%% The states that are explained are computed once more, unless that would repeat an effect.
an_effect_is_not_repeated_test_() ->
    [{atom_to_list(Ending), fun() ->
        Seen = counters:new(1, []),
        Events = lists:duplicate(100, {recv, {1, 0}}),
        {Told, _, _} = in_process([{witness_counting_monitor, Seen}], fun(Prepared) -> Prepared end, 20, Events, Ending, 1),
        ?assertMatch([{verdict, 1, #{steps := [_ | _]}}], Told),
        %% The birth counts, too, and so does the end, which is not given to a monitor that is asked for its state.
        ?assertEqual(case Ending of complete -> 102; asked -> 101 end, counters:get(Seen, 1))
    end} || Ending <- [complete, asked]].

%% --- the machine -----------------------------------------------------------------

machine(Arg, Explain, Events, Ending) ->
    Spec = #{monitor => {?MODULE, Arg}, process => self(), signature => {m, f, []}, explain => Explain},
    Given = [{init, self(), self(), {m, f, []}, undefined} | [event(E) || E <- Events]]
        ++ [{exit, self(), normal, undefined} || Ending =/= asked],
    Told = case witness_monitor_machine:new(Spec) of
        {decided, Final} -> [{verdict, Final}];
        {ok, Machine} ->
            {Slices, Result} = witness_monitor_machine:run(Given, Machine),
            [{slice, S} || S <- Slices] ++ case Result of
                {decided, Final} -> [{verdict, Final}];
                {ok, Left} ->
                    {Others, Final} = case Ending of
                        {gap, _} -> witness_monitor_machine:inconclusive(Ending, Left);
                        asked -> witness_monitor_machine:finish(stopped, Left);
                        _ -> witness_monitor_machine:finish(Ending, Left)
                    end,
                    [{slice, S} || S <- Others] ++ [{verdict, Final}]
            end
    end,
    [{Kind, anonymous(Outcome)} || {Kind, Outcome} <- Told].

%% How many events a monitor that is alone is given, up to its verdict.
wanted({refuses}, _, _, _) -> 0;
wanted({fails}, _, _, _) -> 0;
wanted({sliced, _}, _, Events, Ending) -> 1 + length(Events) + case Ending of asked -> 0; _ -> 1 end;
wanted({whole, Kinds, Decides, Crashes}, _, Events, Ending) ->
    Read = [init] ++ [K || {K, _} <- Events] ++ [exit || Ending =/= asked],
    ByMessage = [{init, x}] ++ Events ++ [{exit, x} || Ending =/= asked],
    case Kinds of
        all -> min(length(Read), min(Decides, Crashes));
        [A | _] when is_atom(A) -> min(length([K || K <- Read, lists:member(K, Kinds)]), min(Decides, Crashes));
        %% All of the kind are given, and those that match are read.
        _ -> upto(ByMessage, min(Decides, Crashes), 0)
    end.

upto(_, 0, Count) -> Count;
upto([], _, Count) -> Count;
upto([{recv, {1, _}} | Es], Left, Count) -> upto(Es, less(Left), Count + 1);
upto([{exit, _} | Es], Left, Count) -> upto(Es, less(Left), Count + 1);
upto([{recv, _} | Es], Left, Count) -> upto(Es, Left, Count + 1);
upto([_ | Es], Left, Count) -> upto(Es, Left, Count).

less(never) -> never;
less(N) -> N - 1.

%% --- marks -----------------------------------------------------------------------

marks_are_those_of_the_monitor_that_has_set_them_test() ->
    Covered = fun(Args) ->
        {Told, _} = inline(Args, 12, [{recv, {2, 0}}, {recv, {1, 0}}, {recv, {2, 0}}], complete, inner),
        [[Mask || {verdict, I, #{covered := Mask}} <- Told, I =:= N] || {N, _} <- lists:enumerate(Args)]
    end,
    Early = {whole, all, 2, never},
    Late = {whole, [recv], never, never},
    ?assertEqual([[2#100]], Covered([Early])),
    ?assertEqual([[2#110]], Covered([Late])),
    ?assertEqual([[2#100], [2#110]], Covered([Early, Late])).

%% --- satisfied monitors in the note ----------------------------------------------

a_monitor_that_is_satisfied_is_in_the_note_test() ->
    Satisfied = {whole, all, never, never},
    Events = [{recv, {2, 0}}, {recv, {1, 0}}],
    [begin
         {Told, Noted, 4} = inline(Args, 12, Events, Ending, Does, 0),
         ?assertMatch([{_, {m, f, []}, _, Found, _}], Noted),
         ?assertEqual(Verdicts, [V || {verdict, _, #{verdict := V}} <- Told])
     end || Does <- [compute, inner, outer],
            {Args, Ending, Found, Verdicts} <- [{[Satisfied], complete, {1, false, 2#110}, []},
                                                {[Satisfied], stopped, none, [inconclusive]},
                                                {[{whole, all, 4, never}], complete, none, [no]},
                                                {[{whole, all, never, 4}], complete, none, [inconclusive]},
                                                {[Satisfied, Satisfied], complete, none, [yes, yes]}]].
