-module(witness_web_data).
-moduledoc """
The data for the page of a report: pure functions from the results of a run to JSON.

All text is cut, on one line and free of control characters and of those that change the direction of text
(`witness_text:clean/1`, `m:witness_event`). The JSON is inside a `<script>` of the page. So `encode/1` escapes every
character that has a meaning in HTML or ends a line of JavaScript, wherever the text comes from.

The page has the same types, in `assets/src/data.ts`.
""".

-export([encode/1, time_and_versions/0, result/1, source/1, group/1, property/1, place/2, explained_violation/1,
         brief_violation/1]).

-export_type([json/0, group/0]).

-doc "Maps, lists, numbers, texts, `null`, and JSON that is encoded already.".
-type json() :: #{atom() => json()} | [json()] | number() | boolean() | null | binary() | {encoded, binary()}.

-doc "The key by which violations are grouped: their property, and the place.".
-type group() :: #{spec := binary(), name := binary() | undefined, place := term()}.

-define(MAX_TERM_CHARS, 2000). % characters of an event, as with --json
-define(MAX_VALUE_CHARS, 400). % characters of a bound value
-define(MAX_BRIEF_CHARS, 200). % characters of an event without its explanation
-define(MAX_FORMULA_CHARS, 4000).
-define(MAX_SOURCE_BYTES, 262_144). % bytes of a specification that are shown
-define(ESCAPES, [{~"<", ~"\\u003c"}, {~">", ~"\\u003e"}, {~"&", ~"\\u0026"},
                  {~"\x{2028}", ~"\\u2028"}, {~"\x{2029}", ~"\\u2029"}]).

-doc "The value as JSON that is harmless within a `<script>` element of HTML.".
-spec encode(json()) -> binary().
encode(Value) ->
    %% Outside strings JSON has none of these characters, and inside them an escape means the same.
    lists:foldl(fun({Char, Escape}, Json) -> binary:replace(Json, Char, Escape, [global]) end,
                iolist_to_binary(json:encode(Value, fun encode/2)), ?ESCAPES).

encode({encoded, Json}, _) -> Json;
encode(Value, Encode) -> json:encode_value(Value, Encode).

-doc "The time when a report is written, and the versions of Witness and Erlang/OTP.".
-spec time_and_versions() -> #{atom() => json()}.
time_and_versions() ->
    _ = application:load(witness),
    {ok, Version} = application:get_key(witness, vsn),
    #{time => list_to_binary(calendar:system_time_to_rfc3339(os:system_time(second), [{offset, "Z"}])),
      version => text([~"Witness ", Version, ~", Erlang/OTP ", erlang:system_info(otp_release)])}.

-doc "How the run has ended.".
-spec result(witness_web:result()) -> #{atom() => json()}.
result(#{code := Code, sentence := Sentence, facts := Facts, subject := Subject,
         summary := #{verdicts := Verdicts, coverage := Coverage, warnings := Warnings} = Summary}) ->
    (time_and_versions())#{
        code => Code, sentence => text(Sentence), subject => text(Subject),
        facts => [[text(Label), text(Text)] || {Label, Text} <- Facts],
        violations => maps:get(no, Verdicts, 0),
        warnings => [[text(Line) || Line <- string:split(Text, ~"\n", all)] || #{text := Text} <- Warnings],
        coverage => [coverage(Property) || Property <- Coverage],
        history => witness_web_history:json(Summary)}.

coverage(#{spec := Spec, name := Name, actions := Actions}) ->
    #{spec => text(Spec), name => text(Name),
      actions => [#{line => Line, column => Column, text => text(Text), decides => or_null(Decides), taken => Taken}
                  || #{line := Line, column := Column, text := Text, decides := Decides, taken := Taken} <- Actions]}.

-doc "A specification, by its name in verdicts. A large one is cut to its first part.".
-spec source(file:name_all()) -> #{atom() => json()}.
source(File) ->
    {Text, Cut} = case file:read_file(File) of
        {ok, <<First:?MAX_SOURCE_BYTES/binary, _/binary>>} -> {First, true};
        {ok, Whole} -> {Whole, false};
        {error, _} -> {~"", true}
    end,
    #{file => text(File), cut => Cut,
      lines => [text(string:trim(Line, trailing, "\r")) || Line <- binary:split(Text, ~"\n", [global])]}.

-doc "The group of a violation.".
-spec group(witness:verdict()) -> group().
group(#{spec := Spec, name := Name} = V) -> #{spec => Spec, name => Name, place => witness_text_verdict:place(V)}.

-doc "A property.".
-spec property(#{spec := binary(), name := binary() | undefined}) -> #{atom() => json()}.
property(#{spec := Spec, name := Name}) -> #{spec => text(Spec), name => text(Name)}.

-doc "The data that all violations of a group share, from one of them.".
-spec place(group(), witness:verdict()) -> #{atom() => json()}.
place(#{place := others}, _) ->
    (unknown_place())#{says := ~"in other places, of which there are too many to tell apart"};
place(#{place := {_, Function}}, #{source := undefined} = V) ->
    Says = case V of #{note := _} -> ~"the check says so"; #{} -> ~"the monitor says so" end,
    (unknown_place())#{says := Says, function := function_name(Function, V)};
place(#{place := {_, Function}}, #{source := Source, info := Info} = V) ->
    #{file := File, line := Line, column := Column, text := Text} = Source,
    Action = maps:get(action, Info, ~""),
    Shown = unicode:characters_to_list(string:trim(Text, trailing)),
    {Before, Marked, After} = witness_text_verdict:split_at_action(Shown, Column, Action),
    #{file => text(File), line => Line, column => or_null(Column), says => witness_text_verdict:decided_by(V),
      action => text(witness_text:cut(Action, ?MAX_TERM_CHARS)), marked => [Before, Marked, After],
      function => function_name(Function, V)}.

unknown_place() ->
    #{file => null, line => null, column => null, says => ~"", action => ~"", marked => null,
      function => null}.

function_name(undefined, _) -> null;
function_name(Function, V) -> witness_event:format_function(Function, witness_text_verdict:syntax(V)).

-doc "A violation with its explanation.".
-spec explained_violation(witness:verdict()) -> #{atom() => json()}.
explained_violation(#{steps := Steps, skipped := Skipped, info := Info, event := Event} = Verdict) ->
    Syntax = witness_text_verdict:syntax(Verdict),
    Known = witness_text_verdict:known(Verdict),
    {Lanes, Arrows} = witness_text_chart:sequence(Steps, Known),
    Times = witness_text_chart:times(Steps),
    Deadline = case is_map_key(deadline, Known) of true -> witness_text_chart:deadline(Steps, Known); false -> null end,
    (violation_head(Verdict, ?MAX_TERM_CHARS))#{
        explanation => #{skipped => Skipped, ended => Event =:= undefined andalso Deadline =:= null, deadline => Deadline,
                         lanes => [Lane#{title := or_null(Title)} || #{title := Title} = Lane <- Lanes],
                         steps => [step(Arrow, Syntax, Times) || Arrow <- Arrows],
                         bindings => case Info of #{bindings := Bound} -> bindings(Bound, Syntax, Times); _ -> [] end,
                         says => monitor_text(Info, Syntax)}}.

monitor_text(Info, _) when Info =:= undefined; is_map(Info) -> null;
monitor_text(Info, Syntax) -> witness_event:format_term(Info, ?MAX_TERM_CHARS, Syntax).

step(#{step := Step, time := Time, own := Own, from := From, to := To, ends := Ends, text := Text}, Syntax, Times) ->
    #{index := Index, event := Event, formula := Formula, bindings := Bindings} = Step,
    #{index => Index, time => Time, own => Own, from => or_null(From), to => or_null(To), ends => Ends, text => Text,
      event => witness_event:format(Event, ?MAX_TERM_CHARS), formula => formula(Formula),
      bindings => bindings(Bindings, Syntax, Times)}.

formula(undefined) -> null;
formula(Formula) -> text(witness_text:cut(Formula, ?MAX_FORMULA_CHARS)).

bindings(Bindings, Syntax) -> bindings(Bindings, Syntax, #{}).

bindings(Bindings, Syntax, Times) ->
    [[text(Name), text(witness_text:value(Value, ?MAX_VALUE_CHARS, Syntax, Times))] || {Name, Value} <- Bindings].

-doc "A violation without its explanation.".
-spec brief_violation(witness:verdict()) -> #{atom() => json()}.
brief_violation(Verdict) -> violation_head(Verdict, ?MAX_BRIEF_CHARS).

violation_head(#{process := Process, signature := Signature, slice := Slice, event := Event} = Verdict, Limit) ->
    Syntax = witness_text_verdict:syntax(Verdict),
    #{process => case Process of undefined -> null; _ -> witness_event:format_proc(Process, Syntax) end,
      signature => case Signature of undefined -> null; _ -> witness_event:format_signature(Signature, Syntax) end,
      slice => case Slice of undefined -> []; _ -> bindings(Slice, Syntax) end,
      log => text(maps:get(log, Verdict, undefined)),
      note => lines(maps:get(note, Verdict, undefined)),
      index => case Event of undefined -> null; #{index := Index} -> Index end,
      event => case Event of undefined -> null; #{event := E} -> witness_event:format(E, Limit) end}.

or_null(undefined) -> null;
or_null(Value) -> Value.

%% What a check says more of a violation may have several lines.
lines(undefined) -> null;
lines(Note) -> unicode:characters_to_binary(lists:join($\n, [text(Line) || Line <- string:split(Note, ~"\n", all)])).

text(undefined) -> null;
text(Text) -> witness_text:clean(Text).
