-module(witness_specifications_tests).
-moduledoc """
The specifications of `examples/specifications` say what their comments claim: each is compiled, and reads the traces
of the file `NAME.traces` beside it in the monitors and with the instrumentation map of a run.

A file of traces is Erlang terms, read as data:

```erlang
{processes, [server, client]}.      % these atoms stand for process identifiers, wherever they occur
{references, [tag]}.                % these for references
{warnings, [overlapping_branches]}. % what compiling the specification warns of, in the order of the lines

{trace, "the second sum is wrong",
 [{answer_is_the_sum, no, 5}],
 [{server, '<-', client, {calc_server, loop, [0]}},
  {server, '?', {client, {add, 1, 2}}},
  {server, '!', client, {ok, 3}},
  {server, '?', {client, {add, 2, 2}}},
  {server, '!', client, {ok, 5}}]}.
```

Only traces are needed. Events are written as in the language: `{P, '<-', Parent, {M, F, Args}}`,
`{P, '->', Child, {M, F, Args}}`, `{P, '!', To, Message}`, `{P, '?', Message}`, `{P, '**', Reason}`,
`{P, calls, {M, F, Args}}`, `{P, returns, {M, F, Arity}, Value}`. A trace may hold
several processes; each monitor reads those that its file gives it. A monitor has seen a complete trace if all of its
processes have ended in it; otherwise watching was stopped.

`{at, {250, ms}, Event}` gives an event its time, in a unit of the language, and `{at, undefined, Event}` none. Other events come a
nanosecond after the one before.

What is expected is the multiset of all verdicts, one for each monitor or slice: `{Property, Verdict, At}`, where the
verdict is `yes`, `no`, `vacuous` (a `yes` before which nothing happened) or `inconclusive`, and `At` the number of the
deciding event in the list, `'end'` for the complete end, `{at, {6, s}}` for a deadline, or why it is inconclusive.
""".

-include_lib("eunit/include/eunit.hrl").

-export([specifications/0, prepare/1, clean/1]).

-define(LEAST_SPECIFICATIONS, 28).
-define(MOST_LINES, 8).

specifications_test_() ->
    {inorder, [{filename:basename(File), {setup, fun() -> prepare(File) end, fun clean/1, fun tests/1}} ||
               File <- specifications()]}.

there_are_specifications_of_many_topics_test() ->
    ?assert(length(specifications()) >= ?LEAST_SPECIFICATIONS).

every_file_of_traces_belongs_to_a_specification_test() ->
    Traces = filelib:wildcard(filename:join([folder(), "**", "*.traces"])),
    ?assertEqual([traces_of(File) || File <- specifications()], lists:sort(Traces)).

the_list_of_the_folder_is_complete_test() ->
    {ok, List} = file:read_file(filename:join(folder(), "README.md")),
    {match, Listed} = re:run(List, ~"^\\| `(\\w+)\\.hml`", [global, multiline, {capture, all_but_first, list}]),
    Files = [filename:basename(File, ".hml") || File <- filelib:wildcard(filename:join(folder(), "*.hml"))],
    ?assertEqual(lists:sort(Files), lists:sort(lists:append(Listed))).

%% The table of `requirements` claims that what is demanded most often is short.
each_requirement_is_one_property_of_at_most_eight_lines_test() ->
    {ok, List} = file:read_file(filename:join(requirements(), "README.md")),
    {match, Rows} = re:run(List, ~"^\\| [^|]+ \\| `(\\w+)\\.hml` \\| (\\d+) \\|$", [global, multiline, {capture, all_but_first, binary}]),
    Listed = [{Name, binary_to_integer(Lines)} || [Name, Lines] <- Rows],
    Files = filelib:wildcard(filename:join(requirements(), "*.hml")),
    ?assertEqual(lists:sort([{list_to_binary(filename:basename(File, ".hml")), lines_of_property(File)} || File <- Files]),
                 lists:sort(Listed)),
    ?assertEqual([], [Long || {_, Lines} = Long <- Listed, Lines > ?MOST_LINES]).

%% The lines are those from the first to the last word of the file, without comments.
lines_of_property(File) ->
    {ok, #{entries := [_]} = Map, []} = compile(File),
    clean(#{map => Map}),
    {ok, Source} = file:read_file(File),
    {ok, Tokens} = witness_spec_scan:string(Source),
    length(lists:usort([element(1, witness_spec_scan:location(Token)) || Token <- Tokens, element(1, Token) =/= eof])).

requirements() -> filename:join(folder(), "requirements").

tests(#{file := File, traces := Traces} = Prepared) ->
    [{"warnings", ?_assertEqual(maps:get(expected_warnings, Prepared), maps:get(warnings, Prepared))},
     {"says in words what it demands", ?_assertMatch(<<"%", _/binary>>, maps:get(source, Prepared))},
     [{Name, fun() -> as_expected(Expected, Events, Prepared) end} || {Name, Expected, Events} <- Traces],
     {"traces of both kinds", fun() -> both_kinds(File, Traces) end},
     {"every property is satisfied and violated", fun() -> each_property_decides(Prepared) end},
     {"every action is taken", fun() -> every_action_is_taken(Prepared) end}].

as_expected(Expected, Events, Prepared) ->
    {Verdicts, _} = verdicts(Events, Prepared),
    ?assertEqual(lists:sort(Expected), Verdicts).

both_kinds(File, Traces) ->
    Kinds = [kind(Expected) || {_, Expected, _} <- Traces],
    [?assert(length([K || K <- Kinds, K =:= Kind]) >= 2, {File, "has less than two traces of the kind", Kind}) ||
     Kind <- [satisfies, violates]].

%% What has not come to a verdict does not satisfy.
kind(Expected) ->
    Verdicts = [Verdict || {_, Verdict, _} <- Expected],
    case {lists:member(no, Verdicts), lists:member(yes, Verdicts)} of
        {true, _} -> violates;
        {false, true} -> satisfies;
        {false, false} -> neither
    end.

each_property_decides(#{entries := Entries, traces := Traces}) ->
    Expected = lists:append([Verdicts || {_, Verdicts, _} <- Traces]),
    Names = lists:usort([Name || #{name := Name, action := monitor} <- Entries]),
    Missing = [{Name, Verdict} || Name <- Names, Verdict <- [no, yes],
                                  not lists:any(fun({N, V, _}) -> {N, V} =:= {Name, Verdict} end, Expected)],
    ?assertEqual([], Missing),
    ?assertEqual([], lists:usort([Name || {Name, _, _} <- Expected]) -- Names).

every_action_is_taken(#{module := Module, entries := Entries, traces := Traces} = Prepared) ->
    Covered = lists:append([Masks || {_, _, Events} <- Traces, {_, Masks} <- [verdicts(Events, Prepared)]]),
    Unseen = [{Name, Line, Text} || #{index := Index, name := Name, action := monitor} <- Entries,
                                    #{id := Id, line := Line, text := Text} <- Module:coverage(Index),
                                    not lists:any(fun({I, Mask}) -> I =:= Index andalso taken(Id, Mask) end, Covered)],
    ?assertEqual([], Unseen).

taken(Id, Mask) -> Mask band (1 bsl Id) =/= 0.

%% --- recipes ---------------------------------------------------------------------

%% Traces are what their author thought of; the small systems of `recipes.erl` are real.
recipes_hold_for_the_good_system_and_not_for_the_bad_one_test_() ->
    {setup,
     fun() ->
         {ok, recipes, Code} = compile:file(filename:join(recipes(), "recipes.erl"), [binary, warnings_as_errors]),
         {module, recipes} = code:load_binary(recipes, "recipes.erl", Code),
         ok
     end,
     fun(ok) ->
         ok = application:stop(witness),
         true = code:delete(recipes),
         code:purge(recipes)
     end,
     [{lists:concat([Name, " ", Variant]), {timeout, 60, ?_assertEqual(Outcome, run_recipe(Name, Variant))}} ||
      Name <- recipe_names(), {Variant, Outcome} <- [{good, ok}, {bad, violated}]]}.

run_recipe(Name, Variant) ->
    {ok, Run} = witness:start(#{system => {recipes, list_to_existing_atom(Name), [Variant]}, log => false,
                                specs => [filename:join(recipes(), Name ++ ".hml")]}),
    {ok, #{verdicts := #{inconclusive := 0, yes := Yes}, vacuous := Vacuous, outcome := Outcome}} =
        witness:await(Run, 30_000),
    {ok, _} = witness:stop(Run),
    Outcome =:= violated orelse ?assert(Yes > Vacuous, {Name, "holds because nothing happened"}),
    Outcome.

the_guide_shows_each_recipe_as_it_stands_in_its_file_test() ->
    {ok, Guide} = file:read_file(filename:join([root(), "docs", "specifications.md"])),
    {match, Blocks} = re:run(Guide, ~"^```hml recipe=(\\w+)\n(.*?)^```$",
                             [global, multiline, dotall, {capture, all_but_first, binary}]),
    ?assertEqual(length(Blocks), length(lists:usort([Name || [Name, _] <- Blocks]))),
    ?assertEqual(lists:sort([{list_to_binary(Name), text(Name)} || Name <- recipe_names()]),
                 lists:sort([{Name, Text} || [Name, Text] <- Blocks])).

text(Name) ->
    {ok, Text} = file:read_file(filename:join(recipes(), Name ++ ".hml")),
    Text.

recipe_names() -> [filename:basename(File, ".hml") || File <- filelib:wildcard(filename:join(recipes(), "*.hml"))].

recipes() -> filename:join(folder(), "recipes").

%% --- running a trace -------------------------------------------------------------

%% What the monitors of a file say of a trace, sorted, and which actions each of them took.
verdicts(Events, #{module := Module, entries := Entries}) ->
    Started = lists:foldl(fun(Event, State) -> event(Event, match(Module, Entries), State) end,
                          #{labels => #{}, monitors => []}, Events),
    Outcomes = [outcomes(Monitor, Started) || Monitor <- lists:reverse(maps:get(monitors, Started))],
    {lists:sort(lists:append([[verdict(Name, Outcome, Events) || Outcome <- Of] || {#{name := Name}, Of, _} <- Outcomes])),
     [{Index, Mask} || {#{index := Index}, _, Mask} <- Outcomes]}.

match(Module, Entries) ->
    fun(Signature) -> [lists:nth(Index, Entries) || Index <- Module:match(Signature)] end.

event({init, P, Parent, Signature, _} = Event, Match, #{labels := Labels, monitors := Monitors} = State) ->
    Maps = [fun(S) -> [case E of #{action := none} -> none; _ -> E end || E <- Match(S)] end],
    Label = case Labels of
        #{Parent := Known} -> {_, Child} = witness_instrument_map:assign(Signature, Known, Maps), Child;
        _ -> witness_instrument_map:new(Maps, #{held => true, signature => Signature})
    end,
    New = [{runner(Entry, P, Signature), N, Entry} || {N, Entry} <- witness_instrument_map:starts(Label)],
    Members = [{N, Runner, Group} || {Runner, N, #{group := Group}} <- New],
    feed(Event, State#{labels := Labels#{P => witness_instrument_map:with_readers(Members, Label)},
                       monitors := lists:reverse([{Runner, Entry} || {Runner, _, Entry} <- New], Monitors)});
event(Event, _, State) ->
    feed(Event, State).

feed(Event, #{labels := Labels} = State) ->
    P = witness_event:proc(Event),
    is_map_key(P, Labels) orelse error({not_born, Event}),
    Ended = maps:get(ended, State, []),
    lists:member(P, Ended) andalso error({after_its_end, Event}),
    [ok = witness_monitor_runner:send_events(Runner, [{none, Event}]) ||
     Runner <- witness_instrument_map:label(readers, map_get(P, Labels))],
    case witness_event:kind(Event) of
        exit -> State#{ended => [P | Ended]};
        _ -> State
    end.

runner(#{module := Module, index := Index}, P, Signature) ->
    witness_monitor_runner:start(#{monitor => {Module, Index}, process => P, signature => Signature, run => self(),
                                   explain => 12, ordered => false}).

outcomes({Runner, Entry}, #{labels := Labels} = State) ->
    Read = [P || P := Label <- Labels, lists:member(Runner, witness_instrument_map:label(readers, Label))],
    ok = case Read -- maps:get(ended, State, []) of
        [] -> witness_monitor_runner:complete(Runner);
        _ -> witness_monitor_runner:stop(Runner)
    end,
    {Outcomes, Mask} = collect(Runner, []),
    {Entry, Outcomes, Mask}.

collect(Runner, Slices) ->
    receive
        {slice, Runner, Outcome} -> collect(Runner, [Outcome | Slices]);
        {verdict, Runner, #{verdict := _} = Outcome} -> {[Outcome | Slices], maps:get(covered, Outcome)};
        {verdict, Runner, #{slices := N, covered := Mask}} ->
            N = length(Slices),
            {Slices, Mask}
    after 25_000 -> error(no_verdict)
    end.

verdict(Name, #{verdict := inconclusive, reason := undefined, info := #{reason := Reason}}, _) -> {Name, inconclusive, Reason};
verdict(Name, #{verdict := inconclusive, reason := Reason}, _) -> {Name, inconclusive, Reason};
verdict(Name, #{verdict := yes, vacuous := true} = Outcome, Events) -> {Name, vacuous, at(Outcome, Events)};
verdict(Name, #{verdict := Verdict} = Outcome, Events) -> {Name, Verdict, at(Outcome, Events)}.

at(#{event := undefined, info := #{deadline := At}}, _) -> {at, At};
at(#{event := undefined}, _) -> 'end';
at(#{event := #{event := Event}}, Events) ->
    [Number] = [N || {N, E} <- lists:enumerate(Events), E =:= Event],
    Number.

%% --- reading files ---------------------------------------------------------------

prepare(File) ->
    {ok, #{module := Module, entries := Entries} = Map, Warnings} = compile(File),
    {ok, Terms} = file:consult(traces_of(File)),
    [] = [Term || Term <- Terms, not lists:member(element(1, Term), [processes, references, warnings, trace])],
    {ok, Source} = file:read_file(File),
    Names = named(processes, Terms, fun process/1) ++ named(references, Terms, fun(_) -> make_ref() end),
    #{map => Map, file => File, module => Module, source => Source,
      entries => [named_entry(Entry#{module => Module}) || Entry <- Entries],
      warnings => [Code || #{code := Code} <- Warnings],
      expected_warnings => proplists:get_value(warnings, Terms, []),
      traces => [{Name, lists:map(fun expected/1, Expected), events(Events, maps:from_list(Names))}
                 || {trace, Name, Expected, Events} <- Terms]}.

compile(File) ->
    case witness_spec:compile_file(File) of
        {ok, _, _} = Ok -> Ok;
        {error, {witness_spec, Diagnostics}} ->
            io:put_chars(user, [witness_spec:format_diagnostic(D) || D <- Diagnostics]),
            error(does_not_compile)
    end.

%% Traces name properties, so each has a name; what is only cut out of groups needs none.
named_entry(#{name := undefined, action := none} = Entry) -> Entry;
named_entry(#{name := Name} = Entry) -> Entry#{name := binary_to_atom(Name)}.

clean(#{map := Map}) -> witness_spec:unload(Map).

named(Kind, Terms, Make) ->
    [{Name, Make(N)} || {N, Name} <- lists:enumerate(proplists:get_value(Kind, Terms, []))].

process(N) -> list_to_pid("<0." ++ integer_to_list(10_000 + N) ++ ".0>").

events(Written, Names) ->
    {Events, _} = lists:mapfoldl(fun(Event, Before) -> timed_event(Event, Before, Names) end, 0, Written),
    Events.

timed_event({at, undefined, Event}, Before, Names) -> {event_of(Event, undefined, Names), Before};
timed_event({at, {Number, Unit}, Event}, Before, Names) ->
    Time = nanoseconds(Number, Unit),
    true = Time >= Before,
    {event_of(Event, Time, Names), Time};
timed_event(Event, Before, Names) -> {event_of(Event, Before + 1, Names), Before + 1}.

expected({Property, Verdict, {at, {Number, Unit}}}) -> {Property, Verdict, {at, nanoseconds(Number, Unit)}};
expected(Verdict) -> Verdict.

nanoseconds(Number, Unit) ->
    {ok, Tokens} = witness_spec_scan:string(iolist_to_binary(io_lib:format("~w ~s", [Number, Unit]))),
    [{integer, _, Time}, {eof, _}] = Tokens,
    Time.

event_of({P, Arrow, Q, {M, F, Args}}, Time, Names) when Arrow =:= '<-'; Arrow =:= '->' ->
    Kind = case Arrow of '<-' -> init; '->' -> fork end,
    {Kind, pid(P, Names), pid(Q, Names), {M, F, named_term(Args, Names)}, Time};
event_of({P, calls, {M, F, Args}}, Time, Names) ->
    {call, pid(P, Names), {M, F, named_term(Args, Names)}, Time};
event_of({P, returns, {_, _, _} = Function, Value}, Time, Names) ->
    {return, pid(P, Names), Function, named_term(Value, Names), Time};
event_of({P, '!', To, Message}, Time, Names) ->
    {send, pid(P, Names), named_term(To, Names), named_term(Message, Names), Time};
event_of({P, '?', Message}, Time, Names) ->
    {recv, pid(P, Names), undefined, named_term(Message, Names), Time};
event_of({P, '**', Reason}, Time, Names) ->
    {exit, pid(P, Names), named_term(Reason, Names), Time}.

pid(Name, Names) ->
    #{Name := Pid} = Names,
    true = is_pid(Pid),
    Pid.

named_term(Atom, Names) when is_atom(Atom) -> maps:get(Atom, Names, Atom);
named_term([Head | Tail], Names) -> [named_term(Head, Names) | named_term(Tail, Names)];
named_term(Tuple, Names) when is_tuple(Tuple) -> list_to_tuple(named_term(tuple_to_list(Tuple), Names));
named_term(Map, Names) when is_map(Map) -> #{named_term(Key, Names) => named_term(Value, Names) || Key := Value <- Map};
named_term(Term, _) -> Term.

specifications() -> lists:sort(filelib:wildcard(filename:join([folder(), "**", "*.hml"]))).

traces_of(File) -> filename:rootname(File) ++ ".traces".

folder() -> filename:join([root(), "examples", "specifications"]).

%% The checkout is the first folder upwards that holds the examples.
root() -> witness_checkout:root(filename:dirname(code:which(?MODULE))).

