-module(witness_replace_SUITE).
-moduledoc """
Code and specifications change while a run goes on: modules of the system, monitors written by hand, and the run's own
specifications (`witness:replace/2`).
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, native}, {group, evm}].

groups() ->
    Both = [new_processes_get_the_new_specification, a_wrong_specification_changes_nothing, what_is_not_gathered_is_refused,
            a_group_goes_on_as_it_began, each_process_has_all_of_one_version, a_monitored_module_is_loaded_twice,
            a_monitor_is_loaded_anew, a_monitor_whose_functions_are_gone_crashes, a_monitor_in_purged_code_is_inconclusive],
    [{native, [], Both}, {evm, [], Both}].

init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, _) -> ok.

init_per_testcase(_, Config) ->
    {ok, _} = application:ensure_all_started(witness),
    Config.

end_per_testcase(_, _) -> application:stop(witness).

%% --- specifications --------------------------------------------------------------

new_processes_get_the_new_specification(Config) ->
    File = write("limit.hml", limit(5), Config),
    {Run, Root} = start(#{specs => [File]}, Config),
    Old = new_worker(Root),
    ?assertEqual(1, loaded()),
    _ = write("limit.hml", ["\n\n" | limit(50)], Config),
    {ok, []} = witness:replace(Run, [File]),
    ?assertEqual(2, loaded()),
    New = new_worker(Root),
    [say(10, W) || W <- [Old, New]],
    %% The violation has ended the only monitor of the old one.
    witness_await:until(fun() -> loaded() =:= 1 end),
    say(51, New),
    ok = ended(Root),
    {ok, Summary} = witness:await(Run, infinity),
    [First, Second] = witness:verdicts(Run),
    ?assertMatch(#{verdict := no, process := Old,
                   source := #{line := 2, text := <<"monitor max X. ([_ ? {say, N} when N =< 5]", _/binary>>}},
                 First),
    ?assertNot(is_map_key(version, First)),
    ?assertMatch(#{verdict := no, process := New, version := 2,
                   source := #{line := 4, text := <<"monitor max X. ([_ ? {say, N} when N =< 50]", _/binary>>}},
                 Second),
    #{coverage := [#{version := 1, actions := [_ | _]}, #{version := 2, actions := [_ | _]}], monitored := 2} = Summary,
    {ok, _} = witness:stop(Run),
    witness_await:until(fun() -> loaded() =:= 0 end).

limit(Most) ->
    io_lib:format("limit: with witness_replace_SUITE:worker(_) over _ ? {say, _}~n"
                  "monitor max X. ([_ ? {say, N} when N =< ~w] X and [_ ? {say, M} when M > ~w] ff).~n", [Most, Most]).

a_wrong_specification_changes_nothing(Config) ->
    File = write("limit.hml", limit(5), Config),
    {Run, Root} = start(#{specs => [File]}, Config),
    Wrong = write("wrong.hml", "limit: with m:f(_) monitor [_ ? X", Config),
    {error, {witness_spec, [_ | _]} = Reason} = witness:replace(Run, [File, Wrong]),
    ?assert(iolist_size(witness:format_error(Reason)) > 0),
    ?assertEqual(1, loaded()),
    say(6, new_worker(Root)),
    ok = ended(Root),
    ?assertMatch({ok, #{verdicts := #{no := 1}}}, witness:await(Run, infinity)),
    {error, {witness_run, {not_replaced, ended}}} = witness:replace(Run, [File]),
    ?assertEqual(1, loaded()),
    {ok, _} = witness:stop(Run).

%% What no monitor needed at the start is not traced, so a new monitor that needs it would miss it.
what_is_not_gathered_is_refused(Config) ->
    Native = proplists:get_value(source, Config) =:= native,
    Narrow = write("narrow.hml", "narrow: with witness_replace_SUITE:worker(_) over _ ? {say, _} monitor [_ ? {say, 7}] ff.",
                   Config),
    Narrower = write("narrower.hml", "narrow: with witness_replace_SUITE:worker(_) over _ ? {say, _} monitor [_ ? {say, 8}] ff.",
                     Config),
    Sends = write("sends.hml", "sends: with witness_replace_SUITE:worker(_) over _ : _ ! {said, _} monitor [_ : _ ! {said, 7}] ff.",
                  Config),
    Other = write("other.hml", "other: with witness_replace_SUITE:other(_) over _ ? {say, _} monitor [_ ? {say, 7}] ff.", Config),
    Group = write("group.hml", "group: with witness_replace_SUITE:worker(_) group over _ ? {say, _} monitor [_ ? {say, 7}] ff.",
                  Config),
    {Run, Root} = start(#{specs => [Narrow]}, Config),
    ?assertEqual({ok, []}, witness:replace(Run, [Narrower])),
    {error, {witness_run, {not_replaced, messages}} = Reason} = witness:replace(Run, [Sends]),
    ?assertMatch({match, _}, re:run(witness:format_error(Reason), "start it with the option replaceable")),
    ?assertEqual(case Native of true -> {error, {witness_run, {not_replaced, signatures}}}; false -> {ok, []} end,
                 witness:replace(Run, [Other])),
    ?assertEqual({error, {witness_run, {not_replaced, case Native of true -> signatures; false -> groups end}}},
                 witness:replace(Run, [Group])),
    ok = ended(Root),
    {ok, _} = witness:stop(Run),
    {Run1, Root1} = start(#{specs => [Narrow], replaceable => true}, Config),
    [?assertEqual({ok, []}, witness:replace(Run1, [New])) || New <- [Sends, Other]],
    {ok, []} = witness:replace(Run1, [Sends, Other]),
    say(7, new_worker(Root1)),
    say(7, new_other(Root1)),
    ?assertEqual(case Native of true -> {error, {witness_run, {not_replaced, signatures}}}; false -> {ok, []} end,
                 witness:replace(Run1, [Group])),
    ok = ended(Root1),
    ?assertMatch({ok, #{verdicts := #{no := 2}}}, witness:await(Run1, infinity)),
    {ok, _} = witness:stop(Run1).

%% The old group reads its later children, also one that the new specification names, which has a monitor of its own.
a_group_goes_on_as_it_began(Config) ->
    Group = fun(N) ->
        io_lib:format("all: with witness_replace_SUITE:parent(_) group over _ ? {say, _} monitor [_ ? {say, 1}] [_ ? {say, ~w}] ff.", [N])
    end,
    File = write("group.hml", Group(2), Config),
    {Run, Root} = start(#{specs => [File]}, Config),
    Old = new_parent(Root),
    First = child(Old),
    say(1, First),
    _ = write("group.hml", [Group(3), "\nchild: with witness_replace_SUITE:worker(_) over _ ? {say, _} monitor [_ ? {say, 2}] ff."],
              Config),
    Options = case proplists:get_value(source, Config) of
        evm -> {ok, []} = witness:replace(Run, [File]);
        %% The native source has to know a signature before.
        native -> witness:replace(Run, [File])
    end,
    Second = child(Old),
    say(2, Second),
    New = new_parent(Root),
    Third = child(New),
    say(2, Third),
    [leave(P) || P <- [First, Second, Third, Old, New]],
    ok = ended(Root),
    {ok, _} = witness:await(Run, infinity),
    Found = lists:sort([{maps:get(version, V, 1), Name, P}
                        || #{verdict := no, name := Name, process := P} = V <- witness:verdicts(Run)]),
    case Options of
        {ok, _} -> ?assertEqual(lists:sort([{1, ~"all", Old}, {2, ~"child", Second}, {2, ~"child", Third}]), Found);
        {error, {witness_run, {not_replaced, signatures}}} -> ?assertEqual([{1, ~"all", Old}], Found)
    end,
    {ok, _} = witness:stop(Run).

%% Two files, replaced again and again while processes are born: each process has the monitors of one version. In the time of each
%% version some are born, however late the processes of this test run.
each_process_has_all_of_one_version(Config) ->
    Spec = fun(Name) ->
        write(Name ++ ".hml", [Name, ": with witness_replace_SUITE:brief(_) monitor [_ <- _, _] [_ ** killed] ff."], Config)
    end,
    Files = [Spec("one"), Spec("two")],
    {Run, Root} = start(#{specs => Files, max_verdicts => 1_000_000}, Config),
    Root ! {briefly, self()},
    [begin
         Root ! {several, self()},
         receive several -> ok end,
         {ok, []} = witness:replace(Run, Files)
     end || _ <- lists:seq(1, 5)],
    Root ! enough,
    receive enough -> ok end,
    ok = ended(Root),
    {ok, #{monitored := Monitored, verdicts := #{yes := Monitored, no := 0, inconclusive := 0}}} = witness:await(Run, infinity),
    Versions = maps:groups_from_list(fun(#{process := P}) -> P end, fun(V) -> maps:get(version, V, 1) end, witness:verdicts(Run)),
    ?assertEqual(Monitored, 2 * map_size(Versions)),
    ?assertEqual([], [Of || Of <- maps:values(Versions), length(Of) =/= 2 orelse length(lists:usort(Of)) =/= 1]),
    ?assertEqual(lists:seq(1, 6), lists:usort(lists:append(maps:values(Versions)))),
    {ok, _} = witness:stop(Run),
    witness_await:until(fun() -> loaded() =:= 0 end).

%% --- code ------------------------------------------------------------------------

%% One process goes on in the new code. One that stays in the old code is killed when that is purged. Both traces are whole.
a_monitored_module_is_loaded_twice(Config) ->
    File = write("server.hml",
                 ["counts: with witness_replace_server:loop(_, _)\n",
                  "check [_ <- _, _] max X. ([_ ? {get, _}] [_ : _ ! {value, N, N}] X and [_ ? {get, _}] <_ : _ ! _> tt and [_ ** stopped] tt)."], Config),
    load_server(1),
    {Run, Root} = start(#{specs => [File], monitors => [{{witness_replace_server, stay, 0}, {?MODULE, reason}}]}, Config),
    [Server, Stays] = [made(Root, Call) || Call <- [{loop, [0, 0]}, {stay, []}]],
    Ref = monitor(process, Stays),
    %% It runs the first version from here on.
    witness_await:waits(Stays),
    ?assertEqual([{0, 1}, {1, 1}], [asked(Server) || _ <- [1, 2]]),
    load_server(2),
    ?assertEqual([{2, 1}, {3, 2}], [asked(Server) || _ <- [1, 2]]),
    load_server(3),
    receive {'DOWN', Ref, process, Stays, killed} -> ok end,
    ?assertEqual([{4, 2}, {5, 3}], [asked(Server) || _ <- [1, 2]]),
    Server ! stop,
    ok = ended(Root),
    {ok, #{gaps := 0, verdicts := #{no := 0, inconclusive := 0}}} = witness:await(Run, infinity),
    ?assertMatch([_], [V || #{info := {reason, killed}} = V <- witness:verdicts(Run)]),
    ?assertMatch([_], [V || #{name := ~"counts", verdict := yes} = V <- witness:verdicts(Run)]),
    {ok, _} = witness:stop(Run),
    unload(witness_replace_server).

load_server(Version) ->
    load(["-module(witness_replace_server).", "-export([loop/2, stay/0]).",
          "loop(N, _) -> receive {get, From} -> From ! {value, N, N}, From ! {code, " ++ integer_to_list(Version) ++
              "}, witness_replace_server:loop(N + 1, 0); stop -> exit(stopped) end.",
          "stay() -> receive never -> ok end."]).

asked(Server) ->
    Server ! {get, self()},
    receive {value, N, N} -> receive {code, Version} -> {N, Version} end end.

%% The next event is read by the new code, with the state that the old code has made.
a_monitor_is_loaded_anew(Config) ->
    load_monitor("{ok, {old, 1}}", "{ok, {old, N + 1}}"),
    {Run, Root} = start(#{monitors => [{{?MODULE, worker, 1}, {witness_replace_monitor, []}}]}, Config),
    Worker = new_worker(Root),
    say(1, Worker),
    witness_await:until(fun() -> read(Run, Worker) >= 3 end),
    load_monitor("{ok, {new, 1}}", "{verdict, no, {new, N}}"),
    load_monitor("{ok, {new, 1}}", "{verdict, no, {new, N}}"),
    say(2, Worker),
    ok = ended(Root),
    {ok, #{verdicts := #{no := 1}}} = witness:await(Run, infinity),
    ?assertMatch([#{info := {new, N}}] when N >= 3, witness:verdicts(Run)),
    {ok, _} = witness:stop(Run),
    unload(witness_replace_monitor).

%% Its state holds a function of code that is purged: to call it is a crash like any other.
a_monitor_whose_functions_are_gone_crashes(Config) ->
    load_monitor("{ok, {fun() -> Process end, 1}}", "_ = F(), {ok, {F, N + 1}}"),
    {Run, Root} = start(#{monitors => [{{?MODULE, worker, 1}, {witness_replace_monitor, []}}]}, Config),
    Worker = new_worker(Root),
    say(1, Worker),
    witness_await:until(fun() -> read(Run, Worker) >= 3 end),
    [load_monitor("{ok, {fun() -> [Process] end, 1}}", "_ = F(), {ok, {F, N + 1}}") || _ <- [1, 2]],
    say(2, Worker),
    ok = ended(Root),
    ?assertMatch({ok, #{outcome := untrusted, verdicts := #{inconclusive := 1}}}, witness:await(Run, infinity)),
    ?assertMatch([#{reason := {crashed, _}}], witness:verdicts(Run)),
    {ok, _} = witness:stop(Run),
    unload(witness_replace_monitor).

%% The monitor is in the old code when that is purged, which kills it, and the verdict says so.
a_monitor_in_purged_code_is_inconclusive(Config) ->
    load_monitor("{ok, {Process, 1}}", "receive never -> {ok, {F, N + 1}} end"),
    {Run, Root} = start(#{monitors => [{{?MODULE, worker, 1}, {witness_replace_monitor, []}}]}, Config),
    Worker = new_worker(Root),
    say(1, Worker),
    witness_await:until(fun() -> [x || P <- processes(),
                         process_info(P, current_function) =:= {current_function,
                                                                {witness_replace_monitor, handle_event, 2}}] =/= [] end),
    [load_monitor("{ok, {Process, 2}}", "{ok, {F, N + 1}}") || _ <- [1, 2]],
    say(2, Worker),
    ok = ended(Root),
    ?assertMatch({ok, #{outcome := untrusted, verdicts := #{inconclusive := 1}}}, witness:await(Run, infinity)),
    ?assertMatch([#{reason := {crashed, killed}}], witness:verdicts(Run)),
    {ok, _} = witness:stop(Run),
    unload(witness_replace_monitor).

load_monitor(Init, Next) ->
    load(["-module(witness_replace_monitor).", "-export([init/3, handle_event/2, read/1]).",
          "init(_, Process, _) -> _ = Process, " ++ Init ++ ".", "handle_event(_, {F, N}) -> _ = F, " ++ Next ++ ".",
          "read({_, N}) -> N."]).

%% How many events the monitor of a process has read.
read(_, Worker) ->
    Machines = [element(tuple_size(R), R)
                || P <- processes(), {witness_monitor, _, Read} <- [proc_lib:get_label(P)], Read =:= Worker,
                                             R <- [sys:get_state(P)]],
    case Machines of
        [{single, _, {_, Index, _, _}}] -> Index;
        _ -> 0
    end.

init(_, _, reason) -> {ok, reason}.

handle_event({exit, _, Reason, _}, reason) -> {verdict, yes, {reason, Reason}};
handle_event(_, reason) -> {ok, reason}.

load(Lines) ->
    Forms = [begin {ok, Tokens, _} = erl_scan:string(Line), {ok, Form} = erl_parse:parse_form(Tokens), Form end || Line <- Lines],
    {ok, Module, Code} = compile:forms(Forms),
    %% As a release handler does: a process that still runs the code before the last is killed.
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, "made here", Code).

unload(Module) ->
    _ = code:purge(Module),
    true = code:delete(Module),
    code:purge(Module).

%% --- the system ------------------------------------------------------------------

start(Options, Config) ->
    {ok, Run} = witness:start(Options#{system => {?MODULE, root, [self()]}, source => proplists:get_value(source, Config),
                                       log => false}),
    receive {root, Root} -> {Run, Root} end.

root(Test) ->
    Test ! {root, self()},
    serve([]).

serve(Children) ->
    receive
        {spawn, From, {M, F, Args}} ->
            Child = spawn(M, F, Args),
            From ! {spawned, Child},
            serve([Child | Children]);
        {briefly, From} ->
            briefly(1, From),
            serve(Children);
        {finish, From} ->
            [Child ! leave || Child <- Children],
            From ! {finished, self()}
    end.

%% Until the test says that it is enough, and once more. Of the processes that it asks for all begin after the question.
briefly(N, From) ->
    once(N),
    receive
        {several, From} ->
            [once(I) || I <- lists:seq(N + 1, N + 10)],
            From ! several,
            briefly(N + 11, From);
        enough -> once(N), From ! enough
    after 0 -> briefly(N + 1, From)
    end.

once(N) ->
    {Pid, Ref} = spawn_monitor(?MODULE, brief, [N]),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

%% Some work, so that the processes do not become too many.
brief(N) -> lists:sort([{erlang:phash2(I), I} || I <- lists:seq(1, 5_000 + N)]).

made(Root, {F, Args}) -> made(Root, {witness_replace_server, F, Args});
made(Root, Call) ->
    Root ! {spawn, self(), Call},
    receive {spawned, Child} -> Child end.

new_worker(Root) -> made(Root, {?MODULE, worker, [self()]}).

new_other(Root) -> made(Root, {?MODULE, other, [self()]}).

new_parent(Root) -> made(Root, {?MODULE, parent, [self()]}).

child(Parent) -> made(Parent, {?MODULE, worker, [self()]}).

worker(Test) -> receive {say, N} -> Test ! {said, N}, worker(Test); leave -> ok end.

other(Test) -> receive {say, N} -> Test ! {said, N}, other(Test); leave -> ok end.

parent(_) -> serve([]).

say(N, Worker) ->
    Worker ! {say, N},
    receive {said, N} -> ok end.

leave(P) ->
    P ! leave,
    P ! {finish, self()},
    ok.

ended(Root) ->
    Root ! {finish, self()},
    receive {finished, Root} -> ok end.

write(Name, Text, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = file:write_file(File, Text),
    File.

%% How many modules of specifications there are.
loaded() -> length([M || {M, _} <- code:all_loaded(), lists:prefix("witness_spec_code_", atom_to_list(M))]).
