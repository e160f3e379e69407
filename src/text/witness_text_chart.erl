-module(witness_text_chart).
-moduledoc """
The steps of an explanation as a sequence chart in plain characters.

Each process that exchanges messages has a lane. Its heading is the process identifier and, if it is known, its name or the module
that it was spawned with. Each event is a row: `*` is in the lane of the process that the event belongs to.
An arrow goes from the sender of a message to its receiver, and the text right of the lanes describes the event.
If the events have times, each row says how long after the first one it was.
If the knowledge of the monitor has changed after a step, it is below the step, and so is a formula. A formula that was shown before
is given by the number of its step. The deciding row is marked `=>`. If a deadline decided, it has a row of its own. Then times are
exact, and also if the monitor knows the times of events.

```
                     <0.91.0>    <0.90.0>
                    calc_server    shell
                         |           |
    1                    *           |    starts calc_server:loop(buggy), spawned by <0.90.0>
    2   +0.01 ms         *<----------|    {<0.90.0>,{add,1,2}}
                         |           |      A = 1, B = 2
 => 3   +0.12 ms         *---------->|    {ok,-1}
```

A message that comes from a timer or from an unknown process has an arrow without a beginning. Requests and answers of
the OTP behaviours are written as in the specification language: `call(_, Request)`, `reply(_, Reply)`,
`cast(Message)`. An answer to an alias, which is a reference, is drawn to the process that asked, if it is known: from the
request, if that is a step, and from the alias itself.

The chart has as many lanes as fit into the width of the line, two to five: those of the processes of the last steps.
All other processes share one more lane.
""".

-export([chart/4, sequence/2, deadline/2, times/1]).

-export_type([step/0, titles/0, known/0, lane/0, arrow/0]).

-doc """
A step of a verdict; `formula` and `bindings` are what the monitor knew after it. Of a search it may be what a process does besides
(`other`), and may have a `label`, which comes before its text.
""".
-type step() :: #{index := pos_integer(), event := witness_event:event() | {other, witness_event:proc(), binary(), undefined},
                  formula := binary() | undefined, bindings := [{binary(), term()}], label => binary()}.

-doc "What a lane can belong to: a process, or any other receiver of a message.".
-type party() :: witness_event:proc() | witness_event:destination() | others.

-doc "The names of processes, as text, or the modules that they were spawned with.".
-type titles() :: #{party() => binary() | module()}.

-doc """
What is known beside the steps. `aliases`: the processes that have made them; `syntax`: the notation of terms; `deadline`: the time that
decided by passing.
""".
-type known() :: #{titles := titles(), aliases := #{reference() => pid()}, syntax := witness_event:syntax(),
                   deadline => integer()}.

-doc "A process or other party, and its name or the module that it was spawned with, if that is known.".
-type lane() :: #{name := binary(), title := binary() | undefined}.

-doc """
A step between lanes, which are counted from 0: the lane that it is in, and, for a message, the lanes that it goes between.
`ends`: the process has ended. `time`: how long after the first step, if that is known.
""".
-type arrow() :: #{step := step(), time := binary(), own := non_neg_integer(), from := non_neg_integer() | undefined,
                   to := non_neg_integer() | undefined, ends := boolean(), text := binary()}.

%% A row before it is drawn. `from` and `to` are undefined if that party has no lane.
-type row() :: #{step := step(), time := binary(), own := party(), from := party() | undefined, to := party() | undefined,
                 mark := $* | $X, text := binary()}.
%% What all rows have in common.
-type drawing() :: #{lanes := [party()], pitch := pos_integer(), gutter := pos_integer(), titles := titles(),
                     decided := pos_integer() | undefined, look := witness_text:look(), syntax := witness_event:syntax(),
                     times := witness_text:times()}.

-define(MIN_LANES, 2).
-define(MAX_LANES, 5).
-define(NAME_CHARS, 15).          % characters of a lane's heading
-define(TITLE_CHARS, 40).         % of a module's name, if there is space
-define(WIDE_TITLE_CHARS, 20).    % of the one below the heading of a lane
-define(GUTTER_COLUMNS, 8).       % columns left of the lanes: mark and number of the row
-define(TIME_COLUMNS, 9).         % and its time
-define(TEXT_CHARS, 400).         % characters of a row's text, which is wrapped
-define(MIN_TEXT_COLUMNS, 24).    % columns for that text, whatever the width of the terminal
-define(GOOD_TEXT_COLUMNS, 40).   % columns for it, so that lanes may be wide

-doc """
The lines of the chart. `Decided` is the index of the deciding step, if one decided.
""".
-spec chart([step()], known(), Decided :: pos_integer() | undefined, witness_text:look()) -> [unicode:chardata()].
chart([], _, _, _) -> [];
chart(Steps, #{syntax := Syntax} = Known, Decided, Look) ->
    Rows = rows(Steps, Known),
    Deadline = deadline(Steps, Known),
    Gutter = case lists:max([string:length(Time) || Time <- [Deadline | [Time || #{time := Time} <- Rows]]]) of
        0 -> ?GUTTER_COLUMNS;
        Longest -> ?GUTTER_COLUMNS + max(?TIME_COLUMNS, Longest + 2)
    end,
    Titles = titles(Known, Steps),
    {Lanes, Pitch} = lanes(Rows, Gutter, Titles, Syntax, Look),
    Drawing = #{lanes => Lanes, pitch => Pitch, gutter => Gutter, titles => Titles, decided => Decided, look => Look,
                syntax => Syntax, times => times(Steps)},
    {InTime, Late} = lists:splitwith(fun(Row) -> is_in_time(Row, Known) end, Rows),
    {Before, Learnt} = draw(InTime, {[], #{}, undefined}, Drawing),
    {After, _} = draw(Late, Learnt, Drawing),
    heading(Drawing) ++ [line(Drawing) | Before]
        ++ [draw_deadline(Deadline, Drawing) || is_map_key(deadline, Known)]
        ++ After.

-doc """
The same steps for other drawings. Every party has a lane, in the order of their first appearance.
""".
-spec sequence([step()], known()) -> {[lane()], [arrow()]}.
sequence(Steps, #{syntax := Syntax} = Known) ->
    Rows = rows(Steps, Known),
    Parties = lists:uniq([Party || Row <- Rows, Party <- parties(Row)]),
    Titles = titles(Known, Steps),
    Places = (maps:from_list([{Party, Place} || {Place, Party} <- lists:enumerate(0, Parties)]))#{undefined => undefined},
    {[#{name => text(lane_name(Party, Syntax)),
        title => case Titles of #{Party := Title} -> text(format_title(Title, ?TITLE_CHARS)); #{} -> undefined end}
      || Party <- Parties],
     [#{step => Step, time => Time, own => maps:get(Own, Places), from => maps:get(From, Places), to => maps:get(To, Places),
        ends => Mark =:= $X, text => Text}
      || #{step := Step, time := Time, own := Own, from := From, to := To, mark := Mark, text := Text} <- Rows]}.

titles(#{titles := Known}, Steps) -> maps:merge(lists:foldl(fun add_module/2, #{}, Steps), Known).

add_module(#{event := {init, Child, _, {Module, _, _}, _}}, Modules) -> Modules#{Child => Module};
add_module(#{event := {attached, Proc, {Module, _, _}, _}}, Modules) -> Modules#{Proc => Module};
add_module(#{event := {fork, _, Child, {Module, _, _}, _}}, Modules) -> Modules#{Child => Module};
add_module(_, Modules) -> Modules.

%% Rows

-spec rows([step()], known()) -> [row()].
rows([], _) -> [];
rows([#{event := First} | _] = Steps, #{aliases := Aliases, syntax := Syntax} = Known) ->
    {Rows, _} = lists:mapfoldl(fun(Step, Callers) -> row(Step, Callers, Syntax) end, Aliases, Steps),
    IsExact = is_exact(Steps, Known),
    [Row#{time => time(witness_event:ts(First), witness_event:ts(Event), IsExact)} || #{step := #{event := Event}} = Row <- Rows].

is_exact(_, #{deadline := _}) -> true;
is_exact(Steps, _) ->
    Times = times(Steps),
    lists:any(fun(#{bindings := Bindings}) -> witness_text:has_time([Value || {_, Value} <- Bindings], Times) end, Steps).

%% An integer below is hardly the time of an event.
-define(LEAST_TIME_NS, 1_000_000_000).

-doc """
How long after the first step the events of the steps were, by their times. In what a monitor knows, times are large integers.
""".
-spec times([step()]) -> witness_text:times().
times([#{event := First} | _] = Steps) ->
    Begin = witness_event:ts(First),
    #{Time => [$+, witness_text:exact_duration(Time - Begin)]
      || is_integer(Begin), #{event := Event} <- Steps, Time <- [witness_event:ts(Event)],
         is_integer(Time), abs(Time) >= ?LEAST_TIME_NS, Time >= Begin};
times([]) -> #{}.

%% Nothing for the first event itself, and for others that are as old.
time(First, Time, IsExact) when is_integer(First), is_integer(Time), Time > First ->
    case IsExact of
        true -> witness_text:exact_duration(Time - First);
        false -> witness_text:duration(Time - First)
    end;
time(_, _, _) -> ~"".

-doc "How long after the first step the deadline was that decided; empty if none did, or if that is not known.".
-spec deadline([step()], known()) -> binary().
deadline([#{event := First} | _], #{deadline := At}) -> time(witness_event:ts(First), At, true);
deadline(_, _) -> ~"".

is_in_time(#{step := #{event := Event}}, #{deadline := At}) ->
    case witness_event:ts(Event) of
        Time when is_integer(Time) -> Time =< At;
        undefined -> true
    end;
is_in_time(_, _) -> true.

%% `Callers' has the callers of calls by the tags of their calls, and the owners of aliases, so that replies to aliases find them.
row(#{event := Event} = Step, Callers, Syntax) ->
    #{text := Text} = Row = event_row(Event, Callers, Syntax),
    {Row#{step => Step, text := text([maps:get(label, Step, ~""), Text])}, add_caller(Event, Callers)}.

event_row({init, Child, Parent, Signature, _}, _, Syntax) ->
    By = case Parent of undefined -> ~""; _ -> [~", spawned by ", format_name(Parent, 40, Syntax)] end,
    local_row(Child, $*, [~"starts ", witness_event:format_signature(Signature, Syntax), By]);
event_row({attached, Proc, Function, _}, _, Syntax) ->
    local_row(Proc, $*, [~"was running already, in ", witness_event:format_function(Function, Syntax)]);
event_row({fork, Parent, Child, Signature, _}, _, Syntax) ->
    local_row(Parent, $*, [~"spawns ", format_name(Child, 40, Syntax), ~", ", witness_event:format_signature(Signature, Syntax)]);
event_row({other, Proc, Text, _}, _, _) -> local_row(Proc, $*, string:trim(Text, leading));
event_row({call, Proc, Call, _}, _, Syntax) ->
    local_row(Proc, $*, [~"calls ", witness_event:format_signature(Call, Syntax)]);
event_row({return, Proc, Function, Value, _}, _, Syntax) ->
    local_row(Proc, $*, [~"returns ", witness_event:format_function(Function, Syntax), ~" -> ",
                         witness_event:format_term(Value, ?TEXT_CHARS, Syntax)]);
event_row({exit, Proc, Reason, _}, _, Syntax) ->
    local_row(Proc, $X, [~"ends: ", witness_event:format_reason(Reason, ?TEXT_CHARS, Syntax)]);
event_row({send, Proc, Proc, Message, _}, _, Syntax) ->
    local_row(Proc, $*, [~"to itself: ", format_message(Message, Syntax)]);
event_row({send, Proc, To, Message, _}, Callers, Syntax) ->
    #{own => Proc, from => Proc, to => receiver(To, Message, Callers), mark => $*,
      text => text(format_sent(To, Message, Callers, Syntax))};
event_row({recv, Proc, Proc, Message, _}, _, Syntax) ->
    local_row(Proc, $*, [~"from itself: ", format_message(Message, Syntax)]);
event_row({recv, Proc, From, Message, _}, _, Syntax) ->
    #{own => Proc, from => From, to => Proc, mark => $*, text => text(format_message(Message, Syntax))}.

local_row(Proc, Mark, Text) -> #{own => Proc, from => undefined, to => undefined, mark => Mark, text => text(Text)}.

text(Text) -> unicode:characters_to_binary(Text).

add_caller({recv, _, _, {'$gen_call', {Caller, Tag}, _}, _}, Callers) -> Callers#{tag(Tag) => Caller};
add_caller({send, Caller, _, {'$gen_call', {Caller, Tag}, _}, _}, Callers) -> Callers#{tag(Tag) => Caller};
add_caller(_, Callers) -> Callers.

tag([alias | Reference]) -> Reference;
tag(Tag) -> Tag.

receiver(To, _, Callers) when is_map_key(To, Callers) -> maps:get(To, Callers);
receiver(To, _, _) -> To.

%% A reply to a process looks like any other pair, so its tag must be known from a call.
format_sent(_, {Tag, Reply}, Callers, Syntax) when is_reference(Tag), is_map_key(Tag, Callers) ->
    format_otp(~"reply(_, ", Reply, Syntax);
format_sent(_, Message, _, Syntax) -> format_message(Message, Syntax).

format_message({'$gen_call', {_, _}, Request}, Syntax) -> format_otp(~"call(_, ", Request, Syntax);
format_message({'$gen_cast', Message}, Syntax) -> format_otp(~"cast(", Message, Syntax);
format_message({[alias | Tag], Reply}, Syntax) when is_reference(Tag) -> format_otp(~"reply(_, ", Reply, Syntax);
format_message(Message, Syntax) -> witness_event:format_term(Message, ?TEXT_CHARS, Syntax).

format_otp(Open, Term, Syntax) -> [Open, witness_event:format_term(Term, ?TEXT_CHARS, Syntax), ~")"].

%% Lanes

%% The parties of the last rows have a lane, in the order of their first appearance. The pitch is the number of columns of each
%% lane.
-spec lanes([row()], Gutter :: pos_integer(), titles(), witness_event:syntax(), witness_text:look()) ->
    {[party()], Pitch :: pos_integer()}.
lanes(Rows, Gutter, Titles, Syntax, #{width := Width}) ->
    Parties = [Party || Row <- Rows, Party <- parties(Row)],
    All = lists:uniq(Parties),
    Pitch = pitch(All, Syntax),
    Wide = wide_pitch(All, Titles, Pitch),
    MaxLanes = max(?MIN_LANES, min(?MAX_LANES, (Width - Gutter - ?MIN_TEXT_COLUMNS) div Pitch)),
    case length(All) =< MaxLanes of
        true when length(All) * Wide =< Width - Gutter - ?GOOD_TEXT_COLUMNS -> {All, Wide};
        true -> {All, Pitch};
        false ->
            Latest = lists:sublist(lists:uniq(lists:reverse(Parties)), max(?MIN_LANES, MaxLanes - 1)),
            {[Party || Party <- All, lists:member(Party, Latest)] ++ [others], Pitch}
    end.

parties(#{own := Own, from := From, to := To}) ->
    [Party || Party <- lists:uniq([From, Own, To]), Party =/= undefined].

%% With space for the titles.
wide_pitch(Lanes, Titles, Pitch) ->
    lists:max([Pitch | [1 + string:length(format_title(Title, ?WIDE_TITLE_CHARS)) || Lane <- Lanes, #{Lane := Title} <- [Titles]]]).

pitch(Lanes, Syntax) -> max(12, 3 + lists:max([string:length(lane_name(Lane, Syntax)) || Lane <- Lanes])).

lane_name(others, _) -> ~"(others)";
lane_name(Party, Syntax) -> format_name(Party, ?NAME_CHARS, Syntax).

format_name({external, Name}, Limit, _) -> witness_text:cut(witness_text:clean(Name), Limit);
format_name(Party, Limit, Syntax) -> witness_event:format_term(Party, Limit, Syntax).

format_title(Name, Limit) when is_binary(Name) -> shorten(witness_text:clean(Name), Limit);
format_title(Module, Limit) -> shorten(witness_text:name(Module, ?TEXT_CHARS), Limit).

%% The last part of a module's name, `Shop.Till.Worker`, tells more than the first.
shorten(Name, Limit) ->
    case string:length(Name) =< Limit of
        true -> Name;
        false ->
            case last_parts(string:split(Name, ~".", all), Limit - 3) of
                [] -> witness_text:cut(Name, Limit);
                Parts -> [~"...", lists:join($., Parts)]
            end
    end.

last_parts([_ | Parts], Limit) ->
    case string:length(lists:join($., Parts)) =< Limit of
        true -> Parts;
        false -> last_parts(Parts, Limit)
    end.

%% Drawing: a line is the gutter and one character for each column of the lanes.

-spec heading(drawing()) -> [unicode:chardata()].
heading(#{lanes := Lanes, pitch := Pitch, gutter := Gutter, titles := Titles, syntax := Syntax}) ->
    Names = [lane_name(Lane, Syntax) || Lane <- Lanes],
    Below = [case Titles of #{Lane := Title} -> format_title(Title, Pitch - 1); #{} -> ~"" end || Lane <- Lanes],
    [[lists:duplicate(Gutter, $\s) | string:trim([centred(Cell, Pitch) || Cell <- Row], trailing)]
     || Row <- [Names | [Below || lists:any(fun(Title) -> Title =/= ~"" end, Below)]]].

centred(Text, Columns) ->
    Left = (Columns - string:length(Text) + 1) div 2,
    witness_text:pad([lists:duplicate(Left, $\s), Text], Columns).

line(#{gutter := Gutter} = Drawing) -> string:trim([lists:duplicate(Gutter, $\s), cells(#{}, Drawing)], trailing).

cells(Marks, #{lanes := Lanes, pitch := Pitch}) ->
    Places = #{lane_column(Lane, Lanes, Pitch) => $| || Lane <- Lanes},
    Cells = maps:merge(Places, Marks),
    [maps:get(Column, Cells, $\s) || Column <- lists:seq(0, lanes_end(Lanes, Pitch))].

%% The last column that the lanes need: half a lane to the right of the last one remains for the text.
lanes_end(Lanes, Pitch) -> (length(Lanes) - 1) * Pitch + Pitch div 2.

lane_column(Party, Lanes, Pitch) -> lane_column(Party, Lanes, Pitch, 0).

lane_column(Party, [Party | _], Pitch, Before) -> Before + Pitch div 2;
lane_column(_, [others], Pitch, Before) -> Before + Pitch div 2;
lane_column(Party, [_ | Lanes], Pitch, Before) -> lane_column(Party, Lanes, Pitch, Before + Pitch).

%% `Learnt': what the lines above have shown.
draw(Rows, Learnt, Drawing) ->
    {Lines, More} = lists:mapfoldl(fun(Row, Known) -> draw_row(Row, Known, Drawing) end, Learnt, Rows),
    {lists:append(Lines), More}.

draw_deadline(Time, #{gutter := Gutter, look := Look} = Drawing) ->
    witness_text:style(bad, [gutter(~"", true, Time, Gutter), cells(#{}, Drawing), ~"    the deadline has passed"], Look).

draw_row(#{step := Step, time := Time} = Row, Known, Drawing) ->
    #{lanes := Lanes, pitch := Pitch, gutter := Gutter, decided := Decided, look := #{width := Width} = Look} = Drawing,
    #{index := Index} = Step,
    Columns = max(?MIN_TEXT_COLUMNS, Width - Gutter - lanes_end(Lanes, Pitch) - 5),
    [First | More] = witness_text:wrap(format_row(Row, Drawing), Columns),
    Decides = Index =:= Decided,
    Begin = [gutter(integer_to_binary(Index), Decides, Time, Gutter), cells(marks(Row, Lanes, Pitch), Drawing), ~"    "],
    Continue = [lists:duplicate(Gutter, $\s), cells(#{}, Drawing), ~"    "],
    Event = [[Begin, First] | [[Continue, Line] || Line <- More]],
    {Learnt, Known1} = format_learnt(Step, Known, Drawing, 3 * (Columns - 2)),
    Lines = [[Continue, witness_text:style(faint, [~"  ", Line], Look)]
             || Text <- Learnt, Line <- witness_text:wrap(Text, Columns - 2)],
    {[highlight(Decides, Line, Look) || Line <- Event] ++ Lines, Known1}.

highlight(true, Line, Look) -> witness_text:style(bad, Line, Look);
highlight(false, Line, _) -> Line.

gutter(Number, Decides, Time, Columns) ->
    Mark = case Decides of true -> ~" => "; false -> ~"    " end,
    Numbered = witness_text:pad([Mark, Number], ?GUTTER_COLUMNS),
    witness_text:pad([Numbered, [[$+, Time] || Time =/= ~""]], Columns).

%% The text names a party that has no lane.
format_row(#{own := Own, from := From, to := To, text := Text}, #{lanes := Lanes, titles := Titles, syntax := Syntax}) ->
    Named = fun(Role, Party) ->
        [[Role, format_name(Party, 40, Syntax), [[~" (", format_title(Title, ?TITLE_CHARS), $)] || #{Party := Title} <- [Titles]], ~": "]
         || Party =/= undefined, not lists:member(Party, Lanes)]
    end,
    [Named(~"", Own), [Named(~"from ", From) || From =/= Own], [Named(~"to ", To) || To =/= Own], Text].

marks(#{own := Own, from := undefined, to := undefined, mark := Mark}, Lanes, Pitch) ->
    #{lane_column(Own, Lanes, Pitch) => Mark};
marks(#{own := Own, from := undefined, to := Own, mark := Mark}, Lanes, Pitch) ->
    Place = lane_column(Own, Lanes, Pitch),
    arrow(Place - 4, Place, #{Place => Mark});
marks(#{own := Own, from := From, to := To, mark := Mark}, Lanes, Pitch) ->
    Places = {lane_column(From, Lanes, Pitch), lane_column(To, Lanes, Pitch)},
    arrow(element(1, Places), element(2, Places), #{lane_column(Own, Lanes, Pitch) => Mark}).

arrow(From, To, Marks) when From < To -> shaft(From + 1, To - 2, Marks#{To - 1 => $>});
arrow(From, To, Marks) when From > To -> shaft(To + 2, From - 1, Marks#{To + 1 => $<});
arrow(_, _, Marks) -> Marks.

shaft(First, Last, Marks) -> maps:merge(Marks, #{Column => $- || Column <- lists:seq(First, Last)}).

%% What the monitor knows after a step, if that has changed. The formula is cut to a few lines.
format_learnt(#{index := Index, bindings := Bindings, formula := Formula}, {Known, Formulas, Before}, Drawing, MaxChars) ->
    #{syntax := Syntax, times := Times} = Drawing,
    New = Bindings -- Known,
    Lines = [witness_text:bindings(New, Syntax, Times) || New =/= []] ++
            [[~"to hold: ", to_hold(Formula, Formulas, MaxChars)] || Formula =/= undefined, Formula =/= Before],
    {Lines, {Bindings, maps:merge(#{Formula => Index}, Formulas), Formula}}.

to_hold(Formula, Formulas, _) when is_map_key(Formula, Formulas) ->
    [~"as after ", integer_to_binary(maps:get(Formula, Formulas))];
to_hold(Formula, _, MaxChars) -> witness_text:cut(witness_text:clean(Formula), MaxChars).
