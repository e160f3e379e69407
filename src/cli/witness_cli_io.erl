-module(witness_cli_io).
-moduledoc """
The output of the command line.

Results go to standard output, everything else (errors, progress, log reports) to standard error. With `--json`
only JSON lines go to standard output, whatever the observed system prints: `bin/witness` starts the
VM with its standard output joined to standard error, and passes the real one as another file descriptor. The
flag `-witness_out` gives its number. Without the flag JSON goes to the VM's standard output.

If output cannot be written, it is lost: the reader of a pipe has gone (`| head`), or the disk is full. Then the owner of
the output, which is the process that called `open/1`, gets the message `output_closed`, once or several times. Later
output is lost, too. In the end `wait_for_delivery/0` says whether all was delivered; only the owner can call it.
""".

-export([prepare/0, open/1, print/2, wait_for_delivery/0, note/1, look/0, terminal/1, status/1]).

-export_type([out/0]).

-doc "Standard output. `watch` is a monitor of the writing process; `lost` is 1 when something could not be written.".
-type out() :: #{owner := pid(), device := port() | user, watch := reference() | none, lost := atomics:atomics_ref()}.

-define(WIDTH, 100).
%% Milliseconds between checks of the output that a slow reader has not taken yet.
-define(DRAIN_MS, 20).

-doc "Makes the log go to standard error, and all output Unicode.".
-spec prepare() -> ok.
prepare() ->
    _ = io:setopts(user, [{encoding, unicode}]),
    _ = io:setopts(standard_error, [{encoding, unicode}]),
    case logger:get_handler_config(default) of
        {ok, #{module := logger_std_h} = Handler} ->
            ok = logger:remove_handler(default),
            Kept = maps:with([level, filters, filter_default, formatter], Handler),
            ok = logger:add_handler(default, logger_std_h, Kept#{config => #{type => standard_error}});
        _ -> ok
    end,
    _ = logger:add_primary_filter(witness_cli_io, {fun no_writer/2, none}),
    ok.

%% `wait_for_delivery/0' reports a failure of the output in its own words.
no_writer(#{msg := {"Writer crashed (~p)", _}, meta := #{mfa := {user_drv, _, _}}}, _) -> stop;
no_writer(_, _) -> ignore.

-doc "Standard output for text or for JSON. Traps exits of the caller, which is its owner.".
-spec open(text | json) -> out().
open(text) ->
    %% The writer ends with the reason why it could not write.
    Watch = case whereis(user_drv_writer) of
        undefined -> none;
        Writer -> monitor(process, Writer)
    end,
    opened(user, Watch);
open(json) ->
    case init:get_argument(witness_out) of
        {ok, [[Number]]} ->
            process_flag(trap_exit, true),
            Descriptor = list_to_integer(Number),
            Port = open_port({fd, Descriptor, Descriptor}, [out, binary]),
            opened(Port, monitor(port, Port));
        _ -> open(text)
    end.

opened(Device, Watch) ->
    Out = #{owner => self(), device => Device, watch => Watch, lost => atomics:new(1, [])},
    _ = put(?MODULE, [Out | opened()]),
    Out.

%% The outputs that this process has opened.
opened() ->
    case get(?MODULE) of
        undefined -> [];
        Outs -> Outs
    end.

-doc "Prints; blocks if the reader is slow.".
-spec print(out(), unicode:chardata()) -> ok.
print(#{device := user} = Out, Text) ->
    try
        io:put_chars(user, Text)
    catch
        error:_ -> mark_lost(Out)
    end;
print(#{device := Port} = Out, Text) ->
    try
        true = port_command(Port, unicode:characters_to_binary(Text)),
        ok
    catch
        error:_ -> mark_lost(Out)
    end.

mark_lost(#{owner := Owner, lost := Lost}) ->
    ok = atomics:put(Lost, 1, 1),
    Owner ! output_closed,
    ok.

-doc """
Whether all output that the caller has opened was written; waits until it was. `closed`: its reader has gone, which needs no
error message. Otherwise the reason, if it is known.
""".
-spec wait_for_delivery() -> delivered | {lost, closed | file:posix() | unknown}.
wait_for_delivery() ->
    All = [Lost || Out <- opened(), {lost, _} = Lost <- [wait_for_delivery(Out)]],
    case [Known || {lost, Why} = Known <- All, Why =/= unknown] ++ All of
        [] -> delivered;
        [Lost | _] -> Lost
    end.

wait_for_delivery(#{device := Device, watch := Watch, lost := Lost}) ->
    ok = drain(Device),
    case has_ended(Watch) of
        false ->
            case atomics:get(Lost, 1) of
                0 -> delivered;
                1 -> {lost, unknown}
            end;
        {true, epipe} -> {lost, closed};
        {true, Reason} when is_atom(Reason), Reason =/= normal, Reason =/= noproc -> {lost, Reason};
        {true, _} -> {lost, unknown}
    end.

%% Waits for data that is queued in a port. Text was written when it was printed.
drain(user) -> ok;
drain(Port) ->
    case erlang:port_info(Port, queue_size) of
        {queue_size, Size} when Size > 0 -> receive after ?DRAIN_MS -> drain(Port) end;
        _ -> ok
    end.

%% May be called more than once.
has_ended(none) -> false;
has_ended(Watch) ->
    case get({?MODULE, Watch}) of
        undefined ->
            receive
                {'DOWN', Watch, _, _, Reason} ->
                    _ = put({?MODULE, Watch}, {true, Reason}),
                    {true, Reason}
            after 0 -> false
            end;
        Known -> Known
    end.

-doc "Prints to standard error.".
-spec note(unicode:chardata()) -> ok.
note(Text) ->
    try
        io:put_chars(standard_error, Text)
    catch
        %% A VM that is stopping has no such process any more, and loads no code.
        error:_ ->
            _ = try erlang:display_string(stderr, unicode:characters_to_list(Text)) catch error:_ -> lost end,
            ok
    end.

-doc "How text looks on standard output: in colours on a terminal, unless NO_COLOR is set.".
-spec look() -> witness_text:look().
look() ->
    #{colour => terminal(stdout) andalso os:getenv("NO_COLOR", "") =:= "", width => width()}.

width() ->
    try
        max(40, list_to_integer(os:getenv("COLUMNS", "")))
    catch
        error:badarg -> ?WIDTH
    end.

-doc "Whether standard output or standard error is a terminal.".
-spec terminal(stdout | stderr) -> boolean().
terminal(Device) ->
    case io:getopts(user) of
        Options when is_list(Options) -> proplists:get_value(Device, Options, false) =:= true;
        _ -> false
    end.

-doc "The exit status of the VM for an exit code.".
-spec status(0..3) -> non_neg_integer().
status(Code) ->
    case init:get_argument(witness_status) of
        {ok, [[Base]]} -> list_to_integer(Base) + Code;
        _ -> Code
    end.
