-module(witness_search_spawn).
-moduledoc """
Starts controlled processes, and ends them. A process of this VM runs the function of a controlled one; the scheduler
(`m:witness_search_scheduler`) starts it with `start/5`, and it parks for the first time when it comes to its first operation.
""".

-export([start/5, spawn_child/3, hibernate/3, halt/2]).
-export([begin_process/5, awake/2]).

-export_type([apply/0]).

-doc "Calls a function as a call that is known only at run time: the first function of a process may be an operation itself.".
-type apply() :: fun((module(), atom(), [term()]) -> term()).

-doc "Starts the process of this VM that runs a controlled one.".
-spec start({pos_integer(), pid()}, witness_search_world:start(), Logging :: boolean(), [term()], apply()) -> pid().
start(Identity, Start, Logging, Options, Apply) ->
    {Pid, _} = erlang:spawn_opt(?MODULE, begin_process, [Identity, Start, self(), Logging, Apply],
                                [monitor | [Option || {fullsweep_after, _} = Option <- Options]]),
    Pid.

-doc false.
-spec begin_process({pos_integer(), pid()}, witness_search_world:start(), pid(), boolean(), apply()) -> no_return().
begin_process(Identity, Start, Scheduler, Logging, Apply) ->
    ok = witness_search_process:begin_control(Identity, Scheduler, Logging),
    run(Start, Apply).

-spec run(witness_search_world:start(), apply()) -> no_return().
run({Module, Function, Args}, Apply) ->
    try Apply(Module, Function, Args) of
        Value ->
            ok = witness_search_process:returns(Value, witness_search_process:current()),
            finish(normal)
    catch
        throw:Reason:Stack -> finish({{nocatch, Reason}, witness_search_results:of_program(Stack)});
        error:Reason:Stack -> finish({Reason, witness_search_results:of_program(Stack)});
        exit:Reason -> finish(Reason)
    end.

-spec finish(term()) -> no_return().
finish(Reason) ->
    ended = witness_search_process:perform({ended, Reason}, witness_search_process:current()),
    exit(normal).

-doc "The program spawns, by this function of `erlang`.".
-spec spawn_child(atom(), [term()], witness_search_process:control()) -> term().
spawn_child(Function, Args, C) ->
    _ = [witness_search_process:refuse({erlang, Function, length(Args)}, C)
         || witness_record_runtime:elsewhere(Args), is_atom(hd(Args))],
    case start_function(Args) of
        %% It fails.
        false ->
            try
                erlang:apply(erlang, Function, Args)
            catch
                Class:Reason ->
                    Number = witness_record_calls:number(erlang, Function, length(Args)),
                    ok = witness_search_process:log({raise, Number, {Class, Reason}}, C),
                    witness_search_results:raise(Class, Reason, erlang, Function, Args)
            end;
        {Start, Given} ->
            Options = options(Function, Given),
            _ = [ok = witness_search_process:fault(differs, {erlang, Function, length(Args)}, C) || {max_heap_size, _} <- Options],
            {spawned, Id, Pid, Ref} = witness_search_process:perform({spawn, Start, inherited, Options}, C),
            ok = witness_search_process:log({spawn, Id}, C),
            Value = value(Function, Pid, Ref, Options, C),
            _ = [ok = witness_search_process:log({result, witness_record_calls:number(erlang, Function, length(Args)), Value}, C)
                 || not is_pid(Value)],
            Value
    end.

value(spawn_request, Pid, Ref, Options, C) ->
    Tagged = case Ref of none -> witness_search_process:query(reference, C); _ -> Ref end,
    Tag = option(reply_tag, Options, spawn_reply),
    _ = [ok = witness_search_process:perform({reply_spawn, Tag, Tagged, Pid}, C)
         || lists:member(option(reply, Options, yes), [yes, success_only])],
    Tagged;
value(_, Pid, none, _, _) -> Pid;
value(_, Pid, Ref, _, _) -> {Pid, Ref}.

option(Key, Options, Default) -> case lists:keyfind(Key, 1, Options) of {Key, Value} -> Value; false -> Default end.

%% The arguments have a node or none; a fun, or a function with its arguments; options or none.
start_function([Node | Args]) when Node =:= node(), Args =/= [], not is_list(hd(Args)) ->
    case Args of
        [Fun | _] when is_function(Fun) -> start_function(Args);
        [_, Function | _] when is_atom(Function) -> start_function(Args);
        _ -> start(Node, Args)
    end;
start_function([First | Args]) -> start(First, Args).

start(Fun, Options) when is_function(Fun, 0), length(Options) =< 1 -> {{erlang, apply, [Fun, []]}, Options};
start(Module, [Function, Args | Options]) when is_atom(Module), is_atom(Function), length(Args) =< 255, length(Options) =< 1 ->
    {{Module, Function, Args}, Options};
start(_, _) -> false.

options(spawn_link, _) -> [link];
options(spawn_monitor, _) -> [{monitor, []}];
options(spawn, _) -> [];
options(_, [Options]) when is_list(Options) -> [case Option of monitor -> {monitor, []}; _ -> Option end || Option <- Options];
options(_, _) -> [].

-doc "The process waits for a message, and goes on with this function, or after the call.".
-spec hibernate([term()], apply(), witness_search_process:control()) -> term().
hibernate(Args, Apply, C) ->
    case witness_record_runtime:may_hibernate(Args) of
        true ->
            Number = witness_record_calls:number(erlang, hibernate, length(Args)),
            ok = witness_search_process:log({result, Number, ok}, C),
            woken = witness_search_process:perform({'receive', #{match => fun(_) -> true end, time => infinity, take => false}}, C),
            ok = witness_search_process:log({result, Number, true}, C),
            continue(Args, Apply);
        %% It fails.
        false -> erlang:apply(erlang, hibernate, Args)
    end.

continue([], _) -> ok;
continue([Module, Function, Args], Apply) ->
    %% The stack is discarded, so a process that hibernates again and again does not grow.
    self() ! {witness_search, awake},
    erlang:hibernate(?MODULE, awake, [{Module, Function, Args}, Apply]).

-doc false.
-spec awake(witness_search_world:start(), apply()) -> no_return().
awake(Start, Apply) ->
    receive {witness_search, awake} -> run(Start, Apply) end.

-doc "The program ends its VM: the run ends.".
-spec halt([term()], witness_search_process:control()) -> no_return().
halt(Args, C) ->
    witness_record_runtime:may_halt(Args) orelse witness_search_results:raise(error, badarg, erlang, halt, Args),
    witness_search_process:perform({halt, Args}, C),
    exit(kill).
