-module(witness_weave_journal).
-moduledoc """
What a program does and says, and what a run-time module says that it does: in one journal, in the order of each process.

Generated programs (`witness_weave_program`) call the functions of the second group. `run/1` runs one, waits until all
its processes have ended, and gives the journal of each of them under a name that does not depend on the run: `root`, or
`{Parent, N}` for the Nth child of `Parent`. Process identifiers, references and funs are replaced by their names, and
stack traces reduced to functions and lines of the program.
""".

-export([run/1, write/1, signature/1, reason/3]).
-export([born/2, parent/0, log/1, sent/1, forked/3, eff/2, say/1, num/1, bool/1, list/1, byte/1, caught/1, id/1]).

-define(TABLE, ?MODULE).

-doc """
The journal of each process, with how it ended. `overdue` after ten seconds.

`Start` starts the program. Its first process is the first one that says that it was born.
""".
run(Start) ->
    ?TABLE = ets:new(?TABLE, [named_table, public, ordered_set]),
    Depth = erlang:system_flag(backtrace_depth, 100),
    try
        Start(self()),
        Timer = erlang:start_timer(10_000, self(), overdue),
        Root = receive {born, P} -> P; {timeout, Timer, overdue} -> overdue end,
        Ends = is_pid(Root) andalso begin
            _ = monitor(process, Root),
            Root ! {?MODULE, go},
            wait(#{Root => born}, #{}, Timer)
        end,
        _ = erlang:cancel_timer(Timer),
        receive {timeout, Timer, overdue} -> ok after 0 -> ok end,
        journals(Root, Ends)
    after
        erlang:system_flag(backtrace_depth, Depth),
        ets:delete(?TABLE)
    end.

%% When a process says that it was born, it is answered as soon as it is monitored. Its parent is answered only then, so that
%% a link cannot end the child before it traps exits.
wait(Ends, Waiting, Timer) ->
    case [P || P := End <- Ends, End =:= unborn orelse End =:= born] of
        [] ->
            Ends;
        Running ->
            receive
                {born, P} ->
                    is_map_key(P, Ends) orelse monitor(process, P),
                    P ! {?MODULE, go},
                    wait(Ends#{P => born}, answered(P, Waiting), Timer);
                {forked, P, Parent} when not is_map_key(P, Ends) ->
                    _ = monitor(process, P),
                    wait(Ends#{P => unborn}, Waiting#{P => Parent}, Timer);
                {forked, _, Parent} ->
                    Parent ! {?MODULE, go},
                    wait(Ends, Waiting, Timer);
                {'DOWN', _, process, P, Reason} ->
                    wait(Ends#{P := {ended, Reason}}, answered(P, Waiting), Timer);
                {timeout, Timer, overdue} ->
                    [exit(P, kill) || P <- Running],
                    _ = [receive {'DOWN', _, process, P, _} -> ok end || P <- Running],
                    overdue
            end
    end.

answered(P, Waiting) ->
    case maps:take(P, Waiting) of
        {Parent, Rest} ->
            Parent ! {?MODULE, go},
            Rest;
        error ->
            Waiting
    end.

journals(_, Ends) when not is_map(Ends) ->
    overdue;
journals(Root, Ends) ->
    Entries = [Entry || {_, Entry} <- ets:tab2list(?TABLE)],
    Names = names(Root, root, Entries, #{}),
    #{Name => {[plain(Entry, Names) || {P, Entry} <- Entries, P =:= Process], plain(ending(maps:get(Process, Ends)), Names)}
      || Process := Name <- Names}.

%% If a process died before it was monitored, its exit reason is not known.
ending({ended, noproc}) -> unknown;
ending({ended, Reason}) -> Reason.

names(Process, Name, Entries, Names) ->
    Children = [Child || {P, {said, {fork, Child, _}}} <- Entries, P =:= Process],
    lists:foldl(fun({I, Child}, Acc) -> names(Child, {Name, I}, Entries, Acc) end, Names#{Process => Name},
                lists:enumerate(Children)).

plain(Term, Names) when is_pid(Term) -> maps:get(Term, Names, process);
plain(Term, _) when is_reference(Term) -> reference;
plain(Term, _) when is_port(Term) -> port;
plain(Term, _) when is_function(Term) -> signature(Term);
plain([{M, F, A, Info} | _] = Stack, Names) when is_atom(M), is_atom(F), is_list(Info), is_integer(A) orelse is_list(A) ->
    try
        {stack, plain(frames(Stack), Names)}
    catch
        throw:no_stack -> [plain(Term, Names) || Term <- Stack]
    end;
plain([Head | Tail], Names) -> [plain(Head, Names) | plain(Tail, Names)];
plain(Term, Names) when is_tuple(Term) -> list_to_tuple(plain(tuple_to_list(Term), Names));
plain(Term, Names) when is_map(Term) -> maps:from_list(plain(maps:to_list(Term), Names));
plain(Term, _) -> Term.

%% Functions of a run-time module are below the first function of a process, and around calls that it makes.
frames(Stack) ->
    Kept = lists:takewhile(fun({M, F, _, _}) -> not bottom(M, F) end, [frame(Frame) || Frame <- Stack]),
    [{M, F, Arity, Line} || {M, F, Arity, Line} <- Kept, not runtime(M), M =/= proc_lib].

bottom(witness_weave_recorder, F) ->
    lists:member(F, [watched, resume]) orelse lists:prefix("-started", atom_to_list(F));
bottom(witness_inline_end, run) ->
    true;
bottom(_, _) ->
    false.

runtime(M) -> M =:= witness_weave_recorder orelse lists:prefix("witness_inline", atom_to_list(M)).

frame({M, F, Args, Info}) when is_list(Args) -> {M, F, length(Args), proplists:get_value(line, Info)};
frame({M, F, Arity, Info}) -> {M, F, Arity, proplists:get_value(line, Info)};
frame(_) -> throw(no_stack).

-doc "Adds to the journal of the process.".
write(Entry) ->
    ets:insert(?TABLE, {erlang:unique_integer([monotonic]), {self(), Entry}}),
    ok.

-doc "A fun as a signature.".
signature(Fun) ->
    {module, Module} = erlang:fun_info(Fun, module),
    {name, Name} = erlang:fun_info(Fun, name),
    {Module, Name, []}.

-doc "The exit reason of a process that an exception has ended.".
reason(exit, Reason, _) -> Reason;
reason(error, Reason, Stack) -> {Reason, Stack};
reason(throw, Value, Stack) -> {{nocatch, Value}, Stack}.

%% What programs call

-doc "The first thing that a process does.".
born(Parent, Signature) ->
    put(parent, Parent),
    process_flag(trap_exit, true),
    log({init, case Signature of Fun when is_function(Fun) -> signature(Fun); _ -> Signature end}),
    ets:info(?TABLE, owner) ! {born, self()},
    receive {?MODULE, go} -> ok end.

parent() -> get(parent).

-doc "What the program says that it has done.".
log(Event) -> write({said, Event}).

-doc "What it has sent to itself.".
sent(Msg) ->
    log({send, self(), Msg}),
    Msg.

forked(Child, Signature, Value) ->
    ets:info(?TABLE, owner) ! {forked, Child, self()},
    receive {?MODULE, go} -> ok end,
    log({fork, Child, case Signature of Fun when is_function(Fun) -> signature(Fun); _ -> Signature end}),
    Value.

-doc "An effect. Its place among the others is part of what a program does.".
eff(Name, Value) ->
    write({effect, Name, Value}),
    Value.

say(Value) ->
    write({value, Value}),
    Value.

num(N) when is_integer(N) -> N rem 1000;
num(_) -> 3.

bool(true) -> true;
bool(N) when is_integer(N) -> N rem 2 =:= 0;
bool(_) -> false.

list(Value) -> [Value, 1, Value].

byte(Value) -> num(Value) band 255.

caught({'EXIT', {Reason, Stack}}) -> {caught, Reason, Stack};
caught(Value) -> Value.

id(Term) -> Term.
