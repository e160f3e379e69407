-module(witness_weave_names_tests).
-moduledoc "Named funs and comprehensions have the names of the original, though the compiler leaves out less of woven code.".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(M, witness_weave_names_sample).

%% Code that cannot be reached, with a function that the compiler does not count in the original.
left_out() ->
    [{"what follows a clause that takes all messages", "receive {s, V} -> V; {s, Y} -> fun Dead() -> {Y, Dead} end end"},
     {"a comprehension there", "receive {s, V} -> V; {s, Y} -> [{A, Y} || A <- Y] end"},
     {"a process is no number", "case spawn(fun() -> ok end) of 1 -> fun Dead() -> Dead end; P -> P end"},
     {"nothing follows an error", "case X of [] -> 1; _ -> case spawn(fun() -> ok end) of 1 -> 2 end, fun Dead() -> Dead end end"},
     {"a clause without its own number", "receive {s, V} when V > 1 -> V; {s, Y} -> fun Alive() -> {Y, Alive} end end"}].

names_are_those_of_the_original_test_() ->
    [{Name, fun() ->
        Original = object(["f(X) ->\nA = ", Left, ",\n{A, fun Stays() -> {X, Stays} end, [fun Each() -> {B, Each} end || B <- X]}.\n"]),
        Kept = woven(Original, Plan),
        ?assertMatch([_, _, _ | _], names(Original)),
        ?assertEqual([], names(Original) -- names(Kept)),
        %% The code can be loaded.
        {module, ?M} = code:load_binary(?M, "sample.beam", Kept),
        true = code:delete(?M),
        _ = code:purge(?M)
     end} || {Name, Left} <- left_out(), Plan <- plans()].

plans() -> [witness_inline_plan:new([], #{}), witness_record_calls:plan()].

%% Without the part, the number is another one.
the_number_is_that_of_woven_code_otherwise_test() ->
    [{_, Left} | _] = left_out(),
    Original = object(["f(X) ->\nA = ", Left, ",\n{A, fun Stays() -> {X, Stays} end}.\n"]),
    {ok, Forms, Options} = witness_weave:forms({?M, "sample.beam", Original}),
    {ok, ?M, Woven} = compile:noenv_forms(witness_weave:weave(Forms, hd(plans())), [binary | Options]),
    ?assertNotEqual(names(Original), names(Woven)),
    ?assertEqual(names(Original), names(witness_weave_names:keep(Original, Woven))).

%% `erlang:fun_info/2' and the first function of a process show the name.
a_fun_shows_its_name_test() ->
    [{_, Left} | _] = left_out(),
    Original = object(["f(X) ->\n_ = case X of [] -> none; _ -> ", Left, " end,\nfun Stays() -> {X, Stays} end.\n"]),
    Named = [begin
        {module, ?M} = code:load_binary(?M, "sample.beam", Code),
        Found = erlang:fun_info(?M:f([]), name),
        true = code:delete(?M),
        _ = code:purge(?M),
        Found
    end || Code <- [Original, woven(Original, hd(plans()))]],
    ?assertEqual([{name, '-f/1-Stays/0-0-'}, {name, '-f/1-Stays/0-0-'}], Named).

%% More names than one digit can count, and longer than 15 and 255 bytes.
names_of_any_length_test_() ->
    [{integer_to_list(Size), fun() ->
        Long = lists:duplicate(Size, $f),
        Lives = [io_lib:format("fun L~b() -> {X, L~b} end", [N, N]) || N <- lists:seq(1, 12)],
        Original = object([Long, "(X) -> {receive {s, V} -> V; {s, Y} -> fun Dead() -> {Y, Dead} end end, ", lists:join(", ", Lives), "}.\n"]),
        [?assertEqual(names(Original), names(woven(Original, Plan))) || Plan <- plans()]
     end} || Size <- [1, 9, 100, 200]].

%% Two funs of the same name are told apart by their order.
funs_of_the_same_name_test() ->
    Original = object("f(X) ->\nA = receive {s, V} -> V; {s, Y} -> fun Dead() -> {Y, Dead} end end,\n"
                      "{A, fun Same() -> {a, X, Same} end, fun Same() -> {b, X, Same} end}.\n"),
    [?assertEqual(names(Original), names(woven(Original, Plan))) || Plan <- plans()].

a_module_without_such_functions_is_kept_test() ->
    Original = object("f(X) -> fun() -> X end.\n"),
    ?assertEqual(Original, witness_weave_names:keep(Original, Original)).

random_programs_keep_names_test_() ->
    {timeout, 300, fun() ->
        ?assertEqual(true, proper:quickcheck(?FORALL(Tree, witness_weave_program:tree(), keeps_names(Tree)),
                                             [{numtests, witness_setting:number("WITNESS_WEAVE_PROGRAMS", 200) div 8},
                                              {max_size, 60}, {to_file, user}]))
    end}.

keeps_names(Tree) ->
    Forms = witness_weave_program:forms(Tree),
    case compile:noenv_forms(Forms, [binary, return, debug_info]) of
        {ok, Module, Original, _} ->
            lists:all(fun(Plan) ->
                {ok, #{woven := Woven}} = witness_weave:prepare({Module, "generated.beam", Original}, Plan),
                [] =:= counted(Original) -- counted(Woven)
            end, plans());
        %% The compiler refuses some programs in its last pass.
        {error, _, _} -> true
    end.

%% Not `-F/A-fun-N-', which has its number before. OTP 27 writes such a fun for `fun spawn/1', and leaves it out if it is replaced.
counted(Object) -> [Name || Name <- names(Object), nomatch =:= string:find(atom_to_list(Name), "-fun-")].

object(Functions) ->
    Forms = witness_weave_source:forms(["-module(", atom_to_list(?M), ").\n-compile([export_all, nowarn_export_all]).\n", Functions]),
    {ok, ?M, Object} = compile:noenv_forms(Forms, [binary, debug_info]),
    Object.

woven(Original, Plan) ->
    {ok, #{woven := Woven}} = witness_weave:prepare({?M, "sample.beam", Original}, Plan),
    Woven.

names(Object) ->
    {ok, {_, [{locals, Locals}]}} = beam_lib:chunks(Object, [locals]),
    lists:sort([Name || {Name, _} <- Locals, hd(atom_to_list(Name)) =:= $-, not lists:prefix("-witness", atom_to_list(Name))]).
