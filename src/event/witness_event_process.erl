-module(witness_event_process).
-moduledoc """
Lets a process that is a plain loop answer the messages of `m:sys`, as processes of OTP do: `sys:get_state/1`,
`sys:get_status/1`, `sys:suspend/1`, `sys:terminate/2`.

The loop has one clause more, behind all others:

```erlang
{system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, S)
```

While a process is suspended everything else waits in its mailbox, in order: what it does is done later, and nothing is
lost. To terminate one is to kill it: it ends with `{terminated, Reason}`, never `normal`, so whoever depends on it
knows that it has not done its work. The state is not to be replaced: it is shown.
""".

-export([system/4]).
-export([system_continue/3, system_terminate/4, system_code_change/4, system_get_state/1, system_replace_state/2,
         format_status/2]).

-doc "Handles a system message, and goes on with the loop.".
-spec system(Request :: term(), From :: {pid(), term()}, Loop :: fun((State) -> term()), State) -> no_return().
system(Request, From, Loop, State) ->
    %% None of these processes is to end because its parent does: that is the business of links.
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
