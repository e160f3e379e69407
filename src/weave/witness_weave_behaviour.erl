-module(witness_weave_behaviour).
-moduledoc """
Weaves the callback modules of OTP's behaviours, and of Elixir's on top of them; pure.

A process of `gen_server`, `gen_statem` or `gen_event` receives and replies in OTP's modules, which are not woven. So
its callbacks are woven: each clause asks the run time first. The run time gives the events of the callback's arguments, calls
the callback again, and gives the events of its result.

```erlang
handle_call(W1 = {add, A, B}, W2 = _From, W3 = State) ->
    case case erlang:get(Key) of undefined -> go; _ -> Runtime:callback(m, handle_call, [W1, W2, W3]) end of
        go -> {reply, A + B, State};                                  % what was written, in tail position
        {done, V} -> V                                                % what the call under observation has returned
    end;
handle_call(W1, W2, W3) -> case ... of go -> erlang:error(function_clause, [W1, W2, W3]); {done, V} -> V end.
```

Other than in this sketch, a callback asks without the key as well: the process may have lost it. In `init/1` of a module that
the map names the first case is `undefined -> Runtime:init(m, [W1])`: monitoring of a process starts there.

| Behaviour | Callbacks that are woven |
|---|---|
| `gen_server`, `GenServer` | `init/1`, `handle_call/3`, `handle_cast/2`, `handle_info/2`, `handle_continue/2`, `terminate/2`, `code_change/3`, `format_status/1,2` |
| `gen_statem` | `init/1`, `handle_event/4`, every other exported function with three arguments (it may be a state), `terminate/3`, `callback_mode/0`, `code_change/4`, `format_status/1,2` |
| `gen_event` | `init/1`, `handle_event/2`, `handle_call/2`, `handle_info/2`, `terminate/2`, `code_change/3`, `format_status/1,2` |
| `supervisor`, `supervisor_bridge`, `Supervisor`, `DynamicSupervisor` | `init/1` |

`callback_mode`, `code_change` and `format_status` give no events. They are woven so that a callback that one of them
calls gives none either. A missing `terminate` is added, and does nothing: OTP calls it when the process ends.
A `terminate` that exists but is not exported stays as it is, since OTP does not call it.
""".

-export([prepare/2, servers/1, entries/1]).

%% Callback modules of gen_server that do not say so.
-define(SERVERS, ['Elixir.GenStage']).

-type form() :: erl_parse:abstract_form().

-doc """
The forms, with the missing functions added, and the functions that ask the run time first, each with its question (see
`m:witness_weave_entry`). A `callback` is not an entry: its return is not the end of its process.
""".
-spec prepare([form()], witness_weave:plan()) -> {[form()], #{{atom(), arity()} => callback | init}}.
prepare(Forms, Plan) ->
    case behaviours(Forms) of
        [] -> {Forms, #{}};
        Behaviours ->
            Exported = exported(Forms),
            Defined = [{F, A} || {function, _, F, A, _} <- Forms],
            Missing = lists:usort(lists:append([ends(Behaviour) || Behaviour <- Behaviours]) -- Defined),
            Own = [FA || FA <- Defined, is_callback(FA, Behaviours),
                         Exported =:= all orelse lists:member(FA, Exported)],
            {add_missing(Forms, Missing),
             #{FA => question(FA) || FA <- Missing ++ Own, FA =/= {init, 1} orelse begins(Behaviours, Plan)}}
    end.

question({init, 1}) -> init;
question(_) -> callback.

%% OTP calls an exported `terminate', and goes on when that returns.
nothing({F, A}) ->
    Anno = erl_anno:set_generated(true, erl_anno:new(0)),
    {function, Anno, F, A, [{clause, Anno, [{var, Anno, '_'} || _ <- lists:seq(1, A)], [], [{atom, Anno, ok}]}]}.

add_missing(Forms, []) -> Forms;
add_missing(Forms, Missing) ->
    {Before, [Module | After]} = lists:splitwith(fun(Form) -> not is_module(Form) end, Forms),
    {Inside, End} = lists:splitwith(fun(Form) -> element(1, Form) =/= eof end, After),
    Export = {attribute, erl_anno:set_generated(true, element(2, Module)), export, Missing},
    Before ++ [Module, Export] ++ Inside ++ [nothing(FA) || FA <- Missing] ++ End.

is_module({attribute, _, module, _}) -> true;
is_module(_) -> false.

is_entry(#{entries := all}) -> true;
is_entry(#{entries := Entries}) -> lists:member({init, 1}, Entries);
is_entry(#{}) -> false.

%% A `gen_event' manager is first seen when a handler is added, which the map does not name.
begins(Behaviours, Plan) -> is_entry(Plan) orelse lists:member(gen_event, Behaviours).

%%% The callbacks of a behaviour

behaviours(Forms) ->
    lists:usort([Known || {attribute, _, Name, Behaviour} <- Forms, Name =:= behaviour orelse Name =:= behavior,
                          Known <- known(Behaviour)]
                ++ [gen_server || {attribute, _, module, Module} <- Forms, lists:member(Module, ?SERVERS)]).

known(gen_server) -> [gen_server];
known('Elixir.GenServer') -> [gen_server];
known(gen_statem) -> [gen_statem];
known(gen_event) -> [gen_event];
known(Supervisor) when Supervisor =:= supervisor; Supervisor =:= supervisor_bridge; Supervisor =:= 'Elixir.Supervisor';
                       Supervisor =:= 'Elixir.DynamicSupervisor' -> [supervisor];
known(_) -> [].

ends(gen_server) -> [{terminate, 2}];
ends(gen_statem) -> [{terminate, 3}];
ends(gen_event) -> [{terminate, 2}];
ends(supervisor) -> [].

is_callback(FA, Behaviours) -> lists:any(fun(Behaviour) -> calls(Behaviour, FA) end, Behaviours).

calls(supervisor, FA) -> FA =:= {init, 1};
calls(_, {init, 1}) -> true;
calls(_, {format_status, A}) -> A =:= 1 orelse A =:= 2;
calls(gen_server, FA) ->
    lists:member(FA, [{handle_call, 3}, {handle_cast, 2}, {handle_info, 2}, {handle_continue, 2}, {terminate, 2},
                      {code_change, 3}]);
calls(gen_statem, {_, A}) when A =:= 3 -> true;
calls(gen_statem, FA) -> lists:member(FA, [{handle_event, 4}, {callback_mode, 0}, {code_change, 4}]);
calls(gen_event, FA) ->
    lists:member(FA, [{handle_event, 2}, {handle_call, 2}, {handle_info, 2}, {terminate, 2}, {code_change, 3}]).

exported(Forms) ->
    case [all || {attribute, _, compile, Options} <- Forms, lists:member(export_all, lists:flatten([Options]))] of
        [] -> lists:append([FAs || {attribute, _, export, FAs} <- Forms]);
        _ -> all
    end.

%%% Elixir's modules that run the functions of their users

-doc """
Modules of Elixir, such as those of tasks and agents, that run functions of the modules that call the given ones. A process that
starts in them can be monitored only if they are woven too.
""".
-spec servers(Called :: [module()]) -> [module()].
servers(Called) ->
    lists:usort([Server || Module <- Called, Server <- server(Module)]).

server('Elixir.Task') -> ['Elixir.Task.Supervised'];
server('Elixir.Task.Supervisor') -> ['Elixir.Task.Supervised'];
server('Elixir.Agent') -> ['Elixir.Agent.Server'];
server(_) -> [].

-doc """
The functions of such a module that processes start in, whatever the map names: the signature of these processes is the
user's function (`m:witness_event_signature`).
""".
-spec entries(module()) -> [{atom(), arity()}].
entries('Elixir.Task.Supervised') -> [{reply, 3}, {reply, 4}, {noreply, 3}, {noreply, 4}];
entries('Elixir.Agent.Server') -> [{init, 1}];
entries(_) -> [].
