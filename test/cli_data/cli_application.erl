-module(cli_application).
-moduledoc "An application for the tests of the command line. What becomes of it stands in its environment.".
-behaviour(application).

-export([start/2, stop/1, top/1, spec/0]).

-doc "Its resource file; the key `cli_application` of the environment says what it does, `numbers` what its server answers.".
spec() ->
    {application, cli_application,
     [{description, "for tests"}, {vsn, "1"}, {modules, [?MODULE]}, {registered, []}, {applications, [kernel, stdlib, inets]},
      {mod, {?MODULE, []}}, {env, [{does, wait}, {numbers, [1]}]}]}.

start(normal, []) ->
    case application:get_env(cli_application, does) of
        {ok, refuse} -> {error, no_licence};
        {ok, crash_at_start} -> error(boom);
        {ok, Does} -> proc_lib:start_link(?MODULE, top, [Does])
    end.

stop(_) -> io:format("application stopped~n").

top(Does) ->
    process_flag(trap_exit, true),
    proc_lib:init_ack({ok, self()}),
    {ok, Numbers} = application:get_env(cli_application, numbers),
    cli_system:answers(Numbers),
    case Does of
        wait ->
            cli_system:waits(),
            receive {'EXIT', _, Reason} -> exit(Reason) end;
        %% As long as it takes.
        hang ->
            cli_system:waits(),
            receive never -> ok end;
        {spawns, How} ->
            cli_system:spawns(How),
            receive {'EXIT', _, Reason} -> exit(Reason) end;
        {ends, Reason} -> exit(Reason)
    end.
