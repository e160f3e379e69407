-module(witness_otp_files).
-moduledoc "Programs with files, archives, ports and the system.".

-include_lib("kernel/include/file.hrl").

-export([raw_files/0, delayed_files/0, io_files/0, folders/0, wildcards/0, zip/0, tar/0, zlib/0, gzip/0, commands/0, ports/0,
         port_exits/0, driver/0, environment/0,
         log_handler/0, log_file/0, error_reports/0, terms_in_files/0, file_server/0, read_line/0, signals/0, times/0]).

raw_files() ->
    File = filename:join(witness_otp_program:folder(), "raw"),
    {ok, Device} = file:open(File, [raw, binary, read, write]),
    ok = file:write(Device, [<<N:16>> || N <- lists:seq(1, 100)]),
    {ok, <<7:16>>} = file:pread(Device, 12, 2),
    ok = file:pwrite(Device, [{0, <<9:16>>}, {4, <<11:16>>}]),
    {ok, 20} = file:position(Device, {bof, 20}),
    ok = file:truncate(Device),
    {ok, 0} = file:position(Device, bof),
    {ok, All} = file:read(Device, 1000),
    ok = file:datasync(Device),
    ok = file:close(Device),
    {byte_size(All), lists:sum([N || <<N:16>> <= All]), file:read_file(File) =:= {ok, All}}.

delayed_files() ->
    File = filename:join(witness_otp_program:folder(), "delayed"),
    {ok, Device} = file:open(File, [raw, write, {delayed_write, 1000, 10}]),
    [ok = file:write(Device, integer_to_list(N)) || N <- lists:seq(1, 500)],
    receive after 30 -> ok end,
    ok = file:close(Device),
    {ok, Ahead} = file:open(File, [raw, read, binary, {read_ahead, 64}]),
    {ok, Begin} = file:read(Ahead, 10),
    {ok, Next} = file:read(Ahead, 10),
    ok = file:close(Ahead),
    {Begin, Next, filelib:file_size(File)}.

io_files() ->
    File = filename:join(witness_otp_program:folder(), "text"),
    {ok, Device} = file:open(File, [write, {encoding, utf8}]),
    _ = witness_otp_program:each(fun(N) -> io:format(Device, "line ~b äö~n", [N]) end, lists:seq(1, 10)),
    ok = file:close(Device),
    {ok, Reading} = file:open(File, [read, {encoding, utf8}]),
    Lines = lines(Reading),
    {length(Lines), lists:usort([length(L) || L <- Lines])}.

lines(Device) ->
    case io:get_line(Device, '') of
        eof -> file:close(Device), [];
        Line -> [Line | lines(Device)]
    end.

folders() ->
    Dir = witness_otp_program:folder(),
    Sub = filename:join([Dir, "a", "b"]),
    ok = filelib:ensure_path(Sub),
    ok = file:write_file(filename:join(Sub, "one"), "1"),
    {ok, 1} = file:copy(filename:join(Sub, "one"), filename:join(Sub, "two")),
    ok = file:rename(filename:join(Sub, "two"), filename:join(Sub, "three")),
    ok = file:make_symlink("one", filename:join(Sub, "link")),
    {ok, "one"} = file:read_link(filename:join(Sub, "link")),
    {ok, #file_info{type = Type, size = Size}} = file:read_file_info(filename:join(Sub, "one")),
    {ok, Names} = file:list_dir(Sub),
    {ok, Here} = file:get_cwd(),
    ok = file:set_cwd(Sub),
    {ok, Text} = file:read_file("three"),
    ok = file:set_cwd(Here),
    ok = file:del_dir_r(Dir),
    {Type, Size, lists:sort(Names), Text, file:read_file(filename:join(Sub, "one"))}.

wildcards() ->
    Dir = witness_otp_program:folder(),
    [ok = filelib:ensure_dir(filename:join([Dir, N, "x"])) || N <- ["one", "two"]],
    [ok = file:write_file(filename:join([Dir, N, M]), M) || N <- ["one", "two"], M <- ["a.erl", "b.hrl", "c.erl"]],
    {lists:sort(filelib:wildcard("*/*.{erl,hrl}", Dir)), filelib:fold_files(Dir, "\\.erl$", true, fun(_, N) -> N + 1 end, 0),
     filelib:is_dir(Dir),
     filename:basename(filename:rootname("/a/b.c")), filelib:find_file("a.erl", filename:join(Dir, "one")) =/= {error, not_found}}.

zip() ->
    Dir = witness_otp_program:folder(),
    {ok, {_, Zip}} = zip:zip("made.zip", [{"one.txt", <<"one">>}, {"two/three.txt", binary:copy(<<"three ">>, 200)}], [memory]),
    {ok, Files} = zip:unzip(Zip, [{cwd, Dir}]),
    {ok, Handle} = zip:zip_open(Zip, [memory]),
    {ok, {_, One}} = zip:zip_get("one.txt", Handle),
    {ok, Listed} = zip:zip_list_dir(Handle),
    ok = zip:zip_close(Handle),
    {length(Files), One, length(Listed), byte_size(element(2, file:read_file(filename:join(Dir, "two/three.txt"))))}.

tar() ->
    Dir = witness_otp_program:folder(),
    File = filename:join(Dir, "made.tgz"),
    ok = file:write_file(filename:join(Dir, "in"), "inside"),
    ok = erl_tar:create(File, [{"made/name", <<"text">>}, {"made/in", filename:join(Dir, "in")}], [compressed]),
    {ok, Names} = erl_tar:table(File, [compressed]),
    ok = erl_tar:extract(File, [compressed, {cwd, Dir}]),
    {ok, [{_, Text} | _]} = erl_tar:extract(File, [compressed, memory]),
    {Names, Text, file:read_file(filename:join(Dir, "made/in"))}.

zlib() ->
    Data = iolist_to_binary([integer_to_list(N) || N <- lists:seq(1, 5000)]),
    Sizes = witness_otp_program:each(fun(Level) ->
        Z = zlib:open(),
        ok = zlib:deflateInit(Z, Level),
        Packed = iolist_to_binary([zlib:deflate(Z, Data), zlib:deflate(Z, [], finish)]),
        ok = zlib:deflateEnd(Z),
        ok = zlib:close(Z),
        Data = zlib:uncompress(Packed),
        byte_size(Packed)
    end, [1, 6, 9]),
    Z = zlib:open(),
    ok = zlib:inflateInit(Z),
    {_, Out} = zlib:safeInflate(Z, zlib:compress(Data)),
    {Sizes, iolist_size(Out) > 0, erlang:crc32(Data), zlib:gunzip(zlib:gzip(<<"x">>)), zlib:unzip(zlib:zip(<<"y">>))}.

gzip() ->
    File = filename:join(witness_otp_program:folder(), "made.gz"),
    {ok, Device} = file:open(File, [write, compressed]),
    ok = file:write(Device, lists:duplicate(10000, $a)),
    ok = file:close(Device),
    {ok, Reading} = file:open(File, [read, compressed, binary]),
    {ok, Data} = file:read(Reading, 20000),
    ok = file:close(Reading),
    {byte_size(Data), filelib:file_size(File) < 1000}.

commands() ->
    Texts = witness_otp_program:each(fun(N) -> os:cmd("echo " ++ integer_to_list(N) ++ "; exit 3") end, [1, 2, 3]),
    {Texts, os:find_executable("sh") =/= false, os:type()}.

ports() ->
    Port = open_port({spawn_executable, os:find_executable("sort")}, [binary, {line, 100}, exit_status, use_stdio]),
    true = is_port(Port),
    Info = erlang:port_info(Port, connected),
    Echo = open_port({spawn, "cat"}, [{packet, 2}, binary]),
    [Echo ! {self(), {command, integer_to_binary(N)}} || N <- [1, 2, 3]],
    Echoed = [receive {Echo, {data, Data}} -> Data end || _ <- [1, 2, 3]],
    Echo ! {self(), close},
    receive {Echo, closed} -> ok end,
    Pid = spawn_link(fun() -> receive {mine, P} -> P ! {self(), {command, <<"z">>}}, port_close(P) end end),
    true = port_connect(Port, Pid),
    Pid ! {mine, Port},
    {Info =:= {connected, self()}, Echoed}.

port_exits() ->
    process_flag(trap_exit, true),
    Port = open_port({spawn, "sh -c 'read x; echo got $x; exit 7'"},
                     [exit_status, stderr_to_stdout, {cd, "/"}, {env, [{"A", "b"}]}]),
    true = port_command(Port, "it\n"),
    Text = receive {Port, {data, T}} -> T end,
    Status = receive {Port, {exit_status, S}} -> S end,
    {Text, Status, receive {'EXIT', Port, Why} -> Why end, catch open_port({spawn_executable, "/nowhere"}, [])}.

driver() ->
    Path = code:priv_dir(megaco),
    Lib = filename:join(Path, "lib"),
    {error, Why} = erl_ddll:load_driver(Lib, "no_such_driver"),
    {ok, Drivers} = erl_ddll:loaded_drivers(),
    {erl_ddll:format_error(Why) =/= "", length(Drivers) > 0}.

environment() ->
    true = os:putenv("WITNESS_OTP_MADE", "one"),
    Seen = witness_otp_program:each(fun(_) -> os:getenv("WITNESS_OTP_MADE") end, [1, 2]),
    true = os:unsetenv("WITNESS_OTP_MADE"),
    {Seen, os:getenv("WITNESS_OTP_MADE"), is_list(os:getpid()), length(os:env()) > 0, init:get_argument(home) =/= error,
     is_list(init:get_plain_arguments())}.

log_handler() ->
    ok = logger:set_primary_config(level, info),
    ok = logger:add_handler(mine, witness_otp_handler,
                            #{config => #{to => self()}, filters => [{domain, {fun logger_filters:domain/2, {stop, sub, [otp]}}}]}),
    _ = witness_otp_program:each(fun(N) -> logger:notice("number ~b", [N]) end, [1, 2, 3]),
    logger:info(#{what => report}),
    logger:debug("nothing"),
    Levels = [receive {logged, Level, _, Own} -> {Level, Own} end || _ <- lists:seq(1, 4)],
    ok = logger:remove_handler(mine),
    lists:sort(Levels).

log_file() ->
    File = filename:join(witness_otp_program:folder(), "log.txt"),
    ok = logger:add_handler(kept, logger_std_h,
                            #{config => #{file => File}, formatter => {logger_formatter, #{template => [level, " ", msg, "\n"]}}}),
    _ = witness_otp_program:each(fun(N) -> logger:error("number ~b", [N]) end, [1, 2, 3]),
    ok = logger_std_h:filesync(kept),
    ok = logger:remove_handler(kept),
    {ok, Text} = file:read_file(File),
    length(string:lexemes(Text, "\n")) >= 3.

error_reports() ->
    ok = error_logger:add_report_handler(witness_otp_handler, 0),
    error_logger:error_msg("one ~p~n", [1]),
    error_logger:info_report([{some, thing}]),
    Sum = gen_event:call(error_logger, witness_otp_handler, sum),
    _ = error_logger:delete_report_handler(witness_otp_handler),
    Sum.

terms_in_files() ->
    File = filename:join(witness_otp_program:folder(), "terms"),
    ok = file:write_file(File, [io_lib:format("~tp.~n", [{N, #{n => N}, <<"b">>, 1.5}]) || N <- lists:seq(1, 10)]),
    {ok, Terms} = file:consult(File),
    ok = file:write_file(File, "X = 3, Y = X * 4, Y.\n"),
    {ok, Value} = file:script(File),
    {lists:sum([N || {N, _, _, _} <- Terms]), Value, file:path_consult(["/nowhere"], "x")}.

file_server() ->
    File = filename:join(witness_otp_program:folder(), "shared"),
    {ok, Device} = file:open(File, [read, write, binary]),
    _ = witness_otp_program:each(fun(N) -> ok = file:pwrite(Device, N * 2, <<N, N>>) end, lists:seq(0, 20)),
    {ok, Info} = file:read_file_info(File),
    Monitor = monitor(process, Device),
    ok = file:close(Device),
    receive {'DOWN', Monitor, process, Device, Why} -> {Why, Info#file_info.size} end.

%% Standard input, whatever is there.
read_line() -> {io:get_line("say: "), io:setopts([binary]), length(io:getopts()) > 0, io:rows()}.

signals() ->
    ok = os:set_signal(sigusr2, handle),
    ok = gen_event:add_handler(erl_signal_server, witness_otp_handler, 0),
    _ = os:cmd("kill -USR2 " ++ os:getpid()),
    receive after 20 -> ok end,
    gen_event:call(erl_signal_server, witness_otp_handler, sum).

times() ->
    {Date, Time} = calendar:local_time(),
    Seconds = calendar:datetime_to_gregorian_seconds({Date, Time}),
    Text = calendar:system_time_to_rfc3339(erlang:system_time(second)),
    {calendar:valid_date(Date), Seconds > 0, length(Text) > 10, calendar:day_of_the_week(2024, 2, 29),
     calendar:iso_week_number({2026, 1, 1}),
     calendar:rfc3339_to_system_time("2020-01-01T00:00:00Z"), os:timestamp() < os:timestamp() orelse same,
     erlang:convert_time_unit(5, second, millisecond)}.
