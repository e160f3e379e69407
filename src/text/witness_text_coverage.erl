-module(witness_text_coverage).
-moduledoc "The actions of specifications that have never matched, for people. Pure.".

-export([unseen/2]).

-define(MAX_SHOWN, 5).

-doc """
Rows of a summary: a label, which only the first row has, and the text. An action that violates by itself should never match, so it is left
out.
""".
-spec unseen([map()], witness_text:look()) -> [{Label :: binary(), unicode:chardata()}].
unseen(Coverage, Look) ->
    Actions = [{Taken, Decides, {file(Spec), Line, Column, Text}}
               || #{spec := Spec, actions := Actions} <- Coverage,
                  #{taken := Taken, decides := Decides, line := Line, column := Column, text := Text} <- Actions],
    %% What a sentence or a definition says at one place may stand at several places of the formula.
    Unseen = lists:usort([Place || {false, Decides, Place} <- Actions, Decides =/= no]) -- [Place || {true, _, Place} <- Actions],
    Shown = case length(Unseen) of
        Number when Number > ?MAX_SHOWN ->
            [action(A, Look) || A <- lists:sublist(Unseen, ?MAX_SHOWN - 1)]
                ++ [[~"and ", integer_to_binary(Number - ?MAX_SHOWN + 1), ~" more; --json lists all"]];
        _ -> [action(A, Look) || A <- Unseen]
    end,
    [{case Row of 1 -> ~"unseen"; _ -> ~"" end, Text} || {Row, Text} <- lists:enumerate(Shown)].

action({File, Line, Column, Text}, #{width := Width}) ->
    Place = [witness_text:clean(File), $:, integer_to_binary(Line), $:, integer_to_binary(Column), ~": "],
    [Place, witness_text:cut(witness_text:clean(Text), max(20, Width - 10 - string:length(Place)))].

%% `file:line` without the line.
file(Spec) ->
    case string:split(Spec, ~":", trailing) of
        [File, _] -> File;
        [File] -> File
    end.
