-module(witness_operations_SUITE).
-moduledoc """
What a system in production relies on: nothing of its contents leaves a redacted run, the logger is not flooded, telemetry
counts everything, and the processes of Witness answer system messages.

`telemetry` is no dependency: with `WITNESS_TELEMETRY`, a folder with the library's compiled modules, the real one is used,
otherwise a module of its name, made here, that does as much as is needed.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(BINARY, ~"s3cret-binary").
-define(STRING, "s3cret-string").
-define(NUMBER, 4711_0815_1234).
-define(FLOAT, 271.828459045).

%% How long a process may take to answer a system message.
-define(ANSWER_MS, 60_000).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [{group, native}, {group, evm}, the_command_line_redacts, a_log_is_redacted].

groups() ->
    Both = [nothing_leaves_a_redacted_run, contents_are_told_otherwise, violations_are_limited_and_counted, telemetry_counts_all,
            a_raising_handler_harms_no_process, processes_answer_under_load, what_is_suspended_loses_nothing,
            what_is_terminated_is_missed],
    [{native, [], Both}, {evm, [], Both}].

init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, _) -> ok.

init_per_testcase(_, Config) ->
    {ok, _} = application:ensure_all_started(witness),
    Config.

end_per_testcase(_, _) -> application:stop(witness).

%% --- redaction -------------------------------------------------------------------

nothing_leaves_a_redacted_run(Config) ->
    Told = told(#{redact => true}, Config),
    [?assertEqual({Way, []}, {Way, found(Shown)}) || Way := Shown <- Told],
    %% What is left is worth reading.
    #{verdicts := Verdicts, text := Text} = Told,
    ?assertMatch([_], [V || #{slice := [{~"K", 'integer()'}]} = V <- Verdicts]),
    ?assertMatch([_], [V || #{reason := {crashed,
                                         {error, {oops, {'binary()', 13}}, [{?MODULE, handle_event, 2, _} | _]}}} = V <- Verdicts]),
    ?assertMatch({match, _}, re:run(Text, "answer")).

%% The same with everything shows everything: what is looked for is there to be found.
contents_are_told_otherwise(Config) ->
    Told = told(#{}, Config),
    [?assertMatch({Way, [_ | _]}, {Way, found(Shown)})
     || Way := Shown <- maps:with([verdicts, callback, subscribed, text, json, logged, telemetry, summary], Told)],
    ?assertEqual([?BINARY, ?NUMBER, ?FLOAT, ?STRING], found(maps:values(Told))).

%% Everything that a run tells, by the way in which it is told.
told(Options, Config) ->
    File = specification(Config),
    Self = self(),
    attach_telemetry(Self),
    Monitors = [{{?MODULE, keeper, 2}, {?MODULE, Arg}} || Arg <- [crash, info]],
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => Self}, filter_default => stop,
                                                filters => [{own, {fun logger_filters:domain/2, {log, sub, [witness]}}}]}),
    try
        {ok, Run} = witness:start(Options#{system => {?MODULE, main, [Self, secrets()]},
                                           source => proplists:get_value(source, Config),
                                           specs => [File], monitors => Monitors,
                                           on_verdict => fun(V) -> Self ! {callback, V} end}),
        {ok, Ref} = witness:subscribe(Run),
        receive {main, Main} -> Main ! go end,
        {ok, Summary} = witness:await(Run, infinity),
        ?assertMatch(#{outcome := violated, monitored := 4}, Summary),
        Verdicts = witness:verdicts(Run),
        Status = sys:get_status(Run),
        Info = witness:info(Run),
        {ok, Summary} = witness:stop(Run),
        Header = witness_cli_json:header(node()),
        Look = #{width => 100, colour => false},
        #{verdicts => Verdicts, summary => Summary, info => Info, status => Status, callback => received(callback),
          subscribed => [M || {Of, M} <- received(witness), Of =:= Ref],
          logged => received(logged), telemetry => received(telemetry),
          text => unicode:characters_to_binary([witness_text_verdict:verdict(V, Look) || V <- Verdicts]),
          json => iolist_to_binary([witness_cli_json:verdict(V, Header) || V <- Verdicts])}
    after
        ok = logger:remove_handler(?MODULE),
        detach_telemetry()
    end.

received(Tag) ->
    receive
        {Tag, What} -> [What | received(Tag)];
        {Tag, Of, What} -> [{Of, What} | received(Tag)]
    after 0 -> []
    end.

specification(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "keeper.hml"),
    ok = file:write_file(File, ~"""
        same_answer: with witness_operations_SUITE:keeper(_, _)
        per K over _ ? {ask, K, _}, _ : _ ! {answer, K, _}
        monitor [_ ? {ask, K, A}] [_ : _ ! {answer, K, B} when B =/= A] ff.

        ends_well: with witness_operations_SUITE:keeper(Secret, _)
        check max X. ([_ ** {kept, Secret}] ff and [_ : _ ! _] X and [_ ? _] X and [_ <- _, _] X).

        """),
    File.

secrets() -> {?BINARY, ?STRING, ?NUMBER, ?FLOAT}.

%% The first process asks its keeper, and ends badly; everything that they say is secret.
main(Test, Secrets = {Binary, String, Number, Float}) ->
    Test ! {main, self()},
    receive go -> ok end,
    {Keeper, Ref} = spawn_monitor(?MODULE, keeper, [Secrets, self()]),
    Keeper ! {ask, Number, #{Binary => String, known => [Float | String]}},
    receive {answer, _, _} -> ok end,
    Keeper ! stop,
    receive {'DOWN', Ref, process, Keeper, _} -> exit({oops, Secrets}) end.

keeper(Secrets, Asks) ->
    receive {ask, K, A} -> Asks ! {answer, K, {A, Secrets}} end,
    receive stop -> exit({kept, Secrets}) end.

%% Monitors that tell what they have seen.
init({?MODULE, keeper, [Secrets, _]}, _, Arg) -> {ok, {Arg, Secrets}};
init(_, _, Arg) -> {ok, {Arg, none}}.

handle_event({recv, _, _, stop, _}, {crash, {Binary, _, _, _}}) -> error({oops, Binary});
handle_event({exit, _, Reason, _}, {info, Secrets}) -> {verdict, no, {Reason, Secrets}};
handle_event({exit, _, _, _}, {ended, _}) -> {verdict, no, undefined};
%% A monitor that reads other state of its process must have a process of its own.
handle_event({exit, _, _, _}, {quiet, _}) -> {verdict, yes, get(nothing)};
handle_event(_, State) -> {ok, State}.

describe({_, {Binary, String, Number, Float}}) ->
    #{formula => Binary, bindings => [{~"S", String}, {~"N", [Number, Float]}]}.

%% Which of the secrets are in what was told, as a term or as text.
found(Told) ->
    Text = unicode:characters_to_binary(io_lib:format("~0tp~n~0w", [Told, Told])),
    [Secret || Secret <- [?BINARY, ?NUMBER, ?FLOAT, ?STRING],
               lists:any(fun(Form) -> binary:match(Text, Form) =/= nomatch end, forms(Secret))].

forms(Number) when is_integer(Number) -> [integer_to_binary(Number)];
forms(Float) when is_float(Float) -> [float_to_binary(Float, [short])];
forms(Binary) when is_binary(Binary) -> forms(binary_to_list(Binary));
forms(String) -> [list_to_binary(String), iolist_to_binary(lists:join(",", [integer_to_list(C) || C <- String]))].

log(#{msg := {report, Report}, meta := Meta = #{report_cb := Format}}, #{config := #{to := Pid}}) ->
    {Text, Args} = Format(Report),
    Pid ! {logged, {{witness, maps:get(witness, Report)}, unicode:characters_to_binary(io_lib:format(Text, Args)), Report, Meta}}.

the_command_line_redacts(Config) ->
    File = specification(Config),
    Call = "witness_operations_SUITE:alone(<<\"" ++ binary_to_list(?BINARY) ++ "\">>,\"" ++ ?STRING ++ "\"," ++
        integer_to_list(?NUMBER) ++ "," ++ binary_to_list(float_to_binary(?FLOAT, [short])) ++ ")",
    Arguments = ["run", "--source", "evm", "--pa", filename:dirname(code:which(?MODULE)), "--spec", File],
    [begin
         {1, Output} = command(Arguments ++ More ++ [Call]),
         ?assertEqual(Hidden, [] =:= found(Output))
     end || {More, Hidden} <- [{["--redact"], true}, {["--redact", "--json"], true}, {[], false}]],
    {2, Refused} = command(Arguments ++ ["--redact", "--log", "none.log", Call]),
    ?assertMatch({match, _}, re:run(Refused, "a log \\(log_file\\) holds the contents")).

%% The command line's function: it does not wait for a test, and the VM reports nothing of how it ends.
alone(Binary, String, Number, Float) ->
    Self = self(),
    {Main, Ref} = spawn_monitor(?MODULE, main, [Self, {Binary, String, Number, Float}]),
    Main ! go,
    receive {'DOWN', Ref, process, Main, _} -> ok end.

command(Arguments) ->
    Port = open_port({spawn_executable,
                      filename:join([witness_checkout:root(filename:dirname(code:which(?MODULE))), "bin", "witness"])},
                     [{args, Arguments}, exit_status, stderr_to_stdout, binary]),
    output(Port, <<>>).

output(Port, Output) ->
    receive
        {Port, {data, Data}} -> output(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    end.

a_log_is_redacted(Config) ->
    Log = filename:join(proplists:get_value(priv_dir, Config), "secret.log"),
    File = filename:join(proplists:get_value(priv_dir, Config), "log.hml"),
    ok = file:write_file(File, ~"p: with m:f(_) monitor [_ <- _, _] [_ ? {pin, N}] [_ ? {pin, M} when M =/= N] ff.\n"),
    ok = file:write_file(Log, ["init(<0.90.0>, _, {m, f, [\"", ?STRING, "\"]})\n",
                               "recv(<0.90.0>, <0.80.0>, {pin, ", integer_to_list(?NUMBER), "})\n",
                               "recv(<0.90.0>, <0.80.0>, {pin, <<\"", ?BINARY, "\">>})\n"]),
    [begin
         {ok, Run} = witness:start(#{system => {log, {file, Log}}, specs => [File], redact => Redact, log => false}),
         {ok, #{outcome := violated}} = witness:await(Run, infinity),
         ?assertEqual(Redact, found(witness:verdicts(Run)) =:= []),
         {ok, _} = witness:stop(Run)
     end || Redact <- [true, false]].

%% --- logger and telemetry --------------------------------------------------------

%% Of a thousand violations at once three are logged; the others are counted, and the sum is right.
violations_are_limited_and_counted(Config) ->
    Self = self(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => Self}, filter_default => stop,
                                                filters => [{own, {fun logger_filters:domain/2, {log, sub, [witness]}}}]}),
    Began = erlang:monotonic_time(second),
    try
        {Summary, _} = violations(1000, #{log_rate => 3}, Config),
        Seconds = 1 + erlang:monotonic_time(second) - Began,
        ?assertMatch(#{outcome := violated, verdicts := #{no := 1000}}, Summary),
        Logged = received(logged),
        Single = [R || {{witness, violation}, _, R, _} <- Logged],
        LeftOut = [{Text, Count} || {{witness, violations_left_out}, Text, #{count := Count}, _} <- Logged],
        ?assertEqual(1000, length(Single) + lists:sum([Count || {_, Count} <- LeftOut])),
        ?assert(length(Single) >= 3),
        %% Of each second three, however many it takes.
        ?assert(length(Single) =< 3 * (Seconds + 1)),
        [?assertMatch({match, _}, re:run(Text, "^witness_operations_SUITE violated [0-9]+ times more, which were not logged"))
         || {Text, _} <- LeftOut]
    after
        ok = logger:remove_handler(?MODULE)
    end.

telemetry_counts_all(Config) ->
    attach_telemetry(self()),
    try
        {Summary, Run} = violations(200, #{log => false}, Config),
        Events = received(telemetry),
        Source = proplists:get_value(source, Config),
        [{#{monotonic_time := Begin, system_time := _}, #{run := Run, system := {?MODULE, ends, 1}, source := Source}}] =
            [{M, D} || {[witness, run, start], M, D} <- Events],
        ?assertEqual(200, length([V || {[witness, verdict], #{count := 1}, #{verdict := no, run := R} = V} <- Events, R =:= Run])),
        [{Counts, Metadata}] = [{M, D} || {[witness, run, stop], M, D} <- Events],
        ?assertMatch(#{duration := D, monotonic_time := End, violated := 200, satisfied := 0, undecided := 0, monitored := 200,
                       gaps := 0} when D > 0 andalso End > Begin, Counts),
        ?assertEqual((maps:with([outcome, warnings, coverage], Summary)),
                     maps:with([outcome, warnings, coverage], Metadata)),
        ?assertMatch([{[witness, run, start], _, _} | _], Events),
        ?assertMatch({[witness, run, stop], _, _}, lists:last(Events))
    after
        detach_telemetry()
    end.

a_raising_handler_harms_no_process(Config) ->
    attach_telemetry(raises),
    try
        {Summary, _} = violations(10, #{log => false}, Config),
        ?assertMatch(#{outcome := violated, verdicts := #{no := 10}}, Summary)
    after
        detach_telemetry()
    end.

violations(Count, Options, Config) ->
    {ok, Run} = witness:start(Options#{system => {?MODULE, ends, [Count]}, source => proplists:get_value(source, Config),
                                       monitors => [{{?MODULE, ended, 0}, {?MODULE, ended}}]}),
    {ok, Summary} = witness:await(Run, infinity),
    {ok, Summary} = witness:stop(Run),
    {Summary, Run}.

ends(Count) ->
    lists:foreach(fun(_) ->
        {Pid, Ref} = spawn_monitor(?MODULE, ended, []),
        receive {'DOWN', Ref, process, Pid, _} -> ok end
    end, lists:seq(1, Count)).

ended() -> ok.

%% The handler is told of every event, or raises.
attach_telemetry(To) ->
    Events = [[witness, run, start], [witness, run, stop], [witness, verdict], [witness, gap]],
    case os:getenv("WITNESS_TELEMETRY") of
        false -> stand_in(To);
        Folder ->
            true = code:add_patha(Folder),
            {ok, _} = application:ensure_all_started(telemetry),
            ok = telemetry:attach_many(?MODULE, Events, fun ?MODULE:handle_telemetry/4, To)
    end.

detach_telemetry() ->
    case os:getenv("WITNESS_TELEMETRY") of
        false ->
            persistent_term:erase(?MODULE),
            true = code:delete(telemetry),
            code:purge(telemetry);
        _ -> telemetry:detach(?MODULE)
    end.

handle_telemetry(_, _, _, raises) -> error(oops);
handle_telemetry(Event, Measurements, Metadata, Pid) -> Pid ! {telemetry, {Event, Measurements, Metadata}}.

stand_in(To) ->
    persistent_term:put(?MODULE, To),
    Execute = "execute(E, M, D) -> witness_operations_SUITE:handle_telemetry(E, M, D, persistent_term:get(witness_operations_SUITE)).",
    Forms = [begin {ok, Tokens, _} = erl_scan:string(Line), {ok, Form} = erl_parse:parse_form(Tokens), Form end
             || Line <- ["-module(telemetry).", "-export([execute/3]).", Execute]],
    {ok, telemetry, Code} = compile:forms(Forms),
    {module, telemetry} = code:load_binary(telemetry, "telemetry", Code),
    ok.

%% --- processes -------------------------------------------------------------------

%% Every process of a run has a label and answers, again and again, while it works; a process that ends meanwhile does not.
processes_answer_under_load(Config) ->
    {Run, System} = load(Config),
    {ok, Appmon} = appmon_info:start_link(node(), self(), []),
    %% When it looks again later, it crashes if a process ends meanwhile.
    true = unlink(Appmon),
    ok = seen_by(Appmon),
    Idle = ask_all(),
    ?assertEqual([answered], lists:usort(maps:values(Idle))),
    ?assertEqual([], [Unlabelled || {_, undefined} = Unlabelled <- maps:keys(Idle)]),
    ?assertEqual(kinds(Config), lists:usort([kind(Label) || {_, Label} <- maps:keys(Idle)])),
    ?assert(maps:is_key({Run, witness_run}, Idle)),
    System ! go,
    Asked = ask_on(Idle),
    ?assertEqual([], maps:keys(Asked) -- [Key || Key := How <- Asked, How =:= answered orelse How =:= gone]),
    ?assertMatch({ok, #{outcome := ok, gaps := 0, verdicts := #{yes := 303, no := 0}}}, witness:await(Run, infinity)),
    exit(Appmon, kill),
    over(Run).

%% OTP's own look at the tree fails where a process ends meanwhile.
seen_by(Appmon) ->
    case appmon_info:app(Appmon, witness, true, []) of
        {error, {'EXIT', {badarg, [{erlang, element, _, _} | _]}}} -> seen_by(Appmon);
        Answer -> Answer
    end.

kinds(Config) ->
    lists:sort([witness_run, witness_run_notifier, witness_launcher, witness_monitor | case proplists:get_value(source, Config) of
        native -> [witness_dispatcher, witness_shard, witness_timer, witness_tracer, witness_throttle];
        evm -> [witness_pool, witness_tracer, witness_overload]
    end]).

kind(Label) when is_tuple(Label) -> element(1, Label);
kind(Label) -> Label.

%% Until the load is over.
ask_on(Asked) ->
    All = maps:merge(Asked, ask_all()),
    receive {done, _, _, _} -> All after 0 -> ask_on(All) end.

%% As observer does, which also looks at everything else.
ask_all() ->
    Collector = spawn_link(fun() -> receive never -> ok end end),
    observer_backend:procs_info(Collector),
    unlink(Collector),
    exit(Collector, kill),
    #{{P, Label} => ask(P) || {P, Label} <- own()}.

ask(P) ->
    try
        {status, P, {module, _}, [_ | _]} = sys:get_status(P, ?ANSWER_MS),
        _ = sys:get_state(P, ?ANSWER_MS),
        answered
    catch
        exit:{timeout, _} -> timeout;
        exit:{{timeout, _}, _} -> timeout;
        exit:_ -> gone
    end.

%% All that run a module of Witness, whether they have a label or not, but for those that stand, and this suite's own.
own() ->
    {ok, Modules} = application:get_key(witness, modules),
    Standing = [whereis(witness_sup) | [P || {_, P, _, _} <- supervisor:which_children(witness_sup)]],
    [{P, proc_lib:get_label(P)}
     || P <- processes(), P =/= self(), not lists:member(P, Standing), M <- first_modules(P), lists:member(M, Modules),
        M =/= witness_load, M =/= ?MODULE, M =/= witness_app].

first_modules(P) ->
    case process_info(P, initial_call) of
        {initial_call, {proc_lib, _, _}} -> [element(1, proc_lib:translate_initial_call(P))];
        {initial_call, {M, _, _}} -> [M];
        undefined -> []
    end.

%% What suspended processes had to do is done later.
what_is_suspended_loses_nothing(Config) ->
    {Run, System} = load(Config),
    Suspended = [P || {P, Label} <- own(), Label =/= witness_run],
    ?assert(length(Suspended) >= 5),
    [ok = sys:suspend(P, ?ANSWER_MS) || P <- Suspended],
    System ! go,
    receive {done, _, _, _} -> ok end,
    [ok = sys:resume(P, ?ANSWER_MS) || P <- Suspended],
    ?assertMatch({ok, #{outcome := ok, gaps := 0, verdicts := #{yes := 303, no := 0, inconclusive := 0}}},
                 witness:await(Run, infinity)),
    over(Run).

%% To terminate a process of Witness is to kill it: what it has not told is inconclusive, and nothing is left of the run.
what_is_terminated_is_missed(Config) ->
    [begin
         {Run, System} = load(Config),
         [Victim | _] = lists:sort([P || {P, Label} <- own(), kind(Label) =:= Kind]),
         ok = sys:terminate(Victim, normal, ?ANSWER_MS),
         %% It answers before it ends, and the load might be over by then.
         _ = witness_await:down(Victim),
         System ! go,
         receive {done, _, _, _} -> ok end,
         case witness:await(Run, infinity) of
             {ok, #{verdicts := #{no := No}, outcome := Outcome}} ->
                 ?assertEqual({Kind, 0, untrusted}, {Kind, No, Outcome});
             {error, {witness_run, {run_died, _}}} ->
                 ?assert(lists:member(Kind, [witness_run, witness_run_notifier]))
         end,
         over(Run)
     end || Kind <- kinds(Config)].

%% A load that waits to be told to go; everything that observes it is there by then.
load(Config) ->
    Quiet = {{?MODULE, loaded, 1}, {?MODULE, quiet}},
    {ok, Run} = witness:start(#{system => {?MODULE, loaded, [self()]}, source => proplists:get_value(source, Config), log => false,
                                monitors => [Quiet, Quiet, {{witness_load, '_', '_'}, {witness_load_monitor, check}},
                                             {{?MODULE, busy, 1}, {?MODULE, quiet}}]}),
    receive {loaded, System} -> ready(System, Run, kinds(Config)) end.

%% The monitors of the first process have read its birth, and each process of the run has come to give itself its label.
ready(System, Run, Kinds) ->
    witness_await:until(fun() ->
        Labels = [Label || {_, Label} <- own()],
        Missing = Kinds -- [kind(Label) || Label <- Labels],
        case {length([P || {witness_monitor, _, P} <- Labels, P =:= System]), lists:member(undefined, Labels), Missing} of
            {2, false, []} -> true;
            NotYet -> NotYet
        end
    end),
    {Run, System}.

loaded(Test) ->
    Test ! {loaded, self()},
    receive go -> ok end,
    {Busy, Ref} = spawn_monitor(?MODULE, busy, [Test]),
    receive {'DOWN', Ref, process, Busy, _} -> ok end.

busy(Test) -> witness_load:flat(Test, 300, 50, 200).

over(Run) ->
    _ = try witness:stop(Run) catch exit:_ -> ok end,
    witness_await:until(fun() -> own() =:= [] end).
