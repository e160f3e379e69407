-module(witness_modes_predecessor).
-moduledoc """
The load with the inline monitors of detectEr, the tool of the RIARC paper's authors: `m:witness_load` woven by its parse
transform, under another name, and the monitors that the other modes have. A monitor of this tool is a fun that is given an
event and returns the next fun, so the state is in it. Events have no time, the sender of a message is not known, and ends are
not reported, so no monitor has a verdict.

It is not part of this repository: `bench/modes` compiles a checkout of it.
""".

-export([available/0, run/4, monitor/1]).

-define(LOAD, witness_modes_predecessor_load).

-spec available() -> boolean().
available() -> code:ensure_loaded(weaver) =:= {module, weaver} andalso code:ensure_loaded(analyzer) =:= {module, analyzer}.

-doc "A load of `m:witness_load` in which processes that start with these functions have the monitor. Its own time, in microseconds.".
-spec run(Function :: atom(), [term()], [atom()], {module(), term()}) -> integer().
run(Function, Args, Monitored, Monitor) ->
    erlang:module_loaded(?LOAD) orelse weave(),
    persistent_term:put(?MODULE, {Monitored, Monitor}),
    {_, Ref} = spawn_monitor(fun() -> first(Function, Args) end),
    T = receive
        {done, _, _, Time} -> Time;
        {'DOWN', Ref, process, _, Why} -> error({ended, Why})
    end,
    receive {'DOWN', Ref, process, _, Reason} -> normal = Reason end,
    T.

%% The first process has no parent, so its monitor is put where the woven code looks for it.
first(Function, Args) ->
    case monitor({?LOAD, Function, Args}) of
        {ok, Monitor} -> analyzer:embed(Monitor({trace, self(), spawned, self(), {?LOAD, Function, Args}}));
        undefined -> true
    end,
    apply(?LOAD, Function, Args).

weave() ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(witness_load), [abstract_code]),
    Woven = weaver:parse_transform(renamed(Forms), [{mfa_spec, fun ?MODULE:monitor/1}, {filter, fun analyzer:filter/1}]),
    {ok, ?LOAD, Code, _} = compile:forms(Woven, [return]),
    {module, ?LOAD} = code:load_binary(?LOAD, "", Code),
    ok.

renamed(witness_load) -> ?LOAD;
renamed(Form) when is_tuple(Form) -> list_to_tuple(renamed(tuple_to_list(Form)));
renamed([Head | Tail]) -> [renamed(Head) | renamed(Tail)];
renamed(Form) -> Form.

-doc "Woven code calls this before it spawns.".
-spec monitor(mfa()) -> {ok, fun((term()) -> term())} | undefined.
monitor({?LOAD, Function, Args}) ->
    {Monitored, {Module, Arg}} = persistent_term:get(?MODULE),
    case lists:member(Function, Monitored) of
        true -> {ok, born(Module, Arg, {witness_load, Function, Args})};
        false -> undefined
    end.

born(Module, Arg, Signature) ->
    fun({trace, P, spawned, Parent, _}) ->
        {ok, State} = Module:init(Signature, P, Arg),
        step({init, P, Parent, Signature, undefined}, Module, State)
    end.

running(Module, State) ->
    fun({trace, P, 'receive', Message}) -> step({recv, P, undefined, Message, undefined}, Module, State);
       ({trace, P, send, Message, To}) -> step({send, P, To, Message, undefined}, Module, State);
       ({trace, P, spawn, Child, {_, Function, Args}}) ->
           step({fork, P, Child, {witness_load, Function, Args}, undefined}, Module, State)
    end.

step(Event, Module, State) ->
    {ok, Next} = Module:handle_event(Event, State),
    running(Module, Next).
