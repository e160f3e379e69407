-module(witness_event_term_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ALL, 1_000_000).

%% Examples

terms_are_written_as_the_shell_does_test_() ->
    [
        ?_assertEqual(Text, format(Term))
     || {Text, Term} <- [
            {~"ok", ok},
            {~"'Elixir.A'", 'Elixir.A'},
            {~"-12", -12},
            {~"1.0e22", 1.0e22},
            {~"[]", []},
            {~"{}", {}},
            {~"#{}", #{}},
            {~"<<>>", <<>>},
            {~"[1,[2|3]]", [1, [2 | 3]]},
            {~"{a,{b}}", {a, {b}}},
            {~"#{a => 1,b => #{}}", #{b => #{}, a => 1}},
            {~"<<\"ab\">>", ~"ab"},
            {~"<<1,2:3>>", <<1, 2:3>>},
            {~"fun lists:map/2", fun lists:map/2}
        ]
    ].

strings_are_readable_test_() ->
    [
        ?_assertEqual(~"\"it's\"", format("it's")),
        ?_assertEqual(~B("a\"\\\n\t"), format("a\"\\\n\t")),
        ?_assertEqual(~"\"né\"", format("né")),
        ?_assertEqual(~B(<<"zażółć"/utf8>>), format(~"zażółć")),
        ?_assertEqual(~"<<255,97>>", format(<<255, "a">>)),
        ?_assertEqual(~"[97,0]", format([97, 0])),
        ?_assertEqual(~"[97,98|c]", format([97, 98 | c])),
        ?_assertEqual(~"[97,-1]", format([97, -1]))
    ].

control_sequences_are_escaped_test_() ->
    [
        ?_assertEqual(~B("\e[31m"), format("\e[31m")),
        ?_assertEqual(~B(<<"\e]0;title">>), format(~"\e]0;title")),
        ?_assertEqual(~B('\e[31m'), format('\e[31m')),
        ?_assertEqual(~"[155,51,49,109]", format([16#9B | "31m"])),
        ?_assertEqual(~"<<194,155,51>>", format(<<16#9B/utf8, "3">>)),
        ?_assertEqual(~B(<<"\x{202E}gpj"/utf8>>), format(<<16#202E/utf8, "gpj">>)),
        ?_assertEqual(~B('\x{202E}gpj'), format(list_to_atom([16#202E | "gpj"]))),
        ?_assertEqual(~B(<<"\x{2028}"/utf8>>), format(<<16#2028/utf8>>))
    ].

what_is_too_long_ends_in_dots_test_() ->
    [
        ?_assertEqual(~"[1,2,3]", witness_event:format_term([1, 2, 3], 7)),
        ?_assertEqual(~"[1,...", witness_event:format_term([1, 2, 3], 6)),
        ?_assertEqual(~"\"aaa...", witness_event:format_term(lists:duplicate(100, $a), 7)),
        ?_assertEqual(~"<<\"ééé...", witness_event:format_term(binary:copy(~"é", 100), 9)),
        ?_assertEqual(~"...", witness_event:format_term(abcd, 3)),
        ?_assertEqual(~".", witness_event:format_term(abcd, 1)),
        ?_assertEqual(~"", witness_event:format_term(abcd, 0))
    ].

the_size_of_a_term_does_not_matter_test_() ->
    Million = fun() -> lists:seq(1, 1_000_000) end,
    Nested = fun(Wrap, Inmost) -> lists:foldl(fun(_, Inner) -> Wrap(Inner) end, Inmost, Million()) end,
    Huge = [
        {long_list, Million},
        {long_string, fun() -> lists:duplicate(1_000_000, $a) end},
        {long_tuple, fun() -> list_to_tuple(Million()) end},
        {big_map, fun() -> maps:from_keys(Million(), x) end},
        {long_binary, fun() -> binary:copy(~"é", 1_000_000) end},
        {long_bitstring, fun() -> <<0:8_000_001>> end},
        {deep_list, fun() -> Nested(fun(Inner) -> [Inner] end, []) end},
        {deep_tuple, fun() -> Nested(fun(Inner) -> {Inner} end, {}) end},
        {deep_key, fun() -> lists:foldl(fun(_, Inner) -> #{Inner => 1} end, #{}, lists:seq(1, 10_000)) end},
        {wide_and_deep, fun() -> lists:foldl(fun(_, Inner) -> {Inner, Inner, Inner} end, x, lists:seq(1, 100)) end},
        {deep_tail, fun() -> Nested(fun(Inner) -> {a, [b | Inner]} end, x) end},
        {integer, fun() -> 1 bsl 3_000_000 end},
        {negative_integer, fun() -> -(1 bsl 3_000_000) end},
        {keywords, fun() -> [{a, N} || N <- Million()] end},
        {deep_keywords, fun() -> Nested(fun(Inner) -> [{a, Inner}] end, []) end},
        {set, fun() -> #{'__struct__' => 'Elixir.MapSet', map => maps:from_keys(Million(), [])} end},
        {struct, fun() -> (maps:from_keys(Million(), x))#{'__struct__' => 'Elixir.Shop'} end},
        {regex, fun() -> #{'__struct__' => 'Elixir.Regex', source => binary:copy(~"é", 1_000_000), opts => [],
        re_pattern => none} end}
    ],
    Reasons = [
        {stack, fun() -> {oops, [{m, f, 1, []} || _ <- Million()]} end},
        {arguments, fun() -> {oops, {m, f, Million()}} end},
        {deep_reason, fun() -> Nested(fun(Inner) -> {Inner, {m, f, []}} end, x) end},
        {message,
         fun() -> {#{'__struct__' => 'Elixir.E', '__exception__' => true, message => binary:copy(~"é", 1_000_000)}, [{m, f, 1,
         []}]} end}
    ],
    [{lists:concat([Format, " in ", Syntax, ": ", Name]), fun() -> formats_at_once(Format, Make(), Syntax) end}
     || {Format, Syntax, Terms} <- [{format_term, erlang, Huge}, {format_term, elixir, Huge}, {format_reason, elixir, Reasons}],
        {Name, Make} <- Terms].

%% Reductions, not time: they do not depend on the machine.
formats_at_once(Format, Term, Syntax) ->
    ok = code:ensure_modules_loaded([witness_event_inspect, witness_event_inspect_exit, witness_event_inspect_name,
                                     witness_event_inspect_struct, witness_event_bounded, unicode_util]),
    %% To collect garbage that is there before takes reductions.
    true = garbage_collect(),
    {reductions, Before} = process_info(self(), reductions),
    Text = witness_event:Format(Term, 100, Syntax),
    {reductions, After} = process_info(self(), reductions),
    ?assertEqual(100, string:length(Text)),
    ?assertMatch({_, true}, {After - Before, After - Before < 20_000}).

big_integers_are_shown_in_base_16_test() ->
    ?assertEqual(~"16#10000000000000...", witness_event:format_term(1 bsl 80_000, 20)),
    ?assertEqual(~"-16#ABC0000000000...", witness_event:format_term(-(16#ABC bsl 80_000), 20)),
    ?assertEqual(1 bsl 80_000, evaluate(format(1 bsl 80_000))).

%% OTP 29 has terms that no earlier release has.
native_records_are_written_test() ->
    case list_to_integer(erlang:system_info(otp_release)) >= 29 of
        true ->
            Record = native_record("a\e[31m"),
            ?assertEqual(~B'{a,#native:point{x = "a\e[31m"}}', format({a, Record})),
            ?assertEqual(~B'{:a, #native:point{x = "a\e[31m"}}', witness_event:format_term({a, Record}, ?ALL, elixir)),
            ?assertEqual(~"{a,#native...", witness_event:format_term({a, Record}, 13)),
            ?assertEqual({a, 'term()'}, witness_event_redact:term({a, Record}));
        false -> ok
    end.

native_record(X) ->
    Forms = [begin
                 {ok, Tokens, _} = erl_scan:string(Form),
                 {ok, Parsed} = erl_parse:parse_form(Tokens),
                 Parsed
             end || Form <- ["-module(native).", "-export([make/1]).", "-record #point{x}.", "make(X) -> #point{x = X}."]],
    {ok, native, Code} = compile:forms(Forms),
    {module, native} = code:load_binary(native, "native", Code),
    native:make(X).

%% Properties

every_text_is_short_harmless_and_on_one_line_test_() ->
    check(?FORALL({Term, Limit, Format, Syntax}, {anything(), limit(), format(), syntax()}, begin
        Text = witness_event:Format(Term, Limit, Syntax),
        is_harmless(Text) andalso length(unicode:characters_to_list(Text)) =< Limit
    end)).

only_what_is_too_long_is_cut_test_() ->
    check(?FORALL({Term, Limit, Format, Syntax}, {anything(), limit(), format(), syntax()}, begin
        Text = witness_event:Format(Term, Limit, Syntax),
        Whole = witness_event:Format(Term, ?ALL, Syntax),
        case length(unicode:characters_to_list(Whole)) =< Limit of
            true -> Text =:= Whole;
            false ->
                Chars = unicode:characters_to_list(Text),
                length(Chars) =:= Limit andalso lists:suffix(lists:duplicate(min(Limit, 3), $.), Chars)
        end
    end)).

every_text_of_data_is_read_back_as_the_same_term_test_() ->
    check(?FORALL(Term, data(), evaluate(format(Term)) =:= Term)).

every_event_is_written_test_() ->
    check(?FORALL({Peer, Other, Term}, {anything(), anything(), anything()}, begin
        Events = [
            {fork, Peer, Other, {m, f, Term}, 1},
            {init, Peer, Other, {m, f, [Term]}, 1},
            {exit, Peer, Term, 1},
            {send, Peer, Other, Term, 1},
            {recv, Peer, Other, Term, 1}
        ],
        lists:all(fun(Event) -> is_harmless(witness_event:format(Event)) end, Events)
    end)).

every_signature_is_written_test_() ->
    check(?FORALL({M, F, Args, Syntax}, {anything(), anything(), anything(), syntax()}, begin
        Texts = [witness_event:format_signature({M, F, Args}, Syntax), witness_event:format_function({M, F, Args}, Syntax),
                 witness_event:format_proc(M, Syntax)],
        lists:all(fun(Text) -> is_harmless(Text) andalso string:length(Text) =< 200 end, Texts)
    end)).

no_text_makes_atoms_test_() ->
    check(?FORALL({Term, Format, Syntax}, {anything(), format(), syntax()}, begin
        Atoms = erlang:system_info(atom_count),
        _ = witness_event:Format(Term, ?ALL, Syntax),
        Atoms =:= erlang:system_info(atom_count)
    end)).

every_name_of_a_log_is_written_test_() ->
    check(?FORALL({Name, Limit}, {oneof([binary(), text()]), limit()}, begin
        Text = witness_event_term:text(Name, Limit),
        is_harmless(Text) andalso length(unicode:characters_to_list(Text)) =< Limit
    end)).

check(Property) ->
    {timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 500}, {to_file, user}, nocolors]))}.

is_harmless(Text) ->
    is_binary(Text) andalso
        case unicode:characters_to_list(Text) of
            Chars when is_list(Chars) -> not lists:any(fun is_harmful/1, Chars);
            _ -> false
        end.

is_harmful(Char) when Char < 32; Char >= 127, Char < 160 -> true;
is_harmful(Char) when Char >= 16#200B, Char =< 16#200F; Char >= 16#2028, Char =< 16#202E -> true;
is_harmful(Char) when Char >= 16#2066, Char =< 16#2069; Char =:= 16#FEFF -> true;
is_harmful(_) -> false.

format(Term) -> witness_event:format_term(Term, ?ALL).

evaluate(Text) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text) ++ "."),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, Value, _} = erl_eval:exprs(Expressions, #{}),
    Value.

%% Generators

syntax() -> oneof([erlang, elixir]).
format() -> oneof([format_term, format_reason]).

limit() -> oneof([range(0, 10), range(0, 300), ?ALL]).

anything() -> ?LET({Kind, Term, Other}, {range(1, 12), tree(oneof([leaf(), alien()])), tree(leaf())}, strange(Kind, Term, Other)).

%% What looks like a struct of Elixir, the reason of an exit, or an exception, with other terms inside.
strange(1, Term, Other) -> {Term, {name, name, Other}};
strange(2, Term, Other) -> {Term, [{m, f, Other, Term}]};
strange(3, Term, Other) -> {Term, [{m, f, 1, [{file, Other}, {line, Term}]}]};
strange(4, Term, Other) -> {#{'__struct__' => 'Elixir.E', '__exception__' => true, message => Term}, [{m, f, 1, []} | Other]};
strange(5, Term, Other) -> {shutdown, {failed_to_start_child, Term, Other}};
strange(6, Term, Other) when is_map(Other) -> Other#{'__struct__' => Term};
strange(7, Term, Other) ->
    #{'__struct__' => 'Elixir.DateTime', calendar => 'Elixir.Calendar.ISO', year => 2026, month => 1, day => 2, hour => Term,
      minute => 0, second => 0, microsecond => {0, 0}, time_zone => Other, zone_abbr => Term, utc_offset => 0, std_offset => 0};
strange(8, Term, Other) -> #{'__struct__' => 'Elixir.Regex', source => Term, opts => Other, re_pattern => none};
strange(9, Term, Other) -> #{'__struct__' => 'Elixir.MapSet', map => Term, first => Other};
strange(10, Term, Other) -> #{'__struct__' => 'Elixir.Range', first => Term, last => Other, step => 1};
strange(11, Term, Other) -> {{badarity, {fun lists:map/2, Term}}, [{fun lists:map/2, Other, []}]};
strange(_, Term, _) -> Term.

data() -> tree(leaf()).

tree(Leaf) -> ?SIZED(Size, tree(Size, Leaf)).

tree(0, Leaf) -> Leaf;
tree(Size, Leaf) ->
    Smaller = ?LAZY(tree(Size div 3, Leaf)),
    frequency([
        {2, Leaf},
        {2, few(Smaller)},
        {1, ?LET({Head, Tail}, {Smaller, Smaller}, [Head | Tail])},
        {2, ?LET(Elements, few(Smaller), list_to_tuple(Elements))},
        {1, ?LET(Pairs, few({Smaller, Smaller}), maps:from_list(Pairs))}
    ]).

few(Type) -> ?LET(Length, range(0, 4), vector(Length, Type)).

leaf() ->
    oneof([
        integer(), big(), float(), binary(), bitstring(), text(), binary_to_list(), name(), [], char_list(),
        oneof([ok, 'a b', 'Elixir.A', '', 'maybe', 'when'])
    ]).

big() -> ?LET({Base, Shift}, {integer(), range(0, 4000)}, Base bsl Shift).
binary_to_list() -> ?LET(Binary, binary(), erlang:binary_to_list(Binary)).
char_list() -> list(nasty_char()).
text() -> ?LET(Chars, list(nasty_char()), unicode:characters_to_binary(Chars)).
name() -> ?LET(Chars, ?SUCHTHAT(Chars, list(nasty_char()), length(Chars) < 20), known_atom(Chars)).

%% The names come from a bounded set, whatever the number of tests.
known_atom(Chars) -> list_to_atom([lists:nth(C rem 16 + 1, atom_chars()) || C <- lists:sublist(Chars, 3)]).
atom_chars() -> [$a, $Z, $_, $@, $., $\s, $', $\\, $\e, $\n, 0, 127, 16#9B, 16#E9, 16#202E, 16#1F600].

nasty_char() ->
    oneof([
        range($a, $z), range(0, 31), range(127, 160), $", $\\, $', 16#E9, 16#142, 16#200B, 16#2028, 16#202E, 16#2066,
        16#FEFF, 16#FFFD, 16#FFFE, 16#1F600, 16#E0001, 16#10FFFF
    ]).

alien() ->
    oneof([
        exactly(self()), exactly(make_ref()), ?LAZY(hd(erlang:ports())), exactly(fun lists:map/2),
        exactly(fun '\e[31m':'a b'/3), exactly(fun 'ł\x{202E}':'é'/1), ?LET(X, integer(), fun() -> X end)
    ]).
