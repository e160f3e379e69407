-module(witness_spec_monpoly).
-moduledoc """
Witness against the regression tests of MonPoly, a monitor for first-order temporal logic with aggregations.

Each invocation in the tests has a formula, a log, and the values of the free variables with which the formula holds at each time point.
`m:witness_spec_monpoly_text` writes the formula as a property. Witness is asked for each time point and each combination of values
whether it holds; the answers have to be the printed ones.

`test/oracles/monpoly/run` calls `main/0`.
""".

-export([main/0, holds/4]).

-define(TESTS, "tests").
-define(STEPS, 20_000_000).  % combinations times time points times events
-define(LAST, 1_000_000_000). % seconds from the last time point to the one that MonPoly adds

-type values() :: [integer() | float() | binary() | any].
-type invocation() :: #{name := string(), options := [binary()], formula := binary(), signature := binary(), log := binary(),
                        loaded := binary(), output := [binary()]}.

-doc """
Compares all invocations, or those of which the name begins with `WITNESS_MONPOLY_TEST`. `WITNESS_MONPOLY` is a git directory or a
checkout. The exit code is 1 if one that can be translated disagrees.
""".
main() ->
    Begin = erlang:monotonic_time(second),
    Dir = os:getenv("WITNESS_MONPOLY"),
    Only = os:getenv("WITNESS_MONPOLY_TEST", ""),
    Invocations = [Invocation || #{name := Name} = Invocation <- invocations(Dir), lists:prefix(Only, Name)],
    [begin io:format("There are no tests in ~ts.~n", [Dir]), halt(1) end || Invocations =:= []],
    Results = [begin
                   Result = compare(Invocation),
                   io:format("~-28ts ~ts~n", [maps:get(name, Invocation), describe(Result)]),
                   Result
               end || Invocation <- Invocations],
    Agree = [Kind || {agrees, Kind, _} <- Results],
    io:format("~b invocations, ~b s: ~b agree, ~b are outside, ~b disagree~n",
              [length(Results), erlang:monotonic_time(second) - Begin, length(Agree), length([1 || {outside, _} <- Results]),
               length([1 || {differs, _} <- Results])]),
    [io:format("  ~4b agree: ~ts~n", [Count, Kind]) || {Count, Kind} <- counts(Agree)],
    [io:format("  ~4b outside: ~ts~n", [Count, Reason]) || {Count, Reason} <- counts([Reason || {outside, Reason} <- Results])],
    Sums = [Sum || {agrees, _, Sum} <- Results],
    [Answers, Yes, Early] = [lists:sum([maps:get(Key, Sum) || Sum <- Sums]) || Key <- [answers, yes, early]],
    io:format("  ~b answers agree, ~b of them yes; Witness decides at ~b time points that MonPoly does not print~n",
              [Answers, Yes, Early]),
    [io:format("  ~4b agree with ~ts~n", [Count, Use]) || {Count, Use} <- counts(lists:append([Uses || #{uses := Uses} <- Sums]))],
    halt(min(1, length([1 || {differs, _} <- Results]))).

counts(All) -> lists:reverse(lists:sort([{length([1 || Other <- All, Other =:= One]), One} || One <- lists:usort(All)])).

describe({agrees, Kind, #{answers := Answers, yes := Yes}}) ->
    io_lib:format("agrees: ~ts, ~b answers, ~b of them yes", [Kind, Answers, Yes]);
describe({outside, Reason}) -> ["outside: ", Reason];
describe({differs, Difference}) -> ["DIFFERS: ", Difference].

%% Invocations.

-spec invocations(string()) -> [invocation()].
invocations(Dir) ->
    {ok, Listing} = witness_clone:git(Dir, ["ls-tree", "-r", "--name-only", "HEAD", ?TESTS ++ "/"]),
    Folders = lists:usort([Folder || File <- string:split(binary_to_list(Listing), "\n", all),
                                     [_, Folder, "run.t"] <- [string:split(File, "/", all)]]),
    lists:append([numbered(runs(Dir, Folder)) || Folder <- Folders]).

runs(Dir, Folder) ->
    {ok, Text} = file(Dir, Folder, ~"run.t"),
    commands(binary:split(Text, ~"\n", [global]), #{dir => Dir, folder => Folder, saved => <<>>}).

%% Commands begin with `$`, and what they print is indented.
commands([], _) -> [];
commands([<<"  $ echo ", Echo/binary>> | Lines], Known) ->
    {match, [Formula, File]} = re:run(Echo, ~"^['\"](.*)['\"] > (\\S+)$", [{capture, all_but_first, binary}]),
    commands(Lines, Known#{File => Formula});
commands([<<"  $ monpoly ", Command/binary>> | Lines], #{folder := Folder, saved := Saved} = Known) ->
    {Output, Rest} = lists:splitwith(fun(Line) -> re:run(Line, ~"^  [^$]") =/= nomatch end, Lines),
    Options = [Word || Word <- binary:split(Command, ~" ", [global]), Word =/= <<>>],
    File = option(~"-formula", Options),
    Log = content(option(~"-log", Options), Known),
    %% The log of which the state was saved before.
    Loaded = case lists:member(~"-load", Options) of true -> Saved; false -> <<>> end,
    Invocation = #{name => filename:basename(Folder, ".t") ++ "." ++ binary_to_list(filename:basename(File, ~".mfotl")),
                   options => Options, formula => content(File, Known), signature => content(option(~"-sig", Options), Known),
                   log => Log, loaded => Loaded, output => [string:trim(Line) || Line <- Output]},
    [Invocation | commands(Rest, case string:find(Log, ~">save_state") of nomatch -> Known; _ -> Known#{saved := Log} end)];
commands([_ | Lines], Known) -> commands(Lines, Known).

option(Name, [Name, Value | _]) -> Value;
option(Name, [_ | Options]) -> option(Name, Options);
option(_, []) -> none.

content(none, _) -> <<>>;
content(File, #{dir := Dir, folder := Folder} = Known) ->
    case Known of
        #{File := Text} -> Text;
        #{} ->
            {ok, Text} = file(Dir, Folder, File),
            Text
    end.

%% Several invocations may have one formula.
numbered(Invocations) ->
    [begin
         Same = [J || {J, #{name := Other}} <- lists:enumerate(Invocations), Other =:= Name, J =< I],
         Invocation#{name := Name ++ [["/", integer_to_list(length(Same))] || length(Same) > 1]}
     end || {I, #{name := Name} = Invocation} <- lists:enumerate(Invocations)].

%% What is printed: `@TIME (time point N): VALUES`.
printed(Output) ->
    maps:from_list([{binary_to_integer(N), {binary_to_integer(Time), tuples(Values)}}
                    || Line <- Output,
                       {match, [Time, N, Values]} <- [re:run(Line, ~"^@(\\d+) \\(time point (\\d+)\\): (.*)$",
                                                             [{capture, all_but_first, binary}])]]).

%% How many time points had been read when the values were printed: `-verbose` tells it.
known(Output) -> known(Output, 0).

known([], _) -> #{};
known([Line | Lines], Read) ->
    case {re:run(Line, ~"^At time point (\\d+):", [{capture, all_but_first, binary}]), maps:keys(printed([Line]))} of
        {{match, [N]}, _} -> known(Lines, binary_to_integer(N) + 1);
        {nomatch, [N]} when Read > 0 -> (known(Lines, Read))#{N => Read};
        _ -> known(Lines, Read)
    end.

tuples(~"true") -> [[]];
tuples(~"false") -> [];
tuples(Text) ->
    case re:run(Text, ~"\\(([^()]+)\\)", [global, {capture, all_but_first, binary}]) of
        {match, Found} -> [[value(Field) || Field <- binary:split(Tuple, ~",", [global])] || [Tuple] <- Found];
        nomatch -> []
    end.

value(<<$", Quoted/binary>>) -> binary:part(Quoted, 0, byte_size(Quoted) - 1);
value(Text) when Text =:= ~"inf"; Text =:= ~"-inf" -> throw({outside, "infinite numbers, which Erlang has not"});
value(Text) ->
    try binary_to_integer(Text)
    catch error:badarg -> binary_to_float(case binary:last(Text) of $. -> <<Text/binary, $0>>; _ -> Text end)
    end.

%% Comparison.

-spec compare(invocation()) -> {agrees, Kind :: string(), map()} | {outside, string()} | {differs, iodata()}.
compare(#{options := Options, output := Output} = Invocation) ->
    case {lists:member(~"-check", Options), [Line || Line <- Output, is_refusal(Line)]} of
        {true, _} -> {outside, "a check of types, without a log"};
        {false, [Line | _]} -> {outside, refusal(Line)};
        {false, []} ->
            try translated(Invocation)
            catch throw:{outside, Reason} -> {outside, lists:flatten(Reason)}
            end
    end.

is_refusal(Line) -> refusal(Line) =/= none.

refusal(Line) ->
    case [Reason || {Words, Reason} <- [{"negative or empty interval", "MonPoly refuses an interval"},
                                        {"NOT monitorable", "MonPoly refuses the formula"},
                                        {"Type error", "MonPoly refuses the types"}],
                    string:find(Line, Words) =/= nomatch] of
        [Reason | _] -> Reason;
        [] -> none
    end.

translated(#{formula := Text, options := Options, output := Output} = Invocation) ->
    Formula = witness_spec_monpoly_parse:formula(Text),
    Signature = witness_spec_monpoly_parse:signature(maps:get(signature, Invocation)),
    Loaded = witness_spec_monpoly_parse:log(maps:get(loaded, Invocation), Signature),
    Log = Loaded ++ witness_spec_monpoly_parse:log(maps:get(log, Invocation), Signature),
    Printed = printed(Output),
    Known = known(Output),
    HasFuture = has_operator([next, until], Formula),
    %% At the end MonPoly adds a time point, so that there is an answer for each of the others.
    Last = [{lists:last([0 | [Time || {Time, _} <- Log]]) + ?LAST, []}
            || HasFuture, not lists:member(~"-nonewlastts", Options)],
    IsVerbose = lists:member(~"-verbose", Options),
    Points = lists:zip(lists:seq(0, length(Log) - 1), Log),
    %% Time points without values are printed with `-verbose` only.
    Expected = case IsVerbose of
        true -> [{N, Values} || N := {_, Values} <- Printed];
        false -> [{N, case Printed of #{N := {_, Values}} -> Values; #{} -> [] end} || {N, _} <- Points]
    end,
    [error({times, N}) || N := {Time, _} <- Printed, not lists:member(Time, [Of || {I, {Of, _}} <- Points, I =:= N])],
    Places = [N || {N, _} <- Expected],
    Order = witness_spec_monpoly_parse:order(Text),
    Sorted = [{N, [[Value || {_, Value} <- lists:sort(lists:zip(Order, Tuple))] || Tuple <- Values]} || {N, Values} <- Expected],
    {Variables, Answers, Property} = answers(Formula, Log ++ Last, length(Loaded), [{N, maps:get(N, Known, all)} || N <- Places],
                                             lists:append([Values || {_, Values} <- Sorted])),
    [throw({outside, "MonPoly decides no time point"}) || [1 || {_, _, Answer} <- Answers, Answer =/= undecided] =:= []],
    case differences(Answers, maps:from_list(Sorted), Printed) of
        [] ->
            Others = [N || {N, _} <- Points, not lists:member(N, Places)],
            {_, Early, _} = answers(Formula, Log, 0, [{N, all} || N <- Others], []),
            {agrees, kind(Formula), #{answers => length(Answers), yes => length([1 || {_, _, yes} <- Answers]),
                                      early => length(Others -- [N || {N, _, undecided} <- Early]), uses => uses(Property)}};
        [{N, Values, Answer, Wanted} | More] ->
            {differs, io_lib:format("at time point ~b with ~tw: ~w instead of ~w; ~b more",
                                    [N, lists:zip(Variables, Values), Answer, Wanted, length(More)])}
    end.

%% A time point that is not printed is one without values, or one that MonPoly cannot decide either.
differences(Answers, Expected, Printed) ->
    [{N, Values, Answer, Wanted}
     || {N, Values, Answer} <- Answers,
        Wanted <- [case lists:any(fun(Tuple) -> matches(Values, Tuple) end, maps:get(N, Expected)) of true -> yes; false -> no end],
        Answer =/= Wanted, not (Answer =:= undecided andalso not is_map_key(N, Printed))].

matches([], []) -> true;
matches([any | Values], [_ | Tuple]) -> matches(Values, Tuple);
matches([Value | Values], [Printed | Tuple]) -> Value == Printed andalso matches(Values, Tuple).

has_operator(Operators, F) when is_tuple(F) ->
    lists:member(element(1, F), Operators) orelse lists:any(fun(Part) -> has_operator(Operators, Part) end, tuple_to_list(F));
has_operator(Operators, [_ | _] = Parts) -> lists:any(fun(Part) -> has_operator(Operators, Part) end, Parts);
has_operator(_, _) -> false.

kind(F) ->
    Kinds = [{aggregate, "aggregation"}, {until, "future"}, {next, "future"}, {since, "past"}, {previous, "past"}],
    case lists:uniq([Kind || {Operator, Kind} <- Kinds, has_operator([Operator], F)]) of
        [] -> "present only";
        Found -> lists:flatten(lists:join(", ", Found))
    end.

%% The constructs of Witness in a property.
uses(Text) ->
    [Name || {Name, Pattern} <- [{"once", "= once (?!within 1 event )"}, {"since", "[)] since (?![{]_ . [{]in)"},
                                 {"previously", "= previously "}, {"count", "= count "}, {"sum", "= sum "}, {"min of", "= min .* of "}, {"max of", "= max .* of "},
                                 {"mean", "= mean "}, {"within for once and since", "(once|since) within (?!1 event )"},
                                 {"within for a count, sum, min, max or mean", "= (count|sum|min|max|mean) within "},
                                 {"within before a formula", "> within "}, {"during", "\\] during "}, {"at", "[}] at T"},
                                 {"parameters", "R\\d+\\(Seen"}, {"and between formulas", "[)] and min|tt.* and min"},
                                 {"max and [...]", "max R"}],
             re:run(Text, Pattern) =/= nomatch].

-doc """
Whether a formula holds, at each time point and for each combination of values; the results of aggregations are `any`. `Given` has
further values to ask for.
""".
-spec holds(Formula :: binary(), Signature :: binary(), Log :: binary(), Given :: [values()]) ->
    {Variables :: [string()], [{N :: non_neg_integer(), values(), yes | no | undecided}]}.
holds(Formula, Signature, Log, Given) ->
    Points = witness_spec_monpoly_parse:log(Log, witness_spec_monpoly_parse:signature(Signature)),
    {Variables, Answers, _} = answers(witness_spec_monpoly_parse:formula(Formula), Points, 0,
                                      [{N, all} || N <- lists:seq(0, length(Points) - 1)], Given),
    {Variables, Answers}.

%% The answers at these time points, also for the given values. For each of them, so many time points are read; behind the first
%% `Loaded` ones the state is saved and loaded.
answers(Formula, Log, Loaded, Places, Given) ->
    Domains = witness_spec_monpoly_text:domains(Formula, Log),
    Times = [Time || {Time, _} <- Log],
    Spread = has_operator([aggregate], Formula) andalso lists:uniq(Times) =/= Times,
    #{free := Free, determined := Determined, text := Text} =
        witness_spec_monpoly_text:translate(Formula, Domains, #{spread => Spread}),
    Events = events(Log, Spread),
    Read = fun(all) -> parts(Loaded, Events); (Number) -> parts(Loaded, before(Number, Events)) end,
    Base = [case lists:member(Variable, Determined) of true -> [any]; false -> maps:get(Variable, Domains) end || Variable <- Free],
    Typed = [lists:zipwith(fun typed/2, Tuple, Base) || Tuple <- Given],
    Combinations = lists:foldl(fun(Values, Product) -> Product * length(Values) end, 1, Base),
    [throw({outside, "too many combinations of values"}) || Combinations * length(Places) * length(Events) > ?STEPS],
    Asked = lists:usort(witness_spec_translated:combinations(Base) ++ Typed
                        ++ [lists:zipwith(fun(_, [any]) -> any; (Value, _) -> Value end, Tuple, Base) || Tuple <- Typed]),
    Found = witness_spec_translated:monitored(Text, "WITNESS_MONPOLY_TEST", fun(Module) ->
        [{N, Values, answer(Module, [N | Values], Read(Number))} || {N, Number} <- Places, Values <- Asked]
    end),
    {Free, Found, Text}.

typed(Value, Values) when is_integer(Value) ->
    case lists:any(fun is_float/1, Values) of
        true -> float(Value);
        false -> Value
    end;
typed(Value, _) -> Value.

%% A time point is a group of events: its start, its tuples, its end.
events(Log, Spread) ->
    [{recv, self(), undefined, Message, Seconds * 1_000_000_000 + case Spread of true -> N; false -> 0 end}
     || {N, {Seconds, Facts}} <- lists:zip(lists:seq(0, length(Log) - 1), Log),
        Message <- [{in, N, start} | [{in, N, list_to_tuple([Name | Values])} || {Name, Values} <- Facts] ++ [{point, N}]]].

before(Number, Events) -> lists:takewhile(fun({recv, _, _, Message, _}) -> element(2, Message) < Number end, Events).

parts(0, Events) -> [Events];
parts(Loaded, Events) ->
    First = before(Loaded, Events),
    [First, lists:nthtail(length(First), Events)].

answer(Module, Arguments, [Events | Parts]) ->
    Signature = {monpoly, log, Arguments},
    Spec = #{monitor => {Module, 1}, process => self(), signature => Signature, explain => 1},
    {ok, Machine} = witness_monitor_machine:new(Spec),
    run([[{init, self(), undefined, Signature, -1} | Events] | Parts], Machine, Spec).

run([Events | Parts], Machine, Spec) ->
    case {witness_monitor_machine:run(Events, Machine), Parts} of
        {{_, {decided, Final}}, _} -> verdict(Final);
        {{_, {ok, Next}}, []} ->
            {_, Final} = witness_monitor_machine:finish(stopped, Next),
            verdict(Final);
        {{_, {ok, Next}}, _} ->
            Saved = term_to_binary(witness_monitor_machine:save(Next)),
            {ok, Loaded} = witness_monitor_machine:load(binary_to_term(Saved), Spec),
            run(Parts, Loaded, Spec)
    end.

verdict({satisfied, _}) -> yes;
verdict(#{verdict := yes}) -> yes;
verdict(#{verdict := no}) -> no;
verdict(#{verdict := inconclusive, reason := Reason}) when Reason =:= stopped; Reason =:= pending -> undecided;
verdict(Other) -> error({unexpected, Other}).

%% Files.

file(Dir, Folder, Name) -> witness_clone:git(Dir, ["cat-file", "blob", ["HEAD:", filename:join([?TESTS, Folder, Name])]]).
