-module(witness_log_follow).
-moduledoc """
Reads a file that grows, as `tail -F` does: across rotation by renaming, across copying and truncating, and when it is
missing at first or for a while. It neither skips nor repeats text; if it cannot be sure of that, it reports `lost`.

**Which file comes next.** If the log's name refers to another file than the newest known one, the files from
that one to the log are looked for among the rotated files (`witness_log_rotation`). They are opened, so that further renaming
has no effect. When a later file has text, the reader reads the rest of its file and leaves it. This is safe because a writer
does not go back to a file that it has left.

**Truncation.** Each read also reads the bytes before the place again, and the first bytes of the file
(`witness_log_mark`). If they differ, the file was truncated, even if it is long again. A rotated file that contains
what was read is its copy: reading continues there. Without a copy, text may be lost. While a copy is being made, the log
still has all its text: then reading continues in the log, at the same offset, and not in the file after the copy.

**A position** of an earlier run is looked for in the same way, first in the file that it was saved for.
""".

-export([open/2, read/1, mark/1, place/1, progress/1, close/1]).

-export_type([follow/0, reason/0, lost/0]).

-define(MAX_LOOKS, 100).

-doc "Why an input cannot be followed.".
-type reason() :: file:posix() | badarg | follow_input | {follow_compressed, gzip | zstd}.

-doc """
Why text may be missing. `truncated`: the file was truncated, and there is no copy of it. `replaced`: the file is not among the
rotated ones, so there may have been others between it and the current one.
""".
-type lost() :: truncated | replaced.

%% A later file, with the text that may be missing before it.
-type later() :: {witness_log_input:identity(), witness_log_input:input(), no | lost()}.

-record(follow, {file :: file:name_all(),
                 block :: pos_integer(),
                 input = none :: witness_log_input:input() | none,        % the file that is being read
                 identity = {0, 0} :: witness_log_input:identity(),
                 mark = witness_log_mark:new() :: witness_log_mark:mark(), % where reading continues
                 copy = false :: boolean(),                               % the file is a copy of an earlier state of the log
                 later = [] :: [later()],                                 % files that were written after it, in order
                 youngest = none :: witness_log_rotation:youngest() | unknown, % rotated file at the last change of file
                 tell = no :: no | lost()}).                              % to be reported first

-doc "A followed file. The process that opened it reads it.".
-opaque follow() :: #follow{}.

-doc "Opens a file; it need not be there yet.".
-spec open(witness_log_source:input(), witness_log_source:options()) -> {ok, follow()} | {error, reason()}.
open(standard_input, _) -> {error, follow_input};
open({file, File}, Options = #{block := Block}) ->
    Opened = case Options of
                 #{position := Position} -> resume(Position, #follow{file = File, block = Block});
                 #{} -> start(look(File, ?MAX_LOOKS), #follow{file = File, block = Block})
             end,
    case Opened of
        #follow{} -> {ok, Opened};
        {error, Reason, _} -> {error, Reason}
    end.

%% Begins with the current file of this name. Older rotated files are ignored. (If the name has got another
%% file since that look, the first text shows it.)
start({ok, Look}, F = #follow{input = Input}) ->
    _ = [witness_log_input:close(Input) || Input =/= none],
    open_log((close_later(F))#follow{input = none, copy = false, mark = witness_log_mark:new(),
                                     youngest = witness_log_rotation:youngest(Look)});
start(busy, F) -> {error, ebusy, F}.

look(_, 0) -> busy;
look(File, N) ->
    case witness_log_rotation:look(File) of
        busy -> look(File, N - 1);
        Found -> Found
    end.

open_log(F = #follow{file = File}) ->
    case witness_log_input:open({file, File}) of
        {ok, Input} -> F#follow{input = Input, identity = witness_log_input:identity(Input)};
        {error, enoent} -> F#follow{input = none, identity = {0, 0}};
        {error, Reason} -> {error, Reason, F}
    end.

-doc """
The next part. `next`: the file has ended, and the following text is that of another file. `moved`: the same text
continues in another file. `lost`: text may be missing here. `wait`: there is no text at the moment.
""".
-spec read(follow()) ->
    {text, binary(), follow()} | {next | moved, witness_log_source:place(), follow()}
  | {lost, lost(), witness_log_source:place(), follow()} | {wait, follow()} | {error, reason(), follow()}.
read(F = #follow{tell = Lost}) when Lost =/= no -> {lost, Lost, place(F), F#follow{tell = no}};
read(F = #follow{input = none}) ->
    case open_log(F) of
        F1 = #follow{input = none} -> {wait, F1};
        F1 = #follow{} -> {moved, place(F1), F1};
        Error -> Error
    end;
read(F) -> read_or_else(fun at_end/1, F).

read_or_else(AtEnd, F) ->
    case bytes(F) of
        {ok, ~""} -> AtEnd(F);
        {ok, Bytes} -> text(Bytes, F);
        changed -> handle_truncation(F);
        {error, Reason} -> {error, Reason, F}
    end.

%% The bytes before the place are read together with those after it, so that both show the file at one moment.
bytes(#follow{input = Input, mark = Mark, block = Block}) ->
    Size = witness_log_mark:size(Mark),
    Head = witness_log_mark:head(Mark),
    Tail = witness_log_mark:tail(Mark),
    maybe
        {ok, Head} ?= witness_log_input:pread(Input, 0, Size),
        {ok, <<Tail:Size/binary, Bytes/binary>>} ?=
            witness_log_input:pread(Input, witness_log_mark:offset(Mark) - Size, Size + Block),
        {ok, Bytes}
    else
        {ok, _} -> changed;
        {error, Reason} -> {error, Reason}
    end.

text(Bytes, F = #follow{mark = Mark}) ->
    case witness_log_mark:offset(Mark) of
        0 -> first_text(witness_log_inflate:kind(Bytes), Bytes, F);
        _ -> {text, Bytes, F#follow{mark = witness_log_mark:add(Bytes, Mark)}}
    end.

first_text(Kind, _, F) when Kind =:= gzip; Kind =:= zstd -> {error, {follow_compressed, Kind}, F};
first_text(_, Bytes, F = #follow{later = Later, youngest = Youngest}) when Later =/= []; Youngest =:= unknown ->
    accept(Bytes, F);
first_text(_, Bytes, F = #follow{youngest = {Identity, _}, identity = Identity}) ->
    accept(Bytes, F); % it was renamed before it was found
first_text(_, Bytes, F = #follow{file = File, youngest = Youngest, identity = Identity}) ->
    %% Before its first bytes were read, the log may have been written, copied and truncated: then its first copy
    %% comes first. An awaited log may have been renamed before it was found.
    maybe
        {ok, Look} ?= witness_log_rotation:look(File),
        {ok, Entries = [{_, First} | _]} ?= witness_log_rotation:since(Youngest, Look),
        {true, true, _, _} ?= {First =/= Identity, lists:keymember(Identity, 2, Entries), Entries, Look},
        go_to_copy(put_gap(no, witness_log_rotation:open(Entries)), Look, F)
    else
        busy -> {wait, F};
        {false, _, _, _} -> accept(Bytes, F);
        _ -> {lost, replaced, place(F), F#follow{youngest = unknown}}
    end.

accept(Bytes, F) -> {text, Bytes, F#follow{mark = witness_log_mark:add(Bytes, witness_log_mark:new())}}.

go_to_copy({ok, [{Identity, Copy, _} | Later]}, Look, F = #follow{input = Input}) ->
    ok = witness_log_input:close(Input),
    F1 = (close_later(F))#follow{input = Copy, identity = Identity, copy = true, later = Later,
                                 youngest = witness_log_rotation:youngest(Look)},
    {moved, place(F1), F1};
go_to_copy(changed, _, F) -> {wait, F};
go_to_copy({error, Reason}, _, F) -> {error, Reason, F}.

%% --- rotation --------------------------------------------------------------------

%% All decisions precede the last read of the file, so they hold at the moment when it has nothing more.
at_end(F) ->
    case find_later(F) of
        F1 = #follow{later = Later} ->
            case with_text(Later) of
                [] -> {wait, F1};
                [Next | _] = Later1 ->
                    Same = has_copied_text(Next, F1),
                    read_or_else(fun(F2) -> switch(Same, F2) end, F1#follow{later = Later1})
            end;
        Error -> Error
    end.

%% An empty file before one with text stays empty. So the younger files are checked first.
with_text(Later) ->
    Asked = lists:foldr(fun(L = {_, Input, _}, Kept) -> [{has_text(Input), L} | Kept] end, [], Later),
    case lists:splitwith(fun({HasText, _}) -> not HasText end, Asked) of
        {_, []} -> [];
        {Empty, [{true, {Identity, Input, Gap}} | Rest]} ->
            _ = [witness_log_input:close(I) || {_, {_, I, _}} <- Empty],
            Gaps = [G || {_, {_, _, G}} <- Empty, G =/= no],
            [{Identity, Input, hd(Gaps ++ [Gap])} | [L || {_, L} <- Rest]]
    end.

has_text(Input) ->
    case witness_log_input:pread(Input, 0, 1) of
        {ok, <<_>>} -> true;
        _ -> false
    end.

%% Whether the log still has the text that is being read in a copy of it.
has_copied_text({_, Input, no}, #follow{copy = true, mark = Mark}) -> witness_log_input:find(Mark, Input) =/= error;
has_copied_text(_, _) -> false.

switch(Same, F = #follow{input = Input, later = [{Identity, Next, Gap} | Later], copy = Copy}) ->
    ok = witness_log_input:close(Input),
    F1 = F#follow{input = Next, identity = Identity, later = Later, copy = Copy andalso Later =/= []},
    case Same of
        true -> {moved, place(F1), F1};
        false when Gap =:= no -> {next, place(F1), F1#follow{mark = witness_log_mark:new()}};
        false -> {next, place(F1), F1#follow{mark = witness_log_mark:new(), tell = Gap, youngest = unknown}}
    end.

%% Finds the files that follow the newest known one. A copy is followed by later copies and by the log, which may have been
%% truncated but is the same file: so after a copy all later files are looked for each time.
find_later(F = #follow{copy = true, identity = Identity}) -> add_later(Identity, close_later(F));
find_later(F = #follow{file = File, identity = Identity, later = Later}) ->
    {Newest, _, _} = lists:last([{Identity, none, no} | Later]),
    case witness_log_input:identity_of(File) of
        Newest -> F;
        none -> F;
        _ -> add_later(Newest, F)
    end.

add_later(Newest, F = #follow{file = File, later = Later}) ->
    case witness_log_rotation:look(File) of
        {ok, Look} ->
            case open_newer(Newest, Look) of
                {ok, Opened} ->
                    F#follow{later = Later ++ Opened, youngest = youngest(Look, F)};
                changed -> F;
                {error, Reason} -> {error, Reason, F}
            end;
        busy -> F
    end.

%% A renamed file may still grow until its writer reopens the log; a copy may not.
youngest(Look, #follow{copy = Copy}) ->
    case witness_log_rotation:youngest(Look) of
        {Identity, _} when not Copy -> {Identity, any};
        Youngest -> Youngest
    end.

open_newer(Identity, Look) ->
    case witness_log_rotation:newer(Identity, Look) of
        {ok, Entries} -> put_gap(no, witness_log_rotation:open(Entries));
        unknown -> put_gap(replaced, witness_log_rotation:open(witness_log_rotation:log(Look)))
    end.

close_later(F = #follow{later = Later}) ->
    _ = [witness_log_input:close(Input) || {_, Input, _} <- Later],
    F#follow{later = []}.

%% The gap is before the first file.
put_gap(_, {ok, []}) -> {ok, []};
put_gap(Gap, {ok, [{Identity, Input} | Opened]}) -> {ok, [{Identity, Input, Gap} | [{I, In, no} || {I, In} <- Opened]]};
put_gap(_, Other) -> Other.

%% --- truncation ------------------------------------------------------------------

%% The file was copied before it was truncated, so the copy is complete by now.
handle_truncation(F = #follow{file = File, mark = Mark, input = Input}) ->
    case witness_log_rotation:look(File) of
        {ok, Look} ->
            case witness_log_rotation:find(Mark, witness_log_rotation:siblings(Look)) of
                {ok, _, Found, Identity} ->
                    ok = witness_log_input:close(Input),
                    F1 = (close_later(F))#follow{input = Found, identity = Identity, copy = true},
                    {moved, place(F1), F1};
                changed -> {wait, F};
                error -> report_lost(truncated, start({ok, Look}, F))
            end;
        busy -> {wait, F}
    end.

report_lost(Reason, F = #follow{}) -> {lost, Reason, place(F), F};
report_lost(_, Error) -> Error.

%% --- positions -------------------------------------------------------------------

resume(Position, F) -> resume(Position, F, ?MAX_LOOKS).

resume(_, F, 0) -> {error, ebusy, F};
resume(Position = #{device := Device, inode := Inode}, F = #follow{file = File}, N) ->
    case witness_log_rotation:look(File) of
        {ok, Look} ->
            Entries = witness_log_rotation:log(Look) ++ witness_log_rotation:siblings(Look),
            {Own, Others} = lists:partition(fun({_, I}) -> I =:= {Device, Inode} end, Entries),
            case witness_log_rotation:find(Position, Own ++ Others) of
                {ok, Mark, Input, Identity} ->
                    set_copy(Position, Look, F#follow{mark = Mark, input = Input, identity = Identity});
                changed -> resume(Position, F, N - 1);
                error -> retry_resume(Position, Look, F, N)
            end;
        busy -> resume(Position, F, N - 1)
    end.

%% The file may have been copied since the look, and truncated before it was opened.
retry_resume(Position, Look, F = #follow{file = File}, N) ->
    case witness_log_rotation:look(File) of
        {ok, Again} ->
            case witness_log_rotation:same(Look, Again) of
                true -> note_lost_position(start({ok, Look}, F), Position);
                false -> resume(Position, F, N - 1)
            end;
        busy -> resume(Position, F, N - 1)
    end.

set_copy(#{device := Device, inode := Inode, copy := Copy}, Look, F = #follow{identity = Identity}) ->
    Log = lists:keymember(Identity, 2, witness_log_rotation:log(Look)),
    F#follow{copy = not Log andalso (Copy orelse Identity =/= {Device, Inode})}.

note_lost_position(F = #follow{identity = {Device, Inode}}, #{device := Device, inode := Inode}) ->
    F#follow{tell = truncated};
note_lost_position(F = #follow{}, _) -> F#follow{tell = replaced};
note_lost_position(Error, _) -> Error.

%% --- the rest --------------------------------------------------------------------

-doc "The place where reading begins.".
-spec mark(follow()) -> witness_log_mark:mark().
mark(#follow{tell = no, mark = Mark}) -> Mark;
mark(_) -> witness_log_mark:new().

-doc "Identifies the current file.".
-spec place(follow()) -> witness_log_source:place().
place(#follow{identity = {Device, Inode}, copy = Copy}) -> #{device => Device, inode => Inode, copy => Copy}.

-doc "How much of the file was read, and its current size.".
-spec progress(follow()) -> {non_neg_integer(), non_neg_integer() | unknown}.
progress(#follow{file = File, mark = Mark}) ->
    {witness_log_mark:offset(Mark), witness_log_input:size({file, File})}.

-doc "Closes the file.".
-spec close(follow()) -> ok.
close(F = #follow{input = Input}) ->
    _ = [witness_log_input:close(Input) || Input =/= none],
    #follow{} = close_later(F),
    ok.
