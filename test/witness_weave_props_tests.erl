-module(witness_weave_props_tests).
-moduledoc """
Woven programs do what the original ones do, and the run-time module is told exactly what they say that they do.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([show/2, judge/2]).

-define(PROGRAM, witness_weave_generated).

%% A program that shows a fault is among so many.
-define(TO_FIND, 2000).
-define(QUIET, [noshrink, quiet, {start_size, 20}, {max_size, 60}]).

%% Processes that crash are reported by the VM and by proc_lib.
weave_test_() ->
    {setup,
     fun() ->
         #{level := Level} = logger:get_primary_config(),
         ok = logger:set_primary_config(level, none),
         Level
     end,
     fun(Level) -> logger:set_primary_config(level, Level) end,
     [{"woven programs do the same and tell it", {timeout, 600, fun programs_do_the_same_and_tell_it/0}},
      {"inline monitors are given what programs do", {timeout, 600, fun inline_monitors_are_given_what_programs_do/0}},
      {"programs whose sends are replaced do the same", {timeout, 600, fun replaced_sends_do_the_same/0}},
      {"programs whose functions report do the same", {timeout, 600, fun reporting_functions_do_the_same/0}},
      witness_mutant:can_be_planted(faults() ++ faults_of_replacing() ++ faults_of_reporting())
      | [{Name, {timeout, 600, fun() -> fault_is_found(Fault) end}}
         || {Name, _, _, _} = Fault <- witness_share:of_all(faults())]
      ++ [{Name, {timeout, 600, fun() -> fault_is_found(Fault, Plan) end}}
          || {Faults, Plan} <- [{faults_of_replacing(), replacing()}, {faults_of_reporting(), reporting([call, return])}],
             {Name, _, _, _} = Fault <- witness_share:of_all(Faults)]]}.

programs_do_the_same_and_tell_it() -> ?assertEqual(true, check(witness_weave, #{}, programs(), [{to_file, user}])).

replaced_sends_do_the_same() -> ?assertEqual(true, check(witness_weave, replacing(), programs(), [{to_file, user}])).

%% What they report is in `m:witness_weave_functions_tests'.
reporting_functions_do_the_same() ->
    [?assertEqual({Reports, true}, {Reports, check(witness_weave, reporting(Reports), programs() div 2, [{to_file, user}])})
     || Reports <- [[call], [call, return]]].

reporting(Reports) -> #{functions => Reports}.

replacing() -> #{sends => replaced, timeouts => true, waits => true}.

fault_is_found(Fault) -> fault_is_found(Fault, #{}).

fault_is_found({_, Module, Find, Replace}, Plan) ->
    Weaver = witness_weave_mutant:load(Module, Find, Replace),
    try ?assertEqual(false, check(Weaver, Plan, ?TO_FIND, ?QUIET)) after witness_weave_mutant:forget() end.

faults_of_replacing() ->
    [{Name, witness_weave_expr, Find, Replace} || {Name, Find, Replace} <- [
        {"every send is done by the code", "[is_another(G, ToVar)], Announced ++", "[[{atom, G, true}]], Announced ++"},
        {"what is sent to others is sent the wrong way round", "[ToVar, MsgVar], Context),\n               Announced",
         "[MsgVar, ToVar], Context),\n               Announced"},
        {"a time that is over is the value", "[remote(generated(Anno), Context, timeout, []) | After]",
         "After ++ [remote(generated(Anno), Context, timeout, [])]"}]].

faults_of_reporting() ->
    [{Name, witness_weave_entry, Find, Replace} || {Name, Find, Replace} <- [
        {"a body runs after its return", "Report(returned, [{integer, G, length(Args)}, Result]), Result]",
         "Report(returned, [{integer, G, length(Args)}, Result]) | Body]"},
        {"a value is not returned", "Report(returned, [{integer, G, length(Args)}, Result]), Result]",
         "Report(returned, [{integer, G, length(Args)}, Result])]"},
        {"exceptions of a function that reports are caught", "{match, G, Result, {block, G, Body}}",
         "{match, G, Result, {'catch', G, {block, G, Body}}}"}]].

faults() ->
    [{Name, witness_weave_expr, Find, Replace} || {Name, Find, Replace} <- [
        {"the receiver is evaluated after the message",
         "{match, G, {tuple, G, [ToVar, MsgVar]}, {tuple, G, [To, Msg]}}",
         "{match, G, {tuple, G, [MsgVar, ToVar]}, {tuple, G, [Msg, To]}}"},
        {"a send has another value", "                Value];", "                ToVar];"},
        {"a send is told before it is done",
         "{match, G, Value, Send(ToVar, MsgVar)},\n                          remote(G, Context, sent, [ToVar, MsgVar]),",
         "remote(G, Context, sent, [ToVar, MsgVar]),\n                          {match, G, Value, Send(ToVar, MsgVar)},"},
        {"a send is told the wrong way round", "sent, [ToVar, MsgVar]),\n                          Value]",
         "sent, [MsgVar, ToVar]),\n                          Value]"},
        {"a send is done twice", "{match, G, Value, Send(ToVar, MsgVar)},",
         "{match, G, Value, Send(ToVar, MsgVar)}, Send(ToVar, MsgVar),"},
        {"two sends of a function share variables", "N + 3};", "N};"},
        {"a receive shares its variable with what is in it", "nodes(Body, Context, N + 1)", "nodes(Body, Context, N)"},
        {"a message is told when its clause is done",
         "[remote(generated(Anno), Context, received, [Msg]) | Body1]",
         "Body1 ++ [remote(generated(Anno), Context, received, [Msg])]"},
        {"a message is not told", "[remote(generated(Anno), Context, received, [Msg]) | Body1]", "Body1"},
        {"the last part of a try is not woven", "{After1, N2} = nodes(After, Context, N1),\n    {{'try'",
         "{After1, N2} = {After, N1},\n    {{'try'"},
        {"what handles exceptions is not woven", "{{'try', Anno, Body1, Of1, Catch1,", "{{'try', Anno, Body1, Of1, Catch,"},
        {"what comes after a time is not woven", "{After1, N3} = nodes(After, Context, N2)", "{After1, N3} = {After, N2}"},
        {"the time itself is not woven", "{Timeout1, N2} = node(Timeout, Context, N1)", "{Timeout1, N2} = {Timeout, N1}"},
        {"funs are not woven", "{{'fun', Anno, {clauses, Woven}}, N1}", "{{'fun', Anno, {clauses, Clauses}}, N1}"},
        {"what has few parts is not woven", "tuple_size(Node) > 2", "tuple_size(Node) > 3"},
        {"what has many parts is not woven", "is_tuple(Node), tuple_size(Node) > 2",
         "is_tuple(Node), tuple_size(Node) > 2, tuple_size(Node) < 5"},
        {"functions that are imported by themselves are not known", "true -> {erlang, Name};", "true -> local;"},
        {"imported functions are not known", "{false, #{{Name, Arity} := Module}} -> {Module, Name};",
         "{false, #{{Name, Arity} := _}} -> local;"},
        {"what is known at run time only is not woven",
         "true -> {stand_in(Anno, apply, Module1, Name1, Args1, Context), N1};",
         "true -> {{call, Anno, {remote, RemoteAnno, Module1, Name1}, Args1}, N1};"},
        {"arguments that are known at run time only are not woven",
         "true -> {remote(Anno, Context, apply, [Module1, Name1, Args1]), N1};",
         "true -> {{call, Anno, Callee, [Module1, Name1, Args1]}, N1};"},
        {"external funs are not woven", "true -> {remote(element(2, Fun), Context, function, [Module, Name, Arity]), N};",
         "true -> {Fun, N};"},
        {"arguments are handed over in another order", "end, {nil, Anno}, Args),\n    remote(",
         "end, {nil, Anno}, lists:reverse(Args)),\n    remote("}]]
    ++
    [{Name, Module, Find, Replace} || {Name, Module, Find, Replace} <- [
        {"the arguments of an entry are in another order", witness_weave_entry, "list(G, Args), Context),\n    Get",
         "list(G, lists:reverse(Args)), Context),\n    Get"},
        {"an entry is asked where it is past", witness_weave_entry,
         "{ask(G, entry, [{atom, G, Name}, Args], Context), {atom, G, go}};",
         "{{atom, G, go}, ask(G, entry, [{atom, G, Name}, Args], Context)};"},
        {"a body runs where it has been run", witness_weave_entry, "[{atom, G, done}, Value]}], [], [Value]}",
         "[{atom, G, done}, Value]}], [], Body}"},
        {"no clause of a first function matches, and it is not seen", witness_weave_entry,
         "Clauses ++ otherwise(Anno, Clauses, Context)", "Clauses"},
        {"no clause matches, and it is another error", witness_weave_entry, "{atom, G, function_clause}", "{atom, G, badarg}"},
        {"exceptions are caught", witness_weave_entry, "[{clause, G, [{atom, G, go}], [], Body},",
         "[{clause, G, [{atom, G, go}], [], [{'catch', G, {block, G, Body}}]},"},
        {"what spawns and monitors is not known", witness_weave_calls, "spawn_monitor => {spawn, [1, 2, 3, 4]},", ""},
        {"one arity is not known", witness_weave_calls, "send_nosuspend => {send, [2, 3]},\n      spawn => {spawn, [1, 2, 3, 4]}",
         "send_nosuspend => {send, [2, 3]},\n      spawn => {spawn, [1, 2, 3]}"},
        {"the dictionary shows what is not the program's", witness_weave_calls, "get_keys => {dictionary, [0, 1]},", ""},
        {"records are not woven", witness_weave, "witness_weave_expr:record_fields(Fields, Context)", "Fields"}]].

%% The same with inline monitoring itself: the monitors write down what they are given.
inline_monitors_are_given_what_programs_do() ->
    Dir = filename:join("/tmp", "witness_weave_" ++ os:getpid()),
    ok = filelib:ensure_path(Dir),
    {ok, _} = application:ensure_all_started(witness),
    true = code:add_patha(Dir),
    Judge = fun(Tree) -> judge_inline(Tree, Dir) end,
    try
        ?assertEqual(true, proper:quickcheck(
            ?FORALL(Tree, witness_weave_program:tree(), ?WHENFAIL(show(Tree, Judge), ok =:= Judge(Tree))),
            [{numtests, programs() div 4}, {max_size, 60}, {to_file, user}]))
    after
        code:del_path(Dir),
        file:del_dir_r(Dir)
    end.

judge_inline(Tree, Dir) ->
    Forms = witness_weave_program:forms(Tree),
    case compile:noenv_forms(Forms, [binary, return, debug_info]) of
        {ok, ?PROGRAM, Code, _} -> judge_inline(Forms, Code, Dir);
        {error, Errors, _} -> refused({not_compiled, Errors})
    end.

judge_inline(Forms, Code, Dir) ->
    ok = file:write_file(filename:join(Dir, "witness_weave_generated.beam"), Code),
    {module, ?PROGRAM} = code:load_file(?PROGRAM),
    Original = witness_weave_journal:run(started()),
    {ok, {_, [{atoms, Atoms}]}} = beam_lib:chunks(Code, [atoms]),
    Monitors = [{{?PROGRAM, Name, 0}, {witness_weave_monitor, none}} || {_, Name} <- Atoms, hd(atom_to_list(Name)) =:= $-]
        ++ [{{?PROGRAM, Name, 2}, {witness_weave_monitor, none}} || {function, _, Name, 2, _} <- Forms],
    Woven = witness_weave_journal:run(fun(Harness) ->
        {ok, Run} = witness:start(#{system => {?PROGRAM, root, [Harness, 0]}, instrument => inline, weave => [?PROGRAM],
                                    monitors => Monitors, log => false}),
        put(run, Run)
    end),
    Run = erase(run),
    {ok, _} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    true = code:soft_purge(?PROGRAM),
    compare(Original, Woven).

programs() -> list_to_integer(os:getenv("WITNESS_WEAVE_PROGRAMS", "200")).

check(Weaver, Plan, Programs, Options) ->
    proper:quickcheck(?FORALL(Tree, witness_weave_program:tree(),
                              ?WHENFAIL(Options =:= ?QUIET orelse show(Tree, fun(T) -> judge(T, Weaver, Plan) end),
                                        ok =:= judge(Tree, Weaver, Plan))),
                      Options ++ [{numtests, Programs}, {max_size, 60}]).

-doc "Prints a program, and what is wrong with it.".
show(Tree, Judge) -> io:format(user, "~ts~n~tp~n", [witness_weave_program:source(Tree), Judge(Tree)]).

-doc "`ok`, or where the woven program differs from the original one. If a faulty weaver makes the right code, the program is not run.".
judge(Tree, Weaver) -> judge(Tree, Weaver, #{}).

judge(Tree, Weaver, Additional) ->
    Forms = witness_weave_program:forms(Tree),
    Entries = [{Name, 2} || {function, _, Name, 2, _} <- Forms],        % of processes
    Reports = #{{?PROGRAM, Name, Arity} => Of || #{functions := Of} <- [Additional], {function, _, Name, Arity, _} <- Forms},
    Plan = Additional#{runtime => witness_weave_recorder, entries => Entries, functions => Reports},
    Woven = Weaver:weave(Forms, Plan),
    case Weaver =/= witness_weave andalso functions(Woven) =:= functions(witness_weave:weave(Forms, Plan)) of
        true -> ok;
        false -> judge_forms(Forms, Woven, Plan)
    end.

functions(Forms) -> [Form || Form <- Forms, element(1, Form) =:= function orelse element(3, Form) =:= record].

judge_forms(Forms, WovenForms, Plan) ->
    {Original, Code, Warnings} = run(Forms, none),
    {Woven, _, WovenWarnings} = run(WovenForms, Code),
    case [{warning, Warning} || Warning <- warned(WovenWarnings) -- warned(Warnings), not is_right(Warning, Forms)] of
        [] -> compare(Original, Woven, Plan);
        New -> New
    end.

%% In some functions the compiler does not see that a variable is unused; in the woven function it does.
is_right({_, erl_lint, {unused_var, Name}}, Forms) -> occurrences(Name, Forms) =:= 1;
is_right(_, _) -> false.

occurrences(Name, {var, _, Name}) -> 1;
occurrences(Name, [Form | Forms]) -> occurrences(Name, Form) + occurrences(Name, Forms);
occurrences(Name, Form) when is_tuple(Form) -> occurrences(Name, tuple_to_list(Form));
occurrences(_, _) -> 0.

compare(Original, Woven) -> compare(Original, Woven, #{}).

compare(Original, Woven, Plan) ->
    maybe
        true ?= is_map(Original) orelse refused(Original),
        true ?= is_map(Woven) orelse {Woven, woven},
        [] ?= [{differs, Process, A, B} || Process := A <- Original, B <- [behaviour(Process, Woven)], not same(A, B)],
        [] ?= [{not_told, Process, Journal, End} || Process := {Journal, End} <- Woven, not told(expected(Journal, Plan), End)],
        true ?= maps:size(Original) =:= maps:size(Woven) orelse processes,
        ok
    end.

%% Functions of a woven program have their names by the original's object code.
run(Forms, Original) ->
    case compile:noenv_forms(Forms, [binary, return, debug_info]) of
        {ok, ?PROGRAM, Compiled, Warnings} ->
            Code = case Original of none -> Compiled; _ -> witness_weave_names:keep(Original, Compiled) end,
            {module, ?PROGRAM} = code:load_binary(?PROGRAM, "witness_weave_generated.erl", Code),
            Journals = witness_weave_journal:run(started()),
            true = code:soft_purge(?PROGRAM),
            {Journals, Code, [Warning || {_, Found} <- Warnings, Warning <- Found]};
        {error, Errors, _} ->
            {{not_compiled, Errors}, none, []}
    end.

%% The compiler has faults of its own: for some programs with a `receive' within a key of a map, its last pass refuses its own code.
%% Nothing can be said of these.
refused({not_compiled, [{_, [_ | _] = Errors}]} = Original) ->
    case lists:all(fun({_, Pass, _}) -> Pass =:= beam_validator end, Errors) of
        true -> ok;
        false -> {Original, original}
    end.

%% If a variable is bound in an argument or in a `receive` and used later, the compiler's warning says which expression it is a
%% part of. In code that cannot be reached, the compiler warns of what it has not found out before.
warned(Warnings) ->
    [case Warning of
         {Location, erl_lint, {export_var_subexpr, Name, _}} -> {Location, Name};
         {Location, erl_lint, {exported_var, Name, _}} -> {Location, Name};
         _ -> Warning
     end || Warning <- Warnings, not is_useless(Warning)].

is_useless({_, sys_core_fold, {ignored, _}}) -> true;
is_useless(_) -> false.

started() -> fun(Harness) -> spawn(?PROGRAM, root, [Harness, 0]) end.

behaviour(Process, Journals) ->
    case Journals of
        #{Process := {Journal, End}} -> {[Entry || Entry <- Journal, element(1, Entry) =/= told], End};
        #{} -> none
    end.

same({Journal, unknown}, {Woven, _}) -> equal(Journal, Woven);
same({Journal, _}, {Woven, unknown}) -> equal(Journal, Woven);
same(Original, Woven) -> equal(Original, Woven).

%% If the compiler knows that a function does not go on, it leaves out its frame, as in `f(X) -> 1 + g(spawn(...))' where `g/1'
%% takes no process. It knows nothing of the result of the woven call. So woven code has every frame, and may have more.
%%
%% If a match fails within what is sent, as in `self() ! ({a, 1} = f())', the compiler gives the line of what comes next. For a
%% `case' that is an argument, it gives the line where its expression ends. Woven code has the match's own line, so the line of
%% a failed match does not count.
equal({{Failed, A}, {stack, [{M, F, N, _} | Original]}}, {{Failed, B}, {stack, [{M, F, N, _} | Woven]}})
        when Failed =:= badmatch; Failed =:= case_clause ->
    equal(A, B) andalso among(Original, Woven);
equal({stack, Original}, {stack, Woven}) -> among(Original, Woven);
equal(A, B) when is_tuple(A), is_tuple(B) -> equal(tuple_to_list(A), tuple_to_list(B));
equal([A | As], [B | Bs]) -> equal(A, B) andalso equal(As, Bs);
equal(A, B) when is_map(A), is_map(B) -> equal(lists:sort(maps:to_list(A)), lists:sort(maps:to_list(B)));
equal(A, B) -> A =:= B.

among([], _) -> true;
among([Frame | Frames], [Frame | Woven]) -> among(Frames, Woven);
among(Frames, [_ | Woven]) -> among(Frames, Woven);
among(_, []) -> false.

%% If sends are replaced, the run-time module is not told of those that the code makes to processes of this node.
expected([{told, {send, _, _}} = Told, Said | Journal], Plan) -> [Told, Said | expected(Journal, Plan)];
expected([{said, {send, To, _}} = Said | Journal], #{sends := replaced} = Plan) ->
    [Said || not is_process(To)] ++ expected(Journal, Plan);
expected([Entry | Journal], Plan) -> [Entry | expected(Journal, Plan)];
expected([], _) -> [].

is_process({_, Child}) -> is_integer(Child);
is_process(To) -> To =:= root orelse To =:= process.

%% What a process says directly follows what the run-time module was told. The exception is its end, which it cannot say.
told(Journal, End) ->
    Events = [Entry || {Kind, _} = Entry <- Journal, Kind =:= told orelse Kind =:= said],
    pairs(Events, End).

pairs([{told, {exit, Reason}}], End) -> Reason =:= End orelse End =:= unknown;
pairs([{told, {init, _}}, {said, {init, any}} | Rest], End) -> pairs(Rest, End);
pairs([{told, Event}, {said, Event} | Rest], End) -> pairs(Rest, End);
pairs([{told, {init, _}} | [{told, {exit, _}}] = Rest], End) -> pairs(Rest, End);    % no clause of its function matches
pairs([], End) -> End =:= killed;
pairs(_, _) -> false.
