-module(witness_event_process).
-moduledoc """
Lets a process that is a plain loop answer the messages of `m:sys`, as processes of OTP do: `sys:get_state/1`,
`sys:get_status/1`, `sys:suspend/1`, `sys:terminate/2`.

The loop has one additional clause, after all others:

```erlang
{system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, S)
```

While a process is suspended, all other messages wait in its mailbox, in order: the process handles them later, and none is
lost. To terminate a process is to kill it. It ends with `{terminated, Reason}`, never `normal`, so processes that depend on it
learn that it has not done its work. The state can be read but not replaced.
""".

-export([system/4]).
-export([system_continue/3, system_terminate/4, system_code_change/4, system_get_state/1, system_replace_state/2,
         format_status/2]).

-doc "Handles a system message, and continues with the loop.".
-spec system(Request :: term(), From :: {pid(), term()}, Loop :: fun((State) -> term()), State) -> no_return().
system(Request, From, Loop, State) ->
    %% None of these processes ends only because its parent does: links decide that.
    sys:handle_system_msg(Request, From, self(), ?MODULE, [], {Loop, State}).

-doc false.
-spec system_continue(pid(), [sys:dbg_opt()], {fun((State) -> term()), State}) -> term().
system_continue(_, _, {Loop, State}) -> Loop(State).

-doc false.
-spec system_terminate(term(), pid(), [sys:dbg_opt()], term()) -> no_return().
system_terminate(Reason, _, _, _) -> exit({terminated, Reason}).

-doc false.
-spec system_code_change(Misc, module(), term(), term()) -> {ok, Misc}.
system_code_change(Misc, _, _, _) -> {ok, Misc}.

-doc false.
-spec system_get_state({term(), State}) -> {ok, State}.
system_get_state({_, State}) -> {ok, State}.

-doc false.
-spec system_replace_state(term(), term()) -> no_return().
system_replace_state(_, _) -> error(not_replaced).

-doc false.
-spec format_status(term(), [term()]) -> [{data, [{string(), term()}]}].
format_status(_, [_, _, _, _, {_, State}]) -> [{data, [{"State", State}]}].
