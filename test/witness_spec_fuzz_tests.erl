%% Any input, many of them: random bytes, random words, real specifications with some of their words or bytes changed.
%% Each is compiled or refused, and nothing else happens.
%%
%% `WITNESS_FUZZ_INPUTS` is the number of inputs (4,000 unless told), `WITNESS_FUZZ_SEED` a number from which all of them
%% follow (always the same unless told). A failure names the seed and the number of its input:
%% `input(Seed, Number, corpus())` or `header(Seed, Number)`.
-module(witness_spec_fuzz_tests).
-include_lib("eunit/include/eunit.hrl").
-import(witness_setting, [number/2]).
-export([input/3, header/2, corpus/0, mark/0]).

-define(INPUTS, 4_000).
-define(SEED, 1).
-define(MARK, {?MODULE, code_of_a_specification_ran}).
%% Beyond this many reductions an input is taken for an attack on the compiler's time. The largest real specification
%% needs a hundredth of it.
-define(MAX_REDUCTIONS, 100_000_000).

any_input_is_compiled_or_refused_test_() ->
    Inputs = number("WITNESS_FUZZ_INPUTS", ?INPUTS),
    Seed = number("WITNESS_FUZZ_SEED", ?SEED),
    {timeout, 60 + Inputs div 20, fun() ->
        Corpus = corpus(),
        %% Compiling makes atoms, once. What only a wrong specification needs is loaded here, too.
        ok = code:ensure_modules_loaded([witness_spec_elixir, witness_spec_elixir_term]),
        Compiled = [file(File) || File <- files()],
        Planted = plant(),
        Modules = lists:sort(code:all_loaded()),
        Atoms = erlang:system_info(atom_count),
        try
            Results = inputs(1, Inputs, Seed, Corpus, #{words => #{}, quotes => 0, accepted => 0, refused => 0}),
            #{words := Words, quotes := Quotes, accepted := Accepted, refused := Refused} = Results,
            %% Few are accepted, but that some are shows that what comes behind the parser was reached.
            ?assert(Accepted > Inputs div 50),
            ?assert(Refused > Inputs div 5),
            %% Atoms are the names that stand in the inputs, and no others.
            ?assert(erlang:system_info(atom_count) - Atoms =< map_size(Words) + Quotes + 100),
            ?assertEqual(undefined, persistent_term:get(?MARK, undefined)),
            ?assertEqual([], lists:sort(code:all_loaded()) -- Modules),
            ?assertEqual(mine, Planted:mine()),
            %% What was compiled before is compiled alike.
            ?assertEqual(Compiled, [file(File) || File <- files()])
        after
            code:delete(Planted),
            code:purge(Planted)
        end
    end}.

any_included_file_is_read_or_refused_test_() ->
    Inputs = number("WITNESS_FUZZ_INPUTS", ?INPUTS) div 10,
    Seed = number("WITNESS_FUZZ_SEED", ?SEED),
    {timeout, 60 + Inputs div 20, fun() ->
        Folder = filename:join(filename:basedir(user_cache, "witness_test"), "fuzz-" ++ os:getpid()),
        File = filename:join(Folder, "f.hrl"),
        ok = filelib:ensure_dir(File),
        Source = <<"-include(\"f.hrl\").\n"
                   "with m:f(_) monitor [_ <- _, _] [_ ? #rec{key = A}] [_ ? B when B#rec.value > A] ff.">>,
        try
            Answers = [begin
                ok = file:write_file(File, header(Seed, Number)),
                attempted(Source, #{include => [Folder]}, Seed, Number)
            end || Number <- lists:seq(1, Inputs)],
            ?assertEqual([accepted, refused], lists:usort(Answers)),
            ?assertEqual(undefined, persistent_term:get(?MARK, undefined))
        after
            ok = file:del_dir_r(Folder)
        end
    end}.

header(Seed, Number) ->
    _ = rand:seed(exsss, {Seed, Number, 1}),
    Words = words_of(<<"%% A header.\n-module(m).\n-record(other, {a, b = 2}).\n-ifdef(TEST).\n-define(KEY, key).\n"
                       "-endif.\n-record(rec, {key :: atom(), value = f(1) :: #{a => b}, 'third one' = \"s\"}).\n"
                       "-type t() :: #rec{}.\n">>),
    flipped(iolist_to_binary(mutated(rand:uniform(5) - 1, Words, [Words]))).

%% A module that stands where a generated one would go.
plant() ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(<<"first">>, <<"with m:f(_) none.">>),
    ok = witness_spec:unload(Map),
    Forms = [{attribute, 1, module, Module}, {attribute, 1, export, [{mine, 0}]},
             {function, 1, mine, 0, [{clause, 1, [], [], [{atom, 1, mine}]}]}],
    {ok, Module, Object} = compile:forms(Forms),
    {module, Module} = code:load_binary(Module, "", Object),
    Module.

inputs(Number, Inputs, _, _, Results) when Number > Inputs ->
    Results;
inputs(Number, Inputs, Seed, Corpus, Results) ->
    Input = input(Seed, Number, Corpus),
    Answer = attempted(Input, #{}, Seed, Number),
    #{words := Words, quotes := Quotes, Answer := Count} = Results,
    inputs(Number + 1, Inputs, Seed, Corpus, Results#{
        words := maps:merge(Words, words(Input)),
        quotes := Quotes + length(binary:matches(Input, [<<"'">>, <<"\"">>])),
        Answer := Count + 1}).

attempted(Input, Options, Seed, Number) ->
    try
        attempt(Input, Options)
    catch
        Class:Reason:Stack ->
            ?debugFmt("~nseed ~b, input ~b:~n~p~n~ts~n", [Seed, Number, Input, printable(Input)]),
            erlang:raise(Class, Reason, Stack)
    end.

words(Input) -> #{Word => [] || Word <- re:split(Input, <<"[^0-9A-Za-z_@\\x80-\\xff]+">>)}.

printable(Input) -> unicode:characters_to_list(Input, latin1).

attempt(Input, Options) ->
    {reductions, Before} = process_info(self(), reductions),
    Answer = case witness_spec:compile_string(<<"fuzz.hml">>, Input, Options) of
        {ok, #{module := Module} = Map, Warnings} ->
            [] = [Severity || #{severity := Severity} <- Warnings, Severity =/= warning],
            ok = lists:foreach(fun(Diagnostic) -> placed(Diagnostic, Input) end, Warnings),
            ok = exercise(Map),
            ok = witness_spec:unload(Map),
            false = code:is_loaded(Module),
            accepted;
        {error, {witness_spec, Diagnostics}} ->
            true = lists:any(fun(#{severity := Severity}) -> Severity =:= error end, Diagnostics),
            ok = lists:foreach(fun(Diagnostic) -> placed(Diagnostic, Input) end, Diagnostics),
            refused
    end,
    {reductions, After} = process_info(self(), reductions),
    true = After - Before < ?MAX_REDUCTIONS,
    Answer.

%% A diagnostic can be printed, and its place is in the source.
placed(#{line := Line, column := Column, text := <<_, _/binary>>} = Diagnostic, Input) ->
    <<_, _/binary>> = Text = witness_spec:format_diagnostic(Diagnostic),
    [] = [Char || Char <- unicode:characters_to_list(Text), Char < $\s, Char =/= $\n, Char =/= $\t],
    case {Line, Column} of
        {undefined, undefined} -> ok;
        _ ->
            Lines = witness_spec_scan:lines(Input),
            true = Line >= 1 andalso Line =< length(Lines),
            %% A carriage return at its end is no part of the line, but may be what is wrong.
            true = Column >= 1 andalso Column =< length(unicode:characters_to_list(lists:nth(Line, Lines))) + 2,
            ok
    end.

%% What it compiled to takes any events, and runs nothing but itself.
exercise(#{module := Module, entries := Entries}) ->
    lists:foreach(fun(#{index := Index, signature := Text}) ->
        Signature = signature(Text),
        true = lists:all(fun is_integer/1, Module:match(Signature)),
        Events = events(Signature),
        case Module:init(Signature, self(), Index) of
            ignore -> ok;
            {requests, Begun} ->
                {Known, ok, _} = witness_monitor_requests:put_requests(Events, witness_monitor_requests:new()),
                exercise(Begun, Module, Known);
            Begun -> exercise(Begun, Module, Events)
        end
    end, Entries).

exercise({ok, State}, Module, Events) -> run(Module, Events, State);
exercise({ok, State, Filter}, Module, Events) -> run(Module, [E || E <- Events, Module:slice(E, Filter) =/= skip], State);
exercise({slices, Filter}, Module, Events) ->
    [run(Module, [Event], Module:instance(Key, Filter)) || Event <- Events, {slice, Key} <- [Module:slice(Event, Filter)]].

%% What is probably matched by a signature that begins so.
signature(Text) ->
    case re:run(Text, <<"^([a-z]\\w*):([a-z]\\w*)\\(([^()]*)\\)">>, [{capture, all_but_first, binary}]) of
        {match, [Module, Function, Arguments]} ->
            {binary_to_atom(Module), binary_to_atom(Function),
             [1 || _ <- binary:split(Arguments, <<",">>, [global, trim])]};
        nomatch ->
            {m, f, [1]}
    end.

events(Signature) ->
    Self = self(),
    [{init, Self, Self, Signature, 0}, {recv, Self, undefined, {Self, {add, 1, 2}}, 1}, {send, Self, Self, {ok, 3}, 2},
     {fork, Self, Self, Signature, 3}, {recv, Self, Self, <<"text">>, 4}, {exit, Self, normal, 5}].

run(Module, [Event | Events], State) ->
    case Module:handle_event(Event, State) of
        {ok, Next} -> run(Module, Events, Next);
        {verdict, _, #{}} -> ok
    end;
run(Module, [], State) ->
    {_, #{}} = Module:handle_end(complete, State),
    #{formula := _} = Module:describe(State),
    ok.

%% Inputs.

input(Seed, Number, Corpus) ->
    _ = rand:seed(exsss, {Seed, Number, 0}),
    case rand:uniform(10) of
        1 -> rand:bytes(rand:uniform(80) - 1);
        N when N =< 3 -> iolist_to_binary([[word(), separator()] || _ <- lists:seq(1, rand:uniform(60))]);
        N when N =< 5 -> flipped(iolist_to_binary(mutated(rand:uniform(4) - 1, one(Corpus), Corpus)));
        _ -> iolist_to_binary(mutated(rand:uniform(4), one(Corpus), Corpus))
    end.

separator() -> one([" ", " ", " ", "", "\n"]).

word() -> unicode:characters_to_binary(one(vocabulary())).

vocabulary() ->
    ["with", "m", "f", "_", ":", "(", ")", "[", "]", "<", ">", "{", "}", ".", ",", ";", "!", "?", "*", "**",
     "<-", "->", "-->", "<--", "when", "and", "or", "tt", "ff", "max", "min", "X", "X.", "Y", "A", "B",
     "monitor", "check", "none", "group", "per", "over", "call(", "cast(", "reply(", "info(", "notify(",
     "sync_notify(", "-record(", "-include(\"x.hrl\").", "#r{", "#r.a", "#{", ":=", "=>", "<<", ">>", "/",
     "/binary", "/utf8", "=", "=:=", "=/=", "==", "<", "=<", "+", "-", "++", "#", "div", "bsl", "not",
     "andalso", "orelse", "is_atom(", "is_list(", "element(", "hd(", "self()", "0", "1", "2.5", "1.0e308",
     "99999999999999999999999999", "16#ff", "$c", "$\\", "\"text\"", "\"", "'", "'an atom'", "\\", "%",
     "~\"s\"", "\"\"\"", "\t", "é", "→", "\x{202E}", "My.App.init(_)", "m:f(_)", "with m:f(_) check", "max X.(",
     "[_ ? {A, B}]", "<_ : _ ! A>", "[_ <- _, _]", "_@1", "witness_spec_fuzz_tests:mark()", "halt()",
     "erlang:halt()", "fun() -> halt() end", "apply(", "begin", "end",
     "(fun() -> witness_spec_fuzz_tests:mark() end)()", "-compile(", "-on_load(", "?MODULE"].

mark() -> persistent_term:put(?MARK, true).

%% Words and the white space between them.
mutated(0, Words, _) -> Words;
mutated(Count, Words, Corpus) ->
    At = rand:uniform(length(Words)) - 1,
    {Before, [Word | After]} = lists:split(At, Words),
    mutated(Count - 1, Before ++ case rand:uniform(16) of
        1 when After =/= [] -> After;
        2 -> [Word, Word | After];
        3 -> swapped(Word, After);
        4 -> slice(one(Corpus)) ++ After;
        5 -> [word(), " " | After];
        6 -> [lists:duplicate(rand:uniform(300), Word) | After];
        7 -> [word() | After];
        _ -> [like(Word, one(Corpus)) | After]
    end, Corpus).

%% A word of the same sort, so that something else is wrong than the syntax.
like(Word, Others) ->
    Sort = sort(Word),
    one([Word | [Other || Other <- Others, sort(Other) =:= Sort]]).

sort(<<C, _/binary>>) when C >= $a, C =< $z -> name;
sort(<<C, _/binary>>) when C >= $A, C =< $Z; C =:= $_ -> variable;
sort(<<C, _/binary>>) when C >= $0, C =< $9 -> number;
sort(<<C, _/binary>>) when C =:= $\s; C =:= $\n -> space;
sort(Word) when is_binary(Word) -> sign;
sort(_) -> many.

swapped(Word, []) -> [Word];
swapped(Word, After) ->
    {Between, [Other | Rest]} = lists:split(rand:uniform(length(After)) - 1, After),
    [Other | Between] ++ [Word | Rest].

slice(Words) ->
    From = rand:uniform(length(Words)),
    lists:sublist(Words, From, rand:uniform(20)).

%% One bit is another one.
flipped(<<>>) -> <<>>;
flipped(Source) ->
    At = rand:uniform(byte_size(Source)) - 1,
    <<Before:At/binary, Byte, After/binary>> = Source,
    <<Before/binary, (Byte bxor (1 bsl (rand:uniform(8) - 1))), After/binary>>.

one(List) -> lists:nth(rand:uniform(length(List)), List).

%% The properties of real specifications, each by itself, as lists of words.
corpus() ->
    Sources = [Source || File <- files(), {ok, Source} <- [file:read_file(File)]],
    [words_of(Property) || Source <- Sources, Property <- re:split(Source, <<"(?<=\\.)\\n(?=\\n|\\w|%)">>),
                           re:run(Property, <<"with">>) =/= nomatch]
        ++ lists:append(lists:duplicate(5, [words_of(Property) || Property <- others()])).

words_of(Source) -> [Word || Word <- re:split(Source, <<"(\\s+|\\w+|[^\\w\\s]+)">>), Word =/= <<>>].

%% What few of the files have.
others() ->
    [<<"with m:f(_) per From over _ ? call(From, _), _ : _ ! reply(From, _), _ ** _ check\n"
       "  [_ ? call(From, {add, A, B})] ([_ : _ ! reply(From, R) when R =/= A + B] ff and [_ ** _] ff).">>,
     <<"with m:f(N) group per Id, K over _ ? {req, Id, K}, _ : _ ! {res, Id, K} when N > 1, _ <- _, m:g(_) monitor\n"
       "  [_ ? {req, Id, K}] max X.([_ ? {req, Id, K}] ff and [_ <- _, m:g(_)] X).">>,
     <<"-record(rec, {key, value = 1}).\nwith m:f(_) over _ ? #rec{}, _ ? info(_) check\n"
       "  min X.(<_ ? #rec{key = a, _ = B}> tt or <{_ ? R when is_record(R, rec), R#rec.value > 1}> X or <_ ? _> X).">>,
     <<"with My.App.Server.init(_), 'm':f(#{a := <<B:8, _/binary>>}) when is_list(B), node() =:= a; true check\n"
       "  [_ <- _, My.App.Server.init(_)] [_ ? cast(M)] [_ ? notify(M)] [_ ? sync_notify(F, _)] [_ ? call(F, h, _)] ff.">>].

files() ->
    Files = filelib:wildcard("test/systems/*.hml") ++ filelib:wildcard("examples/**/*.hml"),
    true = length(Files) > 40,
    Files.

file(File) ->
    {ok, Map, Warnings} = witness_spec:compile_file(File),
    ok = exercise(Map),
    ok = witness_spec:unload(Map),
    {maps:get(entries, Map), Warnings}.
