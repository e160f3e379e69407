-module(witness_record_source_SUITE).
-moduledoc """
OTP's HTTP server as a data source, under a real client: the program answers the same when its server is recorded. The
recording has what the program has read, and nothing else.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(REQUESTS, 60).
-define(BODY, 10_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [only_what_is_read_is_recorded, a_missing_process_is_503_and_a_late_one_504].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = witness_record_programs:compile(Out),
    {ok, _} = application:ensure_all_started(inets),
    [{programs, Out} | Config].

end_per_suite(_) -> application:stop(inets).

only_what_is_read_is_recorded(Config) ->
    {Answers, SourceDir, Journal} = served(source, #{outside => [inets]}, Config),
    {Answers, DirectDir, _} = served(direct, #{weave => [inets]}, Config),
    ?assertEqual(?REQUESTS, length(Answers)),
    {#{result := done} = Noted, Recorded} = witness_record_comparison:both(Journal, SourceDir),
    ?assertEqual([], witness_record_comparison:differences(Noted, Recorded, within)),
    ?assertEqual({15, 3, 0}, found(SourceDir)),
    ?assertMatch({_, _, N} when N > 0, found(DirectDir)),
    [Less, More] = [lists:sum([iolist_size(term_to_iovec(Entry)) || Entry <- entries(Dir)]) || Dir <- [SourceDir, DirectDir]],
    Text = io_lib:format("~b requests with ~b bytes each: ~b bytes of data as they are used, ~b when the server is recorded",
                         [?REQUESTS, ?BODY, Less, More]),
    ct:pal("~s", [Text]),
    io:format(user, "~s~n", [Text]),
    ?assert(5 * Less < More).

%% No process has the name. A process outside the recording gets the event like any other, and has time to read it.
a_missing_process_is_503_and_a_late_one_504(Config) ->
    with_httpd([], fun(Port) ->
        {{_, 503, _}, _, _} = request(Port, "/a?b=c", "x"),
        {Event, Asking} = asked(Port),
        ?assertEqual({ok, "b=c"}, witness_record_source:read(Event, query)),
        ?assertEqual({ok, "x"}, witness_record_source:read(Event, body)),
        ?assertMatch({ok, {_, "127.0.0.1"}}, witness_record_source:read(Event, peer)),
        ?assertMatch({error, {error, function_clause}}, witness_record_source:read(Event, nothing)),
        ok = witness_record_source:answer(Event, {200, [], ""}),
        ?assertEqual(200, told(Asking))
    end, Config),
    with_httpd([{witness_record_timeout, 50}], fun(Port) ->
        {Event, Asking} = asked(Port),
        ?assertEqual(504, told(Asking)),
        ?assertEqual({error, closed}, witness_record_source:read(Event, body)),
        ?assertEqual({error, closed}, witness_record_source:answer(Event, {200, [], ""}))
    end, Config).

with_httpd(Options, Fun, Config) ->
    {ok, Server} = inets:start(httpd, [{port, 0}, {bind_address, {127, 0, 0, 1}}, {ipfamily, inet}, {server_name, "shop"},
                                       {server_root, proplists:get_value(priv_dir, Config)},
                                       {document_root, proplists:get_value(priv_dir, Config)},
                                       {modules, [witness_record_httpd]}, {witness_record_handler, ?MODULE} | Options]),
    try
        [{port, Port}] = httpd:info(Server, [port]),
        Fun(Port)
    after
        _ = whereis(?MODULE) =/= undefined andalso unregister(?MODULE),
        inets:stop(httpd, Server)
    end.

%% The event of a request, and the process that waits for the answer.
asked(Port) ->
    true = register(?MODULE, self()),
    {_, Ref} = spawn_monitor(fun() -> exit({told, request(Port, "/a?b=c", "x")}) end),
    receive {http_request, Event, #{method := "POST", path := "/a"}} -> {Event, Ref} end.

told(Ref) -> receive {'DOWN', Ref, process, _, {told, {{_, Status, _}, _, _}}} -> Status end.

%% What the client got, and where the recording is.
served(Function, Options, Config) ->
    {ok, Listening} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Ready} = inet:port(Listening),
    Port = free_port(),
    {Journal, Dir} = witness_record_elixir_SUITE:names(Function, Config),
    Run = {witness_recorded, run, [witness_recorded_shop, {Function, [Port, ?REQUESTS, Ready]}, Journal]},
    {ok, Recording} = witness_record:start(Options#{run => Run, dir => Dir,
                                                    pa => [proplists:get_value(programs, Config)]}),
    {ok, _} = gen_tcp:accept(Listening),
    Answers = [begin
                   {{_, 200, _}, _, Answer} = request(Port, path(N), body(N)),
                   Answer
               end || N <- lists:seq(1, ?REQUESTS)],
    {ok, Summary} = witness_record:await(Recording, infinity),
    ct:pal("~p", [Summary]),
    ?assertMatch(#{outcome := recorded, ended := {returned, normal}, unwoven := []}, Summary),
    {Answers, Dir, Journal}.

request(Port, Path, Body) ->
    Url = "http://127.0.0.1:" ++ integer_to_list(Port) ++ Path,
    {ok, Answer} = httpc:request(post, {Url, [{"x-wanted", "header-wanted"}], "text/plain", Body}, [], []),
    Answer.

path(N) when N rem 20 =:= 0 -> "/body";
path(N) when N rem 4 =:= 1 -> "/header";
path(_) -> "/plain".

body(N) ->
    Word = case path(N) of "/body" -> "body-wanted"; _ -> "body-unwanted" end,
    lists:flatten([Word, lists:duplicate(?BODY - length(Word), $.)]).

%% The number of entries with what the program has read, a header or a body, and with what it has not read.
found(Dir) ->
    Entries = [iolist_to_binary(io_lib:format("~0p", [Entry])) || Entry <- entries(Dir)],
    list_to_tuple([length([Entry || Entry <- Entries, binary:match(Entry, Word) =/= nomatch])
                   || Word <- [~"header-wanted", ~"body-wanted", ~"body-unwanted"]]).

%% All entries except those of the journal.
entries(Dir) ->
    #{entries := All} = witness_record_comparison:recorded(Dir),
    [Entry || _ := List <- All, Entry <- List, not is_of_ets(Entry)].

is_of_ets({result, {ets, _, _}, _}) -> true;
is_of_ets(_) -> false.

%% Not one of those that the system gives to others until the program listens.
free_port() ->
    Port = 20_000 + rand:uniform(10_000),
    case gen_tcp:listen(Port, [{ip, {127, 0, 0, 1}}]) of
        {ok, Socket} ->
            ok = gen_tcp:close(Socket),
            Port;
        {error, _} -> free_port()
    end.
