-module(witness_spec_pobserve).
-moduledoc """
Witness against the regression tests of PObserve, which checks logs by monitors in the language P.

Each test is a log. A bad log comes with the time and key of each first violation. `test/oracles/pobserve` has the properties of
Witness. The lines become a log of Witness, which has to have exactly these violations.

`test/oracles/pobserve/run` calls `main/0`.
""".

-export([main/0, events/2, violations/2, file/1]).
-export_type([property/0, event/0, place/0]).

-define(LOGS, "Src/PObserve/PObserveRegressionTesting/src/resources/logs/unit-test-logs").
-define(WAIT_MS, 600_000).

-doc "The name of a file in `test/oracles/pobserve`.".
-type property() :: bank | locks | increasing | alternating | counts | pairs.
-doc "A time has milliseconds, and what orders the events of one of these.".
-type event() :: {{Milliseconds :: integer(), non_neg_integer()}, Key :: integer(),
                  {send | recv, Process :: unicode:chardata(), Message :: tuple()}}.
-doc "When a key is violated.".
-type place() :: {Milliseconds :: integer(), Key :: integer()}.

-doc """
Compares all logs, or those with names that begin with `WITNESS_POBSERVE_LOG`. `WITNESS_POBSERVE` is a git directory or a checkout.
The exit code is 1 if a log that is there disagrees.
""".
main() ->
    Begin = erlang:monotonic_time(second),
    Dir = os:getenv("WITNESS_POBSERVE"),
    Only = os:getenv("WITNESS_POBSERVE_LOG", ""),
    Logs = [Log || {Name, _} = Log <- logs(Dir), lists:prefix(Only, Name)],
    [begin io:format("There are no logs in ~ts.~n", [Dir]), halt(1) end || Logs =:= []],
    io:format("~-42ts ~6ts ~9ts ~10ts  ~ts~n", ["log", "events", "goes back", "violations", "result"]),
    Results = [begin
                   Result = compare(Dir, Log),
                   io:format("~-42ts ~ts~n", [element(1, Log), describe(Result)]),
                   Result
               end || Log <- Logs],
    summary(length(Logs), [Result || #{} = Result <- Results], erlang:monotonic_time(second) - Begin).

describe(absent) -> "absent: the clone lacks a file of it";
describe(#{events := Events, back := Back, expected := Expected, later := Later, wrong := Wrong}) ->
    io_lib:format("~6b ~6b ms ~10b  ~ts~ts",
                  [Events, Back, length(Expected),
                   case Wrong of [] -> "agrees"; _ -> ["DIFFERS: ", Wrong] end,
                   case Later of 0 -> ""; _ -> io_lib:format("; further violations of the same keys: ~b", [Later]) end]).

summary(All, Results, Seconds) ->
    Count = fun(F) -> length([Result || Result <- Results, F(Result)]) end,
    Places = fun(Of) -> lists:sum([length([Place || Place <- map_get(Of, Result), lists:member(Place, map_get(expected, Result))])
                                   || Result <- Results]) end,
    Differing = Count(fun(#{wrong := Wrong}) -> Wrong =/= [] end),
    Good = Count(fun(#{expected := Expected}) -> Expected =:= [] end),
    io:format("~b logs, ~b s: ~b agree, ~b disagree, ~b absent; ~b of ~b violations at their time and key~n",
              [All, Seconds, length(Results) - Differing, Differing, All - length(Results), Places(found), Places(expected)]),
    io:format("A property that is always satisfied agrees with ~b logs. One that is violated by the first event of each "
              "key has the verdict of ~b logs and ~b of the places, and agrees with ~b.~n",
              [Good, length(Results) - Good, Places(first),
               Count(fun(#{expected := Expected, first := First}) -> Expected =:= First end)]),
    halt(min(1, Differing)).

%% Tests.

%% Each log with the paths of its files.
logs(Dir) ->
    {ok, Listing} = witness_clone:git(Dir, ["ls-tree", "-r", "--name-only", "HEAD", ?LOGS ++ "/"]),
    Paths = [{filename:basename(filename:rootname(hd(Log))), Path}
             || Path <- string:lexemes(binary_to_list(Listing), "\n"),
                [Kind, _ | Log] <- [filename:split(string:slice(Path, length(?LOGS) + 1))], lists:suffix("-logs", Kind)],
    lists:sort(maps:to_list(maps:groups_from_list(fun({Name, _}) -> Name end, fun({_, Path}) -> Path end, Paths))).

compare(Dir, {Name, Paths}) ->
    {match, [Case, Size, _, Kind]} = re:run(Name, "^test_case_(\\d)_log_((\\d+)_\\d+)_(happy|error)_", [{capture, all_but_first, list}]),
    Read = [witness_clone:git(Dir, ["cat-file", "blob", "HEAD:" ++ Path]) || Path <- lists:sort(Paths)],
    Messages = [?LOGS, "/error-messages/test_case_", Case, "_logs/test_case_", Case, "_log_", Size, "_error.txt"],
    case {lists:member(error, Read), Kind} of
        {true, _} -> absent;
        {false, "happy"} -> compare(property(Case), Read, [], hd(string:split(Size, "_")));
        {false, "error"} ->
            {ok, Text} = witness_clone:git(Dir, ["cat-file", "blob", ["HEAD:", Messages]]),
            compare(property(Case), Read, expected(Text), any)
    end.

property("2") -> bank;
property("3") -> locks;
property("4") -> increasing;
property("5") -> alternating;
property("6") -> counts;
property("7") -> pairs.

compare(Property, Read, Expected, Number) ->
    Unsorted = [Event || {ok, Text} <- Read, Line <- lines(Text), Event <- events(Property, Line)],
    All = violations(Property, Unsorted),
    Found = first_of_each_key(All),
    Count = integer_to_list(length(Unsorted)),
    #{events => length(Unsorted), back => back(Unsorted),
      expected => Expected, found => Found, later => length(All) - length(Found),
      first => first_of_each_key([{Ms, Key} || {{Ms, _}, Key, _} <- lists:keysort(1, Unsorted)]),
      wrong => [io_lib:format("~w instead of ~w ", [Found -- Expected, Expected -- Found]) || Found =/= Expected]
                   %% The name of a good log says how many events PObserve reads from it.
                   ++ [["not ", Number, " events"] || Number =/= any, Number =/= Count]}.

%% PObserve does not go on with a key that is violated.
first_of_each_key(Places) ->
    First = lists:foldl(fun({Ms, Key}, Before) -> maps:merge(#{Key => Ms}, Before) end, #{}, Places),
    lists:sort([{Ms, Key} || Key := Ms <- First]).

%% How far times go back, in milliseconds.
back(Events) ->
    {_, Back} = lists:foldl(fun({{Ms, _}, _, _}, {Latest, Most}) -> {max(Ms, Latest), max(Most, Latest - Ms)} end, {0, 0}, Events),
    Back.

%% A line is the time and the message of an error, which has the key after one of these words. Numbers have commas.
expected(Text) ->
    Pattern = ~"^(\\d+): .*?(?:account|lock|lockId:|locId:|key|key:|received:) (\\d+(?:,\\d{3})*)",
    lists:sort([begin
                    [[Ms, Key]] = all(Line, Pattern),
                    {binary_to_integer(Ms), number(Key)}
                end || Line <- lines(Text), Line =/= ~""]).

number(Text) -> binary_to_integer(binary:replace(Text, ~",", ~"", [global])).

lines(Text) -> [string:trim(Line) || Line <- binary:split(Text, [~"\n", ~"\r"], [global])].

all(Text, Pattern) ->
    case re:run(Text, Pattern, [global, caseless, {capture, all_but_first, binary}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

%% Lines.

-doc "The events of a line. Comments and empty lines have none; the accounts of a bank are one event each.".
-spec events(property(), binary()) -> [event()].
events(Property, Line) when Property =:= bank; Property =:= locks ->
    case binary:split(Line, ~" - : ") of
        [<<Date:10/binary, " ", Clock:12/binary, ".", Rest/binary>>, Fields] ->
            Ms = calendar:rfc3339_to_system_time(binary_to_list(<<Date/binary, "T", Clock/binary, "Z">>), [{unit, millisecond}]),
            {Order, _} = string:to_integer(Rest),
            [{{Ms, Order}, Key, Action} || {Key, Action} <- actions(Property, Fields)];
        _ -> []
    end;
events(Property, Line) ->
    case [string:trim(Field) || Field <- binary:split(Line, ~",", [global])] of
        [~""] -> [];
        [First, Time | Fields] when First =:= ~"params"; First =:= ~"finished" -> columns(Property, First, Time, Fields);
        [Time, Key | Fields] -> columns(Property, value, Time, [Key | Fields])
    end.

actions(bank, Fields) ->
    Of = maps:from_list([{Name, Value} || [Name, Value] <- all(Fields, ~"(\\w+)=([\\w.]+)")]),
    case Of of
        #{~"TransactionType" := ~"CREATE_ACCOUNT", ~"MessageType" := ~"RESPONSE", ~"Result" := ~"SUCCESS"} ->
            [{Account, {send, "bank", {created, Account, amount(Balance)}}}
             || [Id, Balance] <- all(Fields, ~"\\[(\\d+), ([\\d.]+)\\]"), Account <- [binary_to_integer(Id)]];
        #{~"TransactionType" := ~"WITHDRAW", ~"MessageType" := Type, ~"Result" := Result} ->
            Account = binary_to_integer(map_get(~"AccountID", Of)),
            Rest = [Account, amount(map_get(~"Amount", Of)), binary_to_integer(map_get(~"TransactionID", Of))],
            [{Account, case {Type, Result} of
                           {~"REQUEST", _} -> {recv, "bank", list_to_tuple([withdraw | Rest])};
                           {~"RESPONSE", ~"SUCCESS"} -> {send, "bank", list_to_tuple([withdrawn | Rest])};
                           {~"RESPONSE", ~"FAIL"} -> {send, "bank", list_to_tuple([refused | Rest])}
                       end}]
    end;
actions(locks, Fields) ->
    #{~"TransactionType" := Transaction, ~"MessageType" := Type, ~"Result" := Result, ~"LockID" := Id, ~"ClientID" := Client} =
        maps:from_list([{Name, Value} || [Name, Value] <- all(Fields, ~"(\\w+)=(\\w+)")]),
    Lock = binary_to_integer(Id),
    Name = case Transaction of ~"LOCK" -> lock; ~"RELEASE" -> release end,
    [{Lock, case {Type, Result} of
                {~"REQUEST", _} -> {recv, "locks", {Name, Lock, binary_to_integer(Client)}};
                {~"RESPONSE", ~"SUCCESS"} -> {send, "locks", {Name, Lock, binary_to_integer(Client), success}};
                {~"RESPONSE", ~"FAIL"} -> {send, "locks", {Name, Lock, binary_to_integer(Client), fail}}
            end}].

amount(Text) -> round(binary_to_float(Text)).

columns(Property, First, Time, [KeyText | Fields]) ->
    Key = binary_to_integer(KeyText),
    Of = fun(N) -> binary_to_integer(lists:nth(N, Fields)) end,
    {Process, Message} = case {Property, First, Fields} of
        {counts, ~"params", _} -> {"counter", {expect, Key, Of(1), Of(2), Of(3)}};
        {counts, ~"finished", []} -> {"counter", {finished, Key}};
        {counts, value, _} -> {io_lib:format("node ~b", [Of(1)]), {value, Key, Of(1), Of(2)}};
        {pairs, value, [~"finished"]} -> {process(Key), {finished, Key}};
        {pairs, value, [_, Status]} when Status =:= ~"start"; Status =:= ~"end" -> {process(Key), {binary_to_atom(Status), Key, Of(1)}};
        {_, value, [_]} when Property =:= increasing; Property =:= alternating -> {process(Key), {value, Key, Of(1)}}
    end,
    [{{binary_to_integer(Time), 0}, Key, {send, Process, Message}}].

process(Key) -> io_lib:format("key ~b", [Key]).

%% Verdicts.

-doc """
The violations that Witness finds, in the order of the times of their events. A key without a violation is satisfied. The log is checked twice:
sorted, and as it was, by `sort`.
""".
-spec violations(property(), [event()]) -> [place()].
violations(Property, Unsorted) ->
    Found = violations(Property, lists:keysort(1, Unsorted), #{}),
    %% One millisecond more, for the parts of one.
    case violations(Property, Unsorted, #{sort => back(Unsorted) + 1}) of
        Found -> Found;
        Others -> exit({not_as_sorted, Found, Others})
    end.

violations(_, [], _) -> [];
violations(Property, Events, Options) ->
    Processes = lists:usort([iolist_to_binary(Process) || {_, _, {_, Process, _}} <- Events]),
    Times = times(lists:usort([Time || {Time, _, _} <- Events])),
    At = lists:sort(maps:values(Times)),
    Lines = [io_lib:format("@~b init(\"~ts\",_,{pobserve,process,[]})~n", [hd(At), Process]) || Process <- Processes]
        ++ [line(map_get(Time, Times), Action) || {Time, _, Action} <- Events]
        ++ [io_lib:format("@~b exit(\"~ts\",normal)~n", [lists:last(At), Process]) || Process <- Processes],
    Places = list_to_tuple([{Ms, Key} || {{Ms, _}, Key, _} <- Events]),
    File = string:trim(os:cmd("mktemp")),
    ok = file:write_file(File, Lines),
    try
        {ok, Run} = witness:start(Options#{system => {log, {file, File}}, format => text, specs => [file(Property)],
                                           instrument => central, satisfied => counted, log => false}),
        {ok, #{verdicts := #{inconclusive := 0}}} = witness:await(Run, ?WAIT_MS),
        Verdicts = witness:verdicts(Run),
        {ok, _} = witness:stop(Run),
        [place(Verdict, length(Processes), Places) || #{verdict := no} = Verdict <- Verdicts]
    after
        ok = file:delete(File)
    end.

-doc "The specification.".
-spec file(property()) -> file:filename().
file(Property) ->
    Root = witness_checkout:root(filename:dirname(code:which(?MODULE))),
    filename:join([Root, "test", "oracles", "pobserve", lists:concat([Property, ".hml"])]).

line(Time, {send, Process, Message}) -> io_lib:format("@~b send(\"~ts\",log,~w)~n", [Time, Process, Message]);
line(Time, {recv, Process, Message}) -> io_lib:format("@~b recv(\"~ts\",~w)~n", [Time, Process, Message]).

%% In nanoseconds. Within a millisecond only the order counts.
times(Sorted) ->
    {_, Times} = lists:foldl(fun({Ms, _} = Time, {Before, Known}) ->
        Next = max(Before + 1, Ms * 1_000_000),
        {Next, Known#{Time => Next}}
    end, {-1, #{}}, Sorted),
    Times.

%% The slice of a violation is the key of its line.
place(#{log := Log, slice := [{_, Key}]}, Births, Places) ->
    [_, Line] = string:split(Log, ":", trailing),
    {_, Key} = element(binary_to_integer(Line) - Births, Places).
