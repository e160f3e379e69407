-module(witness_recorded_calls).
-moduledoc """
Makes calls in every way that there is, each in a process of its own, and says what came of each: the value or the exception,
and what the process sees of it afterwards.

The module `Written` has what `m:witness_calls_program` has written. The module `Arguments` has the arguments of each call:
`entries/1`, `failing/1`, `is_called/1`, `stack/1` and `seen/1`, as `m:witness_recorded_arguments`. A key is `{MFA, N, Way}`:
the function, the number of its arguments in `cases/2`, and the way in which it is called.
""".
-export([run/3, told/4, outcomes/3, cases/2, is_by_maker/1, is_woven/1, plain/1, expect/1, expect_own/1, messages/0]).
-export([one/4, first/4, sleeping/4]).

-doc "The process ends with all that came of it.".
run(Written, Arguments, Modules) -> exit({outcomes, outcomes(Written, Arguments, Modules)}).

-doc "The collector is told all that came of it.".
told(Collector, Written, Arguments, Modules) -> Collector ! {outcomes, outcomes(Written, Arguments, Modules)}.

-doc "For each function of these modules, number of its arguments, and way: what came of it.".
outcomes(Written, Arguments, Modules) ->
    ok = logger:set_primary_config(level, none),
    %% Frames that are added to a stack trace must not cut others off.
    _ = erlang:system_flag(backtrace_depth, 60),
    [{Key, shape(How, isolated(Written, Arguments, Key, I))}
     || {I, {M, _, _} = MFA} <- Written:rows(), lists:member(M, Modules),
        {N, {How, _}} <- lists:enumerate(cases(Arguments, MFA)),
        {Way, _} <- ways(How), Key <- [{MFA, N, Way}], Arguments:is_called(Key)].

-doc "The arguments of a call, or functions that make them, each with what is the same in every run.".
cases(Arguments, {M, F, A} = MFA) ->
    [{How, Args} || {How, Name, Args} <- Arguments:entries(M), Name =:= F, length(Args) =:= A]
        ++ [{How, Make} || {How, Name, Arity, Make} <- Arguments:entries(M), Name =:= F, Arity =:= A]
        ++ [{same, Failing} || Failing <- Arguments:failing(MFA)].

made(Make) when is_function(Make) -> Make();
made(Args) -> [case Arg of node -> node(); self -> self(); _ -> Arg end || Arg <- Args].

isolated(Written, Arguments, Key, I) ->
    {Pid, Ref} = spawn_monitor(?MODULE, one, [Written, Arguments, Key, I]),
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason end.

-doc false.
one(Written, Arguments, {MFA, N, Way} = Key, I) ->
    {How, Make} = lists:nth(N, cases(Arguments, MFA)),
    put(first, lists:keymember(Way, 1, first())),
    Args = made(Make),
    {Way, Do} = lists:keyfind(Way, 1, ways(How)),
    Outcome = case Do({Written, I, Key}, MFA, Args) of
        {value, Value} when How =:= handle -> {value, kind(Value)};
        %% The order of a dictionary depends on the number of its entries, also of hidden ones.
        {value, [_ | _] = List} when element(1, MFA) =:= erlang, element(2, MFA) =:= erase orelse element(2, MFA) =:= get
                                     orelse element(2, MFA) =:= get_keys -> {value, lists:sort(List)};
        {Class, Reason, Stack} -> {Class, Reason, Arguments:stack(Stack)};
        Other -> Other
    end,
    Seen = Arguments:seen(Args),
    %% The exit must not end what the process has spawned.
    {links, Links} = process_info(self(), links),
    _ = [unlink(Link) || Link <- Links],
    exit({outcome, Outcome, Seen}).

%% --- ways ------------------------------------------------------------------------

%% Only the process that made such arguments can use them: its messages, and the one that wakes it.
ways(mine) -> by_maker();
ways(_) -> by_maker() ++ first().

by_maker() -> written() ++ known_later().

-doc "Whether the process that has made the arguments makes the call.".
is_by_maker(Way) -> lists:keymember(Way, 1, by_maker()).

-doc "Whether the call is in the text of a woven module, in whatever way.".
is_woven(Way) -> is_by_maker(Way) orelse lists:keymember(Way, 1, begun()).

written() ->
    [{Way, fun({Written, I, _}, _, Args) -> tried(fun() -> Written:Way(I, Args) end) end}
     || Way <- [direct, tail, applied, called, caught]]
        ++ [{function, fun({Written, I, _}, _, Args) -> tried(fun() -> {value, apply(Written:function(I), Args)} end) end}].

%% The module, the function, or both, and the arguments are known when the call is made.
known_later() ->
    [{later, fun(_, {M, F, _}, Args) -> tried(fun() -> {value, apply(M, F, Args)} end) end},
     {spread, fun(_, {M, F, _}, Args) -> tried(fun() -> {value, spread(M, F, Args)} end) end},
     {made, fun(_, {M, F, A}, Args) -> tried(fun() -> {value, apply(erlang:make_fun(M, F, A), Args)} end) end}].

spread(M, F, []) -> M:F();
spread(M, F, [A]) -> M:F(A);
spread(M, F, [A, B]) -> M:F(A, B);
spread(M, F, [A, B, C]) -> M:F(A, B, C);
spread(M, F, [A, B, C, D]) -> M:F(A, B, C, D);
spread(M, F, Args) -> apply(M, F, Args).

tried(Do) ->
    try Do() of
        {raised, Class, Reason, Stack} -> {Class, Reason, Stack};
        Outcome -> Outcome
    catch
        Class:Reason:Stack -> {Class, Reason, Stack}
    end.

%% The first function of a process, or the next one of a process that has slept.
first() ->
    [{Way, fun(_, {M, F, _}, Args) -> Do(M, F, Args) end}
     || {Way, Do} <- [
            {spawn_1, fun(M, F, As) -> ended(spawn(fun() -> apply(M, F, As) end)) end},
            {spawn_3, fun(M, F, As) -> ended(spawn(M, F, As)) end},
            {spawn_4, fun(M, F, As) -> ended(spawn(node(), M, F, As)) end},
            {spawn_apply, fun(M, F, As) -> monitored(spawn_monitor(erlang, apply, [M, F, As])) end},
            {spawn_link_3, fun(M, F, As) -> linked(fun() -> spawn_link(M, F, As) end) end},
            {spawn_link_4, fun(M, F, As) -> linked(fun() -> spawn_link(node(), M, F, As) end) end},
            {spawn_monitor_1, fun(M, F, As) -> monitored(spawn_monitor(fun() -> apply(M, F, As) end)) end},
            {spawn_monitor_3, fun(M, F, As) -> monitored(spawn_monitor(M, F, As)) end},
            {spawn_monitor_4, fun(M, F, As) -> monitored(spawn_monitor(node(), M, F, As)) end},
            {spawn_opt_4, fun(M, F, As) -> monitored(spawn_opt(M, F, As, [monitor])) end},
            {spawn_opt_5, fun(M, F, As) -> monitored(spawn_opt(node(), M, F, As, [monitor])) end},
            {spawn_request_3, fun(M, F, As) -> requested(spawn_request(M, F, As), ended) end},
            {spawn_request_4, fun(M, F, As) -> requested(spawn_request(M, F, As, [monitor]), monitored) end},
            {spawn_request_5, fun(M, F, As) -> requested(spawn_request(node(), M, F, As, [monitor]), monitored) end},
            {proc_lib_spawn_3, fun(M, F, As) -> ended(proc_lib:spawn(M, F, As)) end},
            {proc_lib_spawn_4, fun(M, F, As) -> ended(proc_lib:spawn(node(), M, F, As)) end},
            {proc_lib_spawn_link_3, fun(M, F, As) -> linked(fun() -> proc_lib:spawn_link(M, F, As) end) end},
            {proc_lib_spawn_link_4, fun(M, F, As) -> linked(fun() -> proc_lib:spawn_link(node(), M, F, As) end) end},
            {proc_lib_spawn_opt_4, fun(M, F, As) -> monitored(proc_lib:spawn_opt(M, F, As, [monitor])) end},
            {proc_lib_spawn_opt_5, fun(M, F, As) -> monitored(proc_lib:spawn_opt(node(), M, F, As, [monitor])) end},
            {proc_lib_start, fun(M, F, As) -> proc_lib:start(M, F, As) end},
            {proc_lib_start_link, fun(M, F, As) -> process_flag(trap_exit, true), proc_lib:start_link(M, F, As) end},
            {proc_lib_start_monitor, fun(M, F, As) -> {Started, Ref} = proc_lib:start_monitor(M, F, As), {Started, gone(Ref)} end},
            {hibernate, fun(M, F, As) ->
                {Pid, _} = Begun = spawn_monitor(fun() -> erlang:hibernate(M, F, As) end),
                Pid ! wake,
                monitored(Begun)
            end}]]
    ++ begun().

%% The process begins with a function of the written module, which makes the call last.
begun() ->
    [{Way, fun({Written, I, Key}, _, Args) -> Do(?MODULE, first, [Key, Written, I, Args]) end}
        || {Way, Do} <- [
            {first_spawned, fun(M, F, As) -> monitored(spawn_monitor(M, F, As)) end},
            {first_fun, fun(M, F, As) -> monitored(spawn_monitor(fun() -> apply(M, F, As) end)) end},
            {first_proc_lib, fun(M, F, As) -> monitored(proc_lib:spawn_opt(M, F, As, [monitor])) end},
            {first_started, fun(M, F, As) -> {Started, Ref} = proc_lib:start_monitor(M, F, As), {Started, gone(Ref)} end}]]
    ++ [{first_sleeping, fun({_, _, Key}, {M, F, _}, Args) ->
            {Pid, _} = Begun = spawn_monitor(?MODULE, sleeping, [Key, M, F, Args]),
            Pid ! wake,
            monitored(Begun)
        end}].

-doc false.
first(_Key, Written, I, Args) -> Written:tail(I, Args).

-doc false.
sleeping(_Key, M, F, Args) -> erlang:hibernate(M, F, Args).

%% If it ended before it was monitored, its exit reason is not known.
ended(Pid) ->
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, Pid, _} -> ended end.

monitored({_, Ref}) -> gone(Ref).

gone(Ref) -> receive {'DOWN', Ref, process, _, Reason} -> {exit, Reason} end.

linked(Begin) ->
    process_flag(trap_exit, true),
    Pid = Begin(),
    receive {'EXIT', Other, Reason} when Other =:= Pid -> {exit, Reason} end.

requested(Ref, How) ->
    receive
        {spawn_reply, Ref, ok, Pid} when How =:= ended -> ended(Pid);
        {spawn_reply, Ref, ok, _} -> gone(Ref);
        {spawn_reply, Ref, error, Reason} -> {error, Reason}
    end.

%% --- what comes because of a call ------------------------------------------------

-doc "`messages/0` waits for so many messages. Without it, whether they have come depends on the schedule.".
expect(N) -> put(expected, N).

-doc "The same, of messages that come to the process that makes the call.".
expect_own(N) -> get(first) orelse expect(N).

-doc "The messages that came to the process that has made the arguments.".
messages() -> messages(case get(expected) of undefined -> 0; N -> N end).

messages(0) -> receive Msg -> [Msg | messages(0)] after 0 -> [] end;
messages(N) -> receive Msg -> [Msg | messages(N - 1)] after 10_000 -> [missing] end.

%% --- what is compared ------------------------------------------------------------

shape(kind, {outcome, {value, Value}, Seen}) -> {outcome, {value, kind(Value)}, plain(Seen)};
%% The messages, too, may show whether the answer is the result or comes as a message.
shape(some, {outcome, {value, _}, Seen}) -> {outcome, {value, some}, plain(Seen#{messages := some})};
shape(_, Outcome) -> plain(Outcome).

-doc """
What is the same in every run. Identifiers differ in each VM, and so do arguments in stack traces. The funs that replace calls
differ, too.
""".
plain({M, F, Args, Info}) when is_atom(M), is_atom(F), is_list(Info) -> {M, named(F), arity(Args), [Line || {line, Line} <- Info]};
plain([{M, F, _, Info} = Frame | Tail]) when is_atom(M), is_atom(F), is_list(Info) ->
    case is_own(M, F) of true -> plain(Tail); false -> [plain(Frame) | plain(below({M, F}, Tail))] end;
plain([Head | Tail]) -> [plain(Head) | plain(Tail)];
plain(Tuple) when is_tuple(Tuple) -> list_to_tuple([plain(Element) || Element <- tuple_to_list(Tuple)]);
plain(Map) when is_map(Map) -> #{plain(Key) => plain(Value) || Key := Value <- Map};
plain(Term) when is_pid(Term); is_reference(Term); is_port(Term); is_function(Term) -> kind(Term);
plain(Term) -> Term.

%% Leaves out the frames that are added to a stack trace, and the function below them that is called once more.
below({M, F}, [{M, F, _, _} | Tail]) -> below({M, F}, Tail);
below(Function, [{M, F, _, _} | Tail] = Frames) when is_atom(M), is_atom(F) ->
    case is_own(M, F) of true -> below(Function, Tail); false -> Frames end;
below(_, Frames) -> Frames.

%% If the first function of a process is called once more, it is in a stack trace. If a function fails in its last call, and that is
%% of a function of the VM, it is not.
is_own(?MODULE, first) -> true;
is_own('Elixir.Agent.Server', run) -> true;
is_own(Module, Function) ->
    lists:prefix("tail_", atom_to_list(Function)) orelse is_own(Module).

is_own(Module) ->
    lists:any(fun(Prefix) -> lists:prefix(Prefix, atom_to_list(Module)) end,
              ["witness_record_runtime", "witness_weave_", "witness_inline_"]).

%% The compiler makes one of the other.
named('!') -> send;
named(Function) -> Function.

arity(Args) when is_list(Args) -> length(Args);
arity(Arity) -> Arity.

kind(Term) when is_pid(Term) -> '$pid';
kind(Term) when is_reference(Term) -> '$reference';
kind(Term) when is_port(Term) -> '$port';
kind(Term) when is_function(Term) -> {'$fun', element(2, erlang:fun_info(Term, arity))};
kind(Term) when is_list(Term) -> '$list';
kind(Term) when is_tuple(Term) -> list_to_tuple([kind(Element) || Element <- tuple_to_list(Term)]);
kind(Term) when is_number(Term) -> '$number';
kind(Term) when is_binary(Term) -> '$binary';
kind(Term) when is_map(Term) -> '$map';
kind(Term) when is_atom(Term) -> '$atom'.
