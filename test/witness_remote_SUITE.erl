-module(witness_remote_SUITE).
-moduledoc """
Attaching to a node without Witness. The target is another VM that has no module of Witness, and works all the time: a
process asks a server for sums, and every answer must be right, whatever happens to the tool.

`WITNESS_REMOTE_RANDOM` (5; `make remote`: 100) is the number of random moments at which the tool is killed, or the
connection cut.
With both releases of OTP in the cache of `bin/toolchain`, targets of the other release are tested too.
""".

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2,
         init_per_testcase/2, end_per_testcase/2]).
-export([verdicts_are_those_of_a_local_run/1, a_group_has_the_children_that_run/1, few_modules_are_purged_and_told/1,
         nothing_is_left_behind/1, attaching_again_makes_no_more_atoms/1, properties_over_processes_are_decided/1,
         what_is_found_is_told/1, contents_stay_at_the_target/1, the_whole_node_is_watched/1, a_long_name_is_no_obstacle/1,
         rows_give_signatures/1,
         a_killed_tool_leaves_nothing/1, a_tool_that_dies_at_a_busy_node_leaves_nothing/1,
         a_cut_connection_leaves_nothing/1, a_tool_that_dies_at_a_step_leaves_nothing/1,
         a_tool_that_stands_still_is_left/1, sessions_of_killed_tracers_end/1,
         a_process_that_is_killed_at_the_target_leaves_nothing/1,
         what_both_keepers_left_is_removed_by_the_next/1, two_tools_at_once/1, more_tools_than_slots_are_refused/1,
         a_deadlock_is_found_where_it_hangs/1, calls_that_are_given_up_are_found/1, earlier_calls_are_no_violations/1,
         mailboxes_that_grow_are_found/1, monitors_that_grow_are_found/1, a_message_for_another_time_is_no_violation/1,
         unsound_checks_are_refused/1, what_is_taken_cannot_be_seen/1, a_tool_that_dies_leaves_no_process_suspended/1,
         verdicts_that_are_not_taken_are_counted/1, satisfied_verdicts_displace_no_other/1, satisfied_verdicts_are_only_counted/1,
         reasons_of_undecided_verdicts_are_complete/1, limits_strike_and_are_told/1, mistakes_are_told/1,
         an_old_release_is_refused/1]).

%% At the target.
-export([use_library/0, library/1]).
-export([serve/0, parent/0, child/0, crowd/1, visitor/0, messages/1, work/2, send_large/0, relay/2, keep/0, snapshot/0, delivered/1,
         settled/0, tools/0, log/2]).
%% In the tool.
-export([systems/2, attached/3, told/2, hold/4, slow/3, run_delayed/4, sessions/1]).

-define(EVENT, 30_000).

%% What is in the messages: a number where there is a violation, a text in another slice.
-define(NUMBER, "471108151234").
-define(TEXT, "rosebud").

%% At a busy node.
-define(PAIRS, 20).

%% What the server cannot add.
-define(WRONG, 666).

suite() -> [{timetrap, {minutes, 5 + witness_setting:number("WITNESS_REMOTE_RANDOM", 5)}}].

all() -> [{group, this_release}, {group, other_release}, an_old_release_is_refused].

groups() ->
    Both = [verdicts_are_those_of_a_local_run, a_group_has_the_children_that_run, few_modules_are_purged_and_told,
            what_is_found_is_told, contents_stay_at_the_target, nothing_is_left_behind,
            a_deadlock_is_found_where_it_hangs, calls_that_are_given_up_are_found,
            a_tool_that_dies_at_a_step_leaves_nothing],
    [{this_release, [], Both ++
        [earlier_calls_are_no_violations, mailboxes_that_grow_are_found, monitors_that_grow_are_found,
         a_message_for_another_time_is_no_violation,
         unsound_checks_are_refused, what_is_taken_cannot_be_seen, a_tool_that_dies_leaves_no_process_suspended,
         attaching_again_makes_no_more_atoms,
         the_whole_node_is_watched, rows_give_signatures, properties_over_processes_are_decided, a_long_name_is_no_obstacle,
         a_killed_tool_leaves_nothing, a_tool_that_dies_at_a_busy_node_leaves_nothing,
         a_cut_connection_leaves_nothing, a_tool_that_stands_still_is_left, sessions_of_killed_tracers_end,
         a_process_that_is_killed_at_the_target_leaves_nothing, what_both_keepers_left_is_removed_by_the_next, two_tools_at_once,
         more_tools_than_slots_are_refused, verdicts_that_are_not_taken_are_counted, satisfied_verdicts_displace_no_other,
         satisfied_verdicts_are_only_counted, reasons_of_undecided_verdicts_are_complete, limits_strike_and_are_told,
         mistakes_are_told]},
     {other_release, [], Both}].

init_per_suite(Config) ->
    Folder = proplists:get_value(priv_dir, Config),
    Cookie = lists:concat(["c", rand:uniform(1 bsl 60)]),
    File = filename:join(Folder, "cookie"),
    ok = file:write_file(File, [Cookie, "\n"]),
    ok = file:change_mode(File, 8#400),
    Spec = filename:join(Folder, "sums.hml"),
    ok = file:write_file(Spec, ~"""
        sums: with witness_remote_SUITE:serve()
        per From over _ ? {From, {add, _, _}}, _ : From ! {sum, _}
        check max X. [_ ? {_, {add, A, B}}] ([_ : _ ! {sum, S} when S =/= A + B] ff and [_ : _ ! {sum, S} when S =:= A + B] X).
        """),
    [{cookie, Cookie}, {cookie_file, File}, {spec, Spec} | Config].

end_per_suite(_) -> ok.

init_per_group(Group, Config) ->
    case erl(Group) of
        {ok, Erl} -> [{erl, Erl} | Config];
        none -> {skip, "there is no other release of OTP in the cache of bin/toolchain"}
    end.

end_per_group(_, _) -> ok.

erl(this_release) -> {ok, filename:join([code:root_dir(), "bin", "erl"])};
erl(other_release) ->
    Cache = os:getenv("WITNESS_CACHE", filename:join(os:getenv("XDG_CACHE_HOME", os:getenv("HOME", "") ++ "/.cache"), "witness")),
    Own = erlang:system_info(otp_release),
    case [filename:join(filename:dirname(Complete), "usr/lib/erlang/bin/erl")
          || Complete <- lists:reverse(filelib:wildcard(filename:join(Cache, "toolchain/*-r*/complete"))),
             {ok, <<Release:2/binary, _/binary>>} <- [file:read_file(Complete)],
             lists:member(Release, [~"27", ~"29"]), binary_to_list(Release) =/= Own] of
        [Erl | _] -> {ok, Erl};
        [] -> none
    end.

init_per_testcase(Case, Config) when Case =:= an_old_release_is_refused -> Config;
init_per_testcase(Case, Config) -> [{target, target(Case, #{}, Config)} | Config].

end_per_testcase(_, Config) ->
    case proplists:get_value(target, Config) of
        undefined -> ok;
        #{peer := Peer} -> peer:stop(Peer)
    end.

%% A node with a server, a process that asks it for sums, and one that remembers which tools are connected.
target(Case, Name, Config) ->
    Erl = proplists:get_value(erl, Config),
    Cookie = proplists:get_value(cookie, Config),
    {ok, Peer, Node} = peer:start(maps:merge(#{name => peer:random_name(Case), connection => standard_io, exec => Erl,
                                               args => ["-setcookie", Cookie], wait_boot => ?EVENT}, Name)),
    ok = load(Peer, [?MODULE]),
    ok = peer:call(Peer, code, ensure_modules_loaded, [[erl_eval, trace, peer, gen_server, proc_lib]]),
    %% OTP starts the resolver of names when it is needed first.
    {ok, _} = peer:call(Peer, inet_gethost_native, gethostbyname, ["localhost"]),
    [true = is_pid(peer:call(Peer, erlang, spawn, [?MODULE, F, []])) || F <- [serve, keep]],
    Worker = peer:call(Peer, erlang, spawn, [?MODULE, work, [0, 0]]),
    [ok = witness_await:until(fun() -> peer:call(Peer, erlang, whereis, [Known]) =/= undefined end)
     || Known <- [witness_test_server, witness_test_keeper]],
    ok = peer:call(Peer, logger, add_handler, [witness_test_reports, ?MODULE, #{}]),
    #{peer => Peer, node => Node, worker => Worker, before => peer:call(Peer, ?MODULE, snapshot, [])}.

%% In the form that every release reads.
load(Peer, Modules) ->
    Objects = [begin {M, Object, _} = code:get_object_code(M), {M, Object} end || M <- Modules],
    lists:foreach(fun({M, Object}) -> {module, M} = peer:call(Peer, code, load_binary, [M, "", Object]) end,
                  witness_remote_bundle:rename(Objects, #{})).

%% --- verdicts --------------------------------------------------------------------

verdicts_are_those_of_a_local_run(Config) ->
    #{peer := Peer, node := Node} = proplists:get_value(target, Config),
    Systems = every(witness_setting:number("WITNESS_EVERY", 3), [S || #{monitors := []} = S <- witness_sys:all()]),
    _ = peer:call(Peer, logger, set_primary_config, [level, none]),
    ok = load(Peer, [M || M <- witness_sys:modules(), lists:prefix("witness_sys", atom_to_list(M))]),
    ok = peer:call(Peer, code, ensure_modules_loaded, [witness_sys:modules()]),
    Tool = tool(),
    Results = peer:call(Tool, ?MODULE, systems, [where(Node, Config), Systems], 10 * ?EVENT),
    peer:stop(Tool),
    ?assert(length(Systems) > 10),
    ?assertEqual([{Name, {witness_sys:outcome(S), witness_sys:expected(S)}} || #{name := Name} = S <- Systems], Results).

%% The child runs before the tool attaches, and only the parent is named.
a_group_has_the_children_that_run(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Spec = filename:join(proplists:get_value(priv_dir, Config), "group.hml"),
    ok = file:write_file(Spec, "with witness_remote_SUITE:parent() group over _ : _ ! bad monitor [_ : _ ! bad] ff."),
    Parent = peer:call(Peer, erlang, spawn, [?MODULE, parent, []]),
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, whereis, [witness_test_child]) =/= undefined end),
    Tool = tool(),
    Watch = (where(Node, Config))#{watch => [{pid, peer:call(Peer, erlang, pid_to_list, [Parent])}]},
    %% The child violates the property again and again.
    {ok, #{outcome := violated, gaps := 0}, [#{verdict := no}]} =
        peer:call(Tool, ?MODULE, attached, [Watch, #{specs => [Spec]}, {verdicts, 1}], 2 * ?EVENT),
    peer:stop(Tool),
    true = peer:call(Peer, erlang, exit, [Parent, kill]),
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, whereis, [witness_test_child]) =:= undefined end),
    unharmed(Target).

%% However large Witness is: each purge of a module asks all processes of the node.
few_modules_are_purged_and_told(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Crowd = peer:call(Peer, erlang, spawn, [?MODULE, crowd, [10_000]]),
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, system_info, [process_count]) > 10_000 end),
    Tool = tool(),
    Watch = (where(Node, Config))#{watch => [{name, "witness_test_server"}]},
    Lines = peer:call(Tool, ?MODULE, told, [Watch, options(Config)], 2 * ?EVENT),
    peer:stop(Tool),
    ?assertMatch([_, _, _], Lines),
    [?assertMatch({_, _}, binary:match(Line, <<"(module ", (integer_to_binary(N))/binary, " of 3)">>))
     || {N, Line} <- lists:enumerate(Lines)],
    true = peer:call(Peer, erlang, exit, [Crowd, kill]),
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, system_info, [process_count]) < 10_000 end),
    unharmed(Target).

told(Where, Options) ->
    Self = self(),
    {ok, Run} = witness_remote:start(Where#{on_leaving => fun(Line) -> Self ! {line, unicode:characters_to_binary(Line)} end},
                                     Options),
    {ok, _} = witness:stop(Run),
    lines().

lines() -> receive {line, Line} -> [Line | lines()] after 0 -> [] end.

every(N, Systems) -> [S || {I, S} <- lists:enumerate(Systems), I rem N =:= 0].

%% A VM with Witness; in it, `attached/3' runs one at the target.
tool() ->
    Paths = lists:append([["-pa", Dir] || Dir <- code:get_path(), filename:basename(Dir) =/= "."]),
    {ok, Tool, _} = peer:start(#{connection => standard_io, args => ["-nocookie" | Paths], wait_boot => ?EVENT}),
    Tool.

where(Node, Config) -> #{node => Node, cookie => list_to_atom(proplists:get_value(cookie, Config))}.

systems(Where, Systems) ->
    [begin
         {ok, #{system := End}, Verdicts} =
             attached(Where, #{system => MFA, scope => Scope, specs => [witness_sys:spec_file(S) || S <- Specs]}, await),
         {Name, {case End of normal -> normal; {crashed, _} -> crashed end, witness_sys:counts(Verdicts)}}
     end || #{name := Name, system := MFA, scope := Scope, specs := Specs} <- Systems].

attached(Where, Options, How) ->
    Self = self(),
    Ref = make_ref(),
    case witness_remote:start(Where, Options#{on_verdict => fun(V) -> Self ! {Ref, V} end}) of
        {ok, Run} ->
            {ok, Summary} = case How of
                await -> witness:await(Run, infinity);
                {verdicts, N} ->
                    Seen = [receive {Ref, V} -> V after ?EVENT -> exit(no_verdict) end || _ <- lists:seq(1, N)],
                    [Self ! {Ref, V} || V <- Seen],
                    witness:stop(Run);
                stop -> witness:stop(Run);
                {meanwhile, Calls} ->
                    #{node := Node} = Where,
                    [ok = erpc:call(Node, M, F, Args) || {M, F, Args} <- Calls],
                    witness:stop(Run)
            end,
            _ = is_process_alive(Run) andalso witness:stop(Run),
            {ok, Summary, found(Ref)};
        {error, Reason} -> {error, unicode:characters_to_binary(witness:format_error(Reason))}
    end.

found(Ref) -> receive {Ref, V} -> [V | found(Ref)] after 0 -> [] end.

%% The worker asks for a sum that the server gets wrong.
what_is_found_is_told(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Server = peer:call(Peer, erlang, whereis, [witness_test_server]),
    Port = command(Node, ["--name", "witness_test_server", "--json"], Config),
    ok = witness_await:until(fun() -> wrong(Peer), peer:call(Peer, ?MODULE, tools, []) =/= [] andalso said(Port, ~"verdict") end),
    stop = peer:call(Peer, erlang, send, [witness_test_server, stop]),
    {1, Output} = ended(Port),
    Lines = [json:decode(Line) || Line <- binary:split(Output, ~"\n", [global, trim_all]), binary:first(Line) =:= ${],
    [Violation | _] = [V || #{~"type" := ~"verdict", ~"verdict" := ~"no"} = V <- Lines],
    #{~"name" := ~"sums", ~"process" := Process, ~"node" := Where, ~"source" := #{~"line" := 3}} = Violation,
    ?assertEqual(unicode:characters_to_binary(peer:call(Peer, erlang, pid_to_list, [Server])), Process),
    ?assertEqual(atom_to_binary(Node), Where),
    #{~"type" := ~"summary", ~"verdicts" := #{~"no" := No}} = lists:last(Lines),
    ?assert(No > 0),
    serves_again(Peer),
    unharmed(Target).

%% The tool may know of the end of the server before its name is free.
serves_again(Peer) ->
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, whereis, [witness_test_server]) =:= undefined end),
    true = is_pid(peer:call(Peer, erlang, spawn, [?MODULE, serve, []])).

%% A process of its own asks once.
wrong(Peer) -> wrong(Peer, 0).

wrong(Peer, Number) -> _ = peer:call(Peer, erlang, spawn, [?MODULE, work, [Number, wrong]]), ok.

%% Nothing is redacted here, so what is not printed has not come.
contents_stay_at_the_target(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    Look = fun(Arguments, Wanted, Absent) ->
        Output = leaked(Node, Arguments, Target, Config),
        ?assertEqual({Arguments, [], []}, {Arguments, absent(Wanted, Output), Absent -- absent(Absent, Output)})
    end,
    Look([], [~"VIOLATION", ~"sums.hml:3", <<?NUMBER>>], []),
    Look(["--json"], [~"sums.hml", ~"line\":3", <<?NUMBER>>, <<?TEXT>>], []),
    Look(["--redact"], [~"VIOLATION", ~"sums.hml:3", ~"integer()"], [<<?NUMBER>>, <<?TEXT>>]),
    Look(["--redact", "--json"], [~"sums.hml", ~"line\":3", ~"integer()", ~"string()"], [<<?NUMBER>>, <<?TEXT>>]),
    unharmed(Target).

absent(Words, Output) -> [Word || Word <- Words, binary:match(Output, Word) =:= nomatch].

leaked(Node, Arguments, #{peer := Peer}, Config) ->
    Port = command(Node, ["--name", "witness_test_server" | Arguments], Config),
    ok = witness_await:until(fun() ->
        wrong(Peer, list_to_integer(?NUMBER)),
        said(Port, case lists:member("--json", Arguments) of true -> ~"\"no\""; false -> ~"VIOLATION" end)
    end),
    {_, _} = peer:call(Peer, erlang, send, [witness_test_server, {?TEXT, {add, 1, 2}}]),
    stop = peer:call(Peer, erlang, send, [witness_test_server, stop]),
    {1, Output} = ended(Port),
    serves_again(Peer),
    Output.

%% --- checks without a specification ----------------------------------------------

%% The application hangs before the tool comes. Its servers are named, and everything has its own name.
a_deadlock_is_found_where_it_hangs(Config) ->
    #{peer := Peer, node := Node} = Target = shop(Config),
    Shop = ["--app", "witness_test_shop", "--check", "deadlock,calls,mailboxes", "--must-decide"],
    ok = peer:call(Peer, witness_test_shop, ask_in_turn, []),
    {0, Right} = ended(command(Node, ["--for", "1.2" | Shop], Config)),
    said_all(Right, [~"OK: nothing was violated."]),
    ok = peer:call(Peer, witness_test_shop, hang, []),
    Hanging = as_it_is(Target),
    {1, Text} = ended(command(Node, ["--for", "1.2" | Shop], Config)),
    Servers = [unicode:characters_to_binary(peer:call(Peer, erlang, pid_to_list, [peer:call(Peer, erlang, whereis, [Name])]))
               || Name <- [till, stock]],
    [Till, Stock] = Servers,
    said_all(Text, [~"VIOLATION of check deadlock", <<Till/binary, " witness_test_shop:init/1 (till): waits for the answer to its call of ",
                                                      Stock/binary>>,
                    <<Stock/binary, " witness_test_shop:init/1 (stock): waits for the answer to its call of ", Till/binary>>]),
    {1, Json} = ended(command(Node, ["--json", "--for", "1" | Shop], Config)),
    Lines = [json:decode(Line) || Line <- binary:split(Json, ~"\n", [global, trim_all]), binary:first(Line) =:= ${],
    [First] = [P || #{~"type" := ~"verdict", ~"verdict" := ~"no", ~"spec" := ~"check deadlock", ~"process" := P} <- Lines],
    ?assert(lists:member(First, Servers)),
    ?assertEqual([~"check calls", ~"check deadlock", ~"check mailboxes"],
                 lists:usort([Spec || #{~"type" := ~"verdict", ~"spec" := Spec} <- Lines])),
    %% Without one of them nothing is found, and nothing is said to be right.
    {3, Half} = ended(command(Node, ["--name", "till", "--check", "deadlock", "--for", "0.5", "--must-decide"], Config)),
    said_all(Half, [~"1 of check deadlock"]),
    nothing_is_suspended(Peer),
    unharmed(Hanging).

said_all(Output, Words) -> ?assertEqual([], absent(Words, Output), Output).

calls_that_are_given_up_are_found(Config) ->
    #{peer := Peer, node := Node} = Target = shop(Config),
    Tool = tool(),
    [begin
         ok = peer:call(Peer, witness_test_shop, hire, []),
         Clerk = peer:call(Peer, erlang, whereis, [clerk]),
         {ok, #{outcome := Outcome}, Verdicts} =
             peer:call(Tool, ?MODULE, attached, [checking([{name, "clerk"}], Node, Config), #{checks => [calls]},
                                                 {meanwhile, [order(Order), {witness_test_shop, await_gone, [clerk]}]}], ?EVENT),
         ?assertMatch({_, Expected, [#{verdict := Verdict, spec := ~"check calls"} = V]}
                        when not is_map_key(note, V) orelse map_get(note, V) =/= undefined, {Order, Outcome, Verdicts}),
         [#{process := P}] = Verdicts,
         ?assertEqual(number(Clerk), number(P))
     end || {Order, Expected, Verdict} <- [{call_and_give_up, violated, no}, {call_and_end_by_it, violated, no}, {call, ok, yes}]],
    peer:stop(Tool),
    unharmed(Target, [reports]).

%% A process of the target, as the tool and the target write it.
number(P) -> string:find(pid_to_list(P), ".").

order(What) -> {witness_test_shop, order, [What]}.

checking(Watch, Node, Config) -> (where(Node, Config))#{watch => Watch}.

%% Of a call that was sent before, nothing is known. One that is open at the end is undecided.
earlier_calls_are_no_violations(Config) ->
    #{peer := Peer, node := Node} = Target = shop(Config),
    Tool = tool(),
    Attached = fun(Calls) ->
        {ok, #{outcome := ok}, [#{verdict := Verdict}]} =
            peer:call(Tool, ?MODULE, attached, [checking([{name, "clerk"}], Node, Config), #{checks => [calls]}, {meanwhile, Calls}],
                      ?EVENT),
        Verdict
    end,
    Await = {witness_test_shop, await_call, [clerk]},
    Answer = {gen_server, cast, [stock, answer]},
    Gone = {witness_test_shop, await_gone, [clerk]},
    ok = peer:call(Peer, witness_test_shop, hire, []),
    ok = peer:call(Peer, witness_test_shop, order, [call_and_wait]),
    ok = peer:call(Peer, witness_test_shop, await_call, [clerk]),
    ?assertEqual(yes, Attached([Answer, order(go), Gone])),
    ok = peer:call(Peer, witness_test_shop, hire, []),
    ?assertEqual(inconclusive, Attached([order(call_and_wait), Await])),
    ?assertEqual(yes, Attached([Answer, order(go), Gone])),
    peer:stop(Tool),
    unharmed(Target).

mailboxes_that_grow_are_found(Config) ->
    #{peer := Peer, node := Node} = Target = shop(Config),
    Tool = tool(),
    ok = peer:call(Peer, witness_test_shop, hire, []),
    Attached = fun(Ms) ->
        {ok, #{outcome := Outcome}, [#{verdict := Verdict, spec := ~"check mailboxes"} = V]} =
            peer:call(Tool, ?MODULE, attached, [checking([{name, "clerk"}], Node, Config), #{checks => [mailboxes]},
                                                {meanwhile, [{timer, sleep, [Ms]}]}], 3 * ?EVENT),
        {Outcome, Verdict, maps:get(process, V)}
    end,
    ?assertMatch({ok, yes, undefined}, Attached(1)),
    ok = peer:call(Peer, witness_test_shop, talk_often, []),
    %% Where the machine is busy, the clerk is not seen to wait at each look.
    P = first_violated(Attached, [4500, 9000, 30_000]),
    Clerk = peer:call(Peer, erlang, whereis, [clerk]),
    ?assertEqual(number(Clerk), number(P)),
    ok = first_undecided(Attached, 3),
    peer:stop(Tool),
    true = peer:call(Peer, erlang, exit, [Clerk, kill]),
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, whereis, [clerk]) =:= undefined end),
    unharmed(Target, [reports]).

%% The clerk is not to end.
monitors_that_grow_are_found(Config) ->
    #{peer := Peer, node := Node} = Target = shop(Config),
    Tool = tool(),
    ok = peer:call(Peer, witness_test_shop, hire, []),
    Attached = fun(Ms) ->
        {ok, #{outcome := Outcome}, [#{verdict := Verdict, spec := ~"check leaks"} = V]} =
            peer:call(Tool, ?MODULE, attached, [checking([{name, "clerk"}], Node, Config), #{checks => [leaks]},
                                                {meanwhile, [{timer, sleep, [Ms]}]}], 3 * ?EVENT),
        {Outcome, Verdict, maps:get(process, V)}
    end,
    ok = peer:call(Peer, witness_test_shop, monitor_often, [monitor_and_demonitor]),
    ?assertMatch({ok, yes, undefined}, Attached(4500)),
    ok = peer:call(Peer, witness_test_shop, monitor_often, [monitor]),
    P = first_violated(Attached, [4500, 9000, 30_000]),
    Clerk = peer:call(Peer, erlang, whereis, [clerk]),
    ?assertEqual(number(Clerk), number(P)),
    ok = first_undecided(Attached, 3),
    peer:stop(Tool),
    true = peer:call(Peer, erlang, exit, [Clerk, kill]),
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, whereis, [clerk]) =:= undefined end),
    unharmed(Target, [reports]).

first_violated(Attached, [Ms | Longer]) ->
    case Attached(Ms) of
        {violated, no, P} -> P;
        {ok, _, undefined} -> first_violated(Attached, Longer)
    end.

%% It has no time to see that, unless it stands still for seconds.
first_undecided(Attached, Times) ->
    case Attached(1) of
        {ok, inconclusive, undefined} -> ok;
        {violated, no, _} when Times > 1 -> first_undecided(Attached, Times - 1)
    end.

%% The clerk waits for a process that is not watched, and takes the message later.
a_message_for_another_time_is_no_violation(Config) ->
    #{peer := Peer, node := Node} = Target = shop(Config),
    Tool = tool(),
    ok = peer:call(Peer, witness_test_shop, hire, []),
    ok = peer:call(Peer, witness_test_shop, order, [{take, first}]),
    ok = peer:call(Peer, witness_test_shop, order, [go]),
    [?assertMatch({ok, #{outcome := ok}, [#{verdict := inconclusive, reason := stopped}]},
                  peer:call(Tool, ?MODULE, attached, [checking([{name, "clerk"}], Node, Config), #{checks => [Check]},
                                                      {meanwhile, [{timer, sleep, [Ms]}]}], ?EVENT), {Check, Ms})
     || {Check, Ms} <- [{mailboxes, 5000}, {mailboxes, 500}, {deadlock, 1500}, {deadlock, 500}]],
    peer:stop(Tool),
    first = peer:call(Peer, erlang, send, [clerk, first]),
    ok = peer:call(Peer, witness_test_shop, await_gone, [clerk]),
    unharmed(Target).

%% Nothing is loaded for them.
unsound_checks_are_refused(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    [begin
         {2, Output} = ended(command(Node, Watch ++ ["--check", Checks], Config)),
         said_all(Output, [~"witness attach: option --check: ", ~"there are only calls, late, deadlock, mailboxes and leaks" | Words])
     end || Watch <- [[], ["--name", "witness_test_server"]],
            {Checks, Words} <- [{"crashes", [~"not crashes, since processes that are not watched may handle a crash"]},
                                {"deadlock,crashes,leaks", [~"not crashes, since"]},
                                {"restarts", [~"not restarts, since which processes a supervisor has started before"]}]],
    unharmed(Target).

what_is_taken_cannot_be_seen(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    Spec = filename:join(proplists:get_value(priv_dir, Config), "taken.hml"),
    ok = file:write_file(Spec, "with witness_test_server:init(_)\nover taken _ ? call(_, stop) monitor [_ ? call(_, stop)] ff.\n"),
    {2, Output} = ended(command(Node, ["--name", "witness_test_server", "--spec", Spec], Config)),
    said_all(Output, [~"taken.hml:2:6: error: `taken` cannot be seen here"]),
    unharmed(Target).

%% It looks at the deadlock again and again.
a_tool_that_dies_leaves_no_process_suspended(Config) ->
    #{peer := Peer, node := Node} = Shop = shop(Config),
    ok = peer:call(Peer, witness_test_shop, hang, []),
    Target = as_it_is(Shop),
    each_random(2500, fun(Moment) ->
        Port = command(Node, ["--app", "witness_test_shop", "--check", "deadlock"], Config),
        receive {Port, {exit_status, _}} -> ok after Moment -> kill(Port, "KILL") end,
        ok = peer:call(Peer, ?MODULE, settled, [], 2 * ?EVENT),
        nothing_is_suspended(Peer)
    end),
    unharmed(Target).

%% The VM suspends processes of its own for a moment, such as the one that collects literals.
nothing_is_suspended(Peer) ->
    witness_await:until(fun() ->
        case [P || P <- peer:call(Peer, erlang, processes, []),
                   peer:call(Peer, erlang, process_info, [P, status]) =:= {status, suspended}] of
            [] -> true;
            Suspended -> Suspended
        end
    end).

%% The target with an application.
shop(Config) ->
    #{peer := Peer} = Target = proplists:get_value(target, Config),
    ok = load(Peer, [witness_test_shop]),
    ok = peer:call(Peer, witness_test_shop, open, []),
    as_it_is(Target).

as_it_is(#{peer := Peer} = Target) -> Target#{before := peer:call(Peer, ?MODULE, snapshot, [])}.

the_whole_node_is_watched(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    Tool = tool(),
    {ok, #{processes := Processes, outcome := ok}, _} =
        peer:call(Tool, ?MODULE, attached, [where(Node, Config), options(Config), stop], ?EVENT),
    peer:stop(Tool),
    ?assert(Processes > 20),
    unharmed(Target).

%% The processes start in a function of a library.
rows_give_signatures(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Spec = filename:join(proplists:get_value(priv_dir, Config), "author.hml"),
    ok = file:write_file(Spec, "with author:library(_) over _ ? hello monitor [_ ? hello] ff."),
    Starter = peer:call(Peer, erlang, spawn, [?MODULE, use_library, []]),
    Tool = tool(),
    {ok, #{outcome := violated}, [#{verdict := no, signature := {author, library, [3]}} | _]} =
        peer:call(Tool, ?MODULE, attached,
                  [where(Node, Config), #{specs => [Spec], signatures => [{?MODULE, library, [{module, args}]}]}, {verdicts, 1}],
                  ?EVENT),
    peer:stop(Tool),
    true = peer:call(Peer, erlang, exit, [Starter, kill]),
    ok = witness_await:until(fun() -> not peer:call(Peer, erlang, is_process_alive, [Starter]) end),
    unharmed(Target).

use_library() ->
    {Pid, Ref} = spawn_monitor(?MODULE, library, [{author, 3}]),
    Pid ! hello,
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    %% Otherwise the tool would give up: there are too many events.
    ok = timer:sleep(20),
    use_library().

library({_, _}) -> receive hello -> ok end.

%% One process has sent the request, and another one the answer.
properties_over_processes_are_decided(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    Spec = filename:join(proplists:get_value(priv_dir, Config), "unanswered.hml"),
    ok = file:write_file(Spec, ~"""
        unanswered: per From over _ : _ ! {From, {add, _, _}}, _ : From ! {sum, _}
        monitor [_ : _ ! {_, {add, _, _}}] [_ : _ ! {sum, _}] ff.
        """),
    Tool = tool(),
    {ok, #{outcome := violated}, [#{verdict := no, steps := Steps} | _]} =
        peer:call(Tool, ?MODULE, attached,
                  [where(Node, Config), #{specs => [Spec], instrument => central}, {verdicts, 1}], ?EVENT),
    peer:stop(Tool),
    ?assertEqual(2, length(lists:usort([element(2, Event) || #{event := Event} <- Steps]))),
    unharmed(Target).

options(Config) -> #{specs => [proplists:get_value(spec, Config)]}.

a_long_name_is_no_obstacle(Config) ->
    #{peer := Peer, node := Node} = Target = target(?FUNCTION_NAME, #{host => "127.0.0.1", longnames => true}, Config),
    {0, _} = ended(command(Node, ["--name", "witness_test_server", "--for", "0.2"], Config)),
    unharmed(Target),
    peer:stop(Peer).

verdicts_that_are_not_taken_are_counted(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    Tool = tool(),
    Asked = 1500,
    {Told, Counted, Missed} = peer:call(Tool, ?MODULE, slow, [where(Node, Config), options(Config), Asked], 4 * ?EVENT),
    peer:stop(Tool),
    ?assert(Counted >= Asked),
    ?assertEqual(Counted, Told + Missed),
    ?assert(Missed > 0),
    unharmed(Target).

%% The callback returns from the first verdict when all have been counted.
slow(Where = #{node := Node}, Options, Asked) ->
    Told = counters:new(1, []),
    Self = self(),
    Taken = fun(_) ->
        counters:add(Told, 1, 1),
        counters:get(Told, 1) > 1 orelse begin Self ! first, receive go_on -> ok end end
    end,
    {ok, Run} = witness_remote:start(Where#{watch => [{name, "witness_test_server"}]}, Options#{on_verdict => Taken}),
    Refs = [element(2, spawn_monitor(Node, ?MODULE, work, [0, wrong])) || _ <- lists:seq(1, Asked)],
    receive first -> ok end,
    %% Each of them ends when the server has answered it.
    [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- Refs],
    ok = witness_await:until(fun() -> erpc:call(Node, ?MODULE, delivered, [Asked]) end),
    _ = spawn(fun() -> Self ! {ended, witness:stop(Run)} end),
    Run ! go_on,
    receive
        {ended, {ok, #{verdicts := #{no := No} = Verdicts, warnings := Warnings}}} when No >= Asked ->
            {counters:get(Told, 1), lists:sum(maps:values(Verdicts)), lists:sum(maps:values(missed(Warnings)))}
    end.

%% Whether the run at the target has that many violations, and has delivered them, or counted them as missed.
delivered(Asked) ->
    [Run, Notifier] = [P || Label <- ['witness_run$1', 'witness_run_notifier$1'],
                            P <- processes(), proc_lib:get_label(P) =:= Label],
    #{verdicts := #{no := No}} = gen_server:call(Run, info, infinity),
    No >= Asked andalso process_info(Notifier, [message_queue_len, status]) =:= [{message_queue_len, 0}, {status, waiting}].

%% The numbers of the warning, by the word that follows each.
missed(Warnings) ->
    maps:from_list([{Kind, binary_to_integer(N)}
                    || #{code := verdicts_missed, text := Text} <- Warnings,
                       {match, Found} <- [re:run(Text, "([0-9]+) (violation|undecided|satisfied)",
                                                 [global, {capture, all_but_first, binary}])],
                       [N, Kind] <- Found]).

%% The satisfied verdicts come first, and the tool takes none of them.
satisfied_verdicts_displace_no_other(Config) ->
    {Told, #{yes := Yes, no := No, inconclusive := Undecided}, Missed, _} = never_answered(#{}, Config),
    ?assert(No > 0),
    ?assertEqual({No, Undecided}, {map_get(no, Told), map_get(inconclusive, Told)}),
    ?assertEqual(#{~"satisfied" => Yes - map_get(yes, Told)}, Missed),
    ?assert(Yes > map_get(yes, Told)).

satisfied_verdicts_are_only_counted(Config) ->
    {Told, #{yes := Yes, no := No}, Missed, _} = never_answered(#{satisfied => counted}, Config),
    ?assert(Yes > 0),
    ?assertEqual({No, 0, #{}}, {map_get(no, Told), map_get(yes, Told), Missed}).

never_answered(Options, Config) -> delayed(Options, {visit, 2000}, await, Config).

reasons_of_undecided_verdicts_are_complete(Config) ->
    {Told, #{inconclusive := Undecided}, Missed, Reasons} = delayed(#{}, {call, 1500}, stop, Config),
    ?assertEqual(1500, Undecided),
    Left = Undecided - map_get(inconclusive, Told),
    ?assert(Left > 0),
    ?assertEqual([#{spec => ~"check calls", name => undefined, version => 1, reason => stopped, count => Left, told => 0}], Reasons),
    ?assertEqual(#{~"undecided" => Left}, Missed).

%% What the tool takes if it takes no verdict before the target is clean.
delayed(Options, Order, How, Config) ->
    #{node := Node, peer := Peer} = Target = proplists:get_value(target, Config),
    Visitor = peer:call(Peer, erlang, spawn, [?MODULE, visitor, []]),
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, whereis, [witness_test_visitor]) =/= undefined end),
    Tool = tool(),
    Found = peer:call(Tool, ?MODULE, run_delayed,
                      [checking([{name, "witness_test_visitor"}], Node, Config), Options, Order, How], 4 * ?EVENT),
    peer:stop(Tool),
    true = peer:call(Peer, erlang, exit, [Visitor, kill]),
    unharmed(Target),
    Found.

run_delayed(Where = #{node := Node}, Options, {_, N} = Order, How) ->
    Self = self(),
    Ref = make_ref(),
    Taken = fun(#{verdict := Kind}) ->
        Self ! {Ref, Kind},
        put(Ref, taken) =:= taken
            orelse witness_await:until(fun() -> erpc:call(Node, erlang, whereis, ['witness$1']) =:= undefined end)
    end,
    {ok, Run} = witness_remote:start(Where, Options#{checks => [calls], on_verdict => Taken}),
    _ = erpc:call(Node, erlang, send, [witness_test_visitor, Order]),
    {ok, #{verdicts := Verdicts, warnings := Warnings, undecided := Undecided}} = case How of
        await -> witness:await(Run, infinity);
        stop ->
            ok = witness_await:until(fun() -> erpc:call(Node, ?MODULE, messages, [witness_test_visitor]) =:= N end),
            witness:stop(Run)
    end,
    _ = is_process_alive(Run) andalso witness:stop(Run),
    Told = found(Ref),
    {#{Kind => length([K || K <- Told, K =:= Kind]) || Kind <- [yes, no, inconclusive]}, Verdicts, missed(Warnings), Undecided}.

%% Each limit by its code. Except for the time limit, what was missed leaves no result.
limits_strike_and_are_told(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    Tool = tool(),
    Watch = (where(Node, Config))#{watch => [{name, "witness_test_server"}]},
    Struck = fun(Limit, How) ->
        {ok, #{outcome := Outcome, warnings := Warnings}, _} =
            peer:call(Tool, ?MODULE, attached, [Watch, maps:merge(options(Config), Limit), How], 2 * ?EVENT),
        {Outcome, [Code || #{code := Code} <- Warnings]}
    end,
    {ok, [duration]} = Struck(#{duration => 500}, await),
    {untrusted, Rate} = Struck(#{rate => 10}, await),
    ?assert(lists:member(rate, Rate)),
    {untrusted, Size} = Struck(#{message_size => 10_000}, {meanwhile, [{?MODULE, send_large, []}]}),
    ?assert(lists:member(message_size, Size)),
    peer:stop(Tool),
    unharmed(Target).

%% When the server answers, it has taken the message.
send_large() ->
    witness_test_server ! {lists:seq(1, 10_000), {add, 1, 2}},
    3 = ask(1, 2),
    ok.

%% --- nothing is left -------------------------------------------------------------

nothing_is_left_behind(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    Tool = tool(),
    Watch = (where(Node, Config))#{watch => [{name, "witness_test_server"}]},
    {ok, _, _} = peer:call(Tool, ?MODULE, attached, [Watch, options(Config), stop], ?EVENT),
    peer:stop(Tool),
    unharmed(Target).

attaching_again_makes_no_more_atoms(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Tool = tool(),
    Watch = (where(Node, Config))#{watch => [{name, "witness_test_server"}]},
    Attach = fun() -> {ok, _, _} = peer:call(Tool, ?MODULE, attached, [Watch, options(Config), stop], ?EVENT) end,
    Attach(),
    Atoms = peer:call(Peer, erlang, system_info, [atom_count]),
    [Attach() || _ <- lists:seq(1, 5)],
    ?assertEqual(Atoms, peer:call(Peer, erlang, system_info, [atom_count])),
    peer:stop(Tool),
    unharmed(Target).

a_killed_tool_leaves_nothing(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    each_random(2500, fun(Moment) ->
        Port = command(Node, ["--name", "witness_test_server"], Config),
        receive {Port, {exit_status, _}} -> ok after Moment -> kill(Port, "KILL") end,
        unharmed(Target)
    end).

%% Its only scheduler never rests, and every message of all pairs is an event: the limits are exceeded at once.
a_tool_that_dies_at_a_busy_node_leaves_nothing(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Schedulers = peer:call(Peer, erlang, system_flag, [schedulers_online, 1]),
    Busy = [begin
                One = peer:call(Peer, erlang, spawn, [?MODULE, relay, [none, 0]]),
                [One, peer:call(Peer, erlang, spawn, [?MODULE, relay, [One, 0]])]
            end || _ <- lists:seq(1, ?PAIRS)],
    Loaded = as_it_is(Target),
    each_random(5000, fun(Moment) ->
        Port = command(Node, ["--memory", "8", "--message-size", "1000"], Config),
        receive {Port, {exit_status, _}} -> ok after Moment -> kill(Port, "KILL") end,
        unharmed(Loaded)
    end),
    {3, Output} = ended(command(Node, ["--rate", "50"], Config)),
    ?assertMatch({match, _}, re:run(Output, "events in a second")),
    unharmed(Loaded),
    %% A process that had got a number other than the next one would have ended.
    ?assert(lists:all(fun(P) -> peer:call(Peer, erlang, is_process_alive, [P]) end, lists:append(Busy))),
    [true = peer:call(Peer, erlang, exit, [P, kill]) || Pair <- Busy, P <- Pair],
    _ = peer:call(Peer, erlang, system_flag, [schedulers_online, Schedulers]),
    unharmed(Target).

a_cut_connection_leaves_nothing(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    each_random(1000, fun(Moment) ->
        Port = command(Node, ["--name", "witness_test_server"], Config),
        ok = witness_await:until(fun() -> peer:call(Peer, ?MODULE, tools, []) =/= [] end),
        receive after Moment -> ok end,
        [peer:call(Peer, erlang, disconnect_node, [N]) || N <- peer:call(Peer, ?MODULE, tools, [])],
        {3, Output} = ended(Port),
        ?assertMatch({match, _}, re:run(Output, "connection")),
        unharmed(Target)
    end).

each_random(Most, Fun) ->
    [Fun(rand:uniform(Most)) || _ <- lists:seq(1, witness_setting:number("WITNESS_REMOTE_RANDOM", 5))].

%% Each time the tool goes one step further, and is killed.
a_tool_that_dies_at_a_step_leaves_nothing(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    [begin
         Tool = tool(),
         Pid = peer:call(Tool, os, getpid, []),
         ok = peer:call(Tool, ?MODULE, hold, [Step, Cut, where(Node, Config), options(Config)], ?EVENT),
         case Cut of
             kill -> [] = os:cmd("kill -9 " ++ Pid), _ = witness_await:down(Tool);
             cut -> true = peer:call(Tool, net_kernel, disconnect, [Node]), peer:stop(Tool)
         end,
         unharmed(Target)
     end || Step <- [connected, claimed, loaded, running], Cut <- [kill, cut]].

%% Goes to this step, and stays there, in a process of its own.
hold(Step, _, Where, Options) ->
    Self = self(),
    {_, Ref} = spawn_monitor(fun() -> step(Step, Where, Options), Self ! {reached, Step}, receive never -> ok end end),
    receive
        {reached, Step} -> ok;
        {'DOWN', Ref, process, _, Reason} -> error(Reason)
    end.

step(running, Where, Options) ->
    {ok, _} = witness_remote:start(Where#{watch => [{name, "witness_test_server"}]}, Options);
step(connected, #{node := Node, cookie := Cookie}, _) ->
    ok = witness_remote_connection:open(Node, Cookie);
step(claimed, Where, Options) ->
    _ = claim(Where, Options);
step(loaded, Where, Options) ->
    {Tag, Cleaner, Objects} = claim(Where, Options),
    load(Tag, Cleaner, Objects).

load(Tag, Cleaner, Objects) ->
    Named = witness_remote_cleaner:name_in_slot(1),
    Config = #{tool => self(), tag => Tag, options => #{system => node}, specs => [], modules => [M || {M, _} <- Objects]},
    Cleaner ! {Tag, load, Objects, {Named(witness_remote_guard), init, [Config]}},
    receive
        {Tag, started, _} -> ok;
        {Tag, not_loaded, _} = Refused -> error(Refused)
    end.

claim(Where = #{node := Node}, Options) ->
    ok = step(connected, Where, Options),
    claimed(Node).

claimed(Node) ->
    {ok, Objects} = witness_remote:objects([]),
    Named = witness_remote_cleaner:name_in_slot(1),
    Names = #{M => Named(M) || {M, _} <- Objects},
    Tag = make_ref(),
    Cleaner = witness_remote_cleaner:claim(Node, 1, {Tag, 20_000}, maps:values(Names)),
    receive {Tag, claimed, Cleaner} -> {Tag, Cleaner, witness_remote_bundle:rename(Objects, Names)} end.

%% Tracers are killed while they are set up, again and again, in one VM: the VM would keep some of their sessions.
sessions_of_killed_tracers_end(_) ->
    Tool = tool(),
    ?assertEqual([legacy], peer:call(Tool, ?MODULE, sessions, [60], 4 * ?EVENT)),
    peer:stop(Tool).

sessions(0) -> [Name || {Name, _} <- trace:session_info(all)];
sessions(N) ->
    Self = self(),
    Tool = spawn(fun() ->
        {Tag, Cleaner, Objects} = claimed(node()),
        load(Tag, Cleaner, Objects),
        Self ! {started, Cleaner},
        receive never -> ok end
    end),
    Keeper = receive {started, Started} -> Started end,
    Watched = [monitor(process, P) || P <- [Keeper, 'witness_spare$1']],
    busy(rand:uniform(1_000_000)),
    exit(Tool, kill),
    [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- Watched],
    sessions(N - 1).

busy(0) -> ok;
busy(N) -> busy(N - 1).

a_tool_that_stands_still_is_left(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Tool = tool(),
    Pid = peer:call(Tool, os, getpid, []),
    ok = peer:call(Tool, ?MODULE, hold, [running, none, (where(Node, Config))#{lease => 5000}, options(Config)], ?EVENT),
    [] = os:cmd("kill -STOP " ++ Pid),
    ok = witness_await:until(fun() -> peer:call(Peer, erlang, whereis, ['witness$1']) =:= undefined end),
    ?assertEqual(false, peer:call(Peer, erlang, module_loaded, ['witness_run$1'])),
    [] = os:cmd("kill -9 " ++ Pid),
    _ = witness_await:down(Tool),
    unharmed(Target).

a_process_that_is_killed_at_the_target_leaves_nothing(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    [begin
         Port = command(Node, ["--name", "witness_test_server"], Config),
         ok = witness_await:until(fun() -> guard(Peer) =/= none end),
         true = peer:call(Peer, erlang, exit,
                          [case Who of guard -> guard(Peer); _ -> peer:call(Peer, erlang, whereis, [Who]) end, kill]),
         {3, _} = ended(Port),
         unharmed(Target)
     end || Who <- ['witness$1', 'witness_spare$1', guard]].

%% It runs when it has a run.
guard(Peer) ->
    Initial = fun(F) -> [P || P <- peer:call(Peer, erlang, processes, []), initial(Peer, P) =:= {'witness_remote_guard$1', F}] end,
    case {Initial(init), Initial('witness_outline_tracer:init')} of
        {[Guard], [_ | _]} -> Guard;
        _ -> none
    end.

initial(Peer, P) ->
    case peer:call(Peer, erlang, process_info, [P, initial_call]) of
        {initial_call, {M, F, _}} -> {M, F};
        undefined -> undefined
    end.

what_both_keepers_left_is_removed_by_the_next(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Object = fun(M) -> {M, Code, _} = code:get_object_code(M), {M, Code} end,
    [{Left, Code}] = witness_remote_bundle:rename([Object(witness_run)], #{witness_run => 'witness_run$1'}),
    {module, Left} = peer:call(Peer, code, load_binary, [Left, "", Code]),
    Tool = tool(),
    {ok, _, _} = peer:call(Tool, ?MODULE, attached, [(where(Node, Config))#{watch => [{name, "witness_test_server"}]},
                                                     options(Config), stop], ?EVENT),
    peer:stop(Tool),
    unharmed(Target).

two_tools_at_once(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Ports = [command(Node, ["--name", "witness_test_server"], Config) || _ <- [1, 2]],
    ok = witness_await:until(fun() -> wrong(Peer), lists:all(fun(Port) -> said(Port, ~"VIOLATION") end, Ports) end),
    %% One tool is killed, which does not affect the other.
    [One, Other] = Ports,
    kill(One, "KILL"),
    stop = peer:call(Peer, erlang, send, [witness_test_server, stop]),
    {1, _} = ended(Other),
    serves_again(Peer),
    unharmed(Target).

more_tools_than_slots_are_refused(Config) ->
    #{peer := Peer, node := Node} = Target = proplists:get_value(target, Config),
    Names = [(witness_remote_cleaner:name_in_slot(Slot))(witness) || Slot <- witness_remote_cleaner:slots()],
    [true = peer:call(Peer, erlang, register, [Name, peer:call(Peer, erlang, spawn, [timer, sleep, [infinity]])]) || Name <- Names],
    {2, Output} = ended(command(Node, [], Config)),
    ?assertMatch({match, _}, re:run(Output, "too many tools")),
    [peer:call(Peer, erlang, exit, [peer:call(Peer, erlang, whereis, [Name]), kill]) || Name <- Names],
    unharmed(Target).

%% --- mistakes --------------------------------------------------------------------

mistakes_are_told(Config) ->
    #{node := Node} = Target = proplists:get_value(target, Config),
    Folder = proplists:get_value(priv_dir, Config),
    File = fun(Name, Content, Mode) ->
        Path = filename:join(Folder, Name),
        ok = file:write_file(Path, Content),
        ok = file:change_mode(Path, Mode),
        Path
    end,
    [_, Host] = string:split(atom_to_list(Node), "@"),
    Needs = File("needs.hml", ~"needs: with witness_remote_SUITE:work(0, _) check [_ <- _, _] ff.\n", 8#600),
    [begin
         {Code, Output} = ended(command(To, Arguments, Config)),
         ?assertMatch({2, {match, _}, _}, {Code, re:run(Output, Words), Output})
     end || {To, Arguments, Words} <- [
        {Node, ["--cookie-file", File("other", ~"other", 8#400)], "cookie"},
        {Node, ["--cookie-file", File("open", ~"other", 8#644)], "open: others than its owner may read it"},
        {Node, ["--cookie-file", File("none", ~"", 8#400)], "one word"},
        {Node, ["--cookie-file", File("two", ~"a b", 8#400)], "one word"},
        {Node, ["--cookie-file", filename:join(Folder, "absent")], "cannot be read: no such file"},
        {Node, ["--cookie-file", Folder], "no regular file"},
        {list_to_atom("nobody_here@" ++ Host), [], "there is no node of that name on"},
        {'nobody@no-such-host.invalid', [], "there is no host no-such-host.invalid"},
        {'nobody', [], "NAME@HOST"},
        {Node, ["--name", "no_such_name"], "no process that is registered as no_such_name"},
        {Node, ["--name", "error"], "no process is registered as error"},
        {Node, ["--app", "no_such_app"], "no application no_such_app"},
        {Node, ["--app", "stdlib"], "stdlib is not running, or has no processes"},
        {Node, ["--pid", "<0.99999999.0>"], "there is no process <0.99999999.0>"},
        {Node, ["--pid", "seven"], "no process seven"},
        {Node, ["--spec", Needs], "needs.hml:1:"},
        {Node, ["--for", "long"], "--for"}]],
    %% The target reports a wrong cookie by itself.
    unharmed(Target, [reports]).

an_old_release_is_refused(_) ->
    ok = witness_remote_connection:check_release(a@b, "27"),
    ok = witness_remote_connection:check_release(a@b, "30"),
    [{error, _} = witness_remote_connection:check_release(a@b, Old) || Old <- ["26", "R16B03", "17"]].

%% --- the command as a process of the operating system ----------------------------

command(Node, Arguments, Config) ->
    Spec = case lists:member("--spec", Arguments) orelse lists:member("--check", Arguments) of
        true -> [];
        false -> ["--spec", proplists:get_value(spec, Config)]
    end,
    Cookie = case lists:member("--cookie-file", Arguments) of
        true -> [];
        false -> ["--cookie-file", proplists:get_value(cookie_file, Config)]
    end,
    open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
              [{args, ["-noinput", "-nocookie", "-pa", filename:dirname(code:which(witness)), "-s", "witness_cli", "main",
                       "-extra", "attach", atom_to_list(Node)] ++ Spec ++ Cookie ++ Arguments},
               binary, exit_status, stderr_to_stdout]).

kill(Port, Signal) ->
    case erlang:port_info(Port, os_pid) of
        {os_pid, Pid} ->
            _ = os:cmd(lists:concat(["kill -", Signal, " ", Pid])),
            ok;
        undefined -> ok
    end,
    receive {Port, {exit_status, _}} -> ok after ?EVENT -> exit({still_there, Port}) end.

%% Whether its output has a word so far. What was said stays in the mailbox.
said(Port, Word) ->
    {messages, Messages} = process_info(self(), messages),
    Said = iolist_to_binary([Data || {P, {data, Data}} <- Messages, P =:= Port]),
    binary:match(Said, Word) =/= nomatch.

ended(Port) ->
    receive {Port, {exit_status, Code}} -> {Code, output(Port)} after 3 * ?EVENT -> exit({has_not_ended, output(Port)}) end.

output(Port) -> receive {Port, {data, Data}} -> <<Data/binary, (output(Port))/binary>> after 0 -> <<>> end.

%% --- the target ------------------------------------------------------------------

%% The worker's results are right, and the target is as it was before, once it knows that the tool is gone.
unharmed(Target) -> unharmed(Target, []).

unharmed(#{peer := Peer, worker := Worker, before := Before}, But) ->
    ok = peer:call(Peer, ?MODULE, settled, [], 2 * ?EVENT),
    ok = witness_await:until(fun() ->
        case peer:call(Peer, erlang, process_info, [Worker, dictionary]) of
            {dictionary, [{answers, {Right, 0}}]} when Right > 0 -> true;
            {dictionary, [{answers, {_, Wrong}}]} when Wrong > 0 -> error({wrong, Wrong});
            Other -> Other
        end
    end),
    Snapshot = fun() -> maps:without(But, peer:call(Peer, ?MODULE, snapshot, [])) end,
    Wanted = maps:without(But, Before),
    ok = witness_await:until(fun() -> case Snapshot() of Wanted -> true; Other -> {Wanted, Other} end end).

serve() ->
    try register(witness_test_server, self()) catch error:badarg -> exit(taken) end,
    served().

served() ->
    receive
        {From, {add, _, _}} when is_list(From) -> served();
        {From, {add, A, ?WRONG}} -> From ! {sum, A}, served();
        {From, {add, A, B}} -> From ! {sum, A + B}, served();
        stop -> ok
    end.

%% It has a group leader of its own: the processes that have started the other processes of the target have ended.
parent() ->
    true = group_leader(self(), self()),
    _ = spawn_link(?MODULE, child, []),
    receive never -> ok end.

child() ->
    register(witness_test_child, self()),
    wrong().

wrong() ->
    self() ! bad,
    receive bad -> ok end,
    receive after 5 -> wrong() end.

crowd(N) ->
    _ = [spawn_link(fun() -> receive never -> ok end end) || _ <- lists:seq(1, N)],
    receive never -> ok end.

%% Of the processes that it spawns so many end at once; it then gives up a call. Or so many call it and wait: it never answers.
visitor() ->
    true = register(witness_test_visitor, self()),
    Self = self(),
    receive
        {visit, N} ->
            Refs = [element(2, spawn_monitor(fun() -> ok end)) || _ <- lists:seq(1, N)],
            lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Refs),
            Deaf = spawn(fun() -> receive never -> ok end end),
            try gen_server:call(Deaf, never, 20) catch exit:{timeout, _} -> ok end,
            exit(Deaf, kill);
        {call, N} ->
            Call = fun() -> _ = gen_server:send_request(Self, never), receive never -> ok end end,
            [spawn_link(Call) || _ <- lists:seq(1, N)],
            receive never -> ok end
    end.

messages(Name) -> element(2, process_info(whereis(Name), message_queue_len)).

%% Asks again and again, and counts right and wrong answers.
work(Number, wrong) ->
    _ = ask(Number, ?WRONG),
    ok;
work(Right, Wrong) ->
    put(answers, {Right, Wrong}),
    case ask(Right, 7) of
        gone -> receive after 10 -> work(Right, Wrong) end;
        Sum when Sum =:= Right + 7 -> receive after 1 -> work(Right + 1, Wrong) end;
        _ -> work(Right, Wrong + 1)
    end.

%% Two processes send a number to and fro, and each adds one.
relay(none, 0) ->
    receive {Other, 0} -> Other ! {self(), 1}, relay(Other, 2) end;
relay(Other, 0) ->
    Other ! {self(), 0},
    relay(Other, 1);
relay(Other, Next) ->
    receive {Other, Next} -> Other ! {self(), Next + 1}, relay(Other, Next + 2); {Other, _} -> exit(wrong) end.

ask(A, B) ->
    case whereis(witness_test_server) of
        undefined -> gone;
        Server ->
            Ref = monitor(process, Server),
            Server ! {self(), {add, A, B}},
            receive
                {sum, Sum} -> demonitor(Ref, [flush]), Sum;
                {'DOWN', Ref, process, _, _} -> gone
            end
    end.

%% Keeps what is reported at the target: nothing should be.
log(#{msg := Report}, _) -> witness_test_keeper ! {report, Report}.

%% Remembers which tools are connected.
keep() ->
    try register(witness_test_keeper, self()) catch error:badarg -> ok end,
    ok = net_kernel:monitor_nodes(true, #{node_type => hidden}),
    kept([], []).

kept(Nodes, Reports) ->
    receive
        {nodeup, N, _} -> kept([N | Nodes], Reports);
        {nodedown, N, _} -> kept(lists:delete(N, Nodes), Reports);
        {report, Report} -> kept(Nodes, [Report | Reports]);
        {tools, From} -> From ! {tools, Nodes}, kept(Nodes, Reports);
        {reports, From} -> From ! {reports, Reports}, kept(Nodes, Reports)
    end.

tools() -> asked(tools).

asked(What) ->
    witness_test_keeper ! {What, self()},
    receive {What, Answer} -> Answer end.

%% No tool is connected, and the processes that were started for tools have ended.
settled() ->
    case {tools(), [P || P <- processes(), P =/= self(), is_keeper(P)]} of
        {[], []} -> ok;
        {[], Keepers} ->
            [begin Ref = monitor(process, P), receive {'DOWN', Ref, process, P, _} -> ok end end || P <- Keepers],
            settled();
        {[_ | _], _} ->
            receive after 10 -> ok end,
            settled()
    end.

is_keeper(P) ->
    process_info(P, initial_call) =:= {initial_call, {erl_eval, exprs, 2}}
        orelse lists:any(fun(Name) -> whereis(Name) =:= P end,
                         [list_to_atom("witness" ++ Kind ++ integer_to_list(N)) || Kind <- ["$", "_spare$"], N <- lists:seq(1, 8)]).

snapshot() ->
    #{names => lists:sort(registered()),
      modules => lists:sort([M || {M, _} <- code:all_loaded(), lists:member($$, atom_to_list(M))]),
      old => [M || {M, _} <- code:all_loaded(), lists:member($$, atom_to_list(M)), erlang:check_old_code(M)],
      tables => lists:sort([ets:info(T, name) || T <- ets:all(), is_pid(ets:info(T, owner))]),
      sessions => [S || {S, _} <- [case Session of
                                       {S1, _} = Whole when is_reference(S1); is_atom(S1) -> Whole;
                                       Other -> {Other, x}
                                   end || Session <- trace:session_info(all)]],
      reports => asked(reports),
      handlers => lists:sort(logger:get_handler_ids()),
      processes => lists:sort([{proc_lib:translate_initial_call(P), process_info(P, initial_call)}
                               || P <- processes(), P =/= self(), process_info(P, initial_call) =/= undefined])}.
