-module(witness_spec_format_tests).
-include_lib("eunit/include/eunit.hrl").

%% What a careful author writes stays as it is.
well_written_specifications_stay_as_they_are_test_() ->
    [?_assertEqual(Text, format(Text)) || Text <- [
        ~"""
        %% A calculator.

        %% Each sum is right.
        sums: with calc_server:loop(_)
        monitor
          and([_ <- _, calc_server:loop(_)]
            max(Ready.
              and([_ ? {_, {add, A, B}}]
                    and([_ : _ ! {ok, Sum} when Sum =/= A + B] ff,
                        [_ : _ ! {ok, Sum} when Sum =:= A + B] Ready),
                  [_ ? {_, {mul, _, _}}]
                    and([_ : _ ! {ok, _}] Ready)))).

        """,
        ~"""
        -include("account.hrl").
        -record(deposit, {to, sum = 0 :: integer()}).

        % One.
        grows: with bank:init(_), 'Elixir.Bank':init(_) group
        per Owner over begin _ : _ ! #account{owner = Owner}, _ ? #deposit{to = Owner}, _ ** _
        let Sum = sum within 7 d N of {_ ? #deposit{sum = N}} or {_ ? {add, N}}
        let Known(X) = not Sum since {_ ? {know, X} when X > 1}
        check
          [_ <- _, bank:init(_)]
          max Open(N = 0, Last = []).(
            [_ ? #deposit{}] Open(N + 1, [_ | Last])
            and [_ : _ ! #account{balance = Before}] (
              Open
              and [_ ? #deposit{sum = Sum}]
                  [_ : _ ! After when is_record(After, account), After#account.balance =/= Before + Sum] ff)
            and within 5 s min Due.(<_ : _ ! <<Size:16, _/binary>>> tt or <else> Due)).

        with m:f(_) none.
        two: with m:f(_) over _ ? a, _ --> _, m:g(_), {_ * normal} check [_ ? a] ff.

        """,
        ~"""
        action Started(Job) = _ : _ ! {started, Job}.
        define Printing(Job, Done) =
          [Started(Job)] Done
          and [else] ff.
        define Idle(X) = [else] X.

        one: per Id over _ ? {a, Id} among m:f(_), m:g(_)
        check max X. [_ ? a] X.

        answered: with tickets:init(_) per From
          always call(From, _) leads to reply(From, _) within 5 s.

        kept: with tickets:init(_)
        over _ ? {lent, _}, _ : _ ! reply(_, {ok, Id}) to {get, _}
          never {_ : _ ! b} after {_ ? c} until {_ ? d when true}.

        shipped: with orders:init(_) per Order
        let Paid = count within 1 min {_ ? {paid, _}}
        let Late = once {_ ? late} or {_ ? {late, _}}
          {_ ? {placed, Order}} then {_ ? {paid, Order}}
          precedes {_ : _ ! {shipped, Order} when Paid > 2, not Late} then call(_, Order).

        counter: with tickets:init(N)
          machine (Left = N - 1, Sold = [])
            state open:
              reply(_, {seat, _}) when Left > 0  -> stay (Left = Left - 1);
              reply(_, sold_out)                 -> closed
            hot state closed within 1 min:
              %% Too late.
              reply(_, {seat, _})                -> violated "a seat was sold after the last one";

              else                               -> satisfied  % all is well
          end.

        unique: with tickets:init(_) unique Seat in reply(_, {seat, Seat}).

        """]].

%% What one wrote in a hurry.
layouts_test_() ->
    [{Name, ?_assertEqual(unicode:characters_to_binary(Formatted), format(Text))} || {Name, Text, Formatted} <- [
        {"spaces", ~"a:with m : f( _ ),m:g(1)check[ _?{a ,b} when X>1,Y=:=2;Z ]<P:Q!#{a=>1}>tt.",
         ~"a: with m:f(_), m:g(1) check [_ ? {a, b} when X > 1, Y =:= 2; Z] <P : Q ! #{a => 1}> tt.\n"},
        {"arithmetic", ~"with m:f(_) check [_ ? N when N>-1,N-1=:=2*N+ -3] [_ ? <<N:8/integer-unit:2,-1>>] ff.",
         ~"with m:f(_) check [_ ? N when N > -1, N - 1 =:= 2 * N + -3] [_ ? <<N:8/integer-unit:2, -1>>] ff.\n"},
        {"operators go to the beginning of a line", ~"with m:f(_)\ncheck max X.([_ ? a] X and\n[_ ? b] X and [_ ? c] X\nand [_ ? d] ff).",
         ~"with m:f(_)\ncheck\n  max X.(\n    [_ ? a] X\n    and [_ ? b] X and [_ ? c] X\n    and [_ ? d] ff).\n"},
        {"a long formula is broken everywhere",
         [~"with m:f(_) check ", lists:join(~" and ", lists:duplicate(6, ~"[_ ? {request, _}] ff")), ~"."],
         [~"with m:f(_)\ncheck\n  ", lists:join(~"\n  and ", lists:duplicate(6, ~"[_ ? {request, _}] ff")), ~".\n"]},
        {"or is outside of and", ~"with m:f(_)\ncheck\n <_ ? a> tt or <_ ? b> tt and\n<_ ? c> tt or <_ ? d> tt.",
         ~"with m:f(_)\ncheck\n  <_ ? a> tt\n  or <_ ? b> tt\n    and <_ ? c> tt\n  or <_ ? d> tt.\n"},
        {"empty lines", ~"\n\n\nwith m:f(_)\n\n\n\ncheck\n\n  [_ ? a] ff.\n\n\n\n%% c\n\n\nwith m:g(_) none.   \n\n\n",
         ~"with m:f(_)\n\ncheck\n\n  [_ ? a] ff.\n\n%% c\n\nwith m:g(_) none.\n"},
        {"comments", ~"%% a\nx: % b\nwith m:f(_) %c\ncheck % d\n  max X.( % e\n[_ ? a] ff % f\nand % g\n %h\n[else] X).% i\n   %% j",
         ~"%% a\nx:              % b\n  with m:f(_)   %c\ncheck           % d\n  max X.(       % e\n    [_ ? a] ff  % f\n    and         % g\n    %h\n    [else] X).  % i\n%% j\n"},
        {"only comments", ~"\t%% a\r\n\r\n%b", ~"%% a\n\n%b\n"},
        {"nothing", ~" \n\n ", ~""},
        {"a text of several lines", ~"with m:f(\"\"\"\n  one\n    two\n  \"\"\") check\n[_ ? \"a\nb\"] ff.",
         ~"with m:f(\"\"\"\n  one\n    two\n  \"\"\")\ncheck\n  [_ ? \"a\nb\"] ff.\n"},
        {"signs that would be one", ~"with m:f(_) check [ _ ** _ ] < <<1>> ? a> [$  ? - 1] <_ ? ~\"a\" > tt.",
         ~"with m:f(_) check [_ ** _] < <<1>> ? a> [$  ? - 1] <_ ? ~\"a\"> tt.\n"},
        {"words that are data", ~"with m:f(_) over check : over ! none, _ ? with, _ : per ! reply(_, monitor) to check check [_ ? let_] ff.",
         ~"with m:f(_)\nover check : over ! none, _ ? with, _ : per ! reply(_, monitor) to check\ncheck [_ ? let_] ff.\n"},
        {"a comma between properties", ~"with m:f(_) none, b: with m:g(_) none ,\nper X over _ ? X check tt .",
         ~"with m:f(_) none,\nb: with m:g(_) none,\nper X over _ ? X check tt.\n"},
        {"sentences", ~"a: with m:f(_) per Id {_ ? {a,Id}} then {_ ? b} precedes {_?c}.\nwith m:f(_)\nper Id\n{_ ? {a,Id}}alternates\nwith {_?c}.",
         ~"a: with m:f(_) per Id {_ ? {a, Id}} then {_ ? b} precedes {_ ? c}.\nwith m:f(_) per Id\n  {_ ? {a, Id}} alternates with {_ ? c}.\n"},
        {"long sentences",
         ~"""
         with m:f(_) always {_ ? {placed, Order, Client}} then {_ ? {paid, Order}} leads to {_ : _ ! {sent, Order}} then {_ : _ ! {invoice, Order}} within 2 d.
         with m:f(_) always {_ ? {placed, Order, Client, Number}} then {_ ? {paid, Order, Client, Number}} then {_ ? {packed, Order}} leads to {_ : _ ! {sent, Order, Client, Number, "a long text of many words", Day, Month, Year, Carrier}}.
         with m:f(_) at most 1 {_ : _ ! {checked, Order}}
         in
         any 5 s between {_ ? a}
         and {_ ? b}.
         with m:f(_) never {_ ? {request, Client, Number}
         when Number > 1000, Client =/= root, Client =/= nobody, is_atom(Client)} before {_ ? b}.
         """,
         ~"""
         with m:f(_)
           always {_ ? {placed, Order, Client}} then {_ ? {paid, Order}}
           leads to {_ : _ ! {sent, Order}} then {_ : _ ! {invoice, Order}} within 2 d.
         with m:f(_)
           always {_ ? {placed, Order, Client, Number}} then {_ ? {paid, Order, Client, Number}}
           then {_ ? {packed, Order}}
           leads to {_ : _ ! {sent, Order, Client, Number, "a long text of many words", Day, Month, Year,
                              Carrier}}.
         with m:f(_)
           at most 1 {_ : _ ! {checked, Order}}
           in any 5 s between {_ ? a} and {_ ? b}.
         with m:f(_)
           never {_ ? {request, Client, Number} when Number > 1000, Client =/= root, Client =/= nobody,
                  is_atom(Client)} before {_ ? b}.

         """},
        {"durations", ~"with m:f(_) check within   5    s <_ ? T when T<5  ms> tt.", ~"with m:f(_) check within 5 s <_ ? T when T < 5 ms> tt.\n"}]].

%% The dot of a loop and that of a name are others with a space behind them.
dots_are_kept_test() ->
    ?assertEqual(~"with Shop.Pool.init(_) check max X.[_ ? a] max Y. [_ ? V when V#r.f > 1.5] (X and Y).\n",
                 format(~"with Shop.Pool.init(_) check max X.[_ ? a] max Y. [_ ? V when V#r.f>1.5](X and Y).")).

%% A form that is not known keeps its lines; deeper lines are two columns deeper each.
unknown_words_keep_their_lines_test() ->
    Text = ~"""
    lock: with lock:init(_)   per Id
    over _ ? {lock, Id},   _ ? {free, Id}
    automaton
         state free: % at first
               _ ? {lock, _}->taken ;
               _ ? {free, _} -> error
         state taken:
               _ ? {free, _} -> free;

               else ->
                     stay
    end.
    foo bar
        -> baz ( 1,2 ).

    """,
    Formatted = ~"""
    lock: with lock:init(_)
    per Id over _ ? {lock, Id}, _ ? {free, Id}
    automaton
      state free:  % at first
        _ ? {lock, _}->taken;
        _ ? {free, _} -> error
      state taken:
        _ ? {free, _} -> free;

        else ->
          stay
    end.
    foo bar
      -> baz (1, 2).

    """,
    ?assertEqual(Formatted, format(Text)),
    ?assertEqual(Formatted, format(Formatted)).

%% Such a word cannot be indented, so its column says nothing.
a_word_that_is_too_wide_does_not_change_the_depth_of_what_comes_then_test() ->
    Text = [~"with m:f(_)\nfoo\n  bar\n  ", lists:duplicate(120, $a), ~" bar.\n"],
    Formatted = format(Text),
    ?assertEqual(Formatted, format(Formatted)).

%% The arrows of a machine stand in one column, of a state if that does not fit, and behind one blank if that does not, either.
machines_test() ->
    Text = ~"""
    %% One.
    lock: with lock:init(_)   per Id
    machine(N=0, M = none)
         state free : % at first
               _ ? {lock, Id} ->taken(N=N+1) ; % here
               {_ ? {free, _} when N > 1}
                 -> violated "why"; P -> C, m:f(_) -> stay
         hot   state taken within   5  s : _ ? {free, _} -> free;

               % All others.
               else ->
                     stay % nothing
      state ended:
    end.
    wide: with lock:init(_) machine state a: _ ? x -> b; else -> violated state b:
      _ ? {request, Aaaaaaaaaaaaaaaaaaaaaaaaaaaa, Bbbbbbbbbbbbbbbbb} -> a;
      _ ? x
        -> violated "this text is longer" state c:
      _ ? {request, Aaaaaaaaaaaaaaaaaaaaaaaaaaaa, Bbbbbbbbbbbbbbbbbbbbbbbbbbbbb} -> violated "not twice" end,
    per Id over _ ? {a, Id} machine state a: returns m:f/1 -> V when V > 1 -> a end.
    """,
    Formatted = ~"""
    %% One.
    lock: with lock:init(_) per Id
      machine (N = 0, M = none)
        state free:                                          % at first
          _ ? {lock, Id}              -> taken (N = N + 1);  % here
          {_ ? {free, _} when N > 1}  -> violated "why";
          P -> C, m:f(_)              -> stay
        hot state taken within 5 s:
          _ ? {free, _}               -> free;

          % All others.
          else                        -> stay  % nothing
        state ended:
      end.
    wide: with lock:init(_)
      machine
        state a:
          _ ? x  -> b;
          else   -> violated
        state b:
          _ ? {request, Aaaaaaaaaaaaaaaaaaaaaaaaaaaa, Bbbbbbbbbbbbbbbbb} -> a;
          _ ? x -> violated "this text is longer"
        state c:
          _ ? {request, Aaaaaaaaaaaaaaaaaaaaaaaaaaaa, Bbbbbbbbbbbbbbbbbbbbbbbbbbbbb}
            -> violated "not twice"
      end,
    per Id over _ ? {a, Id}
      machine
        state a:
          returns m:f/1 -> V when V > 1  -> a
      end.

    """,
    ?assertEqual(Formatted, format(Text)),
    ?assertEqual(Formatted, format(Formatted)).

%% Long names, and brackets that are deeper than a line is wide.
lines_are_wider_than_the_width_only_with_one_word_test() ->
    Long = lists:duplicate(130, $a),
    Deep = [~"with m:f(_) check ", lists:duplicate(300, ~"[_ ? a] max X.("), ~"ff", lists:duplicate(300, $)), ~"."],
    [begin
         Formatted = format(Text),
         ?assertEqual([], [Line || Line <- string:split(Formatted, "\n", all), string:length(Line) > 100,
                                   string:find(Line, Long) =:= nomatch]),
         ?assertEqual(Formatted, format(Formatted))
     end || Text <- [[~"with ", Long, ~":f(", Long, ~") check [_ ? {a, ", Long, ~", [", Long, ~"]}] ff."], Deep,
                     [~"with m:f(_) check [_ ? ", lists:duplicate(300, $[), lists:duplicate(300, $]), ~"] ff."],
                     [~"with m:f(_) check [_ ? N when ", lists:join(~" andalso ", lists:duplicate(100, ~"N > 1")), ~"] ff."],
                     [~"with m:f(_) check [_ ? N when ", lists:join(~" + ", lists:duplicate(100, ~"N")), ~"] ff."]]].

a_line_of_100_columns_stays_and_one_more_does_not_test() ->
    Line = fun(N) -> iolist_to_binary([~"with m:f(_) check [_ ? ", lists:duplicate(N - 28, $a), ~"] ff."]) end,
    100 = byte_size(Line(100)),
    ?assertEqual(<<(Line(100))/binary, "\n">>, format(Line(100))),
    ?assertMatch(<<"with m:f(_)\ncheck [_ ? aaa", _/binary>>, format(Line(101))).

what_cannot_be_scanned_is_refused_test_() ->
    [?_assertMatch({error, [{error, Place, Code, _, _}]} when Place =:= At, witness_spec_format:text(Text)) || {Text, Code, At} <- [
        {<<"%% gr", 16#fc, "n">>, not_utf8, {1, 6}}, {~"with m:f(\"a) none.", syntax, {1, 10}}, {<<"%\n", 0>>, nul, {2, 1}},
        {binary:copy(~"% a\n", 300_000), too_large, undefined}]].

%% Its number of nanoseconds is no float.
a_number_that_is_too_large_for_a_duration_is_refused_test() ->
    ?assertMatch({error, {witness_spec, [#{line := 1, column := 26, code := syntax}]}},
                 witness_spec_format:string(~"a.hml", ~"with m:f(_) check within 1.0e308 min <_ ? a> tt.")).

errors_of_syntax_are_found_and_what_else_is_wrong_is_not_test() ->
    ?assertMatch({error, {witness_spec, [#{line := 2, column := 11, severity := error}]}},
                 witness_spec_format:string(~"a.hml", ~"with m:f(_)\ncheck [_ ?] ff.")),
    ?assertMatch({error, {witness_spec, [#{line := 1, code := syntax}]}}, witness_spec_format:string(~"a.hml", ~"-recrod(a, {b}). with m:f(_) none.")),
    ?assertMatch({ok, _, _}, witness_spec_format:string(~"a.hml", ~"-include(\"none.hrl\"). with m:f(_) check [_ ? #a{b = X}] Y.")).

%% The work for four times as many lines is about four times as much.
work_grows_with_the_lines_test_() ->
    {timeout, 60, fun() ->
        Property = ~"a: with m:f(_)\nper Id over _ ? {a, Id}, _ : _ ! {b, Id}\ncheck\n  max X.(\n    [_ ? {a, _}] [_ : _ ! {b, _}] X\n    and [else] ff).\n\n",
        Work = fun(Times) ->
            {reductions, Before} = process_info(self(), reductions),
            _ = format(binary:copy(Property, Times)),
            {reductions, After} = process_info(self(), reductions),
            After - Before
        end,
        Deep = fun(Times) ->
            {reductions, Before} = process_info(self(), reductions),
            _ = format([~"with m:f(_) check ", lists:duplicate(Times, ~"[_ ? a] max X.((tt and "), ~"ff", lists:duplicate(2 * Times, $)), ~"."]),
            {reductions, After} = process_info(self(), reductions),
            After - Before
        end,
        ?assert(Work(1000) < 6 * Work(250)),
        ?assert(Deep(800) < 6 * Deep(200))
    end}.

format(Text) ->
    {ok, Formatted} = witness_spec_format:text(unicode:characters_to_binary(Text)),
    Formatted.
