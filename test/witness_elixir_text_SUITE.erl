-module(witness_elixir_text_SUITE).
-moduledoc """
What commands print of a system of Elixir: nothing is written as Erlang writes it, and no field that `inspect/2` hides is shown.

Each kind of output is compared with a file of `test/elixir_text`, which was read and found to be right. `WITNESS_SNAPSHOTS=write` writes
these files. What differs from run to run is replaced before (`stable/2`). They are those of the newest release of OTP.
""".

-include_lib("stdlib/include/assert.hrl").
-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([steps_are_written_as_elixir/1, recordings_are_shown_as_elixir/1, what_run_prints_is_written_as_elixir/1,
         reports_are_written_as_elixir/1, checks_are_written_as_elixir/1, ends_and_divergences_are_written_as_elixir/1,
         checks_of_logs_are_written_as_elixir/1, texts_in_json_are_written_as_elixir/1, tests_are_written_as_elixir/1,
         log_messages_are_written_as_elixir/1, searches_are_written_as_elixir/1, attachments_are_written_as_elixir/1,
         the_option_writes_elixir_as_erlang/1, the_option_writes_erlang_as_elixir/1]).

all() -> [steps_are_written_as_elixir, recordings_are_shown_as_elixir, what_run_prints_is_written_as_elixir,
          reports_are_written_as_elixir, checks_are_written_as_elixir, ends_and_divergences_are_written_as_elixir,
          checks_of_logs_are_written_as_elixir, texts_in_json_are_written_as_elixir, tests_are_written_as_elixir,
          log_messages_are_written_as_elixir, searches_are_written_as_elixir, attachments_are_written_as_elixir,
          the_option_writes_elixir_as_erlang, the_option_writes_erlang_as_elixir].

init_per_suite(Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        Compiler ->
            Folder = filename:join(proplists:get_value(priv_dir, Config), "secrets"),
            ok = filelib:ensure_path(Folder),
            %% The names of files in stack traces are as short in each checkout.
            #{exit := 0} = witness_command:run(Config, "/bin/sh", ["-c", "cd \"$1\" && \"$2\" -o \"$3\" secrets.ex faults.ex", "sh",
                                                                  checkout("test/applications", Config), Compiler, Folder]),
            Spec = filename:join(proplists:get_value(priv_dir, Config), "till.hml"),
            ok = file:write_file(Spec, specification()),
            [{folder, Folder}, {spec, Spec}, {compiler, Compiler} | Config]
    end.

end_per_suite(_) -> ok.

%% Its verdicts have slices, bindings, and what is still to hold.
specification() ->
    ~"""
    asked: with Secrets.Till.init(_) per From over _ ? call(From, _), _ : _ ! reply(From, _)
    monitor [_ ? call(_, {ask, User})] ff.

    echoed: with Secrets.Till.init(_) check [_ <- _, _]
      max X.([_ ? call(_, K)] <_ : _ ! {K, _}> X and [_ : _ ! _] X).

    """.

checkout(Name, Config) -> filename:join(witness_checkout:root(proplists:get_value(data_dir, Config)), Name).

witness(Arguments, Config) -> witness_command:run(Config, checkout("bin/witness", Config), Arguments).

%% Calls of functions of Erlang, the names of processes, and a list of characters are written as in Elixir, too. The program is not
%% on the code path of the command.
steps_are_written_as_elixir(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "secrets.rec"),
    #{exit := 0} = witness(["record", "--pa", proplists:get_value(folder, Config), "-o", Dir, "Secrets.main([a: \"b\"])"], Config),
    Commands = ["list 1000", "goto 9", "list 1000", "processes all", "links Secrets.Till", "mailbox Secrets.Till",
                "state Secrets.Till",
                "calls Secrets.Till.handle_call/3", "goto end", "sequence all", "sequence mermaid", "why all", "stack 2"],
    Given = lists:append([["--command", Command] || Command <- Commands]),
    #{exit := 0, stdout := Text} = witness(["replay", "--step", "--trust"] ++ Given ++ [Dir], Config),
    is_elixir(Text),
    %% In a drawing a reference is broken at the end of a line.
    Plain = lists:append([["--command", Command] || Command <- Commands, not lists:prefix("sequence", Command)]),
    #{exit := 0, stdout := Steps} = witness(["replay", "--step", "--trust"] ++ Plain ++ [Dir], Config),
    snapshot("step", by_process(Steps), Config),
    [?assertMatch({_, _}, binary:match(Text, Part), Part)
     || Part <- [~"begins: Secrets.main([a: \"b\"])", ~": Secrets.Till.init(#Secrets.User<...>), linked",
                 ~"calls :erlang.register(",
                 ~"spawns #PID<", ~": anonymous fn() in Secrets.main/1", ~"ends: shutdown: #Secrets.User<...>",
                 ~"    in Secrets.main/1 (", ~"Secrets.Till.handle_call({:ask, #Secrets.User<...>}, {#PID<", ~", nil, %{a: 1}}, ",
                 ~"names        Secrets.Till", ~"%Secrets.Plain{name: \"x\", size: 2}"]].

recordings_are_shown_as_elixir(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "shown.rec"),
    Folder = proplists:get_value(folder, Config),
    #{exit := 0} = witness(["record", "--contents", "--pa", Folder, "-o", Dir, "Secrets.main()"], Config),
    #{exit := 0, stdout := Text} = witness(["log", Dir], Config),
    #{exit := 0, stdout := Sequence} = witness(["log", "--sequence", Dir], Config),
    #{exit := 0} = witness(["log", "--process", hd(string:split(string:find(Text, ~"#PID<"), ~" ")), Dir], Config),
    is_elixir(<<Text/binary, Sequence/binary>>),
    snapshot("log", Text, Config),
    snapshot("log-sequence", Sequence, Config),
    [?assertMatch({_, _}, binary:match(Text, Part), Part)
     || Part <- [~"(1)  Secrets.main(", ~"#PID<", ~"{:ask, #Secrets.User<...>}", ~"%Secrets.Plain{name: \"x\", size: 2}",
                 ~":erlang.make_ref/0 returned #Ref"], Part =/= ~":erlang.make_ref/0 returned #Ref" orelse makes_references()].

%% OTP 27 calls it in code that is not recorded.
makes_references() -> erlang:system_info(otp_release) =/= "27".

what_run_prints_is_written_as_elixir(Config) ->
    Folder = proplists:get_value(folder, Config),
    #{exit := 1, stdout := Crash} = witness(["run", "--pa", Folder, "Secrets.wrong(:a)"], Config),
    is_elixir(Crash),
    snapshot("run-crash", Crash, Config),
    [?assertMatch({_, _}, binary:match(Crash, <<Before/binary, ": an exception was raised: ** (MatchError) no match">>), Before)
     || Before <- [~"crashed", ~"the system ended"]],
    #{exit := 1, stdout := Text} = witness(["run", "--pa", Folder, "Secrets.unhandled()"], Config),
    is_elixir(Text),
    [?assertMatch({_, _}, binary:match(Text, Part), Part)
     || Part <- [~"#PID<", ~"call(_, {:ask, #Secrets.User<...>})", ~"** (ArgumentError) no"]].

%% An event can be copied into a specification, so it is also there in Erlang's notation. Processes of the VM, and those that
%% monitor, run Erlang.
reports_are_written_as_elixir(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "report"),
    #{exit := 1} = witness(["run", "--report", Dir, "--pa", proplists:get_value(folder, Config), "Secrets.unhandled()"], Config),
    {ok, Page} = file:read_file(filename:join(Dir, "report.html")),
    {match, [Data]} = re:run(Page, "<script[^>]* id=\"?data\"?[^>]*>(.*?)</script>", [{capture, all_but_first, binary}, dotall]),
    #{~"history" := #{~"processes" := Processes} = History} = Report = json:decode(Data),
    Shown = [P || [<<"#PID<", _/binary>> | _] = P <- Processes],
    OfSystem = (maps:remove(~"monitors", History))#{~"processes" := Shown},
    Text = iolist_to_binary([[Part, $\n] || Part <- texts(Report#{~"history" := OfSystem})]),
    is_elixir(Text),
    Properties = iolist_to_binary([[Part, $\n] || Part <- texts(maps:get(~"properties", Report))]),
    %% A process that crashes under load may get answers while it reports that. The time of an event is in the next line.
    snapshot("report", re:replace(Properties, "\\{#Reference<[0-9.]+>, true\\}\n[^\n]*\n", "", [global, {return, binary}]), Config),
    [Violating | _] = [P || #{~"places" := Places} <- maps:get(~"properties", Report), #{~"violations" := Violations} <- Places,
                            #{~"process" := P} <- Violations],
    ?assert(lists:any(fun([P | _]) -> P =:= Violating end, Shown)),
    [?assertMatch({_, _}, binary:match(Text, Part), Part)
     || Part <- [~"#PID<", ~"#Secrets.User<...>", ~"Secrets.Till.init/1", ~"\nan exception was raised: ** (ArgumentError) no"]].

%% What a check says of a violation, and which processes are still there. The reports of OTP, which are the system's, are on
%% standard error, too.
checks_are_written_as_elixir(Config) ->
    Folder = proplists:get_value(folder, Config),
    [begin
         #{exit := 1, stdout := Text, stderr := Error} =
             witness(["run", "--timeout", "60", "--pa", Folder, "--check", Check, Function], Config),
         is_elixir(case Check of "deadlock" -> <<Text/binary, Error/binary>>; _ -> Text end),
         snapshot("check-" ++ Check ++ "-" ++ hd(string:split(tl(string:find(Function, ".")), "(")), Text, Config),
         [?assertMatch({_, _}, binary:match(Text, Part), Part) || Part <- Parts]
     end || {Check, Function, Parts} <- [
         {"crashes", "Faults.a_task_raises()", [~"by #PID<", ~"anonymous fn() in Faults.a_task_raises/0"]},
         {"crashes", "Faults.a_server_raises_in_a_cast()", [~", Faults.init(:at_fault)", ~"cast(:crash)"]},
         {"calls", "Faults.a_timeout_is_caught()", [~"its call of #PID<", ~"call(_, :never)"]},
         {"deadlock", "Faults.servers_call_each_other()", [~"alive     deadlock: #PID<", ~"{:\"$gen_call\", {#PID<"]},
         {"restarts", "Faults.a_child_raises_again_and_again()", [~"it has started Faults.init/1 again", ~"{:EXIT, #PID<"]},
         {"leaks", "Faults.a_server_with_a_table_is_not_stopped()", [~"has the name Faults.Kitchen and table :orders (1 object)"]},
         {"mailboxes", "Faults.a_message_of_a_task_is_left()", [~"it does not take its messages: #PID<"]}]].

%% Both are told by the VM of the program.
ends_and_divergences_are_written_as_elixir(Config) ->
    Folder = proplists:get_value(folder, Config),
    Priv = proplists:get_value(priv_dir, Config),
    #{exit := 0, stdout := Crash} = witness(["record", "--pa", Folder, "-o", filename:join(Priv, "wrong.rec"),
                                             "Secrets.wrong({:a, \"b\"})"], Config),
    %% Before that is the report of the VM of the program.
    is_elixir(string:find(Crash, ~"\nprogram ")),
    snapshot("record-crash", string:find(Crash, ~"\nprogram "), Config),
    ?assertMatch({_, _}, binary:match(Crash, ~"crashed: an exception was raised: ** (MatchError) no match")),
    Dir = filename:join(Priv, "changed.rec"),
    #{exit := 0} = witness(["record", "--contents", "--pa", Folder, "-o", Dir, "Secrets.main()"], Config),
    Changed = changed(Config),
    #{exit := 1, stdout := Text} = witness(["replay", "--allow-changed", "--pa", Changed, Dir], Config),
    is_elixir(hd(string:split(Text, ~"\nchanged "))),
    snapshot("replay-divergence", hd(string:split(Text, ~"\nchanged ")), Config),
    [?assertMatch({_, _}, binary:match(Text, Part), Part)
     || Part <- [~"diverged: #PID<", ~">, Secrets.Till.init/1 (process 2)", ~"the message is {:\"$gen_call\", {#PID<",
                 ~"takes a message of #PID<", ~"in :proc_lib.init_p_do_apply/3 ("]],
    #{exit := 1, stdout := Json} = witness(["replay", "--json", "--allow-changed", "--pa", Changed, Dir], Config),
    [#{~"process" := <<"<0.", _/binary>>, ~"signature" := <<"'Elixir.Secrets.Till':init/1">>, ~"text" := <<"#PID<", _/binary>>}] =
        maps:get(~"divergences", json:decode(Json)),
    #{exit := 1, stdout := Erlang} = witness(["replay", "--syntax", "erlang", "--allow-changed", "--pa", Changed, Dir], Config),
    is_erlang(Erlang).

%% The same program, which sends another message.
changed(Config) ->
    Priv = proplists:get_value(priv_dir, Config),
    {ok, Source} = file:read_file(checkout("test/applications/secrets.ex", Config)),
    File = filename:join(Priv, "changed.ex"),
    ok = file:write_file(File, string:replace(Source, ~"name: \"ann\"", ~"name: \"bob\"", all)),
    Folder = filename:join(Priv, "changed"),
    ok = filelib:ensure_path(Folder),
    #{exit := 0} = witness_command:run(Config, proplists:get_value(compiler, Config), ["-o", Folder, File]),
    Folder.

checks_of_logs_are_written_as_elixir(Config) ->
    Folder = proplists:get_value(folder, Config),
    Spec = proplists:get_value(spec, Config),
    [begin
         Log = filename:join(proplists:get_value(priv_dir, Config), Name),
         #{exit := 1, stdout := Text} = witness(["run", "--log", Log, "--pa", Folder, "--spec", Spec, "Secrets.main()"], Config),
         #{exit := 1, stdout := Checked} = witness(["check", "--pa", Folder, "--spec", Spec, Log], Config),
         [begin
              is_elixir(without_specification(Part)),
              [?assertMatch({_, _}, binary:match(Part, Wanted), Wanted)
               || Wanted <- [~"slice From = [:alias | #Reference<", ~"with User = #Secrets.User<...>", ~"K = {:ask, #Secrets.User<...>}"]]
          end || Part <- [Text, Checked]],
         snapshot("run-spec", in_order(Text, ~"system "), Config),
         snapshot("check-log" ++ filename:extension(Name), Checked, Config)
     end || Name <- ["till.log", "till.jsonl"]].

%% Texts of the specification have its own notation.
without_specification(Text) -> re:replace(Text, "[^\n]*(till\\.hml|to hold:|\\| )[^\n]*", "", [global, {return, binary}]).

%% Fields that programs read are in Erlang's notation.
texts_in_json_are_written_as_elixir(Config) ->
    Folder = proplists:get_value(folder, Config),
    #{exit := 1, stdout := Run} =
        witness(["run", "--json", "--pa", Folder, "--spec", proplists:get_value(spec, Config), "Secrets.main()"], Config),
    Found = [{Property, V} || #{~"type" := ~"verdict", ~"verdict" := ~"no", ~"name" := Property} = V <- lines(Run)],
    %% Monitors of several properties may be told in any order.
    [_, _, _] = Verdicts = [V || {_, V} <- lists:keysort(1, Found)],
    Events = [Text || V <- Verdicts, #{~"kind" := Kind, ~"text" := Text} <- [maps:get(~"event", V) | maps:get(~"explanation", V)],
                      lists:member(Kind, [~"init", ~"send", ~"recv", ~"exit"])],
    is_elixir(iolist_to_binary([[Text, $\n] || Text <- Events])),
    snapshot("json", iolist_to_binary([[Text, $\n] || Text <- Events]), Config),
    [?assert(lists:any(fun(Text) -> binary:match(Text, Part) =/= nomatch end, Events), Part)
     || Part <- [~"#PID<", ~"#Secrets.User<...>", ~"{:ack, #PID<"]],
    [?assertMatch(#{~"process" := <<"<0.", _/binary>>, ~"signature" := <<"Secrets.Till.init(#{'__struct__' =>", _/binary>>}, V)
     || V <- Verdicts],
    Dir = filename:join(proplists:get_value(priv_dir, Config), "json.rec"),
    #{exit := 0} = witness(["record", "--contents", "--pa", Folder, "-o", Dir, "Secrets.main()"], Config),
    [begin
         #{exit := 0, stdout := Log} = witness(["log", "--json" | Given] ++ [Dir], Config),
         Texts = [Text || #{~"text" := Text} <- lines(Log), is_binary(Text)],
         ?assert(lists:any(fun(Text) -> binary:match(Text, ~"{:ask, #Secrets.User<...>}") =/= nomatch end, Texts)),
         is_elixir(iolist_to_binary([[Text, $\n] || Text <- Texts, binary:match(Text, ~"current_stacktrace") =:= nomatch]))
     end || Given <- [[], ["--sequence"]]],
    #{exit := 0, stdout := Erlang} = witness(["log", "--json", "--syntax", "erlang", Dir], Config),
    is_erlang(iolist_to_binary([[Text, $\n] || #{~"text" := Text} <- lines(Erlang)])).

lines(Json) -> [json:decode(Line) || Line <- binary:split(Json, ~"\n", [global]), Line =/= <<>>].

tests_are_written_as_elixir(Config) ->
    Texts = [begin
         File = filename:join(proplists:get_value(priv_dir, Config), "till_test.exs"),
         ok = file:write_file(File, [
             "ExUnit.start(seed: 0, max_cases: 1, timeout: :infinity, colors: [enabled: false])\ndefmodule TillTest do\n  use ExUnit.Case\n  use Witness.Case, specs: [\"",
             proplists:get_value(spec, Config), "\"]", Option, "\n  test \"sells\" do\n    Secrets.main()\n  end\nend\n"]),
         #{exit := 2, stdout := Text} = elixir([File], Config),
         ?assertMatch({_, _}, binary:match(Text, ~"VIOLATION of asked")),
         Text
     end || Option <- ["", ", syntax: :erlang"]],
    [Elixir, Erlang] = Texts,
    is_elixir(without_specification(Elixir)),
    snapshot("exunit", in_order(Elixir, ~"     code: "), Config),
    ?assertMatch({_, _}, binary:match(Elixir, ~", Secrets.Till.init(#Secrets.User<...>)")),
    is_erlang(Erlang).

elixir(Arguments, Config) ->
    Ebin = filename:dirname(code:which(witness)),
    witness_command:run(Config, filename:join(filename:dirname(proplists:get_value(compiler, Config)), "elixir"),
                        ["-pa", Ebin, "-pa", proplists:get_value(folder, Config) | Arguments]).

log_messages_are_written_as_elixir(Config) ->
    [begin
         Script = ["{:ok, run} = :witness.start(%{system: {Secrets, :main, []}, specs: [\"", proplists:get_value(spec, Config), "\"]",
                   Option, "})\n{:ok, %{outcome: :violated}} = :witness.await(run, 60_000)\n{:ok, _} = :witness.stop(run)"],
         #{exit := 0, stdout := Output, stderr := Error} = elixir(["-e", unicode:characters_to_list(Script)], Config),
         %% By what they say: the times before it may be the same or not.
         Lines = [{string:find(Line, ~" "), Line} || Line <- binary:split(<<Output/binary, Error/binary>>, ~"\n", [global]),
                                                    binary:match(Line, ~" violated by ") =/= nomatch],
         ?assert(length(Lines) >= 3),
         Text = iolist_to_binary([[Line, $\n] || {_, Line} <- lists:keysort(1, Lines)]),
         Is(Text),
         [snapshot("logger", Text, Config) || Option =:= ""]
     end || {Option, Is} <- [{"", fun is_elixir/1}, {", syntax: :erlang", fun is_erlang/1}]].

searches_are_written_as_elixir(Config) ->
    [begin
         Dir = filename:join(proplists:get_value(priv_dir, Config), Name ++ ".rec"),
         #{exit := 1, stdout := Text} = witness(["search", "--pa", proplists:get_value(folder, Config), "-o", Dir | Given], Config),
         is_elixir(without_specification(Text)),
         snapshot("search-" ++ Name, Text, Config)
     end || {Name, Given} <- [{"crash", ["Secrets.wrong(:a)"]}, {"unhandled", ["Secrets.unhandled()"]},
                              {"deadlock", ["Faults.servers_call_each_other()"]},
                              {"spec", ["--spec", proplists:get_value(spec, Config), "Secrets.main()"]}]].

%% The texts are made at the target.
attachments_are_written_as_elixir(Config) ->
    Name = "secrets" ++ os:getpid(),
    Elixir = filename:join(filename:dirname(proplists:get_value(compiler, Config)), "elixir"),
    Folder = proplists:get_value(folder, Config),
    Cookie = filename:join(proplists:get_value(priv_dir, Config), "cookie"),
    ok = file:write_file(Cookie, "secrets"),
    ok = file:change_mode(Cookie, 8#400),
    Node = witness_command:start(Config, "/dev/null", Elixir,
        ["--sname", Name, "--cookie", "secrets", "-pa", Folder, "-e",
         %% It asks while the tool is there, which so sees the first call as a whole.
         "defmodule Loop do\n  def ask(p) do\n    if :trace.session_info(p) != [], do: GenServer.call(p, {:ask, Secrets.secret()})\n"
         "    Process.sleep(20)\n    ask(p)\n  end\n"
         "end\n{:ok, p} = Secrets.Till.start_link(Secrets.secret())\nIO.puts(\"up\")\nspawn(fn -> IO.gets(\"\"); System.halt() end)\n"
         "Loop.ask(p)"]),
    try
        _ = witness_command:until(Node, ~"up", <<>>),
        [begin
             #{exit := 1, stdout := Text} = witness(["attach", "--cookie-file", Cookie, "--for", "8",
                                                     "--spec", proplists:get_value(spec, Config), "--name", "Elixir.Secrets.Till",
                                                     Name ++ "@" ++ host() | Given], Config),
             ?assertMatch({_, _}, binary:match(Text, ~"VIOLATION of asked")),
             Is(without_specification(Text)),
             %% The others are like the first, and their number depends on time.
             {_, Violations, _} = violations(Text, ~"watched "),
             {[First | _], [Second]} = lists:partition(fun(Part) -> string:prefix(Part, ~"asked ") =/= nomatch end, Violations),
             [snapshot("attach", iolist_to_binary([[~"VIOLATION of ", Part, ~"\n\n"] || Part <- [First, Second]]), Config)
              || Given =:= []]
         end || {Given, Is} <- [{[], fun is_elixir/1}, {["--syntax", "erlang"], fun is_erlang/1}]]
    after
        port_close(Node)
    end.

host() ->
    {ok, Name} = inet:gethostname(),
    Name.

the_option_writes_elixir_as_erlang(Config) ->
    Folder = proplists:get_value(folder, Config),
    Priv = proplists:get_value(priv_dir, Config),
    Dir = filename:join(Priv, "erlang.rec"),
    Report = filename:join(Priv, "erlang.report"),
    #{exit := 1, stdout := Run} = witness(["run", "--syntax", "erlang", "--report", Report, "--pa", Folder, "--spec",
                                           proplists:get_value(spec, Config), "Secrets.main([a: \"b\"])"], Config),
    #{exit := 1, stdout := Crash} = witness(["run", "--syntax", "erlang", "--pa", Folder, "Secrets.wrong(:a)"], Config),
    #{exit := 1, stdout := Record} = witness(["record", "--contents", "--syntax", "erlang", "--pa", Folder, "-o", Dir, "--spec",
                                              proplists:get_value(spec, Config), "Secrets.main()"], Config),
    #{exit := 0, stdout := Log} = witness(["log", "--syntax", "erlang", Dir], Config),
    Commands = ["list 1000", "calls Secrets.Till.handle_call/3", "goto end", "processes all", "sequence all", "why all"],
    #{exit := 0, stdout := Step} = witness(["replay", "--step", "--syntax", "erlang"]
                                           ++ lists:append([["--command", Command] || Command <- Commands]) ++ [Dir], Config),
    {ok, Page} = file:read_file(filename:join(Report, "report.html")),
    {match, [Data]} = re:run(Page, "<script[^>]* id=\"?data\"?[^>]*>(.*?)</script>", [{capture, all_but_first, binary}, dotall]),
    [is_erlang(Text) || Text <- [Run, Crash, Record, Log, Step, [[Part, $\n] || Part <- texts(json:decode(Data))]]].

is_erlang(Text) ->
    ?assertMatch({match, _}, re:run(Text, "<\\d+\\.\\d+\\.\\d+>|\\{badmatch,")),
    [?assertEqual(nomatch, re:run(Text, ["[^\n]*", Wrong, "[^\n]*"], [{capture, first, binary}]))
     || Wrong <- ["#PID<", "#Reference<", "#Secrets", "%Secrets", "[{ ]:[a-z]+[,}]", "%\\{", "\\*\\* \\("]].

the_option_writes_erlang_as_elixir(Config) ->
    Priv = proplists:get_value(priv_dir, Config),
    File = filename:join(Priv, "plain.erl"),
    ok = file:write_file(File, "-module(plain).\n-export([run/1, serve/1]).\n"
        "run(How) ->\n    P = spawn(?MODULE, serve, [#{size => 2}]),\n    P ! {self(), ask, <<\"text\">>, \"chars\"},\n"
        "    receive {P, A} -> A end,\n    P ! How,\n    receive nothing -> ok after 50 -> ok end.\n"
        "serve(S) ->\n    receive {From, ask, _, _} -> From ! {self(), S}, serve(S); stop -> ok; crash -> {ok, _} = S end.\n"),
    {ok, plain} = compile:file(File, [{outdir, Priv}, debug_info]),
    Spec = filename:join(Priv, "plain.hml"),
    ok = file:write_file(Spec, "asked: with plain:serve(S) check [_ <- _, _] [_ ? {From, ask, T, _}] ff.\n"),
    Dir = filename:join(Priv, "plain.rec"),
    #{exit := 1, stdout := Run} = witness(["run", "--syntax", "elixir", "--pa", Priv, "--spec", Spec, "plain:run(stop)"], Config),
    #{exit := 1, stdout := Crash} = witness(["run", "--syntax", "elixir", "--pa", Priv, "plain:run(crash)"], Config),
    #{exit := 0} = witness(["record", "--contents", "--pa", Priv, "-o", Dir, "plain:run(stop)"], Config),
    #{exit := 0, stdout := Log} = witness(["log", "--syntax", "elixir", Dir], Config),
    Commands = ["list 1000", "goto end", "processes all", "sequence all", "why all"],
    #{exit := 0, stdout := Step} = witness(["replay", "--step", "--syntax", "elixir"]
                                           ++ lists:append([["--command", Command] || Command <- Commands]) ++ [Dir], Config),
    [is_elixir(without_specification(Text)) || Text <- [Run, Crash, Log, Step]],
    [?assertMatch({_, _}, binary:match(Text, Part), Part)
     || {Text, Part} <- [{Run, ~", :plain.serve(%{size: 2})"}, {Run, ~"{#PID<"}, {Crash, ~"** (MatchError) no"},
                         {Log, ~"(1)  :plain.run(:stop)"}, {Step, ~"begins: :plain.run(:stop)"}]].

texts(#{} = Map) -> lists:append([texts(Value) || Key := Value <- Map, Key =/= ~"event"]);
texts(List) when is_list(List) -> lists:append([texts(Element) || Element <- List]);
texts(Text) when is_binary(Text) -> [Text];
texts(_) -> [].

%% The output is the one that was read.
snapshot(Name, Text, Config) ->
    File = filename:join(checkout("test/elixir_text", Config), Name ++ ".txt"),
    Stable = <<(string:trim(stable(Text, Config), trailing))/binary, $\n>>,
    case {erlang:system_info(otp_release), os:getenv("WITNESS_SNAPSHOTS")} of
        {"29", "write"} ->
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, Stable);
        {"29", _} ->
            {ok, Kept} = file:read_file(File),
            ?assertEqual([], differences(lines_of(Kept), lines_of(Stable)), File);
        _ -> ok
    end.

lines_of(Text) -> binary:split(Text, ~"\n", [global]).

%% The first lines that are not the same.
differences([Line | Kept], [Line | Lines]) -> differences(Kept, Lines);
differences(Kept, Lines) -> [{kept, lists:sublist(Kept, 3), got, lists:sublist(Lines, 3)} || Kept =/= Lines].

%% What processes do beside each other has any order: here each list has one process after the other, and steps have no numbers.
by_process(Text) ->
    Lines = [{re:run(Line, "^(?:=>| ) *\\d+ +(\\d+):(\\d+) ", [{capture, all_but_first, list}]),
              re:replace(Line, "^((?:=>|<-)? *)\\d+( +\\d+:\\d+ )", "\\1N\\2", [{return, binary}])} || Line <- lines_of(Text)],
    iolist_to_binary(lists:join($\n, in_lists(Lines))).

in_lists([{nomatch, Line} | Lines]) -> [Line | in_lists(Lines)];
in_lists([]) -> [];
in_lists(Lines) ->
    {List, Others} = lists:splitwith(fun({Found, _}) -> Found =/= nomatch end, Lines),
    [Line || {_, Line} <- lists:keysort(1, [{[list_to_integer(N) || N <- Place], Line} || {{match, Place}, Line} <- List])]
        ++ in_lists(Others).

%% Violations of several properties may be told in any order: here they have that of their properties.
in_order(Text, End) ->
    {Before, Violations, After} = violations(Text, End),
    Sorted = lists:keysort(1, [{hd(binary:split(Violation, ~"\n")), Violation} || Violation <- Violations]),
    iolist_to_binary([Before, [[~"VIOLATION of ", Violation, ~"\n\n"] || {_, Violation} <- Sorted], After]).

%% What is behind the last one begins with `End`.
violations(Text, End) ->
    [Before | Violations] = binary:split(Text, ~"VIOLATION of ", [global]),
    [Last, After] = binary:split(lists:last(Violations), <<"\n", End/binary>>),
    {Before, [string:trim(Violation, trailing) || Violation <- lists:droplast(Violations) ++ [Last]], <<End/binary, After/binary>>}.

%% Pids and references are numbered in the order in which they come. Times, folders and lines of OTP and Elixir have no numbers,
%% and as the width of columns depends on these, white space and lines of charts have one length. The line of an event in a log
%% has none, either: a log keeps the order of each process, and what others do may stand before it or after it.
stable(Text, Config) ->
    Replaced = lists:foldl(fun({Pattern, By}, Acc) -> re:replace(Acc, Pattern, By, [global, {return, binary}, unicode]) end,
                           iolist_to_binary(string:replace(string:replace(Text, proplists:get_value(priv_dir, Config), "PRIV/", all),
                                                           checkout("", Config), "ROOT/", all)),
                           [{"\\.erl:\\d+", ".erl:N"}, {"(lib/[a-z_/]+\\.ex):\\d+", "\\1:N"},
                            {"[+]?\\d+(\\.\\d+)? (ms|s|us)\\b", "TIME"}, {"\\d{4}-\\d\\d-\\d\\d", "DATE"}, {"line: \\d+", "line: N"},
                            {"\\d+ B\\b", "N B"}, {"current_stacktrace, [^\n]*", "current_stacktrace, ..."}, {"\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?", "CLOCK"},
                            {"(in its mailbox: \\d+ messages?), [^\n]*", "\\1, ..."}, {"at most \\d+ tracers?", "at most N tracers"}, {"\\d+ events", "N events"},
                            {"log( +)\\d+ lines", "log\\1N lines"}, {"\\.(jsonl|log):\\d+", ".\\1:N"}, {"#Function<[0-9.]+/", "#Function<N/"},
                            {"[0-9.]+ seconds[^\n]*", "TIME"}, {"-5764\\d+", "MONOTONIC"},
                            {"(#Reference<|#35;Reference#60;)[0-9.]+(?![0-9.>])[^\n]*", "#Reference<..."},
                            {"-{3,}", "--"}, {" +", " "}, {" +\n", "\n"}]),
    numbered(Replaced, "#PID<[0-9.]+>", ~"#PID<", numbered(Replaced, "#Reference<[0-9.]+>", ~"#Reference<", Replaced)).

numbered(Of, Pattern, Before, Text) ->
    Found = case re:run(Of, Pattern, [global, {capture, first, binary}]) of
        {match, All} -> lists:uniq(lists:append(All));
        nomatch -> []
    end,
    lists:foldl(fun({Number, One}, Acc) ->
        iolist_to_binary(string:replace(Acc, One, [Before, integer_to_binary(Number), $>], all))
    end, Text, lists:enumerate(Found)).

is_elixir(Text) ->
    [?assertEqual(nomatch, re:run(Text, ["[^\n]*", Wrong, "[^\n]*"], [{capture, first, binary}]))
     || Wrong <- ["(?<![\\w#])(?<!PID|Ref|nce|ort)<0\\.", "'Elixir\\.", "Elixir\\.Secrets", "<<\"", "\\{'", "#\\{", "#Ref<",
                  "hunter2", "\\{(?!:|%|#|\"|[A-Z ])[a-z_]+,"]].
