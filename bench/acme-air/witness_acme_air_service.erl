-module(witness_acme_air_service).
-moduledoc """
The service (`m:witness_acme_air`) in a VM of its own, plain or recorded, and its replay. The client runs in the
VM that calls this.
""".

-export([programs/1, start/3, port/1, stop/1, replay/2]).

-export_type([service/0, options/0]).

-doc "`programs`: the folder of its modules (`programs/1`); `work`: a folder for files; and what it loads.".
-type options() :: #{programs := file:filename(), work := file:filename(), customers := pos_integer(),
                     days := pos_integer(), today := calendar:date()}.

-opaque service() :: #{port := inet:port_number(), root := file:filename(), vm := port() | witness_record:recording()}.

-doc "Copies the modules of the service to a folder: these are woven, and nothing else of this application.".
-spec programs(file:filename()) -> ok.
programs(Dir) ->
    ok = filelib:ensure_path(Dir),
    _ = [{ok, _} = file:copy(code:which(Module), filename:join(Dir, atom_to_list(Module) ++ ".beam"))
         || Module <- [witness_acme_air, witness_acme_air_data, witness_acme_air_routes]],
    ok.

-doc "Returns when requests are answered. A recording goes to a folder.".
-spec start(plain | {recorded, Dir :: file:filename()}, Name :: string(), options()) -> service().
start(How, Name, #{work := Work} = Options) ->
    Root = filename:join(Work, Name),
    ok = filelib:ensure_path(Root),
    {ok, Listening} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, Ready} = inet:port(Listening),
    Loaded = maps:with([customers, days, today], Options),
    Vm = vm(How, {witness_acme_air, main, [Loaded#{ready => Ready, root => Root}]}, Options),
    %% Loading takes its time.
    {ok, Socket} = gen_tcp:accept(Listening, 600_000),
    {ok, Port} = gen_tcp:recv(Socket, 0),
    ok = gen_tcp:close(Socket),
    ok = gen_tcp:close(Listening),
    #{port => list_to_integer(Port), root => Root, vm => Vm}.

vm(plain, {M, F, [Argument]}, #{programs := Programs}) ->
    %% It ends with this VM: its input is closed then.
    Call = lists:flatten(io_lib:format("spawn(fun() -> _ = io:get_line(''), halt(1) end), ~w:~w(~p), halt(0).",
                                       [M, F, Argument])),
    Own = filename:dirname(code:which(witness_record_source)),
    open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
              [exit_status, {args, ["-noshell", "+Bi", "+fnu", "-boot", "no_dot_erlang", "-mode", "interactive",
                                                "-pa", Programs, "-pa", Own, "-eval", Call]}]);
vm({recorded, Dir}, MFA, #{programs := Programs}) ->
    {ok, Recording} = witness_record:start(#{run => MFA, dir => Dir, pa => [Programs], applications => [mnesia],
                                             outside => [inets]}),
    Recording.

-doc "The port on which it answers.".
-spec port(service()) -> inet:port_number().
port(#{port := Port}) -> Port.

-doc "Ends the service, and returns all its bookings, and the summary of the recording, if there is one.".
-spec stop(service()) -> {Listing :: binary(), witness_record:summary() | none}.
stop(#{port := Port, root := Root, vm := Vm}) ->
    Socket = witness_acme_air_http:connect(Port),
    {_, {200, _, Listing}} = witness_acme_air_http:request(get, {"/rest/api/loader/bookings", ~""}, Socket),
    ok = witness_acme_air_http:last("/rest/api/loader/end", Socket),
    ok = witness_acme_air_http:close(Socket),
    Summary = ended(Vm),
    {ok, Listing} = file:read_file(filename:join(Root, "bookings")),
    {Listing, Summary}.

ended(Vm) when is_port(Vm) ->
    receive
        {Vm, {data, _}} -> ended(Vm);
        {Vm, {exit_status, 0}} -> none
    end;
ended(Vm) ->
    {ok, Summary} = witness_record:await(Vm, infinity),
    #{outcome := recorded, ended := {returned, normal}, unwoven := []} = Summary.

-doc "Replays a recording, and returns what it has printed: the listing.".
-spec replay(file:filename(), fun((unicode:chardata()) -> term())) ->
    {witness_replay:report(), Printed :: binary()}.
replay(Dir, Progress) ->
    Me = self(),
    Ref = make_ref(),
    {ok, Report} = witness_replay:replay(#{dir => Dir, on_progress => Progress,
                                           mirror => fun(Text) -> Me ! {Ref, Text} end}),
    {Report, iolist_to_binary(printed(Ref))}.

printed(Ref) ->
    receive {Ref, Text} -> [Text | printed(Ref)]
    after 0 -> []
    end.
