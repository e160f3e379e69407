-module(witness_event_inspect_tests).
-moduledoc """
Terms in the notation of Elixir, compared with what Elixir itself prints: special cases, and random terms. The tests fail if there
is no Elixir.

`WITNESS_INSPECT_TERMS` is the number of random terms, and of random reasons (10,000 unless told), `WITNESS_FUZZ_SEED` a number
from which all of them follow. A failure names the seed and the number of its term: `random(Seed, Number)`.
""".
-include_lib("eunit/include/eunit.hrl").
-import(witness_setting, [number/2]).
-export([random/2]).

-define(ALL, 1_000_000).
-define(TERMS, 10_000).
-define(SEED, 1).

elixir_test_() ->
    {setup, fun witness_event_elixir_tests:load/0, fun witness_event_elixir_tests:unload/1, [
        {"atoms, keys and functions", fun names/0},
        {"names with letters of other scripts are quoted", fun other_names/0},
        {"special terms", [fun() -> compare(Term) end || Term <- special()]},
        {"structs of Elixir", fun structs/0},
        {"structs whose author implements Inspect", fun hidden_structs/0},
        {"functions", fun functions/0},
        {"reasons", [fun() -> compare_exit(Reason) end || Reason <- reasons()]},
        {"errors", fun errors/0},
        {"random terms", {timeout, 300, fun random_terms/0}}
    ]}.

compare(Term) -> ?assertEqual(inspect(Term), format(Term)).

format(Term) -> witness_event:format_term(Term, ?ALL, elixir).

inspect(Term) ->
    'Elixir.Kernel':inspect(Term, [{limit, infinity}, {printable_limit, infinity}, {width, infinity},
                                   {custom_options, [{sort_maps, true}]}]).

%% Every operator, and every name of up to three of these characters.
names() ->
    Alphabet = "aAz0_@?! .:-\"#{}\\/é\x{D7}Żżĸ" ++ [0, 10, 16#7F, 16#A0, 16#202E, 16#FEFF],
    Short = [""] ++ [[A] || A <- Alphabet] ++ [[A, B] || A <- Alphabet, B <- Alphabet]
            ++ [[A, B, C] || A <- "aAżŻé_E", B <- Alphabet, C <- Alphabet],
    Parts = ["Elixir", ".", "Foo", "foo", "É", "F0_a", "F@", "F!"],
    Long = [lists:append([A, B, C, D]) || A <- ["Elixir", ""], B <- Parts, C <- Parts, D <- ["" | Parts]],
    Operators = ["&", "!", "^", "not", "+", "-", "@", "<-", "\\\\", "when", "|", "=", "||", "|||", "or", "&&", "&&&", "and", "==",
                 "!=", "=~", "===", "!==", "<", "<=", ">=", ">", "|>", "<<<", ">>>", "<~", "~>", "<<~", "~>>", "<~>", "in", "++",
                 "--", "<>", "+++", "---", "*", "/", "**", "::", "^^^", "~~~", "<|>", "%", "%{}", "{}", "<<>>", "...", "..", ".",
                 "..//", "->", "=>", "!!", "nil", "true", "false", "do", "end", "fn", "__MODULE__", "Elixir", "Elixir.Elixir",
                 "Elixir.Elixir.Elixir", "Elixir.nil", "~", ",", "[]", "()", "&1", ";", "//"],
    Names = lists:usort(Short ++ Long ++ Operators),
    ?assert(length(Names) > 7000),
    [begin
         Atom = list_to_atom(Name),
         ?assertEqual({Name, 'Elixir.Macro':inspect_atom(literal, Atom)}, {Name, text(witness_event_inspect_name:literal(Name))}),
         ?assertEqual({Name, 'Elixir.Macro':inspect_atom(key, Atom)}, {Name, text(witness_event_inspect_name:key(Name))}),
         ?assertEqual({Name, 'Elixir.Macro':inspect_atom(remote_call, Atom)}, {Name, text(witness_event_inspect_name:call(Name))})
     end || Name <- Names, is_1_20() orelse not lists:member(16#138, Name)].

%% Other versions take this letter for one that needs no quotes.
is_1_20() -> string:prefix('Elixir.System':version(), "1.20") =/= nomatch.

%% Elixir writes some of them without quotes.
other_names() ->
    [begin
         Literal = text(witness_event_inspect_name:literal(Name)),
         ?assertEqual([$:, $" | Name] ++ "\"", unicode:characters_to_list(Literal)),
         ?assertEqual({list_to_atom(Name), []}, 'Elixir.Code':eval_string(Literal))
     end || Name <- ["µ", "aµ", "Ω", "ω1", "名前", "e\x{301}", "Aµ"]].

text(Chars) -> unicode:characters_to_binary(Chars).

special() ->
    [ok, nil, true, 'Elixir.Shop.Pool', 'with space', "", "abc", "a\"b", "#{", "a#{b}", "a\\#{b", [0], [14], [127],
     [7, 8, 9, 10, 11, 12, 13, 27], "é", [97 | 98], [97, 98 | c], [1 | 2], [1, 2 | 3], [[]], [a, b | c],
     ~"", ~"abc", ~"zażółć", ~"a\"b#{c}\\", <<0>>, <<7, 8, 9, 10, 11, 12, 13, 27, 127>>, <<1, 2>>, <<255, "a">>, <<194, 133>>,
     <<16#A0/utf8>>, <<16#202E/utf8, "x">>, <<16#200B/utf8>>, <<16#FEFF/utf8>>, <<16#2028/utf8>>, <<16#2003/utf8>>,
     <<16#FFFC/utf8>>, <<16#1F600/utf8>>, <<16#1FFFE/utf8>>, <<16#E000/utf8>>, <<239, 191, 191>>,
     <<1:3>>, <<1, 2:3>>, <<"abc", 1:1>>,
     [{a, 1}], [{a, 1}, {'b c', 2}], [{'Elixir.A', 1}], [{a, 1} | b], [{a, 1}, c], [{a, 1, 2}], [{nil, 1}, {true, 2}], [{'::', 1}],
     {}, {1}, {a, [{b, 1}]}, {{}, [], #{}, ~""},
     #{}, #{a => 1}, #{a => 1, b => 2}, #{a => 1, ~"b" => 2}, #{'Elixir.A' => 1}, #{'Elixir.A' => 1, a => 2}, #{#{} => #{}},
     #{"a" => 1}, #{'b c' => [{a, #{x => 1}}]}, #{'__exception__' => true},
     #{'__struct__' => 1}, #{'__struct__' => "Foo"}, #{'__struct__' => ~"Elixir.Foo", a => 1}, #{'__struct__' => foo, a => 1},
     #{'__struct__' => 'Elixir.foo', ~"a" => 1}, #{'__struct__' => nil},
     0, -1, 1 bsl 200, -(1 bsl 64), 0.0, -0.0, 1.0, -1.5, 1.0e10, 1.0e15, 1.0e16, 1.0e22, 1.0e-5, 0.1, 1.0e-3, 123456789.125,
     5.0e-324,
     1.7976931348623157e308, 9007199254740993.0, 99999999999999984.0, 0.0001, 12.0e-7,
     self(), make_ref(), hd(erlang:ports()), list_to_pid("<0.97.0>"), list_to_ref("#Ref<0.1.2.3>"), list_to_port("#Port<0.5>"),
     fun lists:map/2, fun 'Elixir.Shop.Pool':handle_call/3, fun erlang:'+'/2, fun erlang:'with space'/0,
     fun() -> ok end, fun(A) -> A end, fun names/0, erl_eval_fun()].

erl_eval_fun() ->
    {ok, Tokens, _} = erl_scan:string("fun(X) -> X end."),
    {ok, [Expression]} = erl_parse:parse_exprs(Tokens),
    {value, Fun, _} = erl_eval:expr(Expression, []),
    Fun.

structs() ->
    Sources =
        ["1..3", "3..1//-1", "1..3//2", "3..1//1", "-1..-1", "MapSet.new()", "MapSet.new([1, 2, \"a\"])", "MapSet.new([97, 98])",
         "MapSet.new([a: 1])", "MapSet.new([MapSet.new([1])])",
         "~r/a/", "~r/a\\/b/iu", "~r/[\\\\]#x/sxfUm", "Regex.compile!(\"a/\\n\\t\\\\n\\\#{b}\\e\\d\")",
         "Regex.compile!(\"\\\\\\\\/é\")", "Regex.compile!(\"a\\\\/b\")",
         "~D[2026-01-02]", "Date.new!(-5, 1, 1)", "~T[01:02:03]", "~T[01:02:03.004]", "~T[23:59:59.999999]",
         "~N[2026-01-02 03:04:05.6]", "~U[2026-01-02 03:04:05.000600Z]",
         "%{~U[2026-01-02 03:04:05Z] | time_zone: \"Europe/Malta\", zone_abbr: \"CET\", utc_offset: 3600}",
         "%{~U[2026-01-02 03:04:05Z] | time_zone: \"America/St_Johns\", zone_abbr: \"NST\", utc_offset: -12600, std_offset: 60}",
         "Date.range(~D[2026-01-02], ~D[2026-02-03])", "Date.range(~D[2026-01-02], ~D[2026-02-03], 2)",
         "%Version{major: 1, minor: 2, patch: 3}", "Version.parse!(\"1.2.3-rc.1+b\")", "%URI{}",
         "URI.parse(\"http://u@h:1/p?q#f\")", "%Duration{}", "Duration.new!(hour: 1, microsecond: {5, 2})", "%RuntimeError{message: \"oops\"}", "%ArgumentError{}",
         "%Task{mfa: {A, :b, 1}, owner: self(), pid: nil, ref: make_ref()}", "[%{a: 1..2}, {~D[2026-01-02], %URI{}}]"],
    [compare(element(1, 'Elixir.Code':eval_string(text(Source), [{target, self()}]))) || Source <- Sources].

functions() ->
    Names = [init, '+', 'with space', 'Foo', '-run/2-fun-0-', '-run/2-fun-1-', '-with space/0-fun-0-', '-a/b/1-fun-2-',
             '-run/2-lc$^0/1-0-', '-', '-/1-fun-0-', '-fun-0-', '-a/-fun-0-', ''],
    Arguments = [[], [1], [a, "b", ~"c"], [[{name, 'Elixir.Shop.Pool'}, {size, 2}]], [x, #{a => 1}]],
    [begin
         Arity = length(Args),
         ?assertEqual({F, 'Elixir.Exception':format_mfa(M, F, Arity)}, {F, witness_event:format_function({M, F, Arity}, elixir)}),
         ?assertEqual({F, 'Elixir.Exception':format_mfa(M, F, Args)}, {F, witness_event:format_signature({M, F, Args}, elixir)})
     end || M <- ['Elixir.Shop.Pool', lists, 'Elixir.foo', nil, 'with space'], F <- Names, Args <- Arguments].

compare_exit(Reason) -> ?assertEqual(one_line('Elixir.Exception':format_exit(Reason)), one_line(format_exit(Reason))).

format_exit(Reason) -> witness_event:format_reason(Reason, ?ALL, elixir).

%% Elixir names the application of a module in a stack.
one_line(Text) -> re:replace(Text, ~B"(\s*\((stdlib|erts|elixir|kernel) [0-9.]+\))?\s+", ~" ", [global, unicode, {return, binary}]).

reasons() ->
    Call = {'Elixir.GenServer', call, ['Elixir.Shop.Pool', {get, [{a, 1}]}, 5000]},
    [normal, shutdown, {shutdown, closed}, {shutdown, [1]}, noproc, killed, timeout, calling_self, noconnection, oops, {a, b},
     "text", [], {}, {timeout, Call}, {noproc, Call}, {normal, {m, f, []}}, {{nodedown, 'a@b'}, Call}, {{timeout, Call}, Call},
     {a, {m, f, [1 | 2]}}, {a, {m, f, 2}}, {a, {1, f, []}}, {a, {m, "f", []}}, {a, {m, '-run/2-fun-0-', [x]}},
     {nodedown, 'a@b'}, {already_started, self()}, {bad_return_value, {x}}, {bad_call, [x]}, {bad_cast, "x"},
     {bad_return, {m, init, ~"no"}}, {shutdown, {failed_to_start_child, m, {'EXIT', {timeout, Call}}}},
     {shutdown, {failed_to_start_child, 'Elixir.Shop.Pool', enoent}}, {shutdown, {failed_to_start_child, m}},
     {{shutdown, {failed_to_start_child, m, oops}}, {m, start, [normal, []]}}]
        ++ [{oops, Stack} || Stack <- stacks()].

stacks() ->
    [[], [x], [{m, f, 1}], [{m, f, 1, []}], [{m, f, 1, []}, x], [{m, f, 1, []} | x], [{m, f, [1, a], []}],
     [{m, f, 1, [{file, "lib/shop.ex"}]}], [{m, f, 1, [{file, "lib/shop.ex"}, {line, 3}]}, {'Elixir.Shop', g, 0, []}],
     [{m, f, 1, [{line, 3}]}], [{m, f, 1, [{file, "a.ex"}, {line, 0}]}], [{m, f, 1, [{file, "a"}, {line, 1}, {column, 2}]}],
     [{m, f, 1, x}], [{m, f, x, []}], [{1, f, 1, []}], [{fun lists:map/2, 2, []}], [{fun stacks/0, [a], []}],
     [{m, '-run/2-fun-0-', 3, []}]].

errors() ->
    Stack = [{'Elixir.Shop', run, [1, x], [{file, "lib/shop.ex"}, {line, 7}]}],
    Fun = fun(_) -> ok end,
    Errors = [badarg, {badarg, x}, badarith, system_limit, cond_clause, {badarity, {Fun, []}}, {badarity, {Fun, [1, "b"]}},
              {badarity, {fun errors/0, [1]}}, {badfun, x}, {badmatch, {error, enoent}}, {badmap, [x]}, {badbool, 'and', 1},
              {case_clause, "a"}, {else_clause, nil}, {try_clause, #{}}, {badkey, a}, {badkey, a, #{b => 1}}, function_clause, oops,
              {some, "thing"}],
    [compare_exit({Error, Stack}) || Error <- Errors],
    [compare_exit({{badkey, x}, [Entry]}) || Entry <- [{maps, get, [x, #{a => 1}], []}, {maps, update, [x, 1, #{}], []},
                                                       {erlang, map_get, [x, #{}], []}]],
    [compare_exit({element(1, 'Elixir.Code':eval_string(Source)), Stack})
     || Source <- [~"%RuntimeError{message: \"a\\nb\"}", ~"%ArgumentError{}", ~"%KeyError{key: :a, term: %{b: 1}}",
                   ~"%KeyError{key: :a}", ~"%KeyError{key: :a, message: \"no\"}"]],
    %% Elixir says more if the module is loaded.
    ?assertEqual(~"an exception was raised: ** (UndefinedFunctionError) function Shop.run/2 is undefined a.ex:7: Shop.run(1, :x)",
                 format_exit({undef, [{'Elixir.Shop', run, [1, x], [{file, "a.ex"}, {line, 7}]}]})),
    %% The messages of these exceptions are computed by their modules.
    ?assertEqual(~"an exception was raised: ** (Shop.Error) %Shop.Error{code: 3} lib/shop.ex:7: Shop.run(1, :x)",
                 format_exit({#{'__struct__' => 'Elixir.Shop.Error', '__exception__' => true, code => 3}, Stack})).

%% The implementation is loaded, or only a file on the code path.
hidden_structs() ->
    [{User, _}] = 'Elixir.Code':compile_string(~"defmodule WitnessInspectUser do\n  defstruct [:id, :password]\nend"),
    Struct = User:'__struct__'([{id, 1}, {password, ~"secret"}]),
    ?assertEqual(~B(%WitnessInspectUser{id: 1, password: "secret"}), format(Struct)),
    Derived = 'Elixir.Code':compile_string(
        ~"defmodule WitnessInspectDerived do\n  @derive {Inspect, only: [:id]}\n  defstruct [:id, :password]\nend"),
    [Module] = [Name || {Name, _} <- Derived, Name =:= 'Elixir.WitnessInspectDerived'],
    Secret = Module:'__struct__'([{id, 1}, {password, ~"secret"}]),
    Texts = fun() ->
        [format(Secret), format_exit({shutdown, Secret}), witness_event:format_signature({User, run, [Secret]}, elixir)]
    end,
    Shown = [~"#WitnessInspectDerived<...>", ~"shutdown: #WitnessInspectDerived<...>",
             ~"WitnessInspectUser.run(#WitnessInspectDerived<...>)"],
    ?assertEqual(Shown, Texts()),
    [{true, false} = {code:delete(Name), code:purge(Name)} || {Name, _} <- Derived],
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "witness_event_inspect_" ++ os:getpid()),
    ok = filelib:ensure_path(Folder),
    [ok = file:write_file(filename:join(Folder, atom_to_list(Name) ++ ".beam"), Code) || {Name, Code} <- Derived],
    true = code:add_patha(Folder),
    ?assertEqual(Shown, Texts()),
    ?assertNot(erlang:module_loaded('Elixir.Inspect.WitnessInspectDerived')),
    true = code:del_path(Folder),
    ok = file:del_dir_r(Folder),
    ?assertEqual(~B(%WitnessInspectDerived{id: 1, password: "secret"}), format(Secret)),
    {true, false} = {code:delete(User), code:purge(User)}.

structs_whose_module_is_unknown_have_sorted_fields_test() ->
    Struct = #{'__struct__' => 'Elixir.Shop.Conn', id => 2, name => nil, 'Elixir.A' => 1},
    ?assertEqual(~B(%Shop.Conn{"Elixir.A": 1, id: 2, name: nil}), format(Struct)),
    ?assertEqual(~"%Shop.Conn{}", format(#{'__struct__' => 'Elixir.Shop.Conn'})),
    ?assertEqual(~B(%{1 => 2, :__struct__ => Shop.Conn}), format(#{'__struct__' => 'Elixir.Shop.Conn', 1 => 2})).

structs_with_other_fields_have_no_form_of_their_own_test() ->
    [?assertEqual(Text, format(Fields#{'__struct__' => Module}))
     || {Text, Module, Fields} <- [{~"%Range{first: :a, last: 2, step: 1}", 'Elixir.Range', #{first => a, last => 2, step => 1}},
                                   {~"%MapSet{map: 1}", 'Elixir.MapSet', #{map => 1}},
                                   {~"%URI{host: nil}", 'Elixir.URI', #{host => nil}},
                                   {~B(%Regex{opts: [:x | 1], re_pattern: nil, source: ""}), 'Elixir.Regex',
                                    #{opts => [x | 1], re_pattern => nil, source => ~""}},
                                   {~"%Date{calendar: Calendar.ISO, day: 1, month: 13, year: 2026}", 'Elixir.Date',
                                    #{calendar => 'Elixir.Calendar.ISO', day => 1, month => 13, year => 2026}},
                                   {~"%Date{calendar: Shop.Calendar, day: 1, month: 1, year: 2026}", 'Elixir.Date',
                                    #{calendar => 'Elixir.Shop.Calendar', day => 1, month => 1, year => 2026}}]].

fields_that_the_author_of_a_struct_may_hide_are_not_shown_test() ->
    Term = {#{'__struct__' => 'Elixir.Shop.User', password => ~"secret"}, #{'__struct__' => 'Elixir.Shop.Item', id => 1}},
    Hides = fun(Module) -> Module =:= 'Elixir.Shop.User' end,
    ?assertEqual(~"{#Shop.User<...>, %Shop.Item{id: 1}}", witness_event_inspect:format(Term, ?ALL, Hides)),
    ?assertEqual(~"shutdown: {#Shop.User<...>, %Shop.Item{id: 1}}",
                 witness_event_inspect_exit:format({shutdown, Term}, ?ALL, Hides)).

identifiers_of_logs_keep_their_numbers_test() ->
    [begin
         {ok, Term} = witness_log_term:text(Logged, witness_log_atoms:new(9)),
         ?assertEqual(Text, witness_event:format_proc(Term, elixir))
     end || {Text, Logged} <- [{~"#PID<7.90.0>", ~"<7.90.0>"}, {~"#Reference<7.1.2.3>", ~"#Ref<7.1.2.3>"},
                               {~"#Port<7.5>", ~"#Port<7.5>"}, {~"#Fun<m.0.1>", ~"#Fun<m.0.1>"}]].

harmful_characters_are_escaped_test() ->
    [?assertEqual(Text, format(Term))
     || {Text, Term} <- [{~B("\eb"), ~"\eb"}, {~B(:"\e[31m"), '\e[31m'}, {~B(:"\u009B"), '\x{9B}'},
                         {~B("a\u00AD"), <<"a", 16#AD/utf8>>}, {~B("\u{0E0001}"), <<16#E0001/utf8>>}, {~B("\u206A"), <<16#206A/utf8>>}]],
    ?assertEqual(~B"no connection to \u202E@a", format_exit({nodedown, '\x{202E}@a'})),
    Exception = #{'__struct__' => 'Elixir.E', '__exception__' => true, message => <<"a\n\eb", 16#202E/utf8>>},
    ?assertEqual(~B"an exception was raised: ** (E) a \x1Bb\u202E :m.f/1", format_exit({Exception, [{m, f, 1, []}]})).

large_integers_are_in_base_16_test() ->
    ?assertEqual(~"0x100000000000000...", witness_event:format_term(1 bsl 80_000, 20, elixir)).

unknown_arguments_are_left_out_test() ->
    ?assertEqual(~":m.f/2", witness_event_inspect:call({m, f, ['_', '_']}, ?ALL)).

random_terms() ->
    Seed = number("WITNESS_FUZZ_SEED", ?SEED),
    [begin
         Term = random(Seed, Number),
         ?assertEqual({Seed, Number, inspect(Term)}, {Seed, Number, format(Term)}),
         %% Here Elixir does not sort the keys of maps.
         Reason = reason(one([leaf(), [leaf(), leaf()], {leaf(), leaf()}, standard()])),
         ?assertEqual({Seed, Number, one_line('Elixir.Exception':format_exit(Reason))},
                      {Seed, Number, one_line(format_exit(Reason))})
     end || Number <- lists:seq(1, number("WITNESS_INSPECT_TERMS", ?TERMS))].

random(Seed, Number) ->
    _ = rand:seed(exsss, {Seed, Number, 7}),
    term(rand:uniform(5) - 1).

reason(Term) ->
    case rand:uniform(6) of
        1 -> Term;
        2 -> {shutdown, Term};
        3 -> {Term, {atom(), atom(), [Term, x]}};
        4 -> {timeout, {'Elixir.GenServer', call, Term}};
        5 -> {Term, [{atom(), atom(), one([1, [Term]]), [{file, "lib/a.ex"}, {line, 1}]}, {m, f, 0, []}]};
        6 -> {reason(Term), {m, f, []}}
    end.

term(0) -> leaf();
term(Depth) ->
    Count = rand:uniform(4) - 1,
    Terms = [term(Depth - 1) || _ <- lists:seq(1, Count)],
    case rand:uniform(9) of
        1 -> Terms;
        2 -> list_to_tuple(Terms);
        3 -> Terms ++ leaf();
        4 -> [{atom(), Term} || Term <- Terms];
        5 -> maps:from_list([{atom(), Term} || Term <- Terms]);
        6 -> maps:from_list([{key(), Term} || Term <- Terms]);
        7 -> maps:from_list([{'__struct__', one([ok, 'Elixir.foo', 1, ~"a"])} | [{atom(), Term} || Term <- Terms]]);
        8 -> [{atom(), term(Depth - 1)}, leaf() | Terms];
        9 -> standard()
    end.

%% A struct of Elixir with its own form.
standard() ->
    Time = #{hour => rand:uniform(24) - 1, minute => rand:uniform(60) - 1, second => rand:uniform(60) - 1,
             microsecond => {rand:uniform(1_000_000) - 1, rand:uniform(7) - 1}, calendar => 'Elixir.Calendar.ISO'},
    Date = #{year => rand:uniform(20_000) - 10_000, month => rand:uniform(12), day => rand:uniform(28),
             calendar => 'Elixir.Calendar.ISO'},
    DateTime = maps:merge(Date, Time),
    Zone = one([#{time_zone => ~"Etc/UTC", zone_abbr => ~"UTC", utc_offset => 0, std_offset => 0},
                #{time_zone => ~"Etc/GMT", zone_abbr => ~"GMT", utc_offset => 0, std_offset => 0},
                #{time_zone => ~"A/B", zone_abbr => ~"É", utc_offset => rand:uniform(90_000) - 45_000, std_offset => 3600}]),
    {Module, Fields} =
        one([{'Elixir.Range', #{first => rand:uniform(9) - 5, last => rand:uniform(9) - 5, step => one([1, -1, 2, -2])}},
             {'Elixir.Date', Date}, {'Elixir.Time', Time}, {'Elixir.NaiveDateTime', DateTime}, {'Elixir.DateTime',
             maps:merge(DateTime, Zone)},
             {'Elixir.MapSet', #{map => maps:from_keys(lists:usort([rand:uniform(99) || _ <- lists:seq(0, rand:uniform(9))]), [])}},
             {'Elixir.Regex', #{source => text(string()), opts => one([[], [caseless], [unicode, ucp, multiline]]),
             re_pattern => none}},
             {'Elixir.RuntimeError', #{'__exception__' => true, message => one([~"oops", <<"é\nb"/utf8>>, ~""])}}]),
    Fields#{'__struct__' => Module}.

%% Elixir sorts 1 and 1.0 as the same key.
key() -> one([atom(), rand:uniform(50), binary(), list(), {atom()}, self()]).

leaf() ->
    case rand:uniform(9) of
        1 -> atom();
        2 -> rand:uniform(1 bsl 33) - (1 bsl 32);
        3 -> (rand:uniform(1 bsl 60) - (1 bsl 59)) * rand:uniform(1 bsl 60);
        4 -> float();
        5 -> binary();
        6 -> list();
        7 -> Bits = rand:uniform(40), <<(rand:uniform(1 bsl 60)):Bits>>;
        8 -> one([self(), make_ref(), hd(erlang:ports()), fun lists:map/2, fun leaf/0, fun() -> leaf() end, [], {}, #{}, ~""]);
        9 -> string()
    end.

atom() -> one(['_', ok, nil, true, 'Elixir.Shop.Pool', 'Elixir', 'Elixir.foo', 'with space', 'a-b', '+', '..', '::', 'Foo', a1,
               b_2, 'ok?', 'x!', 'é', '',
               '\e[31m', '#{', 'a"b', '%{}', do]).

float() ->
    case rand:uniform(4) of
        1 -> rand:uniform();
        2 -> float(rand:uniform(1 bsl 60));
        3 -> (rand:uniform(2_000_000) - 1_000_000) / 100;
        4 ->
            <<F:64/float>> = <<(rand:uniform(2) - 1):1, (rand:uniform(2046)):11, (rand:uniform(1 bsl 52) - 1):52>>,
            F
    end.

binary() -> one([rand:bytes(rand:uniform(6) - 1), text(string()), <<(text(string()))/binary, (rand:bytes(1))/binary>>]).

list() -> one([string(), string() ++ [rand:uniform(300)], string() ++ atom()]).

%% Characters that Elixir escapes as this module does.
string() -> [character() || _ <- lists:seq(1, rand:uniform(8) - 1)].

character() ->
    case rand:uniform(10) of
        1 -> rand:uniform(32) - 1;
        2 -> one("\"\\#{}'/\d");
        3 -> one([$é, $ż, 16#A0, 16#85, 16#2003, 16#200B, 16#202E, 16#2028, 16#FEFF, 16#FFFC, 16#FFFD, 16#4E00, 16#1F600, 16#E000,
                  16#34F]);
        _ -> $\s + rand:uniform(94)
    end.

one(List) -> lists:nth(rand:uniform(length(List)), List).
