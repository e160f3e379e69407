-module(witness_recorded_dynamic).
-moduledoc "Functions that are known at run time only: funs, applied names, evaluated text, and code that is loaded meanwhile.".

-import(witness_recorded, [message/2, content/1, spawned/1, result/2]).

-export([functions/0, found/1, loaded/1, made/0]).
-export([told/1]).

-doc "Sends and calls of functions that are values; timers that call; text that is evaluated; calls of this node by itself.".
functions() ->
    Me = self(),
    Send = fun erlang:send/2,
    {Module, Function} = {list_to_atom("erlang"), list_to_atom("send")},
    lists:foreach(fun(N) -> Send(Me, {own, N}) end, [1, 2]),
    Module:Function(Me, {own, 3}),
    apply(erlang, send, [Me, {own, 4}]),
    lists:map(fun(F) -> apply(F, [Me, {own, 5}]) end, [Send]),
    [receive {own, N} = M -> message(self(), M) end || N <- [5, 4, 3, 2, 1]],
    Child = spawn(erlang, send, [Me, from_child]),
    witness_recorded:either([[{spawn, Child}]]),
    receive from_child -> message(Child, from_child) end,
    {ok, _} = timer:apply_after(3, ?MODULE, told, [Me]),
    receive {told, _} = Told -> content(Told) end,
    Now = fun erlang:monotonic_time/0,
    _ = result({erlang, monotonic_time, 0}, Now()),
    _ = result({erlang, unique_integer, 1}, apply(erlang, unique_integer, [[positive]])),
    Text = "Me = self(), Me ! evaluated, receive evaluated -> {Me, erlang:make_ref()} end.",
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Parsed} = erl_parse:parse_exprs(Tokens),
    {value, {Me, Reference}, _} = erl_eval:exprs(Parsed, []),
    message(Me, evaluated),
    _ = result({erlang, make_ref, 0}, Reference),
    Other = erpc:call(node(), fun() -> self() end, 60_000),
    {Other =/= Me, is_integer(rpc:call(node(), erlang, unique_integer, []))}.

told(To) -> To ! {told, self()}.

-doc "A module of a folder that is added to the path meanwhile.".
found(Folder) ->
    true = code:add_patha(Folder),
    relay(fun(Me) -> witness_recorded_relay:relay(Me) end).

-doc "The object code of a module, read from a file.".
loaded(Folder) ->
    Name = filename:join(Folder, "witness_recorded_relay.beam"),
    {ok, Code} = file:read_file(Name),
    {module, Module} = code:load_binary(witness_recorded_relay, Name, Code),
    Result = relay(fun(Me) -> Module:relay(Me) end),
    %% That it is not there any more does not make it unseen.
    true = code:delete(Module),
    _ = code:purge(Module),
    Result.

relay(Start) ->
    Me = self(),
    Relay = spawned(fun() -> Start(Me) end),
    Writers = [spawned(fun() -> [Relay ! {note, self(), N} || N <- [1, 2, 3]] end) || _ <- [1, 2]],
    [receive {relayed, {note, Writer, _}} = M -> message(Relay, M) end || Writer <- Writers, _ <- [1, 2, 3]],
    Ref = monitor(process, Relay),
    Relay ! stop,
    receive {'DOWN', Ref, process, Relay, _} = Down -> content(Down) end,
    done.

-doc "A module that the program compiles.".
made() ->
    Forms = [{attribute, 1, module, witness_recorded_made}, {attribute, 2, export, [{f, 0}]},
             {function, 3, f, 0, [{clause, 3, [], [], [{call, 3, {atom, 3, self}, []}]}]}],
    {ok, Module, Code} = compile:forms(Forms, [binary]),
    {module, Module} = code:load_binary(Module, "made", Code),
    Module:f() =:= self().
