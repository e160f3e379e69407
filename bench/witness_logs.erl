-module(witness_logs).
-moduledoc """
What it costs to check a log: events a second and peak memory, for logs of several lengths, in both formats, with one scheduler
and with two. It is compared with `wc -l`, which only reads, and with a loop of `erl_scan` and `erl_parse`, which only parses.

The log is that of a master with a thousand workers at any time; each answers a hundred requests and ends.
The specification (`witness_logs.hml`) reads every event of every worker. Each figure is taken in a VM of its own, and
the figures of one row one after the other; several rounds, of which the median counts.

`short lives` and `long lives` are logs of half a million events that only have those of workers, a thousand at a time. A short
life is a fork, an init, four requests with their replies, and an exit; a long one is fifty times as long. The difference between
the two is the cost of births and ends. Their rounds alternate.

`stages` shows where the time goes, with one scheduler: reading alone, reading and parsing in one process, and all of it.
""".

-export([main/1, generate/3, workers/4, check/2, parse/1, read/1, naive/1]).

-define(WORKERS, 1000).
-define(REQUESTS, 100).
-define(NAIVE, 100_000).
%% For the logs of lives: events, and the requests to a worker.
-define(LIVES, 500_000).
-define(SHORT, 4).
-define(LONG, 250).

-spec main([string()]) -> no_return().
main([Rounds | Millions]) ->
    N = list_to_integer(Rounds),
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), "witness_logs." ++ os:getpid()),
    ok = filelib:ensure_path(Dir),
    io:format("OTP ~s, medians of ~b: millions of events a second, peak memory in MB~n", [erlang:system_info(otp_release), N]),
    io:format("~-22s ~6s ~9s ~9s ~9s ~9s~n", ["", "bytes", "1 sched.", "memory", "2 sched.", "memory"]),
    try
        lists:foreach(fun({M, Format}) -> row(M, Format, Dir, N) end,
                      [{list_to_integer(M), Format} || M <- Millions, Format <- ["text", "json"]]),
        lists:foreach(fun(Format) -> lives(Format, Dir, N) end, ["text", "json"])
    after
        file:del_dir_r(Dir)
    end,
    halt(0).

row(Millions, Format, Dir, N) ->
    File = filename:join(Dir, Format ++ ".log"),
    _ = measured(generate, ["1", File, Format, integer_to_list(Millions * 1_000_000)]),
    Size = filelib:file_size(File),
    Runs = [{measured(check, ["1", File, Format]), measured(check, ["2", File, Format])} || _ <- lists:seq(1, N)],
    _ = shown(io_lib:format("~b M, ~s", [Millions, Format]), Size / Millions / 1.0e6, Runs),
    Millions =:= 1 andalso stages(File, Format, N),
    ok = file:delete(File).

%% Events a second with one scheduler and with two.
shown(Name, Bytes, Runs) ->
    {One, OneMemory} = middle([R || {R, _} <- Runs]),
    {Two, TwoMemory} = middle([R || {_, R} <- Runs]),
    io:format("~-22s ~6.1f ~9.2f ~9b ~9.2f ~9b~n", [Name, Bytes, One, OneMemory, Two, TwoMemory]),
    {One, Two}.

lives(Format, Dir, N) ->
    Logs = [{Name, filename:join(Dir, Name ++ "." ++ Format), Requests}
            || {Name, Requests} <- [{"short", ?SHORT}, {"long", ?LONG}]],
    Events = [measured(workers, ["1", File, Format, integer_to_list(?LIVES), integer_to_list(Requests)])
              || {_, File, Requests} <- Logs],
    Rounds = [[{measured(check, ["1", File, Format]), measured(check, ["2", File, Format])} || {_, File, _} <- Logs]
              || _ <- lists:seq(1, N)],
    [{ShortOne, ShortTwo}, {LongOne, LongTwo}] =
        [shown([Name, " lives, ", Format], filelib:file_size(File) / Count / 1.0e6, [lists:nth(Place, Round) || Round <- Rounds])
         || {Place, {{Name, File, _}, {Count, _}}} <- lists:enumerate(lists:zip(Logs, Events))],
    io:format("  ~-20s ~16.2f ~19.2f~n", ["short / long", ShortOne / LongOne, ShortTwo / LongTwo]),
    lists:foreach(fun({_, File, _}) -> ok = file:delete(File) end, Logs).

stages(File, Format, N) ->
    Median = fun(What) -> element(1, middle([measured(What, ["1", File, Format]) || _ <- lists:seq(1, N)])) end,
    {Micro, _} = timer:tc(fun() -> os:cmd("wc -l " ++ File) end),
    io:format("  ~-20s ~16.2f~n  ~-20s ~16.2f~n  ~-20s ~16.2f~n",
              ["wc -l", 1.0e6 / Micro, "reading", Median(read), "reading, parsing", Median(parse)]),
    Format =:= "text" andalso io:format("  ~-20s ~16.2f~n", ["erl_parse", Median(naive)]).

middle(Runs) -> lists:nth((length(Runs) + 1) div 2, lists:sort(Runs)).

%% Events a second in millions, and memory in MB, measured in a VM of its own.
measured(What, [Schedulers | Arguments]) ->
    Paths = lists:append([["-pa", Dir] || Dir <- code:get_path(), filename:basename(Dir) =/= "."]),
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Shown = lists:join(", ", [io_lib:format("~tp", [A]) || A <- arguments(What, Arguments)]),
    Call = io_lib:format("~s:~s(~ts)", [?MODULE, What, Shown]),
    Port = open_port({spawn_executable, Erl},
                     [{args, ["-noshell", "+S", Schedulers ++ ":" ++ Schedulers] ++ Paths
                             ++ ["-eval", lists:flatten([Call, ", halt(0)."])]}, binary, exit_status]),
    result(Port, <<>>).

arguments(generate, [File, Format, Events]) -> [File, Format, list_to_integer(Events)];
arguments(workers, [File, Format, Events, Requests]) -> [File, Format, list_to_integer(Events), list_to_integer(Requests)];
arguments(check, [File, Format]) -> [File, Format];
arguments(_, [File | _]) -> [File].

result(Port, Said) ->
    receive
        {Port, {data, Data}} -> result(Port, <<Said/binary, Data/binary>>);
        {Port, {exit_status, 0}} ->
            [Rate, Memory] = string:lexemes(string:trim(Said), " "),
            {binary_to_float(Rate), binary_to_integer(Memory)};
        {Port, {exit_status, Status}} -> exit({Status, Said})
    end.

said(Events, Microseconds) ->
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [Peak]} = re:run(Status, "VmHWM:\\s*(\\d+)", [{capture, all_but_first, list}]),
    io:format("~.4f ~b~n", [Events / Microseconds, list_to_integer(Peak) div 1024]).

%% --- what is measured ------------------------------------------------------------

-doc false.
-spec check(file:filename(), string()) -> ok.
check(File, Format) ->
    Spec = filename:join([filename:dirname(?FILE), "witness_logs.hml"]),
    {Micro, Events} = timer:tc(fun() ->
        {ok, Run} = witness:start(#{system => {log, {file, File}}, format => list_to_atom(Format), specs => [Spec],
                                    log => false, max_verdicts => 0}),
        {ok, #{outcome := ok, events := Events, verdicts := #{no := 0}}} = witness:await(Run, infinity),
        {ok, _} = witness:stop(Run),
        Events
    end),
    said(Events, Micro).

-doc false.
-spec read(file:filename()) -> ok.
read(File) -> alone(File, fun(Block) -> length(binary:matches(Block, ~"\n")) end).

-doc false.
-spec parse(file:filename()) -> ok.
parse(File) ->
    {ok, Device} = file:open(File, [raw, binary, read]),
    {ok, First} = file:read(Device, 1),
    ok = file:close(Device),
    Parser = witness_log:parser(#{format => witness_log:guess(First)}),
    alone(File, fun(Block) ->
        #{lines := Lines, malformed := []} = witness_log:parse(Block, Parser),
        Lines
    end).

alone(File, Count) ->
    {Micro, Lines} = timer:tc(fun() ->
        {ok, Reader} = witness_log_reader:open({file, File}, #{}),
        alone(Reader, Count, 0)
    end),
    said(Lines, Micro).

alone(Reader, Count, Lines) ->
    case witness_log_reader:read(Reader) of
        {block, Block, _, Reader1} -> alone(Reader1, Count, Lines + Count(Block));
        {eof, Reader1} -> ok = witness_log_reader:close(Reader1), Lines
    end.

-doc false.
-spec naive(file:filename()) -> ok.
naive(File) ->
    {ok, Device} = file:open(File, [raw, binary, read, {read_ahead, 1 bsl 18}]),
    {Micro, ok} = timer:tc(fun() -> naive(Device, ?NAIVE) end),
    said(?NAIVE, Micro).

naive(_, 0) -> ok;
naive(Device, Left) ->
    {ok, Line} = file:read_line(Device),
    %% Pids have no notation that is parsed, so they are left out here.
    Text = re:replace(Line, "<[0-9.]+>", "p", [global, {return, list}]),
    {ok, Tokens, _} = erl_scan:string(string:trim(Text) ++ "."),
    {ok, [_]} = erl_parse:parse_exprs(Tokens),
    naive(Device, Left - 1).

%% --- the log ---------------------------------------------------------------------

-doc false.
-spec generate(file:filename(), string(), pos_integer()) -> ok.
generate(File, Format, Events) ->
    said(written(File, Format, Events, ?REQUESTS, fun(Master, W, Request, Reply) ->
        [{send, Master, W, Request, undefined}, {recv, W, Master, Request, undefined},
         {send, W, Master, Reply, undefined}, {recv, Master, W, Reply, undefined}]
    end), 1).

-doc false.
-spec workers(file:filename(), string(), pos_integer(), Requests :: pos_integer()) -> ok.
workers(File, Format, Events, Requests) ->
    Count = written(File, Format, Events, Requests, fun(Master, W, Request, Reply) ->
        [{recv, W, Master, Request, undefined}, {send, W, Master, Reply, undefined}]
    end),
    said(Count, 1_000_000).

written(File, Format, Events, Requests, Exchange) ->
    {ok, Device} = file:open(File, [raw, binary, write, {delayed_write, 1 bsl 20, 1000}]),
    Write = fun(Items) ->
        ok = file:write(Device, [witness_log:line(Item, list_to_atom(Format)) || Item <- Items]),
        length(Items)
    end,
    Master = pid(1),
    First = Write([{init, Master, undefined, {log_master, run, []}, undefined}]),
    Count = rounds(Events, 0, Master, Requests, Exchange, Write, First),
    ok = file:close(Device),
    Count.

pid(N) -> list_to_pid("<0." ++ integer_to_list(N) ++ ".0>").

%% A thousand workers at a time, with interleaved requests.
rounds(Events, _, _, _, _, _, Count) when Count > Events -> Count;
rounds(Events, Round, Master, Requests, Exchange, Write, Count) ->
    Workers = [pid(100 + (Round * ?WORKERS + I) rem 100_000_000) || I <- lists:seq(1, ?WORKERS)],
    Signature = {log_worker, loop, [Round]},
    Births = Write(lists:append([[{fork, Master, W, Signature, undefined}, {init, W, Master, Signature, undefined}]
                                 || W <- Workers])),
    Messages = [Write(lists:append([Exchange(Master, W, {Master, {request, N}}, {reply, N, ~"done"}) || W <- Workers]))
                || N <- lists:seq(1, Requests)],
    Ends = Write([{exit, W, normal, undefined} || W <- Workers]),
    rounds(Events, Round + 1, Master, Requests, Exchange, Write, Count + Births + lists:sum(Messages) + Ends).
