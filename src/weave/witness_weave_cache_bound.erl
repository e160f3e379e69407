-module(witness_weave_cache_bound).
-moduledoc """
Keeps the folder of woven code (`m:witness_weave_cache`) from growing without end.

A change of a module, the weaver or OTP leaves older woven code behind, which is not used again. So when new code was woven and
the cache is larger than a limit, entries that were not used for a week are removed. The oldest go first, until the cache is
within the limit. Entries that were used within a week stay, however large the cache is: a VM loads its modules when it needs
them.

*Use* of an entry is the modification time of the file, or for a folder that of its list. `mark_used/1` sets it, at most once a
day.

`keep/2` *checks* the cache at most once a day. If there are tens of thousands of files, a check takes seconds. It would delay a
run after a change of one module. Nothing younger than a week is removed, so more frequent checks would only remove entries up
to a day earlier.

**Concurrent use and removal.** A process that uses an entry sets its time first, and then checks that it is complete. A process
that removes an entry renames it first, and reads the time once more. If the time has changed, it restores the old name.
So a used entry is there, except for the moment between these two steps; and a missing entry is made anew.
""".

-include_lib("kernel/include/file.hrl").

-export([mark_used/1, keep/2, shrink/2, default/0]).

-define(DAY_S, 86_400).
-define(WEEK_S, (7 * ?DAY_S)).
-define(LIST, "woven").
%% An empty file: its time is that of the last check.
-define(LOOKED, "looked").

-doc "The default limit, in bytes.".
-spec default() -> pos_integer().
default() -> 1 bsl 30.

-doc "Marks this file as used. `fresh`: it was marked within a day.".
-spec mark_used(file:filename()) -> renewed | fresh.
mark_used(File) ->
    case last_used(File) < now_seconds() - ?DAY_S of
        true ->
            %% The folder of another user may be read-only: then its owner has to keep it small.
            _ = file:change_time(File, calendar:local_time()),
            renewed;
        false -> fresh
    end.

-doc "The same as `shrink/2`, unless that was done within the last day.".
-spec keep(file:filename(), Limit :: non_neg_integer()) -> ok.
keep(CacheDir, Limit) ->
    Looked = filename:join(CacheDir, ?LOOKED),
    %% A time in the future was set before the clock was put back.
    case abs(now_seconds() - last_used(Looked)) > ?DAY_S of
        true ->
            %% Set the time first, so that concurrent callers do not check too.
            _ = file:write_file(Looked, ""),
            shrink(CacheDir, Limit);
        false -> ok
    end.

-doc "Removes what has not been used for a week, the oldest first, until the rest is not larger than the limit.".
-spec shrink(file:filename(), Limit :: non_neg_integer()) -> ok.
shrink(CacheDir, Limit) ->
    Entries = [{Used, Size, Path, Mark}
               || Part <- ["modules", "sets", "folders"], Path <- paths(filename:join(CacheDir, Part)),
                  {Used, Size, Mark} <- [entry(Path)]],
    Total = lists:sum([Size || {_, Size, _, _} <- Entries]),
    _ = lists:foldl(fun remove/2, {Total, Limit, now_seconds() - ?WEEK_S}, lists:sort(Entries)),
    ok.

remove({Used, Size, Path, Mark}, {Total, Limit, Before}) when Total > Limit, Used < Before ->
    Away = Path ++ ".removed." ++ os:getpid() ++ "." ++ integer_to_list(erlang:unique_integer([positive])),
    Left = case file:rename(Path, Away) of
        ok -> Total - remove_marked(Used, Size, Path, Mark, Away);
        %% Another process has removed it already.
        {error, _} -> Total - Size
    end,
    {Left, Limit, Before};
remove(_, All) ->
    All.

remove_marked(Used, Size, Path, Mark, Away) ->
    Back = last_used(Away ++ lists:nthtail(length(Path), Mark)) =/= Used andalso file:rename(Away, Path) =:= ok,
    case Back of
        true -> 0;
        false ->
            _ = file:del_dir_r(Away),
            Size
    end.

%% The time is that of the file itself, or of the list in a folder. A folder without a list was never complete.
entry(Path) ->
    case file:list_dir(Path) of
        {ok, Names} ->
            List = filename:join(Path, ?LIST),
            Mark = case lists:member(?LIST, Names) of true -> List; false -> Path end,
            {last_used(Mark), lists:sum([whole_size(filename:join(Path, Name)) || Name <- Names]), Mark};
        {error, _} ->
            {Used, Size} = info(Path),
            {Used, Size, Path}
    end.

%% With all that is in it, if it is a folder. Most are files of object code.
whole_size(Path) ->
    {_, Own} = info(Path),
    case filename:extension(Path) of
        ".beam" -> Own;
        _ -> lists:sum([Own | [whole_size(Inner) || Inner <- paths(Path)]])
    end.

paths(Dir) ->
    case file:list_dir(Dir) of
        {ok, Names} -> [filename:join(Dir, Name) || Name <- Names];
        {error, _} -> []
    end.

last_used(File) -> element(1, info(File)).

%% Without the file server, through which tens of thousands of requests take seconds.
info(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, #file_info{mtime = Time, size = Size}} -> {Time, Size};
        {error, _} -> {0, 0}
    end.

now_seconds() -> erlang:system_time(second).
