-module(witness_cli_replay_text).
-moduledoc """
What `witness replay` prints for people: a divergence as a compiler tells an error, and the summary. Pure.
""".

-export([report/2]).

-doc "The result of a replay.".
-spec report(#{dir := file:filename(), elapsed_ms := non_neg_integer(), atom() => term()}, witness_text:look()) ->
    unicode:chardata().
report(#{processes := Processes, entries := Entries, elapsed_ms := Elapsed} = Report, Look) ->
    Ends = [[witness_text:count(N, ~"process", ~"processes"), Text]
            || {N, Text} <- [{maps:get(killed, Report), ~" ended by a signal"},
                             {maps:get(cut, Report), ~" stopped where the recording ends"}], N > 0],
    Rows = [[~"replayed", [witness_text:count(Processes, ~"process", ~"processes"), ~", ",
                           witness_text:count(Entries, ~"entry", ~"entries"), ~" in ", integer_to_binary(Elapsed), ~" ms"]]]
        ++ [[~"", End] || End <- Ends]
        ++ [[~"changed", [witness_text:list([atom_to_binary(Module) || Module <- Changed])]]
            || #{changed := [_ | _] = Changed} <- [Report]],
    lines([divergence(Divergence, Look) || #{divergence := Divergence} <- [Report]]
          ++ [divergence(One, Look) || #{waiting := Waiting} <- [Report], One <- Waiting]
          ++ witness_text:columns(Rows) ++ [~"", sentence(Report, Look)]).

divergence(#{id := Id, process := Process, signature := Signature, position := Position, log := Log, program := Program,
             stack := Stack, recent := Recent}, Look) ->
    [witness_text:style(bad, ~"diverged", Look), ~": ", clean(Process), ~", ", clean(Signature), ~" (process ",
     integer_to_binary(Id), ~"), at entry ", integer_to_binary(Position), $\n,
     ~"  the recording: ", clean(Log), $\n,
     ~"  the program:   ", clean(Program), $\n,
     [[~"    in ", clean(Frame), $\n] || Frame <- Stack],
     [~"  before, it\n" || Recent =/= []],
     [[~"    ", clean(Entry), $\n] || Entry <- Recent]].

sentence(#{outcome := identical, complete := true, cut := 0, dir := Dir}, Look) ->
    [witness_text:style(good, ~"IDENTICAL", Look), ~": every process of ", clean(Dir), ~" did what it did."];
sentence(#{outcome := identical, dir := Dir}, Look) ->
    [witness_text:style(good, ~"IDENTICAL", Look), ~" as far as ", clean(Dir),
     ~" goes: it was cut, and processes stopped there."];
sentence(#{outcome := diverged, dir := Dir}, Look) ->
    [witness_text:style(bad, ~"DIVERGED", Look), ~" from ", clean(Dir), ~"."].

clean(Text) -> witness_text:clean(Text).

lines(Lines) -> [[Line, $\n] || Line <- Lines].
