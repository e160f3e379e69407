-module(witness_cli_signal).
-moduledoc """
Interrupts as messages.

The VM hands signals to the event manager `erl_signal_server`. This handler takes the place of the VM's own, which would
stop the node at a SIGTERM: the process that called `catch_interrupts/0` gets the message `interrupt`. A second one ends
the VM at once, for somebody who does not want to wait for good order.

SIGINT (Ctrl-C) cannot be handled inside a VM of OTP 27 to 29: `os:set_signal/2` refuses it, and without the flag `+Bi`
the VM asks for a decision on the terminal. So `bin/witness` starts the VM with `+Bi`, which makes it ignore SIGINT, and
passes each SIGINT and SIGTERM on as a SIGUSR2. Often a signal goes to all processes of a group, so the VM has it
twice: it heeds what is passed on, and nothing else (`-witness_status` says who has started it).
""".
-behaviour(gen_event).

-export([catch_interrupts/0, parent/0]).
-export([init/1, handle_event/2, handle_call/2]).

-doc "From now on an interrupt is a message to the caller.".
-spec catch_interrupts() -> ok.
catch_interrupts() ->
    ok = gen_event:swap_handler(erl_signal_server, {erl_signal_handler, []}, {?MODULE, self()}),
    case init:get_argument(witness_status) of
        {ok, _} ->
            ok = os:set_signal(sigusr2, handle),
            os:set_signal(sigterm, ignore);
        error -> ok
    end.

-doc """
The process of the operating system that has started this one; `bin/witness` is it as long as that is there. Another one
inherits the VM when the shell was killed, by a signal that it cannot pass on. Only known on Linux.
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

-doc false.
-spec init({pid(), term()}) -> {ok, {pid(), first | later}}.
init({Receiver, _}) -> {ok, {Receiver, first}}.

-doc false.
-spec handle_event(atom(), {pid(), first | later}) -> {ok, {pid(), first | later}}.
handle_event(Signal, {Receiver, first}) when Signal =:= sigterm; Signal =:= sigusr2 ->
    Receiver ! interrupt,
    {ok, {Receiver, later}};
handle_event(Signal, {_, later}) when Signal =:= sigterm; Signal =:= sigusr2 -> halt(witness_cli:status(3), [{flush, false}]);
handle_event(Signal, State) ->
    %% All others keep their meaning.
    _ = erl_signal_handler:handle_event(Signal, []),
    {ok, State}.

-doc false.
-spec handle_call(term(), State) -> {ok, ok, State}.
handle_call(_, State) -> {ok, ok, State}.
