-module(witness_hml_grammar_tests).
-moduledoc """
The TextMate grammar of specifications, `assets/hml.tmLanguage.json`, as an editor applies it: line by line, the
earliest match of the rules that hold at a place, the end of a region before the rules inside it.

What it says of a word is compared with what was meant, and for all specifications of the repository with what the
scanner of the language says.
""".
-include_lib("eunit/include/eunit.hrl").

-define(GRAMMAR, "assets/hml.tmLanguage.json").
-define(WORDS, [with, per, over, never, always, then, leads, to, precedes, alternates, at, most, least, exactly, in, any, open,
                until, unique, strictly, increasing, before, between, within]).
-define(RANDOM, 1).  % files of each kind, with a sentence of each form

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
            {~"with m:f(_) check [_ ? {ok, «{»a}}] ff.", ~"punctuation.section.braces.begin.hml"},
            %% Sentences.
            {~"with m:f(_) «never» {_ ? a}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) never «{»_ ? a}.", ~"punctuation.section.braces.begin.hml"},
            {~"with m:f(_) never {_ «?» a}.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) never {_ ? «never»}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) never _ ? «never».", ~"constant.other.symbol.hml"},
            {~"with m:f(_) never _ ?\n «never».", ~"constant.other.symbol.hml"},
            {~"with m:f(_) never _ ? «a» before {_ ? b}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) never {_ ? A «when» A > 1}.", ~"keyword.control.when.hml"},
            {~"with m:f(_) never {_ ? A when A > «5» s}.", ~"constant.numeric.duration.hml"},
            {~"with m:f(_) never {_ ? a}«.»", ~"punctuation.terminator.hml"},
            {~"with m:f(_) never {_ ? a}. «with» m:f(_) none.", ~"keyword.control.hml"},
            {~"with m:f(_) never {_ ? a},\n«b»: with m:f(_) none.", ~"entity.name.function.property.hml"},
            {~"with m:f(_) never {_ ? a}\n\n«with» m:f(_) none.", ~"keyword.control.hml"},
            {~"with m:f(_) never _ calls «m»:f(_).", ~"entity.name.type.module.hml"},
            {~"with m:f(_) never _ ** «normal» after {_ ? b}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) never «call»(From, _) before {_ ? b}.", ~"support.function.otp.hml"},
            {~"with m:f(_) never _ ? «call»(From, _).", ~"support.function.otp.hml"},
            {~"with m:f(_) never reply(_, ok) «to» until before {_ ? b}.", ~"keyword.control.to.hml"},
            {~"with m:f(_) never reply(_, ok) to «until» before {_ ? b}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) never reply(_, ok) to until «before» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) never {_ ? a} «within» 5 s after {_ ? b}.", ~"keyword.control.timed.hml"},
            {~"with m:f(_) never {_ ? a} within «5» s after {_ ? b}.", ~"constant.numeric.duration.hml"},
            {~"with m:f(_) never {_ ? a} within 5 s «after» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) never _ ? a «after» {_ ? b} until {_ ? c}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) never _ ? a after {_ ? b} «until» {_ ? c}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) never _ ? a «between» _ ? b and _ ? c.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) never _ ? a between _ ? b «and» _ ? c.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) over _ ? a, _ ? «b» always {_ ? a}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) over _ ? a, _ ? b «always» {_ ? a}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) over _ ? «always» always {_ ? a}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) over _ ? always «always» {_ ? a}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) over reply(_, a) to «always» always {_ ? a}.", ~"constant.other.symbol.hml"},
            {~"with m:f(A) when A =:= «never» never {_ ? a}.", ~"constant.other.symbol.hml"},
            {~"with m:f(A) when A =:= never «never» {_ ? a}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_), «never»:f(_) never {_ ? a}.", ~"entity.name.type.module.hml"},
            {~"with m:f(_) group «always» {_ ? a} leads to {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) per K «always» call(K, _) then {_ ? b} leads to {_ ? c}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) per K always call(K, _) «then» {_ ? b} leads to {_ ? c}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) always {_ ? a} «leads» to {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) always {_ ? a} leads «to» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) always call(_, _) leads «to» reply(_, _) within 5 s.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) always _ ? a leads to «reply»(_, _) within 5 s.", ~"support.function.otp.hml"},
            {~"with m:f(_) «{»_ ? a} precedes {_ ? b}.", ~"punctuation.section.braces.begin.hml"},
            {~"with m:f(_) {_ ? a} «precedes» {_ ? b} within 7 d.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_)\n  {_ ? a} then {_ ? b}\n «precedes» {_ ? c}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(A) when A > 1 {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(A) when A =:= {b} {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(A) when {b} =:= A {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) «call»(_, a) precedes {_ ? b}.", ~"support.function.otp.hml"},
            {~"with m:f(_) call(_, a) «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) over _ ? _ {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) over {_ ? a},\n «begin» _ ? b {_ ? a} precedes {_ ? b}.", ~"keyword.control.hml"},
            {~"with m:f(_) over {_ ? a},\n {_ ? b}, «begin» {_ ? c} {_ ? a} precedes {_ ? b}.", ~"keyword.control.hml"},
            {~"with m:f(_) over {_ ? a},\n {_ ? b}, begin {_ ? c} {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) let V = once {_ ? a} {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) let V = once {_ ? a}\n  {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) let V =\n  {_ ? a} «since» {_ ? b} never {_ ? a}.", ~"keyword.control.value.hml"},
            {~"with m:f(_) let V = {_ ? a} or {_ ? b} since {_ ? c} «never» {_ ? a}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) let V = W =:= «never» since {_ ? c} never {_ ? a}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) {_ ? a} «alternates» with {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) {_ ? a} alternates «with» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) {_ ? a} alternates\n  «with» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) {_ ? a} alternates with _ ? «with».", ~"constant.other.symbol.hml"},
            {~"with m:f(_) «at» most 3 {_ ? a}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) at «most» 3 {_ ? a}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) at most «3» {_ ? a}.", ~"constant.numeric.integer.hml"},
            {~"with m:f(_) at «least» 3 _ ? a.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) «exactly» 3 _ ? least.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) exactly 3 _ ? «least».", ~"constant.other.symbol.hml"},
            {~"with m:f(_) at most 3 _ ? a «in» any 30 s.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) at most 3 _ ? a in «any» 30 s.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) at most 3 _ ? a in any 30 «s».", ~"keyword.other.unit.hml"},
            {~"with m:f(_) at most 3 «open» {_ ? a} until {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) at most 3 open _ : «open» ! x until {_ ? b}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) at most 3 «open» ! x.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) at most 3 open {_ ? a} «until» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) never _ ? a «at» T before {_ ? b}.", ~"keyword.control.at.hml"},
            {~"with m:f(_) «unique» A, B in {_ ? {A, B}}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) unique A, «B» in {_ ? {A, B}}.", ~"variable.other.hml"},
            {~"with m:f(_) unique A, B «in» {_ ? {A, B}}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) «increasing» N in {_ ? N}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) «strictly» increasing N in {_ ? N}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) strictly «increasing» N in {_ ? N}.", ~"keyword.control.sentence.hml"},
            {~"«never»: with m:f(_) never {_ ? a}.", ~"entity.name.function.property.hml"},
            {~"with m:f(_)\n  {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(_) over _ ? c\n  {_ ? a} «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            {~"with m:f(A) when {b} =:= A «group» never {_ ? a}.", ~"keyword.control.hml"},
            {~"with m:f(_) over _ <- _, «never»:f(_) never {_ ? a}.", ~"entity.name.type.module.hml"},
            {~"with m:f(_) over _ returns m:f/1 -> «never» never {_ ? a}.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) over _ ? «call»(_, _) always {_ ? a}.", ~"support.function.otp.hml"},
            {~"with m:f(_) over _ ? a«,» _ ? b always {_ ? a}.", ~"punctuation.separator.hml"},
            {~"with m:f(_) let V = once {_ ? a} let W = not V call(_, a) «precedes» {_ ? b}.", ~"keyword.control.sentence.hml"},
            %% Machines.
            {~"with m:f(_) «machine» state a: end.", ~"keyword.control.hml"},
            {~"with m:f(_) over _ ? a «machine» state a: end.", ~"keyword.control.hml"},
            {~"with m:f(_) let V = once {_ ? a} «machine» state a: end.", ~"keyword.control.hml"},
            {~"with m:f(_) per K «machine» state a: end.", ~"keyword.control.hml"},
            {~"with «machine»:f(_) machine state a: end.", ~"entity.name.type.module.hml"},
            {~"with m:f(machine) when A =:= «machine» machine state a: end.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) machine («N» = 0) state a: end.", ~"variable.other.hml"},
            {~"with m:f(_) machine (N «=» 0) state a: end.", ~"keyword.operator.hml"},
            {~"with m:f(_) machine «state» a: end.", ~"keyword.control.machine.hml"},
            {~"with m:f(_) machine state «a»: end.", ~"entity.name.type.state.hml"},
            {~"with m:f(_) machine state «'a b'»: end.", ~"entity.name.type.state.hml"},
            {~"with m:f(_) machine state «state»: end.", ~"entity.name.type.state.hml"},
            {~"with m:f(_) machine state a«:» end.", ~"punctuation.separator.hml"},
            {~"with m:f(_) machine state a: «end».", ~"keyword.control.hml"},
            {~"with m:f(_) machine state a: end«.»", ~"punctuation.terminator.hml"},
            {~"with m:f(_) machine «hot» state a: end.", ~"keyword.control.machine.hml"},
            {~"with m:f(_) machine hot «state» a: end.", ~"keyword.control.machine.hml"},
            {~"with m:f(_) machine hot state a «within» 1.5 min: end.", ~"keyword.control.timed.hml"},
            {~"with m:f(_) machine hot state a within «1.5» min: end.", ~"constant.numeric.duration.hml"},
            {~"with m:f(_) machine hot state a within 1 «min»: end.", ~"keyword.other.unit.hml"},
            {~"with m:f(_) machine state a: _ «?» b -> c end.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) machine state a: _ ? «b» -> c end.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) machine state a: _ ? b «->» c end.", ~"keyword.operator.action.hml"},
            {~"with m:f(_) machine state a: _ ? b -> «c» end.", ~"entity.name.type.state.hml"},
            {~"with m:f(_) machine state a: _ ? b ->\n «c» end.", ~"entity.name.type.state.hml"},
            {~"with m:f(_) machine state a: _ ? b -> «c» (N = 1); _ ? d -> stay end.", ~"entity.name.type.state.hml"},
            {~"with m:f(_) machine state a: _ ? b -> «stay» (N = 1); _ ? d -> c end.", ~"keyword.control.machine.hml"},
            {~"with m:f(_) machine state a: _ ? b -> stay (N «=» 1); _ ? d -> c end.", ~"keyword.operator.hml"},
            {~"with m:f(_) machine state a: _ ? b -> stay«;» _ ? d -> c end.", ~"punctuation.separator.hml"},
            {~"with m:f(_) machine state a: _ ? b -> «violated» \"why\" end.", ~"keyword.control.machine.hml"},
            {~"with m:f(_) machine state a: _ ? b -> violated \"«why»\" end.", ~"string.quoted.double.hml"},
            {~"with m:f(_) machine state a: _ ? b -> «satisfied» end.", ~"keyword.control.machine.hml"},
            {~"with m:f(_) machine state a: «else» -> violated end.", ~"keyword.control.else.hml"},
            {~"with m:f(_) machine state a: _ ? «hot» -> b state b: end.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) machine state a: _ ? b -> c «hot» state c: end.", ~"keyword.control.machine.hml"},
            {~"with m:f(_) machine state a: _ ? «stay» -> c state c: end.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) machine state a: {_ ? «violated»} -> c state c: end.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) machine state a: _ : «state» ! x -> c state c: end.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) machine state a: _ ? A when A =:= «satisfied» -> c state c: end.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) machine state a: _ ? A «when» A > N -> c end.", ~"keyword.control.when.hml"},
            {~"with m:f(_) machine state a: «reply»(_, ok) -> c end.", ~"support.function.otp.hml"},
            {~"with m:f(_) machine state a: P -> C, «m»:f(_) -> c end.", ~"entity.name.type.module.hml"},
            {~"with m:f(_) machine state a: _ returns m:f/1 -> «ok» -> c end.", ~"constant.other.symbol.hml"},
            {~"with m:f(_) machine state a: _ returns m:f/1 -> ok -> «c» end.", ~"entity.name.type.state.hml"},
            {~"with m:f(_) machine state a: _ ? b -> c\n\n«d»: with m:f(_) none.", ~"entity.name.function.property.hml"}
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
        Texts = [{File, Text} || {File, Text} <- witness_spec_format_props_tests:sources(), is_specification(Text)],
        Machines = [Text || {_, Text} <- Texts, re:run(Text, ~"^  machine", [multiline]) =/= nomatch],
        [?_assert(length(Texts) > 150), ?_assertNotEqual([], Machines)]
            ++ [{File, fun() -> agrees(Text, Grammar) end} || {File, Text} <- Texts]
    end}.

is_specification(Text) -> witness_spec_format:is_specification(Text) =:= ok.

%% `WITNESS_HML_SEED` brings a run back.
random_sentences_look_as_they_are_read_test_() ->
    {timeout, 60, fun() ->
        Seed = witness_setting:number("WITNESS_HML_SEED", erlang:system_time(second)),
        _ = rand:seed(exsss, Seed),
        Grammar = grammar(),
        [begin
             Text = witness_spec_sentence_props_tests:random_text(Mode),
             ?assertEqual({Seed, Text, ok}, {Seed, Text, agrees(Text, ?WORDS, Grammar)})
         end || Mode <- [whole, per, some, shared], _ <- lists:seq(1, ?RANDOM)]
    end}.

agrees(Source, Grammar) -> agrees(Source, [], Grammar).

%% The words are some of the language, and no atoms.
agrees(Source, Words, Grammar) ->
    {ok, Tokens} = witness_spec_scan:string(Source),
    {Spans, Open} = spans(Source, Grammar),
    ?assertEqual([], Open),
    Lines = list_to_tuple(binary:split(Source, ~"\n", [global])),
    lists:foreach(fun(Token) ->
        Scope = lists:last([root | covering(place(Token, Lines), Spans)]),
        ?assertEqual({Token, Scope, true}, {Token, Scope, looks(kind(Token, Words), Scope)})
    end, lists:droplast(Tokens)).

kind({atom, _, Atom}, Words) ->
    case lists:member(Atom, Words) of true -> word; false -> atom end;
kind(Token, _) -> element(1, Token).

looks(_, root) -> false;
looks(word, Scope) -> begins(Scope, [~"keyword.control."]);
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
                %% One that begins in front of its first word goes on with the rules inside it.
                {region, Inner, _, Captures, Until, UntilCaptures, InnerRules} ->
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
