-module(witness_inline_spawn).
-moduledoc """
Spawns of woven code: the same spawn, and a `fork` where the caller is monitored.

A fun does not ask at its beginning as functions do, so one that begins in a module that a run observes is handed over in
another fun, which does. On another node nobody observes.

The child of a `spawn_request` is known when its reply is taken, and there its `fork` stands among the events. If no reply
is asked for it is never known, and if the process has ended before it took the reply it was not: both are a gap.
""".

-export([spawn/3, request/3, replied/2, pending/0, is_pending/0, wrapped/1]).
-export([begun/2, begun/3]).
-compile({no_auto_import, [spawn/3]}).

-define(REQUESTS, '$witness_requests').

-doc "A function that spawns, with its arguments, and its result.".
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
            %% Before the process waits it looks at these, too.
            _ = put('$witness_marked', true),
            put(?REQUESTS, (requests())#{Request => Raw})
    end.

-doc "The reply to a request, or what looks like one, was taken.".
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

-doc "Whether a request has no reply yet. Asked once, at the end.".
-spec pending() -> boolean().
pending() -> is_any(erase(?REQUESTS)).

-doc "The same, and it can be asked again.".
-spec is_pending() -> boolean().
is_pending() -> is_any(get(?REQUESTS)).

is_any(undefined) -> false;
is_any(Requests) -> map_size(Requests) > 0.

forked(Child, Raw) ->
    witness_inline_process:event({fork, self(), Child, witness_event_signature:resolve(Raw), undefined}).

%% As the VM knows it. The call has succeeded, so its arguments have one of the forms that there are.
raw([Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
raw([_Node, Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
raw([Module, Function, Args | _]) when is_list(Args) -> {Module, Function, Args};
raw([_Node, Module, Function, Args | _]) -> {Module, Function, Args}.

%% Arguments of the function are no options, whatever they look like.
options([Fun | Options]) when is_function(Fun) -> listed(Options);
options([_Node, Fun | Options]) when is_function(Fun) -> listed(Options);
options([_Module, _Function, Args | Options]) when is_list(Args) -> listed(Options);
options([_Node, _Module, _Function, _Args | Options]) -> listed(Options).

listed([]) -> [];
listed([Options]) -> Options.

-doc "What is to be given to a function that spawns: the child asks whether it is monitored, where its code does not ask by itself.".
-spec wrapped([term()]) -> [term()].
wrapped([Fun | Options]) when is_function(Fun, 0) ->
    [asking(Fun, []) | Options];
wrapped([erlang, apply, [Fun, Args] | Options]) when is_list(Args), is_function(Fun, length(Args)) ->
    case asking(Fun, Args) of
        Fun -> [erlang, apply, [Fun, Args] | Options];
        Asking -> [erlang, apply, [Asking, []] | Options]
    end;
%% It is called by `erlang:apply/3', so it does not know that it is the first.
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
    %% What `proc_lib' tells of a process is its own fun.
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
