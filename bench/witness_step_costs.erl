-module(witness_step_costs).
-moduledoc """
The delay of commands while stepping through a run: `main([Work, Steps, Places])`, as for `bench/step`. A client and a server with
about so many steps are recorded, and the recording is replayed for stepping. Then, at random places:

| Row | |
|---|---|
| `open` | the replay, once |
| `go to it` | a step anywhere, and the mailboxes of the three processes there |
| `one back` | the step before, the same |
| `why` | the last twenty causes |
| `state, one back` | the state of the server at a step and then at the one before, for which a VM replays to there; ten places |

Times in milliseconds: the median, and the longest.
""".

-export([main/1]).

%% The number of steps in a round of the program.
-define(STEPS, 4).
-define(SERVER, 2).
-define(STATES, 10).

-spec main([string()]) -> no_return().
main([Work, Steps, Places]) ->
    Dir = filename:join(Work, "steps.rec"),
    {ok, _} = application:ensure_all_started(witness),
    {ok, #{outcome := recorded}} = witness_record:record(#{
        run => {witness_recorded_steps, main, [max(1, list_to_integer(Steps) div ?STEPS)]},
        dir => Dir, pa => [filename:join(Work, "programs")]}),
    %% The first time, modules that are not in the cache are woven.
    {ok, First} = witness_step:open(#{dir => Dir}),
    ok = witness_step:close(First),
    {Opening, {ok, Session}} = timer:tc(fun() -> witness_step:open(#{dir => Dir}) end),
    Count = witness_step:size(Session),
    io:format("~w steps~n~-18s ~10s ~10s~n", [Count, "", "median ms", "longest"]),
    row("open", [Opening]),
    Found = [at(rand:uniform(Count - 1) + 1, Session) || _ <- lists:seq(1, list_to_integer(Places))],
    [row(Name, [maps:get(Key, Times) || Times <- Found])
     || {Name, Key} <- [{"go to it", there}, {"one back", back}, {"why", why}]],
    row("state, one back", states(?STATES, Count, Session)),
    ok = witness_step:close(Session),
    halt(0).

at(N, Session) ->
    {There, {{ok, S}, _}} = timer:tc(fun() -> looked(witness_step:goto(N, Session)) end),
    {Back, {{ok, _}, _}} = timer:tc(fun() -> looked(witness_step:back(S)) end),
    {Why, [_ | _]} = timer:tc(fun() -> witness_step:why(20, S) end),
    #{there => There, back => Back, why => Why}.

looked({ok, S} = Gone) -> {Gone, [length(witness_step:mailbox(Id, S)) || #{id := Id} <- witness_step:processes(S)]}.

%% All processes are alive from the tenth step on until shortly before the end.
states(0, _, _) -> [];
states(Left, Count, S) ->
    {ok, There} = witness_step:goto(min(Count - 20, 10 + rand:uniform(Count)), S),
    {{ok, _}, Asked} = witness_step:process_state(?SERVER, There),
    {ok, Before} = witness_step:back(Asked),
    {Time, {{ok, _}, Again}} = timer:tc(fun() -> witness_step:process_state(?SERVER, Before) end),
    [Time | states(Left - 1, Count, Again)].

row(Name, Times) ->
    io:format("~-18s ~10.1f ~10.1f~n", [Name, witness_savina_times:quartile(2, Times) / 1000, lists:max(Times) / 1000]).
