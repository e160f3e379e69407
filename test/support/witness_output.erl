-module(witness_output).
-moduledoc "What the command line prints in this VM, on either output. Both belong to a process here.".

-export([of_call/1, taken/0]).

-doc "Calls the function, and returns what was printed meanwhile, except what was taken before.".
-spec of_call(fun(() -> Result)) -> {Result, binary()}.
of_call(Fun) ->
    Device = spawn_link(fun() -> device([]) end),
    Names = [user, standard_error],
    Before = [{Name, whereis(Name)} || Name <- Names],
    [unregister(Name) || Name <- Names],
    try
        true = register(user, Device),
        true = register(standard_error, spawn_link(fun() -> forward(Device) end)),
        Result = Fun(),
        {Result, taken()}
    after
        [begin unregister(Name), register(Name, Pid) end || {Name, Pid} <- Before]
    end.

-doc "What was printed since the last time, inside such a call, which is still running.".
-spec taken() -> binary().
taken() ->
    Device = whereis(user),
    Device ! {text, self()},
    receive {Device, Text} -> Text end.

forward(Other) ->
    receive Message -> Other ! Message end,
    forward(Other).

device(Printed) ->
    receive
        {io_request, From, Ref, {put_chars, unicode, Text}} ->
            From ! {io_reply, Ref, ok},
            device([Printed, unicode:characters_to_binary(Text)]);
        {io_request, From, Ref, {put_chars, unicode, M, F, A}} ->
            From ! {io_reply, Ref, ok},
            device([Printed, unicode:characters_to_binary(apply(M, F, A))]);
        {io_request, From, Ref, _} ->
            From ! {io_reply, Ref, {error, request}},
            device(Printed);
        {text, Pid} ->
            Pid ! {self(), iolist_to_binary(Printed)},
            device([])
    end.
