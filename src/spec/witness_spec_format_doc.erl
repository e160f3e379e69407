-module(witness_spec_format_doc).
-moduledoc """
Documents of the formatter, and the lines that they become within a width.

A document is text with the places where a line may end. The one that `render/1` chooses is the first that fits, from left to right, as in
Wadler's *A prettier printer*, so the time grows with the size of the text:

- `{line, Flat}` ends the line if its group does not fit, and is the text `Flat` otherwise; `hard` always ends the line, so no group
  around it fits;
- `{sep, Flat, Kind, N, Doc}` ends the line in front of `Doc` alone, and begins the next one `N` columns deeper, if that does not fit: all of
  it (`flat`), or what it has up to its own first line (`head`). The kind `hard` always does;
- `{last, Flat}` ends the line only if a single token does not fit otherwise;
- `{nest, N, Doc}` begins its lines `N` columns deeper, `{hang, N, Doc}` deeper than the line where it begins, and `{align, Doc}` in the
  column where it begins.

A text carries whether an empty line stands in front of it, which is kept if it begins a line. A line that would be too long begins
further to the left. Comments end their lines.
""".

-export([render/1, fits/2, flat_length/1, text/1, text/2, tail/1]).
-export_type([doc/0]).

-type doc() :: [doc()] | text() | tail()
    | {comment, string(), Empty :: boolean()}
    | {behind, string()}
    | {line, string()} | hard | {last, string()}
    | {sep, string(), flat | head | hard, non_neg_integer(), doc()}
    | {group, doc()} | {nest | hang, non_neg_integer(), doc()} | {align, doc()}.

-type text() :: {text, string(), Length :: non_neg_integer(), Empty :: boolean()}.
-type tail() :: {tail, string(), Length :: non_neg_integer()}.

-define(WIDTH, 100).

%% `column` is that of the next character, from 0 on, with the `space` in front of it, which no line ends with; `pending` is the
%% indentation of a line that has not begun yet; `indent` that of this line. A finished line has its text and the comment behind it.
-record(state, {width = ?WIDTH :: pos_integer(),
                column = 0 :: non_neg_integer(), indent = 0 :: non_neg_integer(), space = "" :: string(),
                pending = {line, 0} :: none | {line, non_neg_integer()},
                line = [] :: iolist(), comment = none :: none | string(),
                lines = [] :: [{iolist(), non_neg_integer(), none | string()}]}).

-doc "A text that no empty line precedes.".
-spec text(string()) -> text().
text(Text) -> text(Text, false).

-doc "A text, and whether an empty line stands in front of it.".
-spec text(string(), boolean()) -> text().
text(Text, Empty) -> {text, Text, length(Text), Empty}.

-doc "A text that stays with what is in front of it, if that fits.".
-spec tail(string()) -> tail().
tail(Text) -> {tail, Text, length(Text)}.

-doc "The lines of a document, each with its end.".
-spec render(doc()) -> iolist().
render(Doc) ->
    #state{lines = Lines} = finish(docs([{0, broken, Doc}], #state{})),
    [[Line, $\n] || Line <- aligned(lists:reverse(Lines))].

-doc "Whether a document fits into a line that is indented so far, without the comments around it.".
-spec fits(doc(), Indent :: non_neg_integer()) -> boolean().
fits(Doc, Indent) -> fits([{Indent, flat, Doc}], ?WIDTH - Indent, line).

-doc "The length of a document in one line, without its comments.".
-spec flat_length(doc()) -> non_neg_integer().
flat_length(Docs) when is_list(Docs) -> lists:sum([flat_length(Doc) || Doc <- Docs]);
flat_length({text, _, Length, _}) -> Length;
flat_length({tail, _, Length}) -> Length;
flat_length({Line, Flat}) when Line =:= line; Line =:= last -> length(Flat);
flat_length({sep, Flat, _, _, Doc}) -> length(Flat) + flat_length(Doc);
flat_length({Kind, Doc}) when Kind =:= group; Kind =:= align -> flat_length(Doc);
flat_length({Kind, _, Doc}) when Kind =:= nest; Kind =:= hang -> flat_length(Doc);
flat_length(_) -> 0.

docs([], S) -> S;
docs([{_, _, []} | Rest], S) -> docs(Rest, S);
docs([{I, Mode, [Doc | Docs]} | Rest], S) -> docs([{I, Mode, Doc}, {I, Mode, Docs} | Rest], S);
docs([{_, _, {text, Text, Length, Empty}} | Rest], S) -> docs(Rest, put_text(Text, Length, begun(Length, Empty, S)));
docs([{I, _, {tail, Text, Length}} | Rest], #state{width = Width, column = Column} = S) ->
    docs(Rest, put_text(Text, Length, begun(Length, false, case Column + Length > Width of true -> newline(I, S); false -> S end)));
docs([{I, _, {comment, Text, Empty}} | Rest], S) ->
    Begun = begun(0, Empty, newline(I, S)),
    docs(Rest, newline(I, put_text(Text, length(Text), Begun)));
docs([{I, _, {behind, Text}} | Rest], S) -> docs(Rest, newline(I, S#state{comment = Text}));
docs([{I, broken, hard} | Rest], S) -> docs(Rest, newline(I, S));
docs([{I, broken, {line, _}} | Rest], S) -> docs(Rest, newline(I, S));
docs([{_, flat, {Line, Flat}} | Rest], S) when Line =:= line; Line =:= last -> docs(Rest, space(Flat, S));
docs([{I, broken, {last, Flat}} = Last | Rest], S) ->
    case begins_line(S) orelse fits(Rest, left(Flat, S), last) orelse not helps(I, Rest, S) of
        true -> docs([setelement(2, Last, flat) | Rest], S);
        false -> docs(Rest, newline(I, S))
    end;
docs([{I, flat, {sep, Flat, _, _, Doc}} | Rest], S) -> docs([{I, flat, Doc} | Rest], space(Flat, S));
docs([{I, broken, {sep, Flat, Kind, N, Doc}} | Rest], S) ->
    Mode = case Kind of head -> broken; _ -> flat end,
    case Kind =/= hard andalso fits([{I, Mode, Doc} | Rest], left(Flat, S), line) of
        true -> docs([{I, Mode, Doc} | Rest], space(Flat, S));
        %% A new line that does not begin further to the left would not help.
        false when Kind =/= hard, S#state.pending =:= none ->
            case helps(I + N, [{I, broken, Doc} | Rest], S) of
                true -> docs([{I + N, broken, {group, Doc}} | Rest], newline(I + N, S));
                false -> docs([{I, broken, Doc} | Rest], space(Flat, S))
            end;
        false -> docs([{I + N, broken, {group, Doc}} | Rest], newline(I + N, S))
    end;
docs([{I, flat, {group, Doc}} | Rest], S) -> docs([{I, flat, Doc} | Rest], S);
docs([{I, broken, {group, Doc}} | Rest], S) ->
    Mode = case fits([{I, flat, Doc} | Rest], left("", S), line) of true -> flat; false -> broken end,
    docs([{I, Mode, Doc} | Rest], S);
docs([{I, Mode, {nest, N, Doc}} | Rest], S) -> docs([{I + N, Mode, Doc} | Rest], S);
docs([{I, Mode, {hang, N, Doc}} | Rest], #state{indent = Indent} = S) -> docs([{max(I, Indent) + N, Mode, Doc} | Rest], S);
docs([{_, Mode, {align, Doc}} | Rest], S) -> docs([{column(S), Mode, Doc} | Rest], S).

begins_line(#state{pending = Pending}) -> Pending =/= none.

column(#state{pending = {line, I}} = S) -> indent(I, 0, S);
column(#state{column = Column}) -> Column.

left(Flat, #state{width = Width} = S) -> Width - column(S) - length(Flat).

%% A new line is of use only if it begins further to the left.
helps(I, Docs, #state{column = Column} = S) -> Column > indent(I, next_length([Doc || {_, _, Doc} <- Docs]), S).

%% Nothing is indented by more than three fifths of the width, or so far that it would not fit.
indent(I, Length, #state{width = Width}) -> max(0, lists:min([I, Width * 3 div 5, Width - Length])).

next_length([[] | Docs]) -> next_length(Docs);
next_length([[Doc | Inner] | Docs]) -> next_length([Doc, Inner | Docs]);
next_length([{text, _, Length, _} | _]) -> Length;
next_length([{tail, _, Length} | _]) -> Length;
next_length([{Kind, Doc} | Docs]) when Kind =:= group; Kind =:= align -> next_length([Doc | Docs]);
next_length([{Kind, _, Doc} | Docs]) when Kind =:= nest; Kind =:= hang -> next_length([Doc | Docs]);
next_length([{sep, _, _, _, Doc} | Docs]) -> next_length([Doc | Docs]);
next_length([_ | Docs]) -> next_length(Docs);
next_length([]) -> 0.

newline(I, #state{space = Space, column = Column} = S) -> S#state{pending = {line, I}, space = "", column = Column - length(Space)}.

space(Flat, #state{pending = none, column = Column, space = Space} = S) ->
    S#state{space = Flat ++ Space, column = Column + length(Flat)};
space(_, S) -> S.

put_text(Text, Length, #state{line = Line, column = Column, space = Space} = S) ->
    S#state{line = [Line, Space, Text], space = "", column = case lists:member($\n, Text) of
        false -> Column + Length;
        true -> length(last_row(Text, Text))
    end}.

last_row([$\n | Text], _) -> last_row(Text, Text);
last_row([_ | Text], Row) -> last_row(Text, Row);
last_row([], Row) -> Row.

begun(_, _, #state{pending = none} = S) -> S;
begun(Length, Empty, #state{pending = {line, I}} = S) ->
    #state{lines = Lines} = Ended = finish(S),
    Indent = indent(I, Length, S),
    Ended#state{lines = case Empty andalso Lines =/= [] of true -> [{[], 0, none} | Lines]; false -> Lines end,
                line = lists:duplicate(Indent, $\s), column = Indent, indent = Indent, pending = none}.

finish(#state{line = [], comment = none} = S) -> S;
finish(#state{line = Line, column = Column, comment = Comment, lines = Lines} = S) ->
    S#state{lines = [{Line, Column, Comment} | Lines], line = [], comment = none}.

%% Comments behind lines that follow each other stand in one column.
aligned([{_, _, Comment} | _] = Lines) when Comment =/= none ->
    {Commented, Rest} = lists:splitwith(fun({_, _, Behind}) -> Behind =/= none end, Lines),
    Column = lists:max([Length || {_, Length, _} <- Commented]) + 2,
    [[Line, lists:duplicate(Column - Length, $\s), Behind] || {Line, Length, Behind} <- Commented] ++ aligned(Rest);
aligned([{Line, _, none} | Rest]) -> [Line | aligned(Rest)];
aligned([]) -> [].

%% Whether the text up to the next place where the line may end fits into so many columns. `last`: any place between tokens is one.
fits(Docs, Left, Ends) -> fits(Docs, Left, Ends, first).

%% `first`: nothing but comments so far; `ended`: a comment has ended the line.
fits(_, Left, _, _) when Left < 0 -> false;
fits([], _, _, _) -> true;
fits([{_, _, []} | Rest], Left, Ends, Seen) -> fits(Rest, Left, Ends, Seen);
fits([{I, Mode, [Doc | Docs]} | Rest], Left, Ends, Seen) -> fits([{I, Mode, Doc}, {I, Mode, Docs} | Rest], Left, Ends, Seen);
fits([{_, broken, _} | _], _, _, ended) -> true;
fits([{_, _, {Text, _, _, _}} | _], _, _, ended) when Text =:= text -> false;
fits([{_, _, {tail, _, _}} | _], _, _, ended) -> false;
fits([{_, _, {text, Text, Length, _}} | Rest], Left, Ends, _) ->
    case Length > Left andalso lists:member($\n, Text) of
        false -> fits(Rest, Left - Length, Ends, some);
        true -> length(lists:takewhile(fun(C) -> C =/= $\n end, Text)) =< Left
    end;
fits([{_, _, {tail, _, Length}} | Rest], Left, Ends, _) -> fits(Rest, Left - Length, Ends, some);
%% What follows has the indentation of the comment.
fits([{I, _, {comment, _, _}} | Rest], _, Ends, first) -> fits(Rest, ?WIDTH - min(I, ?WIDTH * 3 div 5), Ends, first);
fits([{_, Mode, {comment, _, _}} | _], _, _, _) -> Mode =:= broken;
fits([{_, _, {behind, _}} | Rest], Left, Ends, _) -> fits(Rest, Left, Ends, ended);
fits([{_, Mode, hard} | _], _, _, _) -> Mode =:= broken;
fits([{_, broken, {line, _}} | _], _, _, _) -> true;
fits([{_, broken, {sep, _, _, _, _}} | _], _, _, _) -> true;
fits([{_, flat, {sep, _, hard, _, _}} | _], _, _, _) -> false;
fits([{_, broken, {last, _}} | _], _, last, _) -> true;
fits([{_, _, {Line, Flat}} | Rest], Left, Ends, Seen) when Line =:= line; Line =:= last ->
    fits(Rest, Left - length(Flat), Ends, Seen);
fits([{I, Mode, {sep, Flat, _, _, Doc}} | Rest], Left, Ends, Seen) ->
    fits([{I, Mode, Doc} | Rest], Left - length(Flat), Ends, Seen);
fits([{I, Mode, {group, Doc}} | Rest], Left, Ends, Seen) -> fits([{I, Mode, Doc} | Rest], Left, Ends, Seen);
fits([{I, Mode, {align, Doc}} | Rest], Left, Ends, Seen) -> fits([{I, Mode, Doc} | Rest], Left, Ends, Seen);
fits([{I, Mode, {_, _, Doc}} | Rest], Left, Ends, Seen) -> fits([{I, Mode, Doc} | Rest], Left, Ends, Seen).
