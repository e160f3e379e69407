-module(witness_spec_machine_props_tests).
-moduledoc """
Machines mean what an interpreter of them says: compiled monitors of random machines read random timed traces, and give the verdicts of
`m:witness_spec_machine_reference` at the same events. The formula of each machine is the one that its text is read as.

`WITNESS_MACHINE_SEED` brings a run back. `WITNESS_MACHINE_FILES` is the number of files, of which each has a seed of its own.
""".
-include_lib("eunit/include/eunit.hrl").

-export([differences/2, told/1, random_text/0]).

-define(FILES, 12).     % compiling takes most of the time
-define(MACHINES, 8).   % in a file
-define(TRACES, 120).   % for each machine
-define(EVENTS, 16).
-define(FREQUENT, 10).  % how often each verdict comes about in each way, at least
-define(TOLD, 3).       % differences

machines_mean_what_their_interpreter_says_test_() ->
    {timeout, 300, fun() ->
        Seed = witness_setting:number("WITNESS_MACHINE_SEED", erlang:system_time(second)),
        {Counts, Differences} = differences(Seed, witness_setting:number("WITNESS_MACHINE_FILES", ?FILES)),
        [io:put_chars(user, ["\nseed ", integer_to_list(Seed), ": ", told(Difference)]) || Difference <- lists:sublist(Differences, ?TOLD)],
        ?assertEqual({seed, Seed, 0}, {seed, Seed, length(Differences)}),
        Rare = [{Per, Verdict} || Per <- [true, false], Verdict <- [event, yes, no],
                                  maps:get({Per, Verdict}, Counts, 0) < ?FREQUENT],
        ?assertEqual({seed, Seed, []}, {seed, Seed, Rare})
    end}.

%% What is printed is what is compiled.
the_text_of_a_machine_is_its_formula_test_() ->
    {timeout, 60, fun() ->
        Seed = witness_setting:number("WITNESS_MACHINE_SEED", erlang:system_time(second)),
        _ = rand:seed(exsss, Seed),
        [?assertEqual({seed, Seed, Text, Formula}, {seed, Seed, Text, Read})
         || _ <- lists:seq(1, 200), #{text := Text} <- [property()], {Formula, Read} <- [both(Text)]]
    end}.

both(Text) ->
    #{core := Core} = Property = parsed(Text),
    {plain(Property), plain(parsed(Core))}.

parsed(Text) ->
    {ok, Tokens} = witness_spec_scan:string(Text),
    {{[Property], []}, Text} = {witness_spec_parse:file(Tokens, unicode:characters_to_list(Text)), Text},
    Property.

plain(#{formula := Formula, over := Over}) ->
    {plain_formula(Formula), case Over of all -> all; _ -> [{plain_action(A), maps:get(begins, A)} || A <- Over] end}.

plain_formula({Constant, _}) -> Constant;
plain_formula({var, _, Name, Values}) -> {var, Name, [plain_value(Value) || {_, Value} <- Values]};
plain_formula({Modality, _, #{} = Action, F}) -> {Modality, plain_action(Action), plain_formula(F)};
plain_formula({Operator, _, Name, Parameters, F}) ->
    {Operator, Name, [{P, plain_value(V)} || {P, _, V} <- Parameters], plain_formula(F)};
plain_formula({Operator, _, Formulas}) -> {Operator, [plain_formula(F) || F <- Formulas]}.

plain_action(#{kind := Kind, pattern := Pattern, guard := Guard}) ->
    {Kind, plain_value(Pattern), [[plain_value(Test) || Test <- Tests] || Tests <- Guard]}.

plain_value(Expr) -> lists:flatten(erl_pp:expr(Expr)).

-doc "How often each verdict came, and the differences, at most one for each machine.".
differences(Seed, Files) ->
    {Counts, Differences} = lists:unzip([file({Seed, N}) || N <- lists:seq(1, Files)]),
    {lists:foldl(fun add/2, #{}, Counts), lists:append(Differences)}.

add(New, Counts) -> maps:merge_with(fun(_, N, M) -> N + M end, New, Counts).

file(Seed) ->
    _ = rand:seed(exsss, erlang:phash2(Seed, 1 bsl 32)),
    Properties = [property() || _ <- lists:seq(1, ?MACHINES)],
    Traces = [[trace(P) || _ <- lists:seq(1, ?TRACES)] || P <- Properties],
    Text = [["p", integer_to_list(I), ": ", Written] || {I, #{text := Written}} <- lists:enumerate(Properties)],
    case witness_spec:compile_string(~"random", iolist_to_binary(Text)) of
        {ok, #{module := Module} = Map, _} ->
            Judged = [judged(Module, I, P, Some) || {I, {P, Some}} <- lists:enumerate(lists:zip(Properties, Traces))],
            witness_spec:unload(Map),
            {Counts, Differences} = lists:unzip(Judged),
            {lists:foldl(fun add/2, #{}, Counts), lists:append(Differences)};
        {error, {witness_spec, Findings}} ->
            {#{}, [{#{text => iolist_to_binary(Text)}, [], witness_spec:format_error(Findings)}]}
    end.

judged(Module, I, #{per := Per} = Property, Traces) ->
    All = [{Trace, judge(Module, I, Property, Trace)} || Trace <- Traces],
    {lists:foldl(fun add/2, #{}, [#{{Per, kind(Verdict)} => 1} || {_, {Expected, _}} <- All, {_, Verdicts} <- Expected,
                                                                  Verdict <- Verdicts]),
     case [{Property, Trace, Difference} || {Trace, {_, [_ | _] = Difference}} <- All] of
         [] -> [];
         Differences -> [lists:foldl(fun shorter/2, hd(Differences), Differences)]
     end}.

shorter({_, Trace, _} = One, {_, Other, _}) when length(Trace) < length(Other) -> One;
shorter(_, Other) -> Other.

kind({no, _}) -> event;
kind(Verdict) -> Verdict.

-doc "A difference as text.".
told({#{text := Text}, Trace, Detail}) ->
    io_lib:format("~ts~ts  ~tp~n", [Text, [io_lib:format("    @~b ~tp~n", [Time, Event]) || {Event, Time} <- Trace], Detail]).

%% With `per` a monitor may have no instance where the machine has only begun.
judge(Module, I, Property, Trace) ->
    Expected = expected(Property, Trace),
    Got = witness_spec_sentence_props_tests:got(Module, I, Property, Trace),
    Unknown = [{Key, [none]} || Key := _ <- Got, not lists:keymember(Key, 1, Expected)],
    {Expected, [{Key, {expected, E}, {got, maps:get(Key, Got, [])}} || {Key, E} <- Expected ++ Unknown,
                                                                       violations(E) =/= violations(maps:get(Key, Got, []))]}.

violations(Verdicts) ->
    [case Verdict of {no, I} -> I; no -> 'end'; {inconclusive, _} -> Verdict end
     || Verdict <- Verdicts, Verdict =/= yes, Verdict =/= none, not is_tuple(Verdict) orelse element(1, Verdict) =/= yes].

expected(#{machine := Machine, per := Per, over := Over}, Trace) ->
    Known = ['K' || Per],
    Read = [{I, Event, Time} || {I, {Event, Time}} <- lists:enumerate(Trace),
                                Over =:= all orelse witness_spec_machine_reference:is_read(Machine, Known, Event)],
    case Per of
        false -> [{none, witness_spec_machine_reference:judge(Machine, #{}, Read)}];
        true ->
            Keys = fun(Event) -> [K || K <- keys(), witness_spec_machine_reference:has_key(Machine, #{'K' => K}, Event)] end,
            [{K, witness_spec_machine_reference:judge(Machine, #{'K' => K},
                                                      [Item || {_, Event, _} = Item <- Read, lists:member(Keys(Event), [[K], []])])}
             || K <- keys()]
    end.

keys() -> [1, 2].

%% Traces: events that the actions often match, and times that do not go back.

trace(#{duration := D} = Property) ->
    {Trace, _} = lists:mapfoldl(fun(_, Time) ->
        {{event_for(Property), Time}, Time + one([0, 0, 1, 1, D div 2, D - 1, D, D + 1])}
    end, one([0, 1_000_000_000_000, -1_000_000_000_000_000]), lists:seq(1, rand:uniform(?EVENTS + 1) - 1)),
    Trace.

event_for(#{machine := #{states := States}}) ->
    case {rand:uniform(6), [A || {_, _, Ts} <- States, {{_, _, _} = A, _, _} <- Ts]} of
        {N, Actions} when N =:= 1; Actions =:= [] -> {one([recv, recv, send, cast]), {one(kinds()), one(keys()), one(values())}};
        {_, Actions} ->
            {Kind, [P1, P2, P3], _} = one(Actions),
            {Kind, {like(P1, kinds()), like(P2, keys()), like(P3, values())}}
    end.

like({lit, Term}, Others) -> case rand:uniform(5) of 1 -> one(Others); _ -> Term end;
like(_, Others) -> one(Others).

kinds() -> [a, b, c].

values() -> [1, 1, 2, 2, 3, 4].

one(List) -> lists:nth(rand:uniform(length(List)), List).

often(Percent) -> rand:uniform(100) =< Percent.

%% Machines.

-doc "A file with a machine, drawn with the process's random numbers.".
-spec random_text() -> binary().
random_text() -> map_get(text, property()).

property() ->
    {D, Duration} = one([{10, "10 ns"}, {1000, "1 us"}, {2_000_000_000, "2 s"}]),
    Per = often(40),
    %% Some are the names that an expansion takes if they are free.
    Names = lists:sublist(one([['N', 'M'], ['State', 'X'], ['Y', 'Y2'], ['N', 'N2']]), one([0, 1, 2, 2])),
    States = lists:sublist([idle, busy, 'on hold', done], one([1, 2, 2, 3, 4])),
    C = #{per => Per, names => Names, states => States, duration => D},
    Machine = #{data => data(Names), states => [state(Name, Name =:= hd(States), C) || Name <- States]},
    Over = case often(20) of true -> all; false -> derived end,
    case [A || {_, _, Ts} <- map_get(states, Machine), {A, _, _} <- Ts, A =/= 'else',
               not Per orelse lists:member({var, 'K'}, element(2, A))] of
        [] -> property();
        _ -> property(Machine, Per, Over, D, Duration)
    end.

property(Machine, Per, Over, D, Duration) ->
    #{machine => Machine, per => Per, over => case Per of true -> derived; false -> Over end, duration => D,
      text => iolist_to_binary(write(Machine, Per, Over, Duration))}.

data([]) -> [];
data([Name | Names]) ->
    [{Name, {lit, one([0, 1, 2])}} | [{Other, one([{lit, 0}, {'+', {var, Name}, {lit, 1}}])} || Other <- Names]].

%% A hot state can be left.
state(Name, First, #{duration := D} = C) ->
    Keyed = First andalso map_get(per, C),
    Count = case First of true -> 2 + rand:uniform(3); false -> rand:uniform(5) - 1 end,
    Plain = [{action(First, Target, C), Target} || _ <- lists:seq(1, Count), Target <- [target(C)]],
    Else = [{'else', case Keyed of true -> stay; false -> target(C) end} || often(30)],
    Filled = [{Action, Target, case Keyed andalso Action =:= 'else' of true -> []; false -> updates(Action, Target, C) end}
              || {Action, Target} <- Plain ++ Else],
    Leaves = lists:any(fun({_, stay, _}) -> false; ({_, {state, Same}, _}) -> Same =/= Name; (_) -> true end, Filled),
    Hot = case Leaves andalso often(40) of true -> one([true, D, D]); false -> false end,
    {Name, Hot, Filled}.

target(#{states := States}) ->
    one([{state, one(States)}, {state, one(States)}, {state, one(States)}, stay, stay, violated, one([satisfied, violated, stay])]).

updates(Action, Target, #{names := Names}) when Target =:= stay; element(1, Target) =:= state ->
    Known = Names ++ case Action of 'else' -> []; _ -> witness_spec_machine_reference:variables(Action) -- ['Kind' | Names] end,
    [{Name, value(Known)} || Name <- Names, often(40)];
updates(_, _, _) -> [].

value([]) -> {lit, one([0, 1, 2])};
value(Known) ->
    one([{lit, one([0, 1, 2])}, {var, one(Known)}, {'+', {var, one(Known)}, {lit, 1}},
         {max, {var, one(Known)}, {var, one(Known)}}]).

%% What violates mostly depends on data: otherwise few traces would come to states that matter.
action(First, Target, #{per := Per, names := Names}) ->
    P1 = one([{lit, a}, {lit, a}, {lit, b}, {lit, b}, {lit, c}, '_', {var, 'Kind'}]),
    P2 = case Per of
        true -> case First orelse often(80) of true -> {var, 'K'}; false -> '_' end;
        false -> one(['_', '_', {lit, 1}, {var, 'V'}])
    end,
    P3 = one(['_', {lit, 1}, {var, 'V'}, {var, 'V'} | [{var, Name} || Name <- Names]]),
    Known = Names ++ [Name || {var, Name} <- [P2, P3]],
    Guard = case {Target, Known =/= [] andalso often(50)} of
        {violated, _} when Names =/= [] -> [[test([Name]) || Name <- Names]];
        {_, true} -> [[test(Known) || _ <- lists:seq(1, rand:uniform(2))] || _ <- lists:seq(1, rand:uniform(2))];
        {_, false} -> []
    end,
    {one([recv, recv, recv, send, cast]), [P1, P2, P3], Guard}.

test(Known) ->
    {one(['<', '>=', '=:=', '=/=']), {var, one(Known)}, one([{lit, one([1, 2, 3])}, {lit, one([1, 2])}, {var, one(Known)}])}.

%% Text.

write(#{data := Data, states := States}, Per, Over, Duration) ->
    ["with m:f(_)", [" per K" || Per], case Over of all when not Per -> " over _ ? _, _ : _ ! _"; _ -> "" end,
     "\n  machine", write_updates(Data), "\n", [write_state(State, Duration) || State <- States], "  end.\n"].

write_state({Name, Hot, Transitions}, Duration) ->
    ["    ", ["hot " || Hot =/= false], io_lib:format("state ~p", [Name]), [[" within ", Duration] || is_integer(Hot)], ":\n",
     lists:join(";\n", [write_transition(T) || T <- Transitions]), "\n"].

write_transition({Action, Target, Updates}) ->
    ["      ", case Action of 'else' -> "else"; _ -> write_action(Action) end, " -> ",
     case Target of {state, Name} -> io_lib:format("~p", [Name]); violated -> one(["violated", "violated \"no\""]); _ -> atom_to_list(Target) end,
     write_updates(Updates)].

write_updates([]) -> "";
write_updates(Updates) -> [" (", lists:join(", ", [[atom_to_list(Name), " = ", write_value(Value)] || {Name, Value} <- Updates]), ")"].

write_action({Kind, Parts, Guard}) ->
    Message = ["{", lists:join(", ", [case Part of '_' -> "_"; {var, Name} -> atom_to_list(Name); {lit, Term} -> io_lib:format("~p", [Term]) end
                                      || Part <- Parts]), "}"],
    Main = case Kind of recv -> ["_ ? ", Message]; send -> ["_ : _ ! ", Message]; cast -> [one(["", "_ ? "]), "cast(", Message, ")"] end,
    Whole = case Guard of
        [] -> Main;
        _ -> [Main, " when ", lists:join("; ", [lists:join(", ", [write_test(Test) || Test <- Tests]) || Tests <- Guard])]
    end,
    case often(30) of true -> ["{", Whole, "}"]; false -> Whole end.

write_test({Operator, One, Other}) -> [write_value(One), " ", atom_to_list(Operator), " ", write_value(Other)].

write_value({var, Name}) -> atom_to_list(Name);
write_value({lit, Term}) -> io_lib:format("~p", [Term]);
write_value({'+', One, Other}) -> [write_value(One), " + ", write_value(Other)];
write_value({max, One, Other}) -> ["max(", write_value(One), ", ", write_value(Other), ")"].
