-module(witness_search_outside).
-moduledoc """
What a message has in common with processes outside: pids and aliases (`m:witness_search_identity`).

The pids and aliases of the program mean nothing in this VM. So a message that leaves the program gets others (`real/2`), and one that
comes back is changed back (`virtual/1`).

*Aliases.* Whether one is active is for the world alone to say: it may have been used or given up by a step. So a process outside gets an
alias of a helper process, which is always active and passes on what comes, with the name that the alias has in the world. There is one
helper for each alias that leaves the program. It ends with the process that has sent it.
""".

-export([real/2, virtual/1, via/1]).

%% What a helper passes on.
-define(ALIAS, '$witness_search_alias').

-doc "The message with pids and aliases of this VM, and whether it says where an answer to the caller goes.".
-spec real(term(), witness_search_process:control()) -> {term(), boolean()}.
real(Message, C) -> real(Message, false, C).

real([Head | Tail], Answers0, C) ->
    {RealHead, Answers1} = real(Head, Answers0, C),
    {RealTail, Answers} = real(Tail, Answers1, C),
    {[RealHead | RealTail], Answers};
real(Tuple, Answers0, C) when is_tuple(Tuple) ->
    {Elements, Answers} = real(tuple_to_list(Tuple), Answers0, C),
    {list_to_tuple(Elements), Answers};
real(#{} = Map, Answers0, C) ->
    {Pairs, Answers} = real(maps:to_list(Map), Answers0, C),
    {maps:from_list(Pairs), Answers};
real(Pid, Answers, C) when is_pid(Pid) ->
    case witness_search_process:pid(C) of
        Pid -> {self(), true};
        _ -> {witness_search_process:query({real, Pid}, C), Answers}
    end;
real(Ref, Answers, C) when is_reference(Ref) ->
    case witness_search_process:aliases() of
        #{Ref := Real} -> {Real, true};
        #{} ->
            case witness_search_process:query({is_alias, Ref}, C) of
                true -> {help(Ref), true};
                false -> {Ref, Answers}
            end
    end;
real(Term, Answers, _) -> {Term, Answers}.

help(Ref) ->
    Own = self(),
    Tag = make_ref(),
    _ = spawn(fun() ->
        Monitor = monitor(process, Own),
        Own ! {Tag, alias()},
        pass_on(Own, Monitor, Ref)
    end),
    Real = receive {Tag, Alias} -> Alias end,
    ok = witness_search_process:keep_alias(Ref, Real),
    Real.

pass_on(Own, Monitor, Ref) ->
    receive
        {'DOWN', Monitor, process, Own, _} -> ok;
        Message ->
            Own ! {?ALIAS, Ref, Message},
            pass_on(Own, Monitor, Ref)
    end.

-doc "A message of this VM: the alias of the program to which it has come, and its content.".
-spec via(term()) -> {none | reference(), Content :: term()}.
via({?ALIAS, Ref, Message}) -> {Ref, virtual(Message)};
via(Message) -> {none, virtual(Message)}.

-doc "What has come from outside, with the pids and aliases of the program.".
-spec virtual(term()) -> term().
virtual(Message) -> virtual(Message, #{Real => Ref || Ref := Real <- witness_search_process:aliases()}).

virtual([Head | Tail], Refs) -> [virtual(Head, Refs) | virtual(Tail, Refs)];
virtual(Tuple, Refs) when is_tuple(Tuple) -> list_to_tuple(virtual(tuple_to_list(Tuple), Refs));
virtual(#{} = Map, Refs) -> #{virtual(Key, Refs) => virtual(Value, Refs) || Key := Value <- Map};
virtual(Pid, _) when is_pid(Pid) -> witness_search_memory:virtual_pid(Pid);
virtual(Ref, Refs) when is_map_key(Ref, Refs) -> map_get(Ref, Refs);
virtual(Term, _) -> Term.
