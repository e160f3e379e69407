-module(witness_spec_oracle_run).
-moduledoc """
Compiled monitors against the oracle, pair by pair: a random property, and a random trace that its actions often match.

For each pair: the process is monitored or not as the oracle says, and read by properties that are about all; each verdict falls at the same event and is vacuous
by the same account, at the complete end too; the bound for obligations is kept; the same modalities are taken; the
process that runs monitors tells the same; so does the one monitor for all processes, of those that it reads; no
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
found. So many `workers` compare side by side. With `refused => skip` a file that the compiler refuses, as a compiler with
a planted fault may, is passed over; its pairs count.
""".
-spec pairs(#{pairs := pos_integer(), seed => integer(), focus => mixed | loose | alike | timed | asking | remaining | calls
                              | values | leaving | clocks,
              properties => pos_integer(),
              traces => pos_integer(), shrink => boolean(), refused => tell | skip, workers => pos_integer()}) ->
    {ok, Statistics :: map()} | {disagreement, map()}.
pairs(#{pairs := Pairs} = Options) ->
    Seed = maps:get(seed, Options, erlang:system_time()),
    Whole = maps:merge(#{focus => mixed, properties => ?PROPERTIES, traces => ?TRACES, workers => 1}, Options),
    None = #{pairs => 0, yes => 0, no => 0, undecided => 0, vacuous => 0, ignored => 0, sliced => 0, events => 0,
             several => 0},
    case Whole of
        #{workers := 1} -> files(Pairs, Seed, 1, Whole, None);
        #{workers := Workers} ->
            Share = (Pairs + Workers - 1) div Workers,
            merged([spawn_monitor(fun() -> exit({compared, files(Share, Seed, N, Whole, None)}) end)
                    || N <- lists:seq(1, Workers)], None)
    end.

%% What the workers have compared, or the first disagreement.
merged([], Statistics) -> {ok, Statistics};
merged(Workers, Statistics) ->
    receive
        {'DOWN', Ref, process, Pid, {compared, {ok, Some}}} ->
            merged(Workers -- [{Pid, Ref}], maps:merge_with(fun(_, One, Other) -> One + Other end, Statistics, Some));
        {'DOWN', Ref, process, Pid, Other} ->
            [begin demonitor(Left, [flush]), exit(Worker, kill) end || {Worker, Left} <- Workers -- [{Pid, Ref}]],
            case Other of
                {compared, {disagreement, _} = Disagreement} -> Disagreement;
                Reason -> error({worker, Reason})
            end
    end.

%% Each worker has its own files, of which every `workers`th is the next.
files(Pairs, _, _, _, #{pairs := Done} = Statistics) when Done >= Pairs -> {ok, Statistics};
files(Pairs, Seed, N, #{workers := Workers} = Options, Statistics) ->
    case file({Seed, N}, Options, Statistics) of
        {ok, More} -> files(Pairs, Seed, N + Workers, Options, More);
        {compile, _} when map_get(refused, Options) =:= skip ->
            #{properties := Count, traces := Traces} = Options,
            files(Pairs, Seed, N + Workers, Options, maps:update_with(pairs, fun(Done) -> Done + Count * Traces end, Statistics));
        {Kind, Case} ->
            Whole = maps:merge(#{signature => undefined, events => [], seed => {Seed, N}}, Case),
            {disagreement, case Options of
                #{shrink := false} -> written(Kind, Whole);
                #{} -> smaller(Kind, Whole)
            end}
    end.

file(Seed, #{focus := Focus, properties := Count, traces := Traces}, Statistics) ->
    _ = rand:seed(exsss, erlang:phash2(Seed, 1 bsl 32)),
    Whole = [defined(N, named(N, witness_spec_oracle_gen:property(Focus))) || N <- lists:seq(1, Count)],
    Others = apart({among, Seed}, fun() -> [witness_spec_oracle_gen:among(Property) || Property <- Whole] end),
    Style = rand:uniform(1 bsl 30),
    Valued = Others ++ apart({values, Seed}, fun() -> with_values(Focus, Others) end),
    Properties = with_clocks(Focus, Valued ++ apart({calls, Seed}, fun() -> with_calls(Focus, Count, length(Valued)) end)),
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

%% By how much the clocks differ is the same for all of a file.
with_clocks(clocks, Properties) ->
    Error = lists:nth(rand:uniform(4), [1, 1, 2, 4]),
    [Property#{clocks => Error} || Property <- Properties];
with_clocks(_, Properties) -> Properties.

compiled(Properties, Style) ->
    Source = unicode:characters_to_binary(witness_spec_oracle_text:file(Properties, Style)),
    Clocks = lists:max([0 | [Error || #{clocks := Error} <- Properties]]),
    try witness_spec:compile_string(<<"random">>, Source,
                                    #{max_obligations => bound(Style), max_state => ?MAX_STATE, clocks => Clocks}) of
        {ok, Map, _} -> {ok, Map};
        {error, {witness_spec, Findings}} -> {error, [Finding || #{severity := error} = Finding <- Findings]}
    catch
        Class:Reason:Stack -> {error, {Class, Reason, Stack}}
    end.

%% In a mixed file, a copy of about every other property has `let`s, so that about one in three has. All that is random in these is
%% drawn apart: the other properties and their traces are those that a seed has always given.
with_values(mixed, Others) ->
    Copied = [maps:remove(written, Property) || #{formula := _} = Property <- Others, rand:uniform(2) =:= 1],
    [defined(N, named(N, witness_spec_oracle_gen:with_values(Property#{name := undefined})))
     || {N, Property} <- lists:enumerate(length(Others) + 1, Copied)];
with_values(_, _) -> [].

%% A mixed file has some more that are about calls, drawn apart as well.
with_calls(mixed, Count, Before) ->
    [defined(N, named(N, witness_spec_oracle_gen:among(witness_spec_oracle_gen:property(calls))))
     || N <- lists:seq(Before + 1, Before + max(1, Count div 6))];
with_calls(_, _, _) -> [].

apart(Place, Choose) ->
    Before = rand:export_seed(),
    _ = rand:seed(exsss, erlang:phash2(Place, 1 bsl 32)),
    try Choose() after rand:seed(Before) end.

%% Some properties are written with definitions.
defined(N, #{formula := _} = Property) when N rem 3 =:= 0 ->
    Property#{written => witness_spec_oracle_define:written(Property, "D" ++ integer_to_list(N))};
defined(_, Property) -> Property.

%% Every other property has a name.
named(N, Property) when N rem 2 =:= 0 -> Property#{name := list_to_atom("p" ++ integer_to_list(N))};
named(_, Property) -> Property.

%% Some files with a small bound for obligations.
bound(Style) -> case Style rem 3 of 0 -> 1 + Style rem 4; _ -> 1000 end.

traces(0, _, _, _, Statistics) -> {ok, Statistics};
traces(N, Module, Properties, Style, Statistics) ->
    case trace_of_each(Module, Properties, Properties, {Style, N}, Statistics) of
        {ok, More} -> traces(N - 1, Module, Properties, Style, More);
        Disagreement -> Disagreement
    end.

trace_of_each(Module, [{_, #{dialect := none}} | Rest], All, Round, Statistics) ->
    trace_of_each(Module, Rest, All, Round, Statistics);
trace_of_each(Module, [{Index, Property} | Rest], All, {Style, N} = Round, Statistics) ->
    Made = case Property of
        #{values := _} -> apart({Style, N, Index}, fun() -> trace(Module, Index, Property, All, Style, Statistics) end);
        _ -> trace(Module, Index, Property, All, Style, Statistics)
    end,
    case Made of
        {ok, More} -> trace_of_each(Module, Rest, All, Round, More);
        Disagreement -> Disagreement
    end;
trace_of_each(_, [], _, _, Statistics) ->
    {ok, Statistics}.

trace(Module, Index, Property, All, Style, Statistics) ->
    Signature = signature(Property),
    %% What is about all processes is named by no signature.
    Named = [I || {I, #{signatures := [_ | _]} = Other} <- All, witness_spec_oracle:binding(Other, Signature) =/= no],
    Case = #{properties => [Property], style => Style, signature => Signature, events => []},
    case Module:match(Signature) of
        Named ->
            Read = [{I, witness_spec_oracle:is_member(Other, S)} || {I, Other} <- All, S <- [Signature, undefined]],
            case [{I, among(Module, I, S)} || {I, _} <- All, S <- [Signature, undefined]] of
                Read ->
                    case pair(Module, Index, Property, Signature, bound(Style), random, Statistics) of
                        {ok, More} -> {ok, More};
                        {Kind, Events, Detail} -> {Kind, Case#{events := Events, detail => Detail}}
                    end;
                Others ->
                    {match, Case#{detail => {expected, Read -- Others, got, Others -- Read},
                                  properties := [P || {_, P} <- All]}}
            end;
        Other ->
            {match, Case#{detail => {expected, Named, got, Other}, properties := [P || {_, P} <- All]}}
    end.

signature(Property) ->
    Signature = witness_spec_oracle_gen:signature(Property),
    case Property of
        #{among := Among} ->
            apart({among, Signature}, fun() -> witness_spec_oracle_gen:signature(Property#{signatures := Among}) end);
        #{} -> Signature
    end.

among(Module, Index, Signature) ->
    not erlang:function_exported(Module, among, 2) orelse Module:among(Index, Signature).

%% A pair. `Source` are the events, or `random`.
pair(Module, Index, Property, Signature, Bound, Source, Statistics) ->
    case {witness_spec_oracle:machine(Property, Signature, Bound), monitored(Module, Signature, Index)} of
        {no, ignore} -> {ok, count([pairs, ignored], Statistics)};
        {{ok, Machine}, {ok, Monitor}} ->
            {ok, Env} = witness_spec_oracle:binding(Property, Signature),
            Actions = Module:coverage(Index),
            lists:foreach(fun(#{id := Id}) -> erase(mark(Id)) end, Actions),
            {Events, Left} = case Source of
                random -> {begin_with(Signature, witness_spec_oracle:offers(Machine)), rand:uniform(events(Property)) - 1};
                _ -> {Source, 0}
            end,
            case [Decides || #{decides := Decides} <- Actions] =:= witness_spec_oracle:decides(Machine) of
                true ->
                    run(Events, Left, Machine, Monitor,
                        #{property => Property, formula => witness_spec_oracle:definition(Property), env => Env,
                          values => witness_spec_oracle:values(Property), machine => Machine, first => Machine,
                          actions => Actions, latest => 0, seen => [], slices => #{}, told => [],
                          asks => element(1, Monitor) =:= requests, monitor => {Module, Index}, signature => Signature,
                          source => case Source of random -> random; _ -> given end}, Statistics);
                false ->
                    {decides, [], {expected, witness_spec_oracle:decides(Machine), got, Actions}}
            end;
        {Expected, Got} -> {begins, [], {expected, Expected =/= no, got, Got}}
    end.

events(#{traces := #{events := Events}}) -> Events;
events(_) -> ?EVENTS.

mark(Id) -> list_to_atom("$witness_" ++ integer_to_list(Id)).

%% The end of a pair: coverage is compared.
paired(Machine, #{actions := Actions, seen := Seen} = Run, Statistics) ->
    Taken = [Place || {Place, #{id := Id}} <- lists:enumerate(Actions), get(mark(Id)) =:= Id],
    {Sure, Maybe} = witness_spec_oracle:coverage(Machine),
    case {Sure -- Taken, Taken -- Maybe} of
        {[], []} ->
            Covered = lists:sort([Id || #{id := Id} <- Actions, get(mark(Id)) =:= Id]),
            case of_all(Run) of
                ok -> replayed(Covered, Run, Statistics);
                Difference -> {of_all, lists:reverse(Seen), Difference}
            end;
        _ -> {coverage, lists:reverse(Seen), {expected, Sure, at_most, Maybe, got, Taken}}
    end.

%% Some pairs again, for a property about all processes: its one machine is given all events, and reads those of the processes that
%% the property is about. It ends at an event of which it does not know whether it reads it, but not at the call of a function that
%% is not named.
-define(OF_ALL, 3).

of_all(#{property := #{signatures := []} = Property, first := Machine, monitor := Monitor, signature := Signature, seen := Seen,
         source := Source}) ->
    Chosen = erlang:phash2(Seen, 2 * ?OF_ALL),
    case Source =:= given orelse Chosen rem ?OF_ALL =:= 0 of
        true ->
            {ok, Reader} = witness_monitor_machine:new(#{monitor => Monitor, process => all, signature => all, explain => 1}),
            Born = [{init, self(), undefined, Signature, 0} || Chosen < ?OF_ALL],
            of_all(lists:takewhile(fun has_signature/1, Born ++ lists:reverse(Seen)), [], #{}, Machine, Reader, Property);
        false -> ok
    end;
of_all(_) -> ok.

of_all([Event | Events], Before, Alive, Machine, Reader, Property) ->
    Known = case Event of
        {init, P, _, Signature, _} -> Alive#{P => Signature};
        _ -> maps:merge(#{element(2, Event) => undefined}, Alive)
    end,
    Asked = witness_spec_oracle:asked(Event, Before),
    {Outcomes, Result} = witness_monitor_machine:run([Event], Reader),
    Got = sorted([plain(decided(Outcome)) || Outcome <- Outcomes]),
    Next = fun(Read, After) ->
        {ok, Going} = Result,
        Left = case Event of {exit, Ended, _, _} -> maps:remove(Ended, Known); _ -> Known end,
        of_all(Events, Read, Left, After, Going, Property)
    end,
    IsKept = witness_spec_oracle:slice(Asked, Machine) =/= skip,
    case {witness_spec_oracle:is_member(Property, map_get(element(2, Event), Known)), Result} of
        {true, {ok, _}} ->
            {Late, InTime} = witness_spec_oracle:time(Asked, Machine),
            {Verdicts, After} = witness_spec_oracle:event(Asked, InTime),
            case {sorted(Late ++ Verdicts), witness_spec_oracle:heavy(After)} of
                {Got, _} -> Next([Event | Before], After);
                {_, [_ | _]} when IsKept -> ok;
                {Expected, _} -> {at, Event, expected, Expected, got, Got}
            end;
        {false, {ok, _}} when Got =:= [] -> Next(Before, Machine);
        {unknown, {ok, _}} when Got =:= [], not IsKept -> Next(Before, Machine);
        {unknown, {decided, #{reason := {gap, unknown_signature}}}} when IsKept -> ok;
        {unknown, {decided, _} = Ended} ->
            %% An event of the alphabet may be taken for one that `over` keeps.
            case is_named(Event, Property) of
                true -> ok;
                false -> {at, Event, expected, skipped, got, Ended}
            end;
        {IsMember, _} -> {at, Event, read, IsMember, kept, IsKept, got, Got, Result}
    end;
of_all([], _, _, _, _, _) -> ok.

%% A birth of a random trace may be of what no process is spawned with.
has_signature({init, _, _, {_, _, Arguments}, _}) when length(Arguments) >= 0 -> true;
has_signature(Event) -> element(1, Event) =/= init.

is_named({call, _, {M, F, Arguments}, _}, #{over := Over}) ->
    lists:member({call, {M, F, length(Arguments)}}, witness_spec_oracle:functions(Over));
is_named({return, _, Function, _, _}, #{over := Over}) -> lists:member({return, Function}, witness_spec_oracle:functions(Over));
is_named(_, _) -> true.

%% Some pairs again, through the process that runs monitors: it has to tell the same. It alone knows requests.
-define(REPLAYED, 8).
-define(SLICES, 1_000).
-define(RELOADED, 8).
-define(REPLAYED_REQUESTS, 2).

replayed(Taken, #{seen := Seen, told := Told, asks := Asks, monitor := Monitor, signature := Signature} = Run, Statistics) ->
    Every = case Asks of true -> ?REPLAYED_REQUESTS; false -> ?REPLAYED end,
    case map_get(source, Run) =/= random orelse rand:uniform(Every) =:= 1 of
        true ->
            Runner = witness_monitor_runner:start(#{monitor => Monitor, process => self(), signature => Signature,
                                                    run => self(), explain => 3, ordered => false}),
            ok = witness_monitor_runner:send_events(Runner, [{none, Event} || Event <- lists:reverse(Seen)]),
            ok = witness_monitor_runner:complete(Runner),
            {Covered, Outcomes} = outcomes(Runner, []),
            case {same(Told, Outcomes), Covered} of
                {true, Taken} -> {ok, count([pairs, replayed], Statistics)};
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

%% When a deadline passes, there is no deciding event: the next one comes too late, or the end.
told(Key, #{verdict := Verdict, vacuous := Vacuous, event := Event, info := Info, steps := Steps, skipped := Skipped}) ->
    {Key, Verdict, Vacuous, case {Event, Info} of
        {#{index := Index}, _} -> Index;
        {_, #{deadline := _}} -> {before, Skipped + length(Steps) + 1};
        _ -> 'end'
    end}.

same(Told, Outcomes) ->
    {Expected, Got} = {Told -- Outcomes, Outcomes -- Told},
    length(Expected) =:= length(Got)
        andalso lists:all(fun({One, Other}) -> is_same(One, Other) end, lists:zip(by_key(Expected), by_key(Got))).

%% Sorting takes the keys 1 and 1.0 for the same.
by_key(Outcomes) ->
    [Outcome || {_, Outcome} <- lists:sort([{term_to_binary(element(1, Told), [deterministic]), Told} || Told <- Outcomes])].

sorted(Verdicts) ->
    [Verdict || {_, Verdict} <- lists:sort([{term_to_binary(Verdict, [deterministic]), Verdict} || Verdict <- Verdicts])].

%% At the end a key has one instance.
is_same({Key, Verdict, Vacuous, 'end'}, {Key, Verdict, Vacuous, {before, _}}) -> true;
is_same(_, _) -> false.

bits(0, _) -> [];
bits(Mask, Bit) -> [Bit || Mask band 1 =:= 1] ++ bits(Mask bsr 1, Bit + 1).

%% The birth, where the formula speaks of it, and sometimes where it does not.
begin_with(Signature, Offers) ->
    Births = [init || {{init, _, _}, _} <- Offers],
    case rand:uniform(100) =< case Births of [] -> 15; _ -> 70 end of
        true -> [{init, self(), undefined, Signature, 0}];
        false -> []
    end.

%% Times of random traces: the latest one so far.
at(Events, Latest) -> lists:mapfoldl(fun witness_spec_oracle_gen:at/2, Latest, Events).

%% Feeds both, event by event.
run([], Left, Machine, Monitor, #{latest := Before} = Run, Statistics) when Left > 0 ->
    {Event, Latest} = next(Machine, Run),
    run(unasked(Run, Before) ++ [Event], Left - 1, Machine, Monitor, Run#{latest := Latest}, Statistics);
run([], 0, Machine, Monitor, #{seen := Seen, slices := Slices} = Run, Statistics) ->
    Expected = sorted(witness_spec_oracle:finish(Machine)),
    case at_end(Monitor) of
        Expected ->
            Wrong = [{Key, Verdict} || {Key, Verdict, _} <- Expected, is_map_key(Key, Slices) orelse Key =:= none,
                                       contradicted(Key, Verdict, maps:get(Key, Slices, []), [], Run#{machine := Machine})],
            case Wrong of
                [] ->
                    Ended = Run#{told := [{Key, Verdict, Vacuous, 'end'} || {Key, Verdict, Vacuous} <- Expected]
                                     ++ map_get(told, Run)},
                    paired(Machine, Ended, count([undecided | tallies(Expected)], Statistics));
                _ -> {definition, lists:reverse(Seen), {at_the_end, Wrong}}
            end;
        Got -> {ended, lists:reverse(Seen), {expected, Expected, got, Got}}
    end;
run([Event | Events], Left, Before, Monitor, #{seen := Seen} = Run, Statistics) ->
    Asked = witness_spec_oracle:asked(Event, Seen),
    {Unsorted, Machine} = witness_spec_oracle:time(Asked, Before),
    Expected = sorted(Unsorted),
    case pass(Asked, Monitor) of
        {[], After} when Expected =:= [] -> happen({Event, Asked}, Events, Left, Machine, After, Run, Statistics);
        {Expected, After} ->
            Now = read_by_slices(witness_spec_oracle:slice(Asked, Before), Asked,
                                 Run#{seen := [Event | Seen], machine := witness_spec_oracle:project(Asked, Before)}),
            #{slices := Slices, told := Others} = Now,
            Told = [{Key, Verdict, Vacuous, {before, length(map_get(Key, Slices))}} || {Key, Verdict, Vacuous} <- Expected],
            Counted = count([late | tallies(Expected)], Statistics),
            Passed = (forget(Expected, Run))#{told := Told ++ Others},
            case [Verdict || {Key, Verdict, _} <- Expected, extended(Key, Verdict, Now)] of
                [] when map_get(per, map_get(property, Run)) =:= [] -> paired(Machine, Passed#{seen := [Event | Seen]}, Counted);
                [] -> happen({Event, Asked}, Events, Left, Machine, After, Passed, Counted);
                Wrong -> {definition, lists:reverse(Seen, [Event]), {an_extension_contradicts, Wrong}}
            end;
        {Got, _} -> {time, lists:reverse(Seen, [Event]), {expected, Expected, got, Got}}
    end.

happen({Event, Asked}, Events, Left, Machine, Monitor, #{seen := Seen} = Run, Statistics) ->
    {Unsorted, Next} = witness_spec_oracle:event(Asked, Machine),
    Expected = sorted(Unsorted),
    Read = Run#{seen := [Event | Seen], machine := Next},
    {Explained, After} = read(Asked, Monitor),
    Got = sorted([plain(Verdict) || Verdict <- Explained]),
    {Machine1, GivenUp} = given_up(Got -- Expected, Next),
    case Got -- GivenUp of
        Expected ->
            Now = told_by(Got, read_by_slices(witness_spec_oracle:slice(Asked, Machine), Asked, Read)),
            Several = [several || lists:any(fun(N) -> N > 1 end, witness_spec_oracle:obligations(Next))],
            Counted = count([events | Several ++ tallies(Got)], Statistics),
            Unexplained = unexplained(Explained, witness_spec_oracle:failed(Next)),
            case [Verdict || {Key, Verdict, _} <- Expected, extended(Key, Verdict, Now)] of
                _ when Unexplained =/= [] -> {reason, lists:reverse(Seen, [Event]), Unexplained};
                [] when Got =/= [], map_get(per, map_get(property, Run)) =:= [] -> paired(Machine1, Now, Counted);
                [] -> run(Events, Left, Machine1, After, forget(Got, Now), Counted);
                Wrong -> {definition, lists:reverse(Seen, [Event]), {an_extension_contradicts, Wrong}}
            end;
        _ ->
            {verdict, lists:reverse(Seen, [Event]), {expected, Expected, got, Got}}
    end.

plain({Key, inconclusive, _}) -> {Key, inconclusive, false};
plain(Verdict) -> Verdict.

%% What ends because of a `let` says why.
unexplained(Explained, Failed) ->
    [{Key, {expected_one_of, map_get(Key, Failed), got, Reason}}
     || {Key, inconclusive, Reason} <- Explained, is_map_key(Key, Failed), not lists:member(Reason, map_get(Key, Failed))].

%% A monitor may give up at the bound although the normal form keeps to it.
given_up(Verdicts, Machine) ->
    GivenUp = [Verdict || {Key, inconclusive, _} = Verdict <- Verdicts,
                          lists:member(Key, witness_spec_oracle:heavy(Machine))],
    {lists:foldl(fun({Key, _, _}, Acc) -> witness_spec_oracle:drop(Key, Acc) end, Machine, GivenUp), GivenUp}.

%% Mostly one that decides nothing, so that traces go deep.
next(Machine, Run) ->
    Offers = witness_spec_oracle:offers(Machine),
    next(Offers, Machine, Run, case rand:uniform(4) of 1 -> 0; _ -> 4 end).

next(Offers, Machine, #{property := Property, seen := Seen, latest := Latest} = Run, Tries) ->
    {Event, _} = Timed = witness_spec_oracle_gen:at(Property, witness_spec_oracle_gen:event(Property, Offers, Seen), Latest),
    Asked = witness_spec_oracle:asked(Event, Seen),
    case Tries =:= 0 orelse witness_spec_oracle:time(Asked, Machine) =:= {[], Machine}
                         andalso element(1, witness_spec_oracle:event(Asked, Machine)) =:= [] of
        true -> Timed;
        false -> next(Offers, Machine, Run, Tries - 1)
    end.

%% Other monitors may want calls that are no events of this property, or are: they are drawn apart, with times of their own.
unasked(#{property := #{over := Over} = Property}, Latest) ->
    apart({calls, rand:export_seed()}, fun() ->
        Percent = case witness_spec_oracle:functions(Over) of [] -> 6; _ -> 15 end,
        case rand:uniform(100) =< Percent of
            true -> [element(1, witness_spec_oracle_gen:at(Property, witness_spec_oracle_gen:any_call(), Latest))];
            false -> []
        end
    end).

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
extended(Key, Verdict, #{slices := Slices, seen := Seen, latest := Latest} = Run) ->
    #{property := #{per := Per}, formula := Formula, values := Values, env := Env} = Run,
    Read = map_get(Key, Slices),
    Known = maps:merge(Env, keyed(Per, Key)),
    Actions = [{Action, Known} || Action <- actions(Formula) ++ witness_spec_oracle_values:actions(Values)],
    Extension = fun(N) ->
        {Events, _} = at([case rand:uniform(3) of
                              1 -> lists:nth(rand:uniform(length(Seen)), Seen);
                              _ -> witness_spec_oracle_gen:event(Actions, Seen)
                          end || _ <- lists:seq(1, N)], Latest),
        Events
    end,
    contradicted(Key, Verdict, Read, [], Run) orelse
        lists:any(fun(N) -> contradicted(Key, Verdict, Read, Extension(N), Run) end, [1, 3]).

contradicted(Key, Verdict, Read, Extension, #{property := Property, formula := Formula, values := Values, env := Env,
                                              seen := Seen, machine := Machine}) ->
    #{per := Per} = Property,
    {Asked, _} = lists:mapfoldl(fun(Event, Before) ->
        {witness_spec_oracle:asked(Event, Before), [Event | Before]}
    end, Seen, Extension),
    Trace = witness_spec_oracle:valued(Key, lists:reverse(Read), Asked, Machine),
    %% Without any slice there is a verdict, but no instance that could be judged.
    Bounds = witness_spec_oracle:bounds(maps:merge(Env, keyed(Per, Key)), Property),
    not (Key =:= none andalso Per =/= []) andalso Verdict =/= inconclusive andalso
        lists:any(fun(Bound) -> witness_spec_oracle:satisfies(Formula, Values, Trace, Bound) =:= (Verdict =:= no) end, Bounds).

keyed(_, none) -> #{};
keyed(Per, Key) -> maps:from_list(lists:zip(Per, tuple_to_list(Key))).

actions({Modality, Action, Formula}) when Modality =:= box; Modality =:= dia -> [Action | actions(Formula)];
actions({Timed, _, Formula}) when Timed =:= within; Timed =:= during -> actions(Formula);
actions({_, _, _, Formula}) -> actions(Formula);
actions({_, Formulas}) when is_list(Formulas) -> lists:append([actions(F) || F <- Formulas]);
actions(_) -> [].

%% The compiled monitor, driven as its runner does.

monitored(Module, Signature, Index) ->
    case Module:init(Signature, self(), Index) of
        {requests, Begun} -> {ok, {requests, begun(Begun, Module, Index)}};
        ignore -> ignore;
        Begun -> {ok, begun(Begun, Module, Index)}
    end.

begun({ok, State}, Module, Index) ->
    Alphabet = witness_monitor_alphabet:compile(witness_monitor_alphabet:of_monitor({Module, Index})),
    {Module, fun(Event) -> witness_monitor_alphabet:slice(Event, Alphabet) end, #{none => State}};
begun({ok, State, Filter}, Module, _) -> {Module, fun(Event) -> Module:slice(Event, Filter) end, #{none => State}};
begun({slices, Filter}, Module, Index) -> {slices, {Module, Index}, new_sliced({Module, Index}, Filter)}.

new_sliced({Module, _} = Monitor, Filter) ->
    Plain = witness_monitor_instance:config(Module, 1),
    Config = case witness_monitor:is_timed(Monitor) of
        true -> witness_monitor_instance:set_timed(witness_monitor_stop_time:none(), Plain);
        false -> Plain
    end,
    witness_monitor_sliced:new(Module, Config, {fun Module:slice/2, Filter}, Module:slice_names(Filter), ?SLICES, infinity).

%% Sometimes a monitor is saved and goes on elsewhere.
reloaded(Monitor, Sliced) ->
    {Filter, Saved} = witness_monitor_sliced:save(Sliced),
    {ok, Loaded} = witness_monitor_sliced:load(binary_to_term(term_to_binary(Saved)), new_sliced(Monitor, Filter)),
    Loaded.

%% A monitor that crashes has told something else than the oracle.
read(Event, Monitor) ->
    try
        reads(Event, Monitor)
    catch
        error:Reason:Stack -> {[{crashed, Reason, hd(Stack)}], Monitor}
    end.

reads(Asked, {requests, Monitor}) ->
    {Verdicts, After} = reads(enriched(Asked), Monitor),
    {Verdicts, {requests, After}};
reads({answers, Event, _}, Monitor) -> reads(Event, Monitor);
reads(Event, {passed, Event, Verdicts, Monitor}) -> {Verdicts, Monitor};
reads(Event, {_, Filter, _} = Monitor) ->
    case is_read(Event, Filter) of
        false -> {[], Monitor};
        true -> advance(Event, Monitor)
    end.

%% A monitor that does not choose is given the events of its alphabet.
is_read(Event, Slice) -> Slice(Event) =/= skip.

%% The deadlines before an event pass before it. The slices have read it then.
pass(Asked, {requests, Monitor}) ->
    {Verdicts, After} = pass(enriched(Asked), Monitor),
    {Verdicts, {requests, After}};
pass({answers, Event, _}, Monitor) -> pass(Event, Monitor);
pass(Event, {slices, Monitor, Sliced}) ->
    {Result, Outcomes, After} = witness_monitor_sliced:run([Event], Sliced),
    Next = case erlang:phash2(Event, ?RELOADED) of 0 -> reloaded(Monitor, After); _ -> After end,
    Told = [Outcome || Outcome <- Outcomes, is_deadline(Outcome)],
    Decided = case Result of ok -> sorted([decided(Outcome) || Outcome <- Outcomes -- Told]); _ -> [Result] end,
    {sorted([decided(Outcome) || Outcome <- Told]), {passed, Event, Decided, {slices, Monitor, Next}}};
pass(Event, {Module, Filter, Live} = Monitor) ->
    Time = witness_event:ts(Event),
    case is_integer(Time) andalso is_timed(Module) andalso is_read(Event, Filter) of
        true ->
            Verdicts = [{Key, Verdict, vacuous(Verdict, Info)}
                        || Key := State <- Live, {verdict, Verdict, Info} <- [Module:handle_time(Time, State)]],
            {Verdicts, {Module, Filter, maps:without([Key || {Key, _, _} <- Verdicts], Live)}};
        false -> {[], Monitor}
    end.

is_deadline(#{event := undefined, info := #{deadline := _}}) -> true;
is_deadline(_) -> false.

decided(#{verdict := inconclusive, reason := undefined, info := Info, slice := Slice}) ->
    {key(Slice), inconclusive, maps:get(reason, Info, none)};
decided(#{verdict := inconclusive, reason := Reason, slice := Slice}) -> {key(Slice), Reason};
decided(#{verdict := Verdict, vacuous := Vacuous, slice := Slice}) -> {key(Slice), Verdict, Vacuous}.

key(Slice) -> list_to_tuple([Value || {_, Value} <- Slice]).

enriched({answers, {send, P, Q, Message, Ts}, Requests}) ->
    {send, P, Q, Message, case Requests of [] -> none; [Request] -> {request, Request} end, Ts};
enriched({answers, Event, _}) -> Event.

advance(_, {_, _, Live} = Monitor) when map_size(Live) =:= 0 -> {[], Monitor};
advance(Event, {Module, Filter, #{none := Before}}) ->
    case Module:handle_event(Event, Before) of
        {ok, State} -> {[], {Module, Filter, #{none => State}}};
        {verdict, inconclusive, Info} -> {[{none, inconclusive, maps:get(reason, Info, none)}], {Module, Filter, #{}}};
        {verdict, Verdict, Info} -> {[{none, Verdict, vacuous(Verdict, Info)}], {Module, Filter, #{}}}
    end.

is_timed(Module) -> erlang:function_exported(Module, handle_time, 2).

at_end(Monitor) ->
    try
        ends(Monitor)
    catch
        error:Reason:Stack -> [{crashed, Reason, hd(Stack)}]
    end.

ends({requests, Monitor}) -> ends(Monitor);
ends({slices, {Module, _}, Sliced}) ->
    case witness_monitor_sliced:count(Sliced) of
        0 -> [{none, yes, true}];
        _ ->
            {Filter, Saved} = witness_monitor_sliced:save(Sliced),
            IsOne = length(Module:slice_names(Filter)) =:= 1,
            ends({Module, none, #{case IsOne of true -> {Id}; false -> Id end => State
                                  || {_, Id, {State, _, _}} <- element(3, Saved)}})
    end;
ends({Module, _, Live}) ->
    sorted([begin
        {inconclusive, Stopped} = Module:handle_end(stopped, State),
        #{formula := Text, bindings := Bindings} = Module:describe(State),
        true = is_binary(Text) andalso Text =/= <<>> andalso is_list(Bindings),
        {Verdict, Info} = Module:handle_end(complete, State),
        true = (Verdict =:= no) =:= (maps:get(reason, Stopped, undefined) =:= pending),
        true = not is_timed(Module) orelse passes_as_at_end(Module, State, Verdict),
        {Key, Verdict, vacuous(Verdict, Info)}
    end || Key := State <- Live]).

%% When time passes for ever: no deadline decides before its time, and the first one that does decides as the end does.
passes_as_at_end(Module, State, Verdict) ->
    First = Module:next_deadline(-(1 bsl 63), State),
    case Module:handle_time(1 bsl 63, State) of
        open -> true;
        {verdict, Verdict, #{deadline := At}} ->
            First =< At andalso open =:= Module:handle_time(At, State)
                andalso element(2, Module:handle_time(At + 1, State)) =:= Verdict
                andalso At =:= Module:next_deadline(At, State);
        _ -> false
    end.

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

candidates(#{properties := [#{written := _} = Property], events := Events} = Case) ->
    [Case#{properties := [maps:remove(written, Property)]}] ++ [Case#{events := Fewer} || Fewer <- without_one(Events)];
candidates(#{properties := [#{formula := Formula} = Property], events := Events} = Case) ->
    [Case#{events := Fewer} || Fewer <- without_one(Events)]
        ++ [Case#{properties := [maps:remove(values, Property)]} || #{values := _} <- [Property]]
        ++ [Case#{properties := [Property#{values := Fewer}]} || #{values := Values} <- [Property], Fewer <- values(Values)]
        ++ [Case#{properties := [Property#{formula := Smaller}]} || Smaller <- formulas(Formula)]
        ++ [Case#{properties := [Property#{signatures := [One]}]} ||
            #{signatures := [_, _ | _] = Several} <- [Property], One <- Several]
        ++ [Case#{properties := [Property#{over := Fewer}]} || #{over := [_, _ | _] = Over} <- [Property],
                                                               Fewer <- without_one(Over)]
        ++ [Case#{properties := [Property#{over := lists:sublist(Over, N - 1) ++ [Smaller | lists:nthtail(N, Over)]}]} ||
            #{over := [_ | _] = Over} <- [Property], {N, {_, _, _} = Action} <- lists:enumerate(Over), Smaller <- simpler(Action)]
        ++ [Case#{properties := [Property#{over := all}]} || #{over := [_ | _], per := []} <- [Property]];
candidates(_) -> [].

without_one(List) -> [lists:sublist(List, N - 1) ++ lists:nthtail(N, List) || N <- lists:seq(1, length(List))].

%% `let`s with one thing less.
values(Values) ->
    [Fewer || [_, _ | _] <- [Values], Fewer <- without_one(Values)]
        ++ [lists:keyreplace(Name, 1, Values, {Name, Smaller}) || {Name, Value} <- Values, Smaller <- smaller_values(Value)].

smaller_values({each, Names, Value}) -> [{each, Names, Smaller} || Smaller <- smaller_values(Value)];
smaller_values({previously, Condition}) -> [{previously, Smaller} || Smaller <- conditions(Condition)];
smaller_values({Kind, Window, Condition}) ->
    [{Kind, none, Condition} || Window =/= none] ++ [{Kind, Window, Smaller} || Smaller <- conditions(Condition)];
smaller_values({since, Window, Condition, Begin}) ->
    [{since, none, Condition, Begin} || Window =/= none] ++ [{since, Window, Smaller, Begin} || Smaller <- conditions(Condition)]
        ++ [{since, Window, Condition, Smaller} || Smaller <- conditions(Begin)];
smaller_values({Kind, Window, Term, Condition}) ->
    [{Kind, none, Term, Condition} || Window =/= none] ++ [{Kind, Window, Smaller, Condition} || Smaller <- parts(Term)]
        ++ [{Kind, Window, Term, Smaller} || Smaller <- conditions(Condition)].

conditions({actions, Actions}) ->
    [{actions, Fewer} || [_, _ | _] <- [Actions], Fewer <- without_one(Actions)]
        ++ [{actions, lists:sublist(Actions, N - 1) ++ [Smaller | lists:nthtail(N, Actions)]}
            || {N, Action} <- lists:enumerate(Actions), Smaller <- simpler(Action)];
conditions({test, Test}) -> [{test, Smaller} || Smaller <- parts(Test)].

%% Formulas with one thing less.
formulas({Op, Formulas}) when is_list(Formulas) ->
    Formulas ++ [{Op, Fewer} || Fewer <- without_one(Formulas), Fewer =/= []]
        ++ [{Op, lists:sublist(Formulas, N - 1) ++ [Smaller | lists:nthtail(N, Formulas)]} ||
            {N, Formula} <- lists:enumerate(Formulas), Smaller <- formulas(Formula)];
formulas({Timed, Length, Formula}) when Timed =:= within; Timed =:= during ->
    [Formula] ++ [{Timed, Length, Smaller} || Smaller <- formulas(Formula)];
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
            {N, Pattern} <- lists:enumerate(Patterns), Pattern =/= '_', not names_function(Kind, N),
            Smaller <- smaller_patterns(Pattern)]
        ++ [{call, [P, {tuple, [Module, Function, {list, Fewer, nil}]} | More], Guard}
            || {call, [P, {tuple, [Module, Function, {list, Arguments, nil}]} | More]} <- [{Kind, Patterns}],
               {N, Argument} <- lists:enumerate(Arguments), Argument =/= '_', Smaller <- smaller_patterns(Argument),
               Fewer <- [lists:sublist(Arguments, N - 1) ++ [Smaller | lists:nthtail(N, Arguments)]]].

%% The second pattern of a call or return is its function.
names_function(Kind, N) -> N =:= 2 andalso (Kind =:= call orelse Kind =:= return).

smaller_patterns({to, Request}) -> [{to, Smaller} || Smaller <- ['_' | parts(Request)], Request =/= '_'];
smaller_patterns(Pattern) -> ['_' | parts(Pattern)].

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

-doc """
`WITNESS_ORACLE_PAIRS` pairs (default 1,000,000), and a tenth as many that are about calls, about values without slices, and with clocks that differ; the exit code
is 1 after a disagreement.
""".
main() ->
    Pairs = list_to_integer(os:getenv("WITNESS_ORACLE_PAIRS", "1000000")),
    Seed = list_to_integer(os:getenv("WITNESS_ORACLE_SEED", integer_to_list(erlang:system_time()))),
    Options = #{seed => Seed, workers => erlang:system_info(schedulers_online)},
    main(Options#{pairs => Pairs, focus => mixed}),
    [main(Options#{pairs => max(1, Pairs div 10), focus => Focus}) || Focus <- [calls, leaving, clocks]].

main(#{pairs := Pairs, seed := Seed, focus := Focus} = Options) ->
    io:format("~b pairs, seed ~b, ~w~n", [Pairs, Seed, Focus]),
    {Time, Result} = timer:tc(fun() -> pairs(Options) end),
    case Result of
        {ok, Statistics} ->
            io:format("~tp~nno disagreement in ~b s~n", [Statistics, Time div 1_000_000]);
        {disagreement, Case} ->
            io:put_chars(format(Case)),
            halt(1)
    end.
