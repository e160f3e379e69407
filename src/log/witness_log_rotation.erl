-module(witness_log_rotation).
-moduledoc """
The rotated files of a log, in the order in which they were written.

Rotated files are beside the log, and have its name with a number (`system.log.1` is younger than `system.log.2`, also
`system.1.log`), a date or another long number (`system.log-20261121`, a larger one is younger), or one of `.old`, `.bak`
and `~`, with only one file each. Other files do not belong to the log, and compressed ones are ignored.

A file that is renamed while its directory is read can be missed or seen twice. So the look is repeated until two
consecutive looks agree: a rotation changes the file of each of its names, so none has taken place between the
two.
""".

-export([look/1, same/2, newer/2, since/2, siblings/1, log/1, youngest/1]).
-export([open/1, find/2]).

-export_type([look/0, entry/0, youngest/0]).

-doc "A file, and its identity at the time of the look.".
-type entry() :: {file:filename_all(), witness_log_input:identity()}.

-doc "All files, oldest first; the log itself is the last one, if it is there.".
-type look() :: [{order(), {Modified :: integer(), Size :: non_neg_integer()}, entry()}].

-doc "The youngest rotated file at some time.".
-type youngest() :: {witness_log_input:identity(), Size :: non_neg_integer() | any} | none.

%% Oldest first in Erlang's order of terms: dates, then numbers, then the single ones, then the log.
-type order() :: {1, [integer()]} | {2, integer()} | {3, alone} | {4, log}.

-include_lib("kernel/include/file.hrl").

-define(MAX_LOOKS, 20).
-define(MAX_NUMBER, 99_999).

-doc "The files of a log. `busy`: they changed all the time.".
-spec look(file:name_all()) -> {ok, look()} | busy.
look(File) -> look_again(File, entries(File), ?MAX_LOOKS).

look_again(_, _, 0) -> busy;
look_again(File, Entries, N) ->
    Again = entries(File),
    case [Entry || {_, _, Entry} <- Again] =:= [Entry || {_, _, Entry} <- Entries] of
        true -> {ok, Again};
        false -> look_again(File, Again, N - 1)
    end.

entries(File) ->
    Folder = filename:dirname(File),
    Names = case file:list_dir_all(Folder) of
                {ok, All} -> All;
                {error, _} -> []
            end,
    Base = text(filename:basename(File)),
    lists:sort([{Order, Info, {Path, Identity}}
                || Name <- Names, {ok, Order} <- [order(text(Name), Base)],
                   Path <- [path(Order, File, filename:join(Folder, Name))],
                   {ok, Info, Identity} <- [info(Path)]]).

%% The log itself keeps its given name.
path({4, log}, File, _) -> File;
path(_, _, Path) -> Path.

text(Name) when is_binary(Name) -> Name;
text(Name) -> unicode:characters_to_binary(Name).

info(Path) ->
    case file:read_file_info(Path, [raw, {time, posix}]) of
        {ok, #file_info{type = regular, mtime = Modified, size = Size, major_device = Device, inode = Inode}} ->
            {ok, {Modified, Size}, {Device, Inode}};
        _ -> none
    end.

-spec order(binary(), binary()) -> {ok, order()} | none.
order(Base, Base) -> {ok, {4, log}};
order(Name, Base) ->
    case suffix(Name, Base) of
        Alone when Alone =:= ~".old"; Alone =:= ~".bak"; Alone =:= ~"~" -> {ok, {3, alone}};
        Suffix ->
            case re:run(Suffix, ~"^[-._][0-9][-._:T0-9]*$") of
                {match, _} -> {ok, number_order(numbers(Suffix))};
                nomatch -> none
            end
    end.

number_order([N]) when N =< ?MAX_NUMBER -> {2, -N};
number_order(Numbers) -> {1, Numbers}.

numbers(Suffix) -> [binary_to_integer(N) || N <- re:split(Suffix, ~"[^0-9]+"), N =/= ~""].

%% The part that the name has in addition to the base, at its end or before its extension.
suffix(Name, Base) ->
    Extension = filename:extension(Base),
    Root = filename:rootname(Base),
    Middle = byte_size(Name) - byte_size(Base),
    case Name of
        <<Base:(byte_size(Base))/binary, Suffix/binary>> -> Suffix;
        <<Root:(byte_size(Root))/binary, Suffix:Middle/binary, Extension/binary>> when Middle > 0 -> Suffix;
        _ -> ~""
    end.

-doc "Whether nothing was rotated between two looks. The log itself may have grown.".
-spec same(look(), look()) -> boolean().
same(Look, Again) -> without_size(Look) =:= without_size(Again).

without_size(Look) -> [case Order of {4, log} -> Entry; _ -> Other end || Other = {Order, _, Entry} <- Look].

-doc """
The files that were written after this one. `unknown`: it is not among them, so there may have been others, or names and
times contradict each other.
""".
-spec newer(witness_log_input:identity(), look()) -> {ok, [entry()]} | unknown.
newer(Identity, Look) ->
    case lists:splitwith(fun({_, _, {_, I}}) -> I =/= Identity end, Look) of
        {_, []} -> unknown;
        {_, [{{3, alone}, _, _} | After]} -> {ok, [Entry || {{4, log}, _, Entry} <- After]};
        {Before, [{_, {Modified, _}, _} | After]} ->
            Rotated = [M || {{Rank, _}, {M, _}, _} <- After, Rank < 3],
            case lists:all(fun(M) -> M >= Modified end, Rotated)
                andalso lists:all(fun({_, {M, _}, _}) -> M =< Modified end, Before) of
                true -> {ok, [Entry || {{Rank, _}, _, Entry} <- After, Rank =/= 3]};
                false -> unknown
            end
    end.

-doc "The youngest rotated file that has text, and its size. A file without text may be a copy that has just begun.".
-spec youngest(look()) -> youngest().
youngest(Look) ->
    case [{Identity, Size} || {{Rank, _}, {_, Size}, {_, Identity}} <- Look, Rank < 4, Size > 0] of
        [] -> none;
        Rotated -> lists:last(Rotated)
    end.

-doc """
The files with text, and the log, that are newer than the earlier youngest rotated file. `unknown`: that one has
changed, or is gone.
""".
-spec since(youngest(), look()) -> {ok, [entry()]} | unknown.
since(Youngest, Look) ->
    Kept = [E || E = {{Rank, _}, {_, Size}, {_, I}} <- Look, Rank =:= 4 orelse Size > 0 orelse {I, any} =:= Youngest],
    case Youngest of
        none -> {ok, [Entry || {_, _, Entry} <- Kept]};
        {Identity, Size} ->
            case [S || {_, {_, S}, {_, I}} <- Kept, I =:= Identity, Size =:= any orelse S =:= Size] of
                [] -> unknown;
                _ -> newer(Identity, Kept)
            end
    end.

-doc "The log itself, if it is there.".
-spec log(look()) -> [entry()].
log(Look) -> [Entry || {{4, log}, _, Entry} <- Look].

-doc "All files but the log itself, youngest first.".
-spec siblings(look()) -> [entry()].
siblings(Look) -> [Entry || {{Rank, _}, _, Entry} <- lists:reverse(Look), Rank < 4].

-doc "Opens files. `changed`: another rotation has taken place since the look; then the caller should look again.".
-spec open([entry()]) ->
    {ok, [{witness_log_input:identity(), witness_log_input:input()}]} | changed | {error, file:posix() | badarg}.
open(Entries) -> open(Entries, []).

open([], Opened) -> {ok, lists:reverse(Opened)};
open([{Path, Identity} | Entries], Opened) ->
    case witness_log_input:open({file, Path}) of
        {ok, Input} ->
            case witness_log_input:identity(Input) of
                Identity -> open(Entries, [{Identity, Input} | Opened]);
                _ -> give_up(changed, [{Identity, Input} | Opened])
            end;
        {error, enoent} -> give_up(changed, Opened);
        {error, Reason} -> give_up({error, Reason}, Opened)
    end.

give_up(Result, Opened) ->
    _ = [witness_log_input:close(Input) || {_, Input} <- Opened],
    Result.

-doc "Opens the first file that has the text before a mark.".
-spec find(witness_log_mark:mark() | witness_log_mark:saved(), [entry()]) ->
    {ok, witness_log_mark:mark(), witness_log_input:input(), witness_log_input:identity()} | changed | error.
find(_, []) -> error;
find(Mark, [Entry = {_, Identity} | Entries]) ->
    case open([Entry]) of
        {ok, [{Identity, Input}]} ->
            case witness_log_input:find(Mark, Input) of
                {ok, Found} -> {ok, Found, Input, Identity};
                error ->
                    ok = witness_log_input:close(Input),
                    find(Mark, Entries)
            end;
        changed -> changed;
        {error, _} -> find(Mark, Entries)
    end.
