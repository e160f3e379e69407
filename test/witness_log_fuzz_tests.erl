%% Any bytes as a log, many of them, in both formats: random bytes, and lines of events with some of their words or bits
%% changed, repeated or nested. Each is read as events or refused with a place in it, and nothing else happens.
%%
%% `WITNESS_LOG_FUZZ_INPUTS` is the number of inputs for each format (5,000 unless told), `WITNESS_FUZZ_SEED` a number
%% from which all of them follow (always the same unless told). A failure names the seed and the number of its input:
%% `input(Format, Seed, Number)`.
-module(witness_log_fuzz_tests).
-include_lib("eunit/include/eunit.hrl").
-import(witness_setting, [number/2]).
-export([input/3]).

-define(INPUTS, 5_000).
-define(SEED, 1).
%% Names that a log may add.
-define(MAX_ATOMS, 50).
%% Words that an input of some bytes may take, and reductions: the process that reads more is killed, or found.
-define(WORDS(Bytes), (1_000_000 + 60 * (Bytes))).
-define(REDUCTIONS(Bytes), (100_000 + 100 * (Bytes))).

any_text_is_read_or_refused_test_() -> fuzzed(text).
any_json_is_read_or_refused_test_() -> fuzzed(json).

fuzzed(Format) ->
    Inputs = number("WITNESS_LOG_FUZZ_INPUTS", ?INPUTS),
    Seed = number("WITNESS_FUZZ_SEED", ?SEED),
    {timeout, 60 + Inputs div 50, fun() ->
        _ = application:load(witness),
        %% The names in the code that runs are there before.
        {ok, Loaded} = application:get_key(witness, modules),
        ok = code:ensure_modules_loaded([json, rand, re, unicode_util, string | Loaded]),
        Modules = lists:sort(code:all_loaded()),
        Parser = witness_log:parser(#{format => Format, max_atoms => ?MAX_ATOMS, skip_malformed => true}),
        Atoms = erlang:system_info(atom_count),
        Answers = [attempted(Format, Parser, Seed, Number) || Number <- lists:seq(1, Inputs)],
        {Items, Skipped} = {lists:sum([I || {I, _} <- Answers]), lists:sum([S || {_, S} <- Answers])},
        %% Both are reached: what is read, and what is refused.
        ?assert(Items > Inputs div 3),
        ?assert(Skipped > Inputs div 2),
        ?assert(erlang:system_info(atom_count) - Atoms =< ?MAX_ATOMS),
        ?assertEqual([], lists:sort(code:all_loaded()) -- Modules)
    end}.

%% In a process of its own, which is killed when it takes too much memory.
attempted(Format, Parser, Seed, Number) ->
    Input = input(Format, Seed, Number),
    Options = [monitor, {max_heap_size, #{size => ?WORDS(byte_size(Input)), kill => true, error_logger => false}}],
    {Pid, Monitor} = spawn_opt(fun() -> exit({read, attempt(Input, Parser)}) end, Options),
    receive
        {'DOWN', Monitor, process, Pid, {read, Answer}} ->
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            ?debugFmt("~nseed ~b, input ~b of ~p:~n~p~n~p~n", [Seed, Number, Format, Input, Reason]),
            error(Reason)
    end.

attempt(Input, Parser) ->
    {reductions, Before} = process_info(self(), reductions),
    #{items := Items, lines := Lines, skipped := Skipped, malformed := Malformed} = witness_log:parse(Input, Parser),
    {reductions, After} = process_info(self(), reductions),
    {spent, true} = {spent, After - Before < ?REDUCTIONS(byte_size(Input))},
    Texts = lines(Input),
    Lines = length(Texts),
    true = length(Malformed) =:= min(10, Skipped) andalso length(Items) + Skipped =< Lines,
    Numbers = [Line || {Line, _} <- Items] ++ [Line || {Line, _, _} <- Malformed],
    true = length(lists:usort(Numbers)) =:= length(Numbers),
    lists:foreach(fun(Item) -> item(Item) end, Items),
    lists:foreach(fun(Place) -> placed(Place, Texts) end, Malformed),
    {length(Items), Skipped}.

%% An event is one: it is written in both formats, and read back from them.
item({Line, Item}) ->
    true = is_integer(Line) andalso Line >= 1,
    _ = [<<_, _/binary>> = witness_event:format(Item) || not lists:member(element(1, Item), [functions, root, clock])],
    [#{items := [{1, Item}]} = witness_log:parse(iolist_to_binary(witness_log:line(Item, Format)), parser(Format)) ||
     Format <- [text, json]].

parser(Format) -> witness_log:parser(#{format => Format}).

%% The place is in the line or right behind it, and what is said of it can be printed.
placed({Line, Column, What}, Texts) ->
    true = Column >= 1 andalso Column =< characters(lists:nth(Line, Texts), 1),
    <<_, _/binary>> = Said = unicode:characters_to_binary(What),
    [] = [C || C <- unicode:characters_to_list(Said), C < $\s].

characters(<<_/utf8, Rest/binary>>, Count) -> characters(Rest, Count + 1);
characters(<<_, Rest/binary>>, Count) -> characters(Rest, Count + 1);
characters(<<>>, Count) -> Count.

lines(<<16#EF, 16#BB, 16#BF, Input/binary>>) -> lines(Input);
lines(Input) ->
    case binary:split(Input, ~"\n", [global]) of
        Lines -> case lists:last(Lines) of <<>> -> lists:droplast(Lines); _ -> Lines end
    end.

%% Inputs

input(Format, Seed, Number) ->
    _ = rand:seed(exsss, {Seed, Number, byte_size(atom_to_binary(Format))}),
    case rand:uniform(12) of
        1 -> rand:bytes(rand:uniform(80) - 1);
        2 -> iolist_to_binary([one(words(Format)) || _ <- lists:seq(1, rand:uniform(40))]);
        3 -> nested(Format, rand:uniform(1500));
        4 -> iolist_to_binary([prefix(Format), binary:copy(one(words(Format)), rand:uniform(2000))]);
        _ -> iolist_to_binary([line(Format) || _ <- lists:seq(1, rand:uniform(4))])
    end.

prefix(text) -> ~"exit(\"p\",";
prefix(json) -> ~B|{"event":"exit","process":"p","reason":|.

suffix(text) -> ~")\n";
suffix(json) -> ~"}\n".

nested(Format, Depth) ->
    {Open, Close} = one(case Format of
        text -> [{~"[", ~"]"}, {~"{", ~"}"}, {~"#{a=>", ~"}"}, {~"[a|", ~"]"}];
        json -> [{~"[", ~"]"}, {~B|{"a":|, ~"}"}]
    end),
    iolist_to_binary([prefix(Format), binary:copy(Open, Depth), ~"1", binary:copy(Close, Depth - rand:uniform(2) + 1),
        suffix(Format)]).

line(Format) ->
    Words = [Word || Word <- re:split(one(lines_of(Format)), ~"(\\w+|[^\\w])", [unicode]), Word =/= <<>>],
    Line = iolist_to_binary(mutated(rand:uniform(4) - 2, Words, Format)),
    [case rand:uniform(8) of 1 -> flipped(Line); 2 -> cut(Line); _ -> Line end, one([~"\n", ~"\n", ~"\r\n", ~""])].

mutated(Count, Words, _) when Count =< 0 -> Words;
mutated(Count, Words, Format) ->
    {Before, [Word | After]} = lists:split(rand:uniform(length(Words)) - 1, Words),
    mutated(Count - 1, Before ++ case rand:uniform(6) of
        1 when After =/= [] -> After;
        2 -> [Word, Word | After];
        3 -> [one(words(Format)) | After];
        4 -> [Word, one(words(Format)) | After];
        5 -> [one(Words), Word | After];
        _ -> [one(words(Format)) | After]
    end, Format).

flipped(<<>>) -> <<>>;
flipped(Line) ->
    At = rand:uniform(byte_size(Line)) - 1,
    <<Before:At/binary, Byte, After/binary>> = Line,
    <<Before/binary, (Byte bxor (1 bsl (rand:uniform(8) - 1))), After/binary>>.

cut(Line) -> binary_part(Line, 0, rand:uniform(byte_size(Line) + 1) - 1).

one(List) -> lists:nth(rand:uniform(length(List)), List).

lines_of(text) ->
    [~"fork(<0.102.0>,<0.808.0>,{m,f,[0]})", ~"init(<0.808.0>,_,{m,f,[1,\"a\"]}).",
     ~"exit(<0.102.0>,{normal,[a|b]}) % c",
     ~"@123 send(<0.102.0>,{name,'n@h'},#{a=>1.5e3,<<\"b\">> => \"c\\n\"})", ~"recv(\"p 1\",<2.5.0>,<<1,2,5:3>>)",
     ~"recv(<0.1.0>,#Ref<0.1.2.3>)", ~"gap(<0.1.0>,overload,3)", ~"attached(<0.1.0>,{m,f,2})", ~"root(<0.1.0>)",
     ~"@5 call(<0.1.0>,{m,f,[1,\"a\"]})", ~"return(\"p 1\",{m,f,2},{ok,#{}})", ~"functions([{m,f,1},{m,g,2}])", ~"clock(-17)",
         ~"send(\"é\",<0.1.0>,fun m:f/1)",
     ~"recv(<0.1.0>,[16#ff,$a,-1,'an atom',<<\"é\"/utf8>>])", ~"send(<0.1.0>,#Port<0.1>,#Fun<m.1.2>)"];
lines_of(json) ->
    [~B|{"event":"fork","process":"p","child":"q","module":"m","function":"f","args":[1,{"a":null}]}|,
     ~B|{"event":"init","process":"<0.5.0>","parent":"p","signature":"{m,f,[<0.1.0>]}"}|,
     ~B|{"event":"exit","process":"p","reason":"normal","time":123}|,
     ~B|{"event":"send","process":"é","to":{"term":"{name,'n@h'}"},"message":{"a":[1,2.5e3,true,false]}}|,
     ~B|{"event":"call","process":"p","module":"m","function":"f","args":[1,{"a":null}],"time":5}|,
     ~B|{"event":"return","process":"<0.5.0>","signature":"{m,f,2}","value":["x"]}|,
     ~B|{"event":"functions","functions":["{m,f,1}","{m,g,2}"]}|,
     ~B|{"event":"recv","process":"p","from":null,"message":"\u00e9\n\ud83d\ude00"}|,
     ~B`{"event":"recv","process":"p","from":"q","term":"{a,[1|b],<<1,2:3>>}"}`,
     ~B|{"event":"gap","process":"p","reason":"overload","missing":3, "extra" : [ ] }|,
     ~B|{"event":"attached","process":"p","module":"m","function":"f","arity":1}|,
     ~B|{"event":"root","process":"p","time":5}|, ~B|{"event":"clock","time":5}|].

words(Format) -> [unicode:characters_to_binary(Word) || Word <- vocabulary(Format)].

vocabulary(text) ->
    ["(", ")", ",", "{", "}", "[", "]", "|", "#{", "=>", "<<", ">>", "\"", "'", "\\", "\\x{41}", "\\x{", "$", "$\\",
     "%", "@", ".",
     "@-1 ", "_", "X", "fun ", "fun a:b/1", "#Ref<", "#Ref<1.2.3>", "#Fun<'", "<0.5.0>", "<7.5.0>", "<", ">", "\"p\"",
         "1_0", "16#f",
     "99999999999999999999", "1.5", "1e", "e400", "1.0e999", "-", ":", "/", "/utf8", ":8", "~\"", "a", "unheard_1",
         "unheard_2",
     "é", "日", [16#1F600], "\t", "\r", "\n", " ", "undefined", "exit(", "send(", [16#202E], [0]];
vocabulary(json) ->
    ["{", "}", "[", "]", ",", ":", "\"", "\\", "\\u00e9", "\\ud800", "\\udc00", "\\u", "1", "-", "0", "01", "1.5",
     "1e5", "1e999", ".",
     "99999999999999999999", "true", "false", "null", "nul", "\"p\"", "\"event\"", "\"message\":", "\"term\":",
         "\"<0.5.0>\"",
     "\"<7.5.0>\"", "\"{a\"", "\"unheard_3\"", "\"unheard_4\"", "\"time\":", "\"args\":", "é", "日", [16#1F600], "\t",
         "\r", "\n", " ", "'",
     "//", "NaN", [0], [16#202E]].
