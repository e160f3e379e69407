-module(witness_requirements).
-moduledoc """
Are specifications right the first time? `test/requirements` has thirty requirements in English. Readers of the guide write a
specification for each of them (`PROMPT.md`), without its traces in `traces/NN`. This module scores what they have written, `NN.hml`
for the requirement `NN`.

An answer is right if it compiles and says the right thing of each trace, checked as `check --instrument central` does. A trace
`bad_*.log` needs a violation. A trace `good_*.log` must have none, and no monitor of it may end inconclusive, unless it does because
the log ends. `reference` has an answer to each requirement that is right.
""".

-export([main/0, folder/0, names/0, score/2]).
-export_type([score/0]).

-define(WAIT_MS, 60_000).

-doc """
What became of the answer to a requirement. `refused` if it does not compile. `failed` has the traces of which it says the wrong thing,
as names of files without their extension.
""".
-type score() :: #{name := string(), result := right | wrong | refused | missing, failed := [string()], lines := non_neg_integer(),
                   kinds := [machine | logic | sentence], warnings := non_neg_integer()}.

-doc "Prints the scores of the answers in the folder `ANSWERS`. The exit code is 2 if there is no such folder.".
-spec main() -> no_return().
main() ->
    Answers = os:getenv("ANSWERS", ""),
    case filelib:is_dir(Answers) of
        true -> report([score(Answers, Name) || Name <- names()], stray(Answers)), halt(0);
        false -> io:format(standard_error, "ANSWERS=~ts is no folder. make requirements ANSWERS=DIR needs one with the files 01.hml "
                                           "and so on~n", [Answers]), halt(2)
    end.

-doc "`test/requirements` of this checkout.".
-spec folder() -> file:filename().
folder() -> filename:join([witness_checkout:root(filename:dirname(code:which(?MODULE))), "test", "requirements"]).

-doc "The requirements, by their numbers.".
-spec names() -> [string()].
names() -> lists:sort(filelib:wildcard("*", filename:join(folder(), "traces"))).

%% Files that look like answers, but to no requirement.
stray(Answers) -> lists:sort(filelib:wildcard("*.hml", Answers)) -- [Name ++ ".hml" || Name <- names()].

-doc "The score of the answer to a requirement in a folder of answers.".
-spec score(file:filename(), Name :: string()) -> score().
score(Answers, Name) ->
    File = filename:join(Answers, Name ++ ".hml"),
    case file:read_file(File) of
        {ok, Source} -> judge(File, #{name => Name, failed => [], lines => lines(Source), kinds => kinds(Source), warnings => 0});
        {error, enoent} -> #{name => Name, result => missing, failed => [], lines => 0, kinds => [], warnings => 0}
    end.

judge(File, #{name := Name} = Score) ->
    case witness_spec:compile_file(File) of
        {ok, Map, Warnings} ->
            ok = witness_spec:unload(Map),
            Traces = lists:sort(filelib:wildcard(filename:join([folder(), "traces", Name, "*.log"]))),
            Failed = [filename:basename(Trace, ".log") || Trace <- Traces, not agrees(File, Trace)],
            Score#{result => case Failed of [] -> right; _ -> wrong end, failed := Failed, warnings := length(Warnings)};
        {error, _} -> Score#{result => refused}
    end.

agrees(File, Trace) ->
    {ok, Run} = witness:start(#{system => {log, {file, Trace}}, specs => [File], instrument => central, log => false}),
    {ok, #{refused := Refused}} = witness:await(Run, ?WAIT_MS),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    %% A log is refused if it does not have what the answer is about, such as taken messages.
    Refused =:= undefined andalso agrees_with(filename:basename(Trace), Verdicts).

agrees_with("bad_" ++ _, Verdicts) -> lists:any(fun(#{verdict := Verdict}) -> Verdict =:= no end, Verdicts);
agrees_with("good_" ++ _, Verdicts) -> lists:all(fun is_sound/1, Verdicts).

is_sound(#{verdict := yes}) -> true;
is_sound(#{verdict := no}) -> false;
is_sound(#{verdict := inconclusive, reason := Reason}) -> lists:member(Reason, [stopped, pending]).

%% Lines that are neither blank nor a comment.
lines(Source) -> length([Line || Line <- witness_spec_scan:lines(Source), re:run(Line, "^\\s*[^%\\s]", [{capture, none}]) =:= match]).

%% By the words of the language in the file. A file may be of several kinds.
kinds(Source) ->
    Words = case witness_spec_scan:string(Source) of
        {ok, Tokens} -> [Word || {atom, _, Word} <- Tokens];
        {error, _} -> []
    end,
    [Kind || {Kind, Own} <- [{machine, [machine]}, {logic, [monitor, check]},
                             {sentence, [never, always, leads, precedes, most, least, exactly, unique, increasing, alternates]}],
             lists:any(fun(Word) -> lists:member(Word, Own) end, Words)].

report(Scores, Stray) ->
    io:format("~-4ts~-9ts~6ts  ~-18ts~9ts  ~ts~n", ["", "result", "lines", "kind", "warnings", "wrong on"]),
    [io:format("~-4ts~-9ts~6b  ~-18ts~9b  ~ts~n", [Name, Result, Lines, words(Kinds), Warnings, lists:join(", ", Failed)])
     || #{name := Name, result := Result, lines := Lines, kinds := Kinds, warnings := Warnings, failed := Failed} <- Scores],
    io:format("~n~ts~n", [right("all", Scores)]),
    [io:format("~ts~n", [right(words(Kinds), [Score || #{kinds := Those} = Score <- Scores, Those =:= Kinds])]) ||
     Kinds <- lists:usort([Kinds || #{kinds := Kinds, result := Result} <- Scores, Result =/= missing])],
    [io:format("Ignored, since there is no such requirement: ~ts~n", [lists:join(", ", Stray)]) || Stray =/= []].

words([]) -> "none";
words(Kinds) -> lists:join("+", [atom_to_list(Kind) || Kind <- Kinds]).

right(Name, Scores) ->
    Right = length([right || #{result := right} <- Scores]),
    Lines = lists:sort([Lines || #{lines := Lines, result := Result} <- Scores, Result =/= missing]),
    [io_lib:format("~-18ts~b of ~b right (~b %)", [Name, Right, length(Scores), round(100 * Right / length(Scores))]),
     [io_lib:format(", lines: median ~ts, maximum ~b", [median(Lines), lists:last(Lines)]) || Lines =/= []],
     io_lib:format(", warnings: ~b", [lists:sum([Warnings || #{warnings := Warnings} <- Scores])])].

median(Sorted) ->
    Half = length(Sorted) div 2,
    case lists:nthtail((length(Sorted) - 1) div 2, Sorted) of
        [Low, High | _] when 2 * Half =:= length(Sorted), (Low + High) rem 2 =:= 1 -> io_lib:format("~b.5", [(Low + High) div 2]);
        [Low, High | _] when 2 * Half =:= length(Sorted) -> integer_to_list((Low + High) div 2);
        [Middle | _] -> integer_to_list(Middle)
    end.
