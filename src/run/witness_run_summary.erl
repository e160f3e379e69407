-module(witness_run_summary).
-moduledoc """
The summary of a run, with its outcome and its warnings. Pure: a function of what the run has found and of how its system has ended.

*Invariant:* the outcome is `ok` only if something was monitored, no event is known to be missing, no monitor and no system has
crashed, and no verdict is `no`.
""".

-export([new/2, outcome/1]).

-export_type([results/0, context/0]).

-doc """
What a run has found. `warnings`: those that were given while it ran; `is_complete`: whether no event is known to be missing for
reasons that the tally does not count; `hidden`: how many processes have set the flag `sensitive`; `gaps`: those of a log, with the
first of them; `refused`: why a log could not be read further; `kept`: how many verdicts are kept, of `max_verdicts` at most;
`system`: `t:witness_run_core:system/0`; `is_application`: whether the system is an application.
""".
-type results() :: #{tally := witness_run_tally:tally(), warnings := [witness:warning()], is_complete := boolean(),
                     hidden := non_neg_integer(), gaps := #{gaps := non_neg_integer(), missing => [witness_offline:missing()]},
                     refused := undefined | binary(), kept := non_neg_integer(), max_verdicts := non_neg_integer(),
                     system := witness_run_core:system(), is_application := boolean()}.

-doc """
What else the summary says. `seen`: see `c:witness_instrument:seen/1`, called if a property has monitored nothing; `elapsed_ms`: until
observation ended, in milliseconds.
""".
-type context() :: #{counts := witness_instrument:counts(), seen := fun(() -> [witness_instrument:sight()]),
                     tracers := pos_integer(), elapsed_ms := non_neg_integer()}.

-doc "The summary; without `history`, which a process of its own has.".
-spec new(context(), results()) -> witness:summary().
new(#{counts := #{processes := Processes, events := Events} = Counts, seen := Seen, tracers := Tracers, elapsed_ms := Elapsed},
    #{tally := Tally, gaps := #{gaps := Gaps} = OfLog, refused := Refused} = Found) ->
    (maps:merge(witness_run_tally:summary(Tally), maps:with([lines], Counts)))#{
      gaps => max(Gaps, witness_run_tally:gaps(Tally)), missing => maps:get(missing, OfLog, witness_run_tally:missing(Tally)),
      processes => Processes, tracers => Tracers, events => Events, warnings => warnings(Found, Seen), elapsed_ms => Elapsed,
      outcome => outcome(Found), refused => Refused, system => system(Found)}.

-doc "See `t:witness:summary/0`.".
-spec outcome(results()) -> ok | violated | untrusted | refused.
outcome(#{refused := Refused}) when Refused =/= undefined -> refused;
outcome(#{tally := Tally, is_complete := IsComplete} = Found) ->
    case witness_run_tally:verdicts(Tally) of
        #{no := No} when No > 0 -> violated;
        #{} -> case witness_run_tally:is_trusted(Tally) andalso IsComplete andalso not has_crashed(Found) of
            true -> ok;
            false -> untrusted
        end
    end.

system(#{system := {ended, Reason}} = Found) -> case has_crashed(Found) of true -> {crashed, Reason}; false -> normal end;
system(#{system := starting}) -> starting;
system(#{system := running}) -> undefined.

%% A stopped application ends with `normal'; one with a top supervisor that gave up ends with `shutdown'.
has_crashed(#{system := {ended, normal}}) -> false;
has_crashed(#{system := {ended, shutdown}, is_application := IsApplication}) -> IsApplication;
has_crashed(#{system := {ended, {shutdown, _}}}) -> false;
has_crashed(#{system := {ended, _}}) -> true;
has_crashed(_) -> false.

warnings(#{warnings := Warnings, tally := Tally, hidden := Hidden, system := System, kept := Kept, max_verdicts := Max} = Found,
         Seen) ->
    Warnings
        ++ [#{code => system_crashed, text => text(witness_run_warnings:format_crash(Reason))}
            || {ended, Reason} <- [System], has_crashed(Found)]
        ++ [#{code => sensitive, text => text(witness_run_warnings:format_sensitive(Hidden))} || Hidden > 0]
        ++ witness_run_tally:warnings(Tally, Seen)
        ++ [#{code => verdicts_dropped, text => text(io_lib:format("only the first ~w verdicts are kept", [Kept]))}
            || Max > 0, Kept >= Max, lists:sum(maps:values(witness_run_tally:verdicts(Tally))) > Kept].

text(Chars) -> unicode:characters_to_binary(Chars).
