-module(witness_weave_functions_tests).
-moduledoc """
Functions that report their calls and returns: the reports are those of the VM's tracing, and the functions do what they did before.
That programs go on to do what they did is in `m:witness_weave_props_tests`.
""".
-include_lib("eunit/include/eunit.hrl").

-export([called/3, returned/4, entry/3, callback/3, init/2, received/1, blocks/1, wakes/1, sent/2]).

-define(M, witness_weave_case).
-define(JOURNAL, witness_weave_journal).

%% --- the same reports as the VM's tracing -----------------------------------------

reports_are_those_of_tracing_test_() ->
    {timeout, 60, fun() ->
        All = functions([call, return]),
        [begin
             Original = traced(Call, Functions),
             ?assertEqual({Call, Functions, Original}, {Call, Functions, reported(Call, Functions)}),
             ?assert(Functions =/= All orelse element(2, Original) =/= [])
         end || Functions <- [All, functions([call]), functions([return]), maps:with([{?M, fact, 1}], All), #{}], Call <- calls()]
    end}.

functions(Reports) -> #{{?M, F, A} => Reports || {F, A} <- own()}.

own() -> [{fact, 1}, {loop, 2}, {even, 1}, {only, 2}, {raises, 1}, {catches, 1}, {none, 0}, {local, 1}, {applies, 1}, {funs, 1},
          {binds, 1}, {tries, 1}].

calls() -> [{fact, [5]}, {fact, [-1]}, {loop, [4, []]}, {even, [4]}, {even, [3]}, {only, [1, b]}, {only, [a, 7]}, {only, [a, "7"]},
            {raises, [error]}, {raises, [exit]}, {raises, [throw]}, {raises, [return]}, {catches, [error]}, {catches, [return]},
            {none, []}, {applies, [3]}, {funs, [[1, 2]]}, {binds, [{a, 1}]}, {binds, [b]}, {tries, [error]}, {tries, [a]}].

code() ->
    """
    -module(witness_weave_case).
    -export([fact/1, loop/2, even/1, only/2, raises/1, catches/1, none/0, applies/1, funs/1, binds/1, tries/1]).
    fact(0) -> 1;
    fact(N) when N > 0 -> N * fact(N - 1).
    loop(0, Acc) -> Acc;
    loop(N, Acc) -> loop(N - 1, [N | Acc]).
    even(0) -> true;
    even(N) -> not even(N - 1).
    only(a, N) when is_integer(N), N > 3 -> {N, a};
    only(_ = 1, [_ | _]) -> list.
    raises(error) -> error(reason);
    raises(exit) -> exit(reason);
    raises(throw) -> throw(reason);
    raises(Other) -> Other.
    catches(How) -> catch raises(How).
    none() -> {none, local(2)}.
    local(X) -> X + 1.
    applies(N) -> F = fact, {apply(witness_weave_case, F, [N]), witness_weave_case:F(N), (fun fact/1)(1), (fun witness_weave_case:fact/1)(2)}.
    funs(L) -> {[local(X) || X <- L], lists:map(fun local/1, L), fun(X) -> local(X) end}.
    binds(V) -> case V of {a, X} -> Y = X; _ -> Y = 2 end, Y.
    tries(How) -> try raises(How) of V -> {of_it, V} catch Class:_ -> none(), Class after local(1) end.

    """.

%% What a call gives, and the events of tracing, for the original code.
traced({F, Args}, Functions) ->
    load(forms()),
    Tracer = self(),
    Session = trace:session_create(?MODULE, Tracer, []),
    _ = [1 = trace:function(Session, {?M, Name, A}, specification(Reports), [local]) || {_, Name, A} := Reports <- Functions],
    {P, Ref} = spawn_monitor(fun() -> receive go -> ok end, exit({result, result(F, Args)}) end),
    1 = trace:process(Session, P, true, [call]),
    P ! go,
    Result = receive {'DOWN', Ref, process, P, {result, Is}} -> Is end,
    Delivered = trace:delivered(Session, P),
    Events = events(P, Delivered),
    trace:session_destroy(Session),
    {Result, [E || E <- Events, lists:member(element(1, E), maps:get(function(E), Functions))]}.

specification(Reports) ->
    case lists:member(return, Reports) of
        true -> [{'_', [], [{return_trace}]}];
        false -> true
    end.

function({call, {M, F, Args}}) -> {M, F, length(Args)};
function({return, MFA, _}) -> MFA.

events(P, Delivered) ->
    receive
        {trace, P, call, MFA} -> [{call, MFA} | events(P, Delivered)];
        {trace, P, return_from, MFA, Value} -> [{return, MFA, plain(Value)} | events(P, Delivered)];
        {trace_delivered, P, Delivered} -> []
    end.

reported({F, Args}, Functions) ->
    load(witness_weave:weave(forms(), #{runtime => ?MODULE, functions => Functions})),
    put(?JOURNAL, []),
    Result = result(F, Args),
    {Result, lists:reverse(erase(?JOURNAL))}.

%% The value or exception, with the functions and lines of the module in the stack trace.
result(F, Args) ->
    try apply(?M, F, Args) of
        Value -> {value, plain(Value)}
    catch
        Class:Reason:Stack -> {Class, Reason, stack(Stack)}
    end.

stack(Stack) -> [{F, A, proplists:get_value(line, Info)} || {?M, F, A, Info} <- Stack].

plain({'EXIT', {Reason, [{_, _, _, _} | _] = Stack}}) -> {'EXIT', {Reason, stack(Stack)}};
plain({A, B, Fun}) when is_function(Fun) -> {A, B, erlang:fun_info(Fun, name)};
plain(Value) -> Value.

%% --- stack traces and tail calls --------------------------------------------------

%% Without reports of returns each body is in tail position.
tail_calls_stay_test() ->
    Forms = witness_weave_source:forms("""
        -module(witness_weave_case).
        -export([loop/1, other/1]).
        loop(0) -> element(2, erlang:process_info(self(), stack_size));
        loop(N) when N rem 2 =:= 0 -> other(N - 1);
        loop(N) -> receive never -> never after 0 -> loop(N - 1) end.
        other(N) -> witness_weave_case:loop(N).

        """),
    Size = fun(N, Reports) ->
        load(witness_weave:weave(Forms, #{runtime => ?MODULE, entries => all,
                                          functions => #{{?M, F, 1} => Reports || F <- [loop, other]}})),
        {_, Ref} = spawn_monitor(fun() -> exit(?M:loop(N)) end),
        receive {'DOWN', Ref, process, _, Is} when is_integer(Is) -> Is end
    end,
    ?assertEqual(Size(10, [call]), Size(100_000, [call])),
    ?assert(Size(1000, [call, return]) > 1000).

%% The frame of the function has the arguments of the failed call.
arguments_without_a_clause_stay_test() ->
    Stack = fun(Woven) ->
        load(Woven),
        try ?M:only(a, "7") catch error:function_clause:Found -> hd(Found) end
    end,
    Original = Stack(forms()),
    ?assertMatch({?M, only, [a, "7"], _}, Original),
    put(?JOURNAL, []),
    ?assertEqual(Original, Stack(witness_weave:weave(forms(), #{runtime => ?MODULE, functions => functions([call, return])}))),
    ?assertEqual([{call, {?M, only, [a, "7"]}}], erase(?JOURNAL)).

%% --- together with what a function asks -------------------------------------------

%% A function that the run time calls once more reports one call, inside that call.
asking_functions_report_one_call_test_() ->
    [?_assertEqual(Expected, begin
         load(witness_weave:weave(witness_weave_source:forms(Text), #{runtime => ?MODULE, entries => [{init, 1}, {first, 1}],
                                                                      functions => #{{?M, F, length(Args)} => [call, return]}})),
         put(?JOURNAL, []),
         _ = result(F, Args),
         erase('$witness_inline'),
         lists:reverse(erase(?JOURNAL))
     end)
     || Text <- ["-module(witness_weave_case).\n-behaviour(gen_server).\n"
                 "-export([first/1, init/1, handle_call/3, handle_cast/2]).\nfirst(1) -> 2.\ninit(X) -> {ok, X}.\n"
                 "handle_call(1, _, S) -> {reply, 2, S}.\nhandle_cast(_, S) -> {noreply, S}.\n"],
        {F, Args, Expected} <- [
            {first, [1], [{asked, entry}, {call, {?M, first, [1]}}, {return, {?M, first, 1}, 2}, {done, 2}]},
            {first, [2], [{asked, entry}, {call, {?M, first, [2]}}]},
            {init, [1], [{asked, init}, {asked, callback}, {call, {?M, init, [1]}}, {return, {?M, init, 1}, {ok, 1}},
                         {done, {ok, 1}}]},
            {handle_call, [1, f, s], [{asked, callback}, {call, {?M, handle_call, [1, f, s]}},
                                      {return, {?M, handle_call, 3}, {reply, 2, s}}, {done, {reply, 2, s}}]},
            {handle_call, [2, f, s], [{asked, callback}, {call, {?M, handle_call, [2, f, s]}}]}]].

%% --- compiled code ----------------------------------------------------------------

no_warnings_test() ->
    Options = [binary, return, warn_export_vars, warn_unused_vars, warn_shadow_vars],
    {ok, _, _, Original} = compile:noenv_forms(forms(), Options),
    [?assertMatch({ok, _, _, Original}, compile:noenv_forms(
        witness_weave:weave(forms(), #{runtime => ?MODULE, entries => Entries, functions => functions(Reports)}), Options))
     || Entries <- [[], all], Reports <- [[call], [return], [call, return]]].

%% From object code, with all passes of preparation; also with the waits of receives.
funs_keep_their_names_and_hashes_test() ->
    Code = witness_weave_source:code("""
        -module(witness_weave_case).
        -export([f/1]).
        f(X) ->
            F = fun(Y) -> X + Y end,
            receive {a, A} -> [A + B || B <- [1, 2]] after 0 -> ok end,
            {F, fun Named(0) -> X; Named(N) -> Named(N - 1) end, fun() -> self() ! X end, none}.

        """, []),
    Funs = fun(Object) ->
        {module, ?M} = code:load_binary(?M, "case", Object),
        Made = ?M:f(1),
        {Made, [{erlang:phash2(Fun), [erlang:fun_info(Fun, Item) || Item <- [name, index, uniq]]}
                || Fun <- lists:droplast(tuple_to_list(Made))]}
    end,
    {_, Original} = Funs(Code),
    [begin
         {ok, #{woven := Woven}} = witness_weave:prepare({?M, "", Code},
                                                         Plan#{runtime => ?MODULE, functions => #{{?M, f, 1} => [call, return]}}),
         put(?JOURNAL, []),
         {Made, Funs1} = Funs(Woven),
         ?assertEqual({Plan, Original}, {Plan, Funs1}),
         ?assertEqual([{return, {?M, f, 1}, Made}, {call, {?M, f, [1]}}], erase(?JOURNAL))
     end || Plan <- [#{}, #{waits => blocked}]].

forms() -> witness_weave_source:forms(code()).

load(Forms) ->
    {ok, ?M, Code} = compile:noenv_forms(Forms, [binary]),
    code:purge(?M),
    {module, ?M} = code:load_binary(?M, "case", Code).

%% --- a run-time module ------------------------------------------------------------

note(Entry) -> put(?JOURNAL, [Entry | case get(?JOURNAL) of undefined -> []; Entries -> Entries end]).

called(M, F, Args) -> note({call, {M, F, Args}}).

returned(M, F, Arity, Value) -> note({return, {M, F, Arity}, plain(Value)}).

entry(M, F, Args) ->
    note({asked, entry}),
    once_more(M, F, Args).

init(M, Args) ->
    note({asked, init}),
    put('$witness_inline', observed),
    {done, note_done(apply(M, init, Args))}.

%% As for nested callbacks, the second call goes on.
callback(M, F, Args) ->
    case get(?MODULE) of
        undefined when F =/= init ->
            note({asked, callback}),
            put(?MODULE, nested),
            try {done, note_done(apply(M, F, Args))} after erase(?MODULE) end;
        undefined ->
            note({asked, callback}),
            go;
        nested -> go
    end.

once_more(M, F, Args) ->
    put('$witness_inline', observed),
    {done, note_done(apply(M, F, Args))}.

note_done(Value) ->
    note({done, Value}),
    Value.

received(_) -> ok.

blocks(_) -> none.

wakes(_) -> ok.

sent(_, _) -> ok.
