-module(witness_otp_code).
-moduledoc "Programs with code, data structures and text, and programs that cannot be replayed.".

-export([evaluates/0, scans/0, compiles_to_file/0, compiles_to_memory/0, loads_binary/0, beams/0, code_server/0,
         digraphs/0, structures/0, text/0, expressions/0, binaries/0, json/0, maths/0, queries/0, pools/0, arguments/0, funs/0,
         peer/0, node_connects/0, shell/0, halts/0, stops/0]).

%% Programs that cannot be replayed, with a part of the reason that `record` gives.
-refused([{compiles_to_file, "--pa"}, {compiles_to_memory, "no file"}, {node_connects, "node"}]).

-include_lib("stdlib/include/qlc.hrl").

evaluates() ->
    witness_otp_program:each(fun({Text, Bindings}) ->
        {ok, Tokens, _} = erl_scan:string(Text),
        {ok, Expressions} = erl_parse:parse_exprs(Tokens),
        {value, Value, _} = erl_eval:exprs(Expressions, Bindings),
        Value
    end, [{"X + 1.", [{'X', 4}]}, {"[Y * Y || Y <- L].", [{'L', [1, 2, 3]}]},
          {"F = fun(A) -> self() ! A, receive B -> B end end, F(hello).", []},
          {"try error(a) catch error:E -> E end.", []}, {"spawn(fun() -> ok end), make_ref(), done.", []}]).

scans() ->
    Dir = witness_otp_program:folder(),
    File = filename:join(Dir, "made.erl"),
    ok = file:write_file(File, "-module(made).\n-export([f/1]).\n-define(N, 3).\nf(X) -> X + ?N.\n"),
    {ok, Forms} = epp:parse_file(File, []),
    Text = lists:flatten([erl_pp:form(Form) || Form <- Forms]),
    {ok, Tree} = epp_dodger:parse_file(File),
    {length(Forms), string:find(Text, "X + 3") =/= nomatch, length(Tree), erl_prettypr:format(erl_syntax:form_list(Tree)) =/= ""}.

made(Dir, N) ->
    File = filename:join(Dir, "made.erl"),
    ok = file:write_file(File, io_lib:format("-module(made).\n-export([f/1]).\nf(X) -> receive Y -> X + Y + ~b after 0 -> X * ~b end.\n", [N, N])),
    File.

%% Into a folder of its own: no recording knows it.
compiles_to_file() ->
    Dir = witness_otp_program:folder(),
    {ok, made} = compile:file(made(Dir, 5), [debug_info, {outdir, Dir}]),
    true = code:add_patha(Dir),
    made:f(7).

compiles_to_memory() ->
    Forms = [{attribute, 1, module, made}, {attribute, 1, export, [{f, 0}]},
             {function, 1, f, 0, [{clause, 1, [], [], [{integer, 1, 42}]}]}],
    {ok, made, Code} = compile:forms(Forms, [debug_info]),
    {module, made} = code:load_binary(made, "made.erl", Code),
    Value = made:f(),
    true = code:delete(made),
    {Value, code:purge(made), code:is_loaded(made)}.

%% Only made, and not loaded.
loads_binary() ->
    Dir = witness_otp_program:folder(),
    {ok, made, Code, []} = compile:file(made(Dir, 5), [binary, return]),
    {error, Errors, []} = compile:forms([{attribute, 1, module, made}, {attribute, 1, export, [{f, 0}]}], [return]),
    {ok, {made, [{exports, Exports}]}} = beam_lib:chunks(Code, [exports]),
    {is_binary(Code), length(Errors), Exports}.

beams() ->
    {ok, {lists, [{attributes, Attributes}, {imports, Imports}]}} = beam_lib:chunks(code:which(lists), [attributes, imports]),
    {ok, {lists, Md5}} = beam_lib:md5(code:which(lists)),
    {ok, _, Chunks} = beam_lib:all_chunks(code:which(queue)),
    {proplists:is_defined(vsn, Attributes), length(Imports) > 0, byte_size(Md5), length(Chunks) > 5, beam_lib:info(<<"none">>)}.

code_server() ->
    {module, orddict} = code:ensure_loaded(orddict),
    ok = code:ensure_modules_loaded([gb_sets, gb_trees]),
    {code:is_loaded(orddict) =/= false, is_list(code:lib_dir(stdlib)), code:which(nowhere), length(code:all_loaded()) > 50,
     code:is_sticky(lists),
     erlang:function_exported(gb_sets, new, 0), code:get_mode(), length(code:get_path()) > 3, catch nowhere:f(1),
     erlang:module_loaded(orddict)}.

digraphs() ->
    Graph = digraph:new([acyclic]),
    [digraph:add_vertex(Graph, N) || N <- lists:seq(1, 20)],
    [digraph:add_edge(Graph, N, M) || N <- lists:seq(1, 20), M <- lists:seq(N + 1, 20), M rem N =:= 0],
    Order = digraph_utils:topsort(Graph),
    Loop = digraph:add_edge(Graph, 20, 1),
    Path = digraph:get_short_path(Graph, 1, 16),
    Components = digraph_utils:components(Graph),
    true = digraph:delete(Graph),
    {length(Order), element(1, Loop), length(Path), length(Components)}.

structures() ->
    Queue = lists:foldl(fun queue:in/2, queue:new(), lists:seq(1, 10)),
    {{value, First}, _} = queue:out(Queue),
    Set = sets:from_list([N rem 7 || N <- lists:seq(1, 100)], [{version, 2}]),
    Tree = gb_trees:from_orddict([{N, N * N} || N <- lists:seq(1, 50)]),
    Array = array:from_list(lists:seq(1, 30)),
    Map = maps:from_list([{N, {N}} || N <- lists:seq(1, 100)]),
    Dict = dict:from_list([{a, 1}, {b, 2}]),
    {First, sets:size(Set), gb_trees:get(7, Tree), array:foldl(fun(_, V, Sum) -> Sum + V end, 0, Array),
     maps:fold(fun(K, _, S) -> K + S end, 0, Map),
     ordsets:union([1, 2], [2, 3]), dict:fetch(b, Dict), sofs:to_external(sofs:domain(sofs:relation([{a, 1}, {b, 2}]))),
     proplists:get_all_values(a, [{a, 1}, {a, 2}]),
     lists:keysort(2, [{b, 2}, {a, 1}]), maps:groups_from_list(fun(N) -> N rem 2 end, [1, 2, 3])}.

text() ->
    {string:split("a,b,c", ",", all), string:pad("x", 5, leading), string:titlecase("äb"), unicode:characters_to_binary("grün"),
     unicode:characters_to_nfd_list("ä"),
     string:length("a\x{0301}b"), string:casefold("ẞ"), io_lib:format("~.3f ~ts ~8.16.0b", [1.5, "ü", 255]),
     string:to_integer("12x"), base64:encode(<<"text">>),
     uri_string:parse("http://a.b:80/c?d=e#f"), uri_string:quote("a b"), string:lexemes("a  b c", " "), io_lib:fread("~d", "12"),
     unicode:characters_to_list(<<200>>)}.

expressions() ->
    {ok, Compiled} = re:compile("(\\w+)@(\\w+)", [unicode]),
    {match, Parts} = re:run("me@here you@there", Compiled, [global, {capture, all_but_first, list}]),
    Long = binary:copy(<<"ab">>, 100000),
    {match, All} = re:run(Long, "ab", [global]),
    {Parts, length(All), re:replace("aXbXc", "X", "-", [global, {return, list}]), re:split("a1b2c", "\\d", [{return, list}]),
     re:run("aaaaaaaaaaaaaaaaaaaaaaaaaa!", "(a+)+$", [{match_limit, 1000}])}.

binaries() ->
    Bytes = << <<(N * 7 rem 256)>> || N <- lists:seq(1, 10000) >>,
    {binary:matches(Bytes, <<7, 14>>), erlang:md5(Bytes), erlang:adler32(Bytes), binary:decode_unsigned(<<1, 2, 3>>),
     byte_size(term_to_binary(Bytes, [compressed])) < 10000,
     binary_to_term(term_to_binary({a, self()})) =:= {a, self()}, length(binary:split(Bytes, <<0>>, [global])),
     erlang:phash2(Bytes), binary:referenced_byte_size(binary:part(Bytes, 5, 10)) > 0}.

json() ->
    case code:ensure_loaded(json) of
        {module, json} ->
            {iolist_to_binary(json:encode(#{<<"a">> => [1, 2.5, null, true]})), json:decode(<<"{\"x\": [1, {\"y\": \"z\"}]}">>)};
        _ -> none
    end.

maths() -> {math:pi() > 3, math:sqrt(2), round(math:pow(2, 100)), 1 bsl 200, trunc(1.0e20),
            catch list_to_integer(os:getenv("WITNESS_OTP_NUMBER", "x")), float_to_list(0.1, [short]), erlang:list_to_float("1.5"),
            integer_to_list(255, 16)}.

queries() ->
    Table = ets:new(table, []),
    ets:insert(Table, [{N, N rem 3} || N <- lists:seq(1, 20)]),
    Query = qlc:q([{A, B} || {A, M} <- ets:table(Table), {B, L} <- [{x, 1}, {y, 2}], M =:= L, A > 10]),
    Cursor = qlc:cursor(Query),
    Some = qlc:next_answers(Cursor, 2),
    ok = qlc:delete_cursor(Cursor),
    {lists:sort(qlc:e(Query)), length(Some), qlc:fold(fun({A, _}, S) -> A + S end, 0, Query)}.

pools() ->
    Me = self(),
    Pool = [spawn(fun() -> work(Me) end) || _ <- lists:seq(1, 4)],
    [Me ! {task, N} || N <- lists:seq(1, 30)],
    Results = share(30, queue:from_list([]), []),
    [exit(Pid, shutdown) || Pid <- Pool],
    lists:sum(Results).

work(Boss) ->
    Boss ! {idle, self()},
    receive {do, N} -> Boss ! {did, N * N}, work(Boss) end.

share(0, _, Results) -> Results;
share(Left, Idle, Results) ->
    receive {idle, Pid} ->
        receive
            {task, N} -> Pid ! {do, N}, share(Left, Idle, Results)
        after 0 -> share(Left, Idle, Results)
        end;
        {did, N} -> share(Left - 1, Idle, [N | Results])
    end.

arguments() ->
    Command = #{arguments => [#{name => size, long => "-size", type => integer}, #{name => file}]},
    {ok, Parsed, _, _} = argparse:parse(["--size", "3", "name"], Command),
    {Parsed, iolist_size(argparse:help(Command)) > 10}.

funs() ->
    Me = self(),
    Funs = [fun lists:sum/1, fun(L) -> length(L) + map_size(#{}) end, fun erlang:hd/1, fun(L) -> Me ! {self(), L}, 0 end],
    Results = witness_otp_program:each(fun(F) -> F([4, 5]) end, Funs),
    {Results, [element(2, erlang:fun_info(F, arity)) || F <- Funs], erlang:fun_info(hd(tl(Funs)), module),
     is_list(erlang:fun_to_list(hd(Funs))), apply(lists, max, [[1, 9]]),
     binary_to_term(term_to_binary(hd(Funs))) =:= hd(Funs)}.

peer() ->
    {ok, Peer, Node} = peer:start_link(#{name => peer:random_name(), connection => standard_io}),
    Sum = peer:call(Peer, lists, sum, [[1, 2, 3]]),
    ok = peer:stop(Peer),
    {Sum, is_atom(Node)}.

node_connects() ->
    _ = os:cmd("epmd -daemon"),
    {ok, _} = net_kernel:start(witness_otp_made, #{name_domain => shortnames}),
    Nodes = nodes(),
    Answer = net_adm:ping(nowhere@nohost),
    ok = net_kernel:stop(),
    {Nodes, Answer}.

shell() ->
    {ok, Tokens, _} = erl_scan:string("lists:sum([1,2])."),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, 3, _} = erl_eval:exprs(Expressions, [], {eval, fun(N, A, B) -> {value, {N, A}, B} end}),
    {is_tuple(c:pid(0, 1, 0)) orelse pid, c:pwd(), c:m() =:= ok orelse c}.

halts() ->
    _ = [spawn(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 3)],
    receive after 10 -> ok end,
    halt(0).

stops() ->
    Pid = spawn(fun() -> receive never -> ok end end),
    init:stop(),
    receive never -> Pid end.
