-module(witness_weave_recorder).
-moduledoc """
A run-time module that writes down what woven code tells it, into the journal of `witness_weave_journal`.

A process is recorded from its first function on, if that is an entry or a fun that woven code has spawned.
""".
-behaviour(witness_weave_runtime).

-compile({no_auto_import, [apply/3, spawn/3, get/0]}).

-export([sent/2, received/1, timeout/0, waits/1, entry/3, send/3, spawn/3, spawn_request/3, start/3, call/3, cast/3, reply/3,
         request/3,
         dictionary/3, hibernate/3, resume/1, apply/3, function/3, callback/3, init/2, called/3,
         returned/4]).

-define(KEY, '$witness_inline').

record(Event) -> erlang:get(?KEY) =/= undefined andalso witness_weave_journal:write({told, Event}).

sent(To, Msg) -> record({send, To, Msg}).

received(Msg) -> record({recv, Msg}).

timeout() -> told.

waits(Time) -> Time.

entry(M, F, Args) ->
    case process_info(self(), initial_call) of
        {initial_call, {M, F, Arity}} when Arity =:= length(Args) ->
            {done, watched({M, F, Args}, fun() -> erlang:apply(M, F, Args) end)};
        {initial_call, {proc_lib, _, _}} ->
            case proc_lib:translate_initial_call(self()) of
                {M, F, Arity} when Arity =:= length(Args) ->
                    {done, watched({M, F, Args}, fun() -> erlang:apply(M, F, Args) end)};
                _ ->
                    go
            end;
        _ ->
            go
    end.

watched(Signature, Do) ->
    put(?KEY, recorded),
    record({init, Signature}),
    try Do() of
        Value ->
            record({exit, normal}),
            Value
    catch
        Class:Reason:Stack ->
            record({exit, witness_weave_journal:reason(Class, Reason, Stack)}),
            erlang:raise(Class, Reason, Stack)
    end.

send(erlang, F, [To, Msg | _] = Args) ->
    Result = erlang:apply(erlang, F, Args),
    was_sent(F, length(Args), Result) andalso record({send, To, Msg}),
    Result.

was_sent(send, 3, Result) -> Result =:= ok;
was_sent(send_nosuspend, _, Result) -> Result;
was_sent(_, 2, _) -> true.

spawn(M, F, Args) ->
    {Signature, Wrapped} = started(Args),
    Result = erlang:apply(M, F, Wrapped),
    record({fork, case Result of {Child, _} -> Child; Child -> Child end, Signature}),
    Result.

started([Fun | Rest]) when is_function(Fun, 0) ->
    Signature = witness_weave_journal:signature(Fun),
    {Signature, [fun() -> begins_with(Fun), watched(Signature, Fun) end | Rest]};
started([Node, Fun | Rest]) when is_atom(Node), is_function(Fun) ->
    {Signature, [Wrapped | _]} = started([Fun]),
    {Signature, [Node, Wrapped | Rest]};
started([Node, M, F, A | _] = Args) when is_atom(Node), is_atom(F), is_list(A) -> {{M, F, A}, Args};
started([M, F, A | _] = Args) -> {{M, F, A}, Args}.

%% What `proc_lib' tells of a process is the fun above.
begins_with(Fun) -> erlang:get('$initial_call') =:= undefined orelse put('$initial_call', erlang:fun_info_mfa(Fun)).

spawn_request(M, F, Args) -> erlang:apply(M, F, Args).

start(M, F, Args) -> erlang:apply(M, F, Args).

call(M, F, Args) -> erlang:apply(M, F, Args).

cast(M, F, Args) -> erlang:apply(M, F, Args).

reply(M, F, Args) -> erlang:apply(M, F, Args).

request(M, F, Args) -> erlang:apply(M, F, Args).

dictionary(erlang, erase, []) ->
    Mine = erlang:get(?KEY),
    All = erlang:erase(),
    put(?KEY, Mine),
    [Entry || {Key, _} = Entry <- All, Key =/= ?KEY];
dictionary(erlang, get, []) -> [Entry || {Key, _} = Entry <- erlang:get(), Key =/= ?KEY];
dictionary(erlang, get_keys, Args) -> erlang:apply(erlang, get_keys, Args) -- [?KEY].

%% The end of the process is recorded after it too.
hibernate(M, hibernate, Args) -> M:hibernate(?MODULE, resume, [Args]).

resume([M, F, Args]) ->
    try
        erlang:apply(M, F, Args)
    of
        Value ->
            record({exit, normal}),
            Value
    catch
        Class:Reason:Stack ->
            record({exit, witness_weave_journal:reason(Class, Reason, Stack)}),
            erlang:raise(Class, Reason, Stack)
    end.

apply(M, F, Args) ->
    case witness_weave_calls:class(M, F, length(Args)) of
        none -> erlang:apply(M, F, Args);
        Class -> ?MODULE:Class(M, F, Args)
    end.

function(M, F, Arity) ->
    case {witness_weave_calls:class(M, F, Arity), Arity} of
        {none, _} -> fun M:F/Arity;
        {_, 1} -> fun(A) -> ?MODULE:apply(M, F, [A]) end;
        {_, 2} -> fun(A, B) -> ?MODULE:apply(M, F, [A, B]) end;
        {_, 3} -> fun(A, B, C) -> ?MODULE:apply(M, F, [A, B, C]) end
    end.

callback(_, _, _) -> go.

init(_, _) -> go.

called(_, _, _) -> not_recorded.

returned(_, _, _, _) -> not_recorded.
