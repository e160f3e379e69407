-module(witness_weave_cache_bound).
-moduledoc """
Keeps the folder of woven code (`m:witness_weave_cache`) from growing without end.

Whatever changes, a module, the weaver or OTP, leaves behind what was woven before, which nobody asks for again. So when
something new was woven, and all is larger than a limit, what nobody has used for a week is removed, the oldest first,
until it is not. What was used within a week stays, however large it is: a VM loads its modules when it needs them.

*Used* is the time of modification of a file, for a folder that of its list. `used/1` sets it, at most once a day.

*Looked at* is all of it at most once a day too (`keep/2`): it takes seconds where there are ten thousands of files, and somebody waits
who has changed one module. Nothing is younger than a week when it is removed, so looking more often would remove it a day earlier, and
nothing else.

**Two at once.** Whoever uses something sets its time first, and then looks whether it is all there. Whoever removes
gives it another name first, looks at the time once more, and gives the old name back if somebody has come in between.
So what was used is there, but for the moment between these two steps; and what is not there is made anew.
""".

-include_lib("kernel/include/file.hrl").

-export([used/1, keep/2, shrink/2, default/0]).

-define(DAY, 86_400).
-define(WEEK, (7 * ?DAY)).
-define(LIST, "woven").
%% An empty file: its time is that of the last look at all.
-define(LOOKED, "looked").

-doc "The limit: bytes.".
-spec default() -> pos_integer().
default() -> 1 bsl 30.

-doc "Somebody uses this file. `fresh`: that was known already.".
-spec used(file:filename()) -> renewed | fresh.
used(File) ->
    case last_used(File) < now_seconds() - ?DAY of
        true ->
            %% A folder of somebody else may be read only: then it is not ours to keep small.
            _ = file:change_time(File, calendar:local_time()),
            renewed;
        false -> fresh
    end.

-doc "The same as `shrink/2`, unless that was done within a day.".
-spec keep(file:filename(), Limit :: non_neg_integer()) -> ok.
keep(CacheDir, Limit) ->
    Looked = filename:join(CacheDir, ?LOOKED),
    %% A time that is yet to come is that of a clock that was put back.
    case abs(now_seconds() - last_used(Looked)) > ?DAY of
        true ->
            %% First, so that those who come meanwhile do not look too.
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
    _ = lists:foldl(fun remove/2, {Total, Limit, now_seconds() - ?WEEK}, lists:sort(Entries)),
    ok.

remove({Used, Size, Path, Mark}, {Total, Limit, Before}) when Total > Limit, Used < Before ->
    Away = Path ++ ".removed." ++ os:getpid() ++ "." ++ integer_to_list(erlang:unique_integer([positive])),
    Left = case file:rename(Path, Away) of
        ok -> Total - removed(Used, Size, Path, Mark, Away);
        %% Somebody else was first.
        {error, _} -> Total - Size
    end,
    {Left, Limit, Before};
remove(_, All) ->
    All.

removed(Used, Size, Path, Mark, Away) ->
    Back = last_used(Away ++ lists:nthtail(length(Path), Mark)) =/= Used andalso file:rename(Away, Path) =:= ok,
    case Back of
        true -> 0;
        false ->
            _ = file:del_dir_r(Away),
            Size
    end.

%% What has the time: a file itself, the list of a folder; a folder without one was never complete.
entry(Path) ->
    case file:list_dir(Path) of
        {ok, Names} ->
            List = filename:join(Path, ?LIST),
            Mark = case lists:member(?LIST, Names) of true -> List; false -> Path end,
            {last_used(Mark), lists:sum([element(2, info(filename:join(Path, Name))) || Name <- Names]), Mark};
        {error, _} ->
            {Used, Size} = info(Path),
            {Used, Size, Path}
    end.

paths(Dir) ->
    case file:list_dir(Dir) of
        {ok, Names} -> [filename:join(Dir, Name) || Name <- Names];
        {error, _} -> []
    end.

last_used(File) -> element(1, info(File)).

%% Asked without the file server, through which ten thousands of questions take seconds.
info(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, #file_info{mtime = Time, size = Size}} -> {Time, Size};
        {error, _} -> {0, 0}
    end.

now_seconds() -> erlang:system_time(second).
