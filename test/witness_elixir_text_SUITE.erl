-module(witness_elixir_text_SUITE).
-moduledoc """
What commands print of a system of Elixir: nothing is written as Erlang writes it, and no field that `inspect/2` hides is shown.
""".

-include_lib("stdlib/include/assert.hrl").
-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([steps_are_written_as_elixir/1, recordings_are_shown_as_elixir/1, what_run_prints_is_written_as_elixir/1,
         reports_are_written_as_elixir/1]).

all() -> [steps_are_written_as_elixir, recordings_are_shown_as_elixir, what_run_prints_is_written_as_elixir,
          reports_are_written_as_elixir].

init_per_suite(Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        Compiler ->
            Folder = filename:join(proplists:get_value(priv_dir, Config), "secrets"),
            ok = filelib:ensure_path(Folder),
            #{exit := 0} = witness_command:run(Config, Compiler, ["-o", Folder, checkout("test/applications/secrets.ex", Config)]),
            [{folder, Folder} | Config]
    end.

end_per_suite(_) -> ok.

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
    [?assertMatch({_, _}, binary:match(Text, Part), Part)
     || Part <- [~"(1)  Secrets.main(", ~"#PID<", ~"{:ask, #Secrets.User<...>}", ~"%Secrets.Plain{name: \"x\", size: 2}",
                 ~":erlang.make_ref/0 returned #Ref"], Part =/= ~":erlang.make_ref/0 returned #Ref" orelse makes_references()].

%% OTP 27 calls it in code that is not recorded.
makes_references() -> erlang:system_info(otp_release) =/= "27".

what_run_prints_is_written_as_elixir(Config) ->
    Folder = proplists:get_value(folder, Config),
    #{exit := 1, stdout := Crash} = witness(["run", "--pa", Folder, "Secrets.wrong(:a)"], Config),
    is_elixir(Crash),
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
    [Violating | _] = [P || #{~"places" := Places} <- maps:get(~"properties", Report), #{~"violations" := Violations} <- Places,
                            #{~"process" := P} <- Violations],
    ?assert(lists:any(fun([P | _]) -> P =:= Violating end, Shown)),
    [?assertMatch({_, _}, binary:match(Text, Part), Part)
     || Part <- [~"#PID<", ~"#Secrets.User<...>", ~"Secrets.Till.init/1", ~"\nan exception was raised: ** (ArgumentError) no"]].

texts(#{} = Map) -> lists:append([texts(Value) || Key := Value <- Map, Key =/= ~"event"]);
texts(List) when is_list(List) -> lists:append([texts(Element) || Element <- List]);
texts(Text) when is_binary(Text) -> [Text];
texts(_) -> [].

is_elixir(Text) ->
    [?assertEqual(nomatch, re:run(Text, ["[^\n]*", Wrong, "[^\n]*"], [{capture, first, binary}]))
     || Wrong <- ["(?<![\\w#])(?<!PID|Ref|nce|ort)<0\\.", "'Elixir\\.", "Elixir\\.Secrets", "<<\"", "\\{'", "#\\{", "#Ref<",
                  "hunter2", "\\{(?!:|%|#|\"|[A-Z ])[a-z_]+,"]].
