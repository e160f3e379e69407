-module(witness_cli_explore).
-moduledoc """
`witness explore`: explores the choreography of the tracers exhaustively (`m:witness_explore`), in scenarios that are
built in or come from a file.

Results go to standard output, progress to standard error. The exit code is 0 when every result was as expected,
1 when there was a violation, 2 for wrong usage, and 3 when a search is incomplete.
""".

-export([run/1, command/0]).

-export_type([options/0]).

-doc "See `command/0`.".
-type options() :: #{all := boolean(), list := boolean(), deep := boolean(), unreduced := boolean(), draw := boolean(),
                     scenarios => [string()], source => atom(), stamps => atom(), pool => atom(),
                         choreography => atom(),
                     depth => pos_integer(), states => pos_integer(), for => number()}.

-define(PROGRESS_S, 10). % seconds between lines of progress where there is no terminal

-doc "The declaration of the command, for `m:witness_cli_args`.".
-spec command() -> argparse:command().
command() ->
    #{help => ["Explores the tracers' choreography: every interleaving of a small system, a source of events and the "
               "tracers.\n\n",
               usage, "\n\n", arguments, "\n", options,
               "\n\nA violation is shown as the shortest sequence of messages that leads to it."
               "\n\nExit codes: 0 all is as expected; 1 a violation; 2 wrong usage or bad input; 3 incomplete.\n\n"
               "  witness explore --all\n"
               "  witness explore --scenario siblings --source vm\n"
               "  witness explore --scenario mine.scenario --depth 30\n"],
      arguments => witness_cli_options:arguments(explore, [
        #{name => all, flag => "--all", text => ~"explore all built-in scenarios, each with all of its sources"},
        #{name => deep, flag => "--deep", text => ~"with --all: also those that take many minutes"},
        #{name => list, flag => "--list", text => ~"list the built-in scenarios"},
        #{name => scenarios, flag => "--scenario", argument => "NAME|FILE", repeated => true,
          text => ~"a built-in scenario, or one that a file tells; may be repeated"},
        #{name => draw, flag => "--draw", text => ~"draw the shortest run after which nothing is left to do"},
        #{name => source, flag => "--source", value => {one_of, [ideal, vm, birth]},
          text => [~"only this source: the paper's (A1 to A4), the VM's real one, or one that gives each process its partition at ",
                   ~"birth"]},
        #{name => choreography, flag => "--choreography", value => {one_of, [witness, paper, printed]},
          text => ~"explore Witness's choreography, the paper's with its defects mended, or the paper's as printed"},
        #{name => stamps, flag => "--stamps", value => {one_of, [always, handover]},
          text => ~"stamp every event, or those of a handover"},
        #{name => pool, flag => "--pool", value => {one_of, [again, fresh]}, text => ~"lend tracers again, or only fresh ones"},
        #{name => unreduced, flag => "--unreduced", text => ~"take no reductions: many more states"},
        #{name => depth, flag => "--depth", argument => "N", value => {at_least, 1}, text => ~"stop after so many steps"},
        #{name => states, flag => "--states", argument => "N", value => {at_least, 1}, text => ~"stop after so many states"},
        #{name => for, flag => "--for", argument => "SECONDS", value => {at_least, 1},
          text => ~"stop each search after this time"}])}.

-doc "Explores and returns the exit code.".
-spec run(options()) -> 0..3.
run(Options) ->
    Out = witness_cli_io:open(text),
    case selection(Options) of
        {error, Text} ->
            witness_cli_io:note([~"witness explore: ", Text, $\n]),
            2;
        {list, Scenarios} ->
            witness_cli_io:print(Out, [[Line, $\n] || Line <- witness_text:columns([listed(S) || S <- Scenarios])]),
            0;
        {ok, Searches} -> explore(Searches, Options, Out)
    end.

%% --- what to explore -------------------------------------------------------------

selection(#{list := true}) -> {list, witness_explore_scenario:all()};
selection(#{all := true, deep := Deep} = Options) when not is_map_key(scenarios, Options) ->
    searches([S || S <- witness_explore_scenario:all(), Deep orelse not maps:get(deep, S, false)], Options, []);
selection(#{all := true}) -> {error, ~"--all or --scenario, not both"};
selection(#{scenarios := Names} = Options) ->
    case scenarios(Names, []) of
        {ok, Scenarios} -> searches(Scenarios, Options, []);
        Error -> Error
    end;
selection(_) -> {error, ~"--all, --scenario NAME or --list is expected (see witness explore --help)"}.

listed(#{name := Name, about := About} = Scenario) -> [Name, witness_explore_scenario:content(Scenario), About].

scenarios([], Found) -> {ok, lists:reverse(Found)};
scenarios([Name | Names], Found) ->
    case witness_explore_scenario:named(Name) of
        {ok, Scenario} -> scenarios(Names, [Scenario | Found]);
        error ->
            case filelib:is_regular(Name) andalso witness_explore_file:read(Name) of
                {ok, Scenario} -> scenarios(Names, [Scenario | Found]);
                {error, Text} -> {error, witness_text:clean(Text)};
                false -> {error, [~"'", witness_text:clean(Name),
                                  ~"' is neither a scenario (see witness explore --list) nor a file"]}
            end
    end.

searches([], _, Searches) -> {ok, lists:append(lists:reverse(Searches))};
searches([Scenario = #{name := Name} | Scenarios], Options, Searches) ->
    Sources = case Options of #{source := Source} -> [Source]; #{} -> witness_explore_scenario:sources(Scenario) end,
    case [witness_explore_scenario:world(Scenario, (search_options(Options))#{source => Source}) || Source <- Sources] of
        [{error, Text} | _] -> {error, [witness_text:clean(Name), ~": ", witness_text:clean(Text)]};
        Worlds ->
            Expected = case is_map_key(choreography, Options) of
                true -> Scenario#{expect => sound};
                false -> Scenario
            end,
            searches(Scenarios, Options, [[{Expected, World} || {ok, World} <- Worlds] | Searches])
    end.

search_options(Options) ->
    Given = maps:with([stamps, pool], Options),
    Reduced = case Options of #{unreduced := true} -> Given#{reduce => []}; #{} -> Given end,
    case Options of
        #{choreography := paper} ->
            Reduced#{pool => fresh, choreography => {witness_explore_paper,
                                                     #{mend => witness_explore_paper:defects()}}};
        #{choreography := printed} ->
            %% I4, I8 and I16 fail at once: the printed algorithm does more than they say.
            Reduced#{pool => fresh, choreography => {witness_explore_paper, #{mend => ['I4', 'I8', 'I16']}}};
        #{choreography := witness} -> Reduced#{choreography => witness_outline_core};
        #{} -> Reduced
    end.

%% --- the searches ----------------------------------------------------------------

explore(Searches, Options, Out) ->
    Begun = erlang:monotonic_time(millisecond),
    Many = length(Searches) > 1,
    {Codes, Done} = lists:mapfoldl(fun(Search, Done) -> one(Search, Done, Many, Options, Out) end, #{}, Searches),
    Seconds = (erlang:monotonic_time(millisecond) - Begun) / 1000,
    Many andalso witness_cli_io:print(Out, summary(Codes, Done, Seconds)),
    case {lists:member(1, Codes), lists:member(3, Codes)} of
        {true, _} -> 1;
        {false, true} -> 3;
        {false, false} -> 0
    end.

%% Scenarios that differ only in the readers of events make the same world, which is explored once.
one({Scenario = #{name := Name}, World = #{source := Source}}, Done, Many, Options, Out) ->
    Label = [pad(Name, 32), pad(witness_explore_scenario:content(Scenario), 14), pad(atom_to_binary(Source), 7)],
    case Done of
        #{World := {First, Result}} ->
            Code = code(Result, Scenario, Many),
            witness_cli_io:print(Out, [Label, verdict(Result, Code, Many), ~", the same as ", First, $\n]),
            {Code, Done};
        #{} ->
            Result = witness_explore:run(World, limits(Options, progress(Name))),
            clear(),
            Code = code(Result, Scenario, Many),
            witness_cli_io:print(Out, [Label, verdict(Result, Code, Many), ~": ",
                                       witness_explore_text:result(stats(Result)), $\n,
                                       [explained(Result, witness_explore_scenario:names(Scenario),
                                                  maps:get(draw, Options))
                                        || not Many orelse Code =:= 1 orelse maps:get(draw, Options)]]),
            {Code, Done#{World => {Name, Result}}}
    end.

pad(Text, Columns) -> [witness_text:pad(witness_text:clean(Text), Columns), ~" "].

limits(Options, Progress) ->
    Limits = #{max_depth => maps:get(depth, Options, infinity), max_states => maps:get(states, Options, infinity),
               max_seconds => maps:get(for, Options, infinity), progress => Progress,
               until => case Options of #{draw := true} -> fun witness_explore_check:is_quiet/1; #{} -> infinity end},
    maps:filter(fun(_, Limit) -> Limit =/= infinity end, Limits).

%% If many scenarios run, an expected violation is not one: the scenario shows what it is to show. If it runs alone, it is one.
code({incomplete, _, _}, _, _) -> 3;
code({reached, _, _}, _, _) -> 0;
code({violation, _, _, _}, _, false) -> 1;
code(Result, Scenario, _) ->
    case witness_explore_scenario:as_expected(Result, Scenario) of
        true -> 0;
        false -> 1
    end.

stats({ok, Stats}) -> Stats;
stats({violation, _, _, Stats}) -> Stats;
stats({incomplete, _, Stats}) -> Stats;
stats({reached, _, Stats}) -> Stats.

verdict({ok, _}, 0, _) -> ~"sound";
verdict({ok, _}, 1, _) -> ~"NO VIOLATION, though one was expected";
verdict({violation, _, Path, _}, 0, _) -> io_lib:format("violation after ~b steps, as expected", [length(Path)]);
verdict({violation, _, Path, _}, 1, _) -> io_lib:format("VIOLATION after ~b steps", [length(Path)]);
verdict({reached, Path, _}, _, _) -> io_lib:format("done after ~b steps", [length(Path)]);
verdict({incomplete, {depth, Depth}, _}, _, _) -> io_lib:format("no violation up to depth ~b, incomplete", [Depth]);
verdict({incomplete, _, _}, _, _) -> ~"no violation so far, incomplete".

explained({violation, What, Path, _}, Names, _) ->
    [draw(Path, Names), ~"\n => ", witness_text:clean(witness_explore_text:violation(What, Names)), $\n];
explained({reached, Path, _}, Names, _) -> draw(Path, Names);
explained({ok, _}, _, true) -> ~"there is no run after which nothing is left to do\n";
explained({incomplete, hash_collision, _}, _, _) -> ~"two states have the same hash: nothing can be said beyond them\n";
explained(_, _, _) -> ~"".

draw(Path, Names) ->
    [$\n, [[witness_text:clean(Line), $\n] || Line <- witness_explore_text:sequence(Path, Names)]].

summary(Codes, Done, Seconds) ->
    Results = maps:values(Done),
    Sound = [{States, Name} || {Name, {ok, #{states := States}}} <- Results],
    States = lists:sum([States || {_, Result} <- Results, #{states := States} <- [stats(Result)]]),
    [io_lib:format("~n~b searches, ~b of them as expected; ~b states in ~.1f s~n",
                   [length(Codes), length([0 || 0 <- Codes]), States, Seconds]),
     case Sound of
         [] -> ~"";
         _ ->
             {Most, Largest} = lists:max(Sound),
             io_lib:format("the largest system explored completely: ~ts, ~b states~n",
                           [witness_text:clean(Largest), Most])
     end].

%% --- progress --------------------------------------------------------------------

%% On a terminal one line that is overwritten, elsewhere a line from time to time.
progress(Name) ->
    Terminal = witness_cli_io:terminal(stderr),
    Told = atomics:new(1, []),
    fun(#{states := States, depth := Depth, frontier := Frontier, rate := Rate, seconds := Seconds,
          estimate := {Sure, Estimate}}) ->
            Interval = case Terminal of true -> 1; false -> ?PROGRESS_S end,
            Number = trunc(Seconds) div Interval,
            Number > atomics:get(Told, 1) andalso
                begin
                    atomics:put(Told, 1, Number),
                    Text = io_lib:format("~ts: ~b states, depth ~b, last layer ~b, ~b states/s, ~ts ~b states in all",
                                         [Name, States, Depth, Frontier, round(Rate),
                                          case Sure of about -> "about"; at_least -> "at least" end, Estimate]),
                    witness_cli_io:note(case Terminal of true -> [~"\r\e[K", Text]; false -> [Text, $\n] end)
                end
    end.

clear() -> witness_cli_io:terminal(stderr) andalso witness_cli_io:note(~"\r\e[K").
