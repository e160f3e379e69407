-module(witness_spec_dejavu).
-moduledoc """
Witness against the tests of DejaVu, a monitor for first-order past-time properties of logs.

Each test names a property, a log, and the places of the log at which the property is violated. `m:witness_spec_dejavu_text` writes
the property for Witness, in one or more parts. The violations of all parts have to be at exactly these places.

`test/oracles/dejavu/run` calls `main/0`.
""".

-export([main/0, compare/3, log/2, value/1]).

-export_type([event/0]).
-type event() :: {event, Place :: pos_integer(), Time :: integer(), NameAndArguments :: tuple()}.

-define(TESTS, "src/test/scala/tests").
-define(COMBINATIONS, 1_500_000).  % of values that are looked at
-define(STEPS, 12_000_000).       % combinations times events
-define(BOTH_EVENTS, 5_000).      % of a log that slices and valuations read

-doc """
Compares all tests, or those of which the name begins with `WITNESS_DEJAVU_TEST`. `WITNESS_DEJAVU` is a git directory or a checkout.
The exit code is 1 if a test that can be translated disagrees.
""".
main() ->
    Begin = erlang:monotonic_time(second),
    Dir = os:getenv("WITNESS_DEJAVU"),
    Only = os:getenv("WITNESS_DEJAVU_TEST", ""),
    Tests = [Test || Test <- tests(Dir), lists:prefix(Only, label(Test))],
    [begin io:format("There are no tests in ~ts.~n", [Dir]), halt(1) end || Tests =:= []],
    io:format("~-24ts ~-26ts ~ts~n", ["test", "expected", "result"]),
    Results = [begin
                   Result = compare(Dir, Test),
                   io:format("~-24ts ~-26ts ~ts~n", [label(Test), expectation(Test), describe(Result)]),
                   kind(Result)
               end || Test <- Tests],
    Count = fun(Kind) -> length([Result || Result <- Results, Result =:= Kind]) end,
    io:format("~b tests, ~b s: ~b agree in one run, ~b by slices and by valuations, ~b with instances begun behind violations, "
              "~b with each event given to all values, ~b with quantifiers outside, ~b after asking again, "
              "~b with a value for each valuation, ~b with the values of the log for quantifiers; "
              "~b are outside the fragment, ~b disagree~n",
              [length(Tests), erlang:monotonic_time(second) - Begin
               | [Count(Kind) || Kind <- [one_run, both, begun, repeated, quantified, again, valuations, ground,
                                          outside, differs]]]),
    halt(min(1, Count(differs))).

label(#{folder := Folder, name := Name}) ->
    [Number | _] = string:split(Folder, "_"),
    Number ++ "." ++ binary_to_list(Name).

expectation(#{expected := Expected}) -> short(places(Expected));
expectation(_) -> "".

short(Places) when length(Places) > 5 -> io_lib:format("~ts ... (~b)", [short(lists:sublist(Places, 4)), length(Places)]);
short(Places) -> lists:flatten(lists:join(" ", [integer_to_list(N) || N <- Places])).

kind({Kind, _}) when Kind =:= slices; Kind =:= whole -> one_run;
kind({Kind, _}) -> Kind.

describe({Kind, _}) when Kind =:= slices; Kind =:= whole -> "agrees in one run";
describe({both, _}) -> "agrees by slices and by valuations";
describe({begun, _}) -> "agrees with instances begun behind violations";
describe({repeated, _}) -> "agrees with each event given to all values";
describe({quantified, _}) -> "agrees with quantifiers outside";
describe({valuations, _}) -> "agrees with a value for each valuation";
describe({ground, _}) -> "agrees with the values of the log for quantifiers";
describe({again, _}) -> "agrees after asking again";
describe({outside, Reason}) -> ["outside: ", Reason];
describe({differs, Got}) -> ["DIFFERS: ", Got].

%% Tests.

tests(Dir) ->
    lists:append([tests(Dir, Folder, Source) || {Folder, Source} <- sources(Dir)]).

sources(Dir) ->
    {ok, Listing} = witness_clone:git(Dir, ["ls-tree", "-r", "--name-only", "HEAD", ?TESTS ++ "/"]),
    Names = [string:split(string:slice(Name, length(?TESTS) + 1), "/", all)
             || Name <- string:split(binary_to_list(Listing), "\n", all), Name =/= ""],
    Numbered = lists:sort([{list_to_integer(Number), Folder, Source}
                           || [Folder, Source] <- Names,
                              {match, [Number]} <- [re:run(Source, "^Test([0-9]+)\\.scala$", [{capture, [1], list}])]]),
    [{Folder, Source} || {_, Folder, Source} <- Numbered].

tests(Dir, Folder, Source) ->
    {ok, Text} = file(Dir, Folder, Source),
    Plain = re:replace(Text, ~"//[^\\n]*|/\\*.*?\\*/", "", [global, dotall, {return, binary}]),
    Files = maps:from_list([{Name, File} || [Name, File] <- all(Plain, ~"val +(\\w+) *= *s\"\\$TEST/([^\"]*)\"")]),
    [test(Folder, Name, Body, Files) || [Name, Body] <- all(Plain, ~"@Test def (\\w+)\\(\\)[^{]*\\{(.*?)\\n *\\}")].

all(Text, Pattern) ->
    case re:run(Text, Pattern, [global, dotall, {capture, all_but_first, binary}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

test(Folder, Name, Body, Files) ->
    Test = #{folder => Folder, name => Name},
    case {all(Body, ~"Verify(?:\\.long)?\\((\\w+) *, *(\\w+)"), all(Body, ~"checkResults(?:Brief)?\\((.*)\\)")} of
        {[[Spec, Log]], [[Expected]]} ->
            Test#{spec => maps:get(Spec, Files), log => maps:get(Log, Files),
                  expected => [string:trim(One) || One <- string:split(Expected, ",", all), string:trim(One) =/= ~""]};
        _ -> Test
    end.

%% `10 -- 2` and `3 gc` are about DejaVu's memory: it forgets values that cannot change anything any more.
places(Expected) -> lists:usort([binary_to_integer(One) || One <- Expected, re:run(One, "^[0-9]+$") =/= nomatch]).

compare(_, #{} = Test) when not is_map_key(spec, Test) -> {outside, "checks that DejaVu refuses the property"};
compare(Dir, #{folder := Folder, spec := Spec, log := Log, expected := Expected}) ->
    case lists:any(fun(One) -> string:find(One, ~"oom") =/= nomatch end, Expected) of
        true -> {outside, "checks that DejaVu runs out of memory"};
        false ->
            case {file(Dir, Folder, Spec), file(Dir, Folder, Log)} of
                {{ok, Text}, {ok, Lines}} ->
                    HasTimes = string:find(Log, ".timed.") =/= nomatch,
                    compare(Text, log(Lines, HasTimes), places(Expected));
                {error, _} -> {outside, "the specification is not in the repository"};
                {_, error} -> {outside, "the log is not in the repository"}
            end
    end.

-doc "How the properties of a specification read a log, if they are violated at the places expected.".
-spec compare(binary(), [event()], Expected :: [pos_integer()]) ->
    {slices | whole | ground | begun | valuations | both | repeated | quantified | again, Places :: [pos_integer()]}
  | {outside | differs, iodata()}.
compare(Text, Log, Expected) ->
    Properties = witness_spec_dejavu_parse:properties(Text),
    case judge(fun witness_spec_dejavu_text:translate/1, Properties, Log, Expected) of
        {outside, Reason} ->
            case judge(fun(Property) -> witness_spec_dejavu_text:ground(witness_spec_dejavu_ground:property(Property, Log)) end,
                       Properties, Log, Expected) of
                {outside, Other} -> {outside, [Reason, "; ", Other]};
                {differs, _} = Differs -> Differs;
                {_, Places} -> {ground, Places}
            end;
        Other -> Other
    end.

judge(Translate, Properties, Log, Expected) ->
    try [[both_ways(Part, Log) || Part <- parts(Translate(Property))] || Property <- Properties] of
        Each ->
            Found = lists:append(Each),
            All = lists:usort(lists:append([Places || {_, Places} <- Found])),
            Kinds = [Kind || {Kind, _} <- Found],
            Lowest = [again, quantified, repeated, begun, valuations, slices, whole, both],
            case [Kind || Kind <- Lowest, lists:member(Kind, Kinds)] of
                _ when All =/= Expected -> {differs, [short(All), " instead of ", short(Expected)]};
                [Kind | _] -> {Kind, All}
            end
    catch
        throw:{Kind, Reason} when Kind =:= outside; Kind =:= differs -> {Kind, Reason}
    end.

parts({ok, Parts}) -> Parts;
parts({outside, _} = Outside) -> throw(Outside).

-doc "The events of a log. In a log with times, the last column is the time in seconds.".
-spec log(binary(), HasTimes :: boolean()) -> [event()].
log(Text, HasTimes) ->
    Lines = [string:trim(Line) || Line <- string:split(Text, "\n", all)],
    [event(N, [string:trim(Field) || Field <- string:split(Line, ",", all)], HasTimes)
     || {N, Line} <- lists:enumerate([Line || Line <- Lines, Line =/= ~""])].

event(N, [Name | Arguments], false) -> {event, N, N, list_to_tuple([Name | [value(A) || A <- Arguments]])};
event(N, [Name | Arguments], true) ->
    {event, N, binary_to_integer(lists:last(Arguments)), list_to_tuple([Name | [value(A) || A <- lists:droplast(Arguments)]])}.

-doc "What looks like a number is one.".
-spec value(binary()) -> integer() | binary().
value(Text) ->
    try binary_to_integer(Text)
    catch error:badarg -> Text
    end.

%% Violations: all places.

violations(#{reads := Reads} = Part, Log) ->
    Times = [Time || {event, _, Time, _} <- Log],
    %% A window of Witness ends at the greatest time so far. If the times of the log go back, they are numbers in its events.
    Clock = case Times =:= lists:sort(Times) of true -> watch; false -> told end,
    witness_spec_translated:monitored(witness_spec_dejavu_text:text("dejavu", Part#{clock => Clock}), "WITNESS_DEJAVU_TEST", fun(Module) ->
        case Reads of
            every -> of_combinations(Module, Part, Log);
            valuations -> {Reads, [Place || {_, Place} <- run(Module, [{log}], Log)]};
            {closure, Event} ->
                Below = [Y || {event, _, _, {Name, _, Y}} <- Log, Name =:= Event],
                %% A value cannot be the keys of two maps together.
                [throw({outside, "the transitive closure of an event with two values above one"})
                 || length(lists:uniq(Below)) =/= length(Below)],
                {again, [Place || {_, Place} <- again(Module, [{1}], Log)]};
            _ -> {Reads, [Place || {_, Place} <- run(Module, [none], Log)]}
        end
    end).

%% Slices can often be valuations, too. Then both have to say the same. A `previously` looks at each valuation with each event, so
%% not in a long log.
both_ways(#{reads := slices} = Part, Log) when length(Log) =< ?BOTH_EVENTS ->
    {slices, Places} = violations(Part, Log),
    case witness_spec_dejavu_text:is_about_valuations(Part) of
        false -> {slices, Places};
        true ->
            {valuations, Others} = violations(Part#{reads := valuations}, Log),
            [throw({differs, [short(Others), " as valuations instead of ", short(Places), " as slices"]})
             || lists:usort(Others) =/= lists:usort(Places)],
            {both, Places}
    end;
both_ways(Part, Log) -> violations(Part, Log).

%% The places of the violations, with the values of their slices. Each key gets each event, or those that concern it. The event
%% `begun` begins an instance behind a violation, if the property reads it.
run(Module, Keys, Log) when is_list(Keys) -> run(Module, fun(_) -> Keys end, Log);
run(Module, Keys, Log) ->
    Signature = {dejavu, log, []},
    {ok, Machine} = witness_monitor_machine:new(#{monitor => {Module, 1}, process => self(), signature => Signature, explain => 1,
                                                  max_slices => 1_000_000}),
    {[], {ok, Begun}} = witness_monitor_machine:run([{init, self(), undefined, Signature, -1}], Machine),
    {Found, Last} = lists:mapfoldl(
        fun({event, Place, Time, Event}, Before) ->
                {Outcomes, {ok, Next}} = witness_monitor_machine:run(
                    [received({event, Place, Time, Event, Key}, Time) || Key <- Keys(Event)], Before),
                Violated = violated(Outcomes),
                {[], {ok, After}} = witness_monitor_machine:run(
                    [received(list_to_tuple([begun | Values]), Time) || {Values, _} <- Violated], Next),
                {Violated, After}
        end, Begun, Log),
    {Rest, _} = witness_monitor_machine:finish(complete, Last),
    lists:append([violated(Rest) | Found]).

received(Message, Time) -> {recv, self(), undefined, Message, Time * 1_000_000_000}.

violated(Outcomes) -> [Violation || {_, _} = Violation <- [place(Outcome) || Outcome <- Outcomes]].

place(#{verdict := no, slice := Slice, event := #{event := {recv, _, _, {event, Place, _, _, _}, _}}}) ->
    {[Value || {_, Value} <- Slice], Place};
place(#{verdict := yes}) -> yes;
place({satisfied, _}) -> yes;
place(Other) -> error({unexpected, Other}).

%% Each combination of values that the property may be about gets each event.

of_combinations(Module, #{variables := Variables} = Part, Log) ->
    All = [N || {event, N, _, _} <- Log],
    Domains = [{Variable, domain(Variable, Part, Log)} || {_, Variable, _} <- Variables],
    Events = [{Event, occurrences(Event, Log)} || Event <- witness_spec_dejavu_text:events(Part)],
    Combinations = all_combinations(Part, Domains, Events),
    {Known, Open} = lists:partition(fun({_, Value}) -> Value =/= unknown end,
                                    [{Values, known(Part, Values, Events)} || Values <- Combinations]),
    Keys = [list_to_tuple([1 | Values]) || {Values, unknown} <- Open],
    IsLoop = witness_spec_dejavu_text:is_loop(Part),
    Violated = case length(Keys) * length(Log) =< ?STEPS of
        true when IsLoop -> again(Module, Keys, Log);
        true -> run(Module, Keys, Log);
        false ->
            [throw({outside, io_lib:format("~b combinations of values in ~b events", [length(Keys), length(Log)])})
             || not witness_spec_dejavu_text:may_skip(Part)],
            run(Module, concerned(Part, Keys), Log)
    end,
    Found = maps:groups_from_list(fun({[_ | Values], _}) -> Values end, fun({_, Place}) -> Place end, Violated),
    Table = maps:from_list([{Values, case Value of true -> []; false -> All; unknown -> maps:get(Values, Found, []) end}
                            || {Values, Value} <- Known ++ Open]),
    case is_universal(Part) of
        false -> {quantified, quantified(Variables, Domains, [], Table)};
        true ->
            {case IsLoop of
                 true -> again;
                 false when Variables =:= [] -> whole;
                 false -> repeated
             end, lists:usort(lists:append(maps:values(Table)))}
    end.

is_universal(#{variables := Variables}) -> lists:all(fun({Quantifier, _, _}) -> Quantifier =:= forall end, Variables).

%% If there are too many, those for which the log has all events that a violation needs. It is not violated for the others.
all_combinations(#{formula := F} = Part, Domains, Events) ->
    Sizes = [length(Values) || {_, Values} <- Domains],
    Number = lists:foldl(fun(Size, Product) -> Size * Product end, 1, Sizes),
    case Number =< ?COMBINATIONS of
        true -> witness_spec_translated:combinations([Values || {_, Values} <- Domains]);
        false ->
            Needed = witness_spec_dejavu_text:necessary(witness_spec_dejavu_text:negate(F)),
            Variables = [Variable || {Variable, _} <- Domains],
            [throw({outside, io_lib:format("~b combinations of values", [Number])})
             || not is_universal(Part) orelse Variables -- lists:append([variables(Event) || Event <- Needed]) =/= []],
            Tables = [{variables(Event), rows(Event, proplists:get_value(Event, Events))} || Event <- Needed],
            [[map_get(Variable, Row) || Variable <- Variables] || Row <- joined(Tables, [], [#{}], Number)]
    end.

variables({event, _, Arguments, Locals, _}) -> [Variable || {var, Variable} <- Arguments, not lists:member(Variable, Locals)].

%% The keys of which an event has a value.
concerned(#{variables := Variables} = Part, Keys) ->
    Patterns = witness_spec_dejavu_text:events(Part),
    Index = #{Pattern => maps:groups_from_list(fun(Key) ->
        Given = maps:from_list(lists:zip([Variable || {_, Variable, _} <- Variables], tl(tuple_to_list(Key)))),
        maps:with(variables(Pattern), Given)
    end, Keys) || Pattern <- Patterns},
    fun(Event) ->
        lists:uniq([Key || {event, Name, Arguments, _, _} = Pattern <- Patterns,
                           Name =:= element(1, Event), length(Arguments) + 1 =:= tuple_size(Event),
                           Row <- rows(Pattern, occurrences(Pattern, [{event, 1, 1, Event}])),
                           Key <- maps:get(Row, map_get(Pattern, Index), [])])
    end.

%% The values of the variables in the events of the log.
rows({event, _, Arguments, Locals, _}, Occurrences) ->
    Names = [Argument || Argument <- Arguments, not is_local(Argument, Locals)],
    [maps:from_list([{Variable, Value} || {{var, Variable}, Value} <- Pairs])
     || Values <- maps:keys(Occurrences), Pairs <- [lists:zip(Names, Values)],
        lists:all(fun({{value, Value}, Other}) -> Value =:= Other; (_) -> true end, Pairs)].

%% The rows that agree about all variables that they share; next comes a table that shares most with those before.
joined([], _, Rows, _) -> Rows;
joined(Tables, Known, Rows, Number) ->
    [{_, {Variables, Next} = Table} | _] =
        lists:sort(fun({One, _}, {Other, _}) -> One >= Other end,
                   [{{length(Names -- (Names -- Known)), -length(Of)}, Whole} || {Names, Of} = Whole <- Tables]),
    Shared = Variables -- (Variables -- Known),
    Index = maps:groups_from_list(fun(Row) -> maps:with(Shared, Row) end, Next),
    Both = [maps:merge(Row, Other) || Row <- Rows, Other <- maps:get(maps:with(Shared, Row), Index, [])],
    [throw({outside, io_lib:format("~b combinations of values", [Number])}) || length(Both) > ?COMBINATIONS],
    joined(lists:delete(Table, Tables), lists:usort(Known ++ Variables), Both, Number).

%% A round finds the next violation of each key.
again(_, [], _) -> [];
again(Module, Keys, Log) ->
    Found = run(Module, Keys, Log),
    Found ++ again(Module, [list_to_tuple([Place + 1 | Values]) || {[_ | Values], Place} <- Found], Log).

%% The values that the events have where the variable is, those it is compared with, and one that no event has.
domain(Variable, Part, Log) ->
    Places = [{Name, length(Arguments) + 1, I + 1}
              || {event, Name, Arguments, _, _} <- witness_spec_dejavu_text:events(Part),
                 {I, {var, Other}} <- lists:enumerate(Arguments), Other =:= Variable],
    lists:usort([element(I, Event) || {event, _, _, Event} <- Log, {Name, Size, I} <- Places,
                                      element(1, Event) =:= Name, tuple_size(Event) =:= Size]
                ++ constants(Part)) ++ [{unseen, list_to_binary(Variable)}].

constants(Term) when is_map(Term) -> constants(maps:values(Term));
constants({value, Value}) -> [Value];
constants(Term) when is_tuple(Term) -> constants(tuple_to_list(Term));
constants([Head | Tail]) -> constants(Head) ++ constants(Tail);
constants(_) -> [].

%% What the events of the log have in the places of this one that are no local variables.
occurrences({event, Name, Arguments, Locals, _}, Log) ->
    Places = [I + 1 || {I, A} <- lists:enumerate(Arguments), not is_local(A, Locals)],
    maps:from_keys([[element(I, Event) || I <- Places]
                    || {event, _, _, Event} <- Log, element(1, Event) =:= Name, tuple_size(Event) =:= length(Arguments) + 1], []).

is_local({var, Variable}, Locals) -> lists:member(Variable, Locals);
is_local(_, _) -> false.

%% What follows from it that some events never happen with these values.
known(#{formula := F, variables := Variables}, Values, Events) ->
    Given = maps:from_list(lists:zip([Variable || {_, Variable, _} <- Variables], Values)),
    Happens = fun({event, _, Arguments, Locals, _} = Event) ->
                      {Event, Occurrences} = lists:keyfind(Event, 1, Events),
                      Key = [case A of {value, Value} -> Value; {var, Variable} -> maps:get(Variable, Given) end
                             || A <- Arguments, not is_local(A, Locals)],
                      is_map_key(Key, Occurrences) andalso unknown
              end,
    witness_spec_dejavu_text:evaluate(F, Happens, always).

quantified([], _, Values, Table) -> maps:get(lists:reverse(Values), Table);
quantified([{Quantifier, Variable, _} | Others], [{Variable, Domain} | Domains], Values, Table) ->
    Places = [ordsets:from_list(quantified(Others, Domains, [Value | Values], Table)) || Value <- Domain],
    case Quantifier of
        forall -> ordsets:union(Places);
        exists -> ordsets:intersection(Places)
    end.

%% Files.

file(Dir, Folder, Name) ->
    Path = filename:join([?TESTS, Folder, Name]),
    case witness_clone:git(Dir, ["cat-file", "blob", ["HEAD:", Path]]) of
        {ok, _} = Found -> Found;
        error -> error
    end.
