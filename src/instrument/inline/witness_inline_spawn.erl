-module(witness_inline_spawn).
-moduledoc """
Spawns of woven code: the same spawn, and a `fork` event if the caller is monitored.

Functions ask when a process starts with them, but funs do not. So a fun of a module that a run observes is wrapped in
another fun, which asks. No process on another node is observed.

The child of a `spawn_request` is known when its reply is received; the `fork` is an event at that point. If the process asks for no
reply, or ends before it has received it, the child is not known: both are a gap.
""".

-export([spawn/3, request/3, handle_reply/2, take_pending/0, is_pending/0, wrap/1]).
-export([run_wrapped/2, run_wrapped/3]).
-compile({no_auto_import, [spawn/3]}).

-define(REQUESTS, '$witness_requests').

-doc "Calls a function that spawns, and returns its result.".
-spec spawn(module(), atom(), [term()]) -> term().
spawn(Module, Function, Args) ->
    Result = apply(Module, Function, wrap(Args)),
    _ = witness_inline_process:is_active()
        andalso report_fork(case Result of {Child, _} -> Child; Child -> Child end, spawned_call(Args)),
    Result.

-doc "`erlang:spawn_request`.".
-spec request(module(), atom(), [term()]) -> term().
request(Module, Function, Args) ->
    Request = apply(Module, Function, wrap(Args)),
    _ = witness_inline_process:is_active() andalso note_request(options(Args), Request, spawned_call(Args)),
    Request.

note_request(Options, Request, Raw) ->
    case proplists:get_value(reply, Options, yes) of
        No when No =:= no; No =:= error_only -> witness_inline_process:report_gap(spawn_request);
        _ ->
            %% The process checks these requests, too, before it waits.
            _ = put('$witness_marked', true),
            put(?REQUESTS, (requests())#{Request => Raw})
    end.

-doc "A reply to a request, or a message that looks like one, was received.".
-spec handle_reply(reference(), {ok, pid()} | error) -> ok.
handle_reply(Request, Reply) ->
    case requests() of
        #{Request := Raw} = Requests ->
            put(?REQUESTS, maps:remove(Request, Requests)),
            case Reply of
                {ok, Child} -> report_fork(Child, Raw);
                error -> ok
            end;
        #{} -> ok
    end.

requests() ->
    case get(?REQUESTS) of
        undefined -> #{};
        Requests -> Requests
    end.

-doc "Whether a request has no reply yet. Deletes the requests, so it is called once, at the end.".
-spec take_pending() -> boolean().
take_pending() -> is_any(erase(?REQUESTS)).

-doc "The same, without deleting the requests.".
-spec is_pending() -> boolean().
is_pending() -> is_any(get(?REQUESTS)).

is_any(undefined) -> false;
is_any(Requests) -> map_size(Requests) > 0.

report_fork(Child, Raw) ->
    witness_inline_process:report_event({fork, self(), Child, witness_event_signature:resolve(Raw), undefined}).

%% The form that the VM uses. The call has succeeded, so its arguments have one of these forms.
spawned_call([Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
spawned_call([_Node, Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
spawned_call([Module, Function, Args | _]) when is_list(Args) -> {Module, Function, Args};
spawned_call([_Node, Module, Function, Args | _]) -> {Module, Function, Args}.

%% The arguments of the spawned function are never options, even if they look like it.
options([Fun | Options]) when is_function(Fun) -> first_or_empty(Options);
options([_Node, Fun | Options]) when is_function(Fun) -> first_or_empty(Options);
options([_Module, _Function, Args | Options]) when is_list(Args) -> first_or_empty(Options);
options([_Node, _Module, _Function, _Args | Options]) -> first_or_empty(Options).

first_or_empty([]) -> [];
first_or_empty([Options]) -> Options.

-doc "The arguments for a function that spawns. If the child's code does not ask by itself whether it is monitored, it is wrapped.".
-spec wrap([term()]) -> [term()].
wrap([Fun | Options]) when is_function(Fun, 0) ->
    [wrap_fun(Fun, []) | Options];
wrap([erlang, apply, [Fun, Args] | Options]) when is_list(Args), is_function(Fun, length(Args)) ->
    case wrap_fun(Fun, Args) of
        Fun -> [erlang, apply, [Fun, Args] | Options];
        Asking -> [erlang, apply, [Asking, []] | Options]
    end;
%% `erlang:apply/3' calls the function, so the function cannot detect that it is the first.
wrap([erlang, apply, [Module, Function, Args] = Applied | Options]) when is_atom(Module), is_atom(Function), is_list(Args) ->
    case witness_inline_registry:find(Module) of
        none -> [erlang, apply, Applied | Options];
        _ -> [erlang, apply, [?MODULE, run_wrapped, Applied] | Options]
    end;
wrap([Node, erlang, apply, Applied | Options]) when Node =:= node() ->
    [Node | wrap([erlang, apply, Applied | Options])];
wrap([Node, Fun | Options]) when Node =:= node(), is_function(Fun, 0) ->
    [Node, wrap_fun(Fun, []) | Options];
wrap(Args) ->
    Args.

wrap_fun(Fun, Args) ->
    {module, Module} = erlang:fun_info(Fun, module),
    case witness_inline_registry:find(Module) of
        none -> Fun;
        _ -> fun() -> run_wrapped(Fun, Args) end
    end.

-doc false.
-spec run_wrapped(function(), [term()]) -> term().
run_wrapped(Fun, Args) ->
    %% `proc_lib' would show the wrapping fun as the initial call.
    _ = case get('$initial_call') of
        {?MODULE, _, _} -> put('$initial_call', erlang:fun_info_mfa(Fun));
        _ -> as_it_is
    end,
    {Module, _, _} = Signature = witness_event_signature:resolve({erlang, apply, [Fun, Args]}),
    case witness_inline_process:start_monitoring(Module, Signature) of
        monitored -> witness_inline_end:run(erlang, apply, [Fun, Args], witness_inline_process:coordinator());
        not_monitored -> apply(Fun, Args)
    end.

-doc false.
-spec run_wrapped(module(), atom(), [term()]) -> term().
run_wrapped(Module, Function, Args) ->
    case witness_inline_process:start_monitoring(Module, witness_event_signature:resolve({Module, Function, Args})) of
        monitored -> witness_inline_end:run(Module, Function, Args, witness_inline_process:coordinator());
        not_monitored -> apply(Module, Function, Args)
    end.
