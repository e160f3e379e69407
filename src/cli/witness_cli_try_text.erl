-module(witness_cli_try_text).
-moduledoc """
What specifications say of a log (`t:witness_cli_try:trial/0`), on a screen.

Each property has a line with its instances and verdicts, a line for each action, and the first violations. If there are more lines than a
screen should have, the more important ones stay, in their order: properties, what never matches, violations, and then the rest. Pure.
""".

-export([text/2]).

-define(MAX_LINES, 20).
-define(MIN_ACTION_CHARS, 24).

%% What stays first.
-define(PROPERTY, 1).
-define(UNSEEN, 2).
-define(FIRST_VIOLATION, 3).
-define(WARNING, 4).
-define(SEEN, 5).
-define(VIOLATION, 6).

-doc "The lines.".
-spec text(witness_cli_try:trial(), witness_text:look()) -> unicode:chardata().
text(#{summary := #{warnings := Warnings}, properties := Properties} = Trial, Look) ->
    Ranked = lists:append([property(Property, Look) || Property <- Properties])
        ++ [{?WARNING, witness_cli_render:warning(Warning, Look)} || #{code := Code} = Warning <- Warnings, not is_told(Code)],
    Lines = [{Rank, Number, string:trim(Line, trailing, "\n")} || {Number, {Rank, Line}} <- lists:enumerate(Ranked)],
    %% One line is the first, and one may say how many there are more.
    Kept = case length(Lines) < ?MAX_LINES of
        true -> Lines;
        false -> lists:keysort(2, lists:sublist(lists:sort(Lines), ?MAX_LINES - 2))
    end,
    More = length(Lines) - length(Kept),
    [[Line, $\n] || Line <- [head(Trial) | [Line || {_, _, Line} <- Kept]]
        ++ [[~"and ", witness_text:count(More, ~"other line", ~"other lines"), ~"; --json has all"] || More > 0]].

%% The compiler has reported the first kind; the lines of a property say the second.
is_told(Code) -> Code =:= specification orelse Code =:= vacuous.

head(#{log := Log, interrupted := Interrupted, summary := #{events := Events, processes := Processes} = Summary}) ->
    [witness_text:clean(Log), ~": ", events(Events), ~" of ",
     witness_text:count(Processes, ~"process", ~"processes"),
     case Summary of
         #{outcome := refused} -> ~"; it is wrong, and was not read on";
         _ when Interrupted -> ~"; interrupted: it was not read to its end";
         #{outcome := untrusted} -> ~"; the result cannot be trusted or says nothing";
         _ -> ~""
     end].

property(#{events := Events, actions := Actions, violations := Violations} = Property, Look) ->
    [{?PROPERTY, [witness_text:style(strong, witness_text_verdict:property(Property), Look), ~": ", instances(Property),
                  witness_cli_render:results(Property)]}
     | actions(Actions, Events, Property, Look)]
    ++ [{case N of 1 -> ?FIRST_VIOLATION; _ -> ?VIOLATION end, violation(V, Look)} || {N, V} <- lists:enumerate(Violations)].

instances(#{monitored := Monitored, all := All, slices := Slices}) ->
    [case {All, Monitored} of
         {_, 0} -> ~"no process";
         {true, _} -> ~"all processes";
         {false, _} -> witness_text:count(Monitored, ~"process", ~"processes")
     end, [[~", ", witness_text:count(Slices, ~"slice", ~"slices")] || is_integer(Slices)]].

%% Without a monitor no action could match.
actions(_, _, #{monitored := 0}, _) -> [];
actions(Actions, Events, Property, #{width := Width} = Look) ->
    Cells = [[[~"  line ", integer_to_binary(Line), ~", column ", integer_to_binary(Column), $:],
              matched(Action, Events), witness_text:clean(Text)]
             || #{line := Line, column := Column, text := Text} = Action <- Actions],
    Rows = witness_text:columns([lists:droplast(Row) ++ [~""] || Row <- Cells]),
    Left = lists:max([0 | [string:length(Row) || Row <- Rows]]) + 2,
    lists:append([begin
        Padded = witness_text:pad(Row, Left),
        Style = case rank(Action) of ?UNSEEN -> witness_text:style(doubtful, Padded, Look); _ -> Padded end,
        [{rank(Action), [Style, witness_text:cut(lists:last(Cell), max(?MIN_ACTION_CHARS, Width - Left))]}
         | [{rank(Action), witness_text:cut([~"    ", Note], Width)} || Note <- notes(Action, Property)]]
    end || {Action, Row, Cell} <- lists:zip3(Actions, Rows, Cells)]).

%% An action that violates by itself should never match.
rank(#{matched := 0, decides := Decides}) when Decides =/= no -> ?UNSEEN;
rank(#{}) -> ?SEEN.

matched(#{matched := 0, decides := Decides}, Events) when Decides =/= no -> [~"never matched (", events(Events), $)];
matched(#{matched := Matched}, Events) -> [~"matched ", integer_to_binary(Matched), ~" of ", events(Events)].

events(Count) -> witness_text:count(Count, ~"event", ~"events").

notes(#{near := [_ | _] = Near}, #{syntax := Syntax}) ->
    [[~"another shape, the same words: ", [[witness_text:clean(Place), ~": "] || Place =/= undefined], witness_event:format(Event, 200, Syntax)]
     || {Place, Event} <- Near];
notes(#{matched := 0, same := Same, decides := Decides}, _) when Same > 0, Decides =/= no ->
    [[witness_text:count(Same, ~"event has", ~"events have"), ~" this shape, but other values, or came where nothing waits for them"]];
notes(_, _) -> [].

violation(#{event := Event, process := Process, source := Source} = V, #{width := Width} = Look) ->
    Syntax = witness_text_verdict:syntax(V),
    Text = [~"violated", [[~" at ", witness_text:clean(Place)] || #{log := Place} <- [V]],
            [[~", by ", witness_event:format_proc(Process, Syntax)] || Process =/= undefined],
            [[~", line ", integer_to_binary(Line), [[~", column ", integer_to_binary(Column)] || is_integer(Column)]]
             || #{line := Line, column := Column} <- [Source]],
            case {V, Event} of
                {#{info := #{deadline := _}}, _} -> ~": it did not come in time";
                {_, #{event := E}} -> [~": ", witness_event:format(E, 200, Syntax)];
                {_, undefined} -> ~": no event followed"
            end],
    [~"  ", witness_text:style(bad, witness_text:cut(Text, max(40, Width - 2)), Look)].
