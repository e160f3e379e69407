-module(witness_record_end_SUITE).
-moduledoc """
What a recording says when it has ended. A process that was alive at a planned end was stopped. A recording cannot be
replayed for the same reasons for which a replay refuses it.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 20}}].

all() -> [dependencies_that_live_on_are_stopped, a_violation_before_a_planned_end_is_one, what_a_waiting_process_has_sent_was_sent,
          a_process_that_hibernates_has_not_done_what_comes_then,
          a_program_that_spawns_without_end_does_nothing_behind_its_recording,
          an_application_of_a_function_is_monitored, an_application_that_a_function_starts_is_recorded,
          an_application_of_many_modules_is_replayed,
          witness_is_left_out_where_the_program_starts_it, an_interrupt_stops_an_application,
          an_interrupted_recording_is_a_consistent_cut,
          record_says_what_replay_says, applications_that_are_called_are_woven, named_options_make_it_replayable,
          the_copy_of_a_project_is_left_out, a_project_of_rebar3_that_depends_on_witness].

init_per_suite(Config) ->
    Ebin = filename:join(proplists:get_value(priv_dir, Config), "ebin"),
    ok = filelib:ensure_path(Ebin),
    ok = application_files(Ebin),
    _ = [compiled(Name, Text, [debug_info], Ebin) || {Name, Text} <- programs()],
    [{ebin, Ebin} | Config].

end_per_suite(_) -> ok.

%% An application with a server, and one that depends on it. The second one stops by itself when it has asked and the server
%% waits.
application_files(Ebin) ->
    [ok = file:write_file(filename:join(Ebin, atom_to_list(App) ++ ".app"),
                          io_lib:format("{application, ~p, [{vsn, \"1\"}, {modules, []}, {registered, []}, {applications, ~p}, {mod, {~p, []}}]}.~n",
                                        [App, [kernel, stdlib | Needs], App]))
     || {App, Needs} <- [{end_lower, []}, {end_upper, [end_lower]}, {end_sleeper, []}]],
    ok.

programs() ->
    [{end_lower, """
      -behaviour(gen_server).
      -export([start/2, stop/1, init/1, handle_call/3, handle_cast/2, ask/1]).
      start(_, _) -> gen_server:start_link({local, end_lower}, end_lower, server, []).
      stop(_) -> ok.
      init(server) -> {ok, 0}.
      %% The last thing that is recorded of it is that it looks for the name.
      handle_call(last, From, N) ->
          Init = whereis(init),
          gen_server:reply(From, N),
          Init ! told,
          {noreply, N};
      handle_call(_, _, N) -> {reply, N, N + 1}.
      handle_cast(_, N) -> {noreply, N}.
      ask(What) -> gen_server:call(end_lower, What).
      """},
     {end_starter, """
      -export([main/0]).
      main() ->
          {ok, [end_lower]} = application:ensure_all_started(end_lower),
          0 = end_lower:ask(bad),
          ok = application:stop(end_lower),
          {error, _} = application:start(end_nowhere),
          {ok, [end_lower]} = application:ensure_all_started(end_lower),
          0 = end_lower:ask(bad).
      """},
     {end_starting, """
      -export([main/0]).
      main() -> application:ensure_all_started([sasl, kernel, end_lower, xref]).
      """},
     {end_upper, """
      -export([start/2, stop/1, work/0]).
      start(_, _) -> {ok, spawn_link(end_upper, work, [])}.
      stop(_) -> ok.
      work() ->
          [end_lower:ask({n, N}) || N <- [1, 2, 3]],
          end_lower:ask(last),
          waits(whereis(end_lower)).
      waits(Pid) ->
          case process_info(Pid, [status, message_queue_len]) of
              [{status, waiting}, {message_queue_len, 0}] -> ok;
              _ -> erlang:yield(), waits(Pid)
          end.
      """},
     {end_sleeper, """
      -export([start/2, stop/1, main/0, work/0, awake/1]).
      start(_, _) -> {ok, spawn_link(end_sleeper, work, [])}.
      stop(_) -> ok.
      work() ->
          register(end_sleeper, self()),
          Init = whereis(init),
          Init ! good,
          erlang:hibernate(end_sleeper, awake, [Init]).
      awake(Init) ->
          Init ! bad,
          receive never -> ok end.
      main() ->
          {ok, _} = application:ensure_all_started(end_sleeper),
          sleeps(whereis(end_sleeper)).
      sleeps(Pid) ->
          case is_pid(Pid) andalso process_info(Pid, [current_function, status]) of
              [{current_function, {erlang, hibernate, 3}}, {status, waiting}] -> ok;
              _ -> erlang:yield(), sleeps(whereis(end_sleeper))
          end.
      """},
     {end_chains, """
      -export([main/1, step/2]).
      main(File) -> [spawn(end_chains, step, [1, File]) || _ <- lists:seq(1, 8)].
      step(N, File) ->
          N rem 1000 =:= 0 andalso says(File),
          spawn(end_chains, step, [N + 1, File]).
      %% Whatever else of the system has ended.
      says(File) ->
          {ok, Open} = file:open(File, [raw, append]),
          ok = file:write(Open, "spawned\n"),
          ok = file:close(Open),
          io:format("spawned~n").
      """},
     {end_kinds, """
      -export([nothing/0, found/1, made/0, gone/0, node/0, driver/1, chatter/0, chat/0, applied/1]).
      nothing() -> ok.
      found(Folder) -> true = code:add_patha(Folder), end_found:f().
      made() ->
          Text = "-module(end_made). -export([f/0]). f() -> self() ! x, receive x -> ok end.",
          {ok, Tokens, _} = erl_scan:string(Text),
          Forms = [element(2, erl_parse:parse_form(Form)) || Form <- forms(Tokens)],
          Compile = list_to_atom("compile"),
          {ok, end_made, Code} = Compile:forms(Forms, []),
          {module, end_made} = code:load_binary(end_made, "end_made.erl", Code),
          end_made:f().
      forms(Tokens) -> forms(Tokens, [], []).
      forms([], [], Forms) -> lists:reverse(Forms);
      forms([{dot, _} = Dot | Rest], Form, Forms) -> forms(Rest, [], [lists:reverse([Dot | Form]) | Forms]);
      forms([Token | Rest], Form, Forms) -> forms(Rest, [Token | Form], Forms).
      gone() -> made(), true = code:delete(end_made), code:purge(end_made).
      node() ->
          Name = list_to_atom("witness_end_" ++ os:getpid() ++ "@localhost"),
          _ = net_kernel:start(Name, #{name_domain => shortnames, hidden => true}),
          Alive = is_alive(),
          _ = net_kernel:stop(),
          true = Alive.
      driver(Dir) ->
          ok = erl_ddll:load_driver(Dir, "trace_file_drv"),
          ok = erl_ddll:unload_driver("trace_file_drv").
      chatter() ->
          Pids = [spawn(end_kinds, chat, []) || _ <- lists:seq(1, 4)],
          [Pid ! {to, Pids} || Pid <- Pids],
          [Pid ! {ball, 0} || Pid <- Pids],
          receive after infinity -> ok end.
      chat() -> receive {to, Pids} -> chat(Pids) end.
      chat([Pid | Pids]) ->
          receive {ball, N} -> Pid ! {ball, N + 1} end,
          chat(Pids ++ [Pid]).
      applied(Module) -> M = list_to_atom(Module), M:module_info(md5).
      """},
     {end_called, """
      -export([main/0]).
      main() -> {ok, _} = file:consult(code:where_is_file("kernel.app")), other().
      other() -> end_called_other:other().
      """},
     {end_called_other, """
      -export([other/0]).
      other() -> crypto:strong_rand_bytes(4), erl_syntax:atom(a).
      """}].

compiled(Name, Text, Options, Ebin) ->
    File = filename:join(Ebin, atom_to_list(Name) ++ ".erl"),
    ok = file:write_file(File, [io_lib:format("-module(~p).~n", [Name]), Text]),
    {ok, Name} = compile:file(File, [{outdir, Ebin}, return_errors | Options]).

%% --- planned ends --------------------------------------------------------------------

-define(LOWER, "with end_lower:init(_) over _ ? call(_, _) check max X.([_ ? call(_, bad)] ff and [_ ? call(_, M) when M =/= bad] X).").

%% A process that is alive at the end misses nothing: it is undecided, and not because of a gap.
dependencies_that_live_on_are_stopped(Config) ->
    Spec = spec(?FUNCTION_NAME, ?LOWER, Config),
    [begin
         {Dir, #{exit := 0, stdout := Text}} = recorded(?FUNCTION_NAME, Options ++ ["--spec", Spec, "--app", "end_upper"], Config),
         witness_command:contains(Text, [~"RECORDED"]),
         [begin
              {Exit, Lines} = json(Command ++ ["--json", "--spec", Spec, Dir], Config),
              ?assertEqual(0, Exit),
              [#{~"verdict" := ~"inconclusive", ~"explanation" := Why}] = of_type(~"verdict", Lines),
              ?assertMatch(#{~"kind" := ~"reason", ~"text" := ~"watching stopped before a decision"}, lists:last(Why)),
              ?assertMatch([#{~"gaps" := 0}], of_type(~"summary", Lines))
          end || Command <- [["replay"], ["check", "--replay"]]],
         {0, Replayed} = json(["replay", "--json", Dir], Config),
         ?assertMatch([#{~"outcome" := ~"identical", ~"complete" := true, ~"cut" := 0, ~"stopped" := Alive}] when Alive > 0,
                      of_type(~"replay", Replayed)),
         #{exit := 0, stdout := Told} = witness(["replay", Dir], Config),
         witness_command:contains(Told, [~"still alive when the recording ended", ~"IDENTICAL: every process of "])
     end || Options <- [[], ["--contents"]]].

a_violation_before_a_planned_end_is_one(Config) ->
    Spec = spec(?FUNCTION_NAME, string:replace(?LOWER, "bad", "last", all), Config),
    {Dir, #{exit := 1}} = recorded(?FUNCTION_NAME, ["--spec", Spec, "--app", "end_upper"], Config),
    [?assertMatch(#{exit := 1}, witness(Command ++ ["--spec", Spec, Dir], Config))
     || Command <- [["replay"], ["check", "--replay"]]].

%% The server sends after its last entry, and waits when the recording ends.
what_a_waiting_process_has_sent_was_sent(Config) ->
    Spec = spec(?FUNCTION_NAME, "with end_lower:init(_) over _ : _ ! told check [_ : _ ! told] ff.", Config),
    {Dir, #{exit := 1}} = recorded(?FUNCTION_NAME, ["--spec", Spec, "--app", "end_upper"], Config),
    ?assertMatch(#{exit := 1}, witness(["replay", "--spec", Spec, Dir], Config)).

%% It would send something else when it wakes, but it never wakes, neither in the recording nor in a replay.
a_process_that_hibernates_has_not_done_what_comes_then(Config) ->
    Spec = spec(?FUNCTION_NAME, "with end_sleeper:work() over _ : _ ! _ check [_ : _ ! good] [_ : _ ! bad] ff.", Config),
    Dir = dir(?FUNCTION_NAME, Config),
    Pa = proplists:get_value(ebin, Config),
    #{exit := Recorded} = witness(["record", "--spec", Spec, "-o", Dir, "--pa", Pa, "end_sleeper:main()"], Config),
    {Replayed, Lines} = json(["replay", "--json", "--spec", Spec, Dir], Config),
    ct:pal("~p", [Lines]),
    ?assertEqual({0, 0}, {Recorded, Replayed}),
    ?assertEqual([], of_type(~"gap", Lines)).

%% The program prints a line for each thousand births of a chain. After the end of the recording it prints none.
a_program_that_spawns_without_end_does_nothing_behind_its_recording(Config) ->
    Dir = dir(?FUNCTION_NAME, Config),
    [Errors, Said] = [filename:join(proplists:get_value(priv_dir, Config), Name) || Name <- ["chains.errors", "chains"]],
    Port = witness_command:start(Config, Errors, executable(Config),
                                 ["record", "-o", Dir, "--pa", proplists:get_value(ebin, Config), call(end_chains, main, [Said])]),
    Before = witness_command:until(Port, ~"spawned\n", ~""),
    ok = witness_command:signal(Port, "TERM"),
    {3, Output} = witness_command:collect(Port, Before),
    {match, [Born]} = re:run(Output, "recorded +([0-9]+) processes", [{capture, all_but_first, list}]),
    {ok, Lines} = file:read_file(Said),
    ?assertMatch({N, Most} when N =< Most, {byte_size(Lines) div byte_size(~"spawned\n"), list_to_integer(Born) div 1000}).

%% The same as `run' does, and as its summary says.
an_application_of_a_function_is_monitored(Config) ->
    Dir = dir(?FUNCTION_NAME, Config),
    Self = self(),
    {ok, Run} = witness_recorded_run:start(#{run => {end_lower, ask, [bad]}, applications => [end_lower], dir => Dir,
                                          pa => [proplists:get_value(ebin, Config)]},
                                        #{specs => [spec(?FUNCTION_NAME, ?LOWER, Config)]},
                                        fun(Result) -> Self ! {recorded, Result} end),
    ?assertMatch({ok, #{outcome := violated, monitored := 1}}, witness:await(Run, infinity)),
    receive {recorded, Result} -> ?assertMatch({ok, #{ended := {returned, normal}, refused := []}}, Result) end,
    {ok, R} = witness_log_recording:open(Dir),
    ?assertMatch(#{complete := true, stopped := {returned, normal}}, witness_log_recording:info(R)),
    {ok, Waiting} = witness_log_recording:waiting(R),
    ?assert(map_size(Waiting) > 0).

%% Most programs begin with a function that starts an application itself. This one stops it, starts it once more, and fails
%% to start another one.
an_application_that_a_function_starts_is_recorded(Config) ->
    Ebin = proplists:get_value(ebin, Config),
    Spec = spec(?FUNCTION_NAME, ?LOWER, Config),
    #{exit := 1, stdout := Run} = witness(["run", "--pa", Ebin, "--spec", Spec, "end_starter:main()"], Config),
    Counts = fun(Output) -> {match, [Found]} = re:run(Output, "monitors +(.*)", [{capture, all_but_first, binary}]), Found end,
    ?assertEqual(~"2: 2 violated", Counts(Run)),
    lists:foreach(fun(More) ->
        Dir = dir(?FUNCTION_NAME, Config),
        #{exit := 1, stdout := Recorded} =
            witness(["record", "--spec", Spec, "--pa", Ebin, "-o", Dir | More] ++ ["end_starter:main()"], Config),
        ?assertEqual(Counts(Run), Counts(Recorded)),
        {ok, R} = witness_log_recording:open(Dir),
        ?assertMatch(#{complete := true, stopped := {returned, normal}}, witness_log_recording:info(R)),
        case More of
            ["--tracing-only" | _] -> ?assertMatch(#{exit := 1}, witness(["check", "--spec", Spec, Dir], Config));
            _ -> ?assertMatch(#{exit := 0}, witness(["replay", "--check", Dir], Config))
        end
    end, [[], ["--contents"], ["--tracing-only", "--contents"]]).

%% The arguments of the application's first process contain what the application controller knows of it.
an_application_of_many_modules_is_replayed(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "large"),
    ok = filelib:ensure_path(Folder),
    Modules = [list_to_atom("end_large_" ++ integer_to_list(N)) || N <- lists:seq(1, 1000)],
    Keys = [{vsn, "1"}, {modules, Modules}, {registered, []}, {applications, [kernel, stdlib]}, {mod, {end_lower, []}}],
    ok = file:write_file(filename:join(Folder, "end_large.app"), io_lib:format("~p.~n", [{application, end_large, Keys}])),
    Pa = [Folder, proplists:get_value(ebin, Config)],
    lists:foreach(fun(Options) ->
        Dir = dir(?FUNCTION_NAME, Config),
        {ok, #{outcome := recorded, refused := [], born := Born}} = witness_record:record(Options#{dir => Dir, pa => Pa}),
        ?assert(Born >= 4),
        ?assertMatch({ok, #{outcome := identical, complete := true, processes := Born}}, witness_replay:replay(#{dir => Dir}))
    end, [#{run => {end_lower, ask, [x]}, applications => [end_large]}, #{run => {application, ensure_all_started, [end_large]}}]).

witness_is_left_out_where_the_program_starts_it(Config) ->
    Dir = dir(?FUNCTION_NAME, Config),
    {ok, #{outcome := recorded, refused := [], born := 1}} =
        witness_record:record(#{run => {application, ensure_all_started, [witness]}, dir => Dir,
                                pa => [proplists:get_value(ebin, Config)]}),
    ?assertMatch({ok, #{outcome := identical, complete := true}}, witness_replay:replay(#{dir => Dir})).

an_interrupt_stops_an_application(Config) ->
    Dir = dir(?FUNCTION_NAME, Config),
    {ok, Recording} = witness_record:start(#{app => end_lower, dir => Dir, pa => [proplists:get_value(ebin, Config)]}),
    ok = witness_record:stop(Recording),
    {ok, #{outcome := recorded, ended := stopped, refused := []}} = witness_record:await(Recording, infinity),
    ?assertMatch({ok, #{outcome := identical, complete := true, cut := 0}}, witness_replay:replay(#{dir => Dir})).

%% All schedulers send and take. By the entries of both processes, each message that was taken was sent.
an_interrupted_recording_is_a_consistent_cut(Config) ->
    [begin
         {ok, R} = witness_log_recording:open(interrupted(Config)),
         {ok, Processes} = witness_log_recording:processes(R),
         Ids = #{Pid => Id || #{id := Id, pid := Pid} <- Processes},
         Told = #{Id => Entries || #{id := Id} <- Processes,
                                   {ok, Entries} <- [witness_log_recording:fold(fun(Entry, Acc) -> [Entry | Acc] end, [], Id, R)]},
         Sent = count([{Id, map_get(To, Ids)} || Id := Entries <- Told, {sent, To, _} <- Entries]),
         Taken = count([{From, Id} || Id := Entries <- Told, {from, From} <- Entries]),
         ?assert(lists:sum(maps:values(Taken)) > 1000),
         ?assertEqual([], [{Pair, N} || Pair := N <- Taken, N > maps:get(Pair, Sent, 0)])
     end || _ <- [1, 2, 3]].

%% The program does nothing else: on a busy machine more may wait to be written than may, until the interrupt comes.
interrupted(Config) ->
    Dir = dir(?FUNCTION_NAME, Config),
    {ok, Recording} =
        witness_record:start(#{run => {end_kinds, chatter, []}, contents => true, dir => Dir, vm_args => ["+S", "4:4"],
                               budget => 1 bsl 28, pa => [proplists:get_value(ebin, Config)]}),
    ok = grown(filename:join(Dir, "order")),
    ok = witness_record:stop(Recording),
    case witness_record:await(Recording, infinity) of
        {ok, #{outcome := recorded, ended := stopped}} -> Dir;
        {ok, #{outcome := {ended, budget}}} -> interrupted(Config)
    end.

grown(File) -> witness_await:until(fun() -> filelib:file_size(File) > 10_000 end).

count(Pairs) -> lists:foldl(fun(Pair, Counts) -> maps:update_with(Pair, fun(N) -> N + 1 end, 1, Counts) end, #{}, Pairs).

%% --- whether it can be replayed --------------------------------------------------------

%% In each case: record gives no reason if replay does not refuse, and the same reason if it does.
record_says_what_replay_says(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "unnamed"),
    ok = filelib:ensure_path(Folder),
    compiled(end_found, "-export([f/0]). f() -> self() ! x, receive x -> ok end.", [], Folder),
    Drivers = [Dir || Dir <- [code:priv_dir(runtime_tools)], not is_tuple(Dir),
                      filelib:wildcard(filename:join([Dir, "lib", "trace_file_drv*"])) =/= []],
    ok = witness_bench_nodes:name_service(),
    Kinds = [{nothing, [], [], none}, {found, [Folder], [], {unwoven, end_found, no_debug_info}},
             {made, [], [compiler], {unwoven, end_made, memory}},
             {gone, [], [compiler], {unwoven, end_made, memory}}, {node, [], [], node}]
        ++ [{driver, [filename:join(Dir, "lib")], [], none} || Dir <- Drivers],
    [begin
         Dir = dir(Kind, Config),
         {ok, #{outcome := recorded, ended := {returned, normal}, refused := Refused}} =
             witness_record:record(#{run => {end_kinds, Kind, Args}, weave => Weave, dir => Dir,
                                     pa => [proplists:get_value(ebin, Config)]}),
         ct:pal("~p: ~ts", [Kind, [witness_log_recording_refusal:format(Reason) || Reason <- Refused]]),
         case {Expected, Refused} of
             {none, []} -> ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Dir}));
             {node, [{node, _} = Reason]} -> ?assertEqual({error, {witness_replay, Reason}}, witness_replay:replay(#{dir => Dir}));
             {{unwoven, Module, Why}, [{unwoven, [{Module, Is}]} = Reason]} ->
                 ?assertEqual(Why, case Is of memory -> memory; _ -> element(1, Is) end),
                 ?assertEqual({error, {witness_replay, Reason}}, witness_replay:replay(#{dir => Dir}))
         end,
         {Exit, Lines} = json(["record", "--json", "--pa", proplists:get_value(ebin, Config), "-o", Dir ++ ".json"]
                              ++ lists:append([["--weave", atom_to_list(App)] || App <- Weave]) ++ [call(end_kinds, Kind, Args)],
                              Config),
         [#{~"replayable" := Replayable, ~"refused" := Texts}] = of_type(~"recording", Lines),
         ?assertEqual({case Refused of [] -> 0; _ -> 3 end, Refused =:= [], length(Refused)}, {Exit, Replayable, length(Texts)})
     end || {Kind, Args, Weave, Expected} <- Kinds].

%% A module that another one calls, or that starts the application, makes it known without an option.
applications_that_are_called_are_woven(Config) ->
    Dir = dir(?FUNCTION_NAME, Config),
    ?assertEqual([crypto, syntax_tools], witness_record_needs:apps(#{run => {end_called, main, []}, dir => Dir,
                                                                     pa => [proplists:get_value(ebin, Config)]})),
    ?assertEqual([], witness_record_needs:apps(#{run => {end_lower, ask, [x]}, dir => Dir,
                                                 pa => [proplists:get_value(ebin, Config)]})),
    ?assertEqual([sasl], witness_record_needs:apps(#{run => {end_starting, main, []}, dir => Dir,
                                                     pa => [proplists:get_value(ebin, Config)]})),
    {ok, #{refused := []}} = witness_record:record(#{run => {end_called_other, other, []}, dir => Dir,
                                                     pa => [proplists:get_value(ebin, Config)]}),
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Dir})).

%% If an application could not be known before, the options that the summary names are enough.
named_options_make_it_replayable(Config) ->
    Call = call(end_kinds, applied, ["erl_syntax"]),
    Arguments = ["--pa", proplists:get_value(ebin, Config)],
    First = dir(?FUNCTION_NAME, Config),
    {3, Lines} = json(["record", "--json", "-o", First | Arguments] ++ [Call], Config),
    [#{~"replayable" := false, ~"options" := Options}] = of_type(~"recording", Lines),
    ?assertEqual([~"--weave", ~"syntax_tools"], Options),
    Second = dir(?FUNCTION_NAME, Config),
    #{exit := 0} = witness(["record", "-o", Second | Arguments] ++ Options ++ [Call], Config),
    ?assertMatch(#{exit := 0}, witness(["replay", Second], Config)).

%% The copy is where rebar3 has it among the dependencies of a project.
the_copy_of_a_project_is_left_out(Config) ->
    Own = filename:dirname(code:which(witness_weave_own)),
    Copy = filename:join([proplists:get_value(priv_dir, Config), "_build", "test", "lib", "witness", "ebin"]),
    ok = filelib:ensure_path(Copy),
    [{ok, _} = file:copy(filename:join(Own, Name), filename:join(Copy, Name)) || Name <- filelib:wildcard("*.{app,beam}", Own)],
    Pattern = filename:join([proplists:get_value(priv_dir, Config), "_build", "test", "lib", "*", "ebin"]),
    Ebin = proplists:get_value(ebin, Config),
    Needing = filename:join(proplists:get_value(priv_dir, Config), "needing"),
    ok = filelib:ensure_path(Needing),
    ok = file:write_file(filename:join(Needing, "end_needing.app"),
                         "{application, end_needing, [{vsn, \"1\"}, {modules, []}, {registered, []}, {applications, [kernel, stdlib, witness, end_lower]}, "
                         "{mod, {end_upper, []}}]}.\n"),
    [begin
         Dir = dir(?FUNCTION_NAME, Config),
         #{exit := 0, stdout := Text} = witness(["record", "-o", Dir, "--pa", Pattern, "--pa", Needing, "--pa", Ebin | What],
                                                Config),
         witness_command:contains(Text, [~"RECORDED"]),
         {ok, R} = witness_log_recording:open(Dir),
         #{code := #{pa := Folders}} = witness_log_recording:header(R),
         ?assertNot(lists:member(Copy, Folders)),
         {ok, Processes} = witness_log_recording:processes(R),
         ?assertEqual([], [M || #{signature := {M, _, _}} <- Processes, lists:prefix("witness_", atom_to_list(M)),
                           M =/= witness_record_node]),
         ?assertMatch(#{exit := 0}, witness(["replay", Dir], Config))
     end || What <- [["end_kinds:nothing()"], ["--app", "end_needing"]]].

a_project_of_rebar3_that_depends_on_witness(Config) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    Private = filename:join(proplists:get_value(priv_dir, Config), ?FUNCTION_NAME),
    Project = witness_project:prepare(erlang, "examples/testing", [{root, Root}, {priv_dir, Private} | Config]),
    {0, _} = witness_project:run("rebar3", ["as", "test", "compile"], [], Project),
    Pattern = filename:join([proplists:get_value(project, Project), "_build", "test", "*", "*", "ebin"]),
    ?assertMatch([_ | _], [Dir || Dir <- filelib:wildcard(Pattern), witness_weave_own:is_folder(Dir)]),
    Dir = dir(?FUNCTION_NAME, Config),
    #{exit := 0} = witness(["record", "-o", Dir, "--pa", Pattern, "pool:init([a])"], Config),
    ?assertMatch(#{exit := 0}, witness(["replay", Dir], Config)).

%% --- commands ----------------------------------------------------------------------------

call(Module, Function, Args) ->
    lists:flatten([atom_to_list(Module), $:, atom_to_list(Function), $(,
                   lists:join(", ", [io_lib:format("~tp", [Arg]) || Arg <- Args]), $)]).

recorded(Case, Arguments, Config) ->
    Dir = dir(Case, Config),
    {Dir, witness(["record", "-o", Dir, "--pa", proplists:get_value(ebin, Config) | Arguments], Config)}.

dir(Case, Config) ->
    filename:join(proplists:get_value(priv_dir, Config),
                  atom_to_list(Case) ++ "-" ++ integer_to_list(erlang:unique_integer([positive])) ++ ".rec").

spec(Case, Text, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case) ++ ".hml"),
    ok = file:write_file(File, Text),
    File.

json(Arguments, Config) ->
    #{exit := Exit, stdout := Text} = witness(Arguments, Config),
    {Exit, [json:decode(Line) || Line <- binary:split(Text, ~"\n", [global, trim_all])]}.

of_type(Type, Lines) -> [Line || #{~"type" := Is} = Line <- Lines, Is =:= Type].

witness(Arguments, Config) -> witness_command:run(Config, executable(Config), Arguments).

executable(Config) -> filename:join([witness_checkout:root(proplists:get_value(data_dir, Config)), "bin", "witness"]).
