-module(witness_text_verdict).
-moduledoc """
A verdict for people, on a terminal and in the failure of a test.

Everything here is a pure function from data to text. A violation has three parts. A headline has the property, the place of its
definition, the process, its signature and the slice. A chart shows the events (`m:witness_text_chart`). At the end comes the action
that decided, in its line of the specification, in the way that compilers show an error.

All that comes from the system or from files is cut, and free of control characters.
""".

-export([verdict/2, kind/1, place/1, property/1, known/1, syntax/1, reason/1, is_crash/1, decided_by/1, deadline/1,
         split_at_action/3, gap/1]).

-define(TERM_CHARS, 400).
-define(CRASH_PREFIX, ~"the monitor crashed: ").

-doc "A verdict with its explanation, as lines of text. The last line is empty.".
-spec verdict(witness:verdict(), witness_text:look()) -> unicode:chardata().
verdict(Found, Look) ->
    #{verdict := Verdict, steps := Steps, skipped := Skipped} = V = without_slice(Found),
    lines([headline(Verdict, V, Look)]
          ++ [[~"  ", reason(V)] || Verdict =:= inconclusive]
          ++ [~"" || Steps =/= []]
          ++ [[~"    ... ", witness_text:count(Skipped, ~"earlier event is not shown", ~"earlier events are not shown")]
              || Skipped > 0, Steps =/= []]
          ++ witness_text_chart:chart(last_formula(Steps), known(V), deciding_index(V), Look)
          ++ [witness_text:style(bad, ~" => end: no event followed", Look)
              || maps:get(event, V) =:= undefined, Verdict =:= no, Steps =/= [], deadline(V) =:= undefined]
          ++ decision(V, Look)
          ++ [~""]).

-doc """
What violations of a specification have in common that are explained by one of them: the property, the deciding action, and the function
of the process. Others, of checks and of monitors in Erlang, say each for itself what is wrong.
""".
-spec kind(witness:verdict()) -> tuple().
kind(#{spec := Spec, name := Name} = V) ->
    case place(V) of
        {undefined, Function} -> {Spec, Name, Function, maps:with([process, slice, note], V)};
        {Action, Function} -> {Spec, Name, Function, Action}
    end.

-doc "The action that decided, with its place, if a single one did, and the function of the process.".
-spec place(witness:verdict()) ->
    {Action :: {Line :: pos_integer(), Column :: pos_integer() | undefined, map()} | undefined, mfa() | undefined}.
place(#{source := Source, signature := Signature, info := Info}) ->
    {case Source of
         undefined -> undefined;
         #{line := Line, column := Column} -> {Line, Column, maps:with([action, matched], Info)}
     end,
     case Signature of undefined -> undefined; {M, F, Args} -> {M, F, length(Args)} end}.

-doc "What is known of its processes beside the steps.".
-spec known(witness:verdict()) -> witness_text_chart:known().
known(V) ->
    Known = #{titles => titles(V), aliases => maps:get(aliases, V, #{}), syntax => syntax(V)},
    case deadline(V) of
        undefined -> Known;
        At -> Known#{deadline => At}
    end.

-doc "The notation of what it shows.".
-spec syntax(witness:verdict()) -> witness_event:syntax().
syntax(V) -> maps:get(syntax, V, erlang).

titles(#{process := Process, signature := {Module, _, _}} = V) -> maps:merge(#{Process => Module}, maps:get(names, V, #{}));
titles(V) -> maps:get(names, V, #{}).

%% The headline has the values of the slice, and they are the same everywhere.
without_slice(#{slice := undefined} = V) -> V;
without_slice(#{slice := Slice, steps := Steps, info := Info} = V) ->
    Without = fun(#{bindings := Bindings} = Known) -> Known#{bindings := Bindings -- Slice}; (Other) -> Other end,
    V#{steps := [Without(Step) || Step <- Steps], info := Without(Info)}.

%% The chart must be easy to read. So it has only one formula, that which the deciding event met.
%% All of them are in the verdict, and in the output for programs.
last_formula(Steps) ->
    {Plain, Later} = lists:splitwith(fun(#{formula := Formula}) -> Formula =:= undefined end, lists:reverse(Steps)),
    case Later of
        [] -> Steps;
        [Step | Earlier] ->
            [S#{formula := undefined} || S <- lists:reverse(Earlier)] ++ [Step | lists:reverse(Plain)]
    end.

headline(Verdict, V, Look) ->
    {Word, Style} = word(Verdict),
    [witness_text:style(Style, Word, Look), ~" of ", property(V), by(V), slice(V), log(V), note(V)].

%% For a property of all processes, this is the process of the deciding event, if there was one.
by(#{process := undefined}) -> ~"";
by(#{process := Process, signature := Signature} = V) ->
    [~"\n  by ", witness_event:format_proc(Process, syntax(V)),
     [[~", ", witness_event:format_signature(Signature, syntax(V))] || Signature =/= undefined]].

log(#{log := Place}) -> [~"\n  at ", witness_text:clean(Place)];
log(_) -> ~"".

note(#{note := Note}) -> [~"\n  ", Note];
note(_) -> ~"".

slice(#{slice := undefined}) -> ~"";
slice(#{slice := Values} = V) -> [~"\n  slice ", witness_text:bindings(Values, syntax(V), #{})].

word(no) -> {~"VIOLATION", bad};
word(yes) -> {~"SATISFACTION", good};
word(inconclusive) -> {~"NO DECISION", doubtful}.

-doc "The property of a verdict: its name, and where it is defined.".
-spec property(#{name := binary() | undefined, spec := binary(), _ => _}) -> unicode:chardata().
property(#{name := undefined, spec := Spec}) -> witness_text:clean(Spec);
property(#{name := Name, spec := Spec}) ->
    [witness_text:clean(Name), ~" (", witness_text:clean(Spec), ~")"].

%% The deciding event, if it was not a deadline before it that decided.
deciding_index(V) ->
    case {deadline(V), V} of
        {undefined, #{event := #{index := Index}}} -> Index;
        _ -> undefined
    end.

-doc "The time of the deadline that decided by passing.".
-spec deadline(witness:verdict()) -> integer() | undefined.
deadline(#{info := #{deadline := At}}) when is_integer(At) -> At;
deadline(_) -> undefined.

%% The action that decided, in the way that a compiler shows an error: its place, the line, and the action underlined.
decision(#{source := #{file := File, line := Line, column := Column, text := Text}, info := Info, steps := Steps} = V, Look) ->
    Action = maps:get(action, Info, ~""),
    [~"", [~"  ", witness_text:style(strong, place(File, Line, Column), Look), ~" ", decided_by(V),
           [[~": ", witness_text:cut(witness_text:clean(Action), ?TERM_CHARS)] || Action =/= ~""]]
     | excerpt(Line, Column, Text, Action, Look)]
    ++ [[~"    ", witness_text:cut(witness_text:clean(Why), ?TERM_CHARS)] || #{why := Why} <- [Info]]
    ++ [[~"    with ", witness_text:bindings(Bindings, syntax(V), witness_text_chart:times(Steps))]
        || #{bindings := [_ | _] = Bindings} <- [Info]];
decision(#{info := Info}, _) when Info =:= undefined; Info =:= nil; is_map(Info) -> [];
decision(#{info := Info} = V, _) -> [~"", [~"  the monitor says: ", witness_event:format_term(Info, ?TERM_CHARS, syntax(V))]].

place(File, Line, Column) ->
    [witness_text:clean(File), $:, integer_to_binary(Line),
     [[$:, integer_to_binary(Column)] || is_integer(Column)], $:].

-doc "The role of the action that decided, for people.".
-spec decided_by(witness:verdict()) -> binary().
decided_by(#{verdict := no, info := #{deadline := _}}) -> ~"this did not come in time";
decided_by(#{verdict := yes, info := #{deadline := _, action := _}}) -> ~"this did not happen until the deadline";
decided_by(#{verdict := yes, info := #{deadline := _}}) -> ~"the deadline has passed";
decided_by(#{verdict := no, info := #{matched := true}}) -> ~"this must not happen";
decided_by(#{verdict := no, info := #{matched := false}}) -> ~"this should have happened";
decided_by(#{reason := pending}) -> ~"this has to come";
decided_by(_) -> ~"decided here".

excerpt(Line, Column, Text, Action, Look) ->
    Number = integer_to_binary(Line),
    Margin = lists:duplicate(byte_size(Number), $\s),
    {Before, Marked, After} = split_at_action(unicode:characters_to_list(string:trim(Text, trailing)), Column, Action),
    [[~"    ", Number, ~" | ", Before, witness_text:style(bad, Marked, Look), After]
     | [[~"    ", Margin, ~" | ", lists:duplicate(string:length(Before), $\s),
         witness_text:style(bad, carets(Marked), Look)] || is_integer(Column)]].

-doc """
A line in three pieces: the text before the action, the action if this line contains it literally, and the rest. Each piece
is cleaned by itself, so the mark stays in its place even if cleaning changes the length of the first piece.
""".
-spec split_at_action(Line :: string(), Column :: pos_integer() | undefined, Action :: unicode:chardata()) ->
    {Before :: binary(), Action :: binary(), After :: binary()}.
split_at_action(Line, undefined, _) -> {witness_text:clean(Line), ~"", ~""};
split_at_action(Line, Column, Action) ->
    {Before, Rest} = lists:split(min(Column - 1, length(Line)), Line),
    {Marked, After} = case string:prefix(Rest, Action) of
        nomatch -> {"", Rest};
        Behind -> {Action, Behind}
    end,
    {witness_text:clean(Before), witness_text:clean(Marked), witness_text:clean(After)}.

carets(Marked) -> lists:duplicate(max(1, string:length(Marked)), $^).

-doc "Why a monitor could not decide, in words that are the same for all monitors with the same reason.".
-spec reason(#{reason := term(), info := term(), _ => _}) -> binary().
reason(#{reason := stopped}) -> ~"watching stopped before a decision";
reason(#{reason := pending}) -> ~"watching stopped before what has to come";
reason(#{reason := {gap, Why}}) -> iolist_to_binary([~"events are missing: ", gap(Why)]);
reason(#{reason := {crashed, {Class, Why, _Stack}}}) -> of_term(?CRASH_PREFIX, {Class, Why});
reason(#{reason := {crashed, reentered}}) ->
    <<?CRASH_PREFIX/binary, "what it calls is woven itself, and would have been monitored while it monitors">>;
reason(#{reason := {crashed, killed}}) ->
    ~"the monitor was ended: it has taken more memory than it may (option memory), or something has killed its process";
reason(#{reason := {crashed, Why}}) -> of_term(?CRASH_PREFIX, Why);
reason(#{reason := max_slices}) -> ~"another slice took its place: there were more than max_slices allows";
reason(#{reason := too_many_requests}) -> ~"more calls without a reply than are kept for `reply(_, _) to _`";
reason(#{reason := unknown_past}) ->
    ~"what came before is not known: values of more slices had to be remembered than max_slices allows";
reason(#{reason := slice_idle}) -> ~"no event of its value came for longer than slice_idle allows";
reason(#{reason := undefined, info := #{reason := too_many_obligations}}) ->
    ~"too much was left to satisfy: there were more obligations than max_obligations allows";
reason(#{reason := undefined, info := #{reason := argument, line := Line, column := Column}}) ->
    <<"the value of a parameter or `let` could not be computed (line ", (integer_to_binary(Line))/binary, ", column ",
      (integer_to_binary(Column))/binary, ")">>;
reason(#{reason := undefined, info := #{reason := no_time, line := Line, column := Column}}) ->
    <<"an event had no time, but line ", (integer_to_binary(Line))/binary, ", column ", (integer_to_binary(Column))/binary,
      " needs it (lines of a log may have times; inline monitors have them with the option timestamps; recordings and their replays "
      "with record --times)">>;
reason(#{reason := undefined, info := #{reason := skew}}) ->
    ~"an event came so close to a deadline that it depends on the clocks, which may differ (clocks)";
reason(#{reason := undefined, info := #{reason := state_too_large}}) ->
    ~"parameters or the windows of `let`s take more memory than max_state allows";
reason(#{reason := undefined}) -> ~"the monitor reached no decision";
reason(#{reason := Why}) -> of_term(~"", Why).

of_term(Before, Term) -> iolist_to_binary([Before, witness_event:format_term(Term, 120)]).

-doc "Why events are missing, for people.".
-spec gap(term()) -> unicode:chardata().
gap(overflow) -> ~"there were more of one process or group than could be kept for its monitors (partition_memory)";
gap(memory) -> ~"there were more in all than could be kept for the monitors (memory)";
gap(message_size) -> ~"a message was larger than monitors are given (message_size)";
gap(rate) -> ~"there were more in a second than was asked for (rate)";
gap(sensitive) -> ~"a process has hidden itself from the tracing of the VM (its flag sensitive)";
gap(orphan) -> ~"it is not known of some running processes whether they belong to the group";
gap(unknown_signature) -> ~"it is not known by what or with which arguments a process was spawned, and the property depends on it (in a log, `init` or `fork` says it)";
gap(code_replaced) -> ~"a module was loaded anew, and calls of its functions are not seen since then";
gap(lost) -> ~"the VM has not reported the end of a process";
gap(late) -> ~"some came too late to be put in order";
gap(overdue) -> ~"the tracer and its monitors did not come to the end of what had happened in time (drain)";
gap(signal) -> ~"the process was ended by a signal, and what it did last before that is not known";
gap(signal_reason) -> ~"the process was ended by a signal soon after its birth, and with which reason is not known";
gap(signal_state) -> ~"the process was ended by a signal, and the state of its monitor had changed too often to be kept";
gap(replaced) -> ~"another version of a woven module was loaded, which is not woven";
gap({not_woven, Module}) ->
    [~"the process ran code of ", witness_event:format_term(Module, 200),
     ~", which may send or receive for it and is not woven: its monitor does not see that (name it with --weave; it needs debug information)"];
gap(dictionary) -> ~"the process dictionary was deleted by code that is not woven, and its monitors with it";
gap(no_callbacks) -> ~"after its init the process goes on in modules that are not woven, as a supervisor does";
gap(callback_module_not_woven) -> ~"a state machine goes on in a callback module that is not woven";
gap(unknown_state_machine) ->
    ~"a state machine was given another event than those that it had postponed, as far as its callbacks have shown";
gap(unknown_handlers) -> ~"a manager of events has asked its handlers in a way that the woven ones do not explain";
gap(backtrace_depth) -> ~"the VM keeps too little of the stack (backtrace_depth) to identify the callback";
gap(spawn_request) -> ~"a child was spawned by spawn_request, and the process did not know its pid";
gap(killed) -> ~"it was ended by a signal, and what it had sent last before that is not known";
gap(cut) -> ~"the recording ends before the process does";
gap(hidden_calls) -> ~"it called a native function, and what that calls is not in a recording";
gap(contents) -> ~"a message that it took is in the recording without its contents";
gap(arguments) -> ~"what a process was spawned with was too large to be recorded";
gap(unwoven) -> ~"it may have taken messages in modules that are not woven";
gap(tracer_lost) -> ~"a tracer of Witness has ended";
gap(Reason) -> witness_event:format_term(Reason, 120).

lines(Lines) -> [[Line, $\n] || Line <- Lines].

-doc "Whether a reason is the crash of a monitor.".
-spec is_crash(binary()) -> boolean().
is_crash(Reason) -> string:prefix(Reason, ?CRASH_PREFIX) =/= nomatch.
