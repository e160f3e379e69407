-module(witness_run_redaction).
-moduledoc """
What leaves a run that is redacted (option `redact`): shapes instead of contents (`m:witness_event_redact`).

A run redacts everything as soon as it has it, before any notification. So one place covers all outputs:
`on_verdict`, subscribers, `verdicts/1`, the logger, telemetry, the summary and its warnings, the command line.

Contents are messages, arguments of signatures, reasons of exits and crashes, values of slices and bindings, and what
monitors written by hand report. The text of a specification and the names of processes
in a log are not contents: they stay.
""".

-export([verdict/2, meta/1, reason/1]).

-doc """
A verdict without contents. `Written`: it is a verdict of a specification file. Its formulas are the text of the file, and
its information has a known form.
""".
-spec verdict(Written :: boolean(), witness:verdict()) -> witness:verdict().
verdict(Written, V) ->
    #{signature := Signature, slice := Slice, event := Event, reason := Reason, info := Info, steps := Steps} = V,
    V#{signature := signature(Signature), slice := values(Slice), event := event(Event),
       reason := reason(Reason), info := info(Written, Info), steps := [step(Written, Step) || Step <- Steps]}.

-doc "The meta data of a monitor, without contents.".
-spec meta(Meta) -> Meta when Meta :: #{signature => witness_event:signature(), _ => _}.
meta(Meta = #{signature := Signature}) -> Meta#{signature := signature(Signature)};
meta(Meta) -> Meta.

-doc "The reason of an end, without contents. The place of a crash is not content.".
-spec reason(term()) -> term().
reason({crashed, {Class, Reason, Stack}}) when is_atom(Class) ->
    {crashed, {Class, witness_event_redact:term(Reason), witness_event_redact:stack(Stack)}};
reason(Reason) -> witness_event_redact:term(Reason).

signature(undefined) -> undefined;
signature(Signature) -> witness_event_redact:signature(Signature).

event(undefined) -> undefined;
event(#{event := E} = Event) -> Event#{event := witness_event_redact:item(E)}.

step(Written, Step = #{event := E, bindings := Bindings, formula := Formula}) ->
    Step#{event := witness_event_redact:item(E), bindings := values(Bindings),
          formula := case Written of true -> Formula; false -> undefined end}.

values(Values) when is_list(Values) -> [{Name, witness_event_redact:term(Value)} || {Name, Value} <- Values];
values(_) -> undefined.

info(true, Info) when is_map(Info) ->
    Shown = maps:with([line, column, action, matched, why, deadline, vacuous, reason], Info),
    case Info of
        #{bindings := Bindings} -> Shown#{bindings => values(Bindings)};
        #{} -> Shown
    end;
info(_, Info) -> witness_event_redact:term(Info).
