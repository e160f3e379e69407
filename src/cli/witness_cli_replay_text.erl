-module(witness_cli_replay_text).
-moduledoc """
What `witness replay` prints for people: a divergence in the form of a compiler error, and the summary. Pure.
""".

-export([report/2]).

-define(MAX_NAMED, 5).

-doc "The result of a replay.".
-spec report(#{dir := file:filename(), elapsed_ms := non_neg_integer(), atom() => term()}, witness_text:look()) ->
    unicode:chardata().
report(#{outcome := stopped, elapsed_ms := Elapsed} = Report, Look) ->
    lines([~"" | witness_text:columns([[~"replayed", [~"in ", integer_to_binary(Elapsed), ~" ms"]]])]
          ++ [~"", sentence(Report, Look)]);
report(#{processes := Processes, entries := Entries, elapsed_ms := Elapsed} = Report, Look) ->
    Ends = [[witness_text:count(N, ~"process", ~"processes"), Text]
            || {N, Text} <- [{maps:get(killed, Report), ~" ended by a signal"},
                             {maps:get(cut, Report), ~" stopped where the recording ends"},
                             {maps:get(stopped, Report), ~" still alive when the recording ended"}], N > 0],
    Rows = [[~"replayed", [witness_text:count(Processes, ~"process", ~"processes"), ~", ",
                           witness_text:count(Entries, ~"entry", ~"entries"), ~" in ", integer_to_binary(Elapsed), ~" ms"]]]
        ++ [[~"", End] || End <- Ends]
        ++ [[~"changed", [witness_text:list([atom_to_binary(Module) || Module <- Changed])]]
            || #{changed := [_ | _] = Changed} <- [Report]]
        ++ [[~"code", [~"kept with the recording; ", kept(Kept)]] || #{kept := Kept} <- [Report]],
    %% After the results of monitors.
    lines([~"" || #{monitored := true} <- [Report]]
          ++ [divergence(Divergence, Look) || #{divergence := Divergence} <- [Report]]
          ++ [divergence(One, Look) || #{waiting := Waiting} <- [Report], One <- Waiting]
          ++ [difference(One, Look) || #{differing := Differing} <- [Report], One <- Differing]
          ++ witness_text:columns(Rows) ++ [~"", sentence(Report, Look)]).

kept(all) -> ~"its folders are not what they were";
kept(Modules) -> [~"changed since: ", witness_text:list(names(lists:sublist(Modules, ?MAX_NAMED), length(Modules) - ?MAX_NAMED))].

names(Modules, More) ->
    [witness_text:clean(atom_to_binary(Module)) || Module <- Modules] ++ [witness_text:count(More, ~"other", ~"others") || More > 0].

divergence(#{id := Id, text := Process, position := Position, log := Log, program := Program,
             stack := Stack, recent := Recent}, Look) ->
    [witness_text:style(bad, ~"diverged", Look), ~": ", clean(Process), ~" (process ",
     integer_to_binary(Id), ~"), at entry ", integer_to_binary(Position), $\n,
     ~"  the recording: ", clean(Log), $\n,
     ~"  the program:   ", clean(Program), $\n,
     [[~"    in ", clean(Frame), $\n] || Frame <- Stack],
     [~"  before, it\n" || Recent =/= []],
     [[~"    ", clean(Entry), $\n] || Entry <- Recent]].

difference(#{process := Process, spec := Spec, name := Name, slice := Slice, recorded := Recorded, replayed := Replayed}, Look) ->
    [witness_text:style(bad, ~"differs", Look), ~": ", [[clean(Name), ~", "] || Name =/= ~""], clean(Spec), ~" on ", clean(Process),
     [[~", ", clean(Slice)] || Slice =/= ~""], $\n,
     ~"  recorded: ", verdicts(Recorded), $\n,
     ~"  replayed: ", verdicts(Replayed), $\n].

verdicts([]) -> ~"no verdict";
verdicts(Verdicts) -> witness_text:list([verdict(Verdict) || Verdict <- Verdicts]).

verdict(no) -> ~"violated";
verdict(yes) -> ~"satisfied";
verdict(inconclusive) -> ~"undecided".

sentence(#{outcome := stopped, at := Place}, Look) ->
    [witness_text:style(bad, ~"STOPPED", Look), ~" at the first violation, at ", clean(Place), ~"."];
sentence(#{outcome := stopped, dir := Dir}, Look) ->
    [witness_text:style(doubtful, ~"STOPPED", Look), ~" before the end of ", clean(Dir), ~"."];
sentence(#{outcome := identical, differing := [_ | _] = Differing, dir := Dir}, Look) ->
    [witness_text:style(bad, ~"OTHER VERDICTS", Look), ~": every process of ", clean(Dir), ~" did what it did, and ",
     witness_text:count(length(Differing), ~"verdict is", ~"verdicts are"), ~" not what was recorded."];
sentence(#{outcome := identical, differing := [], dir := Dir} = Report, Look) ->
    [witness_text:style(good, ~"IDENTICAL", Look), ~": the processes of ", clean(Dir),
     ~" did what they did, with the same verdicts.", compared(Report)];
sentence(#{outcome := identical, complete := true, cut := 0, dir := Dir} = Report, Look) ->
    [witness_text:style(good, ~"IDENTICAL", Look), ~": every process of ", clean(Dir), ~" did what it did.", compared(Report)];
sentence(#{outcome := identical, dir := Dir} = Report, Look) ->
    [witness_text:style(good, ~"IDENTICAL", Look), ~" as far as ", clean(Dir),
     ~" goes: it was cut, and processes stopped there.", compared(Report)];
sentence(#{outcome := diverged, dir := Dir}, Look) ->
    [witness_text:style(bad, ~"DIVERGED", Look), ~" from ", clean(Dir), ~"."].

%% What was compared in this recording.
compared(#{messages := Messages}) ->
    [~"\nCompared: what each process asked for, in its order, and how it ended; ",
     case Messages of
         contents -> ~"and each message that it took.";
         hash -> ~"and a hash of each message that it took.";
         none -> ~"not what messages contain (record with --hash or --contents for that)."
     end].

clean(Text) -> witness_text:clean(Text).

lines(Lines) -> [[Line, $\n] || Line <- Lines].
