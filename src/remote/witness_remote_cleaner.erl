-module(witness_remote_cleaner).
-moduledoc """
The first and last code of an attachment at the target. It claims a slot, loads the bundle, watches,
and removes everything, without using a module of Witness. It is text here, parsed and sent as expressions, which
`m:erl_eval` of the target evaluates. So it can run before the first module is loaded, and remove the last one.

A *slot* is one of a few names. Slots bound the atoms that attachments create at a node, however many there are: modules in
slot 3 end in `$3`. A slot belongs to two processes, each registered under a name of the slot, which watch each other:

- the *cleaner* watches the process at the tool that attached, the connection to it, the guard, and its own spare. When
  one of them ends, or the tool has sent nothing for the time of the lease, the cleaner kills every process that runs a module of
  the slot, ends their trace sessions, removes the modules, reports this to the tool, and ends;
- the *spare* does the same if the cleaner dies before it is done.

Loading is a single call of the cleaner. So the death of the tool cannot leave a load that happens
later. If both processes are killed, the next cleaner that claims the slot removes what they left.

The cleaner sends to the tool, each with the tag that it was given:

| Message | |
|---|---|
| `{Tag, taken}` | the slot belongs to another tool; the cleaner has ended |
| `{Tag, claimed, Cleaner}` | the slot is the tool's |
| `{Tag, started, Guard}` | the bundle is loaded, its guard runs |
| `{Tag, not_loaded, Reason}` | the code server has refused the bundle |
| `{Tag, over, Why}` | why it starts to clean: `lease`, `spare` or `{guard, Reason}` |
| `{Tag, leaving, N, Of, Processes}` | it purges a module, for which the VM checks so many processes |
| `{Tag, clean}` | nothing is left |

It receives `{Tag, load, Objects, {Module, Function, Args}}`, with the cleaner and its spare put before the
arguments, `{Tag, alive}`, and `{Tag, leave}`.
""".

-export([slots/0, name_in_slot/1, claim/4]).

-export_type([slot/0, reference_tag/0]).

-doc "A slot by its number.".
-type slot() :: 1..8.

-doc "The first element of all messages of an attachment.".
-type reference_tag() :: reference().

-define(PROGRAM, ~"""
Tell = fun(Message) -> erlang:send(Tool, Message, [nosuspend, noconnect]) end,
Ours = fun(P) ->
    case erlang:process_info(P, [initial_call, {dictionary, '$initial_call'}, current_function]) of
        [{_, {M, _, _}}, {_, Initial}, {_, Current}] ->
            lists:member(M, Modules)
                orelse is_tuple(Initial) andalso lists:member(element(1, Initial), Modules)
                orelse is_tuple(Current) andalso lists:member(element(1, Current), Modules);
        undefined -> false
    end
end,
%% The youngest first, so that none lives to see its parent killed, and reports it. Until no more are found.
Kill = fun Kill() ->
    case [P || P <- lists:reverse(lists:sort(erlang:processes())), Ours(P)] of
        [] -> ok;
        Found ->
            Watched = [begin R = erlang:monitor(process, P), erlang:exit(P, kill), R end || P <- Found],
            lists:foreach(fun(R) -> receive {'DOWN', R, process, _, _} -> ok end end, Watched),
            Kill()
    end
end,
Clean = fun() ->
    Kill(),
    %% The VM keeps some sessions whose owner was killed while it set them up.
    [try trace:session_destroy(Session) catch error:badarg -> gone end
     || {Named, _} = Session <- trace:session_info(all), lists:member(Named, Modules)],
    %% Without the code server, which others need meanwhile: each purge asks every process of the node.
    Purge = fun(M) -> erlang:check_old_code(M) andalso try erlang:purge_module(M) catch error:badarg -> gone end end,
    Loaded = [M || M <- Modules, erlang:module_loaded(M) orelse erlang:check_old_code(M)],
    lists:foreach(fun(M) -> Purge(M), code:delete(M) end, Loaded),
    lists:foreach(fun({N, M}) ->
        Tell({Tag, leaving, N, erlang:length(Loaded), erlang:system_info(process_count)}),
        Purge(M)
    end, lists:zip(lists:seq(1, erlang:length(Loaded)), Loaded))
end,
%% What is printed is this node's, and the tool may go.
Output = fun() ->
    erlang:group_leader(case erlang:whereis(user) of undefined -> erlang:whereis(init); User -> User end, erlang:self())
end,
Claim = fun(Name) -> try erlang:register(Name, erlang:self()) catch error:badarg -> false end end,
Output(),
Watch = erlang:monitor(process, Tool),
Self = erlang:self(),
Over = fun(Why) -> Tool ! {Tag, over, Why} end,
Watching = fun Watching(Spare, SpareWatch, GuardWatch) ->
    receive
        {'DOWN', Watch, process, _, _} -> lost;
        {'DOWN', SpareWatch, process, _, _} -> Over(spare);
        {'DOWN', GuardWatch, process, _, Reason} -> Over({guard, Reason});
        {Tag, leave} -> left;
        {Tag, load, Objects, {Module, Function, Args}} ->
            case code:atomic_load([{M, "", Object} || {M, Object} <- Objects]) of
                ok ->
                    {Guard, New} = erlang:spawn_monitor(Module, Function, [Self, Spare | Args]),
                    Tool ! {Tag, started, Guard},
                    Watching(Spare, SpareWatch, New);
                {error, Why} ->
                    Tool ! {Tag, not_loaded, Why},
                    refused
            end;
        _ -> Watching(Spare, SpareWatch, GuardWatch)
    after Lease -> Over(lease)
    end
end,
case Claim(Name) of
    false -> Tool ! {Tag, taken};
    true ->
        {Spare, SpareWatch} = erlang:spawn_monitor(fun() ->
            Of = erlang:monitor(process, Self),
            Claimed = Claim(SpareName),
            Self ! {Tag, spare, Claimed},
            Claimed andalso receive
                {'DOWN', Of, process, _, normal} -> ok;
                {'DOWN', Of, process, _, _} -> Clean()
            end
        end),
        case receive {Tag, spare, Is} -> Is; {'DOWN', SpareWatch, process, _, _} -> false end of
            false -> Tool ! {Tag, taken};
            true ->
                lists:any(fun erlang:module_loaded/1, Modules) andalso Clean(),
                Tool ! {Tag, claimed, Self},
                Watching(Spare, SpareWatch, none),
                Clean(),
                Tool ! {Tag, clean}
        end
end.
""").

-doc "All slots.".
-spec slots() -> [slot()].
slots() -> lists:seq(1, 8).

-doc "The names of modules in a slot.".
-spec name_in_slot(slot()) -> fun((module()) -> atom()).
name_in_slot(Slot) ->
    fun(Module) -> binary_to_atom(<<(atom_to_binary(Module))/binary, $$, (integer_to_binary(Slot))/binary>>) end.

-doc """
Starts a cleaner for a slot, with the names that modules and trace sessions may have there. The messages above are sent to the
calling process. The lease is in milliseconds.
""".
-spec claim(node(), slot(), {reference_tag(), Lease :: pos_integer()}, [module()]) -> pid().
claim(Node, Slot, {Tag, Lease}, Modules) ->
    Named = name_in_slot(Slot),
    Bindings = #{'Tool' => self(), 'Tag' => Tag, 'Lease' => Lease, 'Modules' => Modules,
                 'Name' => Named(witness), 'SpareName' => Named(witness_spare)},
    spawn(Node, erl_eval, exprs, [expressions(), Bindings]).

expressions() ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(?PROGRAM)),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    Expressions.
