%% What comes from outside is data: any input is compiled or refused, within bounds, and changes nothing else.
-module(witness_spec_limits_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SPEC, <<"-record(rec, {key, value = 1}).\n"
                "one: with calc_server:loop(_)\nmonitor and([_ <- _, calc_server:loop(_)] max(X. and([_ ? {_, {add, A, B}}]\n"
                "  and([_:_ ! {ok, R} when R =/= A + B] ff, [_:_ ! {ok, #{r := R}} when R =:= A + B; is_atom(R)] X)))). % end\n"
                "with token_server:loop(_, _), m:f(\"str\", 'q a', $c) when true group check\n"
                "  [{_ <- _, token_server:loop(Own, _)}] min X.([{_ ? _}]([{_:_ ! Tok when Own =:= Tok}] ff and\n"
                "  <{_:_ ! <<Tok, _/binary>> when Own =/= Tok}> X or <P -> C, m:f(P)> tt and or([P ** 2.5] tt, [_ ? []] ff))).\n"
                "with m:f(_), My.App.Server.init(_) none.\n"
                "with m:g(_) per From over _ ? call(From, _), _ : _ ! reply(From, _), _ ** _ monitor\n"
                "  [_ ? call(From, {get, #rec{key = Key}})] [_ : _ ! reply(From, R) when R#rec.key =/= Key] ff.\n">>).

a_source_that_is_too_large_is_refused_test() ->
    Atoms = atoms(),
    Source = iolist_to_binary(["with m:f(_) none. % ", lists:duplicate(1_000_000, "x")]),
    ?assertMatch({error, {witness_spec, [#{code := too_large}]}}, compile(Source)),
    {error, {witness_spec, [_]}} = witness_spec:compile_file("/dev/zero"),
    ?assert(erlang:system_info(atom_count) - Atoms < 50).

too_many_names_are_refused_before_they_are_atoms_test_() ->
    [{Kind, {timeout, 60, fun() ->
        Names = [[Before, Kind, io_lib:format(Number, [N div 110, N rem 110]), After, ","] || N <- lists:seq(1, 12_000)],
        Source = iolist_to_binary(["with m:f(_) monitor [_ ? [", Names, "a]] ff."]),
        Atoms = atoms(),
        ?assertMatch({error, {witness_spec, [#{code := too_many_names}]}}, compile(Source)),
        ?assert(erlang:system_info(atom_count) - Atoms < 50)
     end}} || {Kind, Before, After, Number} <- [{"atom_t_", "", "", "~b_~b"}, {"Var_t_", "", "", "~b_~b"},
                                               {"after_char_", "$x", "", "~b_~b"}, {"sigil_", "~", "\"\"", "~b_~b"},
                                               %% Few words: only as a whole these are many.
                                               {"quoted t ", "'", "'", "~b ~b"}, {"esc\\'aped t ", "'", "'", "~b ~b"}]].

as_many_names_as_allowed_are_accepted_test_() ->
    Branches = [io_lib:format("[_ ? {n~b, n~b}] ff", [N, N div 2]) || N <- lists:seq(1, 1000)],
    Source = ["with m:f(_) monitor ", lists:join(" and ", Branches), "."],
    {timeout, 120, ?_assertMatch({ok, _, _}, compile(iolist_to_binary(Source)))}.

the_count_of_names_is_an_upper_bound_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(
        ?FORALL(Pieces, vector(300, piece()),
            begin
                Chars = lists:flatten(Pieces),
                Names = case erl_scan:string(Chars, {1, 1}, []) of
                    {ok, Tokens, _} -> length(lists:usort([Name || {Kind, _, Name} <- Tokens, lists:member(Kind, [atom, var])]));
                    {error, _, _} -> 0
                end,
                Names < 8 orelse witness_spec_names:has_more_names(Chars, Names div 2)
            end), [quiet, {numtests, 1000}, {to_file, user}]))}.

piece() ->
    frequency([{Weight, ?LET(N, range(1, 400), lists:flatten(io_lib:format(Name, [N])))} ||
               {Weight, Name} <- [{10, "n~b "}, {5, "'q ~b' "}, {3, "$aV~b"}, {2, "16#ffx~b,"}, {2, "'a\\'~b'"}]] ++
              [{1, oneof(["\"it's\"", "% don't\n", "$'", "$\\'", "\"\\\"'\"", "{", " ", "é", "$\\x41", "~\"'\"",
                          "\n\"\"\"\n'\n\"\"\"\n"])}]).

nesting_of_a_thousand_levels_is_compiled_or_refused_test_() ->
    Deep = fun(Open, Middle, Close) -> [lists:duplicate(1000, Open), Middle, lists:duplicate(1000, Close)] end,
    Answer = fun(Formula) -> element(1, compile(iolist_to_binary(["with m:f(_) check ", Formula, "."]))) end,
    [{timeout, 120, {Name, ?_assertEqual(Expected, Answer(Formula))}} ||
     {Name, Expected, Formula} <- [{"parentheses", ok, Deep("(", "[_ ? a] ff", ")")},
                                   {"modalities", ok, [Deep("[_ ? a] ", "ff", "")]},
                                   {"prefix lists", ok, Deep("and([_ ? a] ff, ", "ff", ")")},
                                   {"fixpoints", ok, Deep("max X.([_ ? a] ff and ", "[_ ? b] X", ")")},
                                   {"tuples", ok, ["[_ ? ", Deep("{", "a", "}"), "] ff"]},
                                   {"lists", ok, ["[_ ? ", Deep("[", "a", "]"), "] ff"]},
                                   {"guards", ok, ["[_ ? A when ", Deep("(", "A > 1", ")"), "] ff"]},
                                   {"open parentheses", error, lists:duplicate(1000, "(")},
                                   {"open tuples", error, ["[_ ? ", lists:duplicate(1000, "{")]},
                                   {"closed tuples", error, ["[_ ? ", lists:duplicate(1000, "}")]},
                                   {"open diamonds", error, lists:duplicate(1000, "<")}]].

what_is_beyond_the_limits_is_refused_with_its_place_test_() ->
    Variables = [["V", integer_to_list(N)] || N <- lists:seq(1, 100)],
    Refused = fun(Code, Text) ->
        ?assertMatch({error, {witness_spec, [#{code := Code, line := 1}]}}, compile(iolist_to_binary(Text)))
    end,
    [fun() -> Refused(too_deep, ["with m:f(_) check ", lists:duplicate(100_000, "(")]) end,
     fun() -> Refused(too_large, ["with m:f(_) check ", lists:duplicate(3000, "[_ ? a] "), "ff."]) end,
     fun() -> Refused(too_large, ["with m:f(_) check [_ ? [", lists:duplicate(3000, "_, "), "_]] ff."]) end,
     fun() -> Refused(too_large, ["with m:f(_) check [_ ? \"", lists:duplicate(900_000, "x"), "\"] ff."]) end,
     fun() -> Refused(too_large, ["with m:f(_) check [_ ? a when true", lists:duplicate(3000, "; true"), "] ff."]) end,
     fun() -> Refused(too_many_variables,
                      ["with m:f(_) check ", lists:duplicate(2, ["[_ ? {", lists:join(",", Variables), "}] "]), "ff."]) end].

patterns_of_a_hundred_kilobytes_are_refused_with_their_place_test_() ->
    [{Name, ?_assertMatch({error, {witness_spec, [#{code := too_large, line := 1, column := 24}]}},
                          compile(iolist_to_binary(["with m:f(_) check [_ ? ", Pattern, "] ff."])))} ||
     {Name, Pattern} <- [{"string", ["\"", lists:duplicate(100_000, "x"), "\""]},
                         {"binary", ["<<\"", lists:duplicate(100_000, "x"), "\">>"]},
                         {"number", lists:duplicate(100_000, "9")},
                         {"tuple", ["{", lists:duplicate(33_333, "a, "), "a}"]},
                         {"aliases", [lists:duplicate(50_000, "_="), "_"]},
                         {"map", ["#{", lists:duplicate(12_500, "a := _, "), "a := _}"]}]].

%% The work grows with the size, not faster: a thousand lines take little more than ten times what a hundred take.
a_thousand_lines_are_ten_times_a_hundred_test_() ->
    {timeout, 300, fun() ->
        %% Not twice the same, since some results are kept.
        _ = work(lines(100, 0)),
        Hundred = work(lines(100, 1000)),
        Thousand = work(lines(1000, 2000)),
        ?assert(Thousand < 20 * Hundred)
    end}.

lines(Count, From) ->
    Property = "p~b: with server:loop(~b, _) per Id over _ ? {req, Id, _}, _ : _ ! {res, Id, _}\n"
               "check [_ ? {req, Id, {add, A, B}}]\n"
               "  ([_ : _ ! {res, Id, R} when R =/= A + B, is_integer(R)] ff and\n"
               "   [_ : _ ! {res, Id, R} when R =:= A + B] tt).\n\n",
    iolist_to_binary([io_lib:format(Property, [N, N]) || N <- lists:seq(From + 1, From + Count div 5)]).

%% Reductions of all processes; nothing else runs.
work(Source) ->
    {Before, _} = erlang:statistics(exact_reductions),
    {ok, _, _} = compile(Source),
    {After, _} = erlang:statistics(exact_reductions),
    After - Before.

%% Any input.

no_input_crashes_the_compiler_test_() ->
    {timeout, 300, ?_test(begin
        Atoms = atoms(),
        Modules = length(code:all_loaded()),
        Any = ?FORALL(Input, input(), answers(Input)),
        ?assert(proper:quickcheck(Any, [quiet, long_result, {numtests, 2000}, {to_file, user}])),
        %% Random inputs hold at most some names each; the compiler adds none of its own.
        ?assert(erlang:system_info(atom_count) - Atoms < 2000 * 20),
        ?assert(length(code:all_loaded()) - Modules < 30)
    end)}.

input() ->
    oneof([binary(), ?LET(Chars, list(oneof("[]{}()<>.,;:!?*-= 'aX_\"$%~\n")), unicode:characters_to_binary(Chars)),
           ?LET({Count, Seed}, {range(1, 6), range(0, 1 bsl 30)}, mutant(Count, Seed)),
           ?LET({Count, Seed}, {range(1, 6), range(0, 1 bsl 30)}, shuffled(Count, Seed))]).

-define(SIGNS, <<"[]{}()<>.,;:!?*-=#'\"$%~aX ">>).

%% The specification with some bytes changed.
mutant(Count, Seed) ->
    lists:foldl(fun(N, Source) ->
        At = erlang:phash2({Seed, N, at}, byte_size(Source)),
        <<Before:At/binary, Byte, After/binary>> = Source,
        case erlang:phash2({Seed, N, what}, 4) of
            0 -> <<Before/binary, After/binary>>;
            1 -> <<Before/binary, Byte, Byte, After/binary>>;
            2 -> <<Before/binary, (erlang:phash2({Seed, N, byte}, 256)), After/binary>>;
            3 -> <<Before/binary, (binary:at(?SIGNS, erlang:phash2({Seed, N, byte}, byte_size(?SIGNS)))), After/binary>>
        end
    end, ?SPEC, lists:seq(1, Count)).

%% The specification with some of its words moved.
shuffled(Count, Seed) ->
    iolist_to_binary(lists:foldl(fun(N, Words) ->
        {Before, [Word | After]} = lists:split(erlang:phash2({Seed, N, from}, length(Words)), Words),
        {Front, Back} = lists:split(erlang:phash2({Seed, N, to}, length(Words)), Before ++ After),
        Front ++ [Word | Back]
    end, re:split(?SPEC, "\\b"), lists:seq(1, Count))).

answers(Input) ->
    case compile(Input) of
        {ok, _, Warnings} ->
            printable(Warnings) andalso lists:all(fun(#{severity := S}) -> S =:= warning end, Warnings);
        {error, {witness_spec, [_ | _] = Diagnostics}} ->
            %% What Erlang itself finds has a place, too.
            printable(Diagnostics) andalso [] =:= [D || #{code := erlang, line := undefined} = D <- Diagnostics]
    end.

printable(Diagnostics) ->
    lists:all(fun(#{text := Text} = Diagnostic) ->
        is_binary(Text) andalso is_list(unicode:characters_to_list(iolist_to_binary(witness_spec:format_diagnostic(Diagnostic))))
    end, Diagnostics).

%% Names of modules.

a_loaded_module_is_never_replaced_test() ->
    {ok, #{module := First} = Map, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ok = witness_spec:unload(Map),
    load(First, "mine() -> mine."),
    try
        {ok, #{module := Second} = Other, _} = witness_spec:compile_string(<<"b">>, ?SPEC),
        ?assertNotEqual(First, Second),
        ?assertEqual(mine, First:mine()),
        witness_spec:unload(Other)
    after
        code:delete(First),
        code:purge(First)
    end.

a_module_on_the_code_path_is_never_hidden_test() ->
    {ok, #{module := First} = Map, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ok = witness_spec:unload(Map),
    Folder = filename:join(filename:basedir(user_cache, "witness_test"), os:getpid()),
    Object = filename:join(Folder, atom_to_list(First) ++ ".beam"),
    ok = filelib:ensure_dir(Object),
    ok = file:write_file(Object, <<"whatever it is">>),
    true = code:add_patha(Folder),
    try
        {ok, #{module := Second} = Other, _} = witness_spec:compile_string(<<"b">>, ?SPEC),
        ?assertNotEqual(First, Second),
        witness_spec:unload(Other)
    after
        true = code:del_path(Folder),
        ok = file:del_dir_r(Folder)
    end.

unloading_gives_the_name_back_test() ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ok = witness_spec:unload(Map),
    ?assertEqual(false, code:is_loaded(Module)),
    ok = witness_spec:unload(Map),
    {ok, #{module := Again} = Other, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ?assertEqual(Module, Again),
    witness_spec:unload(Other).

many_at_once_get_names_of_their_own_test_() ->
    {timeout, 60, fun() ->
        Self = self(),
        Pids = [spawn_link(fun() -> Self ! {self(), witness_spec:compile_string(<<"a">>, ?SPEC)} end) || _ <- lists:seq(1, 20)],
        Maps = [receive {Pid, {ok, Map, _}} -> Map end || Pid <- Pids],
        ?assertEqual(20, length(lists:usort([Module || #{module := Module} <- Maps]))),
        lists:foreach(fun witness_spec:unload/1, Maps)
    end}.

a_refused_specification_takes_no_name_test() ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ok = witness_spec:unload(Map),
    {error, _} = witness_spec:compile_string(<<"a">>, <<"with m:f(_) monitor [_ ? <<A:N>>] ff.">>),
    {ok, #{module := Again} = Other, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ?assertEqual(Module, Again),
    witness_spec:unload(Other).

code_that_a_process_still_runs_is_not_purged_test() ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ok = witness_spec:unload(Map),
    %% A module that stays where generated code would pass through.
    load(Module, "wait() -> receive stop -> stopped end."),
    {Pid, Monitor} = spawn_monitor(fun() -> exit(Module:wait()) end),
    wait_until_inside(Pid, Module),
    ok = witness_spec:unload(Map),
    {ok, #{module := Other} = Second, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ?assertNotEqual(Module, Other),
    ?assert(is_process_alive(Pid)),
    Pid ! stop,
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(stopped, Reason) end,
    ok = witness_spec:unload(Second),
    {ok, #{module := Third} = Last, _} = witness_spec:compile_string(<<"a">>, ?SPEC),
    ?assertEqual(Module, Third),
    witness_spec:unload(Last).

wait_until_inside(Pid, Module) ->
    Inside = [{status, waiting}, {current_function, {Module, wait, 0}}],
    witness_await:until(fun() -> process_info(Pid, [status, current_function]) =:= Inside end).

load(Module, Function) ->
    {ok, Tokens, _} = erl_scan:string(Function),
    {ok, {function, _, Name, Arity, _} = Form} = erl_parse:parse_form(Tokens),
    {ok, Module, Object} = compile:forms([{attribute, 1, module, Module}, {attribute, 1, export, [{Name, Arity}]}, Form]),
    {module, Module} = code:load_binary(Module, "", Object).

%% The number of atoms, when the code that will run is loaded: that makes atoms, once.
atoms() ->
    _ = [compile(mutant(1, N)) || N <- lists:seq(1, 20)],
    _ = witness_spec:compile_file("no/such.hml"),
    erlang:system_info(atom_count).

compile(Source) ->
    Result = witness_spec:compile_string(<<"test.hml">>, Source),
    case Result of {ok, Map, _} -> witness_spec:unload(Map); _ -> ok end,
    Result.
