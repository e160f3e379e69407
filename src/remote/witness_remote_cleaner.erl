-module(witness_remote_cleaner).
-moduledoc """
What runs first and ends last at a node where Witness is attached: it claims a slot there, loads the bundle, watches,
and removes everything, without a line of code of Witness. It is text here, parsed and sent as expressions, which
`m:erl_eval` of the target evaluates; so it can be there before the first module is, and remove the last one.

A *slot* is one of a few names. It bounds the atoms that attaching makes at a node, however often it is done: modules in
slot 3 end in `$3`. The slot belongs to two processes, each registered by a name of it, which watch each other:

- the *cleaner* watches the process at the tool that attached, the connection to it, the guard, and its own spare. When
  one of them ends, or the tool has said nothing for the time of the lease, it kills every process that runs a module of
  the slot, ends their trace sessions, removes the modules, says so to the tool, and ends;
- the *spare* does the same when the cleaner dies before it is done.

Loading is one call, made by the cleaner: there is no moment when the tool may die and something may still be loaded
later. Should somebody kill both, the next one who claims the slot removes what they left.

The cleaner says to the tool, each with the tag that it was given:

| Message | |
|---|---|
| `{Tag, taken}` | the slot is somebody else's; the cleaner has ended |
| `{Tag, claimed, Cleaner}` | the slot is the tool's |
| `{Tag, started, Guard}` | the bundle is loaded, its guard runs |
| `{Tag, not_loaded, Reason}` | the code server has refused the bundle |
| `{Tag, over, Why}` | why it begins to clean: `lost`, `lease`, `spare` or `{guard, Reason}` |
| `{Tag, leaving, N, Of, Processes}` | it purges a module, for which so many processes are asked |
| `{Tag, clean}` | nothing is left |

and it takes `{Tag, load, Objects, {Module, Function, Args}}`, where the cleaner and its spare are put before the
arguments, `{Tag, alive}`, and `{Tag, leave}`.
""".

-export([slots/0, slot/1, claim/4]).

-export_type([slot/0, reference_tag/0]).

-doc "A slot by its number.".
-type slot() :: 1..8.

-doc "What all messages of an attachment begin with.".
-type reference_tag() :: reference().

-define(EVALUATED, ~"""
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

-doc "How modules are called in a slot.".
-spec slot(slot()) -> fun((module()) -> atom()).
slot(Slot) ->
    fun(Module) -> binary_to_atom(<<(atom_to_binary(Module))/binary, $$, (integer_to_binary(Slot))/binary>>) end.

-doc """
Starts a cleaner for a slot, with the names that modules and trace sessions may have there. The messages above come to the
calling process. The lease is in milliseconds.
""".
-spec claim(node(), slot(), {reference_tag(), Lease :: pos_integer()}, [module()]) -> pid().
claim(Node, Slot, {Tag, Lease}, Modules) ->
    Named = slot(Slot),
    Bindings = #{'Tool' => self(), 'Tag' => Tag, 'Lease' => Lease, 'Modules' => Modules,
                 'Name' => Named(witness), 'SpareName' => Named(witness_spare)},
    spawn(Node, erl_eval, exprs, [expressions(), Bindings]).

expressions() ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(?EVALUATED)),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    Expressions.
