-module(witness_spec_oracle_run).
-moduledoc """
Compiled monitors against the oracle, pair by pair: a random property, and a random trace that its actions often match.

For each pair: the process is monitored or not as the oracle says; each verdict falls at the same event and is vacuous
by the same account, at the complete end too; the bound for obligations is kept; the same modalities are taken; the
process that runs monitors tells the same; no
extension of the trace contradicts a verdict by the definition of the sets of traces; what is undecided has, at the
complete end, the verdict that this definition gives.

```text
1> witness_spec_oracle_run:pairs(#{pairs => 100000}).
{ok, #{pairs => 100000, ...}}
2> witness_spec_oracle_run:main().        % the number of pairs from WITNESS_ORACLE_PAIRS, with a report
```

A disagreement is made small before it is told. `seed` brings a run back; each file has a seed of its own.
""".

-export([pairs/1, main/0, format/1]).

-define(PROPERTIES, 25).  % in a file: compiling takes most of the time
-define(TRACES, 160).     % for each property
-define(EVENTS, 12).
%% The oracle has no such bound: a value that grows threefold with each event keeps to it.
-define(MAX_STATE, 100_000_000).

-doc """
Compares at least so many pairs: files of so many `properties`, so many `traces` for each of them, of the
kind `focus` (`m:witness_spec_oracle_gen`). With `shrink => false` a disagreement is told as it was
found.
""".
-spec pairs(#{pairs := pos_integer(), seed => integer(), focus => mixed | loose | alike, properties => pos_integer(),
              traces => pos_integer(), shrink => boolean()}) ->
    {ok, Statistics :: map()} | {disagreement, map()}.
pairs(#{pairs := Pairs} = Options) ->
    Seed = maps:get(seed, Options, erlang:system_time()),
    files(Pairs, Seed, 1, maps:merge(#{focus => mixed, properties => ?PROPERTIES, traces => ?TRACES}, Options),
          #{pairs => 0, yes => 0, no => 0, undecided => 0, vacuous => 0, ignored => 0, sliced => 0, events => 0,
            several => 0}).

files(Pairs, _, _, _, #{pairs := Done} = Statistics) when Done >= Pairs -> {ok, Statistics};
files(Pairs, Seed, N, Options, Statistics) ->
    case file({Seed, N}, Options, Statistics) of
        {ok, More} -> files(Pairs, Seed, N + 1, Options, More);
        {Kind, Case} ->
            Whole = maps:merge(#{signature => undefined, events => [], seed => {Seed, N}}, Case),
            {disagreement, case Options of
                #{shrink := false} -> written(Kind, Whole);
                #{} -> smaller(Kind, Whole)
            end}
    end.

file(Seed, #{focus := Focus, properties := Count, traces := Traces}, Statistics) ->
    _ = rand:seed(exsss, erlang:phash2(Seed, 1 bsl 32)),
    Properties = [named(N, witness_spec_oracle_gen:property(Focus)) || N <- lists:seq(1, Count)],
    Style = rand:uniform(1 bsl 30),
    case compiled(Properties, Style) of
        {ok, #{module := Module} = Map} ->
            try
                traces(Traces, Module, lists:enumerate(Properties), Style, Statistics)
            after
                witness_spec:unload(Map)
            end;
        {error, Findings} ->
            {compile, #{properties => Properties, style => Style, detail => Findings}}
    end.

compiled(Properties, Style) ->
    Source = unicode:characters_to_binary(witness_spec_oracle_text:file(Properties, Style)),
    try witness_spec:compile_string(<<"random">>, Source, #{max_obligations => bound(Style), max_state => ?MAX_STATE}) of
        {ok, Map, _} -> {ok, Map};
        {error, {witness_spec, Findings}} -> {error, [Finding || #{severity := error} = Finding <- Findings]}
    catch
        Class:Reason:Stack -> {error, {Class, Reason, Stack}}
    end.

%% Every other property has a name.
named(N, Property) when N rem 2 =:= 0 -> Property#{name := list_to_atom("p" ++ integer_to_list(N))};
named(_, Property) -> Property.

%% Some files with a small bound for obligations.
bound(Style) -> case Style rem 3 of 0 -> 1 + Style rem 4; _ -> 1000 end.

traces(0, _, _, _, Statistics) -> {ok, Statistics};
traces(N, Module, Properties, Style, Statistics) ->
    case trace_of_each(Module, Properties, Properties, Style, Statistics) of
        {ok, More} -> traces(N - 1, Module, Properties, Style, More);
        Disagreement -> Disagreement
    end.

trace_of_each(Module, [{_, #{dialect := none}} | Rest], All, Style, Statistics) ->
    trace_of_each(Module, Rest, All, Style, Statistics);
trace_of_each(Module, [{Index, Property} | Rest], All, Style, Statistics) ->
    Signature = witness_spec_oracle_gen:signature(Property),
    %% What is about all processes is named by no signature.
    Named = [I || {I, #{signatures := [_ | _]} = Other} <- All, witness_spec_oracle:binding(Other, Signature) =/= no],
    Case = #{properties => [Property], style => Style, signature => Signature, events => []},
    case Module:match(Signature) of
        Named ->
            case pair(Module, Index, Property, Signature, bound(Style), random, Statistics) of
                {ok, More} -> trace_of_each(Module, Rest, All, Style, More);
                {Kind, Events, Detail} -> {Kind, Case#{events := Events, detail => Detail}}
            end;
        Other ->
            {match, Case#{detail => {expected, Named, got, Other}, properties := [P || {_, P} <- All]}}
    end;
trace_of_each(_, [], _, _, Statistics) ->
    {ok, Statistics}.

%% A pair. `Source` are the events, or `random`.
pair(Module, Index, Property, Signature, Bound, Source, Statistics) ->
    case {witness_spec_oracle:machine(Property, Signature, Bound), monitored(Module, Signature, Index)} of
        {no, ignore} -> {ok, count([pairs, ignored], Statistics)};
        {{ok, Machine}, {ok, Monitor}} ->
            {ok, Env} = witness_spec_oracle:binding(Property, Signature),
            Actions = Module:coverage(Index),
            lists:foreach(fun(#{id := Id}) -> erase(mark(Id)) end, Actions),
            {Events, Left} = case Source of
                random -> {begin_with(Signature, witness_spec_oracle:offers(Machine)), rand:uniform(?EVENTS) - 1};
                _ -> {Source, 0}
            end,
            case [Decides || #{decides := Decides} <- Actions] =:= witness_spec_oracle:decides(Machine) of
                true ->
                    run(Events, Left, Machine, Monitor,
                        #{property => Property, formula => witness_spec_oracle:definition(Property), env => Env,
                          actions => Actions, seen => [], slices => #{}, told => [],
                          monitor => {Module, Index}, signature => Signature,
                          source => case Source of random -> random; _ -> given end}, Statistics);
                false ->
                    {decides, [], {expected, witness_spec_oracle:decides(Machine), got, Actions}}
            end;
        {Expected, Got} -> {begins, [], {expected, Expected =/= no, got, Got}}
    end.

mark(Id) -> list_to_atom("$witness_" ++ integer_to_list(Id)).

%% The end of a pair: coverage is compared.
paired(Machine, #{actions := Actions, seen := Seen} = Run, Statistics) ->
    Taken = [Place || {Place, #{id := Id}} <- lists:enumerate(Actions), get(mark(Id)) =:= Id],
    {Sure, Maybe} = witness_spec_oracle:coverage(Machine),
    case {Sure -- Taken, Taken -- Maybe} of
        {[], []} -> replayed(lists:sort([Id || #{id := Id} <- Actions, get(mark(Id)) =:= Id]), Run, Statistics);
        _ -> {coverage, lists:reverse(Seen), {expected, Sure, at_most, Maybe, got, Taken}}
    end.

%% Some pairs again, through the process that runs monitors: it has to tell the same.
-define(REPLAYED, 8).

replayed(Taken, #{seen := Seen, told := Told, monitor := Monitor, signature := Signature} = Run, Statistics) ->
    case map_get(source, Run) =/= random orelse rand:uniform(?REPLAYED) =:= 1 of
        true ->
            Runner = witness_monitor_runner:start(#{monitor => Monitor, process => self(), signature => Signature,
                                                    run => self(), explain => 3, ordered => false}),
            ok = witness_monitor_runner:send_events(Runner, [{none, Event} || Event <- lists:reverse(Seen)]),
            ok = witness_monitor_runner:complete(Runner),
            {Covered, Outcomes} = outcomes(Runner, []),
            case {Told -- Outcomes, Outcomes -- Told, Covered} of
                {[], [], Taken} -> {ok, count([pairs, replayed], Statistics)};
                _ -> {runner, lists:reverse(Seen), {expected, Told, Taken, got, Outcomes, Covered}}
            end;
        false ->
            {ok, count([pairs], Statistics)}
    end.

outcomes(Runner, Outcomes) ->
    receive
        {slice, Runner, #{slice := Slice} = Outcome} ->
            outcomes(Runner, [told(list_to_tuple([Value || {_, Value} <- Slice]), Outcome) | Outcomes]);
        {verdict, Runner, #{covered := Covered, slices := N}} ->
            N = length(Outcomes),
            {bits(Covered, 0), Outcomes};
        {verdict, Runner, #{covered := Covered} = Outcome} ->
            {bits(Covered, 0), [told(none, Outcome) | Outcomes]}
    end.

told(Key, #{verdict := Verdict, vacuous := Vacuous, event := Event}) ->
    {Key, Verdict, Vacuous, case Event of #{index := Index} -> Index; undefined -> 'end' end}.

bits(0, _) -> [];
bits(Mask, Bit) -> [Bit || Mask band 1 =:= 1] ++ bits(Mask bsr 1, Bit + 1).

%% The birth, where the formula speaks of it, and sometimes where it does not.
begin_with(Signature, Offers) ->
    Births = [init || {{init, _, _}, _} <- Offers],
    case rand:uniform(100) =< case Births of [] -> 15; _ -> 70 end of
        true -> [{init, self(), undefined, Signature, 0}];
        false -> []
    end.

%% Feeds both, event by event.
run([], Left, Machine, Monitor, Run, Statistics) when Left > 0 ->
    run([next(Machine)], Left - 1, Machine, Monitor, Run, Statistics);
run([], 0, Machine, Monitor, #{seen := Seen, slices := Slices} = Run, Statistics) ->
    Expected = lists:sort(witness_spec_oracle:finish(Machine)),
    case at_end(Monitor) of
        Expected ->
            Wrong = [{Key, Verdict} || {Key, Verdict, _} <- Expected, is_map_key(Key, Slices) orelse Key =:= none,
                                       contradicted(Key, Verdict, maps:get(Key, Slices, []), [], Run)],
            case Wrong of
                [] ->
                    Ended = Run#{told := [{Key, Verdict, Vacuous, 'end'} || {Key, Verdict, Vacuous} <- Expected]
                                     ++ map_get(told, Run)},
                    paired(Machine, Ended, count([undecided | tallies(Expected)], Statistics));
                _ -> {definition, lists:reverse(Seen), {at_the_end, Wrong}}
            end;
        Got -> {ended, lists:reverse(Seen), {expected, Expected, got, Got}}
    end;
run([Event | Events], Left, Machine, Monitor, #{seen := Seen} = Run, Statistics) ->
    {Unsorted, Next} = witness_spec_oracle:event(Event, Machine),
    Expected = lists:sort(Unsorted),
    Read = Run#{seen := [Event | Seen]},
    {Got, After} = read(Event, Monitor),
    {Machine1, GivenUp} = given_up(Got -- Expected, Next),
    case Got -- GivenUp of
        Expected ->
            Now = told_by(Got, read_by_slices(witness_spec_oracle:slice(Event, Machine), Event, Read)),
            Several = [several || lists:any(fun(N) -> N > 1 end, witness_spec_oracle:obligations(Next))],
            Counted = count([events | Several ++ tallies(Got)], Statistics),
            case [Verdict || {Key, Verdict, _} <- Expected, extended(Key, Verdict, Now)] of
                [] when Got =/= [], map_get(per, map_get(property, Run)) =:= [] -> paired(Machine1, Now, Counted);
                [] -> run(Events, Left, Machine1, After, forget(Got, Now), Counted);
                Wrong -> {definition, lists:reverse(Seen, [Event]), {an_extension_contradicts, Wrong}}
            end;
        _ ->
            {verdict, lists:reverse(Seen, [Event]), {expected, Expected, got, Got}}
    end.

%% A monitor may give up at the bound although the normal form keeps to it.
given_up(Verdicts, Machine) ->
    GivenUp = [Verdict || {Key, inconclusive, _} = Verdict <- Verdicts,
                          lists:member(Key, witness_spec_oracle:heavy(Machine))],
    {lists:foldl(fun({Key, _, _}, Acc) -> witness_spec_oracle:drop(Key, Acc) end, Machine, GivenUp), GivenUp}.

%% Mostly one that decides nothing, so that traces go deep.
next(Machine) ->
    Offers = witness_spec_oracle:offers(Machine),
    next(Offers, Machine, case rand:uniform(4) of 1 -> 0; _ -> 4 end).

next(Offers, Machine, Tries) ->
    Event = witness_spec_oracle_gen:event(Offers),
    case Tries =:= 0 orelse witness_spec_oracle:event(Event, Machine) of
        true -> Event;
        {[], _} -> Event;
        _ -> next(Offers, Machine, Tries - 1)
    end.

count(Keys, Statistics) ->
    lists:foldl(fun(Key, Acc) -> maps:update_with(Key, fun(N) -> N + 1 end, 1, Acc) end, Statistics, Keys).

tallies(Verdicts) ->
    [Verdict || {_, Verdict, _} <- Verdicts] ++ [vacuous || {_, _, true} <- Verdicts]
        ++ [sliced || {Key, _, _} <- Verdicts, is_tuple(Key)].

%% What each live instance has read so far, newest first.
read_by_slices(Slice, Event, #{property := Property, slices := Slices} = Run) ->
    Run#{slices := case {Slice, Property} of
        {skip, _} -> Slices;
        {all, #{per := []}} -> #{none => [Event | maps:get(none, Slices, [])]};
        {all, _} -> maps:map(fun(_, Read) -> [Event | Read] end, Slices);
        {{live, Key}, _} when not is_map_key(Key, Slices) -> Slices;
        {{_, Key}, _} -> Slices#{Key => [Event | maps:get(Key, Slices, [])]}
    end}.

%% Verdicts with the number of the event among those that the instance has read.
told_by(Verdicts, #{slices := Slices, told := Told} = Run) ->
    Run#{told := [{Key, Verdict, Vacuous, length(map_get(Key, Slices))} ||
                     {Key, Verdict, Vacuous} <- Verdicts] ++ Told}.

forget(Verdicts, #{slices := Slices} = Run) -> Run#{slices := maps:without([Key || {Key, _, _} <- Verdicts], Slices)}.

%% Whether some extension contradicts a verdict.
extended(_, inconclusive, _) -> false;
extended(Key, Verdict, #{slices := Slices, seen := Seen} = Run) ->
    #{property := #{per := Per}, formula := Formula, env := Env} = Run,
    Read = map_get(Key, Slices),
    Actions = [{Action, maps:merge(Env, keyed(Per, Key))} || Action <- actions(Formula)],
    Extension = fun(N) ->
        [case rand:uniform(3) of
             1 -> lists:nth(rand:uniform(length(Seen)), Seen);
             _ -> witness_spec_oracle_gen:event(Actions)
         end || _ <- lists:seq(1, N)]
    end,
    contradicted(Key, Verdict, Read, [], Run) orelse
        lists:any(fun(N) -> contradicted(Key, Verdict, Read, Extension(N), Run) end, [1, 3]).

contradicted(Key, Verdict, Read, Extension, #{property := #{per := Per}, formula := Formula, env := Env}) ->
    Trace = lists:reverse(Read, Extension),
    %% Without any slice there is a verdict, but no instance that could be judged.
    not (Key =:= none andalso Per =/= []) andalso Verdict =/= inconclusive andalso
        witness_spec_oracle:satisfies(Formula, Trace, maps:merge(Env, keyed(Per, Key))) =:= (Verdict =:= no).

keyed(_, none) -> #{};
keyed(Per, Key) -> maps:from_list(lists:zip(Per, tuple_to_list(Key))).

actions({Modality, Action, Formula}) when Modality =:= box; Modality =:= dia -> [Action | actions(Formula)];
actions({_, _, _, Formula}) -> actions(Formula);
actions({_, Formulas}) when is_list(Formulas) -> lists:append([actions(F) || F <- Formulas]);
actions(_) -> [].

%% The compiled monitor, driven as its runner does.

monitored(Module, Signature, Index) ->
    case Module:init(Signature, self(), Index) of
        {ok, State} -> {ok, {Module, none, #{none => State}, false}};
        {ok, State, Filter} -> {ok, {Module, Filter, #{none => State}, false}};
        {slices, Filter} -> {ok, {Module, {slices, Filter}, #{}, false}};
        ignore -> ignore
    end.

%% A monitor that crashes has told something else than the oracle.
read(Event, Monitor) ->
    try
        reads(Event, Monitor)
    catch
        error:Reason:Stack -> {[{crashed, Reason, hd(Stack)}], Monitor}
    end.

reads(Event, {_, none, _, _} = Monitor) -> advance(Event, [none], Monitor);
reads(Event, {Module, {slices, Filter}, Live, _} = Monitor) ->
    case Module:slice(Event, Filter) of
        skip -> {[], Monitor};
        all -> advance(Event, maps:keys(Live), Monitor);
        {live, Key} -> advance(Event, [Key || is_map_key(Key, Live)], Monitor);
        {slice, Key} when is_map_key(Key, Live) -> advance(Event, [Key], Monitor);
        {slice, Key} ->
            advance(Event, [Key], {Module, {slices, Filter}, Live#{Key => Module:instance(Key, Filter)}, true})
    end;
reads(Event, {Module, Filter, _, _} = Monitor) ->
    case Module:slice(Event, Filter) of
        skip -> {[], Monitor};
        all -> advance(Event, [none], Monitor)
    end.

advance(Event, Keys, Monitor) ->
    {Verdicts, After} = lists:foldl(fun(Key, {Verdicts, {Module, Filter, Live, Had}}) ->
        case Module:handle_event(Event, map_get(Key, Live)) of
            {ok, State} -> {Verdicts, {Module, Filter, Live#{Key := State}, Had}};
            {verdict, Verdict, Info} ->
                {[{Key, Verdict, vacuous(Verdict, Info)} | Verdicts], {Module, Filter, maps:remove(Key, Live), Had}}
        end
    end, {[], Monitor}, Keys),
    {lists:sort(Verdicts), After}.

at_end(Monitor) ->
    try
        ends(Monitor)
    catch
        error:Reason:Stack -> [{crashed, Reason, hd(Stack)}]
    end.

ends({_, {slices, _}, _, false}) -> [{none, yes, true}];
ends({Module, _, Live, _}) ->
    lists:sort([begin
        {inconclusive, Stopped} = Module:handle_end(stopped, State),
        #{formula := Text, bindings := Bindings} = Module:describe(State),
        true = is_binary(Text) andalso Text =/= <<>> andalso is_list(Bindings),
        {Verdict, Info} = Module:handle_end(complete, State),
        true = (Verdict =:= no) =:= (maps:get(reason, Stopped, undefined) =:= pending),
        {Key, Verdict, vacuous(Verdict, Info)}
    end || Key := State <- Live]).

vacuous(inconclusive, _) -> false;
vacuous(_, Info) -> map_get(vacuous, Info).

%% Making a disagreement small: every change that keeps a disagreement of its kind is kept.

smaller(compile, #{properties := Properties, style := Style} = Case) ->
    case [{Property, Detail} || Property <- Properties, {error, Detail} <- [compiled([Property], Style)]] of
        [{Property, First} | _] ->
            shrink(compile, Case#{properties := [Property], detail := First}, fun(#{properties := Some}) ->
                case compiled(Some, Style) of
                    {error, Detail} -> case code(Detail) =:= code(First) of true -> {true, Detail}; false -> false end;
                    {ok, Map} -> witness_spec:unload(Map), false
                end
            end);
        [] ->
            written(compile, Case)
    end;
smaller(match, Case) ->
    written(match, Case);
smaller(Kind, Case) ->
    shrink(Kind, Case, fun(Smaller) -> disagrees(Kind, Smaller) end).

code([]) -> none;
code([#{code := Code, text := Text} | _]) -> {Code, Text};
code(Crash) -> element(1, Crash).

disagrees(Kind, #{properties := [Property], style := Style, signature := Signature, events := Events}) ->
    case compiled([Property], Style) of
        {ok, #{module := Module} = Map} ->
            try pair(Module, 1, Property, Signature, bound(Style), Events, #{}) of
                {Kind, _, Detail} -> {true, Detail};
                _ -> false
            catch
                error:_ -> false
            after
                witness_spec:unload(Map)
            end;
        {error, _} ->
            false
    end.

shrink(Kind, Case, Disagrees) ->
    Try = fun
        Try([Smaller | Others]) ->
            case Disagrees(Smaller) of
                {true, Detail} -> shrink(Kind, Smaller#{detail => Detail}, Disagrees);
                false -> Try(Others)
            end;
        Try([]) ->
            written(Kind, Case)
    end,
    Try(candidates(Case)).

written(Kind, #{properties := Properties, style := Style} = Case) ->
    Case#{kind => Kind, text => unicode:characters_to_binary(witness_spec_oracle_text:file(Properties, Style))}.

candidates(#{properties := [#{formula := Formula} = Property], events := Events} = Case) ->
    [Case#{events := Fewer} || Fewer <- without_one(Events)]
        ++ [Case#{properties := [Property#{formula := Smaller}]} || Smaller <- formulas(Formula)]
        ++ [Case#{properties := [Property#{signatures := [One]}]} ||
            #{signatures := [_, _ | _] = Several} <- [Property], One <- Several]
        ++ [Case#{properties := [Property#{over := Fewer}]} || #{over := [_, _ | _] = Over} <- [Property],
                                                               Fewer <- without_one(Over)]
        ++ [Case#{properties := [Property#{over := all}]} || #{over := [_ | _], per := []} <- [Property]];
candidates(_) -> [].

without_one(List) -> [lists:sublist(List, N - 1) ++ lists:nthtail(N, List) || N <- lists:seq(1, length(List))].

%% Formulas with one thing less.
formulas({Op, Formulas}) when is_list(Formulas) ->
    Formulas ++ [{Op, Fewer} || Fewer <- without_one(Formulas), Fewer =/= []]
        ++ [{Op, lists:sublist(Formulas, N - 1) ++ [Smaller | lists:nthtail(N, Formulas)]} ||
            {N, Formula} <- lists:enumerate(Formulas), Smaller <- formulas(Formula)];
formulas({Modality, Action, Formula}) when Modality =:= box; Modality =:= dia ->
    [Formula] ++ [{Modality, Action, Smaller} || Smaller <- formulas(Formula)]
        ++ [{Modality, Smaller, Formula} || Smaller <- simpler(Action)];
formulas({rec, X, Values}) ->
    [tt, ff] ++ [{rec, X, lists:sublist(Values, N - 1) ++ [Smaller | lists:nthtail(N, Values)]}
                 || {N, Value} <- lists:enumerate(Values), Smaller <- parts(Value)];
formulas({Fix, X, Parameters, Formula}) ->
    [Formula] ++ [{Fix, X, Parameters, Smaller} || Smaller <- formulas(Formula)]
        ++ [{Fix, X, lists:keyreplace(Name, 1, Parameters, {Name, Smaller}), Formula}
            || {Name, Value} <- Parameters, Smaller <- parts(Value)];
formulas(_) -> [].

simpler({Kind, Patterns, Guard}) ->
    [{Kind, Patterns, []} || Guard =/= []]
        ++ [{Kind, Patterns, Fewer} || length(Guard) > 1, Fewer <- without_one(Guard)]
        ++ [{Kind, Patterns, [Fewer]} || [Tests] <- [Guard], length(Tests) > 1, Fewer <- without_one(Tests)]
        ++ [{Kind, Patterns, [[Smaller]]} || [[Test]] <- [Guard], Smaller <- parts(Test)]
        ++ [{Kind, lists:sublist(Patterns, N - 1) ++ [Smaller | lists:nthtail(N, Patterns)], Guard} ||
            {N, Pattern} <- lists:enumerate(Patterns), Pattern =/= '_', Smaller <- ['_' | parts(Pattern)]].

parts({update, Map, _}) -> [Map];
parts({remote, _, _, Args}) -> Args;
parts({_, Parts}) when is_list(Parts) -> [Part || Part <- Parts, is_tuple(Part), not is_segment(Part)];
parts({_, _, Parts}) when is_list(Parts) -> [Part || Part <- Parts, is_tuple(Part)];
parts({list, Heads, _}) -> Heads;
parts({Short, Left, Right}) when Short =:= 'andalso'; Short =:= 'orelse'; Short =:= same -> [Left, Right];
parts(_) -> [].

is_segment(Part) -> lists:member(element(1, Part), [int, bytes, rest, text]) orelse tuple_size(Part) =:= 2 andalso
    is_tuple(element(1, Part)).

-doc "A disagreement as text.".
format(#{text := Text, events := Events, kind := Kind, detail := Detail, seed := Seed, signature := Signature}) ->
    io_lib:format("~ndisagreement: ~w (seed ~w)~n~ts~nsignature ~tw~n~ts~n~tp~n",
                  [Kind, Seed, Text, Signature,
                   [io_lib:format("  ~tw~n", [Event]) || Event <- Events], Detail]).

-doc "`WITNESS_ORACLE_PAIRS` pairs (default 1,000,000); the exit code is 1 after a disagreement.".
main() ->
    Pairs = list_to_integer(os:getenv("WITNESS_ORACLE_PAIRS", "1000000")),
    Seed = list_to_integer(os:getenv("WITNESS_ORACLE_SEED", integer_to_list(erlang:system_time()))),
    io:format("~b pairs, seed ~b~n", [Pairs, Seed]),
    {Time, Result} = timer:tc(fun() -> pairs(#{pairs => Pairs, seed => Seed}) end),
    case Result of
        {ok, Statistics} ->
            io:format("~tp~nno disagreement in ~b s~n", [Statistics, Time div 1_000_000]);
        {disagreement, Case} ->
            io:put_chars(format(Case)),
            halt(1)
    end.
