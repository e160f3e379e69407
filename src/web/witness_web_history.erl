-module(witness_web_history).
-moduledoc """
The data for the page of a report about the history of a run (`m:witness_run_history`). There may be ten thousand processes, so each
function, reason and property is listed once, and referred to by its number.

Times are milliseconds since the run began. For a log they are milliseconds since its first event, if each birth and end has its
time; otherwise they are places in the log. The page has the same types, in `assets/src/data.ts`.
""".

-export([json/1]).

-record(names, {texts = [] :: [binary()], numbers = #{} :: #{binary() => non_neg_integer()}}).

-define(COLUMNS, [events, processes, monitors, violations, gaps]).

-doc "`null` if the history of the run was not kept, or was lost because its process has ended.".
-spec json(witness:summary()) -> witness_web_data:json().
json(#{history := #{tree := Tree, course := Samples, lost := Lost} = History} = Summary) ->
    #{processes := Processes, groups := Groups, monitors := Monitors, violations := LeftOut} = Tree,
    {Unit, Time} = clock(Processes, History),
    {Rows, Names1} = lists:mapfoldl(fun(P, N) -> process_row(P, Time, N) end, #names{}, Processes),
    {Others, Names2} = lists:mapfoldl(fun group_row/2, Names1, Groups),
    {MonitorRows, Names3} = lists:mapfoldl(fun(M, N) -> monitor_row(M, monitor_time(History, Time), N) end, #names{}, Monitors),
    #{unit => Unit, processes => Rows, groups => Others, monitors => MonitorRows, names => texts(Names2),
      properties => texts(Names3),
      untold => max(0, maps:get(monitored, Summary, 0) - length(Monitors)), left_out => LeftOut,
      ended => case History of #{log := true} -> null; #{ended := Ended} -> Time({Ended, undefined}) end,
      lost => case Lost of undefined -> null; _ -> Time({Lost, undefined}) end,
      course => #{columns => [atom_to_binary(Column) || Column <- ?COLUMNS],
                  rows => [[Ms | [maps:get(Column, Numbers) || Column <- ?COLUMNS]]
                           || {Ms, Numbers} <- witness_run_history_samples:samples(Samples)]}};
json(#{}) -> null.

clock(_, #{log := false, began := Began}) -> {~"ms", fun(Time) -> ms_since(Began, Time) end};
clock(Processes, #{log := true}) ->
    Times = [Time || #{born := Born, ended := Ended} <- Processes, Time <- [Born, Ended], Time =/= undefined],
    case [Ns || {Ns, _} <- Times] of
        [_ | _] = All ->
            case lists:member(undefined, All) of
                false -> First = lists:min(All), {~"ms", fun(Time) -> ms_since(First, Time) end};
                true -> {~"place", fun place/1}
            end;
        [] -> {~"place", fun place/1}
    end.

ms_since(_, undefined) -> null;
ms_since(Begin, {Ns, _}) -> max(0, (Ns - Begin) div 10_000) / 100.

place(undefined) -> null;
place({_, undefined}) -> null;
place({_, Place}) -> Place.

%% The time when a log was read says nothing about the events in it.
monitor_time(#{log := true}, _) -> fun(_) -> null end;
monitor_time(#{}, Time) -> Time.

process_row(#{process := P, parent := Parent, function := Function, born := Born, ended := Ended, reason := Reason}, Time, Names) ->
    {FunctionNumber, Names1} = number_of(function(Function), Names),
    {ReasonNumber, Names2} = case Reason of
        _ when Ended =:= undefined; Reason =:= normal -> {null, Names1};
        _ -> number_of(Reason, Names1)
    end,
    Named = witness_event:format_proc(P, syntax(Function)),
    {[Named, index_from_0(Parent), FunctionNumber, Time(Born), Time(Ended), ReasonNumber], Names2}.

group_row(#{parent := Parent, function := Function, count := Count, ended := Ended}, Names) ->
    {FunctionNumber, Names1} = number_of(function(Function), Names),
    {[index_from_0(Parent), FunctionNumber, Count, Ended], Names1}.

monitor_row(#{process := P, spec := Spec, name := Name, reader := Reader, began := Began, ended := Ended, verdict := Verdict,
              violations := Violations}, Time, Names) ->
    Text = case Name of undefined -> Spec; _ -> <<Name/binary, " (", Spec/binary, ")">> end,
    {Property, Names1} = number_of(witness_text:clean(Text), Names),
    ReaderText = case Reader of undefined -> null; _ -> witness_event:format_proc(Reader) end,
    VerdictText = case Verdict of undefined -> null; _ -> atom_to_binary(Verdict) end,
    {[index_from_0(P), Property, ReaderText, Time(Began), Time(Ended), VerdictText, Violations], Names1}.

function(undefined) -> ~"a function that is not known";
function(others) -> ~"other functions";
function(Function) -> witness_event:format_function(Function, syntax(Function)).

%% The language of a process with this function.
syntax({Module, _, _}) -> witness_event:syntax([Module]);
syntax(_) -> witness_event:syntax([]).

%% The page counts from 0.
index_from_0(undefined) -> null;
index_from_0(Index) -> Index - 1.

number_of(Text, #names{texts = Texts, numbers = Numbers} = Names) ->
    case Numbers of
        #{Text := Number} -> {Number, Names};
        #{} ->
            Number = map_size(Numbers),
            {Number, Names#names{texts = [Text | Texts], numbers = Numbers#{Text => Number}}}
    end.

texts(#names{texts = Texts}) -> lists:reverse(Texts).
