-module(witness_hml_grammar_tests).
-moduledoc """
The TextMate grammar of specifications, `assets/hml.tmLanguage.json`, as an editor applies it: line by line, the
earliest match of the rules that hold at a place, the end of a region before the rules inside it.

What it says of a word is compared with what was meant, and for all specifications of the repository with what the
scanner of the language says.
""".
-include_lib("eunit/include/eunit.hrl").

-define(GRAMMAR, "assets/hml.tmLanguage.json").

%% The word between « and » has this scope as its innermost.
words_have_their_scopes_test_() ->
    {setup, fun grammar/0, fun(Grammar) ->
        [{unicode:characters_to_list(Marked), ?_assertEqual(Scope, innermost(Marked, Grammar))} || {Marked, Scope} <- [
            {~"«% with a comment»", ~"comment.line.percentage.hml"},
            {~"with m:f(_) «% with a comment»", ~"comment.line.percentage.hml"},
            {~"-«record»(r, {a, b = 1}).", ~"keyword.control.directive.hml"},
            {~"-«include»(\"f.hrl\").", ~"keyword.control.directive.hml"},
            {~"-include(\"«f».hrl\").", ~"string.quoted.double.hml"},
            {~"-record(r, {a, b = «1»}).", ~"constant.numeric.integer.hml"},
            %% Properties.
            {~"«sum»: with m:f(_) none.", ~"entity.name.function.property.hml"},
            {~"«'a sum'»: with m:f(_) none.", ~"entity.name.function.property.hml"},
            {~"sum: «with» m:f(_) none.", ~"keyword.control.hml"},
            {~"with «m»:f(_) none.", ~"entity.name.type.module.hml"},
            {~"with m:«f»(_) none.", ~"entity.name.function.hml"},
            {~"with m:f(«_») none.", ~"variable.language.anonymous.hml"},
            {~"with m:f(«Own») none.", ~"variable.other.hml"},
            {~"with m:f(«_Own») none.", ~"variable.other.hml"},
            {~"with m:f(«own») none.", ~"constant.other.symbol.hml"},
            {~"with m:f(«monitor») none.", ~"constant.other.symbol.hml"},
            {~"with m:f(«größe@1») none.", ~"constant.other.symbol.hml"},
            {~"with «My.App.Server».init(_) none.", ~"entity.name.type.module.hml"},
            {~"with My.App.Server.«init»(_) none.", ~"entity.name.function.hml"},
            {~"with «'Elixir.My.App'»:init(_) none.", ~"entity.name.type.module.hml"},
            {~"with m:f(A, «[»B]) none.", ~"punctuation.definition.list.begin.hml"},
            {~"with m:f(A) «when» A > 0, m:g() none.", ~"keyword.control.when.hml"},
            {~"with m:f(A) when A «=<» 0 none.", ~"keyword.operator.hml"},
            {~"with m:f(A) when «is_pid»(A) none.", ~"support.function.guard.hml"},
            {~"with m:f(A) when A > 0 «andalso» A < 9 none.", ~"keyword.operator.word.hml"},
            {~"with m:f(_), «n»:f(_) none.", ~"entity.name.type.module.hml"},
            {~"with m:f(_) «none».", ~"keyword.control.hml"},
            {~"with m:f(_) none«.»", ~"punctuation.terminator.hml"},
            {~"with m:f(_) «group» check tt.", ~"keyword.control.hml"},
            {~"with m:f(_) «per» A over _ ? A check tt.", ~"keyword.control.hml"},
            {~"with m:f(_) per A over _ ? a, «begin» _ ? A check tt.", ~"keyword.control.hml"},
            {~"with m:f(_) per «A» over _ ? A check tt.", ~"variable.other.hml"},
            {~"with m:f(_) per A «over» _ ? A check tt.", ~"keyword.control.hml"},
            {~"with m:f(_) per A over _ ? «[»A] check tt.", ~"punctuation.definition.list.begin.hml"},
            {~"with m:f(_) per A over _ ? A when A > 0, _ «!» A check tt.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) per A over _ ? A «check» tt.", ~"keyword.control.hml"},
            {~"per A over _ ? A «among» m:f(_) check tt.", ~"keyword.control.hml"},
            {~"per A over _ ? A among «m»:f(_) check tt.", ~"entity.name.type.module.hml"},
            {~"per A over _ ? A among m:f(_) «let» B = count {_ ? A} check tt.", ~"keyword.control.hml"},
            {~"with m:f(_) «monitor» tt.", ~"keyword.control.hml"},
            %% Formulas.
            {~"with m:f(_) check «tt».", ~"constant.language.verdict.hml"},
            {~"with m:f(_) check [_ ? a] «ff».", ~"constant.language.verdict.hml"},
            {~"«define» F(P) = [_ ? P] ff.", ~"keyword.control.hml"},
            {~"define «F»(P) = [_ ? P] ff.", ~"variable.other.definition.hml"},
            {~"define F(P) «=» [_ ? P] ff.", ~"keyword.operator.hml"},
            {~"«action» A = _ ? a.", ~"keyword.control.hml"},
            {~"action A = _ «?» a.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [«else»] ff.", ~"keyword.control.else.hml"},
            {~"with m:f(_) check «and»(tt, tt).", ~"keyword.operator.logical.hml"},
            {~"with m:f(_) check tt «or» ff.", ~"keyword.operator.logical.hml"},
            {~"with m:f(_) check «max» X. [_ ? _] X.", ~"keyword.control.fixpoint.hml"},
            {~"with m:f(_) check «min»(X. [_ ? _] X).", ~"keyword.control.fixpoint.hml"},
            {~"with m:f(_) check min(«X». [_ ? _] X).", ~"variable.other.recursion.hml"},
            {~"with m:f(_) check max X.«max» Y. [_ ? _] X.", ~"keyword.control.fixpoint.hml"},
            {~"with m:f(_) check max X. [_ ? _] «X».", ~"variable.other.hml"},
            {~"with m:f(_) check max «X»(N = 0). [_ ? _] X(N).", ~"variable.other.recursion.hml"},
            {~"with m:f(_) check max X(«N» = 0). [_ ? _] X(N).", ~"variable.other.hml"},
            {~"with m:f(_) check min(X(N «=» 0). [_ ? _] X(N)).", ~"keyword.operator.hml"},
            {~"with m:f(_) check max X(N = 0). [_ ? _] X((N) «+» 1).", ~"keyword.operator.hml"},
            {~"with m:f(_) check max X(N = 0). [_ ? _] X(maps:«put»(a, 1, N)).", ~"entity.name.function.hml"},
            {~"with m:f(_) check max X(N = 0). [_ ? _] X(N) «and» tt.", ~"keyword.operator.logical.hml"},
            %% Time.
            {~"with m:f(_) check «within» 5 s <_ ? a> tt.", ~"keyword.control.timed.hml"},
            {~"with m:f(_) check [_ ? a] «during»  1.5 h (tt).", ~"keyword.control.timed.hml"},
            {~"with m:f(_) check within «5» s <_ ? a> tt.", ~"constant.numeric.duration.hml"},
            {~"with m:f(_) check within 1.5 «min»(<_ ? a> tt).", ~"keyword.other.unit.hml"},
            {~"with m:f(_) check within «16#ff» ms <_ ? a> tt.", ~"constant.numeric.duration.hml"},
            {~"with m:f(_) check [_ ? {a, 5 «s»} at T] ff.", ~"keyword.other.unit.hml"},
            {~"with m:f(_) check [_ ? {a, 5 «sec»}] ff.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) check [_ ? A when A > «7» d] ff.", ~"constant.numeric.duration.hml"},
            {~"with m:f(_) check max X(N = 0 «ns»). [_ ? _] X(N).", ~"keyword.other.unit.hml"},
            {~"with m:f(_) check [_ ? a «at» T] ff.", ~"keyword.control.at.hml"},
            {~"with m:f(_) check <{_ ? at «at» T when T > 5 s}> tt.", ~"keyword.control.at.hml"},
            {~"with m:f(_) check [_ ? a at «T»] ff.", ~"variable.other.hml"},
            {~"with m:f(_) check [_ ? {«at», T}] ff.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) check «[»_ ? [a]] ff.", ~"keyword.operator.modality.begin.hml"},
            {~"with m:f(_) check [_ ? «[»a]] ff.", ~"punctuation.definition.list.begin.hml"},
            {~"with m:f(_) check [_ ? [a]«]» ff.", ~"keyword.operator.modality.end.hml"},
            {~"with m:f(_) check «<»_ ? a> tt.", ~"keyword.operator.modality.begin.hml"},
            {~"with m:f(_) check <_ ? a«>» tt.", ~"keyword.operator.modality.end.hml"},
            {~"with m:f(_) check <{_ ? A when A «>» 1}> tt.", ~"keyword.operator.hml"},
            {~"with m:f(_) check <_ ? A when A «>=» 1> tt.", ~"keyword.operator.hml"},
            {~"with m:f(_) check <{_ ? A when A > 1}«>» tt.", ~"keyword.operator.modality.end.hml"},
            {~"with m:f(_) check <P «->» C, m:f(_)> tt.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check <P -> C, m:f(_)«>» tt.", ~"keyword.operator.modality.end.hml"},
            {~"with m:f(_) check <_ ? <<1, 2«>>»> tt.", ~"punctuation.definition.binary.end.hml"},
            {~"with m:f(_) check [_ ? a] «[»_ ? b] ff.", ~"keyword.operator.modality.begin.hml"},
            %% Values.
            {~"with m:f(_) «let» V = once {_ ? a} check tt.", ~"keyword.control.hml"},
            {~"with m:f(_) let «V» = once {_ ? a} check tt.", ~"variable.other.let.hml"},
            {~"with m:f(_) let V «=» once {_ ? a} check tt.", ~"keyword.operator.hml"},
            {~"with m:f(_) let «V»(U) = once {_ ? U} check tt.", ~"variable.other.let.hml"},
            {~"with m:f(_) let V(U) = «once» {_ ? U} check tt.", ~"keyword.control.value.hml"},
            {~"with m:f(_) let V = «previously» {_ ? a} check tt.", ~"keyword.control.value.hml"},
            {~"with m:f(_) let V =\n «once» {_ ? a} check tt.", ~"keyword.control.value.hml"},
            {~"with m:f(_) let V = {_ ? a} «since» {_ ? b} check tt.", ~"keyword.control.value.hml"},
            {~"with m:f(_) let V = once «within» 7 d {_ ? a} check tt.", ~"keyword.control.timed.hml"},
            {~"with m:f(_) let V = once within 7 «d» {_ ? a} check tt.", ~"keyword.other.unit.hml"},
            {~"with m:f(_) let V = count within «10» events {_ ? a} check tt.", ~"constant.numeric.integer.hml"},
            {~"with m:f(_) let V = count within 10 «events» {_ ? a} check tt.", ~"keyword.other.unit.hml"},
            {~"with m:f(_) let V = count within 1 «event» {_ ? a} check tt.", ~"keyword.other.unit.hml"},
            {~"with m:f(_) let V = «sum» N of {_ ? N} check tt.", ~"keyword.control.value.hml"},
            {~"with m:f(_) let V = «max» within 5 s N of {_ ? N} check tt.", ~"keyword.control.value.hml"},
            {~"with m:f(_) let V = max «max»(N, 0) of {_ ? N} check tt.", ~"support.function.guard.hml"},
            {~"with m:f(_) let V = sum N - «2» of {_ ? N} check tt.", ~"constant.numeric.integer.hml"},
            {~"with m:f(_) let V = mean N «of» {_ ? N} check tt.", ~"keyword.control.value.hml"},
            {~"with m:f(_) let V = once {_ ? «sum»} check tt.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) let V = once {_ «?» a} check tt.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) let V = once {_ ? a} «or» {_ ? b} check tt.", ~"keyword.operator.word.hml"},
            {~"with m:f(_) let V = once «{»_ ? a} check tt.", ~"punctuation.section.braces.begin.hml"},
            {~"with m:f(_) let V = once {_ ? a} let W = once «not» V check tt.", ~"keyword.operator.word.hml"},
            {~"with m:f(_) let V = once {_ ? a} «let» W = once not V check tt.", ~"keyword.control.hml"},
            {~"with m:f(_) let V = once {_ ? a} «check» tt.", ~"keyword.control.hml"},
            {~"with m:f(_) let V = once {_ ? a} check «[»_ ? a] ff.", ~"keyword.operator.modality.begin.hml"},
            {~"with m:f(_) over _ ? «a» let V = once {_ ? a} check tt.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) over _ ? a «let» V = once {_ ? a} check tt.", ~"keyword.control.hml"},
            {~"with m:f(_) per A over _ ? A let V = «once» {_ ? a} check tt.", ~"keyword.control.value.hml"},
            %% Actions.
            {~"with m:f(_) check [_ «?» a] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [_ «:» _ ! a] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [_ : _ «!» a] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [P «-->» C, m:f(_)] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [C «<-» P, _] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [C «<--» P, _] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [C <- P, «m»:f(_)] ff.", ~"entity.name.type.module.hml"},
            {~"with m:f(_) check [P «**» R] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [P «*» R] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [_ ? «call»(From, Req)] ff.", ~"support.function.otp.hml"},
            {~"with m:f(_) check [_ : _ ! «reply»(From, R)] ff.", ~"support.function.otp.hml"},
            {~"with m:f(_) check [_ «?» info(M)] ff.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) check [_ : _ ! reply(_, R) «to» next] ff.", ~"keyword.control.to.hml"},
            {~"with m:f(_) check [_ : _ ! reply(_, R) to «next»] ff.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) check [_ : _ ! reply(_, R) to «to»] ff.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) check [_ : _ ! «to»] ff.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) check [_ ? {«call», From}] ff.", ~"constant.other.symbol.hml"},
            %% Patterns.
            {~"with m:f(_) check [_ ? \"a«\\n»\"] ff.", ~"constant.character.escape.hml"},
            {~"with m:f(_) check [_ ? \"% «no» comment\"] ff.", ~"string.quoted.double.hml"},
            {~"with m:f(_) check [_ ? «'an atom'»] ff.", ~"constant.other.symbol.quoted.single.hml"},
            {~"with m:f(_) check [_ ? '] «ff»'] ff.", ~"constant.other.symbol.quoted.single.hml"},
            {~"with m:f(_) check [_ ? «$]»] ff.", ~"constant.character.hml"},
            {~"with m:f(_) check [_ ? «$\\n»] ff.", ~"constant.character.hml"},
            {~"with m:f(_) check [_ ? «16#FF»] ff.", ~"constant.numeric.base.hml"},
            {~"with m:f(_) check [_ ? «1_000»] ff.", ~"constant.numeric.integer.hml"},
            {~"with m:f(_) check [_ ? «1.5e-3»] ff.", ~"constant.numeric.float.hml"},
            {~"with m:f(_) check [_ ? «#{»a := 1}] ff.", ~"punctuation.definition.map.begin.hml"},
            {~"with m:f(_) check [_ ? #{a «:=» 1}] ff.", ~"keyword.operator.hml"},
            {~"with m:f(_) check [_ ? #«rec»{a = 1}] ff.", ~"entity.name.type.record.hml"},
            {~"with m:f(_) check [_ ? A when A#«rec».a > 1] ff.", ~"entity.name.type.record.hml"},
            {~"with m:f(_) check [_ ? A when A#rec.«a» > 1] ff.", ~"variable.other.field.hml"},
            {~"with m:f(_) check [_ ? {ok, «{»a}}] ff.", ~"punctuation.section.braces.begin.hml"}
        ]]
    end}.

%% A region inside another one: the outer scope stays.
regions_nest_test() ->
    ?assertEqual([~"meta.modality.box.hml", ~"meta.braces.hml", ~"meta.list.hml", ~"constant.other.symbol.hml"],
                 scopes_of(~"with m:f(_) check [_ ? {a, [«b»]}] ff.", grammar())).

a_region_may_span_lines_test() ->
    Grammar = grammar(),
    ?assertEqual(~"support.function.guard.hml",
                 innermost(~"with m:f(_) check [_ ?\n {A,\n B} when «is_pid»(A)] ff.", Grammar)),
    ?assertEqual(~"constant.language.verdict.hml", innermost(~"with m:f(_) check [_ ?\n {A,\n B}\n] «ff».", Grammar)).

%% The scanner is what decides; a word that it calls a variable must look like one in an editor.
all_specifications_look_as_they_are_read_test_() ->
    {setup, fun grammar/0, fun(Grammar) ->
        [{filename:basename(File), fun() -> agrees(File, Grammar) end} || File <- specifications()]
    end}.

agrees(File, Grammar) ->
    {ok, Source} = file:read_file(File),
    {ok, Tokens} = witness_spec_scan:string(Source),
    {Spans, Open} = spans(Source, Grammar),
    ?assertEqual([], Open),
    Lines = list_to_tuple(binary:split(Source, ~"\n", [global])),
    [begin
         Scope = lists:last([root | covering(place(Token, Lines), Spans)]),
         ?assertEqual({Token, Scope, true}, {Token, Scope, looks(element(1, Token), Scope)})
     end || Token <- Tokens, element(1, Token) =/= eof].

looks(root, _) -> false;
looks(_, root) -> false;
looks(var, Scope) -> begins(Scope, [~"variable.", ~"entity.name.type.module."]);
looks('.', Scope) -> begins(Scope, [~"punctuation.", ~"entity.name.type.module."]);
looks(atom, Scope) -> begins(Scope, [~"constant.", ~"keyword.", ~"entity.", ~"support.", ~"variable.other.field"]);
looks(string, Scope) -> begins(Scope, [~"string."]);
looks(char, Scope) -> begins(Scope, [~"constant.character."]);
looks(integer, Scope) -> begins(Scope, [~"constant.numeric."]);
looks(float, Scope) -> begins(Scope, [~"constant.numeric."]);
looks(dot, Scope) -> begins(Scope, [~"punctuation."]);
looks(_, Scope) -> begins(Scope, [~"punctuation.", ~"keyword.operator.", ~"keyword.control."]).

begins(Scope, Prefixes) -> lists:any(fun(Prefix) -> string:prefix(Scope, Prefix) =/= nomatch end, Prefixes).

%% Columns of the scanner are characters, offsets of regular expressions are bytes.
place(Token, Lines) ->
    {Line, Column} = witness_spec_scan:location(Token),
    Text = unicode:characters_to_list(element(Line, Lines)),
    {Line, byte_size(unicode:characters_to_binary(lists:sublist(Text, Column - 1)))}.

specifications() ->
    Patterns = ["examples/**/*.hml", "test/systems/*.hml", "test/cli_data/{small,sliced,open,growing,records}.hml"],
    lists:append([filelib:wildcard(filename:join(root(), Pattern)) || Pattern <- Patterns]).

each_rule_that_is_included_exists_and_is_used_test() ->
    #{~"repository" := Repository} = Read = read(),
    Included = lists:usort(includes(Read)),
    ?assertEqual(lists:sort(maps:keys(Repository)), Included).

includes(#{~"include" := <<"#", Name/binary>>}) -> [Name];
includes(#{} = Map) -> lists:append([includes(Value) || Value <- maps:values(Map)]);
includes(List) when is_list(List) -> lists:append([includes(Value) || Value <- List]);
includes(_) -> [].

%% An editor

%% Rules with compiled expressions: {match, Regex, Captures} or {region, Name, Begin, Captures, End, Captures, Rules},
%% where the rules inside are names, since they may contain themselves.
grammar() ->
    #{~"patterns" := Patterns, ~"repository" := Repository} = read(),
    {[rule(Pattern) || Pattern <- Patterns], #{Name => rule(Rule) || Name := Rule <- Repository}}.

read() ->
    {ok, Json} = file:read_file(filename:join(root(), ?GRAMMAR)),
    json:decode(Json).

root() -> above(filename:dirname(proplists:get_value(source, ?MODULE:module_info(compile)))).

above(Folder) ->
    case filelib:is_regular(filename:join(Folder, ?GRAMMAR)) of
        true -> Folder;
        false ->
            ?assertNotEqual("/", Folder),
            above(filename:dirname(Folder))
    end.

rule(#{~"include" := <<"#", Name/binary>>}) -> {include, Name};
rule(#{~"match" := Regex} = Rule) -> {match, compiled(Regex), captures(~"captures", Rule)};
rule(#{~"begin" := Begin, ~"end" := End} = Rule) ->
    {region, maps:get(~"name", Rule, none), compiled(Begin), captures(~"beginCaptures", Rule), compiled(End),
     captures(~"endCaptures", Rule), [rule(Inner) || Inner <- maps:get(~"patterns", Rule, [])]};
rule(#{~"patterns" := Patterns}) -> {any, [rule(Pattern) || Pattern <- Patterns]}.

compiled(Regex) ->
    {ok, Compiled} = re:compile(Regex, [unicode]),
    Compiled.

captures(Key, Rule) ->
    maps:merge(case Rule of #{~"name" := Name, ~"match" := _} -> #{0 => Name}; #{} -> #{} end,
               #{binary_to_integer(Index) => Name || Index := #{~"name" := Name} <- maps:get(Key, Rule, #{})}).

%% All scopes as {From, To, Name}, outer ones first, and the names of the regions that the end of the text leaves open.
%% A place is a line and a byte.
spans(Source, {Rules, Repository}) ->
    Lines = lists:enumerate(binary:split(Source, ~"\n", [global])),
    Next = fun({Number, Line}, {Spans, Stack}) -> line(Line, Number, 0, Stack, Spans, Repository) end,
    {All, Open} = lists:foldl(Next, {[], [{none, none, none, #{}, Rules}]}, Lines),
    {lists:sort(fun outer/2, All), [Name || {_, Name, _, _, _} <- lists:droplast(Open)]}.

outer({From, To, _}, {From, To1, _}) -> To >= To1;
outer({From, _, _}, {From1, _, _}) -> From < From1.

line(Line, Number, At, Stack = [{From, Name, End, EndCaptures, Rules} | Outer], Spans, Repository) ->
    Found = [{Start, Order, Groups, Rule} ||
             {Order, {Regex, Rule}} <- lists:enumerate([{End, ends} || End =/= none] ++ expressions(Rules, Repository)),
             {match, [{Start, _} | _] = Groups} <- [re:run(Line, Regex, [{offset, At}, {capture, all, index}])]],
    case lists:sort(Found) of
        [] -> {Spans, Stack};
        [{_, _, [{Start, Length} | _] = Groups, Rule} | _] ->
            Stop = Start + Length,
            case Rule of
                ends ->
                    Region = [{From, {Number, Stop}, Name} || Name =/= none],
                    line(Line, Number, Stop, Outer, Region ++ named(Groups, EndCaptures, Number) ++ Spans, Repository);
                {match, _, Captures} when Length > 0 ->
                    line(Line, Number, Stop, Stack, named(Groups, Captures, Number) ++ Spans, Repository);
                {region, Inner, _, Captures, Until, UntilCaptures, InnerRules} when Length > 0 ->
                    line(Line, Number, Stop, [{{Number, Start}, Inner, Until, UntilCaptures, InnerRules} | Stack],
                         named(Groups, Captures, Number) ++ Spans, Repository)
            end
    end.

expressions(Rules, Repository) ->
    lists:append([case Rule of
        {include, Name} -> expressions([maps:get(Name, Repository)], Repository);
        {any, Inner} -> expressions(Inner, Repository);
        {match, Regex, _} -> [{Regex, Rule}];
        {region, _, Regex, _, _, _, _} -> [{Regex, Rule}]
    end || Rule <- Rules]).

named(Groups, Captures, Number) ->
    [{{Number, Start}, {Number, Start + Length}, maps:get(Index, Captures)}
     || {Index, {Start, Length}} <- lists:enumerate(0, Groups), Length > 0, is_map_key(Index, Captures)].

covering(Place, Spans) -> [Name || {From, To, Name} <- Spans, From =< Place, Place < To].

%% Of the word between « and », which must not be cut in two.
innermost(Marked, Grammar) -> lists:last(scopes_of(Marked, Grammar)).

scopes_of(Marked, Grammar) ->
    [Before, Rest] = string:split(Marked, <<"«"/utf8>>),
    [Word, After] = string:split(Rest, <<"»"/utf8>>),
    {Spans, _} = spans(<<Before/binary, Word/binary, After/binary>>, Grammar),
    Lines = binary:split(Before, ~"\n", [global]),
    {Line, Column} = Place = {length(Lines), byte_size(lists:last(Lines))},
    Last = {Line, Column + byte_size(Word) - 1},
    ?assertEqual(covering(Place, Spans), covering(Last, Spans)),
    covering(Place, Spans).
