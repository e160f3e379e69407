-module(witness_inline_spawn).
-moduledoc """
Spawns of woven code: the same spawn, and a `fork` event if the caller is monitored.

Functions ask when a process starts with them, but funs do not. So a fun of a module that a run observes is wrapped in
another fun, which asks. No process on another node is observed.

The child of a `spawn_request` is known when its reply is received; the `fork` is an event at that point. If the process asks for no
reply, or ends before it has received it, the child is not known: both are a gap.
""".

-export([spawn/3, request/3, replied/2, pending/0, is_pending/0, wrapped/1]).
-export([begun/2, begun/3]).
-compile({no_auto_import, [spawn/3]}).

-define(REQUESTS, '$witness_requests').

-doc "Calls a function that spawns, and returns its result.".
-spec spawn(module(), atom(), [term()]) -> term().
spawn(Module, Function, Args) ->
    Result = apply(Module, Function, wrapped(Args)),
    _ = witness_inline_process:active()
        andalso forked(case Result of {Child, _} -> Child; Child -> Child end, raw(Args)),
    Result.

-doc "`erlang:spawn_request`.".
-spec request(module(), atom(), [term()]) -> term().
request(Module, Function, Args) ->
    Request = apply(Module, Function, wrapped(Args)),
    _ = witness_inline_process:active() andalso asked(options(Args), Request, raw(Args)),
    Request.

asked(Options, Request, Raw) ->
    case proplists:get_value(reply, Options, yes) of
        No when No =:= no; No =:= error_only -> witness_inline_process:gap(spawn_request);
        _ ->
            %% The process checks these requests, too, before it waits.
            _ = put('$witness_marked', true),
            put(?REQUESTS, (requests())#{Request => Raw})
    end.

-doc "A reply to a request, or a message that looks like one, was received.".
-spec replied(reference(), {ok, pid()} | error) -> ok.
replied(Request, Reply) ->
    case requests() of
        #{Request := Raw} = Requests ->
            put(?REQUESTS, maps:remove(Request, Requests)),
            case Reply of
                {ok, Child} -> forked(Child, Raw);
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
-spec pending() -> boolean().
pending() -> is_any(erase(?REQUESTS)).

-doc "The same, without deleting the requests.".
-spec is_pending() -> boolean().
is_pending() -> is_any(get(?REQUESTS)).

is_any(undefined) -> false;
is_any(Requests) -> map_size(Requests) > 0.

forked(Child, Raw) ->
    witness_inline_process:event({fork, self(), Child, witness_event_signature:resolve(Raw), undefined}).

%% The form that the VM uses. The call has succeeded, so its arguments have one of these forms.
raw([Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
raw([_Node, Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
raw([Module, Function, Args | _]) when is_list(Args) -> {Module, Function, Args};
raw([_Node, Module, Function, Args | _]) -> {Module, Function, Args}.

%% The arguments of the spawned function are never options, even if they look like it.
options([Fun | Options]) when is_function(Fun) -> listed(Options);
options([_Node, Fun | Options]) when is_function(Fun) -> listed(Options);
options([_Module, _Function, Args | Options]) when is_list(Args) -> listed(Options);
options([_Node, _Module, _Function, _Args | Options]) -> listed(Options).

listed([]) -> [];
listed([Options]) -> Options.

-doc "The arguments for a function that spawns. If the child's code does not ask by itself whether it is monitored, it is wrapped.".
-spec wrapped([term()]) -> [term()].
wrapped([Fun | Options]) when is_function(Fun, 0) ->
    [asking(Fun, []) | Options];
wrapped([erlang, apply, [Fun, Args] | Options]) when is_list(Args), is_function(Fun, length(Args)) ->
    case asking(Fun, Args) of
        Fun -> [erlang, apply, [Fun, Args] | Options];
        Asking -> [erlang, apply, [Asking, []] | Options]
    end;
%% `erlang:apply/3' calls the function, so the function cannot detect that it is the first.
wrapped([erlang, apply, [Module, Function, Args] = Applied | Options]) when is_atom(Module), is_atom(Function), is_list(Args) ->
    case witness_inline_registry:find(Module) of
        none -> [erlang, apply, Applied | Options];
        _ -> [erlang, apply, [?MODULE, begun, Applied] | Options]
    end;
wrapped([Node, erlang, apply, Applied | Options]) when Node =:= node() ->
    [Node | wrapped([erlang, apply, Applied | Options])];
wrapped([Node, Fun | Options]) when Node =:= node(), is_function(Fun, 0) ->
    [Node, asking(Fun, []) | Options];
wrapped(Args) ->
    Args.

asking(Fun, Args) ->
    {module, Module} = erlang:fun_info(Fun, module),
    case witness_inline_registry:find(Module) of
        none -> Fun;
        _ -> fun() -> begun(Fun, Args) end
    end.

-doc false.
-spec begun(function(), [term()]) -> term().
begun(Fun, Args) ->
    %% `proc_lib' would show the wrapping fun as the initial call.
    _ = case get('$initial_call') of
        {?MODULE, _, _} -> put('$initial_call', erlang:fun_info_mfa(Fun));
        _ -> as_it_is
    end,
    {Module, _, _} = Signature = witness_event_signature:resolve({erlang, apply, [Fun, Args]}),
    case witness_inline_process:born(Module, Signature) of
        monitored -> witness_inline_end:run(erlang, apply, [Fun, Args], witness_inline_process:host());
        not_monitored -> apply(Fun, Args)
    end.

-doc false.
-spec begun(module(), atom(), [term()]) -> term().
begun(Module, Function, Args) ->
    case witness_inline_process:born(Module, witness_event_signature:resolve({Module, Function, Args})) of
        monitored -> witness_inline_end:run(Module, Function, Args, witness_inline_process:host());
        not_monitored -> apply(Module, Function, Args)
    end.
