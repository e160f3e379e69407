-module(witness_otp_tools).
-moduledoc "Programs with the tools of OTP.".

%% Programs that cannot be replayed, with a part of the reason that `record` gives.
-refused([{cover, "no file"}]).

-export([xref/0, yecc/0, unit_tests/0, xml/0, sax/0, edoc/0, dbg/0, cover/0, cpu/0, releases/0, fprof/0, parses_transforms/0]).

xref() ->
    {ok, _} = xref:start(mine),
    {ok, ?MODULE} = xref:add_module(mine, code:which(?MODULE), []),
    {ok, Calls} = xref:analyze(mine, {module_call, ?MODULE}),
    xref:stop(mine),
    length(Calls) > 3.

parses_transforms() ->
    Forms = [{attribute, 1, module, made}, {attribute, 1, export, [{f, 1}]}, {attribute, 1, import, {ets, [fun2ms, 1]}}],
    {ok, Tokens, _} = erl_scan:string("f(_) -> ets:fun2ms(fun({A, B}) when A > 3 -> B end)."),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Transformed = ms_transform:parse_transform(Forms ++ [Form], []),
    length(Transformed).

yecc() ->
    Dir = witness_otp_program:folder(),
    ok = file:write_file(filename:join(Dir, "made_p.yrl"),
                         "Nonterminals list. Terminals atom. Rootsymbol list.\nlist -> atom : ['$1'].\nlist -> atom list : ['$1' | '$2'].\n"),
    ok = file:write_file(filename:join(Dir, "made_l.xrl"),
                         "Definitions.\nRules.\n[a-z]+ : {token, {atom, TokenLine, list_to_atom(TokenChars)}}.\n[\\s]+ : skip_token.\nErlang code.\n"),
    {ok, _} = yecc:file(filename:join(Dir, "made_p.yrl")),
    {ok, _} = leex:file(filename:join(Dir, "made_l.xrl")),
    lists:sort(filelib:wildcard("*.erl", Dir)).

made_test() -> 4 = 2 + 2.

unit_tests() ->
    Me = self(),
    Result = eunit:test([{"sum", fun() -> 3 = 1 + 2 end}, {"sends", fun() -> Me ! sent end},
                         {setup, fun() -> 1 end, fun(N) -> fun() -> 1 = N end end},
                         {inparallel, [fun() -> ok end || _ <- [1, 2, 3]]}, {timeout, 5, fun made_test/0}], [no_tty]),
    Sent = receive sent -> sent end,
    %% Its server lives on, and a recording ends when all processes have.
    _ = eunit:stop(),
    {Result, Sent}.

xml() ->
    {Root, ""} = xmerl_scan:string("<shop><item price='3'>tea</item><item price='4'>milk</item></shop>"),
    Prices = xmerl_xpath:string("/shop/item/@price", Root),
    Text = lists:flatten(xmerl:export_simple([{list, [{entry, [{id, "1"}], ["text"]}]}], xmerl_xml)),
    {length(Prices), Text}.

sax() ->
    {ok, Depth, _} = xmerl_sax_parser:stream("<a><b>x</b><b/></a>",
                                             [{event_fun, fun({startElement, _, _, _, _}, _, N) -> N + 1; (_, _, N) -> N end},
                                              {event_state, 0}]),
    Depth.

edoc() ->
    Dir = witness_otp_program:folder(),
    File = filename:join(Dir, "made.erl"),
    ok = file:write_file(File, "%% @doc Made for a test.\n-module(made).\n-export([f/1]).\n%% @doc Adds.\nf(X) -> X + 1.\n"),
    ok = edoc:files([File], [{dir, Dir}]),
    lists:sort(filelib:wildcard("*.html", Dir)).

dbg() ->
    {ok, _} = dbg:tracer(process, {fun(Message, To) -> To ! {traced, Message}, To end, self()}),
    Pid = spawn(fun() -> receive N -> lists:reverse([N]) end end),
    {ok, _} = dbg:p(Pid, [c]),
    {ok, _} = dbg:tp(lists, reverse, 1, []),
    Pid ! 3,
    Seen = receive {traced, {trace, Pid, call, _}} -> called after 1000 -> nothing end,
    dbg:stop(),
    Seen.

cover() ->
    Dir = witness_otp_program:folder(),
    File = filename:join(Dir, "made.erl"),
    ok = file:write_file(File, "-module(made).\n-export([f/1]).\nf(X) -> X + 1.\n"),
    {ok, _} = cover:start(),
    {ok, made} = cover:compile(File),
    2 = made:f(1),
    {ok, {_, {Covered, _}}} = cover:analyse(made, coverage, module),
    cover:stop(),
    Covered.

cpu() ->
    {ok, _} = application:ensure_all_started(os_mon),
    {is_number(cpu_sup:avg1()), length(memsup:get_system_memory_data()) > 2, length(disksup:get_disk_data()) > 0,
     application:stop(os_mon)}.

releases() ->
    {ok, _} = application:ensure_all_started(sasl),
    Releases = release_handler:which_releases(),
    ok = systools:make_script("nowhere", [silent]) =:= ok orelse ok,
    {length(Releases), alarm_handler:set_alarm({high, water}), alarm_handler:get_alarms(), alarm_handler:clear_alarm(high)}.

fprof() ->
    Dir = witness_otp_program:folder(),
    File = filename:join(Dir, "trace"),
    fprof:apply(fun() -> lists:sum(lists:seq(1, 10)) end, [], [{file, File}]),
    ok = fprof:profile([{file, File}]),
    ok = fprof:analyse([{dest, filename:join(Dir, "out")}]),
    _ = fprof:stop(),
    %% Otherwise the tracer of dbg lives on, and a recording waits for it.
    _ = dbg:stop(),
    filelib:file_size(filename:join(Dir, "out")) > 10.
