-module(witness_cli_signal).
-moduledoc """
Interrupts as messages.

The VM hands signals to the event manager `erl_signal_server`. This handler replaces the VM's own, which would
stop the node at a SIGTERM: the process that called `catch_interrupts/0` gets the message `interrupt`. A second one ends
the VM at once, so a user need not wait for an orderly end.

SIGINT (Ctrl-C) cannot be handled inside a VM of OTP 27 to 29: `os:set_signal/2` refuses it, and without the flag `+Bi`
the VM asks for a decision on the terminal. So `bin/witness` starts the VM with `+Bi`, which makes it ignore SIGINT, and
passes each SIGHUP, SIGINT and SIGTERM on as a SIGUSR2. Often a signal goes to all processes of a group, so the VM gets it
twice. If `bin/witness` has started the VM (`-witness_status`), the VM handles only the signal that was passed on.

A shell that is killed (SIGKILL) passes nothing on. But its end of a pipe is closed then, and the VM has the other end
(`-witness_shell`). That is an interrupt too, and the VM ends 10 s later at the latest. A command that catches no interrupts
ends at once.
""".
-behaviour(gen_event).

-export([catch_interrupts/0, catch_interrupts/1, watch_shell/0, parent/0]).
-export([shell/1, init/1, handle_event/2, handle_call/2]).

%% The longest time for an orderly end after the shell has gone.
-define(ORPHAN_MS, 10_000).

-doc "From now on an interrupt is a message to the caller.".
-spec catch_interrupts() -> ok.
catch_interrupts() -> catch_interrupts(fun() -> ok end).

-doc """
The same, and `First` is called before. The signals are handled with high priority, since the system that is to be
interrupted may leave no time for other processes.
""".
-spec catch_interrupts(First :: fun(() -> ok)) -> ok.
catch_interrupts(First) ->
    ok = gen_event:swap_handler(erl_signal_server, {erl_signal_handler, []}, {?MODULE, {self(), First}}),
    case init:get_argument(witness_status) of
        {ok, _} ->
            ok = os:set_signal(sigusr2, handle),
            ok = os:set_signal(sighup, ignore),
            os:set_signal(sigterm, ignore);
        error -> ok
    end.

-doc "From now on the VM ends when the shell that has started it ends.".
-spec watch_shell() -> ok.
watch_shell() ->
    case init:get_argument(witness_shell) of
        {ok, [[Number, _]]} ->
            _ = proc_lib:spawn_opt(?MODULE, shell, [list_to_integer(Number)], [{priority, high}]),
            ok;
        _ -> ok
    end.

%% Nothing is ever written to the pipe.
-doc false.
-spec shell(non_neg_integer()) -> no_return().
shell(Descriptor) ->
    proc_lib:set_label(witness_shell),
    Port = open_port({fd, Descriptor, Descriptor}, [in, eof]),
    receive {Port, eof} -> ok end,
    lists:member(?MODULE, gen_event:which_handlers(erl_signal_server)) orelse halt(witness_cli_io:status(3), [{flush, false}]),
    ok = gen_event:notify(erl_signal_server, sigusr2),
    receive after ?ORPHAN_MS -> halt(witness_cli_io:status(3), [{flush, false}]) end.

-doc """
The parent process of this VM in the operating system: `bin/witness`, as long as that runs. If the shell was killed by a signal
that it cannot pass on, another process becomes the parent. Only known on Linux.
""".
-spec parent() -> pos_integer() | unknown.
parent() ->
    maybe
        {ok, Status} ?= file:read_file("/proc/self/status"),
        {match, [Parent]} ?= re:run(Status, ~B"^PPid:\s*(\d+)$", [multiline, {capture, all_but_first, binary}]),
        binary_to_integer(Parent)
    else
        _ -> unknown
    end.

-type state() :: {Receiver :: pid(), Before :: fun(() -> ok), first | later}.

-doc false.
-spec init({{pid(), fun(() -> ok)}, term()}) -> {ok, state()}.
init({{Receiver, Before}, _}) ->
    _ = process_flag(priority, high),
    {ok, {Receiver, Before, first}}.

-doc false.
-spec handle_event(atom(), state()) -> {ok, state()}.
handle_event(Signal, {Receiver, Before, first}) when Signal =:= sigterm; Signal =:= sigusr2 ->
    ok = Before(),
    Receiver ! interrupt,
    {ok, {Receiver, Before, later}};
handle_event(Signal, {_, _, later}) when Signal =:= sigterm; Signal =:= sigusr2 -> halt(witness_cli_io:status(3), [{flush, false}]);
handle_event(Signal, State) ->
    %% All other signals keep their meaning.
    _ = erl_signal_handler:handle_event(Signal, []),
    {ok, State}.

-doc false.
-spec handle_call(term(), State) -> {ok, ok, State}.
handle_call(_, State) -> {ok, ok, State}.
