-module(witness_step_terminal_SUITE).
-moduledoc """
Every command of the stepper in a session on a terminal: with the demonstration, and with a project of Mix. Each command has to
be answered before the next one is typed, and what stands in one answer counts for no other. What `help` lists is what must be
typed.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [the_demonstration, an_elixir_project].

the_demonstration(Config) ->
    Root = witness_checkout:root(proplists:get_value(priv_dir, Config)),
    Folder = filename:join([Root, "examples", "last_seat"]),
    Spec = filename:join(Folder, "sold_once.hml"),
    Out = filename:join(proplists:get_value(priv_dir, Config), "terminal_programs"),
    ok = filelib:ensure_path(Out),
    [{ok, _} = compile:file(Source, [{outdir, Out}, debug_info]) || Source <- filelib:wildcard(filename:join(Folder, "*.erl"))],
    Arguments = ["--contents", "--spec", Spec, "--pa", Out, "last_seat:main(2)"],
    Dir = recorded(1, filename:join([Root, "bin", "witness"]), Arguments, Config),
    session([
        {"help", [~"what there is", ~"PROCESS: its pid"]},
        {"help why", [~"the chain of causes"]},
        {"where", [~"before the first of"]},
        {"list 2", [~"begins: last_seat:main(2)", ~"registered_name"]},
        {"next", [~"begins: last_seat:main(2)"]},
        {"", [~"registered_name"]},
        {"ne\t1 spawn", [~"spawns", ~"last_seat_hall:init"]},
        {"ba", [~"registered_name"]},
        {"goto last_seat_hall:serve/1", [~"last_seat_hall:serve/1"]},
        {"goto 1:1", [~"1:1", ~"registered_name"]},
        {"goto start", [~"before the first of"]},
        {"goto last_seat.erl:13", [~"spawns", ~"last_seat.erl:13"]},
        %% The hall has said that it is there, and waits.
        {"back 1 send of 2", [~"sends to", ~"{ack,"]},
        {"state 2", [~"free", ~"reserved"]},
        {"stack 2", [~"in proc_lib:init"]},
        {"links 2", [~"linked with", ~"<0."]},
        {"processes", [~"last_seat_hall:init/1"]},
        {"next 1 take of 2", [~"takes of", ~"reserve"]},
        {"back", [~"<0."]},
        {"mailbox 2", [~"reserve"]},
        {"break message {_, sold_out}", [~"sold_out"]},
        {"break formula " ++ Spec, [~"sold_once.hml"]},
        {"delete 2", []},
        {"breaks", [~"{_, sold_out}"]},
        {"breaks", again, [~"{_, sold_out}"]},
        {"continue", [~"sends to", ~"sold_out"]},
        {"why", [~"<-", ~"takes of"]},
        {"why all", [~"begins: last_seat:main(2)"]},
        {"continue", [~"takes of", ~"sold_out"]},
        {"continue back", [~"sends to", ~"sold_out"]},
        {"sequence 3", [~"*"]},
        {"sequence all", [~"ack"]},
        {"sequence 2 mermaid", [~"sequenceDiagram"]},
        {"calls last_seat_hall:sell/2 all", [~"last_seat_hall:sell(1", ~" -> #{"]},
        {"goto end", [~"ends: normal"]},
        {"calls last_seat_hall:sell/2", wrong, ~"is not called from here on"},
        {"processes all", [~"last_seat_cashier:init/1", ~"ended"]},
        %% The verdict of one hall may stand at the last event, since either evening may end last.
        {"goto start", [~"before the first of"]},
        {"verdict", [~"sold_once"]},
        {"verdict", [~"sold_once"]},
        {"verdict back", [~"sold_once"]},
        {"next -1", wrong, ~"expected: next"},
        {"int:i(last_seat_hall)", wrong, ~"interprets modules"},
        {"jump", wrong, ~"no command 'jump'"}
    ], ["--spec", Spec, Dir], Config).

%% In some evenings the seat is sold twice. Then no reply says that it is sold out, and one has to in the first evening.
recorded(Attempt, Program, Arguments, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), ["terminal_demo-", integer_to_list(Attempt), ".rec"]),
    #{exit := Code} = witness_command:run(Config, Program, ["record", "-o", Dir | Arguments]),
    ?assert(lists:member(Code, [0, 1])),
    case is_sold_out(Dir) of
        true -> Dir;
        false -> recorded(Attempt + 1, Program, Arguments, Config)
    end.

%% By the first hall, which is process 2.
is_sold_out(Dir) ->
    {ok, R} = witness_log_recording:open(Dir),
    Told = fun({from, From}, {_, Is}) -> {From, Is};
              ({contents, {_, sold_out}}, {2, _}) -> {2, true};
              (_, So) -> So
           end,
    [] =/= [Id || Id <- witness_log_recording:ids(R), {ok, {_, true}} <- [witness_log_recording:fold(Told, {none, false}, Id, R)]].

an_elixir_project(Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        _ -> elixir(Config)
    end.

elixir(Config) ->
    Project = witness_record_elixir_SUITE:project(terminal, "[Starling, Starling.Once]", Config),
    Spec = filename:join(proplists:get_value(priv_dir, Config), "starling.hml"),
    ok = file:write_file(Spec, ["says_it_is_there: with 'Elixir.Starling':init(_)\ncheck\n",
                                "  [_ <- _, 'Elixir.Starling':init(_)] [_ ? _] ff.\n"]),
    Dir = filename:join(proplists:get_value(priv_dir, Config), "terminal_mix.rec"),
    #{exit := 0} = witness_record_elixir_SUITE:witness(Config, ["record", "--contents", "--mix", Project, "-o", Dir]),
    session([
        {"help", [~"what there is", ~"PROCESS: its pid"]},
        {"where", [~"before the first of"]},
        {"goto GenServer.call/3", [~"in GenServer.call/3"]},
        {"goto start", [~"before the first of"]},
        {"goto starling.ex:24", [~"starling.ex:24"]},
        {"list", [~"=>", ~"{:say, 1}"]},
        {"state Elixir.Starling", [~"[]"]},
        {"stack Elixir.Starling", [~"in "]},
        {"links Elixir.Starling", [~"linked with", ~"Starling"]},
        {"processes", [~"Starling"]},
        {"break message {_, _, {say, 2}}", [~"{say, 2}"]},
        {"breaks", [~"{say, 2}"]},
        {"continue", [~"sends to", ~"{:say, 2}"]},
        {"mailbox Elixir.Starling", [~"{:say, 2}"]},
        {"next 1 take of Elixir.Starling", [~"takes of", ~"{:say, 2}"]},
        {"back 1 send of Elixir.Starling", [~"sends to", ~"{:dev, "]},
        {"why", [~"<-", ~"{:say, 1}"]},
        {"delete 1", []},
        {"calls Starling.handle_call/3 all", [~"Starling.handle_call({:say, 1}", ~"{:reply, "]},
        {"calls GenServer.call/2 1", [~"GenServer.call(", ~"-> {:dev, "]},
        {"verdict back", [~"says_it_is_there"]},
        {"goto start", [~"before the first of"]},
        {"verdict", [~"says_it_is_there"]},
        {"sequence 2", [~"*"]}
    ], ["--spec", Spec, Dir], Config).

has_history() -> erlang:system_info(otp_release) =/= "27".

%% --- a session -------------------------------------------------------------------

session(Typed, Arguments, Config) ->
    Names = [Name || {Name, _, _} <- witness_cli_step_parse:commands()],
    Words = [hd(string:lexemes(element(1, Command) ++ " .", " \t")) || Command <- Typed],
    ?assertEqual([], Names -- [~"quit" | [Name || Name <- Names, Word <- Words, Word =:= unicode:characters_to_list(Name)]]),
    Program = filename:join([witness_checkout:root(proplists:get_value(priv_dir, Config)), "bin", "witness"]),
    %% Lines are not broken where texts are looked for.
    Line = ["TERM=xterm; export TERM; stty cols 1000; exec" | [[" '", Word, "'"] || Word <- [Program, "replay", "--step" | Arguments]]],
    Port = witness_command:start(Config, "/dev/null", "script", ["-qec", Line, "/dev/null"]),
    Rest = lists:foldl(fun(Command, Shown) -> typed(Command, Port, Shown) end, until(~"(0/", Port, ~""), Typed),
    true = port_command(Port, ~"quit\r"),
    {Exit, _} = witness_command:collect(Port, Rest),
    ?assertEqual(0, Exit).

%% What the terminal echoes of the line is no answer to it: that comes behind the end of the line. The prompt is behind the
%% answer. What is wrong is told on standard error, which may overtake both.
typed({Keys, wrong, Expected}, Port, Shown) ->
    true = port_command(Port, [Keys, "\r"]),
    until(Expected, Port, Shown);
typed({Line, again, Expected}, Port, Shown) ->
    case has_history() of
        true ->
            true = port_command(Port, ~"\e[A"),
            typed({"", Expected}, Port, until(list_to_binary(Line), Port, Shown));
        false -> typed({Line, Expected}, Port, Shown)
    end;
typed({Keys, Expected}, Port, Shown) ->
    true = port_command(Port, [Keys, "\r"]),
    Answered = lists:foldl(fun(Text, Left) -> until(Text, Port, Left) end, until(~"\r\n", Port, Shown), Expected),
    until_prompt(Port, Answered).

until(Text, Port, Shown) ->
    All = witness_command:until(Port, Text, Shown),
    [_, Behind] = binary:split(All, Text),
    Behind.

until_prompt(Port, Shown) ->
    case re:run(Shown, "\\(\\d+/\\d+\\)", [{capture, first, index}]) of
        {match, [{At, Size}]} -> binary:part(Shown, At + Size, byte_size(Shown) - At - Size);
        nomatch ->
            receive {Port, {data, Data}} -> until_prompt(Port, <<Shown/binary, Data/binary>>)
            after 60_000 -> ct:fail({no_prompt, Shown})
            end
    end.
