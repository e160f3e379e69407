-module(witness_text_chart).
-moduledoc """
The steps of an explanation as a sequence chart in plain characters.

Each process that exchanges messages has a lane. Its heading is the process identifier and, if it is known, the module that
the process was spawned with. Each event is a row: `*` is in the lane of the process that the event belongs to.
An arrow goes from the sender of a message to its receiver, and the text right of the shards describes the event.
If the knowledge of the monitor has changed after a step, it is below the step, and so is a formula. A formula that was shown before
is given by the number of its step. The deciding row is marked `=>`.

```
          <0.91.0>    <0.90.0>
         calc_server
              |           |
    1         *           |    starts calc_server:loop(buggy), spawned by <0.90.0>
    2         *<----------|    {<0.90.0>,{add,1,2}}
              |           |      A = 1, B = 2
 => 3         *---------->|    {ok,-1}
```

A message that comes from a timer or from an unknown process has an arrow without a beginning. Requests and answers of
the OTP behaviours are written as in the specification language: `call(_, Request)`, `reply(_, Reply)`,
`cast(Message)`. An answer to an alias, which is a reference, is drawn to the process that asked.

The chart has as many shards as fit into the width of the line, two to five: those of the processes of the last steps.
All other processes share one more lane.
""".

-export([chart/4, sequence/2]).

-export_type([step/0, lane/0, arrow/0]).

-doc "A step of a verdict; `formula` and `bindings` are what the monitor knew after it.".
-type step() :: #{index := pos_integer(), event := witness_event:event(),
                  formula := binary() | undefined, bindings := [{binary(), term()}]}.

-doc "What a lane can belong to: a process, or any other receiver of a message.".
-type party() :: witness_event:proc() | witness_event:destination() | others.

-doc "A process or other party, and the module that it was spawned with, if that is known.".
-type lane() :: #{name := binary(), module := binary() | undefined}.

-doc """
A step between shards, which are counted from 0: the lane that it is in, and, for a message, the shards that it goes between. `ends`: the
process has ended.
""".
-type arrow() :: #{step := step(), own := non_neg_integer(), from := non_neg_integer() | undefined,
                   to := non_neg_integer() | undefined, ends := boolean(), text := binary()}.

%% A row before it is drawn. `from` and `to` are undefined if that party has no lane.
-type row() :: #{step := step(), own := party(), from := party() | undefined, to := party() | undefined,
                 mark := $* | $X, text := binary()}.

-define(FEWEST_LANES, 2).
-define(MOST_LANES, 5).
-define(NAME, 15).        % characters of a lane's heading
-define(TITLE, 40).       % of a module's name, if there is space
-define(GUTTER, 8).       % columns left of the shards: mark and number of the row
-define(TEXT, 400).       % characters of a row's text, which is wrapped
-define(NARROWEST, 24).   % columns for that text, whatever the width of the terminal

-doc """
The lines of the chart. `Modules` are the modules that processes were spawned with, in addition to those in the steps. `Decided` is the
index of the deciding step, if one decided.
""".
-spec chart([step()], Modules :: #{party() => module()}, Decided :: pos_integer() | undefined, witness_text:look()) ->
    [unicode:chardata()].
chart([], _, _, _) -> [];
chart(Steps, Modules, Decided, Look) ->
    Rows = rows(Steps),
    {Lanes, Pitch} = shards(Rows, Look),
    Spawned = lists:foldl(fun spawned/2, Modules, Steps),
    heading(Lanes, Spawned, Pitch) ++ [line(Lanes, Pitch) | draw(Rows, Lanes, Pitch, Decided, Look)].

-doc """
The same steps for other drawings. Every party has a lane, in the order of their first appearance.
""".
-spec sequence([step()], Modules :: #{party() => module()}) -> {[lane()], [arrow()]}.
sequence(Steps, Modules) ->
    Rows = rows(Steps),
    Parties = lists:uniq([Party || Row <- Rows, Party <- parties(Row)]),
    Spawned = lists:foldl(fun spawned/2, Modules, Steps),
    Places = (maps:from_list([{Party, Place} || {Place, Party} <- lists:enumerate(0, Parties)]))#{undefined => undefined},
    {[#{name => text(lane_name(Party)),
        module => case Spawned of #{Party := Module} -> text(name(Module, ?TITLE)); #{} -> undefined end}
      || Party <- Parties],
     [#{step => Step, own => maps:get(Own, Places), from => maps:get(From, Places), to => maps:get(To, Places),
        ends => Mark =:= $X, text => Text}
      || #{step := Step, own := Own, from := From, to := To, mark := Mark, text := Text} <- Rows]}.

spawned(#{event := {init, Child, _, {Module, _, _}, _}}, Modules) -> Modules#{Child => Module};
spawned(#{event := {attached, Proc, {Module, _, _}, _}}, Modules) -> Modules#{Proc => Module};
spawned(#{event := {fork, _, Child, {Module, _, _}, _}}, Modules) -> Modules#{Child => Module};
spawned(_, Modules) -> Modules.

%% Rows

rows(Steps) ->
    {Rows, _} = lists:mapfoldl(fun row/2, #{}, Steps),
    Rows.

%% `Callers' has the callers of calls by the tags of their calls, so that replies to aliases find them.
row(#{event := Event} = Step, Callers) ->
    Row = event(Event, Callers),
    {Row#{step => Step}, callers(Event, Callers)}.

event({init, Child, Parent, Signature, _}, _) ->
    By = case Parent of undefined -> ~""; _ -> [~", spawned by ", name(Parent, 40)] end,
    local(Child, $*, [~"starts ", witness_event:format_signature(Signature), By]);
event({attached, Proc, Function, _}, _) ->
    local(Proc, $*, [~"was running already, in ", witness_event:format_function(Function)]);
event({fork, Parent, Child, Signature, _}, _) ->
    local(Parent, $*, [~"spawns ", name(Child, 40), ~", ", witness_event:format_signature(Signature)]);
event({exit, Proc, Reason, _}, _) ->
    local(Proc, $X, [~"ends: ", witness_event:format_term(Reason, ?TEXT)]);
event({send, Proc, Proc, Message, _}, _) ->
    local(Proc, $*, [~"to itself: ", message(Message)]);
event({send, Proc, To, Message, _}, Callers) ->
    #{own => Proc, from => Proc, to => receiver(To, Message, Callers), mark => $*,
      text => text(sent(To, Message, Callers))};
event({recv, Proc, Proc, Message, _}, _) ->
    local(Proc, $*, [~"from itself: ", message(Message)]);
event({recv, Proc, From, Message, _}, _) ->
    #{own => Proc, from => From, to => Proc, mark => $*, text => text(message(Message))}.

local(Proc, Mark, Text) -> #{own => Proc, from => undefined, to => undefined, mark => Mark, text => text(Text)}.

text(Text) -> unicode:characters_to_binary(Text).

callers({recv, _, _, {'$gen_call', {Caller, Tag}, _}, _}, Callers) -> Callers#{tag(Tag) => Caller};
callers({send, Caller, _, {'$gen_call', {Caller, Tag}, _}, _}, Callers) -> Callers#{tag(Tag) => Caller};
callers(_, Callers) -> Callers.

tag([alias | Reference]) -> Reference;
tag(Tag) -> Tag.

receiver(To, _, Callers) when is_map_key(To, Callers) -> maps:get(To, Callers);
receiver(To, _, _) -> To.

%% A reply to a process looks like any other pair, so its tag must be known from a call.
sent(_, {Tag, Reply}, Callers) when is_reference(Tag), is_map_key(Tag, Callers) -> otp(~"reply(_, ", Reply);
sent(_, Message, _) -> message(Message).

message({'$gen_call', {_, _}, Request}) -> otp(~"call(_, ", Request);
message({'$gen_cast', Message}) -> otp(~"cast(", Message);
message({[alias | Tag], Reply}) when is_reference(Tag) -> otp(~"reply(_, ", Reply);
message(Message) -> witness_event:format_term(Message, ?TEXT).

otp(Open, Term) -> [Open, witness_event:format_term(Term, ?TEXT), ~")"].

%% Lanes

%% The parties of the last rows have a lane, in the order of their first appearance. The pitch is the number of columns of each lane.
-spec shards([row()], witness_text:look()) -> {[party()], Pitch :: pos_integer()}.
shards(Rows, #{width := Width}) ->
    Parties = [Party || Row <- Rows, Party <- parties(Row)],
    All = lists:uniq(Parties),
    Pitch = pitch(All),
    Room = max(?FEWEST_LANES, min(?MOST_LANES, (Width - ?GUTTER - ?NARROWEST) div Pitch)),
    case length(All) =< Room of
        true -> {All, Pitch};
        false ->
            Latest = lists:sublist(lists:uniq(lists:reverse(Parties)), max(?FEWEST_LANES, Room - 1)),
            {[Party || Party <- All, lists:member(Party, Latest)] ++ [others], Pitch}
    end.

parties(#{own := Own, from := From, to := To}) ->
    [Party || Party <- lists:uniq([From, Own, To]), Party =/= undefined].

pitch(Lanes) -> max(12, 3 + lists:max([string:length(lane_name(Lane)) || Lane <- Lanes])).

lane_name(others) -> ~"(others)";
lane_name(Party) -> name(Party, ?NAME).

name({external, Name}, Limit) -> witness_text:cut(witness_text:clean(Name), Limit);
name(Party, Limit) -> witness_event:format_term(Party, Limit).

%% Drawing: a line is the gutter and one character for each column of the shards.

heading(Lanes, Modules, Pitch) ->
    Names = [lane_name(Lane) || Lane <- Lanes],
    Titles = [case Modules of #{Lane := Module} -> name(Module, Pitch - 1); #{} -> ~"" end || Lane <- Lanes],
    [[lists:duplicate(?GUTTER, $\s) | string:trim([centred(Cell, Pitch) || Cell <- Row], trailing)]
     || Row <- [Names | [Titles || lists:any(fun(Title) -> Title =/= ~"" end, Titles)]]].

centred(Text, Columns) ->
    Left = (Columns - string:length(Text) + 1) div 2,
    witness_text:pad([lists:duplicate(Left, $\s), Text], Columns).

line(Lanes, Pitch) -> string:trim([lists:duplicate(?GUTTER, $\s), bare(Lanes, Pitch)], trailing).

bare(Lanes, Pitch) -> cells(Lanes, Pitch, #{}).

cells(Lanes, Pitch, Marks) ->
    Places = #{place(Lane, Lanes, Pitch) => $| || Lane <- Lanes},
    Cells = maps:merge(Places, Marks),
    [maps:get(Column, Cells, $\s) || Column <- lists:seq(0, lanes_end(Lanes, Pitch))].

%% The last column that the shards need: half a lane to the right of the last one remains for the text.
lanes_end(Lanes, Pitch) -> (length(Lanes) - 1) * Pitch + Pitch div 2.

place(Party, Lanes, Pitch) -> place(Party, Lanes, Pitch, 0).

place(Party, [Party | _], Pitch, Before) -> Before + Pitch div 2;
place(_, [others], Pitch, Before) -> Before + Pitch div 2;
place(Party, [_ | Lanes], Pitch, Before) -> place(Party, Lanes, Pitch, Before + Pitch).

draw(Rows, Lanes, Pitch, Decided, Look) ->
    {Lines, _} = lists:mapfoldl(fun(Row, Known) -> drawn(Row, Known, Lanes, Pitch, Decided, Look) end,
                                {[], #{}, undefined}, Rows),
    lists:append(Lines).

drawn(#{step := Step} = Row, Known, Lanes, Pitch, Decided, #{width := Width} = Look) ->
    #{index := Index} = Step,
    Columns = max(?NARROWEST, Width - ?GUTTER - lanes_end(Lanes, Pitch) - 5),
    [First | More] = witness_text:wrap(said(Row, Lanes), Columns),
    Decides = Index =:= Decided,
    Begin = [gutter(Index, Decides), cells(Lanes, Pitch, marks(Row, Lanes, Pitch)), ~"    "],
    Continue = [lists:duplicate(?GUTTER, $\s), bare(Lanes, Pitch), ~"    "],
    Event = [[Begin, First] | [[Continue, Line] || Line <- More]],
    {Learnt, Known1} = learnt(Step, Known, 3 * (Columns - 2)),
    Lines = [[Continue, witness_text:style(faint, [~"  ", Line], Look)]
             || Text <- Learnt, Line <- witness_text:wrap(Text, Columns - 2)],
    {[highlighted(Decides, Line, Look) || Line <- Event] ++ Lines, Known1}.

highlighted(true, Line, Look) -> witness_text:style(bad, Line, Look);
highlighted(false, Line, _) -> Line.

gutter(Index, Decides) ->
    Mark = case Decides of true -> ~" => "; false -> ~"    " end,
    witness_text:pad([Mark, integer_to_binary(Index)], ?GUTTER).

%% The text names a party that has no lane.
said(#{own := Own, from := From, to := To, text := Text}, Lanes) ->
    [[witness_event:format_term(Own, 40), ~": "] || not lists:member(Own, Lanes)] ++
    [[~"from ", name(From, 40), ~": "] || From =/= undefined, From =/= Own, not lists:member(From, Lanes)] ++
    [[~"to ", name(To, 40), ~": "] || To =/= undefined, To =/= Own, not lists:member(To, Lanes)] ++
    [Text].

marks(#{own := Own, from := undefined, to := undefined, mark := Mark}, Lanes, Pitch) ->
    #{place(Own, Lanes, Pitch) => Mark};
marks(#{own := Own, from := undefined, to := Own, mark := Mark}, Lanes, Pitch) ->
    Place = place(Own, Lanes, Pitch),
    arrow(Place - 4, Place, #{Place => Mark});
marks(#{own := Own, from := From, to := To, mark := Mark}, Lanes, Pitch) ->
    Places = {place(From, Lanes, Pitch), place(To, Lanes, Pitch)},
    arrow(element(1, Places), element(2, Places), #{place(Own, Lanes, Pitch) => Mark}).

arrow(From, To, Marks) when From < To -> shaft(From + 1, To - 2, Marks#{To - 1 => $>});
arrow(From, To, Marks) when From > To -> shaft(To + 2, From - 1, Marks#{To + 1 => $<});
arrow(_, _, Marks) -> Marks.

shaft(First, Last, Marks) -> maps:merge(Marks, #{Column => $- || Column <- lists:seq(First, Last)}).

%% What the monitor knows after a step, if that has changed. The formula is cut to a few lines.
learnt(#{index := Index, bindings := Bindings, formula := Formula}, {Known, Formulas, Before}, Room) ->
    New = Bindings -- Known,
    Lines = [witness_text_verdict:bindings(New) || New =/= []] ++
            [[~"to hold: ", to_hold(Formula, Formulas, Room)] || Formula =/= undefined, Formula =/= Before],
    {Lines, {Bindings, maps:merge(#{Formula => Index}, Formulas), Formula}}.

to_hold(Formula, Formulas, _) when is_map_key(Formula, Formulas) ->
    [~"as after ", integer_to_binary(maps:get(Formula, Formulas))];
to_hold(Formula, _, Room) -> witness_text:cut(witness_text:clean(Formula), Room).
