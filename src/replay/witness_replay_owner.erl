-module(witness_replay_owner).
-moduledoc """
Whose recording it is. A recording names the code that a replay runs, and its folders: so one that another user could have
written is as good as a program of that user.
""".

-export([check/1]).

-include_lib("kernel/include/file.hrl").

-doc "Whether the folder of a recording and all in it belong to the user of this VM; otherwise what does not.".
-spec check(file:filename()) -> ok | {error, {owner, file:filename()}}.
check(Dir) ->
    case file:list_dir(Dir) of
        {ok, Names} ->
            Own = own(),
            case [File || File <- [Dir | [filename:join(Dir, Name) || Name <- lists:sort(Names)]], not is_owned(File, Own)] of
                [] -> ok;
                [File | _] -> {error, {owner, File}}
            end;
        %% Whoever opens it will say so.
        {error, _} -> ok
    end.

is_owned(File, Own) ->
    case file:read_file_info(File) of
        {ok, #file_info{uid = Uid}} -> Uid =:= Own;
        {error, Reason} -> Reason =:= enoent
    end.

%% What this VM makes has its user's number.
own() ->
    File = filename:join(filename:basedir(user_cache, "witness"), io_lib:format("owner.~s.~b", [os:getpid(),
                                                                        erlang:unique_integer([positive])])),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, ~""),
    {ok, #file_info{uid = Own}} = file:read_file_info(File),
    ok = file:delete(File),
    Own.
